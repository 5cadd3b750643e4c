# SPDX-License-Identifier: GPL-2.0
"""Settings of a device of the current namespace, as ethtool(8) sets them: a guest takes longer to
start that program than to build the rest of a test's network."""

import ctypes
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_SSET, _STSO, _SGSO = 2, 0x1f, 0x24         # ETHTOOL_*
_FULL_DUPLEX = 1


def _set(dev, command):
    given = ctypes.create_string_buffer(command)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, _SIOCETHTOOL,
                    struct.pack("16sP16x", dev.encode(), ctypes.addressof(given)))


def set_speed(dev, mbit):
    """Set the speed, in Mbit/s, that a tun device reports; None: unknown.  The kernel sends no event:
    its users read the speed again after the device was set down, or had lost its carrier, and is up
    again."""
    low, high = divmod(0xffffffff if mbit is None else mbit, 1 << 16)[::-1]
    _set(dev, struct.pack("=3IH2B4x8xH14x", _SSET, 0, 0, low, _FULL_DUPLEX, 0, high))


def no_segmentation(dev):
    """Set TSO and GSO off."""
    for command in (_STSO, _SGSO):
        _set(dev, struct.pack("II", command, 0))
