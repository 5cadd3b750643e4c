#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Short messages avoid a long queue: dart, with iofd over two paths.

	h1 ---\            /--- h4      h4 requests short messages from h1, again and again
	h2 --- s1 ====== s2 --- h5      h6 requests eight long ones from h3 at once meanwhile
	h3 ---/            \--- h6      each path has a quarter of a host's link rate

The routers use the same path for packets to h4 and to h6.  With iofd a short message that
finds more than the threshold queued there is deflected to the other path, with all its packets
in order (`late` counts the packets that arrived out of order).
"""

import argparse

from mininet.net import Mininet
from mininet.topo import Topo

from experiments.mininet import GreenlaneHost, GreenlaneLink, GreenlaneRouter
from experiments.mininet import load

QUEUE = "limit 2m ecn 22500"
IOFD = "threshold 15k"
HOSTS = 6
LONG = 8


class TwoWays(Topo):
    """Two switches and two links between them."""

    def build(self, bw, iofd, **_opts):
        """mininet calls this with Topo's parameters."""
        left, right = self.addSwitch("s1"), self.addSwitch("s2")
        for number in range(HOSTS):
            self.addLink(self.addHost(f"h{number + 1}"), right if number >= HOSTS / 2 else left)
        for _ in range(2):
            self.addLink(left, right, bw=bw / 4, iofd=iofd)


def deflect(iofd, args):
    """The result row of one run, with iofd or without."""
    net = Mininet(TwoWays(bw=args.bw, iofd=iofd), controller=None, switch=GreenlaneRouter,
                  host=GreenlaneHost.using(cc="dart"),
                  link=GreenlaneLink.using(bw=args.bw, delay=args.delay, queue=QUEUE))
    net.start()
    h1, h3, h4, h6 = net.get("h1", "h3", "h4", "h6")
    servers = [load.serving(h1, args.bytes), load.serving(h3, args.long)]
    bulk = load.asking(h6, [h3], args.long, flows=LONG, gap=args.long_gap,
                       rounds=max(1, int(args.rounds * args.gap / args.long_gap)))
    short = load.asking(h4, [h1], args.bytes, rounds=args.rounds, gap=args.gap)
    times, long = (sorted(sum(load.answers(asking), [])) for asking in (short, bulk))
    load.end(servers)
    ports = [intf.stats() for intf in net["s1"].intfList()
             if intf.peer().node is net["s2"]]
    row = {"iofd": iofd or "-", **load.times_of(times),
           "long p50 ms": load.percentile(long, 50),
           "RTOs": h1.counters()["TCPTimeouts"],
           "late": h4.counters()["TCPOFOQueue"],
           "deflected": sum(port["iofd"]["deflected"]["messages"]
                            for port in ports if "iofd" in port),
           "peak kB": max(port["color"]["queue"]["peak_backlog"] for port in ports) / 1000}
    net.stop()
    return row


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--bw", type=float, default=10000, help="of a host's link, Mbit/s (%(default)s)")
    add("--delay", default="5us", help="of each link (%(default)s)")
    add("--bytes", type=int, default=8000, help="of a short message (%(default)s)")
    add("--long", type=int, default=250_000, help="of a long one (%(default)s)")
    add("--rounds", type=int, default=300, help="short messages (%(default)s)")
    add("--gap", type=float, default=0.0005, help="between them, seconds (%(default)s)")
    add("--long-gap", type=float, default=0.005, help="between long ones (%(default)s)")
    add("--json", action="store_true")
    args = parser.parse_args()
    load.show([deflect(iofd, args) for iofd in (None, IOFD)], args.json)


if __name__ == "__main__":
    main()
