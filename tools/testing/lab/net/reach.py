# SPDX-License-Identifier: GPL-2.0
"""In the guest: connections between hosts of a network, their paths and their delays."""
import socket
import time

from lab.net import network as fabric
from lab.net.port import shown

SERVER = 5001
# Upper bounds, ns, of the parts of a handshake's time besides propagation.  OWN: the process reads
# the clock about ten times, 0.256 us each.  LINE, for each link and direction: a packet of 100
# bytes, 80 ns, and a timer's rounding.  Their sum is less than the minimum delay of a link, 5000.
OWN, LINE = 2500, 300


def renew(net):
    """Replace the switches' ports; their counters are 0 then."""
    net.fresh_ports(lambda *_: ["color rate 10gbit"])


def _socket(net):
    return socket.socket(socket.AF_INET6 if net.v6 else socket.AF_INET)


def listen(net, host):
    """A server on a host."""
    with net.ns[host]:
        server = _socket(net)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((net.address(host), SERVER))
    server.listen(1024)
    return server


def connect(net, src, dst, port):
    """Connect from a local port; returns (client, duration in ns)."""
    with net.ns[src]:
        client = _socket(net)
    client.settimeout(2)
    client.bind((net.address(src), port))
    before = time.monotonic_ns()
    client.connect((net.address(dst), SERVER))
    return client, time.monotonic_ns() - before


def handshake(net, src, dst, port):
    """The minimum duration of six handshakes, ns; the first ones may wait for ARP or ND."""
    times = []
    with listen(net, dst):
        for attempt in range(6):
            client, took = connect(net, src, dst, port + attempt)
            client.close()
            times.append(took)
    return min(times)


def one_of_each_slice(net, src, dst):
    """A client's port of each slice of the ECMP hash, after which neighbours on all paths are
    resolved, and the switches' counters are 0."""
    ports = fabric.PORTS[::3072]
    for port in ports:
        handshake(net, src, dst, port + 20)
    time.sleep(2)
    renew(net)
    return ports


def lasts(links, delay):
    """(lower, upper) bound of a handshake over this number of links in each direction, ns."""
    return 2 * links * delay, 2 * links * (delay + LINE) + OWN


def packets(net, switch):
    """{device: packets sent} of a switch's ports."""
    return {q["dev"]: q["packets"] for q in shown(ns=net.ns[switch]) if q["kind"] == "color"}
