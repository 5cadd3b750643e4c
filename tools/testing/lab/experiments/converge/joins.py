# SPDX-License-Identifier: GPL-2.0
"""A flow joins another: from when on do both send half of the line?

What arrives at the switch port tells, before any queue.  A flow sends half of the line
from T on if, at every later packet of the round, what has come since T is what half of
the line brings in that time, within TOLERANCE and a burst:

	bytes since T
	  |         . '  /       A flow that goes on at full rate for a while leaves
	  |      .'  . '  /      the wedge after a burst's length, so T is exact to
	  |   .'. '   /          that: a quarter of a round trip of 20 us.
	  | .'. '  /
	  +----------- time
"""

import bisect
import itertools

OLD, NEW = "10001", "10000"     # ports: the load generator's bulk flow comes last
TOLERANCE = 0.05
STEPS = 20              # of T in a round trip
GAPS = 24               # FCS, preamble and gap, which a qdisc does not count
BURST = 5e-6            # of a sender at its rate: net.ipv4.dcqcn_burst
PACKET = 1538           # and as much is lost by looking between two packets


class _Arrivals:
    """One flow's packets."""

    def __init__(self, packets):
        self.times = [p.arrived for p in packets]
        self.sums = list(itertools.accumulate((p.length + GAPS for p in packets), initial=0))

    def bytes(self, begin, end):
        """Of the packets that arrived from begin on, and before end."""
        return self.sums[bisect.bisect_left(self.times, end)] \
            - self.sums[bisect.bisect_left(self.times, begin)]

    def has(self, begin, end, rate):
        """Does it send at rate (bytes a ns) from begin on, until end?"""
        slack = 2 * PACKET + rate * BURST * 1e9
        first = bisect.bisect_left(self.times, begin)
        for i in range(first, bisect.bisect_left(self.times, end)):
            due = rate * (self.times[i] - begin)
            if abs(self.sums[i + 1] - self.sums[first] - due) > TOLERANCE * due + slack:
                return False
        return True


def _rounds(times, silence):
    """(first, last) arrival of each round of the new flow."""
    begin = last = times[0]
    for time in times[1:]:
        if time - last >= silence:
            yield begin, last
            begin = time
        last = time
    yield begin, last


def rates(packets, config, before=5, after=25):
    """Gbit/s of the old flow and the new one, an RTT each, around the last join."""
    rtt = 4 * config["delay"]
    flows = [_Arrivals([p for p in packets if p.data and str(p.port) == port])
             for port in (OLD, NEW)]
    begin = list(_rounds(flows[1].times, config["gap"] // 2))[-1][0]
    return {"first": -before, "gbit": [[flow.bytes(begin + i * rtt, begin + (i + 1) * rtt) * 8 / rtt
                                        for i in range(-before, after)] for flow in flows]}


def converged(packets, config):
    """ns of each round until both have their half; None where that never is."""
    rtt = 4 * config["delay"]
    half = config["rate"] / 16e9
    flows = [_Arrivals([p for p in packets if p.data and str(p.port) == port])
             for port in (OLD, NEW)]
    found = []
    for begin, end in _rounds(flows[1].times, config["gap"] // 2):
        # In the last round trip the new flow ends, and what is left of it is little.
        times = range(begin, end - 10 * rtt, rtt // STEPS)
        found.append(next((time - begin for time in times
                           if all(flow.has(time, end - rtt, half) for flow in flows)), None))
    return found
