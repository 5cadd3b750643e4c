#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Homa between hosts at a switch: incasts, two directions, unequal links, ports without priorities.

	h0 ... hn ---- :sw: with `color preset homa` at each port
"""
from lab import tap
from lab.measure.report import jain
from lab.net.port import shown
from lab.net.star import Star, pump
from lab.tap import case, equal, true, within

PORT = "limit 1m preset homa"


def no_timer(net):
    """No RTO and no loss probe at any host."""
    for host in net.hosts:
        equal([host.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              f"{host.name}: RTOs, TLPs")


@case("one long flow has the link")
def alone():
    with Star([10_000] * 2, port=PORT, cc="homa") as net:
        rates = pump([net.flow(0, 1)], 20e-3, warm=5e-3)
        print("#", rates, net.hosts[0].greenlane(), net.hosts[1].greenlane(), flush=True)
        within(sum(rates), 9.0, 10.0, "Gbit/s")
        no_timer(net)


@case("8 hosts to 1, long flows: the link is full")
def fair():
    with Star([10_000] * 9, port=PORT, cc="homa") as net:
        flows = [net.flow(host, 8) for host in range(8)]
        rates = pump(flows, 20e-3, warm=5e-3)
        print("#", rates, jain(rates), flush=True)
        within(sum(rates), 9.0, 10.0, "Gbit/s")
        no_timer(net)


@case("two hosts send to each other: both links are full", count=(1, 4))
def directions(count):
    with Star([10_000] * 2, port=PORT, cc="homa") as net:
        flows = [net.flow(*ends) for ends in ((0, 1), (1, 0)) for _ in range(count)]
        rates = pump(flows, 20e-3, warm=5e-3)
        for part in (rates[:count], rates[count:]):
            within(sum(part), 8.0, 10.0, "Gbit/s in one direction")
        no_timer(net)


if __name__ == "__main__":
    tap.main()
