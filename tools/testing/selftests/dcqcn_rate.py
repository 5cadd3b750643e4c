#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""DCQCN on the wire: the echo of a mark, and its effect on the rate.

	a (client, sends) ---- wire (this program: sets CE) ---- b (server)

dcqcn_kunit.c tests the arithmetic of the reaction point.  These cases test that each mark
arrives once, and that only marks slow a sender down.
"""
import functools
import socket
import time

from lab.tap import case, equal, main, true, using, within
from lab.wire.dart import RATE, RTT, dart, line, read_all, reno_after
from lab.wire.hold import hold
from lab.wire.packet import CWR, ECE, SYN, data
from lab.wire.peer import mid_handshake
from lab.wire.sockopt import SO_MAX_PACING_RATE, cc_of, pacing, refused
from lab.wire.transcript import lose
from lab.wire.wire import connected

CE = 3

# At 1 Gbit/s; a round trip is eight packets.
wire_of = functools.partial(dart, cc="dcqcn")
everywhere = using(connected, of=wire_of, version=(4, 6), tso=(True, False))


def marking(wire, which, from_a=True):
    """The switch sets CE (TCP's checksum does not cover it) on an end's packets with data for
    which which(number) is true; returns the marked packets."""
    marked, count = [], 0

    def rule(p):
        nonlocal count
        if p.from_a == from_a and p.len:
            if which(count):
                p.set_dsfield(p.dsfield | CE)
                marked.append(p)
            count += 1
        return False
    wire.rule = rule
    return marked


def rates(packets, skip=20, over=20):
    """Rates of payload, bytes/s, each over `over` packets."""
    packets = packets[skip:]
    return [sum(p.len for p in packets[i:i + over])
            / (packets[i + over].time - packets[i].time)
            for i in range(0, len(packets) - over, over)]


@everywhere("a flow begins at line rate, and keeps it")
def line_rate(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 400_000), "arrives")
    full = line(wire.version)
    for rate in rates(data(wire.from_a())):
        within(rate, 0.97 * full, 1.03 * full, "rate of payload, bytes/s")
    within(pacing(client), 0.999 * full, 1.001 * full, "pacing rate, bytes/s")
    equal({p.ecn for p in data(wire.from_a())}, {2}, "ECT(0) on data")
    equal([p for p in wire.from_b() if p.flags & ECE], [], "ECE")


@everywhere("one mark is echoed at once, by one ACK, and halves the rate")
def one_mark(wire, client, _server):
    wire.mark()
    marked = marking(wire, lambda n: n == 30)
    seen = []

    def halved():
        seen.append(pacing(client))
        return len(seen) > 1 and seen[-1] < 0.6 * line(wire.version)
    client.send(bytes(300_000))
    true(wire.run(3e-3, halved), "the rate falls")
    # alpha was 1, and has had less than ten periods to decay
    within(seen[-1], 0.5 * line(wire.version), 0.52 * line(wire.version),
           "pacing rate after the mark, bytes/s")
    told = [p for p in wire.from_b() if p.flags & ECE]
    equal(len(marked), 1, "packets marked")
    equal(len(told), 1, "ACKs with ECE")
    within(told[0].time - marked[0].time, RTT / 2, RTT / 2 + 5e-6, "time from mark to echo, s")


@case("every packet marked: one cut each dcqcn_cnp us, and no more", wire_of)
def every_mark(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_rate", 10 * RATE)     # else ACKs become rare
    for cnp in (50, 20, 100):
        wire.a.sysctl("net.ipv4.dcqcn_cnp", cnp)
        client, server = wire.connect()
        marking(wire, lambda n: True)
        client.send(bytes(1_000_000))
        last, cuts = pacing(client), []

        def step():
            nonlocal last
            last, before = pacing(client), last
            if last < 0.8 * before:
                cuts.append(time.monotonic())
            return len(cuts) == 4
        true(wire.run(2e-3, step), "four cuts")
        gaps = [(after - before) * 1e6 for before, after in zip(cuts, cuts[1:])]
        within(min(gaps), cnp - 2, cnp + 30, f"time between cuts with dcqcn_cnp = {cnp}, us")
        wire.rule = None
        client.close()
        server.close()
        wire.run(0.1)


@case("without marks the rate recovers: fast recovery, a step each 55 us", connected, of=wire_of)
def recovery(wire, client, server):
    marking(wire, lambda n: n in (30, 38))
    client.send(bytes(400_000))
    true(wire.run(20e-3, lambda: pacing(client) < 0.4 * line(4)), "two cuts")
    # Each of five steps halves the distance to the earlier rate.
    rates_seen = [pacing(client)]

    def step():
        read_all([server])
        rate = pacing(client)
        if rate != rates_seen[-1]:
            rates_seen.append(rate)
        return len(rates_seen) == 6
    true(wire.run(3e-3, step), f"five steps up: {rates_seen}")
    ways = [after - before for before, after in zip(rates_seen, rates_seen[1:])]
    for way, shorter in zip(ways, ways[1:4]):
        within(shorter / way, 0.48, 0.52, f"a step divided by the one before, of {ways}")


def recovered(wire, seconds, **settings):
    """A flow's rate as a fraction of line rate, 1 ms after the last cut and `seconds` later."""
    for name, value in settings.items():
        wire.a.sysctl(f"net.ipv4.dcqcn_{name}", value)
    client, server = wire.connect()
    marking(wire, lambda n: n >= 30 and n % 5 == 0)
    client.send(bytes(1_000_000))

    def step(until):
        read_all([server])
        return until and pacing(client) < 0.25 * line(4)
    true(wire.run(20e-3, lambda: step(True)), "the rate falls below a quarter of line rate")
    wire.rule = None
    rates_seen = []
    for pause in (1e-3, seconds):
        wire.run(pause, lambda: step(False))
        rates_seen.append(pacing(client) / line(4))
    return rates_seen


@case("additive increase: a thousandth of line rate each 55 us, unless dcqcn_ai is set",
      ai=(0, 500, 2 * RATE))
def additive(ai):
    with wire_of() as wire:
        before, after = recovered(wire, 5e-3, ai=ai)
    step = ai / RATE / 1000 or 1 / 1000
    within((after - before) / (5e-3 / 55e-6), 0.95 * step, 1.05 * step,
           "increase per step, as a fraction of line rate")


@case("hyper increase: a 200th of line rate per step, unless dcqcn_hai is set")
def hyper():
    # The byte counter expires each 2 ms at half of line rate; after five times increase is hyper.
    seen = []
    for hai in (0, 5 * RATE, 10 * RATE):
        with wire_of() as wire:
            wire.align()
            seen.append(recovered(wire, 8e-3, hai=hai, counter=65536, ai=1)[1])
    within(seen[0], 0.5, 0.9, "rate with the default, as a fraction of line rate")
    within(seen[1] / seen[0], 0.99, 1.01, "rate with a 200th, divided by that with the default")
    true(seen[2] > 1.05 * seen[0], f"rates, of which that with a 100th is higher: {seen}")


@case("a loss does not change the rate", connected, of=wire_of)
def losses(wire, client, server):
    wire.mark()
    lost, seen = lose("> unmarked", every=10), set()
    wire.rule = lambda p: seen.add(pacing(client)) or lost(p)
    true(wire.transfer(client, server, 400_000, 50e-3), "arrives")
    wire.rule = None
    true(len(lost.dropped) > 20, "more than 20 packets are lost")
    within(min(seen), 0.999 * line(4), line(4) * 1.001, "minimum of the pacing rate, bytes/s")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@case("a peer without dcqcn, with RFC 3168: ECE until CWR, and two cuts at most",
      version=(4, 6))
def classic_peer(version):
    # TCP accepts ECN from a client whose SYN has ECT only if its own congestion control
    # needs ECN, so the peer is the client.
    with wire_of(cc="cubic", cc_b="dcqcn", version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect()
        equal(cc_of(server), "dcqcn", "congestion control")
        wire.mark()
        marked = marking(wire, lambda n: n == 29, from_a=False)
        lowest = []
        server.send(bytes(300_000))
        wire.run(20e-3, lambda: lowest.append(pacing(server)))
        equal(len(marked), 1, "packets marked")
        told = [p for p in wire.from_a() if p.flags & ECE]
        true(len(told) > 2, f"ACKs with ECE until CWR arrives: {len(told)}, more than 2")
        true(any(p.flags & CWR for p in data(wire.from_b())), "a packet with CWR")
        # Two cuts in that round trip at most.
        within(min(lowest), 0.25 * line(version), 0.52 * line(version),
               "minimum of the pacing rate, bytes/s")
        del client


@case("without ECN it falls back to reno, and no packet has ECT", wire_of, version=(4, 6),
      cc_b="cubic")
def no_ecn(wire):
    wire.b.sysctl("net.ipv4.tcp_ecn", 0)
    client, server = wire.connect()
    wire.mark()
    true(wire.transfer(client, server, 100_000), "arrives")
    equal(cc_of(client), "dcqcn-reno", "congestion control")
    equal({p.ecn for p in wire.from_a() if not p.flags & SYN}, {0}, "ECN fields")


@case("selected before the SYN-ACK, which refuses ECN: the same, from the second packet of data on",
      chosen=("dcqcn", "tlt_dcqcn", "dart"), version=(4, 6))
def refused_ecn(chosen, version):
    with wire_of(cc="cubic", cc_b="cubic", version=version) as wire:
        refuses_ecn(wire, chosen)


def refuses_ecn(wire, chosen):
    """The client selects a congestion control in SYN_SENT."""
    wire.a.sysctl("net.ipv4.greenlane_active", 1)
    wire.a.sysctl("net.ipv4.tcp_ecn", 1)
    wire.b.sysctl("net.ipv4.tcp_ecn", 0)
    client, server = mid_handshake(wire, chosen)
    wire.mark()
    true(wire.transfer(client, server, 100_000), "arrives")
    true("reno" in cc_of(client), f"congestion control: {cc_of(client)}")
    equal({p.ecn for p in data(wire.from_a())[1:]}, {0}, "ECN fields")


@case("a process owns the receiver, which gets a marked packet and then another: its ACK has ECE",
      connected, of=wire_of, cc=("dcqcn", "tlt_dcqcn"), version=(4, 6))
def owned(wire, client, server, **_):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    true(wire.transfer(client, server, 10_000), "arrives")
    wire.run(5e-3)
    wire.mark()
    marked = marking(wire, lambda n: n == 0)
    owner = hold(server, 2)
    wire.run(50e-6)
    for _ in range(2):
        client.send(bytes(500))
    wire.run(10e-3)
    owner.join()
    equal((len(marked), len(data(wire.from_a()))), (1, 2), "packets marked, packets of data")
    equal(len([p for p in wire.from_b() if p.flags & ECE]), 1, "ACKs with ECE")


@case("SO_MAX_PACING_RATE = 0, which TCP takes for none, does not switch the pace off",
      connected, of=wire_of, cc=("dcqcn", "dart", "tlt_dcqcn"))
def no_limit(wire, client, server):
    wire.mark()
    for _ in range(8):
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 0)
        client.send(bytes(50_000))
        wire.run(200e-6, lambda: read_all([server]))
    wire.run(5e-3, lambda: read_all([server]))
    equal(sum(p.len for p in wire.from_a()), 400_000, "bytes")
    for rate in rates(data(wire.from_a())):
        within(rate, 0.9 * line(wire.version), 1.03 * line(wire.version), "rate of payload, bytes/s")


@case("after a pause a flow has the rate to which its timers have raised it, without ACKs",
      connected,
      of=wire_of)
def pause(wire, client, server):
    marked = marking(wire, lambda n: n % 12 == 11)
    true(wire.transfer(client, server, 300_000), "arrives")
    slow = pacing(client)
    true(marked and slow < 0.5 * line(4), f"pacing rate below half of line rate: {slow}")
    wire.rule = None
    wire.run(1.0)           # 18,000 periods
    wire.mark()
    true(wire.transfer(client, server, 100_000), "arrives")
    within(pacing(client), 0.999 * line(4), 1.001 * line(4), "pacing rate, bytes/s")
    for rate in rates(data(wire.from_a())):
        within(rate, 0.97 * line(4), 1.03 * line(4), "rate of payload, bytes/s")


@case("an idle flow sends no packet", connected, of=wire_of)
def idle(wire, client, server):
    wire.transfer(client, server, 50_000)
    wire.run(0.3)
    wire.mark()
    wire.run(5.0)
    equal(wire.seen, [], "packets")


@everywhere("data in both directions at once arrives")
def duplex(wire, client, server):
    true(wire.transfer_both(client, server, 300_000), "arrives")


@case("sysctls: defaults and limits; a flow follows a change of line rate", wire_of)
def sysctls(wire):
    for name, default, bad in (("ai", 0, -1), ("hai", 0, 1600000001), ("counter", 10000000, 65535),
                               ("timer", 55, 0), ("alpha_timer", 55, 0), ("g", 8, 11),
                               ("fast", 5, 0), ("cnp", 50, 1000001), ("burst", 5, 1001),
                               ("rate", RATE, 1600001)):
        key = f"net.ipv4.dcqcn_{name}"
        equal(int(wire.a.sysctl(key)), default, key)
        refused(key, 22, wire.a.sysctl, key, bad)
        equal(int(wire.a.sysctl(key)), default, f"{key} afterwards")
    client, server = wire.connect()
    wire.transfer(client, server, 50_000)
    wire.a.sysctl("net.ipv4.dcqcn_rate", RATE // 4)
    wire.transfer(client, server, 50_000)
    within(pacing(client), 0.249 * line(4), 0.251 * line(4),
           "pacing rate at a quarter of line rate, bytes/s")
    client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 5_000_000)
    wire.transfer(client, server, 10_000)
    equal(pacing(client), 5_000_000, "pacing rate with the application's limit, bytes/s")


@case("reno after dcqcn: TCP does not pace, unless the application limits the rate",
      version=(4, 6), limited=(False, True))
def reno(version, limited):
    with wire_of(version=version, tso=False) as wire:
        reno_after(wire, limited)


if __name__ == "__main__":
    main()
