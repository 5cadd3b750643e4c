#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""HPCC on the wire: telemetry is requested, echoed, and determines the window.

	a (client, sends) ---- wire (this program: writes U, as a port does) ---- b (server)

hpcc_kunit.c tests the arithmetic.
"""
import contextlib
import socket
import struct

from lab.tap import case, equal, main, true, using, within
from lab.wire.hpcc import (ACK_CODE, BDP, COLLECT, DATA_CODE, ONE, RATE, RTT, hpcc, line, option,
                           port, raise_to, room, window)
from lab.wire.hold import hold, owned_again_and_again
from lab.wire.packet import FIN, SYN, data
from lab.wire.peer import (by_route, by_socket, exchange, fast_open, mid_handshake, mptcp,
                           simultaneous, syn_cookies, without_option, without_sack)
from lab.wire.sockopt import YES, cc_of, choose, cwnd, info, mss, pacing, refused
from lab.wire.wire import MSS, connected

ETA = 0.95
AI = BDP * (1 - ETA) / 100


everywhere = using(connected, of=hpcc, version=(4, 6), tso=(True, False))


@everywhere("data requests telemetry, and each ACK echoes it")
def echo(wire, client, server):
    equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)       # or TCP sends all ACKs now
    wire.mark()
    number = {}
    port(wire, lambda p: number.setdefault(p.seq, 100 + len(number)))
    true(wire.transfer(client, server, 30_000), "30 kB arrive")
    sent = [option(p) for p in data(wire.from_a())]
    equal({(code, bool(field & COLLECT), words) for code, field, words in sent},
          {(DATA_CODE, True, ())}, "code, request and words in data")
    wire.run(1e-3)
    echoes = [option(p) for p in wire.from_b()]
    true(all(echoes), "each ACK has the option")
    equal({(code, words) for code, _, words in echoes}, {(ACK_CODE, ())}, "code, words in ACKs")
    equal([field for _, field, _ in echoes], [field & 0x7fff for _, field, _ in sent],
          "telemetry in ACKs")
    equal(wire.a.greenlane()["HpccEchoReceived"], len(echoes), "HpccEchoReceived")


@everywhere("data in both directions at once: each has its telemetry")
def duplex(wire, client, server):
    def rule(p):
        if p.len:
            raise_to(p, 300 if p.from_a else 500)
        return False
    wire.rule = rule
    wire.mark()
    true(wire.transfer_both(client, server, 100_000), "arrives")
    for from_a, util in ((True, 500), (False, 300)):
        fields = {option(p)[1] for p in wire.seen if not p.len and p.from_a == from_a and option(p)}
        equal(fields, {util}, "telemetry in ACKs")


@case("the handshake and an end of the connection request no telemetry", hpcc, version=(4, 6))
def handshake(wire):
    wire.mark()
    client, server = wire.connect()
    exchange(wire, client, server)
    client.close()
    wire.run(1e-3)
    server.close()
    wire.run(1e-3)
    others = [p for p in wire.seen if p.flags & (SYN | FIN)]
    true(len(others) >= 4, "SYN, SYN-ACK and two FINs")
    equal([option(p) for p in others if p.flags & SYN], [(DATA_CODE, 0, ())] * 2,
          "options of SYN and SYN-ACK")
    equal([p for p in others if p.flags & FIN and option(p)], [], "FINs with the option")


@case("a connection starts at line rate, with a window of a BDP", connected, of=hpcc,
      version=(4, 6))
def start(wire, client, _server):
    within(window(client, wire.version), 0.999, 1.001, "rate, of the line's")
    equal(cwnd(client), 9, "window, packets")
    wire.mark()
    client.send(bytes(100_000))
    wire.run(RTT - 1e-6)
    equal(sum(p.len for p in wire.from_a()), 9 * room(wire.version), "bytes in the first RTT")


@case("utilisation above the target divides the window once, at once", util=(2, 8, 31))
def above(util):
    with hpcc() as wire:
        client, _server = wire.connect()
        divided(wire, client, util)


def divided(wire, client, util):
    """The window is divided by the utilisation."""
    port(wire, round(util * ONE))
    client.send(bytes(200_000))
    true(wire.run(RTT + 20e-6, lambda: window(client) < 0.9), "the first ACK has an effect")
    expected = ETA / util + AI / BDP
    within(window(client), 0.99 * expected, 1.01 * expected, "window after the first ACK, BDPs")
    equal(cwnd(client), max(1, -int(-expected * BDP // 1538)), "window, packets")
    wire.run(RTT * 0.7)
    within(window(client), 0.99 * expected, 1.01 * expected, "window at the end of the RTT, BDPs")


@case("at the target of utilisation the window stays; hpcc_eta sets it", eta=(95, 50))
def target(eta):
    with hpcc() as wire:
        wire.a.sysctl("net.ipv4.hpcc_eta", eta)
        wire.a.sysctl("net.ipv4.hpcc_flows", 100_000)
        client, server = wire.connect()
        port(wire, 1 + eta * ONE // 100)
        true(wire.transfer(client, server, 400_000), "arrives")
        within(window(client), 0.92, 1.001, "window, BDPs")


@case("below the target the window grows by W_AI in each of hpcc_stages round trips, then to the"
      " target", stages=(5, 2))
def additive(stages):
    with hpcc() as wire:
        grows(wire, stages)


def grows(wire, stages):
    """The window grows by W_AI in `stages` round trips, and then is multiplied."""
    wire.a.sysctl("net.ipv4.hpcc_stages", stages)
    wire.a.sysctl("net.ipv4.hpcc_flows", 1)
    client, server = wire.connect()
    port(wire, 4 * ONE)
    client.send(bytes(2_000_000))
    wire.run(2 * RTT)
    port(wire, ONE // 2)
    seen = [window(client)]

    def step():
        with contextlib.suppress(BlockingIOError):
            server.recv(1 << 20)
        if window(client) != seen[-1]:
            seen.append(window(client))
        return seen[-1] > 1.5 * seen[-2] if len(seen) > 1 else False
    true(wire.run(50 * RTT, step), f"a multiplication: {seen}")
    steps = [b - a for a, b in zip(seen, seen[1:])]
    small = [way for way in steps[:-1] if way > 0]
    equal(len(small) in (stages, stages + 1), True, f"additive steps: {seen}")
    for way in small[1:]:
        within(way, 0.045, 0.055, f"an additive step, of {seen}")


@case("a loss does not change a window that telemetry governs", connected, of=hpcc)
def loss(wire, client, server):
    seen, count = set(), 0

    def rule(p):
        nonlocal count
        if not p.from_a or not p.len:
            return False
        raise_to(p, ONE * 95 // 100)
        count += 1
        seen.add(round(window(client), 1))
        return count % 12 == 0
    wire.rule = rule
    true(wire.transfer(client, server, 400_000), "arrives")
    true(wire.a.netstat("TCPTimeouts") == 0, "no timeout")
    true(min(seen) >= 0.8, f"windows, BDPs: {seen}")


@case("a retransmission timeout leaves a window of one packet, which telemetry raises again",
      connected, of=hpcc, rto_min=4)
def timeout(wire, client, server):
    port(wire, ONE // 4)
    true(wire.transfer(client, server, 50_000), "arrives")
    wire.rule = lambda p: True
    client.send(bytes(20_000))
    wire.run(20e-3, lambda: wire.a.netstat("TCPTimeouts"))
    within(window(client), 1500 / BDP, 1600 / BDP, "window after the timeout, BDPs")
    equal(cwnd(client), 1, "window, packets")
    port(wire, ONE // 4)
    true(wire.run(20e-3, lambda: window(client) > 0.4), "the window grows")
    equal(len(wire.receive(server, 20_000)), 20_000, "bytes")


def without_int(wire):
    """Transfer over a path whose ports have no `int`; returns the sockets."""
    client, server = wire.connect()
    true(wire.transfer(client, server, 100_000), "arrives")
    return client, server


@case("without telemetry a connection behaves as reno: windows grow, and a loss halves them",
      hpcc)
def blind(wire):
    client, server = without_int(wire)
    equal(wire.a.greenlane()["HpccTelemetryLost"], 1, "HpccTelemetryLost")
    true(wire.transfer(client, server, 1_000_000), "arrives")
    before = cwnd(client)
    true(before > 9, f"window above a BDP: {before} packets")
    lost = []
    wire.rule = lambda p: p.from_a and p.len and not lost and not lost.append(p)
    client.send(bytes(300_000))
    seen = []
    wire.run(1e-3, lambda: seen.append(cwnd(client)))
    wire.rule = None
    within(min(seen), 0.45 * before, 0.55 * before, "window after a loss")
    equal(len(wire.receive(server, 300_000)), 300_000, "bytes")
    port(wire, 2 * ONE)
    true(wire.transfer(client, server, 100_000), "arrives")
    equal(wire.a.greenlane()["HpccTelemetryBegun"], 1, "HpccTelemetryBegun")
    true(window(client) < 0.9, "telemetry governs the window again")


@case("a path that removes the option from data, or from ACKs: reno", way=("data", "acks"))
def stripped(way):
    def rule(p):
        if not p.flags & SYN and p.from_a == (way == "data"):
            without_option(p)
        return False
    with hpcc() as wire:
        client, server = wire.connect()
        wire.rule = rule
        true(wire.transfer(client, server, 300_000), "arrives")
        equal(wire.a.greenlane()["HpccEchoReceived"], 0, "HpccEchoReceived")
        equal(wire.a.greenlane()["HpccTelemetryLost"], 1, "HpccTelemetryLost")


@case("a peer without hpcc: reno, and no packet has an option", cc_b=("reno", "dctcp", "tlt_reno"),
      version=(4, 6))
def peer_without(cc_b, version):
    with hpcc(cc_b=cc_b, version=version) as wire:
        client, server = wire.connect()
        equal(cc_of(client), "hpcc-reno", "congestion control")
        wire.mark()
        exchange(wire, client, server)
        equal([p for p in wire.seen if option(p)], [], "packets with the option")
        equal({p.len for p in data(wire.from_a())} <= set(range(MSS[version] + 1)), True, "MSS")
        equal(mss(client), MSS[version], "MSS")


@case("a SYN whose option was removed: reno", hpcc)
def stripped_syn(wire):
    wire.rule = without_option
    client, server = wire.connect()
    equal([cc_of(s) for s in (client, server)], ["hpcc-reno"] * 2, "congestion controls")


@case("the highest utilisation in every packet: a window of a packet, and data still arrives",
      connected, of=hpcc)
def forged(wire, client, server):
    port(wire, 0x7fff)
    true(wire.transfer(client, server, 30_000, 0.5), "30 kB arrive")
    equal(cwnd(client), 1, "window, packets")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")
    port(wire, ONE // 8)
    true(wire.transfer(client, server, 400_000, 0.5), "arrives")
    true(window(client) > 0.9, "the window recovers")


@case("forged echoes: of unsent data, of a wrong form", connected, of=hpcc)
def forged_echo(wire, client, server):
    port(wire, ONE // 2)
    true(wire.transfer(client, server, 20_000), "arrives")
    before = window(client)
    ack = [p for p in wire.from_b() if option(p)][-1]
    for change in ("ack", "short", "data code"):
        p = type(ack)(bytes(ack.raw))
        at = p.options_at[0]
        struct.pack_into("!H", p.raw, at + 6, 0x7fff)
        if change == "ack":
            struct.pack_into("!I", p.raw, p.ip_len + 8, (p.ack + 1_000_000) & 0xffffffff)
        elif change == "short":
            p.raw[at + 1] = 7
        else:
            p.raw[at + 4] = DATA_CODE
        p.fix_checksum()
        wire.inject(wire.a, p)
        wire.run(1e-3)
        equal(window(client), before, f"window after a forged {change}")
    true(wire.transfer(client, server, 20_000), "arrives")


@case("each full packet has room for the option", version=(4, 6), mtu=(1500, 9000, 1280),
      tso=(True, False))
def mtus(version, mtu, tso):
    with hpcc(version=version, mtu=mtu, tso=tso) as wire:
        client, server = wire.connect()
        wire.mark()
        true(wire.transfer(client, server, 200_000), "arrives")
        sent = data(wire.from_a())
        equal(max(len(p.raw) for p in sent), mtu, "length of the longest packet")
        equal(mss(client), room(version, mtu), "MSS")
        equal([len(p.raw) for p in sent if not option(p)], [], "packets without the option")
        equal(wire.a.greenlane()["HpccNoRoom"], 0, "HpccNoRoom")


@case("an MTU below TCP's minimum MSS and the option: packets leave without it", hpcc)
def tiny_mtu(wire):
    for ns in (wire.a, wire.b):
        ns.ip("link set tun0 mtu 90")       # of payload 36 bytes fit beside the option, TCP has 48
    client, server = wire.connect()
    wire.mark()
    true(wire.transfer(client, server, 2000), "arrives")
    equal(max(len(p.raw) for p in wire.seen) <= 90, True, "packets are not above the MTU")
    true(wire.a.greenlane()["HpccNoRoom"] > 0, "HpccNoRoom")


@case("IP options and another congestion control: the MSS follows", connected,
      of=hpcc, version=(4, 6))
def mss_follows(wire, client, server):
    version = wire.version
    true(wire.transfer(client, server, 20_000), "arrives")
    equal(mss(client), room(version), "MSS")
    if version == 6:
        # A destination option of 8 bytes: TCP computes the length of the IP options again.
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, b"\0\0\1\4\0\0\0\0")
    else:
        client.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"\1" * 8)
    true(wire.transfer(client, server, 60_000), "arrives")
    equal(mss(client), room(version) - 8, "MSS with an IP option of 8 bytes")
    wire.mark()
    wire.others.clear()
    true(wire.transfer(client, server, 60_000), "arrives")
    # The wire does not parse extension headers.
    sent = [p for p in wire.from_a() + wire.others if len(p.raw) > 200]
    equal(max(len(p.raw) for p in sent), 1500, "length of the longest packet")
    equal([p for p in sent if b"\xfe\x08GL" not in p.raw[:120]], [], "packets without the option")
    choose(client, "reno")
    equal(mss(client), MSS[version] - 8, "MSS with reno")
    true(wire.transfer(client, server, 60_000), "arrives")


def begins(wire, ends, runs):
    """Both ends run hpcc, or both reno, and data arrives."""
    wire.mark()
    port(wire, ONE // 2)
    exchange(wire, *ends)
    for s in ends:
        cc = cc_of(s)
        true(cc == "hpcc" if runs else cc in ("hpcc-reno", "reno"), f"congestion control: {cc}")
    coded = [p for p in data(wire.seen) if option(p)]
    equal(bool(coded), runs, "data has the option")
    true(all(len(p.raw) <= 1500 for p in wire.seen), "packets are not above the MTU")


@case("every way to begin a connection: hpcc", by=(by_socket, by_route, fast_open, mid_handshake),
      version=(4, 6))
def ways(by, version):
    with hpcc(version=version) as wire:
        begins(wire, by(wire), True)


@case("SYN cookies, no SACK, two SYNs at once, MPTCP: reno",
      by=(syn_cookies, without_sack, simultaneous, mptcp), version=(4, 6))
def no_ways(by, version):
    with hpcc(version=version) as wire:
        ends = by(wire)
        if by is mptcp:
            true(wire.transfer(*ends, 100_000), "arrives")
        else:
            begins(wire, ends, False)
        equal([p for p in data(wire.seen) if option(p)], [], "data with the option")


@case("a process owns the receiver when a packet arrives: the release acknowledges it", connected,
      of=hpcc, version=(4, 6))
def receiver_owned(wire, client, server):
    port(wire, ONE // 2)
    true(wire.transfer(client, server, 20_000), "arrives")
    wire.run(1e-3)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)       # delay ACKs
    wire.mark()
    holder = hold(server, 2)
    wire.run(100e-6)
    client.send(b"i" * 100)
    wire.run(1e-3)
    equal(wire.from_b(), [], "packets of b while its socket is owned")
    wire.run(2e-3)
    holder.join()
    answers = wire.from_b()
    equal({p.ack for p in answers}, {wire.from_a()[0].end}, "ACKs")
    true(answers[0].time - wire.from_a()[0].time < 2.2e-3, "the ACK leaves at the release")
    equal([option(p) for p in answers if option(p)], [(ACK_CODE, ONE // 2, ())], "echo")


@case("processes own both ends again and again: data arrives without a timeout", connected, of=hpcc,
      version=(4, 6))
def both_owned(wire, client, server):
    port(wire, 2 * ONE)
    with owned_again_and_again(client, 1, 0.0005), owned_again_and_again(server, 1, 0.0008):
        true(wire.transfer(client, server, 50_000), "arrives")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


def first(wire, util, packets):
    """The first packets find this utilisation, and all others the target."""
    count = 0

    def of(_p):
        nonlocal count
        count += 1
        return round(util * ONE) if count <= packets else round(0.96 * ONE)
    port(wire, of)


@case("a message after a pause starts at line rate", connected, of=hpcc)
def after_a_pause(wire, client, server):
    first(wire, 8, 10)
    true(wire.transfer(client, server, 50_000), "arrives")
    wire.run(2 * RTT)
    client.send(bytes(10_000))
    within(window(client), 0.05, 0.2, "window after a pause of 2 RTTs, BDPs")
    wire.run(200 * RTT)
    client.send(bytes(100_000))
    within(window(client), 0.999, 1.001, "window after a pause of many RTTs, BDPs")


@case("a connection that waits for its pace makes no pause", connected, of=hpcc)
def paced(wire, client, server):
    first(wire, 10, 11)
    client.send(bytes(200_000))
    wire.run(10 * RTT)
    windows = []
    wire.mark()
    wire.run(200 * RTT, lambda: windows.append(window(client)))
    sent = data(wire.from_a())
    true(len(sent) > 2, "packets")
    true(max(windows) < 0.05, f"largest window, BDPs: {max(windows)}")
    gaps = [b.time - a.time for a, b in zip(sent, sent[1:])]
    true(max(gaps) > 8 * RTT, f"time between packets, s: {gaps}")
    del server


@case("three SACK blocks and a time stamp leave an ACK no room for the echo", connected, of=hpcc)
def sacks(wire, client, server):
    count = 0

    def rule(p):
        nonlocal count
        if p.from_a and p.len:
            raise_to(p, ONE // 2)
            count += 1
            return count in (20, 22, 24, 26)
        return False
    wire.rule = rule
    wire.mark()
    true(wire.transfer(client, server, 200_000), "arrives")
    blocks = {(len(p.sacks), bool(option(p))) for p in wire.from_b() if not p.len}
    true({(1, True), (2, True), (3, False)} <= blocks, f"(SACK blocks, option): {blocks}")
    true(wire.b.greenlane()["HpccNoRoom"] > 0, "HpccNoRoom")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@case("sysctls: defaults and limits", hpcc)
def sysctls(wire):
    for name, default, bad in (("rate", RATE, 1600001), ("rtt", 100, 1000001), ("eta", 95, 101),
                               ("eta", 95, 9), ("stages", 5, 1001), ("flows", 100, 0),
                               ("average", 1, 2)):
        key = f"net.ipv4.hpcc_{name}"
        equal(int(wire.a.sysctl(key)), default, key)
        refused(key, 22, wire.a.sysctl, key, bad)
        equal(int(wire.a.sysctl(key)), default, f"{key} afterwards")
    client, server = wire.connect()
    wire.a.sysctl("net.ipv4.hpcc_rate", RATE // 10)
    port(wire, ONE // 2)
    true(wire.transfer(client, server, 50_000), "arrives")
    within(pacing(client), 0.099 * line(4), 0.101 * line(4), "pacing rate of a slower link")


@case("reno after hpcc: TCP does not pace", hpcc, version=(4, 6), tso=False)
def reno_after(wire):
    client, server = wire.connect()
    true(wire.transfer(client, server, 100_000), "arrives")
    choose(client, "reno")
    wire.run(5e-3)
    wire.mark()
    client.send(bytes(10 * 1400))
    wire.run(5e-3)
    sent = data(wire.from_a())[:10]
    within(sent[-1].time - sent[0].time, 0, 10e-6, "time from the first to the last packet, s")


@case("an ACK that arrives again has old telemetry, which is ignored", connected, of=hpcc)
def replayed(wire, client, server):
    port(wire, 0x7fff)
    true(wire.transfer(client, server, 3000), "arrives")
    old = [p for p in wire.from_b() if option(p) and option(p)[0] == ACK_CODE][-1]
    port(wire, ONE // 2)
    true(wire.transfer(client, server, 2_000_000), "arrives")
    before = window(client)
    for _ in range(20):
        wire.inject(wire.a, type(old)(bytes(old.raw)))
        wire.run(20e-6)
    within(window(client) / before, 0.99, 1.01, "window afterwards, as a part of that before")


@case("telemetry begins again at reno's window, not at the one before reno", connected, of=hpcc)
def begins_again(wire, client, server):
    port(wire, 20)
    true(wire.transfer(client, server, 1_000_000), "arrives")
    true(cwnd(client) > 16, f"hpcc's window: {cwnd(client)}")
    count = 0

    def lossy(p):
        nonlocal count
        count += bool(p.from_a and p.len)
        return p.from_a and p.len and count % 10 == 0
    wire.rule = lossy
    true(wire.transfer(client, server, 1_000_000, 5.0), "arrives")
    reno, seen = cwnd(client), []
    true(reno < 8, f"reno's window: {reno}")
    port(wire, round(0.9 * ONE))
    client.send(bytes(20_000))
    wire.run(3 * RTT, lambda: seen.append(cwnd(client)))
    within(max(seen), 1, reno + 3, "windows, below the target")


@case("without telemetry the first loss is retransmitted at once, although few ACKs arrive",
      connected, of=hpcc, tso=False)
def conserves(wire, client, server):
    true(wire.transfer(client, server, 300_000), "arrives")
    wire.run(10e-3)
    size, first, count = mss(client), set(), 0
    before = wire.a.netstat("TCPTimeouts")

    def rule(p):
        nonlocal count
        if not (p.from_a and p.len) or p.seq in first:
            return False
        first.add(p.seq)
        count += 1
        return count == 1 or count > 4
    wire.rule = rule
    wire.mark()
    client.send(bytes(cwnd(client) * size))
    wire.run(5e-3)
    again = [p.time for p in data(wire.from_a()) if p.seq == data(wire.from_a())[0].seq]
    true(len(again) > 1, "the first packet is sent again within 5 ms")
    equal(wire.a.netstat("TCPTimeouts") - before, 0, "RTOs")
    del server


@case("probes of the MTU have the option, and find the path's MTU", version=(4, 6))
def probes(version):
    with hpcc(version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_mtu_probing", 2)
        client, server = wire.connect()
        limit, sizes = 1400, {True: set(), False: set()}

        def rule(p):
            if p.from_a and p.len:
                raise_to(p, ONE // 2)
                sizes[bool(option(p))].add(len(p.raw))
            return len(p.raw) > limit
        wire.rule = rule
        for _ in range(5):
            true(wire.transfer(client, server, 200_000, 1.0), "arrives")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
        equal(wire.a.greenlane()["NoMemory"], 0, "NoMemory")
        equal(sizes[False], set(), "lengths of packets without the option")
        within(max(size for size in sizes[True] if size <= limit), 1200, limit, "the MTU that it finds")


@case("a server with Fast Open begins with TCP's window, and hpcc's when it has an RTT")
def early():
    with hpcc() as wire:
        wire.b.sysctl("net.ipv4.hpcc_rtt", 0)
        listener = wire.listen(TCP_FASTOPEN=100)
        for _ in range(2):      # the first connection gets a cookie
            client = wire.socket(wire.a)
            client.sendto(b"f" * 500, socket.MSG_FASTOPEN, (wire.address(wire.b), 1000))
            wire.run(5e-3)
            server = listener.accept()[0]
            server.setblocking(False)
        wire.rule = lambda p: p.len and raise_to(p, 600)
        wire.mark()
        server.send(bytes(100_000))
        equal(len(wire.receive(client, 100_000)), 100_000, "bytes")
        sent = [p.time for p in wire.from_b() if p.len]
        # The link takes 0.85 ms; three round trips of slow start would take 0.3.
        within(sent[-1] - sent[0], 0.7e-3, 2e-3, "time of 100 kB, s")


if __name__ == "__main__":
    main()
