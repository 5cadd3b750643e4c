#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A transport must not affect other connections, nor its own one after it has left.

	a (client) ---- wire (this program) ---- b (server)

A connection without a peer, one that leaves its transport, and the next one to the same host
behave as without greenlane.
"""
import contextlib
import os
import socket
import subprocess
import time

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CREDIT, DATA, IMPORTANT, SCHEDULED
from lab.net import libc, modules
from lab.tap import case, equal, true, within
from lab.wire.packet import SYN
from lab.wire.peer import exchange
from lab.wire.sockopt import (F_OFF, F_UNSUPPORTED, GREENLANE_INFO, GREENLANE_TLT, NO, YES, cc_of, choose, info, pacing,
                              sign, tcp_info, tos)
from lab.wire.transcript import lose
from lab.wire.wire import Wire, pattern

IPV6_ADDRFORM = 1
CA_CWR = 2
ACCECN = 3                      # net.ipv4.tcp_ecn


def reordering(s):
    """TCP's tcpi_reordering, packets."""
    return tcp_info(s, 88)


def ca_state(s):
    """TCP's state of congestion control."""
    return tcp_info(s, 1, "B")


# --- a SYN that meets the TIME_WAIT of the last connection


def again(wire, listener, **how):
    """A connection, closed by the server; then another from the same port."""
    client, server = wire.connect(listener=listener, **how)
    port = client.getsockname()[1]
    server.close()
    wire.run(1e-3)
    client.close()
    wire.run(1.5)
    client = wire.socket(wire.a, SO_REUSEADDR=1, **how)
    client.bind((wire.address(wire.a), port))
    wire.mark()
    wire.begin(client, wire.b)
    wire.run(3e-3)
    return client, wire.accept(listener)


@case("a SYN to TIME_WAIT with a codepoint but without the option: the server has no peer",
      version=(4, 6), demux=(1, 0))
def pretender_to_time_wait(version, demux):
    with Wire(cc="cubic", cc_b="tlt_reno", version=version) as wire:
        wire.b.sysctl("net.ipv4.tcp_early_demux", demux)
        _, server = again(wire, wire.listen(1000), **tos(version, IMPORTANT))
        equal([p.says for p in wire.from_b() if p.flags & SYN], [None], "option of the SYN-ACK")
        equal(info(server)["peer"], NO, "peer")


@case("a SYN to TIME_WAIT without the option: the server does not wait for credits", demux=(1, 0))
def credits_to_time_wait(demux):
    with Wire(cc="cubic", cc_b="xpass") as wire:
        wire.b.sysctl("net.ipv4.tcp_early_demux", demux)
        client, server = again(wire, wire.listen(1000), **tos(4, SCHEDULED))
        equal(cc_of(server), "xpass-reno", "congestion control")
        true(wire.transfer(server, client, 100_000, 0.05), "arrives at once")


@case("a SYN to TIME_WAIT with the option: the server has a peer, with any DSCP", version=(4, 6),
      demux=(1, 0))
def peer_to_time_wait(version, demux):
    with Wire(version=version) as wire:
        wire.b.sysctl("net.ipv4.tcp_early_demux", demux)
        wire.rule = lambda p: p.flags & SYN and p.set_dscp(0)
        client, server = again(wire, wire.listen(1000))
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")


# --- IPV6_ADDRFORM

def mapped(wire):
    """A connection between IPv6 sockets that use IPv4."""
    with wire.b:
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    with wire.a:
        client = socket.socket(socket.AF_INET6, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listener.bind(("::", 1000))
    listener.listen(1)
    with contextlib.suppress(BlockingIOError):
        client.connect(("::ffff:10.0.0.2", 1000))
    wire.run(2e-3)
    return client, listener.accept()[0]


def marking(s, level):
    """(peer, flags) of a socket, read at this level."""
    return tuple(s.getsockopt(level, GREENLANE_INFO, 64)[1:3])


@case("after ADDRFORM the socket options act on the connection's state")
def addrform_options():
    with Wire(cc="tlt_reno") as wire:
        server = mapped(wire)[1]
        equal(marking(server, socket.IPPROTO_IPV6), (YES, 0), "peer, flags")
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)
        equal(marking(server, socket.IPPROTO_IP), (YES, 0), "peer, flags after ADDRFORM")
        server.setsockopt(socket.IPPROTO_IP, GREENLANE_TLT, 0)
        equal(marking(server, socket.IPPROTO_IP), (YES, F_OFF), "peer, flags after GREENLANE_TLT=0")


@case("ADDRFORM on a socket that only receives: later data arrives",
      cc=("tlt_reno", "xpass", "aeolus_xpass", "dart"))
def addrform(cc):
    with Wire(cc=cc) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = mapped(wire)
        server.setblocking(False)
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_ADDRFORM, socket.AF_INET)
        wire.run(1e-3)
        true(wire.transfer(client, server, 100_000, 0.05), "arrives at once")
        equal(wire.a.greenlane()["Fallback"], 0, "Fallback")


# --- state that a transport changes

