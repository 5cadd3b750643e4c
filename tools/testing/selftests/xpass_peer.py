#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end: peers without credits, and every way in which a connection can
come to be.

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
from lab.wire.wire import Wire, connected


def credited(wire, client, server):
    """Both ways by credits, from the first byte on; nothing unusual counted."""
    xpass.well_formed(wire.seen)
    for from_a in (True, False):
        came, sent = xpass.paid(wire, from_a)
        true(came >= sent > 0, f"{sent} packets for {came} credits")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("PeerWithout", "Unsupported", "Uncredited", "Invalid")],
              [0] * 4, f"{ns.name}: PeerWithout, Unsupported, Uncredited, Invalid")
    equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "both ends")
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")


def is_reno(wire, s, ns):
    """Fallen back, counted, and no credit was ever asked for."""
    equal(cc_of(s), "xpass-reno", "congestion control")
    counters = ns.greenlane()
    equal([counters[n] for n in ("PeerWithout", "RequestSent", "CreditSent", "ScheduledSent")],
          [1, 0, 0, 0], "PeerWithout, RequestSent, CreditSent, ScheduledSent")
    equal([p for p in wire.seen if REQUEST in (p.kind, p.says) or CREDIT in (p.kind, p.says)], [],
          "requests and credits")


everywhere = using(connected, version=(4, 6), tso=(True, False))


# --- peers without

@everywhere("a server without it: the client becomes reno, DSCP 0, counted",
            cc="xpass", cc_b="cubic")
def server_without(wire, client, server):
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, client, wire.a)
    true(len(data(wire.from_a())) > 50, "data")


@everywhere("a client without it: the server becomes reno, DSCP 0, counted",
            cc=("cubic", "reno"), cc_b="xpass", by=(Wire.connect, fast_open))
def client_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, server, wire.b)


@case("SYN cookies, client without", connected, by=syn_cookies, version=(4, 6), cc="cubic",
      cc_b="xpass")
def cookies_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_reno(wire, server, wire.b)


@case("what it has become sends as reno does, through a loss", version=(4, 6))
def as_reno(version):
    sends_as("reno", "xpass", version)


@case("the other end runs tlt_dctcp: each falls back, and data flows",
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
        equal(info(ends["tlt_dctcp"][0])["peer"], NO, "tlt_dctcp's peer")
        equal(ends["tlt_dctcp"][1].greenlane()["PeerWithout"], 1, "its PeerWithout")


@case("codepoints bleached: credits both ways all the same", connected, by=bleached,
      version=(4, 6), cc="xpass")
def always_bleached(wire, client, server):
    for s, ns in ((client, wire.a), (server, wire.b)):
        equal(cc_of(s), "xpass", "congestion control")
        counters = ns.greenlane()
        sent = [p for p in data(wire.seen) if p.from_a == (ns is wire.a)]
        equal(counters["ScheduledSent"], len(sent), "ScheduledSent")
        true(counters["CreditReceived"] >= len(sent) > 50, "credits for all of it")
        equal([counters[n] for n in ("Uncredited", "Invalid", "RequestRetried")], [0, 0, 0],
              "Uncredited, Invalid, RequestRetried")


@functools.cache
def spent(version, to):
    """Seconds of 40 transfers each way, where each DSCP becomes `to` on the way: credits leave
    at random, within a tenth, and one transfer differs from the next."""
    with Wire(cc="xpass", version=version) as wire:
        xpass.far(wire)
        wire.align()
        if to is not None:
            wire.rule = lambda p: p.set_dscp(to)
        ends = wire.connect()
        seconds = sum(takes(wire, *ends) for _ in range(40))
        equal([cc_of(s) for s in ends], ["xpass"] * 2, "both ends")
        return seconds


@case("re-marked on the way, whatever to: as soon as else", version=(4, 6),
      to=(0, SCHEDULED.dscp, CREDIT.dscp, 46))
def remarked(version, to):
    within(spent(version, to), 0, 1.05 * spent(version, None), "seconds")


@case("the option is removed on the way: both become reno, no credit is waited for", Wire,
      version=(4, 6), cc="xpass")
def removed(wire):
    wire.rule = without_option
    client, server = wire.connect()
    exchange(wire, client, server)
    is_reno(wire, client, wire.a)
    is_reno(wire, server, wire.b)
    unmarked(wire.seen[1:])


@case("without SACK: reno, counted", connected, by=without_sack, version=(4, 6), cc="xpass")
def no_sack(wire, client, server):
    equal([cc_of(s) for s in (client, server)], ["xpass-reno"] * 2, "both ends")
    equal(wire.a.greenlane()["Unsupported"], 1, "Unsupported")


@case("an application that sends our codepoints by itself is taken for no peer", version=(4, 6),
      dscp=(SCHEDULED.dscp, CREDIT.dscp))
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


# --- how it comes to be

@everywhere("credits from the first byte on, both ways, however it comes to be", cc="xpass",
            by=(Wire.connect, by_socket, by_route))
def comes_to_be(wire, client, server):
    xpass.handshake(wire.seen)
    equal([p.says for p in wire.seen[:3]], [SCHEDULED, SCHEDULED, None], "what they say")
    exchange(wire, client, server)
    credited(wire, client, server)
    equal([p for p in wire.seen[2:] if p.says != (p.kind if p.kind in (REQUEST, CREDIT) else None)],
          [], "packets that say something else than their DSCP")


@everywhere("SYN cookies forget what the SYN has said: reno, counted", cc="xpass", by=syn_cookies)
def cookies(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:3]], [(SCHEDULED, SCHEDULED), (0, None), (0, None)],
          "handshake")
    exchange(wire, client, server)
    unmarked(wire.seen[1:])
    is_reno(wire, client, wire.a)
    is_reno(wire, server, wire.b)


