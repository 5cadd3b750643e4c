# SPDX-License-Identifier: GPL-2.0
"""The guest's half: the bytes of each flow on the link, RTT by RTT."""

import collections

from experiments.traffic import incast

network = incast.Incast


def shares(packets, rtt):
    """{port: bytes of the flow's packets with data that the port sent, RTT by RTT}."""
    flows = collections.defaultdict(collections.Counter)
    sent = [p for p in packets if p.sent and p.data]
    begin = min(p.sent for p in sent)
    for packet in sent:
        flows[packet.port][(packet.sent - begin) // rtt] += packet.length
    rounds = max(map(max, flows.values())) + 1
    return {port: [seen[i] for i in range(rounds)] for port, seen in flows.items()}


def run(network, config, job):
    """A run of one congestion control."""
    return incast.run(network, config, job, look=lambda packets, _: {
        "shares": shares(packets, 4 * config["delay"])})
