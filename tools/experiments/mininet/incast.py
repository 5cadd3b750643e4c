#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""An incast: many answers at once, through one port of a switch.

	h1 ... h8 ---- s1 ---- h9       h9 requests 80 answers of 32 kB from each

TLT's promise is that no answer waits for a timer.  `drop red` counts dropped packets that
TLT permits to be lost, `drop green` dropped packets that must not be lost.
"""

import argparse

from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo

from experiments.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink
from experiments.mininet import load

SENDERS = 8
QUEUE = "limit 1800k red 270k ecn 200k"


def incast(cc, args):
    """The result row of one congestion control."""
    net = Mininet(SingleSwitchTopo(SENDERS + 1), controller=None, switch=GreenlaneBridge,
                  host=GreenlaneHost.using(cc=cc),
                  link=GreenlaneLink.using(bw=args.bw, delay=args.delay, queue=QUEUE))
    net.start()
    *senders, receiver = net.hosts
    times = load.play(receiver, senders, args.bytes, flows=args.flows, rounds=args.rounds)
    port = receiver.intf().peer().stats()["color"]
    row = {"cc": cc, **load.times_of(times),
           "RTOs": sum(host.counters()["TCPTimeouts"] for host in senders),
           **load.drops(port),
           "peak kB": port["queue"]["peak_backlog"] / 1000}
    net.stop()
    return row


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--cc", default="dctcp,tlt_dctcp", help="several, with commas (%(default)s)")
    add("--bw", type=float, default=10000, help="of each link, Mbit/s (%(default)s)")
    add("--delay", default="5us", help="of each link (%(default)s)")
    add("--flows", type=int, default=80, help="from each sender (%(default)s)")
    add("--bytes", type=int, default=32000, help="of an answer (%(default)s)")
    add("--rounds", type=int, default=3)
    add("--json", action="store_true")
    args = parser.parse_args()
    load.show([incast(cc, args) for cc in args.cc.split(",")], args.json)


if __name__ == "__main__":
    main()
