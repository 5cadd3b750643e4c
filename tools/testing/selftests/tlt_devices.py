#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A packet keeps the mark that it has from TCP, through all devices between TCP and the wire.

	ns a [ ns c ] -- DEVICE -- wire ======== wire -- DEVICE -- ns b
	  client                                                   server

Behind an ipvlan or a VRF a packet passes LOCAL_OUT twice, the second time without the
socket's lock if a qdisc between has queued it; IPsec sends it later; a tunnel encapsulates
it.  A port may trim it, before a tunnel only.
"""
import contextlib
import socket
import subprocess
import time

from lab import tap
from lab.codepoints import CONTROL, TRIMMED
from lab.net import modules
from lab.net.namespace import FAMILY, Namespace
from lab.net.port import shown
from lab.net.queue import Queue
from lab.tap import case, equal, true, using, within
from lab.transports import TRANSPORTS
from lab.wire.sockopt import YES, abort, info
from lab.wire.wire import pattern

IPV6_ADDRFORM = 1
WRITES, WRITE = 12, 60_000      # several TSO packets each, and idle afterwards
PORT = 7
HOST = {4: "10.0.0.{}", 6: "fd00::{}"}          # on the wire
INNER = {4: "10.1.0.{}", 6: "fd01::{}"}         # in a tunnel
LENGTH = {4: 24, 6: 64}
MAC = "02:00:00:00:00:01"       # of the wire's end in a
KEY = "0x" + "42" * 32


class Hosts:
    """Two namespaces, and a veth pair between them."""
    number = 0

    def __init__(self, cc):
        # Checks of timers, and the pause after a write, need virtual time.
        tap.need_virtual_time()
        modules.load_for(cc)
        Hosts.number += 1
        self.names, self.cc = [], cc
        self.a, self.b = self.namespace("a"), self.namespace("b")
        subprocess.run(["ip", "link", "add", "wire", "netns", self.a.name, "type", "veth",
                        "peer", "name", "wire", "netns", self.b.name], check=True)
        self.client, self.device = self.a, None
        self.address = HOST
        self.a.ip(f"link set wire address {MAC}")
        for ns, number in ((self.a, 1), (self.b, 2)):
            ns.ip("link set lo up", "link set wire up")
            self.addresses(ns, "wire", HOST, number)

    def namespace(self, name):
        """A namespace with the congestion control, whose addresses are usable at once."""
        ns = Namespace(f"{name}{Hosts.number}")
        self.names.append(ns)
        ns.sysctl("net.ipv6.conf.all.accept_dad", 0)
        ns.sysctl("net.ipv6.conf.default.accept_dad", 0)
        ns.sysctl("net.ipv4.tcp_congestion_control", self.cc)
        # A write fits: this program does not read before it returns.
        ns.sysctl("net.ipv4.tcp_wmem", "4096 1048576 4194304")
        return ns

    @staticmethod
    def addresses(ns, device, address, number):
        """Add both addresses to a device."""
        ns.ip(*(f"addr add {address[v].format(number)}/{LENGTH[v]} dev {device}"
                f"{' nodad' if v == 6 else ''}" for v in (4, 6)))

    def tunnel(self, ns, device, number):
        """Set a tunnel device up, with the inner address, which client and server use."""
        ns.ip(f"link set {device} up")
        self.addresses(ns, device, INNER, number)
        self.address = INNER

    def connect(self, version):
        """(client, server)"""
        to = (self.address[version].format(2), PORT)
        with self.b:
            listener = socket.socket(FAMILY[version])
        with self.client:
            client = socket.socket(FAMILY[version])
        listener.bind(to)
        listener.listen(1)
        if self.device:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.device.encode())
        client.settimeout(5)
        client.connect(to)
        server = listener.accept()[0]
        server.settimeout(5)
        listener.close()
        return client, server

    def close(self):
        """Remove all namespaces."""
        for ns in self.names:
            ns.remove()



# --- devices: each function changes the hosts ----------------

def veth(_):
    """The hosts without another device."""


def _ipvlan(hosts, mode):
    hosts.client = hosts.namespace("c")
    hosts.a.ip(f"link add link wire name ipv netns {hosts.client.name} type ipvlan mode {mode}")
    hosts.client.ip("link set lo up", "link set ipv up")
    hosts.addresses(hosts.client, "ipv", HOST, 3)
    # In L3 mode the ipvlan does not answer for its addresses.
    hosts.b.ip(*(f"neigh replace {HOST[v].format(3)} lladdr {MAC} dev wire nud permanent"
                 for v in (4, 6)))


def ipvlan_l2(hosts):
    """A container behind an ipvlan that is a switch."""
    _ipvlan(hosts, "l2")


def ipvlan_l3(hosts):
    """A container behind an ipvlan that routes: the host's LOCAL_OUT follows."""
    _ipvlan(hosts, "l3")


