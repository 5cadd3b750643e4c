#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: forged, truncated and random netlink attributes.

	 raw netlink ---> [ color ] p0 ============ p1

No message makes the kernel warn (the runner checks its log), and a refused one leaves the
configuration unchanged.

A failing round can be run alone: see lab/fuzz.py.
"""
import errno
import struct

from lab import fuzz
from lab.net import frames as p
from lab.net.rtnl import (HANDLE, NLA_F_NESTED, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE,
                          RTM_DELTCLASS, RTM_DELTFILTER, RTM_GETTCLASS, RTM_GETTFILTER,
                          RTM_NEWTCLASS, RTM_NEWTFILTER, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, Qdisc,
                          attr)
from lab.net.uapi import COLOR
from lab.tap import case, equal, main, true

CHANGES, ADDS, CLASSES = 80_000, 20_000, 20_000
EACH = 500              # a round

LAST = max(COLOR)

# a value that is valid for each attribute
GOOD = {
    COLOR.RATE64: struct.pack("Q", 5000000000),
    COLOR.OVERHEAD: struct.pack("I", 24),
    COLOR.LIMIT: struct.pack("I", 1800000),
    COLOR.RED: struct.pack("I", 270000),
    COLOR.YELLOW: struct.pack("I", 400000),
    COLOR.GREEN: struct.pack("I", 500000),
    COLOR.COUNT: struct.pack("I", 1),
    COLOR.CLASSIFY: struct.pack("I", 1),
    COLOR.MAP: bytes([1] * 64),
    COLOR.ECN_MIN: struct.pack("I", 100000),
    COLOR.ECN_MAX: struct.pack("I", 200000),
    COLOR.ECN_PROB: struct.pack("I", 1 << 31),
    COLOR.POOL: b"sw\0",
    COLOR.POOL_SIZE: struct.pack("I", 9000000),
    COLOR.POOL_ALPHA: struct.pack("I", 1 << 16),
    COLOR.SPLIT_GSO: struct.pack("I", 1),
    COLOR.BANDS: struct.pack("I", 4),
    COLOR.PRIO: bytes([0, 1, 255, 255] * 16),
    COLOR.BAND_RATE64: struct.pack("8Q", 50000000, 0, *[(1 << 64) - 1] * 6),
    COLOR.BAND_LIMIT: struct.pack("8I", 8, 0, *[(1 << 32) - 1] * 6),
    COLOR.BAND_YIELD: struct.pack("16I", 4687, 0, *[(1 << 32) - 1] * 14),
    COLOR.SLACK: struct.pack("I", 20000),
    COLOR.CATCH_UP: struct.pack("I", 50000),
    COLOR.TRIM_DSCP: struct.pack("I", 61),
    COLOR.TRIM_COLORS: struct.pack("I", 3),
    COLOR.TRIM_LIMIT: struct.pack("I", 100),
    COLOR.TRIM_SIZE: struct.pack("I", 256),
    COLOR.PAUSE: struct.pack("I", 2),
    COLOR.PAUSE_XOFF: struct.pack("I", 300000),
    COLOR.PAUSE_XON: struct.pack("I", 200000),
    COLOR.PAUSE_DELAY: struct.pack("I", 5000),
    COLOR.PAUSE_STORM: struct.pack("I", 100000000),
    COLOR.PAUSE_MAP: bytes([0, 0xfe, 0xff, 0xff, 1, 0xff, 0, 0xff]),
    COLOR.RED_AUTO: struct.pack("I", 1),
    COLOR.RED_MIN: struct.pack("I", 3000),
    COLOR.INT_RTT: struct.pack("I", 20000),
}
# Attributes with a number for each of the first bands, and the size of the number.
EACH_BAND = {COLOR.BAND_RATE64: 8, COLOR.BAND_LIMIT: 4, COLOR.BAND_YIELD: 4}
EDGES = [0, 1, 2, 3, 63, 64, 255, 256, 1023, 1024, 1025, 65535, 65536, (1 << 31) - 1, 1 << 31,
         (1 << 32) - 1]


def value(rng, kind):
    """A random value for an attribute, valid or not."""
    choice = rng.randrange(6)
    if choice == 0:
        return GOOD.get(kind, b"")
    if choice == 1:
        return struct.pack("I", rng.choice(EDGES))
    if choice == 2:
        return struct.pack("Q", rng.choice(EDGES) << rng.choice((0, 12, 31, 32)) & (1 << 64) - 1)
    if choice == 3:
        return rng.randbytes(rng.choice((0, 1, 3, 4, 5, 8, 16, 63, 64, 65, 200)))
    if choice == 4:
        return bytes(rng.choice((0, 1, 2, 3, 255)) for _ in range(64))
    good = bytearray(GOOD.get(kind, b"\0"))
    good[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
    return bytes(good)


def forged(rng):
    """Random attributes of a message, valid or not."""
    inner = b""
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        kind = rng.choice((rng.randrange(1, LAST + 1), rng.randrange(1, LAST + 1),
                           rng.randrange(0, LAST + 4), rng.randrange(1 << 16)))
        data = value(rng, kind)
        lie = rng.choice((None,) * 8 + (0, 1, 3, 4, len(data), 65535))
        inner += attr(kind, data, lie)
    inner = fuzz.damaged(rng, inner)
    nested = rng.choice((TCA_OPTIONS | NLA_F_NESTED,) * 8 + (TCA_OPTIONS, 0x4002))
    lie = rng.choice((None,) * 12 + (4, len(inner), len(inner) + 8))
    return attr(nested, inner, lie)


@case("a refused change leaves the configuration unchanged")
def change():
    total = taken = 0
    for number, rng in fuzz.rounds("change", CHANGES, EACH):
        with fuzz.replayable("change", number):
            p.port("rate 1gbit limit 1m red 100k ecn 50k 60k 0.5 pool sw size 9000000")
            link, sender = Qdisc("p0"), p.Sender()
            before = link.config()
            for at in range(EACH):
                before, took = fuzz.change(link, forged(rng), before, at)
                taken += took
                if at % 20 == 0:
                    sender.send(p.ipv4(200, rng.randrange(256)), 3)
            total += EACH
            link.close()
            sender.close()
    true(total // 20 < taken < total * 19 // 20,
         f"{taken} of {total} messages were accepted, expected 5 % to 95 %")


@case("a refused add leaves no qdisc")
def add():
    taken = 0
    for number, rng in fuzz.rounds("add", ADDS, EACH):
        with fuzz.replayable("add", number):
            p.insmod()
            p.fresh_namespace()
            p.veth()
            link, sender = Qdisc("p0"), p.Sender()
            for at in range(EACH):
                error = link.add(forged(rng))
                equal(link.config() is None, bool(error), f"add {at}: no qdisc after error {error}")
                if not error:
                    taken += 1
                    sender.send(p.ipv4(200, rng.randrange(256)), 3)
                    equal(link.delete(), 0, f"add {at}: error of the deletion")
            link.close()
            sender.close()
    true(taken, "some messages were accepted")


@case("requests for classes and filters, which color lacks, are refused without effect")
def classes():
    kinds = (RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS, RTM_NEWTFILTER, RTM_DELTFILTER,
             RTM_GETTFILTER)
    filters = (b"color\0", b"matchall\0", b"u32\0", b"flower\0", b"", b"\0")
    for number, rng in fuzz.rounds("class", CLASSES, EACH):
        with fuzz.replayable("class", number):
            p.port("rate 1gbit limit 1m red 100k")
            link, sender = Qdisc("p0"), p.Sender()
            before = link.config()
            for at in range(EACH):
                kind = rng.choice(kinds)
                # With a flag a GET would be a dump, which never fails.
                flags = 0 if kind in (RTM_GETTCLASS, RTM_GETTFILTER) else rng.choice(
                    (0, NLM_F_CREATE, NLM_F_CREATE | NLM_F_EXCL, NLM_F_REPLACE))
                minor = rng.choice((0, 1, 2, 0xffff, 0xffe0))
                error = link.request(kind, flags,
                                     attr(TCA_KIND, rng.choice(filters)) + forged(rng),
                                     rng.choice((HANDLE, 0, 1)) | minor,
                                     rng.choice((HANDLE, HANDLE | 1, TC_H_ROOT, 0)))
                true(error, f"operation {at}: {kind} was accepted")
                equal(link.config(), before, f"operation {at}: options after {kind}")
                if at % 20 == 0:
                    sender.send(p.ipv4(200, rng.randrange(256)), 3)
            # The messages that tc sends: the qdisc refuses them, not an earlier check.
            equal(link.request(RTM_NEWTCLASS, NLM_F_CREATE, attr(TCA_KIND, b"color\0"), HANDLE | 1,
                               HANDLE), errno.EINVAL, "tc class add")
            equal(link.request(RTM_GETTCLASS, 0, b"", HANDLE | 1, HANDLE), errno.EINVAL,
                  "tc class get")
            for words in ("class show dev p0", "-s class show dev p0", "filter show dev p0"):
                equal(p.tc(words, check=False).stdout, "", f"tc {words}")
            link.close()
            sender.close()


@case("each attribute alone is accepted with its own length only, of 0 to 70 bytes")
def lengths():
    p.port()
    link = Qdisc("p0")
    for kind in range(LAST + 2):
        for length in range(71):
            before = link.config()
            error = link.change(attr(TCA_OPTIONS | NLA_F_NESTED, attr(kind, bytes(length))))
            if error:
                equal(link.config(), before, f"options after attribute {kind} of {length} bytes")
            elif kind in EACH_BAND:
                # A single band has no rate, limit or yield.
                equal(length, 0, f"accepted length of attribute {kind}, bytes")
            elif kind in GOOD and kind != COLOR.POOL:
                equal(length, len(GOOD[kind]), f"accepted length of attribute {kind}, bytes")
    p.tc("qdisc change dev p0 root color bands 16")
    for kind, size in EACH_BAND.items():
        for length in range(20 * size):
            good = length % size == 0 and length <= 16 * size
            error = link.change(attr(TCA_OPTIONS | NLA_F_NESTED, attr(kind, bytes(length))))
            equal(not error, good, f"attribute {kind} of {length} bytes is accepted")


@case("an unknown attribute, a nest without its flag and a rest are refused; the last of two "
      "limits counts")
def odd():
    p.port("limit 2000")
    link = Qdisc("p0")
    one, two = (attr(COLOR.LIMIT, struct.pack("I", limit)) for limit in (5000, 6000))
    before = link.config()
    true(link.change(attr(TCA_OPTIONS, one)), "a nest without NLA_F_NESTED is refused")
    true(link.change(attr(TCA_OPTIONS | NLA_F_NESTED, attr(LAST + 1, b""))),
         "an unknown attribute is refused")
    true(link.change(attr(TCA_OPTIONS | NLA_F_NESTED, one + b"\xff" * 3)),
         "a rest of 3 bytes is refused")
    equal(link.config(), before, "options")
    equal(link.change(attr(TCA_OPTIONS | NLA_F_NESTED, one + two)), 0, "error of two limits")
    equal(p.options()["limit"], 6000, "limit")


main()
