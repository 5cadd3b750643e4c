#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends send at once: an echo never gets lost on a data packet.

	a (client, sends and reads) ---- wire ---- b (server, sends and reads)
"""
from gl import tap
from gl.packet import CLOCK, CLOCK_ECHO, DATA, ECHO, IMPORTANT, SYN
from gl.tap import case, equal, true
from gl.wire import Wire

COUNT = 400_000


def marked(packets, *kinds):
    """How many of these kinds, the handshake not counted."""
    return sum(p.dscp in kinds and not p.flags & SYN for p in packets)


@case("every important packet and clock is echoed, both ways")
def all_echoed():
    for cc in ("tlt_reno", "tlt_dctcp"):
        for version in (4, 6):
            with Wire(cc=cc, version=version) as wire:
                client, server = wire.connect()
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


@case("echoes are pure ACKs: data is never protected for an ACK's sake")
def echoes_are_pure():
    with Wire() as wire:
        client, server = wire.connect()
        wire.transfer_both(client, server, COUNT)
        equal([p for p in wire.seen if p.len and p.dscp in (ECHO, CLOCK_ECHO)], [],
              "data marked as echo")


@case("an echo on a data packet, from a peer that does so, is heard")
def echo_on_data():
    with Wire() as wire:
        client, server = wire.connect()
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


@case("losses both ways: neither direction needs a timer")
def losses():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            n = [0]

            def drop(p):
                n[0] += bool(p.len and p.dscp == DATA)
                return p.len and p.dscp == DATA and n[0] % 3 == 0
            wire.rule = drop
            true(wire.transfer_both(client, server, COUNT), "all arrives")
            wire.rule = None
            wire.run(50e-3)
            for ns in (wire.a, wire.b):
                equal(ns.netstat("TCPTimeouts"), 0, "TCPTimeouts")


if __name__ == "__main__":
    tap.main()
