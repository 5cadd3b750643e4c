#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Short messages tell switches where they begin and end (Dart §IV-A).

	a (client, sends) ---- wire (this program) ---- b (server)

What a switch makes of it is the business of iofd_*.py.
"""
import socket

from lab.codepoints import MESSAGE, MESSAGE_END, SHARE, SPENT, SPENT_END
from lab.tap import case, equal, main, true, using
from lab.wire.dart import RTT, SHORT, dart
from lab.wire.packet import data
from lab.wire.sockopt import GREENLANE_MESSAGE, info, option
from lab.wire.wire import MSS, connected



def short(tokens, start=False, end=False):
    """The DSCP (include/net/gl_deflect.h)."""
    return end << 5 | start << 4 | (tokens - 1) << 2 | 3


everywhere = using(connected, of=dart, version=(4, 6))


def sent(wire, client, server, count):
    """The DSCPs of a message's packets."""
    wire.mark()
    true(wire.transfer(client, server, count), f"{count} bytes arrive")
    wire.run(1e-3)
    return [p.kind for p in data(wire.from_a())]


@case("a short message: its first packet, those between, its last; each one alone", dart,
      version=(4, 6))
def marks(wire):
    mss = MSS[wire.version]
    client, server = wire.connect()
    for count in (1, 2, mss - 1, mss):
        equal(sent(wire, client, server, count), [short(4, True, True)], f"{count} bytes")
    for count in (mss + 1, 2 * mss):
        equal(sent(wire, client, server, count), [short(4, True), short(4, end=True)],
              f"{count} bytes")
    packets = -(-8192 // mss)
    equal(sent(wire, client, server, 8192),
          [short(4, True)] + [short(4)] * (packets - 2) + [short(4, end=True)], "8192 bytes")
    long = sent(wire, client, server, 8193)
    equal(set(long[:-1]) | {MESSAGE}, {MESSAGE}, "8193 bytes: those before the last")
    equal(long[-1], MESSAGE_END, "the last")
    equal(wire.b.greenlane()["MessageBegun"], wire.b.greenlane()["MessageEnded"],
          "messages begun and ended")
    equal({p.kind for p in wire.from_b()}, {SHARE}, "ACKs")


@everywhere("dart_tokens and dart_short: how often, and how long")
def settings(wire, client, server):
    for tokens in (1, 2, 3, 4):
        wire.a.sysctl("net.ipv4.dart_tokens", tokens)
        equal(sent(wire, client, server, 2000), [short(tokens, True), short(tokens, end=True)],
              f"{tokens} tokens")
    wire.a.sysctl("net.ipv4.dart_tokens", 0)
    equal(sent(wire, client, server, 1000), [MESSAGE_END], "no tokens: not short")
    wire.a.sysctl("net.ipv4.dart_tokens", 2)
    wire.a.sysctl("net.ipv4.dart_short", 1000)
    equal(sent(wire, client, server, 1000), [short(2, True, True)], "1000 bytes of 1000")
    equal(sent(wire, client, server, 1001), [MESSAGE_END], "1001 bytes of 1000")
    for name, bad in (("tokens", 5), ("tokens", -1), ("short", 65536), ("lookahead", -1)):
        try:
            wire.a.sysctl(f"net.ipv4.dart_{name}", bad)
        except OSError as why:
            equal(why.errno, 22, f"dart_{name} = {bad}")
        else:
            true(False, f"dart_{name} = {bad} accepted")


@everywhere("packets that were deflected mean the same to the receiver")
def deflected(wire, client, server):

    def spend(p):
        """Four switches on the way."""
        if p.from_a and p.kind in SHORT:
            p.set_dscp(SPENT_END if p.kind & 0x20 else SPENT)
        return False
    wire.rule = spend
    for number in range(1, 4):
        true(wire.transfer(client, server, 5000), "arrives")
        wire.run(1e-3)
        counters = wire.b.greenlane()
        equal([counters["MessageBegun"], counters["MessageEnded"]], [number] * 2,
              "messages begun and ended")
        equal(info(server)["senders"], 0, "senders")


@everywhere("what is sent again begins nothing: it is too late to be deflected alone")
def again(wire, client, server):
    for lost in range(4):
        count = 0

        def rule(p):
            nonlocal count
            if p.from_a and p.len:
                count += 1
                return count == lost + 1
            return False
        wire.rule = rule
        wire.mark()
        true(wire.transfer(client, server, 3 * MSS[wire.version] + 10, 2.0), "arrives")
        wire.run(1e-3)
        packets = data(wire.from_a())
        copies = [p.kind for p in packets if p.seq == packets[lost].seq]
        equal(copies[0], short(4, lost == 0, lost == 3), f"packet {lost}")
        equal(set(copies[1:]), {short(4, False, lost == 3)}, f"packet {lost}, again")


@everywhere("an application that says where a message ends: the codepoints say the same")
def explicit(wire, client, server):
    option(client, GREENLANE_MESSAGE, 1)
    equal(sent(wire, client, server, 2000), [short(4, True), short(4)], "no end")
    equal(info(server)["senders"], 1, "senders")
    option(client, GREENLANE_MESSAGE, 0)
    wire.run(1e-3)
    equal(info(server)["senders"], 0, "senders when it has ended")


@everywhere("a write in two parts (MSG_MORE): where it ends is not known, so it is not short")
def corked(wire, client, server):
    wire.mark()
    client.send(bytes(2 * MSS[wire.version]), socket.MSG_MORE)
    wire.run(RTT)
    client.send(bytes(100))
    wire.run(1e-3)
    seen = [p.kind for p in data(wire.from_a())]
    equal(set(seen[:-1]) <= {MESSAGE}, True, f"{seen}: those before the last")
    equal(seen[-1] in (MESSAGE_END, short(4, True, True)), True, f"{seen}: the last")
    equal(len(server.recv(1 << 16)), 2 * MSS[wire.version] + 100, "bytes")
    equal(info(server)["senders"], 0, "senders")


if __name__ == "__main__":
    main()
