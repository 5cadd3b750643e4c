#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""aeolus_reno, aeolus_cubic, aeolus_dctcp: TLT with a first round trip at line rate.

	a (client, sends) ---- wire (this program) ---- b (server)

The wire's round trip is 200 us, and the link has 10 Gbit/s: a bandwidth-delay product is 250 kB.
"""
import contextlib
import socket

from lab.codepoints import CLOCK, DATA, IMPORTANT, UNSCHEDULED
from lab.net import modules
from lab.tap import case, equal, main, true, using, within
from lab.wire.aeolus import RTT, aeolus
from lab.wire.packet import data, kinds
from lab.wire.sockopt import (F_OFF, GREENLANE_AEOLUS, GREENLANE_BDP, GREENLANE_TLT,
                              TCP_CONGESTION, cwnd, info, option, ssthresh)
from lab.wire.wire import MSS, connected, pattern

CCS = ("aeolus_reno", "aeolus_cubic", "aeolus_dctcp")
WINDOW = 10             # packets of TCP's first window
INFINITE = 0x7fffffff   # ssthresh in slow start


def no_timer(wire):
    for name in ("TCPTimeouts", "TCPLossProbes"):
        equal(wire.a.netstat(name), 0, name)


def burst(wire, client, packets):
    """Send a message of N packets; returns the packets that leave before the first ACK arrives."""
    wire.mark()
    client.send(pattern(packets * MSS[wire.version]))
    wire.run(0.9 * RTT)
    return data(wire.from_a())


everywhere = using(connected, of=aeolus, version=(4, 6), cc=CCS)
one = using(connected, of=aeolus, version=(4, 6), cc="aeolus_dctcp")


@everywhere("what is beyond TCP's window leaves at once, unscheduled, and the last packet is important")
def first(wire, client, server):
    sent = burst(wire, client, 40)
    # TCP sends the write in two parts, of which each has its last packet.
    equal(kinds(sent[:WINDOW]), [DATA] * WINDOW, "kinds of TCP's window")
    equal({kinds(sent).count(IMPORTANT)} - {1, 2}, set(), "important packets")
    equal({p.kind for p in sent[WINDOW:]} - {IMPORTANT}, {UNSCHEDULED}, "kinds of the others")
    equal(sent[-1].kind, IMPORTANT, "kind of the last packet")
    unscheduled = kinds(sent).count(UNSCHEDULED)
    equal(len(wire.receive(server, 40 * MSS[wire.version])), 40 * MSS[wire.version], "bytes")
    equal([info(client)["unscheduled"], wire.a.greenlane()["BurstSent"]], [unscheduled] * 2,
          "unscheduled of GREENLANE_INFO, BurstSent")
    wire.run(RTT)
    within(cwnd(client), 40, 80, "the window: all that has arrived, and slow start")
    no_timer(wire)


@everywhere("a message within TCP's window is TLT's")
def short(wire, client, server):
    equal(kinds(burst(wire, client, WINDOW)), [DATA] * (WINDOW - 1) + [IMPORTANT], "kinds")
    wire.run(2 * RTT)
    true(cwnd(client) >= WINDOW, "the window is not reduced")
    # The next message continues with what TCP's window has become.
    sent = burst(wire, client, 60)
    equal(len(sent), 60, "packets of the next message")
    true(kinds(sent).index(UNSCHEDULED) >= WINDOW, "packets within the window precede the others")


@case("the burst is a bandwidth-delay product: of the link, of tlt_rate, of GREENLANE_BDP",
      version=(4, 6), how=("link", "sysctl", "option"))
def limit(version, how):
    with aeolus(version=version, cc="aeolus_dctcp", **({"speed": 1000} if how == "link" else {})) \
            as wire:
        if how == "sysctl":
            wire.a.sysctl("net.ipv4.tlt_rate", 1000)
        client, server = wire.connect()
        if how == "option":
            option(client, GREENLANE_BDP, 25_000)
            equal(option(client, GREENLANE_BDP), 25_000, "GREENLANE_BDP")
        sent = burst(wire, client, 30)
        within(len(sent), 25_000 // MSS[version], 27_000 // MSS[version], "packets of the burst")
        equal(sent[-1].kind, IMPORTANT, "kind of the last one")
        within(info(client)["bdp"], 25_000, 27_000, "bdp of GREENLANE_INFO")
        equal(len(wire.receive(server, 30 * MSS[version])), 30 * MSS[version], "bytes")
        equal(ssthresh(client), INFINITE, "slow start continues")


@case("lost unscheduled packets are found by one echo, and retransmitted once", version=(4, 6),
      cc=CCS, lost=("first", "last", "half", "all"))
def losses(version, cc, lost):
    chosen = {"first": {10}, "last": {38}, "half": set(range(10, 31, 2)), "all": set(range(10, 31)) | set(range(32, 39))}
    size, gone = 40 * MSS[version], []

    def rule(p):
        if p.from_a and p.len and len(data(wire.from_a())) - 1 in chosen[lost]:
            gone.append(p)
        return p in gone
    with aeolus(version=version, cc=cc) as wire:
        client, server = wire.connect()
        wire.rule = rule
        sent = burst(wire, client, 40)
        wire.rule = None
        equal({p.kind for p in gone}, {UNSCHEDULED}, "kinds of the lost packets")
        equal(wire.receive(server, size), pattern(size), "bytes")
        wire.run(3 * RTT)
        arrived = 40 - len(gone)
        # A loss that the echo alone finds makes TCP reduce that window, too.
        within(cwnd(client), arrived // 2 - 1, arrived + 3, f"window; {arrived} packets of the burst have arrived")
        later = [p for p in data(wire.from_a())[40:] if p.kind != CLOCK]
        equal(sorted(p.seq for p in later), sorted(p.seq for p in gone), "retransmissions, each once")
        true(all(p.kind in (DATA, IMPORTANT) for p in later), "they are within TCP's window")
        within((later[-1].time - sent[0].time) / RTT, 1, 6, "round trips until the last one")
        no_timer(wire)


@one("TCP's window loses packets, too: slow start ends at half of it")
def window_lost(wire, client, server):
    wire.rule = lambda p: p.from_a and 1 < len(data(wire.from_a())) < 40 and p.kind != IMPORTANT
    burst(wire, client, 40)
    wire.rule = None
    wire.run(0.4 * RTT)
    equal(ssthresh(client), WINDOW // 2, "ssthresh")
    equal(wire.receive(server, 40 * MSS[wire.version]), pattern(40 * MSS[wire.version]), "bytes")
    no_timer(wire)


@case("all of a message has marks: TCP reduces the number of packets, not the burst's limit",
      version=(4, 6), cc=CCS, limit=(120, 400))
def marked(version, cc, limit):
    with aeolus(version=version, cc=cc) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect()
        true(wire.transfer(client, server, 100_000), "opens the receiver's window")
        wire.run(1.0)
        option(client, GREENLANE_BDP, limit * MSS[version])
        own = cwnd(client)

        def rule(p):
            if p.from_a and p.len:
                p.set_dsfield(p.dsfield | 3)
            return False
        wire.rule = rule
        sent = len(burst(wire, client, 100))
        true(sent > own, f"{sent} packets, own window {own}")
        wire.run(3 * RTT)
        within(cwnd(client), 0.4 * sent, 0.85 * sent, f"window after {sent} marked packets")
        wire.receive(server, 100 * MSS[version])


@case("all is lost: the timer finds TCP's own window, and the next messages have no burst",
      version=(4, 6), cc=CCS)
def all_lost(version, cc):
    size = 40 * MSS[version]
    with aeolus(version=version, cc=cc, rto_min=4) as wire:
        wire.a.sysctl("net.ipv4.tcp_early_retrans", 0)
        client, server = wire.connect()
        wire.rule = lambda p: p.from_a
        burst(wire, client, 40)
        true(wire.run(50e-3, lambda: wire.a.netstat("TCPTimeouts")), "an RTO")
        within(ssthresh(client), 2, WINDOW, "ssthresh")
        wire.rule = None
        equal(wire.receive(server, size, 2.0), pattern(size), "bytes")
        wire.run(0.1)
        before = wire.a.greenlane()["BurstSent"]
        for count in range(1, 40):
            true(wire.transfer(client, server, 200_000), "arrives")
            wire.run(3 * RTT)
            if wire.a.greenlane()["BurstSent"] > before:
                break
        within(count, 2, 34, "messages until the next burst")


@one("a packet is only late: undo restores TCP's own window")
def undone(wire, client, server):
    late = []

    def rule(p):
        if p.from_a and p.kind == UNSCHEDULED and not late:
            late.append(p)
            p.late = 3 * RTT
        return False
    wire.rule = rule
    burst(wire, client, 40)
    equal(wire.receive(server, 40 * MSS[wire.version]), pattern(40 * MSS[wire.version]), "bytes")
    wire.run(10 * RTT)
    within(cwnd(client), WINDOW // 2, 85, "window")
    true(ssthresh(client) in range(2, 81) or ssthresh(client) == INFINITE, "ssthresh")


@one("the receiver's window is closed: no burst is open, and an idle time changes no threshold")
def closed(wire, client, server):
    option(client, GREENLANE_BDP, 2000 * MSS[wire.version])
    with contextlib.suppress(BlockingIOError):
        while client.send(pattern(1 << 20)):
            wire.run(5 * RTT)
    wire.run(1.0)
    true(cwnd(client) < 1000, f"window {cwnd(client)}")
    before = ssthresh(client)
    wire.run(3.0)
    with contextlib.suppress(BlockingIOError):
        client.send(b"x" * 3000)
    equal(ssthresh(client), before, "ssthresh")
    wire.receive(server, 1 << 23, 0.1)




@one("GREENLANE_AEOLUS 0: no burst; 1: the next message has one")
def off(wire, client, server):
    size = 40 * MSS[wire.version]
    equal(option(client, GREENLANE_AEOLUS), 1, "GREENLANE_AEOLUS by default")
    option(client, GREENLANE_AEOLUS, 0)
    equal([option(client, GREENLANE_AEOLUS), info(client)["flags"] & F_OFF], [0, F_OFF], "off")
    equal(kinds(burst(wire, client, 40)), [DATA] * (WINDOW - 1) + [IMPORTANT], "kinds")
    wire.receive(server, size)
    wire.run(1.0)       # TCP begins again with ten packets
    option(client, GREENLANE_AEOLUS, 1)
    true(UNSCHEDULED in kinds(burst(wire, client, 40)), "a burst")
    equal(wire.receive(server, size), pattern(size), "bytes")


@case("a socket option, or another congestion control, ends the burst: TCP's own window", version=(4, 6),
      how=(GREENLANE_AEOLUS, GREENLANE_TLT, "tlt_dctcp", "cubic"))
def ended(version, how):
    with aeolus(version=version, cc="aeolus_dctcp") as wire:
        client, server = wire.connect()
        equal(len(burst(wire, client, 40)), 40, "packets of the burst")
        if isinstance(how, int):
            option(client, how, 0)
        else:
            modules.load_for(how)
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, how.encode())
        equal(cwnd(client), WINDOW, "window")
        client.send(pattern(40 * MSS[version]))
        wire.run(0.05 * RTT)
        equal(len(data(wire.from_a())), 40, "packets until the first ACK")
        equal(len(wire.receive(server, 80 * MSS[version])), 80 * MSS[version], "bytes")
        equal([p for p in wire.from_a()[50:] if p.kind == UNSCHEDULED], [], "unscheduled packets")


@case("a peer without greenlane: TCP's window", aeolus, version=(4, 6), cc="aeolus_dctcp",
      cc_b="dctcp")
def peer(wire):
    wire.b.sysctl("net.ipv4.tcp_congestion_control", "cubic")
    client, server = wire.connect()
    equal(len(burst(wire, client, 40)), WINDOW, "packets before the first ACK")
    equal({p.kind for p in data(wire.from_a())} & {UNSCHEDULED}, set(), "unscheduled")
    equal(len(wire.receive(server, 40 * MSS[wire.version])), 40 * MSS[wire.version], "bytes")


@case("without ECN aeolus_dctcp falls back to aeolus_reno, which bursts", aeolus, version=(4, 6),
      cc="aeolus_dctcp")
def no_ecn(wire):
    wire.b.sysctl("net.ipv4.tcp_ecn", 0)
    client, server = wire.connect()
    sent = burst(wire, client, 40)
    within(kinds(sent).count(UNSCHEDULED), 28, 29, "unscheduled packets")
    equal(len(wire.receive(server, 40 * MSS[wire.version])), 40 * MSS[wire.version], "bytes")


@one("the next burst begins when nothing is in flight, with the window that the last one left")
def again(wire, client, server):
    for packets in (40, 100):
        wire.run(3 * RTT)
        before = cwnd(client)
        sent = burst(wire, client, packets)
        equal(len(sent), packets, "packets before the first ACK")
        # A GSO packet that begins in TCP's window has one kind.
        within(kinds(sent).count(DATA), before - 43, before, "packets of TCP's window")
        wire.receive(server, packets * MSS[wire.version])
    no_timer(wire)


@one("a long message has one burst, also if one ACK acknowledges all packets in flight")
def once(wire, client, server):
    option(client, GREENLANE_BDP, 100 * MSS[wire.version])
    last = {}

    def rule(p):
        """Of the ACKs only those of the last packet in flight pass."""
        if p.from_a:
            last["end"] = max(last.get("end", 0), p.end) if p.len else last.get("end", 0)
            return False
        return p.ack < last.get("end", 0)
    wire.rule = rule
    size = 300 * MSS[wire.version]
    client.send(pattern(size))
    equal(len(wire.receive(server, size, 5.0)), size, "bytes")
    wire.rule = None
    within(wire.a.greenlane()["BurstSent"], 20, 100, "BurstSent")


@one("bursts of both ends at the same time")
def both(wire, client, server):
    true(wire.transfer_both(client, server, 40 * MSS[wire.version], 4 * RTT), "arrive")
    for ns in (wire.a, wire.b):
        within(ns.greenlane()["BurstSent"], 28, 29, "BurstSent")


if __name__ == "__main__":
    main()
