#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Applications and tenants cannot gain priority by marking their packets themselves.

	ns inner -- ns tenant -- t0 [ns host] port0 -- ns out
	                         ^            ^
	          remedy: clears the DSCP     a color port, which counts by colour

All namespaces but "out" have greenlane_protect on, and every socket lacks CAP_NET_ADMIN.
Such an application cannot get green packets to the port.  A tenant that is root in its own
namespace can, so Documentation/operations.rst has a remedy for the host; this test takes its
commands from there.
"""
import re
import socket
import struct

from lab import tap
from lab.codepoints import DATA, GREEN, IMPORTANT
from lab.net import frames as port
from lab.net import libc, modules
from lab.net.namespace import FAMILY, Namespace
from lab.tap import case, equal, true
from lab.wire import packet as pkt
from lab.wire.packet import SYN
from lab.wire.sockopt import set_tos
from lab.wire.wire import pattern

PORT = 1000
IPV6_HDRINCL, UDP_SEGMENT, ECT0 = 36, 103, 2
ADDRESS = {"inner": {4: "10.2.0.2", 6: "fd02::2"}, "tenant": {4: "10.1.0.2", 6: "fd01::2"},
           "host": {4: "10.0.0.1", 6: "fd00::1"}, "out": {4: "10.0.0.2", 6: "fd00::2"}}
OPERATIONS = "Documentation/operations.rst"


class Net:
    """The four namespaces."""
    number = 0

    def __init__(self, cc="tlt_reno", cc_tenant="reno"):
        modules.load("tcp_tlt")
        port.insmod()
        Net.number += 1
        self.ns = {name: Namespace(f"{name}{Net.number}")
                   for name in ("inner", "tenant", "host", "out")}
        for ns in self.ns.values():
            ns.sysctl("net.ipv6.conf.all.accept_dad", 0)
            ns.sysctl("net.ipv6.conf.default.accept_dad", 0)
            ns.sysctl("net.ipv4.ip_forward", 1)
            ns.sysctl("net.ipv6.conf.all.forwarding", 1)
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)
        for name in ("inner", "tenant", "host"):
            self.ns[name].sysctl("net.ipv4.greenlane_protect", 1)
        for name in ("inner", "tenant"):
            self.ns[name].sysctl("net.ipv4.tcp_congestion_control", cc_tenant)
        self.link("inner", "eth0", "tenant", "i0", 2)
        self.link("tenant", "eth0", "host", "t0", 1)
        self.link("out", "eth0", "host", "port0", 0)
        self.ns["inner"].ip("route add default via 10.2.0.1", "route add default via fd02::1")
        self.ns["tenant"].ip("route add default via 10.1.0.1", "route add default via fd01::1")
        self.ns["host"].ip("route add 10.2.0.0/24 via 10.1.0.2", "route add fd02::/64 via fd01::2")
        self.ns["out"].ip("route add default via 10.0.0.1", "route add default via fd00::1")
        self.tc("qdisc add dev port0 root handle 1: color rate 1gbit limit 1000000 red 100000")

    def link(self, inside, dev, outside, its, net):
        """A veth pair; the outer end is the gateway."""
        a, b = self.ns[inside], self.ns[outside]
        port.run("ip", "link", "add", dev, "netns", a.name, "type", "veth",
                 "peer", "name", its, "netns", b.name)
        for ns, name, host in ((a, dev, 2), (b, its, 1)):
            ns.ip("link set lo up", f"link set {name} up", f"addr add 10.{net}.0.{host}/24 dev {name}",
                  f"addr add fd0{net}::{host}/64 dev {name} nodad")

    def tc(self, words):
        """Run tc at the host."""
        port.run("tc", "-n", self.ns["host"].name, *words.split())

    def remedy(self):
        """Install the documentation's filters on the tenant's device."""
        with open(tap.need_tree(OPERATIONS), encoding="utf-8") as text:
            section = re.split(r"\n=+\n", text.read().split("\nTenants\n")[1])[0]
        lines = re.findall(r"^\ttc ((?:.*\\\n)*.*)$", section, re.MULTILINE)
        true(len(lines) >= 3, "the documentation has a remedy")
        for line in lines:
            self.tc(line.replace("\\\n", " ").replace("TENANT", "t0"))

    def counts(self):
        """Packets by colour at the host's port."""
        port.settle(0.05)
        with self.ns["host"]:
            return {color: seen["packets"] for color, seen in port.colors("port0").items()}

    def socket(self, name, version, kind=socket.SOCK_DGRAM, proto=0):
        """An application's socket in one of the namespaces."""
        with self.ns[name], libc.without_net_admin():
            s = socket.socket(FAMILY[version], kind, proto)
        s.settimeout(2)
        return s

    def transfer(self, name, version, cc=None, tos=0, count=100_000):
        """Send bytes from a namespace to out, over TCP; checks the received bytes."""
        listener = self.socket("out", version, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS["out"][version], PORT))
        listener.listen(1)
        client = self.socket(name, version, socket.SOCK_STREAM)
        if cc:
            client.setsockopt(socket.IPPROTO_TCP, 13, cc.encode())
        if tos:
            set_tos(client, tos)
        client.connect((ADDRESS["out"][version], PORT))
        server = listener.accept()[0]
        server.settimeout(2)
        got = b""
        data = pattern(count)
        for at in range(0, count, 10_000):
            client.sendall(data[at:at + 10_000])
            while len(got) < at + 10_000:
                got += server.recv(1 << 20)
        equal(got == data, True, "the bytes are those sent")
        for s in (client, server, listener):
            s.close()

    def close(self):
        """Remove the namespaces."""
        for ns in self.ns.values():
            ns.remove()


