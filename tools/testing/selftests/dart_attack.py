#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged shares, ends and names: their effect is limited in size and time.

	a (many hosts, send) ---- wire ---- b (receives)
	                           ^
	              attacker, forges packets of either

An attacker that is not on the path has to guess a sequence and an acknowledgment number.  One
that knows both can slow a connection down until its next ACK, and end a message until its next
packet.  Packets of one tenant's senders never change another tenant's rate.
"""
import contextlib
import glob
import random
import socket
import struct
import time

from lab import fuzz
from lab.codepoints import CODED, MESSAGE_END, SHARE, SPENT_END
from lab.tap import case, equal, main, true, using, within
from lab.wire.attack import OFF_PATH, Attacker
from lab.wire.dart import (ALONE, END, KNOWN, LINE, NAMES, ONE, RATE, RTT, SHARE_MASK, connect,
                           dart, divisors, host, line, name, of, read_all, share)
from lab.wire.packet import EXID, EXPERIMENT, data, option
from lab.wire.sockopt import GREENLANE_MESSAGE, info, pacing
from lab.wire.sockopt import option as set_option

LEAST = 4096                    # the minimum share is the line rate divided by this: DART_SHARES
NAMINGS = 16                    # announcements at once: DART_NAMINGS
# Seconds from a packet to the next one at the minimum share.  TCP paces by the rate at which a
# packet left: a share that arrives later does not advance the next packet.
SLOWEST = LEAST * 1538 / RATE / 125_000
LISTS = 400                     # lists of names that the flood announces
SHORT_END = 0x20 | 3            # a DSCP of gl_deflect.h: the last packet, one token


class Victim:
    """A connection that sends, and an attacker that forges its packets."""

    def __init__(self, wire, number=0, port=1000, **listener):
        self.wire = wire
        self.tx, self.rx = connect(wire, number, port, wire.listen(port, **listener))
        # Otherwise it would grow, and the kernel's memory with it.
        self.tx.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.attacker = Attacker(wire, self.tx, self.rx)

    def feed(self):
        """Fill the send buffer."""
        try:
            while self.tx.send(bytes(1 << 18)):
                pass
        except BlockingIOError:
            pass

    def share(self, *words, **wrong):
        """Forge a share, to the sender."""
        self.attacker.watch()
        self.attacker.forge(False, SHARE, option(SHARE, *words), **wrong)

    def word(self, *words, **wrong):
        """Forge a word, to the receiver."""
        self.attacker.watch()
        self.attacker.forge(True, SHARE, option(SHARE, *words), **wrong)

    def end(self, dscp, back=0, count=1, **wrong):
        """Forge an end, to the receiver: bytes that it has or expects, as the last of a message.
        All data here is zeros, so the bytes are correct."""
        self.attacker.watch()
        right = self.attacker.right
        behind = right[True][0] - right[False][1]       # in flight, or lost
        self.attacker.forge(True, dscp, payload=bytes(count),
                            **{"seq": -behind - back, **wrong})

    def complete(self):
        """Has the receiver acknowledged all bytes that the wire has carried, without gaps?"""
        self.attacker.watch()
        answers = [p for p in of(self.wire.seen, self.tx) if not p.from_a]
        return not answers[-1].sacks and self.attacker.right[True][0] == answers[-1].ack

    @property
    def rate(self):
        """(Its divisor, its pacing rate as a fraction of line rate)."""
        return info(self.tx)["divisor"], pacing(self.tx) / line(self.wire.version)

    @property
    def senders(self):
        """Number of senders in its receiver's set."""
        return info(self.rx)["senders"]


def now():
    """Virtual seconds."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def pause(wire, victims, victim):
    """Drop all data until nothing is in flight and the victim's receiver has no gap."""
    for _ in range(100):
        wire.rule = lambda p: p.from_a and p.len
        run(wire, victims, RTT)
        wire.rule = None
        if victim.complete():
            return
        victim.feed()
        run(wire, victims, 1e-3)        # dropped packets are retransmitted
    raise AssertionError("the receiver always has a gap")


def run(wire, victims, seconds, until=None):
    """Carry packets, and read all data that arrives."""
    def step():
        read_all(victim.rx for victim in victims)
        return bool(until and until())
    return wire.run(seconds, step)


