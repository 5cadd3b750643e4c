# SPDX-License-Identifier: GPL-2.0
"""Two dumps of rtnetlink, of the current namespace.

A look needs both of every namespace, and ip and tc take milliseconds to start.  It starts them only
where these dumps show a port, a queue or a route that matters.
"""
import socket
import struct

_NLMSG = struct.Struct("=IHHII")        # length, type, flags, sequence number, port
_RTA = struct.Struct("=HH")
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLM_F_DUMP = 0x301                     # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_RTM_GETROUTE, _RTM_GETQDISC = 26, 38
_RTMSG_LEN, _TCMSG_LEN = 12, 20
_RTA_METRICS, _RTAX_CC_ALGO, _TCA_KIND = 8, 16, 1
_NLA_TYPE = 0x3fff                      # without NLA_F_NESTED and NLA_F_NET_BYTEORDER


def _attributes(data):
    """(type, value) of each."""
    while len(data) >= _RTA.size:
        length, kind = _RTA.unpack_from(data)
        if length < _RTA.size:
            return
        yield kind & _NLA_TYPE, data[_RTA.size:length]
        data = data[(length + 3) & ~3:]


def _text(value):
    return bytes(value).partition(b"\0")[0].decode(errors="surrogateescape")


def _dump(request, header):
    """The attributes of each object that a dump lists; OSError if the kernel refuses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as sock:
        sock.sendall(_NLMSG.pack(_NLMSG.size + len(header), request, _NLM_F_DUMP, 1, 0) + header)
        while True:
            data = memoryview(sock.recv(1 << 16))
            while len(data) >= _NLMSG.size:
                length, kind, *_ = _NLMSG.unpack_from(data)
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    error = -struct.unpack_from("=i", data, _NLMSG.size)[0]
                    raise OSError(error, "rtnetlink")
                yield _attributes(data[_NLMSG.size + len(header):length])
                data = data[(length + 3) & ~3:]


def congctls():
    """The congestion controls that routes select."""
    found = set()
    for family in (socket.AF_INET, socket.AF_INET6):
        for route in _dump(_RTM_GETROUTE, bytes([family]) + bytes(_RTMSG_LEN - 1)):
            found.update(_text(value) for kind, metrics in route if kind == _RTA_METRICS
                         for kind, value in _attributes(metrics) if kind == _RTAX_CC_ALGO)
    return found


def qdiscs():
    """The kinds of qdiscs of all devices."""
    return {_text(value) for qdisc in _dump(_RTM_GETQDISC, bytes(_TCMSG_LEN))
            for kind, value in qdisc if kind == _TCA_KIND}
