#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""HPCC over switch ports with `int`: flows share a port without a queue.

	 s0 ---- p0 :sw: p8 ---- r
	 ...        :  :
	 s7 ---- p7 :  :

Long flows from all hosts to one.  The test reads the queue of r's port after the flows have found
their shares, and the flows' windows after that port has rebooted.
"""
import contextlib
import socket
import time

from lab.net import modules
from lab.net.network import Network
from lab.net.port import shown
from lab.tap import case, equal, need_virtual_time, true, within
from lab.tap import main as run
from lab.wire.sockopt import cwnd, pacing

RATE, DELAY, LIMIT = 10**10, 5000, 2_000_000
RTT = 4 * DELAY                 # ns
BDP = RATE * RTT // (8 * 10**9)
SETTLE, SAMPLES, PERIOD = 5e-3, 200, 37e-6
RTO_MIN = 10**7                 # ns
PACKET = 1538


def qdisc(words):
    """A switch port's qdisc."""
    return f"color rate {RATE}bit overhead 24 limit {LIMIT} {words}"


@contextlib.contextmanager
def star(cc, senders, words, settings):
    """The network, with `cc` and these sysctls on all hosts."""
    modules.load_all()
    modules.allow()
    net = Network({"topology": "incast", "senders": senders, "ipv6": False, "rate": RATE,
                   "delay": DELAY, "rto_min": RTO_MIN, "nic_delay": 2 * DELAY})
    net.build()
    net.fresh_ports(lambda *_: [qdisc(words)])
    for host in net.hosts:
        values = {"tcp_ecn": int(cc == "dctcp"), "greenlane_active": 1,
                  "tcp_congestion_control": cc, "hpcc_rate": RATE // 10**6, **settings}
        for name, value in values.items():
            net.ns[host].sysctl(f"net.ipv4.{name}", value)
    try:
        yield net
    finally:
        net.remove()


def the_port(net):
    """tc's report of r's port."""
    switch, dev = net.port_of("r")
    return next(q for q in shown(dev, net.ns[switch]) if q["kind"] == "color")


def flows(net, listener, number):
    """Connections from the hosts in order: [(client, server)]."""
    senders = [host for host in net.hosts if host != "r"]
    pairs = []
    for i in range(number):
        with net.ns[senders[i % len(senders)]]:
            client = socket.create_connection((net.address("r"), 1000))
        server = listener.accept()[0]
        client.setblocking(False)
        server.setblocking(False)
        pairs.append((client, server))
    return pairs


def carry(pairs, seconds, got):
    """All clients send and all servers read for a time; adds the bytes to `got`."""
    block = bytes(1 << 18)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for i, (client, server) in enumerate(pairs):
            with contextlib.suppress(BlockingIOError):
                client.send(block)
            with contextlib.suppress(BlockingIOError):
                got[i] += len(server.recv(1 << 20))
        time.sleep(PERIOD)


def measure(cc, number, words, late=0.0, **settings):
    """(queues, got, rate, report): sorted samples of the port's queue, bytes; bytes of each flow;
    bit/s of all; tc's report of the port.  The flows begin `late` s later."""
    with star(cc, min(number, 8), words, settings) as net:
        with net.ns["r"]:
            listener = socket.create_server((net.address("r"), 1000), backlog=128)
        time.sleep(late)
        pairs = flows(net, listener, number)
        carry(pairs, SETTLE, [0] * number)
        got, queues = [0] * number, []
        begin = time.monotonic()
        for _ in range(SAMPLES):
            carry(pairs, PERIOD, got)
            queues.append(the_port(net)["backlog"])
        rate = sum(got) * 8 / (time.monotonic() - begin)
        report = the_port(net)
        listener.close()
        for pair in pairs:
            for s in pair:
                s.close()
        return sorted(queues), got, rate, report


def median(values):
    """The median of sorted values."""
    return values[len(values) // 2]


def shown_as(cc, queues, got, rate):
    """Print a row of the comparison."""
    fair = len(got) / sum(got)
    print(f"# {cc}: queue {median(queues)}, p99 {queues[-3]}; {rate / 1e9:.2f} Gbit/s;"
          f" shares {min(got) * fair:.2f} ... {max(got) * fair:.2f}")


@case("long flows: the port is almost full, and its queue is a tenth of dctcp's", flows=(2, 8, 32))
def queue(flows):
    queues, got, rate, report = measure("hpcc", flows, f"int {RTT}ns")
    shown_as("hpcc", queues, got, rate)
    equal(report["drops"], 0, "drops")
    true(rate > 0.75 * RATE, f"goodput, bit/s: {rate}")
    true(median(queues) < BDP / 5, f"median of the queue, bytes: {queues}")
    others, got, rate, _ = measure("dctcp", flows, "ecn 65000")
    shown_as("dctcp", others, got, rate)
    true(median(queues) < median(others) / 10, f"medians of both: {queues}, {others}")


def equal_shares(flows, least, late=0.0):
    """Check that each flow has this part of its share at least, and the queue that is HPCC's."""
    queues, got, rate, _ = measure("hpcc", flows, f"int {RTT}ns", late=late, hpcc_flows=10)
    shown_as("hpcc", queues, got, rate)
    within(min(got) / (sum(got) / flows), least, 1, "smallest share, of the mean")
    within(max(got) / (sum(got) / flows), 1, 2 - least, "largest share, of the mean")
    true(rate > 0.8 * RATE, f"goodput, bit/s: {rate}")
    true(median(queues) < BDP / 2, f"median of the queue, bytes: {queues}")


@case("with a larger increase flows have found equal shares after 250 round trips", flows=(8, 32))
def shares(flows):
    equal_shares(flows, 0.8)


# Two flows' packets keep their phases: in some of these one has 0.6 to 0.75 of its share, also after
# 500 round trips, and in the others 0.83 to 1.
@case("with a larger increase each of two flows has half of its share at least, in any phase")
def two():
    for phase in range(5):
        equal_shares(2, 0.5, phase * 1.3e-6)


# --- a port that reboots ------------------------------------------------------------------

WORDS = f"red 270k int {RTT}ns"


def replaced(net, wait):
    """The port's qdisc is replaced at once: its queue, counters and time begin anew."""
    net.fresh_ports(lambda *_: [qdisc(WORDS)], [net.port_of("r")])


def without_qdisc(net, wait):
    """For 50 round trips the port has neither a qdisc nor telemetry: reno."""
    switch, dev = net.port_of("r")
    net.ns[switch].tc(f"qdisc del dev {dev} root")
    wait(50 * RTT / 1e9)
    net.ns[switch].tc(f"qdisc add dev {dev} root handle 1: {qdisc(WORDS)}")


def device_down(net, wait):
    """For half of an RTO the device is down."""
    switch, dev = net.port_of("r")
    net.ns[switch].ip(f"link set {dev} down")
    wait(RTO_MIN / 2e9)
    net.ns[switch].ip(f"link set {dev} up")


def goes_on(net, pairs):
    """Wait, for two RTOs at most, until each flow's data arrives; then for 50 round trips."""
    got = [0] * len(pairs)
    end = time.monotonic() + 2 * RTO_MIN / 1e9
    while time.monotonic() < end and not all(got):
        carry(pairs, RTT / 1e9, got)
    true(all(got), f"bytes of each flow after the reboot: {got}")
    carry(pairs, 50 * RTT / 1e9, got)


def sane(net, pairs):
    """The flows fill the port, whose telemetry governs them, with windows between a part of their
    share and a BDP."""
    number, stamped = len(pairs), the_port(net)["int"]["stamped"]
    carry(pairs, 50 * RTT / 1e9, got := [0] * number)
    true(sum(got) * 8 / 50 > 0.75 * RATE * RTT / 1e9, f"bytes in 50 round trips: {got}")
    true(the_port(net)["int"]["stamped"] > stamped, "packets with the port's telemetry")
    equal(net.counters("HpccTelemetryBegun"), net.counters("HpccTelemetryLost"),
          "flows that telemetry governs again, of those that had none")
    windows = [pacing(client) * 8 / RATE for client, _ in pairs]
    within(sum(windows), 0.75, 1.2, f"windows of all flows, BDPs: {windows}")
    true(min(windows) * number > 0.25, f"smallest window, of {windows}")
    most = max(cwnd(client) for client, _ in pairs)
    within(most, 1, BDP / PACKET + 1, "largest window, packets")


@case("a port reboots in mid-flow: only the outage costs an RTO, and windows are a BDP together",
      cc=("hpcc", "tlt_hpcc"), number=(2, 8), reboot=(replaced, without_qdisc, device_down))
def reboots(cc, number, reboot):
    with star(cc, number, WORDS, {"hpcc_flows": 10}) as net:
        with net.ns["r"]:
            listener = socket.create_server((net.address("r"), 1000), backlog=128)
        pairs = flows(net, listener, number)
        carry(pairs, SETTLE, [0] * number)
        sane(net, pairs)
        before = net.counters("TCPTimeouts")
        reboot(net, lambda seconds: carry(pairs, seconds, [0] * number))
        goes_on(net, pairs)
        within(net.counters("TCPTimeouts") - before, 0, number * (reboot is device_down), "RTOs by the outage")
        before = net.counters("TCPTimeouts")
        sane(net, pairs)
        carry(pairs, 1.5 * RTO_MIN / 1e9, [0] * number)
        equal(net.counters("TCPTimeouts") - before, 0, "RTOs afterwards")
        listener.close()
        for pair in pairs:
            for s in pair:
                s.close()


if __name__ == "__main__":
    need_virtual_time()
    run()
