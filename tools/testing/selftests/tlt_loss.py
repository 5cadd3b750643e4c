#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Losses that TCP repairs by a timer are repaired without one.

	a (client, sends) ---- wire (this program, loses) ---- b (server)

Unimportant packets may be lost, as in a colour-aware switch; important ones pass.  RTO_min is
4 ms, and each transfer must take less.  lab/wire/transcript.py defines the notation of the
exchanges.
"""
import contextlib
import socket
import struct
import time
import types

from lab import tap
from lab.codepoints import CLOCK, CONTROL, DATA, IMPORTANT
from lab.tap import case, equal, true, using, within
from lab.wire import peer
from lab.wire.packet import ECE
from lab.wire.sockopt import GREENLANE_TLT, SO_MAX_PACING_RATE, ip_level, min_rtt
from lab.wire.transcript import exchange, lose
from lab.wire.wire import MSS, Wire, connected, pattern

SEGMENTS = 13           # of a transfer: an initial window of ten, and three more


@contextlib.contextmanager
def without_timer(**options):
    """A connection that loses packets; checks that neither an RTO nor a TLP occurs."""
    with Wire(**options) as wire:
        yield wire, *wire.connect()
        wire.rule = None
        wire.run(50e-3)
        for counter in ("TCPTimeouts", "TCPLossProbes"):
            equal(wire.a.netstat(counter), 0, counter)
        true(any(p.dropped for p in wire.seen), "packets were lost")


everywhere = using(without_timer, cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), version=(4, 6))


def joined(first, last):
    """A SACK block from the begin of one packet to the end of another."""
    return types.SimpleNamespace(seq=first.seq, end=last.end)


def arrives(wire, client, server, count=None):
    """Check that a transfer takes 3 ms at most, less than any timer."""
    true(wire.transfer(client, server, count or SEGMENTS * MSS[wire.version], seconds=3e-3),
         f"all arrives within 3 ms; saw\n{wire.dump()}")


@everywhere("one packet is lost in the middle")
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


PHASES = 8      # of a microsecond, in which the clock of a guest may have only four steps


@case("ACKs arrive together: an ACK of data that left just before a retransmission leaves it alone",
      cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), version=(4, 6))
def one_microsecond(cc, version):
    with Wire(cc=cc, version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_timestamps", 0)
        wire.a.sysctl("net.ipv4.tlt_crowd", 0)
        for phase in range(PHASES):
            wire.rule = None
            client, _ = wire.connect(port=1000 + phase)
            wire.run(phase / PHASES * 1e-6)
            wire.mark()
            wire.rule = lambda p: True
            client.send(pattern(100_000))
            wire.run(2e-6)
            sent, second = wire.seen, wire.seen[1]
            # The first ACK permits new data; the second reports packet 2 lost.
            wire.answer(second, CONTROL, seconds=0)
            wire.answer(second, CONTROL, sack=sent[2])
            equal([p.seq for p in sent[10:]], [sent[9].end, sent[10].end, second.seq],
                  "two packets of new data, packet 2")
            wire.run(20e-6)
            for new in sent[10:12]:
                wire.answer(second, CONTROL, sack=new)
            equal([p.seq for p in sent].count(second.seq), 2, "departures of packet 2")


@case("ACKs arrive together: a retransmission that is lost is repeated when the next one is acked")
def lost_in_that_microsecond():
    lowered, restored = [], []
    with Wire(tso=False) as wire:
        wire.a.sysctl("net.ipv4.tcp_timestamps", 0)
        wire.a.sysctl("net.ipv4.tlt_crowd", 0)
        for phase in range(2 * PHASES):
            wire.rule = None
            client, _ = wire.connect(port=1000 + phase)
            wire.run(phase / PHASES * 1e-6)
            wire.mark()
            wire.rule = lambda p: True
            client.send(pattern(12 * MSS[4]))
            # The first ACK is to have the minimum RTT.
            wire.run((min_rtt(client) - 4) * 1e-6)
            sent, second = wire.seen, wire.seen[1]
            wire.answer(second, CONTROL, seconds=0)
            wire.answer(second, CONTROL, sack=joined(sent[3], sent[9]), seconds=0)
            wire.run(0)
            equal([p.seq for p in sent[10:]],
                  [sent[9].end, sent[10].end, sent[1].seq, sent[2].seq],
                  "two packets of new data, two retransmissions")
            rtt = sent[10].time - sent[0].time
            # RACK ignores the ACK of a retransmission after less than the minimum RTT, in whole
            # microseconds.
            wire.run(sent[13].time + rtt + 1e-6 - time.clock_gettime(time.CLOCK_MONOTONIC))
            for first, last in ((3, 10), (3, 11), (2, 11)):
                wire.answer(second, CONTROL, sack=joined(sent[first], sent[last]), seconds=0)
            true(wire.run(1e-3, lambda: len(sent) > 14), "packet 2 leaves again within 1 ms")
            lowered.append(rtt * 1e6 - min_rtt(client))
            for end in (sent[11].end, sent[11].end + 1):
                wire.answer(types.SimpleNamespace(
                    sport=second.sport, dport=second.dport, ack=second.ack, seq=end), CONTROL)
                client.send(b"x")
            restored.append(rtt * 1e6 - min_rtt(client))
    # One microsecond less than TCP measures, which is half a one too much: it rounds departures.
    within(sum(lowered) / len(lowered), 0.25, 0.75, "microseconds that the minimum RTT is too low")
    within(sum(restored) / len(restored), -0.75, -0.25, "the same after the next ACK")


@everywhere("a retransmission is lost repeatedly")
def lost_retransmission(wire, client, server):
    wire.mark()
    wire.rule = lose("> data 1-5", times=3)
    arrives(wire, client, server)


@everywhere("every unimportant packet is lost: recovery at one packet a round trip")
def all_unimportant(wire, client, server):
    for _ in range(2):
        wire.mark()
        wire.rule = lose("> data")
        arrives(wire, client, server)
        wire.run(50e-3)


@everywhere("every second unimportant packet of 200 kB is lost", tso=(True, False))
def every_second(wire, client, server):
    wire.mark()
    wire.rule = lose("> data", every=2)
    arrives(wire, client, server, 200_000)


@case("an echo detects losses of packets sent before it, not after", connected,
      version=(4, 6))
def found_by_echo(wire, client, server):
    # The first window arrives; the second is lost, except the clock after it: only its echo
    # reports the losses.
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
    true(wire.a.greenlane()["LossByEcho"] > 0, "LossByEcho: more than 0")


def times_sent(wire, client, server):
    """Lose the first packet, and all packets of b but the first SACK; returns how often the first
    packet is sent."""
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
    equal(len(server.recv(1 << 20)), SEGMENTS * MSS[wire.version], "bytes that arrive")
    return times


@case("duplicate threshold of one: the first SACK causes a retransmission, before the echo", Wire,
      version=(4, 6))
def one_duplicate(wire):
    equal(times_sent(wire, *wire.connect()), 2, "transmissions within 200 us")


@case("GREENLANE_TLT=0 restores the base's duplicate threshold", connected, version=(4, 6))
def three_duplicates(wire, client, server):
    client.setsockopt(ip_level(client), GREENLANE_TLT, 0)
    equal(times_sent(wire, client, server), 1, "transmissions within 200 us")


@case("an echo that acknowledges new data detects losses, too, at once", connected, version=(4, 6))
def echo_moves_una(wire, client, server):
    # Of the second window's three packets the first arrives, and only the clock's echo
    # acknowledges it.
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
    """Check that an ACK of the important packet leaves when that packet arrives."""
    def covers(p):
        return not (p.ack - important.end) & 1 << 31 or \
            any(start < important.end <= end for start, end in p.sacks)
    echo = next((p for p in wire.from_b() if p.time >= important.time and covers(p)), None)
    true(echo, f"{important!r} is acknowledged; saw\n{wire.dump()}")
    within(echo.time - important.time - wire.delay, 0, 5e-6, f"time until {echo!r}, s")


@case("TCP sends a compressed ACK while it queues an important packet: the packet has its own ACK",
      connected, cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def ack_was_compressed(wire, client, server):
    # From the fourth packet out of order on, TCP delays ACKs to compress them.  A third SACK block
    # makes it send the delayed ACK first, which clears the ACK that is due for this packet.
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


@case("TCP retransmits before it queues an important packet: the packet is still acknowledged",
      connected, cc=("tlt_reno", "tlt_dctcp"), version=(4, 6))
def ack_was_spent(wire, client, server):
    # Only a's important packet reports b's loss.
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
    equal(important.kind, IMPORTANT, "kind of a's packet")
    true(important.sacks, "the packet has SACK blocks")
    echoed_at_once(wire, important)


@case("an echo detects a loss, and the window permits no packet: the clock is an MSS of it", Wire,
      version=(4, 6), tso=False)
def clock_is_an_mss(wire):
    client, sent, x = wire.slow_start(b"m" * 300_000)
    equal(sent[x].kind, IMPORTANT, "kind of the second packet")
    # To halve the window, every second acknowledged packet permits one packet (RFC 6937); the
    # first does, so the second, which is the echo, does not.
    before = len(sent)
    wire.answer(sent[x - 1], CONTROL, ECE)
    equal(len(sent) - before, 1, "packets that the first ACK permits")
    wire.answer(sent[x - 1], CONTROL, ECE, sent[x])
    equal([(p.seq, p.len, p.kind) for p in sent[before + 1:]],
          [(sent[x - 1].seq, sent[x - 1].len, IMPORTANT)], "packet that the echo causes")
    counters = wire.a.greenlane()
    equal((counters["ClockMssSent"], counters["ClockByteSent"]), (1, 0),
          "ClockMssSent, ClockByteSent")
    # struct tcp_info: unacked, sacked, lost, retrans; snd_cwnd
    info = struct.unpack_from("8x24I", client.getsockopt(socket.IPPROTO_TCP, 11, 104))
    flight = info[4] - info[5] - info[6] + info[7]
    equal(info[18], flight - 1, "the window, which the clock has exceeded")


@case("pacing delays a retransmission until after the last of many clocks: another clock follows",
      cc=("tlt_cubic", "tlt_bbr"), gap=(420, 430, 440, 450))
def paced_behind_clock(cc, gap):
    with connected(cc=cc) as (wire, client, server):
        wire.transfer(client, server, 100_000)
        wire.run(1e-3)
        wire.mark()
        first = lose("> data", times=3)
        clocks = []

        # Lose the first three packets of data, and later all data that is not important.
        def rule(p):
            if p.kind == CLOCK:
                clocks.append(p)
            return first(p) or p.kind == DATA and len(clocks) > 8
        wire.rule = rule
        client.send(b"p" * 10 * MSS[wire.version])
        # From here on one packet each @gap us; a clock takes 25 us.
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(1500 / gap * 1e6))
        wire.run(100e-3)
        equal(len(server.recv(1 << 20)), 10 * MSS[wire.version], "bytes that arrive")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("fq holds a message's last packets while the echo of the one before arrives: a clock follows them, and"
      " no other overtakes them", cc=("tlt_cubic", "tlt_reno", "tlt_dctcp"), mbit=(10, 50))
def behind_fq(cc, mbit):
    with Wire(cc=cc) as wire:
        wire.a.sysctl("net.ipv4.tcp_early_retrans", 0)
        wire.a.tc("qdisc replace dev tun0 root fq")
        client, server = wire.connect()
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, mbit * 125_000)
        for packets in range(5, 15):
            wire.transfer(client, server, 1)
            wire.run(5e-3)
            wire.mark()
            count = packets * MSS[wire.version]
            wire.rule = lose(f"> data {packets - 1}-{packets}")
            true(wire.transfer(client, server, count, seconds=0.1), "arrives")
            wire.rule = None
            within(len([p for p in wire.from_a() if p.says == CLOCK]), 0, packets // 2,
                   f"clocks of a message of {packets} packets")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("the retransmission of an RTO is important", connected, version=(4, 6))
def rto_rearms(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(10e-3)
    wire.mark()
    wire.rule = lambda p: True
    client.send(b"y" * SEGMENTS * MSS[wire.version])
    wire.run(30e-3)
    rtos = wire.a.netstat("TCPTimeouts")
    true(rtos >= 1, "TCPTimeouts: at least one")
    equal(wire.a.greenlane()["RearmedByRto"], rtos, "RearmedByRto")
    wire.rule = None
    wire.mark()
    wire.run(100e-3)
    equal([p.kind for p in wire.from_a() if p.len][0], IMPORTANT,
          "kind of the next RTO's retransmission")
    equal(len(server.recv(1 << 20)), SEGMENTS * MSS[wire.version], "bytes that arrive")


@case("the wire reorders packets: every byte arrives, without an RTO", connected, version=(4, 6))
def reordered(wire, client, server):
    late = lose("> data", "> important", "< control", every=7)
    # Packets are late instead of lost.
    wire.rule = lambda p: setattr(wire, "delay", 40e-6 if late(p) else 10e-6)
    true(wire.transfer(client, server, 500_000, seconds=1.0), "arrives")
    true(late.dropped, "packets were late")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


def undone(wire, *late):
    """Of a first window only the important packet arrives in time; the packets with the numbers
    `late`, the first among them, arrive late: TCP undoes its recovery."""
    # A round trip of some ms, the unit of TCP's time stamps, by which TCP detects late packets.
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
        true(wire.run(20e-3, lambda: len(wire.from_a()) > 10), "one packet is retransmitted")
    for number in late:
        wire.inject(wire.b, wire.from_a()[number - 1].raw)
    wire.run(60e-3)
    equal(wire.a.netstat("TCPPartialUndo"), 1, "TCPPartialUndo")
    equal(len(server.recv(20_000)), 14000, "bytes that arrive")
    equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
          "RTOs, TLPs")


@case("TCP undoes a recovery: lost packets without a retransmission are still repaired", Wire,
      version=(4, 6), rto_min=200)
def forgotten(wire):
    undone(wire, 1)


@case("TCP undoes a recovery, and a SACK block splits the lost packets: they are repaired", Wire,
      version=(4, 6), rto_min=200)
def forgotten_and_split(wire):
    undone(wire, 1, 3)


if __name__ == "__main__":
    tap.main()
