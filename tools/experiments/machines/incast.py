# SPDX-License-Identifier: GPL-2.0
"""The incast of scripts/experiment on the hosts of a lab.

    s0 ---- +--------+
    s1 ---- | switch | ---- r       r requests each block, and measures with its own clock
    ...     +--------+

Only r's clock counts, so the hosts' clocks need not agree.
"""

import collections

from experiments.machines.lab_hosts import LabHosts, least_rtt, total
from experiments.traffic.incast import port_words
from lab import units

# The load generator aborts a round, or connecting, after this time, s.
_LIMIT = 60


class Incast(LabHosts):
    """The senders, and the receiver, which is the last of the lab's ends."""

    PROGRAM = "incast"
    SOURCES = {name: name for name in ("incast.c", "loadgen.c", "loadgen.h")}

    def idle(self, job):
        return {"cc": job["cc"], "flows": len(self.lab.senders), "bytes": 1, "rounds": 1}

    def port(self, _job):
        return port_words(self.config)

    def _options(self, job):
        """The load generator's options, which all hosts have alike."""
        return ["--address", self.lab.receiver.address, "--cc", units.cc_name(job["cc"]),
                "--flows", job["flows"], "--bytes", job.get("bytes", self.config["bytes"]),
                "--rounds", job.get("rounds", self.config["rounds"]),
                "--gap", self.config["gap"] // 1000, "--of", len(self.lab.senders),
                "--limit", _LIMIT]

    def generate(self, job):
        """The receiver's report, with the senders' TCP_INFO."""
        options = self._options(job)
        numbers = {host.name: number for number, host in enumerate(self.lab.senders)}
        seconds = (_LIMIT + self.config["gap"] / 1e9) * (self.config["rounds"] + 2)

        def start(session):
            only = numbers.get(session.host.name, "receiver")
            listens = only == "receiver"
            session.start(["incast", "--only", only, *options], rows=1 + listens)
            if listens:
                session.row(_LIMIT)

        self.sessions.each(start, [self.lab.receiver])
        self.sessions.each(start, self.lab.senders)
        *sent, result = self.sessions.each(lambda session: session.row(seconds), self.lab.ends)
        found = collections.Counter()
        for one in sent:
            found.update(one["tcp_info"])
        return dict(result, tcp_info=dict(found, min_rtt_us=least_rtt(sent)))

    def counted(self, changes):
        """The counters of the senders, of the receiver, and of the port to it."""
        *sent, received = changes
        port = self.port_stats(*self.ports[0]) if self.ports else []
        return {"senders": total(sent), "receiver": received, "port": port}
