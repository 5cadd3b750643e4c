#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A network that sets a random DSCP in every packet: all bytes arrive, and in time.

	a (client) ---- wire (this program, re-marks) ---- b (server)

If one end runs a transport and the other its base, a transfer takes as long as between two bases
on the same network.  If both run it, a transfer takes longer than without re-marking, but not by a
timer: the DSCP of data requests an immediate ACK, which is late without it (Aeolus's burst), and
a wrong DSCP causes additional ACKs.
All sizes and DSCPs follow from fuzz.SEED.
"""
import random
import time

from lab import fuzz
from lab.tap import case, equal, main, true, within
from lab.wire.wire import Wire

# Bytes in each direction, a million packets in all.  With much less, one packet's time is more than
# the 5 % by which a transfer may be late.
COUNT = max(fuzz.share(10_000_000), 1_000_000)
LARGEST = 200_000       # of a write
BASE = {"tlt_reno": "reno", "tlt_cubic": "cubic", "tlt_dctcp": "dctcp", "tlt_bbr": "bbr",
        "tlt_dcqcn": "dcqcn", "tlt_dart": "dcqcn", "dart": "dcqcn", "xpass": "reno", "aeolus_xpass": "reno",
        "aeolus_homa": "reno", "aeolus_dctcp": "dctcp", "ndp": "reno",
        "aeolus_ndp": "reno", "homa": "reno"}


def remarks(cc, cc_b, random_dscps=True):
    """Writes of random sizes in both directions, one after the other; the virtual seconds of
    each."""
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
    """Check that each direction takes at most `most` times as long."""
    for now, then, way in zip(seen, expected, ("to the server", "to the client")):
        within(now / then, 0, most, f"{what}, {way}: transfer time, divided by the expected one")


@case("random DSCPs, the peer runs the base: transfers take at most 1.05 times as long",
      cc=tuple(BASE), end=("client", "server"))
def mixed(cc, end):
    base = BASE[cc]
    ends = (cc, base) if end == "client" else (base, cc)
    no_longer(remarks(*ends), remarks(base, base), 1.05, f"{cc} as the {end}")


@case("random DSCPs, both ends run the transport: transfers take at most 1.25 times as long",
      cc=tuple(BASE))
def both(cc):
    no_longer(remarks(cc, cc), remarks(cc, cc, random_dscps=False), 1.25, cc)


main()
