#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: `red auto`, an automatic threshold, exact to the packet.

	   frames                   1 byte/s: no frame leaves
	 ----------> [ color ] p0 ============ p1
"""
import struct
import time

from lab.net import frames as p
from lab.net.rtnl import NLA_F_NESTED, TCA_OPTIONS, Qdisc, attr
from lab.net.uapi import COLOR
from lab.tap import case, equal, main, timed, true, within

STOPPED = "rate 8bit"           # no frame leaves, so that all queued ones can be counted
LIMIT = 800_000
ROOM = LIMIT - LIMIT // 8       # without the reserve
MIN = 20_000
STEP = 4096                     # of the peak
LEN = 1000


def start(options):
    """A port whose link transmits one frame during the whole case; that frame is not queued."""
    p.port(f"{STOPPED} {options}")
    sender = p.Sender()
    sender.send(p.ipv4(64))
    return sender


def auto(options=""):
    """A port with `red auto`."""
    return start(f"limit {LIMIT} red auto min {MIN} {options}")


def red(sender, count=2000):
    """Send red frames; returns the number that are enqueued."""
    return sender.send(p.ipv4(LEN, p.RED), count)


def threshold(dev="p0"):
    """Red's current threshold, bytes."""
    return p.shown(dev)["red_auto"]["threshold"]


def drained():
    """Empty the queue, and stop the link again."""
    # With a window of 64 ms, not of 1 ms as without a rate.
    p.tc("qdisc change dev p0 root color rate 100mbit")
    p.settle(0.1)
    p.tc(f"qdisc change dev p0 root color {STOPPED}")


def wait(windows):
    """Wait for windows: the transmission time of a full buffer, 1 s at most, which it is here."""
    time.sleep(windows + 0.02)


