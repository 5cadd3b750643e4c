#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd in a fabric that pauses: a detour closes a cycle of links, the escape lane opens it.

	   h1            h3
	    | hs          | hs
	   sw1 --------> sw2 --------> sw3 --------> sw1      1 Gbit/s; sw3's `out` 100 Mbit/s
	    |             |             |
	   out           out           out (iofd)             to the sinks

	A: h1 - sw1 - sw2 - sw3 - out     sw3 may deflect it to sw1, which has a port to that sink, too
	B: h3 - sw3 - sw1 - sw2 - out

A link waits for the next link of its packets: sw1 - sw2 for sw2 - sw3 (A), sw3 - sw1 for sw1 - sw2
(B).  A's detour adds that sw2 - sw3 waits for sw3 - sw1, and closes the cycle.  A's messages have
one token, so on the detour they are in the escape lane, which B does not use.
"""
import contextlib
import time

from lab.net import frames as p
from lab.net import iofd as i
from lab.net.namespace import Namespace
from lab.tap import case, equal, main, need_virtual_time, true

NEXT = {1: 2, 2: 3, 3: 1}
# A message is longer than Xoff, and follows its first packet also when sw3's port is idle again.
MESSAGES, LENGTH = 100, 8
TOTAL = 2 * MESSAGES * LENGTH
PORT = "limit 10m pause all xoff 5000 delay 5us unit 1514 storm never"
# Spent packets are first, in a band that a priority of its own pauses (7, the default).
ESCAPE = "bands 2 prio 53 0 prio 57 0"
# Flow numbers; from bit 16 on they are the third byte of the addresses: to 10.0.0.2, and 10.0.1.2.
A, B = 0, 1 << 16


class Ring:
    """The switches; sw3's port to its sink deflects if `deflects`, and all ports have these bands."""

    def __init__(self, deflects, bands=""):
        i.insmod()
        self.ns = {n: Namespace(f"sw{n}") for n in NEXT}
        for n, ns in self.ns.items():
            ns.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
            ns.sysctl("net.ipv4.ip_forward", 1)
            with ns:
                for dev, peer in (("out", "sink"), ("hs", "host")):
                    p.veth(dev, peer)
        for n, m in NEXT.items():
            self.ns[n].ip(f"link add to{m} type veth peer name to{n} netns sw{m}")
            for own, other in ((n, m), (m, n)):
                self.ns[own].ip(f"link set to{other} up", f"addr add 10.{n}.{m}.{own}/24 dev to{other}")
        for n, ns in self.ns.items():
            ns.ip("link set hs address 02:00:00:00:00:02",
                  *(f"neigh add 10.0.{net}.2 lladdr 02:00:00:00:00:99 dev out nud permanent"
                    for net in (0, 1)))
        self.ns[1].ip("route add 10.0.0.0/24 dev out", "route add 10.0.1.0/24 via 10.1.2.2",
                      "route add 10.0.0.0/24 via 10.1.2.2 table 100",
                      "rule add iif hs lookup 100")
        self.ns[2].ip("route add 10.0.0.0/24 via 10.2.3.3", "route add 10.0.1.0/24 dev out")
        self.ns[3].ip("route add 10.0.0.0/24 dev out", "route add 10.0.1.0/24 via 10.3.1.1")
        for n, ns in self.ns.items():
            with ns:
                for dev in self.ports(n):
                    rate = "100mbit" if (n, dev) == (3, "out") else "1gbit"
                    iofd = deflects and (n, dev) == (3, "out")
                    if iofd:
                        p.tc("qdisc add dev out root handle 1: iofd threshold 2000 entries 100"
                             " deflect dev to1 via 10.3.1.1")
                    p.tc(f"qdisc add dev {dev} {'parent 1:1' if iofd else 'root'} handle 2:"
                         f" color rate {rate} {PORT} {bands}")

    def ports(self, n):
        """The ports of a switch that pause."""
        return ["out", *(f"to{m}" for m in NEXT if m != n)]

    def open(self, what, n, dev):
        """A Sender or a Receiver at a switch."""
        with self.ns[n]:
            return what(dev)

    def seen(self, what):
        """{(switch, port): counter} of all ports."""
        found = {}
        for n, ns in self.ns.items():
            with ns:
                found.update({(n, dev): p.shown(dev)[what] for dev in self.ports(n)})
        return found

    def close(self):
        """Delete the queues, whose packets hold the namespaces, and remove these."""
        for n, ns in self.ns.items():
            with ns:
                for dev in self.ports(n):
                    p.tc(f"qdisc del dev {dev} root", check=False)
            ns.remove()


@contextlib.contextmanager
def ring(*args):
    """Switches that are removed at the end of the block."""
    net = Ring(*args)
    try:
        yield net
    finally:
        net.close()


def play(net):
    """Send all messages of both, and wait for a second; returns the numbers that arrived, by sink."""
    sinks = {n: net.open(p.Receiver, n, "sink") for n in NEXT}
    senders = {A: net.open(p.Sender, 1, "host"), B: net.open(p.Sender, 3, "host")}
    for base, sender in senders.items():        # neighbours are resolved
        sender.send(i.frame(0, base))
    time.sleep(0.1)
    for receiver in sinks.values():
        receiver.frames(wait=0.01)
    for number in range(MESSAGES):
        for base, sender in senders.items():
            for frame in i.message(LENGTH, base + number, (base + number) * 10, tokens=1):
                sender.send(frame)
    time.sleep(1)
    got = {n: p.numbers(receiver.frames(wait=0.01)) for n, receiver in sinks.items()}
    for each in (*senders.values(), *sinks.values()):
        each.close()
    return got


def check(net, got):
    """All packets arrived, each message at one sink and in order, and no queue has packets."""
    equal(sum(map(len, got.values())), TOTAL, "packets that arrived")
    for n, numbers in got.items():
        order = {}
        for number in numbers:
            order.setdefault(number // 10, []).append(number % 10)
        equal(set(map(tuple, order.values())) - {tuple(range(LENGTH))}, set(), f"order, sink {n}")
    equal(set(net.seen("backlog").values()), {0}, "bytes in queues")


@case("without detours: the ports pause, and all packets arrive")
def direct():
    with ring(False) as net:
        check(net, play(net))
        true(net.seen("pause")[3, "to2"]["off"], "sw3 pauses sw2")


@case("one lane: the detour closes a cycle, and traffic stops for good")
def deadlock():
    with ring(True) as net:
        play(net)
        before, waiting = net.seen("bytes"), net.seen("qlen")
        equal({port for port, packets in waiting.items() if packets},
              {(n, f"to{m}") for n, m in NEXT.items()}, "ports with packets")
        time.sleep(0.1)
        equal((net.seen("bytes"), net.seen("qlen")), (before, waiting),
              "bytes sent and packets queued, 100 ms later")


@case("the escape lane opens the cycle: all packets arrive, in order")
def escape():
    with ring(True, ESCAPE) as net:
        got = play(net)
        check(net, got)
        true(len(got[1]) > TOTAL / 10, f"packets that arrived by the detour: {len(got[1])}")


main(need_virtual_time)
