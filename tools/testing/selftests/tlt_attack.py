#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""An attacker off the path, which knows addresses and ports and guesses the rest.

	a (client) ---- wire ---- b (server)
	                 ^
	        attacker, forges packets of either

A forged packet has at least one number, sequence or acknowledgment, that is far from the
valid one: an attacker that guesses both can attack any TCP.  The seed is gl.fuzz's; only
ISNs and the attacker's numbers are random.
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
# Codes of our option, and none; TLT does not use all of them.
SAYS = (None, *CODED)


def option(wire, says):
    """Our option, with the number of a's last clock; or none."""
    return b"" if says is None else pkt.option(says, field=wire.asked)


def known(s):
    """A connection's state of its peer: (peer, flags) without F_REORDERED.  Forged SACK blocks
    set that flag: they make TCP itself assume a path that reorders."""
    return info(s)["peer"], info(s)["flags"] & ~F_REORDERED


class Attacker:
    """Forges packets of one connection."""

    def __init__(self, wire, client, server, seed=""):
        self.wire = wire
        self.rng = random.Random(f"{fuzz.SEED} {seed}")
        self.a = (wire.address(wire.a), client.getsockname()[1])
        self.b = (wire.address(wire.b), server.getsockname()[1])
        # (next sequence number, acknowledgment) of the last packet of each end
        self.right = {}
        self.sent = 0
        self.watch()

    def watch(self):
        """Learn the valid numbers, to avoid them."""
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
        """Inject a packet into the host that it is addressed to."""
        self.wire.inject(self.wire.b if from_a else self.wire.a, packet)
        self.sent += 1

    def shoot(self, from_a):
        """Forge one random packet."""
        rng = self.rng
        dscp = rng.choice((rng.choice(OURS), rng.randrange(64)))
        flags = rng.choice((ACK,) * 6 + (ACK | PSH, RST, RST | ACK, SYN, SYN | ACK, FIN | ACK, 0))
        payload = b"f" * rng.choice((0, 0, 1, 1, 100, 1448))
        # A RST or SYN is judged by its sequence number alone.
        which = "seq" if flags & (RST | SYN) else None
        says = dscp if dscp in CODED and rng.random() < 0.7 else rng.choice(SAYS)
        self.send(self.forge(from_a, dscp, flags, payload, rng.randrange(4), which,
                             option(self.wire, says)), from_a)


# --- state of the peer

def start(wire):
    """A client in SYN_SENT, whose SYN is in flight: (client, listener)."""
    listener = wire.listen()
    client = wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1e-6)
    return client, listener


def forge_synacks(wire, options, dscps):
    """Send SYN-ACKs to a client in SYN_SENT, which do not acknowledge its SYN."""
    client, listener = start(wire)
    syn = wire.seen[-1]
    for ack in (0, -1, 2, 1000, 1 << 31):
        for dscp in dscps:
            wire.inject(wire.a, pkt.make(
                wire.version, wire.address(wire.b), wire.address(wire.a), syn.dport,
                syn.sport, 1, syn.seq + ack, flags=SYN | ACK, dscp=dscp, options=options))
    return client, listener


@case("a forged SYN-ACK does not make a server without TLT a peer", Wire, version=(4, 6),
      cc="tlt_reno", cc_b="reno")
def forged_synack(wire):
    client, listener = forge_synacks(wire, pkt.option(IMPORTANT, answer=True), PROTECTED)
    wire.run(3e-3)
    wire.accept(listener)
    equal(known(client), (NO, 0), f"IPv{wire.version}: peer, flags")


@case("a forged SYN-ACK does not make a server with TLT lose its peer", Wire,
      version=(4, 6))
def forged_synack_bleached(wire):
    for options in (b"", *(pkt.option(says, answer=True) for says in (SCHEDULED, SHARE))):
        client, listener = forge_synacks(wire, options, (0, DATA, IMPORTANT))
        wire.run(1e-4)
        wire.accept(listener)
        equal(known(client), (YES, 0), f"IPv{wire.version}, {options.hex()}: peer, flags")
        listener.close()


@case("forged packets do not make the other end a peer in mid-connection", connected,
      version=(4, 6), cc="reno")
