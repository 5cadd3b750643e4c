#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The first round trip of a credit transport: seven answers at once, again and again.

	h1 ... h7 ---- s1 ---- h8       h8 requests a message of 30 kB from each

xpass waits for credits; aeolus_xpass sends the data of a round trip at once.  The switch
drops packets of it above a threshold (`drop red`), which are retransmitted with credits.
"""

import argparse

from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo

from experiments.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink
from experiments.mininet import load

SENDERS = 7
QUEUE = "limit 200k preset aeolus"


def first_rtt(cc, args):
    """The result row of one congestion control."""
    net = Mininet(SingleSwitchTopo(SENDERS + 1), controller=None, switch=GreenlaneBridge,
                  host=GreenlaneHost.using(cc=cc),
                  link=GreenlaneLink.using(bw=args.bw, delay=args.delay, queue=QUEUE))
    net.start()
    *senders, receiver = net.hosts
    times = load.play(receiver, senders, args.bytes, rounds=args.rounds)
    port = receiver.intf().peer().stats()["color"]
    seen = [host.counters() for host in senders]
    row = {"cc": cc, **load.times_of(times),
           "unscheduled": sum(host.get("UnscheduledSent", 0) for host in seen),
           "scheduled": sum(host.get("ScheduledSent", 0) for host in seen),
           "RTOs": sum(host["TCPTimeouts"] for host in seen),
           **load.drops(port)}
    net.stop()
    return row


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--cc", default="xpass,aeolus_xpass", help="several, with commas (%(default)s)")
    add("--bw", type=float, default=10000, help="of each link, Mbit/s (%(default)s)")
    add("--delay", default="3.5us", help="of each link (%(default)s)")
    add("--bytes", type=int, default=30000, help="of an answer (%(default)s)")
    add("--rounds", type=int, default=20)
    add("--json", action="store_true")
    args = parser.parse_args()
    load.show([first_rtt(cc, args) for cc in args.cc.split(",")], args.json)


if __name__ == "__main__":
    main()