@contextlib.contextmanager
def in_a_message(version):
    """A wire, and a victim in the middle of a message; checks that it sends data afterwards."""
    with dart(1, version=version) as wire:
        victim = Victim(wire)
        set_option(victim.tx, GREENLANE_MESSAGE, 1)
        victim.feed()
        run(wire, [victim], 1e-3)
        equal((victim.rate[0], victim.senders), (ONE, 1), "divisor and senders, before")
        yield wire, victim
        wire.mark()
        victim.feed()
        run(wire, [victim], 1.1 * SLOWEST)
        true(data(wire.from_a()), "the victim sends data afterwards")


both = using(in_a_message, version=(4, 6))


def invalid(ns):
    """The counter Invalid of a namespace."""
    return ns.greenlane()["Invalid"]


def at_line_rate(victim, what):
    """Check that the victim sends at line rate."""
    divisor, rate = victim.rate
    equal(divisor, ONE, f"divisor, {what}")
    within(rate, 0.995, 1.005, f"fraction of line rate, {what}")


# --- shares

@both("shares, ends and names from off the path: counted, ignored")
def off_path(wire, victim):
    for wrong in OFF_PATH:
        victim.share(share(7 * ONE), **wrong)
        at_line_rate(victim, f"share {wrong}")
    equal(invalid(wire.a), len(OFF_PATH), "Invalid at the sender")
    for wrong in OFF_PATH:
        victim.word(END | ONE, **wrong)
        victim.word(NAMES | 1 << 16 | 2, 1, 2, **wrong)
        victim.end(MESSAGE_END, **wrong)
        victim.end(SHORT_END, **wrong)
        victim.end(SPENT_END, **wrong)
        equal(victim.senders, 1, f"senders, {wrong}")
    equal(invalid(wire.b), 5 * len(OFF_PATH), "Invalid at the receiver")
    counters = wire.b.greenlane()
    equal([counters[n] for n in ("MessageBegun", "MessageEnded", "SendersNamed")],
          [1, 0, 0], "MessageBegun, MessageEnded, SendersNamed")


@both("a share of 0: counted, no effect; a share above line rate: no effect")
def impossible(wire, victim):
    for number, word in enumerate((0, KNOWN, ALONE, ALONE | KNOWN), 1):
        victim.share(word)
        at_line_rate(victim, f"{word:#x}")
        equal(invalid(wire.a), number, "Invalid")
    for word in (LINE + 1, 2 * LINE, SHARE_MASK, KNOWN | SHARE_MASK):
        victim.share(word)
        at_line_rate(victim, f"{word:#x}")
    equal(invalid(wire.a), 4, "Invalid")


@both("a malformed or foreign option: no effect")
def bad_options(wire, victim):
    word = struct.pack("!I", share(7 * ONE))
    says = SHARE.code << 24
    for bad, counted in ((b"", 0), (option(SHARE), 1),
                         *((option(SHARE, share(7 * ONE), length=n), 0) for n in (0, 1, 3, 4, 7, 255)),
                         (option(SHARE, share(7 * ONE), length=9), 1),
                         (b"\0\0\0\0" + option(SHARE, share(7 * ONE)), 0),
                         (struct.pack("!BBHI", EXPERIMENT, 12, EXID + 1, says) + word, 0),
                         (struct.pack("!BBHI", EXPERIMENT - 1, 12, EXID, says) + word, 0),
                         (struct.pack("!BBHI", EXPERIMENT, 12, EXID, 0) + word, 0),
                         (struct.pack("!BBHI", EXPERIMENT, 12, EXID, 47 << 24) + word, 0),
                         # A hello belongs to SYNs only; the others to other transports.
                         *((option(other, share(7 * ONE)), 0) for other in CODED if other != SHARE)):
        before = invalid(wire.a)
        victim.attacker.watch()
        victim.attacker.forge(False, SHARE, bad)
        at_line_rate(victim, f"{bad!r}")
        equal(invalid(wire.a) - before, counted, f"Invalid, {bad!r}")
    before = invalid(wire.a)
    victim.attacker.forge(False, SHARE, option(SHARE, share(7 * ONE)), payload=b"x")
    at_line_rate(victim, "with data")
    equal(invalid(wire.a) - before, 1, "Invalid: the share with data")


