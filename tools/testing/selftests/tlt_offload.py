#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""With TSO, GSO and GRO the same packets are important, and every byte arrives.

	ns a -- veth --+-- veth -- ns b
	               |
	        AF_PACKET in b receives TSO packets unchanged, before GRO

and the wire of lab.wire, which carries segments, with TSO and GSO on and off.
"""
import random
import socket
import subprocess
import threading
import time

from lab import tap
from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.net import modules, rtnl
from lab.net.namespace import FAMILY, Namespace
from lab.status import Cable
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import CWR, PSH
from lab.wire.wire import Wire, connected, pattern

COUNT = 3_000_000
OFF = "off"
ROUNDS = 30


@case("the first window has the same marks with TSO and without", version=(4, 6))
def same_marks(version):
    seen = []
    for tso in (True, False):
        with Wire(version=version, tso=tso) as wire:
            client, server = wire.connect()
            wire.mark()
            wire.rule = lambda p: not p.from_a      # the first window only
            client.send(pattern(100_000))
            wire.run(100e-6)
            seen.append([(p.len, p.kind) for p in wire.from_a()])
            if tso:
                true(wire.a.greenlane()["Split"] >= 1, "a TSO packet was split")
            else:
                equal(wire.a.greenlane()["Split"], 0, "Split")
            wire.rule = None
            wire.run(20e-3)
            del server
    equal(seen[0], seen[1], f"IPv{version}: packets with TSO on and off")
    equal([d for _, d in seen[0]], [DATA] * 9 + [IMPORTANT], "marks")


@case("each part of a split packet has valid checksums, lengths, IP ids and flags", connected,
      version=(4, 6))
def parts(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 300_000), "arrives")
    sent = [p for p in wire.from_a() if p.len and p.kind != CLOCK]
    for p in sent:
        equal(p.checksum_ok(), True, f"TCP checksum of {p!r}")
        if wire.version == 4:
            equal(pkt.checksum(bytes(p.raw[:20])), 0, "IP checksum")
            equal(int.from_bytes(p.raw[2:4], "big"), len(p.raw), "IP length")
        else:
            equal(int.from_bytes(p.raw[4:6], "big"), len(p.raw) - 40, "IPv6 length")
    if wire.version == 4:
        ids = [int.from_bytes(p.raw[4:6], "big") for p in sent]
        steps = {(b - a) & 0xffff for a, b in zip(ids, ids[1:])}
        equal(steps <= {1, 2}, True, f"steps between IP ids: {steps}")
    ends = [p.end for p in sent]
    equal(len(set(ends)), len(ends), "segments, each sent once")
    true(wire.a.greenlane()["Split"] > 0, "packets were split")
    equal(wire.a.greenlane()["SplitFailed"], 0, "SplitFailed")


@case("the first part of a split packet has CWR, the last one PSH", Wire, version=(4, 6))
def split_flags(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    client, server = wire.connect()
    # These packets have CE marks; the next one has CWR.
    wire.rule = lambda p: p.len and p.set_dsfield(p.dsfield | 3)
    true(wire.transfer(client, server, 14_000), "arrives")
    wire.run(10e-3)
    wire.rule = None
    wire.mark()
    split = wire.a.greenlane()["Split"]
    true(wire.transfer(client, server, 2 * 1400), "arrives")
    equal(wire.a.greenlane()["Split"], split + 1, "Split: the two segments were one packet")
    equal([(p.kind, p.flags & (CWR | PSH)) for p in wire.from_a() if p.len > 1],
          [(DATA, CWR), (IMPORTANT, PSH)], "marks and flags")


HEADERS = {"hop-by-hop": socket.IPV6_HOPOPTS, "destination": socket.IPV6_DSTOPTS}


@case("packets with IPv6 extension headers before TCP have the same marks", tso=(True, False),
      header=tuple(HEADERS))
def extension_headers(tso, header):
    with Wire(version=6, tso=tso) as wire:
        client, server = wire.connect()
        # PadN, a padding option, which every host skips
        client.setsockopt(socket.IPPROTO_IPV6, HEADERS[header], b"\0\0\1\4\0\0\0\0")
        client.send(pattern(5 * 1400))
        wire.run(1e-3)
        equal([p.dscp for p in wire.others if p.from_a], [DATA.dscp] * 4 + [IMPORTANT.dscp],
              "marks")
        equal(server.recv(1 << 20), pattern(5 * 1400), "bytes")
        counters = wire.a.greenlane()
        equal((counters["EchoReceived"], counters["SplitFailed"]), (1, 0),
              "EchoReceived, SplitFailed")


class Pair:
    """A blocking connection between two namespaces."""

    def __init__(self, version, a, b, host):
        family = FAMILY[version]
        with b:
            self._listener = socket.socket(family)
        self._listener.bind((host, 7))
        self._listener.listen(1)
        with a:
            self.client = socket.socket(family)
        self.client.connect((host, 7))
        self.server = self._listener.accept()[0]

    def exchange(self):
        """COUNT bytes in each direction at once; checks them."""
        data = pattern(COUNT)
        got = {}

        def read(s):
            parts_read, left = [], COUNT
            while left:
                more = s.recv(1 << 20)
                if not more:
                    break
                parts_read.append(more)
                left -= len(more)
            got[s] = b"".join(parts_read)
        both = (self.client, self.server)
        threads = [threading.Thread(target=read, args=(s,)) for s in both]
        threads += [threading.Thread(target=s.sendall, args=(data,)) for s in both]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for s in both:
            equal(got[s] == data, True, "the bytes received are those sent")

    def close(self):
        """Close all sockets."""
        for s in (self.client, self.server, self._listener):
            s.close()


class Veth:
    """Two namespaces and a veth pair with these offloads; a packet socket in b."""
    number = 0

    def __init__(self, version, mtu, **offloads):
        Veth.number += 1
        modules.load("tcp_tlt")
        self.version = version
        self.a = Namespace(f"va{Veth.number}")
        self.b = Namespace(f"vb{Veth.number}")
        subprocess.run(["ip", "link", "add", "v", "netns", self.a.name, "type", "veth",
                        "peer", "name", "v", "netns", self.b.name], check=True)
        for ns, host in ((self.a, 1), (self.b, 2)):
            ns.sysctl("net.ipv6.conf.all.accept_dad", 0)
            ns.ip(f"link set v mtu {mtu} up", f"addr add 10.0.0.{host}/24 dev v",
                  f"addr add fd00::{host}/64 dev v nodad")
            ns.sysctl("net.ipv4.tcp_congestion_control", "tlt_dctcp")
            ns.sysctl("net.ipv4.tcp_ecn", 1)
            args = [a for pair in offloads.items() for a in pair]
            if args:
                subprocess.run(["ip", "netns", "exec", ns.name, "ethtool", "-K", "v", *args],
                               check=True)

    def frames(self):
        """COUNT bytes in each direction at once; returns the frames of the link that arrive at
        b."""
        with self.b:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            raw.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)     # SO_RCVBUFFORCE
        pair = Pair(self.version, self.a, self.b, "10.0.0.2" if self.version == 4 else "fd00::2")
        pair.exchange()
        frames = []
        raw.setblocking(False)
        while True:
            try:
                frame, sender = raw.recvfrom(1 << 18)
            except BlockingIOError:
                break
            if sender[2] != 4:          # not PACKET_OUTGOING
                frames.append(frame)
        raw.close()
        pair.close()
        return frames

    def transfer(self):
        """COUNT bytes in each direction at once; returns the packets that arrive at b."""
        return [p for p in map(pkt.Packet, self.frames()) if p.tcp]

    def close(self):
        """Remove the namespaces."""
        self.a.remove()
        self.b.remove()


OFFLOADS = {
    "as they are": {},
    "no TSO": {"tso": OFF},
    "no TSO or GSO": {"tso": OFF, "gso": OFF},
    "GRO": {"gro": "on"},
    "GRO, no TSO or GSO": {"gro": "on", "tso": OFF, "gso": OFF},
}


@case("data in both directions: every byte arrives, and important packets are single segments",
      version=(4, 6), mtu=(1500, 9000), offloads=tuple(OFFLOADS))
def matrix(version, mtu, offloads):
    veth = Veth(version, mtu, **OFFLOADS[offloads])
    packets = veth.transfer()
    # an MTU includes the IP and TCP headers
    for p in packets:
        if p.kind in (IMPORTANT, CLOCK) and len(p.raw) > mtu:
            raise tap.Failed(f"important and not split: {p!r}")
    important = sum(p.kind == IMPORTANT and p.len > 0 for p in packets)
    clocks = sum(p.kind == CLOCK for p in packets)
    true(important + clocks > 2, "more than 2 important packets and clocks")
    odd = [p for p in packets if p.len and p.kind not in (DATA, IMPORTANT, CLOCK)]
    equal(odd[:1], [], "data with another mark")
    counters = veth.a.greenlane()
    true(counters["ImportantSentBytes"] + counters["DataSentBytes"] >= COUNT, "bytes counted")
    equal(counters["SplitFailed"], 0, "SplitFailed")
    veth.close()


BIG = 200_000
# IFLA_GSO_IPV4_MAX_SIZE and IFLA_GRO_IPV4_MAX_SIZE, since 6.3; IFLA_GSO_MAX_SIZE, IFLA_GRO_MAX_SIZE
BIG_OPTIONS = {4: (63, 64), 6: (41, 58)}


@case("BIG TCP: the last segment of a packet above 64 kB is important, too", version=(4, 6))
def big(version):
    veth = Veth(version, 1500)
    for ns in (veth.a, veth.b):
        with ns:
            if not rtnl.set_link("v", dict.fromkeys(BIG_OPTIONS[version], BIG)):
                raise tap.Skip(f"the kernel has no BIG TCP for IPv{version}")
    frames = veth.frames()
    true(max(len(f) for f in frames) > 65536, "packets of more than 64 kB")
    equal({pkt.Packet(f).dscp for f in frames if len(f) > 1500}, {DATA.dscp},
          "DSCPs of packets with several segments")
    counters = [ns.greenlane() for ns in (veth.a, veth.b)]
    equal([(c["SplitFailed"], c["Fallback"]) for c in counters], [(0, 0)] * 2,
          "(SplitFailed, Fallback)")
    true(all(c["Split"] > 0 and c["EchoReceived"] > 0 for c in counters), "Split, EchoReceived")
    veth.close()


@case("data in both directions, whose ACKs overtake echoes: no connection falls back",
      version=(4, 6))
def overtaken(version):
    for _ in range(8):
        veth = Veth(version, 1500, gro="on", tso=OFF, gso=OFF)
        veth.transfer()
        counters = [ns.greenlane() for ns in (veth.a, veth.b)]
        equal([c["Fallback"] for c in counters], [0, 0], f"IPv{version}: Fallback")
        veth.close()


@case("loopback, with packets of 64 kB or of many segments: every byte arrives",
      version=(4, 6), mtu=(65536, 16000))
def loopback(version, mtu):
    modules.load("tcp_tlt")
    ns = Namespace(f"lo{version}{mtu}")
    ns.ip(f"link set lo mtu {mtu} gso_max_size 65536" if mtu < 65536 else "", "link set lo up")
    ns.sysctl("net.ipv4.tcp_congestion_control", "tlt_cubic")
    pair = Pair(version, ns, ns, "127.0.0.1" if version == 4 else "::1")
    pair.exchange()
    pair.close()
    counters = ns.greenlane()
    true(counters["ImportantSent"] + counters["ClockByteSent"] > 2,
         "more than 2 important packets and clocks")
    # Newer kernels use GSO on a loopback of 64 kB, too.
    if mtu < 65536:
        true(counters["Split"] > 0, "a packet was split")
    equal(counters["SplitFailed"], 0, f"IPv{version}, MTU {mtu}: SplitFailed")
    ns.remove()


@case("a split packet has at least one transmit time stamp", connected)
def timestamps(wire, client, server):
    # SOF_TIMESTAMPING_TX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY
    client.setsockopt(socket.SOL_SOCKET, 37, 1 << 1 | 1 << 4 | 1 << 7 | 1 << 11)
    true(wire.transfer(client, server, 14_480), "arrives")
    wire.run(1e-3)
    stamps = 0
    while True:
        try:
            client.recvmsg(1000, 1000, 0x2000)      # MSG_ERRQUEUE
        except BlockingIOError:
            break
        stamps += 1
    true(stamps >= 1, "at least one time stamp")
    true(wire.a.greenlane()["Split"] >= 1, "a packet was split")


@case("a small port on this host drops one part of a split packet: data still arrives",
      cc=("tlt_reno", "dart"))
def local_drops(cc):
    tap.need_virtual_time()
    # The dropped packets differ with the time at which the writes begin.
    rng = random.Random(cc)
    for number in range(ROUNDS):
        with Cable("color rate 10mbit limit 6k", cc=cc) as cable:
            for ns in (cable.a, cable.b):
                ns.sysctl("net.ipv4.tcp_ecn", 1)
            time.sleep(rng.random() / 1000)
            pairs = [cable.connect() for _ in range(12)]
            began = time.monotonic()
            cable.send(pairs, 50_000)
            within(time.monotonic() - began, 0, 10, f"transfer time of round {number}, s")


if __name__ == "__main__":
    tap.main()
