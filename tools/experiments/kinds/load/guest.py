# SPDX-License-Identifier: GPL-2.0
"""The guest's half: play a schedule on a network of switches."""

import collections
import functools
import socket

from experiments.kinds.incast.segments import deliveries
from experiments.kinds.load import BELOW, beside_ns
from experiments.kinds.load.schedule import Schedule
from experiments.traffic.play import Fabric, play
from lab import units
from lab.measure.capture import Ends, is_chosen
from lab.net import hosts

network = Fabric


def _has(name):
    """Whether the kernel has this congestion control."""
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return False
    return True


# Payload of a packet, rounded down; a host's packets outside of messages; and the capture's room
# divided by the number of the messages' packets: the rest is for retransmissions.
_PAYLOAD, _OTHERS, _ROOM = 1400, 1024, 1.5


def _room(network, schedule, percent):
    """{host: maximum number of frames at its port}, for Ends."""
    packets = collections.Counter()
    for message in schedule.messages + schedule.answers:
        wire = schedule.connections[message.connection]
        client = wire if wire.reversed is None else schedule.connections[wire.reversed]
        if is_chosen(client.port, percent):
            number = message.bytes // _PAYLOAD + 1
            # A switch also receives each packet from its ifb, after the link's delay.
            packets.update({wire.src: 2 * number, wire.dst: number})
    return {name: round(_ROOM * packets[number]) + _OTHERS
            for number, name in enumerate(network.hosts)}


def _segments(network, config, ends):
    """The number of segments of each delivery time, ns to four digits, and of those without one."""
    between = functools.cache(network.switches_between)
    times, lost = collections.Counter(), 0
    for src, dst, packets in ends.flows():
        for time in deliveries(packets, beside_ns(config, between(src, dst))):
            if time is None:
                lost += 1
            else:
                times[round(float(f"{time:.4g}"))] += 1
    return {"times": times, "lost": lost}


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
        ccs = [""]      # the host's default
    percent = config["segments"]
    ends = Ends(network, percent, _room(network, schedule, percent)) if percent else None
    result = play(schedule, network, job, [0, 0], "--begin", 0, "--end", schedule.end,
                  "--limit", config["drain"], "--look", config["look"],
                  *["--tcp-info"] * config["tcp_info"], ccs=ccs)
    if ends:
        try:
            result["segments"] = _segments(network, config, ends)
        except OSError as why:
            return dict(job, error=str(why))
    return result