@both("data with the DSCP and the words of a share, but no option: TCP receives it, not counted")
def dscp_alone(wire, victim):
    victim.attacker.watch()
    for n in range(3):
        victim.attacker.forge(False, SHARE, struct.pack("!II", 0x01010101, 0x01010101),
                              payload=b"d", seq=n)
    at_line_rate(victim, "with data")
    equal((victim.tx.recv(10), invalid(wire.a)), (b"ddd", 0), "received data, Invalid")


@both("a tiny forged share: the rate is at least 1/4096, and the next packet's ACK corrects it")
def wild(wire, victim):
    for word, part in ((1, LEAST), (share(4096 * ONE), LEAST), (share(5000 * ONE), LEAST),
                       (share(1000 * ONE), 1000), (share(2 * ONE), 2)):
        victim.feed()
        run(wire, [victim], RTT)
        victim.share(word)
        divisor, rate = victim.rate
        equal(divisor, round(LINE * ONE / word), "divisor of the forged share")
        # A share has whole kB/s, rounded up.
        within(rate * part, 0.99, 1.05, f"rate, divided by 1/{part} of line rate")
        wire.mark()
        began = now()
        true(run(wire, [victim], RTT + 30e-6, lambda: victim.rate[0] == ONE),
             "the share is corrected within a round trip")
        true(run(wire, [victim], 1.1 * SLOWEST, lambda: data(wire.from_a())),
             "a packet of data follows")
        within(now() - began, 0, SLOWEST + 100e-6, "time until the next packet, s")
        run(wire, [victim], 1.1 * SLOWEST)
        at_line_rate(victim, "afterwards")


@case("a tiny forged share while no data is in flight: the ACK of the next data corrects it", dart,
      version=(4, 6))
def wild_at_rest(wire):
    victim = Victim(wire)
    victim.tx.send(bytes(100_000))
    run(wire, [victim], 5e-3)
    victim.share(1)
    at_line = line(wire.version)
    within(pacing(victim.tx) / at_line, 0.995, 1.005, "fraction of line rate, at rest")
    wire.mark()
    victim.tx.send(bytes(100_000))
    run(wire, [victim], 0.2, lambda: victim.rate[0] == ONE)
    within(now() - data(wire.seen)[0].time, 0, RTT + 3 * 12.3e-6, "time until it is corrected, s")
    at_line_rate(victim, "afterwards")


@case("a tiny forged share while both ends send data: the next ACK corrects it", dart,
      version=(4, 6))
def wild_duplex(wire):
    victim = Victim(wire)

    def step(victim=victim):
        for s in (victim.tx, victim.rx):
            try:
                s.send(bytes(1 << 17))
            except BlockingIOError:
                pass
        read_all((victim.tx, victim.rx))
        return False
    wire.run(2e-3, step)
    equal(victim.rate[0], ONE, "divisor before")
    victim.share(1)
    wire.mark()
    # One packet each 50 ms, so the third one leaves within this time.
    wire.run(0.12, lambda: step() or victim.rate[0] == ONE)
    sent = [p for p in data(of(wire.seen, victim.tx)) if p.from_a]
    equal(victim.rate[0], ONE, f"divisor after {len(sent)} packets of the victim")


@both("a forged share that is too large: line rate until the next ACK")
def too_small(wire, victim):
    other = Victim(wire, 1, 1001)
    other.feed()
    run(wire, [victim, other], 1e-3)
    equal(victim.rate[0], 2 * ONE, "divisor, of two senders")
    victim.share(share(ONE))
    at_line_rate(victim, "forged")
    true(run(wire, [victim, other], RTT + 30e-6, lambda: victim.rate[0] == 2 * ONE),
         "the share is corrected within a round trip")


# --- ends

