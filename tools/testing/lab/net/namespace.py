# SPDX-License-Identifier: GPL-2.0
"""Four hosts at two switches.

	a1 --10G--+                        +--10G-- b1
	          sw1 ======  core  ====== sw2
	a2 --10G--+                        +--10G-- b2

Real devices (veth) and real qdiscs: a host's line and its delay, and whatever the
switches' ports towards each other are given.
"""
import contextlib
import json
import socket
import subprocess
import time

from gl import port
from gl.wire import NEEDS, Namespace, load

HOST = "10gbit"
DELAY = "5us"                   # of a host's link, each way


class Net:
    """Hosts a1, a2, b1, b2, and two switches."""

    def __init__(self, towards_b, towards_a, version=4, cc="xpass"):
        port.insmod()
        load(*NEEDS["aeolus_xpass"])
        self.version = version
        self.ns = {name: Namespace(name) for name in ("a1", "a2", "b1", "b2", "sw1", "sw2")}
        self.link("sw1", "core", "sw2", "core", (1, 2), 9)
        for number, host in enumerate(("a1", "a2", "b1", "b2"), 1):
            self.link(host, "eth0", self.switch(host), host, (2, 1), number)
            own = self.ns[host]
            own.ip(f"route add default via 10.0.{number}.1",
                   f"route add default via fd00:0:0:{number}::1")
            own.sysctl("net.ipv4.tcp_congestion_control", cc)
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
        """What a host's port says, or a switch's towards the other."""
        dev = "core" if name.startswith("sw") else "eth0"
        shown = subprocess.run(["tc", "-n", name, "-j", "-s", "qdisc", "show", "dev", dev],
                               check=True, text=True, capture_output=True).stdout
        return next(qdisc for qdisc in json.loads(shown) if qdisc["kind"] == "color")

    def flow(self, number):
        """A connection from a to b of that number: (sends, reads)."""
        family = socket.AF_INET if self.version == 4 else socket.AF_INET6
        address = f"10.0.{number + 2}.2" if self.version == 4 else f"fd00:0:0:{number + 2}::2"
        with self.ns[f"b{number}"], socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
def network(towards_b, towards_a, version=4, cc="xpass"):
    """One, for a while."""
    net = Net(towards_b, towards_a, version, cc)
    try:
        yield net
    finally:
        net.close()
