#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Credits held to their share of a link at the switch, and what that does for data.

	a1 --10G--+                        +--10G-- b1
	          sw1 ===== 5 Gbit/s ===== sw2
	a2 --10G--+  data -->   <-- credits +--10G-- b2

a1 sends to b1, a2 to b2.  Each receiver's own line is twice as fast as the link that
they share, of which neither knows: only the switch's credit queue, towards the senders,
can tell them.
"""
import contextlib
import json
import selectors
import socket
import subprocess
import time

from gl import port
from gl.tap import case, equal, main, true, within
from gl.wire import NEEDS, Namespace, load, pattern
from gl.xpass import MSS

LINK = 5_000_000_000            # bit/s
HOST = "10gbit"
DELAY = "5us"                   # of a host's link, each way
COUNT = 6_000_000               # bytes a flow
# Of Ethernet, per packet of 1500 bytes, with preamble, FCS and gap; and the credit that
# calls for it, which the preset takes for IPv6's.
DATA, CREDIT = 1538, 106


class Net:
    """Hosts a1, a2, b1, b2, and two switches."""

    def __init__(self, towards_b, towards_a, version):
        port.insmod()
        load(*NEEDS["xpass"])
        self.version = version
        self.ns = {name: Namespace(name) for name in ("a1", "a2", "b1", "b2", "sw1", "sw2")}
        self.link("sw1", "core", "sw2", "core", (1, 2), 9)
        for number, host in enumerate(("a1", "a2", "b1", "b2"), 1):
            self.link(host, "eth0", self.switch(host), host, (2, 1), number)
            own = self.ns[host]
            own.ip(f"route add default via 10.0.{number}.1 rto_min 10ms",
                   f"route add default via fd00:0:0:{number}::1 rto_min 10ms")
            own.sysctl("net.ipv4.tcp_congestion_control", "xpass")
            own.sysctl("net.ipv4.tcp_rmem", "4096 1048576 16777216")
            own.sysctl("net.ipv4.tcp_wmem", "4096 4194304 16777216")
            self.tc(host, f"qdisc add dev eth0 root handle 1: netem delay {DELAY} limit 10000",
                    f"qdisc add dev eth0 parent 1:1 color rate {HOST} limit 10m")
        for switch, number in (("sw1", 2), ("sw2", 1)):
            far = range(3, 5) if switch == "sw1" else range(1, 3)
            self.ns[switch].sysctl("net.ipv4.ip_forward", 1)
            self.ns[switch].sysctl("net.ipv6.conf.all.forwarding", 1)
            self.ns[switch].ip(*[f"route add 10.0.{n}.0/24 via 10.0.9.{number}" for n in far],
                               *[f"route add fd00:0:0:{n}::/64 via fd00:0:0:9::{number}"
                                 for n in far])
        self.tc("sw1", f"qdisc add dev core root color {towards_b}")
        self.tc("sw2", f"qdisc add dev core root color {towards_a}")
        time.sleep(5)           # until IPv6 has looked for others with its addresses

    @staticmethod
    def switch(host):
        """The one that it is at."""
        return "sw1" if host[0] == "a" else "sw2"

    def link(self, left, left_dev, right, right_dev, own, net):
        """A veth pair, with addresses."""
        subprocess.run(["ip", "-n", left, "link", "add", left_dev, "type", "veth", "peer",
                        "name", right_dev, "netns", right], check=True)
        for name, dev, n in ((left, left_dev, own[0]), (right, right_dev, own[1])):
            self.ns[name].sysctl("net.ipv6.conf.all.accept_dad", 0)
            self.ns[name].ip(f"addr add 10.0.{net}.{n}/24 dev {dev}",
                             f"addr add fd00:0:0:{net}::{n}/64 dev {dev} nodad",
                             f"link set {dev} up")

    @staticmethod
    def tc(name, *lines):
        """Lines of tc, in a namespace."""
        subprocess.run(["tc", "-n", name, "-batch", "-"], check=True, text=True,
                       input="\n".join(lines) + "\n")

    @staticmethod
    def port(name):
        """What a switch's port towards the other says."""
        shown = subprocess.run(["tc", "-n", name, "-j", "-s", "qdisc", "show", "dev", "core"],
                               check=True, text=True, capture_output=True).stdout
        return json.loads(shown)[0]

    def flow(self, number):
        """A connection from a to b of that number: (sends, reads)."""
        family = socket.AF_INET if self.version == 4 else socket.AF_INET6
        address = f"10.0.{number + 2}.2" if self.version == 4 else f"fd00:0:0:{number + 2}::2"
        with self.ns[f"b{number}"], socket.socket(family) as listener:
            listener.bind((address, 1000))
            listener.listen()
            with self.ns[f"a{number}"]:
                client = socket.socket(family)
            client.connect((address, 1000))
            server, _ = listener.accept()
        client.setblocking(False)
        server.setblocking(False)
        return client, server

    def counters(self, name):
        """Sum over the hosts of a counter of greenlane's, or of TCP's."""
        hosts = [self.ns[n] for n in ("a1", "a2", "b1", "b2")]
        if name.startswith("TCP"):
            return sum(ns.netstat(name) for ns in hosts)
        return sum(ns.greenlane()[name] for ns in hosts)

    def close(self):
        """All of it goes."""
        for ns in self.ns.values():
            ns.remove()


