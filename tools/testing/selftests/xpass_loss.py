#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Losses of requests, credits, stops and data; and either end closes or resets.

	a (client, sends) ---- wire (this program, drops) ---- b (server, sends credits)
"""
import contextlib
import socket
import statistics
import struct

from lab import tap
from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.tap import case, equal, true, using, within
from lab.wire import xpass
from lab.wire.packet import RST, SYN, data
from lab.wire.transcript import exchange, lose
from lab.wire.wire import Wire, pattern

RTT = xpass.RTT


@contextlib.contextmanager
def connected(**options):
    """A connection that has measured its round trip.  TCP's timers exceed delayed ACKs (40 ms)."""
    with Wire(cc="xpass", rto_min=200, **options) as wire:
        xpass.far(wire)
        client, server = wire.connect()
        true(wire.transfer(client, server, 200_000), "arrives")
        xpass.silent(wire, 0.1)
        wire.mark()
        yield wire, client, server


everywhere = using(connected, version=(4, 6), tso=(True, False))


def counters(ns, *names):
    """Some of greenlane's counters."""
    every = ns.greenlane()
    return [every[name] for name in names]


# --- the request

@everywhere("a lost request is repeated after four round trips, marked as a retry")
def request_lost(wire, client, server):
    before = counters(wire.a, "RequestRetried")[0]
    with exchange(wire, """
            > request           lost
            > retry
            < credit 1
            > scheduled 1
            ...
            > stop
            ...
            """):
        true(wire.transfer(client, server, 1000), "arrives")
        xpass.silent(wire)
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    equal([p.words[2] for p in asked], [1, xpass.RETRY | 1, 0], "request, retry, stop")
    within(asked[1].time - asked[0].time, 4 * RTT, 5 * RTT, "time between them, s")
    equal(counters(wire.a, "RequestRetried")[0] - before, 1, "RequestRetried")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@everywhere("five requests are lost: the wait doubles with each second retry")
