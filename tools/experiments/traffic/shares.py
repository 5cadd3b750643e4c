# SPDX-License-Identifier: GPL-2.0
"""Fairness of a crowd: Jain's index of the bytes of its flows, over ten cycles.

	python3 -m experiments.traffic.shares FLOWS CC...	a row for each congestion control, in a guest

8 senders, one receiver, 40 Gbit/s, 20 us, color limit 1800k red 270k.  The flows, of 160 kB, begin
together, on connections of an earlier burst.  A cycle is the transmission time of a packet of each
flow: the time between two packets of a flow in a crowd.  (Ten base RTTs have less than a packet of
each flow.)

The index is computed in windows of ten cycles.  The first window begins ten cycles after the first
packet, and the last one is the last with 90 % of the flows.  A flow belongs to a window if it sends
before and after it.
"""

import collections
import sys

from experiments.traffic.incast import built, run
from lab.measure import report
from lab.measure.capture import Ends

CYCLES, ALIVE, PACKET = 10, 0.9, 1538
CONFIG = {
    "senders": 8, "rate": 40 * 10**9, "delay": 5000, "rto_min": 4 * 10**6, "ipv6": False,
    "tso": True, "port": "", "limit": 1800 << 10, "red": 270 << 10, "ecn": 200 << 10,
    "bytes": 160 << 10, "rounds": 2, "gap": 10**7, "fresh": False, "bulk": 0, "lead": 0,
    "duration": 0,
}
MOST = 3 * 10**6                        # packets in a capture


def second(packets):
    """The packets of a connection's second burst, behind the longest pause."""
    at = max(range(1, len(packets)), key=lambda i: packets[i].sent - packets[i - 1].sent)
    return packets[at:]


def indices(flows, window):
    """Jain's index of each window.  flows: the packets of each, as the port has sent them."""
    start = min(packets[0].sent for packets in flows) + window
    found = []
    while True:
        end = start + window
        alive = [packets for packets in flows if packets[0].sent < start and packets[-1].sent > end]
        if len(alive) < ALIVE * len(flows):
            return found
        found.append(report.jain([sum(p.length for p in packets if start <= p.sent < end)
                                  for packets in alive]))
        start = end


def measure(network, flows, cc):
    """A row: the least and the mean index, the number of windows, the RTOs."""
    seen = collections.defaultdict(list)
    ends = Ends(network, 100, {network.receiver: MOST})
    result = run(network, CONFIG, {"cc": cc, "flows": flows})
    for _, _, packets in ends.flows():
        for packet in packets:
            if packet.sent:
                seen[packet.port].append(packet)
    window = CYCLES * flows * PACKET * 8 * 10**9 // CONFIG["rate"]
    found = indices([second(packets) for packets in seen.values()], window)
    return {"cc": cc, "flows": flows, "least": min(found), "mean": sum(found) / len(found),
            "windows": len(found), "RTOs": result["senders"]["tcp"]["TCPTimeouts"]}


def main():
    """The table."""
    network = built(CONFIG)
    for cc in sys.argv[2:]:
        row = measure(network, int(sys.argv[1]), cc)
        print(*(f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
                for name, value in row.items()), flush=True)
    network.remove()


if __name__ == "__main__":
    main()
