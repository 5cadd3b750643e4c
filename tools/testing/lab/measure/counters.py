# SPDX-License-Identifier: GPL-2.0
"""The kernel's counters of one namespace, read from /proc and subtracted."""

from collections import Counter

from topology import read_in

# Of /proc/net/netstat and /proc/net/snmp: what the report speaks of.
WANTED = (
    "TCPTimeouts", "TCPLossProbes", "TCPLossProbeRecovery", "TCPFastRetrans",
    "TCPSlowStartRetrans", "TCPLostRetransmit", "TCPSpuriousRTOs",
    "TCPSynRetrans", "TCPBacklogDrop", "TCPRcvQDrop", "ListenDrops",
    "TCPOrigDataSent", "TCPDelivered", "TCPDeliveredCE", "RetransSegs",
    "TCPDSACKRecv", "TCPAbortOnTimeout", "TCPAutoCorking", "TCPKeepAlive",
    "OutSegs", "InSegs", "TCPOFOQueue", "TCPSACKReorder",
)


def _tcp(name):
    seen = {}
    for path in ("/proc/net/netstat", "/proc/net/snmp"):
        lines = read_in(name, path).splitlines()
        for keys, values in zip(lines[::2], lines[1::2]):
            group, *names = keys.split()
            if group in ("TcpExt:", "Tcp:"):
                seen.update(zip(names, values.split()[1:]))
    return {key: int(seen[key]) for key in WANTED if key in seen}


def _greenlane(name):
    try:
        text = read_in(name, "/proc/net/greenlane")
    except FileNotFoundError:
        return {}
    pairs = (line.split() for line in text.splitlines())
    return {p[0]: int(p[-1]) for p in pairs if len(p) == 2 and p[1].isdigit()}


def _softnet(name):
    columns = [line.split() for line in read_in(name, "/proc/net/softnet_stat").splitlines()]
    return {"softnet_drops": sum(int(c[1], 16) for c in columns)}


class Counters:
    """Counters of several namespaces, added up; `since` gives differences."""

    def __init__(self, names):
        self.tcp, self.greenlane = Counter(), Counter()
        for name in names:
            self.tcp.update(_tcp(name))
            self.greenlane.update(_greenlane(name))
        self.tcp.update(_softnet(names[0]))

    def since(self, before):
        """What has been counted since `before`, as plain dicts."""
        return {kind: {k: v - getattr(before, kind)[k]
                       for k, v in getattr(self, kind).items()}
                for kind in ("tcp", "greenlane")}