@case("a listener's default changes while it waits: what its children run is what it promises",
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
            equal(answer.says, SCHEDULED, "the answer says")
            credited(wire, client, server)
        else:
            equal(cc_of(server), after, "the child's congestion control")
            is_reno(wire, client, wire.a)
            unmarked(wire.seen[1:])


@case("TCP Fast Open: data in the SYN, then credits both ways", connected, by=fast_open,
      version=(4, 6), cc="xpass")
def tfo(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:2]], [(SCHEDULED, SCHEDULED)] * 2,
          "SYN and SYN-ACK")
    wire.run(1e-3)
    wire.mark()
    exchange(wire, client, server)
    credited(wire, client, server)


@case("by sysctl: children of a listener, each with credits and numbers of its own", Wire,
      cc="xpass")
def by_sysctl(wire):
    listener = wire.listen()
    for client, server in [wire.connect(listener=listener) for _ in range(5)]:
        wire.mark()
        exchange(wire, client, server, 20_000)
        credited(wire, client, server)
        for packets in (wire.from_a(), wire.from_b()):
            equal(xpass.credits(packets)[0], 1, "the first credit's number")


@case("chosen in mid-connection, by one end or both: xpass-reno, and data flows", version=(4, 6))
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
            # and given up again
            choose(client, "reno")
            equal(cc_of(client), "reno", "congestion control")
            exchange(wire, client, server)


@case("chosen between connect() and the SYN-ACK: data flows", connected, by=mid_handshake,
      version=(4, 6), cc="cubic", cc_b="xpass")
def chosen_in_handshake(wire, client, server):
    exchange(wire, client, server)
    equal([p for p in wire.seen if p.kind in (REQUEST, CREDIT)], [], "requests and credits")


@case("left in mid-connection, with data under way: it goes on, unmarked", connected,
      version=(4, 6), cc="xpass")
def leave(wire, client, server):
    exchange(wire, client, server, 20_000)
    client.send(b"l" * 300_000)
    wire.run(300e-6)
    choose(client, "cubic")
    equal(wire.receive(server, 300_000, 5.0), b"l" * 300_000, "what arrives")
    wire.run(0.5)
    wire.mark()
    true(wire.transfer(client, server, 100_000), "more arrives")
    unmarked(wire.from_a())


@case("xpass-reno is not to be had by name", Wire, cc="xpass")
def not_by_name(wire):
    s = wire.socket(wire.a)
    refused("xpass-reno", errno.ENOENT, choose, s, "xpass-reno")
    equal(cc_of(s), "xpass", "congestion control")


def changed_silently(wire, server):
    """another congestion control, and its message is lost"""
    wire.rule = xpass.is_gone
    choose(server, "cubic")


def stripped(wire, _):
    """no option of ours"""
    wire.rule = without_option


@case("the peer leaves in mid-life, or options get lost on the way: reno, after a while",
      version=(4, 6), event=(changed_silently, stripped))
def left_alone(version, event):
    with Wire(cc="xpass", version=version, rto_min="200ms") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "arrives before")
        true(wire.transfer(server, client, 20_000), "and the other way")
        event(wire, server)
        true(wire.transfer(client, server, 20_000, 1.0), "arrives afterwards")
        equal(cc_of(client), "xpass-reno", "congestion control")
        equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
        true(wire.transfer(client, server, 200_000, 0.2), "and goes on")


@case("the peer chooses another congestion control: reno, at once, also for what is under way",
      version=(4, 6), cc=("xpass", "aeolus_xpass"))
def told_gone(version, cc):
    with Wire(cc=cc, version=version, rto_min="200ms") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "arrives before")
        client.send(b"l" * 100_000)
        wire.run(wire.delay)
        wire.mark()
        choose(server, "cubic")
        equal(wire.receive(server, 100_000, 5e-3), b"l" * 100_000, "what was under way arrives")
        equal([cc_of(s) for s in (client, server)], [f"{cc.removesuffix('_xpass')}-reno", "cubic"],
              "both ends")
        equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
        equal([p.from_a for p in wire.seen if xpass.is_gone(p)], [False], "who has said so")
        wire.mark()
        true(wire.transfer(client, server, 100_000, 5e-3), "and goes on")
        true(wire.transfer(server, client, 100_000, 5e-3), "both ways")
        unmarked(wire.from_a())


@case("codepoints get lost on the way from some moment on: nothing changes", connected,
      version=(4, 6), cc="xpass")
def bleached_later(wire, client, server):
    before = sum(takes(wire, client, server) for _ in range(40))
    wire.run(5e-3)
    wire.rule = lambda p: p.set_dscp(0)
    within(sum(takes(wire, client, server) for _ in range(40)), 0, 1.05 * before, "seconds")
    equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "both ends")
    equal([ns.greenlane()["Fallback"] for ns in (wire.a, wire.b)], [0, 0], "Fallback")


if __name__ == "__main__":
    tap.main()
