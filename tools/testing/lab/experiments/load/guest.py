# SPDX-License-Identifier: GPL-2.0
"""The guest's half: play a schedule on a network of switches."""

import socket

from lab import units
from lab.experiments.load import BELOW
from lab.experiments.load.schedule import Schedule
from lab.net import hosts
from lab.traffic.play import Fabric, play

network = Fabric


def _has(name):
    """Has the kernel that congestion control?"""
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return False
    return True


def run(network, config, job):
    """One congestion control or one mix, one load."""
    config = dict(config, **job)
    for name in filter(None, [*units.ccs(job["cc"]), job.get("others")]):
        if not _has(name):
            return dict(job, error=f"no congestion control {name}")
    hosts.settle(network, config, job["cc"], *job["settings"].split())
    network.fresh_ports(lambda *_: job["qdisc"].split(BELOW))
    schedule, ccs = Schedule(config), units.ccs(job["cc"])
    if "deployed" in job:
        hosts.deploy(network, *ccs, schedule.deployed(job["deployed"]), job["others"])
        ccs = [""]      # what the host has
    return play(schedule, network, job, [0, 0], "--begin", 0, "--end", schedule.end,
                "--limit", config["drain"], "--look", config["look"],
                *["--tcp-info"] * config["tcp_info"], ccs=ccs)
