# SPDX-License-Identifier: GPL-2.0
"""Hosts change from cubic to tlt_cubic: the shares of the link, and the RTOs, of both.

	python3 -m experiments.traffic.rollout		the table, in a guest

    s0 --+
    s1 --+-- sw [one queue, or two] -- r        4 senders, 10 Gbit/s, RTT 20 us
    s2 --+                                      cubic is yellow, tlt_cubic red and green
    s3 --+

First two long flows of each sender, then incasts: 40 flows of each sender, 32 kB, at once.
"""

import contextlib
import selectors
import socket
import time

from experiments.traffic.incast import Incast
from lab.measure import report
from lab.measure.counters import Counters
from lab.net import hosts, modules
from lab.net.port import apart, shown
from lab.wire.sockopt import choose

SENDERS, LONG, MANY, ROUNDS, BYTES = 4, 2, 40, 5, 32768
OLD, NEW = 5001, 5002           # the servers' ports
CC = {OLD: "cubic", NEW: "tlt_cubic"}
QUEUE = "color limit 1800k red "
CONFIG = {
    "senders": SENDERS, "rate": 10 * 10**9, "delay": 5000, "rto_min": 4 * 10**6,
    "ipv6": False, "tso": True, "port": "color rate 10gbit limit 1800k red 270k",
    "limit": 0, "ecn": 0, "bytes": BYTES,
}


def port(red, changed, queues):
    """The receiver's port in tc's words: one queue, or one for each congestion control, which
    have the link in proportion to their hosts."""
    queue = QUEUE + red
    if queues == 1 or changed in (0, SENDERS):
        return [f"color rate 10gbit limit 1800k red {red}"]
    return apart(CONFIG["rate"], [SENDERS - changed, changed], [queue, queue], [OLD, NEW])


class Hosts:
    """The connections of the senders, the last `changed` of which run tlt_cubic."""

    def __init__(self, network, changed):
        self.network, self.changed = network, changed
        self.listeners = {}
        for number, cc in CC.items():
            with network.ns[network.receiver]:
                self.listeners[number] = socket.create_server(
                    (network.address(network.receiver), number), backlog=SENDERS * MANY)
            choose(self.listeners[number], cc)
        self.selector = selectors.DefaultSelector()
        self.pairs = [pair for number in range(SENDERS) for pair in self._connect(number)]

    def of(self, sender):
        """The port of the servers that a sender uses."""
        return NEW if sender >= SENDERS - self.changed else OLD

    def _connect(self, sender):
        which = self.of(sender)
        for _ in range(MANY):
            with self.network.ns[self.network.senders[sender]]:
                client = socket.socket()
            choose(client, CC[which])
            client.connect(self.listeners[which].getsockname())
            server = self.listeners[which].accept()[0]
            for end in (client, server):
                end.setblocking(False)
            self.selector.register(server, selectors.EVENT_READ, sender)
            yield sender, client, server

    def long(self, seconds, warm):
        """The rate of each sender's long flows during `seconds`, after `warm` seconds, bit/s."""
        got, data = [0] * SENDERS, bytes(1 << 18)
        flows = [pair for number in range(SENDERS)
                 for pair in [p for p in self.pairs if p[0] == number][:LONG]]
        begin = time.monotonic()
        started = None
        while (now := time.monotonic()) < begin + warm + seconds:
            if started is None and now >= begin + warm:
                started, got = now, [0] * SENDERS
            for sender, client, server in flows:
                with contextlib.suppress(BlockingIOError):
                    while client.send(data):
                        pass
                with contextlib.suppress(BlockingIOError):
                    while True:
                        got[sender] += len(server.recv(1 << 20))
            time.sleep(20e-6)
        took = time.monotonic() - started
        return [8 * n / took for n in got]

    def drain(self):
        """Read until no data of the long flows arrives for a second."""
        while self.selector.select(1):
            for key, _ in self.selector.select(0):
                key.fileobj.recv(1 << 20)

    def incast(self):
        """All flows begin at once; returns {server port: completion times of its flows, ns}."""
        left = {server: BYTES for _, _, server in self.pairs}
        took = {OLD: [], NEW: []}
        begin = time.monotonic_ns()
        for _, client, _ in self.pairs:
            client.send(bytes(BYTES))
        while left:
            for key, _ in self.selector.select(10):
                left[key.fileobj] -= len(key.fileobj.recv(BYTES))
                if not left[key.fileobj]:
                    del left[key.fileobj]
                    took[self.of(key.data)].append(time.monotonic_ns() - begin)
        time.sleep(0.05)
        return took

    def close(self):
        """Close all connections."""
        for _, client, server in self.pairs:
            client.close()
            server.close()
        for listener in self.listeners.values():
            listener.close()
        self.selector.close()


def _mean(values):
    return sum(values) / len(values) / 1e9 if values else None


def _tail(took):
    return report.percentile(took, 99) / 1e6 if took else None


def run(changed, red="270k", queues=1):
    """The rates, RTOs and p99 of cubic and tlt_cubic, with `changed` senders on tlt_cubic."""
    modules.load_all()
    network = Incast(CONFIG)
    network.build()
    hosts.settle(network, CONFIG, "cubic")
    for name in network.hosts:
        network.ns[name].sysctl("net.ipv4.greenlane_active", 1)
    network.fresh_ports(lambda *_: port(red, changed, queues), [network.port_of(network.receiver)])
    senders = Hosts(network, changed)
    rates = senders.long(0.1, 0.05)
    senders.drain()
    time.sleep(0.5)
    counted = [Counters([network.ns[name]]) for name in network.senders]
    took = {OLD: [], NEW: []}
    for _ in range(ROUNDS):
        for which, times in senders.incast().items():
            took[which] += times
    rtos = [one.change()["tcp"]["TCPTimeouts"] for one in counted]
    switch, dev = network.port_of(network.receiver)
    green = sum(sum(q["colors"]["green"]["drops"].values())
                for q in shown(dev, network.ns[switch]) if q["kind"] == "color")
    senders.close()
    network.remove()
    old, new = slice(0, SENDERS - changed), slice(SENDERS - changed, SENDERS)
    return {"changed": changed * 100 // SENDERS, "queues": queues, "red": red,
            "cubic_gbit": _mean(rates[old]), "tlt_gbit": _mean(rates[new]), "sum": sum(rates) / 1e9,
            "cubic_rtos": sum(rtos[old]), "tlt_rtos": sum(rtos[new]),
            "cubic_p99": _tail(took[OLD]), "tlt_p99": _tail(took[NEW]), "green": green}


def main():
    """Print a row for each number of changed hosts and each set of queues."""
    for red, queues in (("270k", 1), ("auto", 1), ("270k", 2)):
        for changed in range(SENDERS + 1):
            seen = run(changed, red, queues)
            print(" ".join(f"{key}={value:.2f}" if isinstance(value, float) else f"{key}={value}"
                           for key, value in seen.items()), flush=True)


if __name__ == "__main__":
    main()
