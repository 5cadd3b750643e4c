#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A process owns the socket when a marked packet arrives: it is still handled.

	a (client) ---- wire (this program) ---- b (server)

gl_hold.ko owns one of the sockets for some milliseconds, in a second thread,
while packets arrive for it.
"""
import glob
import socket
import time

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, CREDIT, DATA, IMPORTANT, REQUEST, SHARE
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import ECE
from lab.wire.hold import hold, owned_again_and_again, run_owned
from lab.wire.transcript import lose
from lab.wire.wire import Wire, connected, pattern


@case("the receiver is owned when important data arrives: the release acknowledges it", connected,
      version=(4, 6))
def receiver_important(wire, client, server):
    wire.mark()
    holder = hold(server, 2)
    wire.run(100e-6)
    client.send(b"i" * 100)
    wire.run(1e-3)
    equal(wire.from_b(), [], "packets of b while its socket is owned")
    wire.run(2e-3)
    holder.join()
    equal([(p.kind, p.ack) for p in wire.from_b()], [(CONTROL, wire.from_a()[0].end)], "ACKs")
    equal(wire.b.greenlane()["EchoSent"], 1, "EchoSent")
    equal(wire.a.greenlane()["EchoReceived"], 1, "EchoReceived")
    true(wire.from_b()[0].time - wire.from_a()[0].time < 2.2e-3,
         "the ACK leaves within 2.2 ms, at the release")


@case("the receiver is owned while a window arrives: the release acknowledges its important packet",
      version=(4, 6))
def receiver_window(version):
    # TCP acknowledges each range between two lost packets, the first before it has received the
    # important packet.
    for lost in ((), (5,), (1, 3), (2, 4, 6), (1, 3, 5, 7, 9)):
        with Wire(version=version) as wire:
            # No clock while the receiver is owned.
            wire.a.sysctl("net.ipv4.tlt_crowd", 0)
            client, server = wire.connect()
            wire.mark()
            wire.rule = lose(*(f"> * {number}" for number in lost))
            holder = hold(server, 2)
            wire.run(100e-6)
            client.send(pattern(14000))
            wire.run(4e-3)
            holder.join()
            # After a delayed ACK, TCP would have sent a TLP or had an RTO.
            important = next(p for p in wire.from_a() if p.kind == IMPORTANT)
            echo = next(p for p in wire.from_b() if p.ack >= important.end or any(
                right >= important.end for _, right in p.sacks))
            true(echo.time - important.time < 2.2e-3, f"packets {lost} lost: {echo!r} of"
                 f" {important!r}")
            equal((wire.b.greenlane()["EchoSent"], wire.a.greenlane()["EchoReceived"]),
                  (sum(p.kind == IMPORTANT for p in wire.from_a()),) * 2,
                  f"packets {lost} lost: EchoSent, EchoReceived")
            equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  f"packets {lost} lost: RTOs, TLPs")
            equal(len(wire.rule.dropped), len(lost), "lost packets")


@case("from the backlog: important data in the first of four SACK blocks is acknowledged, though an"
      " ACK has room for three", connected, version=(4, 6))
def four_holes(wire, client, server):
    rest = Resting(wire, client, server)
    wire.rule = lambda p: True      # ACKs of forged packets must not reach a
    holder = hold(server, 2)
    wire.run(100e-6)
    for hole, dscp in enumerate((IMPORTANT, DATA, DATA, DATA)):
        wire.inject(wire.b, rest.from_a(None, b"h" * 100, 1000 * (hole + 1), dscp=dscp))
    wire.run(5e-3)
    holder.join()
    end = rest.data.end + 1100
    true([p for p in wire.from_b() if any(right == end for _, right in p.sacks)],
         f"an ACK with the important packet; saw\n{wire.dump()}")


@case("the sender is owned when the echo arrives: losses are repaired without a timer", connected,
      version=(4, 6))
def sender_echo(wire, client, server):
    wire.mark()
    wire.rule = lose("> data 1-9")      # the window without the important packet
    client.send(b"s" * 14000)
    wire.run(5e-6)
    holder = hold(client, 1)
    wire.run(3e-3)
    holder.join()
    wire.run(1e-3)
    equal(len(server.recv(20_000)), 14000, "bytes that arrive")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")
    equal(wire.a.netstat("TCPLossProbes"), 0, "TCPLossProbes")


@case("the receiver is owned when a clock arrives: one answer, at the release", connected)
def receiver_clock(wire, client, server):
    wire.a.sysctl("net.ipv4.tlt_crowd", 0)
    wire.transfer(client, server, 1000)
    wire.run(1e-3)
    wire.mark()
    state = {"holder": None, "n": 0}

    # Lose the second window's data, so that a clock follows, and own the receiver when the clock
    # arrives.
    def rule(p):
        state["n"] += bool(p.from_a and p.len and p.kind == DATA)
        if p.from_a and p.kind == CLOCK and state["holder"] is None:
            state["holder"] = hold(server, 1)
        return p.from_a and p.len and p.kind == DATA and 9 < state["n"] < 14
    wire.rule = rule
    # not transfer(): its recv() would wait for the owner
    client.send(b"c" * 13 * 1448)
    wire.run(10e-3)
    true(state["holder"] is not None, "a clock was sent")
    state["holder"].join()
    equal(len(server.recv(20_000)), 13 * 1448, "bytes that arrive")
    clocks = [p for p in wire.from_a() if p.kind == CLOCK]
    echoes = [p for p in wire.from_b() if p.kind == CLOCK_ECHO]
    equal([p.field for p in echoes], [p.field for p in clocks], "numbers of clocks and echoes")
    true(wire.b.greenlane()["KicksOwned"] > 0, "KicksOwned: at least one")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


class Resting:
    """A connection at rest that has sent data, and functions that forge its next packets."""

    def __init__(self, wire, client, server):
        self.wire, self.client, self.server = wire, client, server
        wire.transfer(client, server, 1000)
        wire.run(1e-3)
        self.data = [p for p in wire.from_a() if p.len][-1]
        wire.mark()

    def from_a(self, says=None, payload=b"", seq=0, **fields):
        """A packet to b, with a's next sequence number plus seq."""
        p, wire = self.data, self.wire
        return pkt.make(wire.version, wire.address(wire.a), wire.address(wire.b), p.sport,
                        p.dport, p.end + seq, p.ack, payload=payload,
                        **{"dscp": says or 0, "options": pkt.option(says) if says else b"",
                           **fields})

    def clock(self):
        """A clock with the last byte."""
        return self.from_a(CLOCK, self.data.payload[-1:], -1)

    def from_b(self, says, *words):
        """A pure ACK to a."""
        p, wire = self.data, self.wire
        return pkt.make(wire.version, wire.address(wire.b), wire.address(wire.a), p.dport,
                        p.sport, p.ack, p.end, dscp=says, options=pkt.option(says, *words))


