#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A network that gives every packet, both ways, a DSCP at random: no byte is lost, none is late.

	a (client) ---- wire (this program, re-marks) ---- b (server)

If one end runs a transport and the other its base, a transfer takes as long as between two
bases on the same network.  If both run it, longer than on a network that re-marks nothing, but
by no timer: the DSCP of data asks for an immediate ACK, which is late without it (Aeolus's
burst), and makes ACKs of its own where it is wrong.
All sizes and DSCPs follow from fuzz.SEED.
"""
import random
import time

from lab import fuzz
from lab.tap import case, equal, main, true, within
from lab.wire.wire import Wire

# Bytes each way.  All together are a million packets.  Of much less, one packet's time is more than
# the twentieth that a transfer may be late.
COUNT = max(fuzz.share(10_000_000), 1_000_000)
LARGEST = 200_000       # of a write
BASE = {"tlt_reno": "reno", "tlt_cubic": "cubic", "tlt_dctcp": "dctcp", "tlt_bbr": "bbr",
        "tlt_dcqcn": "dcqcn", "tlt_dart": "dcqcn", "dart": "dcqcn", "xpass": "reno", "aeolus_xpass": "reno"}


def remarks(cc, cc_b, random_dscps=True):
    """Writes of random sizes, one way and the other; the virtual seconds of each."""
    with Wire(cc=cc, cc_b=cc_b) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        dscps = random.Random(fuzz.SEED)
        if random_dscps:
            wire.rule = lambda p: p.set_dscp(dscps.randrange(64))
        wire.align()
        client, server = wire.connect()
        sizes, spent = random.Random(fuzz.SEED), []
        for source, sink in ((client, server), (server, client)):
            began, left = time.clock_gettime(time.CLOCK_MONOTONIC), COUNT
            while left:
                size = min(left, sizes.randrange(1, LARGEST))
                true(wire.transfer(source, sink, size, 10.0), "arrives")
                left -= size
                wire.seen.clear()
            spent.append(time.clock_gettime(time.CLOCK_MONOTONIC) - began)
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "TCPTimeouts")
        return spent


def no_longer(seen, expected, most, what):
    """Either way at most so many times as long."""
    for now, then, way in zip(seen, expected, ("to the server", "to the client")):
        within(now / then, 0, most, f"{what}, {way}: time over what it was to be")


@case("the peer runs the base", cc=tuple(BASE), end=("client", "server"))
def mixed(cc, end):
    base = BASE[cc]
    ends = (cc, base) if end == "client" else (base, cc)
    no_longer(remarks(*ends), remarks(base, base), 1.05, f"{cc} as the {end}")


@case("both ends run it", cc=tuple(BASE))
def both(cc):
    no_longer(remarks(cc, cc), remarks(cc, cc, random_dscps=False), 1.25, cc)


main()
