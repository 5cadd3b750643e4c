#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""HPCC over ports that write no telemetry: the connection behaves as reno.

	a (client, sends) ---- wire (this program) ---- b (server)
"""
from lab.tap import case, equal, main, true, within
from lab.wire.hpcc import RTT, hpcc
from lab.wire.sockopt import cwnd
from lab.wire.window import lose
from lab.wire.wire import MSS, pattern

CE = 3
GROWN = 40              # packets; a bandwidth-delay product has eight


def lost(p):
    """The wire loses the packet."""
    return True


def marked(p):
    """A port marks the packet."""
    p.set_dsfield(p.dscp << 2 | CE)
    return False


@case("a loss, and a mark, halve the window", cc=("hpcc", "tlt_hpcc"), version=(4, 6),
      event=(lost, marked), tso=(False, True))
def halves(cc, version, event, tso):
    with hpcc(cc, version=version, tso=tso) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect()
        sent = pattern(3_000_000)
        left, got, before = memoryview(sent), [], []

        def carry(seconds, until=None):
            def step():
                nonlocal left
                try:
                    left = left[client.send(left):]
                except BlockingIOError:
                    pass
                try:
                    got.append(server.recv(1 << 20))
                except BlockingIOError:
                    pass
                return until and until()
            wire.run(seconds, step)

        def once(p):
            if before or not p.from_a or p.len < 1000 or cwnd(client) < GROWN:
                return False
            before.append(cwnd(client))
            return event(p)

        wire.rule = once
        carry(1, lambda: before)
        true(before, "the window grows")
        carry(8 * RTT)
        within(cwnd(client) / before[0], 0.45, 0.65, f"windows after {before[0]} packets")
        carry(1, lambda: sum(map(len, got)) == len(sent))
        equal(b"".join(got) == sent, True, "the bytes arrive")
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
