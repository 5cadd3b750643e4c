#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged credits and requests: counted, ignored, and of no effect on a transfer.

	a (client, sends) ---- wire ---- b (server, sends credits)
	                        ^
	          attacker, forges packets of either

An attacker that is not on the path has to guess a sequence and an acknowledgment number.
One that knows both can harm xpass as it can harm TCP, but the hosts send no more packets
than it has forged.
"""
import contextlib
import struct
import time

from lab import tap
from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.tap import case, equal, true, using, within
from lab.wire import attack, xpass
from lab.wire.attack import OFF_PATH
from lab.wire.packet import ACK, EXID, EXPERIMENT, data, option
from lab.wire.wire import Wire, pattern

AHEAD = 65536           # credits that may be lost in a row: RD_SEQ_AHEAD
WINDOW = 32             # credits that may be overtaken: RD_WINDOW
OLD = 100               # credits: a few round trips, so a newer one has arrived
COUNT = 2_000_000       # bytes: 17 ms at 1 Gbit/s


class Attacker(attack.Attacker):
    """Forges credits and requests as well."""

    def credit(self, number, **wrong):
        """To the sender."""
        self.forge(False, CREDIT, option(CREDIT, number), **wrong)

    def request(self, *words, **wrong):
        """To the receiver."""
        self.forge(True, REQUEST, option(REQUEST, *words), **wrong)


@contextlib.contextmanager
def attacked(version, before=0):
    """A connection, after `before` bytes each way, and an attacker that sees its packets."""
    with Wire(cc="xpass", version=version) as wire:
        xpass.far(wire)
        client, server = wire.connect()
        if before:
            true(wire.transfer(client, server, before), "arrives")
            true(wire.transfer(server, client, before), "arrives back")
            xpass.silent(wire, 0.1)
        attacker = Attacker(wire, client, server)
        wire.mark()
        yield wire, client, server, attacker


both = using(attacked, version=(4, 6))


def invalid(ns):
    """The counter Invalid of a namespace."""
    return ns.greenlane()["Invalid"]


# --- at rest

@both("credits for a flow that has requested none: counted, no packet is sent")
def unasked(wire, _client, _server, attacker):
    for number in (1, 2, 3, 100, AHEAD, 0):
        attacker.credit(number)
    wire.run(10e-3)
    equal(invalid(wire.a), attacker.sent, "Invalid")
    equal(wire.seen, [], "packets")
    equal(wire.a.greenlane()["CreditReceived"], 0, "CreditReceived")


@both("credits with an old number, one too far ahead or none: counted, ignored", before=20_000)
def bad_credits(wire, _client, _server, attacker):
    before = [wire.a.greenlane()[n] for n in ("CreditReceived", "ScheduledSent")]
    last = wire.b.greenlane()["CreditSent"]
    for number in (last, last - 1, 1, 0, last + AHEAD + 1, last + (1 << 31), -1):
        attacker.credit(number)
    for bad in (option(CREDIT), option(CREDIT, last + 1, length=9)):
        attacker.forge(False, CREDIT, bad)
    equal(invalid(wire.a), attacker.sent, "Invalid")
    wire.run(10e-3)
    equal(wire.seen, [], "packets")
    equal([wire.a.greenlane()[n] for n in ("CreditReceived", "ScheduledSent")], before,
          "CreditReceived, ScheduledSent")


def not_ours(says, *words):
    """Malformed options: empty, truncated, another experiment's, of an unknown code."""
    rest = struct.pack(f"!{len(words)}I", *words)
    size = 8 + len(rest)
    code = says.code << 24
    # TCP looks for a signature where there is room for one, and then drops malformed options.
    lengths = (7, 4, 3, 1, 0, 255) if size < 18 else (7, 4, 3)
    return (b"", *(option(says, *words, length=n) for n in lengths),
            struct.pack("!BBHI", EXPERIMENT, size, EXID + 1, code) + rest,
            struct.pack("!BBHI", EXPERIMENT - 1, size, EXID, code) + rest,
            struct.pack("!BBHI", EXPERIMENT, size, EXID, 0) + rest,
            struct.pack("!BBHI", EXPERIMENT, size, EXID, 47 << 24) + rest,
            struct.pack("!BBHI", EXPERIMENT, size, EXID, 255 << 24) + rest,
            b"\0\0\0\0" + option(says, *words))


