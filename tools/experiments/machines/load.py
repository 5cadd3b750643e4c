# SPDX-License-Identifier: GPL-2.0
"""The load of scripts/experiment on the hosts of a lab, each of which sends to all others.

A host requests each flow, and measures the time until its answer is complete with its own clock: so
the hosts' clocks need not agree.  The schedule begins on all hosts within the time of a message over
ssh.
"""

from experiments.kinds.load import schedule as traffic
from experiments.machines.lab_hosts import LabHosts, least_rtt, total
from experiments.traffic.play import SYSCTLS, sums
from lab import units

# The load generators wait for each other's connections, and at the end for each other, at most so
# long beside the schedule itself, s.
_LIMIT = 120


class _Addresses:
    """The lab's hosts as the network of a schedule, whose switches it does not sample."""

    switches = ()

    def __init__(self, hosts):
        self._addresses = {f"h{number}": host.address for number, host in enumerate(hosts)}
        self.hosts = list(self._addresses)

    def address(self, name):
        """A host's address."""
        return self._addresses[name]


class Load(LabHosts):
    """All ends of the lab, at one switch."""

    PROGRAM, SYSCTLS = "play", SYSCTLS
    SOURCES = {name: name for name in (
        "play.c", "play.h", "schedule.c", "ends.c", "queues_absent.c", "loadgen.c", "loadgen.h")}
    SOURCES["linux/greenlane.h"] = "../../../../include/uapi/linux/greenlane.h"

    def idle(self, job):
        """Some short answers, one after the other."""
        return dict(job, background=0, incasts=10, senders=1, each=1, bytes=1000, foreground=100,
                    load=1)

    def port(self, job):
        return job["qdisc"]

    def generate(self, job):
        """The report of all hosts, as that of one process."""
        config = dict(self.config, **job)
        plan, ends = traffic.Schedule(config), self.lab.ends
        text = plan.text(_Addresses(ends), 0, 0, ccs=units.ccs(job["cc"]))
        seconds = _LIMIT + (plan.end + config["drain"]) / 1e9
        options = ["--begin", 0, "--end", max(plan.end, 1), "--limit", config["drain"],
                   *["--tcp-info"] * config["tcp_info"], "--schedule"]

        def start(session):
            session.start(["play", "--only", ends.index(session.host), *options], 3, text)
            session.row(_LIMIT)

        def finish(session):
            session.call("tell")
            return session.row(_LIMIT)

        self.sessions.each(start, ends)
        self.sessions.each(lambda session: session.call("tell"), ends)
        self.sessions.each(lambda session: session.row(seconds), ends)
        return merged(self.sessions.each(finish, ends))

    def counted(self, changes):
        """The counters of all hosts, and of all ports."""
        stats = [qdisc for port in self.ports for qdisc in self.port_stats(*port)]
        return {"counters": total(changes), "switches": {"p": sums(stats)}}


def merged(reports):
    """The report of several hosts' load generators: a flow's times are of the host that has them,
    and 0 elsewhere."""
    found = dict(reports[0])
    for key in {"fct_ns", "rtt_us", "rttvar_us"} & found.keys():
        found[key] = [max(times) for times in zip(*(one[key] for one in reports))]
    for key in ("bytes", "retrans", "sent", "resent", "ends"):
        found[key] = {name: sum(one[key][name] for one in reports) for name in found[key]}
    found["late_ns"] = {key: max(one["late_ns"][key] for one in reports) for key in ("mean", "max")}
    found["memory"] = max(one["memory"] for one in reports)
    found["tcp_info"] = {"min_rtt_us": least_rtt(reports)}
    return found
