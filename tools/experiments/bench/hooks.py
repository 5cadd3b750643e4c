# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the hooks benchmark: their cost to another congestion control's connection.

	python3 -m experiments.bench.hooks BENCH_MODULE

Three namespaces, each with a connection of cubic to itself: one without any hook, one with an
empty hook, one that uses greenlane.  Prints one line of JSON:
{dscp: {"out" or "in": {namespace: cycles of a packet, in the fastest repetition}}}.
"""

import json
import socket
import sys

from experiments.bench import turns
from lab.net import modules
from lab.net.namespace import CC, Namespace
from lab.wire.sockopt import choose

NAMESPACES = ("none", "empty", "greenlane")
# Best effort, and AF21, which stock OpenSSH used for its terminals: a codepoint with a drop
# precedence, which other programs also use.
DSCPS = (0, 18)


def connection(ns):
    """Both ends of a connection in a namespace: (client, server)."""
    with ns, socket.create_server(("127.0.0.1", 0)) as listener:
        choose(listener, "cubic")
        client = socket.socket()
        choose(client, "cubic")
        client.connect(listener.getsockname())
        return client, listener.accept()[0]


def cycles(module, fds, dscp):
    """{direction: {namespace: cycles}}"""
    found = turns.cycles(module, "fds=" + ",".join(map(str, fds.values())),
                         f"empty={fds['empty']}", f"dscp={dscp}", pass_fds=fds.values())
    return {way: {name: found[f"{way}-{i}"][0] for i, name in enumerate(fds)}
            for way in ("out", "in")}


def main():
    """Run the benchmark, and print its JSON."""
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