def vrf(hosts):
    """A client in a VRF."""
    hosts.a.ip("link add vrf0 type vrf table 10", "link set vrf0 up",
               "link set wire master vrf0")
    # IPv6 removes the address when the device joins the VRF.
    hosts.a.ip(f"addr replace {HOST[6].format(1)}/64 dev wire nodad")
    hosts.device = "vrf0"


def vrf_with_qdisc(hosts):
    """The VRF's device has a queue, which dequeues packets without the socket's lock."""
    vrf(hosts)
    hosts.a.tc("qdisc add dev vrf0 root netem delay 20us")


def vxlan(hosts):
    """A tunnel, whose outer packets are UDP."""
    for ns, own, other in ((hosts.a, 1, 2), (hosts.b, 2, 1)):
        ns.ip(f"link add tunnel type vxlan id 1 local {HOST[4].format(own)}"
              f" remote {HOST[4].format(other)} dstport 4789 dev wire")
        hosts.tunnel(ns, "tunnel", own)


def wireguard(hosts):
    """A tunnel that encrypts on another processor."""
    keys = []
    for _ in range(2):
        secret = subprocess.run(["wg", "genkey"], capture_output=True, text=True,
                                check=True).stdout
        public = subprocess.run(["wg", "pubkey"], input=secret, capture_output=True, text=True,
                                check=True).stdout.strip()
        keys.append((secret, public))
    for ns, own, other in ((hosts.a, 1, 2), (hosts.b, 2, 1)):
        ns.ip("link add tunnel type wireguard")
        with ns:
            subprocess.run(["wg", "set", "tunnel", "listen-port", "51820", "private-key",
                            "/dev/stdin", "peer", keys[other - 1][1], "endpoint",
                            f"{HOST[4].format(other)}:51820", "allowed-ips",
                            "0.0.0.0/0,::/0"], input=keys[own - 1][0], text=True, check=True)
        hosts.tunnel(ns, "tunnel", own)


def _ipsec(hosts, transform):
    proto = transform.split()[0]
    for v in (4, 6):
        ends = [HOST[v].format(n) for n in (1, 2)]
        for ns in (hosts.a, hosts.b):
            for src, dst in (ends, ends[::-1]):
                ns.ip(f"xfrm state add src {src} dst {dst} proto {proto} spi 0x10 mode transport"
                      f" {transform.partition(' ')[2]}")
                out = (ns is hosts.a) == (src == ends[0])
                ns.ip(f"xfrm policy add src {src} dst {dst} proto tcp"
                      f" dir {'out' if out else 'in'} tmpl src {src} dst {dst} proto {proto}"
                      " mode transport")


def esp(hosts):
    """IPsec that encrypts."""
    _ipsec(hosts, f"esp aead rfc4106(gcm(aes)) {KEY[:42]} 128")


def ah(hosts):
    """IPsec that signs: a header between IP and TCP."""
    _ipsec(hosts, f"ah auth hmac(sha256) {KEY}")


# A congestion control of each other transport
OTHERS = tuple("aeolus_dctcp" if row.module == "tcp_tlt" else row.ccs[0] for row in TRANSPORTS)
DEVICES = (veth, ipvlan_l2, ipvlan_l3, vrf, vrf_with_qdisc, vxlan, wireguard, esp, ah)


@contextlib.contextmanager
def connected(version, device, cc="tlt_cubic"):
    """(the hosts, a client and its server across this device)"""
    hosts, ends = Hosts(cc), ()
    try:
        device(hosts)
        # A worker of IPv6 sets a device up.  A neighbour solicitation before that is lost, and the
        # SYN that waits for its answer is retransmitted like the solicitation, after a second.
        time.sleep(0.1)
        ends = hosts.connect(version)
        yield hosts, *ends
    finally:
        abort(*ends)
        hosts.close()


def read(receiver, count):
    """Read count bytes."""
    got = bytearray()
    while len(got) < count:
        more = receiver.recv(1 << 20)
        true(more, "more bytes arrive")
        got += more
    return bytes(got)


