# SPDX-License-Identifier: GPL-2.0
"""How long segments are on their way, retransmissions included."""

import bisect
import collections

from lab import units
from lab.measure import report


def add_argument(add):
    """--segments, of each experiment that measures them."""
    add("--segments", type=units.percent, nargs="?", const=100, metavar="PERCENT",
        help="percentiles of the time from a segment's first transmission to its ACK, of all"
        " connections, or of this share of them, selected by the clients' ports")


def wrong(args):
    """The reason why --segments is refused, or nothing."""
    return "--segments: 1 to 100 percent of the connections" if args.segments == 0 else None


def deliveries(packets, beside):
    """ns from when each segment left its sender first, to when it is acknowledged; None of
    one that never was.

    It is seen at the port: when it arrives first, and when a packet that has all of it leaves
    (a clock's byte has not).  `beside` is the time on the empty network of the path before,
    behind, and back.
    """
    flows, times = collections.defaultdict(list), []
    for packet in packets:
        if packet.data and not packet.syn:
            flows[packet.port].append(packet)
    for flow in flows.values():
        # Bytes are counted from the flow's first.
        places = [(packet.seq - flow[0].seq) & 0xffffffff for packet in flow]
        came, gone = {}, {}     # by the segment's first byte: (end, when); when
        for begin, packet in zip(places, flow):
            came.setdefault(begin, (begin + packet.data, packet.arrived))
        begins = sorted(came)
        for begin, packet in zip(places, flow):
            end = begin + packet.data
            for i in range(bisect.bisect_left(begins, begin), bisect.bisect_left(begins, end)):
                if packet.sent and came[begins[i]][0] <= end:
                    gone[begins[i]] = min(gone.get(begins[i], packet.sent), packet.sent)
        times += [gone[begin] - first + beside if begin in gone else None
                  for begin, (_, first) in came.items()]
    return times


def spread(times):
    """Percentiles of them."""
    arrived = sorted(time for time in times if time is not None)
    found = {"count": len(times), "lost": len(times) - len(arrived)}
    if arrived:
        found.update((f"p{percent:g}", report.percentile(arrived, percent))
                     for percent in (50, 99, 99.9))
        found["max"] = arrived[-1]
    return found
