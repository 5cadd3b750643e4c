# SPDX-License-Identifier: GPL-2.0
"""Methods to establish a connection, and checks of a connection without marks.

	@case("...", connected, by=(Wire.connect, syn_cookies), version=(4, 6), cc="xpass")
	def comes_to_be(wire, client, server):

A method takes a wire, connects with the congestion controls of the wire at both ends, and returns
(client, server).
"""
import socket
import time

from lab.tap import Failed, equal, true
from lab.wire.packet import ACK, SYN, data
from lab.wire.sockopt import YES, choose, info
from lab.wire.wire import Wire

IPPROTO_MPTCP = 262


def unmarked(packets):
    """Fail unless all packets have DSCP 0 and no greenlane option."""
    bad = [p for p in packets if p.dscp or p.says is not None]
    if bad:
        raise Failed(f"{len(bad)} packets are marked, the first: {bad[0]!r}")


def _our_option(p):
    """The slice of p.raw that has the greenlane option."""
    at = p.options_at[0]
    return slice(at, at + p.raw[at + 1])


def without_option(p):
    """A wire's rule: a middlebox that removes the greenlane option."""
    if p.options_at:
        at = _our_option(p)
        p.raw[at] = b"\1" * (at.stop - at.start)        # no-operations
        p.fix_checksum()


def echoes():
    """A wire's rule: b's SYN-ACK echoes the SYN's greenlane option, as some hosts do with an
    unknown option (Honda et al., "Is it still possible to extend TCP?", IMC 2011)."""
    unknown = b""

    def rule(p):
        nonlocal unknown
        if p.from_a and p.flags & SYN and p.says is not None:
            unknown = bytes(p.raw[_our_option(p)])
        elif p.flags & SYN and p.says is None:
            p.add_options(unknown)
    return rule


def exchange(wire, client, server, count=100_000):
    """Transfer bytes to the server, then to the client, and wait for the last ACKs."""
    true(wire.transfer(client, server, count), "arrives")
    true(wire.transfer(server, client, count), "arrives back")
    wire.run(1e-3)


def takes(wire, client, server, count=100_000):
    """The virtual time of transfers to the server and then to the client, s."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    true(wire.transfer(client, server, count, 10.0), "arrives")
    true(wire.transfer(server, client, count, 10.0), "arrives back")
    return time.clock_gettime(time.CLOCK_MONOTONIC) - began


def sends_as(base, cc, version, ecn=True):
    """Fail unless `cc`, connected to a peer that runs `base`, sends the same packets as `base` in a
    transfer with a loss."""
    runs = []
    for name in (base, cc):
        with Wire(cc=name, cc_b=base, version=version) as wire:
            wire.align()
            if not ecn:
                wire.b.sysctl("net.ipv4.tcp_ecn", 0)
            runs.append(wire.third_lost(*wire.connect()))
    equal(runs[1], runs[0], "packets (length, offset)")


# --- methods

def syn_cookies(wire):
    """b answers the SYN with a SYN cookie and keeps no state of it."""
    wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
    # A cookie has SACK and ECN in low bits of its time stamp, 64 ms; the uptime must exceed that.
    wire.run(1.0)
    ends = wire.connect()
    equal(wire.b.netstat("SyncookiesRecv"), 1, "SyncookiesRecv")
    return ends


def fast_open(wire):
    """The SYN carries 500 bytes of data (TCP Fast Open)."""
    listener = wire.listen(TCP_FASTOPEN=100)
    client = wire.socket(wire.a)
    client.sendto(b"f" * 500, socket.MSG_FASTOPEN, (wire.address(wire.b), 1000))
    wire.run(5e-3)
    server = wire.accept(listener)
    equal(len(server.recv(1000)), 500, "data")
    equal((wire.seen[0].len, wire.seen[0].flags & SYN), (500, SYN), "the SYN has data")
    equal(wire.seen[1].flags & (SYN | ACK), SYN | ACK, "the SYN-ACK")
    return client, server


def _by_default(wire, cc):
    """Set the default congestion control of both ends."""
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_congestion_control", cc)


def by_socket(wire):
    """TCP_CONGESTION is set before connect(), and on the listener."""
    _by_default(wire, "cubic")
    listener = wire.listen(cc=wire.cc)
    ends = wire.connect(cc=wire.cc, listener=listener)
    listener.close()
    return ends


def by_route(wire):
    """The routes have the congestion control (ip route ... congctl)."""
    _by_default(wire, "cubic")
    for ns, peer in ((wire.a, wire.b), (wire.b, wire.a)):
        ns.ip(f"route replace {wire.address(peer)} dev tun0 congctl {wire.cc}")
    return wire.connect()


def simultaneous(wire):
    """Both ends connect at once."""
    ends = []
    for ns, port in ((wire.a, 2000), (wire.b, 3000)):
        ends.append(wire.socket(ns, SO_REUSEADDR=1))
        ends[-1].bind((wire.address(ns), port))
    wire.begin(ends[0], wire.b, 3000)
    wire.begin(ends[1], wire.a, 2000)
    wire.run(5e-3)
    equal([p.flags & (SYN | ACK) for p in wire.seen[:2]], [SYN, SYN], "two SYNs")
    return ends


def mid_handshake(wire, cc=None):
    """Between connect() and the SYN-ACK the client selects cc, or b's congestion control."""
    listener = wire.listen()
    client = wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1e-6)
    choose(client, cc or wire.cc_b)
    wire.run(5e-3)
    return client, wire.accept(listener)


def mptcp(wire):
    """Both ends use MPTCP."""
    listener = wire.socket(wire.b, proto=IPPROTO_MPTCP)
    listener.bind((wire.address(wire.b), 1000))
    listener.listen(5)
    client = wire.socket(wire.a, proto=IPPROTO_MPTCP)
    wire.begin(client, wire.b)
    wire.run(5e-3)
    equal(wire.a.netstat("MPCapableSYNACKRX"), 1, "MPCapableSYNACKRX")
    return client, wire.accept(listener)


def bleached(wire):
    """The path sets each DSCP to 0; the hosts continue to mark, because they detect each other by
    the option."""
    sent = []
    wire.rule = lambda p: sent.append(p.dscp) or p.set_dscp(0)
    ends = wire.connect()
    exchange(wire, *ends)
    equal(sent.count(0), 0, "packets that a host has not marked")
    equal([info(s)["peer"] for s in ends], [YES, YES], "peers")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("HandshakeRemarked", "PeerWithout", "Fallback")], [1, 0, 0],
              f"{ns.name}: HandshakeRemarked, PeerWithout, Fallback")
    return ends


def without_sack(wire):
    """The server does not permit SACK, so data is not marked."""
    wire.b.sysctl("net.ipv4.tcp_sack", 0)
    ends = wire.connect()
    wire.mark()
    exchange(wire, *ends)
    unmarked(data(wire.seen))
    return ends
