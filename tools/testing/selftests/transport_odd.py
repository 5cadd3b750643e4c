#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Each transport with the ways of a connection, the devices and the socket options that few try.

	a (client) ---- wire (this program) ---- b (server), or its base, cubic

All bytes arrive, in both directions at once and after a pause, and no timer of 4 ms decides how
soon.  The guest's health (a WARN, a leak of memory) is checked by its runner.
"""
import contextlib
import ctypes
import errno
import os
import socket
import struct

from lab.tap import case, equal, main, true
from lab.transports import TRANSPORTS
from lab.wire.peer import (fast_open, mid_handshake, mptcp, simultaneous, syn_cookies,
                           without_option, without_sack)
from lab.wire.sockopt import choose, sign
from lab.wire.transcript import lose
from lab.wire.wire import Wire, pattern

# A congestion control of each transport, and the bursts of TLT's bases.
CCS = tuple(cc for row in TRANSPORTS for cc in (
    {"tcp_tlt": ["tlt_dctcp", "aeolus_dctcp"], "tcp_aeolus": row.ccs}.get(row.module, row.ccs[:1])))
# Bytes of each direction, and the seconds for them: above, an RTO of 200 ms has expired.
COUNT, SOON = 300_000, 0.15
IPV6_ADDRFORM, TCP_REPAIR = 1, 19


def both_ways(wire, client, server, seconds=SOON):
    """Bytes in both directions at once, again after a pause, and single ones."""
    true(wire.transfer_both(client, server, COUNT, seconds), "both arrive")
    wire.run(20e-3)
    true(wire.transfer_both(client, server, COUNT, seconds), "both arrive after a pause")
    for _ in range(3):
        true(wire.transfer(client, server, 1, seconds), "a byte arrives")
        true(wire.transfer(server, client, 1, seconds), "a byte arrives back")


def to_base(wire):
    """b does not run the transport."""
    listener = wire.listen(cc="cubic")
    return wire.connect(listener=listener)


def from_base(wire):
    """a does not run the transport."""
    return wire.connect(cc="cubic")


def no_option(wire):
    """A middlebox removes the option."""
    wire.rule = without_option
    return wire.connect()


def bleached(wire):
    """The path sets each DSCP to 0."""
    wire.rule = lambda p: p.set_dscp(0)
    return wire.connect()


WAYS = (Wire.connect, to_base, from_base, no_option, bleached, without_sack, syn_cookies, fast_open,
        mid_handshake, simultaneous, mptcp)


@case("each way of a connection", cc=CCS, by=WAYS, version=(4, 6))
def ways(cc, by, version):
    with Wire(cc=cc, version=version) as wire:
        both_ways(wire, *by(wire))


@case("MTUs, with and without segmentation of the device", cc=CCS, mtu=(1280, 9000, 65535),
      tso=(True, False))
def mtus(cc, mtu, tso):
    with Wire(cc=cc, mtu=mtu, tso=tso) as wire:
        both_ways(wire, *wire.connect())


@case("MD5 signatures", cc=CCS)
def signed(cc):
    with Wire(cc=cc) as wire:
        listener = wire.listen()
        sign(listener, wire.address(wire.a))
        client = wire.socket(wire.a)
        sign(client, wire.address(wire.b))
        wire.begin(client, wire.b)
        wire.run(5e-3)
        both_ways(wire, client, wire.accept(listener))
        equal([ns.netstat("TCPMD5Failure") for ns in (wire.a, wire.b)], [0, 0], "TCPMD5Failure")


OPTIONS = {
    "small buffers": {"SO_SNDBUF": 4096, "SO_RCVBUF": 4096},
    "TCP_NODELAY": {"TCP_NODELAY": 1},
    "TCP_MAXSEG": {"TCP_MAXSEG": 200},
    "TCP_WINDOW_CLAMP": {"TCP_WINDOW_CLAMP": 3000},
    "TCP_NOTSENT_LOWAT": {"TCP_NOTSENT_LOWAT": 1},
    "keepalives": {"SO_KEEPALIVE": 1, "TCP_KEEPIDLE": 1},
    "TCP_USER_TIMEOUT": {"TCP_USER_TIMEOUT": 1000},
}


@case("socket options at both ends", cc=CCS, chosen=tuple(OPTIONS))
def options(cc, chosen):
    with Wire(cc=cc) as wire:
        listener = wire.listen(**OPTIONS[chosen])
        # With a window of a few packets a transfer takes hundreds of round trips.
        both_ways(wire, *wire.connect(listener=listener, **OPTIONS[chosen]), seconds=10)


@case("TCP retracts the window, as a buffer has become small: no connection falls back", cc=CCS)
def retracted(cc):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        # With both ends' buffers Linux's TCP may wait for ever: each end then ignores the other's
        # ACKs, whose sequence numbers are the retracted window's.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # A reader that is late fills the buffer.
        client.send(bytes(COUNT))
        wire.run(1e-3)
        equal(len(wire.receive(server, COUNT, 0.09)), COUNT, "bytes after the pause")
        both_ways(wire, client, server, seconds=0.09)
        if os.environ["GL_KERNEL"] in ("6.1", "6.12"):
            return      # TCP does not remember the window that it has offered before
        true(wire.b.netstat("TCPRcvQDrop"), "dropped packets")
        for ns in (wire.a, wire.b):
            with contextlib.suppress(FileNotFoundError):        # a transport without tags
                seen = ns.greenlane()
                equal((seen["Fallback"], seen["Invalid"]), (0, 0), "Fallback, Invalid")


@case("TCP_CORK: corked bytes leave when the cork is pulled", cc=CCS)
def corked(cc):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        for _ in range(5):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            for size in (1, 700, 1500, 20_000, 3):
                client.send(b"c" * size)
            wire.run(1e-3)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            equal(len(wire.receive(server, 22_204, SOON)), 22_204, "bytes")
        both_ways(wire, client, server)


@case("urgent bytes among others", cc=CCS)
def urgent(cc):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        for _ in range(5):
            client.send(b"u" * 5000)
            client.send(b"!", socket.MSG_OOB)
            equal(len(wire.receive(server, 5001, SOON)), 5001, "bytes")
        both_ways(wire, client, server)


@case("MTU probing, and a path with a smaller MTU than the devices", cc=CCS, version=(4, 6))
def probing(cc, version):
    with Wire(cc=cc, version=version, mtu=9000) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_mtu_probing", 2)
            ns.sysctl("net.ipv4.tcp_base_mss", 1000)
        client, server = wire.connect()
        # A black hole: no ICMP reports it.
        wire.rule = lambda p: len(p.raw) > 1500
        true(wire.transfer_both(client, server, COUNT, 30), "both arrive")
        wire.rule = None
        both_ways(wire, client, server, seconds=10)


@case("IPV6_ADDRFORM: a socket of IPv6 becomes one of IPv4 in the middle", cc=CCS)
def becomes_ipv4(cc):
    with Wire(cc=cc, version=6) as wire:
        listener = wire.socket(wire.b, SO_REUSEADDR=1)
        listener.bind(("::", 1000))
        listener.listen()
        client = wire.socket(wire.a)
        with contextlib.suppress(BlockingIOError):
            client.connect(("::ffff:10.0.0.2", 1000))
        wire.run(5e-3)
        server = wire.accept(listener)
        both_ways(wire, client, server)
        for end in (client, server):
            end.send(b"a" * 30_000)
            end.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)
        for end in (client, server):
            equal(len(wire.receive(end, 30_000, SOON)), 30_000, "bytes in flight")
        both_ways(wire, client, server)


@case("connect() to AF_UNSPEC with data in flight, and another connection of the same socket",
      cc=CCS)
def reused(cc):
    with Wire(cc=cc) as wire:
        listener = wire.listen()
        client, server = wire.connect(listener=listener)
        true(wire.transfer(client, server, COUNT, SOON), "arrives")
        client.send(b"a" * 100_000)
        wire.run(30e-6)
        _disconnect(client)
        wire.run(1e-3)
        wire.begin(client, wire.b)
        wire.run(5e-3)
        both_ways(wire, client, wire.accept(listener))


def _disconnect(sock):
    """connect() to AF_UNSPEC, which Python's sockets cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.connect(sock.fileno(), struct.pack("=H14x", socket.AF_UNSPEC), 16):
        raise OSError(ctypes.get_errno(), "connect")


