#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The leaf-spine network: delays, paths, and the next hops of deflections.

	spine0 .. spine3      each leaf to each spine; each link 5 us, 10 Gbit/s
	leaf0  .. leaf3
	h0 h1  .. h6 h7       two at each leaf
"""
import json
import socket
import subprocess
import sys
import tempfile
import time

from experiments.traffic import play
from lab import tap
from lab.net import modules
from lab.net import network as fabric
from lab.net.reach import (connect, handshake, lasts, listen, one_of_each_slice, packets,
                           renew)
from lab.tap import case, equal, true, within

PLAY = play.PROGRAM
DELAY = 5000
NET = fabric.Network({"topology": "leaf-spine", "symmetric": False, "hosts": 8,
                     "leaves": 4, "spines": 4, "ipv6": False,
                           "delay": DELAY, "rate": 10**10, "rto_min": 4 * 10**6})


def port_for(ways):
    """A client's port that these leaves hash to these spines, like the next port."""
    return next(p for p in fabric.PORTS
                if all(fabric.way_of(p, leaf, 4) == spine for leaf, spine in ways.items()))


@case("base round trips: 4 links within a leaf, 8 over a spine, both directions together")
def base_rtt():
    for src, dst, links in ((0, 1, 2), (0, 2, 4), (7, 0, 4)):
        within(handshake(NET, f"h{src}", f"h{dst}", fabric.PORTS.start + 100 * dst),
               *lasts(links, DELAY), f"h{src} to h{dst}")


@case("each leaf selects the uplink by the client's port (ECMP), and uses all uplinks equally")
def ecmp():
    ports = one_of_each_slice(NET, "h0", "h2")
    equal(len(ports), fabric.SLICES, "slices")
    with listen(NET, "h2"):
        clients = [connect(NET, "h0", "h2", port)[0] for port in ports]
        for leaf, each in ((0, 2), (1, 1)):     # SYN and ACK; SYN-ACK
            seen = packets(NET, f"leaf{leaf}")
            expected = [fabric.way_of(port, leaf, 4) for port in ports]
            equal({f"up{i}": seen[f"up{i}"] for i in range(4)},
                  {f"up{i}": each * expected.count(i) for i in range(4)},
                  f"packets by uplink, leaf {leaf}")
            equal([expected.count(i) for i in range(4)], [4] * 4, "slices of each spine")
        for client in clients:
            client.close()


@case("leaves select uplinks independently: no two have the same mapping")
def independent():
    for spines in (2, 4, 8):
        chosen = {tuple(fabric.way_of_slices(leaf, spines)) for leaf in range(8)}
        equal(len(chosen), 8, f"different mappings, {spines} spines, 8 leaves")


@case("each next hop of a deflection is the switch at that port, not a host")
def next_hops():
    seen = 0
    for switch in NET.switches:
        for port in NET.ports(switch):
            others = NET.deflections(switch, port)
            equal(len(others), 0 if port.startswith("p") else 3,
                  f"number of deflections of {switch} {port}")
            for dev, hop in others:
                true(dev != port and not dev.startswith("p"), f"{switch} {port} to {dev}")
                with NET.ns[switch], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.sendto(b"", (hop, 9))
                time.sleep(0.01)
                shown = subprocess.run(["ip", "-j", "-n", switch, "neigh", "show", hop],
                                       check=True, stdout=subprocess.PIPE, text=True).stdout
                equal([(n["dev"], "lladdr" in n) for n in json.loads(shown)], [(dev, True)],
                      f"{switch}: neighbour {hop}")
                seen += 1
    equal(seen, 2 * 4 * 4 * 3, "number of deflections")


@case("a deflected packet takes two more links, and arrives")
def detour():
    # spine 0 deflects packets for leaf 1 to leaf 2, which sends them to spine 1.
    port = port_for({0: 0, 2: 1})
    direct = handshake(NET, "h0", "h2", port)
    hop = dict(NET.deflections("spine0", "d1"))["d2"]
    NET.ns["spine0"].ip(f"route replace 10.2.0.0/16 via {hop}")
    # The server's answers still take the spine that leaf 1 selects.
    deflected = handshake(NET, "h0", "h2", port + 10)
    NET.ns["spine0"].ip(f"route replace 10.2.0.0/16 via {NET.hop('spine0', 'd1')}")
    # Two more switches, each with a timer, whose shortest time is 0.5 us; and each read of the
    # clock advances it by 0.256 us.
    within(deflected - direct, 2 * DELAY - 256, 2 * DELAY + 2 * 500, "additional time, ns")