def chosen_later(wire, client, server):
    true(wire.transfer(client, server, 10_000), "arrives")
    choose(client, "tlt_reno")
    equal(known(client), (NO, 0), "peer and flags before")
    attacker = Attacker(wire, client, server)

    def rule(p):
        if not p.from_a:
            for dscp in PROTECTED:
                for says in (None, dscp):
                    attacker.send(attacker.forge(False, dscp, which="seq",
                                                 options=option(wire, says)), False)
                p.set_dscp(dscp)        # an attacker on the path, too
        return False
    wire.rule = rule
    wire.mark()
    true(wire.transfer(client, server, 1000), "arrives")
    wire.run(1e-3)
    true(attacker.sent >= len(PROTECTED), "forged packets: at least 4")
    equal(known(client), (NO, 0), f"IPv{wire.version}: peer and flags after data")
    true(wire.transfer(client, server, 10_000), "arrives")
    equal({(p.kind, p.says) for p in wire.from_a()}, {(0, None)}, "DSCP, option")


def cleared(version, cc):
    """Transfer time in s over a path that clears each DSCP, while answers are forged."""
    with Wire(cc=cc, version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 10_000), "arrives")
        wire.delay = 0.5e-3     # much longer than the guest's system calls
        attacker = Attacker(wire, client, server, f"cleared {version}")

        def bleach(p):
            p.set_dscp(0)
            if not p.from_a:
                attacker.watch()
                for says in (None, CLOCK_ECHO):
                    attacker.send(attacker.forge(False, says or CONTROL,
                                                 options=option(wire, says)), False)
            return False
        wire.rule = bleach
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        for _ in range(20):
            true(wire.transfer(client, server, 100_000), "arrives")
            wire.mark()
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - began
        true(attacker.sent >= 20, "forged packets: at least 20")
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "TCPTimeouts")
        if cc != "reno":
            equal([known(s) for s in (client, server)], [(YES, 0)] * 2,
                  "peer and flags, of both sockets")
        return took


@case("the path clears DSCPs, and answers are forged: data arrives in the base's time",
      version=(4, 6))
def forged_echo_bleached(version):
    base, ours = (cleared(version, cc) for cc in ("reno", "tlt_reno"))
    print(f"# IPv{version}: {base * 1e6:.0f} us of the base, {ours * 1e6:.0f} us", flush=True)
    within(ours / base, 0.5, 1.05, "transfer time, divided by the base's")


@case("forged packets do not change the state of the peer",
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
        equal(known(client), expected, "peer and flags of the client")
        if cc_b == "tlt_cubic":
            equal(known(server), expected, "peer and flags of the server")


# --- amplification

# (flags, bytes)
SHAPES = ((ACK, 0), (ACK, 1), (FIN | ACK, 0), (FIN | ACK, 1), (SYN, 0), (SYN | ACK, 0),
          (SYN | ACK, 1), (RST, 0))


def answers(wire, attacker, dscp, shape, options=b""):
    """Number of packets with which a connection at rest answers 200 forged ones."""
    wire.run(1.0)           # TCP limits the rate of such answers
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


@case("a forged packet causes no more packets than with the base", version=(4, 6))
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
            true(wire.transfer(client, server, 10_000), "data arrives afterwards")
    print(f"# IPv{version}: packets drawn out of the base by 200: {base}", flush=True)


# --- goodput

LINE = "qdisc add dev tun0 root color rate 1gbit limit 1000000 red 100000 ecn 50000"
COUNT = fuzz.share(5_000_000)   # bytes: 40 ms at this rate, 4 by default
FORGED = 3              # forged packets a data packet


def duration(version, cc, attack):
    """Transfer time of a victim's bytes, s of virtual time; they are compared as they arrive."""
    with Wire(cc=cc, version=version) as wire:
        port.insmod()
        port.run("tc", "-n", wire.a.name, *LINE.split())
        client, server = wire.connect()
        attacker = Attacker(wire, client, server, f"goodput {version} {cc}")

        def rule(p):
            attacker.right[p.from_a] = (p.end, p.ack)
            # At each data packet only, not at the victim's answers.
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
            equal(known(client), (YES, 0), f"IPv{version}, {cc}: peer and flags of the client")
            equal(known(server), (YES, 0), f"IPv{version}, {cc}: peer and flags of the server")
        return took


@case("under attack a victim's goodput is at least 0.9 of the usual one",
      version=(4, 6), cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"))
def goodput(version, cc):
    alone, attacked = (duration(version, cc, attack) for attack in (False, True))
    print(f"# IPv{version}, {cc}: {COUNT / alone / 1e6:.0f} MB/s alone, "
          f"{COUNT / attacked / 1e6:.0f} MB/s attacked", flush=True)
    true(alone / attacked >= 0.9,
         f"IPv{version}, {cc}: goodput divided by the usual one {alone / attacked:.2f}")


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
            # Data of a is lost; a forged ACK acknowledges half of it, so a waits for an ACK that
            # b never sends.
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
