# SPDX-License-Identifier: GPL-2.0
"""How long segments are on their way, retransmissions included."""

import bisect
import collections

from lab.measure import report


def deliveries(packets, config):
    """ns from when each segment left its sender first, to when it is acknowledged; None of
    one that never was.

    It is seen at the port: when it comes first, and when a packet that has all of it goes
    (a clock's byte has not).  The ways there and back take a round trip of the empty network.
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
        times += [gone[begin] - first + 4 * config["delay"] if begin in gone else None
                  for begin, (_, first) in came.items()]
    return times


def spread(times):
    """Percentiles of them."""
    arrived = sorted(time for time in times if time is not None)
    return {"count": len(times), "lost": len(times) - len(arrived), "max": arrived[-1]} | {
        f"p{percent:g}": report.percentile(arrived, percent) for percent in (50, 99, 99.9)}
