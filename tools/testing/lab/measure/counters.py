# SPDX-License-Identifier: GPL-2.0
"""The kernel's counters of some namespaces, read from /proc and subtracted."""

from collections import Counter

# TCP's counters in the reports.
WANTED = (
    "TCPTimeouts", "TCPLossProbes", "TCPLossProbeRecovery", "TCPFastRetrans",
    "TCPSlowStartRetrans", "TCPLostRetransmit", "TCPSpuriousRTOs",
    "TCPSynRetrans", "TCPBacklogDrop", "TCPRcvQDrop", "ListenDrops",
    "TCPOrigDataSent", "TCPDelivered", "TCPDeliveredCE", "RetransSegs",
    "TCPDSACKRecv", "TCPAbortOnTimeout", "TCPAutoCorking", "TCPKeepAlive",
    "OutSegs", "InSegs", "TCPOFOQueue", "TCPSACKReorder",
)


def _softnet_drops(ns):
    columns = [line.split() for line in ns.read("/proc/thread-self/net/softnet_stat").splitlines()]
    return sum(int(c[1], 16) for c in columns)


class Counters:
    """The sums of several namespaces' counters."""

    def __init__(self, namespaces):
        self._namespaces = list(namespaces)
        self._before = self._read()

    def _read(self):
        tcp, greenlane = Counter(), Counter()
        for ns in self._namespaces:
            seen = ns.tcp()
            tcp.update({name: seen[name] for name in WANTED if name in seen})
            try:
                greenlane.update(ns.greenlane())
            except FileNotFoundError:       # the module is not loaded
                pass
        # The same in every namespace: the kernel counts per processor.
        tcp["softnet_drops"] = _softnet_drops(self._namespaces[0])
        return {"tcp": tcp, "greenlane": greenlane}

    def change(self):
        """The increments since this object was made: {"tcp": {name: n}, "greenlane": {name: n}}."""
        now = self._read()
        return {kind: {name: value - before[name] for name, value in now[kind].items()}
                for kind, before in self._before.items()}
