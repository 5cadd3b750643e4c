# SPDX-License-Identifier: GPL-2.0
"""System calls that Python 3.11 has no function for."""

import contextlib
import ctypes
import os
import struct
import time

_CAPABILITY_VERSION_3 = 0x20080522
_CAP_NET_ADMIN = 12
_CLONE_NEWNET = 0x40000000
_MS_BIND = 4096
_MNT_DETACH = 2
_PR_SET_TIMERSLACK, _PR_GET_TIMERSLACK = 29, 30
_TIMER_ABSTIME = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def unshare_network():
    """Move this thread into a new network namespace."""
    _check(_LIBC.unshare(_CLONE_NEWNET), "unshare")


def enter_network(fd):
    """Move this thread into the network namespace of an open file."""
    _check(_LIBC.setns(fd, _CLONE_NEWNET), "setns")


def bind_mount(source, target):
    """mount --bind"""
    _check(_LIBC.mount(source.encode(), target.encode(), b"none", _MS_BIND, None), "mount")


def detach_mount(target):
    """umount --lazy"""
    _check(_LIBC.umount2(target.encode(), _MNT_DETACH), "umount")


@contextlib.contextmanager
def without_net_admin():
    """This thread lacks CAP_NET_ADMIN meanwhile."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
    before = ctypes.create_string_buffer(24)
    _check(_LIBC.capget(header, before), "capget")
    effective, *others = struct.unpack("6I", before.raw)
    _check(_LIBC.capset(header, struct.pack("6I", effective & ~(1 << _CAP_NET_ADMIN), *others)),
           "capset")
    try:
        yield
    finally:
        _check(_LIBC.capset(header, before.raw), "capset")


def disconnect(s):
    """connect() to AF_UNSPEC, which socket.connect() cannot."""
    _check(_LIBC.connect(s.fileno(), bytes(16), 16), "connect")


def exact_timers():
    """Sleeps and polls of this thread end to the nanosecond, not some 50 us later."""
    _check(_LIBC.prctl(_PR_SET_TIMERSLACK, 1), "prctl")


def sleep_until(seconds, nanoseconds):
    """Sleep until that time of CLOCK_MONOTONIC, exactly.

    With slack the kernel may wake the thread up to 50 us later, or on time if it has
    another timer to serve then; kernel versions differ in that.
    """
    until = ctypes.create_string_buffer(struct.pack("qq", seconds, nanoseconds))
    slack = _LIBC.prctl(_PR_GET_TIMERSLACK)
    exact_timers()
    _LIBC.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, until, None)
    _check(_LIBC.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(slack)), "prctl")


def ppoll(fds, events, seconds):
    """Wait for one of the events on any fd, or so long; poll() only knows milliseconds.  Returns the
    number of fds that have one."""
    timeout = struct.pack("qq", int(seconds), int(seconds % 1 * 1e9) + 1)
    entries = b"".join(struct.pack("ihh", fd, events, 0) for fd in fds)
    return _LIBC.ppoll(ctypes.create_string_buffer(entries), ctypes.c_ulong(len(fds)),
                       ctypes.create_string_buffer(timeout), None, ctypes.c_size_t(8))
