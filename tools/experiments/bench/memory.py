# SPDX-License-Identifier: GPL-2.0
"""Bytes of kernel memory of an idle connection, and its running timers, by congestion
control.

Connections to the same host, each after one block of data; both of their ends
count, so bytes are halved.  First without our modules, then with them: the
difference is the cost to a socket that does not use them.

Prints one line of JSON: {name: [bytes, timers of all connections]}.
"""

import json
import resource
import socket
import time

from lab.measure import slab
from lab.net import modules
from lab.net.namespace import set_cc
from lab.transports import TRANSPORTS

CONNECTIONS = 10000
BASES = ("reno", "cubic", "dctcp")
OTHERS = tuple(cc for row in TRANSPORTS if row.module != "tcp_tlt" for cc in row.ccs)


def timers():
    """The number of running timers: credit transports' own, and those of TCP sockets."""
    with open("/proc/timer_list", encoding="ascii") as file:
        own = sum(", rd_timer" in line for line in file)
    with open("/proc/net/tcp", encoding="ascii") as file:
        # column tr: 0 is no timer
        return own + sum(line.split()[5][:2] != "00" for line in list(file)[1:])


def connections(cc):
    """[live slab bytes of one end of one connection, timers of all]"""
    set_cc(cc)
    listener = socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS)
    before = slab.used()
    pairs = []
    for _ in range(CONNECTIONS):
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        client.sendall(b"x" * 1000)
        server.recv(1000)
        pairs.append((client, server))
    after, running = slab.used(), timers()
    for client, server in pairs:
        # No TIME_WAIT, which would count for the next congestion control.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        server.close()
    listener.close()
    time.sleep(1)
    return (after - before) / CONNECTIONS / 2, running


def main():
    """Measure without the modules, then with them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 65536))
    with open("/proc/sys/net/ipv4/tcp_ecn", "w", encoding="ascii") as file:
        file.write("1")
    connections("reno")     # the kernel creates slab caches
    result = {f"{cc}, no module": connections(cc) for cc in BASES}
    modules.load_all()
    connections("tlt_reno")
    for cc in OTHERS:
        result[cc] = connections(cc)
    for cc in BASES:
        result[cc] = connections(cc)
        result[f"tlt_{cc}"] = connections(f"tlt_{cc}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
