# SPDX-License-Identifier: GPL-2.0
"""The guest's half: build the leaf-spine, play a schedule on it."""

from lab.codepoints import SHARE, SHORT, SPENT, SPENT_END
from lab.experiments.deflect.schedule import Schedule
from lab.net import hosts
from lab.traffic.play import Fabric, play

network = Fabric

# What the packets of short messages bear, of those for local use (RFC 2474, xxxx01), until a
# switch deflects them; and what ACKs bear: expedited forwarding, dart's its own.
PLAIN, ACK = 1, 46
# What short messages may bear: the above, and what iofd makes of it.
SPENT_ONES = [SPENT.dscp, SPENT_END.dscp]
SHORTS = [PLAIN, *SPENT_ONES, *SHORT]


def port_qdisc(config, ports):
    """A switch port's queue, in tc's words: ACKs first, and only short packets counted green."""
    colour = " ".join([f"map {SHARE.dscp} yellow", *(f"map {dscp} green" for dscp in SHORTS)])
    first = {"pri-q": SHORTS, "escape": SPENT_ONES}.get(ports, [])
    bands = " ".join([f"bands 3 prio {ACK} 0 prio {SHARE.dscp} 0"] + [f"prio {d} 1" for d in first])
    return (f"color rate {config['rate']}bit limit {config['limit']} ecn {config['ecn']}"
            f" {bands} {colour}")


def _words(network, config, ports):
    """A function for fresh_ports(): the queue of a port, and iofd over it if it deflects."""
    qdisc = config["port"] or port_qdisc(config, ports)

    def words(switch, dev):
        others = network.deflections(switch, dev) if ports in ("deflect", "escape") else []
        ways = " ".join(f"deflect dev {other} via {hop}" for other, hop in others)
        iofd = (f"iofd threshold {config['threshold']} entries {config['entries']} seed"
                f" {config['seed']} {ways}")
        return [iofd, qdisc] if others else [qdisc]
    return words


def run(network, config, job):
    """One congestion control, one load, one kind of switch port."""
    hosts.settle(network, config, job["cc"], *config["sysctl"])
    network.fresh_ports(_words(network, config, job["ports"]))
    schedule = Schedule(config, job["load"])
    options = [word for option in config["option"] for word in ("--option", option)]
    options += ["--look-ahead"] * config["look_ahead"]
    return play(schedule, network, job, [PLAIN << 2, 0], "--begin", config["warm_up"], "--end",
                schedule.end, "--ack-tos", ACK << 2, "--limit", config["drain"], *options)
