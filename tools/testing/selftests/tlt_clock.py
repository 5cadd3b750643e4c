#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""net.ipv4.tlt_clock: the payload of a clock.

	a (client, sends) ---- wire (this program) ---- b (server)

0, an MSS of lost data or else a byte; 1, a byte; 2, an MSS of unacknowledged data, which b
accepts if it is the data that b waits for.
"""
import contextlib
import socket

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, DATA, IMPORTANT
from lab.tap import case, equal, true, using, within
from lab.wire.packet import ECE, FIN, data, tsval
from lab.wire.sockopt import YES, info
from lab.wire.transcript import lose
from lab.wire.wire import MSS as PACKET
from lab.wire.wire import Wire, connected, pattern

ADAPTIVE, BYTE, MSS = range(3)
# Data without an important packet is followed by a clock in this time, s.
SLOW = 200e-6
OPTION = 8              # bytes of our option, in a packet that must not be longer than others


@contextlib.contextmanager
def clocked(mode, **options):
    """A wire on which a has this tlt_clock."""
    with Wire(**options) as wire:
        wire.a.sysctl("net.ipv4.tlt_clock", mode)
        yield wire, mode


everywhere = using(clocked, mode=(ADAPTIVE, BYTE, MSS), version=(4, 6))


def counted(wire, packets, mss):
    """Check the counters of these clocks in /proc/net/greenlane."""
    counters = wire.a.greenlane()
    equal(counters["ClockMssSent" if mss else "ClockByteSent"], len(packets),
          "counter of these clocks")
    equal(counters["ClockByteSent" if mss else "ClockMssSent"], 0, "counter of other clocks")
    equal(counters["ClockSentBytes"], sum(p.len for p in packets), "ClockSentBytes")


@case("adaptive by default; only 0, 1 and 2 are accepted; each namespace has its own", Wire)
def setting(wire):
    equal(wire.a.sysctl("net.ipv4.tlt_clock"), "0", "tlt_clock by default")
    for value in (1, 2):
        wire.a.sysctl("net.ipv4.tlt_clock", value)
        for wrong in (-1, 3, 256, 1 << 32, "byte"):
            try:
                wire.a.sysctl("net.ipv4.tlt_clock", wrong)
                raise tap.Failed(f"{wrong} is accepted")
            except OSError:
                pass
        equal(wire.a.sysctl("net.ipv4.tlt_clock"), str(value), "tlt_clock after invalid values")
    equal(wire.b.sysctl("net.ipv4.tlt_clock"), "0", "tlt_clock of the other namespace")


@everywhere("no known loss: a byte, a byte, an MSS; from the first unacknowledged byte", tso=False)
def nothing_lost(wire, mode):
    payload = pattern(300_000)
    _client, sent, x = wire.slow_start(payload)
    # See tlt_marks, clock_content: the echo permits no packet.
    wire.answer(sent[x - 1], CONTROL)
    wire.answer(sent[x], CONTROL, ECE)
    before = len(sent)
    wire.answer(sent[x + 1], CONTROL, ECE)
    length = sent[x + 1].len - OPTION if mode == MSS else 1
    equal([(p.kind, p.seq, p.len) for p in sent[before:]],
          [(CLOCK, sent[x + 1].seq, length)], f"mode {mode}, packets that the echo causes")
    clock = sent[-1]
    offset = clock.seq - sent[0].seq
    equal(clock.payload, payload[offset:offset + length], "bytes of the clock")
    equal(clock.checksum_ok(), True, "the clock's checksum is valid")
    counted(wire, [clock], mode == MSS)


@everywhere("lost data while the window permits no packet: an MSS of it, a byte, an MSS of it",
            tso=False)
def lost(wire, mode):
    _client, sent, x = wire.slow_start(b"m" * 300_000)
    # See tlt_loss, clock_is_an_mss.
    wire.answer(sent[x - 1], CONTROL, ECE)
    before = len(sent)
    wire.answer(sent[x - 1], CONTROL, ECE, sent[x])
    expected = (sent[x - 1].seq, 1, CLOCK) if mode == BYTE else \
        (sent[x - 1].seq, sent[x - 1].len, IMPORTANT)
    equal([(p.seq, p.len, p.kind) for p in sent[before:before + 1]], [expected],
          f"mode {mode}, packet that the echo causes")
    counted(wire, sent[before:before + 1], mode != BYTE)


def slow(wire):
    """Data and clocks are late by SLOW."""
    def rule(p):
        p.late = SLOW * bool(p.from_a and p.len)
    wire.rule = rule


def unfinished(wire, client, seconds):
    """Send three packets in the middle of a write, which a clock follows."""
    client.send(pattern(3 * PACKET[wire.version] + 10), socket.MSG_MORE)
    wire.run(seconds)


@case("the clocks of a connection are numbered, and an answer has its clock's number", connected,
      version=(4, 6), tso=False)
def numbered(wire, client, server):
    slow(wire)
    for _ in range(300):
        unfinished(wire, client, 1e-3)
        wire.receive(server, 3 * PACKET[wire.version])
    clocks, answers = ([p.field for p in wire.seen if p.kind == kind]
                       for kind in (CLOCK, CLOCK_ECHO))
    true(len(clocks) > 256, f"{len(clocks)} clocks")
    equal(clocks, [number % 256 for number in range(clocks[0], clocks[0] + len(clocks))], "numbers")
    equal(answers, clocks, "numbers of the answers")


@case("the answer of an earlier clock, which arrives while the next one is in flight, is no echo",
      connected, version=(4, 6), tso=False)
def earlier(wire, client, _server):
    late = iter([1.1e-3])

    def rule(p):
        p.late = next(late, 0) if p.kind == CLOCK_ECHO else SLOW * bool(p.from_a and p.len)
    wire.rule = rule
    unfinished(wire, client, 1.2e-3)
    before = info(client)["echoes"]
    unfinished(wire, client, 200e-6)
    equal([p.kind for p in wire.from_a()].count(CLOCK), 2, "clocks")
    equal(info(client)["echoes"], before, "echoes")


@case("the first number of a connection is random: answers of its last transport may be in flight", Wire,
      tso=False)
def first_number(wire):
    slow(wire)
    for _ in range(8):
        client, _server = wire.connect()
        unfinished(wire, client, 1e-3)
    numbers = {p.sport: p.field for p in reversed(wire.seen) if p.kind == CLOCK}
    equal(len(numbers), 8, "connections with a clock")
    true(len(set(numbers.values())) > 1, f"numbers: {numbers.values()}")


def last_unacked(wire, count, fin=False, window=60000):
    """Leave `count` bytes unacknowledged behind the first window, whose echo advertises a window;
    returns (clocks that a sends then, the first unacknowledged byte)."""
    wire.a.sysctl("net.ipv4.tcp_timestamps", 0)
    client, _ = wire.connect(TCP_NODELAY=1)
    wire.mark()
    wire.rule = lambda p: True
    client.send(pattern(10 * (1500 - 40 if wire.version == 4 else 1440)))
    client.send(pattern(count))
    wire.run(2e-6)
    sent = wire.seen
    equal([p.kind for p in sent], [DATA] * 9 + [IMPORTANT], "the first window")
    wire.answer(sent[9], CONTROL)
    behind = sent[10:]
    equal(sum(p.len for p in behind), count, "bytes behind it")
    if fin:
        client.close()
        wire.run(2e-6)
        equal(sent[-1].flags & FIN, FIN, "FIN")
    before = len(sent)
    wire.answer(behind[0], CONTROL, window=window)
    return [p for p in sent[before:] if p.kind == CLOCK], behind[0].seq


@case("an MSS: only bytes that were sent, without a FIN, within the receiver's window",
      version=(4, 6), end=((100, False, 60000, 100), (100, True, 60000, 100),
                           (1000, False, 2, 256), (1000, False, 0, None)))
def no_more(version, end):
    count, fin, window, length = end
    with clocked(MSS, version=version, tso=False) as (wire, _):
        clocks, una = last_unacked(wire, count, fin, window)
        equal([(p.seq, p.len) for p in clocks], [(una, length)] if length else [],
              f"{count} bytes, FIN {fin}, window {window}: clocks")


@everywhere("an MSS: of several short packets, up to bytes that have been SACKed", mode=(MSS,))
def several(wire, _mode):
    wire.a.sysctl("net.ipv4.tcp_timestamps", 0)
    client, _ = wire.connect(TCP_NODELAY=1)
    wire.mark()
    wire.rule = lambda p: True
    payload = pattern(300)
    for at in range(0, 300, 100):
        client.send(payload[at:at + 100])
        wire.run(2e-6)
    sent = wire.seen
    equal([(p.len, p.kind) for p in sent],
          [(100, IMPORTANT), (100, DATA), (100, DATA)], "length and kind of three packets")
    wire.answer(sent[1], CONTROL)
    equal([(p.kind, p.payload) for p in sent[3:]], [(CLOCK, payload[100:])],
          "the clock: bytes of two packets")
    # The last packet is SACKed: the second is lost, and retransmitted.
    wire.answer(sent[1], CONTROL, sack=sent[2])
    equal([(p.kind, p.seq) for p in sent[4:]], [(DATA, sent[1].seq)], "the retransmission")
    wire.answer(sent[1], CLOCK_ECHO, sack=sent[2])
    equal([(p.kind, p.payload) for p in sent[5:]], [(CLOCK, payload[100:200])],
          "the clock: bytes of one packet")


@everywhere("b accepts an MSS that it waits for, and its ACK is the answer; b drops a byte")
def repairs(wire, mode):
    client, server = wire.connect()
    mss = PACKET[wire.version]
    wire.mark()
    # The first window arrives; of the second only the clock after it does.
    wire.rule = lose("> data 11-13")
    true(wire.transfer(client, server, 13 * mss, seconds=3e-3), "arrives")
    sent = [p for p in data(wire.from_a()) if p.kind != CLOCK]
    clock = next(p for p in wire.from_a() if p.kind == CLOCK)
    answer = next(p for p in wire.from_b() if p.kind == CLOCK_ECHO)
    equal((clock.seq, clock.len), (sent[10].seq, mss - OPTION if mode == MSS else 1),
          "sequence number and length of the clock")
    equal(answer.ack, clock.end if mode == MSS else clock.seq, "acknowledgment number of its echo")
    # All bytes but those of the clock, each once.
    again = clock.end if mode == MSS else clock.seq
    equal(min(p.seq for p in sent[13:]), again, "first sequence number that TCP retransmits")
    equal(sum(p.len for p in sent[13:]), sent[12].end - again, "bytes that TCP retransmits")
    equal(wire.a.netstat("TCPDSACKRecv"), 0, "D-SACKs")


@everywhere("b answers a clock whose bytes it already has, without a D-SACK")
def of_no_use(wire, mode):
    client, server = wire.connect()
    mss = PACKET[wire.version]
    wire.mark()
    true(wire.transfer(client, server, 13 * mss), "arrives")
    wire.run(1e-3)
    clocks = [p for p in data(wire.from_a()) if p.kind == CLOCK]
    equal([p.len for p in clocks], [mss - OPTION if mode == MSS else 1], "lengths of the clocks")
    equal([p.kind for p in wire.from_b()].count(CLOCK_ECHO), 1, "answers")
    equal(wire.b.netstat("TCPDSACKOldSent"), 0, "D-SACKs")
    equal(wire.a.netstat("TCPFastRetrans"), 0, "retransmissions")
    counted(wire, clocks, mode == MSS)


@everywhere("every second unimportant packet is lost: 200 kB arrive without a timer")
def lossy(wire, mode):
    client, server = wire.connect()
    wire.mark()
    wire.rule = lose("> data", every=2)
    true(wire.transfer(client, server, 200_000, seconds=20e-3), f"mode {mode}: arrives")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")
    true(any(p.dropped for p in wire.seen), "packets were dropped")
    wire.rule = None
    wire.run(50e-3)
    true(wire.a.greenlane()["ClockSentBytes"] >= sum(
        p.len for p in wire.from_a() if p.kind == CLOCK), "ClockSentBytes")


def lose_first(wire, client, lost):
    """Send until the first clock, or its echo, is lost; no other packet is."""
    gone = []

    def rule(p):
        if gone or p.kind != {"clock": CLOCK, "its echo": CLOCK_ECHO}[lost]:
            return False
        gone.append(p)
        return True
    wire.rule = rule
    client.send(pattern(60_000))
    wire.run(1e-3, lambda: gone)
    true(gone, f"{lost} is lost")


@case("a clock is lost, or its echo, and no other packet: later bursts have important packets",
      version=(4, 6), lost=("clock", "its echo"))
def lost_clock(version, lost):
    with Wire(version=version) as wire:
        client, server = wire.connect()
        lose_first(wire, client, lost)
        # At once, while data is in flight: otherwise a new burst would begin.
        wire.mark()
        left, got = 2_000_000, 0
        while left or got < 2_060_000:
            with contextlib.suppress(BlockingIOError):
                left -= client.send(bytes(min(left, 1 << 20))) if left else 0
            wire.run(5e-6)
            with contextlib.suppress(BlockingIOError):
                got += len(server.recv(1 << 20))
        protected = [p for p in wire.from_a() if p.kind in (IMPORTANT, CLOCK)]
        true(len(protected) >= 3, f"important packets and clocks among {len(wire.from_a())}:"
             f" {len(protected)}")
        equal(wire.a.greenlane()["Fallback"], 0, "Fallback")


@case("the answer to a clock that arrives late has a current time stamp", version=(4, 6))
def late_answer(version):
    with Wire(version=version) as wire:
        client, server = wire.connect()
        clocks = []

        def rule(p):
            if p.kind == CLOCK:
                clocks.append(p)
            return clocks
        wire.rule = rule
        client.send(pattern(60_000))
        wire.run(1e-3, lambda: clocks)
        wire.run(50e-3)
        before = wire.from_b()[-1]
        wire.mark()
        wire.inject(wire.b, clocks[0])
        wire.run(1e-3)
        answer = wire.from_b()[0]
        equal(answer.kind, CLOCK_ECHO, "kind of the answer")
        within(tsval(answer) - tsval(before), 50, 53, "difference of the time stamps, ms")


@case("after a lost clock and an outage, the sender still marks packets", version=(4, 6),
      lost=("clock", "its echo"))
def lost_clock_outage(version, lost):
    with Wire(version=version) as wire:
        client, server = wire.connect()
        lose_first(wire, client, lost)
        client.send(pattern(90_000))
        wire.run(40e-6)
        wire.rule = lambda p: True
        wire.run(20e-3)
        wire.rule = None
        equal(len(wire.receive(server, 150_000, 3)), 150_000, "bytes")
        wire.run(1e-3)
        true(wire.a.netstat("TCPTimeouts"), "TCPTimeouts: at least one")
        equal((info(client)["flags"], info(client)["peer"]), (0, YES), "flags, peer")
        wire.mark()
        true(wire.transfer(client, server, 100_000), "arrives")
        true(any(p.kind == IMPORTANT for p in wire.from_a()), "important packets after the outage")


if __name__ == "__main__":
    tap.main()
