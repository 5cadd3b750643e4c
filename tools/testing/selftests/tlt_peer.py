#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end, and what lies between: peers without TLT, codepoints that get
lost, and every way in which a connection can come to be.

	a (client) ---- wire (this program) ---- b (server)
"""
import errno
import socket
import struct

from lab import tap
from lab.codepoints import CLOCK, CONTROL, DATA, ECHO, IMPORTANT
from lab.tap import case, equal, true
from lab.wire.packet import ACK, SYN, data
from lab.wire.peer import (bleached, by_route, by_socket, exchange, fast_open, mptcp, sends_as,
                           syn_cookies, unmarked, without_sack)
from lab.wire.sockopt import (F_FALLBACK, F_OFF, F_UNSUPPORTED, GREENLANE_TLT, NO, UNKNOWN, YES,
                              cc_of, choose, info, option, refused)
from lab.wire.wire import Wire, connected

TCP_MD5SIG = 14


def is_marked(packets):
    """Does data carry codepoints?"""
    true(any(p.len and p.dscp == IMPORTANT for p in packets), "data is important")
    without = [p for p in packets if p.len and p.dscp not in (DATA, IMPORTANT, CLOCK)]
    equal(without, [], "data without a codepoint")


@case("a server without TLT: the client behaves as its base, DSCP 0, counted", connected,
      version=(4, 6), cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), cc_b="cubic")
def server_without(wire, client, server):
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    equal(info(client)["peer"], NO, "peer")
    equal(wire.a.greenlane()["PeerWithout"], 1, "PeerWithout")


@case("a client without TLT: the server behaves as its base, DSCP 0, counted", connected,
      version=(4, 6), cc="reno", cc_b="tlt_reno", by=(Wire.connect, fast_open))
def client_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    equal(info(server)["peer"], NO, "peer")
    equal(wire.b.greenlane()["PeerWithout"], 1, "PeerWithout")


@case("an application that sends CS1 by itself is not taken for a peer for long", Wire, cc="reno",
      cc_b="tlt_reno")
def scavenger(wire):
    client, server = wire.connect(IP_TOS=8 << 2)
    exchange(wire, client, server, 10_000)
    wire.mark()
    wire.transfer(server, client, 100_000)
    unmarked(wire.from_b())
    equal(info(server)["peer"], NO, "peer")


@case("an application that sends AF11 by itself: the server gives up after three", Wire, cc="reno",
      cc_b="tlt_reno")
def pretender(wire):
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


@case("without a peer a combinator sends what its base sends, through a loss", version=(4, 6),
      base=("reno", "cubic", "bbr"))
def same_as_base(version, base):
    sends_as(base, f"tlt_{base}", version)


@case("all codepoints bleached: both ends behave as their base, no RTO is needed", connected,
      by=bleached, version=(4, 6))
def bleached_always(_wire, client, server):
    equal((info(client)["peer"], info(server)["peer"]), (NO, NO), "peers")


@case("bleached one way only: no connection is half marked", version=(4, 6),
      from_a=(True, False))
def bleached_one_way(version, from_a):
    with Wire(version=version) as wire:
        sent = []       # DSCPs of data, before the wire
        wire.rule = lambda p: (sent.extend([p.dscp] * bool(p.len)),
                               p.from_a == from_a and p.set_dscp(0))[1]
        client, server = wire.connect()
        exchange(wire, client, server, 50_000)
        equal(set(sent), {0}, "DSCP of data")


@case("bleached from some moment on: falls back after the first RTO, counted", connected,
      version=(4, 6))
def bleached_later(wire, client, server):
    wire.transfer(client, server, 50_000)
    wire.run(1e-3)
    bleach = lambda p: p.set_dscp(0)        # noqa: E731
    wire.rule = bleach
    wire.transfer(client, server, 20_000)
    wire.run(1e-3)
    true(info(client)["unechoed"] >= 1, "an important packet was not echoed")
    equal(info(client)["flags"] & F_FALLBACK, 0, "not yet: no RTO")
    client.send(b"v" * 20_000)
    wire.rule = lambda p: True
    wire.run(30e-3)
    equal(info(client)["flags"], F_FALLBACK, "flags after an RTO")
    wire.rule = bleach
    wire.run(300e-3)
    equal(len(server.recv(1 << 20)), 20_000, "all arrives")
    equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
    wire.rule = None
    wire.mark()
    wire.transfer(client, server, 50_000)
    unmarked(wire.from_a())


@case("an outage is no bleaching: it marks again afterwards", connected)
def outage(wire, client, server):
    wire.transfer(client, server, 50_000)
    wire.rule = lambda p: True
    client.send(b"w" * 20_000)
    wire.run(200e-3)
    wire.rule = None
    wire.run(1.0)
    equal(len(server.recv(1 << 20)), 20_000, "all arrives")
    equal(info(client)["flags"], 0, "flags")
    wire.mark()
    wire.transfer(client, server, 50_000)
    is_marked(wire.from_a())


@case("taken up in mid-connection (setsockopt): marks, and stays if echoed", connected,
      version=(4, 6), cc="cubic")
def mid_life(wire, client, server):
    wire.transfer(client, server, 50_000)
    for s in (client, server):
        choose(s, "tlt_cubic")
    equal(info(client)["peer"], UNKNOWN, "peer")
    wire.run(1e-3)
    wire.mark()
    wire.transfer(client, server, 50_000)
    wire.run(1e-3)
    is_marked(wire.from_a())
    equal(info(client)["peer"], YES, "peer")
    # and given up again
    choose(client, "reno")
    wire.mark()
    wire.transfer(client, server, 50_000)
    equal({p.dscp for p in wire.from_a()}, {0}, "DSCP after leaving")


@case("taken up in mid-connection, peer without: stops at the first ACK", connected, cc="cubic")
def mid_life_without(wire, client, server):
    choose(client, "tlt_cubic")
    wire.transfer(client, server, 5_000)
    wire.run(1e-3)
    wire.mark()
    wire.transfer(client, server, 50_000)
    unmarked(wire.seen)
    equal(info(client)["peer"], NO, "peer")


@case("switched off and on in mid-connection (GREENLANE_TLT)", connected, version=(4, 6))
def switch_off(wire, client, server):
    option(client, GREENLANE_TLT, 0)
    wire.mark()
    exchange(wire, client, server, 50_000)
    equal({p.dscp for p in wire.from_a() if p.len}, {0}, "DSCP of data")
    true(any(p.dscp == ECHO for p in wire.from_a()), "it still echoes")
    equal(info(client)["flags"], F_OFF, "flags")
    option(client, GREENLANE_TLT, 1)
    wire.mark()
    wire.transfer(client, server, 50_000)
    is_marked(wire.from_a())


@case("children of a listener: every one marks, none shares state", Wire)
def children(wire):
    listener = wire.listen()
    pairs = [wire.connect(listener=listener) for _ in range(5)]
    for client, server in pairs:
        wire.mark()
        wire.transfer(server, client, 20_000)
        is_marked(wire.from_b())
        equal(info(server)["peer"], YES, "peer")
    counts = {info(s)["important_sent"] + info(s)["clocks_byte"] for _, s in pairs}
    true(max(counts) < 50, "each counts its own")


@case("marked both ways, however it comes to be", connected, cc=("tlt_reno", "tlt_cubic"),
      version=(4, 6), by=(syn_cookies, by_socket, by_route))
def comes_to_be(wire, client, server):
    equal([(p.flags & (SYN | ACK), p.dscp) for p in wire.seen[:3]],
          [(SYN, IMPORTANT), (SYN | ACK, IMPORTANT), (ACK, CONTROL)], "handshake")
    exchange(wire, client, server, 50_000)
    is_marked(wire.from_a())
    is_marked(wire.from_b())
    equal((info(client)["peer"], info(server)["peer"]), (YES, YES), "peers")


@case("SYN cookies, client without", connected, by=syn_cookies, cc="cubic", cc_b="tlt_cubic")
def cookies_without(wire, client, server):
    wire.mark()         # the cookie is an important SYN-ACK
    wire.transfer(server, client, 50_000)
    unmarked(wire.seen)


@case("TCP Fast Open: data in the SYN, and the child marks", connected, by=fast_open,
      version=(4, 6))
def tfo(wire, client, server):
    equal([p.dscp for p in wire.seen[:2]], [IMPORTANT] * 2, "SYN and SYN-ACK")
    equal((info(client)["peer"], info(server)["peer"]), (YES, YES), "peers")
    wire.mark()
    wire.transfer(server, client, 50_000)
    is_marked(wire.from_b())


@case("without SACK: behaves as the base, counted", connected, by=without_sack)
def no_sack(wire, client, server):
    equal(info(client)["flags"], F_UNSUPPORTED, "flags")
    equal(wire.a.greenlane()["Unsupported"], 1, "Unsupported")
    option(client, GREENLANE_TLT, 0)
    refused("switched on", errno.EOPNOTSUPP, option, client, GREENLANE_TLT, 1)
    wire.mark()
    wire.transfer(client, server, 50_000)
    unmarked(data(wire.seen))


@case("without SACK, a client's: the server does not answer as a peer", Wire, version=(4, 6))
def no_sack_client(wire):
    wire.a.sysctl("net.ipv4.tcp_sack", 0)
    client, server = wire.connect()
    wire.transfer(client, server, 50_000)
    equal(wire.seen[0].dscp, IMPORTANT, "the SYN")
    unmarked(wire.seen[1:])


@case("dctcp's combinator without ECN: reno's, marked, and it can be left", Wire, cc="tlt_dctcp")
def dctcp_without_ecn(wire):
    wire.b.sysctl("net.ipv4.tcp_ecn", 0)
    wire.rule = None
    # a SYN that asks for ECN gets no for an answer
    listener = wire.listen(cc="tlt_cubic")
    client, server = wire.connect(listener=listener)
    true(cc_of(client) in ("tlt_reno", "tlt_dctcp"), f"congestion control {cc_of(client)}")
    wire.mark()
    wire.transfer(client, server, 50_000)
    is_marked(wire.from_a())
    choose(client, "cubic")
    wire.transfer(client, server, 50_000)


def sign(s, peer):
    """TCP-MD5 from now on, with this peer (IPv4)."""
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(peer))
    s.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG,
                 address + struct.pack("=BBHi80s", 0, 0, 8, 0, b"password"))


@case("signed from some moment on: what TCP has signed is not changed", connected, tso=False,
      cc=("tlt_reno", "dart", "xpass"))
def signed_later(wire, client, server):
    for _ in range(2):
        true(wire.transfer(client, server, 60_000), "arrives")
        true(wire.transfer(server, client, 60_000), "arrives")
        wire.run(5e-3)
        sign(client, wire.address(wire.b))
        sign(server, wire.address(wire.a))
    equal([ns.netstat("TCPMD5Failure") for ns in (wire.a, wire.b)], [0, 0], "TCPMD5Failure")


@case("MPTCP: subflows behave as the base", connected, by=mptcp)
def multipath(wire, client, server):
    true(wire.transfer(client, server, 50_000), "arrives")
    equal({p.dscp for p in wire.seen if p.len}, {0}, "DSCP of data")


if __name__ == "__main__":
    tap.main()
