#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the load experiment: build the fabric, play the schedule.

	run_load.py CONFIG.json

Each run is one line of JSON on stdout, printed as soon as it is done.
"""

import socket

import traffic
import units
from fabric import Fabric
from playing import play
from run import main, set_hosts
from topology import batch


def renew_ports(network, qdisc):
    """Fresh queues, with fresh counters, at all switches.  All of a switch have gone
    before one comes again, or their shared memory would be the old one."""
    for switch in network.switches:
        ports = network.ports(switch)
        batch("tc", switch, [f"qdisc replace dev {dev} root handle 9: pfifo" for dev in ports]
              + [f"qdisc replace dev {dev} root handle 2: {qdisc}" for dev in ports])


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
    for name in units.ccs(job["cc"]):
        if not _has(name):
            return dict(job, error=f"no congestion control {name}")
    set_hosts(network, config, job["cc"], *config["settings"])
    renew_ports(network, job["qdisc"])
    schedule = traffic.Schedule(config)
    return play(schedule, network, job, [0, 0], "--begin", 0, "--end", schedule.end,
                "--limit", config["drain"], "--look", config["look"])


if __name__ == "__main__":
    main("load", Fabric, run)
