#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Only droppable packets are lost: no connection waits for a timer, in one direction or both.

	a (sends and reads) ---- wire: drops red data ---- b (sends and reads)

Data acknowledges, too.  An echo on droppable data is lost with it, so the receiver also sends a
pure ACK, unless the data is itself protected.
"""
import contextlib
import struct
import time

from lab import tap
from lab.codepoints import CONTROL, DATA, IMPORTANT
from lab.net.pairs import Pairs
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import data
from lab.wire.wire import Wire, connected, pattern

TIMERS = "TCPTimeouts", "TCPLossProbes"


def timers(*hosts):
    """Number of expired timers of each kind."""
    return [sum(ns.netstat(name) for ns in hosts) for name in TIMERS]


class Link:
    """1 Gbit/s in each direction.  It drops red data that would wait longer than `red` seconds;
    with `worst` also red data that is the first to acknowledge important data of the other end."""

    def __init__(self, red, worst=False):
        self.red, self.worst = red, worst
        self.busy = {True: 0.0, False: 0.0}
        self.unheard = {True: None, False: None}
        self.drops = 0

    @staticmethod
    def covers(p, end):
        """Does this packet acknowledge data up to @end?"""
        return (p.ack - end) & 0xffffffff < 1 << 31 or any(
            (end - s - 1) & 0xffffffff < (e - s) & 0xffffffff for s, e in p.sacks)

    def __call__(self, p):
        begin = max(self.busy[p.from_a], p.time)
        red = p.len and p.kind == DATA
        drop = red and begin - p.time > self.red
        end = self.unheard[not p.from_a]
        if not drop and end is not None and self.covers(p, end):
            drop = red and self.worst
            if not drop:
                self.unheard[not p.from_a] = None
        if drop:
            self.drops += 1
            return True
        if p.len and p.kind == IMPORTANT:
            self.unheard[p.from_a] = p.end
        self.busy[p.from_a] = begin + (len(p.raw) + 38) * 8 / 1e9
        p.late = self.busy[p.from_a] - p.time
        return False


class Exchange:
    """Each flow sends `count` bytes, and with `duplex` its other end does, too."""

    def __init__(self, flows, count, duplex):
        self.data, self.count = memoryview(pattern(count)), count
        self.sent = {s: 0 for flow in flows for s in flow[:1 + duplex]}
        self.got = {s: 0 for flow in flows for s in flow[1 - duplex:]}

    def step(self):
        """Send and read; true if all data has arrived."""
        for s in self.sent:
            with contextlib.suppress(BlockingIOError):
                while self.sent[s] < self.count:
                    self.sent[s] += s.send(self.data[self.sent[s]:])
        for s in self.got:
            with contextlib.suppress(BlockingIOError):
                while self.got[s] < self.count:
                    self.got[s] += len(s.recv(1 << 18))
        return min(self.got.values()) == self.count


@case("only droppable data is lost: no timer expires", duplex=(False, True), setting=(
    ("tlt_reno", 1, 3_000_000, 100e-6, True), ("tlt_dctcp", 1, 3_000_000, 100e-6, True),
    ("tlt_reno", 30, 100_000, 50e-6, False), ("tlt_dctcp", 8, 300_000, 50e-6, False),
    ("tlt_dctcp", 30, 100_000, 50e-6, False)))
def no_timer(setting, duplex):
    cc, flows, count, red, worst = setting
    with Wire(cc=cc) as wire:
        wire.align()
        listener = wire.listen()
        pairs = [wire.connect(listener=listener) for _ in range(flows)]
        wire.run(20e-3)
        wire.mark()
        wire.rule = link = Link(red, worst)
        for _ in range(3):
            true(wire.run(3.0, Exchange(pairs, count, duplex).step), "all arrives")
            wire.run(20e-3)
        true(link.drops > 0, "data is lost")
        equal([p for p in wire.seen if p.dropped and p.kind != DATA], [],
              "lost packets that are not red")
        equal(timers(wire.a, wire.b), [0, 0], "RTOs, TLPs")


def at_ports(flows, duplex, red, rounds, count=100_000):
    """Connections between two hosts and two others, 10 Gbit/s at each: (seconds of each round,
    expired timers, connections that assumed a path that reorders)."""
    port = f"rate 10gbit limit 4000000 red {red}"
    net, took = Pairs(port, port, cc="tlt_dctcp"), []
    hosts = [net.ns[h] for h in ("a1", "a2", "b1", "b2")]
    for ns in hosts:
        ns.sysctl("net.ipv4.greenlane_active", 1)
    pairs = [net.flow(1 + i % 2) for i in range(flows)]
    for _ in range(rounds):
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        exchange = Exchange(pairs, count, duplex)
        while not exchange.step():
            time.sleep(10e-6)
        took.append(time.clock_gettime(time.CLOCK_MONOTONIC) - begun)
        time.sleep(20e-3)
    seen = timers(*hosts), sum(ns.greenlane()["Reordered"] for ns in hosts)
    for flow in pairs:
        for s in flow:
            s.close()
    net.remove()
    return took, *seen


@case("40 connections through color ports: no timer expires, and the link is busy",
      duplex=(False, True))
def through_ports(duplex):
    took, expired, reordered = at_ports(40, duplex, 30_000, 6)
    # 40 x 100 kB in 70 packets of 1538 bytes at 10 Gbit/s, and ACKs or headers for a twentieth.
    within(max(took), 3.2e-3, 1.15 * 3.45e-3, "time of a round, s")
    equal(expired, [0, 0], "RTOs, TLPs")
    # TCP itself assumes reordering if the ACKs that had a SACK block first were lost with red data:
    # 2 of the 80 ends, without TLT's own detection.
    within(reordered, 0, 4 * duplex, "ends that assume reordering")


@case("a tail loss probe is important, as no other packet is in flight", connected,
      cc=("tlt_reno", "tlt_dctcp", "tlt_cubic"))
def probe(wire, client, server):
    # No clock before the probe.
    wire.a.sysctl("net.ipv4.tlt_crowd", 0)
    wire.transfer(client, server, 30_000)
    wire.run(20e-3)
    wire.mark()
    # Important packets, too: this network is not the one that TLT assumes.
    wire.rule = lambda p: p.from_a and p.len and len(data(wire.from_a())) <= 5
    client.send(pattern(5 * 1448))
    wire.run(50e-3)
    sent = data(wire.from_a())
    equal(wire.a.netstat("TCPLossProbes"), 1, "TLPs")
    equal(sent[5].kind, IMPORTANT, "kind of the TLP")
    equal(len(wire.receive(server, 5 * 1448, 0.1)), 5 * 1448, "bytes that arrive")
    equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("a SACK block that begins in the middle of the important packet is its echo", version=(4, 6))
def part_of_a_packet(version):
    with Wire(version=version) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_timestamps", 0)
        client, server = wire.connect()
        wire.transfer(client, server, 1000)
        wire.run(5e-3)
        wire.mark()
        wire.rule = lambda p: True
        client.send(pattern(5 * 1400))
        wire.run(20e-6)
        sent, before = data(wire.from_a()), wire.a.greenlane()["EchoReceived"]
        last = sent[-1]
        equal(last.kind, IMPORTANT, "kind of the last packet")
        # This happens where SACK options make the MSS vary: TCP does not split the packet there.
        block = b"\1\1\5\12" + struct.pack("!II", last.end - 8 & 0xffffffff, last.end)
        wire.inject(wire.a, pkt.make(version, wire.address(wire.b), wire.address(wire.a), last.dport,
                                     last.sport, last.ack, sent[0].seq, pkt.ACK, dscp=CONTROL,
                                     window=60000, options=block))
        wire.run(20e-6)
        equal(wire.a.greenlane()["EchoReceived"] - before, 1, "EchoReceived")


if __name__ == "__main__":
    tap.main()
