#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends send at once: an echo never gets lost on a data packet.

	a (client, sends and reads) ---- wire ---- b (server, sends and reads)
"""
from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, DATA, ECHO, IMPORTANT
from lab.tap import case, equal, true
from lab.wire.packet import SYN
from lab.wire.transcript import lose
from lab.wire.wire import connected

COUNT = 400_000


def marked(packets, *kinds):
    """How many of these kinds, the handshake not counted."""
    return sum(p.dscp in kinds and not p.flags & SYN for p in packets)


@case("every important packet and clock is echoed, both ways", connected,
      cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def all_echoed(wire, client, server):
    true(wire.transfer_both(client, server, COUNT), "all arrives")
    wire.run(5e-3)
    for name, ours, theirs in (("a", wire.from_a(), wire.from_b()),
                               ("b", wire.from_b(), wire.from_a())):
        important = marked(ours, IMPORTANT)
        true(important > 0, f"{name} sends important packets")
        # an echo may be late and belong to two that followed each
        # other: never more packets than echoes asked for
        equal(marked(theirs, ECHO), important, f"echoes of {name}'s")
        equal(marked(theirs, CLOCK_ECHO), marked(ours, CLOCK),
              f"clock echoes of {name}'s")


@case("echoes are pure ACKs: data is never protected for an ACK's sake", connected)
def echoes_are_pure(wire, client, server):
    wire.transfer_both(client, server, COUNT)
    equal([p for p in wire.seen if p.len and p.dscp in (ECHO, CLOCK_ECHO)], [],
          "data marked as echo")


@case("an echo on a data packet, from a peer that does so, is heard", connected)
def echo_on_data(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(1e-3)
    before = wire.a.greenlane()["EchoReceived"]
    unechoed = wire.a.greenlane()["Unechoed"]
    held = []

    # Make b's echo ride on the data that b sends at the same time.
    def rule(p):
        if not p.from_a and p.dscp == ECHO:
            held.append(p)
            return True
        if not p.from_a and p.len and p.dscp in (DATA, IMPORTANT):
            p.set_dscp(ECHO)
        return False
    wire.rule = rule
    client.send(b"q" * 1000)
    wire.run(5e-6)
    wire.run(15e-6)
    server.send(b"r" * 1000)
    wire.run(200e-6)
    true(held, "an echo was held back")
    equal(wire.a.greenlane()["EchoReceived"], before + 1, "EchoReceived")
    equal(wire.a.greenlane()["Unechoed"], unechoed, "Unechoed")
    wire.rule = None
    wire.run(10e-3)


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
