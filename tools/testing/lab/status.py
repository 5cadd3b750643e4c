# SPDX-License-Identifier: GPL-2.0
"""Runs greenlane status for tests; a cable (veth) with a color port to look at."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.tap import equal, need_tree, true
from lab.wire.sockopt import abort
from lab.wire.wire import Wire

TOOL = TOP / "scripts/greenlane"
STATE = "/run/greenlane/status.json"
# A program: both ends of a connection in its namespace.  It prints a row when the connection is
# established, and ends with its stdin.
CONNECTION = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
print(flush=True)
sys.stdin.read()
"""


def tool(*words, command=(sys.executable, TOOL)):
    """(exit status, stdout, stderr) of greenlane."""
    need_tree("scripts/greenlane")
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def forget():
    """Delete the state file, so that the next status has no previous one to compare with."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(STATE)


def exit_status(said):
    """The expected exit status of this output: 3 if its only problems are "blind"."""
    found = {problem["id"] for problem in said["problems"]}
    return 0 if not found else 3 if found == {"blind"} else 1


def look(*words):
    """The output of greenlane status --json; its exit status must agree with its problems."""
    status, out, err = tool("status", "--json", *words)
    equal(err, "", "stderr")
    said = json.loads(out)
    equal(status, exit_status(said), "exit status")
    return said


def ids(said):
    """The sorted names of the reported problems, without duplicates."""
    return sorted({problem["id"] for problem in said["problems"]})


def sentence(said, name):
    """The text of all problems with this name."""
    return " ".join(p["where"] + " " + p["text"] for p in said["problems"] if p["id"] == name)


def connections(said, ns):
    """The reported connections of one namespace."""
    return [c for c in said["connections"].values()
            if said["namespaces"][c["ns"]]["name"] == ns.name]


def busy(cable, pair):
    """The output of status after one megabyte of traffic; an earlier status is its base."""
    look()
    cable.send([pair])
    return look()


def heal_tunnel(cable, kind, words=""):
    """``greenlane status`` names a tunnel that does not copy the DSCP, and the printed cure repairs it.

    `words` are further options of ip for the tunnel, with {dev} for the device below it.  Returns
    the cure, and the names of the problems before and after it."""
    for ns, dev, own in ((cable.a, "va", 1), (cable.b, "vb", 2)):
        ns.ip(f"link add tun1 type {kind} id 5 remote 10.1.0.{3 - own} {words.format(dev=dev)}",
              f"addr add 10.2.0.{own}/24 dev tun1", "link set tun1 up")
    pair = cable.connect("10.2.0.2")
    said = busy(cable, pair)
    before = ids(said)
    true(f"tun1 is a tunnel ({kind})" in sentence(said, "only-yellow"), f"{before}: {said['problems']}")
    command, = [p["advice"].partition(": ")[2].removesuffix(".") for p in said["problems"]
                if p["id"] == "only-yellow"]
    for ns, peer in ((cable.a, 2), (cable.b, 1)):
        # The printed cure names a's peer.
        ns.ip(command.removeprefix("ip ").replace("10.1.0.2", f"10.1.0.{peer}"))
    said = busy(cable, pair)
    port, = said["ports"].values()
    true(port["change"]["red_packets"] > 500, "red packets")
    return command, before, ids(said)


def exchange(wire, client, server, count=100_000):
    """Transfer bytes in both directions, and wait for the last echoes."""
    true(wire.transfer(client, server, count), "arrives")
    true(wire.transfer(server, client, count), "arrives back")
    wire.run(5e-3)


@contextlib.contextmanager
def watched(of=Wire, **options):
    """A wire, or the result of another context manager, without a state file of status."""
    forget()
    with of(**options) as wire:
        yield wire


class Cable:
    """Two namespaces, a veth between them, a color port on a's side."""
    MAC = "02:00:00:00:00:0{}"

    def __init__(self, options, cc="tlt_reno", delay=None):
        modules.load("sch_color")
        modules.load_for(cc)
        self.a, self.b = Namespace("left"), Namespace("right")
        self.devices()
        for ns, dev, own in ((self.a, "va", 1), (self.b, "vb", 2)):
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)
            ns.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
            # In real time ARP would repeat its request when a test does not expect a packet.
            ns.ip(f"addr add 10.1.0.{own}/24 dev {dev}", f"link set {dev} up",
                  f"neigh replace 10.1.0.{3 - own} dev {dev} lladdr {self.MAC.format(3 - own)}")
        self.tc(self.a, f"qdisc add dev va root handle 1: {options}")
        if delay:
            self.tc(self.b, f"qdisc add dev vb root netem delay {delay}")
        self._open = []

    def devices(self):
        """Add va to a and vb to b, linked to each other."""
        subprocess.run(["ip", "link", "add", "va", "address", self.MAC.format(1), "netns", "left",
                        "type", "veth", "peer", "name", "vb", "address", self.MAC.format(2),
                        "netns", "right"], check=True)

    @staticmethod
    def tc(ns, words):
        """Run tc in one of the namespaces."""
        subprocess.run(["tc", "-n", ns.name, *words.split()], check=True)

    def connect(self, address="10.1.0.2"):
        """A connection from a to an address of b: (client, server)."""
        with self.b:
            listener = socket.create_server((address, 0))
        with self.a:
            client = socket.create_connection(listener.getsockname(), timeout=60)
        server = listener.accept()[0]
        server.settimeout(60)
        listener.close()
        self._open += [client, server]
        return client, server

    @staticmethod
    def send(pairs, count=1_000_000):
        """All clients send `count` bytes at the same time, and all servers read them."""
        def read(server):
            left = count
            while left:
                left -= len(server.recv(min(left, 1 << 20)))

        threads = [threading.Thread(target=read, args=[server]) for _, server in pairs]
        threads += [threading.Thread(target=client.sendall, args=[bytes(count)])
                    for client, _ in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.1)

    def burst(self, count, size):
        """`count` new connections send `size` bytes each at the same time: the time of the slowest,
        s."""
        pairs = [self.connect() for _ in range(count)]
        time.sleep(10e-3)
        done, begun = [], time.monotonic()
        for client, _ in pairs:
            client.setblocking(False)
            client.send(bytes(size))

        def read(server):
            left = size
            while left:
                left -= len(server.recv(left))
            done.append(time.monotonic() - begun)
        threads = [threading.Thread(target=read, args=[server]) for _, server in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(done)

    def __enter__(self):
        forget()
        return self

    def __exit__(self, *exc):
        # With an RST: a FIN that the port dropped would keep the namespaces for minutes.
        abort(*self._open)
        self.a.remove()
        self.b.remove()
