#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends send at once: data may acknowledge important data.

	a (client, sends and reads) ---- wire ---- b (server, sends and reads)
"""
from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, IMPORTANT
from lab.tap import case, equal, true, within
from lab.wire.packet import SYN, data
from lab.wire.transcript import lose
from lab.wire.wire import connected

COUNT = 400_000


def marked(packets, *kinds):
    """Number of packets of these kinds, without the handshake."""
    return sum(p.kind in kinds and not p.flags & SYN for p in packets)


def at_once(wire, ours, theirs):
    """Check that each important packet is acknowledged when it arrives, by any packet of the other
    end.  The limit allows for the time in which the wire carries a burst, some 30 us; a delayed
    ACK is 4 ms late."""
    answers = (p for p in theirs if not p.flags & SYN)
    answer = next(answers)
    for p in ours:
        if p.kind != IMPORTANT or p.flags & SYN:
            continue
        while (answer.ack - p.end) & 1 << 31:
            answer = next(answers)
        within(answer.time - p.time - wire.delay, 0, 100e-6,
               f"time until {answer!r} answers {p!r}, s")


@case("every important packet and clock is echoed, in both directions", connected,
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
              f"echoes of {name}'s important packets, sent and received")
        equal(sum(p.says == CLOCK_ECHO for p in theirs), sum(p.says == CLOCK for p in ours),
              f"echoes of {name}'s clocks")


@case("the answer to a clock is a pure ACK: data is never protected because it acknowledges",
      connected)
def echoes_are_pure(wire, client, server):
    wire.transfer_both(client, server, COUNT)
    wire.run(5e-3)
    for ns, ours in ((wire.a, wire.from_a()), (wire.b, wire.from_b())):
        equal(marked(data(ours), IMPORTANT), ns.greenlane()["ImportantSent"],
              "protected data, and the sender's own count")
    equal([p for p in wire.seen if p.len and (p.kind in (CONTROL, CLOCK_ECHO)
                                              or p.says not in (None, CLOCK))], [],
          "data that is marked as an ACK, or has our option")


@case("data that acknowledges important data is its echo", connected)
def echo_on_data(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(1e-3)
    before = wire.a.greenlane()["EchoReceived"]
    lost = []

    # Only data of b passes, no pure ACK.
    def rule(p):
        if not p.from_a and not p.len:
            lost.append(p)
            return True
        return False
    wire.rule = rule
    client.send(b"q" * 1000)
    wire.run(20e-6)
    true(lost, "a pure ACK is lost")
    equal(wire.a.greenlane()["EchoReceived"], before, "EchoReceived without the ACK")
    server.send(b"r" * 1000)
    wire.run(11e-6)
    equal(wire.a.greenlane()["EchoReceived"], before + 1, "EchoReceived")
    wire.rule = None
    wire.run(10e-3)
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("losses in both directions: no timer expires", connected, version=(4, 6))
def losses(wire, client, server):
    wire.rule = lose("> data", "< data", every=3)
    true(wire.transfer_both(client, server, COUNT), "all arrives")
    wire.rule = None
    wire.run(50e-3)
    for ns in (wire.a, wire.b):
        equal(ns.netstat("TCPTimeouts"), 0, "TCPTimeouts")


if __name__ == "__main__":
    tap.main()
