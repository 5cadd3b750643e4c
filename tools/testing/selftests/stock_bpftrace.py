#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tools/bpftrace: the numbers of each script equal the kernel's counters.

	ns left -- color, veth -- ns right

bpftrace needs BTF and kprobes, which the distribution's kernel has and User-Mode Linux has not.
"""
import json
import os
import re
import shutil
import socket
import subprocess
import time

from lab.codepoints import CREDIT, IMPORTANT
from lab.net import modules
from lab.status import Cable, forget
from lab.tap import Skip, case, equal, main, need_tree, true
from lab.wire.packet import make, option
from lab.wire.sockopt import info

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21        # linux/tcp.h
TCP_RECV_QUEUE, TCP_SEND_QUEUE = 1, 2
ATTACHED = "attached"
PATIENCE = 300      # real seconds, for the compiler on an emulated processor


def prepare():
    """Skip without bpftrace's needs; load the modules, because it attaches to existing probes."""
    if not shutil.which("bpftrace"):
        raise Skip("no bpftrace")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        raise Skip("the kernel has no BTF")
    modules.load_all()


class Script:
    """A script that runs for a block; then `maps` has its maps, and `text` the printed rows.

    bpftrace starts cat when all probes are attached, and ends when cat does: it would miss an
    interrupt that arrives outside of its epoll_wait().
    """

    def __init__(self, name):
        self.maps, self.text = {}, ""
        path = need_tree(f"tools/bpftrace/{name}.bt")
        self._process = subprocess.Popen(
            ["timeout", str(PATIENCE), "bpftrace", "-B", "line", "-f", "json", "-c", "/bin/cat", path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._process.stdin.write(f"{ATTACHED}\n")
        self._process.stdin.flush()
        while (row := self._process.stdout.readline()) != f"{ATTACHED}\n":
            true(row, f"{name} starts: {self.text}")
            self._keep(row)

    def _keep(self, row):
        """Keep a map or printed text of a row of JSON; other text is an error message."""
        try:
            said = json.loads(row)
        except ValueError:
            self.text += row
            return
        if said["type"] in ("map", "hist"):
            self.maps.update(said["data"])
        elif said["type"] in ("printf", "time"):
            self.text += said["data"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        time.sleep(1)
        self._process.stdin.close()
        for row in self._process.stdout:
            self._keep(row)
        equal(self._process.wait(), 0, f"exit status of bpftrace: {self.text}")


def cable(cc="tlt_reno", options="color rate 20mbit limit 60k red 20k"):
    """A slow port: an emulated processor fills it."""
    forget()
    return Cable(options, cc)


@case("gl-fallback: the peer and the reason of each connection that runs its base")
def fallback():
    with cable() as net:
        net.b.sysctl("net.ipv4.tcp_congestion_control", "cubic")
        before = net.a.greenlane()["PeerWithout"]
        with Script("gl-fallback") as script:
            clients = [net.connect()[0] for _ in range(3)]
            ports = sorted(client.getsockname()[1] for client in clients)
        count = net.a.greenlane()["PeerWithout"] - before
        equal(count, 3, "PeerWithout")
        equal(script.maps, {"@fallbacks": {"peer-without": count}}, "the script's map")
        rows = re.findall(r"^[\d:]+ +(\d+) +\d+ peer-without +10\.1\.0\.2$", script.text, re.M)
        equal(sorted(map(int, rows)), ports, f"local ports in {script.text}")


@case("gl-drops: protected packets that each port drops, by the limit that they met")
def drops():
    with cable(options="color rate 100kbit limit 4k") as net:
        with net.a:
            sender = socket.socket(type=socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, IMPORTANT.dscp << 2)
        with Script("gl-drops") as script, sender:
            for _ in range(20):
                sender.sendto(bytes(1000), ("10.1.0.2", 9))
        shown = next(q for q in json.loads(subprocess.run(
            ["tc", "-n", "left", "-s", "-j", "qdisc", "show", "dev", "va"], check=True,
            capture_output=True).stdout) if q["kind"] == "color")
        count = shown["colors"]["green"]["drops"]["limit"]
        true(count > 10, "green packets were dropped")
        equal(script.maps, {"@drops": {"va,1,2": count}}, "the script's map")


@case("gl-clocks: the ACK clocks of each flow")
def clocks():
    with cable() as net:
        pairs = [net.connect() for _ in range(4)]
        with Script("gl-clocks") as script:
            net.send(pairs, 200_000)
        found = script.maps.get("@ipv4", {})
        for client, _ in pairs:
            mine = {key: value for key, value in found.items()
                    if key.split(",")[1] == str(client.getsockname()[1])}
            seen = info(client)
            equal(sum(mine.values()), seen["clocks_byte"] + seen["clocks_mss"], f"clocks: {found}")
            equal({key.split(",")[0] for key in mine} - {"10.1.0.2"}, set(), "peers")
        true(sum(found.values()) > 0, "clocks were sent")


@case("gl-states: the time in each state, as many values as echoes and important packets")
def states():
    with cable() as net:
        pairs = [net.connect() for _ in range(4)]
        with Script("gl-states") as script:
            net.send(pairs, 200_000)
        seen = [info(client) for client, _ in pairs]
        waiting, armed = (sum(bucket["count"] for bucket in script.maps[name])
                          for name in ("@waiting_us", "@armed_us"))
        equal(waiting, sum(one["echoes"] for one in seen), "values of waiting")
        sent = sum(one["important_sent"] + one["clocks_byte"] + one["clocks_mss"] for one in seen)
        true(0 < armed <= min(sent, waiting), f"{armed} values of armed, {sent} sent")
        true("@echoed" not in script.maps, "the map of times is not printed")


def numbers(end):
    """The next sequence number of a socket, and the next that it expects."""
    end.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    found = []
    for queue in (TCP_SEND_QUEUE, TCP_RECV_QUEUE):
        end.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
        found.append(end.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) & 0xffffffff)
    end.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, -1)      # without a window probe
    return found


@case("gl-credits: wasted credits of each flow")
def wasted():
    with cable("xpass", "color rate 20mbit limit 200k preset xpass") as net:
        client, server = net.connect()
        net.send([(client, server)], 20_000)
        time.sleep(1)
        (seq, ack), ports = numbers(server), (server.getsockname()[1], client.getsockname()[1])
        with net.b:
            forger = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with Script("gl-credits") as script, forger:
            before, last = net.a.greenlane(), net.b.greenlane()["CreditSent"]
            for number in range(last + 1, last + 31):
                credit = make(4, "10.1.0.2", "10.1.0.1", *ports, seq, ack, dscp=CREDIT.dscp,
                              options=option(CREDIT, number))
                forger.sendto(credit.raw, ("10.1.0.1", 0))
            time.sleep(1)
            after = net.a.greenlane()
        grown = {name: after[name] - before[name]
                 for name in ("CreditReceived", "CreditWasted", "Invalid")}
        equal(grown, {"CreditReceived": 30, "CreditWasted": 30, "Invalid": 0}, "counters")
        equal(script.maps, {"@wasted": {f"{ports[1]},{ports[0]}": 30}}, "the script's map")


if __name__ == "__main__":
    main(prepare)
