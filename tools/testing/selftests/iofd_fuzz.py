#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: forged, truncated and random netlink attributes, and packets.

	 raw netlink ---> [ iofd ] p0 ============ p1
	 raw frames               d1 ============ e1

No message or packet makes the kernel warn (the runner checks its log), and a refused message
leaves the configuration unchanged.

A failing round can be run alone: see lab/fuzz.py.
"""
import struct

from lab import fuzz
from lab.net import iofd as i
from lab.net import frames as p
from lab.net.rtnl import NLA_F_NESTED, TCA_OPTIONS, Qdisc, attr
from lab.net.uapi import IOFD, IOFD_PORT
from lab.tap import case, equal, main, true

CHANGES, ADDS, PACKETS = 40_000, 10_000, 100_000
EACH = 500              # a round
LAST, LAST_PORT = max(IOFD), max(IOFD_PORT)
EDGES = [0, 1, 8, 999, 1000, 4096, 4097, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]


def good_port(rng):
    """Attributes of a valid port to deflect to."""
    via = (attr(IOFD_PORT.VIA, bytes((10, 9, 1, rng.randrange(256)))) if rng.random() < 0.6 else
           attr(IOFD_PORT.VIA6, b"\xfd" + rng.randbytes(15)))
    return attr(IOFD_PORT.DEV, rng.choice((b"d1\0", b"d2\0"))) + via


def good(rng, kind):
    """A valid value for this attribute."""
    if kind in (IOFD.THRESHOLD, IOFD.ENTRIES, IOFD.SEED):
        return struct.pack("I", rng.randrange(1, 4097))
    if kind == IOFD.TIMEOUT:
        return struct.pack("Q", rng.randrange(1000, 10 ** 12))
    if kind == IOFD.PORTS:
        return b"".join(attr(IOFD.PORT | NLA_F_NESTED, good_port(rng))
                        for _ in range(rng.choice((1, 1, 2, 3, 16, 17))))
    return b""


def value(rng, kind):
    """A random value for an attribute, valid or not."""
    choice = rng.randrange(8)
    if choice < 4:
        return good(rng, kind)
    if choice == 4:
        return struct.pack("I", rng.choice(EDGES))
    if choice == 5:
        return struct.pack("Q", rng.choice(EDGES) << rng.choice((0, 12, 31)) & (1 << 64) - 1)
    if choice == 6:
        return rng.randbytes(rng.choice((0, 1, 3, 4, 5, 8, 16, 63, 200)))
    inner = b""
    for _ in range(rng.randrange(4)):
        which = rng.randrange(LAST_PORT + 2)
        data = rng.choice((b"d1\0", b"p0\0", b"lo\0", b"d1", b"", bytes((10, 9, 1, 2)),
                           rng.randbytes(16), rng.randbytes(rng.randrange(20))))
        inner += attr(which, data, rng.choice((None,) * 6 + (0, 3, 4, 65535)))
    return attr(rng.choice((IOFD.PORT, IOFD.PORT | NLA_F_NESTED, IOFD.PORTS, 0)), inner)


def forged(rng):
    """Random attributes of a message, valid or not."""
    inner = b""
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        kind = rng.choice((rng.randrange(2, LAST), rng.randrange(2, LAST), rng.randrange(LAST + 3)))
        data = value(rng, kind)
        flag = NLA_F_NESTED if kind == IOFD.PORTS else 0
        inner += attr(kind | flag, data, rng.choice((None,) * 12 + (0, 3, 4, len(data), 65535)))
    inner = fuzz.damaged(rng, inner)
    nested = rng.choice((TCA_OPTIONS | NLA_F_NESTED,) * 12 + (TCA_OPTIONS, 0x4002))
    return attr(nested, inner, rng.choice((None,) * 12 + (4, len(inner), len(inner) + 8)))


@case("a refused change leaves the configuration unchanged")
def change():
    total = taken = 0
    for number, rng in fuzz.rounds("change", CHANGES, EACH):
        with fuzz.replayable("change", number):
            i.setup("threshold 15000 entries 8 seed 1", ports=2)
            link, sender = Qdisc("p0", "iofd"), p.Sender()
            i.congest(sender)
            before = link.config()
            for at in range(EACH):
                before, took = fuzz.change(link, forged(rng), before, at)
                taken += took
                if at % 5 == 0:
                    sender.send(i.frame(rng.choice((19, 3, 35, 51, 31)), rng.randrange(20)))
            total += EACH
            link.close()
            sender.close()
    true(total // 20 < taken < total * 19 // 20,
         f"{taken} of {total} messages were accepted, expected 5 % to 95 %")


@case("a refused add leaves no qdisc")
def add():
    total = taken = 0
    for number, rng in fuzz.rounds("add", ADDS, EACH):
        with fuzz.replayable("add", number):
            i.setup(ports=2)
            p.tc("qdisc del dev p0 root")
            link, sender = Qdisc("p0", "iofd"), p.Sender()
            for at in range(EACH):
                error = link.add(forged(rng))
                equal(link.config() is None, bool(error), f"add {at}: no qdisc after error {error}")
                if not error:
                    taken += 1
                    sender.send(i.frame(19))
                    equal(link.delete(), 0, f"add {at}: error of the deletion")
            total += EACH
            link.close()
            sender.close()
    true(taken > total // 100, f"{taken} of {total} messages were accepted, expected more than 1 %")


@case("packets with a deflected DSCP may have any bytes after it")
def packets():
    for number, rng in fuzz.rounds("packets", PACKETS, EACH):
        with fuzz.replayable("packets", number):
            i.setup("threshold 1000 entries 8 timeout 1ms", ports=2)
            sender = p.Sender()
            i.congest(sender, 2000)
            for _ in range(EACH):
                version = rng.choice((4, 4, 6))
                code = rng.randrange(16) << 2 | 3
                frame = bytearray(i.frame(code, rng.randrange(9), size=rng.choice((60, 80, 200)),
                                          version=version))
                for _ in range(rng.randrange(4)):
                    frame[rng.randrange(12, len(frame))] = rng.randrange(256)
                sender.send(bytes(frame[:rng.randrange(15, len(frame) + 1)]))
            seen = i.counters()
            true(seen["deflected.messages"] and seen["deflected.followers"],
                 f"messages and followers are deflected: {seen}")
            sender.close()


main()
