#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends send at once: what acknowledges important data may be data.

	a (client, sends and reads) ---- wire ---- b (server, sends and reads)
"""
from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, IMPORTANT
from lab.tap import case, equal, true, within
from lab.wire.packet import SYN
from lab.wire.transcript import lose
from lab.wire.wire import connected

COUNT = 400_000


def marked(packets, *kinds):
    """How many of these kinds, the handshake not counted."""
    return sum(p.kind in kinds and not p.flags & SYN for p in packets)


def at_once(wire, ours, theirs):
    """Each important packet is acknowledged as it comes, by whatever the other end sends.
    The wire looks when it has carried a burst, some 30 us of packets; a delayed ACK is 4 ms
    late."""
    answers = (p for p in theirs if not p.flags & SYN)
    answer = next(answers)
    for p in ours:
        if p.kind != IMPORTANT or p.flags & SYN:
            continue
        while (answer.ack - p.end) & 1 << 31:
            answer = next(answers)
        within(answer.time - p.time - wire.delay, 0, 100e-6, f"seconds until {answer!r} of {p!r}")


@case("every important packet and clock is echoed, both ways", connected,
      cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def all_echoed(wire, client, server):
    true(wire.transfer_both(client, server, COUNT), "all arrives")
    wire.run(5e-3)
    a, b = wire.a.greenlane(), wire.b.greenlane()
    for name, ours, theirs, own, others in (("a", wire.from_a(), wire.from_b(), a, b),
                                            ("b", wire.from_b(), wire.from_a(), b, a)):
        important = marked(ours, IMPORTANT)
        true(important > 0, f"{name} sends important packets")
        at_once(wire, ours, theirs)
        equal((others["EchoSent"], own["EchoReceived"]), (important, important),
              f"echoes of {name}'s, sent and received")
        equal(sum(p.says == CLOCK_ECHO for p in theirs), sum(p.says == CLOCK for p in ours),
              f"clock echoes of {name}'s")


@case("an answer to a clock is a pure ACK: data is never protected for an ACK's sake", connected)
def echoes_are_pure(wire, client, server):
    wire.transfer_both(client, server, COUNT)
    equal([p for p in wire.seen if p.len and (p.kind in (CONTROL, CLOCK_ECHO)
                                              or p.says not in (None, CLOCK))], [],
          "data that is marked as an ACK, or has our option")


@case("important data that is acknowledged by data is heard of", connected)
def echo_on_data(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(1e-3)
    before = wire.a.greenlane()["EchoReceived"]
    lost = []

    # Only the data that b sends at the same time gets through.
    def rule(p):
        if not p.from_a and not p.len:
            lost.append(p)
            return True
        return False
    wire.rule = rule
    client.send(b"q" * 1000)
    wire.run(20e-6)
    true(lost, "a pure ACK is lost")
    equal(wire.a.greenlane()["EchoReceived"], before, "EchoReceived, without it")
    server.send(b"r" * 1000)
    wire.run(11e-6)
    equal(wire.a.greenlane()["EchoReceived"], before + 1, "EchoReceived")
    wire.rule = None
    wire.run(10e-3)
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("losses both ways: neither direction needs a timer", connected, version=(4, 6))
def losses(wire, client, server):
    wire.rule = lose("> data", "< data", every=3)
    true(wire.transfer_both(client, server, COUNT), "all arrives")
    wire.rule = None
    wire.run(50e-3)
    for ns in (wire.a, wire.b):
        equal(ns.netstat("TCPTimeouts"), 0, "TCPTimeouts")


if __name__ == "__main__":
    tap.main()
