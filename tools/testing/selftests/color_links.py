#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: the link to which a packet is charged, and the PFC frames that belong to a link.

	 n0 ============ p0 -------> p1 ============ n1
	              [ color ]   [ color ]
"""
import contextlib
import fcntl
import os
import select
import struct
import time

from lab.net import frames as p
from lab.net import pfc
from lab.net.namespace import Namespace, write_sysctl
from lab.tap import case, equal, main, timed, true, within

PAUSING = "rate 8mbit limit 1m pause all xoff 5000 unit 1514"
STOPPED = "rate 8bit limit 1m pause obey"
EVERY = dict.fromkeys(range(8), 0xffff)
MS = 1000000


def redirect(one, other):
    """Forward each packet from one device to the other."""
    p.tc(f"qdisc add dev {one} ingress")
    p.tc(f"filter add dev {one} parent ffff: matchall action mirred egress redirect dev {other}")


@case("a PFC frame is not forwarded by tc's redirection, and acts on its own link only")
def forwarded():
    # h ==== a0 [switch 1] a1 ==== b0 [switch 2] b1 ==== t
    p.insmod()
    p.fresh_namespace()
    for pair in (("h9", "a0"), ("a1", "b0"), ("b1", "t9")):
        p.veth(*pair)
    for one, other in (("a0", "a1"), ("b0", "b1")):
        redirect(one, other)
        redirect(other, one)
        for dev in (one, other):
            p.tc(f"qdisc add dev {dev} root color rate 10gbit limit 1m pause all")
    p.tc("qdisc add dev h9 root color rate 10gbit limit 1m pause obey")
    tenant, host, end = p.Sender("t9"), p.Sender("h9"), p.Receiver("t9")
    host.send(p.ipv4(64))
    end.frames(1)
    tenant.send(pfc.frame(EVERY))
    p.settle(0.0005)
    equal([pfc.stats(dev)["heard"] for dev in ("b1", "b0", "a1", "a0", "h9")], [1, 0, 0, 0, 0],
          "PFC frames received by each port")
    equal(p.shown("b0")["queue"]["control_drops"], 1, "PFC frames that were not forwarded")
    true("pause frames of other links 1" in p.tc("-s qdisc show dev b0").stdout,
         "the drop in tc's text")
    host.send(p.ipv4(1000), 5)
    equal(len(end.frames(5, 0.01)), 5, "packets of a host two switches away")


@case("a port without PFC does not forward PFC frames either, but sends those of the host itself")
def plain():
    with pfc.switch("limit 1m", "limit 1m") as net:
        net.pause(EVERY, 0)
        p.settle(0.001)
        equal(len(net.receivers[1].frames(wait=0.001)), 0, "frames forwarded")
        equal(p.shown("p1")["queue"]["control_drops"], 1, "frames dropped")
        own = p.Sender("p1")
        own.send(pfc.frame(EVERY))
        own.close()
        equal(len(net.receivers[1].frames(wait=0.001)), 1, "PFC frames of the host itself")


@case("locally generated packets are charged to no link, also if redirected at egress")
def own():
    with pfc.switch(PAUSING, STOPPED) as net:
        p.tc("qdisc del dev p0 ingress")
        p.tc("qdisc add dev p0 clsact")
        for way in ("ingress", "egress"):
            p.tc(f"filter add dev p0 {way} matchall action mirred egress redirect dev p1")
        sender = p.Sender("p0")
        sender.send(p.ipv4(1000), 20)
        p.settle(0.001)
        equal(p.shown("p1")["qlen"], 20, "packets queued")
        equal((pfc.stats()["backlog"], net.received()), (0, []), "bytes charged, PFC frames")
        # Packets that the same device receives are still charged.
        net.send(p.ipv4(1000), 6)
        equal((pfc.stats()["backlog"], len(net.received())), (6000, 1), "bytes charged, PFC frames")
        sender.close()


def routed(vrf):
    """A router between two hosts, its ports in a VRF or not; returns the hosts."""
    p.insmod()
    p.fresh_namespace()
    ends = Namespace("a"), Namespace("b")
    lines = ["link add vrf0 up type vrf table 10"] if vrf else []
    for i, ns in enumerate(ends):
        lines += [f"link add p{i} type veth peer name n{i} netns {ns.name}"]
        lines += [f"link set p{i} master vrf0"] if vrf else []
        lines += [f"addr add 10.0.{i}.1/24 dev p{i}", f"link set p{i} up"]
    p.run("ip", "-batch", "-", text="\n".join(lines) + "\n")
    for i, ns in enumerate(ends):
        ns.ip(f"addr add 10.0.{i}.2/24 dev n{i}", f"link set n{i} up",
              f"route add default via 10.0.{i}.1")
    write_sysctl("net.ipv4.ip_forward", 1)
    return ends


@contextlib.contextmanager
def taken(ends):
    """Use the namespaces, then remove them."""
    try:
        yield ends
    finally:
        for ns in ends:
            ns.remove()


def refused(dev, words=PAUSING):
    """The message with which tc refuses the port."""
    done = p.tc(f"qdisc add dev {dev} root color {words}", check=False)
    true(done.returncode, f"{words} is accepted at {dev}")
    return done.stderr


@case("PFC is refused below a VRF or a bond, which hide the link; a port with PFC cannot be put "
      "there")
def hidden():
    with taken(routed(True)):
        for words in (PAUSING, "rate 1gbit pause obey"):
            true("VRF or a bond" in refused("p0", words), words)
        p.tc("qdisc add dev p0 root color rate 8mbit limit 1m")
        p.run("ip", "link", "set", "p1", "nomaster")
        p.tc(f"qdisc add dev p1 root color {PAUSING}")
        done = p.run("ip", "link", "set", "p1", "master", "vrf0", check=False)
        true(done.returncode and "VRF or a bond" in done.stderr, f"joining a VRF: {done.stderr!r}")
    p.fresh_namespace()
    p.veth("n0", "p0")
    p.veth("n1", "p1")
    p.run("ip", "-batch", "-", text="link add bond0 type bond mode active-backup miimon 100\n"
          "link set p0 down\nlink set p0 master bond0\nlink set bond0 up\n")
    true("VRF or a bond" in refused("p0"), "PFC is refused at a bond's member")
    p.tc(f"qdisc add dev p1 root color {PAUSING}")
    p.run("ip", "link", "set", "p1", "down")
    done = p.run("ip", "link", "set", "p1", "master", "bond0", check=False)
    true(done.returncode, "a port with PFC cannot become a bond's member")
    p.tc("qdisc del dev p1 root")
    p.run("ip", "link", "set", "p1", "master", "bond0")
    # A bridge forwards packets as they are.
    p.run("ip", "-batch", "-", text="link set p1 nomaster\nlink add br0 type bridge\n")
    p.tc(f"qdisc add dev p1 root color {PAUSING}")
    p.run("ip", "link", "set", "p1", "master", "br0")


class Guest:
    """A tap device, of which this program is the other end.  It drops when `room` frames wait."""

    def __init__(self, name, room, mbit=10000):
        if not os.path.exists("/dev/net/tun"):
            os.makedirs("/dev/net", exist_ok=True)
            os.mknod("/dev/net/tun", 0o600 | 0o020000, os.makedev(10, 200))
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.fd, 0x400454ca, struct.pack("16sH22x", name.encode(), 2 | 0x1000))
        p.run("ethtool", "-s", name, "speed", str(mbit), "duplex", "full", "autoneg", "off")
        p.run("ip", "link", "set", name, "txqueuelen", str(room), "up")

    def send(self, frame, count=1):
        """Send frames to the switch."""
        for _ in range(count):
            os.write(self.fd, frame)

    def pauses(self, wait, count=None):
        """PFC frames received within `wait` seconds: [(ns, {priority: quanta})]."""
        got, end = [], time.monotonic() + wait
        while time.monotonic() < end and len(got) != count:
            if select.select([self.fd], [], [], 0.0005)[0]:
                times = pfc.times(os.read(self.fd, 4000))
                if times is not None:
                    got.append((time.monotonic_ns(), times))
        return got

    def close(self):
        """Remove the device."""
        os.close(self.fd)


@contextlib.contextmanager
def guest(room=500, mbit=10000, words=PAUSING, egress="rate 8bit limit 200000 pause obey"):
    """A Guest at a port with PFC; its packets are queued in p1."""
    p.insmod()
    p.fresh_namespace()
    one = Guest("t0", room, mbit)
    p.veth("p1", "n1")
    p.tc(f"qdisc add dev t0 root color {words}")
    p.tc(f"qdisc add dev p1 root color {egress}")
    redirect("t0", "p1")
    try:
        yield one
    finally:
        one.close()


@timed("an Xoff is sent later if the device has no room for it")
def ring():
    with guest(room=4, words="rate 8mbit limit 200000 pause all xoff 30000 unit 1514") as one:
        back = p.Sender("t0")
        back.send(p.ipv4(100), 10)              # the ring is full
        p.settle(0.1)
        one.send(p.ipv4(1000), 33)
        p.settle(0.001)
        seen = pfc.stats("t0")
        true(seen["unsent"] > 0 and not seen["off"], f"not sent: {seen}")
        start = time.monotonic_ns()
        (when, times), = one.pauses(0.1, 1)
        within(when - start, 0, 5 * MS, "delay of the Xoff, ns")
        equal(times, EVERY, "priorities and quanta of the Xoff")
        back.close()


@timed("a pause on a slow link is shorter than the storm limit of the neighbour")
def slow():
    with guest(mbit=10, words="rate 10mbit limit 200000 pause all xoff 30000 unit 1514") as one:
        one.send(p.ipv4(1000), 33)
        got = one.pauses(0.2)
        # 976 quanta of 51.2 us are 50 ms
        equal([times for _, times in got], [dict.fromkeys(range(8), 976)] * len(got), "PFC frames")
        true(len(got) >= 7, f"{len(got)} PFC frames in 200 ms")
        for (a, _), (b, _) in zip(got, got[1:]):
            within(b - a, 24 * MS, 26 * MS, "time between two PFC frames, ns")


@timed("Xoff follows the speed of the device")
def speed():
    with guest(mbit=1000, words="rate 100mbit limit 200000 pause all delay 5us unit 1514") as one:
        packets = 3 * 1514 + 60
        equal(pfc.stats("t0")["xoff"], 200000 - 1250 - packets, "Xoff at 1 Gbit/s")
        p.run("ethtool", "-s", "t0", "speed", "10000", "duplex", "full", "autoneg", "off")
        p.run("ip", "link", "set", "t0", "down")
        p.run("ip", "link", "set", "t0", "up")
        p.settle(0.1)
        equal(pfc.stats("t0")["xoff"], 200000 - 12500 - packets, "Xoff at 10 Gbit/s")
        one.send(p.ipv4(1000), 1)


main()
