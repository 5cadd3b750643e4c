#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Aeolus: the burst, the probe behind it, and what becomes of what was lost.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)

The wire's round trip is 200 us, long beside what the guest's own calls take.
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
    """TCP has waited for no timer, and has sent nothing without a credit but the burst."""
    for ns in (wire.a, wire.b):
        for name in ("TCPTimeouts", "TCPLossProbes", "TCPSpuriousRTOs"):
            equal(ns.netstat(name), 0, f"{ns.name}: {name}")
        equal(ns.greenlane()["Uncredited"], 0, f"{ns.name}: Uncredited")


@everywhere("a short message: the request, all of it unscheduled, the probe; done in half an RTT")
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
    equal(probe.kind, PROBE, "behind the last of them")
    equal(probe.words[3], burst[-1].end, "the probe's word: where the burst ended")
    # The first credit overtakes the ACKs by a moment, and is not wasted.
    again = [p for p in data(sent) if p.kind != UNSCHEDULED]
    equal([p.end for p in again], [burst[-1].end][:len(again)], "from its end")
    within(took, 0.5 * RTT, 0.65 * RTT, "until it was read")
    no_timer(wire)


@everywhere("the probe is answered at once, and by one packet")
def answered(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 5_000), "arrives")
    wire.run(1e-3)
    probe = [p for p in wire.from_a() if p.kind == PROBE]
    answer = [p for p in wire.from_b() if p.kind == PROBE_ACK]
    equal((len(probe), len(answer)), (1, 1), "probes, answers")
    within(answer[0].time - probe[0].time, RTT / 2, 0.55 * RTT, "at once")


@everywhere("a BDP at most; more waits for credits")
def bdp(wire, client, server):
    # A SYN-ACK's window is 64 kB at most; now it opens.
    true(wire.transfer(client, server, 500_000), "arrives")
    wire.run(1.0)
    wire.mark()
    wire.rule = lambda p: not p.from_a and p.kind == CREDIT
    client.send(pattern(1_000_000))
    wire.run(2 * RTT)
    sent = data(wire.from_a())
    equal(set(kinds(sent)), {UNSCHEDULED}, "data")
    within(sum(p.len for p in sent), 0.8 * BDP, 1.3 * BDP, "bytes")
    wire.rule = None


@everywhere("a burst that the receiver's window ends is probed too")
def window_full(wire, client, _server):
    wire.mark()
    client.send(pattern(1_000_000))
    wire.run(RTT / 2)
    burst = data(wire.from_a())
    within(sum(p.len for p in burst), 60_000, 65_535, "bytes: a SYN-ACK's window")
    probe = [p for p in wire.from_a() if p.kind == PROBE]
    equal([p.words[3] for p in probe], [burst[-1].end], "the probe, behind the last of them")


@everywhere("the first credit ends the burst; from then on all is scheduled")
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
    true(gone <= {p.seq for p in again}, "each is sent again")
    equal(len({p.seq for p in again}), len(again), "once")
    equal(set(kinds(again)), {SCHEDULED}, "with a credit")
    within(took, 1.5 * RTT, 4 * RTT, "time")
    no_timer(wire)


@case("lost unscheduled packets are sent once more, with credits: first, middle, last, all",
      version=(4, 6))
def losses(version):
    for lost in ([1], [6, 7, 10], [14], [13, 14], range(2, 15), range(1, 15)):
        with aeolus(version=version) as wire:
            lossy(wire, lost)


@everywhere("ACKs tell of losses, credits are late: retransmissions wait for credits all the same")
def late_credits(wire, client, server):
    wire.mark()
    wire.rule = lose(*(f"> unscheduled {number}" for number in (1, 2)),
                     *(f"< credit {number}" for number in (1, 2)))
    true(wire.transfer(client, server, 20_000, 0.1), "arrives")
    wire.run(1e-3)
    again = [p for p in data(wire.from_a()) if p.kind != UNSCHEDULED]
    true({p.seq for p in wire.seen if p.dropped and p.len} <= {p.seq for p in again},
         "what was lost is sent again")
    equal(set(kinds(again)), {SCHEDULED}, "with credits")
    no_timer(wire)


def end_lost(also):
    """A rule that drops the last packet of a burst of 12 kB, and what also() is true of."""
    first = []

    def rule(p):
        if p.from_a and p.kind == UNSCHEDULED:
            first.append(p.seq)
            return (p.end - first[0]) & 0xffffffff == 12_000
        return also(p)
    return rule