@both("packets with the DSCP of a credit or a request, without the option: TCP receives them, "
      "not counted",
      before=20_000)
def dscp_alone(wire, client, server, attacker):
    names = ("Invalid", "CreditReceived", "RequestReceived", "CreditSent", "ScheduledSent")
    before = [[ns.greenlane()[n] for n in names] for ns in (wire.a, wire.b)]
    segments = [xpass.segments(ns)[0] for ns in (wire.a, wire.b)]
    last = wire.b.greenlane()["CreditSent"]
    credits = not_ours(CREDIT, last + 1)
    requests = not_ours(REQUEST, last, before[0][1], 100)
    for bad in credits:
        attacker.forge(False, CREDIT, bad)
    for bad in requests:
        attacker.forge(True, REQUEST, bad)
    wire.run(10e-3)
    equal(wire.seen, [], "packets")
    # TCP delivers their data.
    for n, bad in enumerate(credits):
        attacker.forge(False, CREDIT, bad, seq=n, payload=b"c")
    for n, bad in enumerate(requests):
        attacker.forge(True, REQUEST, bad, seq=n, payload=b"r")
    equal((client.recv(100), server.recv(100)), (b"c" * len(credits), b"r" * len(requests)),
          "the data that the client and the server read")
    equal([[ns.greenlane()[n] for n in names] for ns in (wire.a, wire.b)], before, f"{names}")
    equal([xpass.segments(ns)[0] for ns in (wire.a, wire.b)],
          [seen + 2 * len(bad) for seen, bad in zip(segments, (credits, requests))],
          "segments that TCP has received")


@both("credits and requests from off the path: counted, ignored", before=20_000)
def off_path(wire, client, server, attacker):
    names = ("CreditReceived", "RequestReceived", "CreditSent", "RequestSent")
    before = [[ns.greenlane()[n] for n in names] for ns in (wire.a, wire.b)]
    last = wire.b.greenlane()["CreditSent"]
    for wrong in OFF_PATH:
        attacker.credit(last + 1, **wrong)
        attacker.request(last, last, 100, **wrong)
    wire.run(10e-3)
    equal((invalid(wire.a), invalid(wire.b)), (5, 5), "Invalid")
    # TCP sends one ACK, with its own numbers.
    equal([p for p in wire.seen if p.len or p.kind != SCHEDULED or p.flags != ACK], [],
          "packets that are not ACKs")
    within(len(wire.seen), 0, attacker.sent, "ACKs")
    equal([[ns.greenlane()[n] for n in names] for ns in (wire.a, wire.b)], before, f"{names}")
    wire.mark()
    true(wire.transfer(client, server, 10_000), "afterwards all data from a arrives")
    true(wire.transfer(server, client, 10_000), "afterwards all data from b arrives")


@both("credits and requests with data: counted, TCP receives the data", before=20_000)
def with_data(wire, client, server, attacker):
    last = wire.b.greenlane()["CreditSent"]
    received = wire.a.greenlane()["CreditReceived"]
    attacker.credit(last + 1, payload=b"c" * 100)
    attacker.request(last, received, 100, payload=b"r" * 100)
    equal((invalid(wire.a), invalid(wire.b)), (1, 1), "Invalid")
    equal((client.recv(1000), server.recv(1000)), (b"c" * 100, b"r" * 100), "the data")
    wire.run(50e-3)
    equal(xpass.credits(wire.seen) + xpass.requests(wire.seen), [], "credits and requests")
    equal(wire.a.greenlane()["CreditReceived"], received, "CreditReceived")


@both("requests with an impossible credit number or count: counted, no credit is sent",
      before=20_000)
def bad_requests(wire, _client, _server, attacker):
    b = wire.b.greenlane()
    last = b["CreditSent"]
    received = wire.a.greenlane()["CreditReceived"]
    for words in ((last + 1, received, 10), (last + (1 << 31), received, 10),
                  (last - 1, received, 10), (0, 0, 10), (last, received + WINDOW + 1, 10),
                  (last, received - 1, 10), (last, 0, 10), (last, -1, 10),
                  (last, received), (last,), ()):
        attacker.request(*words)
    wire.run(10e-3)
    equal(invalid(wire.b), attacker.sent, "Invalid")
    equal(wire.seen, [], "packets")


