# SPDX-License-Identifier: GPL-2.0
"""Sizes of the flows in datacenters: the four distributions that papers use.

A distribution is a list of (bytes, share of the flows that are no larger); between two points it is
interpolated linearly, as the papers' simulators do.
"""

import bisect

_PACKET = 1460          # the papers' unit

DISTRIBUTIONS = {
    # Web search: the background traffic of DCTCP (Alizadeh et al., SIGCOMM 2010, Figure 4),
    # as TLT has it: "average flow size of 1.72 MB" (§7.1).
    "web-search": [(1, 0), (10_000, .15), (20_000, .2), (30_000, .3), (50_000, .4),
                   (80_000, .53), (200_000, .6), (1_000_000, .7), (2_000_000, .8),
                   (5_000_000, .9), (10_000_000, .97), (30_000_000, 1)],
    # Data mining: VL2 (Greenberg et al., SIGCOMM 2009, Figure 2), in pFabric's steps.
    "data-mining": [(_PACKET, 0), (_PACKET, .5), (2 * _PACKET, .6), (3 * _PACKET, .7),
                    (7 * _PACKET, .8), (267 * _PACKET, .9), (2107 * _PACKET, .95),
                    (66_667 * _PACKET, .99), (666_667 * _PACKET, 1)],
    # Roy et al. (SIGCOMM 2015) give plots.  These two have the shares of the classes up to
    # 10 kB, 100 kB and 1 MB of ExpressPass (SIGCOMM 2017, Table 2) and Aeolus (ToN, Table
    # I), and a largest flow by which their means are the papers': 64 kB, 701 kB.
    "web-server": [(70, 0), (1_000, .2), (2_000, .35), (10_000, .63), (100_000, .81),
                   (448_000, 1)],
    "cache-follower": [(70, 0), (1_000, .1), (10_000, .5), (100_000, .53), (1_000_000, .71),
                       (3_130_000, 1)],
}


def mean(name):
    """The mean size of a flow, bytes."""
    points = DISTRIBUTIONS[name]
    return sum((q - p) * (a + b) / 2 for (a, p), (b, q) in zip(points, points[1:]))


def quantile(name, share):
    """The size, in bytes, that this share of the flows does not exceed; at least 1."""
    points = DISTRIBUTIONS[name]
    last = bisect.bisect_left([p for _, p in points], share, lo=1, hi=len(points) - 1)
    (a, p), (b, q) = points[last - 1:last + 1]
    return max(1, round(a + (b - a) * (share - p) / (q - p))) if q > p else b


def draw(name, random):
    """The size of a random flow, bytes."""
    return quantile(name, random.random())