def deliver(sender, receiver):
    """Write once, and read and compare every byte."""
    data = pattern(WRITE)
    sender.sendall(data)
    equal(read(receiver, WRITE) == data, True, "the bytes are those sent")
    time.sleep(0.01)


def heard(s, ns):
    """Counters of a socket, the only one in ns; checks that all its important packets and clocks
    were echoed.  ns has also the echo of a clock that the ACK of later data overtook, as with IPsec
    on a slow kernel; the socket has not."""
    seen, counters = info(s), ns.greenlane()
    true(seen["important_sent"] >= WRITES, f"important packets: {seen['important_sent']}")
    equal(counters["EchoReceived"] + counters["ClockEchoReceived"],
          seen["important_sent"] + seen["clocks_byte"] + seen["clocks_mss"], "echoes")
    equal((seen["peer"], seen["flags"]), (YES, 0), "peer, flags")
    return seen


@using(connected, version=(4, 6), device=DEVICES)(
    "every byte arrives, and every important packet is received as one and echoed")
def marks(hosts, client, server):
    for _ in range(WRITES):
        deliver(client, server)
        deliver(server, client)
    ends = (client, hosts.client), (server, hosts.b)
    for (s, ns), (_, other) in (ends, ends[::-1]):
        seen = heard(s, ns)
        # The other end acknowledges packets at once that have the DSCP of important ones.
        equal(other.greenlane()["EchoSent"], seen["important_sent"], "EchoSent")
        counters = ns.greenlane()
        equal([counters[n] for n in ("HandshakeRemarked", "PeerWithout", "SplitFailed", "Invalid")],
              [0] * 4, "HandshakeRemarked, PeerWithout, SplitFailed, Invalid")
        equal((ns.netstat("TCPTimeouts"), ns.netstat("TCPLossProbes")), (0, 0),
              "TCPTimeouts, TCPLossProbes")


@using(connected, version=(4, 6), device=DEVICES, cc=OTHERS)(
    "each other transport: every byte arrives in both directions, no timer, no fallback")
def others(hosts, client, server):
    for _ in range(WRITES):
        deliver(client, server)
        deliver(server, client)
    for ns in (hosts.client, hosts.b):
        with contextlib.suppress(FileNotFoundError):        # a transport without tags
            seen = ns.greenlane()
            equal([seen[n] for n in ("HandshakeRemarked", "PeerWithout", "Fallback", "Invalid")],
                  [0] * 4, f"{ns.name}: HandshakeRemarked, PeerWithout, Fallback, Invalid")
        equal((ns.netstat("TCPTimeouts"), ns.netstat("TCPLossProbes")), (0, 0),
              f"{ns.name}: TCPTimeouts, TCPLossProbes")


@case("ADDRFORM: the connection continues, marked, and leaves no state",
      cc=("tlt_cubic", "dart", "xpass", "aeolus_xpass"))
