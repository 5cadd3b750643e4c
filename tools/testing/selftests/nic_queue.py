#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Ports in the queues of a host's own network card: mq, rings with a limit, TSO, pause frames.

	a:  [color] -> ring --\\
	    [color] -> ring ---- 10 Gbit/s ----  b
	    [color] -> ring --/

The cards are tools/testing/modules/gl_nic.c.  A port queues packets only while the ring below it is
full, and a ring without a limit in bytes holds 512 packets of up to 64 kB.
"""
import socket
import subprocess
import threading
import time

from lab import tap
from lab.net import modules, pfc
from lab.net.port import shown
from lab.status import Cable
from lab.tap import case, equal, true, within

QUEUES = 4
MBIT = 10000
# Limits that BQL finds are between four packets and one of 64 kB.
LIMITS = (6_000, 64_000)
SLOTS = 512
TSO, FRAME = 65_536, 1514


class Cards(Cable):
    """Two hosts with linked cards, and this port in each queue of a's card."""

    def __init__(self, port, limit, **options):
        self._limit = limit
        super().__init__("mq", **options)
        for queue in range(1, QUEUES + 1):
            self.tc(self.a, f"qdisc add dev va parent 1:{queue} {port}")

    def devices(self):
        modules.load_helper("gl_nic", f"mbit={MBIT}", f"slots={SLOTS}", f"limit={self._limit}")
        for card, ns, dev, number in (("nic0", "left", "va", 1), ("nic1", "right", "vb", 2)):
            subprocess.run(["ip", "link", "set", card, "netns", ns, "name", dev,
                            "address", self.MAC.format(number)], check=True)

    def ports(self):
        """tc's report of each port."""
        return [row for row in shown("va", self.a) if row["kind"] == "color"]

    def __exit__(self, *exc):
        super().__exit__(*exc)
        modules.unload("gl_nic")


def ideal(count, size):
    """The time of these bytes on the link, s."""
    return count * size / 1448 * (1448 + 52 + 14 + 24) * 8 / MBIT / 1e6


def drops(cards, color):
    """Packets of a colour that the thresholds of a's ports refused."""
    return sum(port["colors"][color]["drops"]["color"] for port in cards.ports())


def peak(cards):
    """The most bytes that one of a's ports held."""
    return max(port["queue"]["peak_backlog"] for port in cards.ports())


@case("the queue is in the port if the ring has a limit; if not, no threshold acts",
      limit=(*LIMITS, 0))
def where(limit):
    with Cards("color limit 1800k red 60k", limit, cc="tlt_cubic") as cards:
        cards.burst(200, 14480)
        if limit:
            true(peak(cards) > 60_000, f"bytes in a port: {peak(cards)}")
            true(drops(cards, "red") > 0, "red packets are dropped")
        else:
            within(peak(cards), 0, 2 * TSO, "bytes in a port")
            equal(drops(cards, "red"), 0, "red drops")


@case("a port with a rate below the link's has the queue without a limit of the ring")
def rated():
    with Cards(f"color rate {MBIT * 24 // 100}mbit limit 1800k red 60k", 0, cc="tlt_cubic") as cards:
        cards.burst(200, 14480)
        true(peak(cards) > 60_000, f"bytes in a port: {peak(cards)}")
        true(drops(cards, "red") > 0, "red packets are dropped")


@case("200 bursts of 10 packets through four queues: no timer expires",
      cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), limit=LIMITS, also=("", "pool p size 900k"))
def quiet(cc, limit, also):
    with Cards(f"color limit 450k red 60k ecn 20k {also}", limit, cc=cc) as cards:
        for ns in (cards.a, cards.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        slowest, best = cards.burst(200, 14480), ideal(200, 14480)
        true(drops(cards, "red") > 0, "red packets are dropped")
        equal(drops(cards, "green"), 0, "green drops")
        equal([cards.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")
        within(slowest / best, 1, 1.5, "slowest burst by the link's time")


@case("one connection has the link's rate", limit=LIMITS)
def alone(limit):
    with Cards("color limit 1800k red 400k", limit, cc="tlt_cubic") as cards:
        pair = cards.connect()
        cards.send([pair], 1_000_000)
        begun = time.monotonic()
        cards.send([pair], 20_000_000)
        # send() waits for 100 ms at its end.
        within((time.monotonic() - begun - 0.1) / ideal(1, 20_000_000), 1, 1.05,
               "time by the link's")


@case("a link that flaps while a port that pauses is created: its speed is not taken as 0")
def flaps():
    with Cards("color", 0, cc="cubic") as cards:
        for answers in range(1, 7):
            cards.tc(cards.a, "qdisc del dev va root")
            with open("/sys/module/gl_nic/parameters/answers", "w", encoding="ascii") as parameter:
                parameter.write(str(answers))
            done = subprocess.run(
                ["tc", "-n", cards.a.name, "qdisc", "add", "dev", "va", "root", "color", "limit", "1m",
                 "pause", "obey"], capture_output=True, text=True, check=False)
            true(done.returncode == 0 or "reports no speed" in done.stderr, done.stderr)
            after(cards, (0.01,))
            if done.returncode:
                cards.tc(cards.a, "qdisc add dev va root color")


def after(cards, spans):
    """The bytes that b receives after a pause frame to a's card, by the time since, s."""
    with cards.b, socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind(("vb", 0))
        wire.send(pfc.frame({0: 0xffff}))
    # The link sends while a process is in a system call, so the count begins after this one.
    begun = received(cards)
    seen, now = [], 0
    for span in spans:
        time.sleep(span - now)
        now = span
        seen.append(received(cards) - begun)
    return seen


def received(cards):
    """Bytes that b's card has received."""
    row = next(row for row in cards.b.read("/proc/thread-self/net/dev").splitlines() if "vb:" in row)
    return int(row.split()[1])


@case("a pause frame stops each queue; only the packets in the rings leave after it", limit=LIMITS,
      also=("", "split-gso"))
def paused(limit, also):
    with Cards(f"color limit 4m pause obey {also}", limit, cc="reno") as cards:
        pairs = [cards.connect() for _ in range(80)]
        sender = threading.Thread(target=cards.send, args=[pairs, 400_000])
        sender.start()
        time.sleep(2e-3)
        seen = after(cards, (0.5e-3, 3e-3, 8e-3))
        sender.join()
        # A ring exceeds its limit by one packet.  Two more are on the link and about to be sent.
        most = QUEUES * (limit + (FRAME if also else TSO)) + 2 * FRAME
        within(seen[0], limit, most, "bytes after the pause frame")
        equal(seen[1], seen[0], "bytes until the pause ends")
        true(seen[2] > seen[1] + 1_000_000, f"bytes after its end: {seen[2] - seen[1]}")


if __name__ == "__main__":
    tap.main()
