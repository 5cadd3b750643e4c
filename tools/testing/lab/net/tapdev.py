# SPDX-License-Identifier: GPL-2.0
"""A tap device that stops its queue when its reader is slow, as a network card does.

A packet for which the device has no room returns to the qdisc layer: it was dequeued, and is
requeued in front of the qdisc.
"""

import fcntl
import os
import select
import struct
import time

from lab.net import frames
from lab.tap import Skip

_TUNSETIFF, _TUNGETFEATURES = 0x400454ca, 0x800454cf
_IFF_TAP, _IFF_NO_PI, _IFF_BACKPRESSURE = 2, 0x1000, 0x80
# With several queues the core sees only after dequeue() that the device's queue is stopped.
_IFF_MULTI_QUEUE = 0x100


class Tap:
    """A tap device, up, that holds up to `room` packets besides its qdisc."""

    def __init__(self, name, room=4):
        if not os.path.exists("/dev/net/tun"):
            os.makedirs("/dev/net", exist_ok=True)
            os.mknod("/dev/net/tun", 0o600 | 0o020000, os.makedev(10, 200))
        self._fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        # Kernels without the flag ignore it.
        known, = struct.unpack("I", fcntl.ioctl(self._fd, _TUNGETFEATURES, bytes(4)))
        if not known & _IFF_BACKPRESSURE:
            os.close(self._fd)
            raise Skip("this kernel's tap devices drop when they are full")
        fcntl.ioctl(self._fd, _TUNSETIFF, struct.pack(
            "16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_BACKPRESSURE
            | _IFF_MULTI_QUEUE))
        frames.run("ip", "link", "set", name, "txqueuelen", str(room), "up")

    def read(self, wait=0.3):
        """Read frames until none arrives for `wait` s; returns each arrival, ns after the first."""
        came = []
        while select.select([self._fd], [], [], wait)[0]:
            os.read(self._fd, 1 << 16)
            came.append(time.monotonic_ns())
        return [when - came[0] for when in came]

    def close(self):
        """Remove the device."""
        os.close(self._fd)
