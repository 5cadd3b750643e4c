# SPDX-License-Identifier: GPL-2.0
"""The hosts of a lab during an experiment: the common part of incast.py and load.py.

The session (far.py) restores sysctls, routes and the queues of a Linux switch's ports.
"""

import base64
import collections
import os
import shlex
import subprocess
import sys
import time

from experiments.machines.session import Dead
from lab import TOP
from lab.measure.counters import Counters
from lab.net.hosts import values_for
from lab.net.network import HOST_SYSCTLS

_LOADGEN = TOP / "tools/experiments/traffic/loadgen"
_COMPILE = ["cc", "-O2", "-std=gnu11", "-I."]
# Linux's RTO_min, ns, with which routes need no option.
_LINUX_RTO_MIN = 200 * 10**6
# Metrics of routes, by their keys in ip's JSON, as words of `ip route`
_METRICS = {**{name: name for name in ("mtu", "advmss", "window", "hoplimit", "initcwnd",
                                       "initrwnd", "quickack", "reordering")},
            "congestion": "congctl", "ecn": "features ecn"}
# The handle of the experiment's queues: "gl" in ASCII.
_HANDLE = "676c:"
_DEVICE = [f"{way}_{count}" for way in ("rx", "tx")
           for count in ("bytes", "packets", "dropped", "errors")]


def _root(dev):
    """The words of a port's queue.  The kernel compares the handle, so a qdisc that an operator has
    set meanwhile is not deleted."""
    return ["dev", dev, "root", "handle", _HANDLE]


def _gateway(route):
    """The words of a route's gateway, which may have another IP version (RFC 5549)."""
    if "via" in route:
        return ["via", route["via"]["family"], route["via"]["host"]]
    return ["via", route["gateway"]] if "gateway" in route else []


def _kept(route):
    """The words of a route's source address and metrics, which a more specific route would hide."""
    words = ["src", route["prefsrc"]] if "prefsrc" in route else []
    for metrics in route.get("metrics", ()):
        for name in _METRICS.keys() & metrics.keys():
            words += _METRICS[name].split() + [str(metrics[name])] * (metrics[name] is not None)
    return words


class LabHosts:
    """The hosts of a lab that is ready; a subclass has the traffic.

    PROGRAM     the load generator, and SOURCES its files, {name there: path here}
    SYSCTLS     beside those of all experiments
    idle(job)   a job whose packets find no queue, with the ports of this one
    port(job)   the words of tc for a switch port
    generate(job)       the load generators' report
    counted(...)        a job's counters, as keys of its result
    """

    PROGRAM, SOURCES, SYSCTLS = None, {}, {}

    def __init__(self, sessions, lab, config):
        self.sessions, self.lab, self.config = sessions, lab, config
        self.ports = []         # (session, port) of switches that have the experiment's queue

    def prepare(self):
        """Load generators, and routes with RTO_min."""
        static = f"{self.PROGRAM}-static"
        subprocess.run(["flock", _LOADGEN, "make", "-s", "-C", _LOADGEN, static],
                       check=True, stdout=sys.stderr)
        self.sessions.each(self._program, self.lab.ends)
        if self.config["rto_min"] != _LINUX_RTO_MIN:
            self.sessions.each(self._routes, self.lab.ends)

    def _program(self, session):
        """Send the load generator, or compile it there."""
        if session.facts["machine"] == os.uname().machine:
            binary = (_LOADGEN / f"{self.PROGRAM}-static").read_bytes()
            session.call("program", binary=base64.b64encode(binary).decode())
            return
        files = {name: (_LOADGEN / path).read_text(encoding="utf-8")
                 for name, path in self.SOURCES.items()}
        done = session.call("compile", files=files, argv=self.compile_words())
        if done["status"]:
            raise Dead(f"{session.host.name}: {session.facts['machine']}, and its compiler failed:"
                       f" {done['err'].strip() or done['status']}")

    @classmethod
    def compile_words(cls):
        """The command that compiles SOURCES, up to the name of the program."""
        return [*_COMPILE, *(name for name in cls.SOURCES if name.endswith(".c")), "-o"]

    def _routes(self, session):
        """Routes to the host's peers, with RTO_min."""
        for peer in self.lab.peers(session.host):
            route, = session.json("ip", "-j", "route", "get", peer.address)
            words = [peer.address, *_gateway(route), "dev", route["dev"]]
            session.run("ip", "route", "add", *words, *_kept(route),
                        "rto_min", f"{self.config['rto_min'] // 10**6}ms",
                        undo=["ip", "route", "del", *words])

    def _fresh_ports(self, words):
        """Replace the queues of the switches' ports, and so their counters."""
        ports = [(self.sessions[host], dev) for host in self.lab.of("switch") for dev in host.ports]
        for session, dev in ports:
            gone = ["tc", "qdisc", "del", *_root(dev)]
            add = ["tc", "qdisc", "add", *_root(dev), *words]
            if (session, dev) in self.ports:
                # One command: between two, the session's end would find no queue to remove.
                session.run("sh", "-c", f"{shlex.join(gone)} && {shlex.join(add)}")
            else:
                session.run(*add, undo=gone)
                self.ports.append((session, dev))

    def _settle(self, job):
        """Set up hosts and switches for a job."""
        settings, given = values_for(self.config, job["cc"])
        values = {f"net.ipv4.{name}": value for name, value in settings.items()}
        # A write to any greenlane_* would make the host active, and it would stay so.
        if "greenlane_ecn" not in given:
            del values["net.ipv4.greenlane_ecn"]
        values.update(HOST_SYSCTLS, **self.SYSCTLS)
        self.sessions.each(lambda session: session.sysctl(values), self.lab.ends)
        self._fresh_ports(self.port(job).split())

    def port_stats(self, session, dev):
        """tc's report of a switch port with the experiment's queue."""
        qdiscs = session.json("tc", "-s", "-j", "qdisc", "show", "dev", dev)
        return [qdisc for qdisc in qdiscs if qdisc.get("root")]

    def run(self, job):
        """The result of a job, as the virtual experiment's."""
        began = time.monotonic()
        self._settle(job)
        ends = self.lab.ends
        before = self.sessions.each(_device_counters, ends)
        counters = self.sessions.each(lambda session: Counters([session]), ends)
        result = self.generate(job)
        changes = self.sessions.each(
            lambda session: counters[ends.index(session.host)].change(), ends)
        after = self.sessions.each(_device_counters, ends)
        result.update(job, **self.counted(changes), setup_s=0, cpu_s=None,
                      real_s=round(time.monotonic() - began, 3), devices={
                          host.name: {key: new[key] - old[key] for key in new}
                          for host, old, new in zip(ends, before, after)})
        return result

    def rtt(self, job):
        """The RTT of the idle network, ns: the senders' minimum, which includes both hosts' TCP."""
        job = self.idle(job)
        self._settle(job)
        return 1000 * max(1, self.generate(job)["tcp_info"]["min_rtt_us"])


def least_rtt(reports):
    """The minimum RTT of several hosts' senders, us."""
    return min(one["tcp_info"]["min_rtt_us"] for one in reports)


def _device_counters(session):
    """{counter: value} of the device with the traffic."""
    paths = {name: f"/sys/class/net/{session.host.device}/statistics/{name}" for name in _DEVICE}
    texts = session.call("read", paths=list(paths.values()))["texts"]
    return {name: int(texts[path]) for name, path in paths.items() if texts[path]}


def total(changes):
    """The sums of several hosts' counters."""
    found = {}
    for change in changes:
        for kind, counts in change.items():
            found.setdefault(kind, collections.Counter()).update(counts)
    return found
