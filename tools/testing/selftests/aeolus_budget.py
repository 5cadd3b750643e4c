#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Aeolus: the connections of a host share one bandwidth-delay product (BDP) of bursts, and each
returns its part when its burst ends.

	a (clients, send) ---- wire (this program) ---- b (server, sends credits)
"""
import socket
import struct
import time

from lab.codepoints import CREDIT, PROBE_ACK, UNSCHEDULED
from lab.tap import case, equal, main, true
from lab.wire.aeolus import RTT, aeolus
from lab.wire.packet import RST, data
from lab.wire.sockopt import GREENLANE_BDP
from lab.wire.wire import connected, pattern

OTHER = 1001            # port of another connection


def bursts(wire, client, server):
    """Send a message; returns whether it begins with a burst."""
    wire.mark()
    true(wire.transfer(client, server, 5000), "arrives")
    return data(wire.from_a())[0].kind == UNSCHEDULED


def lost_answers(wire, client, server):
    """credits and the answer to the probe are lost"""
    wire.rule = lambda p: p.kind in (CREDIT, PROBE_ACK) and not p.from_a
    true(wire.transfer(client, server, 5000), "arrives")
    wire.run(10e-3)


def reset(wire, client, server):
    """a reset, and the process does not close its socket"""
    wire.rule = lambda p: not p.from_a and not p.flags & RST
    client.send(pattern(5000))
    wire.run(0.75 * RTT)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    wire.run(RTT)


def nothing(wire, client, _):
    """all packets from b are lost"""
    wire.rule = lambda p: not p.from_a
    client.send(pattern(5000))
    wire.run(2 * RTT)


def wide(wire, *pair):
    """Another connection; both have large windows afterwards, and their bursts have ended."""
    other = wire.connect(OTHER)
    for one in (pair, other):
        true(wire.transfer(*one, 500_000), "arrives")
    wire.run(1.0)
    return other


@case("however a burst ends, other connections may burst a round trip later", version=(4, 6),
      what=(lost_answers, reset, nothing))
def comes_back(version, what):
    with connected(of=aeolus, version=version) as (wire, client, server):
        other = wire.connect(OTHER)
        true(bursts(wire, *other), "the other connection bursts before")
        wire.run(1.0)
        what(wire, client, server)
        wire.rule = None
        wire.run(RTT)
        true(bursts(wire, *other), "the other connection bursts afterwards")


@case("the answer to a probe is lost: the answer to the next probe still ends its burst", connected,
      of=aeolus, version=(4, 6))
def answer_lost(wire, client, server):
    other = wide(wire, client, server)
    wire.rule = lambda p: p.kind in (CREDIT, PROBE_ACK)
    true(wire.transfer(client, server, 5000), "arrives")
    wire.run(10e-3)
    # This burst takes the host's whole BDP until the answer arrives; no credit ends it earlier.
    wire.rule = lambda p: p.kind == CREDIT and OTHER not in (p.sport, p.dport)
    client.send(pattern(1_000_000))
    wire.run(1.5 * RTT)
    true(bursts(wire, *other), "another connection may burst after the answer has arrived")
    wire.rule = None


@case("two short messages at the same time both burst", connected, of=aeolus, version=(4, 6))
def both(wire, client, _):
    other = wire.connect(OTHER)
    wire.run(1.0)
    wire.mark()
    for s in (client, other[0]):
        s.send(pattern(100))
    wire.run(3 * RTT)
    first = {}
    for p in data(wire.from_a()):
        first.setdefault(p.dport, p.kind)
    equal(list(first.values()), [UNSCHEDULED] * 2, "kind of the first packet of each")


@case("two large messages at the same time burst one BDP together", connected, of=aeolus,
      version=(4, 6))
def together(wire, client, server):
    other = wide(wire, client, server)
    wire.mark()
    wire.rule = lambda p: not p.from_a
    for s in (client, other[0]):
        s.send(pattern(1_000_000))
    wire.run(2 * RTT)
    sent = sum({p.seq: p.len for p in data(wire.from_a()) if p.kind == UNSCHEDULED}.values())
    true(200_000 < sent < 325_000, f"{sent} unscheduled bytes; a BDP is 250,000")
    wire.rule = None


@case("a credit is lost: the next message, a round trip later, bursts, too", version=(4, 6),
      size=(1448, 5000, 30_000))
def next_one(version, size):
    with connected(of=aeolus, version=version) as (wire, client, server):
        lost = []
        wire.rule = lambda p: p.kind == CREDIT and not lost and not lost.append(p)
        true(wire.transfer(client, server, size), "arrives")
        wire.run(1.2 * RTT)
        wire.mark()
        began = time.monotonic()
        true(wire.transfer(client, server, size), "the next message arrives")
        took = time.monotonic() - began
        equal(data(wire.from_a())[0].kind, UNSCHEDULED, "kind of its first packet")
        true(took < RTT, f"{took / RTT:.2f} round trips, expected less than one")


@case("an initcwnd or GREENLANE_BDP above the link's BDP sets the length of the burst",
      how=("initcwnd", "GREENLANE_BDP"))
def longer(how):
    with aeolus() as wire:
        wire.delay = 10e-6
        if how == "initcwnd":
            wire.a.ip("route change 10.0.0.2/32 dev tun0 rto_min 200ms initcwnd 40")
        client, _ = wire.connect(OTHER)
        if how == "GREENLANE_BDP":
            client.setsockopt(socket.IPPROTO_IP, GREENLANE_BDP, 40 * 1448)
        wire.mark()
        wire.rule = lambda p: not p.from_a
        client.send(pattern(80_000))
        wire.run(1e-3)
        burst = {p.seq for p in data(wire.from_a()) if p.kind == UNSCHEDULED}
        equal(len(burst), 40, "packets of the burst")


main()
