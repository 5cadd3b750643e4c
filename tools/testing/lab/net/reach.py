# SPDX-License-Identifier: GPL-2.0
"""In the guest: who can reach whom on a fabric, which way, and how soon."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "incast"))
os.environ.setdefault("GL_MODDIR", "")
from topology import batch, enter  # noqa: E402

SERVER = 5001
# What a handshake takes besides the way, ns: a process looks at the clock some ten times
# meanwhile, 0.256 us each; and a packet of 100 bytes is on each line for 80 ns, after a
# timer's rounding.  Together less than a link, of which the least is 5000.
OWN, LINE = 2500, 300


def renew(net):
    """Fresh ports, with fresh counters."""
    for switch in net.switches:
        batch("tc", switch, [f"qdisc replace dev {dev} root {kind}" for dev in net.ports(switch)
                             for kind in ("handle 9: pfifo", "handle 2: color rate 10gbit")])


def listen(net, host):
    """A server on a host."""
    enter(f"h{host}")
    server = socket.socket(socket.AF_INET6 if net.v6 else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((net.host_link(host)[1], SERVER))
    server.listen(1024)
    return server


def connect(net, src, dst, port):
    """(client, nanoseconds that it took)"""
    enter(f"h{src}")
    client = socket.socket(socket.AF_INET6 if net.v6 else socket.AF_INET)
    client.settimeout(2)
    client.bind((net.host_link(src)[1], port))
    before = time.monotonic_ns()
    client.connect((net.host_link(dst)[1], SERVER))
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


def packets(switch):
    """Those that each port has sent."""
    shown = subprocess.run(["tc", "-n", switch, "-j", "-s", "qdisc", "show"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    return {q["dev"]: q["packets"] for q in json.loads(shown) if q["kind"] == "color"}
