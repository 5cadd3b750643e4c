# SPDX-License-Identifier: GPL-2.0
"""A switch with two ports that sends and obeys pause frames (IEEE 802.1Qbb).

	 neighbour           the switch          neighbour
	    n0 ============ p0 -------> p1 ============ n1
	                 [ color ]   [ color ]

All devices are in one namespace.  A frame written to n0 is received by p0 and queued at p1.
"""
import contextlib
import json
import struct
import threading

from lab.net import frames as p

ADDRESS = bytes.fromhex("0180c2000001")
PAUSE, PFC = 0x8808, 0x0101
ALL = 0xff


def frame(times, source=bytes.fromhex("020000000009")):
    """A PFC frame with these times, {priority: quanta}."""
    enabled = sum(1 << priority for priority in times)
    return (ADDRESS + source + struct.pack("!HHH", PAUSE, PFC, enabled) + struct.pack(
        "!8H", *(times.get(priority, 0) for priority in range(8)))).ljust(60, b"\0")


def times(data):
    """{priority: quanta} of a PFC frame, or None of another frame."""
    if data[:6] != ADDRESS or struct.unpack_from("!HH", data, 12) != (PAUSE, PFC):
        return None
    enabled, *quanta = struct.unpack_from("!H8H", data, 16)
    return {priority: quanta[priority] for priority in range(8) if enabled & 1 << priority}


def mac(dev):
    """The link-layer address of a device."""
    return bytes.fromhex(json.loads(p.run("ip", "-j", "link", "show", "dev", dev).stdout)[0]
                         ["address"].replace(":", ""))


@contextlib.contextmanager
def repeated(send, interval):
    """Meanwhile send() sends a frame each `interval` s."""
    done = threading.Event()

    def loop():
        with contextlib.suppress(OSError):      # the device is gone
            while not done.is_set():
                send()
                p.settle(interval)
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Switch:
    """Two ports with these options of color, and a Sender and a Receiver at each neighbour."""

    def __init__(self, options0="", options1="", bridge=False):
        p.insmod()
        p.fresh_namespace()
        p.veth("n0", "p0")
        p.veth("n1", "p1")
        if bridge:
            p.run("ip", "-batch", "-", text="link add br0 type bridge\nlink set br0 up\n"
                  "link set p0 master br0\nlink set p1 master br0\n")
            p.settle(20)                # until the bridge forwards
        else:
            for one, other in ((0, 1), (1, 0)):
                p.tc(f"qdisc add dev p{one} ingress")
                p.tc(f"filter add dev p{one} parent ffff: matchall"
                     f" action mirred egress redirect dev p{other}")
        for dev, options in (("p0", options0), ("p1", options1)):
            p.tc(f"qdisc add dev {dev} root handle 1: color {options}")
        self.senders = [p.Sender("n0"), p.Sender("n1")]
        self.receivers = [p.Receiver("n0"), p.Receiver("n1")]
        # The first time stamp enables them in the kernel.
        self.senders[0].send(p.ipv4(64))
        while not self.receivers[1].frames(1):      # until the device is up
            self.senders[0].send(p.ipv4(64))

    def send(self, data, count=1):
        """Send frames from n0, which are queued at p1."""
        self.senders[0].send(data, count)
        p.settle(0.0001)

    def pause(self, times_, number=1):
        """Neighbour `number` sends a PFC frame to its port: n1 pauses p1."""
        self.senders[number].send(frame(times_))

    def held(self, times_, number=1):
        """Meanwhile n1 pauses p1 every 2 ms: the longest pause at 10 Gbit/s is 3.4 ms."""
        return repeated(lambda: self.pause(times_, number), 0.002)

    def received(self, wait=0.001):
        """[(ns, {priority: quanta})] of the PFC frames that n0 received, until no frame arrives for
        `wait` s: a pause is extended after 1.7 ms."""
        return [(when, times(data)) for when, data in self.receivers[0].frames(wait=wait)
                if times(data) is not None]

    def arrived(self, wait=0.01, count=None):
        """[(ns, number)] of the data that arrived at n1."""
        got = [(when, data) for when, data in self.receivers[1].frames(count, wait)
               if times(data) is None]
        return list(zip((when for when, _ in got), p.numbers(got)))

    def change(self, dev, words):
        """tc qdisc change."""
        p.tc(f"qdisc change dev {dev} root color {words}")

    def close(self):
        """Close the sockets; the next fresh_namespace() removes the devices."""
        for end in self.senders + self.receivers:
            end.close()


@contextlib.contextmanager
def switch(*args, **kwargs):
    """A Switch that is closed at the end of the block."""
    net = Switch(*args, **kwargs)
    try:
        yield net
    finally:
        net.close()


def stats(dev="p0"):
    """The statistics of a port's pauses, as tc shows them."""
    return p.shown(dev)["pause"]