@case("an invalid schedule is refused with one line of text")
def bad_schedule():
    good = "class short 4\nhost h0 10.1.1.2\nhost h1 10.1.2.2\nconnection 0 1 20000 0\n"
    asked = good + "reverse 0 0\nmessage 5 0 10\n"
    for text in ("bogus\n", "host nowhere 1.2.3.4\n", good + "connection 0 2 20001 0\n",
                 good + "message 5 1 100\n", good + "message 5 0\n",
                 good + "message 5 0 10\nmessage 4 0 10\n", "class x\n", "switch nowhere\n",
                 good + "reverse 1 0\n", asked + "answer 1 1 10\n", asked + "answer 0 1 0\n",
                 asked + "answer 0 0 10\n", asked + "answer 0 1 10\nanswer 0 1 10\n",
                 asked + "answer 0 1 10\nmessage 6 0 10\n"):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([PLAY, "--schedule", file.name, "--begin", "0", "--end",
                                   "9"], capture_output=True, text=True,
                                  check=False, timeout=20)
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1),
              f"{text!r}: {done.stderr}")


def played(text, begin, end):
    """Play a schedule; returns the load generator's report."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([PLAY, "--schedule", file.name, "--begin", str(begin), "--end",
                               str(end)], check=True, text=True,
                              stdout=subprocess.PIPE, timeout=60).stdout
    return json.loads(done)


@case("an answer begins on the same connection when its request has arrived, and has its own time")
def answers():
    # Message 0 has an answer of 4 kB, 1 has none, 2 follows 1 and has an answer of 2 kB.
    text = ("class short 4\nclass long 0\nhost h0 10.1.1.2\nhost h2 10.2.1.2\n"
            "connection 0 1 20000 0\nreverse 0 1\n"
            "message 1000000 0 100\nmessage 20000000 0 1000000\nmessage 20000000 0 100\n"
            "answer 0 1 4096\nanswer 2 1 2048\n")
    seen = played(text, 0, 60000000)
    equal(seen["bytes"], {"short": 1000200, "long": 4096 + 2048}, "bytes of each direction")
    equal(seen["connections"], 2, "directions")
    request, bulk, behind, first, second = seen["fct_ns"]
    within(request, 4 * DELAY, 4 * DELAY + 3000, "time of the request, ns")
    # 4 links, and the transmission times of the packets after the first at NIC and ports.
    within(first - request, 4 * DELAY + 2 * 1514 * .8 - 700, 4 * DELAY + 2 * 1514 * .8 + 6000,
           "time of the answer of 4 kB, ns")
    # Both complete together; this one began later, when the socket had taken the other's bytes.
    within(behind, bulk - 20000, bulk + 3000, "time of a request behind 1 MB, ns")
    true(bulk >= 800000, f"time of 1 MB: {bulk} ns, at least 800000")
    within(second - behind, 4 * DELAY, 4 * DELAY + 8000, "time of the answer of 2 kB, ns")
    true(seen["memory"] > 1 << 20, f"memory: {seen['memory']} bytes, above 1 MB")


@case("messages of a connection complete in order, each with its own completion time")
def messages():
    # 0 and 1 on one connection at the same time; 2 is 1 MB on another connection; 3 alone.
    text = ("class short 4\nclass long 0\nhost h0 10.1.1.2\nhost h2 10.2.1.2\n"
            "connection 0 1 20000 0\nconnection 0 1 30000 1\n"
            "message 1000000 0 4096\nmessage 1000000 0 4096\n"
            "message 2000000 1 1000000\nmessage 20000000 0 2048\n")
    seen = played(text, 1500000, 30000000)
    equal(seen["bytes"], {"short": 2048, "long": 10**6}, "bytes in the window")
    first, second, bulk, last = seen["fct_ns"]
    # 4 links, and the transmission times of the packets after the first at NIC and ports.
    for name, took, wire in (("4 kB", first, 2 * 1514), ("4 kB behind it", second, 5 * 1514),
                             ("2 kB", last, 1514)):
        least = 4 * DELAY + wire * 8 / 10
        within(took, least - 700, least + 3000, name)
    within(bulk, 800000, 1200000, "time of 1 MB, ns")


def prepare():
    """Build the load generator and the network."""
    tap.need_virtual_time()
    subprocess.run(["make", "-s", "-C", PLAY.parent], check=True, stdout=sys.stderr)
    modules.load_all()
    NET.build()
    renew(NET)


if __name__ == "__main__":
    tap.main(prepare)
