#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every loss that TCP needs a timer for, without one.

	a (client, sends) ---- wire (this program, drops) ---- b (server)

Unimportant packets may be lost, as a colour-aware switch would have it; the
important ones pass.  RTO_min is 4 ms and nothing here may take that long.
"""
import socket
import struct

from gl import tap
from gl.packet import CLOCK, CLOCK_ECHO, CONTROL, DATA, ECE, ECHO, IMPORTANT
from gl.sockopt import GREENLANE_TLT, ip_level
from gl.tap import case, equal, true
from gl.wire import Wire, pattern

CCS = ("tlt_reno", "tlt_cubic", "tlt_dctcp")
SIZE = 13 * 1448


def no_timer(wire):
    """Neither RTO nor loss probe."""
    for counter in ("TCPTimeouts", "TCPLossProbes"):
        equal(wire.a.netstat(counter), 0, counter)


def transfer_without_timer(rule, count=SIZE, versions=(4, 6), rounds=1, tso=True):
    """Send count bytes while rule(wire) chooses what is dropped."""
    for cc in CCS:
        for version in versions:
            with Wire(cc=cc, version=version, tso=tso) as wire:
                client, server = wire.connect()
                for _ in range(rounds):
                    wire.mark()
                    wire.rule = rule(wire)
                    true(wire.transfer(client, server, count, seconds=3e-3),
                         f"{cc}, IPv{version}: all arrives within 3 ms; saw\n# "
                         + wire.dump().replace("\n", "\n# "))
                    wire.rule = None
                    wire.run(50e-3)
                no_timer(wire)
                true(any(p.dropped for p in wire.seen), "something was dropped")


def droppable(p):
    """What a switch may drop."""
    return p.from_a and p.len and p.dscp == DATA


def counted(chosen):
    """A rule that drops the droppable packets whose number (from 1) is chosen."""
    def rule(_wire):
        n = [0]

        def drop(p):
            n[0] += droppable(p)
            return droppable(p) and chosen(n[0])
        return drop
    return rule


@case("one packet lost in the middle")
def one_lost():
    transfer_without_timer(counted(lambda n: n == 3))


@case("tail loss: the last packets of the data")
def tail_loss():
    def rule(_wire):
        first = []

        def drop(p):
            if not droppable(p):
                return False
            first.append(p.seq)
            offset = (p.seq - first[0]) & 0xffffffff
            # the last three of the 13, the first time they are sent
            return offset >= 10 * 1400 and first.count(p.seq) == 1
        return drop
    transfer_without_timer(rule)


@case("whole-window loss: all but the important packet")
def whole_window():
    transfer_without_timer(counted(lambda n: n <= 9), rounds=3)


@case("a retransmission lost, once and again")
def lost_retransmission():
    def rule(_wire):
        times = {}

        def drop(p):
            if not droppable(p):
                return False
            times[p.seq] = times.get(p.seq, 0) + 1
            return times[p.seq] <= 3 and len(times) <= 5
        return drop
    transfer_without_timer(rule)


@case("every unimportant packet lost: recovery at one packet a round trip")
def all_unimportant():
    transfer_without_timer(lambda _wire: droppable, rounds=2)


@case("every second unimportant packet lost, 200 kB")
def every_second():
    transfer_without_timer(counted(lambda n: n % 2), count=200_000)


@case("the same with TSO and GSO off")
def every_second_no_tso():
    transfer_without_timer(counted(lambda n: n % 2), count=200_000, tso=False)


@case("losses are found by the echo: what was sent before it, nothing after")
def found_by_echo():
    with Wire() as wire:
        client, server = wire.connect()
        wire.mark()
        # The first window arrives; of the second all is lost but the clock
        # behind it, whose echo is all that is left to tell.
        wire.rule = counted(lambda n: 9 < n <= 13)(wire)
        true(wire.transfer(client, server, SIZE, seconds=3e-3), "arrives")
        sent = [p for p in wire.from_a() if p.len and p.dscp != CLOCK]
        seqs = [p.seq for p in sent]
        lost = {p.seq for p in sent if p.dropped}
        again = {s for s in seqs if seqs.count(s) > 1}
        equal(again, lost, "retransmitted exactly what was lost")
        true(wire.a.greenlane()["LossByEcho"] > 0, "the echo found losses")


def times_sent(wire, client, server):
    """Lose one packet, let only the first SACK pass: how often is it sent?"""
    seen = {"data": None, "sack": 0}

    def rule(p):
        if p.from_a and p.len and seen["data"] is None:
            seen["data"] = p.seq
            return True
        if not p.from_a:        # the first SACK passes, nothing else
            seen["sack"] += 1
            return seen["sack"] > 1
        return False
    wire.mark()
    wire.rule = rule
    client.send(b"1" * SIZE)
    wire.run(200e-6)
    times = sum(p.seq == seen["data"] and p.len > 1 for p in wire.from_a())
    wire.rule = None
    wire.run(50e-3)
    equal(len(server.recv(1 << 20)), SIZE, "all arrives")
    return times


@case("duplicate threshold of one: the first SACK is enough, the echo is not awaited")
def one_duplicate():
    for version in (4, 6):
        with Wire(version=version) as wire:
            equal(times_sent(wire, *wire.connect()), 2, "times within 200 us")


@case("the base's duplicate threshold, once it is switched off")
def three_duplicates():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            client.setsockopt(ip_level(client), GREENLANE_TLT, 0)
            equal(times_sent(wire, client, server), 1, "times within 200 us")


@case("an echo that acknowledges something finds losses too, at once")
def echo_moves_una():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            wire.mark()
            sent, echoes = [], []

            # Of the second window's three packets the first arrives, and only
            # the clock's echo says so.
            def rule(p, sent=sent, echoes=echoes):
                if droppable(p):
                    sent.append(p)
                    return len(sent) in (11, 12)
                if not p.from_a and p.dscp == CLOCK_ECHO:
                    echoes.append(p)
                return not p.from_a and len(sent) > 9 and p.dscp == CONTROL \
                    and p.ack == sent[9].end
            wire.rule = rule
            client.send(b"2" * 13 * 1428)
            wire.run(1e-3)
            true(echoes and echoes[0].ack == sent[9].end, "the clock echo moves snd_una")
            later = [p for p in wire.from_a() if p.time > echoes[0].time and p.len]
            equal(later[0].seq, sent[10].seq, "what follows it")
            true(later[0].len > 1, f"is the lost packet, not a clock: {later[0]!r}")
            wire.rule = None
            wire.run(50e-3)
            equal(len(server.recv(1 << 20)), 13 * 1428, "all arrives")


@case("an echo finds a loss, and TCP may send nothing: the clock is an MSS of it")
def clock_is_an_mss():
    for version in (4, 6):
        with Wire(version=version, tso=False) as wire:
            client, sent, x = wire.slow_start(b"m" * 300_000)
            equal(sent[x].dscp, IMPORTANT, "the second one")
            # To halve the window, every second packet that has come lets one
            # leave (RFC 6937), the first does: the second is the echo.
            before = len(sent)
            wire.answer(sent[x - 1], CONTROL, ECE)
            equal(len(sent) - before, 1, "packets for the first")
            wire.answer(sent[x - 1], ECHO, ECE, sent[x])
            equal([(p.seq, p.len, p.dscp) for p in sent[before + 1:]],
                  [(sent[x - 1].seq, sent[x - 1].len, IMPORTANT)], "for the echo, the lost one")
            counters = wire.a.greenlane()
            equal((counters["ClockMssSent"], counters["ClockByteSent"]), (1, 0), "clocks")
            # struct tcp_info: unacked, sacked, lost, retrans; snd_cwnd
            info = struct.unpack_from("8x24I", client.getsockopt(socket.IPPROTO_TCP, 11, 104))
            flight = info[4] - info[5] - info[6] + info[7]
            equal(info[18], flight - 1, "the window, which the clock has passed")


@case("an RTO arms the sender again: its retransmission is important")
def rto_rearms():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            wire.transfer(client, server, 1000)
            wire.run(10e-3)
            wire.mark()
            cut = [True]
            wire.rule = lambda p: cut[0]
            client.send(b"y" * SIZE)
            wire.run(30e-3)
            rtos = wire.a.netstat("TCPTimeouts")
            true(rtos >= 1, "there was an RTO")
            equal(wire.a.greenlane()["RearmedByRto"], rtos, "RearmedByRto")
            cut[0] = False
            wire.mark()
            wire.run(100e-3)
            equal([p.dscp for p in wire.from_a() if p.len][0], IMPORTANT,
                  "the next RTO's retransmission")
            equal(len(server.recv(1 << 20)), SIZE, "all arrived")


@case("reordering the wire does, TCP bears: no byte is lost or wrong")
def reordered():
    with Wire() as wire:
        client, server = wire.connect()
        n = [0]

        def late(p):
            n[0] += 1
            wire.delay = 40e-6 if n[0] % 7 == 0 else 10e-6
            return False
        wire.rule = late
        true(wire.transfer(client, server, 500_000, seconds=1.0), "arrives")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("TCP undoes a recovery: what is lost and was not sent again is not forgotten")
def undone():
    for version in (4, 6):
        with Wire(version=version, rto_min="200ms") as wire:
            # A round trip of some milliseconds, TCP's timestamps', which tell late from lost.
            wire.delay = 2e-3
            client, server = wire.connect()
            wire.mark()
            sent = []

            # Of the first window only the important packet arrives.
            def rule(p):
                sent.extend([p] * bool(p.from_a and p.len))
                return p in sent and len(sent) != 10
            wire.rule = rule
            client.send(pattern(14000))
            true(wire.run(20e-3, lambda: len(sent) > 10), "one is sent again")
            # But the first was only late.
            wire.rule = None
            wire.inject(wire.b, sent[0].raw)
            wire.run(60e-3)
            equal(wire.a.netstat("TCPPartialUndo"), 1, "TCPPartialUndo")
            equal(len(server.recv(20_000)), 14000, "all arrives")
            equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  "RTOs, probes")


if __name__ == "__main__":
    tap.main()
