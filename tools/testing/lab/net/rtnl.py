# SPDX-License-Identifier: GPL-2.0
"""Netlink byte by byte: messages about qdiscs that tc would not send, attributes of a device for
which ip would have to be newer than the kernel, and the addresses and routes of a host: a guest
takes 9 ms to start ip, and a test or an experiment sets up hundreds of hosts."""
import ipaddress
import os
import socket
import struct

from lab.net.namespace import FAMILY

RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_NEWROUTE = 16, 18, 20, 24
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER = 44, 45, 46
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCA_KIND, TCA_OPTIONS, TCA_STATS = 1, 2, 3
NLA_F_NESTED = 0x8000
# Of struct ifinfomsg, ifaddrmsg and rtmsg, and their attributes (uapi/linux)
_IFF_UP, _IFLA_MTU, _IFLA_GSO_MAX_SEGS = 1, 4, 40
_IFA_ADDRESS, _IFA_LOCAL, _IFA_F_NODAD = 1, 2, 2
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_METRICS = 1, 4, 5, 8
_RTAX_LOCK, _RTAX_RTO_MIN = 1, 13
_MAIN, _BOOT, _LINK, _UNICAST = 254, 3, 253, 1
TC_H_ROOT = 0xffffffff
HANDLE = 1 << 16


def attr(kind, data, length=None):
    """An attribute; its length may be wrong."""
    head = struct.pack("HH", len(data) + 4 if length is None else length, kind)
    return head + data + bytes(-len(data) % 4)


