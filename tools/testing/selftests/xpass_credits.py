#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Credits: no data leaves without one, and each permits one packet.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)
"""
import math
import os
import socket

from lab import tap
from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.tap import case, equal, true, using, within
from lab.wire import xpass
from lab.wire.packet import FIN, data
from lab.wire.sockopt import cc_of
from lab.wire.transcript import lose
from lab.wire.wire import Wire, connected, pattern

# TCP's timers wait for its delayed ACKs (40 ms).
unconnected = using(Wire, cc="xpass", rto_min=200, version=(4, 6), tso=(True, False))
everywhere = using(connected, cc="xpass", rto_min=200, version=(4, 6), tso=(True, False))


@everywhere("the handshake is scheduled, and requests no credit")
def handshake(wire, client, server):
    xpass.handshake(wire.seen)
    xpass.silent(wire)
    equal(len(wire.seen), 3, "packets")
    equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "congestion control")


@everywhere("a request precedes all data; no data before the first credit, which arrives at once")
def request_first(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 100), "arrives")
    xpass.silent(wire)
    xpass.well_formed(wire.seen)
    equal([(p.from_a, p.kind, p.words, p.len) for p in wire.seen],
          [(True, REQUEST, (0, 0, 1), 0), (False, CREDIT, (1,), 0),
           (True, SCHEDULED, (), 100), (True, REQUEST, (1, 1, 0), 0),
           (False, SCHEDULED, (), 0)], "100 bytes")
    within(wire.seen[4].time - wire.seen[0].time, 0, 60e-6, "two round trips of 20 us")


@everywhere("each credit permits one packet of up to an MSS: a write of 1 MB, numbered credits")
def one_each(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 1_000_000), "arrives")
    xpass.silent(wire)
    xpass.well_formed(wire.seen)
    xpass.numbered(wire.from_b())
    came, sent = xpass.paid(wire)
    within(sent, -(-1_000_000 // xpass.MSS[wire.version]), 1_000_000 // 1400, "packets of data")
    counters = wire.a.greenlane()
    equal([counters[name] for name in ("CreditReceived", "ScheduledSent", "Uncredited")],
          [came, sent, 0], "CreditReceived, ScheduledSent, Uncredited")
    equal(counters["CreditWasted"], came - sent, "CreditWasted")
    # the stop takes half a round trip to arrive
    within(came - sent, 0, 50, "credits that were not used")
    equal(wire.b.greenlane()["CreditSent"], came, "CreditSent")
    equal(data(wire.from_b()), [], "data from b")


@everywhere("the first credit of a large write permits one packet: no TSO burst")
def no_burst(wire, client, _server):
    wire.mark()
    wire.rule = lose("< credit 2-1000")
    client.send(pattern(500_000))
    wire.run(100e-6)
    sent = [p.len for p in data(wire.from_a())]
    equal(sent, [xpass.MSS[wire.version]], "packets with data")
    wire.rule = None


def told(wire, from_a=True):
    """Check the first two words of each request against the wire: number of the last credit that
    has arrived, and number of credits that have."""
    last = count = 0
    arrivals = [(p.time + wire.delay, p.words[0]) for p in wire.seen
                if p.kind == CREDIT and p.from_a != from_a and not p.dropped]
    for p in wire.seen:
        if p.kind != REQUEST or p.from_a != from_a:
            continue
        while arrivals and arrivals[0][0] <= p.time and count < p.words[1]:
            last, count = arrivals.pop(0)[1], count + 1
        equal(p.words[:2], (last, count), "last credit, credits")


@case("a request reports the last credit, the number of credits and of packets that wait", Wire,
      version=(4, 6), cc="xpass")
def words(wire):
    xpass.far(wire)
    client, server = wire.connect()
    wire.mark()
    payload = 40 * xpass.MSS[wire.version]
    # So that the first request covers the whole write.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    lost = []
    wire.rule = lambda p: p.kind == CREDIT and p.words[0] % 5 == 0 and not lost.append(p)
    true(wire.transfer(client, server, payload), "arrives")
    xpass.silent(wire)
    true(lost, "credits were lost")
    told(wire)
    xpass.paid(wire)
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    for p in asked[1:]:
        sent = sum(q.len for q in wire.from_a() if q.time <= p.time and q.end <= p.seq)
        # The first credits are rare: if one is lost, the sender may repeat its request (RETRY).
        equal(p.words[2] & ~xpass.RETRY, (payload - sent) // xpass.MSS[wire.version],
              "packets that wait")
    equal(asked[-1].words[2], 0, "the last one is the stop")
    equal(wire.b.greenlane()["CreditLost"], len([p for p in lost if p.words[0] <
          asked[-1].words[0]]), "CreditLost")


# TCP's estimate of the round trip, minimum and maximum.
RTT_MIN, RTT_MAX = 0.95 * xpass.RTT, 1.1 * xpass.RTT


@case("the sender reports once a round trip", Wire, version=(4, 6), cc="xpass")
def report(wire):
    xpass.far(wire)
    client, server = wire.connect()
    # TCP measures the round trip
    true(wire.transfer(client, server, 200_000), "arrives")
    xpass.silent(wire)
    wire.mark()
    true(wire.transfer(client, server, 2_000_000), "arrives")
    xpass.silent(wire)
    asked = [p for p in wire.from_a() if p.kind == REQUEST]
    true(len(asked) > 20, f"{len(asked)} requests")
    # The last request is the stop; the application writes more after the first.
    came = [p.time + wire.delay for p in wire.seen if p.kind == CREDIT]
    for p, q in zip(asked[1:], asked[2:-1]):
        gap = q.time - p.time
        true(gap >= RTT_MIN, f"{gap} s after the last one")
        # A credit triggers the report, and the first credits are a round trip apart.
        due = next((t for t in came if t >= p.time + RTT_MAX), math.inf)
        true(q.time <= due + 12e-6, f"{gap} s after the last one, a credit after {due - p.time} s")
    equal(wire.a.greenlane()["RequestRetried"], 0, "RequestRetried")


@unconnected("a sender without data sends one stop: no credits after it arrives, then silence")
def stop(wire):
    xpass.far(wire)
    client, server = wire.connect()
    true(wire.transfer(client, server, 300_000), "arrives")
    xpass.silent(wire)
    stops = [p for p in wire.from_a() if p.kind == REQUEST and not p.words[2]]
    equal(len(stops), 1, "stops")
    later = [p for p in wire.from_b() if p.kind == CREDIT and p.time > stops[0].time
             + wire.delay + 20e-6]
    equal(later, [], "credits half a round trip after the stop")
    equal([p for p in wire.from_a() if p.time > stops[0].time], [], "packets of a after the stop")


@everywhere("messages one after the other request credits each, and the credits' numbers continue")
def persistent(wire, client, server):
    for size in (100, 5000, 40_000, 1):
        true(wire.transfer(client, server, 1000), "request")
        true(wire.transfer(server, client, size), "response")
        xpass.silent(wire)
    xpass.well_formed(wire.seen)
    for sender, receiver, from_a in ((wire.from_a(), wire.from_b(), True),
                                     (wire.from_b(), wire.from_a(), False)):
        xpass.numbered(receiver)
        xpass.paid(wire, from_a)
        told(wire, from_a)
        equal(sum(p.words[2] == 0 for p in sender if p.kind == REQUEST), 4, "stops")
    xpass.unseen_by_tcp(wire)


@everywhere("data before a stop is acknowledged at once, in spite of delayed ACKs")
def prompt(wire, client, server):
    for _ in range(20):
        wire.mark()
        true(wire.transfer(client, server, 100), "request")
        true(wire.transfer(server, client, 100), "response")
        wire.run(1e-3)
        last = data(wire.from_b())[-1]
        ack = next(p for p in wire.from_a() if p.kind != REQUEST and p.ack == last.end)
        within(ack.time - last.time, 0, 2 * wire.delay + 10e-6, "time until the response's ACK, s")


@everywhere("both directions at once have credits, numbers and reports of their own")
def both_ways(wire, client, server):
    true(wire.transfer_both(client, server, 400_000), "all arrives")
    xpass.silent(wire)
    xpass.well_formed(wire.seen)
    for receiver, from_a in ((wire.from_b(), True), (wire.from_a(), False)):
        xpass.numbered(receiver)
        xpass.paid(wire, from_a)
        told(wire, from_a)
    for ns in (wire.a, wire.b):
        equal(ns.greenlane()["Uncredited"], 0, "Uncredited")
    xpass.unseen_by_tcp(wire)


@everywhere("TCP sees neither credits nor requests")
def unseen(wire, client, server):
    true(wire.transfer(client, server, 300_000), "arrives")
    true(wire.transfer(server, client, 300_000), "arrives")
    xpass.silent(wire)
    xpass.unseen_by_tcp(wire)


@case("credits and requests carry the connection's numbers, window and a good checksum", connected,
      version=(4, 6), cc="xpass")
def header(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 20_000), "arrives")
    end = None
    for p in wire.seen:
        if p.kind in (REQUEST, CREDIT):
            true(p.checksum_ok(), f"checksum: {p!r}")
            equal(p.doff, 20 + (20 if p.kind == REQUEST else 12), "header")
        if p.from_a and p.kind == REQUEST and end is not None:
            equal(p.seq, end, "a request's sequence number")
        if p.from_a and p.len:
            end = p.end
    windows = {p.window for p in wire.from_b()}
    true(0 not in windows, f"windows of b: {windows}")


@everywhere("a lone FIN leaves without a credit")
def lone_fin(wire, client, server):
    wire.mark()
    client.close()
    wire.run(1e-3)
    equal(server.recv(1), b"", "end of file")
    server.close()
    wire.run(1e-3)
    xpass.silent(wire)
    # TIME_WAIT sends the last ACK, not a socket.
    equal({p.kind for p in wire.seen[:-1]}, {SCHEDULED}, "DSCP")
    equal([p.from_a for p in wire.seen if p.flags & FIN], [True, False], "FINs")
    true(wire.seen[-1].from_a and not wire.seen[-1].flags & ~0x10, "the last ACK")


@unconnected("a FIN after data waits for the data's credits, and uses none itself")
def fin_behind(wire):
    uncredited = 0
    for count in (10, 1000, 5000, 50_000):
        client, server = wire.connect()
        wire.mark()
        client.send(pattern(count))
        client.close()
        equal(wire.receive(server, count, 0.5), pattern(count), "bytes")
        wire.run(1e-3)
        equal(server.recv(1), b"", "end of file")
        server.close()
        wire.run(1e-3)
        xpass.silent(wire)
        equal(sum(bool(p.flags & FIN) for p in wire.from_a()), 1, "FINs of a")
        before, uncredited = uncredited, wire.a.greenlane()["Uncredited"]
        # TCP of 6.1 does not check its window for a last packet with a FIN.
        free = os.uname().release.startswith("6.1.")
        within(uncredited - before, 0, int(free), "packets without a credit")
        if uncredited == before:
            xpass.paid(wire)


@everywhere("a FIN when no data waits leaves at once")
def fin_later(wire, client, server):
    true(wire.transfer(client, server, 10_000), "arrives")
    xpass.silent(wire)
    wire.mark()
    client.shutdown(socket.SHUT_WR)
    wire.run(100e-6)
    equal([(p.from_a, p.kind, bool(p.flags & FIN)) for p in wire.seen[:1]],
          [(True, SCHEDULED, True)], "the FIN")
    equal([p for p in wire.seen if p.kind != SCHEDULED], [], "requests and credits")
    # The other direction is still open.
    true(wire.transfer(server, client, 20_000), "arrives")
    server.close()
    wire.run(1e-3)
    xpass.silent(wire)


if __name__ == "__main__":
    tap.main()
