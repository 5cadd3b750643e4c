#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Many connections on a receiver's link: turns that are late, short, or taken by another peer.

	a (clients, send) ---- wire (this program) ---- b (server, sends credits)
"""
import time

from lab import tap
from lab.codepoints import CREDIT, PROBE, REQUEST
from lab.tap import case, equal, true
from lab.wire import xpass
from lab.wire.attack import Attacker
from lab.wire.packet import option
from lab.wire.wire import Wire, pattern

PACKETS = 32            # of a flow of the incast
GBIT = 1000             # net.ipv4.xpass_rate
PACKET_NS = 12_900      # a credit and a packet, at that rate


def incast(wire, flows):
    """All send PACKETS at once; how long that took, s."""
    listener = wire.listen(1001)
    pairs = [wire.connect(1001, listener=listener) for _ in range(flows)]
    message = pattern(PACKETS * xpass.MSS[wire.version])
    left = {server: len(message) for _, server in pairs}
    wire.run(0.1)
    wire.mark()
    began = time.monotonic()
    for client, _ in pairs:
        equal(client.send(message), len(message), "sent")

    def read():
        for server in list(left):
            try:
                left[server] -= len(server.recv(1 << 20))
            except BlockingIOError:
                continue
            if not left[server]:
                del left[server]
        return not left
    true(wire.run(5.0, read), "all arrives")
    return time.monotonic() - began


@case("an incast's last flows report seldom, as they have had few credits: they are not given up",
      flows=(50, 200))
def tail(flows):
    with Wire(cc="xpass", rto_min="200ms") as wire:
        wire.b.sysctl("net.ipv4.xpass_rate", GBIT)
        took = incast(wire, flows)
        ideal = flows * PACKETS * PACKET_NS / 1e9
        true(took < 1.05 * ideal, f"{took / ideal:.3f} of the link's time")
        # The wire is one process: what is asked again at first, its own delay has caused.
        late = [p for p in wire.seen if p.kind == REQUEST and p.words[2] & xpass.RETRY
                and p.time > wire.seen[0].time + 0.3 * ideal]
        equal(len(late), 0, "requests that are asked again near the end")


@case("a sender that is gone: its receiver notices, also if eight credits take eight seconds",
      Wire, cc="xpass")
def gone(wire):
    xpass.far(wire)
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.xpass_rate", 1)
    client, _ = wire.connect()
    client.send(pattern(200_000))
    # Lost credits lower the rate.
    wire.rule = lambda p: p.kind == CREDIT
    wire.run(6.0)
    wire.rule = None
    wire.run(3.0)
    wire.rule = lambda p: p.from_a
    wire.mark()
    wire.run(60.0)
    credits = [p.time - wire.seen[0].time for p in wire.seen if p.kind == CREDIT]
    true(credits and credits[-1] < 12, f"credits until {credits[-1:]} s later")


def far_away(wire, port, delay):
    """Connect with a handshake that takes so long."""
    listener, client = wire.listen(port), wire.socket(wire.a)
    near, wire.delay = wire.delay, delay
    wire.begin(client, wire.b, port)
    wire.run(6 * delay)
    server, wire.delay = wire.accept(listener), near
    return client, server


def transfer_time(wire, client, server):
    """Of 50 kB, s."""
    began = time.monotonic()
    true(wire.transfer(client, server, 50_000), "arrives")
    return time.monotonic() - began


@case("a peer sends small packets and says that they were a burst: others' credits go on", Wire,
      cc="xpass", version=(4, 6))
def small_packets(wire):
    xpass.far(wire)
    # The longer its round trip, the older a burst may be.
    attacker = Attacker(wire, *far_away(wire, 1001, 0.25))
    victim = wire.connect(1002)
    transfer_time(wire, *victim)
    wire.run(0.5)
    usual = transfer_time(wire, *victim)
    wire.rule = lambda p: 1001 in (p.sport, p.dport)

    def ask(flags=0, kind=REQUEST):
        end = (attacker.right[True][0],) if kind == PROBE else ()
        attacker.forge(True, kind, option(kind, 0, 0, 1000 | flags, *end))
    ask()
    for _ in range(14):
        wire.run(2e-3)
        ask(xpass.RETRY)
    ask()
    for _ in range(100):
        for _ in range(400):
            attacker.forge(True, 0, seq=-1, payload=b"x")
        wire.run(1e-3)
    ask(kind=PROBE)
    took = transfer_time(wire, *victim)
    # The line waits for 256 packets of one that has not asked for credits.
    true(took - usual < 300 * PACKET_NS / 1e9, f"{took * 1e3:.2f} ms, {usual * 1e3:.2f} before")


tap.main()