def _attrs(data):
    """{kind: bytes} of a series of attributes."""
    found = {}
    while data:
        length, kind = struct.unpack_from("HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[length + 3 & ~3:]
    return found


def _words(values):
    """Attributes of 32 bits each: {kind: value}."""
    return b"".join(attr(kind, struct.pack("I", value)) for kind, value in values.items())


def _message(kind, flags, number, body):
    return struct.pack("IHHII", len(body) + 16, kind, flags | NLM_F_REQUEST, number, 0) + body


def set_link(dev, values):
    """Set these attributes of a device, {IFLA_*: 32 bits}; True if the kernel supports all."""
    asked = struct.pack("BxHiII", 0, 0, socket.if_nametoindex(dev), 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(5)
        for kind, flags, body in ((RTM_NEWLINK, NLM_F_ACK, asked + _words(values)),
                                  (RTM_GETLINK, 0, asked)):
            s.send(_message(kind, flags, 1, body))
            reply = s.recv(65536)
            if struct.unpack_from("IH", reply)[1] == NLMSG_ERROR:
                error = -struct.unpack_from("i", reply, 16)[0]
                if error:
                    raise OSError(error, f"set_link({dev}, {values})")
    seen = _attrs(reply[32:])
    return all(seen.get(kind) == struct.pack("I", value) for kind, value in values.items())


class Host:
    """Changes of the current namespace's devices, addresses and routes, all by one message, as ip(8)
    would make them."""

    def __init__(self):
        self._requests = []

    def up(self, dev, mtu=None, gso_max_segs=None):
        """ip link set DEV up"""
        given = {_IFLA_MTU: mtu, _IFLA_GSO_MAX_SEGS: gso_max_segs}
        self._requests.append((RTM_NEWLINK, 0, struct.pack(
            "BxHiII", 0, 0, socket.if_nametoindex(dev), _IFF_UP, _IFF_UP)
            + _words({kind: value for kind, value in given.items() if value})))

    def address(self, dev, address):
        """ip address add ADDRESS dev DEV nodad"""
        own = ipaddress.ip_interface(address)
        self._requests.append((RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, struct.pack(
            "BBBBi", FAMILY[own.version], own.network.prefixlen,
            _IFA_F_NODAD if own.version == 6 else 0, 0, socket.if_nametoindex(dev))
            + attr(_IFA_LOCAL, own.packed) + attr(_IFA_ADDRESS, own.packed)))

    def route(self, dev, to=None, via=None, rto_min=None):
        """ip route add TO via VIA dev DEV rto_min MS; without `to` the default route."""
        to, via = (one and ipaddress.ip_interface(one) for one in (to, via))
        attrs = _words({_RTA_OIF: socket.if_nametoindex(dev)})
        if to:
            attrs += attr(_RTA_DST, to.packed)
        if via:
            attrs += attr(_RTA_GATEWAY, via.packed)
        if rto_min:     # TCP reads it only if it is locked
            attrs += attr(_RTA_METRICS | NLA_F_NESTED, _words(
                {_RTAX_LOCK: 1 << _RTAX_RTO_MIN, _RTAX_RTO_MIN: rto_min}))
        self._requests.append((RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, struct.pack(
            "8BI", FAMILY[(to or via).version], to.network.prefixlen if to else 0, 0, 0, _MAIN,
            _BOOT, _LINK if not via else 0, _UNICAST, 0) + attrs))

    def apply(self):
        """Make the changes, in their order, until one fails."""
        last = len(self._requests) - 1
        # Each body is a multiple of four bytes, so the next message needs no padding.
        message = b"".join(_message(kind, flags | NLM_F_ACK * (number == last), number, body)
                           for number, (kind, flags, body) in enumerate(self._requests))
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
            s.send(message)
            reply = s.recv(65536)
        error, = struct.unpack_from("i", reply, 16)
        if error:
            number, = struct.unpack_from("I", reply, 8)
            raise OSError(-error, f"{os.strerror(-error)}: {self._requests[number]}")


class Drops:
    """Counter of the packets that a device's root qdisc has dropped; the device is in the current
    namespace."""

    def __init__(self, dev):
        # No timeout: Python would read the clock for it, which takes virtual time.
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.index = socket.if_nametoindex(dev)

    def __call__(self):
        body = struct.pack("BxxxiIII", 0, self.index, 0, 0, 0)
        self.socket.send(_message(RTM_GETQDISC, NLM_F_DUMP, 1, body))
        drops, done = 0, False
        while not done:
            data = self.socket.recv(65536)
            while data:
                length, what, _, _, _ = struct.unpack_from("IHHII", data)
                done |= what in (NLMSG_DONE, NLMSG_ERROR)
                if what == RTM_NEWQDISC and self._is_root(data):
                    # struct tc_stats: bytes, packets, drops
                    drops, = struct.unpack_from("I", _attrs(data[36:length])[TCA_STATS], 12)
                data = data[length + 3 & ~3:]
        return drops

    def _is_root(self, message):
        index, _, parent = struct.unpack_from("iII", message, 20)
        return index == self.index and parent == TC_H_ROOT

    def close(self):
        """Close the socket, which holds the namespace."""
        self.socket.close()


class Qdisc:
    """A device's root qdisc of one kind."""

    def __init__(self, dev, kind="color"):
        self.kind = kind.encode() + b"\0"
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.socket.bind((0, 0))
        self.socket.settimeout(5)
        self.index = socket.if_nametoindex(dev)
        self.seq = 0

    def _send(self, kind, flags, attrs, handle=HANDLE, parent=TC_H_ROOT):
        self.seq += 1
        body = struct.pack("BxxxiIII", 0, self.index, handle, parent, 0) + attrs
        self.socket.send(_message(kind, flags, self.seq, body))

    def request(self, kind, flags, attrs, handle=HANDLE, parent=TC_H_ROOT):
        """Send a request; returns the kernel's error number, 0 on success."""
        self._send(kind, flags | NLM_F_ACK, attrs, handle, parent)
        while True:
            data = self.socket.recv(65536)
            _, what, _, seq, _ = struct.unpack_from("IHHII", data)
            if what == NLMSG_ERROR and seq == self.seq:
                return -struct.unpack_from("i", data, 16)[0]

    def complaint(self, attrs):
        """tc qdisc change: (error number, type of the rejected attribute, the kernel's message)."""
        self.socket.setsockopt(270, 11, 1)              # SOL_NETLINK, NETLINK_EXT_ACK
        self.socket.setsockopt(270, 10, 1)              # NETLINK_CAP_ACK
        self._send(RTM_NEWQDISC, NLM_F_ACK, attr(TCA_KIND, self.kind) + attrs)
        sent = 16 + 20 + len(attr(TCA_KIND, self.kind))
        data = self.socket.recv(65536)
        error = -struct.unpack_from("i", data, 16)[0]
        seen = _attrs(data[36:])
        at = struct.unpack("I", seen[2])[0] - sent if 2 in seen else -1
        blamed = struct.unpack_from("H", attrs, at + 2)[0] & 0x3fff if 0 <= at < len(attrs) else None
        return error, blamed, seen.get(1, b"").rstrip(b"\0").decode()

    def change(self, attrs):
        """tc qdisc change, with these bytes as the attributes of the message."""
        return self.request(RTM_NEWQDISC, 0, attr(TCA_KIND, self.kind) + attrs)

    def add(self, attrs):
        """tc qdisc add."""
        return self.request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL,
                            attr(TCA_KIND, self.kind) + attrs)

    def delete(self):
        """tc qdisc del."""
        return self.request(RTM_DELQDISC, 0, b"")

    def close(self):
        """Close the socket."""
        self.socket.close()

    def config(self):
        """TCA_OPTIONS of the qdisc, as bytes; None if there is none."""
        self._send(RTM_GETQDISC, NLM_F_DUMP, b"", 0, 0)
        found, done = None, False
        while not done:
            data = self.socket.recv(65536)
            while data:
                length, what, _, _, _ = struct.unpack_from("IHHII", data)
                done |= what in (NLMSG_DONE, NLMSG_ERROR)
                if what == RTM_NEWQDISC:
                    index, = struct.unpack_from("i", data, 20)
                    if index == self.index:     # child qdiscs are of another kind
                        found = self._options(data[36:length]) or found
                data = data[length + 3 & ~3:]
        return found

    def _options(self, attrs):
        found = _attrs(attrs)
        return found.get(TCA_OPTIONS) if found.get(TCA_KIND) == self.kind else None
