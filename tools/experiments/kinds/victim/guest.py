# SPDX-License-Identifier: GPL-2.0
"""The guest's half: two switches with a trunk between them."""

from experiments.kinds.victim.schedule import Schedule
from experiments.traffic.play import Fabric, play
from lab.net import hosts
from lab.net.port import pausing

network = Fabric


def _words(config):
    """A function for fresh_ports().  The thresholds of the trunk's ports are in proportion to their
    rate."""
    def words(_switch, dev):
        rate = config["rate"] if dev.startswith("p") else config["trunk"]
        red, ecn = (config[key] * rate // config["rate"] for key in ("red", "ecn"))
        return [f"color rate {rate}bit limit {config['limit']} red {red} ecn {ecn}"
                + pausing(config["pause"], config["delay"])]
    return words


def run(network, config, job):
    """One congestion control."""
    hosts.settle(network, config, job["cc"])
    network.fresh_ports(_words(config))
    schedule = Schedule(config)
    return play(schedule, network, job, [0, 0], "--begin", config["lead"], "--end", schedule.end)
