# SPDX-License-Identifier: GPL-2.0
"""Four hosts at two switches, and sockets between them.

	a1 --10G--+                        +--10G-- b1
	          sw1 ======  core  ====== sw2
	a2 --10G--+                        +--10G-- b2

Real devices (veth) and real qdiscs: a host's NIC and its delay, and at the switches' ports towards
each other the qdiscs that the test gives.
"""
import contextlib
import socket

from lab.net import modules
from lab.net.network import Network
from lab.net.port import shown

RATE = 10 * 10**9               # bit/s, of a host's link
DELAY = 5000                    # ns, of a host's link, each way
HOSTS = ("a1", "a2", "b1", "b2")
CORE = {"sw1": "up0", "sw2": "d0"}      # the port of each switch towards the other
# Values of a host with little memory.
_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 1048576 16777216",
            "net.ipv4.tcp_wmem": "4096 4194304 16777216"}


class Pairs(Network):
    """Hosts a1, a2, b1, b2, and the switches sw1 and sw2."""

    def __init__(self, towards_b, towards_a, version=4, cc="xpass"):
        super().__init__({
            "topology": "pairs", "rate": RATE, "delay": DELAY, "nic_delay": DELAY,
            "rto_min": 200 * 10**6, "ipv6": version == 6, "sysctls": _SYSCTLS})
        modules.load_all()
        self.version = version
        self.family = socket.AF_INET6 if self.v6 else socket.AF_INET
        self.build()
        for host in HOSTS:
            self.ns[host].sysctl("net.ipv4.tcp_congestion_control", cc)
        self.fresh_ports(lambda switch, _: [f"color {towards_b if switch == 'sw1' else towards_a}"],
                         list(CORE.items()))

    def port(self, name):
        """tc's report of a host's NIC, or of a switch's port towards the other switch."""
        dev = CORE.get(name, "eth0")
        return next(qdisc for qdisc in shown(dev, self.ns[name]) if qdisc["kind"] == "color")

    def flow(self, number):
        """A connection from host a`number` to host b`number`: (client, server)."""
        address = self.address(f"b{number}"), 1000
        with self.ns[f"b{number}"], socket.socket(self.family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
            with self.ns[f"a{number}"]:
                client = socket.socket(self.family)
            client.connect(address)
            server, _ = listener.accept()
        client.setblocking(False)
        server.setblocking(False)
        return client, server


@contextlib.contextmanager
def network(towards_b, towards_a, version=4, cc="xpass"):
    """A Pairs network that is removed at the end of the block."""
    net = Pairs(towards_b, towards_a, version, cc)
    try:
        yield net
    finally:
        net.remove()
