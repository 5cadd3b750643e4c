# SPDX-License-Identifier: GPL-2.0
"""Fan-ins of some flows, then one of 1000; the port's automatic threshold depends on earlier ones.

	python3 -m experiments.traffic.crowd FIRST LAST		one row for each seed, in a guest

    s0 --+
    ...  +-- sw [color ... red auto] -- r       8 senders, 40 Gbit/s, 20 us, 32 kB a flow
    s7 --+

The connections persist, so a fan-in begins with the congestion windows that the earlier ones left.
A seed selects the sizes (16 to 320), their order, the sending connections, the phase (the time in
which the flows of a fan-in begin) and the gaps: less than a window of the threshold, many windows,
or 0, with which the next fan-in finds the queue of the previous one.
"""

import collections
import json
import random
import selectors
import socket
import sys
import time

from experiments.traffic.incast import built
from lab.measure import report
from lab.measure.counters import Counters
from lab.net import hosts
from lab.wire.sockopt import choose

CROWD = 1000
SIZES = (16, 32, 64, 80, 120, 160, 240, 320)
MOST = 24                               # fan-ins before the crowd
PHASES = (0, 100, 500, 2000)            # us over which the flows of a fan-in begin
GAPS = (0, 300, 2_000, 10_000, 100_000)   # us from the end of a fan-in to the next; 0: none
SLOTS = 10                              # parts of a phase; flows of a part begin together
BYTES = 32768
CONFIG = {
    "senders": 8, "rate": 40 * 10**9, "delay": 5000, "rto_min": 4 * 10**6, "ipv6": False,
    "tso": True, "port": "color rate 40gbit limit 1800k red auto ecn 200k", "limit": 0, "ecn": 0,
    "bytes": BYTES,
}

FanIn = collections.namedtuple("FanIn", ["size", "phase", "gap"])


def plan(seed):
    """([the fan-ins of a run, of which the last is the crowd], the random generator)"""
    rng = random.Random(seed)
    found = [FanIn(rng.choice(SIZES), rng.choice(PHASES), rng.choice(GAPS))
             for _ in range(rng.randint(1, MOST))]
    return [*found, FanIn(CROWD, rng.choice(PHASES), 0)], rng


class Crowd:
    """The connections of one congestion control, and their bytes to be read."""

    def __init__(self, network, cc):
        self.network, self.pairs = network, []
        self.selector = selectors.DefaultSelector()
        self.left, self.begun, self.took = {}, {}, []
        with network.ns[network.receiver]:
            listener = socket.create_server((network.address(network.receiver), 0),
                                            backlog=CROWD)
        choose(listener, cc)
        for number in range(CROWD):
            with network.ns[network.senders[number % len(network.senders)]]:
                client = socket.socket()
            choose(client, cc)
            client.connect(listener.getsockname())
            server = listener.accept()[0]
            for end in (client, server):
                end.setblocking(False)
            self.selector.register(server, selectors.EVENT_READ)
            self.pairs.append((client, server))
        listener.close()

    def begin(self, pairs):
        """Begin these flows, with one start time: reading the clock takes virtual time."""
        now = time.monotonic_ns()
        for client, server in pairs:
            self.left[server], self.begun[server] = BYTES, now
            assert client.send(bytes(BYTES)) == BYTES

    def read(self, timeout):
        """Wait up to `timeout` seconds, and read once from each readable connection."""
        events = self.selector.select(timeout)
        now = time.monotonic_ns()
        for key, _ in events:
            server = key.fileobj
            self.left[server] -= len(server.recv(BYTES))
            if not self.left[server]:
                del self.left[server]
                self.took.append(now - self.begun[server])

    def fan_in(self, one, rng):
        """Run one fan-in, until its flows are complete or, without a gap before the next, begun."""
        idle = [pair for pair in self.pairs if pair[1] not in self.left]
        chosen = rng.sample(idle, min(one.size, len(idle)))
        begin_in = collections.defaultdict(list)
        for pair in chosen:
            begin_in[rng.randrange(SLOTS) if one.phase else 0].append(pair)
        self.took = []
        zero = time.monotonic()
        for slot, pairs in sorted(begin_in.items()):
            start = zero + slot * one.phase * 1e-6 / SLOTS
            # Not select(): its timeouts are whole milliseconds.
            time.sleep(max(0, start - time.monotonic()))
            self.begin(pairs)
        while self.left and (one.gap or one.size == CROWD):
            self.read(10)
        time.sleep(one.gap * 1e-6)

    def close(self):
        """Close all connections."""
        for pair in self.pairs:
            for end in pair:
                end.close()
        self.selector.close()


def run(network, seed, cc="tlt_dctcp"):
    """One run with a fresh port and fresh connections; returns its losses, RTOs and probes, and the
    p99.9 of the crowd's completion times."""
    network.fresh_port()
    fan_ins, rng = plan(seed)
    crowd = Crowd(network, cc)
    time.sleep(1)
    counters = Counters(network.ns[name] for name in network.senders)
    for one in fan_ins:
        crowd.fan_in(one, rng)
    time.sleep(0.1)
    tcp = counters.change()["tcp"]
    colors = network.port_stats()[0]["colors"]
    took = crowd.took
    crowd.close()
    return {"seed": seed, "fan_ins": [tuple(one) for one in fan_ins],
            "green": sum(colors["green"]["drops"].values()),
            "yellow": sum(colors["yellow"]["drops"].values()),
            "red": sum(colors["red"]["drops"].values()),
            "rtos": tcp["TCPTimeouts"], "probes": tcp["TCPLossProbes"],
            "p999_ms": report.percentile(took, 99.9) / 1e6}


def build():
    """The network, with its hosts set up."""
    network = built(CONFIG)
    hosts.settle(network, CONFIG, "tlt_dctcp")
    return network


def main():
    """A row of JSON for each seed."""
    network = build()
    for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
        print(json.dumps(run(network, seed)), flush=True)
    network.remove()


if __name__ == "__main__":
    main()