@both("a forged end, with or without data: the sender counts again with its next packet")
def ends(wire, victim):
    old = Victim(wire, 1, 1001)
    set_option(old.tx, GREENLANE_MESSAGE, 1)
    old.feed()
    run(wire, [victim, old], 1e-3)
    begun = wire.b.greenlane()["MessageBegun"]
    ways = [lambda: victim.word(END | ONE)]
    for dscp in (MESSAGE_END, SHORT_END, SHORT_END | 0x10, SHORT_END | 0xc, SPENT_END):
        ways += [lambda d=dscp: victim.end(d, count=700)]     # the next bytes
    for number, way in enumerate(ways, 1):
        # A sender without data has no share.
        old.feed()
        # Data behind a gap would belong to a later message, and the end to an old one.
        pause(wire, [victim, old], victim)
        equal(victim.senders, 2, f"senders before end {number}")
        way()
        run(wire, [victim, old], 1e-6)
        equal(info(victim.rx)["senders"], 0,
              f"senders, of a connection without a message, end {number}")
        equal(old.senders, 1, f"senders after end {number}")
        true(run(wire, [victim, old], 0.5,
                 lambda: wire.b.greenlane()["MessageBegun"] == begun + number),
             f"a message begins after end {number}")
        true(run(wire, [victim, old], 0.5, lambda: victim.rate[0] == old.rate[0] == 2 * ONE),
             f"both senders receive the share of two after end {number}")


@both("a forged end of bytes that have arrived long ago has no effect")
def end_again(wire, victim):
    for dscp in (MESSAGE_END, SHORT_END, SHORT_END | 0x10, SPENT_END):
        for back in (5000, 1000, 2):
            victim.end(dscp, back=back)
            run(wire, [victim], 1e-6)
            equal(victim.senders, 1, f"senders after an end {back} bytes ago")


@case("a forged end with data, far ahead: the real one ends the message", dart, version=(4, 6))
def end_ahead(wire):
    victim = Victim(wire)
    victim.tx.send(bytes(30_000))
    run(wire, [victim], 1e-4)
    victim.end(MESSAGE_END, seq=20_000)
    equal(victim.senders, 1, "senders")
    run(wire, [victim], 20e-3)
    equal(victim.senders, 0, "senders after all data has arrived")
    counters = wire.b.greenlane()
    equal(counters["MessageBegun"], counters["MessageEnded"], "messages begun and ended")


@case("a forged end without data, far ahead: the real one ends the message", dart, version=(4, 6))
def end_word_ahead(wire):
    victim = Victim(wire)
    victim.tx.send(bytes(30_000))
    run(wire, [victim], 1e-4)
    victim.word(END | ONE, seq=60_000)
    equal(victim.senders, 1, "senders")
    run(wire, [victim], 20e-3)
    equal(victim.senders, 0, "senders after all data has arrived")


# --- names

BAD_NAMES = (
    (NAMES | 65, 1), (NAMES | 255, 1, 2, 3), (NAMES | 0, 1),            # more than 64, none
    (NAMES | 2, 1, 2, 3), (NAMES | 1 << 8 | 2, 1, 2),                   # more than the list has
    (NAMES | 64 << 8 | 64, 1), (NAMES | 63 << 8 | 64, 1, 2), (NAMES | 255 << 8 | 64, 1),
    (NAMES | 255 << 8 | 255, 1), (NAMES | 255 << 8), (NAMES | END | 66, 1),
)


@case("malformed names: counted, and add no sender", dart, version=(4, 6))
def bad_names(wire):
    wire.b.sysctl("net.ipv4.dart_trust", 1)
    victim = Victim(wire)
    for bad in BAD_NAMES:
        victim.word(*(bad if isinstance(bad, tuple) else (bad,)))
    equal(invalid(wire.b), len(BAD_NAMES), "Invalid")
    wire.mark()
    victim.tx.send(bytes(3_000))
    run(wire, [victim], 1e-3)
    equal(divisors(of(wire.seen, victim.tx)), [ONE], "divisors")
    equal(wire.b.greenlane()["SendersNamed"], 0, "SendersNamed")
    # The first half of one list, and the second half of another one.
    victim.word(NAMES | 1 << 16 | 4, 1, 2)
    victim.word(NAMES | 2 << 16 | 2 << 8 | 4, 3, 4)
    wire.mark()
    victim.tx.send(bytes(3_000))
    run(wire, [victim], 1e-3)
    equal(divisors(of(wire.seen, victim.tx)), [ONE], "divisors, two halves")
    equal(wire.b.greenlane()["SendersNamed"], 0, "SendersNamed, two halves")


