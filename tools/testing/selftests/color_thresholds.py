#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: the packets that thresholds and limit admit, exact to the packet.

	   frames                   1 byte/s: no frame leaves
	 ----------> [ color ] p0 ============ p1
"""
import collections
import re

from lab.codepoints import GREEN, RED
from lab.net import frames as p
from lab.net.trace import events, traced
from lab.tap import case, equal, main, true

STOPPED = "rate 8bit"       # no frame leaves, so that all queued ones can be counted


def start(options, **how):
    """A port whose link transmits one frame during the whole case; that frame is not queued."""
    p.port(f"{STOPPED} {options}", **how)
    sender = p.Sender()
    sender.send(p.ipv4(64))
    return sender


def admitted(options, frame, count):
    """Send `count` frames; returns the number that are enqueued, and the port's statistics."""
    sender = start(options)
    good = sender.send(frame, count)
    seen = p.shown()
    sender.close()
    return good, seen


@case("red frames are enqueued up to their threshold, then dropped with reason color")
def red_exact():
    good, seen = admitted("limit 2000000 red 270000", p.ipv4(1500, p.RED), 200)
    equal(good, 180, "frames of 1500 bytes in 270000")
    red = seen["colors"]["red"]
    equal(red["packets"], 180, "red packets queued")
    equal(red["bytes"], 270000, "red bytes queued")
    equal(red["backlog"], 270000, "red backlog")
    equal(red["peak_backlog"], 270000, "red peak")
    equal(red["drops"], {"color": 20, "pool": 0, "limit": 0}, "red drops")
    equal(seen["drops"], 20, "drops of the qdisc")
    equal(seen["backlog"], 270000, "backlog of the qdisc")


@case("red's threshold is exact to a byte")
def red_one_byte():
    equal(admitted("limit 2000000 red 269999", p.ipv4(1500, p.RED), 200)[0], 179,
          "frames in 269999 bytes")
    equal(admitted("limit 2000000 red 270001", p.ipv4(1500, p.RED), 200)[0], 180,
          "frames in 270001 bytes")


@case("green and yellow have thresholds of their own")
def green_yellow_exact():
    good, seen = admitted("limit 2000000 green 15000", p.ipv4(1000, p.GREEN), 20)
    equal(good, 15, "green frames")
    equal(seen["colors"]["green"]["drops"]["color"], 5, "green drops")
    good, seen = admitted("limit 2000000 yellow 7000", p.ipv4(1000, p.YELLOW), 20)
    equal(good, 7, "yellow frames")
    equal(seen["colors"]["yellow"]["drops"]["color"], 13, "yellow drops")


@case("the limit holds for every colour, with reason limit")
def limit_exact():
    for tos, color in ((p.RED, "red"), (p.YELLOW, "yellow"), (p.GREEN, "green")):
        good, seen = admitted("limit 10000", p.ipv4(1000, tos), 15)
        equal(good, 10, f"{color} frames in 10000 bytes")
        equal(seen["colors"][color]["drops"],
              {"color": 0, "pool": 0, "limit": 5}, f"{color} drops")
        equal(seen["queue"], {"backlog": 10000, "peak_backlog": 10000, "gso_drops": 0}, "queue")


@case("count color: green bytes do not count against red")
def count_color():
    sender = start("limit 2000000 red 10000")
    equal(sender.send(p.ipv4(1000, p.GREEN), 50), 50, "green frames")
    equal(sender.send(p.ipv4(1000, p.RED), 20), 10, "red frames")
    equal(sender.send(p.ipv4(1000, p.GREEN), 50), 50, "more green frames")
    sender.close()


@case("count queue: all bytes count against red")
def count_queue():
    sender = start("limit 2000000 red 10000 count queue")
    equal(sender.send(p.ipv4(1000, p.GREEN), 4), 4, "green frames")
    equal(sender.send(p.ipv4(1000, p.RED), 20), 6, "red frames")
    equal(sender.send(p.ipv4(1000, p.GREEN), 50), 50, "more green frames")
    equal(sender.send(p.ipv4(64, p.RED)), 0, "more red frames")
    equal(p.colors()["red"]["drops"]["color"], 15, "red drops")
    sender.close()


@case("the frame in transmission is not in the queue")
def line_not_counted():
    sender = start("limit 1000", mtu=986)
    seen = p.shown()
    equal((seen["qlen"], seen["queue"]["backlog"]), (0, 0), "queue behind one frame")
    equal(sender.send(p.ipv4(1000)), 1, "enqueued frames of the limit's length")
    equal(sender.send(p.ipv4(64)), 0, "frames enqueued behind it")
    sender.close()


@case("every TOS byte has the colour of its DSCP", version=(4, 6))
def every_tos(version):
    want = {c: 0 for c in p.COLORS}
    sender = start("limit 100000000")
    for tos in range(256):
        dscp = tos >> 2
        color = "red" if dscp in RED else "green" if dscp in GREEN else "yellow"
        sender.send(p.IP[version](100, tos))
        want[color] += 1
        seen = p.colors()[color]["packets"] if tos % 64 == 63 else None
        true(seen is None or seen == want[color] + (color == "yellow"),
             f"TOS {tos}: {seen} {color} packets, expected {want[color]}")
    want["yellow"] += 1                         # the frame in transmission
    equal({c: s["packets"] for c, s in p.colors().items()}, want, "packets by colour")
    sender.close()


