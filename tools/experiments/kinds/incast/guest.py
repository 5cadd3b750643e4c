# SPDX-License-Identifier: GPL-2.0
"""The guest's half: incasts and, with --segments, their segments' delivery times."""

from experiments.kinds.incast.segments import deliveries, spread
from experiments.traffic import incast
from lab.measure.capture import is_chosen

network = incast.Incast


def run(network, config, job):
    """One congestion control, one fan-in."""
    def look(packets, config):
        chosen = [packet for packet in packets if is_chosen(packet.port, config["segments"])]
        return {"segments": spread(deliveries(chosen, 4 * config["delay"]))}
    return incast.run(network, config, job, look=look if config["segments"] else None)
