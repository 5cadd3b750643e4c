#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end: peers without dart, and every way in which a connection can come to
be, or change in the middle.

	a (client) ---- wire (this program) ---- b (server)
"""
import socket

from gl import tap
from gl.dart import DATA, ONE, RATE, RTT, connect, dart, of, read_all, shares
from gl.packet import ACK, MESSAGE, MESSAGE_END, SHARE, SYN, data
from gl.peer import fast_open, mptcp, unmarked
from gl.sockopt import (F_UNSUPPORTED, GREENLANE_MESSAGE, GREENLANE_TLT, NO, TCP_CONGESTION, YES,
                        cc_of, info, option, pacing)
from gl.tap import case, equal, true, within
from gl.wire import MSS, NEEDS, Wire, load

HEADERS = {4: 90, 6: 110}       # on the line, beside the payload
CE = 3


def line(version, divisor=1.0):
    """Bytes of payload a second of a share of the line."""
    return RATE * 125_000 / divisor * MSS[version] / (MSS[version] + HEADERS[version])


def exchange(wire, client, server, count=100_000):
    """Bytes both ways."""
    true(wire.transfer(client, server, count), "arrives")
    true(wire.transfer(server, client, count), "arrives back")
    wire.run(1e-3)


def switch(s, cc):
    """Another congestion control."""
    s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())


def wires(ecn=1, **options):
    """IPv4 and IPv6, TSO on and off, at the rate of gl.dart; hosts ask for ECN."""
    for version in (4, 6):
        for tso in (True, False):
            with Wire(version=version, tso=tso, **options) as wire:
                for ns in (wire.a, wire.b):
                    load(*NEEDS["dart"])
                    ns.sysctl("net.ipv4.dcqcn_rate", RATE)
                    ns.sysctl("net.ipv4.tcp_ecn", ecn)
                yield wire


def shared(wire, client, server):
    """Marks, messages and shares, both ways; nothing unusual counted."""
    for from_a in (True, False):
        sent = [p for p in data(wire.seen) if p.from_a == from_a and not p.flags & SYN]
        equal({p.dscp for p in sent} - set(DATA), set(), f"other DSCPs of data, from a: {from_a}")
        equal(sent[-1].dscp in (MESSAGE, 0), False, "the last packet says so")
    true(shares(wire.from_a()) and shares(wire.from_b()), "shares both ways")
    equal({divisor for _, divisor in shares(wire.seen)}, {ONE}, "divisors")
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
    equal([cc_of(s) for s in (client, server)], ["dart"] * 2, "both ends")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("PeerWithout", "Unsupported", "Invalid", "NoMemory")],
              [0] * 4, f"{ns.name}: PeerWithout, Unsupported, Invalid, NoMemory")
        equal(counters["MessageBegun"], counters["MessageEnded"], "messages begun and ended")
        true(counters["MessageBegun"], "messages begun")


def is_dcqcn(wire, s, ns):
    """It says dart and does as dcqcn; counted."""
    equal((cc_of(s), info(s)["peer"]), ("dart", NO), "congestion control, and peer")
    counters = ns.greenlane()
    equal([counters[n] for n in ("PeerWithout", "ShareSent", "ShareReceived", "MessageBegun",
                                 "MessageSent", "ShortSent")], [1, 0, 0, 0, 0, 0],
          "PeerWithout, shares and messages")
    within(pacing(s), 0.995 * line(wire.version), 1.005 * line(wire.version), "rate")


# --- peers without

def is_reno(wire, s):
    """Without ECN: none of it, and nothing of dcqcn."""
    equal(cc_of(s), "dart-reno", "congestion control")
    equal({p.ecn for p in data(wire.seen)}, {0}, "ECN of data")


@case("a server without it: dcqcn, DSCP 0, counted; reno, if it refuses ECN to a SYN with ECT(0)")
def server_without():
    # As dctcp's, our SYN is ECN-capable itself; TCP takes that only from its like.
    for cc in ("dcqcn", "cubic", "reno"):
        for wire in wires(cc="dart", cc_b=cc):
            client, server = wire.connect()
            equal([p.dscp for p in wire.seen[:3]], [SHARE, 0, 0], "handshake")
            wire.mark()
            exchange(wire, client, server)
            unmarked(wire.seen)
            if cc == "dcqcn":
                is_dcqcn(wire, client, wire.a)
            else:
                is_reno(wire, client)
            true(len(data(wire.from_a())) > 50, "data")


@case("a client without it: dcqcn, DSCP 0, counted")
def client_without():
    for cc in ("dcqcn", "cubic", "reno"):
        for wire in wires(cc=cc, cc_b="dart"):
            client, server = wire.connect()
            exchange(wire, client, server)
            unmarked(wire.seen)
            is_dcqcn(wire, server, wire.b)


@case("a peer without ECN: dart-reno, DSCP 0")
def without_ecn():
    for cc in ("cubic", "reno"):
        for mine, other in (("a", "b"), ("b", "a")):
            ccs = {mine: "dart", other: cc}
            for wire in wires(cc=ccs["a"], cc_b=ccs["b"]):
                getattr(wire, other).sysctl("net.ipv4.tcp_ecn", 0)
                ends = dict(zip("ab", wire.connect()))
                wire.mark()
                exchange(wire, ends["a"], ends["b"])
                unmarked(wire.seen)
                is_reno(wire, ends[mine])


@case("and what that sends is what reno sends, through a loss")
def as_reno():
    for version in (4, 6):
        runs = []
        for cc in ("reno", "dart"):
            with Wire(cc=cc, cc_b="reno", version=version) as wire:
                wire.b.sysctl("net.ipv4.tcp_ecn", 0)
                client, server = wire.connect()
                runs.append(wire.third_lost(client, server))
        equal(runs[1], runs[0], "packets (length, offset)")


@case("to a peer without it: what dcqcn sends, when, through marks")
def as_dcqcn():
    for version in (4, 6):
        runs = []
        for cc in ("dcqcn", "dart"):
            with Wire(cc=cc, cc_b="dcqcn", version=version) as wire:
                wire.a.sysctl("net.ipv4.dcqcn_rate", RATE)
                client, server = wire.connect()
                wire.mark()

                def rule(p, wire=wire):
                    if p.from_a and p.len and len(data(wire.from_a())) % 8 == 0:
                        p.set_dsfield(p.dsfield | CE)
                wire.rule = rule
                true(wire.transfer(client, server, 300_000), "arrives")
                sent = data(wire.from_a())
                runs.append([(p.len, p.seq - sent[0].seq & 0xffffffff) for p in sent])
                runs.append(sent[-1].time - sent[0].time)
        equal(runs[2], runs[0], "packets (length, offset)")
        true(runs[1] > 1.2 * 300_000 / line(version), "the marks were heeded")
        within(runs[3] / runs[1], 0.98, 1.02, "the time that it takes, of dcqcn's")


@case("the other end runs another of ours: each falls back, and data flows")
def others():
    for other in ("tlt_dctcp", "tlt_cubic", "xpass", "aeolus_xpass"):
        for ccs in (("dart", other), (other, "dart")):
            for wire in wires(cc=ccs[0], cc_b=ccs[1]):
                client, server = wire.connect()
                wire.mark()
                exchange(wire, client, server)
                unmarked(data(wire.seen))
                if ccs[1] == "dart":
                    is_dcqcn(wire, server, wire.b)
                elif other == "tlt_dctcp":
                    is_dcqcn(wire, client, wire.a)
                else:
                    is_reno(wire, client)


@case("codepoints bleached: both do as dcqcn, no share is waited for")
def bleached():
    for wire in wires(cc="dart"):
        sent = []
        wire.rule = lambda p, sent=sent: sent.append(p.dscp) or p.set_dscp(0)
        client, server = wire.connect()
        sent.clear()
        exchange(wire, client, server)
        equal(set(sent), {0}, "DSCP that the hosts send")
        for s, ns in ((client, wire.a), (server, wire.b)):
            is_dcqcn(wire, s, ns)


@case("without SACK: dcqcn, counted")
def no_sack():
    for wire in wires(cc="dart"):
        wire.b.sysctl("net.ipv4.tcp_sack", 0)
        client, server = wire.connect()
        wire.mark()
        exchange(wire, client, server)
        unmarked(data(wire.seen))
        for s, ns in ((client, wire.a), (server, wire.b)):
            equal((cc_of(s), info(s)["flags"]), ("dart", F_UNSUPPORTED), "dart, and flags")
            equal(ns.greenlane()["Unsupported"], 1, "Unsupported")


@case("an application that sends our codepoints by itself gets DSCP 0, and no share")
def pretender():
    for dscp in (SHARE, MESSAGE, MESSAGE_END):
        with Wire(cc="reno", cc_b="dart") as wire:
            wire.a.sysctl("net.ipv4.tcp_ecn", 1)
            client, server = wire.connect(IP_TOS=dscp << 2)
            exchange(wire, client, server)
            equal({p.dscp for p in wire.from_b()}, {0}, "DSCP of the other end")
            equal(shares(wire.seen), [], "shares")
            equal(wire.b.greenlane()["PeerWithout"], 1, "PeerWithout")
            del server


# --- how it comes to be

@case("a listener's children: each says which message is whose")
def children():
    for wire in wires(cc="dart"):
        listener = wire.listen()
        for client, server in [wire.connect(listener=listener) for _ in range(3)]:
            equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
            wire.mark()
            exchange(wire, client, server, 20_000)
            shared(wire, client, server)


@case("SYN cookies: shares both ways")
def cookies():
    for wire in wires(cc="dart"):
        wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
        # SACK and ECN are in a cookie's time stamp, of 64 ms; uptime has to be more.
        wire.run(1.0)
        client, server = wire.connect()
        equal(wire.b.netstat("SyncookiesRecv"), 1, "SyncookiesRecv")
        exchange(wire, client, server)
        shared(wire, client, server)


@case("SYN cookies, client without")
def cookies_without():
    for wire in wires(cc="cubic", cc_b="dart"):
        wire.b.sysctl("net.ipv4.tcp_syncookies", 2)
        wire.run(1.0)
        client, server = wire.connect()
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)
        is_dcqcn(wire, server, wire.b)


@case("TCP Fast Open: data in the SYN, then shares both ways")
def tfo():
    for wire in wires(cc="dart"):
        client, server = fast_open(wire)
        equal([p.dscp for p in wire.seen[:2]], [SHARE] * 2, "SYN and SYN-ACK")
        wire.run(1e-3)
        equal(info(server)["senders"], 0, "senders, when nothing is on its way")
        wire.mark()
        exchange(wire, client, server)
        equal({p.dscp for p in data(wire.seen)} - set(DATA), set(), "other DSCPs of data")
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
        true(shares(wire.from_a()) and shares(wire.from_b()), "shares both ways")
        server.close()


@case("TCP Fast Open, client without")
def tfo_without():
    for wire in wires(cc="reno", cc_b="dart"):
        client, server = fast_open(wire)
        exchange(wire, client, server)
        unmarked(wire.seen)
        is_dcqcn(wire, server, wire.b)
        server.close()


@case("by socket: TCP_CONGESTION before connect() and on the listener")
def by_socket():
    for wire in wires(cc="cubic"):
        client, server = wire.connect(cc="dart", listener=wire.listen(cc="dart"))
        exchange(wire, client, server)
        shared(wire, client, server)


@case("by route: ip route ... congctl dart, both ends")
def by_route():
    for wire in wires(cc="cubic"):
        host = "10.0.0.{}/32" if wire.version == 4 else "fd00::{}/128"
        wire.a.ip(f"route replace {host.format(2)} dev tun0 congctl dart")
        wire.b.ip(f"route replace {host.format(1)} dev tun0 congctl dart")
        client, server = wire.connect()
        exchange(wire, client, server)
        shared(wire, client, server)


@case("both ends connect at once")
def simultaneous():
    for wire in wires(cc="dart"):
        ends = []
        for ns, port in ((wire.a, 2000), (wire.b, 3000)):
            s = wire.socket(ns, SO_REUSEADDR=1)
            s.bind((wire.address(ns), port))
            ends.append(s)
        for s, to in zip(ends, ((wire.b, 3000), (wire.a, 2000))):
            try:
                s.connect((wire.address(to[0]), to[1]))
            except BlockingIOError:
                pass
        wire.run(5e-3)
        equal([p.flags & (SYN | ACK) for p in wire.seen[:2]], [SYN, SYN], "two SYNs")
        wire.mark()
        exchange(wire, *ends)
        # Either both are dart's, or neither marks: never one alone.
        peers = {info(s)["peer"] for s in ends if cc_of(s) == "dart"}
        true(len(peers) <= 1, f"what they know of each other: {peers}")
        if YES not in peers:
            unmarked(data(wire.seen))


@case("MPTCP: as the base, with DSCP 0")
def multipath():
    for version in (4, 6):
        with Wire(cc="dart", version=version) as wire:
            with mptcp(wire) as (client, server):
                true(wire.transfer(client, server, 50_000), "arrives")
                equal({p.dscp for p in wire.seen if p.len}, {0}, "DSCP of data")


@case("dart-reno is not to be had by name")
def not_by_name():
    with Wire(cc="dart") as wire:
        s = wire.socket(wire.a)
        try:
            switch(s, "dart-reno")
        except FileNotFoundError:
            pass
        else:
            raise tap.Failed("dart-reno can be chosen")
        equal(cc_of(s), "dart", "congestion control")


# --- in mid-connection

@case("chosen in mid-connection by both ends: shares; without ECN: dart-reno")
def mid_life():
    for ecn, name in ((1, "dart"), (0, "dart-reno")):
        for wire in wires(ecn, cc="cubic"):
            client, server = wire.connect()
            exchange(wire, client, server, 20_000)
            for s in (client, server):
                switch(s, "dart")
                equal(cc_of(s), name, "congestion control")
            wire.mark()
            exchange(wire, client, server)
            if not ecn:
                unmarked(wire.seen)
                continue
            wire.mark()
            exchange(wire, client, server)
            shared(wire, client, server)


@case("chosen in mid-connection by one end: data flows, at dcqcn's rate")
def mid_life_alone():
    for who in (0, 1):
        for wire in wires(cc="cubic"):
            ends = wire.connect()
            exchange(wire, *ends, 20_000)
            switch(ends[who], "dart")
            exchange(wire, *ends)
            within(pacing(ends[who]), 0.995 * line(wire.version), 1.005 * line(wire.version),
                   "rate")
            equal((wire.a if who == 0 else wire.b).greenlane()["ShareReceived"], 0,
                  "shares that nobody can have told it")


@case("switched again and again, data both ways: every byte arrives, and dart is dart again")
def to_and_fro():
    for wire in wires(cc="dart"):
        client, server = wire.connect()
        for ccs in (("dcqcn", "dart"), ("cubic", "dcqcn"), ("dart", "cubic"), ("dart", "dart"),
                    ("cubic", "cubic"), ("dart", "dcqcn"), ("dcqcn", "dart"), ("dart", "dart")):
            for s in (client, server):          # in mid-message
                s.send(b"m" * 50_000)
            wire.run(150e-6)
            for s, cc in zip((client, server), ccs):
                switch(s, cc)
            got = {client: 0, server: 0}

            def step(got=got):
                for s in got:
                    try:
                        got[s] += len(s.recv(1 << 20))
                    except BlockingIOError:
                        pass
                return min(got.values()) == 50_000
            true(wire.run(2.0, step), f"{ccs}: all arrives: {list(got.values())}")
            true(wire.transfer_both(client, server, 30_000), f"{ccs}: and what follows")
        wire.run(3.0)           # who left in a message is not waited for any more
        wire.mark()
        exchange(wire, client, server)
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
        true(shares(wire.from_a()) and shares(wire.from_b()), "shares both ways")
        equal({p.dscp for p in data(wire.seen)} - set(DATA), set(), "other DSCPs of data")
        equal([info(s)["senders"] for s in (client, server)], [0, 0], "senders")


def two(wire):
    """Two long messages from two hosts; each has half."""
    flows = [connect(wire, number, 1000 + number) for number in (0, 1)]
    for tx, _ in flows:
        tx.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        option(tx, GREENLANE_MESSAGE, 1)
    feed(wire, flows, 1e-3)
    for tx, rx in flows:
        equal((info(tx)["divisor"], info(rx)["senders"]), (2 * ONE, 2), "divisor, senders")
    return flows


def feed(wire, flows, seconds, until=None):
    """All of them send on and on."""
    def step():
        for tx, _ in flows:
            try:
                tx.send(bytes(1 << 17))
            except BlockingIOError:
                pass
        read_all(rx for _, rx in flows)
        return bool(until and until())
    return wire.run(seconds, step)


def has(wire, s, divisor, what):
    """It sends at this part of the line."""
    within(pacing(s), 0.995 * line(wire.version, divisor), 1.005 * line(wire.version, divisor),
           f"rate: {what}")


@case("GREENLANE_TLT=0 at the sender: DSCP 0, dcqcn's rate whatever it is told; 1: a share")
def off_sender():
    for version in (4, 6):
        with dart(1, version=version) as wire:
            flows = two(wire)
            tx = flows[0][0]
            has(wire, tx, 2, "before")
            option(tx, GREENLANE_TLT, 0)
            has(wire, tx, 1, "at once")
            feed(wire, flows, 2 * RTT)
            wire.mark()
            feed(wire, flows, 1e-3)
            unmarked([p for p in of(wire.from_a(), tx) if p.len])
            has(wire, tx, 1, "later, its peer goes on telling shares")
            has(wire, flows[1][0], 2, "the other one's")
            option(tx, GREENLANE_TLT, 1)
            feed(wire, flows, 2 * RTT)
            wire.mark()
            feed(wire, flows, 1e-3)
            equal({p.dscp for p in of(wire.from_a(), tx) if p.len}, {MESSAGE}, "DSCP, on again")
            has(wire, tx, 2, "on again")


@case("the receiver stops telling shares (GREENLANE_TLT=0, another congestion control): dcqcn's"
      " rate")
def off_receiver():
    for version in (4, 6):
        for how in (lambda s: option(s, GREENLANE_TLT, 0), lambda s: switch(s, "dcqcn")):
            with dart(1, version=version) as wire:
                flows = two(wire)
                tx, rx = flows[0]
                how(rx)
                feed(wire, flows, 2 * RTT)
                wire.mark()
                feed(wire, flows, 0.1)
                equal(shares(of(wire.seen, tx)), [], "shares")
                has(wire, tx, 1, "a share that nobody stands by")
                has(wire, flows[1][0], 1, "the other one's, who is alone in the set")


@case("left in mid-message, both ends in turn: it goes on, unmarked, and counts no more")
def leave():
    for version in (4, 6):
        with dart(1, version=version) as wire:
            flows = two(wire)
            switch(flows[0][0], "cubic")
            feed(wire, flows, 2 * RTT)
            wire.mark()
            feed(wire, flows, 1e-3)
            unmarked([p for p in of(wire.from_a(), flows[0][0]) if p.len])
            true(data(of(wire.seen, flows[0][0])), "it goes on")
            switch(flows[0][1], "cubic")
            true(feed(wire, flows, 5e-3, lambda: info(flows[1][1])["senders"] == 1), "one is left")
            feed(wire, flows, 2 * RTT)
            has(wire, flows[1][0], 1, "all of the line")


@case("a share comes with each pure ACK, but where three SACK blocks leave no room")
def with_sacks():
    for version in (4, 6):
        with dart(1, version=version) as wire:
            flows = [connect(wire, number, 1000 + number) for number in (0, 1)]
            wire.rule = lambda p, tx=flows[0][0], w=wire: (
                p.from_a and p.len and len(data(of(w.from_a(), tx))) % 3 == 0)
            wire.mark()
            flows[0][0].send(bytes(60_000))
            wire.run(0.5e-3)
            wire.rule = None
            acks = [p for p in of(wire.from_b(), flows[0][0]) if not p.len and not p.flags & SYN]
            true(any(len(p.sacks) >= 3 for p in acks), "ACKs with three blocks")
            equal([p for p in acks if not p.words and len(p.sacks) < 3], [], "ACKs without a share")
            equal(wire.b.greenlane()["NoMemory"], 0, "NoMemory")


if __name__ == "__main__":
    tap.main()
