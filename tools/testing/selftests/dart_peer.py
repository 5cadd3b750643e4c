#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The other end: peers without dart, and every way to establish a connection or to change it.

	a (client) ---- wire (this program) ---- b (server)
"""
import contextlib
import errno
import socket

from lab import tap
from lab.codepoints import CONTROL, MESSAGE, MESSAGE_END, SHARE
from lab.net import modules
from lab.tap import case, equal, true, using, within
from lab.wire.dart import DATA, ONE, RATE, RTT, connect, dart, line, of, read_all, shares
from lab.wire.packet import SYN, data
from lab.wire.peer import (bleached, by_route, by_socket, exchange, fast_open, mptcp, sends_as,
                           simultaneous, syn_cookies, takes, unmarked, without_option,
                           without_sack)
from lab.wire.sockopt import (F_UNSUPPORTED, GREENLANE_MESSAGE, GREENLANE_TLT, NO, YES, cc_of,
                              choose, info, option, pacing, refused, tos)
from lab.wire.wire import Wire, connected

CE = 3


@contextlib.contextmanager
def marked(ecn=1, **options):
    """A wire at lab.wire.dart's rate, whose hosts request ECN."""
    modules.load("tcp_tlt", "tcp_dart")
    with Wire(**options) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.dcqcn_rate", RATE)
            ns.sysctl("net.ipv4.tcp_ecn", ecn)
        yield wire


def removed(wire):
    """Connect over a path that removes our option."""
    wire.rule = without_option
    return wire.connect()


everywhere = using(connected, of=marked, version=(4, 6), tso=(True, False))


def shared(wire, client, server):
    """DSCPs, messages and shares in both directions, and no counter shows an error."""
    for from_a in (True, False):
        sent = [p for p in data(wire.seen) if p.from_a == from_a and not p.flags & SYN]
        equal({p.kind for p in sent} - set(DATA), set(), f"other DSCPs of data, from a: {from_a}")
        equal(sent[-1].kind in (MESSAGE, 0), False, "the last packet lacks the codepoint of an end")
    true(shares(wire.from_a()) and shares(wire.from_b()), "both ends advertise shares")
    equal({divisor for _, divisor in shares(wire.seen)}, {ONE}, "divisors")
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
    equal([cc_of(s) for s in (client, server)], ["dart"] * 2, "congestion control of both ends")
    for ns in (wire.a, wire.b):
        counters = ns.greenlane()
        equal([counters[n] for n in ("PeerWithout", "Unsupported", "Invalid", "NoMemory")],
              [0] * 4, f"{ns.name}: PeerWithout, Unsupported, Invalid, NoMemory")
        equal(counters["MessageBegun"], counters["MessageEnded"], "messages begun and ended")
        true(counters["MessageBegun"], "messages begun")


def is_dcqcn(wire, s, ns):
    """The socket has fallen back to dcqcn under the name dart, which is counted."""
    equal((cc_of(s), info(s)["peer"]), ("dart", NO), "congestion control, and peer")
    counters = ns.greenlane()
    equal([counters[n] for n in ("PeerWithout", "ShareSent", "ShareReceived", "MessageBegun",
                                 "MessageSent", "ShortSent")], [1, 0, 0, 0, 0, 0],
          "PeerWithout, shares and messages")
    within(pacing(s), 0.995 * line(wire.version), 1.005 * line(wire.version),
           "pacing rate, bytes/s")


# --- peers without dart

def is_reno(wire, s):
    """Without ECN the socket has fallen back to reno, and data has no ECT."""
    equal(cc_of(s), "dart-reno", "congestion control")
    equal({p.ecn for p in data(wire.seen)}, {0}, "ECN of data")


@everywhere("a server without dart: the client falls back to dcqcn with DSCP 0, counted; to reno,"
            " if the server refuses ECN to a SYN with ECT(0)",
            cc="dart", cc_b=("dcqcn", "cubic", "reno"))
