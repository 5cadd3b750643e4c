# SPDX-License-Identifier: GPL-2.0
"""In the guest: who can reach whom on a fabric, which way, and how soon."""
import socket
import time

from lab.net.port import shown

SERVER = 5001
# What a handshake takes besides the way, ns: a process looks at the clock some ten times
# meanwhile, 0.256 us each; and a packet of 100 bytes is on each line for 80 ns, after a
# timer's rounding.  Together less than a link, of which the least is 5000.
OWN, LINE = 2500, 300


def renew(net):
    """Fresh ports, with fresh counters."""
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
    """(client, nanoseconds that it took)"""
    with net.ns[src]:
        client = _socket(net)
    client.settimeout(2)
    client.bind((net.address(src), port))
    before = time.monotonic_ns()
    client.connect((net.address(dst), SERVER))
    return client, time.monotonic_ns() - before


def handshake(net, src, dst, port):
    """How long it takes on a way whose neighbours are known: the fastest of some."""
    times = []
    with listen(net, dst):
        for attempt in range(6):
            client, took = connect(net, src, dst, port + attempt)
            client.close()
            times.append(took)
    return min(times)


def lasts(links, delay):
    """Bounds of a handshake over so many links, ns: there and back."""
    return 2 * links * delay, 2 * links * (delay + LINE) + OWN


def packets(net, switch):
    """Those that each port has sent."""
    return {q["dev"]: q["packets"] for q in shown(ns=net.ns[switch]) if q["kind"] == "color"}
