#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every loss that TCP needs a timer for, without one.

	a (client, sends) ---- wire (this program, loses) ---- b (server)

Unimportant packets may be lost, as a colour-aware switch would have it; the important ones
pass.  RTO_min is 4 ms and nothing here may take that long.  The exchanges are written as
lab/wire/transcript.py reads them.
"""
import contextlib
import socket
import struct

from lab import tap
from lab.codepoints import CLOCK, CONTROL, DATA, IMPORTANT
from lab.tap import case, equal, true, using, within
from lab.wire import peer
from lab.wire.packet import ECE
from lab.wire.sockopt import GREENLANE_TLT, SO_MAX_PACING_RATE, ip_level
from lab.wire.transcript import exchange, lose
from lab.wire.wire import MSS, Wire, connected, pattern

SEGMENTS = 13           # of a transfer: an initial window of ten, and three more


@contextlib.contextmanager
def without_timer(**options):
    """A connection that loses something, and waits neither for an RTO nor for a loss probe."""
    with Wire(**options) as wire:
        yield wire, *wire.connect()
        wire.rule = None
        wire.run(50e-3)
        for counter in ("TCPTimeouts", "TCPLossProbes"):
            equal(wire.a.netstat(counter), 0, counter)
        true(any(p.dropped for p in wire.seen), "something was lost")


everywhere = using(without_timer, cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), version=(4, 6))


def arrives(wire, client, server, count=None):
    """A transfer takes less than any timer."""
    true(wire.transfer(client, server, count or SEGMENTS * MSS[wire.version], seconds=3e-3),
         f"all arrives within 3 ms; saw\n{wire.dump()}")


@everywhere("one packet lost in the middle")
def one_lost(wire, client, server):
    with exchange(wire, """
            > data 1-2
            > data 3            lost
            > data 4-9, important 10
            < control           # of 1 and 2
            ...
            > data 11-13
            > data 3
            ...
            """):
        arrives(wire, client, server)


@everywhere("tail loss: the last packets of the data")
def tail_loss(wire, client, server):
    with exchange(wire, """
            > data 1-9, important 10
            ...
            > data 11-13        lost
            > clock 11          # nothing may be sent: the clock asks what has come
            < clock echo
            > data 11-12, important 13
            ...
            """):
        arrives(wire, client, server)


@everywhere("whole-window loss: all but the important packet")
def whole_window(wire, client, server):
    with exchange(wire, """
            > data 1-9          lost
            > important 10
            < control
            > important 1
            < control
            > data 2, important 3
            ...
            """):
        arrives(wire, client, server)
    for _ in range(2):          # and from any window
        wire.run(50e-3)
        wire.mark()
        wire.rule = lose("> data 1-9")
        arrives(wire, client, server)


@everywhere("a retransmission lost, once and again")
def lost_retransmission(wire, client, server):
    wire.mark()
    wire.rule = lose("> data 1-5", times=3)
    arrives(wire, client, server)


@everywhere("every unimportant packet lost: recovery at one packet a round trip")
def all_unimportant(wire, client, server):
    for _ in range(2):
        wire.mark()
        wire.rule = lose("> data")
        arrives(wire, client, server)
        wire.run(50e-3)


@everywhere("every second unimportant packet lost, 200 kB", tso=(True, False))
def every_second(wire, client, server):
    wire.mark()
    wire.rule = lose("> data", every=2)
    arrives(wire, client, server, 200_000)


@case("losses are found by the echo: what was sent before it, nothing after", connected,
      version=(4, 6))
def found_by_echo(wire, client, server):
    # The first window arrives; of the second all is lost but the clock behind it, whose
    # echo is all that is left to tell.
    with exchange(wire, """
            > data 1-9, important 10
            ...
            > data 11-13    lost
            > clock 11
            < clock echo
            > data 11-12, important 13
            < control, control, control
            """):
        arrives(wire, client, server)
    true(wire.a.greenlane()["LossByEcho"] > 0, "the echo found losses")


def times_sent(wire, client, server):
    """Lose the first packet, and all that b sends but the first SACK: how often is it sent?"""
    wire.mark()
    passed = []
    lose_first = lose("> data 1", "> unmarked 1")

    def rule(p):
        if p.from_a:
            return lose_first(p)
        passed.append(p)
        return len(passed) > 1
    wire.rule = rule
    client.send(b"1" * SEGMENTS * MSS[wire.version])
    wire.run(200e-6)
    first = lose_first.dropped[0].seq
    times = sum(p.seq == first and p.len > 1 for p in wire.from_a())
    wire.rule = None
    wire.run(50e-3)
    equal(len(server.recv(1 << 20)), SEGMENTS * MSS[wire.version], "all arrives")
    return times


@case("duplicate threshold of one: the first SACK is enough, the echo is not awaited", Wire,
      version=(4, 6))
def one_duplicate(wire):
    equal(times_sent(wire, *wire.connect()), 2, "times within 200 us")


@case("the base's duplicate threshold, once it is switched off", connected, version=(4, 6))
def three_duplicates(wire, client, server):
    client.setsockopt(ip_level(client), GREENLANE_TLT, 0)
    equal(times_sent(wire, client, server), 1, "times within 200 us")


@case("an echo that acknowledges something finds losses too, at once", connected, version=(4, 6))
def echo_moves_una(wire, client, server):
    # Of the second window's three packets the first arrives, and only the clock's echo
    # says so.
    with exchange(wire, """
            > data 1-9, important 10
            < control, control, control, control, control
            < control, control, control, control
            < control
            > data 11
            > data 12-13    lost
            > clock 11
            < control       lost
            < clock echo
            > important 12  # not a clock
            ...
            """):
        arrives(wire, client, server)


def echoed_at_once(wire, important):
    """By an ACK that leaves as the packet arrives."""
    def covers(p):
        return not (p.ack - important.end) & 1 << 31 or \
            any(start < important.end <= end for start, end in p.sacks)
    echo = next((p for p in wire.from_b() if p.time >= important.time and covers(p)), None)
    true(echo, f"{important!r} is acknowledged; saw\n{wire.dump()}")
    within(echo.time - important.time - wire.delay, 0, 5e-6, f"seconds until {echo!r}")


@case("TCP sends a compressed ACK while it queues an important packet: that gets its own",
      connected, cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def ack_was_compressed(wire, client, server):
    # From the fourth packet out of order on, TCP delays ACKs to compress them.  The third block
    # makes it send what it has delayed first, and it forgets that more was to be acknowledged.
    wire.delay = 100e-6     # b delays an ACK by 5 % of its RTT
    peer.exchange(wire, client, server)
    with exchange(wire, """
            > data 1        lost
            > data 2-3
            > data 4        lost
            > data 5-6
            > data 7-9      lost
            > important 10
            ...
            """):
        client.send(b"c" * 10 * MSS[wire.version])
        wire.run(10e-3)
    echoed_at_once(wire, next(p for p in wire.from_a() if p.kind == IMPORTANT))
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("TCP repairs its own direction before it queues an important packet: that gets an ACK",
      connected, cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def ack_was_spent(wire, client, server):
    # All that a says of b's loss, it says in the important packet.
    peer.exchange(wire, client, server)
    wire.mark()
    drop = lose("< data 1")
    wire.rule = lambda p: drop(p) or p.from_a and not p.len
    server.send(b"l" * 5 * MSS[wire.version])
    wire.run(wire.delay * 1.5)
    wire.rule = None
    client.send(b"d" * 1000)
    wire.run(10e-3)
    important = next(p for p in wire.from_a() if p.len)
    equal(important.kind, IMPORTANT, "what a sends")
    true(important.sacks, "it has SACK blocks")
    echoed_at_once(wire, important)


@case("an echo finds a loss, and TCP may send nothing: the clock is an MSS of it", Wire,
      version=(4, 6), tso=False)
def clock_is_an_mss(wire):
    client, sent, x = wire.slow_start(b"m" * 300_000)
    equal(sent[x].kind, IMPORTANT, "the second one")
    # To halve the window, every second packet that has come lets one
    # leave (RFC 6937), the first does: the second is the echo.
    before = len(sent)
    wire.answer(sent[x - 1], CONTROL, ECE)
    equal(len(sent) - before, 1, "packets for the first")
    wire.answer(sent[x - 1], CONTROL, ECE, sent[x])
    equal([(p.seq, p.len, p.kind) for p in sent[before + 1:]],
          [(sent[x - 1].seq, sent[x - 1].len, IMPORTANT)], "for the echo, the lost one")
    counters = wire.a.greenlane()
    equal((counters["ClockMssSent"], counters["ClockByteSent"]), (1, 0), "clocks")
    # struct tcp_info: unacked, sacked, lost, retrans; snd_cwnd
    info = struct.unpack_from("8x24I", client.getsockopt(socket.IPPROTO_TCP, 11, 104))
    flight = info[4] - info[5] - info[6] + info[7]
    equal(info[18], flight - 1, "the window, which the clock has passed")


@case("a retransmission that pacing has delayed leaves behind the last of many clocks: another "
      "clock follows", cc=("tlt_cubic", "tlt_bbr"), gap=(420, 430, 440, 450))
def paced_behind_clock(cc, gap):
    with connected(cc=cc) as (wire, client, server):
        wire.transfer(client, server, 100_000)
        wire.run(1e-3)
        wire.mark()
        first = lose("> data", times=3)
        clocks = []

        # The first three, and later all data that is not important.
        def rule(p):
            if p.kind == CLOCK:
                clocks.append(p)
            return first(p) or p.kind == DATA and len(clocks) > 8
        wire.rule = rule
        client.send(b"p" * 10 * MSS[wire.version])
        # From here on a packet each @gap microseconds; a clock takes 25.
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(1500 / gap * 1e6))
        wire.run(100e-3)
        equal(len(server.recv(1 << 20)), 10 * MSS[wire.version], "all arrives")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("an RTO arms the sender again: its retransmission is important", connected, version=(4, 6))
def rto_rearms(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(10e-3)
    wire.mark()
    wire.rule = lambda p: True
    client.send(b"y" * SEGMENTS * MSS[wire.version])
    wire.run(30e-3)
    rtos = wire.a.netstat("TCPTimeouts")
    true(rtos >= 1, "there was an RTO")
    equal(wire.a.greenlane()["RearmedByRto"], rtos, "RearmedByRto")
    wire.rule = None
    wire.mark()
    wire.run(100e-3)
    equal([p.kind for p in wire.from_a() if p.len][0], IMPORTANT,
          "the next RTO's retransmission")
    equal(len(server.recv(1 << 20)), SEGMENTS * MSS[wire.version], "all arrived")


@case("reordering the wire does, TCP bears: no byte is lost or wrong", connected, version=(4, 6))
def reordered(wire, client, server):
    late = lose("> data", "> important", "< control", every=7)
    # Late in place of lost.
    wire.rule = lambda p: setattr(wire, "delay", 40e-6 if late(p) else 10e-6)
    true(wire.transfer(client, server, 500_000, seconds=1.0), "arrives")
    true(late.dropped, "something was late")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


def undone(wire, *late):
    """Of a first window only the important packet arrives, and then late ones, whose number is
    given, the first among them: TCP undoes its recovery."""
    # A round trip of some milliseconds, TCP's timestamps', which tell late from lost.
    wire.delay = 2e-3
    client, server = wire.connect()
    with exchange(wire, """
            > data 1-9      lost
            > important 10
            < control
            > important 1   lost
            ...
            """):
        client.send(pattern(14000))
        true(wire.run(20e-3, lambda: len(wire.from_a()) > 10), "one is sent again")
    for number in late:
        wire.inject(wire.b, wire.from_a()[number - 1].raw)
    wire.run(60e-3)
    equal(wire.a.netstat("TCPPartialUndo"), 1, "TCPPartialUndo")
    equal(len(server.recv(20_000)), 14000, "all arrives")
    equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
          "RTOs, probes")


@case("TCP undoes a recovery: what is lost and was not sent again is not forgotten", Wire,
      version=(4, 6), rto_min="200ms")
def forgotten(wire):
    undone(wire, 1)


@case("TCP undoes a recovery, and a SACK block splits what it has forgotten", Wire,
      version=(4, 6), rto_min="200ms")
def forgotten_and_split(wire):
    undone(wire, 1, 3)


if __name__ == "__main__":
    tap.main()
