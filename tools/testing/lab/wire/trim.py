# SPDX-License-Identifier: GPL-2.0
"""Trimmed packets on a wire, and the reports of them (net/greenlane/gl_trim.c).

The wire does to a packet what a port with `trim` does: color_trim.py has the rules of that.
"""
import struct

from lab.codepoints import DSCP
from lab.tap import equal
from lab.wire import packet as pkt
from lab.wire.packet import FIN, PSH

TRIMMED, REPORT, HAD_FIN = 11, 15, 1 << 31      # codes of the option; a bit of its word


def cut(p):
    """Trim a packet, as a port does.  Return: false if it has no room for the option."""
    if p.doff + 12 > 60:
        return False
    word = p.len | (HAD_FIN if p.flags & FIN else 0)
    p.flags &= ~(FIN | PSH)
    p.raw[p.ip_len + 13] = p.flags
    p.payload = b""
    del p.raw[p.ip_len + p.doff:]
    p.set_dsfield(DSCP["trimmed"] << 2 | p.ecn)
    p.add_options(pkt.option(TRIMMED, word))
    return True


def trims(wire, *which):
    """The wire trims these packets with data, numbered from 0 in the order in which a sends them.
    Returns the list of them: (seq, length)."""
    done, count = [], 0

    def rule(p):
        nonlocal count
        if p.from_a and p.len:
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
            if p.raw[at + 4] == REPORT:
                equal(p.dscp, DSCP["trimmed"], "DSCP of a report")
                found.append(struct.unpack_from("!II", p.raw, at + 8))
    return found
