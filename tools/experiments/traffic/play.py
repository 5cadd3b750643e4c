# SPDX-License-Identifier: GPL-2.0
"""In the guest: play a schedule on a network, and read the counters of its hosts and ports."""

import collections
import json
import operator
import pathlib
import subprocess
import tempfile

from lab import units
from lab.measure.counters import Counters
from lab.net.network import Network
from lab.net.port import shown

PROGRAM = pathlib.Path(__file__).resolve().parent / "loadgen/play"
# Thousands of flows wait at a host.
SYSCTLS = {"net.ipv4.tcp_notsent_lowat": 1 << 20}


class Fabric(Network):
    """A network for schedules of many flows."""

    def __init__(self, config):
        super().__init__(dict(config, sysctls=SYSCTLS))


def _numbers(tree, name=""):
    """(path, number) of all numbers of a JSON tree; the path is names joined by dots."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _numbers(value, f"{name}.{key}".lstrip("."))
    elif isinstance(tree, int) and not isinstance(tree, bool):
        yield name, tree


def _kinds(qdisc):
    """The names under which a qdisc's counters are summed: its kind; below a class also with it."""
    parent = qdisc.get("parent", "1:1")
    return [qdisc["kind"]] + [f"{qdisc['kind']} {parent}"] * (parent != "1:1")


def sums(qdiscs):
    """The counters of these qdiscs: {kind: {name: n}}.  Peaks are maxima, all others sums; qdiscs in
    classes are also summed by class."""
    found = {}
    for qdisc in qdiscs:
        stats = {k: v for k, v in qdisc.items() if k != "options"}
        for kind in _kinds(qdisc):
            total = found.setdefault(kind, collections.Counter())
            for name, value in _numbers(stats):
                total[name] = (max if "peak" in name else operator.add)(total[name], value)
    return found


def port_stats(network):
    """The sums() of the ports towards hosts (p), up and down (d): {role: {qdisc: {name: n}}}."""
    ports = {role: [] for role in ("p", "up", "d")}
    for switch in network.switches:
        for qdisc in shown(ns=network.ns[switch]):
            role = qdisc["dev"].rstrip("0123456789")
            if role in ports and qdisc["kind"] != "ingress":
                ports[role].append(qdisc)
    return {role: sums(qdiscs) for role, qdiscs in ports.items()}


def _generate(text, options):
    """Run loadgen/play; returns its report."""
    with tempfile.NamedTemporaryFile("w", suffix=".schedule") as file:
        file.write(text)
        file.flush()
        command = [PROGRAM, "--schedule", file.name, *options]
        done = subprocess.run([str(word) for word in command], text=True,
                              stdout=subprocess.PIPE, check=False)
    if done.returncode or not done.stdout:
        return {"error": f"the load generator failed ({done.returncode})"}
    return json.loads(done.stdout)


def play(schedule, network, job, tos, *options, ccs=None):
    """Play the schedule, with the TOS bytes `tos` of the packets of its kinds, and the congestion
    controls `ccs` (default: the job's).  Returns the load generator's report, with the counters of
    hosts and ports."""
    counters = Counters(network.ns[name] for name in network.hosts)
    text = schedule.text(network, *tos, ccs=ccs or units.ccs(job["cc"]))
    result = _generate(text, options)
    result.update(job)
    result["counters"] = counters.change()
    result["switches"] = port_stats(network)
    return result