@everywhere("a probe that is lost, with the request and the burst's end, is asked for again, as a probe")
def probe_lost(wire, client, server):
    wire.mark()
    wire.rule = end_lost(lambda p: p.kind in (REQUEST, PROBE) and not p.words[2] & RETRY)
    true(wire.transfer(client, server, 12_000, 0.1), "arrives")
    took = time.monotonic() - wire.seen[0].time
    asked = [p for p in wire.from_a() if p.kind in (REQUEST, PROBE)]
    equal(kinds(asked[:3]), [REQUEST, PROBE, PROBE], "request, probe, and again")
    equal((asked[2].words[2] & RETRY, asked[2].words[3]), (RETRY, asked[1].words[3]),
          "the second probe: it is one, and where the burst ended")
    true(not asked[2].dropped, "which arrives")
    within(took, 5 * RTT, 8 * RTT, "time: four round trips until it is asked again")
    no_timer(wire)


@everywhere("a path that loses every probe: it is asked without one, every other time")
def all_probes_lost(wire, client, server):
    wire.mark()
    wire.rule = end_lost(lambda p: p.kind == PROBE or (p.kind == REQUEST
                                                       and not p.words[2] & RETRY))
    true(wire.transfer(client, server, 12_000, 0.1), "arrives")
    asked = [p for p in wire.from_a() if p.kind in (REQUEST, PROBE)]
    equal(kinds(asked[:4]), [REQUEST, PROBE, PROBE, REQUEST], "request, probe, and again")
    no_timer(wire)


@everywhere("the probe is lost, credits come: what was lost is retransmitted, once")
def only_probe_lost(wire, client, server):
    wire.mark()
    wire.rule = lose("> unscheduled 5, unscheduled 9", "> probe")
    true(wire.transfer(client, server, 20_000, 0.1), "arrives")
    wire.run(1e-3)
    lost = [p.seq for p in wire.rule.dropped if p.kind == UNSCHEDULED]
    equal(len(lost), 2, "lost packets")
    again = [p.seq for p in data(wire.from_a()) if p.kind == SCHEDULED]
    equal([again.count(seq) for seq in lost], [1, 1], "they are sent again, once")
    no_timer(wire)


@case("each unscheduled packet is acknowledged at once, delayed ACKs or not", connected,
      version=(4, 6), of=aeolus, tso=False)
def acknowledged(wire, client, server):
    # A server that answers: TCP would like to put ACKs on the answers.
    for _ in range(4):
        true(wire.transfer(client, server, 1_000), "request")
        true(wire.transfer(server, client, 1_000), "response")
    wire.run(1.0)
    wire.mark()
    wire.rule = lambda p: p.kind in (CREDIT, REQUEST, PROBE)
    client.send(pattern(7_000))
    wire.run(RTT)
    burst = data(wire.from_a())
    equal(set(kinds(burst)), {UNSCHEDULED}, "data")
    acks = [p for p in wire.from_b() if p.kind != CREDIT]
    equal([p.ack for p in acks], [p.end for p in burst], "ACKs")
    for p, ack in zip(burst, acks):
        within(ack.time - p.time, RTT / 2, 0.55 * RTT, "delay of an ACK")


@case("each message bursts; with aeolus_idle only those after a pause", connected, version=(4, 6),
      of=aeolus)
def idle(wire, client, server):
    for idle_ms, pause, kind in ((0, 0, UNSCHEDULED), (0, 1e-3, UNSCHEDULED), (0, 0, UNSCHEDULED),
                                 (100, 2e-3, SCHEDULED), (100, 0.5, UNSCHEDULED)):
        wire.a.sysctl("net.ipv4.aeolus_idle", idle_ms)
        wire.run(pause)
        wire.mark()
        true(wire.transfer(client, server, 5_000), "arrives")
        equal(data(wire.from_a())[0].kind, kind, f"after {pause} s, aeolus_idle {idle_ms}")
        wire.run(1e-3)


@case("a header, and then its body: both in the first round trip", connected, version=(4, 6),
      of=aeolus)
def two_writes(wire, client, server):
    wire.mark()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.send(pattern(200))
    client.send(pattern(29_800))
    equal(wire.receive(server, 30_000, 1.0), pattern(200) + pattern(29_800), "what arrives")
    first = data(wire.from_a())[0].time
    burst = [p for p in data(wire.from_a()) if p.time < first + RTT and p.kind == UNSCHEDULED]
    equal(sum(p.len for p in burst), 30_000, "bytes in the first round trip")
    wire.run(10e-3)
    no_timer(wire)


@case("a peer without it: reno, DSCP 0, counted", aeolus, version=(4, 6), cc_b="cubic")
def peer(wire):
    before = wire.a.greenlane()["PeerWithout"]
    client, server = wire.connect()
    wire.mark()
    true(wire.transfer(client, server, 100_000), "arrives")
    equal(set(kinds(wire.seen)), {0}, "DSCP")
    equal(cc_of(client), "aeolus-reno", "it runs")
    equal(wire.a.greenlane()["PeerWithout"] - before, 1, "PeerWithout")


main()