def kworkers():
    """Number of kworkers."""
    found = 0
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="ascii") as file:
                found += file.read().startswith("kworker")
        except OSError:
            pass            # it has just ended
    return found


@case("5000 clocks arrive while a process owns the socket: one answer", connected,
      version=(4, 6))
def many_clocks(wire, client, server):
    count = 5000
    rest = Resting(wire, client, server)
    holder = hold(server, 5)
    wire.run(100e-6)
    workers = kworkers()
    for _ in range(count):
        wire.inject(wire.b, rest.clock())
    wire.run(100e-6)
    within(kworkers(), 0, workers, "kworkers")
    equal(wire.from_b(), [], "packets of b while its socket is owned")
    wire.run(10e-3)
    holder.join()
    equal([(p.kind, p.says) for p in wire.from_b()], [(CLOCK_ECHO, CLOCK_ECHO)], "answers")
    counters = wire.b.greenlane()
    equal([counters[n] for n in ("ClockReceived", "ClockEchoSent", "NoMemory", "Invalid")],
          [count, 1, 0, 0], "ClockReceived, ClockEchoSent, NoMemory, Invalid")
    # The next clock is answered again.
    wire.inject(wire.b, rest.clock())
    wire.run(1e-3)
    equal([p.says for p in wire.from_b()], [CLOCK_ECHO] * 2, "answers after the next clock")
    true(wire.transfer(client, server, 100_000), "data arrives afterwards")


