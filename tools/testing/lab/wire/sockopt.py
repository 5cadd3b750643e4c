# SPDX-License-Identifier: GPL-2.0
"""greenlane's socket options, as in include/uapi/linux/greenlane.h."""
import errno
import socket
import struct

from lab.codepoints import dscp_of
from lab.tap import Failed, equal

GREENLANE_INFO, GREENLANE_TLT, GREENLANE_AEOLUS, GREENLANE_BDP = range(0x4c470, 0x4c474)
GREENLANE_MESSAGE, GREENLANE_WEIGHT, GREENLANE_SENDERS, GREENLANE_COSENDERS = \
    range(0x4c474, 0x4c478)
TCP_CONGESTION, TCP_INFO, TCP_MD5SIG = 13, 11, 14
SO_MAX_PACING_RATE = 47
YES, NO = 1, 2                      # greenlane_info.peer
F_OFF, F_UNSUPPORTED, F_REORDERED = 1, 4, 8     # greenlane_info.flags

COUNTERS = ("important_sent echoes clocks_byte clocks_mss marked_lost rearmed"
            " echoes_sent credits_sent credits_received credit_rate credits_wanted"
            " unscheduled bdp messages senders divisor").split()
GAUGES = ("credit_rate", "credits_wanted", "bdp", "senders", "divisor")
_INFO = struct.Struct(f"4B{len(COUNTERS)}I")
INFO_SIZE = _INFO.size


def ip_level(s):
    """The level of greenlane's options on this socket."""
    return socket.IPPROTO_IP if s.family == socket.AF_INET else socket.IPPROTO_IPV6


def info(s):
    """struct greenlane_info as a dict."""
    fields = _INFO.unpack(s.getsockopt(ip_level(s), GREENLANE_INFO, INFO_SIZE))
    return dict(zip(["state", "peer", "flags", "reserved", *COUNTERS], fields))


def option(s, name, value=None):
    """Read a numeric socket option, or set it; returns its value."""
    if value is None:
        return s.getsockopt(ip_level(s), name)
    s.setsockopt(ip_level(s), name, value)
    return value


def abort(*sockets):
    """Close the sockets with an RST, so that no unsent data or TIME_WAIT remains."""
    for s in sockets:
        if s.fileno() >= 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()


def tos(version, dscp):
    """The option, for Wire.connect(), of an application that sets a DSCP."""
    return {"IP_TOS" if version == 4 else "IPV6_TCLASS": dscp_of(dscp) << 2}


def set_tos(s, value):
    """Set IP_TOS or IPV6_TCLASS."""
    if s.family == socket.AF_INET:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, value)
    else:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, value)


def sign(s, peer):
    """Sign segments with TCP-MD5 from now on, for this peer (IPv4)."""
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG,
                 address + struct.pack("=BBHi80s", 0, 0, 8, 0, b"password"))


def tcp_info(s, at, form="I"):
    """A field of struct tcp_info."""
    return struct.unpack_from(form, s.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256), at)[0]


def mss(s):
    """TCP's MSS, with time stamps."""
    return tcp_info(s, 16)


def ssthresh(s):
    """TCP's slow start threshold, packets."""
    return tcp_info(s, 76)


def cwnd(s):
    """TCP's window, packets."""
    return tcp_info(s, 80)


def pacing(s):
    """TCP's current pacing rate, bytes of payload/s."""
    return tcp_info(s, 104, "Q")


def min_rtt(s):
    """TCP's minimum RTT, us."""
    return tcp_info(s, 148)


def cc_of(s):
    """The name of the socket's congestion control."""
    return s.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).partition(b"\0")[0].decode()


def choose(s, cc):
    """Set the socket's congestion control."""
    s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())


def refused(what, code, function, *args):
    """function(*args) must fail with errno code."""
    try:
        function(*args)
    except OSError as err:
        equal(errno.errorcode[err.errno], errno.errorcode[code], what)
    else:
        raise Failed(f"{what}: accepted")
