#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: PFC pauses the neighbour before the buffer is full, and the port obeys the neighbour's.

	 n0 ============ p0 -------> p1 ============ n1
	              [ color ]   [ color ]

Frames of 1000 bytes take 1 ms at 8 Mbit/s.  A quantum of a pause is 51.2 ns, the longest pause
3.4 ms: veth's speed is 10 Gbit/s, independent of the ports' rates.
"""
import struct
import subprocess
import tempfile
import time

from lab.net import frames as p
from lab.net import pfc
from lab.net.rtnl import (NLA_F_NESTED, NLM_F_CREATE, NLM_F_REPLACE, RTM_NEWQDISC, TCA_KIND,
                          TCA_OPTIONS, Qdisc, attr)
from lab.net.uapi import COLOR
from lab.tap import case, equal, main, timed, true, within

TCA_RATE = 5                    # linux/rtnetlink.h
LATE = 1000                     # ns, see color_rate.py
MS = 1000000
LONGEST = 65535 * 512 // 10     # ns of a pause
STOPPED = "rate 8bit limit 1m pause obey"
FIRST = "rate 8mbit limit 1m pause all delay 0us"
EVERY = dict.fromkeys(range(8), 0xffff)
# twice 2 us at 10 Gbit/s, three packets and the PFC frame
AWAY, HEADROOM = "delay 2us unit 1514", 5000 + 3 * 1514 + 60


def data(count, first=0, tos=0):
    """Numbered frames."""
    return [p.numbered(number, tos) for number in range(first, first + count)]


def fill(net, count, tos=0):
    """Queue count frames in p1, whose link is busy with one frame."""
    for one in data(count, tos=tos):
        net.send(one)


# --- sending -----------------------------------------------------------------

@case("a PFC frame, byte by byte")
def frame_bytes():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED) as net:
        fill(net, 11)
        got = [one for _, one in net.receivers[0].frames(wait=0.001)]
        equal(len(got), 1, "frames")
        want = (bytes.fromhex("0180c2000001") + pfc.mac("p0") + bytes.fromhex("8808 0101 00ff")
                + b"\xff" * 16).ljust(60, b"\0")
        equal(got[0].hex(), want.hex(), "bytes of the PFC frame")


@case("tshark decodes a PFC frame")
def tshark():
    words = "bands 3 prio 10 0"
    with pfc.switch(f"{FIRST} xoff 10000 {words}", f"{STOPPED} {words}") as net:
        fill(net, 11, 10 << 2)
        (_, one), = net.receivers[0].frames(wait=0.001)
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
                   + struct.pack("<IIII", 0, 0, len(one), len(one)) + one)
        file.flush()
        said = subprocess.run(["tshark", "-V", "-r", file.name], capture_output=True, text=True,
                              check=True).stdout
    for words in ("Class Based Flow Control", "Class Enable Vector: 0x0080, C7", "C6: 0\n",
                  "C7: 65535\n"):
        true(words in said, f"{words!r} in {said!r}")


@case("Xoff is not sent at the threshold, but one byte above it", count=(0, 1))
def xoff(count):
    with pfc.switch(f"{FIRST} xoff {10000 - count}", STOPPED) as net:
        fill(net, 10)
        received = net.received()
        equal([times for _, times in received], [EVERY] * count, f"PFC frames at {10000} bytes")
        equal(pfc.stats()["backlog"], 10000, "bytes charged")
        equal(pfc.stats()["xoff"], 10000 - count, "Xoff")


@timed("Xon is sent when the packet at its threshold leaves; the default is Xoff less two packets",
       words=("xon 5000", ""))
def xon(words):
    at = 5 if words else 6              # 10000 - 2 * 1514 = 6972
    with pfc.switch(f"{FIRST} xoff 10000 {words}", "rate 8mbit limit 1m pause obey") as net:
        for one in data(16):
            net.send(one)
        came = net.arrived(wait=0.1)
        received = net.received()
        equal([times for _, times in received[:-1]], [EVERY] * (len(received) - 1), "frames")
        equal(received[-1][1], dict.fromkeys(range(8), 0),
              "priorities and quanta of the last PFC frame")
        # A packet starts when it leaves the queue: when packet 15 - at does, `at` are queued.
        within(received[-1][0], came[15 - at][0], came[15 - at][0] + LATE,
               "time of the last PFC frame, ns")
        seen = pfc.stats()
        equal((seen["off"], seen["on"], seen["backlog"]), (len(received) - 1, 1, 0),
              "frames with Xoff, frames with Xon, bytes charged")
        within(seen["peak"], 10001, 15000, "peak of the charged bytes")


@timed("Xoff is repeated before the pause ends, while the bytes are above Xon",
       rate=("8mbit", "1gbit", "40gbit"))
def again(rate):
    # Half of the pause, at the greater of the device's speed and the rate.
    each = LONGEST // 2 if rate != "40gbit" else LONGEST // 8
    with pfc.switch(f"rate {rate} limit 1m pause all xoff 10000", STOPPED) as net:
        fill(net, 11)
        received = net.receivers[0].frames(6, 0.01)
        equal([pfc.times(one) for _, one in received], [EVERY] * 6, "frames")
        for (one, _), (other, _) in zip(received, received[1:]):
            within(other - one, each, each + LATE, "time between two PFC frames, ns")
        net.change("p1", "rate 1gbit")
        p.settle(0.1)
        equal(net.received()[-1][1], dict.fromkeys(range(8), 0),
              "last PFC frame after the queue has drained")
        p.settle(0.2)
        equal(net.received(), [], "PFC frames after that")


@case("each band has bytes and priority bits of its own")
def priorities():
    bands = "bands 3 prio 10 0 prio 20 1"
    with pfc.switch(f"{FIRST} xoff 10000 {bands}", f"{STOPPED} {bands}") as net:
        fill(net, 10)
        fill(net, 10, 20 << 2)
        fill(net, 10, 10 << 2)
        equal(net.received(), [], "PFC frames with all bands at Xoff")
        fill(net, 1, 20 << 2)
        equal([times for _, times in net.received()], [{6: 0xffff}],
              "PFC frames with band 1 above Xoff")
        fill(net, 1, 10 << 2)
        equal([times for _, times in net.received()], [{6: 0xffff, 7: 0xffff}],
              "PFC frames with band 0, too")
        fill(net, 1)
        equal([times for _, times in net.received()], [EVERY], "PFC frames with band 2, too")


@case("pause-map sets the priorities of a band; a band without one sends no PFC frames")
def mapped():
    words = "bands 2 prio 10 0 band-limit 0 100 " + " ".join(f"pause-map {i} none" for i in (0, 1, 2, 5, 6, 7)) \
        + " pause-map 3 1 pause-map 4 1"
    with pfc.switch(f"{FIRST} xoff 10000 {words}", f"{STOPPED} {words}") as net:
        fill(net, 20, 10 << 2)
        equal(net.received(), [], "PFC frames for band 0, which has no priority")
        fill(net, 11)
        equal([times for _, times in net.received()], [{3: 0xffff, 4: 0xffff}],
              "PFC frames for band 1")


@case("pause green charges green packets only")
def green():
    with pfc.switch("rate 8mbit limit 1m red 100k pause green delay 0us xoff 10000",
                    f"{STOPPED} red 100k") as net:
        fill(net, 30, p.RED)
        fill(net, 30)
        equal((net.received(), pfc.stats()["backlog"]), ([], 0),
              "PFC frames and bytes charged, of red and yellow packets")
        fill(net, 11, p.GREEN)
        equal(len(net.received()), 1, "PFC frames for green packets")
        equal(pfc.stats()["backlog"], 11000, "bytes")


@case("not charged: packets at ports without PFC, from devices that only obey, local packets")
def uncharged():
    with pfc.switch(f"{FIRST} xoff 10000", "rate 8bit limit 1m") as net:
        fill(net, 20)
        equal((net.received(), pfc.stats()["backlog"]), ([], 0),
              "PFC frames and bytes charged, p1 without PFC")
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED) as net:
        sender = p.Sender("p1")
        sender.send(p.ipv4(1000), 20)
        equal((net.received(), pfc.stats()["backlog"]), ([], 0),
              "PFC frames and bytes charged, packets of the switch itself")
        sender.close()
    with pfc.switch("rate 8mbit pause obey", STOPPED) as net:
        fill(net, 20)
        equal((net.received(), pfc.stats()["backlog"]), ([], 0),
              "PFC frames and bytes charged, p0 only obeys")


@case("default Xoff: the smallest room of any port, divided by the links with PFC, less the "
      "headroom")
def shares():
    def xoffs(want, what):
        equal([pfc.stats(dev)["xoff"] for dev in ("p0", "p1")], want, what)
    with pfc.switch(f"rate 1gbit limit 200000 pause all {AWAY}",
                    "rate 1gbit limit 1m pause obey") as net:
        xoffs([200000 - HEADROOM, 0], "Xoff of the only link")
        net.change("p1", f"limit 200000 pause all {AWAY}")
        xoffs([100000 - HEADROOM] * 2, "of two")
        equal(pfc.stats()["xon"], 100000 - HEADROOM - 2 * 1514, "Xon")
        net.change("p0", "limit 1m")
        xoffs([100000 - HEADROOM] * 2, "one may have more")
        net.change("p1", "limit 150000")
        xoffs([75000 - HEADROOM] * 2, "one may have less")
        for dev in ("p0", "p1"):
            net.change(dev, "pool sw size 120000")
        # One port may fill half of a pool: alpha is 1.
        xoffs([30000 - HEADROOM] * 2, "in a pool")
        net.change("p0", "size 160000")
        xoffs([40000 - HEADROOM] * 2, "after p0 has resized it")
        for dev in ("p0", "p1"):
            net.change(dev, "alpha 3")
        xoffs([60000 - HEADROOM] * 2, "with another alpha")
        net.change("p1", "bands 2 prio 10 0 band-limit 0 1000")
        # Now there are priorities 0 and 7, and 1000 packets of 60 bytes are the minimum.
        xoffs([30000 - HEADROOM] * 2, "with a limit of a band")
        net.change("p1", "band-limit 0 none green 100000 count port")
        xoffs([25000 - HEADROOM] * 2, "with a threshold of green packets")
        net.change("p1", "green none")
        p.run("ip", "link", "set", "p0", "mtu", "1000")
        more = 30000 - (HEADROOM - 500)
        equal(pfc.stats()["xoff"], more, "Xoff with another MTU")
        p.run("ip", "link", "set", "p0", "mtu", "1500")
        net.change("p1", "pause none")
        # p1 may fill 3 / 4 of the pool and of its last packet: its limit is not smaller.
        equal(pfc.stats()["xoff"], (160000 - 3 * 1514) // 4 * 3 // 4 - HEADROOM,
              "Xoff beside a port without PFC")
        net.change("p1", "limit 20000")
        equal(pfc.stats()["xoff"], 105000 - HEADROOM,
              "Xoff beside a port without PFC with a limit of 20 kB")
        net.change("p1", "pool none")
        equal(pfc.stats()["xoff"], 120000 - HEADROOM, "Xoff of the only port in the pool")
        net.change("p1", "pool sw")
        p.run("tc", "qdisc", "del", "dev", "p1", "root")
        equal(pfc.stats()["xoff"], 120000 - HEADROOM, "Xoff of the only port")


@case("the headroom covers the bytes of the faster end within its delays, in its largest packets")
def headroom():
    # A GSO packet of 64 KiB in segments of 536 bytes, each with headers of up to 114.
    gso = 65536 + 123 * 114
    for words, bytes_ in (("rate 1gbit unit 1514", 12500 + 3 * 1514 + 60),
                          ("rate 40gbit unit 1514", 50000 + 3 * 1514 + 60),
                          ("rate 40gbit unit 1514 slack 20us", 150000 + 3 * 1514 + 60),
                          ("rate 1gbit unit 1514 slack 20us catch-up 40us", 62500 + 3 * 1514 + 60),
                          ("rate 1gbit", 12500 + 2 * gso + 1514 + 60),
                          ("rate 1gbit unit 9000", 12500 + 2 * 9000 + 1514 + 60),
                          ("rate 1gbit overhead 24 unit 1514", 12500 + 2 * 1514 + 1538 + 60)):
        p.port(f"limit 1000000 pause all {words}")
        equal(pfc.stats()["xoff"], 1000000 - bytes_, words)


# options of two ports: Xoff follows from the port with the smallest room
LEAST = (
    (f"limit 300k pause all {AWAY}", f"limit 300k pause all {AWAY}"),
    (f"limit 1m pause all {AWAY}", f"limit 100k pause all {AWAY}"),
    (f"limit 1m pool sw size 300k pause all {AWAY}", "limit 1m pool sw pause obey"),
    (f"limit 300k bands 2 pause all {AWAY}", f"limit 300k bands 2 band-limit 1 1000 pause all {AWAY}"),
    (f"limit 300k pause all {AWAY}", f"limit 300k green 50000 pause all {AWAY}"),
)


def until_paused(net, kinds, most):
    """A neighbour that obeys sends packets of each (TOS byte, priority) round robin, up to
    `most` of each.  Returns the number of packets sent."""
    paused, sent = set(), 0
    for _ in range(most):
        for tos, priority in kinds:
            if priority in paused:
                continue
            net.senders[0].send(p.ipv4(1000, tos))
            sent += 1
            for _, times in net.received(0.0002):
                paused |= {prio for prio, time in times.items() if time}
    equal(paused >= {priority for _, priority in kinds}, True, "all priorities are paused")
    return sent


@timed("no packet is lost, with any port as the one with the smallest room", words=LEAST)
def least(words):
    with pfc.switch(f"rate 1gbit {words[0]}", f"rate 8bit {words[1]}") as net:
        p.settle(0.01)
        net.received()
        sent = until_paused(net, ((p.GREEN, 0),), 1500)
        true(sent < 300, f"paused after {sent} packets")
        # Data that still arrives.
        net.senders[0].send(p.ipv4(1000, p.GREEN), HEADROOM // 1000 - 1)
        equal(p.shown("p1")["drops"], 0, "drops")


@case("a port without PFC fills its share of the pool, and no packet that PFC protects is lost")
def full_pool():
    words = "limit 1m pool sw size 200000"
    with pfc.switch(f"rate 1gbit {words} pause all {AWAY}", f"rate 8bit {words} pause obey") as net:
        p.veth("n2", "p2")
        p.tc(f"qdisc add dev p2 root color rate 8bit {words}")
        p.settle(0.01)
        net.received()
        sender = p.Sender("p2")
        sender.send(p.ipv4(1000), 300)
        sender.close()
        true(p.shown("p2")["drops"] > 100, "drops of p2, which is full: above 100")
        sent = until_paused(net, ((0, 0),), 300)
        # Data that still arrives.
        net.senders[0].send(p.ipv4(1000), HEADROOM // 1000 - 1)
        equal((sent < 100, p.shown("p1")["drops"]), (True, 0),
              f"paused after fewer than 100 packets, drops of p1; paused after {sent}")


@case("a port that drains a large pool keeps none of the room that another's Xoff promises")
def no_reserve():
    with pfc.switch(f"rate 1gbit limit 4m pool sw size 2m alpha 1024 pause all {AWAY}",
                    "rate 8bit limit 4m pool sw alpha 1024 pause obey") as net:
        p.veth("n2", "p2")
        p.tc("qdisc add dev p2 root color rate 8mbit limit 4m pool sw alpha 1024 pause obey")
        p.tc("filter add dev p0 parent ffff: pref 1 protocol ip u32 match ip tos 0x28 0xff"
             " action mirred egress redirect dev p2")
        p.settle(0.01)
        net.received()
        net.senders[0].send(p.ipv4(1000, p.GREEN), 26)
        p.settle(0.0083)
        held = p.shown("p2")["backlog"]
        # Up to Xoff, and data that still arrives.
        net.senders[0].send(p.ipv4(1000), (pfc.stats()["xoff"] - held + HEADROOM) // 1000)
        equal(p.shown("p1")["drops"], 0, "drops of p1")
        true(net.received(), "n0 is paused")


@case("a new or changed port is refused if another port's Xoff would exceed its room")
def promised():
    with pfc.switch(f"rate 1gbit limit 300k pause all {AWAY}",
                    f"rate 1gbit limit 300k pool sw size 300k alpha 100 pause all {AWAY}") as net:
        before = p.options("p1")
        p.veth("n2", "p2")
        for dev, words in (("p1", "limit 10k"), ("p1", "size 20k"), ("p1", "alpha 0.01"),
                           ("p1", "green 5k"), ("p1", "bands 2 band-limit 0 50"),
                           ("p1", "bands 2 pause-map 7 none"), ("p1", "xoff 290k"),
                           ("p1", "delay 200us"), ("p1", "unit 100k"), ("p1", "slack 1ms"),
                           ("p1", "rate 1tbit"), ("p0", "pause green"),
                           ("p1", "red 100k pause green")):
            done = p.tc(f"qdisc change dev {dev} root color {words}", check=False)
            true(done.returncode and "pause" in done.stderr, f"{dev}: {words}: {done.stderr!r}")
        done = p.tc("qdisc add dev p2 root color limit 10k pause obey", check=False)
        true(done.returncode and "smallest limit" in done.stderr, f"a third port: {done.stderr!r}")
        # It has no PFC, but shares its pool with a port that has.
        p.tc("qdisc add dev p2 root color rate 1gbit pool sw alpha 0.25")
        for mtu in (1500, 9000):
            p.run("ip", "link", "set", "p2", "mtu", str(mtu))
            equal(pfc.stats()["xoff"],
                  (307200 - (mtu + 14) // 4) * 4 // 5 * 100 // 101 // 2 - HEADROOM,
                  f"Xoff beside a port without PFC, MTU {mtu}")
        for words in ("alpha 100", "alpha 20"):
            done = p.tc(f"qdisc change dev p2 root color {words}", check=False)
            true(done.returncode and "without pause" in done.stderr, f"{words}: {done.stderr!r}")
        done = p.tc("qdisc change dev p2 root color size 20k", check=False)
        true(done.returncode and "pool" in done.stderr, f"a smaller pool: {done.stderr!r}")
        p.tc("qdisc change dev p2 root color pool none")
        equal(p.options("p1"), before, "options of p1")
        equal(pfc.stats()["xoff"], 307200 * 100 // 101 // 2 - HEADROOM, "Xoff")
        net.change("p1", "bands 2 band-limit 0 50 pause-map 7 none")


@case("a bridge between the ports: packets are charged to their link, PFC frames are received")
def bridged():
    with pfc.switch(f"{FIRST} xoff 10000", "rate 1mbit limit 1m pause obey storm never",
                    bridge=True) as net:
        net.receivers[0].frames(wait=0.1)
        with net.held(EVERY):
            p.settle(0.01)
            net.senders[0].send(p.ipv4(1000), 11)
            equal(net.received()[0][1], EVERY, "priorities and quanta of the PFC frame")
            true(pfc.stats("p1")["heard"] >= 5, "PFC frames that p1 has received: at least 5")
            equal(net.arrived(wait=0.01), [], "data while p1 is paused")
        net.pause(dict.fromkeys(range(8), 0))
        equal(len(net.arrived(wait=0.2)), 11, "frames after the pause")


# --- receiving ---------------------------------------------------------------

@timed("a paused port sends no frame for exactly the requested time, then continues at its rate",
       rate=("8mbit", "8mbit bands 2", "8mbit pool sw size 1m", "8mbit bands 2 band-rate 1 7mbit"))
def obeys(rate):
    each = MS if "band-rate" not in rate else 8 * MS // 7
    with pfc.switch("limit 1m", f"rate {rate} limit 1m pause obey") as net:
        p.settle(0.01)
        for one in data(10):
            net.senders[0].send(one)
        net.pause(dict.fromkeys(range(8), 40000))
        came = net.arrived(wait=0.1)
        equal([number for _, number in came], list(range(10)), "numbers")
        within(came[1][0] - came[0][0], 2048000, 2048000 + LATE, "length of the pause, ns")
        for i in range(1, 9):
            within(came[i + 1][0] - came[i][0], each - LATE, each + LATE,
                   f"time from the frame before to frame {i + 1}, ns")
        paused = pfc.stats("p1")["paused"]
        equal(paused, dict.fromkeys(map(str, range(8)), 2048000), "paused time by priority, ns")


@timed("a port without a rate obeys a pause, too", words=("", "bands 2"))
def no_rate(words):
    with pfc.switch("limit 1m", f"limit 1m pause obey {words}") as net:
        net.pause(dict.fromkeys(range(8), 0xffff))
        for one in data(10):
            net.senders[0].send(one)
        came = net.arrived(wait=0.1)
        equal([number for _, number in came], list(range(10)), "numbers")
        within(came[9][0] - came[0][0], 0, LATE, "time of all frames after the pause, ns")
        within(pfc.stats("p1")["paused"]["7"], 3355392, 3355392, "paused time, ns")


@timed("an Xon (zero quanta) ends the pause at once, without a burst", words=("", "bands 2"))
def zero(words):
    with pfc.switch("limit 1m", f"rate 8mbit limit 1m pause obey {words}") as net:
        p.settle(0.01)
        for one in data(10):
            net.senders[0].send(one)
        net.pause(EVERY)
        p.settle(0.0025)
        net.pause(dict.fromkeys(range(8), 0))
        came = net.arrived(wait=0.1)
        equal([number for _, number in came], list(range(10)), "numbers")
        within(came[1][0] - came[0][0], 2500000, 2600000, "length of the pause, ns")
        for i in range(1, 9):
            within(came[i + 1][0] - came[i][0], MS - LATE, MS + LATE,
                   f"time from the frame before to frame {i + 1}, ns")


@timed("a pause of a priority stops only its band, and the other bands have the link")
def bands():
    words = "bands 3 prio 10 0 prio 20 1"
    for priority, tos, others in ((7, 10 << 2, (20 << 2, 0)), (6, 20 << 2, (10 << 2, 0)),
                                  (0, 0, (10 << 2, 20 << 2)), (5, 0, (10 << 2, 20 << 2))):
        for rate in ("rate 80mbit", ""):
            with pfc.switch("limit 1m", f"{rate} limit 1m pause obey {words}") as net:
                net.pause({priority: 0xffff})
                for ds in (tos, *others):
                    for one in data(3, tos=ds):
                        net.senders[0].send(one)
                got = [(when, one[15]) for when, one in net.receivers[1].frames(9, 1)]
                equal([ds for _, ds in got], [others[0]] * 3 + [others[1]] * 3 + [tos] * 3,
                      f"bands, priority {priority} paused, {rate}")


@timed("a second pause replaces the rest of the first: its time counts from its arrival")
def extended():
    for first, then, ns in ((40000, 40000, 3048000), (0xffff, 10000, 1512000)):
        with pfc.switch("limit 1m", "rate 8mbit limit 1m pause obey") as net:
            p.settle(0.01)
            for one in data(2):
                net.senders[0].send(one)
            net.pause({0: first})
            p.settle(0.001)
            net.pause({0: then})
            came = net.arrived(wait=0.2)
            within(came[1][0] - came[0][0], ns, ns + 100000, "length of the pause, ns")
            within(pfc.stats("p1")["paused"]["0"], ns, ns + 100000,
                   "paused time that is counted, ns")


def keep(net, ms, between=()):
    """n1 pauses p1 for ms milliseconds, every 3 ms, and sends `between` before each pause."""
    for _ in range(ms // 3):
        for times in between:
            net.pause(times)
        net.pause({0: 0xffff})
        p.settle(0.003)


@timed("storm: continuous pauses are ignored until the neighbour has ended one",
       between=((), ({0: 0},)))
def storm(between):
    with pfc.switch("limit 1m", "rate 8mbit limit 1m pause obey storm 100ms") as net:
        p.settle(0.01)
        for one in data(300):
            net.senders[0].send(one)
        # An Xon in between does not end the storm: the next pause begins at once.
        keep(net, 240, between)
        came = net.arrived(wait=0.05)
        equal(len(came), 300, "frames that were sent")
        seen = pfc.stats("p1")
        equal(seen["storms"], 1, "storms")
        within(seen["paused"]["0"], 99 * MS, 101 * MS, "paused time, ns")
        # The pauses have ended, so the next one is obeyed.
        for one in data(2):
            net.senders[0].send(one)
        net.pause({0: 40000})
        came = net.arrived(wait=0.2)
        within(came[1][0] - came[0][0], 2048000, 2048000 + LATE,
               "length of the pause after the storm, ns")


@timed("pauses with gaps between them are not a storm")
def shared():
    with pfc.switch("limit 1m", "rate 80mbit limit 1m pause obey storm 20ms") as net:
        p.settle(0.01)
        for one in data(300):
            net.senders[0].send(one)
        for _ in range(60):             # 3 of 3.2 ms
            net.pause(EVERY)
            p.settle(0.003)
            net.pause(dict.fromkeys(range(8), 0))
            p.settle(0.0002)
        seen = pfc.stats("p1")
        equal(seen["storms"], 0, "storms")
        within(seen["paused"]["0"], 180 * MS, 185 * MS, "paused time, ns")


@timed("storm: a single pause above the limit is cut and counted; \"storm never\" does neither")
def cut():
    for words, ns, storms in (("storm 1ms", MS, 1), ("storm never", LONGEST, 0)):
        with pfc.switch("limit 1m", f"rate 80mbit limit 1m pause obey {words}") as net:
            p.settle(0.01)
            for one in data(2):
                net.senders[0].send(one)
            net.pause(EVERY)
            came = net.arrived(wait=1)
            within(came[1][0] - came[0][0], ns, ns + LATE, f"{words}: length of the pause, ns")
            equal(pfc.stats("p1")["storms"], 8 * storms, "storms, of all priorities")
    with pfc.switch("limit 1m", "rate 80mbit limit 1m pause obey storm 20ms") as net:
        keep(net, 30)
        equal(pfc.stats("p1")["storms"], 1, "storms")
        # An Xon alone does not end a storm.
        net.pause({0: 0})
        for one in data(2):
            net.senders[0].send(one)
        net.pause({0: 0xffff})
        came = net.arrived(wait=0.05)
        within(came[1][0] - came[0][0], 0, MS // 10 + LATE,
               "time between two frames in a storm, ns")


@case("frames that are not PFC frames for this port have no effect")
def others():
    good = pfc.frame(EVERY)
    bad = {
        "another address": b"\2" + good[1:],
        "802.3x": good[:14] + struct.pack("!HH", 1, 0xffff) + bytes(42),
        "short": good[:20],
        "an opcode that is not ours": good[:14] + b"\1\2" + good[16:],
        "another type": good[:12] + b"\x88\x09" + good[14:],
        "in a VLAN": good[:12] + b"\x81\x00\0\7" + good[12:],
        "no priorities": pfc.frame({}),
    }
    with pfc.switch("limit 1m", "rate 8mbit limit 1m pause obey") as net:
        for words, one in bad.items():
            net.senders[1].send(one)
            p.settle(0.001)
            seen = pfc.stats("p1")
            equal((seen["paused"], seen["heard"]), ({}, int(words == "no priorities")), words)
        # Frames that the switch itself sends are not received ones.
        own = p.Sender("p1")
        own.send(good)
        own.close()
        p.settle(0.001)
        equal(pfc.stats("p1")["heard"], 1, "PFC frames received")
        net.senders[0].send(p.numbered(7), 3)
        equal(len(net.arrived(wait=0.1)), 3, "frames")


@timed("the port obeys below prio, tbf and mq, too; a parent dequeues the packet that it peeked at")
def parents():
    for parent in ("prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                   "tbf rate 50mbit burst 2k limit 1m", "mq"):
        for words in ("", "rate 20mbit", "bands 2", "rate 20mbit bands 2"):
            with pfc.switch("limit 1m", "") as net:
                p.tc("qdisc del dev p1 root")
                if parent == "mq":
                    p.run("ip", "link", "del", "p1")
                    p.veth("n1", "p1", "numtxqueues", "2", "numrxqueues", "2")
                    net.senders[1].close()
                    net.receivers[1].close()
                    net.senders[1], net.receivers[1] = p.Sender("n1"), p.Receiver("n1")
                    p.tc("filter del dev p0 parent ffff:")
                    p.tc("filter add dev p0 parent ffff: matchall"
                         " action mirred egress redirect dev p1")
                p.tc(f"qdisc add dev p1 root handle 9: {parent}")
                for classid in ("9:1", "9:2")[:1 + (parent == "mq")]:
                    p.tc(f"qdisc add dev p1 parent {classid} color limit 1m pause obey {words}")
                p.settle(0.01)
                for one in data(5):
                    net.senders[0].send(one)
                net.pause(EVERY)
                for one in data(5, 5):
                    net.senders[0].send(one)
                came = net.arrived(wait=0.2)
                equal([number for _, number in came], list(range(10)), f"{parent}, {words}")
                gap = max(b - a for (a, _), (b, _) in zip(came, came[1:]))
                within(gap, LONGEST * 0.8, LONGEST + 2 * MS, f"longest gap below {parent}, {words}")


# --- removal and change --------------------------------------------------------

@case("packets that leave or are removed are no longer charged",
      how=("down", "none", "del", "drain", "p0", "bands"))
def uncharges(how):
    words = "bands 2 prio 10 0" if how == "bands" else ""
    with pfc.switch(f"{FIRST} xoff 10000 {words}", f"{STOPPED} {words}") as net:
        fill(net, 15)
        fill(net, 15, p.GREEN)
        equal(pfc.stats()["backlog"], 30000, "bytes")
        net.received()
        if how in ("down", "bands"):
            p.run("ip", "link", "set", "p1", "down")
        elif how == "none":
            net.change("p1", "pause none")
        elif how == "del":
            p.tc("qdisc del dev p1 root")
        elif how == "drain":
            net.change("p1", "rate 10gbit")
            p.settle(0.1)
        else:
            # The link is removed with packets charged to it, and the neighbour may continue.
            p.tc("qdisc del dev p0 root")
            # On a slow machine Xoff may have been repeated before.
            equal([times for _, times in net.received()][-1:], [dict.fromkeys(range(8), 0)],
                  "last PFC frame")
            p.tc(f"qdisc add dev p0 root color {FIRST} xoff 10000")
            equal(pfc.stats()["backlog"], 0, "bytes charged to the new link")
            net.change("p1", "rate 10gbit")
            p.settle(0.1)
        equal(pfc.stats()["backlog"], 0, "bytes charged at the end")
        if how != "p0":
            equal([times for _, times in net.received()][-1:],
                  [dict.fromkeys(range(8), 0)], "last PFC frame")


@timed("no packet is lost with several bands, several links and all defaults", links=(1, 2))
def lossless(links):
    words = f"limit 100000 bands 3 prio 10 0 prio 20 1 pause all {AWAY}"
    with pfc.switch(f"rate 1gbit {words}",
                    f"rate 8bit {words if links == 2 else words.replace('all', 'obey')}") as net:
        p.settle(0.01)
        net.received()
        sent = until_paused(net, ((10 << 2, 7), (20 << 2, 6), (0, 0)), 90)
        seen = p.shown("p1")
        equal((seen["drops"], seen["qlen"] + 1 >= sent), (0, True), "drops; all packets are queued")


@timed("pause green: green packets have room beside the red ones below their threshold",
       words=("red 30000", "red auto", "red 20000 yellow 20000 count port"))
def green_room(words):
    words = f"limit 200000 {words} pause"
    with pfc.switch(f"rate 1gbit {words} green {AWAY}", f"rate 8bit {words} obey") as net:
        net.senders[0].send(p.ipv4(1000, p.RED), 200)
        net.received()
        until_paused(net, ((p.GREEN, 0),), 250)
        drops = p.colors("p1")["green"]["drops"]
        equal(drops, {"color": 0, "pool": 0, "limit": 0}, "green drops")


@case("a replacement that fails leaves the link unchanged")
def failed():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED):
        options = (attr(COLOR.RATE64, struct.pack("Q", 125000))
                   + attr(COLOR.LIMIT, struct.pack("I", 1000000))
                   + attr(COLOR.PAUSE, struct.pack("I", 2))
                   + attr(COLOR.PAUSE_XOFF, struct.pack("I", 200000)))
        # An invalid estimator: the kernel checks it after it has created the port.
        error = Qdisc("p0").request(
            RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, attr(TCA_KIND, b"color\0")
            + attr(TCA_OPTIONS | NLA_F_NESTED, options)
            + attr(TCA_RATE, struct.pack("bB", 9, 1)), 0x20000)
        true(error, "the replacement is refused")
        equal(pfc.stats()["xoff"], 10000, "Xoff")


@case("one of two ports of a device is removed: the link has the options of the other")
def second():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED):
        p.tc("qdisc del dev p0 root")
        p.tc("qdisc add dev p0 root handle 9: prio")
        p.tc("qdisc add dev p0 parent 9:1 handle 1: color rate 1mbit limit 1m pause obey")
        p.tc(f"qdisc add dev p0 parent 9:2 handle 2: color {FIRST} xoff 10000")
        p.tc("qdisc del dev p0 parent 9:2 handle 2:")
        equal(pfc.stats()["xoff"], 0, "Xoff of a device whose only port obeys")


@case("another pause-map while the neighbour is paused: all paused priorities get an Xon")
def regrouped():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED) as net:
        fill(net, 11)
        received = [times for _, times in net.received()]
        net.change("p0", "pause-map 3 none")
        p.tc("qdisc del dev p1 root")
        p.settle(0.1)
        state = {}
        for times in received + [times for _, times in net.received()]:
            state.update(times)
        equal(sorted(state), list(range(8)), "priorities")
        equal({prio: time for prio, time in state.items() if time}, {},
              "priorities that stay paused")


@case("a pause-map that no longer pauses a queue: it sends at once")
def unmapped():
    with pfc.switch("rate 1mbit limit 1m pause obey",
                    "rate 1mbit limit 1m pause obey storm never") as net:
        with net.held(EVERY):
            p.settle(0.01)
            net.senders[0].send(p.ipv4(1000), 3)
            equal(net.arrived(wait=0.05), [], "frames while paused")
            net.change("p1", " ".join(f"pause-map {prio} none" for prio in range(8)))
            equal(len(net.arrived(wait=0.5)), 3, "frames after the change")


@case("pause on and off with packets in the queue: no loss, and earlier packets are not charged")
def live():
    with pfc.switch(f"{FIRST} xoff 10000", "rate 8bit limit 1m") as net:
        fill(net, 20)
        net.change("p1", "pause obey")
        equal(pfc.stats()["backlog"], 0, "bytes charged, of packets queued before pause obey")
        fill(net, 3)
        equal(pfc.stats()["backlog"], 3000, "bytes charged, with pause obey")
        net.change("p1", "pause none")
        equal(pfc.stats()["backlog"], 0, "bytes charged, with pause none")
        net.change("p1", "pause all")
        fill(net, 3)
        net.change("p1", "rate 1gbit")
        equal(len(net.arrived(wait=0.1)), 26, "frames")
        equal(pfc.stats()["backlog"], 0, "bytes charged at the end")


@case("another Xoff acts at once, on queued packets")
def moved():
    with pfc.switch(f"{FIRST} xoff 100000", STOPPED) as net:
        fill(net, 30)
        equal(net.received(), [], "frames")
        net.change("p0", "xoff 20000")
        equal([times for _, times in net.received()], [EVERY],
              "PFC frames with Xoff below the queue")
        net.change("p0", "xoff 100000")
        equal([times for _, times in net.received()], [dict.fromkeys(range(8), 0)],
              "PFC frames with Xoff above the queue")
        net.change("p0", "xoff 20000")
        net.received()
        net.change("p0", "pause obey")
        equal([times for _, times in net.received()], [dict.fromkeys(range(8), 0)],
              "PFC frames with pause obey")


@case("the link of a paused neighbour goes down and up: an Xoff at once")
def flap():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED) as net:
        fill(net, 11)
        late = []
        for number in range(8):
            p.run("ip", "link", "set", "n0", "down")
            p.settle(10e-3 + number * 250e-6)
            p.run("ip", "link", "set", "n0", "up")
            up = time.time_ns()
            received = p.Receiver("n0")
            p.settle(5e-3)
            late += [when - up for when, one in received.frames(wait=0.001)
                     if pfc.times(one) == EVERY][:1]
            received.close()
        equal(len(late), 8, "links with an Xoff")
        within(max(late), -1e6, 200e3, "ns from the link's begin to Xoff")


@case("a paused port's link goes down and up: the pause has ended", dev=("n1", "p1"))
def new_neighbour(dev):
    with pfc.switch("limit 1m", "rate 8mbit limit 1m pause obey storm never") as net:
        net.pause(EVERY)
        p.run("ip", "link", "set", dev, "down")
        p.settle(0.1e-3)
        p.run("ip", "link", "set", dev, "up")
        p.settle(10e-3)
        paused = pfc.stats("p1")["paused"]
        equal(len(paused), 8, f"paused priorities: {paused}")
        within(max(paused.values()), 0, LONGEST / 2, "ns of the pause")


@case("a paused port: pause none, device down, replaced port, new device",
      how=("none", "down", "replace", "del"))
def paused(how):
    with (pfc.switch("limit 1m", "rate 8mbit limit 1m pause obey storm never") as net,
          net.held(EVERY)):
        fill(net, 1)
        for one in data(5, 1):
            net.senders[0].send(one)
        p.settle(0.05)
        within(p.shown("p1")["qlen"], 5, 6, "packets wait")
        if how == "none":
            net.change("p1", "pause none")
            equal([number for _, number in net.arrived(wait=0.1)][-5:], list(range(1, 6)), "numbers")
        elif how == "down":
            p.run("ip", "link", "set", "p1", "down")
            equal(p.shown("p1")["qlen"], 0, "packets")
        elif how == "replace":
            p.tc("qdisc replace dev p1 root handle 2: color rate 8mbit pause obey storm never")
            net.send(p.numbered(9))
            # The new port has the same link, so it is paused, too.
            equal(p.shown("p1")["qlen"], 1, "packets")
        else:
            p.run("ip", "link", "del", "p1")
            p.veth("n1", "p1")
            p.tc("qdisc add dev p1 root color rate 8mbit pause obey")
            equal(pfc.stats("p1")["paused"], {}, "paused time of the new device")


@case("a namespace is removed while ports are paused and packets are charged")
def namespace():
    def run():
        with pfc.switch(f"{FIRST} xoff 10000", "rate 8mbit limit 1m pause all xoff 10000") as net:
            net.pause(EVERY)
            while True:
                net.send(p.ipv4(1000), 10)
                net.pause({3: 100})
    for _ in range(5):
        pid = p.in_background(run)
        p.settle(0.3)
        p.kill(pid)
    p.fresh_namespace()
    p.unused("sch_color")


@case("pause is refused at devices that cannot receive PFC frames", kind=(
    "lo", "ifb", "dummy", "bridge", "ipvlan", "vxlan"))
def refused(kind):
    p.insmod()
    p.fresh_namespace()
    p.veth("n0", "p0")
    made = {"lo": "link set lo up", "ipvlan": "link add link p0 name d0 type ipvlan mode l2",
            "vxlan": "link add d0 type vxlan id 5 remote 10.0.0.2 dstport 4789"}
    p.run("ip", *made.get(kind, f"link add d0 type {kind}").split())
    dev = "lo" if kind == "lo" else "d0"
    done = p.tc(f"qdisc add dev {dev} root color rate 1gbit pause obey", check=False)
    true(done.returncode and "The device receives no pause frames" in done.stderr,
         f"{kind}: {done.stderr!r}")
    p.tc(f"qdisc add dev {dev} root color rate 1gbit")
    done = p.tc(f"qdisc change dev {dev} root color pause all", check=False)
    true(done.returncode, f"{kind}: refused by change")


# words of tc -> a word of the message
BAD = [
    ("pause", "argument"), ("pause on", "not one of none obey all green"),
    ("pause all pause obey", "twice"), ("xoff 10k", "need pause"), ("delay 1us", "need pause"),
    ("storm never", "need pause"), ("pause none xon 1k", "need pause"),
    ("pause-map 0 0", "need pause"), ("pause all xoff", "argument"), ("pause all xoff 0", "xoff"),
    ("pause all xoff -1", "xoff"), ("pause all xoff 2g", "xoff"), ("pause all xon 0", "xon"),
    ("pause all xoff 10k xon 11k", "Xon is above Xoff"), ("pause all delay 11ms", "delay"),
    ("pause all delay -1us", "delay"), ("pause all storm 5s", "storm"),
    ("pause all storm 0us", "storm"), ("pause all pause-map 8 0", "0 ... 7"),
    ("pause all pause-map 0", "argument"), ("pause all pause-map 0 1", "does not exist"),
    ("pause all bands 2 pause-map 7 2", "does not exist"),
    ("pause all pause-map 0 0 pause-map 0 none", "two bands"),
    ("pause all xoff 1513000", "smallest limit"), ("pause all limit 4k", "smallest limit"),
    ("pause all xoff 10k pool x size 12k", "the pool"),
    ("pause green", "needs a threshold of red"), ("red 2k pause green pool x size 5k", "the pool"),
    ("unit 9000", "need pause"), ("pause all unit", "argument"), ("pause all unit 59", "unit"),
    ("pause all unit 2m", "unit"), ("pause all unit 800k", "smallest limit"),
    ("pause all bands 2 pause-map 7 none", "needs a band-limit"),
    ("pause all bands 2 band-limit 0 50", "see pause-map"),
    ("pause all green 10k", "a threshold of green"),
]

SET = [
    ("rate 1gbit pause obey", {}),
    ("rate 1gbit pause all", {"mode": "all"}),
    ("rate 1gbit red 10k pause green xoff 10k", {"mode": "green", "xoff": 10240}),
    ("pause all xoff 10001 xon 9999 delay 1us storm 1s",
     {"mode": "all", "xoff": 10001, "xon": 9999, "delay": 1000, "storm": 10**9}),
    ("pause all xoff auto xon auto delay 0us storm never", {"mode": "all", "delay": 0, "storm": None}),
    ("pause obey bands 2 pause-map 7 1 pause-map 0 none", {"map": {"0": "none", "7": 1}}),
    ("pause obey bands 16 pause-map 5 15", {"map": {"5": 15}}),
    ("pause all unit 9000b", {"mode": "all", "unit": 9000}),
    ("pause all unit auto", {"mode": "all"}),
]
DEFAULTS = {"mode": "obey", "delay": 5000, "storm": 200 * MS, "map": {}}


@case("options are shown as they are set, and make an equal port")
def options():
    for words, change in SET:
        p.port(words)
        want = {key: value for key, value in {**DEFAULTS, **change}.items() if value is not None}
        equal(p.options()["pause"], want, f"options of \"{words}\"")
        p.veth("q0", "q1")
        shown = p.tc("qdisc show dev p0").stdout.split("refcnt ")[1].split(maxsplit=1)[1]
        p.tc(f"qdisc add dev q0 root color {shown}")
        equal(p.options("q0"), p.options("p0"), f"options of {shown}")
    p.tc("qdisc change dev p0 root color pause none")
    true("pause" not in p.options(), "pause none is not shown")


@case("bad input is refused with one line of text and a status, has no effect, leaves no qdisc")
def bad():
    p.port("rate 1gbit")
    before = p.options()
    for words, expect in BAD:
        done = p.tc(f"qdisc change dev p0 root color {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
        equal(len(done.stderr.strip().splitlines()), 1, f"lines of text for \"{words}\"")
        equal(p.options(), before, f"options after \"{words}\"")
    p.tc("qdisc del dev p0 root")
    for words, expect in BAD:
        true(p.tc(f"qdisc add dev p0 root color {words}", check=False).returncode, words)
    true("color" not in p.tc("qdisc show dev p0").stdout, "no qdisc")
    # A refused change leaves a port with PFC unchanged.
    p.tc("qdisc add dev p0 root color rate 1gbit limit 100k pause all xoff 50k unit 1514")
    before = p.options()
    for words in ("limit 51k", "xon 51k", "pause green pool x", "bands 2 pause-map 0 2"):
        true(p.tc(f"qdisc change dev p0 root color {words}", check=False).returncode, words)
        equal(p.options(), before, f"options after \"{words}\"")


@case("another number of bands restores the default pause-map")
def renumbered():
    p.port("pause obey bands 2 pause-map 7 1")
    p.tc("qdisc change dev p0 root color bands 3")
    equal(p.options()["pause"]["map"], {}, "map")


@case("statistics of pause in text, and a notification of 16 bands")
def statistics():
    with pfc.switch(f"{FIRST} xoff 10000", STOPPED) as net:
        fill(net, 11)
        net.pause({7: 1}, 0)            # not to be forwarded
        p.settle(0.01)
        text = p.tc("-s qdisc show dev p0").stdout
        for words in ("pause  sent off ", " on 0, unsent 0, heard 1, storms 0",
                      "backlog 11000 peak 11000 bytes, xoff 10000 xon 6972",
                      "priority 7 paused for 51 ns"):
            true(words in text, f"{words!r} in {text!r}")
    p.port("bands 16 rate 1gbit pause obey")
    with p.notified("qdisc color 6:", "deleted qdisc color 6:", "qdisc color 7:"):
        words = " ".join(f"band-rate {n} {n + 1}mbit band-limit {n} 9 band-yield {n} 0.5"
                         for n in range(16))
        for handle in (6, 7):
            p.tc(f"qdisc replace dev p0 root handle {handle}: color rate 1gbit bands 16"
                 f" pool sw size 1m ecn 1k red 2k {words} pause obey xoff 10k xon 1k"
                 " unit 9k")


main()
