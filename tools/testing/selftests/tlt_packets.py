#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The additional packets of TLT without losses: ACKs and clocks wait 50 us for data.

	a (client) ---- wire ---- b (server)
"""
import contextlib
import socket

from lab import tap
from lab.codepoints import CLOCK, IMPORTANT
from lab.tap import case, equal, true, within
from lab.wire.hold import owned_again_and_again
from lab.wire.packet import data
from lab.wire.sockopt import choose
from lab.wire.wire import Wire, connected


def read(s):
    """Read all available bytes; returns their number."""
    n = 0
    with contextlib.suppress(BlockingIOError):
        while more := len(s.recv(1 << 20)):
            n += more
    return n


def nodelay(*sockets):
    """Disable Nagle's algorithm."""
    for s in sockets:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def calls(wire, client, server, outstanding, count=400, size=300):
    """`count` requests and responses, up to `outstanding` at a time."""
    nodelay(client, server)
    sent = done = asked = 0
    while done < count * size:
        while sent < count and sent - done // size < outstanding:
            client.send(bytes(size))
            sent += 1
        wire.run(1e-6)
        asked += read(server)
        while asked >= size:
            server.send(bytes(size))
            asked -= size
        done += read(client)


def answering(wire, client, server):
    """The server has answered requests (TCP's pingpong mode), and no packet is in flight."""
    calls(wire, client, server, 1, count=20)
    wire.run(5e-3)
    wire.mark()


def stream(wire, client, server, gap, count=1000):
    """Small messages in one direction."""
    nodelay(client)
    for _ in range(count):
        client.send(bytes(100))
        wire.run(gap)
        read(server)


PHASES = 4              # of 1 us
WORK = {"ping-pong": lambda *w: calls(*w, 1), "4 outstanding": lambda *w: calls(*w, 4),
        "100 B each 5 us": lambda *w: stream(*w, 5e-6),
        "100 B each 15 us": lambda *w: stream(*w, 15e-6),
        "bulk": lambda wire, client, server: wire.transfer(client, server, 5_000_000)}


def sent(cc, work, phase):
    """Packets of both ends, on a connection that begins `phase` after a tick."""
    with Wire(cc=cc) as wire:
        wire.align()
        wire.run(phase)
        client, server = wire.connect()
        wire.transfer(client, server, 100_000)
        wire.run(10e-3)
        wire.mark()
        WORK[work](wire, client, server)
        wire.run(10e-3)
        return len(wire.seen)


@case("at most 10 % more packets than the base", work=tuple(WORK))
def packets(work):
    # The time of a call decides whether its answer is in time for a delayed ACK.
    base, tlt = (sum(sent(cc, work, phase * 1e-6) for phase in range(PHASES))
                 for cc in ("cubic", "tlt_cubic"))
    true(tlt <= 1.1 * base, f"packets: {tlt}, the base's {base}")


@case("a request that is not answered at once is acknowledged after 50 us", connected,
      cc="tlt_cubic", version=(4, 6))
def slow_server(wire, client, server):
    answering(wire, client, server)
    client.send(bytes(300))
    wire.run(1e-3)
    request, ack = wire.seen[:2]
    equal((len(data(wire.seen)), ack.len), (1, 0), "packets of data, bytes of the second")
    # The connections of a CPU share the timer, so it may be running already.
    within(ack.time - request.time, wire.delay, wire.delay + 60e-6, "time until the ACK, s")


@case("requests that a device marks important, without answers: the first ACK waits, and no other does",
      connected, cc="tlt_cubic", version=(4, 6))
def marked_requests(wire, client, server):
    answering(wire, client, server)
    nodelay(client)
    wire.rule = lambda p: p.from_a and p.len and p.set_dscp(IMPORTANT)
    for _ in range(15):
        client.send(bytes(50))
        wire.run(20e-6)
    wire.run(1e-3)
    acks = [p for p in wire.from_b() if not p.len]
    within(acks[0].time - data(wire.seen)[0].time, wire.delay, wire.delay + 120e-6,
           "time until the first ACK, s")
    # As after a missed delayed ACK, the receiver expects no answer until the application sends one.
    later = [p.time for p in data(wire.seen) if p.time > acks[0].time]
    within(len(later), 10, 15, "packets of data after it")
    within(max(min(ack.time - at for ack in acks if ack.time > at) for at in later), 0,
           wire.delay + 10e-6, "time until the ACK of each, s")


