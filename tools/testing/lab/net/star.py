# SPDX-License-Identifier: GPL-2.0
"""Hosts at one switch, each with a rate of its own.

    h0: eth0 ---- p0 :sw: p1 ---- eth0 :h1      a round trip is twice the delay of a host's NIC
"""
import contextlib
import fcntl
import selectors
import socket
import struct
import termios
import time

from lab import units
from lab.net import modules
from lab.net.namespace import Namespace
from lab.net.port import nic, shown
from lab.tap import equal, within
from lab.wire.sockopt import abort, choose

SYSCTLS = {"net.ipv4.tcp_no_metrics_save": 1,
           "net.ipv4.tcp_rmem": "4096 4194304 67108864",
           "net.ipv4.tcp_wmem": "4096 4194304 67108864"}


class Star:
    """`rates` in Mbit/s, one for each host.  `port` is what a switch port has behind its rate."""

    def __init__(self, rates, *, delay="10us", port="limit 200k preset xpass", cc="xpass", sysctls=()):
        modules.load_all()
        self.delay, self.open = delay, []
        self.switch = Namespace("sw")
        self.hosts = [Namespace(f"h{number}") for number in range(len(rates))]
        self.switch.sysctl("net.ipv4.ip_forward", 1)
        for number, (host, rate) in enumerate(zip(self.hosts, rates)):
            self._attach(number, host)
            host.tc(f"qdisc add dev eth0 root handle 1: netem delay {delay} limit 1000000",
                    f"qdisc add dev eth0 parent 1:1 handle 2: color rate {rate}mbit"
                    f" {nic(units.scheduled_first(cc))}")
            self.switch.tc(f"qdisc add dev p{number} root handle 1: color rate {rate}mbit {port}")
            for name, value in {"net.ipv4.tcp_congestion_control": cc, **SYSCTLS,
                                **dict(sysctls)}.items():
                host.sysctl(name, value)
        # The switch forwards in softirq, which must not drop.
        with open("/proc/sys/net/core/netdev_max_backlog", "w", encoding="ascii") as file:
            file.write("1000000")

    def _attach(self, number, host):
        self.switch.ip(f"link add p{number} type veth peer name eth0 netns {host.name}")
        host.ip("link set lo up", f"addr add 10.0.{number}.2/24 dev eth0", "link set eth0 up",
                f"route add default via 10.0.{number}.1 rto_min 200ms")
        self.switch.ip("link set lo up", f"addr add 10.0.{number}.1/24 dev p{number}",
                       f"link set p{number} up")

    def use_fq(self, number, to, rate):
        """fq at a host.  The delay of its NIC is that of the port to its peer then."""
        self.hosts[number].tc("qdisc replace dev eth0 root fq limit 100000 flow_limit 100000")
        self.switch.tc(f"qdisc del dev p{to} root",
                       f"qdisc add dev p{to} root handle 1: netem delay {self.delay} limit 1000000",
                       f"qdisc add dev p{to} parent 1:1 handle 2: color rate {rate}mbit limit 10m")

    def flow(self, src, dst, cc=None):
        """(client at src, server at dst); neither blocks."""
        with self.hosts[dst]:
            listener = socket.socket()
        with self.hosts[src]:
            client = socket.socket()
        for end in (listener, client):
            if cc:
                choose(end, cc)
        listener.bind((f"10.0.{dst}.2", 0))
        listener.listen()
        client.settimeout(10)
        client.connect(listener.getsockname())
        server = listener.accept()[0]
        listener.close()
        for end in (client, server):
            end.setblocking(False)
        self.open += [client, server]
        return client, server

    def port(self, number):
        """The color port to a host."""
        return next(q for q in shown(f"p{number}", self.switch) if q["kind"] == "color")

    def drops(self, number):
        """Scheduled and protected packets that the port to a host has dropped."""
        return sum(self.port(number)["colors"]["green"]["drops"].values())

    def no_timer(self):
        """Fail if an RTO or a loss probe of a host has expired."""
        for host in self.hosts:
            equal([host.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  f"{host.name}: RTOs, TLPs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        abort(*self.open)       # unsent data would stay in TCP's memory
        for namespace in (*self.hosts, self.switch):
            namespace.remove()


def unread(end):
    """Bytes that wait in a socket for the program."""
    return struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, bytes(4)))[0]


def deliver(flows, size, seconds):
    """Read until this number of bytes has arrived on each flow, for `seconds` at most: {server: bytes
    that it misses}."""
    end, left = time.monotonic() + seconds, {server: size for _, server in flows}
    while left and time.monotonic() < end:
        for server in tuple(left):
            with contextlib.suppress(BlockingIOError):
                left[server] -= len(server.recv(1 << 20))
            if not left[server]:
                del left[server]
        time.sleep(10e-6)
    return left


def pump(flows, seconds, *, warm=0.0, chunk=1 << 17, silent=(), slow=None):
    """Send and read as much as possible: Gbit/s of each flow that arrive after `warm`.  Clients in
    `silent` do not send.  `slow` is (servers, bytes): these servers read so many bytes each
    millisecond."""
    def arrived():
        """Bytes of each server, those in its socket included: how late it reads is no rate."""
        return {server: count + unread(server) for server, count in got.items()}

    slow_servers, slow_bytes = slow or ((), 0)
    got = dict.fromkeys((server for _, server in flows), 0)
    block, begin = bytes(chunk), time.monotonic()
    started = due = begin
    base = dict(got)
    with selectors.DefaultSelector() as selector:
        for client, server in flows:
            if client not in silent:
                selector.register(client, selectors.EVENT_WRITE)
            if server not in slow_servers:
                selector.register(server, selectors.EVENT_READ)
        while (now := time.monotonic()) < begin + warm + seconds:
            if started == begin and now >= begin + warm:
                started, base = now, arrived()
            if slow_servers and now >= due:
                due += 1e-3
                for server in slow_servers:
                    with contextlib.suppress(BlockingIOError):
                        got[server] += len(server.recv(slow_bytes))
            end = begin + warm if started == begin and warm else begin + warm + seconds
            wait = min(end, due) - now if slow_servers else end - now
            for key, events in selector.select(max(wait, 1e-6)):
                with contextlib.suppress(BlockingIOError):
                    if events & selectors.EVENT_READ:
                        got[key.fileobj] += len(key.fileobj.recv(1 << 20))
                    if events & selectors.EVENT_WRITE:
                        key.fileobj.send(block)
    took, end = time.monotonic() - started, arrived()
    return [(end[server] - base[server]) * 8e-9 / took for _, server in flows]


def both_full(cc, port, count):
    """Two hosts send to each other, by `count` connections in each direction: both links are full."""
    with Star([10_000] * 2, port=port, cc=cc) as net:
        flows = [net.flow(*ends) for ends in ((0, 1), (1, 0)) for _ in range(count)]
        rates = pump(flows, 20e-3, warm=5e-3)
        for part in (rates[:count], rates[count:]):
            within(sum(part), 8.0, 10.0, "Gbit/s in one direction")
        net.no_timer()
