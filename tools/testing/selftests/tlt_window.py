#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The receiver's window: clocks stay within it, and a closed window causes no flood of clocks.

	a (client, sends) ---- wire (this program) ---- b (server, reads slowly)
"""
import contextlib
import random
import socket

from lab import tap
from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.net.star import Star, pump
from lab.tap import case, equal, timed, true, within
from lab.wire.packet import SYN
from lab.wire.wire import Wire, pattern

SMALL = "4096 8192 8192"        # tcp_rmem


def clocks(wire):
    """Every clock that a has sent."""
    return [p for p in wire.from_a() if p.kind == CLOCK]


def window_edge(wire):
    """Check each data packet of a against the last window that b has advertised.

    Returns the number of checked packets.  b's window scale is read from its SYN-ACK.
    """
    scale, edge, checked = 0, None, 0
    for p in wire.seen:
        if not p.from_a and p.flags & SYN:
            options = bytes(p.raw[p.ip_len + 20:p.ip_len + p.doff])
            at = options.find(b"\3\3")
            scale = options[at + 2] if at >= 0 else 0
        elif not p.from_a:
            new = p.ack + (p.window << scale)
            edge = new if edge is None else max(edge, new)
        elif p.len and edge is not None:
            checked += 1
            # a zero-window probe of TCP has one byte beyond the window
            if p.end > edge and p.kind in (IMPORTANT, CLOCK) and p.len > 1:
                raise tap.Failed(f"beyond the window at {edge}: {p!r}")
            if p.kind == CLOCK and p.end > edge:
                raise tap.Failed(f"clock beyond the window at {edge}: {p!r}")
    return checked


@case("a slow reader: all data arrives, within the window, without a flood of clocks",
      version=(4, 6))
def slow_reader(version):
    with Wire(version=version, rmem=SMALL) as wire:
        client, server = wire.connect()
        data, sent, got = pattern(60_000), 0, b""
        while len(got) < len(data):
            try:
                sent += client.send(data[sent:])
            except BlockingIOError:
                pass
            wire.run(500e-6)
            try:
                got += server.recv(1000)
            except BlockingIOError:
                pass
        equal(got == data, True, "the bytes are those sent")
        true(window_edge(wire) > 10, "packets that were checked: more than 10")
        # 60 reads; a flood of clocks would be thousands
        within(len(clocks(wire)), 0, 200, "clocks")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("the last packet that a reopened window permits is important", version=(4, 6))
def window_opens(version):
    with Wire(version=version, rmem=SMALL, tso=False) as wire:
        client, server = wire.connect()
        client.send(pattern(40_000))
        wire.run(20e-3)
        wire.mark()
        server.recv(1 << 20)
        wire.run(15e-6)         # the window update has arrived, and no ACK yet
        burst = [p for p in wire.from_a() if p.len]
        true(len(burst) >= 2, f"packets of the burst, at least 2: {burst}")
        equal([p.kind for p in burst], [DATA] * (len(burst) - 1) + [IMPORTANT],
              "kinds of the burst")


@case("a closed window without data in flight: only TCP's own probes", version=(4, 6))
def zero_window(version):
    with Wire(version=version, rmem=SMALL) as wire:
        client, server = wire.connect()
        data, sent = pattern(100_000), 0
        for _ in range(100):
            try:
                sent += client.send(data[sent:])
            except BlockingIOError:
                pass
            wire.run(200e-6)
        wire.mark()
        wire.run(0.2)
        within(len(wire.from_a()), 0, 12, "packets in 200 ms of closed window")
        equal(clocks(wire), [], "clocks")
        # The window opens again.
        got = b""

        def step():
            nonlocal got, sent
            try:
                while sent < len(data):
                    sent += client.send(data[sent:])
            except BlockingIOError:
                pass
            try:
                while True:
                    more = server.recv(1 << 16)
                    if not more:
                        break
                    got += more
            except BlockingIOError:
                pass
            return len(got) == len(data)
        true(wire.run(5.0, step), f"all data arrives after the window opens ({len(got)})")
        equal(got == data, True, "the bytes are those sent")


@case("a receiver that withdraws its window gets no clock", version=(4, 6))
def shrunk_window(version):
    for window in (None, b"\0\0"):
        with Wire(version=version) as wire:
            wire.a.sysctl("net.ipv4.tlt_crowd", 0)
            client, server = wire.connect()
            wire.mark()
            echoes, last = [], []

            # When the echo of the first window arrives, three packets are in flight and no data is
            # left to send: a clock is due, unless that echo closes the window.  Later ACKs, which
            # would reopen it, are dropped.
            def rule(p, window=window, echoes=echoes, last=last):
                if p.from_a:
                    last += [p] * (p.kind == IMPORTANT)
                    return False
                if echoes:
                    return True
                if last and p.ack == last[0].end:
                    echoes.append(p)
                    if window is not None:
                        p.raw[p.ip_len + 14:p.ip_len + 16] = window
                        p.fix_checksum()
                return False
            wire.rule = rule
            client.send(b"z" * 13 * 1428)
            wire.run(1e-3)
            equal(len(echoes), 1, "echoes")
            equal(len(clocks(wire)), 0 if window else 1,
                  f"clocks, window {'closed' if window else 'open'}")
            wire.rule = None
            wire.run(0.5)
            equal(len(server.recv(1 << 16)), 13 * 1428, "bytes that arrive")


@timed("a receiver without memory drops data and withdraws its window: no RTO", cc="tlt_reno")
def withdrawn(cc):
    with Star([10_000] * 2, delay="20us", cc=cc,
              port="limit 4m red 400k ecn 65000 bands 2 prio 10 0") as net:
        client, server = net.flow(0, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100_000)
        got, = pump([(client, server)], 0.3, slow=([server], 64_000))
        equal(net.hosts[0].netstat("TCPTimeouts"), 0, "RTOs")
        within(got, 0.95 * 0.512, 1.05 * 0.512,
               "goodput at the rate of the reading process, Gbit/s")


@case("a receive buffer of less than two packets: no write waits for the timer of window probes",
      cc=("tlt_cubic", "tlt_dctcp"), mtu=(1500, 9000))
def small_buffer(cc, mtu):
    for seed in range(10):
        choices = random.Random(seed)
        size = 3000 if mtu == 9000 else choices.choice((300, 1000, 1500, 3000))
        with Wire(cc=cc, mtu=mtu) as wire:
            wire.delay = 2e-6
            listener = wire.listen(SO_RCVBUF=4096 if mtu == 9000 else 2304)
            client, server = wire.connect(listener=listener, TCP_NODELAY=1)
            sent, got = 0, bytearray()

            def read():
                with contextlib.suppress(BlockingIOError):
                    got.extend(server.recv(1 << 20))
                return len(got) == sent
            for _ in range(29):
                with contextlib.suppress(BlockingIOError):
                    sent += client.send(pattern(size))
                wire.run(0.5e-3)
                if choices.random() < 0.7:
                    read()
            true(wire.run(0.1, read), f"seed {seed}: all arrives within 0.1 s, saw {len(got)} of {sent}")


if __name__ == "__main__":
    tap.main()
