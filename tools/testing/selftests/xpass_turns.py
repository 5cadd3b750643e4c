#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Many connections on a receiver's link: scheduling that is late, SRPT, and a peer that misuses it.

	a (clients, send) ---- wire (this program) ---- b (server, sends credits)
"""
import time

from lab import tap
from lab.codepoints import CREDIT, PROBE, REQUEST
from lab.tap import case, equal, true, within
from lab.wire import xpass
from lab.wire.attack import Attacker
from lab.wire.packet import option
from lab.wire.wire import Wire, pattern

PACKETS = 32            # of a flow of the incast
GBIT = 1000             # net.ipv4.xpass_rate
PACKET_NS = 12_900      # a credit and a packet, at that rate


def incast(wire, flows):
    """All flows send PACKETS at once; returns the completion time of the last, s."""
    listener = wire.listen(1001)
    pairs = [wire.connect(1001, listener=listener) for _ in range(flows)]
    message = pattern(PACKETS * xpass.MSS[wire.version])
    left = {server: len(message) for _, server in pairs}
    wire.run(0.1)
    wire.mark()
    began = time.monotonic()
    for client, _ in pairs:
        equal(client.send(message), len(message), "sent")
    xpass.arrivals(wire, left, 5.0)
    return time.monotonic() - began


@case("an incast's last flows report seldom, as they have had few credits: their credits continue",
      flows=(50, 200))
def tail(flows):
    with Wire(cc="xpass", rto_min=200) as wire:
        wire.b.sysctl("net.ipv4.xpass_rate", GBIT)
        took = incast(wire, flows)
        ideal = flows * PACKETS * PACKET_NS / 1e9
        true(took < 1.05 * ideal, f"completion time: {took / ideal:.3f} of that at line rate")
        # The wire is one process, whose own delay causes the retries of the beginning.
        late = [p for p in wire.seen if p.kind == REQUEST and p.words[2] & xpass.RETRY
                and p.time > wire.seen[0].time + 0.3 * ideal]
        equal(len(late), 0, "repeated requests after the first 30 % of the time")


@case("a sender stops: its receiver detects it, also if eight credits take eight seconds",
      Wire, cc="xpass")
def gone(wire):
    xpass.far(wire)
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.xpass_rate", 1)
    client, _ = wire.connect()
    client.send(pattern(200_000))
    # Lost credits lower the rate, to one a second.  The sender falls back, and requests no more.
    wire.rule = lambda p: p.kind == CREDIT
    wire.run(60.0)
    asked = [p.time for p in wire.from_a() if p.kind == REQUEST]
    last = [p.time for p in wire.from_b() if p.kind == CREDIT][-1] - asked[-1]
    within(last, 6, 12, "time from the last request to the last credit, s")


# --- the shortest message first (SRPT)

SHORTEST = 1            # net.ipv4.xpass_pick
ROUND = 32              # every 32nd credit is scheduled round robin: RD_ROUND


def shortest_first(wire, **options):
    """b serves the shortest message first, and a new message starts at line rate."""
    xpass.far(wire)
    for name, value in {"xpass_pick": SHORTEST, "xpass_initial": 1, **options}.items():
        wire.b.sysctl(f"net.ipv4.{name}", value)


@case("xpass_pick 1: the shortest rest is served first, and waiting senders have credits round "
      "robin",
      cc=("xpass", "aeolus_xpass"), version=(4, 6))
def pick(cc, version):
    packets = (300, 150, 20)
    with Wire(cc=cc, version=version, rto_min=200) as wire:
        shortest_first(wire)
        times = xpass.messages(wire, *packets)
        # A burst of aeolus_xpass takes a round trip of link time at once.
        extra = (3 if cc == "xpass" else 4) * xpass.RTT
        link = [sum(n for n in packets if n <= m) * PACKET_NS / 1e9 for m in packets]
        for took, ideal in zip(times, link):
            # The waiting senders have every ROUND-th credit.
            true(took < 1.05 * ideal + extra,
                 f"completion time {took * 1e3:.2f} ms, {ideal * 1e3:.2f} ms at line rate")
        longest = wire.seen[0].sport
        came = [p.time for p in wire.seen if xpass.is_credit(p) and p.dport == longest
                and p.time < wire.seen[0].time + times[1]]
        waits = max(q - p for p, q in zip(came, came[1:]))
        true(waits < 4 * ROUND * PACKET_NS / 1e9, f"{waits * 1e3:.2f} ms without a credit")
        equal([ns.greenlane()["Uncredited"] for ns in (wire.a, wire.b)], [0, 0], "Uncredited")


@case("xpass_pick 0, the default: all messages share the link", Wire, cc="xpass", version=(4, 6))
def fair(wire):
    equal(wire.b.sysctl("net.ipv4.xpass_pick"), "0", "default of xpass_pick")
    shortest_first(wire, xpass_pick=0)
    long, mid, short = xpass.messages(wire, 300, 150, 20)
    true(short > 55 * PACKET_NS / 1e9,
         f"completion time of the short message at a third of the link: {short * 1e3:.2f} ms")
    true(long - mid > 100 * PACKET_NS / 1e9, "the long message completes last")


def nothing(_):
    """no packet is lost"""


def loses(test, times=1):
    """A rule that drops the first `times` such packets of each connection."""
    count = {}

    def rule(p):
        key = frozenset((p.sport, p.dport))
        if not test(p) or count.get(key, 0) == times:
            return False
        count[key] = count.get(key, 0) + 1
        return True
    return rule


def first_request(wire):
    """the first request of each is lost"""
    wire.rule = loses(lambda p: p.kind in (REQUEST, PROBE) and p.words[2])


def answer(wire):
    """the acceptance of each first request is lost"""
    wire.rule = loses(lambda p: p.kind == CREDIT and not xpass.is_credit(p))


def first_credits(wire):
    """the first five credits of each are lost"""
    wire.rule = loses(xpass.is_credit, 5)


def some_data(wire):
    """two packets of data of each are lost"""
    wire.rule = loses(lambda p: p.from_a and p.len, 2)


@case("shortest first, seven senders: waiting ones request once; any one loss, and all data "
      "arrives",
      cc=("xpass", "aeolus_xpass"), version=(4, 6),
      what=(nothing, first_request, answer, first_credits, some_data))
def patient(cc, version, what):
    with Wire(cc=cc, version=version, rto_min=200) as wire:
        shortest_first(wire)
        began = wire.a.greenlane()["RequestRetried"]
        listener = wire.listen(1001)
        pairs = [wire.connect(1001, listener=listener) for _ in range(7)]
        for pair in pairs:
            true(wire.transfer(*pair, 100), "100 bytes arrive")
        wire.run(0.1)
        what(wire)
        count = 21 * xpass.MSS[version]
        for client, _ in pairs:
            client.send(pattern(count))
        got = {server: bytearray() for _, server in pairs}

        def read():
            for server, data in got.items():
                try:
                    data.extend(server.recv(1 << 20))
                except BlockingIOError:
                    pass
            return all(len(data) == count for data in got.values())
        true(wire.run(30e-3, read), "all arrives within 30 ms")
        true(all(data == pattern(count) for data in got.values()), "the bytes are those sent")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "TCPTimeouts, TCPLossProbes")
        if what is nothing:
            equal(wire.a.greenlane()["RequestRetried"] - began, 0, "RequestRetried")


@case("shortest first: the advertised wait counts the senders that wait, and none that has stopped",
      Wire, cc="xpass", version=(4, 6))
def told(wire):
    shortest_first(wire)
    pairs = {port: wire.connect(port) for port in (1001, 1002, 1003)}
    for pair in pairs.values():
        true(wire.transfer(*pair, 500_000), "arrives")
    wire.run(0.1)
    attacker = Attacker(wire, *pairs[1002])
    wire.mark()

    def waits(port, packets):
        """Begin a message; returns the waits that the receiver advertises, in packet times."""
        pairs[port][0].send(pattern(packets * xpass.MSS[wire.version]))
        wire.run(2 * xpass.RTT)
        return [xpass.wait(p) / (PACKET_NS / 1e9) for p in wire.from_b()
                if p.kind == CREDIT and p.sport == port and not xpass.is_credit(p)]
    waits(1001, 200)
    within(waits(1002, 300)[-1], 3.9 * ROUND, 4.3 * ROUND,
           "wait of two senders, packet times")
    wire.rule = lambda p: 1002 in (p.sport, p.dport)
    last, came = [p.words[:2] for p in wire.seen if p.kind == REQUEST and p.dport == 1002][-1]
    attacker.watch()
    attacker.forge(True, REQUEST, option(REQUEST, last, came, 0))
    within(waits(1003, 250)[-1], 3.9 * ROUND, 4.3 * ROUND,
           "wait of two senders again, packet times")
    wire.rule = None


@case("a pause of 4.3 s, when 32 bits of nanoseconds wrap, counts as a long one", Wire, cc="xpass",
      version=(4, 6))
def pause(wire):
    xpass.far(wire)
    pair = wire.connect()
    true(wire.transfer(*pair, 3_000_000), "arrives")
    stop = [p.time for p in wire.from_a() if p.kind == REQUEST][-1]
    # After the wrap it looks like two round trips.  A long sleep may take 0.1 % more: in two parts.
    for early in (20e-3, 0):
        wire.run(stop + (1 << 32) / 1e9 + 2 * xpass.RTT - early - time.monotonic())
    wire.mark()
    true(wire.transfer(*pair, 100_000), "arrives")
    # The first request may be for the first packet alone.
    first, second = [p.time for p in wire.seen if xpass.is_credit(p)][1:3]
    within((second - first) / (PACKET_NS / 1e9), 12, 20,
           "gap between two credits at 1/16 of line rate, packet times")


def far_away(wire, port, delay):
    """Connect with a one-way delay of `delay` s during the handshake."""
    listener, client = wire.listen(port), wire.socket(wire.a)
    near, wire.delay = wire.delay, delay
    wire.begin(client, wire.b, port)
    wire.run(6 * delay)
    server, wire.delay = wire.accept(listener), near
    return client, server


def transfer_time(wire, client, server):
    """Transfer time of 50 kB, s."""
    began = time.monotonic()
    true(wire.transfer(client, server, 50_000), "arrives")
    return time.monotonic() - began


@case("a peer sends small packets and reports them as a burst: other senders' credits continue",
      Wire, cc="xpass", version=(4, 6))
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
    # The queue reserves link time for 256 packets of a burst at most.
    true(took - usual < 300 * PACKET_NS / 1e9,
         f"transfer time {took * 1e3:.2f} ms, {usual * 1e3:.2f} ms before")


tap.main()