def five_requests_lost(wire, client, server):
    with exchange(wire, """
            > request           lost
            > retry             lost
            > retry             lost
            > retry             lost
            > retry             lost
            > retry
            < credit 1
            > scheduled 1
            ...
            > stop
            ...
            """):
        true(wire.transfer(client, server, 1000), "arrives")
        xpass.silent(wire)
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    equal([p.words[2] for p in asked], [1] + [xpass.RETRY | 1] * 5 + [0], "requests")
    gaps = [q.time - p.time for p, q in zip(asked[:5], asked[1:6])]
    for number, gap in enumerate(gaps):
        within(gap / gaps[0] / 2 ** (number // 2), 0.95, 1.05, f"of {gaps}, number {number}")
    # The back-off has ended.
    wire.mark()
    wire.rule = lose("> request")
    true(wire.transfer(client, server, 1000), "arrives")
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    within(asked[1].time - asked[0].time, 4 * RTT, 5 * RTT, "wait of the next lost request, s")


@case("no answer for ten seconds: requests, and TCP's window probes, become rare", Wire,
      version=(4, 6), cc="xpass")
def no_answer(wire):
    xpass.far(wire)
    client, server = wire.connect()
    wire.mark()
    wire.rule = lambda p: True
    client.send(pattern(10_000))
    wire.run(10.0)
    within(len(xpass.requests(wire.seen)), 10, 60, "requests")
    # If data waits and none is in flight, TCP assumes a closed window.
    probes = [p for p in wire.seen if p.kind != REQUEST]
    equal({p.kind for p in probes} - {SCHEDULED}, set(), "DSCP of the others")
    equal(counters(wire.a, "Uncredited"), [len(probes)], "Uncredited")
    within(len(probes), 0, 15, "window probes, whose interval doubles")
    wire.mark()
    wire.rule = None
    true(wire.run(5.0, lambda: data(wire.from_a())), "data is sent within 5 s after the outage")
    wire.run(0.5)
    equal(server.recv(1 << 20), pattern(10_000), "all arrives")


@case("without a round-trip sample, as the SYN was lost, a lost request is repeated in 10 ms", Wire,
      cc="xpass", version=(4, 6))
def no_sample(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_timestamps", 0)
    xpass.far(wire)
    lost = []
    wire.rule = lambda p: p.flags & SYN and not lost and not lost.append(p)
    listener, client = wire.listen(), wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1.5)
    server = wire.accept(listener)
    equal(len(lost), 1, "lost SYNs")
    wire.mark()
    wire.rule = lose("> request")
    true(wire.transfer(client, server, 1000), "arrives")
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    equal(asked[1].words[2], xpass.RETRY | 1, "the second request")
    within(asked[1].time - asked[0].time, 4 * RTT, 10e-3, "time between them, s")


# --- credits

def gaps_of(credits):
    """The times between credits, s."""
    return [q.time - p.time for p, q in zip(credits, credits[1:])]


@everywhere("outages one after the other: the sender detects each as soon as the first")
def outages(wire, client, server):
    state = {"out": False, "passed": 0}
    waited = []

    # Three credits pass, then all are lost until the sender repeats its request.
    def rule(p):
        if p.kind == REQUEST and p.words[2] & xpass.RETRY:
            waited.append((p.time - state["last"], state["patience"]))
            state.update(out=False, passed=0)
        if p.kind != CREDIT:
            return False
        if state["out"]:
            return True
        state["passed"] += 1
        state["last"] = p.time + wire.delay
        # twice the advertised wait, or on a busy link four times
        state["patience"] = xpass.wait(p) * (4 if xpass.second_word(p) & xpass.BUSY else 2)
        state["out"] = state["passed"] == 3 and len(waited) < 12
        return False
    wire.rule = rule
    true(wire.transfer(client, server, 200_000), "arrives")
    equal(len(waited), 12, "outages")
    for number, (seconds, patience) in enumerate(waited):
        # a rate that has fallen makes the gaps between credits long, and so the patience
        within(seconds, 4 * RTT, max(4 * RTT, patience) + 2 * RTT,
               f"wait for the credits of outage {number}")


@everywhere("every second credit is lost: reported, counted; the rate falls, then rises again")
def credits_lost(wire, client, server):
    # 400 credits pass, so that the rate has risen; of the next 120 every second one is lost.
    base = counters(wire.b, "CreditSent")[0]
    before = counters(wire.b, "CreditLost")[0]
    wire.rule = lose("< credit 400-519", every=2)
    lost = wire.rule.dropped
    true(wire.transfer(client, server, 3_000_000, seconds=3.0), "arrives")
    xpass.silent(wire)
    lost = xpass.credits(lost)      # without acceptances of requests
    within(len(lost), 55, 65, "credits lost, of 120")
    equal(counters(wire.b, "CreditLost")[0] - before, len(lost), "CreditLost")
    sent = [p for p in wire.from_b() if xpass.is_credit(p)]
    fast = [p for p in sent if 300 <= p.words[0] - base < 400]
    slow = [p for p in sent if 500 <= p.words[0] - base < 520]
    last = sent[-100:]
    speed = [statistics.median(gaps_of(c)) for c in (fast, slow, last)]
    print(f"# IPv{wire.version}: gaps, us: {[round(s * 1e6, 1) for s in speed]}", flush=True)
    within(speed[0], 11e-6, 16e-6, "gap between credits before the loss, s: line rate")
    true(speed[1] > 1.5 * speed[0], f"gaps between credits, s: {speed}; the second is too short")
    true(speed[2] < 1.5 * speed[0], f"gaps between credits, s: {speed}; the last is too long")
    told = xpass.requests(wire.from_a())
    equal(told[-1][0] - told[-1][1], len(lost),
          "credits that are missing in the last request")
    equal(counters(wire.a, "Uncredited"), [0], "Uncredited")


@everywhere("a credit that up to 31 later ones overtake counts; with more it is invalid")
def credits_late(wire, client, server):
    base = counters(wire.b, "CreditSent")[0]
    before = counters(wire.a, "CreditReceived", "Invalid")
    # Number of a credit -> its delay in gaps, about the number of credits that overtake it.  The
    # rate has risen by then.
    overtaken = {500: 8, 600: 28, 700: 35}
    came = []

    def rule(p):
        if xpass.is_credit(p):
            p.late = overtaken.get(p.words[0] - base, 0) * xpass.gap(wire)
            came.append((p.time + p.late, p.words[0] - base))
        return False
    wire.rule = rule
    true(wire.transfer(client, server, 3_000_000, seconds=3.0), "arrives")
    xpass.silent(wire)
    order = [number for _, number in sorted(came)]
    passed = [max(order[:order.index(late)]) - late for late in overtaken]
    within(passed[1], 25, 31, "credits that overtook the second")
    within(passed[2], 32, 40, "credits that overtook the third")
    received, invalid = (now - was for now, was in
                         zip(counters(wire.a, "CreditReceived", "Invalid"), before))
    equal((len(came) - received, invalid), (1, 1), "credits that are not counted; Invalid")
    equal(counters(wire.a, "Uncredited"), [0], "Uncredited")


@everywhere("all credits are lost for 20 ms: the request is repeated, losses counted, data arrives")
def credits_outage(wire, client, server):
    before = counters(wire.b, "CreditLost")[0]
    client.send(pattern(500_000))
    wire.run(1e-3)
    wire.rule = lose("< credit")
    lost = wire.rule.dropped
    wire.run(20e-3)
    wire.rule = None
    equal(wire.receive(server, 500_000, 3.0), pattern(500_000), "bytes that arrive")
    xpass.silent(wire)
    lost = xpass.credits(lost)
    true(len(lost) > 5, f"{len(lost)} credits lost")
    equal(counters(wire.b, "CreditLost")[0] - before, len(lost), "CreditLost")
    equal(counters(wire.a, "Uncredited"), [0], "Uncredited")
    true(counters(wire.a, "RequestRetried")[0] > 0, "RequestRetried")
    xpass.well_formed(wire.seen)
    # credits for 500 kB, and a window more, for each repeated request
    asked = sum(bool(p.words[2] & xpass.RETRY) for p in wire.from_a() if p.kind == REQUEST)
    within(len(lost), 1, asked * 360, "credits lost")


@everywhere("a stop is lost: the receiver ends without it, or the stop is repeated")
def stop_lost(wire, client, server):
    for count in (1, 1000):
        wire.mark()
        wire.rule = lose("> stop", times=count)
        true(wire.transfer(client, server, 300_000), "arrives")
        wire.run(0.1)
        xpass.silent(wire)
        true(wire.rule.dropped, "stops were lost")
        want = [p.words for p in wire.from_a() if p.kind == REQUEST and not p.dropped
                and p.words[2] & ~xpass.RETRY]
        sent = xpass.credits(wire.from_b())
        within(sent[-1], want[-1][0], want[-1][0] + want[-1][2],
               f"number of the last credit, after the request {want[-1]}")
        after = [p for p in wire.from_a() if p.time > wire.rule.dropped[0].time]
        equal({p.kind for p in after} - {REQUEST}, set(), "kinds of packets of a after the stop")
        wire.rule = None
        true(wire.transfer(client, server, 30_000), "the next transfer arrives")
        xpass.silent(wire, 0.1)


# --- data

@everywhere("data lost in the middle is retransmitted with credits, in a few round trips")
def data_lost(wire, client, server):
    for count in (1, 2, 10):
        wire.mark()
        wire.rule = lose(f"> scheduled 50-{49 + count}")
        lost = wire.rule.dropped
        true(wire.transfer(client, server, 300_000, seconds=60e-3), f"{count} lost: arrives")
        xpass.silent(wire)
        equal(len(lost), count, "packets lost")
        xpass.paid(wire)
        xpass.well_formed(wire.seen)
        seqs = [p.seq for p in data(wire.from_a())]
        equal({s for s in seqs if seqs.count(s) > 1}, {p.seq for p in lost},
              "sequence numbers that were sent twice")
        equal(counters(wire.a, "Uncredited"), [0], "Uncredited")
        for name in ("TCPTimeouts", "TCPLossProbes"):
            equal(wire.a.netstat(name), 0, name)


@everywhere("the last packets are lost: a TLP or RTO without a credit, counted, then the data "
            "arrives")
def tail_lost(wire, client, server):
    for count in (1, 5):
        wire.mark()
        base = counters(wire.a, "Uncredited")[0]
        timers = [wire.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")]
        size = 30 * xpass.MSS[wire.version]
        wire.rule = lose(f"> scheduled {31 - count}-30")
        true(wire.transfer(client, server, size), f"{count} lost: arrives")
        xpass.silent(wire)
        equal({p.kind for p in data(wire.from_a())}, {SCHEDULED}, "DSCP of data")
        without = counters(wire.a, "Uncredited")[0] - base
        fired = sum(wire.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")) - sum(timers)
        within(without, 1, fired, "packets without a credit, at most one for each RTO and TLP")


@everywhere("every 23rd packet is lost in both directions: every byte arrives")
def anything_lost(wire, client, server):
    wire.rule = lose("> *", "< *", every=23)
    true(wire.transfer(client, server, 200_000, seconds=20.0), "arrives")
    true(wire.transfer(server, client, 200_000, seconds=20.0), "arrives back")
    wire.rule = None
    wire.run(1.0)
    xpass.silent(wire)


@case("a packet arrives after its retransmission, and others are lost: no timer expires",
      version=(4, 6), late=(0.5, 1))
def late_and_lost(version, late):
    with Wire(cc="xpass", rto_min=4, version=version) as wire:
        xpass.far(wire)
        client, server = wire.connect()
        true(wire.transfer(client, server, 1_000_000), "arrives")
        wire.run(0.1)
        for lost in ((22,), (22, 26), (24, 30, 36)):
            number = iter(range(1 << 20))

            def rule(p):
                n = next(number) if p.from_a and p.len else -1
                p.late = late * RTT * (n == 20)
                return n in lost
            wire.rule = rule
            true(wire.transfer(client, server, 100_000), "arrives")
            wire.run(20e-3)
        true(wire.a.netstat("TCPDSACKRecv") > 0, "TCPDSACKRecv: a spurious retransmission")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "RTOs, TLPs")


# --- close and reset

def reset(s):
    """Close with an RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def started(wire, client):
    """Start a transfer of 1 MB; credits are in flight."""
    client.send(pattern(1_000_000))
    wire.run(5e-3)
    true(len(data(wire.from_a())) > 10, "more than 10 packets of data")


@everywhere("the sender closes with credits in flight: all written data arrives")
def sender_closes(wire, client, server):
    client.send(pattern(100_000))
    wire.run(1e-3)
    client.close()
    equal(wire.receive(server, 100_000, 0.5), pattern(100_000), "bytes")
    wire.run(1e-3)
    equal(server.recv(1), b"", "end of file")
    server.close()
    wire.run(1e-3)
    xpass.silent(wire)
    equal([p for p in wire.seen if p.flags & RST], [], "RSTs")


@everywhere("the sender resets with credits in flight: credits end, each has one RST at most")
def sender_resets(wire, client, server):
    started(wire, client)
    wire.mark()
    reset(client)
    wire.run(10e-3)
    within(sum(p.kind == CREDIT for p in wire.from_b()), 0, 40, "credits after the RST")
    within(sum(bool(p.flags & RST) for p in wire.from_a()), 1, 100, "RSTs")
    xpass.silent(wire)
    try:
        while True:
            server.recv(1 << 20)
    except ConnectionResetError:
        pass


@everywhere("the receiver resets: the sender sends no more packets")
def receiver_resets(wire, client, server):
    started(wire, client)
    reset(server)
    wire.run(RTT)
    wire.mark()
    wire.run(10e-3)
    equal([p for p in wire.seen if not p.flags & RST], [], "packets after the RST")
    xpass.silent(wire)


@everywhere("the receiver closes its half: it still sends credits, all data arrives")
def receiver_half_closes(wire, client, server):
    server.shutdown(socket.SHUT_WR)
    wire.run(1e-3)
    equal(client.recv(1), b"", "end of file")
    true(wire.transfer(client, server, 500_000), "arrives")
    client.close()
    wire.run(1e-3)
    equal(server.recv(1), b"", "end of file")
    wire.run(1e-3)
    xpass.silent(wire)
    xpass.paid(wire)
    equal(counters(wire.a, "Uncredited"), [0], "Uncredited")


# --- the receiver's window

@everywhere("the receiver does not read: no data but TCP's probes; all data arrives when it reads",
            rmem="4096 16384 16384")
def zero_window(wire, client, server):
    payload = pattern(100_000)
    sent = client.send(payload)
    wire.run(50e-3)
    true(len(data(wire.from_a())) < 60, "fewer than 60 packets of data: the window is closed")
    wire.mark()
    wire.run(0.2)
    within(len(data(wire.from_a())), 0, 10, "packets with data in 200 ms")
    within(len(wire.seen), 0, 40, "packets in 200 ms")
    got = bytearray()

    def step():
        nonlocal sent
        try:
            got.extend(server.recv(1 << 20))
        except BlockingIOError:
            pass
        try:
            while sent < len(payload):
                sent += client.send(payload[sent:])
        except BlockingIOError:
            pass
        return len(got) == len(payload)
    true(wire.run(1.0, step), f"all arrives after it opens ({len(got)})")
    equal(bytes(got), payload, "bytes")
    xpass.silent(wire)


if __name__ == "__main__":
    tap.main()
