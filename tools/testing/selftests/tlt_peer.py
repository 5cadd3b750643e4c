#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end, and what lies between: peers without TLT, codepoints that get
lost, and every way in which a connection can come to be.

	a (client) ---- wire (this program) ---- b (server)
"""
import errno
import socket
import time

from gl import peer, tap
from gl.packet import ACK, CLOCK, CONTROL, DATA, ECHO, IMPORTANT, SYN
from gl.peer import mptcp, unmarked
from gl.sockopt import F_FALLBACK, F_OFF, F_UNSUPPORTED, GREENLANE_TLT, NO, TCP_CONGESTION, UNKNOWN, YES, info, option
from gl.tap import case, equal, true
from gl.wire import Wire


def is_marked(packets):
    """Does data carry codepoints?"""
    true(any(p.len and p.dscp == IMPORTANT for p in packets), "data is important")
    unmarked = [p for p in packets if p.len and p.dscp not in (DATA, IMPORTANT, CLOCK)]
    equal(unmarked, [], "data without a codepoint")


@case("a server without TLT: the client behaves as its base, DSCP 0, counted")
def server_without():
    for version in (4, 6):
        for cc in ("tlt_reno", "tlt_cubic", "tlt_dctcp"):
            with Wire(cc=cc, cc_b="cubic", version=version) as wire:
                client, server = wire.connect()
                wire.mark()
                wire.transfer(client, server, 100_000)
                wire.transfer(server, client, 100_000)
                unmarked(wire.seen)
                equal(info(client)["peer"], NO, "peer")
                equal(wire.a.greenlane()["PeerWithout"], 1, "PeerWithout")


@case("a client without TLT: the server behaves as its base, DSCP 0, counted")
def client_without():
    for version in (4, 6):
        with Wire(cc="reno", cc_b="tlt_reno", version=version) as wire:
            client, server = wire.connect()
            wire.transfer(client, server, 100_000)
            wire.transfer(server, client, 100_000)
            unmarked(wire.seen)
            equal(info(server)["peer"], NO, "peer")
            equal(wire.b.greenlane()["PeerWithout"], 1, "PeerWithout")


@case("an application that sends CS1 by itself is not taken for a peer for long")
def scavenger():
    with Wire(cc="reno", cc_b="tlt_reno") as wire:
        client, server = wire.connect(IP_TOS=8 << 2)
        wire.transfer(client, server, 10_000)
        wire.transfer(server, client, 10_000)
        wire.run(1e-3)
        wire.mark()
        wire.transfer(server, client, 100_000)
        unmarked(wire.from_b())
        equal(info(server)["peer"], NO, "peer")


@case("an application that sends AF11 by itself: the server gives up after three")
def pretender():
    with Wire(cc="reno", cc_b="tlt_reno") as wire:
        wire.a.sysctl("net.ipv4.greenlane_protect", 0)
        client, server = wire.connect(IP_TOS=IMPORTANT << 2)
        for _ in range(4):
            wire.transfer(server, client, 10_000)
            wire.run(1e-3)
        equal(info(server)["flags"], F_FALLBACK, "flags")
        equal(wire.b.greenlane()["Fallback"], 1, "Fallback")
        wire.mark()
        wire.transfer(server, client, 100_000)
        unmarked(wire.from_b())


@case("without a peer a combinator sends what its base sends, through a loss")
def same_as_base():
    runs = []
    for cc in ("cubic", "tlt_cubic"):
        with Wire(cc=cc, cc_b="cubic") as wire:
            # both runs begin at the same phase of every timer
            wire.run(1.0 - time.clock_gettime(time.CLOCK_MONOTONIC) % 1.0)
            client, server = wire.connect()
            runs.append(wire.third_lost(client, server))
    equal(runs[1], runs[0], "packets (length, offset)")


@case("all codepoints bleached: both ends behave as their base, no RTO is needed")
def bleached_always():
    for version in (4, 6):
        with Wire(version=version) as wire:
            wire.rule = lambda p: p.set_dscp(0)
            client, server = wire.connect()
            wire.mark()
            # seen before the bleaching: what the hosts themselves send
            sent = []
            wire.rule = lambda p: sent.append(p.dscp) or p.set_dscp(0)
            wire.transfer(client, server, 100_000)
            wire.transfer(server, client, 100_000)
            equal(set(sent), {0}, "DSCP that the hosts send")
            equal((info(client)["peer"], info(server)["peer"]), (NO, NO), "peers")


@case("bleached one way only: no connection is half marked")
def bleached_one_way():
    for to_b in (True, False):
        with Wire() as wire:
            sent = []

            def rule(p, to_b=to_b):
                sent.append((p.dscp, p.len))
                if p.from_a == to_b:
                    p.set_dscp(0)
                return False
            wire.rule = rule
            client, server = wire.connect()
            sent.clear()
            wire.transfer(client, server, 50_000)
            wire.transfer(server, client, 50_000)
            equal({d for d, n in sent if n}, {0}, "DSCP of data")
            del client, server


@case("bleached from some moment on: falls back after the first RTO, counted")
def bleached_later():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            wire.transfer(client, server, 50_000)
            wire.run(1e-3)
            sent = []
            cut = [False]

            def rule(p):
                if p.from_a:
                    sent.append(p.dscp)
                p.set_dscp(0)
                return cut[0]
            wire.rule = rule
            wire.transfer(client, server, 20_000)
            wire.run(1e-3)
            true(info(client)["unechoed"] >= 1, "an important packet was not echoed")
            equal(info(client)["flags"] & F_FALLBACK, 0, "not yet: no RTO")
            client.send(b"v" * 20_000)
            cut[0] = True
            wire.run(30e-3)
            equal(info(client)["flags"], F_FALLBACK, "flags after an RTO")
            cut[0] = False
            wire.run(300e-3)
            equal(len(server.recv(1 << 20)), 20_000, "all arrives")
            equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
            sent.clear()
            wire.transfer(client, server, 50_000)
            equal(set(sent), {0}, "DSCP after the fallback")


@case("an outage is no bleaching: it marks again afterwards")
def outage():
    with Wire() as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 50_000)
        cut = [True]
        wire.rule = lambda p: cut[0]
        client.send(b"w" * 20_000)
        wire.run(200e-3)
        cut[0] = False
        wire.run(1.0)
        equal(len(server.recv(1 << 20)), 20_000, "all arrives")
        equal(info(client)["flags"], 0, "flags")
        wire.mark()
        wire.transfer(client, server, 50_000)
        is_marked(wire.from_a())


@case("taken up in mid-connection (setsockopt): marks, and stays if echoed")
def mid_life():
    for version in (4, 6):
        with Wire(cc="cubic", version=version) as wire:
            client, server = wire.connect()
            wire.transfer(client, server, 50_000)
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_cubic")
            equal(info(client)["peer"], UNKNOWN, "peer")
            wire.run(1e-3)
            wire.mark()
            wire.transfer(client, server, 50_000)
            wire.run(1e-3)
            is_marked(wire.from_a())
            equal(info(client)["peer"], YES, "peer")
            # and given up again
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
            wire.mark()
            wire.transfer(client, server, 50_000)
            equal({p.dscp for p in wire.from_a()}, {0}, "DSCP after leaving")


@case("taken up in mid-connection, peer without: stops at the first ACK")
def mid_life_without():
    with Wire(cc="cubic") as wire:
        client, server = wire.connect()
        client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_cubic")
        wire.transfer(client, server, 5_000)
        wire.run(1e-3)
        wire.mark()
        wire.transfer(client, server, 50_000)
        unmarked(wire.seen)
        equal(info(client)["peer"], NO, "peer")


@case("switched off and on in mid-connection (GREENLANE_TLT)")
def switch_off():
    for version in (4, 6):
        with Wire(version=version) as wire:
            client, server = wire.connect()
            option(client, GREENLANE_TLT, 0)
            wire.mark()
            wire.transfer(client, server, 50_000)
            wire.transfer(server, client, 50_000)
            wire.run(1e-3)
            equal({p.dscp for p in wire.from_a() if p.len}, {0}, "DSCP of data")
            true(any(p.dscp == ECHO for p in wire.from_a()), "it still echoes")
            equal(info(client)["flags"], F_OFF, "flags")
            option(client, GREENLANE_TLT, 1)
            wire.mark()
            wire.transfer(client, server, 50_000)
            is_marked(wire.from_a())


@case("children of a listener: every one marks, none shares state")
def children():
    with Wire() as wire:
        listener = wire.listen()
        pairs = [wire.connect(listener=listener) for _ in range(5)]
        for client, server in pairs:
            wire.mark()
            wire.transfer(server, client, 20_000)
            is_marked(wire.from_b())
            equal(info(server)["peer"], YES, "peer")
        counts = {info(s)["important_sent"] + info(s)["clocks_byte"] for _, s in pairs}
        true(max(counts) < 50, "each counts its own")


@case("by route: ip route ... congctl tlt_reno, both ends")
def by_route():
    with Wire(cc="cubic") as wire:
        wire.a.ip("route replace 10.0.0.2/32 dev tun0 congctl tlt_reno")
        wire.b.ip("route replace 10.0.0.1/32 dev tun0 congctl tlt_reno")
        client, server = wire.connect()
        equal([(p.flags & (SYN | ACK), p.dscp) for p in wire.seen[:3]],
              [(SYN, IMPORTANT), (SYN | ACK, IMPORTANT), (ACK, CONTROL)], "handshake")
        wire.transfer(server, client, 50_000)
        is_marked(wire.from_b())


@case("by socket: TCP_CONGESTION before connect() and on the listener")
def by_socket():
    with Wire(cc="cubic") as wire:
        listener = wire.listen(cc="tlt_cubic")
        client, server = wire.connect(cc="tlt_cubic", listener=listener)
        wire.transfer(client, server, 20_000)
        wire.transfer(server, client, 20_000)
        is_marked(wire.from_a())
        is_marked(wire.from_b())


@case("SYN cookies")
def cookies():
    for version in (4, 6):
        with Wire(version=version) as wire:
            wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
            client, server = wire.connect()
            equal(wire.b.netstat("SyncookiesRecv"), 1, "SyncookiesRecv")
            equal([p.dscp for p in wire.seen[:3]], [IMPORTANT, IMPORTANT, CONTROL],
                  "handshake")
            wire.transfer(server, client, 50_000)
            is_marked(wire.from_b())
            equal(info(server)["peer"], YES, "peer")


@case("SYN cookies, client without")
def cookies_without():
    with Wire(cc="cubic", cc_b="tlt_cubic") as wire:
        wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
        client, server = wire.connect()
        wire.mark()
        wire.transfer(server, client, 50_000)
        unmarked(wire.seen)


@case("TCP Fast Open: data in the SYN, and the child marks")
def fast_open():
    for version in (4, 6):
        with Wire(version=version) as wire:
            listener = wire.socket(wire.b, SO_REUSEADDR=1)
            listener.bind((wire.address(wire.b), 1000))
            listener.setsockopt(socket.IPPROTO_TCP, 23, 100)        # TCP_FASTOPEN
            listener.listen(10)
            client = wire.socket(wire.a)
            client.sendto(b"f" * 500, 0x20000000, (wire.address(wire.b), 1000))
            wire.run(5e-3)
            server = listener.accept()[0]
            server.setblocking(False)
            equal(len(server.recv(1000)), 500, "data")
            equal(wire.seen[0].len, 500, "the SYN has data")
            equal(wire.seen[0].dscp, IMPORTANT, "the SYN")
            equal(wire.seen[1].dscp, IMPORTANT, "the SYN-ACK")
            equal((info(client)["peer"], info(server)["peer"]), (YES, YES), "peers")
            wire.mark()
            wire.transfer(server, client, 50_000)
            is_marked(wire.from_b())
            server.close()
            client.close()


@case("TCP Fast Open, client without: the child's SYN-ACK and data have DSCP 0")
def fast_open_without():
    for version in (4, 6):
        with Wire(cc="reno", cc_b="tlt_reno", version=version) as wire:
            client, server = peer.fast_open(wire)
            equal(wire.seen[1].flags & SYN, SYN, "SYN-ACK")
            wire.transfer(server, client, 50_000)
            unmarked(wire.seen)
            equal(info(server)["peer"], NO, "peer")
            server.close()


@case("without SACK: behaves as the base, counted")
def no_sack():
    with Wire() as wire:
        wire.b.sysctl("net.ipv4.tcp_sack", 0)
        client, server = wire.connect()
        wire.mark()
        wire.transfer(client, server, 50_000)
        unmarked([p for p in wire.seen if p.len])
        equal(info(client)["flags"], F_UNSUPPORTED, "flags")
        equal(wire.a.greenlane()["Unsupported"], 1, "Unsupported")
        option(client, GREENLANE_TLT, 0)
        try:
            option(client, GREENLANE_TLT, 1)
        except OSError as why:
            equal(why.errno, errno.EOPNOTSUPP, "switched on")
        else:
            raise tap.Failed("it can be switched on")
        wire.mark()
        wire.transfer(client, server, 50_000)
        unmarked([p for p in wire.seen if p.len])


@case("without SACK, a client's: the server does not answer as a peer")
def no_sack_client():
    for version in (4, 6):
        with Wire(version=version) as wire:
            wire.a.sysctl("net.ipv4.tcp_sack", 0)
            client, server = wire.connect()
            wire.transfer(client, server, 50_000)
            equal(wire.seen[0].dscp, IMPORTANT, "the SYN, which nobody has asked yet")
            unmarked(wire.seen[1:])


@case("dctcp's combinator without ECN: reno's, marked, and it can be left")
def dctcp_without_ecn():
    with Wire(cc="tlt_dctcp") as wire:
        wire.b.sysctl("net.ipv4.tcp_ecn", 0)
        wire.rule = None
        # a SYN that asks for ECN gets no for an answer
        listener = wire.listen(cc="tlt_cubic")
        client, server = wire.connect(listener=listener)
        got = client.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16).rstrip(b"\0")
        true(got in (b"tlt_reno", b"tlt_dctcp"), f"congestion control {got!r}")
        wire.mark()
        wire.transfer(client, server, 50_000)
        is_marked(wire.from_a())
        client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
        wire.transfer(client, server, 50_000)


@case("MPTCP: subflows behave as the base")
def multipath():
    with Wire() as wire:
        with mptcp(wire) as (client, server):
            true(wire.transfer(client, server, 50_000), "arrives")
            equal({p.dscp for p in wire.seen if p.len}, {0}, "DSCP of data")


if __name__ == "__main__":
    tap.main()