@case("half closed: the other direction goes on; then SO_LINGER 0 with data in flight", cc=CCS)
def half(cc):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        client.send(b"h" * 50_000)
        client.shutdown(socket.SHUT_WR)
        equal(len(wire.receive(server, 50_000, SOON)), 50_000, "bytes")
        true(wire.transfer(server, client, COUNT, SOON), "arrives back")
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.send(b"h" * 50_000)
        wire.run(30e-6)
        server.close()
        wire.run(1e-3)
        try:
            while client.recv(1 << 20):
                pass
            true(False, "a reset")
        except OSError as why:
            equal(why.errno, errno.ECONNRESET, "errno")


@case("another congestion control with data in flight, again and again", cc=CCS,
      other=("cubic", "tlt_reno", "xpass", "homa"))
def changed(cc, other):
    with Wire(cc=cc, cc_b=other) as wire:
        client, server = wire.connect(cc=cc)
        for n in range(12):
            for end in (client, server):
                with contextlib.suppress(BlockingIOError):
                    end.send(b"x" * 40_000)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION,
                               (cc, other)[n % 2].encode())
            wire.run(37e-6 * n)
            for end in (client, server):
                equal(len(wire.receive(end, 40_000, 2)), 40_000, f"bytes, {n}")
        true(wire.transfer_both(client, server, COUNT, 2), "both arrive")


@case("another congestion control after losses, while data waits: TCP sends it at once", cc=CCS)
def changed_while_waiting(cc):
    with Wire(cc=cc, rto_min=200) as wire:
        client, server = wire.connect()
        wire.rule = lose("> data", every=20)
        true(wire.transfer(client, server, COUNT, 5), "arrives")
        wire.rule = None
        wire.run(20e-3)
        # No credit arrives.
        wire.rule = lambda p: not p.from_a
        client.send(pattern(5000))
        choose(client, "cubic")
        equal(len(wire.receive(server, 5000, 50e-3)), 5000, "bytes")


@case("TCP_REPAIR: a frozen connection goes on", cc=CCS)
def repaired(cc):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, COUNT, SOON), "arrives")
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        wire.run(1e-3)
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
        both_ways(wire, client, server, seconds=2)


if __name__ == "__main__":
    main()
