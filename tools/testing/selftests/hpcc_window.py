#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""HPCC on the wire: telemetry is requested, echoed, and determines the window.

	a (client, sends) ---- wire (this program: writes U, as a port does) ---- b (server)

hpcc_kunit.c tests the arithmetic.
"""
import contextlib
import socket
import struct

from lab.tap import case, equal, main, true, using, within
from lab.wire.packet import FIN, SYN, data
from lab.wire.sockopt import YES, info, pacing
from lab.wire.wire import MSS, Wire, connected

RATE = 1000             # Mbit/s: a full packet in 12.3 us
RTT = 100e-6
BDP = 12_500            # bytes
HEADERS = {4: 90, 6: 110}       # of a packet: TCP with time stamps, IP, Ethernet with gap
OPTION = 12
COLLECT, ECHOED, ONE = 0x8000, 0x8000, 1024
DATA_CODE, ACK_CODE = 12, 13


def hpcc(cc="hpcc", **options):
    """A wire with a fixed base RTT and rate."""
    wire = Wire(**{"cc": cc, "rto_min": "200ms", **options})
    for ns in (wire.a, wire.b):
        with contextlib.suppress(FileNotFoundError):
            ns.sysctl("net.ipv4.hpcc_rate", RATE)
            ns.sysctl("net.ipv4.hpcc_rtt", round(RTT * 1e6))
        ns.sysctl("net.ipv4.greenlane_active", 1)
    wire.delay = RTT / 2
    return wire


def option(p):
    """(code, telemetry field, words) of a packet's greenlane option, or None."""
    at, end = p.ip_len + 20, p.ip_len + p.doff
    while at < end and p.raw[at]:
        if p.raw[at] == 1:
            at += 1
            continue
        if p.raw[at] == 254 and bytes(p.raw[at + 2:at + 4]) == b"GL":
            words = (p.raw[at + 1] - 8) // 4
            return (p.raw[at + 4], *struct.unpack_from("!H", p.raw, at + 6),
                    struct.unpack_from(f"!{words}I", p.raw, at + 8))
        at += p.raw[at + 1]
    return None


def raise_to(p, util):
    """Raise U in a packet that requests it, as a port does."""
    at = bytes(p.raw).find(b"GL", p.ip_len + 20, p.ip_len + p.doff)
    if at < 0:
        return
    field = struct.unpack_from("!H", p.raw, at + 4)[0]
    if field & COLLECT and field & 0x7fff < util:
        struct.pack_into("!H", p.raw, at + 4, COLLECT | util)
        p.fix_checksum()


def port(wire, util):
    """The path has this utilisation: a number, or a function of the packet."""
    def rule(p):
        if p.from_a and p.len:
            raise_to(p, util(p) if callable(util) else util)
        return False
    wire.rule = rule


everywhere = using(connected, of=hpcc, version=(4, 6), tso=(True, False))


@everywhere("data requests telemetry, and each ACK echoes it")
def echo(wire, client, server):
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
    wire.mark()
    number = {}
    port(wire, lambda p: number.setdefault(p.seq, 100 + len(number)))
    true(wire.transfer(client, server, 30_000), "30 kB arrive")
    sent = [option(p) for p in data(wire.from_a())]
    equal({(code, bool(field & COLLECT), words) for code, field, words in sent},
          {(DATA_CODE, True, (0,))}, "code, request and echo in data")
    equal(max(p.len for p in data(wire.from_a())) <= 65535, True, "length")
    echoes = [option(p) for p in wire.from_b()]
    true(all(echoes), "each ACK has the option")
    equal({(code, words) for code, _, words in echoes}, {(ACK_CODE, ())}, "code, words in ACKs")
    equal([field for _, field, _ in echoes], [field & 0x7fff for _, field, _ in sent],
          "telemetry in ACKs")


main()