def addrform(cc):
    modules.load_for(cc)
    with connected(4, veth) as (hosts, _, _):
        for ns in (hosts.a, hosts.b):
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)
        with hosts.b:
            listener = socket.socket(socket.AF_INET6)
        with hosts.a:
            client = socket.socket(socket.AF_INET6)
        listener.bind(("::", PORT + 1))
        listener.listen(1)
        client.connect((f"::ffff:{HOST[4].format(2)}", PORT + 1))
        server = listener.accept()[0]
        deliver(client, server)
        # While the first packet of a burst waits for a credit.
        client.sendall(pattern(WRITE))
        client.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        equal(len(read(server, WRITE)), WRITE, "bytes")
        true(time.clock_gettime(time.CLOCK_MONOTONIC) - before < 0.25, "data arrives within 0.25 s")
        # A write of 60 kB may fit into Aeolus's burst.
        marks = ("ImportantSent", "MessageSent", "ScheduledSent", "UnscheduledSent")
        sent = hosts.a.greenlane()
        for _ in range(3):
            deliver(client, server)
            deliver(server, client)
        true(any(hosts.a.greenlane()[name] > sent[name] for name in marks),
             "packets are still marked")
        equal(hosts.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")
        abort(client, server)
        listener.close()


# --- packets in an NFQUEUE -------------------------------------------------------------

@case("packets that wait in an NFQUEUE of LOCAL_OUT and LOCAL_IN keep their marks",
      version=(4, 6), hook=("output", "input"))
def queued(version, hook):
    with connected(version, veth) as (hosts, client, server):
        queues = [Queue(ns, f"type filter hook {hook} priority 0; tcp dport {PORT} queue num 0;"
                        f" tcp sport {PORT} queue num 0") for ns in (hosts.a, hosts.b)]
        with contextlib.ExitStack() as stack:
            for queue in queues:
                stack.enter_context(queue.passing())
            for _ in range(WRITES):
                deliver(client, server)
                deliver(server, client)
        for s, ns, other in ((client, hosts.a, hosts.b), (server, hosts.b, hosts.a)):
            equal(other.greenlane()["EchoSent"], heard(s, ns)["important_sent"], "EchoSent")
            equal(ns.greenlane()["Invalid"], 0, "Invalid")


@case("an echo waits in an NFQUEUE while its socket and tcp_tlt are removed", version=(4, 6))
def dangling(version):
    with connected(version, veth) as (hosts, client, server):
        ip = {4: "ip", 6: "ip6"}[version]
        queue = Queue(hosts.a, "type filter hook input priority 0;"
                      f" {ip} dscp {CONTROL.dscp} queue num 0")
        client.sendall(pattern(5000))
        equal(len(server.recv(1 << 20)), 5000, "bytes")
        time.sleep(0.01)
        held = queue.packets()
        true(held, "an echo waits")
        abort(client, server)
        time.sleep(0.1)
        for ns in (hosts.a, hosts.b):
            ns.sysctl("net.ipv4.tcp_congestion_control", "reno")
        modules.unload("tcp_tlt")
        for number in held:
            queue.accept(number)
        time.sleep(0.1)
        equal(queue.packets(), [], "packets in the queue at the end")


# --- a tunnel across ports that trim ------------------------------------------------------

# Few packets wait; headers are in front of them.
TRIMS = (f"rate 10gbit limit 1m bands 2 prio {TRIMMED.dscp} 0 trim {TRIMMED.dscp}"
         " yellow 12112 red 12112")


@contextlib.contextmanager
def tunnelled(version, port, cc):
    """(hosts, a client and its server across a VXLAN, the report of a port that trims on the device
    `port` of the client's host)"""
    modules.load("sch_color", "greenlane")
    with connected(version, vxlan, cc) as (hosts, client, server):
        for ns in (hosts.a, hosts.b):
            ns.sysctl("net.ipv4.greenlane_active", 1)
        deliver(client, server)
        hosts.a.tc(f"qdisc add dev {port} root color {TRIMS}")
        yield hosts, client, server, lambda: shown(port, hosts.a)[0]


@using(tunnelled, version=(4, 6), cc=("reno", "dctcp", "tlt_dctcp"), port="wire")(
    "a port cannot trim a VXLAN's packets, which are UDP: it drops them, and TCP repairs the losses")
def outer(hosts, client, server, port):
    for _ in range(WRITES):
        deliver(client, server)
    seen = port()
    drops = sum(sum(colour["drops"].values()) for colour in seen["colors"].values())
    true(drops > 0, "dropped packets")
    equal([sum(colour["trims"] for colour in seen["colors"].values()), seen["trim"]["unfit_drops"],
           hosts.b.greenlane()["TrimmedReceived"], hosts.a.greenlane()["TrimReportReceived"]],
          [0, drops, 0, 0], "trims, unfit, TrimmedReceived, TrimReportReceived")


@using(tunnelled, version=(4, 6), cc=("reno", "dctcp", "tlt_dctcp"), port="tunnel")(
    "a port trims before the VXLAN encapsulates: b reads each trimmed packet, and no timer expires")
def inner(hosts, client, server, port):
    before = [hosts.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")]
    for _ in range(WRITES):
        deliver(client, server)
    seen = port()
    trims = sum(colour["trims"] for colour in seen["colors"].values())
    true(trims > 20, f"trimmed packets: {trims}")
    drops = sum(sum(colour["drops"].values()) for colour in seen["colors"].values())
    received = hosts.b.greenlane()
    sent = received["TrimReportSent"]
    equal([drops, received["TrimmedReceived"], hosts.a.greenlane()["TrimReportReceived"]],
          [0, trims, sent], "drops, TrimmedReceived, TrimReportReceived")
    # The path has no delay: an ACK of later data may repair a loss before its report is due.
    within(sent, 10, trims, "TrimReportSent")
    equal([hosts.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], before, "RTOs, TLPs")


if __name__ == "__main__":
    tap.main()