# --- methods by which an application marks a packet

def by_option(net, name, version, tos):
    """UDP with IP_TOS."""
    s = net.socket(name, version)
    set_tos(s, tos)
    s.sendto(b"u" * 100, (ADDRESS["out"][version], 9))
    s.close()


def by_message(net, name, version, tos):
    """IP_TOS of a single datagram."""
    s = net.socket(name, version)
    option = (socket.IPPROTO_IP, socket.IP_TOS) if version == 4 else \
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    s.sendmsg([b"m" * 100], [(*option, struct.pack("i", tos))], 0, (ADDRESS["out"][version], 9))
    s.close()


def by_priority(net, name, version, tos):
    """SO_PRIORITY, in addition to the TOS."""
    s = net.socket(name, version)
    set_tos(s, tos)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 6)
    s.sendto(b"p" * 100, (ADDRESS["out"][version], 9))
    s.close()


def by_segments(net, name, version, tos):
    """A GSO datagram, which is split into many."""
    s = net.socket(name, version)
    set_tos(s, tos)
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 500)
    s.sendto(b"g" * 5000, (ADDRESS["out"][version], 9))
    s.close()


def by_fragments(net, name, version, tos):
    """A datagram in fragments."""
    s = net.socket(name, version)
    set_tos(s, tos)
    s.sendto(b"f" * 5000, (ADDRESS["out"][version], 9))
    s.close()


def header(name, version, tos, proto=17):
    """A complete IP packet: UDP, or a SYN-ACK that resembles a cookie's."""
    src, dst = ADDRESS[name][version], ADDRESS["out"][version]
    if proto == 6:
        p = pkt.make(version, src, dst, PORT, 9, 1, 2, flags=SYN | 0x10, dscp=tos >> 2)
        return bytes(p.raw)
    body = struct.pack("!HHHH", 9, 9, 18, 0) + b"h" * 10
    if version == 4:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(body), 1, 0, 64, proto, 0,
                         socket.inet_aton(src), socket.inet_aton(dst))
        return ip[:10] + struct.pack("!H", pkt.checksum(ip)) + ip[12:] + body
    return struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, len(body), proto, 64,
                       socket.inet_pton(socket.AF_INET6, src),
                       socket.inet_pton(socket.AF_INET6, dst)) + body


def by_raw_header(net, name, version, tos, proto=17):
    """IP_HDRINCL: the application writes the header."""
    s = net.socket(name, version, socket.SOCK_RAW, socket.IPPROTO_RAW)
    if version == 6:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
    s.sendto(header(name, version, tos, proto), (ADDRESS["out"][version], 0))
    s.close()


def by_raw_synack(net, name, version, tos):
    """The same, like the kernel's own SYN-ACK, from the port of a listener of ours."""
    listener = net.socket(name, version, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, 13, b"tlt_reno")
    listener.bind((ADDRESS[name][version], PORT))
    listener.listen(1)
    by_raw_header(net, name, version, tos, 6)
    listener.close()


def by_raw_option(net, name, version, tos):
    """A raw socket with IP_TOS."""
    s = net.socket(name, version, socket.SOCK_RAW, 253)
    set_tos(s, tos)
    s.sendto(b"r" * 100, (ADDRESS["out"][version], 0))
    s.close()


def by_tcp(net, name, version, tos):
    """TCP of another congestion control."""
    net.transfer(name, version, "reno", tos, 10_000)


WAYS = (by_option, by_message, by_priority, by_segments, by_fragments, by_raw_header,
        by_raw_synack, by_raw_option, by_tcp)


@case("packets of an application on the host are not green, however it marks them", version=(4, 6))
def applications(version):
    net = Net()
    net.transfer("host", version, "reno", 0, 10_000)        # resolves neighbours
    for way in WAYS:
        for dscp in GREEN if way is by_option else GREEN[:1]:
            before = net.counts()
            way(net, "host", version, dscp << 2 | ECT0)
            seen = {color: n - before[color] for color, n in net.counts().items()}
            what = f"IPv{version}, {way.__doc__} DSCP {dscp}"
            equal((seen["green"], seen["red"]), (0, 0), f"{what} green and red packets")
            true(seen["yellow"] > 0, f"{what} packets pass")
    net.close()