def server_without(wire, client, server):
    # As dctcp's, our SYN has ECT(0); TCP accepts ECN from it only if its own transport needs ECN.
    equal([p.kind for p in wire.seen[:3]], [SHARE, 0, 0], "handshake")
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    if wire.cc_b == "dcqcn":
        is_dcqcn(wire, client, wire.a)
    else:
        is_reno(wire, client)
    true(len(data(wire.from_a())) > 50, "data")


@everywhere("a client without dart: the server falls back to dcqcn with DSCP 0, counted",
            cc=("dcqcn", "cubic", "reno"), cc_b="dart", by=(Wire.connect, fast_open))
def client_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_dcqcn(wire, server, wire.b)


@contextlib.contextmanager
def beside(other, mine, **options):
    """A wire between dart at the end `mine` and another congestion control."""
    with marked(**{"cc": other, "cc_b": other, "cc" if mine == "a" else "cc_b": "dart"},
                **options) as wire:
        yield wire, other, mine


unlike = using(beside, mine=("a", "b"), version=(4, 6), tso=(True, False))


@unlike("a peer without ECN: dart-reno with DSCP 0", other=("cubic", "reno"))
def without_ecn(wire, _other, mine):
    (wire.b if mine == "a" else wire.a).sysctl("net.ipv4.tcp_ecn", 0)
    ends = dict(zip("ab", wire.connect()))
    wire.mark()
    exchange(wire, ends["a"], ends["b"])
    unmarked(wire.seen)
    is_reno(wire, ends[mine])


@case("dart-reno sends like reno, also after a loss", version=(4, 6))
def as_reno(version):
    sends_as("reno", "dart", version, ecn=False)


@case("to a peer without dart it sends like dcqcn, with the same timing, also with marks",
      version=(4, 6))
def as_dcqcn(version):
    runs = []
    for cc in ("dcqcn", "dart"):
        with Wire(cc=cc, cc_b="dcqcn", version=version) as wire:
            wire.a.sysctl("net.ipv4.dcqcn_rate", RATE)
            wire.align()
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
    true(runs[1] > 1.2 * 300_000 / line(version),
         "the marks lower the rate: more than 1.2 times the time at line rate")
    within(runs[3] / runs[1], 0.98, 1.02, "transfer time of dart, divided by that of dcqcn")


@unlike("the other end runs another transport of greenlane: both fall back, and data flows",
        other=("tlt_dctcp", "tlt_cubic", "xpass", "aeolus_xpass"))
def others(wire, other, mine):
    client, server = wire.connect()
    wire.mark()
    exchange(wire, client, server)
    unmarked(data(wire.seen))
    if mine == "b":
        is_dcqcn(wire, server, wire.b)
    elif other == "tlt_dctcp":
        is_dcqcn(wire, client, wire.a)
    else:
        is_reno(wire, client)


@everywhere("codepoints are bleached: both ends still advertise shares", cc="dart", by=bleached)
def always_bleached(wire, client, server):
    for s, ns in ((client, wire.a), (server, wire.b)):
        equal(cc_of(s), "dart", "congestion control")
        true(info(s)["divisor"] == ONE, "a share of line rate has been received")
        counters = ns.greenlane()
        true(counters["ShareReceived"] > 3, "ShareReceived: more than 3")
        equal([counters[n] for n in ("Invalid", "NoMemory")], [0, 0], "Invalid, NoMemory")


def spent(version, to):
    """Seconds of 100 kB in each direction, while the path sets each DSCP to `to`."""
    with marked(cc="dart", version=version) as wire:
        wire.align()
        if to is not None:
            wire.rule = lambda p: p.set_dscp(to)
        ends = wire.connect()
        seconds = takes(wire, *ends)
        equal([info(s)["peer"] for s in ends], [YES, YES], "peer, of both sockets")
        return seconds


@case("the path sets any DSCP: transfers take at most 1.05 times as long", version=(4, 6),
      to=(0, SHARE.dscp, MESSAGE.dscp, MESSAGE_END.dscp, 3, 46))
