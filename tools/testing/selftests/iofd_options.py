#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: tc shows the options that were set, and bad options are refused.

	 tc ---> [ iofd ] p0 ============ p1
	                  d1 ============ e1, and so on
"""
import copy
import re
import struct

from lab.codepoints import SPENT
from lab.net import iofd as i
from lab.net import frames as p
from lab.net.rtnl import NLA_F_NESTED, TCA_OPTIONS, Qdisc, attr
from lab.net.uapi import IOFD, IOFD_PORT
from lab.tap import case, equal, main, true

VIA = [{"dev": "d1", "via": "10.9.1.2"}]
DEFAULTS = {"threshold": 15360, "entries": 8, "timeout": 100000000, "deflect": VIA}
DEFLECT = i.deflect(1)

# words of tc -> the options that tc shows then, where they differ from the defaults
SET = [
    (DEFLECT, {}),
    (f"threshold 15k {DEFLECT}", {}),
    (f"threshold 1 {DEFLECT}", {"threshold": 1}),
    (f"threshold 2147483647 {DEFLECT}", {"threshold": 2147483647}),
    (f"entries 1 {DEFLECT}", {"entries": 1}),
    (f"{DEFLECT} entries 4096", {"entries": 4096}),
    (f"timeout 1us {DEFLECT}", {"timeout": 1000}),
    (f"timeout 1500ns {DEFLECT}", {"timeout": 1500}),
    (f"timeout 2.5ms {DEFLECT}", {"timeout": 2500000}),
    (f"timeout 3600s {DEFLECT}", {"timeout": 3600000000000}),
    (f"seed 0 {DEFLECT}", {"seed": 0}),
    (f"seed 4294967295 {DEFLECT}", {"seed": 4294967295}),
    ("deflect dev d1 via fd00::2", {"deflect": [{"dev": "d1", "via": "fd00::2"}]}),
    ("deflect dev d1 via fe80::1 deflect dev d2 via 192.168.0.1",
     {"deflect": [{"dev": "d1", "via": "fe80::1"}, {"dev": "d2", "via": "192.168.0.1"}]}),
    (" ".join(f"deflect dev d1 via 10.0.0.{n}" for n in range(1, 17)),
     {"deflect": [{"dev": "d1", "via": f"10.0.0.{n}"} for n in range(1, 17)]}),
]

# words of tc -> a word of the error message
BAD = [
    ("foo", "foo"), ("help", "Usage"),
    ("threshold", "argument"), ("threshold 0", "threshold"), ("threshold x", "threshold"),
    ("threshold -1", "threshold"), ("threshold 2g", "threshold"), ("threshold nan", "threshold"),
    ("threshold 1 threshold 2", "twice"),
    ("entries", "argument"), ("entries 0", "entries"), ("entries 4097", "entries"),
    ("entries x", "entries"), ("entries -1", "entries"), ("entries 1 entries 2", "twice"),
    ("timeout", "argument"), ("timeout 100", "time"), ("timeout 0s", "timeout"),
    ("timeout 999ns", "timeout"), ("timeout 3601s", "timeout"), ("timeout -1s", "timeout"),
    ("timeout xs", "time"), ("timeout nans", "time"), ("timeout infs", "time"),
    ("timeout 1e30s", "timeout"),
    ("seed", "argument"), ("seed x", "seed"), ("seed 4294967296", "seed"),
    ("deflect", "argument"), ("deflect d1", "deflect"), ("deflect dev d1", "deflect"),
    ("deflect dev d1 via", "deflect"), ("deflect via 10.0.0.1 dev d1", "deflect"),
    ("deflect dev d1 via x", "address"), ("deflect dev d1 via 10.0.0", "address"),
    ("deflect dev d1 via 10.0.0.1/24", "address"), ("deflect dev d1 via :::", "address"),
    ("deflect dev none via 10.0.0.1", "does not exist"),
    (f"deflect dev {'x' * 128} via 10.0.0.1", "name"),
    ("deflect dev p0 via 10.0.0.1", "itself"),
    ("deflect dev lo via 10.0.0.1", "loopback"),
    ("deflect dev small via 10.0.0.1", "MTU"),
    ("deflect dev d1 via 0.0.0.0", "next hop"), ("deflect dev d1 via 224.0.0.1", "next hop"),
    ("deflect dev d1 via 255.255.255.255", "next hop"), ("deflect dev d1 via ::", "next hop"),
    ("deflect dev d1 via 127.0.0.1", "next hop"), ("deflect dev d1 via ::1", "next hop"),
    ("deflect dev d1 via ff02::1", "next hop"),
    ("deflect dev d1 via 10.0.0.1 deflect dev d1 via 10.0.0.1", "twice"),
    ("deflect dev d1 via 10.0.0.1 deflect dev none via 10.0.0.2", "does not exist"),
    (" ".join(f"deflect dev d1 via 10.0.0.{n}" for n in range(1, 18)), "16"),
]


def fresh():
    """A fresh namespace with devices and no qdisc."""
    i.insmod()
    p.fresh_namespace()
    p.veth()
    for number in (1, 2):
        i.add_port(number)
    p.veth("small", "small1", "mtu", "1400")


def options():
    """The options, as tc dumps them."""
    return i.shown()["options"]


@case("add: every option is shown as it was set")
def add():
    for words, change in SET:
        fresh()
        p.tc(f"qdisc add dev p0 root handle 1: iofd {words}")
        equal(options(), {**DEFAULTS, **change}, f"options of \"{words}\"")


@case("change keeps other options, and replaces the list of ports")
def change_keeps():
    fresh()
    p.tc(f"qdisc add dev p0 root handle 1: iofd {DEFLECT}")
    want = copy.deepcopy(DEFAULTS)
    for words, change in [
            ("", {}),
            ("threshold 1000", {"threshold": 1000}),
            ("entries 2", {"entries": 2}),
            ("entries 100", {"entries": 100}),
            ("timeout 7ms", {"timeout": 7000000}),
            ("seed 5", {"seed": 5}),
            ("deflect dev d2 via 10.9.2.2", {"deflect": [{"dev": "d2", "via": "10.9.2.2"}]}),
            (f"{i.deflect(1, 2)} seed 6",
             {"deflect": VIA + [{"dev": "d2", "via": "10.9.2.2"}], "seed": 6})]:
        i.change(words)
        want.update(change)
        equal(options(), want, f"options after \"{words}\"")


def a_port(*attrs, kind=IOFD.PORT | NLA_F_NESTED):
    """An entry of the list of ports."""
    return attr(kind, b"".join(attrs))


DEV, NEXT_HOP = attr(IOFD_PORT.DEV, b"d2\0"), attr(IOFD_PORT.VIA, bytes((10, 9, 2, 2)))
GOOD = a_port(DEV, NEXT_HOP)
# (attribute, a value that is refused, the attribute that the error names)
REFUSED = [
    (IOFD.THRESHOLD, bytes(4), IOFD.THRESHOLD), (IOFD.THRESHOLD, bytes(3), IOFD.THRESHOLD),
    (IOFD.ENTRIES, bytes(4), IOFD.ENTRIES), (IOFD.ENTRIES, struct.pack("I", 4097), IOFD.ENTRIES),
    (IOFD.TIMEOUT, bytes(8), IOFD.TIMEOUT), (IOFD.TIMEOUT, b"\xff" * 8, IOFD.TIMEOUT),
    (IOFD.SEED, bytes(3), IOFD.SEED), (IOFD.PORT, GOOD, IOFD.PORT),
    (IOFD.PORTS, b"", IOFD.PORTS), (IOFD.PORTS, 17 * GOOD, IOFD.PORTS),
    (IOFD.PORTS, a_port(DEV, NEXT_HOP, kind=IOFD.SEED), IOFD.SEED),
    (IOFD.PORTS, GOOD + a_port(DEV), IOFD.PORT), (IOFD.PORTS, a_port(NEXT_HOP), IOFD.PORT),
    (IOFD.PORTS, GOOD + GOOD, IOFD.PORT),
    (IOFD.PORTS, a_port(DEV, attr(IOFD_PORT.VIA, bytes(3))), IOFD_PORT.VIA),
    (IOFD.PORTS, a_port(DEV, attr(IOFD_PORT.VIA6, bytes(4))), IOFD_PORT.VIA6),
    (IOFD.PORTS, a_port(attr(IOFD_PORT.DEV, b"d2"), NEXT_HOP), IOFD_PORT.DEV),
    (IOFD.PORTS, a_port(DEV, NEXT_HOP, attr(IOFD_PORT.GONE, b"")), IOFD_PORT.GONE),
    (IOFD.PORTS, GOOD + attr(IOFD.PORT | NLA_F_NESTED, b"", 65535), IOFD.PORTS),
    (IOFD.PORTS, GOOD + b"\0" * 4, IOFD.PORTS),
]


@case("the error of a refused attribute names it, with a message, and no option changes")
def named():
    fresh()
    p.tc(f"qdisc add dev p0 root handle 1: iofd {DEFLECT}")
    link = Qdisc("p0", "iofd")
    before = link.config()
    for kind, value, expect in REFUSED:
        flag = NLA_F_NESTED if kind in (IOFD.PORTS, IOFD.PORT) else 0
        error, blamed, message = link.complaint(attr(TCA_OPTIONS | NLA_F_NESTED,
                                                     attr(kind | flag, value)))
        true(error and message, f"{kind!r} {value.hex()}: error {error}, {message!r}")
        equal(blamed, expect,
              f"number of the attribute in the error of {kind!r} {value.hex()}: {message}")
        equal(link.config(), before, f"options after {kind!r} {value.hex()}")
    link.close()


@case("bad input is refused with a status and one line of text, or the usage, without effect")
def bad_change():
    fresh()
    p.tc(f"qdisc add dev p0 root handle 1: iofd threshold 5k entries 7 seed 1 {DEFLECT}")
    before = options()
    for words, expect in BAD:
        done = i.change(words, check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
        # tc itself adds one line of text
        lines = [line for line in done.stderr.strip().splitlines()
                 if not line.startswith("We have an error talking to the kernel")]
        if words != "help":
            equal(len(lines), 1, f"lines of text for \"{words}\"")
        equal(options(), before, f"options after \"{words}\"")


@case("bad input is refused by add, which leaves no qdisc")
def bad_add():
    fresh()
    for words, expect in BAD + [("", "deflect port is needed"),
                                ("threshold 5k", "deflect port is needed")]:
        done = p.tc(f"qdisc add dev p0 root iofd {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
    true("iofd" not in p.tc("qdisc show dev p0").stdout, "no qdisc")


@case("tc prints options as they were given")
def round_trip():
    fresh()
    words = ("threshold 15Kb entries 9 timeout 2500us seed 7 deflect dev d1 via 10.9.1.2 "
             "deflect dev d2 via fd00:9:2::2")
    p.tc(f"qdisc add dev p0 root handle 1: iofd {words}")
    shown = p.tc("-d qdisc show dev p0").stdout
    equal(re.split(r"refcnt \d+ ", shown)[1].strip(), words, "options in the text of tc -d")


# Options that tc's own functions would round.
ODD = [
    "threshold 1 timeout 1us", "threshold 1023 timeout 1001ns", "threshold 1025 timeout 999999ns",
    "threshold 15361 entries 7 timeout 1234567ns seed 0", "threshold 1536 timeout 1000001us",
    "threshold 1048575 timeout 90s", "threshold 1048576 timeout 1500ms",
    "threshold 1048577 timeout 3599999999999ns", "threshold 1100000 seed 4294967295 entries 4095",
    "threshold 1073741824 timeout 60000000001ns", "threshold 2147483647 timeout 3600s",
    "threshold 2147482624", "threshold 5mb timeout 0.0000017s",
]


@case("the options that tc prints make an equal port on another device: odd values")
def rebuilt():
    fresh()
    for number in (3, 4):
        i.add_port(number)
    for number, words in enumerate(ODD):
        ports = i.deflect(*range(1, 2 + number % 4)) + f" deflect dev d2 via fd00::{number:x}"
        p.tc(f"qdisc replace dev p0 root handle 1: iofd {words} {ports}")
        want = options()
        shown = re.split(r"refcnt \d+ ", p.tc("qdisc show dev p0").stdout.splitlines()[0])[1]
        p.tc(f"qdisc replace dev p1 root handle 1: iofd {shown}")
        equal(i.shown("p1")["options"], want, f"options of \"{shown}\", from \"{words}\"")
        for dev in ("p0", "p1"):
            p.tc(f"qdisc del dev {dev} root")


@case("tc shows a device by its current name")
def renamed():
    fresh()
    p.tc(f"qdisc add dev p0 root handle 1: iofd {DEFLECT}")
    p.run("ip", "link", "property", "add", "dev", "d1", "altname", "a-rather-long-name-of-d1")
    i.change("deflect dev a-rather-long-name-of-d1 via 10.9.1.2")
    equal(options(), DEFAULTS, "options after a change by the other name")
    p.run("ip", "link", "set", "d1", "down")
    p.run("ip", "link", "set", "d1", "name", "d7")
    equal(options()["deflect"], [{"dev": "d7", "via": "10.9.1.2"}],
          "deflect ports after the device is renamed")


@case("statistics: the text and the JSON are the same")
def statistics():
    i.setup("threshold 15000 entries 1")
    sender = p.Sender()
    i.congest(sender)
    for frame in i.message(3)[:2] + i.message(2, flow=2) + [i.frame(SPENT.dscp)]:
        sender.send(frame)
    p.run("ip", "link", "set", "d1", "down")
    for frame in i.message(3)[2:] + i.message(1):
        sender.send(frame)
    text = p.tc("-s qdisc show dev p0").stdout
    for words in ("deflected 1 messages, 1 starts 1 followers 2000 bytes",
                  "in use 0 peak 1, expired 0", "table full 1, no port up 1, tokens spent 1",
                  "waiting   0 pkt 0 bytes, peak 1",
                  "port down or gone 1, FIFO full 0, no memory 0, reset 0, refused 0",
                  "port 1    2 pkt 2000 bytes"):
        true(words in text, f"{words!r} in {text!r}")
    sender.close()


# enum tca_iofd_stats, after UNSPEC and PAD, as the names in tc's JSON
STATS = ["deflected.messages", "deflected.starts", "deflected.followers", "deflected.bytes",
         "table.entries", "table.peak", "table.expired", "passed.full", "passed.no_port",
         "passed.spent", "dropped.port", "dropped.fifo", "dropped.memory", "dropped.reset",
         "dropped.refused", "waiting.packets", "waiting.bytes", "waiting.peak"]
PAD, PORTS = 1, 2 + len(STATS)


@case("statistics are attributes: u64s, and a nest for each port")
def attributes():
    i.setup("threshold 15000 entries 8", ports=3)
    sender = p.Sender()
    i.congest(sender)
    for flow in range(20):
        for frame in i.message(3, flow)[:3 - flow % 2]:
            sender.send(frame)
    raw = [(kind, data) for kind, data in i.attributes(i.stats_app()) if kind != PAD]
    equal([kind for kind, _ in raw], list(range(2, PORTS + 1)), "types")
    text = i.shown()
    for name, (_, data) in zip(STATS, raw):
        group, key = name.split(".")
        equal(struct.unpack("Q", data)[0], text[group][key], name)
    ports = []
    for kind, nest in i.attributes(raw[-1][1]):
        equal(kind, PORTS + 1, "type of a port")
        inner = [(kind, data) for kind, data in i.attributes(nest) if kind != PAD]
        equal([kind for kind, _ in inner], [2, 3], "types in a port")
        ports.append(dict(zip(("packets", "bytes"),
                              (struct.unpack("Q", data)[0] for _, data in inner))))
    equal(ports, text["ports"], "ports")
    equal(len(ports), 3, "ports")
    sender.close()


main()