@case("packets of a tenant's application are not green, however it marks them", version=(4, 6))
def modest_tenant(version):
    net = Net()
    for way in WAYS:
        before = net.counts()["green"]
        way(net, "tenant", version, IMPORTANT.dscp << 2)
        equal(net.counts()["green"], before, f"IPv{version}, {way.__doc__} green packets")
    net.close()


# --- a tenant that is root in its namespaces

def without_protection(net, version):
    """greenlane_protect off, and IP_TOS."""
    net.ns["tenant"].sysctl("net.ipv4.greenlane_protect", 0)
    for way in WAYS:
        way(net, "tenant", version, IMPORTANT.dscp << 2 | ECT0)


def another_table(net, version):
    """Codepoints moved: its unimportant data is the host's important data."""
    tenant = net.ns["tenant"]
    tenant.sysctl("net.ipv4.greenlane_dscp_protected", 46)
    tenant.sysctl("net.ipv4.greenlane_dscp_droppable", IMPORTANT.dscp)
    by_option(net, "tenant", version, IMPORTANT.dscp << 2 | ECT0)


def frames(net, version):
    """Frames by AF_PACKET, which another namespace of the tenant forwards."""
    with net.ns["inner"]:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        by_option(net, "inner", version, 0)             # resolves the neighbour
        shown = port.run("ip", "neigh", "show", "dev", "eth0", "nud", "reachable").stdout
        gateway = "10.2.0.1" if version == 4 else "fd02::1"
        mac = re.search(rf"^{gateway} lladdr (\S+)", shown, re.MULTILINE)[1]
        s.bind(("eth0", 0))
        s.sendto(header("inner", version, IMPORTANT.dscp << 2 | ECT0),
                 ("eth0", 0x0800 if version == 4 else 0x86dd, 0, 0,
                  bytes.fromhex(mac.replace(":", ""))))
    s.close()


MEANS = (without_protection, another_table, frames)


def green(net, means, version):
    """Number of a tenant's packets that are green at the port."""
    net.transfer("inner", version, "reno", 0, 10_000)
    before = net.counts()["green"]
    means(net, version)
    return net.counts()["green"] - before


@case("a tenant that is root can send green packets without the remedy, and not with it",
      means=MEANS, remedy=(False, True), version=(4, 6))
def rooted_tenant(means, remedy, version):
    net = Net()
    if remedy:
        net.remedy()
    seen = green(net, means, version)
    # Without the remedy some must pass: the case tests the remedy.
    equal(seen > 0, not remedy, f"{seen} green packets")
    net.close()


@case("the remedy does not change bytes, ECN, checksums or the host's own TLT", version=(4, 6))
def remedy_is_harmless(version):
    net = Net()
    net.remedy()
    receiver = net.socket("out", version)
    receiver.bind((ADDRESS["out"][version], 9))
    option = (socket.IPPROTO_IP, socket.IP_RECVTOS) if version == 4 else \
        (socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS)
    receiver.setsockopt(*option, 1)
    for tos in (0, 1, 2, 3, IMPORTANT.dscp << 2 | 1, DATA.dscp << 2 | 2, 0xff, 46 << 2):
        by_option(net, "tenant", version, tos)
        data, messages, _, _ = receiver.recvmsg(1000, 1000)
        equal((data, messages[0][2][0]), (b"u" * 100, tos & 3), f"IPv{version}, TOS {tos:#x}")
    receiver.close()
    net.transfer("tenant", version, "cubic")
    before = net.counts()["green"]
    net.transfer("host", version, "tlt_reno")
    true(net.counts()["green"] > before, f"IPv{version}: important packets of the host are green")
    net.close()


@case("a tenant's TLT works behind the remedy, unprotected, and the other end counts it",
      version=(4, 6))
def tenants_tlt(version):
    net = Net(cc_tenant="tlt_reno")
    net.remedy()
    net.transfer("tenant", version)
    equal(net.counts()["green"], 0, "green packets")
    for name, remarked in (("tenant", 0), ("out", 1)):
        counters = net.ns[name].greenlane()
        equal((counters["PeerWithout"], counters["HandshakeRemarked"]), (0, remarked),
              f"{name}: PeerWithout, HandshakeRemarked")
    counters = net.ns["tenant"].greenlane()
    true(counters["ImportantSent"] >= 10, "ImportantSent of the tenant: at least 10")
    equal(counters["EchoReceived"], counters["ImportantSent"], "EchoReceived of the tenant")
    net.close()


@case("each namespace has sysctls of its own")
def separate_tables():
    net = Net()
    for name, value in (("dscp_protected", 46), ("protect", 0)):
        before = [net.ns[n].sysctl(f"net.ipv4.greenlane_{name}") for n in ("host", "out")]
        net.ns["tenant"].sysctl(f"net.ipv4.greenlane_{name}", value)
        equal([net.ns[n].sysctl(f"net.ipv4.greenlane_{name}") for n in ("host", "out")], before,
              f"{name} of the others")
    net.close()


if __name__ == "__main__":
    tap.main()