def slab(wire, victims):
    """Bytes of all live objects in the kernel's slabs, while no packet is in flight."""
    run(wire, victims, 1.0)
    # KASAN keeps freed objects for a while, and they count.
    for shrink in glob.glob("/sys/kernel/slab/*/shrink"):
        with open(shrink, "w", encoding="ascii") as file:
            file.write("1")
    with open("/proc/slabinfo", encoding="ascii") as file:
        return sum(int(line.split()[1]) * int(line.split()[3]) for line in list(file)[2:])


@case("a flood of names is limited per second, memory is freed, another tenant keeps its rate",
      dart,
      version=(4, 6))
def flood(wire):
    rng = random.Random(f"{fuzz.SEED} names {wire.version}")
    wire.b.sysctl("net.ipv4.dart_tenant", 1)
    wire.b.sysctl("net.ipv4.dart_trust", 1)
    victim = Victim(wire, 0, 1000, SO_MARK=1)
    flooder = Victim(wire, 0, 1001, SO_MARK=2)
    set_option(victim.tx, GREENLANE_MESSAGE, 1)

    def step(flows=(victim, flooder)):
        flows[0].feed()
        run(wire, flows, 150e-6)
        at_line_rate(flows[0], "the other tenant's")
        equal(flows[0].senders, 1, "the other tenant's senders")
    victim.feed()
    run(wire, [victim], 1e-3)
    # One list first, so that permanent allocations are made before the measurement.
    say_names(flooder, rng)
    step()
    before = slab(wire, [victim, flooder])
    victim.feed()
    run(wire, [victim], 1e-3)
    began = now()
    for _ in range(LISTS):
        say_names(flooder, rng)
        step()
    took = now() - began
    counters = wire.b.greenlane()
    within(counters["SendersNamed"], NAMINGS, 2 + NAMINGS + 1000 * took, "SendersNamed")
    # An empty list adds no sender.
    within(counters["SendersNamed"] + counters["NamingLimited"], 2 * LISTS // 5, 2 * LISTS,
           "messages with names: SendersNamed plus NamingLimited")
    true(counters["NamingLimited"] > LISTS // 4, f"NamingLimited: {counters['NamingLimited']}")
    run(wire, [victim, flooder], 0.5)
    flooder.tx.send(bytes(100))         # a packet arrives, so idle senders are reaped
    within(slab(wire, [victim, flooder]) - before, -(1 << 20), 100_000,
           "growth of the kernel's memory, bytes")


def say_names(flooder, rng):
    """Name 64 unknown senders, by socket option or by forged packets, and send a message."""
    if rng.random() < 0.5:
        name(flooder.tx, [host(4, 0)] * 0, co=True)
        number = rng.randrange(256)
        for first in range(0, 64, 3):
            flooder.word(NAMES | number << 16 | first << 8 | 64,
                         *(rng.randrange(1 << 32) for _ in range(min(3, 64 - first))))
    else:
        name(flooder.tx, [f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"
                          for _ in range(64)], co=True)
    flooder.tx.send(bytes(1000))


@case("random words to a tenant's connections: another tenant keeps its rate", dart,
      version=(4, 6), hosts=4)
def another_tenant(wire):
    rng = random.Random(f"{fuzz.SEED} tenants {wire.version}")
    wire.b.sysctl("net.ipv4.dart_tenant", 1)
    wire.b.sysctl("net.ipv4.dart_trust", 1)
    victim = Victim(wire, 0, 1000, SO_MARK=1)
    others = [Victim(wire, n, 1000 + n, SO_MARK=2) for n in range(1, 5)]
    set_option(victim.tx, GREENLANE_MESSAGE, 1)
    victim.feed()
    run(wire, [victim], 1e-3)
    for _ in range(100):
        victim.feed()
        for other in others:
            with contextlib.suppress(BlockingIOError):
                other.tx.send(bytes(rng.choice((100, 3000, 30_000))))
            word = rng.choice((rng.randrange(1 << 32), NAMES | rng.randrange(1 << 24),
                               END, ONE, 0))
            other.word(word, *(rng.randrange(1 << 32) for _ in range(rng.randrange(4))))
            if rng.random() < 0.5:
                other.end(rng.choice((MESSAGE_END, SHORT_END, SPENT_END)), back=100)
        run(wire, [victim, *others], 100e-6)
        at_line_rate(victim, "the other tenant's")
        equal(victim.senders, 1, "senders of the other tenant")


if __name__ == "__main__":
    main()