@case("the duplicate threshold of one ends with the transport, and when all data is acknowledged",
      cc=("tlt_reno", "aeolus_xpass"), how=("leaves", "idle"))
def duplicate_threshold(cc, how):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        before = reordering(client)
        client.send(pattern(30_000))
        wire.run(12e-6)
        equal(reordering(client), 1, "reordering with data in flight")
        if how == "leaves":
            choose(client, "cubic")
        else:
            wire.run(1e-3)
            equal(len(server.recv(1 << 20)), 30_000, "bytes")
        equal(reordering(client), before, "reordering afterwards")


@case("TCP saves no duplicate threshold of ours for the next connection to that host",
      cc=("reno", "tlt_reno"))
def metrics(cc):
    with Wire(cc=cc) as wire:
        wire.a.sysctl("net.ipv4.tcp_no_metrics_save", 0)
        client, server = wire.connect()
        wire.rule = lose("> data 200")
        wire.transfer(client, server, 600_000)
        wire.rule = None
        wire.run(1.5)                   # slow start after idle
        wire.transfer(client, server, 3000)
        server.close()
        wire.run(1e-3)
        client.close()
        wire.run(10e-3)
        shown = subprocess.run(["ip", "-n", wire.a.name, "tcp_metrics", "show"], check=True,
                               capture_output=True, text=True).stdout
        true("10.0.0.2" in shown, "TCP saves something")
        true("reordering" not in shown, shown)
        client, _ = wire.connect(port=2000, cc="cubic")
        equal(reordering(client), 3, "reordering of the next connection")


@case("xpass is replaced in CWR with a window of 0: TCP's reduction continues from 1", Wire,
      cc="xpass")
def reduction(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    client, server = wire.connect()

    def rule(p):
        if p.from_a and p.len:
            p.set_dsfield(p.dsfield | 3)
        return p.says is not None       # no request, no credit
    wire.rule = rule
    client.send(pattern(1000))
    wire.run(0.5, lambda: ca_state(client) == CA_CWR)
    equal(ca_state(client), CA_CWR, "state")
    wire.rule = None
    choose(client, "reno")
    equal(len(server.recv(10_000)), 1000, "bytes")
    wire.mark()
    wire.rule = lose("> * 1")
    true(wire.transfer(client, server, 14_480), "arrives")      # without a kernel warning


@case("signed in mid-connection: xpass falls back at once, as it cannot request credits", Wire,
      cc=("xpass", "aeolus_xpass"), tso=False)
def signed(wire):
    client, server = wire.connect()
    exchange(wire, client, server)
    sign(client, wire.address(wire.b))
    sign(server, wire.address(wire.a))
    true(wire.transfer(client, server, 100_000, 0.1), "arrives at once")
    true(wire.transfer(server, client, 100_000, 0.1), "arrives back")
    equal({cc_of(s)[-5:] for s in (client, server)}, {"-reno"}, "congestion controls")


# --- without a peer

@case("without a peer the pacing rate is the base's, from the handshake on", version=(4, 6),
      cc=("tlt_reno", "xpass", "aeolus_xpass", "dcqcn", "tlt_dcqcn", "dart"))
def pacing_rate(version, cc):
    seen = {}
    for cc_a in ("reno", cc):
        with Wire(cc=cc_a, cc_b="reno", version=version) as wire:
            modules.load_for(cc)
            for ns in (wire.a, wire.b):
                ns.sysctl("net.ipv4.tcp_ecn", 0)
            wire.align()
            client, _ = wire.connect()
            seen[cc_a] = pacing(client)
    within(seen["reno"], 1_000_000, 10_000_000_000, "reno's pacing rate, bytes a second")
    # The round trip is measured in microseconds of a handshake that is some ns longer.
    within(seen[cc] / seen["reno"], 0.9, 1.1, "pacing rate, divided by reno's")


@case("without RACK (tcp_recovery 0, before Linux 6.16) it runs the base, counted", Wire,
      cc=("tlt_reno", "aeolus_xpass"))
def without_rack(wire):
    release = tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2])
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_recovery", 0)
    client, server = wire.connect()
    exchange(wire, client, server)
    if release >= (6, 16):
        equal(wire.a.greenlane()["Unsupported"], 0, "Unsupported")
        return
    equal([ns.greenlane()["Unsupported"] for ns in (wire.a, wire.b)], [1, 1], "Unsupported")
    if cc_of(client) == "tlt_reno":
        equal(info(client)["flags"], F_UNSUPPORTED, "flags")
    else:
        equal(cc_of(client), "aeolus-reno", "congestion control")


def ace(p):
    """AccECN's counter in a packet: AE, CWR, ECE."""
    return (p.raw[p.ip_len + 12] & 1) << 2 | (p.flags >> 6) & 3


def ask_accecn(wire):
    """Enable AccECN at both ends, or skip the case."""
    for ns in (wire.a, wire.b):
        with contextlib.suppress(OSError):
            ns.sysctl("net.ipv4.tcp_ecn", ACCECN)
    if wire.a.sysctl("net.ipv4.tcp_ecn") != str(ACCECN):
        raise tap.Skip("this kernel has no AccECN")


