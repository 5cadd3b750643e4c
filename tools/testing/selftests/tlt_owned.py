#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A process owns the socket when a marked packet comes: nothing is forgotten.

	a (client) ---- wire (this program) ---- b (server)

gl_hold.ko owns one of the sockets for some milliseconds, in a second thread,
while packets arrive for it.
"""
import socket

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, DATA, ECHO, IMPORTANT
from lab.tap import case, equal, true
from lab.wire import packet as pkt
from lab.wire.hold import hold, run_owned
from lab.wire.transcript import lose
from lab.wire.wire import Wire, connected, pattern


@case("the receiver is owned when important data comes: echoed when it is free", connected,
      version=(4, 6))
def receiver_important(wire, client, server):
    wire.mark()
    holder = hold(server, 2)
    wire.run(100e-6)
    client.send(b"i" * 100)
    wire.run(1e-3)
    equal(wire.from_b(), [], "nothing comes while it is owned")
    wire.run(2e-3)
    holder.join()
    equal([p.dscp for p in wire.from_b()].count(ECHO), 1, "echoes")
    true(wire.from_b()[0].time - wire.from_a()[0].time < 2.2e-3,
         "as soon as it is free")


@case("the receiver is owned as a window comes: the ACK of the important packet is the echo",
      version=(4, 6))
def receiver_window(version):
    # TCP acknowledges each piece between two that are lost, the first before it has
    # seen the important one.
    for lost in ((), (5,), (1, 3), (2, 4, 6), (1, 3, 5, 7, 9)):
        with Wire(version=version) as wire:
            try:
                wire.b.sysctl("net.ipv4.tcp_backlog_ack_defer", 0)
            except FileNotFoundError:
                pass        # 6.1 does not wait for the end of the backlog
            client, server = wire.connect()
            wire.mark()
            wire.rule = lose(*(f"> * {number}" for number in lost))
            holder = hold(server, 2)
            wire.run(100e-6)
            client.send(pattern(14000))
            wire.run(4e-3)
            holder.join()
            important = next(p for p in wire.from_a() if p.dscp == IMPORTANT)
            echo = next(p for p in wire.from_b() if p.dscp == ECHO)
            true(echo.ack >= important.end or any(right >= important.end
                 for _, right in echo.sacks), f"packets {lost} lost: {echo!r} of {important!r}")
            equal([p.dscp for p in wire.from_b()].count(ECHO),
                  sum(p.dscp == IMPORTANT for p in wire.from_a()), "echoes")
            equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  f"packets {lost} lost: RTOs, probes")
            equal(len(wire.rule.dropped), len(lost), "lost packets")


@case("the sender is owned when the echo comes: the clock goes on", connected, version=(4, 6))
def sender_echo(wire, client, server):
    wire.mark()
    wire.rule = lose("> data 1-9")      # all of the window but the important packet
    client.send(b"s" * 14000)
    wire.run(5e-6)
    holder = hold(client, 1)
    wire.run(3e-3)
    holder.join()
    wire.run(1e-3)
    equal(len(server.recv(20_000)), 14000, "all arrives")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")
    equal(wire.a.netstat("TCPLossProbes"), 0, "TCPLossProbes")


@case("the receiver is owned when a clock comes: answered when it is free, once", connected)
def receiver_clock(wire, client, server):
    wire.transfer(client, server, 1000)
    wire.run(1e-3)
    wire.mark()
    state = {"holder": None, "n": 0}

    # Lose the second window's data, so that a clock is what follows, and
    # own the receiver as it comes.
    def rule(p):
        state["n"] += bool(p.from_a and p.len and p.dscp == DATA)
        if p.from_a and p.dscp == CLOCK and state["holder"] is None:
            state["holder"] = hold(server, 1)
        return p.from_a and p.len and p.dscp == DATA and 9 < state["n"] < 14
    wire.rule = rule
    # not transfer(): its recv() would wait for the owner
    client.send(b"c" * 13 * 1448)
    wire.run(10e-3)
    true(state["holder"] is not None, "a clock was sent")
    state["holder"].join()
    equal(len(server.recv(20_000)), 13 * 1448, "all arrives")
    clocks = [p for p in wire.from_a() if p.dscp == CLOCK]
    echoes = [p for p in wire.from_b() if p.dscp == CLOCK_ECHO]
    equal(len(echoes), len(clocks), "clock echoes")
    true(wire.b.greenlane()["KicksOwned"] > 0, "it was owned")
    equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("a process that keeps the socket does not let the network fill the memory")
def bounded():
    count, limit = 5000, 4096       # GL_NOTES_MAX
    with Wire() as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 1000)
        wire.run(1e-3)
        last = [p for p in wire.from_a() if p.len][-1]
        clock = pkt.make(4, wire.address(wire.a), wire.address(wire.b), last.sport, last.dport,
                         last.seq, last.ack, dscp=CLOCK, payload=last.payload[:1])
        wire.mark()
        holder = hold(server, 5)
        wire.run(100e-6)
        for _ in range(count):
            wire.inject(wire.b, clock)
        equal(wire.b.greenlane()["NoMemory"], count - limit, "clocks that are not kept")
        wire.run(10e-3)
        holder.join()
        equal(wire.b.greenlane()["ClockEchoSent"], limit, "clock echoes")
        # and the notes are gone: there is room again
        holder = hold(server, 1)
        wire.run(100e-6)
        wire.inject(wire.b, clock)
        wire.run(10e-3)
        holder.join()
        equal(wire.b.greenlane()["NoMemory"], count - limit, "later")
        true(wire.transfer(client, server, 100_000), "the connection goes on")


@case("both ends are owned again and again under load: every byte arrives", connected)
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
    true(wire.b.greenlane()["KicksOwned"] > 0, "b was owned as something came")
    equal(wire.a.greenlane()["Fallback"], 0, "Fallback")


if __name__ == "__main__":
    tap.main()
