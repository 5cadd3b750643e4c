# SPDX-License-Identifier: GPL-2.0
"""The network of an incast: N senders to one receiver, through one switch port.

    s0: eth0 ---- p0 :sw: p8 ---- eth0 :r
    s1: eth0 ---- p1 :  :
    ...              :  :
    s7: eth0 ---- p7 :  :

A host's NIC adds the delay of both links of the path, so that the switch port has no delay, and
the base round-trip time is 4 D.  In a paused fabric the links have the delay (net/network.py).
"""

import json
import pathlib
import random
import resource
import subprocess
import tempfile

from lab import units
from lab.measure.capture import Capture
from lab.measure.counters import Counters
from lab.net import hosts, modules
from lab.net.libc import exact_timers
from lab.net.network import Network
from lab.net.port import pausing, shown
from lab.net.topology import RECEIVER

_LOADGEN = pathlib.Path(__file__).resolve().parent / "loadgen/incast"


def port_words(config):
    """A switch port's queue, as arguments for tc."""
    if config["port"]:
        return config["port"]
    # If all packets count for a pause, PFC prevents all losses: no colour threshold.
    red = f" red {config['red']}" if config.get("pause") != "all" else ""
    return (f"color rate {config['rate']}bit limit {config['limit']}{red} ecn {config['ecn']}"
            + pausing(config.get("pause"), config["delay"]))


class Incast(Network):
    """The network; every switch port has the configuration's queue."""

    def __init__(self, config):
        super().__init__(dict(config, topology="incast", nic_delay=2 * config["delay"]))
        self.senders = self.hosts[:-1]
        self.receiver = RECEIVER

    def build(self):
        super().build()
        self.fresh_ports(lambda *_: [port_words(self.config)])

    def fresh_port(self, words=None):
        """Replace the queue of the port to the receiver, and its counters."""
        self.fresh_ports(lambda *_: [words or port_words(self.config)],
                         [self.port_of(self.receiver)])

    def port_stats(self):
        """tc's report of the port to the receiver."""
        switch, dev = self.port_of(self.receiver)
        return [qdisc for qdisc in shown(dev, self.ns[switch]) if qdisc.get("root")]

    def pauses(self):
        """{"pauses": the number of frames by which the switch has paused the hosts, "paused": the
        time for which it has, ns, in sum}; empty if its ports do not pause."""
        if not self._paused:
            return {}
        switch, _ = self.port_of(self.receiver)
        return {"pauses": sum(report["off"] for report in self._pause_of(switch)),
                # A frame may name several priorities.
                "paused": sum(max(report["paused"].values(), default=0)
                              for host in self.hosts for report in self._pause_of(host))}

    def _pause_of(self, name):
        """What the ports of a host or switch report about pauses."""
        return [qdisc["pause"] for qdisc in shown(ns=self.ns[name]) if "pause" in qdisc]


def built(config):
    """The network, in a guest whose program has a socket for each of thousands of flows."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
    exact_timers()
    modules.load_all()
    network = Incast(config)
    network.build()
    return network


def starts(config, flows):
    """For each repetition, the starts of its flows, ns: uniform in 0 ... spread."""
    rng = random.Random(config["seed"])
    return [[rng.randint(0, config["spread"]) for _ in range(flows)]
            for _ in range(config["rounds"])]


def generate(network, config, job):
    """Run the load generator; returns its report.  With a `spread` each flow has its own start,
    which does not depend on the congestion control."""
    if not config.get("spread"):
        return _generate(network, config, job)
    with tempfile.NamedTemporaryFile("w", suffix=".starts") as file:
        for one in starts(config, job["flows"]):
            print(*one, file=file)
        file.flush()
        return _generate(network, config, job, "--starts", file.name)


def _generate(network, config, job, *options):
    command = [_LOADGEN, "--receiver", network.receiver, "--address",
               network.address(network.receiver), "--cc", units.cc_name(job["cc"]),
               "--flows", job["flows"], "--bytes", config["bytes"],
               "--rounds", config["rounds"], "--gap", config["gap"] // 1000,
               "--bulk", config["bulk"], "--lead", config["lead"] // 1000,
               "--duration", config["duration"] // 1000]
    command += ["--fresh"] * config["fresh"] + ["--request"] * config.get("request", False)
    command += options
    for sender in network.senders:
        command += ["--sender", sender]
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        return {"error": f"the load generator failed ({done.returncode})"}
    return json.loads(done.stdout)


def run(network, config, job, load=generate, look=None):
    """One congestion control, one number of flows.

    A job may override parts of the configuration.  look(packets, config) computes additional
    results from a capture at the receiver's port.
    """
    config = dict(config, **job)
    hosts.settle(network, config, job["cc"])
    network.fresh_port(job.get("qdisc"))
    pauses = network.pauses()
    senders = Counters(network.ns[name] for name in network.senders)
    receiver = Counters([network.ns[network.receiver]])
    capture = Capture(network, network.receiver) if look else None
    result = load(network, config, job)
    result.update(job)
    if look:
        packets = capture.stop()
        if "error" not in result:
            result.update(look(packets, config))
    result["senders"] = senders.change()
    result["receiver"] = receiver.change()
    result["port"] = network.port_stats()
    result.update((name, now - pauses[name]) for name, now in network.pauses().items())
    return result
