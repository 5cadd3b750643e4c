# SPDX-License-Identifier: GPL-2.0
"""Switches that deflect to each other, and route.

	       host
	        | (hs)
	       sw1 ---out ==== the destination
	      /   \\
	    sw2---sw3          each switch has a port `out`, which is congested
	   out     out

Each switch routes to the destination through its own port `out`, and deflects to the next
switch, by default in the ring 1, 2, 3.  Neighbours between switches are found by ARP and ND.
"""
import contextlib
import json
import time

from lab.net import iofd as i
from lab.net import frames as p
from lab.net.namespace import Namespace, write_sysctl

NEXT = {1: 2, 2: 3, 3: 1}


class Switches:
    """Three switches, and a host at each."""

    def __init__(self, options, child=i.STILL, version=4, ring=None):
        i.insmod()
        self.version = version
        self.ring = ring or NEXT
        self.ns = {n: Namespace(f"sw{n}") for n in NEXT}
        for n, ns in self.ns.items():
            with ns:
                for name in ("default", "all"):
                    write_sysctl(f"net.ipv6.conf.{name}.accept_dad", 0)
                write_sysctl("net.ipv4.ip_forward", 1)
                write_sysctl("net.ipv6.conf.all.forwarding", 1)
                for dev, peer in (("out", "sink"), ("hs", "host")):
                    p.veth(dev, peer)
                    write_sysctl(f"net.ipv6.conf.{peer}.disable_ipv6", 1)
                p.run("ip", "link", "set", "hs", "address", "02:00:00:00:00:02")
                p.run("ip", "-batch", "-", text="route add 10.0.0.0/24 dev out\n"
                      "neigh add 10.0.0.2 lladdr 02:00:00:00:00:99 dev out nud permanent\n"
                      "route add fd00::/64 dev out\n"
                      "neigh add fd00::2 lladdr 02:00:00:00:00:99 dev out nud permanent\n")
        for n, m in ((1, 2), (2, 3), (3, 1)):
            p.run("ip", "-n", f"sw{n}", "link", "add", f"to{m}", "type", "veth", "peer", "name",
                  f"to{n}", "netns", f"sw{m}")
            for own, other in ((n, m), (m, n)):
                self.ns[own].ip(f"link set to{other} up",
                                f"addr add 10.{n}.{m}.{own}/24 dev to{other}",
                                f"addr add fd00:{n}:{m}::{own}/64 dev to{other} nodad")
        time.sleep(3)               # until IPv6 is ready
        for n, ns in self.ns.items():
            with ns:
                p.tc(f"qdisc add dev out root handle 1: iofd {options} {self.deflect(n)}")
                p.tc(f"qdisc add dev out parent 1:1 handle 2: color {child}")

    def deflect(self, own):
        """The `deflect` option for tc: to the next switch."""
        other = self.ring[own]
        n, m = (own, other) if NEXT[own] == other else (other, own)
        address = f"10.{n}.{m}.{other}" if self.version == 4 else f"fd00:{n}:{m}::{other}"
        return f"deflect dev to{other} via {address}"

    def congest(self):
        """Fill the queue of each switch's port with 17 frames."""
        for ns in self.ns.values():
            with ns:
                sender = p.Sender("out")
                sender.send(i.frame(0, version=self.version, number=9999), 17)
                sender.close()

    def counters(self, n):
        """The counters of a switch's port."""
        with self.ns[n]:
            return i.counters("out")

    def backlog(self, n):
        """Packets in a switch's port."""
        with self.ns[n]:
            return i.shown("out")["qlen"]

    def mac(self, n, other):
        """The address of a switch's device towards another."""
        with self.ns[n]:
            shown = p.run("ip", "-j", "link", "show", "dev", f"to{other}").stdout
        return json.loads(shown)[0]["address"]

    def open(self, what, n, dev):
        """A Sender or a Receiver at a switch."""
        with self.ns[n]:
            return what(dev)

    def drain(self, n):
        """Let a port send; returns [(number, DSCP, frame)] of its frames, without congest()'s."""
        receiver = self.open(p.Receiver, n, "sink")
        with self.ns[n]:
            p.tc("qdisc change dev out parent 1:1 handle 2: color rate 1gbit")
        got = receiver.frames(wait=0.1)
        receiver.close()
        return [(number, code, frame) for number, code, (_, frame)
                in zip(p.numbers(got), i.codes(got), got) if number != 9999]

    def close(self):
        """Delete the qdiscs and remove the namespaces."""
        for ns in self.ns.values():
            with ns:
                p.tc("qdisc del dev out root", check=False)
            ns.remove()


@contextlib.contextmanager
def switches(*args, **kwargs):
    """Switches that are removed at the end of the block."""
    net = Switches(*args, **kwargs)
    try:
        yield net
    finally:
        net.close()