def remarked(version, to):
    within(spent(version, to), 0, 1.05 * spent(version, None), "transfer time, s")


@everywhere("the path removes the option: both fall back to dcqcn, and do not wait for shares",
            cc="dart", by=removed)
def without(wire, client, server):
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_dcqcn(wire, client, wire.a)
    is_dcqcn(wire, server, wire.b)


@everywhere("without SACK both fall back to dcqcn, counted", cc="dart", by=without_sack)
def no_sack(wire, client, server):
    for s, ns in ((client, wire.a), (server, wire.b)):
        equal((cc_of(s), info(s)["flags"]), ("dart", F_UNSUPPORTED), "congestion control and flags")
        equal(ns.greenlane()["Unsupported"], 1, "Unsupported")


@case("an application that sets our codepoints itself: the peer falls back", version=(4, 6),
      dscp=(SHARE.dscp, MESSAGE.dscp, MESSAGE_END.dscp, 3))
def pretender(version, dscp):
    with Wire(cc="reno", cc_b="dart", version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect(**tos(version, dscp))
        exchange(wire, client, server)
        equal({p.dscp for p in wire.from_a()}, {dscp}, "DSCP of the application")
        unmarked(wire.from_b())
        equal((cc_of(server), info(server)["peer"], info(server)["messages"]), ("dart", NO, 0),
              "congestion control, peer, messages")
        equal([wire.b.greenlane()[n] for n in ("PeerWithout", "MessageBegun", "Invalid")],
              [1, 0, 0], "PeerWithout, MessageBegun, Invalid")


# --- how a connection is established

@everywhere("selected by sysctl, socket or route: both ends advertise shares", cc="dart",
            by=(Wire.connect, by_socket, by_route))
def comes_to_be(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:3]], [(SHARE, SHARE)] * 2 + [(CONTROL, None)],
          "handshake")
    exchange(wire, client, server)
    shared(wire, client, server)


@everywhere("SYN cookies do not keep the SYN's option: both fall back to dcqcn", cc="dart",
            by=syn_cookies)
def cookies(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:3]], [(SHARE, SHARE), (0, None), (0, None)],
          "handshake")
    exchange(wire, client, server)
    unmarked(wire.seen[1:])
    is_dcqcn(wire, client, wire.a)
    is_dcqcn(wire, server, wire.b)


@case("a listener's default changes: its SYN-ACK announces the transport that the child runs",
      marked, version=(4, 6), cc="dart")
def default_changes(wire):
    for port, before, after in ((1001, "dcqcn", "dart"), (1002, "dart", "dcqcn")):
        wire.b.sysctl("net.ipv4.tcp_congestion_control", before)
        listener = wire.listen(port)
        wire.b.sysctl("net.ipv4.tcp_congestion_control", after)
        wire.mark()
        client, server = wire.connect(port, listener=listener)
        equal(wire.from_b()[0].says, SHARE if after == "dart" else None,
              "option of the SYN-ACK")
        exchange(wire, client, server)
        if after == "dart":
            shared(wire, client, server)
        else:
            equal((cc_of(server), info(client)["peer"]), ("dcqcn", NO),
                  "the server's congestion control, the client's peer")
            unmarked(wire.seen[1:])


@case("a listener's children have messages and shares of their own", marked, version=(4, 6),
      tso=(True, False), cc="dart")
def children(wire):
    listener = wire.listen()
    for client, server in [wire.connect(listener=listener) for _ in range(3)]:
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
        wire.mark()
        exchange(wire, client, server, 20_000)
        shared(wire, client, server)


@everywhere("SYN cookies, and a client without dart: the server falls back to dcqcn", cc="cubic",
            cc_b="dart", by=syn_cookies)
def cookies_without(wire, client, server):
    exchange(wire, client, server)
    unmarked(wire.seen)
    is_dcqcn(wire, server, wire.b)