@case("AccECN: a packet that greenlane crafts has the same counter as TCP's", version=(4, 6))
def accecn(version):
    with Wire(cc="xpass", version=version) as wire:
        ask_accecn(wire)
        client, server = wire.connect()
        marked = []

        def rule(p):
            if not p.from_a and p.len and not marked:
                p.set_dsfield(p.dsfield | 3)
                marked.append(p)
        wire.rule = rule
        exchange(wire, client, server)
        equal(len(marked), 1, "marks")
        wire.mark()
        exchange(wire, client, server)
        true([p for p in wire.from_a() if p.kind == CREDIT], "credits")
        # The counter begins with 5 (RFC 9768).
        equal({ace(p) for p in wire.from_a()}, {5 + 1}, "counters of a")


@case("AccECN: clocks with a CE mark are counted", version=(4, 6))
def accecn_clock(version):
    with Wire(cc="tlt_cubic", version=version) as wire:
        ask_accecn(wire)
        client, server = wire.connect()
        wire.mark()
        wire.rule = lambda p: p.kind == CLOCK and p.set_dsfield(p.dsfield | 3)
        true(wire.transfer(client, server, 20_000), "arrives")
        wire.run(1e-3)
        clocks = [p for p in wire.from_a() if p.kind == CLOCK]
        true(clocks, "clocks")
        equal(ace(wire.from_b()[-1]), (5 + len(clocks)) % 8, "counter of b")


@case("AccECN: a clock is answered, although the ACK has time stamps, SACK and AccECN's option",
      version=(4, 6))
def accecn_full(version):
    with Wire(cc="tlt_cubic", version=version) as wire:
        ask_accecn(wire)
        client, server = wire.connect()
        exchange(wire, client, server)
        wire.mark()
        lost, clocks = [], []

        def rule(p):
            if p.kind == DATA and not lost:
                lost.append(p)
            if p.kind == CLOCK:
                clocks.append(p)
            return clocks or (lost and p.from_a and p.seq == lost[0].seq)
        wire.rule = rule
        client.send(pattern(60_000))
        wire.run(1e-3, lambda: clocks)
        wire.run(50e-3)                 # until AccECN's option is due
        wire.mark()
        wire.inject(wire.b, clocks[0])
        wire.run(1e-3)
        answer = wire.from_b()[0]
        equal(answer.kind, CLOCK_ECHO, "kind of the answer")
        true(answer.sacks, "the answer has SACK blocks")


@case("a clock is answered, although the ACK has time stamps and three SACK blocks: the oldest "
      "block is removed", version=(4, 6))
def sack_full(version):
    with Wire(cc="tlt_cubic", version=version) as wire:
        client, server = wire.connect()
        exchange(wire, client, server)
        wire.mark()
        data, lost, clocks = [], set(), []

        def rule(p):
            if p.kind == DATA and p.seq not in data:
                data.append(p.seq)
                if len(data) in (1, 3, 5):
                    lost.add(p.seq)
            if p.kind == CLOCK:
                clocks.append(p)
            return clocks or p.from_a and p.seq in lost
        wire.rule = rule
        client.send(pattern(60_000))
        wire.run(1e-3, lambda: clocks)
        before = max((p.sacks for p in wire.from_b()), key=len)
        equal(len(before), 3, "SACK blocks of an ACK by TCP alone")
        wire.mark()
        wire.inject(wire.b, clocks[0])
        wire.run(1e-3)
        answer = wire.from_b()[0]
        equal(answer.kind, CLOCK_ECHO, "kind of the answer")
        equal(len(answer.sacks), 2, "SACK blocks of the answer")


# --- a kernel socket that holds no reference on its namespace

def kernel_socket(ns, text):
    """See tools/testing/modules/gl_ksock.c."""
    modules.load_helper("gl_ksock")
    with ns, open("/proc/gl_ksock", "w", encoding="ascii") as file:
        file.write(text)


@case("a kernel socket that outlives its namespace runs the base, and leaves no state",
      cc=("reno", "tlt_reno", "dart", "xpass"))
def kernel(cc):
    with Wire(cc=cc) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        listener = wire.listen(1000)
        kernel_socket(wire.a, "connect 10.0.0.2 1000")
        wire.run(1e-3)
        server = wire.accept(listener)
        kernel_socket(wire.a, "send 10000")
        wire.run(1e-3)
        equal(len(server.recv(20_000)), 10_000, "bytes")
        # dart has fallen back to reno earlier, so it is not counted.
        equal(wire.a.greenlane()["Unsupported"], int(cc in ("tlt_reno", "xpass")), "Unsupported")
        wire.rule = lambda p: True
        kernel_socket(wire.a, "send 60000")
        kernel_socket(wire.a, "release")
        wire.run(1e-3)
    libc.sleep_until(int(time.clock_gettime(time.CLOCK_MONOTONIC)) + 3, 0)


if __name__ == "__main__":
    tap.main()
