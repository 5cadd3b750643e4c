# SPDX-License-Identifier: GPL-2.0
"""The incast of scripts/experiment on the hosts of a lab.

    s0 ---- +--------+
    s1 ---- | switch | ---- r       r requests each block, and measures with its own clock
    ...     +--------+

Only r's clock counts, so the hosts' clocks need not agree.  The session (far.py) restores sysctls,
routes and the queues of a Linux switch's ports.
"""

import base64
import collections
import os
import subprocess
import sys
import time

from experiments import pool
from experiments.machines import Refused, check
from experiments.machines.session import Dead, Sessions
from experiments.traffic.incast import port_words
from lab import TOP, units
from lab.measure.counters import Counters
from lab.net.hosts import values_for
from lab.net.network import HOST_SYSCTLS

_LOADGEN = TOP / "tools/experiments/traffic/loadgen"
_SOURCES = ("incast.c", "loadgen.c", "loadgen.h")
_COMPILE = ["cc", "-O2", "-std=gnu11", "incast.c", "loadgen.c", "-o"]
# The load generator aborts a round, or connecting, after this time, s.
_LIMIT = 60
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


def say(text):
    """A row on stderr."""
    print(f"experiment: {text}", file=sys.stderr, flush=True)


def _program(session):
    """Send the load generator, or compile it there."""
    if session.facts["machine"] == os.uname().machine:
        binary = (_LOADGEN / "incast-static").read_bytes()
        session.call("program", binary=base64.b64encode(binary).decode())
        return
    files = {name: (_LOADGEN / name).read_text(encoding="utf-8") for name in _SOURCES}
    done = session.call("compile", files=files, argv=_COMPILE)
    if done["status"]:
        raise Dead(f"{session.host.name}: {session.facts['machine']}, and its compiler failed:"
                   f" {done['err'].strip() or done['status']}")


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


class Incast:
    """Runs on a lab whose hosts are ready."""

    def __init__(self, sessions, lab, config):
        self.sessions, self.lab, self.config = sessions, lab, config
        self.ports = []         # (session, port) of switches that have the experiment's queue

    def prepare(self):
        """Load generators, routes with RTO_min, queues of the switches."""
        subprocess.run(["flock", _LOADGEN, "make", "-s", "-C", _LOADGEN, "incast-static"],
                       check=True, stdout=sys.stderr)
        self.sessions.each(_program, self.lab.ends)
        if self.config["rto_min"] != _LINUX_RTO_MIN:
            self.sessions.each(self._routes, self.lab.ends)
        for host in self.lab.of("switch"):
            for dev in host.ports:
                session = self.sessions[host]
                self._queue(session, dev, undo=["tc", "qdisc", "del", *_root(dev)])
                self.ports.append((session, dev))

    def _routes(self, session):
        """Routes to the host's peers, with RTO_min."""
        mine = session.host
        for peer in [self.lab.receiver] if mine.role == "sender" else self.lab.senders:
            route, = session.json("ip", "-j", "route", "get", peer.address)
            words = [peer.address, *_gateway(route), "dev", route["dev"]]
            session.run("ip", "route", "add", *words, *_kept(route),
                        "rto_min", f"{self.config['rto_min'] // 10**6}ms",
                        undo=["ip", "route", "del", *words])

    def _queue(self, session, dev, undo=None):
        """Add the experiment's queue to a switch port."""
        session.run("tc", "qdisc", "add", *_root(dev), *port_words(self.config).split(), undo=undo)

    def _fresh_ports(self):
        """Replace the queues, and so their counters."""
        for session, dev in self.ports:
            session.run("tc", "qdisc", "del", *_root(dev))
            self._queue(session, dev)

    def _settle(self, cc):
        """Set up the hosts for a congestion control."""
        settings = values_for(self.config, cc)[0]
        values = {f"net.ipv4.{name}": value for name, value in settings.items()}
        # A write to any greenlane_* would make the host active, and it would stay so.
        del values["net.ipv4.greenlane_ecn"]
        values.update(HOST_SYSCTLS)
        self.sessions.each(lambda session: session.sysctl(values), self.lab.ends)

    def _options(self, job):
        """The load generator's options, which all hosts have alike."""
        return ["--address", self.lab.receiver.address, "--cc", units.cc_name(job["cc"]),
                "--flows", job["flows"], "--bytes", job.get("bytes", self.config["bytes"]),
                "--rounds", job.get("rounds", self.config["rounds"]),
                "--gap", self.config["gap"] // 1000, "--of", len(self.lab.senders),
                "--limit", _LIMIT]

    def generate(self, job):
        """Run the load generators; the receiver's report, with the senders' TCP_INFO."""
        options = self._options(job)
        numbers = {host.name: number for number, host in enumerate(self.lab.senders)}
        seconds = (_LIMIT + self.config["gap"] / 1e9) * (self.config["rounds"] + 2)

        def start(session):
            only = numbers.get(session.host.name, "receiver")
            argv = ["incast", "--only", only, *options]
            if not session.start([str(word) for word in argv], only == "receiver"):
                session.wait(seconds)       # raises Dead, with the reason

        self.sessions.each(start, [self.lab.receiver])
        self.sessions.each(start, self.lab.senders)
        *sent, result = self.sessions.each(lambda session: session.wait(seconds), self.lab.ends)
        total = collections.Counter()
        for one in sent:
            total.update(one["tcp_info"])
        total["min_rtt_us"] = min(one["tcp_info"]["min_rtt_us"] for one in sent)
        return dict(result, tcp_info=total)

    def _port_stats(self):
        """tc's report of the port to the receiver, if a switch has one."""
        if not self.ports:
            return []
        session, dev = self.ports[0]
        qdiscs = session.json("tc", "-s", "-j", "qdisc", "show", "dev", dev)
        return [qdisc for qdisc in qdiscs if qdisc.get("root")]

    def run(self, job):
        """One congestion control, one fan-in; the result as the virtual experiment's."""
        began = time.monotonic()
        self._settle(job["cc"])
        self._fresh_ports()
        ends = self.lab.ends
        before = self.sessions.each(_device_counters, ends)
        counters = self.sessions.each(lambda session: Counters([session]), ends)
        result = self.generate(job)
        *sent, received = self.sessions.each(
            lambda session: counters[ends.index(session.host)].change(), ends)
        after = self.sessions.each(_device_counters, ends)
        result.update(job, senders=_sum(sent), receiver=received, port=self._port_stats(),
                      setup_s=0, cpu_s=None, real_s=round(time.monotonic() - began, 3), devices={
                          host.name: {key: new[key] - old[key] for key in new}
                          for host, old, new in zip(ends, before, after)})
        return result

    def rtt(self, cc):
        """The RTT of the idle network, ns: the senders' minimum, which includes both hosts' TCP."""
        self._settle(cc)
        found = self.generate({"cc": cc, "flows": len(self.lab.senders), "bytes": 1, "rounds": 1})
        return 1000 * max(1, found["tcp_info"]["min_rtt_us"])


