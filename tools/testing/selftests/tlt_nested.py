#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A transport around another one: TLT around dart (tlt_dart).

	a (client) ---- wire (this program) ---- b (server)

The receiver divides its line rate as with dart, and some of the packets that a share permits
are important, as with TLT over dcqcn.
"""
import errno
import socket

from lab import tap
from lab.codepoints import (CLOCK, CLOCK_ECHO, CONTROL, DATA, DSCP, IMPORTANT, IMPORTANT_END,
                            MESSAGE, MESSAGE_END, SHARE)
from lab.tap import case, equal, true, within
from lab.wire.dart import END, NAMES, connect, dart, divisors, host, line, name
from lab.wire.packet import SYN, data, kinds
from lab.wire.peer import exchange, unmarked
from lab.wire.sockopt import (GREENLANE_BDP, GREENLANE_COSENDERS, GREENLANE_MESSAGE, GREENLANE_TLT,
                              GREENLANE_WEIGHT, NO, YES, cc_of, choose, info, option, refused)
from lab.wire.wire import MSS, pattern


def nested(**options):
    """dart()'s wire, with tlt_dart."""
    wire = dart(**{"cc": "tlt_dart", **options})
    wire.mark()
    return wire


def ends_in_words(wire):
    """Packets of a that announce the end of a message by a word."""
    return [p for p in wire.from_a() if p.says == SHARE and p.words and p.words[0] & END]


def everywhere(description, **options):
    """A case with both IP versions."""
    return case(description, version=(4, 6), **options)


@everywhere("peers have a hello of their own; data has TLT's kinds, ACKs have dart's share")
def speaks(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        equal([p.raw[p.options_at[0] + 4] for p in wire.seen if p.flags & SYN],
              [10, 10], "codes of the handshake")
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
        wire.mark()
        client.send(pattern(100_000))
        wire.run(20e-3)
        equal(len(server.recv(1 << 20)), 100_000, "bytes")
        equal({p.kind for p in data(wire.from_a())} - {DATA, IMPORTANT, IMPORTANT_END, CLOCK}, set(),
              "other kinds of data")
        equal(data(wire.from_a())[-1].kind, IMPORTANT_END, "kind of the last packet")
        true(divisors(wire.from_b()), "b advertises shares")
        equal(set(kinds(wire.from_b())) - {SHARE, CONTROL, CLOCK_ECHO}, set(),
              "other kinds of ACKs")
        both = info(client)
        true(both["important_sent"] > 0 and both["divisor"] > 0,
             f"important packets, and a share: {both}")


@everywhere("a message that ends with an important packet ends at the receiver, too")
def ends(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        for count in (100, 20_000):
            client.send(pattern(count))
            wire.run(20e-3)
            equal(len(server.recv(1 << 20)), count, "bytes")
            equal(info(server)["senders"], 0, "senders after all data has arrived")
        equal(info(server)["messages"], 2, "messages")
        equal(kinds(data(wire.from_a())).count(IMPORTANT_END), 2, "packets that end a message")
        equal(ends_in_words(wire), [], "ends announced by a word")
        counters = wire.a.greenlane()
        equal(counters["DataSent"] + counters["ImportantSent"], len(data(wire.from_a())),
              "packets that TLT has counted")


def lose_nth(wire, *numbers):
    """Lose these packets of data, counted from 1."""
    count = 0

    def rule(p):
        nonlocal count
        count += p.from_a and p.len > 0 and p.kind != CLOCK
        return p.from_a and p.len and p.kind != CLOCK and count in numbers
    wire.rule = rule


@everywhere("an end is retransmitted with its data, also after earlier retransmissions",
            lost=((13,), (14,), (13, 14)))
def lost_ends(version, lost):
    with nested(version=version) as wire:
        wire.delay = 10e-6
        client, server = wire.connect()
        lose_nth(wire, *lost)
        client.send(pattern(14 * MSS[version]))
        wire.run(0.5)
        equal(len(server.recv(1 << 20)), 14 * MSS[version], "bytes")
        equal(info(server)["senders"], 0, "senders")


@everywhere("the second of two messages is lost: it ends with any tlt_clock", clock=(0, 1, 2))
def clock_repairs(version, clock):
    with nested(version=version) as wire:
        wire.a.sysctl("net.ipv4.tlt_clock", clock)
        client, server = wire.connect(TCP_NODELAY=1)
        lose_nth(wire, 2)
        for _ in range(2):
            client.send(bytes(1000))
        wire.run(20e-3)
        equal(len(server.recv(1 << 20)), 2000, "bytes")
        equal(info(server)["senders"], 0, "senders")
        equal(wire.a.netstat("TCPLossProbes"), 0, "TCPLossProbes")


@everywhere("the last packet has a FIN: it ends the message, and is important",
            cc=("tlt_dart", "dart", "tlt_dcqcn"))
def fin(version, cc):
    with nested(version=version, cc=cc, rto_min=4) as wire:
        client, server = wire.connect()
        if cc != "dart":
            lose_nth(wire, 7, 8)
        client.send(pattern(9 * MSS[version]))
        client.shutdown(socket.SHUT_WR)
        wire.run(0.1)
        equal(len(server.recv(1 << 20)), 9 * MSS[version], "bytes")
        if cc != "tlt_dcqcn":
            equal(info(server)["senders"], 0, "senders")
        if cc != "dart":
            equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  "TCPTimeouts, TCPLossProbes")


@everywhere("the tail of the receiver's window is lost: no timer expires",
            cc=("tlt_dart", "tlt_dcqcn"))
def window(version, cc):
    with nested(version=version, cc=cc, rmem="4096 65536 65536", rto_min=4) as wire:
        client, server = wire.connect()
        wire.mark()
        seen = set()

        def rule(p):
            new = p.from_a and p.len and p.seq not in seen
            seen.add(p.seq)
            at = p.seq - min(q.seq for q in data(wire.from_a()) or [p])
            return new and 15_000 <= at < 70_000 and p.kind in (DATA, MESSAGE_END)
        wire.rule = rule
        client.send(pattern(200_000))
        equal(len(wire.receive(server, 200_000)), 200_000, "bytes")
        true([p for p in wire.seen if p.dropped], "losses")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "TCPTimeouts, TCPLossProbes")


