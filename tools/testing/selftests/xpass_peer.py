#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end: peers without credits, and every way in which a connection can
come to be.

	a (client) ---- wire (this program) ---- b (server)
"""
import socket

from gl import tap, xpass
from gl.packet import CREDIT, REQUEST, SCHEDULED, data
from gl.peer import fast_open, unmarked
from gl.sockopt import NO, TCP_CONGESTION, YES, info, cc_of
from gl.tap import case, equal, true
from gl.wire import XPASS, Wire, load


def exchange(wire, client, server, count=100_000):
    """Bytes both ways."""
    true(wire.transfer(client, server, count), "arrives")
    true(wire.transfer(server, client, count), "arrives back")


def credited(wire, *senders):
    """Both ways by credits, from the first byte on; nothing unusual counted."""
    xpass.handshake(wire.seen)
    xpass.well_formed(wire.seen)
    for from_a in senders or (True, False):
        came, sent = xpass.paid(wire, from_a)
        true(came >= sent > 0, f"{sent} packets for {came} credits")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("PeerWithout", "Unsupported", "Uncredited", "Invalid")],
              [0] * 4, f"{ns.name}: PeerWithout, Unsupported, Uncredited, Invalid")


def is_reno(wire, s, ns):
    """Fallen back, counted, and no credit was ever asked for."""
    equal(cc_of(s), "xpass-reno", "congestion control")
    counters = ns.greenlane()
    equal([counters[n] for n in ("PeerWithout", "RequestSent", "CreditSent", "ScheduledSent")],
          [1, 0, 0, 0], "PeerWithout, RequestSent, CreditSent, ScheduledSent")
    equal([p for p in wire.seen if p.dscp in (REQUEST, CREDIT)], [], "requests and credits")


def everywhere(check, **options):
    """IPv4 and IPv6, TSO on and off."""
    for version in (4, 6):
        for tso in (True, False):
            with Wire(version=version, tso=tso, **options) as wire:
                check(wire)


# --- peers without

@case("a server without it: the client becomes reno, DSCP 0, counted")
def server_without():
    def check(wire):
        client, server = wire.connect()
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)
        is_reno(wire, client, wire.a)
        true(len(data(wire.from_a())) > 50, "data")
    everywhere(check, cc="xpass", cc_b="cubic")


@case("a client without it: the server becomes reno, DSCP 0, counted")
def client_without():
    def check(wire):
        client, server = wire.connect()
        exchange(wire, client, server)
        unmarked(wire.seen)
        is_reno(wire, server, wire.b)
    everywhere(check, cc="cubic", cc_b="xpass")


@case("what it has become sends as reno does, through a loss")
def as_reno():
    for version in (4, 6):
        runs = []
        for cc in ("reno", "xpass"):
            with Wire(cc=cc, cc_b="reno", version=version) as wire:
                client, server = wire.connect()
                runs.append(wire.third_lost(client, server))
        equal(runs[1], runs[0], "packets (length, offset)")


@case("the other end runs tlt_dctcp: each falls back, and data flows")
def tlt():
    for ccs in (("xpass", "tlt_dctcp"), ("tlt_dctcp", "xpass")):
        for version in (4, 6):
            with Wire(cc=ccs[0], cc_b=ccs[1], version=version) as wire:
                client, server = wire.connect()
                wire.mark()
                exchange(wire, client, server)
                unmarked(data(wire.seen))
                ends = {ccs[0]: (client, wire.a), ccs[1]: (server, wire.b)}
                is_reno(wire, *ends["xpass"])
                equal(info(ends["tlt_dctcp"][0])["peer"], NO, "tlt_dctcp's peer")
                equal(ends["tlt_dctcp"][1].greenlane()["PeerWithout"], 1, "its PeerWithout")


@case("codepoints bleached: both become reno, no credit is waited for")
def bleached():
    for version in (4, 6):
        with Wire(cc="xpass", version=version) as wire:
            sent = []
            wire.rule = lambda p: sent.append(p.dscp) or p.set_dscp(0)
            client, server = wire.connect()
            sent.clear()
            exchange(wire, client, server)
            equal(set(sent), {0}, "DSCP that the hosts send")
            for s, ns in ((client, wire.a), (server, wire.b)):
                is_reno(wire, s, ns)


@case("without SACK: reno, counted")
def no_sack():
    for version in (4, 6):
        with Wire(cc="xpass", version=version) as wire:
            wire.b.sysctl("net.ipv4.tcp_sack", 0)
            client, server = wire.connect()
            wire.mark()
            exchange(wire, client, server)
            unmarked(data(wire.seen))
            equal([cc_of(s) for s in (client, server)], ["xpass-reno"] * 2, "both ends")
            equal(wire.a.greenlane()["Unsupported"], 1, "Unsupported")


@case("an application that sends our codepoints by itself gets DSCP 0, and no credits")
def pretender():
    for dscp in (SCHEDULED, REQUEST, CREDIT):
        with Wire(cc="reno", cc_b="xpass") as wire:
            client, server = wire.connect(IP_TOS=dscp << 2)
            exchange(wire, client, server)
            unmarked(wire.seen)
            is_reno(wire, server, wire.b)
            true(wire.a.greenlane()["Stripped"] > 0, "Stripped")


# --- how it comes to be

@case("SYN cookies: credits from the first byte on, both ways")
def cookies():
    def check(wire):
        wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
        # SACK is in a cookie's time stamp, of 64 ms; uptime has to be more.
        wire.run(1.0)
        client, server = wire.connect()
        equal(wire.b.netstat("SyncookiesRecv"), 1, "SyncookiesRecv")
        exchange(wire, client, server)
        credited(wire)
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
    everywhere(check, cc="xpass")


@case("SYN cookies, client without")
def cookies_without():
    for version in (4, 6):
        with Wire(cc="cubic", cc_b="xpass", version=version) as wire:
            wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
            client, server = wire.connect()
            wire.mark()
            exchange(wire, client, server)
            unmarked(wire.seen)
            is_reno(wire, server, wire.b)


@case("TCP Fast Open: data in the SYN, then credits both ways")
def tfo():
    for version in (4, 6):
        with Wire(cc="xpass", version=version) as wire:
            client, server = fast_open(wire)
            equal([p.dscp for p in wire.seen[:2]], [SCHEDULED] * 2, "SYN and SYN-ACK")
            equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "both ends")
            wire.run(1e-3)
            wire.mark()
            exchange(wire, client, server)
            xpass.well_formed(wire.seen)
            for from_a in (True, False):
                came, sent = xpass.paid(wire, from_a)
                true(came >= sent > 0, f"{sent} packets for {came} credits")
            server.close()


@case("TCP Fast Open, client without")
def tfo_without():
    for version in (4, 6):
        with Wire(cc="reno", cc_b="xpass", version=version) as wire:
            client, server = fast_open(wire)
            exchange(wire, client, server)
            unmarked(wire.seen)
            is_reno(wire, server, wire.b)
            server.close()


@case("by socket: TCP_CONGESTION before connect() and on the listener")
def by_socket():
    for version in (4, 6):
        load(XPASS)
        with Wire(cc="cubic", version=version) as wire:
            client, server = wire.connect(cc="xpass", listener=wire.listen(cc="xpass"))
            exchange(wire, client, server)
            credited(wire)


@case("by route: ip route ... congctl xpass, both ends")
def by_route():
    for version, host in ((4, "10.0.0.{}/32"), (6, "fd00::{}/128")):
        load(XPASS)
        with Wire(cc="cubic", version=version) as wire:
            wire.a.ip(f"route replace {host.format(2)} dev tun0 congctl xpass")
            wire.b.ip(f"route replace {host.format(1)} dev tun0 congctl xpass")
            client, server = wire.connect()
            exchange(wire, client, server)
            credited(wire)
            equal([cc_of(s) for s in (client, server)], ["xpass"] * 2, "both ends")


@case("by sysctl: children of a listener, each with credits and numbers of its own")
def by_sysctl():
    with Wire(cc="xpass") as wire:
        listener = wire.listen()
        pairs = [wire.connect(listener=listener) for _ in range(5)]
        for client, server in pairs:
            wire.mark()
            exchange(wire, client, server, 20_000)
            xpass.well_formed(wire.seen)
            for from_a in (True, False):
                equal(xpass.credits(p for p in wire.seen if p.from_a != from_a)[0], 1,
                      "the first credit's number")
                xpass.paid(wire, from_a)


@case("chosen in mid-connection, by one end or both: xpass-reno, and data flows")
def mid_life():
    for version in (4, 6):
        for who in ("a", "b", "ab"):
            load(XPASS)
            with Wire(cc="cubic", version=version) as wire:
                client, server = wire.connect()
                exchange(wire, client, server, 20_000)
                for name, s in (("a", client), ("b", server)):
                    if name in who:
                        s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"xpass")
                        equal(cc_of(s), "xpass-reno", f"{name}: congestion control")
                exchange(wire, client, server)
                unmarked(wire.seen)
                # and given up again
                client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"reno")
                equal(cc_of(client), "reno", "congestion control")
                exchange(wire, client, server)


@case("chosen between connect() and the SYN-ACK: data flows")
def mid_handshake():
    for version in (4, 6):
        load(XPASS)
        with Wire(cc="cubic", cc_b="xpass", version=version) as wire:
            listener = wire.listen()
            client = wire.socket(wire.a)
            try:
                client.connect((wire.address(wire.b), 1000))
            except BlockingIOError:
                pass
            wire.run(1e-6)
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"xpass")
            wire.run(5e-3)
            server = listener.accept()[0]
            server.setblocking(False)
            exchange(wire, client, server)
            equal([p for p in wire.seen if p.dscp in (REQUEST, CREDIT)], [],
                  "requests and credits")
            server.close()


@case("left in mid-connection, with data under way: it goes on, unmarked")
def leave():
    for version in (4, 6):
        with Wire(cc="xpass", version=version) as wire:
            client, server = wire.connect()
            exchange(wire, client, server, 20_000)
            client.send(b"l" * 300_000)
            wire.run(300e-6)
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
            got = bytearray()

            def step(got=got, server=server):
                try:
                    got.extend(server.recv(1 << 20))
                except BlockingIOError:
                    pass
                return len(got) == 300_000
            true(wire.run(5.0, step), f"all arrives ({len(got)})")
            wire.run(0.5)
            wire.mark()
            true(wire.transfer(client, server, 100_000), "more arrives")
            unmarked(wire.from_a())


@case("xpass-reno is not to be had by name")
def not_by_name():
    with Wire(cc="xpass") as wire:
        s = wire.socket(wire.a)
        try:
            s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"xpass-reno")
        except FileNotFoundError:
            pass
        else:
            raise tap.Failed("xpass-reno can be chosen")
        equal(cc_of(s), "xpass", "congestion control")


@case("the peer leaves in mid-life, or codepoints get lost on the way: reno, after a while")
def left_alone():
    def leave(_, server):
        server.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")

    def bleach(wire, _):
        wire.rule = lambda p: p.set_dscp(0)

    for version in (4, 6):
        for what in (leave, bleach):
            with Wire(cc="xpass", version=version, rto_min="200ms") as wire:
                client, server = wire.connect()
                true(wire.transfer(client, server, 20_000), "arrives before")
                true(wire.transfer(server, client, 20_000), "and the other way")
                what(wire, server)
                true(wire.transfer(client, server, 20_000, 1.0), f"arrives after {what.__name__}")
                equal(cc_of(client), "xpass-reno", "congestion control")
                equal(wire.a.greenlane()["Fallback"], 1, "Fallback")
                true(wire.transfer(client, server, 200_000, 0.2), "and goes on")


if __name__ == "__main__":
    tap.main()
