#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Three tiers: delays, paths, and deflections at the switches of each tier.

	core0 .. core3      core0 and core1: agg0, agg2, agg4, agg6; core2 and core3: the others
	agg0  .. agg7       two in each of four pods, linked to both edges of the pod
	edge0 .. edge7
	h0 h1 .. h14 h15    two at each edge; each link 5 us, 10 Gbit/s
"""
import collections
import itertools
import subprocess
import sys
import time

from experiments.traffic import play
from experiments.traffic.plan import Message, Plan
from lab import tap
from lab.net import hosts, modules
from lab.net import network as fabric
from lab.net.port import shown
from lab.net.reach import (connect, handshake, lasts, listen, one_of_each_slice, packets,
                           renew)
from lab.tap import case, equal, true, within

DELAY = 5000
NET = fabric.Network({"topology": "pods", "symmetric": False, "hosts": 16, "pods": 4, "leaves": 8,
                      "spines": 2, "cores": 4, "ipv6": False, "delay": DELAY, "rate": 10**10,
                      "rto_min": 4 * 10**6})


def role(name):
    """edge, agg or core of a switch; p, up or d of a port."""
    return name.rstrip("0123456789")


@case("all hosts reach each other: 2 links within an edge, 4 within a pod, 6 over a core")
def reach():
    for number, (src, dst) in enumerate(itertools.permutations(range(16), 2)):
        links = 2 if src // 2 == dst // 2 else 4 if src // 4 == dst // 4 else 6
        within(handshake(NET, f"h{src}", f"h{dst}", fabric.PORTS.start + 200 * number),
               *lasts(links, DELAY), f"h{src} to h{dst}")


@case("each edge and each aggregate selects the uplink by the client's port (ECMP)")
def ecmp():
    ports = one_of_each_slice(NET, "h0", "h15")
    want = collections.Counter()
    with listen(NET, "h15"):
        for port in ports:
            connect(NET, "h0", "h15", port)[0].close()
            edge, agg = (fabric.way_of(port, NET.switches.index(switch), 2)
                         for switch in ("edge0", f"agg{fabric.way_of(port, 0, 2)}"))
            want[f"agg{edge}", f"up{agg}"] += 1
    time.sleep(1)
    equal(len(want), 4, "paths")
    seen = {(agg, up): packets(NET, agg)[up] for agg in ("agg0", "agg1") for up in ("up0", "up1")}
    each = sum(seen.values()) // len(ports)
    equal(seen, {path: each * count for path, count in want.items()}, "packets by path")
    cores = [sum(packets(NET, switch).values()) for switch in NET.switches if role(switch) == "core"]
    true(min(cores) > 0, f"packets of each core: {cores}")


@case("a port deflects to the same switch's other ports up, or down to switches, never to a host")
def deflections():
    for switch in NET.switches:
        for port in NET.ports(switch):
            alike = {dev for dev in NET.ports(switch) if role(dev) == role(port) != "p"}
            equal({dev for dev, _ in NET.deflections(switch, port)}, alike - {port},
                  f"ports that {switch} {port} deflects to")


@case("each tier deflects: all messages arrive, in order, and no packet is lost")
def deflected():
    def words(switch, dev):
        others = NET.deflections(switch, dev)
        ways = " ".join(f"deflect dev {other} via {hop}" for other, hop in others)
        port = "color rate 10gbit limit 20m"
        return [f"iofd threshold 3000 entries 64 {ways}", port] if others else [port]
    hosts.settle(NET, NET.config, "dart")
    NET.fresh_ports(words)
    plan, rounds = Plan("1"), 10
    plan.classes = ("short",)
    pairs = [(src, dst) for src, dst in itertools.permutations(range(16), 2) if src // 2 != dst // 2]
    wires = [plan.connect(src, dst, 0) for src, dst in pairs]
    for number in range(rounds):
        plan.messages += [Message((1 + number) * 10**6, wire, 8192) for wire in wires]
    result = play.play(plan, NET, {"cc": "dart"}, [4], "--begin", 0, "--end", (2 + rounds) * 10**6)
    equal((len(result["fct_ns"]), min(result["fct_ns"]) > 0), (rounds * len(wires), True),
          "messages, all complete")
    tcp = result["counters"]["tcp"]
    equal([tcp[name] for name in ("TCPOFOQueue", "RetransSegs")], [0, 0],
          "packets out of order, retransmitted")
    messages = collections.Counter()
    for switch in NET.switches:
        for qdisc in shown(ns=NET.ns[switch]):
            if qdisc["kind"] == "iofd":
                messages[role(switch), role(qdisc["dev"])] += qdisc["deflected"]["messages"]
            equal(qdisc.get("drops", 0), 0, f"drops of {switch} {qdisc.get('dev')}")
    places = ("edge", "up"), ("agg", "up"), ("agg", "d"), ("core", "d")
    true(min(messages[place] for place in places) > 20, f"deflected messages: {messages}")


def prepare():
    """Build the load generator and the network."""
    tap.need_virtual_time()
    subprocess.run(["make", "-s", "-C", play.PROGRAM.parent], check=True, stdout=sys.stderr)
    modules.load_all()
    NET.build()
    renew(NET)


if __name__ == "__main__":
    tap.main(prepare)