@case("processes own the socket alternately when the 50 us end: the next release sends the ACK",
      connected, cc="tlt_cubic")
def owned(wire, client, server):
    answering(wire, client, server)
    with owned_again_and_again(server):
        wire.run(3e-3)
        wire.mark()
        client.send(bytes(300))
        wire.run(20e-3)
    request, ack = wire.seen[:2]
    within(ack.time - request.time, 0, 2.2e-3, "time until the ACK, s")
    equal(wire.a.netstat("TCPLossProbes"), 0, "TLPs")


@case("the receiver selects another congestion control while its ACK waits: the ACK leaves at once",
      to=("tlt_reno", "cubic"))
def chooses(to):
    with Wire(cc="tlt_cubic") as wire:
        client, server = wire.connect()
        answering(wire, client, server)
        client.send(bytes(300))
        wire.run(20e-6)
        choose(server, to)
        wire.run(1e-3)
    request, ack = wire.seen[:2]
    within(ack.time - request.time, 0, 40e-6, "time until the ACK, s")


@case("the host's own device refuses the answer that an ACK waits for: both leave in 200 us",
      cc="tlt_cubic", size=(300, 3000))
def refused(cc, size):
    with Wire(cc=cc, tso=False) as wire:
        client, server = wire.connect()
        answering(wire, client, server)
        client.send(bytes(300))
        wire.run(13e-6)
        read(server)
        wire.b.tc("qdisc add dev tun0 root pfifo limit 1",
                  "qdisc change dev tun0 root pfifo limit 0")
        server.send(bytes(size))
        wire.b.tc("qdisc del dev tun0 root")
        wire.run(300e-3)
        request, answer = wire.from_a()[0], data(wire.from_b())
        ack = next(p for p in wire.from_b() if p.ack >= request.end)
        for p in (ack, answer[0]):
            within(p.time - request.time, 0, 200e-6, f"time until {p!r}, s")
        equal([ns.netstat("TCPLossProbes") for ns in (wire.a, wire.b)], [0, 0], "TLPs")


@case("an ACK leaves at once if a packet is missing, or a full packet ends a window",
      connected, cc="tlt_cubic")
def at_once(wire, client, server):
    answering(wire, client, server)
    for lost, size in ((0, 1448), (1, 2 * 1448 + 300)):
        wire.mark()
        wire.rule = lambda p, lost=lost: p.from_a and p.len and len(data(wire.from_a())) <= lost
        client.send(bytes(size))
        wire.run(100e-6)
        last = [p for p in data(wire.from_a()) if not p.dropped][0]
        ack = next(p for p in wire.from_b() if not p.len and p.time > last.time)
        within(ack.time - last.time, wire.delay, wire.delay + 15e-6, "time until the ACK, s")
        wire.rule = None
        wire.run(5e-3)
        read(server)


@case("a clock follows the last packets of a stream after 50 us", connected, cc="tlt_cubic")
def clock(wire, client, server):
    nodelay(client)
    wire.transfer(client, server, 30_000)
    wire.run(5e-3)
    wire.mark()
    for _ in range(3):
        client.send(bytes(100))         # the first is important, the others follow at once
    wire.rule = lambda p: p.from_a and p.len == 100 and p.seq != data(wire.from_a())[0].seq
    wire.run(2e-3)
    wire.rule = None
    true([p for p in wire.from_a() if p.kind == CLOCK], "a clock is sent")
    equal(len(wire.receive(server, 300, 0.1)), 300, "bytes that arrive")
    equal([wire.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")


if __name__ == "__main__":
    tap.main()
