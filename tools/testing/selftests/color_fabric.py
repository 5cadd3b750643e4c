#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: a fabric of links with PFC loses no packet.

	 s0 ---- p0 :sw0: up0 ---- d0 :sw1: p8 ---- r
	 ...        :   :             :   :
	 s7 ---- p7 :   :             :   : p0 ... p7 ---- s8 ... s15

Sixteen hosts send to one at the same time, eight of them through another switch.  The delay is in
the middle of each link, so that it delays pause frames, too.
"""
import contextlib
import socket
import threading
import time

from lab.net import frames, modules, pfc, topology
from lab.net.network import Network
from lab.net.port import pausing, shown
from lab.tap import case, equal, need_virtual_time, true, within
from lab.tap import main as run

RATE, DELAY, LIMIT = 10**10, 5000, 500_000
BYTES = 200_000
SENDERS = [f"s{i}" for i in range(16)]


def incast(_config):
    """The topology above."""
    links = [(host, f"sw{i >= 8:d}") for i, host in enumerate([*SENDERS, "r"])]
    return topology.Topology([*SENDERS, "r"], ["sw0", "sw1"], links + [("sw0", "sw1")])


topology.TOPOLOGIES["paused"] = incast


@contextlib.contextmanager
def fabric(mode, words=""):
    """The network, with PFC or without; the links are the same."""
    modules.load_all()
    net = Network({"topology": "paused", "ipv6": False, "rate": RATE, "delay": DELAY,
                   "rto_min": 10**7, "pause": True})
    net.build()
    net.fresh_ports(lambda *_: [f"color rate {RATE}bit limit {LIMIT}{words}"
                                + pausing(mode, DELAY)])
    try:
        yield net
    finally:
        net.remove()


def _send(net, host):
    with net.ns[host]:
        client = socket.socket()
    with client:
        client.connect((net.address("r"), 1000))
        client.sendall(bytes(BYTES))


def play(net, cc):
    """All hosts send, and r reads all bytes."""
    for host in net.hosts:
        net.ns[host].sysctl("net.ipv4.tcp_congestion_control", cc)
    with net.ns["r"]:
        listener = socket.create_server((net.address("r"), 1000), backlog=64)
    threads = [threading.Thread(target=_send, args=(net, host)) for host in SENDERS]
    for thread in threads:
        thread.start()
    got = 0
    for _ in SENDERS:
        one, _ = listener.accept()
        with one:
            while part := one.recv(1 << 20):
                got += len(part)
    for thread in threads:
        thread.join()
    listener.close()
    equal(got, len(SENDERS) * BYTES, "bytes")


def ports(net):
    """All ports: [(switch or host, qdisc)]."""
    return [(name, qdisc) for name in [*net.switches, *net.hosts]
            for qdisc in shown(ns=net.ns[name]) if qdisc["kind"] == "color"]


def retransmitted(net):
    """Segments that all senders have retransmitted."""
    return sum(net.ns[host].netstat("RetransSegs") for host in SENDERS)


def blast(net, number, tos=0):
    """Each sender writes `number` UDP datagrams at once."""
    for host in SENDERS:
        with net.ns[host], socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)      # SO_SNDBUFFORCE
            one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            for _ in range(number):
                one.sendto(bytes(1472), (net.address("r"), 2000))


def received(net):
    """A socket at r with room for all datagrams, after all neighbours are resolved."""
    blast(net, 1)
    time.sleep(0.1)
    with net.ns["r"]:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, 33, 1 << 30)          # SO_RCVBUFFORCE
        one.bind((net.address("r"), 2000))
        one.settimeout(0.5)
    return one


def count(one):
    """Number of datagrams that have arrived."""
    seen = 0
    with contextlib.suppress(TimeoutError):
        while one.recv(2000):
            seen += 1
    return seen


@case("16 to 1 over two switches: datagrams are dropped without PFC, and not with it",
      mode=("", "all"))
def datagrams(mode):
    with fabric(mode) as net, received(net) as one:
        blast(net, 200)
        got = count(one)
        drops = sum(qdisc["drops"] for _, qdisc in ports(net))
        if not mode:
            true(drops > 0 and got < 16 * 200, f"{drops} drops, {got} datagrams arrived")
            return
        equal((drops, got), (0, 16 * 200), "drops, datagrams")
        counts = {name: qdisc["pause"]["heard"] for name, qdisc in ports(net) if name[0] == "s"
                 and name not in net.switches}
        true(all(counts.values()), f"PFC frames that each sender has received: {counts}")
        for name, qdisc in ports(net):
            pause = qdisc["pause"]
            equal((pause["backlog"], pause["storms"], pause["unsent"]), (0, 0, 0),
                  f"{name}: bytes left, storms, unsent")
            if name in net.switches and pause["off"]:
                # The headroom has exactly the bytes that can arrive after Xoff.
                within(pause["peak"], pause["xoff"], pause["xoff"]
                       + 2 * (RATE // 8 * (DELAY + 1000) // 10**9 + 1514) + 60,
                       f"{name} {qdisc['dev']}: peak of an ingress link, bytes")


@case("half of the headroom that rate and delay require loses packets")
def headroom():
    with fabric("") as net, received(net) as one:
        net.fresh_ports(lambda *_: [f"color rate {RATE}bit limit {9 * 20_000}"
                                    " pause all delay 0us xoff 19000"])
        blast(net, 200)
        got = count(one)
        drops = sum(qdisc["drops"] for _, qdisc in ports(net))
        true(drops > 0 and got < 16 * 200, f"{drops} drops, {got} datagrams arrived")


@case("16 to 1 over two switches, TCP: no drop and no retransmission", cc=("cubic", "dctcp"))
def tcp(cc):
    with fabric("all") as net:
        before = retransmitted(net)
        play(net, cc)
        equal(sum(qdisc["drops"] for _, qdisc in ports(net)), 0, "drops")
        equal(retransmitted(net) - before, 0, "retransmissions")


@case("PFC for green only: red is dropped at its threshold, green never")
def green():
    with fabric("green", " red 50000") as net, received(net) as one:
        blast(net, 100, 10 << 2)
        equal(count(one), 1600, "green datagrams")
        blast(net, 100, 8 << 2)
        got = count(one)
        true(got < 1600, f"{got} red datagrams arrived")
        drops = [sum(qdisc["colors"][colour]["drops"][why] for name, qdisc in ports(net)
                     for why in ("color", "pool", "limit")) for colour in ("green", "red")]
        equal((drops[0], drops[1]), (0, 1600 - got), "drops of green, of red")


# Gbit/s of the link of each host, and the receiver of each sender: s2 is ten times as fast as r0.
SPEEDS = {"s0": 10, "s1": 40, "s2": 100, "r0": 10, "r1": 40, "r2": 100}
FLOWS = (("s2", "r0"), ("s1", "r1"), ("s0", "r2"))
FAST = FLOWS[1:]
# Less than the default of `delay`, which covers two timers of the lab's clock too.
SHORT_DELAY = 4000


def unequal(_config):
    """One switch with links of 10, 40 and 100 Gbit/s."""
    return topology.Topology([*SPEEDS], ["sw"], [(host, "sw") for host in SPEEDS])


topology.TOPOLOGIES["unequal"] = unequal


@contextlib.contextmanager
def unequal_fabric():
    """The network, with the defaults of `pause all`."""
    modules.load_all()
    net = Network({"topology": "unequal", "ipv6": False, "rate": RATE, "delay": SHORT_DELAY,
                   "rto_min": 10**7, "pause": True})
    net.build()
    speed = {net.port_of(host)[1]: number for host, number in SPEEDS.items()}
    net.fresh_ports(lambda _, dev: [f"color rate {speed[dev]}gbit limit 4m pause all"])
    for host, number in SPEEDS.items():
        net.ns[host].sysctl("net.ipv4.tcp_congestion_control", "cubic")
        net.ns[host].tc(f"qdisc replace dev eth0 root handle 2: color rate {number}gbit"
                        " limit 1000m pause obey")
    try:
        yield net
    finally:
        net.remove()


def _sink(listener):
    """Read one connection to its end; returns the number of bytes."""
    one, _ = listener.accept()
    got = 0
    with one:
        while part := one.recv(1 << 20):
            got += len(part)
    return got


def transfers(net, flows, ms):
    """Each flow sends what its slower link carries in `ms`; {flow: share of that link's goodput}."""
    shares = {}

    def one(flow):
        src, dst = flow
        with net.ns[dst]:
            listener = socket.create_server((net.address(dst), 1000))
        with net.ns[src]:
            client = socket.socket()
        rate = min(SPEEDS[src], SPEEDS[dst]) * 10**9 / 8 * 1448 / 1538
        number = int(rate * ms / 1000)

        def write():
            with client:
                client.connect((net.address(dst), 1000))
                client.sendall(bytes(number))
        writer = threading.Thread(target=write)
        begin = time.monotonic_ns()
        writer.start()
        with listener:
            equal(_sink(listener), number, f"{flow}: bytes")
        shares[flow] = number / rate / (time.monotonic_ns() - begin) * 1e9
        writer.join()

    threads = [threading.Thread(target=one, args=(flow,)) for flow in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return shares


def drops(net):
    """Packets that any port has dropped."""
    return sum(qdisc["drops"] for _, qdisc in ports(net))


@case("links of 10, 40 and 100 Gbit/s, defaults: no drop, and no port delays another's flow")
def speeds():
    with unequal_fabric() as net:
        shares = transfers(net, FLOWS, 20)
        equal(drops(net), 0, "drops")
        heard = {name: qdisc["pause"]["heard"] for name, qdisc in ports(net) if name in SPEEDS}
        true(heard["s2"] > 0, f"PFC frames received: {heard}")
        for flow, share in shares.items():
            within(share, 0.95, 1.02, f"{flow}: goodput / link")


@contextlib.contextmanager
def storm(net, host):
    """Meanwhile the host pauses its port without an end."""
    with net.ns[host]:
        sender = frames.Sender("eth0")
    longest = pfc.frame(dict.fromkeys(range(8), 0xffff))
    with contextlib.closing(sender), pfc.repeated(lambda: sender.send(longest), 0.001):
        yield


@case("a storm at one port: the flows of other ports keep their goodput, and the watchdog ends it")
def storms():
    with unequal_fabric() as net:
        with storm(net, "r0"):
            for flow, share in transfers(net, FAST, 20).items():
                within(share, 0.95, 1.02, f"{flow}: goodput / link")
            # 5 of 200 ms, the default of `storm`.
            within(transfers(net, FLOWS[:1], 5)[FLOWS[0]], 0.02, 0.1, "r0, stopped for 200 ms")
        dev = net.port_of("r0")[1]
        equal([qdisc["pause"]["storms"] for _, qdisc in ports(net) if qdisc["dev"] == dev], [8],
              "storms, of each priority")
        equal(drops(net), 0, "drops")


@case("each Xon is lost: pauses end by their time, no drop, and other flows keep their goodput")
def xon_is_lost():
    with unequal_fabric() as net:
        # The link's end towards the switch; a time of 0 for priority 0.
        end = f"w{list(SPEEDS).index('s2')}a"
        net.wires.tc(f"filter add dev {end} parent ffff: protocol 0x8808 prio 1 u32"
                     " match u16 0 0xffff at 4 action drop")
        shares = transfers(net, FLOWS, 20)
        equal(drops(net), 0, "drops")
        for flow in FAST:
            within(shares[flow], 0.95, 1.02, f"{flow}: goodput / link")
        # A pause lasts 3.36 ms, and the queue of r0 is empty after 0.5 ms.
        within(shares[FLOWS[0]], 0.1, 0.9, "s2, without an Xon: goodput / link")


run(need_virtual_time)
