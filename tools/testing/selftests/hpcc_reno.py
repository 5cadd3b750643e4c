#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""HPCC over ports that write no telemetry: the connection behaves as reno.

	a (client, sends) ---- wire (this program) ---- b (server)
"""
from lab.tap import case, equal, main, true, within
from lab.wire.hpcc import RTT, hpcc
from lab.wire.sockopt import cwnd
from lab.wire.window import lose
from lab.wire.wire import MSS

CE = 3
GROWN = 40              # packets; a bandwidth-delay product has eight


def lost(p):
    """The wire loses the packet."""
    return True


def marked(p):
    """A port marks the packet."""
    p.set_dsfield(p.dsfield | CE)
    return False


@case("a loss, and a mark, halve the window", cc=("hpcc", "tlt_hpcc"), version=(4, 6),
      event=(lost, marked), tso=(False, True))
def halves(cc, version, event, tso):
    with hpcc(cc, version=version, tso=tso) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect()
        seen = []       # (time, cwnd) at each packet, from the event on

        def once(p):
            if not p.from_a or p.len < 1000 or not seen and cwnd(client) < GROWN:
                return False
            seen.append((p.time, cwnd(client)))
            return len(seen) == 1 and event(p)

        wire.rule = once
        true(wire.transfer(client, server, 3_000_000), "the bytes arrive")
        begun, before = seen[0]
        after = next(size for time, size in seen if time > begun + 8 * RTT)
        within(after / before, 0.45, 0.65, f"windows after {before} packets")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("the loss of one of four packets halves a window that is not full", cc=("hpcc", "tlt_hpcc"),
      version=(4, 6))
def few_packets(cc, version):
    with hpcc(cc, version=version) as wire:
        pair = wire.connect()
        for _ in range(8):
            true(wire.transfer(*pair, 400_000), "arrives")
        before = cwnd(pair[0])
        true(before >= GROWN, f"the window grows: {before}")
        lose(wire, lambda p: p.from_a and p.len > 1000, (1,))
        true(wire.transfer(*pair, 4 * MSS[version]), "arrives")
        wire.run(4 * RTT)
        within(cwnd(pair[0]) / before, 0.45, 0.6, f"windows of {before} packets")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


if __name__ == "__main__":
    main()
