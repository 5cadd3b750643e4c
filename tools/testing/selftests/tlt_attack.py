#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""An attacker beside the path: knows addresses and ports, guesses the rest.

	a (client) ---- wire ---- b (server)
	                 ^
	        attacker, forges packets of either

What he forges has at least one number, sequence or acknowledgment, that is far
from the right one: who guesses both right has what he needs to attack any TCP.
The seed is gl.fuzz's; all that is random is ISNs and the attacker's numbers.
"""
import itertools
import random
import time

from lab import fuzz, tap
from lab.codepoints import (CLOCK, CLOCK_ECHO, CODED, CONTROL, DATA, IMPORTANT, SCHEDULED, SHARE,
                            dscp_of)
from lab.net import frames as port
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import ACK, FIN, PSH, RST, SYN
from lab.wire.sockopt import F_REORDERED, NO, YES, choose, info
from lab.wire.wire import Wire, connected, pattern

FAR = 1 << 27           # further than any window of these tests
PROTECTED = (IMPORTANT, CLOCK, CLOCK_ECHO, CONTROL)
OURS = (DATA, *PROTECTED)
# What our option may say: also what TLT has no use for.
SAYS = (None, *CODED)


def option(says):
    """Our option, or none."""
    return b"" if says is None else pkt.option(says)


def known(s):
    """A connection's state of its peer: (peer, flags).  Forged SACK blocks make TCP itself
    take the path for one on which packets overtake each other."""
    return info(s)["peer"], info(s)["flags"] & ~F_REORDERED


class Attacker:
    """Forges packets of one connection."""

    def __init__(self, wire, client, server, seed=""):
        self.wire = wire
        self.rng = random.Random(f"{fuzz.SEED} {seed}")
        self.a = (wire.address(wire.a), client.getsockname()[1])
        self.b = (wire.address(wire.b), server.getsockname()[1])
        # (next sequence number, acknowledgment), as a and as b sent them last
        self.right = {}
        self.sent = 0
        self.watch()

    def watch(self):
        """Learn the right numbers, in order to avoid them."""
        for p in self.wire.seen:
            self.right[p.from_a] = (p.end, p.ack)

    def far(self, n):
        """A number that is not near n."""
        return (n + self.rng.randrange(FAR, (1 << 32) - FAR)) & 0xffffffff

    def forge(self, from_a, dscp, flags=ACK, payload=b"", ecn=0, which=None, options=b""):
        """A packet; which: seq, ack or both are wrong."""
        seq, ack = self.right[from_a]
        which = which or self.rng.choice(("seq", "ack", "both"))
        seq = self.far(seq) if which != "ack" else seq
        ack = self.far(ack) if which != "seq" else ack
        src, dst = (self.a, self.b) if from_a else (self.b, self.a)
        p = pkt.make(self.wire.version, src[0], dst[0], src[1], dst[1], seq, ack, flags=flags,
                     payload=payload, dscp=dscp, options=options)
        if ecn:
            p.set_dsfield(dscp_of(dscp) << 2 | ecn)
        return p

    def send(self, packet, from_a):
        """Into the one that it is addressed to."""
        self.wire.inject(self.wire.b if from_a else self.wire.a, packet)
        self.sent += 1

    def shoot(self, from_a):
        """One of everything that he can think of."""
        rng = self.rng
        dscp = rng.choice((rng.choice(OURS), rng.randrange(64)))
        flags = rng.choice((ACK,) * 6 + (ACK | PSH, RST, RST | ACK, SYN, SYN | ACK, FIN | ACK, 0))
        payload = b"f" * rng.choice((0, 0, 1, 1, 100, 1448))
        # A RST or SYN is judged by its sequence number alone.
        which = "seq" if flags & (RST | SYN) else None
        says = dscp if dscp in CODED and rng.random() < 0.7 else rng.choice(SAYS)
        self.send(self.forge(from_a, dscp, flags, payload, rng.randrange(4), which, option(says)),
                  from_a)


# --- what is known of the peer

def start(wire):
    """A client in SYN_SENT, whose SYN is on its way: (client, listener)."""
    listener = wire.listen()
    client = wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1e-6)
    return client, listener


def forge_synacks(wire, options, dscps):
    """To a client in SYN_SENT; none of them acknowledges its SYN."""
    client, listener = start(wire)
    syn = wire.seen[-1]
    for ack in (0, -1, 2, 1000, 1 << 31):
        for dscp in dscps:
            wire.inject(wire.a, pkt.make(
                wire.version, wire.address(wire.b), wire.address(wire.a), syn.dport,
                syn.sport, 1, syn.seq + ack, flags=SYN | ACK, dscp=dscp, options=options))
    return client, listener


@case("a forged SYN-ACK does not make a peer of a server that is none", Wire, version=(4, 6),
      cc="tlt_reno", cc_b="reno")
def forged_synack(wire):
    client, listener = forge_synacks(wire, pkt.option(IMPORTANT, answer=True), PROTECTED)
    wire.run(3e-3)
    wire.accept(listener)
    equal(known(client), (NO, 0), f"IPv{wire.version}: peer, flags")


@case("a forged SYN-ACK does not make a peer without TLT of a server with it", Wire,
      version=(4, 6))
def forged_synack_bleached(wire):
    for options in (b"", *(pkt.option(says, answer=True) for says in (SCHEDULED, SHARE))):
        client, listener = forge_synacks(wire, options, (0, DATA, IMPORTANT))
        wire.run(1e-4)
        wire.accept(listener)
        equal(known(client), (YES, 0), f"IPv{wire.version}, {options.hex()}: peer, flags")
        listener.close()


@case("nothing forged makes a peer of one that is none, in mid-connection", connected,
      version=(4, 6), cc="reno")
def chosen_later(wire, client, server):
    true(wire.transfer(client, server, 10_000), "arrives")
    choose(client, "tlt_reno")
    equal(known(client), (NO, 0), "before")
    attacker = Attacker(wire, client, server)

    def rule(p):
        if not p.from_a:
            for dscp in PROTECTED:
                for says in (None, dscp):
                    attacker.send(attacker.forge(False, dscp, which="seq", options=option(says)),
                                  False)
                p.set_dscp(dscp)        # and he who is on the path
        return False
    wire.rule = rule
    wire.mark()
    true(wire.transfer(client, server, 1000), "arrives")
    wire.run(1e-3)
    true(attacker.sent >= len(PROTECTED), "there was an attack")
    equal(known(client), (NO, 0), f"IPv{wire.version}: after data")
    true(wire.transfer(client, server, 10_000), "arrives")
    equal({(p.kind, p.says) for p in wire.from_a()}, {(0, None)}, "DSCP, option")


def cleared(version, cc):
    """Seconds until some bytes have arrived, in order, over a path that clears each DSCP,
    while answers are forged."""
    with Wire(cc=cc, version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 10_000), "arrives")
        wire.delay = 0.5e-3     # or what the guest's calls take would be most of it
        attacker = Attacker(wire, client, server, f"cleared {version}")

        def bleach(p):
            p.set_dscp(0)
            if not p.from_a:
                attacker.watch()
                for says in (None, CLOCK_ECHO):
                    attacker.send(attacker.forge(False, says or CONTROL, options=option(says)),
                                  False)
            return False
        wire.rule = bleach
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        for _ in range(20):
            true(wire.transfer(client, server, 100_000), "arrives")
            wire.mark()
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - began
        true(attacker.sent >= 20, "there was an attack")
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "TCPTimeouts")
        if cc != "reno":
            equal([known(s) for s in (client, server)], [(YES, 0)] * 2, "peers, flags")
        return took


@case("DSCPs that are cleared on the way, and forged answers: in order, and in the base's time",
      version=(4, 6))
def forged_echo_bleached(version):
    base, ours = (cleared(version, cc) for cc in ("reno", "tlt_reno"))
    print(f"# IPv{version}: {base * 1e6:.0f} us of the base, {ours * 1e6:.0f} us", flush=True)
    within(ours / base, 0.5, 1.05, "time, of the base's")


@case("nothing forged changes what is known of the peer",
      cc_b=("tlt_cubic", "cubic"), version=(4, 6))
def stays(cc_b, version):
    expected = (YES, 0) if cc_b == "tlt_cubic" else (NO, 0)
    with Wire(cc="tlt_cubic", cc_b=cc_b, version=version) as wire:
        client, server = wire.connect()
        attacker = Attacker(wire, client, server, f"stays {version} {cc_b}")
        for _ in range(20):
            for from_a in (False, True) * 25:
                attacker.shoot(from_a)
            true(wire.transfer(client, server, 10_000), "arrives")
            attacker.watch()
            wire.mark()
        equal(known(client), expected, "client")
        if cc_b == "tlt_cubic":
            equal(known(server), expected, "server")


# --- amplification

# (flags, bytes)
SHAPES = ((ACK, 0), (ACK, 1), (FIN | ACK, 0), (FIN | ACK, 1), (SYN, 0), (SYN | ACK, 0),
          (SYN | ACK, 1), (RST, 0))


def answers(wire, attacker, dscp, shape, options=b""):
    """Packets that 200 forged ones draw out of a connection at rest."""
    wire.run(1.0)           # TCP limits how often it answers such packets
    wire.mark()
    wire.others.clear()
    flags, length = shape
    for n in range(100):
        for from_a in (True, False):
            # An RST or SYN is judged by its sequence number alone.
            which = "seq" if flags & (RST | SYN) else ("seq", "ack", "both")[n % 3]
            attacker.send(attacker.forge(from_a, dscp, flags, b"f" * length, which=which,
                                         options=options), from_a)
        wire.run(1e-5)
    wire.run(1e-2)
    return len(wire.seen) + len(wire.others)


@case("a forged packet draws no more packets than it draws out of the base", version=(4, 6))
def amplification(version):
    base = {}
    ours = [(dscp, b"") for dscp in OURS] + [(dscp, pkt.option(dscp)) for dscp in CODED]
    for cc, kinds in (("reno", [(0, b"")]), ("tlt_reno", ours)):
        with Wire(cc=cc, version=version) as wire:
            client, server = wire.connect()
            true(wire.transfer(client, server, 10_000), "arrives")
            attacker = Attacker(wire, client, server, f"answers {version}")
            for shape, (dscp, options) in itertools.product(SHAPES, kinds):
                seen = answers(wire, attacker, dscp, shape, options)
                base.setdefault(shape, seen)
                true(seen <= base[shape], f"IPv{version}, DSCP {dscp}, option {options.hex()},"
                     f" (flags, bytes) {shape}: {seen} packets, the base sends {base[shape]}")
            true(wire.transfer(client, server, 10_000), "the connection goes on")
    print(f"# IPv{version}: packets drawn out of the base by 200: {base}", flush=True)


# --- goodput

LINE = "qdisc add dev tun0 root color rate 1gbit limit 1000000 red 100000 ecn 50000"
COUNT = fuzz.share(5_000_000)   # bytes: 40 ms at this rate, 4 by default
FORGED = 3              # forged packets a data packet


def duration(version, cc, attack):
    """Virtual seconds that a victim's bytes take; they are compared as they come."""
    with Wire(cc=cc, version=version) as wire:
        port.insmod()
        port.run("tc", "-n", wire.a.name, *LINE.split())
        client, server = wire.connect()
        attacker = Attacker(wire, client, server, f"goodput {version} {cc}")

        def rule(p):
            attacker.right[p.from_a] = (p.end, p.ack)
            # With the data, and not with what it draws out of the victim.
            for n in range(FORGED if attack and p.from_a and p.len else 0):
                attacker.shoot(n % 2 == 0)
            if len(wire.seen) > 1000:
                wire.mark()
            return False
        wire.rule = rule
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        true(wire.transfer(client, server, COUNT, seconds=3.0), f"{cc}: arrives")
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - began
        wire.rule = None
        if attack and cc.startswith("tlt"):
            true(attacker.sent > COUNT // 1000, f"{attacker.sent} forged packets")
            equal(known(client), (YES, 0), f"IPv{version}, {cc}: client")
            equal(known(server), (YES, 0), f"IPv{version}, {cc}: server")
        return took


@case("a victim's goodput is at least 0.9 of that without an attacker",
      version=(4, 6), cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"))
def goodput(version, cc):
    alone, attacked = (duration(version, cc, attack) for attack in (False, True))
    print(f"# IPv{version}, {cc}: {COUNT / alone / 1e6:.0f} MB/s alone, "
          f"{COUNT / attacked / 1e6:.0f} MB/s attacked", flush=True)
    true(alone / attacked >= 0.9, f"IPv{version}, {cc}: {alone / attacked:.2f}")


# --- on the path

@case("a connection that an attacker has desynchronised does not spin", version=(4, 6))
def desynchronised(version):
    counts = {}
    for cc in ("reno", "tlt_reno"):
        with Wire(cc=cc, version=version) as wire:
            client, server = wire.connect(TCP_NODELAY=1)
            true(wire.transfer(client, server, 10_000), "arrives")
            wire.run(1e-2)
            attacker = Attacker(wire, client, server)
            wire.mark()
            # What a sends is lost; a forged ACK says that b has half of it,
            # so that a waits for an ACK that b will never send.
            wire.rule = lambda p: p.from_a and p.len > 1
            client.send(pattern(5000))
            wire.run(2e-6)
            client.send(pattern(5000))
            wire.run(2e-6)
            seq, ack = attacker.right[False]
            wire.inject(wire.a, pkt.make(version, attacker.b[0], attacker.a[0],
                                         attacker.b[1], attacker.a[1], seq, ack + 5000,
                                         dscp=CONTROL))
            wire.run(1e-4)
            wire.rule = None
            wire.run(50e-3)
            counts[cc] = len(wire.seen)
    print(f"# IPv{version}: packets in 50 ms: {counts}", flush=True)
    true(counts["tlt_reno"] <= counts["reno"] + 100, f"IPv{version}: packets in 50 ms, "
         f"a round trip is 20 us: {counts}")


if __name__ == "__main__":
    tap.main()
