#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""NDP between hosts at a switch: incasts, two directions, unequal links, ports that do not trim.

	h0 ... hn ---- :sw: with `color preset ndp` at each port
"""
from lab import tap
from lab.measure.report import jain
from lab.net import modules
from lab.net.network import Network
from lab.net.reach import connect, listen, packets
from lab.net.star import Star, both_full, deliver, pump
from lab.tap import case, equal, true, within
from lab.wire.sockopt import abort

PORT = "limit 1m preset ndp"
MTU = 1538              # bytes of a full packet on the link
RED = 8 * 1514          # the preset's


@case("8 hosts to 1, long flows: the link is full, the shares are fair, the queue is short")
def fair():
    with Star([10_000] * 9, port=PORT, cc="ndp") as net:
        flows = [net.flow(host, 8) for host in range(8)]
        rates = pump(flows, 20e-3, warm=5e-3)
        within(sum(rates), 9.0, 10.0, "Gbit/s")
        within(jain(rates), 0.99, 1.0, "fairness")
        net.no_timer()
        seen = net.port(8)
        within(seen["colors"]["red"]["peak_backlog"], 0, RED + MTU, "bytes of data queued at most")
        equal(sum(seen["colors"]["red"]["drops"].values()), 0, "dropped packets")


@case("an incast of 64: each trimmed packet is reported and repaired, and nothing is dropped")
def incast():
    with Star([10_000] * 9, port=PORT, cc="ndp") as net:
        flows = [net.flow(number % 8, 8) for number in range(64)]
        # Each sends a message of 40 packets at once.
        message = bytes(40 * 1448)
        for client, _ in flows:
            equal(client.send(message), len(message), "sent")
        # The link takes 3.2 ms.
        equal(deliver(flows, len(message), 10e-3), {}, "connections that miss bytes")
        net.no_timer()
        seen, hosts = net.port(8), net.hosts[:8]
        trims = seen["colors"]["red"]["trims"]
        true(trims > 100, f"trimmed packets: {trims}")
        reported = net.hosts[8].greenlane()
        equal([reported["TrimmedReceived"], reported["TrimReportSent"]], [trims] * 2,
              "TrimmedReceived, TrimReportSent")
        equal(sum(host.greenlane()["TrimReportReceived"] for host in hosts), trims,
              "TrimReportReceived")
        equal(sum(host.netstat("TCPRetransFail") for host in hosts), 0, "TCPRetransFail")


@case("two hosts send to each other: both links are full", count=(1, 4))
def directions(count):
    both_full("ndp", PORT, count)


@case("a host of 1 Gbit/s pulls at its speed from one of 10")
def slower():
    with Star([10_000, 1000], port=PORT, cc="ndp") as net:
        rates = pump([net.flow(0, 1)], 50e-3, warm=10e-3)
        within(rates[0], 0.9, 1.0, "Gbit/s")
        net.no_timer()


@case("aeolus_ndp, an incast of 64 at ports that drop: all are pulled, no timer, short queues")
def aeolus():
    with Star([10_000] * 9, port="limit 200k preset aeolus", cc="aeolus_ndp") as net:
        flows = [net.flow(number % 8, 8) for number in range(64)]
        message = bytes(40 * 1448)
        for client, _ in flows:
            equal(client.send(message), len(message), "sent")
        equal(deliver(flows, len(message), 10e-3), {}, "connections that miss bytes")
        net.no_timer()
        seen, hosts = net.port(8), net.hosts[:8]
        true(sum(seen["colors"]["red"]["drops"].values()) > 100, "unscheduled packets were dropped")
        equal(sum(seen["colors"]["green"]["drops"].values()), 0, "pulled packets dropped")
        within(seen["colors"]["green"]["peak_backlog"], 0, 20_000, "bytes of pulled data queued")
        equal(sum(host.greenlane()["NdpCreditWasted"] for host in hosts), 0, "NdpCreditWasted")


@case("aeolus_ndp, 8 hosts to 1, long flows: the link is full, the shares are fair")
def aeolus_fair():
    with Star([10_000] * 9, port="limit 200k preset aeolus", cc="aeolus_ndp") as net:
        rates = pump([net.flow(host, 8) for host in range(8)], 20e-3, warm=5e-3)
        within(sum(rates), 9.0, 10.0, "Gbit/s")
        within(jain(rates), 0.99, 1.0, "fairness")
        net.no_timer()


@case("all hosts send to all: no port queues more than the windows of its host", cc=("ndp", "aeolus_ndp"))
def crossing(cc):
    port = PORT if cc == "ndp" else "limit 200k preset aeolus"
    with Star([10_000] * 5, port=port, cc=cc) as net:
        flows = [net.flow(src, dst) for src in range(5) for dst in range(5) if src != dst]
        rates = pump(flows, 8e-3, warm=2e-3)
        within(sum(rates), 0.8 * 50, 50, "Gbit/s of all hosts")
        within(jain(rates), 0.95, 1.0, "fairness")
        net.no_timer()
        # Two windows, of 40 us each, less the one that is on the way.
        for number in range(5):
            green = net.port(number)["colors"]["green"]
            within(green["peak_backlog"], 0, 60_000, f"bytes of pulled data queued for {number}")
            equal(sum(green["drops"].values()), 0, "pulled packets dropped")


@case("ports that drop instead: TCP finds the losses, and every connection goes on",
      port=("limit 60k", "limit 200k preset aeolus"))
def dropping(port):
    with Star([10_000] * 9, port=port, cc="ndp", sysctls={"net.ipv4.ndp_idle": 0}.items()) as net:
        flows = [net.flow(number % 8, 8) for number in range(32)]
        rates = pump(flows, 50e-3, warm=50e-3)
        true(min(rates) > 0, f"Gbit/s of each: {rates}")
        within(sum(rates), 5, 10.0, "Gbit/s")


FABRIC = {"topology": "leaf-spine", "hosts": 8, "leaves": 2, "spines": 4, "rate": 10**10,
          "delay": 2000, "nic_delay": 2000, "rto_min": 200 * 10**6, "ipv6": True, "labels": True}


@case("switches select the path by IPv6's flow label: a flow uses all, and four fill them, no timer")
def sprayed():
    modules.load_all()
    net = Network(FABRIC)
    net.build()
    for host in net.hosts:
        net.ns[host].sysctl("net.ipv4.greenlane_active", 1)
        net.ns[host].sysctl("net.ipv4.tcp_congestion_control", "ndp")
    flows = []
    for number in range(4):
        with listen(net, f"h{4 + number}") as listener:
            client, _ = connect(net, f"h{number}", f"h{4 + number}", 20_000)
            flows.append((client, listener.accept()[0]))
            for end in flows[-1]:
                end.setblocking(False)
    for several in (flows[:1], flows):
        net.fresh_ports(lambda *_: [f"color rate 10gbit {PORT}"])
        rates = pump(several, 4e-3, warm=2e-3)
        within(min(rates), 0.9 * 9, 9.6, "Gbit/s of each flow")
        sent = [packets(net, "leaf0")[f"up{number}"] for number in range(4)]
        # By chance 30 more or fewer of 1230 (a standard deviation); four of them are 0.82.
        within(min(sent) / max(sent), 0.82, 1, f"packets of the uplinks: {sent}, minimum by maximum")
    for name in ("TCPTimeouts", "TCPLossProbes"):
        equal(net.counters(name), 0, name)
    abort(*(end for flow in flows for end in flow))
    net.remove()


if __name__ == "__main__":
    tap.main()
