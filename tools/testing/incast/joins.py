# SPDX-License-Identifier: GPL-2.0
"""A flow joins another: when do both send half of the line?

What arrives at the switch port tells, before any queue: of each round, the first moment
from which on every window of WINDOW round trips has as much of either flow as half of the
line is, within TOLERANCE.
"""

import bisect
import itertools

OLD, NEW = "10001", "10000"     # ports: the load generator's bulk flow comes last
WINDOW = 20             # RTTs: 160 packets of a half of 10 Gbit/s
TOLERANCE = 0.05
GAPS = 24               # FCS, preamble and gap, which a qdisc does not count


class _Arrivals:
    """One flow's packets, and the bytes of any window of them."""

    def __init__(self, packets):
        self.times = [p.arrived for p in packets]
        self.sums = list(itertools.accumulate((p.length + GAPS for p in packets), initial=0))

    def bytes(self, begin, end):
        """Of the packets that arrived from begin on, and before end."""
        return self.sums[bisect.bisect_left(self.times, end)] \
            - self.sums[bisect.bisect_left(self.times, begin)]


def _rounds(times, silence):
    """(first, last) arrival of each round of the new flow."""
    begin = last = times[0]
    for time in times[1:]:
        if time - last >= silence:
            yield begin, last
            begin = time
        last = time
    yield begin, last


def converged(packets, config):
    """ns of each round until both have their half; None where that never is."""
    rtt = 4 * config["delay"]
    window, half = WINDOW * rtt, config["rate"] / 2
    flows = [_Arrivals([p for p in packets if p.data and str(p.port) == port])
             for port in (OLD, NEW)]

    def fair(time):
        return all(abs(flow.bytes(time, time + window) * 8e9 / window - half)
                   <= TOLERANCE * half for flow in flows)

    found = []
    for begin, end in _rounds(flows[1].times, config["gap"] // 2):
        starts = range(begin, end - window, rtt // 20)
        late = next((time for time in reversed(starts) if not fair(time)), None)
        if late is None:
            found.append(0)
        else:
            found.append(None if late == starts[-1] else late + rtt // 20 - begin)
    return found
