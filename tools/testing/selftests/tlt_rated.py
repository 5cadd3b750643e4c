#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TLT over a base with a rate: the important packets of tlt_dcqcn (TLT §5.2).

	a (client, sends) ---- wire (this program) ---- b (server)

Important are the last packet of a message, every 96th, and the first and the last of each
recovery's retransmissions.  There are no clocks while TCP may send.
"""
import contextlib
import socket

from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.tap import case, equal, main, true, using
from lab.wire.dart import dart
from lab.wire.packet import data
from lab.wire.sockopt import cc_of, info
from lab.wire.transcript import lose
from lab.wire.wire import MSS, connected, pattern

PERIOD = 96

everywhere = using(connected, of=dart, cc="tlt_dcqcn", version=(4, 6), tso=(True, False))


def marking(every, **options):
    """A wire whose hosts make one packet in `every` important."""
    wire = dart(**options)
    equal(int(wire.a.sysctl("net.ipv4.tlt_every")), PERIOD, "tlt_every")
    wire.a.sysctl("net.ipv4.tlt_every", every)
    return wire


def no_timer(wire):
    """Check that no timer has expired, and no clock was sent."""
    for name in ("TCPTimeouts", "TCPLossProbes"):
        equal(wire.a.netstat(name), 0, name)
    equal([p for p in wire.seen if p.kind == CLOCK], [], "clocks")


@everywhere("the last packet of a message is important, and one in 96 before it")
def marks(wire, client, server):
    mss = MSS[wire.version]
    for packets in (1, 2, 50, 250):
        wire.mark()
        echoed = wire.b.greenlane()["EchoSent"]
        true(wire.transfer(client, server, packets * mss), "arrives")
        wire.run(1e-3)
        sent = [p.kind for p in data(wire.from_a())]
        equal(len(sent), packets, "packets")
        expected = [IMPORTANT if n % PERIOD == 0 or n == packets else DATA
                    for n in range(1, packets + 1)]
        if wire.tso:
            # TLT decides once for a burst of several packets, and marks the last one.
            equal(sent[-1], IMPORTANT, f"kind of the last of {packets} packets")
            gaps = [n for n, dscp in enumerate(sent) if dscp == IMPORTANT]
            true(all(after - before <= PERIOD for before, after in zip([-1] + gaps, gaps)),
                 f"one important packet in 96 at least: {gaps}")
            equal(len(gaps), expected.count(IMPORTANT), "important packets")
        else:
            equal(sent, expected, f"kinds of {packets} packets")
        equal(wire.b.greenlane()["EchoSent"] - echoed, sent.count(IMPORTANT), "EchoSent")
    no_timer(wire)


@using(connected, of=marking, cc="tlt_dcqcn", tso=False, every=(0, 7, 200))(
    "one packet in tlt_every is important; 0: no packet for its number")
def every_nth(wire, client, server):
    every = int(wire.a.sysctl("net.ipv4.tlt_every"))
    true(wire.transfer(client, server, 250 * MSS[4]), "arrives")
    wire.mark()
    true(wire.transfer(client, server, 250 * MSS[4]), "arrives")
    wire.run(1e-3)
    important = [n for n, p in enumerate(data(wire.from_a()), 1) if p.kind == IMPORTANT]
    equal(important, [n for n in range(1, 251) if n == 250 or every and n % every == 0],
          f"important packets with {every}")


@using(connected, of=dart, cc="tlt_dcqcn", version=(4, 6))(
    "the receiver withdraws its window before the last packet of a burst leaves: a clock")
def withdrawn(wire, client, _server):
    wire.mark()
    acks = []

    def rule(p):
        if not p.from_a and not acks:
            acks.append(p)
            # 128 bytes, with Linux's scale.
            p.raw[p.ip_len + 14:p.ip_len + 16] = b"\0\1"
            p.fix_checksum()
            return False
        # Other ACKs would open the window again.
        return not p.from_a
    wire.rule = rule
    client.send(pattern(90 * MSS[wire.version]))
    wire.run(200e-6)
    true(not [p for p in wire.from_a() if p.kind == IMPORTANT], "the burst has not ended")
    true([p for p in wire.from_a() if p.kind == CLOCK], "a clock")


@everywhere("single-packet messages, faster than ACKs: one is important until it is acknowledged,"
            " and one in 96")
def short_messages(wire, client, server):
    wire.delay = 100e-6
    size = MSS[wire.version]
    sent = got = 0
    while got < 500 * size:
        if sent < 500 * size:
            with contextlib.suppress(BlockingIOError):
                sent += client.send(bytes(size))
        wire.run(2e-6)
        with contextlib.suppress(BlockingIOError):
            got += len(server.recv(1 << 20))
    wire.run(1e-3)
    unacked, most = [], 0
    for p in wire.seen:
        if p.from_a and p.len and p.kind == IMPORTANT:
            unacked.append(p.end)
        elif not p.from_a:
            unacked = [end for end in unacked if (end - p.ack) & 0xffffffff < 1 << 31 and
                       end != p.ack]
        most = max(most, len(unacked))
    packets = len(data(wire.from_a()))
    true(packets >= 400, f"packets: {packets}")
    # TSO may merge several messages.
    true(most <= 1 + -(-packets // PERIOD), f"unacked important packets at once: {most}")
    important = sum(p.kind == IMPORTANT for p in data(wire.from_a()))
    true(important < packets // 10, f"important packets: {important} of {packets}")
    for name in ("TCPTimeouts", "TCPLossProbes"):
        equal(wire.a.netstat(name), 0, name)


def losing(wire, lost):
    """Lose these packets of the next message once each, and the first retransmission; returns the
    retransmissions."""
    count, again, base = 0, [], None

    def rule(p):
        nonlocal count, base
        if not (p.from_a and p.len):
            return False
        if base is None:
            base = p.seq
        number = ((p.seq - base) & 0xffffffff) // MSS[wire.version]
        if number < count:
            again.append(p)
            return len(again) == 1
        count = number + max(1, -(-p.len // MSS[wire.version]))
        return number in lost
    wire.rule = rule
    return again


@everywhere("the first and the last retransmission of a recovery are important")
def rounds(wire, client, server):
    wire.transfer(client, server, 100_000)
    wire.mark()
    again = losing(wire, {10, 11, 12, 20, 21})
    true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
    wire.run(1e-3)
    # Each loss is detected when a later packet is SACKed, so a recovery may be short; the first
    # retransmission, which is lost, is the first of another recovery.
    true(len(again) >= 6, f"six retransmissions at least: {again}")
    equal(again[0].kind, IMPORTANT, "kind of the first retransmission")
    equal(again[-1].kind, IMPORTANT, "kind of the last retransmission")
    no_timer(wire)


@everywhere("only important packets arrive: no timer expires")
def all_lost(wire, client, server):
    for count in (10, 60, 200):
        wire.mark()
        wire.rule = lose(f"> data 1-{count}")
        true(wire.transfer(client, server, count * MSS[wire.version], 0.1), "arrives")
        wire.rule = None
        wire.run(1e-3)
    no_timer(wire)
    true(info(client)["marked_lost"] > 0, "marked_lost: losses detected by an echo")


@case("without ECN it runs tlt_reno", connected, version=(4, 6), cc="tlt_dcqcn", cc_b="tlt_reno")
def no_ecn(wire, client, server):
    equal(cc_of(client), "tlt_reno", "congestion control")
    true(wire.transfer(client, server, 100_000), "arrives")


@everywhere("data in both directions at once arrives without a timer")
def duplex(wire, client, server):
    true(wire.transfer_both(client, server, 300_000), "arrives")
    no_timer(wire)


def more(client):
    """A write with MSG_MORE: TCP sends it without its last, partial segment."""
    return client.send(pattern(10 * 1448 + 700), socket.MSG_MORE) - 700


def cork(client):
    """The same, with TCP_CORK."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    return sum(client.send(pattern(1000)) for _ in range(20)) // 1448 * 1448


def bulk(client):
    """More than the window, which is below one period of 96."""
    return client.send(pattern(200 * 1448))


class RedOnce:
    """For 1 ms each red packet is lost when it is sent first."""

    def __init__(self):
        self.begun, self.seen, self.dropped = None, set(), 0

    def __call__(self, p):
        if not p.from_a or not p.len or p.kind != DATA:
            return False
        self.begun = self.begun or p.time
        first = p.seq not in self.seen and p.time < self.begun + 1e-3
        self.seen.add(p.seq)
        self.dropped += first
        return first


@case("a cork or the window ends a burst: no timer expires",
      cc=("tlt_cubic", "tlt_dcqcn", "tlt_dart"),
      write=(more, cork, bulk))
def ends_without_a_message(cc, write):
    with dart(cc=cc) as wire:
        wire.align()
        client, server = wire.connect()
        for _ in range(2):
            wire.transfer(client, server, 30_000)
            wire.run(20e-3)
        wire.mark()
        wire.rule = red = RedOnce()
        wanted = write(client)
        equal(len(wire.receive(server, wanted, 0.1)) >= wanted, True, "all data arrives in 100 ms")
        true(red.dropped > 0, "data is lost")
        equal([wire.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")


if __name__ == "__main__":
    main()