@contextlib.contextmanager
def network(towards_b, towards_a, version):
    """One, for a while."""
    net = Net(towards_b, towards_a, version)
    try:
        yield net
    finally:
        net.close()


def transfer(flows, count, limit=5.0):
    """Count bytes over each flow at once; when each had arrived, in seconds."""
    payload = pattern(count)
    got, sent, done = {}, {}, {}
    began = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for client, server in flows:
            got[server], sent[client] = bytearray(), 0
            selector.register(client, selectors.EVENT_WRITE)
            selector.register(server, selectors.EVENT_READ)
        while len(done) < len(flows) and time.monotonic() < began + limit:
            for key, _ in selector.select(limit):
                s = key.fileobj
                if s in sent:
                    sent[s] += s.send(payload[sent[s]:sent[s] + 100_000])
                    if sent[s] == count:
                        selector.unregister(s)
                else:
                    got[s] += s.recv(1 << 20)
                    if len(got[s]) == count:
                        done[s] = time.monotonic() - began
                        selector.unregister(s)
    for data in got.values():
        true(bytes(data) == payload[:len(data)], "the bytes received are those sent")
    equal(len(done), len(flows), "flows that are done")
    return list(done.values())


def drops(shown):
    """Of data: whatever is green."""
    return sum(shown["colors"]["green"]["drops"].values())


PRESET = f"rate {LINK}bit limit 200k preset xpass"
PLAIN = f"rate {LINK}bit limit 200k overhead 24"


@case("two flows fill the link's share for data; none of it is dropped, credits are")
def shaped():
    for version in (4, 6):
        with network(PRESET, PRESET, version) as net:
            each = transfer([net.flow(1), net.flow(2)], COUNT)
            took = max(each)
            data, credit = net.port("sw1"), net.port("sw2")
            equal(drops(data), 0, "packets of data dropped")
            true(credit["bands"]["0"]["drops"] > 0, "credits dropped")
            # as many as credits queue, of each direction's
            within(data["queue"]["peak_backlog"], DATA, 16 * DATA, "bytes of data that queued")
            for name in ("TCPTimeouts", "TCPLossProbes", "TCPFastRetrans", "Uncredited"):
                equal(net.counters(name), 0, name)
            share = DATA / (DATA + CREDIT)
            ideal = 2 * COUNT / MSS[version] * DATA * 8 / LINK / share
            print(f"# IPv{version}: {took * 1e3:.2f} ms, {took / ideal:.3f} of the share's;"
                  f" queue {data['queue']['peak_backlog']} bytes;"
                  f" credits dropped {credit['bands']['0']['drops']}", flush=True)
            within(took / ideal, 0.99, 1 / 0.95, "time, of that at the data's share")
            within(min(each) / took, 0.85, 1, "one flow's time, of the other's")


@case("and without the shaping: data is dropped")
def unshaped():
    for version in (4, 6):
        with network(PLAIN, PLAIN, version) as net:
            transfer([net.flow(1), net.flow(2)], COUNT)
            true(drops(net.port("sw1")) > 100, "packets of data dropped")


main()
