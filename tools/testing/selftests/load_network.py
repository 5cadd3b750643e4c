#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The fabrics of scripts/experiment load, in the guest: each host reaches each other over the
expected number of links, and both directions of a connection take one path.
"""
import socket
import time

from lab import tap
from lab.net import modules
from lab.net import network as fabric
from lab.net.reach import connect, handshake, lasts, listen, packets, renew
from lab.tap import case, equal, true, within

DELAY = 5000
CONFIG = {"symmetric": True, "ipv6": False, "delay": DELAY, "rate": 10**10,
          "rto_min": 4 * 10**6, "hosts": 8, "leaves": 2, "spines": 3, "k": 4}


_built = []


def built(topology, **options):
    """Build a network in place of the last one."""
    while _built:
        _built.pop().remove()
        time.sleep(1)
    net = fabric.Network(dict(CONFIG, topology=topology, **options))
    net.build()
    _built.append(net)
    renew(net)
    return net


def reached(net, pairs):
    """Check the number of switches between hosts, and the time of a handshake."""
    for number, (src, dst, switches) in enumerate(pairs):
        equal(net.switches_between(f"h{src}", f"h{dst}"), switches, f"switches from h{src} to h{dst}")
        within(handshake(net, f"h{src}", f"h{dst}", fabric.PORTS.start + 16 * number),
               *lasts(switches + 1, DELAY), f"round trip from h{src} to h{dst}, ns")


@case("star: one switch between any two hosts")
def star():
    reached(built("star", hosts=5), [(0, 4, 1), (4, 0, 1), (2, 3, 1)])


@case("dumbbell: one switch between neighbours, two to the other side")
def dumbbell():
    reached(built("dumbbell", hosts=5), [(0, 2, 1), (3, 4, 1), (0, 3, 2), (4, 2, 2)])


@case("fat-tree of 4 ports: 16 hosts, 20 switches, paths of 1, 3 or 5; IPv6, too", v6=(False, True))
def fat_tree(v6):
    net = built("fat-tree", ipv6=v6)
    equal((len(net.hosts), len(net.switches)), (16, 20), "hosts, switches")
    reached(net, [(0, 1, 1), (0, 2, 3), (3, 1, 3), (0, 15, 5), (13, 5, 5)])


def all_packets(net):
    """{(switch, port): packets that it has sent}"""
    return {(switch, dev): n for switch in net.switches for dev, n in packets(net, switch).items()}


PAIRS = {"leaf-spine": ((0, 7),), "fat-tree": ((0, 15), (4, 9))}


@case("all paths are used, and both directions of a connection take one path",
      topology=tuple(PAIRS))
def symmetric(topology):
    net = built(topology)
    for src, dst in PAIRS[topology]:
        used = set()
        src, dst = f"h{src}", f"h{dst}"
        with listen(net, dst):
            ports = [fabric.PORTS[len(fabric.PORTS) // fabric.SLICES * slice_ + int(src[1:])]
                     for slice_ in range(fabric.SLICES)]
            for port in ports:
                connect(net, src, dst, port)[0].close()     # resolves neighbours
            time.sleep(0.1)
            now, clients = all_packets(net), []
            for port in ports:
                clients.append(connect(net, src, dst, port + 1)[0])
                time.sleep(0.1)
                before, now = now, all_packets(net)
                sent = {end: n - before[end] for end, n in now.items() if n > before[end]}
                # SYN and ACK in one direction, SYN-ACK in the other: both ends of each link send.
                up = {net.hop(*end): n for end, n in sent.items()}
                equal(sorted(sent.values()), [1] * (len(sent) // 2) + [2] * (len(sent) // 2),
                      f"packets of each port, {up}")
                equal(len(sent), 2 * net.switches_between(src, dst), "ports that have sent")
                switches = {switch for switch, _ in sent}
                equal(len(switches), net.switches_between(src, dst), "switches on the path")
                used.add(frozenset(switches))
            for client in clients:
                client.close()
        ways = {"leaf-spine": 3, "fat-tree": 4}[topology]
        equal(len(used), ways, f"{topology}: number of paths from {src} to {dst}")


@case("a packet to an address without a host is dropped, and does not loop")
def no_host():
    net = built("fat-tree")
    for address in ("10.99.1.2", "10.1.99.2", "192.0.2.1"):
        before = sum(all_packets(net).values())
        with net.ns["h0"], socket.socket() as client:
            client.settimeout(0.5)
            try:
                client.connect((address, 9))
                reachable = True
            except OSError:
                reachable = False
        true(not reachable, f"{address} answers")
        passed = sum(all_packets(net).values()) - before
        within(passed, 0, 40, f"packets of all ports, to {address}")


def prepare():
    """The cases measure handshakes, so they need virtual time."""
    tap.need_virtual_time()
    modules.load_all()


if __name__ == "__main__":
    tap.main(prepare)
