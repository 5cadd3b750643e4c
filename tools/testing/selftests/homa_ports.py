#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Homa between hosts at a switch: incasts, two directions, unequal links, ports without priorities.

	h0 ... hn ---- :sw: with `color preset homa` at each port
"""
import statistics
import time

from lab import tap
from lab.net.star import Star, both_full, deliver, pump
from lab.tap import case, equal, true, within

PORT = "limit 1m preset homa"
MTU = 1538              # bytes of a full packet on the link


@case("one long flow has the link")
def alone():
    with Star([10_000] * 2, port=PORT, cc="homa") as net:
        within(sum(pump([net.flow(0, 1)], 20e-3, warm=5e-3)), 9.0, 10.0, "Gbit/s")
        net.no_timer()


@case("8 hosts to 1, long flows: the link is full, no flow starves, the queue has the granted windows",
      overcommit=(1, 4))
def crowded(overcommit):
    with Star([10_000] * 9, port=PORT, cc="homa",
              sysctls={"net.ipv4.homa_overcommit": overcommit}.items()) as net:
        flows = [net.flow(host, 8) for host in range(8)]
        rates = pump(flows, 50e-3, warm=5e-3)
        within(sum(rates), 8.8, 10.0, "Gbit/s")
        true(min(rates) > 0.1, f"Gbit/s of each: {rates}")
        # Data in the last band may wait for longer than TCP's probes do.
        equal(sum(host.netstat("TCPTimeouts") for host in net.hosts), 0, "RTOs")
        port = net.port(8)
        equal([sum(color["drops"].values()) for color in port["colors"].values()], [0, 0, 0], "drops")
        queues = []
        for _ in range(10):
            pump(flows, 0.5e-3)
            queues.append(net.port(8)["backlog"])
        # A round trip of 22 us, and two packets, of each window, one of which is on the links.
        window = 22e-6 * 1.25e9 + 2 * MTU
        within(statistics.median(queues) / window, max(overcommit - 2, 0), overcommit,
               "windows in the queue")


@case("an incast of 64 messages of 40 packets: no packet is dropped, and no timer expires")
def incast():
    with Star([10_000] * 9, port=PORT, cc="homa") as net:
        flows = [net.flow(number % 8, 8) for number in range(64)]
        message = bytes(40 * 1448)
        for client, _ in flows:
            equal(client.send(message), len(message), "sent")
        began = time.monotonic()
        equal(deliver(flows, len(message), 0.1), {}, "connections that miss bytes")
        within((time.monotonic() - began) / (64 * 40 * MTU * 8e-10), 0.9, 1.15, "time by the ideal")
        net.no_timer()


@case("two hosts send to each other: both links are full", count=(1, 4))
def directions(count):
    both_full("homa", PORT, count)


@case("a host of 1 Gbit/s grants at its speed to one of 10")
def slower():
    with Star([10_000, 1000], port=PORT, cc="homa") as net:
        rates = pump([net.flow(0, 1)], 50e-3, warm=10e-3)
        within(rates[0], 0.85, 1.0, "Gbit/s")
        net.no_timer()


@case("ports that drop: TCP finds the losses, and every connection continues",
      by=(("homa", "limit 60k"), ("homa", "limit 60k preset homa"),
          ("aeolus_homa", "limit 200k preset homa red 6k count queue")))
def dropping(by):
    cc, port = by
    with Star([10_000] * 9, port=port, cc=cc) as net:
        flows = [net.flow(number % 8, 8) for number in range(32)]
        rates = pump(flows, 100e-3, warm=20e-3)
        true(min(rates) > 0, f"Gbit/s of each: {rates}")
        within(sum(rates), 5, 10.0, "Gbit/s")


@case("beside xpass and ndp on one link, each continues", other=("xpass", "ndp"))
def mixed(other):
    with Star([10_000] * 5, port="limit 1m preset homa", cc="homa") as net:
        flows = [net.flow(host, 4, cc) for host, cc in enumerate(("homa", "homa", other, other))]
        rates = pump(flows, 50e-3, warm=10e-3)
        true(min(rates) > 0.05, f"Gbit/s of each: {rates}")
        within(sum(rates), 7.5, 10.0, "Gbit/s")


if __name__ == "__main__":
    tap.main()
