#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What applications and the network must not be able to do: spoof, forge, break.

	a (client) ---- wire (this program, injects) ---- b (server)
"""
import errno
import random
import socket
import struct

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, CREDIT, DATA, ECHO, IMPORTANT, REQUEST, MESSAGE, MESSAGE_END, SCHEDULED, SHARE, SPENT, SPENT_END, SHORT
from lab.net.namespace import FAMILY
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import ACK, RST, SYN
from lab.wire.sockopt import (GREENLANE_AEOLUS, GREENLANE_BDP, GREENLANE_COSENDERS, GREENLANE_INFO,
                              GREENLANE_TLT, INFO_SIZE, ip_level, option, refused)
from lab.wire.wire import Wire, connected

PROTECTED = (IMPORTANT, ECHO, CLOCK, CLOCK_ECHO, CONTROL, SCHEDULED, REQUEST, CREDIT,
             SHARE, MESSAGE, MESSAGE_END, SPENT, SPENT_END)
SEED = 20260110


# --- applications

@case("IP_TOS with a protected codepoint: stripped, counted; others are left", Wire,
      version=(4, 6), cc="cubic")
def spoofed_tos(wire):
    for dscp in range(64):
        before = wire.a.greenlane()["Stripped"]
        with wire.a:
            s = socket.socket(FAMILY[wire.version], socket.SOCK_DGRAM)
        if wire.version == 4:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2 | 2)
        else:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2 | 2)
        wire.others.clear()
        s.sendto(b"u" * 10, (wire.address(wire.b), 9))
        wire.run(5e-6)
        s.close()
        equal(len(wire.others) >= 1, True, "a packet left")
        sent = wire.others[0]
        ours = dscp in PROTECTED + SHORT
        expected = 0 if ours else dscp
        equal((sent.dscp, sent.ecn), (expected, 2), f"DSCP {dscp} and its ECN bits")
        equal(wire.a.greenlane()["Stripped"] - before, int(ours),
              "Stripped")
        if wire.version == 4:
            equal(pkt.checksum(bytes(sent.raw[:20])), 0, "IPv4 header checksum")


@case("TCP of another congestion control with IP_TOS: stripped", Wire, cc="cubic")
def spoofed_tcp(wire):
    client, server = wire.connect(IP_TOS=IMPORTANT << 2)
    wire.transfer(client, server, 20_000)
    equal({p.dscp for p in wire.from_a()}, {0}, "DSCP")


@case("IP_TOS with a protected codepoint, on a connection of ours that does not mark: stripped",
      version=(4, 6), why=("without a peer", "switched off"))
def spoofed_unmarked(version, why):
    with Wire(version=version, cc_b="reno" if why == "without a peer" else None) as wire:
        client, server = wire.connect()
        if version == 4:
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, IMPORTANT << 2)
        else:
            client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, IMPORTANT << 2)
        if why == "switched off":
            option(client, GREENLANE_TLT, 0)
        wire.run(1e-3)
        wire.mark()
        true(wire.transfer(client, server, 20_000), "arrives")
        equal({p.dscp for p in wire.from_a()}, {0}, "DSCP")
        true(wire.a.greenlane()["Stripped"] > 0, "Stripped")


@case("greenlane_protect 0: not stripped; per namespace", Wire, cc="cubic")
def protect_off(wire):
    wire.a.sysctl("net.ipv4.greenlane_protect", 0)
    equal(wire.b.sysctl("net.ipv4.greenlane_protect"), "1", "the other namespace's")
    client, server = wire.connect(IP_TOS=IMPORTANT << 2)
    equal({p.dscp for p in wire.from_a()}, {IMPORTANT}, "DSCP")


@case("a connection of ours ignores IP_TOS", Wire)
def own_tos(wire):
    client, server = wire.connect(IP_TOS=46 << 2)
    wire.transfer(client, server, 50_000)
    equal({p.dscp for p in wire.from_a() if p.len} - {DATA, IMPORTANT, CLOCK}, set(),
          "other DSCPs of data")


@case("a ping with a protected TOS gets no protected answer", Wire)
def reflected(wire):
    icmp = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
    icmp = icmp[:2] + struct.pack("!H", pkt.checksum(icmp)) + icmp[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, IMPORTANT << 2, 20 + len(icmp), 1, 0, 64, 1, 0,
                     socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.0.2"))
    ip = ip[:10] + struct.pack("!H", pkt.checksum(ip)) + ip[12:]
    wire.inject(wire.b, ip + icmp)
    wire.run(1e-3)
    answers = [p for p in wire.others if p.raw[9] == 1]
    equal([p.dscp for p in answers], [0], "DSCP of the answer")


# --- socket options and sysctls

@case("socket options: short, wrong level, wrong socket, out of range", connected, version=(4, 6))
def sockopts(wire, client, server):
    level = ip_level(client)
    equal(len(client.getsockopt(level, GREENLANE_INFO, 1000)), INFO_SIZE, "size of the info")
    equal(len(client.getsockopt(level, GREENLANE_INFO, 8)), 8, "an older program's")
    equal(client.getsockopt(level, GREENLANE_TLT), 1, "GREENLANE_TLT")
    for bad in (2, -1, 1 << 30):
        refused(f"GREENLANE_TLT {bad}", errno.EINVAL, client.setsockopt, level,
                GREENLANE_TLT, bad)
    refused("short set", errno.EINVAL, client.setsockopt, level, GREENLANE_TLT, b"\1")
    refused("empty set", errno.EINVAL, client.setsockopt, level, GREENLANE_TLT, b"")
    refused("short get", errno.EINVAL, client.getsockopt, level, GREENLANE_TLT, 2)
    refused("set of the info", errno.ENOPROTOOPT, client.setsockopt, level,
            GREENLANE_INFO, 1)
    refused("wrong level", errno.ENOPROTOOPT, client.getsockopt,
            socket.IPPROTO_TCP, GREENLANE_INFO, INFO_SIZE)
    for name in (GREENLANE_AEOLUS, GREENLANE_BDP):
        refused("another transport's", errno.EOPNOTSUPP, option, client, name)
        refused("another transport's", errno.EOPNOTSUPP, option, client, name, 1)
    refused("beyond ours", errno.ENOPROTOOPT, client.getsockopt, level,
            GREENLANE_COSENDERS + 1, 4)
    equal(client.getsockopt(level, GREENLANE_TLT), 1, "GREENLANE_TLT afterwards")
    with wire.a:
        udp = socket.socket(client.family, socket.SOCK_DGRAM)
        idle = socket.socket(client.family, socket.SOCK_STREAM)
    refused("UDP", errno.ENOPROTOOPT, udp.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    refused("not connected", errno.ENOTCONN, idle.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    idle.setsockopt(socket.IPPROTO_TCP, 13, b"reno")
    refused("another's", errno.ENOPROTOOPT, idle.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    wire.transfer(client, server, 10_000)
    for s in (udp, idle):
        s.close()


@case("sysctls: every codepoint can be changed; out of range and taken ones cannot", Wire)
def sysctls(wire):
    names = ("data", "important", "echo", "clock", "clock_echo", "control", "scheduled",
             "request", "credit", "share", "message", "message_end", "spent", "spent_end")
    for name, default in zip(names, (DATA, *PROTECTED)):
        key = f"net.ipv4.greenlane_dscp_{name}"
        equal(wire.a.sysctl(key), str(default), key)
        for bad in ("0", "64", "-1", "4294967306", "x", "", str(DATA + IMPORTANT - default)
                    if default in (DATA, IMPORTANT) else str(DATA)):
            try:
                wire.a.sysctl(key, bad)
                accepted = bad != ""
            except OSError as err:
                equal(err.errno, errno.EINVAL, f"{key} = {bad}")
                accepted = False
            equal(accepted, False, f"{key} = {bad!r} accepted")
            equal(wire.a.sysctl(key), str(default), f"{key} after {bad!r}")
    for bad in ("2", "-1", "256"):
        try:
            wire.a.sysctl("net.ipv4.greenlane_protect", bad)
            raise tap.Failed(f"greenlane_protect = {bad} accepted")
        except OSError as err:
            equal(err.errno, errno.EINVAL, "greenlane_protect")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_dscp_important", 46)
    client, server = wire.connect()
    wire.transfer(client, server, 50_000)
    true(any(p.dscp == 46 and p.len for p in wire.from_a()), "data with the new codepoint")
    equal([p for p in wire.from_a() if p.dscp == IMPORTANT], [], "with the old one")


# --- the network

class Flow:
    """A connection that has sent something and rests: what a forger would need."""

    def __init__(self, wire):
        self.wire = wire
        self.client, self.server = wire.connect()
        wire.transfer(self.client, self.server, 10_000)
        wire.run(1e-3)
        newest = [p for p in wire.from_a() if p.dscp != CLOCK][-1]
        self.seq, self.ack = newest.end, newest.ack     # a's next, b's next
        self._a = (wire.address(wire.a), newest.sport)
        self._b = (wire.address(wire.b), newest.dport)
        wire.mark()

    def from_a(self, seq=0, ack=0, **fields):
        """A forged packet to b; seq and ack count from what is right."""
        return pkt.make(self.wire.version, self._a[0], self._b[0], self._a[1], self._b[1],
                        self.seq + seq, self.ack + ack, **fields)

    def from_b(self, seq=0, ack=0, **fields):
        """A forged packet to a."""
        return pkt.make(self.wire.version, self._b[0], self._a[0], self._b[1], self._a[1],
                        self.ack + seq, self.seq + ack, **fields)

    def goes_on(self):
        """The connection has taken no harm."""
        true(self.wire.transfer(self.client, self.server, 50_000), "the connection goes on")


@case("forged clocks: in the window they are answered, outside they are not", Wire, version=(4, 6))
def forged_clocks(wire):
    flow = Flow(wire)
    for offset in (-1, -5000, 0, 10000):
        wire.inject(wire.b, flow.from_a(offset, payload=b"!", dscp=CLOCK))
    wire.run(1e-3)
    equal([p.dscp for p in wire.from_b()], [CLOCK_ECHO] * 4, "answers in the window")
    equal({p.ack for p in wire.from_b()}, {flow.seq}, "what they acknowledge")
    wire.mark()
    before = wire.b.greenlane()["Invalid"]
    for offset in (1 << 30, -(1 << 30), 1 << 31):
        wire.inject(wire.b, flow.from_a(offset, payload=b"!", dscp=CLOCK))
        wire.inject(wire.b, flow.from_a(0, offset, payload=b"!", dscp=CLOCK))
    wire.inject(wire.b, flow.from_a(dscp=CLOCK))        # without a byte
    wire.run(1e-3)
    equal([p.dscp for p in wire.from_b() if p.dscp == CLOCK_ECHO], [],
          "answers outside")
    equal(wire.b.greenlane()["Invalid"] - before, 7, "Invalid")


@case("a forged clock in the window delivers nothing", Wire)
def clock_delivers_nothing(wire):
    flow = Flow(wire)
    for offset in (-1, 0, 1000):
        wire.inject(wire.b, flow.from_a(offset, payload=b"!", dscp=CLOCK))
    wire.run(1e-3)
    # transfer() compares what is read: a byte too much would show
    flow.goes_on()


@case("a clock with a bad checksum is not answered", Wire)
def bad_checksum(wire):
    flow = Flow(wire)
    p = flow.from_a(-1, payload=b"!", dscp=CLOCK)
    p.raw[-1] ^= 0xff
    wire.inject(wire.b, p)
    wire.run(1e-3)
    equal(wire.from_b(), [], "answers")
    equal(wire.b.greenlane()["Invalid"], 1, "Invalid")


@case("an important packet that TCP refuses is not echoed", connected, version=(4, 6))
def refused_by_tcp(wire, client, server):
    true(wire.transfer(client, server, 1000), "arrives")
    wire.run(1e-3)
    last = [p for p in wire.from_a() if p.len][-1]
    wire.mark()
    bad = pkt.make(wire.version, wire.address(wire.a), wire.address(wire.b), last.sport,
                   last.dport, last.end, last.ack, dscp=IMPORTANT, payload=b"r" * 100)
    bad.raw[-1] ^= 0xff       # its checksum
    wire.inject(wire.b, bad)
    wire.run(10e-3)
    equal([p.dscp for p in wire.seen if p.dscp == ECHO], [], "echoes")
    true(wire.transfer(client, server, 1000), "the next one arrives")
    equal([p.dscp for p in wire.from_b()].count(ECHO), 1, "echoes of that")


@case("a clock echo is kept from TCP, unless it tells TCP something", connected, version=(4, 6))
def consumed(wire, client, server):
    true(wire.transfer(client, server, 50_000), "arrives")
    wire.run(1e-3)
    last = wire.from_b()[-1]

    def echo(expected, what, window=last.window, options=b""):
        wire.inject(wire.a, pkt.make(
            wire.version, wire.address(wire.b), wire.address(wire.a), last.sport, last.dport,
            last.seq, last.ack, dscp=CLOCK_ECHO, window=window, options=options))
        wire.run(1e-3)
        equal(wire.a.greenlane()["ClockEchoConsumed"] - before, expected, what)
    before = wire.a.greenlane()["ClockEchoConsumed"]
    echo(1, "nothing new")
    echo(1, "another window", window=last.window + 1)
    echo(2, "nothing new again", window=last.window + 1)
    sack = struct.pack("!II", last.ack - 1000, last.ack)
    echo(2, "a SACK block", window=last.window + 1, options=b"\1\1\5\12" + sack)


@case("forged echoes cannot make a sender retransmit or fall back", Wire, version=(4, 6))
def forged_echoes(wire):
    flow = Flow(wire)
    flow.client.send(b"e" * 5000)
    for dscp in (ECHO, CLOCK_ECHO):
        for ack in (0, -1000, 1, 100000, 1 << 31):
            wire.inject(wire.a, flow.from_b(0, ack, dscp=dscp))
            wire.inject(wire.a, flow.from_b(1 << 30, ack, dscp=dscp))
    wire.run(3e-3)
    data = [p.seq for p in wire.from_a() if p.len and p.dscp != CLOCK]
    equal(len(data), len(set(data)), "no packet was sent twice")
    within(len([p for p in wire.from_a() if p.dscp == CLOCK]), 0, 12, "clocks")
    equal(len(flow.server.recv(10_000)), 5000, "all arrives")
    equal(wire.a.greenlane()["Fallback"], 0, "Fallback")


@case("an off-path attacker's marks do not make a peer of one that is none", version=(4, 6))
def forged_peer(version):
    rng = random.Random(SEED)
    with Wire(cc="tlt_reno", cc_b="reno", version=version) as wire:
        flow = Flow(wire)
        for dscp in PROTECTED:
            for _ in range(200):
                far = rng.randrange(1 << 26, (1 << 32) - (1 << 26))
                for p in (flow.from_b(far, dscp=dscp), flow.from_b(0, far, dscp=dscp),
                          flow.from_b(far, payload=b"p", dscp=dscp)):
                    wire.inject(wire.a, p)
            wire.run(1e-4)
        wire.mark()
        flow.goes_on()
        equal(wire.a.greenlane()["PeerAppeared"], 0, "PeerAppeared")
        equal({p.dscp for p in wire.from_a()}, {0}, "DSCP")


@case("packets with every TOS, with and without data, both ways", Wire, version=(4, 6))
def every_tos(wire):
    flow = Flow(wire)
    for dsfield in range(256):
        for payload in (b"", b"x" * 3):
            for base in (0, -100, 1 << 20):
                seq = base - len(payload)
                for ns, forge in ((wire.b, flow.from_a), (wire.a, flow.from_b)):
                    p = forge(seq, payload=payload)
                    p.set_dsfield(dsfield)
                    wire.inject(ns, p)
        wire.run(20e-6)
    wire.run(10e-3)
    flow.goes_on()


def malformed_packet(rng, forge):
    """Bytes that look like a packet of the flow with a codepoint of ours."""
    flags = rng.choice((ACK, ACK, ACK, 0, SYN, SYN | ACK, rng.randrange(256)))
    # Far outside of the window, so that TCP itself must refuse it; and no RST,
    # which may end the connection, and rightly so.
    p = forge((1 << 30) + rng.randrange(1 << 29), (1 << 30) + rng.randrange(1 << 29),
              flags=flags & ~RST, dscp=rng.choice((DATA, *PROTECTED)),
              payload=b"m" * rng.randrange(4),
              options=bytes(rng.randrange(256) for _ in range(4 * rng.randrange(11))),
              doff=rng.choice((None, None, rng.randrange(16))))
    raw = bytes(p.raw)
    return raw[:rng.randrange(1, len(raw) + 1)] if rng.random() < 0.3 else raw


@case("malformed headers and options with our codepoints: no report, no harm", version=(4, 6))
def malformed(version):
    rng = random.Random(SEED)
    with Wire(version=version) as wire:
        flow = Flow(wire)
        for n in range(3000):
            ns, forge = rng.choice(((wire.b, flow.from_a), (wire.a, flow.from_b)))
            try:
                wire.inject(ns, malformed_packet(rng, forge))
            except OSError:
                pass            # not even an IP packet: tun refuses it
            if n % 50 == 0:
                wire.run(50e-6)
        wire.run(20e-3)
        flow.goes_on()


if __name__ == "__main__":
    tap.main()
