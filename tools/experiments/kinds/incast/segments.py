# SPDX-License-Identifier: GPL-2.0
"""Delivery times of segments, retransmissions included."""

import bisect
import collections

from lab import units
from lab.measure import report


def add_argument(add):
    """Add --segments."""
    add("--segments", type=units.percent, nargs="?", const=100, metavar="PERCENT",
        help="percentiles of the time from a segment's first transmission to its ACK, of all"
        " connections, or of this share of them, selected by the clients' ports")


def wrong(args):
    """The reason why --segments is refused, or None."""
    return "--segments: 1 to 100 percent of the connections" if args.segments == 0 else None


def deliveries(packets, beside):
    """The delivery times of segments, ns, from the first transmission to the ACK; None for a
    segment that was not delivered.

    The times at the port are the first arrival of the segment, and the departure of a packet that
    contains all of it (a clock contains only a byte).  `beside` is the time, in the idle network,
    of the path to the port, from the port to the receiver, and back.
    """
    flows, times = collections.defaultdict(list), []
    for packet in packets:
        if packet.data and not packet.syn:
            flows[packet.port].append(packet)
    for flow in flows.values():
        # Offsets from the flow's first byte.
        places = [(packet.seq - flow[0].seq) & 0xffffffff for packet in flow]
        # By the segment's first byte: (end, arrival), and departure.
        came, gone = {}, {}
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
    """Percentiles of delivery times; the numbers of all segments and of those not delivered."""
    arrived = sorted(time for time in times if time is not None)
    found = {"count": len(times), "lost": len(times) - len(arrived)}
    if arrived:
        found.update((f"p{percent:g}", report.percentile(arrived, percent))
                     for percent in (50, 99, 99.9))
        found["max"] = arrived[-1]
    return found
