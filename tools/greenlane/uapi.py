# SPDX-License-Identifier: GPL-2.0
"""Constants and structs of the kernel's headers that Python lacks."""
import ctypes
import os
import socket
import struct

TCP_CONGESTION = 13         # linux/tcp.h
SO_COOKIE = 57              # asm-generic/socket.h
SO_NETNS_COOKIE = 71        # since Linux 5.14
CA_NAME_MAX = 16            # net/tcp.h: TCP_CA_NAME_MAX
SYS_PIDFD_GETFD = 438       # the same on all architectures
CLONE_NEWNET = 0x40000000   # linux/sched.h
TCP_SYN_SENT, TCP_CLOSE, TCP_LISTEN = 2, 7, 10      # net/tcp_states.h

# linux/greenlane.h
GREENLANE_INFO = 0x4c470
PEERS = ("unknown", "yes", "no")
FLAGS = {1: "off", 4: "unsupported", 8: "reordered"}
_INFO_NUMBERS = ("important_sent", "echoes", "clocks_byte", "clocks_mss", "marked_lost",
                 "rearmed", "echoes_sent", "credits_sent", "credits_received", "credit_rate",
                 "credits_wanted", "unscheduled", "bdp", "messages", "senders", "divisor")
# The others only grow.
_INFO_GAUGES = ("credit_rate", "credits_wanted", "bdp", "senders", "divisor")
_INFO = struct.Struct(f"4B{len(_INFO_NUMBERS)}I")

# struct tcp_info: the offsets of tcpi_state, tcpi_options, tcpi_pacing_rate
# (behind it: tcpi_max_pacing_rate, tcpi_bytes_acked) and tcpi_min_rtt
_TCP_STATE, _TCP_OPTIONS, _TCP_PACING, _TCP_MIN_RTT = 0, 5, 104, 148
_TCPI_OPT_ECN = 8
_TCP_INFO_LEN = 152
_NO_RTT = 0xffffffff

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def pidfd_getfd(pidfd, fd):
    """A duplicate of another process's file descriptor."""
    return _check(_libc.syscall(SYS_PIDFD_GETFD, pidfd, fd, 0), "pidfd_getfd")


def setns_net(fd):
    """Move this thread into a network namespace."""
    _check(_libc.setns(fd, CLONE_NEWNET), "setns")


def netns_cookie(sock):
    """The unique number of a socket's network namespace."""
    return struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))[0]


def congestion_control(sock):
    """The name of a socket's congestion control."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, CA_NAME_MAX)
    return raw.partition(b"\0")[0].decode()


def tcp_state(sock):
    """A socket's state, by the numbers of net/tcp_states.h."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[_TCP_STATE]


def tcp_info(sock):
    """A socket's state, whether it has negotiated ECN, its minimum round trip in microseconds or
    None, its pacing rate and the maximum of that in bytes/s, and the bytes acknowledged."""
    raw = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_LEN)
    pacing, most, acked = struct.unpack_from("QQQ", raw.ljust(_TCP_INFO_LEN, b"\0"), _TCP_PACING)
    rtt = struct.unpack_from("I", raw, _TCP_MIN_RTT)[0] if len(raw) >= _TCP_INFO_LEN else _NO_RTT
    return {"state": raw[_TCP_STATE], "ecn": bool(raw[_TCP_OPTIONS] & _TCPI_OPT_ECN),
            "min_rtt_us": None if rtt == _NO_RTT else rtt,
            "pacing_rate": pacing, "max_pacing_rate": most, "acked": acked}


def greenlane_info(sock):
    """struct greenlane_info; None if the connection is not greenlane's."""
    level = socket.IPPROTO_IP if sock.family == socket.AF_INET else socket.IPPROTO_IPV6
    try:
        raw = sock.getsockopt(level, GREENLANE_INFO, _INFO.size)
    except OSError:
        return None
    # An older module fills in less.
    _, peer, flags, _, *numbers = _INFO.unpack(raw.ljust(_INFO.size, b"\0"))
    counters = dict(zip(_INFO_NUMBERS, numbers))
    return {"peer": PEERS[peer] if peer < len(PEERS) else "unknown",
            "flags": [name for bit, name in FLAGS.items() if flags & bit],
            "gauges": {name: counters.pop(name) for name in _INFO_GAUGES}, "counters": counters}
