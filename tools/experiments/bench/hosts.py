# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the hosts benchmark: real time, on several processors.

	python3 -m experiments.bench.hosts REPEAT CC...

	client ---- veth ---- switch, `color` on both ports ---- veth ---- server

With two virtio NICs, which a virtual machine has on one hub:

	client, `color` on the NIC ---- hub ---- server, `color` on the NIC

For each congestion control, at each of RATES, the client sends for SECONDS, then a byte PINGS times,
each when the server has answered the last, and then ROUNDS times a block on FLOWS connections, each
when the server has requested it.  Runs that are compared are interleaved.  Prints one line of JSON:
{rate in Mbit/s: {CC: [of each run {"gbit": goodput, "cpu": processor time of a GB, s, "softirq":
share of that time in softirq, "p50" and "p99": of the answers, us, "incast": median time of the
blocks divided by that of the link}]}}.
"""

import contextlib
import itertools
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

from lab import transports, units
from lab.measure.report import percentile
from lab.net import modules
from lab.net.namespace import CC, Namespace

# Mbit/s: two processors of User-Mode Linux carry most of the first, and none of the transports fills
# a link of the second.
RATES = (200, 1000)
SECONDS, LEAD = 2.0, 0.3
PINGS = 2000
FLOWS, BLOCK, ROUNDS = 64, 32_768, 10
PORT = 1000
TLT_PORT = "red 270k ecn 200k"


def busy():
    """Time of all processors: (at work, in softirq), s."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft, *_ = map(int, file.readline().split()[1:])
    return [ticks / os.sysconf("SC_CLK_TCK") for ticks in (user + nice + system + irq + soft, soft)]


def port(cc):
    """Options of the switch's ports for a congestion control."""
    if not units.has_credits(cc):
        return TLT_PORT
    return f"preset {units.preset(cc) or transports.of(cc).preset or 'xpass'}"


def nics():
    """Devices of virtio NICs, in the order of their addresses."""
    return sorted(path.name for path in pathlib.Path("/sys/class/net").iterdir()
                  if (path / "device/driver").resolve().name == "virtio_net")


class Hosts:
    """Two hosts, and the ports between them."""

    def __init__(self):
        self.handles = itertools.count(1)
        self.client, self.server = Namespace("hc"), Namespace("hd")
        self.ports = list(self._virtio(nics()) if nics() else self._veth(Namespace("hs")))
        for host in (self.client, self.server):
            host.sysctl("net.ipv4.tcp_ecn", 1)

    def _veth(self, switch):
        switch.sysctl("net.ipv4.ip_forward", 1)
        for number, host in enumerate((self.client, self.server)):
            switch.ip(f"link add p{number} type veth peer name eth0 netns {host.name}",
                      f"addr add 10.0.{number}.1/24 dev p{number}", f"link set p{number} up")
            host.ip(f"addr add 10.0.{number}.2/24 dev eth0", "link set eth0 up",
                    f"route add default via 10.0.{number}.1")
            yield switch, f"p{number}"

    def _virtio(self, devices):
        for number, (host, device) in enumerate(zip((self.client, self.server), devices)):
            subprocess.run(["ip", "link", "set", device, "netns", host.name], check=True)
            host.ip(f"addr add 10.0.{number}.2/8 dev {device}", f"link set {device} up")
            yield host, device

    def use(self, cc, mbit):
        """New connections run cc, over links of this rate."""
        for where, device in self.ports:
            # With another handle it is another qdisc, and not a change of this one.
            where.tc(f"qdisc replace dev {device} root handle {next(self.handles)}: color "
                     f"rate {mbit}mbit limit 1800k {port(cc)}")
        for host in (self.client, self.server):
            host.sysctl(CC, cc)
            for name in transports.MBIT:
                host.sysctl(f"net.ipv4.{name}", mbit)

    def connect(self, count=1):
        """Connections: (the client's end, the server's)."""
        with self.server:
            listener = socket.create_server(("0.0.0.0", PORT), backlog=count)
        with self.client:
            clients = [socket.create_connection(("10.0.1.2", PORT)) for _ in range(count)]
        pairs = [(client, listener.accept()[0]) for client in clients]
        listener.close()
        for pair in pairs:
            for one in pair:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return pairs

    @contextlib.contextmanager
    def serve(self, server):
        """A connection whose other end a thread serves: server(socket)."""
        ((client, there),) = self.connect()
        thread = threading.Thread(target=server, args=(there,))
        thread.start()
        yield client
        client.shutdown(socket.SHUT_WR)
        thread.join()
        client.close()
        there.close()

    def bulk(self):
        """A transfer."""
        read, room, data = 0, bytearray(1 << 20), bytes(1 << 18)

        def reader(there):
            nonlocal read
            while n := there.recv_into(room):
                read += n

        with self.serve(reader) as client:
            end = time.monotonic() + LEAD
            while time.monotonic() < end:
                client.sendall(data)
            before, had, began = busy(), read, time.monotonic()
            while (now := time.monotonic()) < began + SECONDS:
                client.sendall(data)
            after, got = busy(), read - had
        cpu, softirq = (b - a for a, b in zip(before, after))
        return {"gbit": got * 8e-9 / (now - began), "cpu": cpu / got * 1e9, "softirq": softirq / cpu}

    def pings(self):
        """Bytes that the server answers."""
        times = []

        def answer(there):
            while byte := there.recv(1):
                there.send(byte)

        with self.serve(answer) as client:
            for _ in range(PINGS):
                began = time.perf_counter()
                client.send(b"p")
                client.recv(1)
                times.append((time.perf_counter() - began) * 1e6)
        times.sort()
        return {"p50": percentile(times, 50), "p99": percentile(times, 99)}

    def incast(self, mbit):
        """Blocks on many connections at once."""
        pairs, block, times = self.connect(FLOWS), bytes(BLOCK), []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _, there in pairs:
                there.send(b"?")
            for client, _ in pairs:
                client.recv(1)
                client.sendall(block)
            for _, there in pairs:
                there.recv(BLOCK, socket.MSG_WAITALL)
            times.append(time.perf_counter() - began)
        for pair in pairs:
            for one in pair:
                one.close()
        return {"incast": statistics.median(times) * mbit * 1e6 / (FLOWS * BLOCK * 8)}


def main():
    """Run the benchmark, and print its JSON."""
    repeat, ccs = int(sys.argv[1]), sys.argv[2:]
    modules.load_all()
    modules.allow()
    hosts = Hosts()
    result = {rate: {cc: [] for cc in ccs} for rate in RATES}
    for _ in range(repeat):
        for rate, seen in result.items():
            for cc in ccs:
                hosts.use(cc, rate)
                seen[cc].append(hosts.bulk() | hosts.pings() | hosts.incast(rate))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
