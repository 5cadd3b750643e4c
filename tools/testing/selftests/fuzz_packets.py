#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged packets at connections in every state: no kernel warning, and no endless exchange.

	a ---- wire (this program, on the path) ---- b

The forger knows all numbers and may forge any packet (lab/wire/forge.py), to sockets that are
established and idle, established with data in flight, owned by a process, half closed in each
direction, in SYN_SENT, listening, closed.  The victims may suffer; the requirements are that the
kernel does not warn (the runner checks its log), that no packet is sent after the victims are
closed, and that a new connection then receives every byte.

A failing round can be run alone: see lab/fuzz.py.
"""
import os
import socket
import struct

from lab import fuzz, tap
from lab.net import modules
from lab.net.namespace import FAMILY
from lab.tap import case, equal, true
from lab.wire import dart
from lab.wire.forge import Forger
from lab.wire.hold import hold
from lab.wire.sockopt import cc_of
from lab.wire.wire import Wire

PACKETS = 1_500_000     # 10 batches for each of CCS
EACH = 1000             # packets a round
BURST = 20              # packets without time for an answer
RESET = struct.pack("ii", 1, 0)
# Families, whose members are peers.  Few rounds have a share that Dart accepts.
DART = "dart", "dcqcn", "tlt_dart"
CCS = (("tlt_reno", "tlt_cubic", "tlt_dctcp", "aeolus_dctcp"), ("xpass", "aeolus_xpass"), DART,
       ("hpcc", "tlt_hpcc"), ("ndp", "aeolus_ndp"), ("homa", "aeolus_homa"), DART)


class Victims:
    """Sockets in every state, and the ports of their flows."""

    def __init__(self, wire, rng, ccs):
        self.wire = wire
        self.rng = rng
        self.ccs = ccs
        self.sockets = []
        self.flows = []         # (port in a, port in b); those of self.live first
        self.listener = wire.listen(2000, rng.choice(ccs))
        self.live = [self.connect() for _ in range(4)]
        self.half_closed()
        self.syn_sent()
        self.flows.append((3000, 2000))         # to the listener, from an unused port
        self.flows.append((3000, 2001))         # to an unused port

    def connect(self):
        """An established connection."""
        cc = self.rng.choice(self.ccs)
        client, server = self.wire.connect(2000, cc, self.listener)
        self.sockets += [client, server]
        self.flows.append((client.getsockname()[1], 2000))
        for s in (client, server):
            if cc_of(s) == "dart":
                dart.name(s, [self.wire.address(self.wire.a)] * self.rng.randrange(9),
                          co=self.rng.random() < 0.5)
        return client, server

    def half_closed(self):
        """FIN_WAIT2 and CLOSE_WAIT, FIN_WAIT1, LAST_ACK, TIME_WAIT, closed."""
        client, _ = self.connect()
        client.shutdown(socket.SHUT_WR)
        client, server = self.connect()
        server.shutdown(socket.SHUT_WR)
        self.wire.run(1e-4)
        client.shutdown(socket.SHUT_WR)         # LAST_ACK, TIME_WAIT
        client, server = self.connect()
        server.close()
        client, server = self.connect()
        client.send(b"z" * 3000)                # data and FIN in flight
        client.shutdown(socket.SHUT_WR)

    def syn_sent(self):
        """A socket whose SYN is not answered."""
        client = self.wire.socket(self.wire.a, self.rng.choice(self.ccs))
        before = self.wire.rule
        self.wire.rule = lambda p: before(p) or True
        try:
            client.connect((self.wire.address(self.wire.b), 2000))
        except BlockingIOError:
            pass
        self.wire.run(2e-5)
        self.wire.rule = before
        self.sockets.append(client)
        self.flows.append((client.getsockname()[1], 2000))

    def work(self):
        """Let live connections send and read."""
        for pair in self.live:
            for s in pair:
                try:
                    s.recv(1 << 20)
                    if self.rng.random() < 0.5:
                        s.send(b"w" * self.rng.choice((1, 100, 1448, 5000, 30_000)))
                except OSError:
                    pass                # blocked, or reset by the forger

    def close(self):
        """Close all at once, with RSTs."""
        for s in self.sockets:
            if s.fileno() >= 0:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                s.close()
        self.listener.close()
        self.wire.run(2e-2)             # the last answers
        self.wire.mark()
        self.wire.run(2e-2)


class Attack:
    """One wire and its forger."""

    def __init__(self, version):
        modules.load("tcp_tlt", "tcp_aeolus", "tcp_dart", "tcp_hpcc", "tcp_ndp", "tcp_homa")
        # pylint: disable-next=consider-using-with
        self.wire = Wire(cc="tlt_reno", version=version)
        for ns in (self.wire.a, self.wire.b):
            ns.sysctl("net.ipv4.tcp_fin_timeout", 1)
        self.forger = Forger(version)
        family = FAMILY[version]
        self.address = {ns: socket.inet_pton(family, self.wire.address(ns))
                        for ns in (self.wire.a, self.wire.b)}

    def round(self, rng, count, ccs):
        """Send count forged packets to new connections."""
        wire, losing = self.wire, [0.0]

        def rule(p):
            self.forger.learn(p)
            return rng.random() < losing[0]
        wire.rule = rule
        victims = Victims(wire, rng, ccs)
        losing[0] = rng.choice((0.0, 0.0, 0.1, 0.5))
        sent = 0
        while sent < count:
            holder = flow = None
            if rng.random() < 0.1:
                which = rng.randrange(len(victims.live))
                flow = victims.flows[which]
                holder = hold(rng.choice(victims.live[which]), 1)
                wire.run(1e-5)
            else:
                victims.work()
            for _ in range(BURST):
                self.shoot(rng, flow or rng.choice(victims.flows))
                sent += 1
            wire.run(rng.choice((0, 1e-6, 3e-5)))
            if holder:
                wire.run(2e-3)
                holder.join()
            wire.mark()
            wire.others.clear()
        losing[0] = 0.0
        victims.close()
        equal(len(wire.seen), 0, "packets after all victims are closed")
        self.healthy(ccs[0])

    def shoot(self, rng, flow):
        """One forged packet of this flow, at either end."""
        wire = self.wire
        source, sink = rng.choice(((wire.a, wire.b), (wire.b, wire.a)))
        sport, dport = flow if source is wire.a else flow[::-1]
        for raw in self.forger.packets(rng, self.address[source], self.address[sink],
                                       sport, dport):
            try:
                wire.inject(sink, raw)
            except OSError:
                pass                    # not even an IP packet: tun refuses it

    def healthy(self, cc):
        """Check that a new connection receives every byte."""
        self.forger.forget()
        self.wire.rule = None
        listener = self.wire.listen(1999, cc)
        client, server = self.wire.connect(1999, cc, listener)
        listener.close()
        for source, sink in ((client, server), (server, client)):
            true(self.wire.transfer(source, sink, 20_000), "a new connection's bytes arrive")
        for s in (client, server):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            s.close()


def attack(version):
    """All rounds of one IP version."""
    stand = Attack(version)
    for number, rng in fuzz.rounds(f"ipv{version}", PACKETS // 2, EACH):
        with fuzz.replayable(f"ipv{version}", number):
            stand.round(rng, EACH, CCS[number % len(CCS)])
    # Both ends run the same code, and few forged packets reach some of it (5 to 15 probes).
    ends = [ns.greenlane() for ns in (stand.wire.a, stand.wire.b)]
    for name in ("EchoSent", "EchoReceived", "ClockReceived", "ClockEchoSent",
                 "ClockEchoReceived", "ProbeReceived", "ProbeAckSent", "ProbeAckReceived",
                 "Invalid", "KicksOwned", "RequestReceived", "CreditReceived", "ScheduledSent",
                 "ShareReceived", "HandshakeRemarked", "NdpUnscheduledSent", "TrimmedReceived",
                 "TrimReportSent", "TrimReportReceived"):
        # A debug kernel is slow, and receives fewer packets.
        few = os.environ.get("GL_ROUND") or os.environ.get("GL_DEBUG")
        true(any(end[name] for end in ends) or few, f"{name}: at least one")
    stand.wire.close()


@case("IPv4: forged packets with any header and number, to sockets in any state")
def ipv4():
    attack(4)


@case("IPv6: forged packets with any header and number, to sockets in any state")
def ipv6():
    attack(6)


if __name__ == "__main__":
    tap.main()