@case("without green frames red may fill all but the reserve, to the packet")
def alone():
    sender = auto()
    equal(threshold(), ROOM, "threshold")
    equal(red(sender), ROOM // LEN, "red frames")
    equal(p.colors()["red"]["drops"], {"color": 2000 - ROOM // LEN, "pool": 0, "limit": 0},
          "red drops")
    equal(sender.send(p.ipv4(LEN, p.GREEN), 200), LIMIT // 8 // LEN,
          "green frames in the reserve")
    sender.close()


@case("three times the bytes of new green packets are kept for green, and those of yellow once")
def growing():
    sender = auto()
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    equal(p.shown()["red_auto"], {"threshold": ROOM - 300_000, "kept": 300_000},
          "threshold and kept bytes, 100 green frames")
    sender.send(p.ipv4(LEN), 50)
    equal(p.shown()["red_auto"], {"threshold": ROOM - 350_000, "kept": 350_000},
          "threshold and kept bytes, 50 yellow frames more")
    equal(red(sender), (ROOM - 350_000) // LEN, "red frames")
    sender.send(p.ipv4(LEN, p.GREEN), 1)
    equal(threshold(), ROOM - 353_000, "threshold, one green frame more")
    equal(red(sender), 0, "red frames above the threshold, which has fallen")
    sender.close()


@case("kept for green: the recent peak, or three times the queued bytes if that is more")
def peak():
    sender = auto()
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    wait(1)
    equal(threshold(), ROOM - 300_000, "threshold")
    sender.send(p.ipv4(LEN, p.GREEN), 10)
    equal(threshold(), ROOM - 330_000, "threshold, 10 green frames more")
    drained()
    top = -(-110_000 // STEP) * STEP
    within(threshold(), ROOM - top, ROOM - top + 3 * top // 64,
           "threshold after the frames have left")
    sender.close()


@case("red may fill its minimum, however much green is queued")
def least():
    sender = auto()
    equal(sender.send(p.ipv4(LEN, p.GREEN), 700), 700, "green frames")
    equal(threshold(), MIN, "threshold")
    equal(red(sender), MIN // LEN, "red frames")
    equal(sender.send(p.ipv4(LEN, p.GREEN), 100), 100 - MIN // LEN, "green frames up to the limit")
    sender.close()


@timed("the peak decays by 1/64 each window, and is 0 after 64 windows without a packet")
def forgotten():
    # 64 kB at 80 Mbit/s: a window of 6.4 ms.
    p.port("rate 80mbit limit 64000 red auto min 1000")
    sender = p.Sender()
    room = 64000 - 8000
    sender.send(p.ipv4(LEN, p.GREEN), 41)
    time.sleep(0.015)
    within(threshold(), room - 41_000, room - 36_000, "threshold, a window or two later")
    time.sleep(0.15)            # 23 windows; in each the peak loses a little less than 1/64
    within(threshold(), room - 30_000, room - 22_000, "threshold, 150 ms later")
    time.sleep(0.5)
    equal(threshold(), room, "threshold, half a second later")
    equal(p.shown()["qlen"], 0, "packets in the queue")
    sender.close()


@case("a second, larger burst of green frames lowers the threshold below that of the first")
def larger():
    sender = auto()
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    wait(1)
    drained()
    sender.send(p.ipv4(64))
    sender.send(p.ipv4(LEN, p.GREEN), 30)
    within(threshold(), ROOM - 110_000, ROOM - 90_000,
           "threshold: what the first burst has left is kept")
    sender.send(p.ipv4(LEN, p.GREEN), 120)
    equal(threshold(), ROOM - 450_000, "threshold, with 1.5 times the first burst queued")
    sender.close()


@case("the threshold is that of the port, not of a band")
def bands():
    sender = auto("bands 2 prio 10 0")
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    equal(threshold(), ROOM - 300_000, "threshold")
    equal(red(sender), (ROOM - 300_000) // LEN, "red frames")
    sender.close()


@case("the default minimum on a slow link: 16 packets, or a quarter of the limit if that is less")
def default_minimum():
    for limit, expect in ((160_000, 16 * 1514), (16_000, 4000)):
        sender = start(f"limit {limit} red auto")
        sender.send(p.ipv4(LEN, p.GREEN), limit // LEN)
        equal(threshold(), expect, f"threshold, limit {limit}")
        sender.close()


def ports(count, options):
    """Ports of one pool, each with a link that is busy during the whole case."""
    p.insmod()
    p.fresh_namespace()
    senders = []
    for number in range(count):
        dev = f"a{number}"
        p.veth(dev, f"b{number}")
        p.tc(f"qdisc add dev {dev} root handle 1: color {STOPPED} limit 2g1 {options}"
             .replace("2g1", "2147483647"))
        senders.append(p.Sender(dev))
        senders[-1].send(p.ipv4(64))
    return senders


# Without reserves, so that it is exact to the byte.
SIZE = 900_000
POOL = f"pool sw size {SIZE} red auto min {MIN}"


@case("a pool at alpha 1: red's threshold is 0.62 of the free bytes, for each next port too")
def pool():
    senders = ports(3, POOL)
    # n = 0.618 (S - n) = 0.382 S
    free = SIZE
    for number, sender in enumerate(senders):
        got = red(sender)
        within(got, free * 0.382 // LEN - 1, free * 0.382 // LEN + 1,
               f"red frames of port {number}")
        free -= got * LEN
    seen = p.shown("a0")["pool"]
    equal(seen["used"], sum(p.shown(f"a{n}")["backlog"] for n in range(3)), "used")
    equal(sum(p.colors(f"a{n}")["red"]["drops"]["pool"] for n in range(3)), 0,
          "red frames that the pool has dropped")


@case("a pool: a second port fills up, and the first still has room for green frames")
def second_port():
    for alpha in (0.25, 0.5, 1, 2, 8):
        senders = ports(2, f"{POOL} alpha {alpha}")
        for sender in senders:
            sender.send(p.ipv4(LEN, p.GREEN), 20)
        wait(1)                     # this is the peak now
        for number, sender in enumerate(senders):
            p.tc(f"qdisc change dev a{number} root color rate 1mbit")   # a window of 1 s, too
            p.settle(0.3)
            p.tc(f"qdisc change dev a{number} root color {STOPPED}")
            sender.send(p.ipv4(64))
        for sender in senders:
            red(sender)
        for number, sender in enumerate(senders):
            # The peak has decayed since.
            equal(sender.send(p.ipv4(LEN, p.GREEN), 18), 18,
                  f"green frames of port {number}, alpha {alpha}")
            sender.close()


@case("a pool: the threshold follows other ports' packets, alpha, and added or removed ports")
def moves():
    senders = ports(2, POOL)
    equal(threshold("a0") // 100, SIZE * 0.618 // 100, "threshold")
    senders[1].send(p.ipv4(LEN, p.GREEN), 200)
    equal(threshold("a0") // 100, (SIZE - 200_000) * 0.618 // 100,
          "threshold with 200 kB queued at the other port")
    p.tc("qdisc change dev a0 root color alpha 2")
    equal(threshold("a0"), SIZE - 200_000, "threshold with an alpha of 2: the share is 1")
    p.tc("qdisc change dev a0 root color size 400000")
    equal(threshold("a0"), 200_000, "threshold in a smaller pool")
    p.tc("qdisc del dev a1 root")
    equal(threshold("a0"), 400_000, "threshold without the other port")
    p.tc("qdisc change dev a0 root color pool none limit 80000")
    equal(threshold("a0"), 70_000, "threshold without the pool")
    for sender in senders:
        sender.close()


@case("change: red auto is switched on and off while packets are queued")
def change():
    sender = start(f"limit {LIMIT} red 5000")
    equal(red(sender, 10), 5, "red frames with a fixed threshold")
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    p.tc(f"qdisc change dev p0 root color red auto min {MIN}")
    equal(threshold(), ROOM - 300_000, "threshold: packets that are already queued count")
    equal(red(sender), (ROOM - 300_000) // LEN - 5, "red frames")
    p.tc("qdisc change dev p0 root color limit 600000")
    equal(threshold(), 525_000 - 300_000, "threshold with another limit")
    p.tc("qdisc change dev p0 root color red 450k")
    true("red_auto" not in p.shown(), "no statistics of red auto")
    equal(red(sender), 60, "red frames with a fixed threshold")
    p.tc("qdisc change dev p0 root color red none")
    equal(red(sender), (600_000 - 100_000) // LEN - 460, "red frames up to the limit")
    sender.close()


@case("a device that is set down and up again starts without a peak")
def down():
    sender = auto()
    sender.send(p.ipv4(LEN, p.GREEN), 200)
    wait(1)
    p.run("ip", "link", "set", "p0", "down")
    p.run("ip", "link", "set", "p0", "up")
    equal(threshold(), ROOM, "threshold")
    sender.close()


@case("the straight path and the slow one agree: red and green frames alternate, at each level")
def agree():
    sender = auto()
    red(sender)                         # the straight path ends at a peak
    sender.send(p.ipv4(LEN, p.GREEN), 100)
    for _ in range(2):
        p.run("ip", "link", "set", "p0", "down")
        p.run("ip", "link", "set", "p0", "up")
        sender.send(p.ipv4(64))
        reds = greens = 0
        for _ in range(400):
            fits = (reds + 1) * LEN <= max(MIN, ROOM - 3 * greens * LEN)
            equal(sender.send(p.ipv4(LEN, p.RED)), int(fits),
                  f"red frames enqueued, with {reds} red and {greens} green ones queued")
            reds += fits
            if greens < 150:
                greens += sender.send(p.ipv4(LEN, p.GREEN))
    sender.close()


@case("invalid netlink attributes: red and auto in one message, a minimum without auto")
def attributes():
    def u32(name, value):
        return attr(COLOR[name], struct.pack("I", value))

    p.port("limit 100000 red 5000")
    link = Qdisc("p0")
    for words, error in ((u32("RED", 1000) + u32("RED_AUTO", 1), True),
                         (u32("RED_MIN", 1000), True),
                         (u32("RED_AUTO", 0) + u32("RED_MIN", 1000), True),
                         (u32("RED_AUTO", 1) + u32("COUNT", 1), True),
                         (u32("RED_AUTO", 1) + u32("RED_MIN", 100_001), True),
                         (u32("RED_AUTO", 1), False),
                         (u32("COUNT", 2), True),
                         (u32("RED_MIN", 100_000), False),
                         (u32("LIMIT", 99_999), True),
                         (u32("RED_AUTO", 0), False),
                         (u32("RED_MIN", 0), False)):
        before = link.config()
        equal(bool(link.change(attr(TCA_OPTIONS | NLA_F_NESTED, words))), error,
              f"the kernel refuses {words.hex()}")
        true(not error or link.config() == before,
             f"{words.hex()} leaves the configuration unchanged")
    true("red" not in p.options() and "red_auto" not in p.options(), "auto off: no threshold")
    link.close()


main()
