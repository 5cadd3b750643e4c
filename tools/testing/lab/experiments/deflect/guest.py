#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the deflect experiment: build the leaf-spine, do the runs.

	run_deflect.py CONFIG.json

Each run is one line of JSON on stdout, printed as soon as it is done.
"""

import workload
from fabric import Fabric
from playing import play
from run import main, set_hosts
from topology import batch

# What the packets of short messages bear, of those for local use (RFC 2474, xxxx01), as
# long as nobody deflects them; and what ACKs bear: expedited forwarding, dart's its own.
SHORT, ACK, SHARE = 1, 46, 49
# What short messages may bear: the above, and all of include/net/gl_deflect.h.
SPENT = [53, 57]
SHORTS = [SHORT, *SPENT, *range(3, 64, 4)]


def port_qdisc(config, ports):
    """A switch port's queue, in tc's words: ACKs first, and only short packets counted green."""
    colour = " ".join([f"map {SHARE} yellow", *(f"map {dscp} green" for dscp in SHORTS)])
    first = {"pri-q": SHORTS, "escape": SPENT}.get(ports, [])
    bands = " ".join([f"bands 3 prio {ACK} 0 prio {SHARE} 0"] + [f"prio {d} 1" for d in first])
    return (f"color rate {config['rate']}bit limit {config['limit']} ecn {config['ecn']}"
            f" {bands} {colour}")


def renew_ports(network, config, ports):
    """Fresh queues, with fresh counters, at all switches."""
    qdisc = config["port"] or port_qdisc(config, ports)
    for switch in network.switches:
        lines = []
        for dev in network.ports(switch):
            others = network.deflections(switch, dev) if ports in ("deflect", "escape") else []
            lines.append(f"qdisc replace dev {dev} root handle 9: pfifo")
            if others:
                ways = " ".join(f"deflect dev {other} via {hop}" for other, hop in others)
                lines += [f"qdisc replace dev {dev} root handle 1: iofd threshold"
                          f" {config['threshold']} entries {config['entries']} seed"
                          f" {config['seed']} {ways}",
                          f"qdisc add dev {dev} parent 1:1 handle 2: {qdisc}"]
            else:
                lines.append(f"qdisc replace dev {dev} root handle 2: {qdisc}")
        batch("tc", switch, lines)


def run(network, config, job):
    """One congestion control, one load, one kind of switch port."""
    set_hosts(network, config, job["cc"], *config["sysctl"])
    renew_ports(network, config, job["ports"])
    schedule = workload.Schedule(config, job["load"])
    options = [word for option in config["option"] for word in ("--option", option)]
    return play(schedule, network, job, [SHORT << 2, 0], "--begin", config["warm_up"], "--end",
                schedule.end, "--ack-tos", ACK << 2, "--limit", config["drain"], *options)


if __name__ == "__main__":
    main("deflect", Fabric, run)
