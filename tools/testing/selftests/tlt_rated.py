#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TLT where the base has a rate: which packets of tlt_dcqcn are important (TLT §5.2).

	a (client, sends) ---- wire (this program) ---- b (server)

The last of a message, every 96th, the first and the last of each round of
retransmissions; no clocks.
"""
from gl.packet import CLOCK, DATA, ECHO, IMPORTANT, data
from gl.sockopt import cc_of, info
from gl.tap import case, equal, main, true
from gl.wire import MSS, Wire

RATE = 1000             # Mbit/s
RTT = 100e-6
PERIOD = 96


def everywhere(check):
    """IPv4 and IPv6, TSO on and off."""
    for version in (4, 6):
        for tso in (True, False):
            with Wire(cc="tlt_dcqcn", rto_min="200ms", version=version, tso=tso) as wire:
                for ns in (wire.a, wire.b):
                    ns.sysctl("net.ipv4.dcqcn_rate", RATE)
                wire.connect(999)
                wire.mark()
                wire.delay = RTT / 2
                check(wire)


def no_timer(wire):
    """Nothing has waited for one, and nobody has sent a clock."""
    for name in ("TCPTimeouts", "TCPLossProbes"):
        equal(wire.a.netstat(name), 0, name)
    equal([p for p in wire.seen if p.dscp == CLOCK], [], "clocks")


@case("the last packet of a message is important, and one in 96 before it")
def marks():
    def check(wire):
        client, server = wire.connect()
        mss = MSS[wire.version]
        for packets in (1, 2, 50, 250):
            wire.mark()
            true(wire.transfer(client, server, packets * mss), "arrives")
            wire.run(1e-3)
            sent = [p.dscp for p in data(wire.from_a())]
            equal(len(sent), packets, "packets")
            expected = [IMPORTANT if n % PERIOD == 0 or n == packets else DATA
                        for n in range(1, packets + 1)]
            if wire.tso:
                # A burst of several is asked once, and its last packet is the one.
                equal(sent[-1], IMPORTANT, f"the last of {packets}")
                gaps = [n for n, dscp in enumerate(sent) if dscp == IMPORTANT]
                true(all(after - before <= PERIOD for before, after in zip([-1] + gaps, gaps)),
                     f"one in 96 at least: {gaps}")
                equal(len(gaps), expected.count(IMPORTANT), "important ones")
            else:
                equal(sent, expected, f"of {packets} packets")
            echoes = [p for p in wire.from_b() if p.dscp == ECHO]
            equal(len(echoes), sent.count(IMPORTANT), "echoes")
        no_timer(wire)
    everywhere(check)


def losing(wire, lost):
    """Lose these packets of the next message once each, and the first to be sent again
    once more; returns what is sent again."""
    count, again, base = 0, [], None

    def rule(p):
        nonlocal count, base
        if not (p.from_a and p.len):
            return False
        if base is None:
            base = p.seq
        number = ((p.seq - base) & 0xffffffff) // MSS[wire.version]
        if number < count:
            again.append(p)
            return len(again) == 1
        count = number + max(1, -(-p.len // MSS[wire.version]))
        return number in lost
    wire.rule = rule
    return again


@case("a round of retransmissions: its first and its last packet are important")
def rounds():
    def check(wire):
        client, server = wire.connect()
        wire.transfer(client, server, 100_000)
        wire.mark()
        again = losing(wire, {10, 11, 12, 20, 21})
        true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
        wire.run(1e-3)
        # Each loss is found as what follows it is SACKed, so a round may be short; the
        # first packet that is sent again, lost again, is the first of one more round.
        true(len(again) >= 6, f"six times at least: {again}")
        equal(again[0].dscp, IMPORTANT, "the first of the first round")
        equal(again[-1].dscp, IMPORTANT, "the last of the last round")
        no_timer(wire)
    everywhere(check)


@case("all but the important packets are lost: no timer is needed")
def all_lost():
    def check(wire):
        client, server = wire.connect()
        for count in (10, 60, 200):
            wire.mark()
            seen = set()

            def rule(p):
                if p.from_a and p.len and p.dscp == DATA and p.seq not in seen:
                    seen.add(p.seq)
                    return True
                return False
            wire.rule = rule
            true(wire.transfer(client, server, count * MSS[wire.version], 0.1), "arrives")
            wire.rule = None
            wire.run(1e-3)
        no_timer(wire)
        true(info(client)["marked_lost"] > 0, "found lost by an echo")
    everywhere(check)


@case("without ECN: tlt_reno")
def no_ecn():
    for version in (4, 6):
        with Wire(cc="tlt_dcqcn", cc_b="tlt_reno", version=version) as wire:
            client, server = wire.connect()
            equal(cc_of(client), "tlt_reno", "congestion control")
            true(wire.transfer(client, server, 100_000), "arrives")


@case("both ways at once")
def duplex():
    def check(wire):
        client, server = wire.connect()
        true(wire.transfer_both(client, server, 300_000), "arrives")
        no_timer(wire)
    everywhere(check)


if __name__ == "__main__":
    main()
