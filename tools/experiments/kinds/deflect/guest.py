# SPDX-License-Identifier: GPL-2.0
"""The guest's half: play a schedule on a network of two or three tiers."""

from experiments.kinds.deflect import DEFLECTING
from experiments.kinds.deflect.schedule import Schedule
from experiments.traffic.play import Fabric, play
from lab.codepoints import SHARE, SHORT, SPENT, SPENT_END, is_whole
from lab.net import hosts
from lab.net.port import pausing

network = Fabric

# The DSCP of short messages until a switch deflects them, a codepoint for local use (RFC 2474,
# xxxx01), and the DSCP of ACKs, expedited forwarding; dart's ACKs have their own.
PLAIN, ACK = 1, 46
# All DSCPs of short messages: the above, and iofd's.
SPENT_ONES = [SPENT.dscp, SPENT_END.dscp]
SHORTS = [PLAIN, *SPENT_ONES, *SHORT]
# Short messages that a switch has deflected: they arrive without one of dart's four tokens, or none.
DEFLECTED = [*SPENT_ONES, *(dscp for dscp in SHORT if not is_whole(dscp))]


def _colours(ports):
    """{DSCP: colour}.  Only short packets are green, so that they have counters of their own.  At a
    port whose deflected packets may be lost, these are red, and all others are green."""
    if ports == "lossy":
        return {dscp: "red" if dscp in DEFLECTED else "green" for dscp in range(64)}
    return {SHARE.dscp: "yellow", **dict.fromkeys(SHORTS, "green")}


def port_qdisc(config, ports):
    """A switch port's queue, as arguments for tc: ACKs first."""
    colour = " ".join(f"map {dscp} {name}" for dscp, name in _colours(ports).items())
    first = {"pri-q": SHORTS, "escape": SPENT_ONES}.get(ports, [])
    bands = " ".join([f"bands 3 prio {ACK} 0 prio {SHARE.dscp} 0"] + [f"prio {d} 1" for d in first])
    pause = pausing(config["pause"] and ("green" if ports == "lossy" else "all"), config["delay"])
    pause += f" xoff {config['xoff']}" * bool(pause)
    # `pause green` requires thresholds of both other colours; nothing is yellow here.
    pause += f" red {config['lossy']} yellow {config['lossy']}" * (ports == "lossy")
    return (f"color rate {config['rate']}bit limit {config['limit']} ecn {config['ecn']}"
            f" {bands} {colour}{pause}")


def _words(network, config, ports):
    """A function for fresh_ports(): the queue of a port, below iofd if the port deflects."""
    qdisc = config["port"] or port_qdisc(config, ports)

    def words(switch, dev):
        others = network.deflections(switch, dev) if ports in DEFLECTING else []
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
