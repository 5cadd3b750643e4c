#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The DSCPs of short messages mark their first and last packets for switches (Dart §IV-A).

	a (client, sends) ---- wire (this program) ---- b (server)

iofd_*.py tests the switches.
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
    """Send a message; returns the DSCPs of its packets."""
    wire.mark()
    true(wire.transfer(client, server, count), f"{count} bytes arrive")
    wire.run(1e-3)
    return [p.kind for p in data(wire.from_a())]


@case("a short message has DSCPs of its first packet, the last, the others, and a single one", dart,
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
    equal(set(long[:-1]) | {MESSAGE}, {MESSAGE}, "8193 bytes: DSCPs before the last packet")
    equal(long[-1], MESSAGE_END, "8193 bytes: DSCP of the last packet")
    equal(wire.b.greenlane()["MessageBegun"], wire.b.greenlane()["MessageEnded"],
          "messages begun and ended")
    equal({p.kind for p in wire.from_b()}, {SHARE}, "DSCPs of ACKs")


@everywhere("dart_tokens is the number of tokens, dart_short the maximum length of a short message")
def settings(wire, client, server):
    for tokens in (1, 2, 3, 4):
        wire.a.sysctl("net.ipv4.dart_tokens", tokens)
        equal(sent(wire, client, server, 2000), [short(tokens, True), short(tokens, end=True)],
              f"{tokens} tokens")
    wire.a.sysctl("net.ipv4.dart_tokens", 0)
    equal(sent(wire, client, server, 1000), [MESSAGE_END], "dart_tokens = 0: not a short message")
    wire.a.sysctl("net.ipv4.dart_tokens", 2)
    wire.a.sysctl("net.ipv4.dart_short", 1000)
    equal(sent(wire, client, server, 1000), [short(2, True, True)], "1000 bytes, dart_short = 1000")
    equal(sent(wire, client, server, 1001), [MESSAGE_END], "1001 bytes, dart_short = 1000")
    for name, bad in (("tokens", 5), ("tokens", -1), ("short", 65536), ("lookahead", -1)):
        try:
            wire.a.sysctl(f"net.ipv4.dart_{name}", bad)
        except OSError as why:
            equal(why.errno, 22, f"error of dart_{name} = {bad}")
        else:
            true(False, f"dart_{name} = {bad} is accepted")


@everywhere("the receiver handles deflected packets like others")
def deflected(wire, client, server):

    def spend(p):
        """The DSCP after four switches have deflected the packet."""
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


@everywhere("a retransmission has no DSCP of a first packet: alone it must not be deflected")
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
        equal(copies[0], short(4, lost == 0, lost == 3), f"DSCP of packet {lost}")
        equal(set(copies[1:]), {short(4, False, lost == 3)},
              f"DSCPs of packet {lost}, retransmitted")


@everywhere("an application sets the end of a message: the codepoints follow it")
def explicit(wire, client, server):
    option(client, GREENLANE_MESSAGE, 1)
    equal(sent(wire, client, server, 2000), [short(4, True), short(4)], "DSCPs without an end")
    equal(info(server)["senders"], 1, "senders")
    option(client, GREENLANE_MESSAGE, 0)
    wire.run(1e-3)
    equal(info(server)["senders"], 0, "senders after the message has ended")


@everywhere("a write in two parts (MSG_MORE) is not short, because its end is not known")
def corked(wire, client, server):
    wire.mark()
    client.send(bytes(2 * MSS[wire.version]), socket.MSG_MORE)
    wire.run(RTT)
    client.send(bytes(100))
    wire.run(1e-3)
    seen = [p.kind for p in data(wire.from_a())]
    equal(set(seen[:-1]) <= {MESSAGE}, True, f"DSCPs {seen}: message before the last")
    equal(seen[-1] in (MESSAGE_END, short(4, True, True)), True,
          f"DSCPs {seen}: the last is an end")
    equal(len(server.recv(1 << 16)), 2 * MSS[wire.version] + 100, "bytes")
    equal(info(server)["senders"], 0, "senders")


if __name__ == "__main__":
    main()
