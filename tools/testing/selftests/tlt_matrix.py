#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TSO, GSO, GRO x MTU x IP version, through a color port: the same marks.

	ns a -- left ==== p0 [ns switch] p1 ==== right -- ns b
	                          color: 1 Gbit/s, drops red first

A write that fits into the congestion window is one burst, its last packet is the
important one, and that packet ends where the write ends, however the burst is split.
So in all 16 combinations the same sequence numbers (as offsets from the first) are
important, one a write.  The length of the important packet follows from the segment
size, so it is equal for the same MTU and IP version.  Bulk transfers differ: with GRO
there are fewer ACKs, and thus fewer round trips in which a packet is important.  There
every byte arrives, no important packet is lost, and no timer expires.
"""
import contextlib
import functools
import itertools
import socket
import struct

from lab import tap
from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.net import modules
from lab.net import frames as port
from lab.net.namespace import FAMILY, Namespace
from lab.tap import equal, timed, true, using
from lab.wire import packet as pkt
from lab.wire.wire import pattern

# Bytes; each within the initial window of ten segments of the smaller MTU.
WRITES = (1, 100, 1000, 1428, 1429, 3000, 5000, 10_000, 14_000, 14_280) * 2
BULK = 2_000_000
B = {4: "10.2.0.2", 6: "fd02::2"}
DEVICES = (("a", "left"), ("switch", "p0"), ("switch", "p1"), ("b", "right"))
ALL = {"version": (4, 6), "mtu": (1500, 9000), "gso": ("on", "off"), "gro": ("on", "off")}


class Net:
    """Two hosts and a switch that routes."""
    number = 0

    def __init__(self):
        modules.load("tcp_tlt")
        port.insmod()
        Net.number += 1
        self.ns = {name: Namespace(f"{name}{Net.number}") for name in ("a", "switch", "b")}
        for host, dev, its, net in (("a", "left", "p0", 1), ("b", "right", "p1", 2)):
            port.run("ip", "link", "add", dev, "netns", self.ns[host].name, "type", "veth",
                     "peer", "name", its, "netns", self.ns["switch"].name)
            for name, device, number in ((host, dev, 2), ("switch", its, 1)):
                self.ns[name].sysctl("net.ipv6.conf.all.accept_dad", 0)
                self.ns[name].ip("link set lo up", f"link set {device} up",
                                 f"addr add 10.{net}.0.{number}/24 dev {device}",
                                 f"addr add fd0{net}::{number}/64 dev {device} nodad")
            self.ns[host].ip(f"route add default via 10.{net}.0.1 rto_min 4ms",
                             f"route add default via fd0{net}::1 rto_min 4ms")
            self.ns[host].sysctl("net.ipv4.tcp_congestion_control", "tlt_cubic")
            self.ns[host].sysctl("net.ipv4.tcp_no_metrics_save", 1)
        self.ns["switch"].sysctl("net.ipv4.ip_forward", 1)
        self.ns["switch"].sysctl("net.ipv6.conf.all.forwarding", 1)
        port.settle(5)          # IPv6 is not ready at once

    def set(self, mtu, gso, gro, **_):
        """Set one combination, and replace the port."""
        for name, device in DEVICES:
            self.ns[name].ip(f"link set {device} mtu {mtu} gso_max_segs "
                             f"{65535 if gso == 'on' else 1}")
            with self.ns[name]:
                port.run("ethtool", "-K", device, "tso", gso, "gso", gso, "gro", gro)
        with self.ns["switch"]:
            port.tc("qdisc replace dev p1 root handle 1: "
                    "color rate 1gbit limit 1000000 red 100000")

    def connect(self, version):
        """(client in a, server in b, a packet socket for packets that arrive at b)."""
        with self.ns["b"]:
            listener = socket.socket(FAMILY[version])
            seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        seen.setsockopt(socket.SOL_SOCKET, port.SO_RCVBUFFORCE, 64 << 20)
        seen.setsockopt(port.SOL_PACKET, port.PACKET_IGNORE_OUTGOING, 1)
        seen.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((B[version], 7))
        listener.listen(1)
        with self.ns["a"]:
            client = socket.socket(FAMILY[version])
        client.connect((B[version], 7))
        server = listener.accept()[0]
        listener.close()
        port.settle(0.01)
        return client, server, seen

    def close(self):
        """Remove the namespaces."""
        for ns in self.ns.values():
            ns.remove()


def data_packets(seen):
    """Packets with data that have arrived at b."""
    packets = []
    while True:
        try:
            packets.append(pkt.Packet(seen.recv(1 << 17)))
        except BlockingIOError:
            break
    return [p for p in packets if p.tcp and p.len and p.dport == 7]


def read(server, count):
    """Read count bytes."""
    got = bytearray()
    server.settimeout(5)
    while len(got) < count:
        more = server.recv(1 << 20)
        true(more, "more bytes arrive")
        got += more
    return bytes(got)


def writes(net, version):
    """One write after the other: [(end, length) of each important packet]."""
    client, server, seen = net.connect(version)
    for count in WRITES:
        client.sendall(pattern(count))
        equal(read(server, count) == pattern(count), True,
              f"the bytes of a write of {count} are those sent")
        port.settle(0.01)
    packets = data_packets(seen)
    first = min(p.seq for p in packets)
    odd = [p for p in packets if p.kind not in (DATA, IMPORTANT, CLOCK)]
    equal(odd, [], "data with another mark")
    equal(sum(p.len for p in packets if p.kind != CLOCK), sum(WRITES), "bytes, each once")
    for s in (client, server, seen):
        s.close()
    return [(p.end - first, p.len) for p in packets if p.kind == IMPORTANT]


@contextlib.contextmanager
def combination(**c):
    """The common network, set up for this combination."""
    net = network()
    net.set(**c)
    yield net, c


network = functools.cache(Net)
everywhere = using(combination, **ALL)


@everywhere("the same sequence numbers are important, one a write, at its end")
def same_marks(net, c):
    seen = writes(net, c["version"])
    equal([end for end, _ in seen], list(itertools.accumulate(WRITES)),
          "ends of important packets")
    # 20 or 40 bytes of IP, 20 of TCP, 12 of its time stamps
    mss = c["mtu"] - (52 if c["version"] == 4 else 72)
    equal([n for _, n in seen], [(count - 1) % mss + 1 for count in WRITES],
          "lengths: the rest of each write after full segments")


def transfer(net, c):
    """Transfer BULK bytes at once, of which the port drops red packets."""
    data = pattern(BULK)
    client, server, seen = net.connect(c["version"])
    client.setblocking(False)
    sent, got = 0, bytearray()
    while len(got) < BULK:
        try:
            sent += client.send(data[sent:])
        except BlockingIOError:
            pass
        got += read(server, 1)
    equal(bytes(got) == data, True, "the bytes are those sent")
    packets = data_packets(seen)
    wrong = [p for p in packets if p.kind in (IMPORTANT, CLOCK) and len(p.raw) > c["mtu"]]
    equal(wrong, [], "important packets of more than one segment")
    true(sum(p.kind in (IMPORTANT, CLOCK) for p in packets) > 10,
         "more than 10 important packets and clocks")
    with net.ns["switch"]:
        colors = port.colors("p1")
    equal(sum(colors["green"]["drops"].values()), 0, "green packets dropped")
    true(colors["red"]["packets"] > BULK // c["mtu"], "red packets, counted as segments")
    equal(net.ns["a"].greenlane()["SplitFailed"], 0, "SplitFailed")
    for s in (client, server, seen):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


@everywhere("a bulk transfer: every byte arrives, the port drops no important packet")
def bulk(net, c):
    transfer(net, c)


def timers(net):
    """Numbers of expired timers of both hosts."""
    return [net.ns[n].netstat(f"TCP{what}") for n in "ab" for what in ("Timeouts", "LossProbes")]


# In real time they also expire when a processor is busy elsewhere for 4 ms.
@timed("a bulk transfer: no timer expires", setup=combination, **ALL)
def without_timers(net, c):
    before = timers(net)
    transfer(net, c)
    equal(timers(net), before, "TCPTimeouts and TCPLossProbes of both hosts")


if __name__ == "__main__":
    tap.main()
