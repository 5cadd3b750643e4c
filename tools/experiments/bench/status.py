# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the status benchmark: `greenlane status` on a host with many containers.

	python3 -m experiments.bench.status

NAMESPACES namespaces, in each PAIRS connections of tlt_cubic to itself, with two sockets each.
Prints one line of JSON: {"status": CPU seconds of the first `greenlane status`, "again": of the
next one, "ss": of `ss -tin` in all namespaces, "state": bytes of the state file}.
"""

import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

from lab import TOP
from lab.net import modules
from lab.net.namespace import CC, Namespace

NAMESPACES, PAIRS = 100, 20


def connect(ns):
    """Open PAIRS connections in a namespace; returns their sockets."""
    with ns, socket.create_server(("127.0.0.1", 0), backlog=PAIRS) as listener:
        found = [socket.create_connection(listener.getsockname()) for _ in range(PAIRS)]
        return found + [listener.accept()[0] for _ in range(PAIRS)]


def seconds(*command):
    """CPU time of a command and of all its children, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))


def main():
    """Run the benchmark, and print its JSON."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
    modules.load_all()
    modules.allow()
    spaces = [Namespace(f"c{i}") for i in range(NAMESPACES)]
    for ns in spaces:
        ns.ip("link set lo up")
        ns.sysctl(CC, "tlt_cubic")
    sockets = [connect(ns) for ns in spaces]
    with tempfile.TemporaryDirectory() as there:
        state = pathlib.Path(there, "state")
        look = (sys.executable, TOP / "scripts/greenlane", "status", "--state", state)
        result = {"status": seconds(*look), "again": seconds(*look), "state": os.stat(state).st_size}
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.writelines(f"ip netns exec {ns.name} ss -tin\n" for ns in spaces)
        script.flush()
        result["ss"] = seconds("sh", script.name)
    assert len(sockets) == NAMESPACES
    print(json.dumps(result))


if __name__ == "__main__":
    main()