@everywhere("one-MSS messages in flight: one is important, the others have the codepoint of an end")
def stream(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        for _ in range(10):
            client.send(bytes(MSS[version]))
        wire.run(50e-6)
        sent = kinds(data(wire.from_a()))
        equal(sent.count(IMPORTANT) + sent.count(IMPORTANT_END), 1, f"important packets of {[str(kind) for kind in sent]}")
        equal(set(sent) - {IMPORTANT, IMPORTANT_END, MESSAGE_END, DATA}, set(), "other kinds")
        true(MESSAGE_END in sent, "a packet that ends a message")
        equal(sent[-1], MESSAGE_END, "kind of the last packet")
        wire.run(20e-3)
        equal(ends_in_words(wire), [], "ends announced by a word, too")
        equal(len(server.recv(1 << 20)), 10 * MSS[version], "bytes")


@everywhere("two senders: each has half of the link")
def shares(version):
    count = 200_000
    with nested(version=version, hosts=1) as wire:
        pairs = [connect(wire, number) for number in (0, 1)]
        wire.mark()
        for client, _ in pairs:
            client.send(pattern(count))
        wire.run(8e-3)
        equal([len(server.recv(1 << 20)) for _, server in pairs], [count] * 2, "bytes")
        ideal = count / line(version, 2)
        within(max(p.time for p in data(wire.from_a())) - wire.seen[0].time, 0.8 * ideal,
               1.3 * ideal, "transfer time, s")


@everywhere("the tail and the packets before it are lost: no RTO")
def tail(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        lost = []
        wire.rule = lambda p: p.from_a and p.kind in (DATA, MESSAGE_END) and len(lost) < 20 and \
            not lost.append(p)
        client.send(pattern(30_000))
        wire.run(20e-3)
        equal(len(lost), 20, "packets lost")
        equal(len(server.recv(1 << 20)), 30_000, "bytes")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "TCPTimeouts, TCPLossProbes")


@everywhere("an ACK has one option: a clock is answered, even if a share should be advertised")
def clocked(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        mss = MSS[version]
        wire.rule = lambda p: p.from_a and p.kind == DATA
        # Only the first packet is important, and no other follows.
        client.send(bytes(mss))
        client.send(bytes(4 * mss), socket.MSG_MORE)
        wire.run(1e-3)
        wire.rule = None
        wire.run(20e-3)
        equal(len(server.recv(1 << 20)), 5 * mss, "bytes")
        clocks = [p for p in wire.from_a() if p.kind == CLOCK]
        true(clocks, "clocks")
        equal(len([p for p in wire.from_b() if p.kind == CLOCK_ECHO]), len(clocks), "answers")
        equal(wire.a.greenlane()["ClockEchoReceived"], len(clocks), "ClockEchoReceived")
        equal({len(p.options_at) for p in wire.from_b() if not p.flags & SYN}, {1},
              "options in an ACK")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "TCPTimeouts, TCPLossProbes")


@everywhere("dart's socket options work; GREENLANE_TLT disables and enables it")
def options(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        option(client, GREENLANE_MESSAGE, 1)
        equal(option(client, GREENLANE_MESSAGE), 1, "GREENLANE_MESSAGE")
        option(client, GREENLANE_MESSAGE, 0)
        option(server, GREENLANE_WEIGHT, 3)
        equal(option(server, GREENLANE_WEIGHT), 3, "GREENLANE_WEIGHT")
        refused("another's", errno.EOPNOTSUPP, option, client, GREENLANE_BDP, 1)
        wire.run(1e-3)                      # for the end of that message
        option(client, GREENLANE_TLT, 0)
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.from_a())
        option(client, GREENLANE_TLT, 1)
        exchange(wire, client, server)
        choose(client, "reno")
        exchange(wire, client, server)


@everywhere("GREENLANE_TLT=0 within a message: the receiver's set of senders becomes empty")
def off(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        client.send(pattern(100_000))
        wire.run(0.2e-3)
        equal(info(server)["senders"], 1, "senders")
        option(server, GREENLANE_TLT, 0)
        equal(info(server)["senders"], 0, "senders after GREENLANE_TLT=0")
        wire.run(50e-3)
        equal(len(server.recv(1 << 20)), 100_000, "bytes")


@everywhere("co-senders are named before the message, which ends as usual")
def lookahead(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        name(client, [host(version, number) for number in range(10)], co=True)
        equal(option(client, GREENLANE_COSENDERS), 10, "named co-senders")
        wire.mark()
        client.send(pattern(3_000))
        wire.run(20e-3)
        equal(len([p for p in wire.from_a() if p.words and p.words[0] & NAMES]), 4, "names")
        equal(len(server.recv(1 << 20)), 3_000, "bytes")
        equal(info(server)["senders"], 0, "senders")


@everywhere("an end that runs only TLT or only dart: both fall back", cc_b=("dart", "tlt_dcqcn"))
def strangers(version, cc_b):
    with nested(version=version, cc_b=cc_b) as wire:
        client, server = wire.connect()
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)
        equal([info(s)["peer"] for s in (client, server)], [NO, NO], "peer, of both sockets")


@everywhere("a client with another transport and without ECN: the server runs tlt_reno, unmarked")
def without_ecn(version):
    with nested(version=version, cc="tlt_cubic", cc_b="tlt_dart") as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 0)
        client, server = wire.connect()
        equal(cc_of(server), "tlt_reno", "congestion control")
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)


@case("no packet may be deflected: a clock could overtake it")
def no_short():
    with nested() as wire:
        client, server = wire.connect()
        wire.mark()
        client.send(b"x" * 3000)
        wire.run(5e-3)
        equal({p.dscp for p in data(wire.from_a())} - {DSCP["droppable"], DSCP["protected"],
                                                      DSCP["protected_end"]}, set(), "DSCPs of data")
        equal({p.kind for p in wire.seen} & {MESSAGE}, set(),
              "packets with dart's codepoint of data")
        equal(len(server.recv(1 << 20)), 3000, "bytes")


if __name__ == "__main__":
    tap.main()