@case("map changes only the colours of the DSCPs that it names")
def mapped():
    sender = start("limit 1000000 map 0 red map cs1 green map 63 green map af11 yellow")
    for dscp in (0, 8, 63, 10, 33, 1):
        sender.send(p.ipv4(100, dscp << 2))
    equal({c: s["packets"] for c, s in p.colors().items()},
          {"red": 2, "yellow": 2, "green": 3}, "packets by colour, with the one in transmission")
    sender.close()


@case("classify ecn: Non-ECT red, ECT and CE green, the rest yellow", version=(4, 6))
def classify_ecn(version):
    sender = start("limit 1000000 classify ecn")
    for tos in (0, 1, 2, 3, p.GREEN):
        sender.send(p.IP[version](100, tos))
    sender.send(p.arp())
    equal({c: s["packets"] for c, s in p.colors().items()},
          {"red": 3, "yellow": 1, "green": 3}, "packets by colour, with the one in transmission")
    sender.close()


@case("packets with one or two VLAN tags have the colour of their DSCP", version=(4, 6))
def vlan(version):
    sender = start("limit 1000000")
    before = p.colors()["red"]["packets"]
    for tags in ([(0x8100, 5)], [(0x88a8, 0x4001), (0x8100, 0x6007)]):
        sender.send(p.IP[version](200, p.RED, tags))
    equal(p.colors()["red"]["packets"] - before, 2, "red packets behind tags")
    sender.close()


@case("packets that are not IP are yellow: ARP, wrong versions, truncated headers")
def not_ip():
    sender = start("limit 1000000 map 0 red")
    count = p.colors()["yellow"]["packets"]
    red = p.ipv4(100, p.RED)
    frames = [
        p.arp(),
        p.ether(0x0800, b"\x65" + red[15:], 100),       # IPv4 with version 6
        p.ether(0x86dd, b"\x45" + red[15:], 100),       # IPv6 with version 4
        p.ether(0x0800, b"\x45\x20", 0),                # two bytes of a header
        p.ether(0x0800, b"\x45" + bytes(18), 0),        # 19 of 20
        p.ether(0x86dd, b"\x60" + bytes(38), 0),        # 39 of 40
        p.ether(0x88b5, red[14:], 100),                 # some other protocol
        p.ether(0x0800, b"", 0),                        # no header
        p.ether(0x0800, red[14:34], 0, [(0x8100, 1)] * 12),     # too many tags
    ]
    for frame in frames:
        sender.send(frame)
    seen = p.colors()
    equal(seen["yellow"]["packets"] - count, len(frames), "yellow packets")
    equal(seen["green"]["packets"], 0, "green packets")
    sender.close()


@case("without options the limit is that of a bfifo, and packets pass in order, without loss")
def defaults():
    p.port()
    equal(p.options()["limit"], 1000 * 1514, "limit")
    receiver, sender = p.Receiver(), p.Sender()
    for tos in range(256):
        sender.send(p.ipv4(100, tos))
    got = [frame for _, frame in receiver.frames(wait=0.01)]
    equal([frame[15] for frame in got], list(range(256)), "TOS bytes in order")
    sender.close()
    receiver.close()


@case("each check has a drop reason of its own, if the kernel has them")
def reasons():
    event, want = "qdisc/qdisc_drop", {"BAND_LIMIT": 1, "CONGESTED": 2, "OVERLIMIT": 3}
    if "qdisc_drop" not in events("qdisc"):
        event, want = "skb/kfree_skb", {"QDISC_DROP": 6}
    sender = start("limit 3000 red 1000 pool sw size 4000", mtu=986)
    with traced(event) as lines:
        sender.send(p.ipv4(1000, p.RED), 2)
        sender.send(p.ipv4(1000, p.GREEN), 3)       # one fits at alpha 1
        p.tc("qdisc change dev p0 root color pool none")
        sender.send(p.ipv4(1000, p.GREEN), 1 + 3)
    seen = re.findall(r"reason[=:] ?(\w+)", "\n".join(lines))
    equal({name: n for name, n in collections.Counter(seen).items() if name in want}, want,
          "drops by reason")
    sender.close()


@case("threshold, mark, limit and pool are exact, too, in a queue that is below its peak",
      bands=("", "bands 2"))
def below_the_peak(bands):
    sender = start(f"limit 1000000 {bands}")
    for tos in (p.RED, 0, p.GREEN):
        sender.send(p.ipv4(1000, tos), 100)
    p.tc("qdisc change dev p0 root color limit 20000 red 5000 ecn 10000")
    for _ in range(3):
        p.tc("qdisc change dev p0 root color rate none")
        p.settle()
        p.tc(f"qdisc change dev p0 root color {STOPPED}")
        sender.send(p.ipv4(64))
        marks = p.colors()["green"]["marks"]
        equal(sender.send(p.ipv4(1000, p.RED), 8), 5, "red frames, up to the threshold")
        equal(sender.send(p.ipv4(1000, p.GREEN | p.ECT0), 20), 15, "frames, up to the limit")
        equal(p.colors()["green"]["marks"] - marks, 10, "marks, above 10000 bytes")
    for options, most in (("ecn none red none", 20), ("pool sw size 30000", 15)):
        p.tc(f"qdisc change dev p0 root color rate none {options}")
        p.settle()
        p.tc(f"qdisc change dev p0 root color {STOPPED}")
        sender.send(p.ipv4(64))
        equal(sender.send(p.ipv4(1000), 25), most, f"frames with {options}")
    sender.close()


main()