@both("a forged request for 2^31 packets: the sender's stop ends it within two round trips",
      before=20_000)
def forged_request(wire, _client, _server, attacker):
    b = wire.b.greenlane()
    received = wire.a.greenlane()["CreditReceived"]
    attacker.request(b["CreditSent"], received, 0x7fffffff)
    wire.run(0.1)
    # Two round trips at line rate.
    within(len(xpass.credits(wire.from_b())), 1, 40, "credits")
    equal([w[2] for w in xpass.requests(wire.from_a())][-1:], [0], "the stop")
    equal(data(wire.seen), [], "data")
    xpass.silent(wire)


@both("forged numbers that advance by 2^31 in all: the rate still adapts", before=3_000_000)
def far_ahead(wire, client, server, attacker):
    last, received = wire.b.greenlane()["CreditSent"], wire.a.greenlane()["CreditReceived"]
    wire.rule = lambda p: True
    # Steps of 65536 would reach a distance of exactly 2^31, at which no number is ahead.
    for number in range((1 << 31) // 65535 + 40):
        last, received = last + 65535, received + 1
        attacker.request(last, received, xpass.RETRY)
        attacker.credit(last)
        if number % 64 == 63:
            wire.run(20e-6)
    wire.run(1e-3)
    wire.rule = None
    began = time.monotonic()
    true(wire.transfer(client, server, 3_000_000, seconds=3.0), "arrives")
    within(time.monotonic() - began, 0.02, 0.05, "transfer time at 1 Gbit/s, s")


@both("a forged acceptance of a request, with an invalid credit number: ignored, the request is "
      "repeated", before=20_000)
def forged_heard(wire, client, _server, attacker):
    last = wire.b.greenlane()["CreditSent"]
    wire.rule = lambda p: p.from_a and p.kind == REQUEST
    client.send(b"x" * 1000)
    wire.run(wire.delay)
    # None of these may prolong the wait for the repeated request: four round trips, not 200 ms.
    for number in (last - 1, 0, last + AHEAD + 1, -1):
        attacker.forge(False, CREDIT, option(CREDIT, number, xpass.ACCEPTED | 100_000_000))
    equal(invalid(wire.a), 4, "Invalid")
    wire.run(5 * xpass.RTT)
    equal([w[2] for w in xpass.requests(wire.from_a())], [1, xpass.RETRY | 1], "requests")
    wire.rule = None
    wire.run(10e-3)


@both("a forged request before any real one: the receiver stops, the sender does not answer")
def forged_first_request(wire, _client, _server, attacker):
    attacker.request(0, 0, 0x7fffffff)
    wire.run(0.1)
    # Eight round trips, or a millisecond, without a report, at 1/16 of line rate.
    within(len(xpass.credits(wire.from_b())), 1, 40, "credits")
    equal(invalid(wire.a), len(wire.seen), "Invalid")
    equal(wire.from_a(), [], "packets of the sender")
    xpass.silent(wire)


# --- a flood

@both("10,000 valid credits at rest: no data, at most one answer a round trip", before=20_000)
def flood_at_rest(wire, client, server, attacker):
    last = wire.b.greenlane()["CreditSent"]
    wasted = wire.a.greenlane()["CreditWasted"]
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    for n in range(10_000):
        attacker.credit(last + 1 + n)
        if n % 100 == 99:
            wire.run(50e-6)
    took = time.clock_gettime(time.CLOCK_MONOTONIC) - began
    wire.run(10e-3)
    equal(data(wire.seen), [], "data")
    equal(wire.a.greenlane()["CreditWasted"] - wasted, 10_000, "CreditWasted")
    within(len(wire.seen), 1, took / xpass.RTT * 2 + 2, "answers")
    del client, server


@both("10,000 old credits in a transfer: still one packet a credit, and no delay")
def flood_of_stale(wire, client, server, attacker):
    def flood(p):
        attacker.learn(p)
        if p.kind == CREDIT:
            for _ in range(20):
                attacker.credit(p.words[0] - OLD)
        return False
    wire.rule = flood
    true(wire.transfer(client, server, 500_000), "arrives")
    wire.rule = None
    xpass.silent(wire)
    true(attacker.sent >= 5_000, f"{attacker.sent} forged")
    equal(invalid(wire.a), attacker.sent, "Invalid")
    xpass.paid(wire)


@both("10,000 valid credits for a flow that waits: one packet each, none beyond its window")
def flood(wire, client, server, attacker):
    wire.rule = lambda p: p.kind == CREDIT          # only the attacker's arrive
    payload = pattern(1_000_000)
    sent = client.send(payload)
    wire.run(1e-4)
    before = len(data(wire.from_a()))
    equal(before, 0, "data without credits")
    for n in range(10_000):
        attacker.credit(n + 1)
    wire.run(50e-6)
    burst = data(wire.from_a())
    true(burst, "data")
    within(len(burst), 1, -(-sent // xpass.MSS[wire.version]) + 1,
           "packets of the data that waited")
    within(max(p.len for p in burst), 1, xpass.MSS[wire.version], "bytes a packet")
    equal(wire.a.greenlane()["Uncredited"], 0, "Uncredited")
    del server


# --- a transfer

def duration(version, attack):
    """Transfer time of COUNT bytes, s of virtual time."""
    with Wire(cc="xpass", version=version) as wire:
        xpass.far(wire)
        client, server = wire.connect()
        attacker = Attacker(wire, client, server)
        n = [0]
        bare = [0]              # without our option: not counted in Invalid

        def rule(p):
            attacker.learn(p)
            n[0] += 1
            wrong = OFF_PATH[n[0] % len(OFF_PATH)]
            if attack and p.kind == CREDIT:
                attacker.credit(p.words[0] + n[0] % 100, **wrong)
                attacker.credit(p.words[0] - OLD - n[0] % 50)
                attacker.credit(p.words[0] + AHEAD * (1 + n[0] % 1000) + 1000)
                attacker.forge(False, CREDIT)
                bare[0] += 1
            elif attack and p.kind == REQUEST:
                attacker.request(p.words[0], p.words[1], n[0] % 2 and 0x7fffffff, **wrong)
                attacker.request(p.words[0] + (1 << 20), p.words[1], 0)
                attacker.request(p.words[0], p.words[1] + AHEAD, 0)
                attacker.request()
            return False
        wire.rule = rule
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        true(wire.transfer(client, server, COUNT, seconds=3.0), "arrives")
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - began
        wire.rule = None
        if attack:
            true(attacker.sent > 4 * COUNT // 1500, f"{attacker.sent} forged packets")
            equal(invalid(wire.a) + invalid(wire.b), attacker.sent - bare[0], "Invalid, both ends")
        wire.run(1e-3)
        xpass.paid(wire)
        return took


@case("under attack a transfer takes at most 1.1 times as long",
      version=(4, 6))
def goodput(version):
    alone, attacked = (duration(version, attack) for attack in (False, True))
    print(f"# IPv{version}: {alone * 1e3:.2f} ms alone, {attacked * 1e3:.2f} ms attacked",
          flush=True)
    within(attacked / alone, 0.9, 1.1,
           f"IPv{version}: transfer time under attack, divided by the usual one")


@both("a forged credit whose number is ahead: the sender still accepts the real ones")
def future(wire, client, server, attacker):
    done = []

    def rule(p):
        if p.kind == CREDIT and p.words[0] >= 100 and not done:
            done.append(True)
            attacker.credit(p.words[0] + 1000)
        return False
    wire.rule = rule
    true(wire.transfer(client, server, 1_000_000, 1.0), "arrives")
    wire.rule = None
    equal(done, [True], "forged")
    xpass.silent(wire, 0.1)
    # and at rest
    attacker.credit(wire.b.greenlane()["CreditSent"] + 60_000)
    true(wire.transfer(client, server, 100_000, 1.0), "the next transfer arrives")



if __name__ == "__main__":
    tap.main()
