# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the hooks benchmark: what a connection of another congestion control pays.

	python3 -m lab.bench.hooks BENCH_MODULE

Three namespaces, each with a connection of cubic to itself: one without any hook, one with a
hook that does nothing, one that uses greenlane.  Prints one line of JSON:
{dscp: {"out" or "in": {namespace: cycles of a packet, in the best turn}}}.
"""

import json
import re
import socket
import subprocess
import sys

from lab.net import modules
from lab.net.namespace import CC, Namespace

NAMESPACES = ("none", "empty", "greenlane")
# Best effort, and what stock OpenSSH used for its terminals: a codepoint that drop
# precedences and other programs' marks share.
DSCPS = (0, 18)


def connection(ns):
    """Both ends of a connection in a namespace."""
    with ns, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        client = socket.socket()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        client.connect(listener.getsockname())
        return client, listener.accept()[0]


def cycles(module, fds, dscp):
    """{direction: {namespace: cycles}}"""
    subprocess.run(["insmod", module, "fds=" + ",".join(map(str, fds.values())),
                    f"empty={fds['empty']}", f"dscp={dscp}"],
                   pass_fds=fds.values(), check=True)
    subprocess.run(["rmmod", "hook_bench"], check=True)
    log = subprocess.run(["dmesg", "-c"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {(way, int(i)): int(best) / 1000 for way, i, best in re.findall(
        r"hook_bench: (\w+) (\d+) best (\d+) median \d+ millicycles", log)}
    return {way: {name: found[way, i] for i, name in enumerate(fds)} for way in ("out", "in")}


def main():
    """All of it."""
    modules.load("tcp_tlt")
    spaces = {name: Namespace(name) for name in NAMESPACES}
    for ns in spaces.values():
        ns.ip("link set lo up")
    spaces["greenlane"].sysctl(CC, "tlt_cubic")
    ends = {name: connection(ns) for name, ns in spaces.items()}
    fds = {name: client.fileno() for name, (client, _) in ends.items()}
    print(json.dumps({dscp: cycles(sys.argv[1], fds, dscp) for dscp in DSCPS}))


if __name__ == "__main__":
    main()
