#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the deflect experiment: build the leaf-spine, do the runs.

	run_deflect.py CONFIG.json

Each run is one line of JSON on stdout, printed as soon as it is done.
"""

import collections
import json
import operator
import pathlib
import subprocess
import tempfile

import workload
from counters import Counters
from leafspine import LeafSpine
from run import main
from topology import batch, enter, write_sysctl

PLAY = pathlib.Path(__file__).resolve().parent.parent / "loadgen/play"
# What the packets of short messages bear, of those for local use (RFC 2474, xxxx01), as
# long as nobody deflects them; and what ACKs bear: expedited forwarding, dart's its own.
SHORT, ACK, SHARE = 1, 46, 49
# What short messages may bear: the above, and all of include/net/gl_deflect.h.
SPENT = [53, 57]
SHORTS = [SHORT, *SPENT, *range(3, 64, 4)]


def port_qdisc(config, ports):
    """A switch port's queue, in tc's words: ACKs first, short packets counted green."""
    colour = " ".join(f"map {dscp} green" for dscp in SHORTS)
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


def _numbers(tree, name=""):
    """All numbers of a tree of JSON, by the names on the way to them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _numbers(value, f"{name}.{key}".lstrip("."))
    elif isinstance(tree, int) and not isinstance(tree, bool):
        yield name, tree


def port_stats(network):
    """Sums (of peaks the highest) over the ports towards hosts, up and down, by qdisc."""
    sums = {role: {} for role in ("p", "up", "d")}
    for switch in network.switches:
        shown = subprocess.run(["tc", "-n", switch, "-j", "-s", "qdisc", "show"], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        for qdisc in json.loads(shown):
            role = qdisc["dev"].rstrip("0123456789")
            if role in sums and qdisc["kind"] != "ingress":
                stats = {k: v for k, v in qdisc.items() if k != "options"}
                kind = sums[role].setdefault(qdisc["kind"], collections.Counter())
                for name, value in _numbers(stats):
                    kind[name] = (max if "peak" in name else operator.add)(kind[name], value)
    return sums


def play(network, config, job, schedule):
    """Run the load generator once; returns its report."""
    with tempfile.NamedTemporaryFile("w", suffix=".schedule") as file:
        file.write(schedule.text(network, SHORT << 2))
        file.flush()
        command = [PLAY, "--schedule", file.name, "--begin", config["warm_up"],
                   "--end", schedule.end, "--cc", job["cc"].split(":")[0],
                   "--ack-tos", ACK << 2, "--limit", config["drain"]]
        for option in config["option"]:
            command += ["--option", option]
        done = subprocess.run([str(word) for word in command], text=True,
                              stdout=subprocess.PIPE, check=False)
    if done.returncode or not done.stdout:
        return {"error": f"the load generator failed ({done.returncode})"}
    return json.loads(done.stdout)


def run(network, config, job):
    """One congestion control, one load, one kind of switch port."""
    sysctls = {"net/ipv4/tcp_ecn": "1" if "dctcp" in job["cc"] else "0",
               "net/ipv4/dcqcn_rate": str(config["rate"] // 10**6)}
    for setting in config["sysctl"] + job["cc"].split(":")[1:]:
        name, value = setting.split("=")
        sysctls[f"net/ipv4/{name}"] = value
    for host in network.hosts:
        for key, value in sysctls.items():
            write_sysctl(host, key, value)
    enter(None)
    renew_ports(network, config, job["ports"])
    schedule = workload.Schedule(config, job["load"])
    before = Counters(network.hosts)
    enter(None)
    result = play(network, config, job, schedule)
    result.update(job)
    result["counters"] = Counters(network.hosts).since(before)
    enter(None)
    result["switches"] = port_stats(network)
    return result


if __name__ == "__main__":
    main("deflect", LeafSpine, run)
