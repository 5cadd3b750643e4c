#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end: peers without xpass, and every way to establish a connection.

	a (client) ---- wire (this program) ---- b (server)
"""
import errno
import functools

from lab import tap
from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.net import modules
from lab.tap import case, equal, true, using, within
from lab.wire import xpass
from lab.wire.packet import SYN, data
from lab.wire.peer import (bleached, by_route, by_socket, exchange, fast_open, mid_handshake,
                           sends_as, syn_cookies, takes, unmarked, without_option, without_sack)
from lab.wire.sockopt import NO, YES, cc_of, choose, info, refused, tos
from lab.wire.wire import Wire, connected, pattern


def credited(wire, client, server):
    """Credits permit all data in both directions, and no counter shows an error."""
    xpass.well_formed(wire.seen)
    for from_a in (True, False):
        came, sent = xpass.paid(wire, from_a)
        true(came >= sent > 0, f"{sent} packets of data for {came} credits")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("PeerWithout", "Unsupported", "Uncredited", "Invalid")],
              [0] * 4, f"{ns.name}: PeerWithout, Unsupported, Uncredited, Invalid")
    equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "congestion control of both ends")
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both ends' sockets")


def is_reno(wire, s, ns):
    """The socket has fallen back, which is counted, without any request or credit."""
    equal(cc_of(s), "xpass-reno", "congestion control")
    counters = ns.greenlane()
    equal([counters[n] for n in ("PeerWithout", "RequestSent", "CreditSent", "ScheduledSent")],
          [1, 0, 0, 0], "PeerWithout, RequestSent, CreditSent, ScheduledSent")
    equal([p for p in wire.seen if REQUEST in (p.kind, p.says) or CREDIT in (p.kind, p.says)], [],
          "requests and credits")


everywhere = using(connected, version=(4, 6), tso=(True, False))


# --- peers without xpass

@everywhere("a server without xpass: the client falls back to reno with DSCP 0, counted",
            cc="xpass", cc_b="cubic")
def server_without(wire, client, server):
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, client, wire.a)
    true(len(data(wire.from_a())) > 50, "data")


@everywhere("a client without xpass: the server falls back to reno with DSCP 0, counted",
            cc=("cubic", "reno"), cc_b="xpass", by=(Wire.connect, fast_open))
def client_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, server, wire.b)


@case("SYN cookies, and a client without xpass: the server falls back to reno", connected,
      by=syn_cookies, version=(4, 6), cc="cubic", cc_b="xpass")
def cookies_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, server, wire.b)


@case("xpass-reno sends like reno, also after a loss", version=(4, 6))
def as_reno(version):
    sends_as("reno", "xpass", version)


@case("the other end runs tlt_dctcp: both fall back, and data flows",
      cc=("xpass", "tlt_dctcp"), version=(4, 6))
def tlt(cc, version):
    cc_b = "tlt_dctcp" if cc == "xpass" else "xpass"
    with Wire(cc=cc, cc_b=cc_b, version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        exchange(wire, client, server)
        unmarked(data(wire.seen))
        ends = {cc: (client, wire.a), cc_b: (server, wire.b)}
        is_reno(wire, *ends["xpass"])
        equal(info(ends["tlt_dctcp"][0])["peer"], NO, "peer, of the socket with tlt_dctcp")
        equal(ends["tlt_dctcp"][1].greenlane()["PeerWithout"], 1, "PeerWithout of tlt_dctcp's end")


@case("codepoints are bleached: credits still permit data in both directions",
      connected, by=bleached,
      version=(4, 6), cc="xpass")
def always_bleached(wire, client, server):
    for s, ns in ((client, wire.a), (server, wire.b)):
        equal(cc_of(s), "xpass", "congestion control")
        counters = ns.greenlane()
        sent = [p for p in data(wire.seen) if p.from_a == (ns is wire.a)]
        equal(counters["ScheduledSent"], len(sent), "ScheduledSent")
        true(counters["CreditReceived"] >= len(sent) > 50, "CreditReceived: credits for all data")
        equal([counters[n] for n in ("Uncredited", "Invalid", "RequestRetried")], [0, 0, 0],
              "Uncredited, Invalid, RequestRetried")


@functools.cache
def spent(version, to):
    """Seconds of 40 transfers in each direction, while the wire sets each DSCP to `to`.  The
    intervals of credits are random within a tenth, so single transfers differ."""
    with Wire(cc="xpass", version=version) as wire:
        xpass.far(wire)
        wire.align()
        if to is not None:
            wire.rule = lambda p: p.set_dscp(to)
        ends = wire.connect()
        seconds = sum(takes(wire, *ends) for _ in range(40))
        equal([cc_of(s) for s in ends], ["xpass"] * 2, "congestion control of both ends")
        return seconds


@case("the path sets any DSCP: transfers take at most 1.05 times as long", version=(4, 6),
      to=(0, SCHEDULED.dscp, CREDIT.dscp, 46))
def remarked(version, to):
    within(spent(version, to), 0, 1.05 * spent(version, None), "time of 40 transfers, s")


@case("the path removes the option: both fall back to reno, and do not wait for credits", Wire,
      version=(4, 6), cc="xpass")
def removed(wire):
    wire.rule = without_option
    client, server = wire.connect()
    exchange(wire, client, server)
    is_reno(wire, client, wire.a)
    is_reno(wire, server, wire.b)
    unmarked(wire.seen[1:])


@case("without SACK both fall back to reno, counted", connected, by=without_sack, version=(4, 6),
      cc="xpass")
def no_sack(wire, client, server):
    equal([cc_of(s) for s in (client, server)], ["xpass-reno"] * 2,
          "congestion control of both ends")
    equal(wire.a.greenlane()["Unsupported"], 1, "Unsupported")


@case("an application that sets our codepoints itself: the peer falls back to reno",
      version=(4, 6), dscp=(SCHEDULED.dscp, CREDIT.dscp))
def pretender(version, dscp):
    with Wire(cc="reno", cc_b="xpass", version=version) as wire:
        client, server = wire.connect(**tos(version, dscp))
        exchange(wire, client, server)
        equal({p.dscp for p in wire.from_a()}, {dscp}, "DSCP of the application")
        unmarked(wire.from_b())
        equal(cc_of(server), "xpass-reno", "congestion control")
        counters = wire.b.greenlane()
        equal([counters[n] for n in ("PeerWithout", "CreditSent", "RequestReceived", "Invalid")],
              [1, 0, 0, 0], "PeerWithout, CreditSent, RequestReceived, Invalid")


# --- how a connection is established

@everywhere("selected by sysctl, socket or route: credits from the first byte on, both directions",
            cc="xpass", by=(Wire.connect, by_socket, by_route))
def comes_to_be(wire, client, server):
    xpass.handshake(wire.seen)
    equal([p.says for p in wire.seen[:3]], [SCHEDULED, SCHEDULED, None], "options of the handshake")
    exchange(wire, client, server)
    credited(wire, client, server)
    equal([p for p in wire.seen[2:] if p.says != (p.kind if p.kind in (REQUEST, CREDIT) else None)],
          [], "packets whose option differs from their DSCP")


@everywhere("SYN cookies do not keep the SYN's option: both fall back to reno, counted", cc="xpass",
            by=syn_cookies)
def cookies(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:3]], [(SCHEDULED, SCHEDULED), (0, None), (0, None)],
          "handshake")
    exchange(wire, client, server)
    unmarked(wire.seen[1:])
    is_reno(wire, client, wire.a)
    is_reno(wire, server, wire.b)


@case("a listener's default changes: its SYN-ACK announces the transport that the child runs",
      version=(4, 6), before=("cubic", "xpass", "tlt_cubic"), after=("cubic", "xpass", "tlt_cubic"))
def default_changes(version, before, after):
    modules.load("tcp_tlt")
    with Wire(cc="xpass", version=version) as wire:
        wire.b.sysctl("net.ipv4.tcp_congestion_control", before)
        listener = wire.listen()
        wire.b.sysctl("net.ipv4.tcp_congestion_control", after)
        client, server = wire.connect(listener=listener)
        exchange(wire, client, server)
        answer, = (p for p in wire.from_b() if p.flags & SYN)
        if after == "xpass":
            equal(answer.says, SCHEDULED, "option of the SYN-ACK")
            credited(wire, client, server)
        else:
            equal(cc_of(server), after, "the child's congestion control")
            is_reno(wire, client, wire.a)
            unmarked(wire.seen[1:])


@case("TCP Fast Open: data in the SYN, then credits in both directions", connected, by=fast_open,
      version=(4, 6), cc="xpass")
def tfo(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:2]], [(SCHEDULED, SCHEDULED)] * 2,
          "SYN and SYN-ACK")
    wire.run(1e-3)
    wire.mark()
    exchange(wire, client, server)
    credited(wire, client, server)


@case("children of a listener have credits and credit numbers of their own", Wire,
      cc="xpass")
def by_sysctl(wire):
    listener = wire.listen()
    for client, server in [wire.connect(listener=listener) for _ in range(5)]:
        wire.mark()
        exchange(wire, client, server, 20_000)
        credited(wire, client, server)
        for packets in (wire.from_a(), wire.from_b()):
            equal(xpass.credits(packets)[0], 1, "the first credit's number")


@case("selected in mid-connection, by one end or both: xpass-reno, and data flows", version=(4, 6))
def mid_life(version):
    for who in ("a", "b", "ab"):
        modules.load("tcp_tlt", "tcp_xpass")
        with Wire(cc="cubic", version=version) as wire:
            client, server = wire.connect()
            exchange(wire, client, server, 20_000)
            for name, s in (("a", client), ("b", server)):
                if name in who:
                    choose(s, "xpass")
                    equal(cc_of(s), "xpass-reno", f"{name}: congestion control")
            exchange(wire, client, server)
            unmarked(wire.seen)
            # another congestion control replaces it
            choose(client, "reno")
            equal(cc_of(client), "reno", "congestion control")
            exchange(wire, client, server)


@case("selected between connect() and the SYN-ACK: data flows", connected, by=mid_handshake,
      version=(4, 6), cc="cubic", cc_b="xpass")
def chosen_in_handshake(wire, client, server):
    exchange(wire, client, server)
    equal([p for p in wire.seen if p.kind in (REQUEST, CREDIT)], [], "requests and credits")


@case("replaced by cubic in mid-connection, with data in flight: data flows, unmarked", connected,
      version=(4, 6), cc="xpass")
def leave(wire, client, server):
    exchange(wire, client, server, 20_000)
    client.send(b"l" * 300_000)
    wire.run(300e-6)
    choose(client, "cubic")
    equal(wire.receive(server, 300_000, 5.0), b"l" * 300_000, "bytes that arrive")
    wire.run(0.5)
    wire.mark()
    true(wire.transfer(client, server, 100_000), "more arrives")
    unmarked(wire.from_a())


@case("xpass-reno cannot be selected by name", Wire, cc="xpass")
def not_by_name(wire):
    s = wire.socket(wire.a)
    refused("xpass-reno", errno.ENOENT, choose, s, "xpass-reno")
    equal(cc_of(s), "xpass", "congestion control")


def changed_silently(wire, server):
    """another congestion control, and its announcement is lost"""
    wire.rule = xpass.is_closed
    choose(server, "cubic")


def stripped(wire, _):
    """the path removes our options"""
    wire.rule = without_option


@case("the peer leaves unnoticed, or the path begins to remove options: reno, within a second",
      version=(4, 6), event=(changed_silently, stripped))
def left_alone(version, event):
    with Wire(cc="xpass", version=version, rto_min=200) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "data of the client arrives before")
        true(wire.transfer(server, client, 20_000), "data of the server arrives before")
        event(wire, server)
        true(wire.transfer(client, server, 20_000, 1.0), "data arrives within 1 s afterwards")
        equal(cc_of(client), "xpass-reno", "congestion control")
        equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
        true(wire.transfer(client, server, 200_000, 0.2), "200 kB more arrive within 0.2 s")


@case("a listener with TCP_DEFER_ACCEPT drops requests: data follows them after 0.1 s at most", Wire,
      version=(4, 6), cc=("xpass", "aeolus_xpass"), rto_min=200)
def deferred(wire):
    listener = wire.listen(TCP_DEFER_ACCEPT=10)
    client = wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1e-3)
    client.send(pattern(100_000))
    wire.run(0.1)
    server = wire.accept(listener)
    equal(wire.receive(server, 100_000, 5e-3), pattern(100_000), "bytes that arrive")
    equal([cc_of(s) for s in (client, server)], [wire.cc] * 2, "congestion control of both ends")
    equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "TCPTimeouts")


@case("the peer selects another congestion control: reno at once, also for data in flight",
      version=(4, 6), cc=("xpass", "aeolus_xpass"))
def told_gone(version, cc):
    with Wire(cc=cc, version=version, rto_min=200) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "data arrives before")
        client.send(b"l" * 100_000)
        wire.run(wire.delay)
        wire.mark()
        choose(server, "cubic")
        equal(wire.receive(server, 100_000, 5e-3), b"l" * 100_000, "the data that was in flight")
        equal([cc_of(s) for s in (client, server)], [f"{cc.removesuffix('_xpass')}-reno", "cubic"],
              "congestion control of both ends")
        equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
        equal([p.from_a for p in wire.seen if xpass.is_closed(p)], [False],
              "from a, for each packet that announces the end of credits")
        wire.mark()
        true(wire.transfer(client, server, 100_000, 5e-3),
             "more data of the client arrives in 5 ms")
        true(wire.transfer(server, client, 100_000, 5e-3),
             "more data of the server arrives in 5 ms")
        unmarked(wire.from_a())


@case("the path begins to bleach codepoints in mid-connection: transfers take as long", connected,
      version=(4, 6), cc="xpass")
def bleached_later(wire, client, server):
    before = sum(takes(wire, client, server) for _ in range(40))
    wire.run(5e-3)
    wire.rule = lambda p: p.set_dscp(0)
    within(sum(takes(wire, client, server) for _ in range(40)), 0, 1.05 * before,
           "time of 40 transfers, s")
    equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "congestion control of both ends")
    equal([ns.greenlane()["Fallback"] for ns in (wire.a, wire.b)], [0, 0], "Fallback")


if __name__ == "__main__":
    tap.main()