@everywhere("TCP Fast Open: data in the SYN, then both ends advertise shares",
            cc="dart", by=fast_open)
def tfo(wire, client, server):
    equal([(p.kind, p.says) for p in wire.seen[:2]], [(SHARE, SHARE)] * 2, "SYN and SYN-ACK")
    wire.run(1e-3)
    equal(info(server)["senders"], 0, "senders while no packet is in flight")
    wire.mark()
    exchange(wire, client, server)
    shared(wire, client, server)


@everywhere("both ends connect at once: both mark packets, or neither does", cc="dart",
            by=simultaneous)
def at_once(wire, *ends):
    wire.mark()
    exchange(wire, *ends)
    # Either both run dart, or neither marks packets: never one alone.
    peers = {info(s)["peer"] for s in ends if cc_of(s) == "dart"}
    true(len(peers) <= 1, f"peer, of both sockets: {peers}")
    if YES not in peers:
        unmarked(data(wire.seen))


@case("MPTCP: the connection runs the base, with DSCP 0", connected, by=mptcp, version=(4, 6),
      cc="dart")
def multipath(wire, client, server):
    true(wire.transfer(client, server, 50_000), "arrives")
    equal({p.kind for p in wire.seen if p.len}, {0}, "DSCP of data")


@case("dart-reno cannot be selected by name", Wire, cc="dart")
def not_by_name(wire):
    s = wire.socket(wire.a)
    refused("dart-reno", errno.ENOENT, choose, s, "dart-reno")
    equal(cc_of(s), "dart", "congestion control")


# --- in mid-connection

@everywhere("selected in mid-connection by both ends: dcqcn, as the handshake had no option;"
            " without ECN: dart-reno", cc="cubic", ecn=(1, 0))
def mid_life(wire, client, server):
    ecn = wire.a.sysctl("net.ipv4.tcp_ecn") == "1"
    exchange(wire, client, server, 20_000)
    for s in (client, server):
        choose(s, "dart")
        equal(cc_of(s), "dart" if ecn else "dart-reno", "congestion control")
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    if ecn:
        is_dcqcn(wire, client, wire.a)
        is_dcqcn(wire, server, wire.b)


@unlike("selected in mid-connection by one end: data flows at dcqcn's rate", other="cubic")
def one_end(wire, _other, mine):
    wire.a.sysctl("net.ipv4.tcp_congestion_control", "cubic")
    wire.b.sysctl("net.ipv4.tcp_congestion_control", "cubic")
    ends = dict(zip("ab", wire.connect()))
    exchange(wire, *ends.values(), 20_000)
    choose(ends[mine], "dart")
    exchange(wire, *ends.values())
    within(pacing(ends[mine]), 0.995 * line(wire.version), 1.005 * line(wire.version),
           "pacing rate, bytes/s")
    equal((wire.a if mine == "a" else wire.b).greenlane()["ShareReceived"], 0, "shares received")


@everywhere("both ends switch repeatedly: every byte arrives, and in the end dart is like dcqcn",
            cc="dart")
def to_and_fro(wire, client, server):
    for ccs in (("dcqcn", "dart"), ("cubic", "dcqcn"), ("dart", "cubic"), ("dart", "dart"),
                ("cubic", "cubic"), ("dart", "dcqcn"), ("dcqcn", "dart"), ("dart", "dart")):
        for s in (client, server):          # in mid-message
            s.send(b"m" * 50_000)
        wire.run(150e-6)
        for s, cc in zip((client, server), ccs):
            choose(s, cc)
        for s in (client, server):
            equal(len(wire.receive(s, 50_000, 2.0)), 50_000, f"{ccs}: bytes that arrive")
        true(wire.transfer_both(client, server, 30_000), f"{ccs}: later data arrives")
    wire.run(3.0)           # senders that left within a message have expired
    wire.mark()
    exchange(wire, client, server)
    unmarked(wire.seen)
    for s in (client, server):
        equal((cc_of(s), info(s)["peer"], info(s)["senders"]), ("dart", NO, 0),
              "congestion control, peer, senders")
        within(pacing(s), 0.995 * line(wire.version), 1.005 * line(wire.version),
               "pacing rate, bytes/s")