def _device_counters(session):
    """{counter: value} of the device with the traffic."""
    paths = {name: f"/sys/class/net/{session.host.device}/statistics/{name}" for name in _DEVICE}
    texts = session.call("read", paths=list(paths.values()))["texts"]
    return {name: int(texts[path]) for name, path in paths.items() if texts[path]}


def _sum(changes):
    """The sums of several hosts' counters."""
    total = {}
    for change in changes:
        for kind, counts in change.items():
            total.setdefault(kind, collections.Counter()).update(counts)
    return total


def _checked(sessions, lab, config, ccs):
    """Print the table of the hosts; returns the rate of the links, or raises Refused."""
    found = sessions.each(lambda session: (session, check.look(session)))
    opened, facts = zip(*found) if found else ((), ())
    problems = sessions.errors + [one for session, of in found
                                  for one in check.problems(session, lab, config, ccs, of)]
    ends = [of for session, of in found if session.host.role != "switch"]
    problems += check.differences(ends)
    receiver = next((of for session, of in found if session.host.role == "receiver"), None)
    speed = ((receiver or {}).get("device") or {}).get("speed", -1)
    rate = lab.rate or (speed * 10**6 if speed > 0 else None)
    if receiver and not rate:
        problems.append(f"{lab.receiver.name}: {lab.receiver.device} reports no speed: set rate in"
                        " the file of the lab")
    if opened:
        print(check.table(opened, facts), end="\n\n", flush=True)
    for problem in problems:
        say(problem)
    if problems:
        raise Refused
    return rate


def measure(lab, config, jobs):
    """(the configuration with the lab's rate and delay, the results, errors).  Raises Refused
    before it changes a host."""
    results, progress, wrong = [], pool.Progress(jobs), []
    try:
        with Sessions(lab.hosts, wrong.append) as sessions:
            try:
                config["rate"] = _checked(sessions, lab, config, [job["cc"] for job in jobs])
                _run_all(Incast(sessions, lab, config), jobs, results, progress)
            except Dead as why:
                wrong.append(str(why))
            except subprocess.CalledProcessError:       # make has printed the reason
                wrong.append("the load generator was not built")
            finally:
                progress.clear()
    except KeyboardInterrupt:
        print(*(f"experiment: {one}\n" for one in dict.fromkeys(wrong)), sep="", end="",
              file=sys.stderr)
        raise
    # A host that died is reported by its request, and by the end of its session.
    return config, results, list(dict.fromkeys(wrong))


def _run_all(incast, jobs, results, progress):
    """All jobs, whose results are appended as they are complete."""
    incast.prepare()
    incast.config["delay"] = (incast.lab.rtt or incast.rtt(jobs[0]["cc"])) // 4
    for job in jobs:
        results.append(incast.run(job))
        progress.show(results)
