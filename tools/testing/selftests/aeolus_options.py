#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Aeolus: sysctls and socket options of operators and applications.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)

The wire's round trip is 200 us.
"""
import errno
import statistics

from lab.codepoints import CREDIT, UNSCHEDULED, SCHEDULED
from lab.tap import case, equal, main, true, within
from lab.wire.aeolus import RTT, aeolus
from lab.wire.packet import ECE, SYN, data, kinds
from lab.wire.sockopt import F_OFF, GREENLANE_AEOLUS, GREENLANE_BDP, info, option, refused
from lab.wire.wire import MSS, connected, pattern

ECT0, CE = 2, 3


def burst(wire, client, server):
    """Number of packets of a long message that leave while no credit arrives.  Before that the
    receiver opens its window: a SYN-ACK's 64 kB would limit the first RTT.
    """
    option(client, GREENLANE_AEOLUS, 0)
    true(wire.transfer(client, server, 200_000), "arrives")
    option(client, GREENLANE_AEOLUS, 1)
    wire.run(1.0)
    wire.rule = lambda p: not p.from_a and p.kind == CREDIT
    wire.mark()
    client.send(pattern(1_000_000))
    wire.run(2 * RTT)
    sent = data(wire.from_a())
    true(set(kinds(sent)) <= {UNSCHEDULED}, "all packets are unscheduled")
    return sum(-(-p.len // MSS[wire.version]) for p in sent)


@case("the burst is a BDP: line rate times the minimum RTT", version=(4, 6))
def by_line(version):
    for rate, bytes_ in ((1000, 25_000), (4000, 100_000)):
        with aeolus(version=version) as wire:
            wire.a.sysctl("net.ipv4.xpass_rate", rate)
            client, server = wire.connect()
            packets = bytes_ // MSS[version]
            within(burst(wire, client, server), packets, 1.3 * packets, f"packets, {rate} Mbit/s")


@case("without a round-trip sample, as the SYN was lost, the burst is TCP's initial window", aeolus,
      version=(4, 6))
def no_sample(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_timestamps", 0)
    lost = []
    wire.rule = lambda p: p.flags & SYN and not lost and not lost.append(p)
    listener, client = wire.listen(), wire.socket(wire.a)
    wire.begin(client, wire.b)
    wire.run(1.5)
    wire.accept(listener)
    equal(len(lost), 1, "lost SYNs")
    wire.rule = lambda p: not p.from_a and p.kind == CREDIT
    wire.mark()
    client.send(pattern(60_000))
    wire.run(0.9 * RTT)
    equal((len(data(wire.from_a())), set(kinds(data(wire.from_a())))), (10, {UNSCHEDULED}),
          "packets and kinds of the burst, until its first ACK arrives")


TO = {4: "10.0.0.2/32", 6: "fd00::2/128"}      # b, as a's route has it


@case("the route's initcwnd sets the length of the burst", aeolus, version=(4, 6))
def by_route(wire):
    wire.a.ip(f"route change {TO[wire.version]} dev tun0 rto_min 200ms initcwnd 7")
    client, server = wire.connect()
    equal(burst(wire, client, server), 7, "packets")


@case("GREENLANE_BDP sets the length of the burst and overrides the route; 0 removes it",
      version=(4, 6))
def by_socket(version):
    for value, packets in ((30_000, 30_000 // MSS[version]), (1, 1), (0, 7)):
        with aeolus(version=version) as wire:
            wire.a.ip(f"route change {TO[version]} dev tun0 rto_min 200ms initcwnd 7")
            client, server = wire.connect()
            option(client, GREENLANE_BDP, 50_000)
            equal(option(client, GREENLANE_BDP), 50_000, "GREENLANE_BDP")
            option(client, GREENLANE_BDP, value)
            equal(option(client, GREENLANE_BDP), value, "GREENLANE_BDP")
            equal(burst(wire, client, server), packets, f"packets, {value} bytes")
            equal(info(client)["unscheduled"], packets, "unscheduled, in GREENLANE_INFO")


@case("GREENLANE_AEOLUS 0: the first RTT is like xpass's; 1: the next one is a burst again",
      connected,
      version=(4, 6), of=aeolus, rto_min=10)
def off(wire, client, server):
    equal(option(client, GREENLANE_AEOLUS), 1, "GREENLANE_AEOLUS by default")
    option(client, GREENLANE_AEOLUS, 0)
    equal(option(client, GREENLANE_AEOLUS), 0, "GREENLANE_AEOLUS after it is set")
    true(info(client)["flags"] & F_OFF, "GREENLANE_INFO has the flag F_OFF")
    wire.mark()
    true(wire.transfer(client, server, 50_000), "arrives")
    equal(set(kinds(data(wire.from_a()))), {SCHEDULED}, "kinds of the data")
    option(client, GREENLANE_AEOLUS, 1)
    wire.run(0.5)
    wire.mark()
    true(wire.transfer(client, server, 50_000), "arrives")
    equal(data(wire.from_a())[0].kind, UNSCHEDULED, "kind of the first packet after a pause")


@case("net.ipv4.aeolus_idle: a burst after a pause of that many ms, not of an RTO", aeolus,
      version=(4, 6))
def idle(wire):
    wire.a.sysctl("net.ipv4.aeolus_idle", 10)
    client, server = wire.connect()
    for pause, kind in ((0, UNSCHEDULED), (5e-3, SCHEDULED), (15e-3, UNSCHEDULED), (5e-3, SCHEDULED)):
        wire.run(pause)
        wire.mark()
        true(wire.transfer(client, server, 5_000), "arrives")
        wire.run(1e-3)
        equal(data(wire.from_a())[0].kind, kind, f"kind of the first packet after {pause} s")


@case("net.ipv4.greenlane_ecn: unscheduled packets are Non-ECT, all others ECT(0), also SYNs",
      aeolus,
      version=(4, 6))
def by_ecn(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_ecn", 1)
    client, server = wire.connect()
    true(wire.transfer(client, server, 400_000), "arrives")
    true({UNSCHEDULED, SCHEDULED, CREDIT} <= set(kinds(wire.seen)), "kinds seen")
    for p in wire.seen:
        equal(p.ecn, 0 if p.kind == UNSCHEDULED else ECT0, f"ECN field of {p!r}")


@case("net.ipv4.greenlane_ecn overrides TCP's bits on a connection that has negotiated ECN",
      aeolus, version=(4, 6))
def by_ecn_negotiated(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    client, server = wire.connect()
    wire.mark()
    true(wire.transfer(client, server, 400_000), "arrives")
    true(ECT0 in {p.ecn for p in data(wire.from_a())}, "TCP sends ECT(0) before")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_ecn", 1)
    wire.run(1.0)
    wire.mark()
    true(wire.transfer(client, server, 400_000), "arrives")
    true({UNSCHEDULED, SCHEDULED, CREDIT} <= set(kinds(wire.seen)), "kinds seen")
    for p in wire.seen:
        equal(p.ecn, 0 if p.kind == UNSCHEDULED else ECT0, f"ECN field of {p!r}")


@case("without greenlane_ecn the ECN field is TCP's", connected, version=(4, 6), of=aeolus)
def without_ecn(wire, client, server):
    true(wire.transfer(client, server, 400_000), "arrives")
    equal({p.ecn for p in wire.seen}, {0}, "ECN fields")


def marked_once(version, mark):
    """Transfer time of 5 MB, with CE marks of a congested switch or without, s."""
    def rule(p):
        if mark and p.ecn:
            p.set_dsfield(p.dsfield | CE)
    with aeolus(version=version) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.greenlane_ecn", 1)
        client, server = wire.connect()
        wire.mark()
        wire.rule = rule
        true(wire.transfer(client, server, 5_000_000), "arrives")
        true(not any(p.flags & ECE for p in wire.seen), "no packet has ECE")
        return wire.seen[-1].time - wire.seen[0].time


@case("a switch marks all scheduled data: the sender is as fast, the receiver sends no ECE",
      version=(4, 6))
def marked(version):
    # The jitter of the credits is some 12 %.
    without, marks = (statistics.median(marked_once(version, mark) for _ in range(3))
                      for mark in (False, True))
    within(marks / without, 0.8, 1.25, "transfer time, divided by that without marks")


@case("GREENLANE_INFO counts credits at both ends", connected, version=(4, 6), of=aeolus)
def told(wire, client, server):
    true(wire.transfer(client, server, 400_000), "arrives")
    wire.run(2e-3)
    ours, theirs = info(client), info(server)
    came = wire.a.greenlane()["CreditReceived"]
    equal((ours["credits_received"], theirs["credits_sent"]), (came, came),
          "credits received by the client, credits sent by the server")
    equal((ours["credits_sent"], theirs["credits_received"]), (0, 0),
          "credits sent by the client, credits received by the server")
    equal(ours["unscheduled"], sum(p.kind == UNSCHEDULED for p in data(wire.from_a())),
          "unscheduled packets")
    equal((theirs["credit_rate"], ours["credits_wanted"]), (0, 0),
          "credit_rate and credits_wanted after the transfer")
    equal((ours["peer"], theirs["peer"]), (1, 1), "peer of both sockets")
    client.send(pattern(4_000_000))
    wire.run(5 * RTT)
    true(info(server)["credit_rate"] > 10_000, "more than 10,000 credits a second in a transfer")
    true(info(client)["credits_wanted"] > 100, "more than 100 packets that wait")


@case("options are refused with invalid values, and on sockets without Aeolus", connected,
      version=(4, 6), of=aeolus)
def bad(wire, client, _server):
    for name, value in ((GREENLANE_AEOLUS, 2), (GREENLANE_AEOLUS, -1),
                        (GREENLANE_BDP, -1)):
        refused(f"{name:#x} {value}", errno.EINVAL, option, client, name, value)
    for s, error in ((wire.socket(wire.a), errno.ENOTCONN),
                     (wire.socket(wire.a, "cubic"), errno.ENOPROTOOPT)):
        for name in (GREENLANE_AEOLUS, GREENLANE_BDP):
            refused(f"{name:#x}", error, option, s, name)
            refused(f"{name:#x} 1", error, option, s, name, 1)


@case("options of Aeolus are refused on other transports", connected, version=(4, 6),
      cc=("xpass", "tlt_reno"))
def without(wire, client, _server):
    for name in (GREENLANE_AEOLUS, GREENLANE_BDP):
        refused(f"{name:#x} of {wire.cc}", errno.EOPNOTSUPP, option, client, name)
        refused(f"{name:#x} 1 of {wire.cc}", errno.EOPNOTSUPP, option, client, name, 1)


main()