def echoed_after(wire, client, server):
    """Time until important data of a connection is acknowledged, s."""
    before = len(wire.seen)
    client.send(b"o" * 100)
    wire.run(1e-3)
    server.recv(1000)
    port = client.getsockname()[1]
    sent, answer = ([p for p in wire.seen[before:] if p.from_a == from_a
                     and port in (p.sport, p.dport)][0] for from_a in (True, False))
    return answer.time - sent.time


@case("a flood of clocks to an owned socket does not delay other connections")
def others():
    count = 2100
    with Wire() as wire, Wire() as other:
        # Connections of the same namespaces, and of others.
        ends = [(wire, *wire.connect(port)) for port in (1000, 1001)] + [(other, *other.connect())]
        for end in ends:
            end[0].transfer(*end[1:], 1000)
            end[0].run(1e-3)
        alone = [echoed_after(*end) for end in ends[1:]]
        rest = Resting(*ends[0])
        holder = hold(rest.server, 20)
        wire.run(100e-6)
        for _ in range(count):
            wire.inject(wire.b, rest.clock())
        during = [echoed_after(*end) for end in ends[1:]]
        equal([p for p in wire.from_b() if p.says == CLOCK_ECHO], [],
              "answers while the socket is owned")
        wire.run(30e-3)
        holder.join()
        for before, now in zip(alone, during):
            within(now, 0, before + 5e-6, "time until another connection's echo, s")
        equal(wire.b.greenlane()["ClockEchoSent"], 1, "ClockEchoSent")


@case("processes own the socket alternately, 1 ms each: the next release answers a clock",
      connected,
      version=(4, 6))
def no_gap(wire, client, server):
    rest = Resting(wire, client, server)
    wire.rule = lambda p: True      # ACKs of forged packets must not reach a
    with owned_again_and_again(server):
        wire.run(3.3e-3)
        wire.mark()
        sent = time.clock_gettime(time.CLOCK_MONOTONIC)
        wire.inject(wire.b, rest.clock())
        wire.run(10e-3)
        answers = [p.time - sent for p in wire.from_b() if p.says == CLOCK_ECHO]
    equal(len(answers), 1, "answers")
    within(answers[0], 0, 2.2e-3, "time until the answer, s")


@case("a clock with a CE mark arrives while a process owns the socket: the answer has ECE", Wire,
      version=(4, 6))
