# SPDX-License-Identifier: GPL-2.0
"""Convergence times, from the packets that arrive at the switch port, before its queue.

A flow sends at half of the line rate from T on if, at every later packet of the round, the bytes
that arrived since T are half of the link's capacity in that time, within TOLERANCE and a burst:

	bytes since T
	  |         . '  /       A flow that still sends at full rate leaves the
	  |      .'  . '  /      wedge after the length of a burst, so T is exact
	  |   .'. '   /          to a burst: a quarter of a round trip of 20 us.
	  | .'. '  /
	  +----------- time
"""

import bisect
import itertools

OLD, NEW = "10001", "10000"     # ports: the load generator opens its bulk flow last
TOLERANCE = 0.05
STEPS = 20              # candidates for T in a round trip
GAPS = 24               # FCS, preamble and gap, which a qdisc does not count
BURST = 5e-6            # s, of a sender at its rate: net.ipv4.dcqcn_burst
PACKET = 1538           # bytes: T and the last arrival may each be a packet off


class _Arrivals:
    """The arrivals of one flow's packets."""

    def __init__(self, packets):
        self.times = [p.arrived for p in packets]
        self.sums = list(itertools.accumulate((p.length + GAPS for p in packets), initial=0))

    def bytes(self, begin, end):
        """The bytes that arrived in [begin, end)."""
        return self.sums[bisect.bisect_left(self.times, end)] \
            - self.sums[bisect.bisect_left(self.times, begin)]

    def has(self, begin, end, rate):
        """Whether the flow sends at `rate`, in bytes per ns, from begin to end."""
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
    """Gbit/s of the old and the new flow in each RTT around the last join."""
    rtt = 4 * config["delay"]
    flows = [_Arrivals([p for p in packets if p.data and str(p.port) == port])
             for port in (OLD, NEW)]
    begin = list(_rounds(flows[1].times, config["gap"] // 2))[-1][0]
    return {"first": -before, "gbit": [[flow.bytes(begin + i * rtt, begin + (i + 1) * rtt) * 8 / rtt
                                        for i in range(-before, after)] for flow in flows]}


def converged(packets, config):
    """The convergence time of each round, ns; None if the flows do not converge."""
    rtt = 4 * config["delay"]
    half = config["rate"] / 16e9
    flows = [_Arrivals([p for p in packets if p.data and str(p.port) == port])
             for port in (OLD, NEW)]
    found = []
    for begin, end in _rounds(flows[1].times, config["gap"] // 2):
        # The new flow ends in the last round trip and does not fill it; T has to hold for 9 more.
        times = range(begin, end - 10 * rtt, rtt // STEPS)
        found.append(next((time - begin for time in times
                           if all(flow.has(time, end - rtt, half) for flow in flows)), None))
    return found
