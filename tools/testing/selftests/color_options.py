#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: options are shown as they are set, and invalid ones are refused.

	 tc ---> [ color ] p0 ============ p1
"""
import copy
import re
import struct

from lab.codepoints import GREEN, RED
from lab.net import frames as p
from lab.net.rtnl import NLA_F_NESTED, TCA_OPTIONS, Qdisc, attr
from lab.net.uapi import COLOR
from lab.tap import case, equal, is_time_virtual, main, true

DEFAULT_MAP = {**dict.fromkeys(map(str, RED), "red"), **dict.fromkeys(map(str, GREEN), "green")}
DEFAULTS = {"limit": 1514000, "count": "color", "classify": "dscp", "map": DEFAULT_MAP,
            # the module's default; in virtual time the lab's
            "slack": 0 if is_time_virtual() else 20000, "split_gso": False}


TRIM = {"dscp": 61, "colors": ["red", "yellow", "green"], "limit": 1000}


def step(bytes_):
    """The ecn object of a step."""
    return {"min": bytes_, "max": bytes_, "probability": 1}


# (arguments of tc, options in tc's output that differ from DEFAULTS)
SET = [
    ("", {}),
    ("rate 40gbit", {"rate": 5000000000, "split_gso": True}),
    ("rate 100gbit", {"rate": 12500000000, "split_gso": True}),
    ("rate 8bit", {"rate": 1, "split_gso": True}),
    ("rate 100tbit", {"rate": 12500000000000, "split_gso": True}),
    ("overhead 24", {"overhead": 24}),
    ("overhead 1024", {"overhead": 1024}),
    ("limit 1800k", {"limit": 1843200}),
    ("limit 1514", {"limit": 1514}),
    ("slack 5usec", {"slack": 5000}), ("slack 5USECS", {"slack": 5000}),
    ("limit 1.5k", {"limit": 1536}),
    ("limit 2147483647", {"limit": 2147483647}),
    ("red 270k", {"red": 276480}),
    ("yellow 1", {"yellow": 1}),
    ("green 1514000", {"green": 1514000}),
    ("red 1 yellow 2 green 3", {"red": 1, "yellow": 2, "green": 3}),
    ("red auto", {"red_auto": True}),
    ("red auto min 100k", {"red_auto": True, "red_min": 102400}),
    ("count queue", {"count": "queue"}),
    ("count port", {"count": "port"}),
    ("count color", {}),
    ("classify ecn", {"classify": "ecn"}),
    ("classify dscp", {}),
    ("map 0 red map 63 green map cs1 yellow map ef red map AF43 green map 0x05 red",
     {"map": {"0": "red", "5": "red", "9": "red", "10": "green", "13": "green", "17": "green",
              "21": "green", "25": "green", "29": "red", "33": "green", "38": "green", "46": "red",
              "49": "green", "61": "green", "63": "green"}}),
    ("ecn 200k", {"ecn": step(204800)}),
    ("ecn 0", {"ecn": step(0)}),
    ("ecn 100k 400k 0.2", {"ecn": {"min": 102400, "max": 409600, "probability": 0.2}}),
    ("ecn 0 1 1", {"ecn": {"min": 0, "max": 1, "probability": 1}}),
    ("ecn none", {}),
    ("pool sw size 9m", {"pool": {"name": "sw", "size": 9437184, "alpha": 1}}),
    ("pool fifteen-letters size 1514 alpha 0.0625",
     {"pool": {"name": "fifteen-letters", "size": 1514, "alpha": 0.0625}}),
    ("pool sw size 2147483647 alpha 1024",
     {"pool": {"name": "sw", "size": 2147483647, "alpha": 1024}}),
    ("no-split-gso", {}),
    ("split-gso", {"split_gso": True}),
    ("auto-split-gso", {}),
    ("rate 1gbit auto-split-gso", {"rate": 125000000, "split_gso": True}),
    ("rate 1gbit no-split-gso", {"rate": 125000000}),
    ("rate 1gbit int 20us", {"rate": 125000000, "split_gso": True, "int": 20000}),
    ("rate 1gbit int 1s", {"rate": 125000000, "split_gso": True, "int": 1000000000}),
    ("int none", {}),
    ("slack 20us", {"slack": 20000}),
    ("slack 1ms", {"slack": 1000000}),
    ("slack 0us catch-up 1ns", {"slack": 0, "catch_up": 1}),
    ("catch-up 1s", {"catch_up": 1000000000}),
    ("catch-up auto", {}),
    ("trim 61", {"trim": TRIM}),
    ("trim cs6 trim-limit 1 trim-size 256b", {"trim": {**TRIM, "dscp": 48, "limit": 1, "size": 256}}),
    ("trim-size 9216 trim-limit 2147483647 trim-colors green,red trim 0",
     {"trim": {"dscp": 0, "colors": ["red", "green"], "limit": 2147483647, "size": 9216}}),
    ("trim 61 trim-colors yellow,green,red trim-size 0", {"trim": TRIM}),
    ("trim none", {}),
    # the other options of pause: color_pause.py
    ("red 100k pause green xoff 300k",
     {"red": 102400, "pause": {"mode": "green", "xoff": 307200, "delay": 5000, "storm": 200000000, "map": {}}}),
    ("rate 40gbit limit 1800k red 270k ecn 200k",
     {"rate": 5000000000, "limit": 1843200, "red": 276480, "ecn": step(204800),
      "split_gso": True}),
]

# (arguments of tc, a part of the error message)
BAD = [
    ("foo", "foo"),
    ("rate", "argument"), ("rate fast", "rate"), ("rate 0", "rate"), ("rate 1bit", "rate"),
    ("rate -1", "rate"), ("rate 101tbit", "rate"), ("rate 1gbit rate 2gbit", "twice"),
    ("overhead", "argument"), ("overhead -1", "overhead"), ("overhead 1025", "overhead"),
    ("limit", "argument"), ("limit 0", "limit"), ("limit x", "limit"), ("limit 2g", "limit"),
    ("limit -5", "limit"), ("limit nan", "limit"), ("limit inf", "limit"),
    ("limit 1x", "limit"), ("limit 4294967297", "limit"), ("limit 1e30", "limit"),
    ("red 0", "red"), ("red -1", "red"), ("red 4g", "red"), ("red", "argument"),
    ("red 1 red 2", "twice"), ("yellow 0", "yellow"), ("green x", "green"),
    ("red auto red 1", "twice"), ("red auto min", "argument"), ("red auto min 0", "min"),
    ("red auto min 1514001", "above the limit"), ("red auto min 3k limit 2k", "above the limit"),
    ("red auto count queue", "count color"), ("min 1k", "min"), ("red 2k min 1k", "min"),
    ("red auto count port", "count color"),
    # without the suffix k, or in packets
    ("limit 1000", "limit: bytes, and less than one packet"), ("red 270", "red: bytes, and less"),
    ("yellow 60", "yellow: bytes, and less"), ("green 1513", "green: bytes, and less"),
    ("pool x size 1000", "size: bytes, and less"), ("limit 1.9", "whole number"),
    ("red 1.0001k", "whole number"), ("slack 5parsec", "not a time"), ("slack 5us6", "not a time"),
    ("red 1514001", "never acts"), ("yellow 1m limit 2k", "never acts"),
    ("green 100m", "never acts"),
    ("count", "argument"), ("count bytes", "count"), ("classify tos", "classify"),
    ("map", "argument"), ("map 8", "argument"), ("map 64 red", "63"), ("map -1 red", "DSCP"),
    ("map 8 blue", "blue"), ("map cs8 red", "DSCP"), ("map af14 red", "DSCP"),
    ("map 8 red map 8 green", "twice"), ("map cs1 red map 8 red", "twice"),
    ("ecn", "argument"), ("ecn x", "ecn"), ("ecn -1", "ecn"), ("ecn 1m 2m", "probability"),
    ("ecn 200k 100k 0.5", "MIN"), ("ecn 100k 200k 1.1", "ecn"), ("ecn 1 2 0", "never marks"),
    ("ecn 100k 200k -0.1", "ecn"), ("ecn 100k 200k x", "ecn"), ("ecn 1514001", "never reached"),
    ("ecn 1 2 nan", "ecn"), ("ecn 1 ecn 2", "twice"), ("ecn 100k limit 50k", "never reached"),
    ("pool", "argument"), ("pool new", "does not exist"), ("pool sixteen-letters-", "15"),
    ("pool a/b\u00e9 size 1m", "printable"), ("size 1m", "need a pool"),
    ("alpha 1", "need a pool"), ("pool none size 1m", "need a pool"),
    ("pool none alpha 2", "need a pool"), ("pool NONE", "does not exist"),
    ("pool new size 0", "size"), ("pool new size 2g", "size"),
    ("pool new size 1m alpha 0", "alpha"), ("pool new size 1m alpha -1", "alpha"),
    ("pool new size 1m alpha 1025", "alpha"), ("pool new size 1m alpha x", "alpha"),
    ("pool new size 1m red 2m", "never acts"),
    ("split-gso no-split-gso", "twice"), ("help", "Usage"),
    ("int", "argument"), ("int 0", "int"), ("int 999ns", "int"), ("int 1001ms", "int"),
    ("rate none int 20us", "rate of the port"), ("int 1us int 2us", "twice"),
    ("slack", "argument"), ("slack -1us", "slack"), ("slack 1001us", "slack"),
    ("slack 1h", "slack"), ("catch-up 0", "catch-up"), ("catch-up 1001ms", "catch-up"),
    ("catch-up 1us catch-up 2us", "twice"), ("catch-up", "argument"),
    ("slack 20us catch-up 19us", "below the slack"),
    ("trim", "argument"), ("trim 64", "63"), ("trim x", "DSCP"), ("trim 61 trim none", "twice"),
    ("trim 61 trim-limit 0", "trim-limit"), ("trim 61 trim-size 9217", "trim-size"),
    ("trim 61 trim-size -1", "trim-size"), ("trim 61 trim-colors blue", "blue"),
    ("trim 61 trim-colors red,", "trim-colors"), ("trim 61 trim-colors red,red", "twice"),
    ("trim 61 trim-colors redredred", "redredr"),
    ("trim-limit 5", "need trim"), ("trim none trim-size 100", "need trim"),
    ("trim-colors red", "need trim"),
    ("pause", "argument"), ("pause red", "pause"), ("xoff 1k", "need pause"),
    ("pause all xoff 1514000", "no room"),
]


@case("add: tc shows each option as it was set")
def add():
    for words, change in SET:
        p.port(words)
        equal(p.options(), {**DEFAULTS, **change}, f"options of \"{words}\"")


@case("change keeps the options that it does not name")
def change_keeps():
    p.port("rate 40gbit limit 1800k red 270k ecn 200k")
    want = {**DEFAULTS, "rate": 5000000000, "limit": 1843200, "red": 276480,
            "ecn": step(204800), "split_gso": True}
    for words, change in [
            ("", {}),
            ("rate 100gbit", {"rate": 12500000000}),
            ("overhead 24", {"overhead": 24}),
            ("limit 1700k", {"limit": 1740800}),
            ("yellow 1m", {"yellow": 1048576}),
            ("green 1600k", {"green": 1638400}),
            ("red auto min 1k", {"red": None, "red_auto": True, "red_min": 1024}),
            ("limit 1600k", {"limit": 1638400}),
            ("red auto", {"red_min": None}),
            ("red 270k", {"red": 276480, "red_auto": None}),
            ("limit 1700k", {"limit": 1740800}),
            ("count queue", {"count": "queue"}),
            ("count color", {"count": "color"}),
            ("classify ecn", {"classify": "ecn"}),
            ("classify dscp", {"classify": "dscp"}),
            ("map 0 red", {"map": {"0": "red", **DEFAULT_MAP}}),
            ("map 0 yellow", {"map": DEFAULT_MAP}),
            ("ecn 100k 400k 0.2",
             {"ecn": {"min": 102400, "max": 409600, "probability": 0.2}}),
            ("pool sw size 9m alpha 0.5",
             {"pool": {"name": "sw", "size": 9437184, "alpha": 0.5}}),
            ("alpha 2", {"pool": {"name": "sw", "size": 9437184, "alpha": 2}}),
            ("size 9m", {}),
            ("size 8m", {"pool": {"name": "sw", "size": 8388608, "alpha": 2}}),
            ("pool sw size 9m", {"pool": {"name": "sw", "size": 9437184, "alpha": 2}}),
            ("int 7us", {"int": 7000}),
            ("slack 3us", {"slack": 3000}),
            ("catch-up 7us", {"catch_up": 7000}),
            ("pool other size 1m", {"pool": {"name": "other", "size": 1048576, "alpha": 2}}),
            ("trim 61", {"trim": TRIM}),
            ("trim-limit 9", {"trim": {**TRIM, "limit": 9}}),
            ("trim-size 99", {"trim": {**TRIM, "limit": 9, "size": 99}}),
            ("trim 60", {"trim": {**TRIM, "dscp": 60, "limit": 9, "size": 99}}),
            ("pause all xoff 100k",
             {"pause": {"mode": "all", "xoff": 102400, "delay": 5000, "storm": 200000000,
                        "map": {}}}),
            ("pause obey delay 1us storm never xoff auto",
             {"pause": {"mode": "obey", "delay": 1000, "map": {}}}),
            ("no-split-gso", {"split_gso": False}),
            ("split-gso", {"split_gso": True})]:
        p.tc(f"qdisc change dev p0 root color {words}")
        want.update(change)
        want = {key: value for key, value in want.items() if value is not None}
        equal(p.options(), want, f"options after \"{words}\"")


@case("change removes options")
def change_none():
    p.port("rate 40gbit red 2k yellow 2k green 2k ecn 1k pool sw size 1m overhead 24 trim 61 "
           "pause obey")
    p.tc("qdisc change dev p0 root color rate none red none yellow none green none ecn none "
         "pool none overhead 0 trim none pause none")
    equal(p.options(), DEFAULTS, "options")
    p.tc("qdisc change dev p0 root color red auto min 1k")
    p.tc("qdisc change dev p0 root color red none")
    equal(p.options(), DEFAULTS, "options after red auto")
    p.tc("qdisc change dev p0 root color split-gso")
    p.tc("qdisc change dev p0 root color auto-split-gso")
    equal(p.options(), DEFAULTS, "options after split-gso")


ALL_ONES = struct.pack("I", 0xffffffff)
# attribute -> a value that a port without options refuses
REFUSED = {
    "RATE64": b"\xff" * 8, "LIMIT": struct.pack("I", 1000), "RED": struct.pack("I", 270),
    "YELLOW": struct.pack("I", 270), "GREEN": struct.pack("I", 270), "MAP": b"\x09" * 64,
    "POOL": b"none\0", "POOL_SIZE": struct.pack("I", 1 << 20),
    "POOL_ALPHA": struct.pack("I", 65536), "PRIO": b"\x09" * 64, "BAND_RATE64": b"\1" * 7,
    "BAND_LIMIT": struct.pack("I", 5), "BAND_YIELD": struct.pack("I", 5),
    "ECN_MIN": struct.pack("I", 5), "ECN_MAX": struct.pack("I", 5),
    "TRIM_COLORS": struct.pack("I", 1), "TRIM_LIMIT": struct.pack("I", 1),
    "TRIM_SIZE": struct.pack("I", 1), "PAUSE_XOFF": struct.pack("I", 5000),
    "PAUSE_XON": struct.pack("I", 5000), "PAUSE_DELAY": struct.pack("I", 5000),
    "PAUSE_STORM": struct.pack("I", 5000), "PAUSE_MAP": bytes(8),
    "PAUSE_UNIT": struct.pack("I", 1514), "PAUSE": struct.pack("I", 3),
    "RED_MIN": struct.pack("I", 5000), "INT_RTT": struct.pack("I", 5000),
    "CATCH_UP": ALL_ONES, "SLACK": ALL_ONES, "OVERHEAD": ALL_ONES, "COUNT": ALL_ONES,
    "CLASSIFY": ALL_ONES, "BANDS": ALL_ONES, "SPLIT_GSO": ALL_ONES, "TRIM_DSCP": ALL_ONES,
    "RED_AUTO": ALL_ONES,
}
NEVER_REFUSED = {"UNSPEC", "PAD", "ECN_PROB"}


@case("the error of a refused attribute has its number and a message")
def named():
    p.port()
    link = Qdisc("p0")
    equal(set(COLOR.__members__) - NEVER_REFUSED - set(REFUSED), set(),
          "attributes without an invalid value in this test")
    before = link.config()
    for name, value in REFUSED.items():
        number = getattr(COLOR, name)
        error, blamed, message = link.complaint(attr(TCA_OPTIONS | NLA_F_NESTED,
                                                     attr(number, value)))
        true(error and message, f"{name}: error {error}, {message!r}")
        equal(blamed, number, f"attribute number in the error of {name}: {message}")
        equal(link.config(), before, f"options after {name}")
    link.close()


@case("a rate in bytes, or above any link's, is accepted with a warning")
def warned():
    p.port()
    for words, expect in (("rate 40gbps", "are bytes: 320000000000 bit/s"),
                          ("rate 2tbit", "2000000 Mbit/s is more than the 1600000 of any Ethernet"),
                          ("rate 400gbit", "")):
        done = p.tc(f"qdisc change dev p0 root color {words}")
        true(expect in done.stderr if expect else not done.stderr, f"{words}: {done.stderr!r}")
    equal(p.options()["rate"], 50000000000, "rate, bytes/s")


@case("bad input is refused with a status and one error, or the usage, without effect")
def bad_change():
    p.port("rate 1gbit red 40k ecn 50k pool sw size 1m alpha 2")
    before = copy.deepcopy(p.options())
    for words, expect in BAD:
        if expect == "need a pool" and not words.startswith("pool"):
            continue                    # this port has a pool
        done = p.tc(f"qdisc change dev p0 root color {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
        if words != "help":
            equal(len(done.stderr.strip().splitlines()), 1,
                  f"length of the message, for \"{words}\"")
        equal(p.options(), before, f"options after \"{words}\"")


@case("bad input is refused by add, which leaves no qdisc")
def bad_add():
    p.insmod()
    p.fresh_namespace()
    p.veth()
    for words, expect in BAD:
        done = p.tc(f"qdisc add dev p0 root color {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
    true("color" not in p.tc("qdisc show dev p0").stdout, "no qdisc")


@case("tc prints options as it accepts them")
def round_trip():
    words = ("rate 40Gbit overhead 24 limit 1800Kb red 270Kb yellow 1Mb green 1200Kb "
             "count queue classify ecn map 1 green map 5 red map 8 red map 9 red map 10 green "
             "map 13 green map 17 green map 21 green "
             "map 25 green map 29 red map 33 green map 49 green map 61 green "
             "ecn 100Kb 200Kb 0.25 "
             "pool sw size 9Mb alpha 0.5 trim 61 trim-colors red,yellow trim-limit 99 "
             "trim-size 1Kb slack 20us catch-up 70us "
             "pause all xoff 300Kb xon 200Kb delay 2us storm never pause-map 3 none no-split-gso")
    p.port(words)
    shown = p.tc("-d qdisc show dev p0").stdout
    equal(re.split(r"refcnt \d+ ", shown)[1].strip(), words, "options in the text of tc -d")


# Numbers that are no multiple of tc's units, and combinations that need every digit.
ODD = [
    "rate 1234567888bit limit 1843201 red 1048577 yellow 1843199",
    "ecn 1023 1025 0.123456789", "ecn 7 7 0.5", "ecn 0 1 0.0000000003",
    "pool sw size 1234567 alpha 0.3333", "pool sw size 5g alpha 1000.00002",
    "red 200k pause green xoff 123457 xon 123456 delay 1234ns storm 1234567ns bands 3 pause-map 1 0",
    "map 8 yellow map 5 red map 63 green", "slack 12345ns catch-up 54321us",
    "rate 123456784bit int 1234567ns", "red auto", "limit 7777777 red auto min 1234567 yellow 5", "rate 40gbit preset tlt red auto",
    "rate 10gbit preset aeolus", "rate 10gbit preset ndp", "rate 10gbit preset homa", "rate 40gbit preset tlt", "rate 1gbit no-split-gso",
    "rate 99999992bit bands 16 prio 5 0 prio 6 14 band-rate 0 12345672bit band-rate 3 77pps"
    " band-limit 15 7 band-yield 3 0.0715179",
    "trim 61 trim-colors red", "trim ef trim-size 1025 trim-limit 7",
]


@case("the options in tc's output make an equal port")
def rebuilt():
    # An emulated machine takes half a second for each tc command.
    for words in [words for words, _ in SET] * is_time_virtual() + ODD:
        words = words.replace("5g", "2147483647")
        p.port(words)
        p.veth("q0", "q1")
        for options in ("", "-d "):
            shown = re.split(r"refcnt \d+ ", p.tc(f"{options}qdisc show dev p0").stdout)[1]
            p.tc(f"qdisc replace dev q0 root color {shown}")
            equal(p.options("q0"), p.options("p0"), f"options of \"{words}\", shown as {shown}")
            p.tc("qdisc del dev q0 root")


@case("the MTU grows above a size: the present size is accepted, and no other that is too small")
def greater_mtu():
    p.port("limit 7k red 6k yellow 5k green 4k")
    p.run("ip", "link", "set", "dev", "p0", "mtu", "9000")
    before = p.options("p0")
    p.tc("qdisc change dev p0 root color limit 7k red 6k yellow 5k green 4k")
    equal(p.options("p0"), before, "options")
    done = p.tc("qdisc change dev p0 root color red 5k", check=False)
    true("one packet" in done.stderr, f"red 5k: {done.stderr!r}")
    equal(p.options("p0"), before, "options after that")


@case("statistics in text: queue, pool, colours, trim and red auto")
def statistics():
    p.port("rate 8bit red 1000 pool sw size 10k trim 61", mtu=486)
    sender = p.Sender()
    sender.send(p.ipv4(500, p.RED), 5)
    text = p.tc("-s qdisc show dev p0").stdout
    for words in ("backlog 1000 peak 1000 bytes", "used 1000 peak 1000 of 10240 bytes, 1 ports, 1000 held here",
                  "red    queued 3 pkt 1500 bytes", "dropped color 2 pool 0 limit 0, trimmed 0",
                  "trimmed 0 pkt queued, dropped limit 0 unfit 2"):
        true(words in text, f"{words!r} in {text!r}")
    sender.close()
    p.port("limit 80000 red auto")
    text = p.tc("-s qdisc show dev p0").stdout
    true("auto   red 70000 kept 0 bytes" in text, f"red auto in {text!r}")


main()