def two(wire):
    """Two long messages from two hosts; each has half of the link."""
    flows = [connect(wire, number, 1000 + number) for number in (0, 1)]
    for tx, _ in flows:
        tx.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        option(tx, GREENLANE_MESSAGE, 1)
    feed(wire, flows, 1e-3)
    for tx, rx in flows:
        equal((info(tx)["divisor"], info(rx)["senders"]), (2 * ONE, 2), "divisor, senders")
    return flows


def feed(wire, flows, seconds, until=None):
    """All flows send continuously; data that arrives is read."""
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
    """Check that the pacing rate is line rate divided by divisor."""
    within(pacing(s), 0.995 * line(wire.version, divisor), 1.005 * line(wire.version, divisor),
           f"pacing rate, bytes/s: {what}")


@case("GREENLANE_TLT=0 at the sender: DSCP 0, dcqcn's rate, shares ignored; 1: its share again",
      dart,
      version=(4, 6), hosts=1)
def off_sender(wire):
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
    equal({p.kind for p in of(wire.from_a(), tx) if p.len}, {MESSAGE},
          "DSCPs after GREENLANE_TLT=1")
    has(wire, tx, 2, "on again")


@case("the receiver stops advertising shares (GREENLANE_TLT=0, another congestion control):"
      " dcqcn's rate", version=(4, 6))
def off_receiver(version):
    for how in (lambda s: option(s, GREENLANE_TLT, 0), lambda s: choose(s, "dcqcn")):
        with dart(1, version=version) as wire:
            flows = two(wire)
            tx, rx = flows[0]
            how(rx)
            feed(wire, flows, 2 * RTT)
            wire.mark()
            feed(wire, flows, 0.1)
            equal(shares(of(wire.seen, tx)), [], "shares")
            has(wire, tx, 1, "a share that has expired")
            has(wire, flows[1][0], 1, "the other one's, who is alone in the set")


@case("one end, then the other selects cubic in mid-message: data flows unmarked, and does not"
      " count", dart,
      version=(4, 6), hosts=1)
def leave(wire):
    flows = two(wire)
    choose(flows[0][0], "cubic")
    feed(wire, flows, 2 * RTT)
    wire.mark()
    feed(wire, flows, 1e-3)
    unmarked([p for p in of(wire.from_a(), flows[0][0]) if p.len])
    true(data(of(wire.seen, flows[0][0])), "data flows after the change")
    choose(flows[0][1], "cubic")
    true(feed(wire, flows, 5e-3, lambda: info(flows[1][1])["senders"] == 1),
         "one sender is left within 5 ms")
    feed(wire, flows, 2 * RTT)
    has(wire, flows[1][0], 1, "all of the line")


@case("each pure ACK has a share, except where two SACK blocks leave no room", dart,
      version=(4, 6), hosts=1)
def with_sacks(wire):
    flows = [connect(wire, number, 1000 + number) for number in (0, 1)]
    wire.rule = lambda p, tx=flows[0][0], w=wire: (
        p.from_a and p.len and len(data(of(w.from_a(), tx))) % 3 == 0)
    wire.mark()
    flows[0][0].send(bytes(60_000))
    wire.run(0.5e-3)
    wire.rule = None
    acks = [p for p in of(wire.from_b(), flows[0][0]) if not p.len and not p.flags & SYN]
    true(all(any(len(p.sacks) == n for p in acks) for n in (0, 1, 2, 3)),
         "ACKs with 0 … 3 SACK blocks")
    equal([p for p in acks if (p.says == SHARE and len(p.words) == 1) != (len(p.sacks) < 2)], [],
          "ACKs without a share, or too long")
    equal(wire.b.greenlane()["NoMemory"], 0, "NoMemory")


if __name__ == "__main__":
    tap.main()
