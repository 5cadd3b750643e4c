#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Aeolus: the unscheduled burst, the probe that follows it, and retransmissions.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)

The wire's round trip is 200 us, much longer than the guest's system calls.
"""
import socket
import time

from lab.codepoints import PROBE, PROBE_ACK, CREDIT, UNSCHEDULED, REQUEST, SCHEDULED
from lab.tap import case, equal, main, true, using, within
from lab.wire.aeolus import RTT, aeolus
from lab.wire.packet import data, kinds
from lab.wire.sockopt import cc_of
from lab.wire.transcript import lose
from lab.wire.wire import connected, pattern
from lab.wire.xpass import RETRY

BDP = 250_000           # 10 Gbit/s times RTT


everywhere = using(connected, of=aeolus, version=(4, 6), tso=(True, False))


def no_timer(wire):
    """Check that no timer of TCP has expired, and that only the burst left without credits."""
    for ns in (wire.a, wire.b):
        for name in ("TCPTimeouts", "TCPLossProbes", "TCPSpuriousRTOs"):
            equal(ns.netstat(name), 0, f"{ns.name}: {name}")
        equal(ns.greenlane()["Uncredited"], 0, f"{ns.name}: Uncredited")


@everywhere("a short message is a request, unscheduled data and a probe; it arrives in half an RTT")
def short(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 12_000), "arrives")
    took = time.monotonic() - wire.seen[0].time
    wire.run(1e-3)
    sent = wire.from_a()
    equal(kinds(sent[:2]), [REQUEST, UNSCHEDULED], "first packets")
    burst = [p for p in data(sent) if p.kind == UNSCHEDULED]
    equal(sum(p.len for p in burst), 12_000, "bytes, each once")
    probe = sent[sent.index(burst[-1]) + 1]
    equal(probe.kind, PROBE, "kind of the packet after the burst")
    equal(probe.words[3], burst[-1].end, "the probe's sequence number: end of the burst")
    # The first credit arrives shortly before the ACKs, so it is used.
    again = [p for p in data(sent) if p.kind != UNSCHEDULED]
    equal([p.end for p in again], [burst[-1].end][:len(again)],
          "end of the packet that the first credit permits")
    within(took, 0.5 * RTT, 0.65 * RTT, "time until the message is read, s")
    no_timer(wire)


@everywhere("the probe is answered at once, with one packet")
def answered(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 5_000), "arrives")
    wire.run(1e-3)
    probe = [p for p in wire.from_a() if p.kind == PROBE]
    answer = [p for p in wire.from_b() if p.kind == PROBE_ACK]
    equal((len(probe), len(answer)), (1, 1), "probes, answers")
    within(answer[0].time - probe[0].time, RTT / 2, 0.55 * RTT,
           "time from the probe to its answer, s")


@everywhere("the burst has a BDP at most; the rest waits for credits")
def bdp(wire, client, server):
    # A SYN-ACK's window is 64 kB at most; this transfer opens it.
    true(wire.transfer(client, server, 500_000), "arrives")
    wire.run(1.0)
    wire.mark()
    wire.rule = lambda p: not p.from_a and p.kind == CREDIT
    client.send(pattern(1_000_000))
    wire.run(2 * RTT)
    sent = data(wire.from_a())
    equal(set(kinds(sent)), {UNSCHEDULED}, "kinds of the data")
    within(sum(p.len for p in sent), 0.8 * BDP, 1.3 * BDP, "bytes of the burst")
    wire.rule = None


@everywhere("a probe follows a burst that the receiver's window ends, too")
def window_full(wire, client, _server):
    wire.mark()
    client.send(pattern(1_000_000))
    wire.run(RTT / 2)
    burst = data(wire.from_a())
    within(sum(p.len for p in burst), 60_000, 65_535, "bytes: a SYN-ACK's window")
    probe = [p for p in wire.from_a() if p.kind == PROBE]
    equal([p.words[3] for p in probe], [burst[-1].end],
          "sequence numbers of the probes: end of the burst")


@everywhere("the first credit ends the burst; all later data is scheduled")
def credited(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 1_000_000), "arrives")
    wire.run(1e-3)
    came = next(p.time for p in wire.from_b() if p.kind == CREDIT) + wire.delay
    for p in data(wire.from_a()):
        equal(p.kind, UNSCHEDULED if p.time < came else SCHEDULED, f"{p!r}")
    no_timer(wire)


def lossy(wire, lost):
    """A message of 20 kB whose unscheduled packets of these numbers are lost."""
    client, server = wire.connect()
    wire.mark()
    wire.rule = lose(*(f"> unscheduled {number}" for number in lost))
    true(wire.transfer(client, server, 20_000, 0.1), f"arrives without {lost}")
    took = time.monotonic() - wire.seen[0].time
    wire.run(1e-3)
    again = [p for p in data(wire.from_a()) if p.kind != UNSCHEDULED]
    gone = {p.seq for p in wire.seen if p.dropped}
    true(gone <= {p.seq for p in again}, "each lost packet is retransmitted")
    equal(len({p.seq for p in again}), len(again), "retransmissions, each once")
    equal(set(kinds(again)), {SCHEDULED}, "kinds of the retransmissions")
    within(took, 1.5 * RTT, 4 * RTT, "transfer time, s")
    no_timer(wire)


@case("lost unscheduled packets are retransmitted once, with credits: first, middle, last, all",
      version=(4, 6))
def losses(version):
    for lost in ([1], [6, 7, 10], [14], [13, 14], range(2, 15), range(1, 15)):
        with aeolus(version=version) as wire:
            lossy(wire, lost)


@everywhere("ACKs report losses before credits arrive: retransmissions still wait for credits")
def late_credits(wire, client, server):
    wire.mark()
    wire.rule = lose(*(f"> unscheduled {number}" for number in (1, 2)),
                     *(f"< credit {number}" for number in (1, 2)))
    true(wire.transfer(client, server, 20_000, 0.1), "arrives")
    wire.run(1e-3)
    again = [p for p in data(wire.from_a()) if p.kind != UNSCHEDULED]
    true({p.seq for p in wire.seen if p.dropped and p.len} <= {p.seq for p in again},
         "each lost packet is retransmitted")
    equal(set(kinds(again)), {SCHEDULED}, "kinds of the retransmissions")
    no_timer(wire)


def end_lost(also):
    """A rule that drops the last packet of a burst of 12 kB, and packets for which also() is
    true."""
    first = []

    def rule(p):
        if p.from_a and p.kind == UNSCHEDULED:
            first.append(p.seq)
            return (p.end - first[0]) & 0xffffffff == 12_000
        return also(p)
    return rule


@everywhere("request, burst's end and probe are lost: the request is repeated as a probe")
def probe_lost(wire, client, server):
    wire.mark()
    wire.rule = end_lost(lambda p: p.kind in (REQUEST, PROBE) and not p.words[2] & RETRY)
    true(wire.transfer(client, server, 12_000, 0.1), "arrives")
    took = time.monotonic() - wire.seen[0].time
    asked = [p for p in wire.from_a() if p.kind in (REQUEST, PROBE)]
    equal(kinds(asked[:3]), [REQUEST, PROBE, PROBE],
          "kinds of the request, the probe and its repetition")
    equal((asked[2].words[2] & RETRY, asked[2].words[3]), (RETRY, asked[1].words[3]),
          "the second probe: retry flag, end of the burst")
    true(not asked[2].dropped, "the second probe arrives")
    within(took, 5 * RTT, 8 * RTT, "transfer time, with four round trips until the repetition, s")
    no_timer(wire)


@everywhere("a path that loses every probe: every other repetition is a request without a probe")
def all_probes_lost(wire, client, server):
    wire.mark()
    wire.rule = end_lost(lambda p: p.kind == PROBE or (p.kind == REQUEST
                                                       and not p.words[2] & RETRY))
    true(wire.transfer(client, server, 12_000, 0.1), "arrives")
    asked = [p for p in wire.from_a() if p.kind in (REQUEST, PROBE)]
    equal(kinds(asked[:4]), [REQUEST, PROBE, PROBE, REQUEST],
          "kinds of the request, the probe and two repetitions")
    no_timer(wire)


@everywhere("the probe is lost, credits arrive: lost packets are retransmitted once")
def only_probe_lost(wire, client, server):
    wire.mark()
    wire.rule = lose("> unscheduled 5, unscheduled 9", "> probe")
    true(wire.transfer(client, server, 20_000, 0.1), "arrives")
    wire.run(1e-3)
    lost = [p.seq for p in wire.rule.dropped if p.kind == UNSCHEDULED]
    equal(len(lost), 2, "lost packets")
    again = [p.seq for p in data(wire.from_a()) if p.kind == SCHEDULED]
    equal([again.count(seq) for seq in lost], [1, 1], "retransmissions of each lost packet")
    no_timer(wire)


@case("each unscheduled packet is acknowledged at once, in spite of delayed ACKs", connected,
      version=(4, 6), of=aeolus, tso=False)
def acknowledged(wire, client, server):
    # A server that answers: TCP delays ACKs, to send them with the answers.
    for _ in range(4):
        true(wire.transfer(client, server, 1_000), "request")
        true(wire.transfer(server, client, 1_000), "response")
    wire.run(1.0)
    wire.mark()
    wire.rule = lambda p: p.kind in (CREDIT, REQUEST, PROBE)
    client.send(pattern(7_000))
    wire.run(RTT)
    burst = data(wire.from_a())
    equal(set(kinds(burst)), {UNSCHEDULED}, "kinds of the data")
    acks = [p for p in wire.from_b() if p.kind != CREDIT]
    equal([p.ack for p in acks], [p.end for p in burst], "acknowledgment numbers")
    for p, ack in zip(burst, acks):
        within(ack.time - p.time, RTT / 2, 0.55 * RTT, "delay of an ACK, s")


@case("each message bursts; with aeolus_idle only messages after a pause do",
      connected, version=(4, 6),
      of=aeolus)
def idle(wire, client, server):
    for idle_ms, pause, kind in ((0, 0, UNSCHEDULED), (0, 1e-3, UNSCHEDULED), (0, 0, UNSCHEDULED),
                                 (100, 2e-3, SCHEDULED), (100, 0.5, UNSCHEDULED)):
        wire.a.sysctl("net.ipv4.aeolus_idle", idle_ms)
        wire.run(pause)
        wire.mark()
        true(wire.transfer(client, server, 5_000), "arrives")
        equal(data(wire.from_a())[0].kind, kind,
              f"kind of the first packet after {pause} s, aeolus_idle {idle_ms}")
        wire.run(1e-3)


@case("a header and its body in two writes: both leave in the first round trip",
      connected, version=(4, 6),
      of=aeolus)
def two_writes(wire, client, server):
    wire.mark()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.send(pattern(200))
    client.send(pattern(29_800))
    equal(wire.receive(server, 30_000, 1.0), pattern(200) + pattern(29_800), "bytes that arrive")
    first = data(wire.from_a())[0].time
    burst = [p for p in data(wire.from_a()) if p.time < first + RTT and p.kind == UNSCHEDULED]
    equal(sum(p.len for p in burst), 30_000, "bytes in the first round trip")
    wire.run(10e-3)
    no_timer(wire)


@case("a peer without Aeolus: the client falls back to reno with DSCP 0, counted", aeolus,
      version=(4, 6), cc_b="cubic")
def peer(wire):
    before = wire.a.greenlane()["PeerWithout"]
    client, server = wire.connect()
    wire.mark()
    true(wire.transfer(client, server, 100_000), "arrives")
    equal(set(kinds(wire.seen)), {0}, "DSCP")
    equal(cc_of(client), "aeolus-reno", "congestion control")
    equal(wire.a.greenlane()["PeerWithout"] - before, 1, "PeerWithout")


main()
