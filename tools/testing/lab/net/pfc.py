# SPDX-License-Identifier: GPL-2.0
"""A switch of two ports that pauses, and pause frames (IEEE 802.1Qbb).

	 neighbour           the switch          neighbour
	    n0 ============ p0 -------> p1 ============ n1
	                 [ color ]   [ color ]

All of it is in one namespace.  What is written to n0 comes in by p0 and is queued in p1's port.
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
    """A pause frame: {priority: quanta}."""
    enabled = sum(1 << priority for priority in times)
    return (ADDRESS + source + struct.pack("!HHH", PAUSE, PFC, enabled) + struct.pack(
        "!8H", *(times.get(priority, 0) for priority in range(8)))).ljust(60, b"\0")


def times(data):
    """{priority: quanta} of a frame, or None if it is no pause frame."""
    if data[:6] != ADDRESS or struct.unpack_from("!HH", data, 12) != (PAUSE, PFC):
        return None
    enabled, *quanta = struct.unpack_from("!H8H", data, 16)
    return {priority: quanta[priority] for priority in range(8) if enabled & 1 << priority}


def mac(dev):
    """The address of a device."""
    return bytes.fromhex(json.loads(p.run("ip", "-j", "link", "show", "dev", dev).stdout)[0]
                         ["address"].replace(":", ""))


class Switch:
    """Two ports with these options, and what their neighbours send and hear."""

    def __init__(self, options0="", options1="", bridge=False):
        p.insmod()
        p.fresh_namespace()
        p.veth("n0", "p0")
        p.veth("n1", "p1")
        if bridge:
            p.run("ip", "-batch", "-", text="link add br0 type bridge\nlink set br0 up\n"
                  "link set p0 master br0\nlink set p1 master br0\n")
            p.settle(20)                # until it forwards
        else:
            for one, other in ((0, 1), (1, 0)):
                p.tc(f"qdisc add dev p{one} ingress")
                p.tc(f"filter add dev p{one} parent ffff: matchall"
                     f" action mirred egress redirect dev p{other}")
        for dev, options in (("p0", options0), ("p1", options1)):
            p.tc(f"qdisc add dev {dev} root handle 1: color {options}")
        self.senders = [p.Sender("n0"), p.Sender("n1")]
        self.receivers = [p.Receiver("n0"), p.Receiver("n1")]
        # The first time stamp switches them on.
        self.senders[0].send(p.ipv4(64))
        while not self.receivers[1].frames(1):      # until the device's link is up
            self.senders[0].send(p.ipv4(64))

    def send(self, data, count=1):
        """From n0, so that it is queued in p1's port."""
        self.senders[0].send(data, count)
        p.settle(0.0001)

    def pause(self, times_, number=1):
        """n1 pauses p1."""
        self.senders[number].send(frame(times_))

    @contextlib.contextmanager
    def held(self, times_, number=1):
        """n1 pauses p1 all the time: the longest pause of 10 Gbit/s is 3.4 ms."""
        done = threading.Event()

        def pause():
            with contextlib.suppress(OSError):      # the device is gone
                while not done.is_set():
                    self.pause(times_, number)
                    p.settle(0.002)
        thread = threading.Thread(target=pause)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def heard(self, wait=0.001):
        """[(when, {priority: quanta})] that n0 has heard, until none comes for so long: a pause is
        extended after 1.7 ms."""
        return [(when, times(data)) for when, data in self.receivers[0].frames(wait=wait)
                if times(data) is not None]

    def arrived(self, wait=0.01, count=None):
        """[(when, number)] of the data that came out at n1."""
        got = [(when, data) for when, data in self.receivers[1].frames(count, wait)
               if times(data) is None]
        return list(zip((when for when, _ in got), p.numbers(got)))

    def change(self, dev, words):
        """tc qdisc change."""
        p.tc(f"qdisc change dev {dev} root color {words}")

    def close(self):
        """The sockets go, and the namespace with the next one."""
        for end in self.senders + self.receivers:
            end.close()


@contextlib.contextmanager
def switch(*args, **kwargs):
    """One, for a while."""
    net = Switch(*args, **kwargs)
    try:
        yield net
    finally:
        net.close()


def stats(dev="p0"):
    """What a port says of its link."""
    return p.shown(dev)["pause"]
