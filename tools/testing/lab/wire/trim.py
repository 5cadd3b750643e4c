# SPDX-License-Identifier: GPL-2.0
"""Trimmed packets on a wire, and the reports of them (net/greenlane/gl_trim.c).

The wire does to a packet what a port with `trim` does: color_trim.py has the rules of that.
"""
import struct

from lab.codepoints import REPORT, TRIMMED
from lab.tap import equal, true
from lab.wire import packet as pkt
from lab.wire.packet import FIN, PSH

HAD_FIN = 1 << 31       # a bit of the word of a trimmed packet


def cut(p):
    """Trim a packet, as a port does.  Return: false if it has no room for the option."""
    if p.doff + 12 > 60:
        return False
    word = p.len | (HAD_FIN if p.flags & FIN else 0)
    p.flags &= ~(FIN | PSH)
    p.raw[p.ip_len + 13] = p.flags
    p.payload = b""
    del p.raw[p.ip_len + p.doff:]
    p.set_dscp(TRIMMED)
    p.add_options(pkt.option(TRIMMED, word))
    return True


def trims(wire, *which):
    """The wire trims these packets with data, numbered from 0 in the order in which a sends them.  A
    byte that a transport repeats to get an answer has no number.  Returns the list of them: (seq,
    length)."""
    done, count = [], 0

    def rule(p):
        nonlocal count
        if p.from_a and p.len > 1:
            if count in which:
                done.append((p.seq, p.len))
                cut(p)
            count += 1
        return False
    wire.rule = rule
    return done


def reports(wire):
    """(seq, length) of the reports that b has sent."""
    found = []
    for p in wire.from_b():
        for at in p.options_at:
            if p.raw[at + 4] == REPORT.code:
                equal(p.dscp, REPORT.dscp, "DSCP of a report")
                seq, word = struct.unpack_from("!II", p.raw, at + 8)
                found.append((seq, word & 0xffff))      # above: the number, for ndp
    return found


def forged(wire, client, server):
    """Forged packets: a report to a, and a trimmed packet to b, with parts to change."""
    wire.mark()
    true(wire.transfer(client, server, 1000), "bytes arrive")
    wire.run(1e-3)
    data, ack = [p for p in wire.from_a() if p.len][-1], wire.from_b()[-1]

    def report(seq, length, to=wire.a, **change):
        fields = {"seq": ack.seq, "ack": ack.ack, "dscp": REPORT, **change}
        option = pkt.option(REPORT, seq, length)
        wire.inject(to, pkt.make(wire.version, wire.address(wire.b), wire.address(wire.a), ack.sport,
                                 ack.dport, window=ack.window, options=option, **fields))

    def trimmed(seq, word, **change):
        fields = {"ack": data.ack, "dscp": TRIMMED, **change}
        option = pkt.option(TRIMMED, word)
        wire.inject(wire.b, pkt.make(wire.version, wire.address(wire.a), wire.address(wire.b),
                                     data.sport, data.dport, seq, window=data.window, options=option,
                                     **fields))
    return report, trimmed, ack.ack