def marked_clock(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    rest = Resting(wire, *wire.connect())
    holder = hold(rest.server, 3)
    wire.run(100e-6)
    clock = rest.clock()
    clock.set_dsfield(clock.dsfield | 3)
    wire.inject(wire.b, clock)
    wire.run(10e-3)
    holder.join()
    equal([bool(p.flags & ECE) for p in wire.from_b() if p.says == CLOCK_ECHO], [True],
          "ECE of the answers")


def softirqs():
    """Number of softirqs of timers and tasklets."""
    with open("/proc/softirqs", encoding="ascii") as file:
        return sum(sum(map(int, line.split()[1:])) for line in file
                   if line.split()[0] in ("HRTIMER:", "TASKLET:", "HI:"))


@case("a process owns the socket for 0.9 s: no timer polls it", connected, version=(4, 6))
def no_polling(wire, client, server):
    rest = Resting(wire, client, server)
    # All packets are dropped: a would repeatedly retransmit unacknowledged data.
    wire.rule = lambda p: True
    holder = hold(server, 900)
    wire.run(1e-3)
    before = (softirqs(), wire.b.greenlane()["Kicks"])
    for p in (rest.from_a(None, b"i" * 100, dscp=IMPORTANT), rest.clock(),
              rest.from_a(CREDIT), rest.clock(),
              rest.from_a(None, b"i" * 100, 100, dscp=IMPORTANT)):
        wire.inject(wire.b, p)
        wire.run(1e-3)
    wire.run(0.85)
    equal(wire.from_b(), [], "packets of b while its socket is owned")
    within(softirqs() - before[0], 0, 10, "softirqs of timers and tasklets")
    equal(wire.b.greenlane()["Kicks"] - before[1], 0, "Kicks")
    wire.run(0.1)
    holder.join()
    within(wire.b.greenlane()["Kicks"] - before[1], 1, 10, "Kicks after the release")
    equal(len(server.recv(1000)), 200, "bytes")
    equal(wire.b.greenlane()["EchoSent"], 3, "EchoSent")        # one is of the transfer before
    equal(sum(p.says == CLOCK_ECHO for p in wire.from_b()), 1, "answers to the clocks")


@case("packets with our option wait for the socket's owner: 1024, the rest is dropped",
      connected, version=(4, 6))
def bounded(wire, client, server):
    count, limit = 2000, 1024       # GL_HELD_MAX
    rest = Resting(wire, client, server)
    for received in (limit, 2 * limit):
        before = wire.a.greenlane(), wire.a.tcp()["InSegs"]
        holder = hold(client, 5)
        wire.run(100e-6)
        for _ in range(count):
            wire.inject(wire.a, rest.from_b(CLOCK_ECHO))
        equal(wire.a.greenlane()["NoMemory"] - before[0]["NoMemory"], count - limit, "NoMemory")
        wire.run(10e-3)
        holder.join()
        # TCP receives all of them; it has a limit of its own.
        equal(wire.a.tcp()["InSegs"] - before[1], count, "segments that TCP has received")
        equal(wire.a.greenlane()["ClockEchoReceived"], received, "ClockEchoReceived")
    true(wire.transfer(client, server, 100_000), "data arrives afterwards")


def given(by, packet, owned):
    """Inject a packet for b, whose socket may be owned; returns (bytes read, answers,
    [ClockReceived, Invalid])."""
    with Wire() as wire:
        rest = Resting(wire, *wire.connect())
        wire.rule = lambda p: True      # ACKs of forged packets must not reach a
        holder = hold(rest.server, 1) if owned else None
        wire.run(100e-6)
        wire.inject(wire.b, packet(rest, by))
        wire.run(5e-3)
        if holder:
            holder.join()
        try:
            got = rest.server.recv(1000)
        except BlockingIOError:
            got = b""
        counters = wire.b.greenlane()
        return (got, [p.says for p in wire.seen if p.says],
                [counters[n] for n in ("ClockReceived", "Invalid")])


@case("TCP receives data with an option of ours that does not belong on data, owned or not",
      by=(CLOCK_ECHO, REQUEST, CREDIT, SHARE, IMPORTANT), owned=(False, True))
def data_with_option(by, owned):
    # The other options belong to another transport or to SYNs, and are ignored.
    invalid = int(by == CLOCK_ECHO)
    equal(given(by, lambda rest, says: rest.from_a(says, b"w" * 100), owned),
          (b"w" * 100, [], [0, invalid]), "bytes, answers with our option,"
          " (ClockReceived, Invalid)")


@case("a clock without a byte is not answered, owned or not", owned=(False, True))
def bare_clock(owned):
    equal(given(CLOCK, Resting.from_a, owned), (b"", [], [0, 1]),
          "bytes, answers with our option, (ClockReceived, Invalid)")


@case("a packet with our option that TCP refuses does not wait for the owner", connected,
      version=(4, 6))
def refused(wire, client, server):
    rest = Resting(wire, client, server)
    p = rest.clock()
    p.raw[-1] ^= 0xff           # the checksum
    holder = hold(server, 1)
    wire.run(100e-6)
    for packet in (p, rest.from_a(CLOCK, b"!", 1 << 29), rest.from_a(CLOCK, b"!", -(1 << 29))):
        wire.inject(wire.b, packet)
    wire.run(5e-3)
    holder.join()
    equal([p for p in wire.from_b() if p.says == CLOCK_ECHO], [], "answers")
    counters = wire.b.greenlane()
    equal([counters[n] for n in ("ClockReceived", "Invalid")], [0, 3], "ClockReceived, Invalid")


@case("both ends are owned repeatedly under load: every byte arrives", connected)
def both_under_load(wire, client, server):
    wire.transfer(client, server, 200_000)      # the buffers grow
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    data = pattern(100_000)
    wire.rule = lose("> data", every=4)

    def application(stop, s):
        for at in range(0, len(data), 2000):
            s.send(data[at:at + 2000])
            stop.wait(0.0003)
    run_owned(wire, (client, server), application, client)
    equal(server.recv(1 << 20) == data, True, "the bytes are those sent")
    true(wire.b.greenlane()["KicksOwned"] > 0, "KicksOwned of b: at least one")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


if __name__ == "__main__":
    tap.main()
