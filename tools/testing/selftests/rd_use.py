#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Senders that use their credits and shares get more; the pacing rate does not become stale.

	h0, h1 ... ---- switch ---- the last host, which receives
"""
import contextlib
import os
import selectors
import socket
import time

from lab import tap
from lab.codepoints import SCHEDULED
from lab.net.star import Star, pump
from lab.tap import case, equal, timed, true, within
from lab.wire import xpass
from lab.wire.sockopt import (GREENLANE_MESSAGE, SO_MAX_PACING_RATE, choose, info, option,
                              pacing)
from lab.wire.wire import Wire

NO_LIMIT = (1 << 64) - 1
# Fraction of a link that is payload of IPv4 packets, with their credits: 1448 / (1538 + 106 ... 84)
PAYLOAD = 0.87
# With credits of the least size, which no long measurement exceeds
LINK = 1448 / (1538 + 84)


def limit_pace(client, rate):
    """Set SO_MAX_PACING_RATE, bytes/s."""
    client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate.to_bytes(8, "little"))


# --- the pacing rate

@timed("fq at the sender does not pace by the handshake's rate", cc=("xpass", "aeolus_xpass"),
       delay=("10us", "100us", "500us"))
def behind_fq(cc, delay):
    with Star([10_000] * 2, delay=delay, cc=cc, port="limit 10m preset xpass") as net:
        net.use_fq(0, 1, 10_000)
        pair = net.flow(0, 1)
        # With requests for one round trip a path of 1 ms had 0.80 of the rate: they are for two.
        got, = pump([pair], 0.005, warm=0.016 if delay == "500us" else 0.005)
        true(got > 10 * PAYLOAD - 0.1, f"{got:.2f} of 10 Gbit/s")
        equal(net.hosts[0].greenlane()["CreditWasted"], 0, "credits wasted")


@timed("SO_MAX_PACING_RATE: set, raised and removed",
       fq=(False, True), cc=("xpass", "aeolus_xpass"))
def max_pacing(fq, cc):
    with Star([10_000] * 2, cc=cc, port="limit 10m preset xpass") as net:
        if fq:
            net.use_fq(0, 1, 10_000)
        pair = net.flow(0, 1)
        for rate in (0.5e9, 5e9):
            limit_pace(pair[0], int(rate / 8))
            got, = pump([pair], 0.005, warm=0.002)
            within(got * 1e9, 0.97 * rate, 1.03 * rate, "bit/s")
        equal(net.hosts[0].greenlane()["CreditWasted"], 0, "credits wasted")
        limit_pace(pair[0], NO_LIMIT)
        got, = pump([pair], 0.005, warm=0.002)
        true(got > 10 * PAYLOAD - 0.1, f"{got:.2f} of 10 Gbit/s without a limit")


@case("SO_MAX_PACING_RATE and messages of 20 packets: they take the time of their packets, also where the"
      " first window needs no credits", fq=(False, True), mbit=(1, 20, 300),
      cc=("xpass", "aeolus_xpass", "ndp", "aeolus_ndp", "homa", "aeolus_homa"))
def paced_messages(fq, mbit, cc):
    with Wire(cc=cc, rto_min=200) as wire:
        if fq:
            wire.a.tc("qdisc replace dev tun0 root fq")
        client, server = wire.connect()
        limit_pace(client, mbit * 125_000)
        for _ in range(3):
            wire.run(0.1)
            begun = time.monotonic()
            true(wire.transfer(client, server, 20 * 1448, 3.0), "arrives")
            # fq gives the first packets no pace.
            within(time.monotonic() - begun, 9 * 1448 * 8 / mbit / 1e6,
                   1e-3 + 1.2 * 20 * 1500 * 8 / mbit / 1e6, "s")
        equal(wire.a.netstat("TCPTimeouts"), 0, "TCPTimeouts")


@case("another congestion control restores TCP's pacing rate", Wire, cc="xpass", version=(4, 6))
def leave(wire):
    xpass.far(wire)
    client, server = wire.connect()
    true(wire.transfer(client, server, 100_000), "arrives")
    equal(pacing(client), NO_LIMIT, "pacing rate with credits, bytes/s")
    choose(client, "reno")
    within(pacing(client), 1, 10e9 / 8, "pacing rate with reno, bytes/s")
    true(wire.transfer(client, server, 100_000), "arrives")


# --- requests

@timed("connections paced at 1 kB/s leave the link to the others", cc=("xpass", "aeolus_xpass"))
def paced_to_nothing(cc):
    with Star([1000] * 3, cc=cc) as net:
        honest = net.flow(0, 2)
        idle = [net.flow(1, 2) for _ in range(9)]
        for client, _ in idle:
            client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 1000)
        got = pump([honest, *idle], 0.04, warm=0.02, chunk=60_000)
        true(got[0] > PAYLOAD - 0.02, f"{got[0]:.3f} of 1 Gbit/s")
        # TCP paces from the eleventh packet on.
        within(net.hosts[1].greenlane()["CreditReceived"], 9, 9 * 15, "credits for the others")


def carry(wire, seconds, flows, until=None):
    """Carry packets; all clients write and all servers read as much as possible.  Returns the
    credits that each server sends meanwhile."""
    before = [info(server)["credits_sent"] for _, server in flows]

    def step():
        for client, server in flows:
            with contextlib.suppress(BlockingIOError):
                client.send(bytes(100_000))
            with contextlib.suppress(BlockingIOError):
                server.recv(1 << 20)
        return bool(until and until())
    reached = wire.run(seconds, step)
    true(reached or not until, "the end of this part")
    return [info(server)["credits_sent"] - n for (_, server), n in zip(flows, before)]


@case("a sender that does not use its credits loses them to the others, until it uses them again",
      Wire, cc="xpass", version=(4, 6))
def unused(wire):
    xpass.far(wire)
    flows = wire.connect(), wire.connect(port=1001)
    carry(wire, 5e-3, flows)
    port = flows[0][0].getsockname()[1]
    # Its requests and reports arrive, but no data: TCP retransmits with each credit.
    wire.rule = lambda p: p.sport == port and p.kind == SCHEDULED and p.len
    carry(wire, 10e-3, flows)
    mine, others = carry(wire, 5e-3, flows)
    true(mine < others / 20, f"{mine} and {others} credits in 5 ms")
    wire.rule = None
    wire.mark()
    carry(wire, 0.1, flows, lambda: [p for p in wire.from_a() if p.sport == port and p.len])
    # It had a credit in many ms, and reports its use with each of the next ones.
    for _ in range(10):
        mine, others = carry(wire, 2e-3, flows)
        if mine > 0.7 * others:
            break
    within(mine / max(others, 1), 0.7, 1.4,
           f"its credits divided by the other's: {mine} and {others}")


# With requests beyond the peer's window the slow flow wasted 0.5 … 0.7 of its credits, and both
# flows together had 7.2 Gbit/s.
@timed("a process that reads in bursts leaves the link to the others", cc=("xpass", "aeolus_xpass"),
       burst=(50_000, 200_000))
def bursts(cc, burst):
    with Star([10_000] * 3, delay="50us", cc=cc, port="limit 4m preset xpass",
              sysctls=[("net.ipv4.tcp_rmem", "4096 131072 6291456")]) as net:
        flows = net.flow(0, 2), net.flow(1, 2)
        slow = [flows[1][1]], burst
        pump(flows, 0.02, slow=slow)
        before = net.hosts[1].greenlane()
        got = pump(flows, 0.02, slow=slow)
        count = {name: value - before[name] for name, value in net.hosts[1].greenlane().items()}
        true(sum(got) > 10 * PAYLOAD, f"{sum(got):.2f} of 10 Gbit/s")
        if cc == "xpass":
            true(count["CreditWasted"] < 0.05 * count["CreditReceived"],
                 f"credits wasted: {count['CreditWasted']} of {count['CreditReceived']}")


@timed("a sender's packets are charged at their size, not the announced MSS", mss=(1460, 536, 100))
def announced_mss(mss):
    with Star([10_000] * 3) as net:
        net.hosts[0].ip(f"route change default via 10.0.0.1 advmss {mss} rto_min 200ms")
        got = pump([net.flow(0, 2), net.flow(1, 2)], 0.010, warm=0.003)
        equal(net.drops(2), 0, "scheduled packets dropped")
        within(got[0] / got[1], 0.95, 1.05, "rate of the first flow, divided by that of the second")
        true(sum(got) > 10 * PAYLOAD, f"{sum(got):.2f} of 10 Gbit/s")


FAST = (("net.ipv4.tcp_ecn", 1), ("net.ipv4.tcp_wmem", "4096 16777216 67108864"),
        ("net.ipv4.tcp_rmem", "4096 33554432 67108864"))


# With 8 credits of catch-up: 0.77, 0.71 and 0.36.  In a guest of 6.1 a round trip takes 8 us longer
# than the network's: 0.84, 0.82, and 0.64 at 400 Gbit/s, where that is 270 packets.
@timed("late timers do not slow a fast link, whose ports may limit credits",
       gbit=(100, 200, 400), preset=("", "preset xpass"))
def late_timers(gbit, preset):
    if gbit == 400 and os.uname().release.startswith("6."):
        raise tap.Skip("this kernel's guest is too slow")
    with Star([gbit * 1000] * 3, delay="5us", port=f"limit 20m ecn 400k {preset}",
              sysctls=FAST) as net:
        seconds = 1e-3
        got = sum(pump([net.flow(0, 2), net.flow(1, 2)], seconds, warm=0.9e-3, chunk=1 << 19))
        # GRO delivers up to 64 kB of a flow at once, and those of two may fall on this side of the
        # measurement's begin: 0.01 of 100 Gbit/s.
        within(got / gbit, 0.8, LINK + 2 * 65536 * 8e-9 / seconds / gbit,
               "rate of the payload, divided by the link's")
        equal(net.drops(2), 0, "scheduled packets dropped")


# --- small packets

def rested(net):
    """A connection that has sent, and is idle."""
    client, server = net.flow(0, 1)
    client.send(bytes(20_000))
    left = 20_000
    server.settimeout(1)
    while left:
        left -= len(server.recv(left))
    time.sleep(0.3)
    return client, server


@timed("each record is a packet, for which the sender requests a credit",
       cc=("xpass", "aeolus_xpass"))
def records(cc):
    with Star([10_000] * 2, delay="50us", cc=cc) as net:
        client, server = rested(net)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began, left = time.monotonic(), 100 * 50
        for _ in range(100):
            client.send(bytes(50), socket.MSG_EOR)
        with selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            while left and selector.select(1.0):
                left -= len(server.recv(1 << 16))
        equal(left, 0, "bytes missing")
        # xpass begins at 1/16 of the link, and doubles its rate each round trip.
        true(time.monotonic() - began < 8 * 100e-6,
             f"after {(time.monotonic() - began) * 1e6:.0f} us, round trips of 100 us")


@timed("MSG_MORE is one packet", cc=("xpass", "aeolus_xpass"))
def more(cc):
    with Star([10_000] * 2, delay="50us", cc=cc) as net:
        client, _ = rested(net)
        before = net.hosts[0].tcp()["TCPOrigDataSent"]
        for flags in (socket.MSG_MORE, socket.MSG_MORE, 0):
            client.send(bytes(100), flags)
            time.sleep(0.5e-3)
        time.sleep(0.01)
        equal(net.hosts[0].tcp()["TCPOrigDataSent"] - before, 1, "packets of data")


# --- Dart's shares

DART = {"cc": "dart", "port": "limit 2m ecn 22500 bands 2 prio 10 0",
        "sysctls": (("net.ipv4.tcp_ecn", 1), ("net.ipv4.tcp_rmem", "4096 65536 65536"))}


@timed("dart: hosts whose window is closed count as the share that they use")
def closed_windows():
    with Star([1000] * 9, **DART) as net:
        flows = [net.flow(number, 8) for number in range(8)]
        got = pump(flows, 0.05, warm=0.05, chunk=60_000, slow=([server for _, server in flows[:4]], 1250))
        true(sum(got[4:]) > 0.8, f"rate of the four others: {sum(got[4:]):.3f} of 1 Gbit/s")


@timed("dart: hosts that send no data, paced or with an open message, do not count",
       how=("paced", "open"))
def silent_hosts(how):
    with Star([1000] * 9, **DART) as net:
        honest = net.flow(0, 8)
        idle = [net.flow(number, 8) for number in range(1, 8)]
        for client, _ in idle:
            if how == "paced":
                client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 1000)
            else:
                option(client, GREENLANE_MESSAGE, 1)
                client.send(b"x")
        silent = [client for client, _ in idle] if how == "open" else ()
        got = pump([honest, *idle], 0.04, warm=0.02, chunk=60_000, silent=silent)
        true(got[0] > 0.85, f"{got[0]:.3f} of 1 Gbit/s")


@timed("dart: a host that uses its share again has it within a millisecond")
def back_again():
    with Star([1000] * 3, **DART) as net:
        flows = [net.flow(0, 2), net.flow(1, 2)]
        option(flows[1][0], GREENLANE_MESSAGE, 1)
        flows[1][0].send(b"x")
        pump(flows, 0.02, chunk=60_000, silent=[flows[1][0]])
        pump(flows, 1e-3, chunk=60_000)
        got = pump(flows, 5e-3, chunk=60_000)
        within(got[1] / sum(got), 0.4, 0.6, f"its fraction of {sum(got):.3f} Gbit/s")


tap.main()
