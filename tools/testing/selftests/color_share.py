#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: red packets are cheap to lose, but flows with red packets keep their share of a link.

	a1 --+                        +-- b1   cubic (yellow)
	     +-- sw1 [color] -- sw2 --+
	a2 --+                        +-- b2   tlt_cubic (red and green)

While red packets compete for the buffer, yellow ones have the same threshold.
"""
import contextlib
import time

from lab import tap
from lab.net import frames as p
from lab.net.pairs import Pairs
from lab.tap import case, equal, true

PORT = "rate 10gbit limit 1800000 red "
STOPPED = "rate 8bit limit 2000000 "


class Load:
    """Connections that send as much as they can."""

    def __init__(self, flows):
        self.flows, self.got, self.data = flows, [0] * len(flows), bytes(1 << 18)

    def run(self, seconds):
        """Send and read for that long; returns the bit/s of each."""
        self.got = [0] * len(self.flows)
        end = time.clock_gettime(time.CLOCK_MONOTONIC) + seconds
        while time.clock_gettime(time.CLOCK_MONOTONIC) < end:
            for i, (client, server) in enumerate(self.flows):
                with contextlib.suppress(BlockingIOError):
                    while client.send(self.data):
                        pass
                with contextlib.suppress(BlockingIOError):
                    while True:
                        self.got[i] += len(server.recv(1 << 20))
            time.sleep(20e-6)
        return [8 * n / seconds for n in self.got]


def shares(setting, ccs):
    """bit/s of a long flow of each of two congestion controls, and green drops of the port."""
    net, flows = Pairs(PORT + setting, PORT + setting, cc="cubic"), []
    try:
        for n, cc in enumerate(ccs, 1):
            for host in (f"a{n}", f"b{n}"):
                net.ns[host].sysctl("net.ipv4.greenlane_active", 1)
                net.ns[host].sysctl("net.ipv4.tcp_congestion_control", cc)
            flows.append(net.flow(n))
        load = Load(flows)
        load.run(0.03)
        return load.run(0.06), sum(net.port("sw1")["colors"]["green"]["drops"].values())
    finally:
        for flow in flows:
            for s in flow:
                s.close()
        net.remove()


@case("a long flow of tlt_cubic has its share beside one of cubic",
      setting=("270000", "270000 yellow 1000000", "270000 count queue", "270000 count port", "auto"))
def share(setting):
    (own, _), _ = shares(setting, ("cubic", "cubic"))
    (other, seen), green = shares(setting, ("cubic", "tlt_cubic"))
    print(f"# Gbit/s: cubic {other / 1e9:.2f}, tlt_cubic {seen / 1e9:.2f}; two of cubic: {own / 1e9:.2f}")
    true(min(seen, other) > 0.35 * (seen + other), "each flow has more than 0.35 of both")
    true(seen + other > 9e9, "both flows together have more than 9 Gbit/s")
    equal(green, 0, "green drops")


def send(sender, *frames):
    """Send (count, TOS) of 1000 bytes each; returns the number of each that a port enqueues."""
    return [sender.send(p.ipv4(1000, tos), count) for count, tos in frames]


@case("yellow may exceed red's threshold while no red packet competes")
def alone():
    p.port(STOPPED + "red 100000")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    equal(send(sender, (500, p.YELLOW)), [500], "yellow frames")
    sender.close()


@case("while red fills its threshold, yellow has the same threshold", words=("", "yellow 500000"))
def beside(words):
    p.port(STOPPED + f"red 100000 {words}")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    equal(send(sender, (110, p.RED), (500, p.YELLOW)), [100, 100], "red, yellow frames")
    equal(p.colors()["yellow"]["drops"]["color"], 400, "yellow drops")
    sender.close()


@case("a few red packets leave most of the buffer to yellow", red=(6000, 100000))
def trickle(red):
    p.port(STOPPED + f"red {red}")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    good = sender.send(p.ipv4(100, p.RED)) and send(sender, (1999, p.YELLOW))[0]
    # Of 2 MB, yellow loses the fraction 8 * 100 bytes / (red's threshold, or 16 packets if more).
    true(good >= 1990 - 2000 * 800 / max(red, 16 * 1514), f"{good} of 1999 yellow frames")
    sender.close()


@case("yellow's threshold is at least 16 packets, however low red's is")
def floor():
    p.port(STOPPED + "red 6000 count queue")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    equal(send(sender, (40, p.RED), (100, p.YELLOW)), [6, 16 * 1514 // 1000 - 6],
          "red, yellow frames")
    sender.close()


@case("red packets that were dropped still compete while the buffer drains")
def refused():
    p.port(STOPPED + "red 100000 count queue")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    equal(send(sender, (200, p.YELLOW), (100, p.RED), (10, p.YELLOW)), [200, 0, 0],
          "yellow, red, yellow frames")
    sender.close()


if __name__ == "__main__":
    tap.main()
