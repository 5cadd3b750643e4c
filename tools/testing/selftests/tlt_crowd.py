#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A crowd at a port: windows of less than a packet, and the guard of important packets.

	a (client, sends) ---- wire (this program) ---- b (server)

The wire is the crowded port: it drops unimportant data, and important data is late by the queue of
the others.
"""
import errno
import itertools
import math
import socket
import time

from lab import tap
from lab.codepoints import CLOCK, CONTROL, DATA, IMPORTANT
from lab.net.star import Star, pump
from lab.tap import case, equal, true, using, within
from lab.wire.packet import data, kinds
from lab.wire.sockopt import SO_MAX_PACING_RATE, choose
from lab.wire.window import lose
from lab.wire.wire import DELAY, MSS, Wire, connected, pattern

GUARD = 1e-3                    # TLT_GUARD_US
LIFE = 100e-3                   # TLT_CROWD_LIFE
WAIT_MAX = 10e-3
TARGET = 150e-6                 # tlt_crowd
QUEUE = 450e-6

both = using(connected, version=(4, 6))


def crowd(wire, queue):
    """The rule of a port with this queue, s, that admits only protected packets."""
    def rule(p):
        if p.from_a and p.len:
            p.late = queue
        return p.from_a and p.kind == DATA
    wire.rule = rule


def lost_burst(wire, client, packets):
    """The first transmission of a burst is lost, the important packet included."""
    wire.mark()
    left = [packets]

    def rule(p):
        left[0] -= bool(p.from_a and p.len)
        return p.from_a and p.len and left[0] >= 0
    wire.rule = rule
    client.send(pattern(packets * MSS[wire.version]))
    wire.run(20e-3)


def report(wire, client, server):
    """The client finds an important packet lost: for it, the server's address has a crowd."""
    lost_burst(wire, client, 4)
    wire.rule = None
    wire.receive(server, 4 * MSS[wire.version])


def begin_crowd(wire, client, server, seconds, queue=QUEUE):
    """Send ten packets through a crowded port, so that the client waits after `seconds`."""
    report(wire, client, server)
    wire.mark()
    crowd(wire, queue)
    client.send(pattern(10 * MSS[wire.version]))
    wire.run(seconds)


def gaps(wire):
    """Times between an echo, which is DELAY on its way, and the next important data packet."""
    found, echo = [], None
    for p in wire.seen:
        if not p.from_a:
            echo = p.time + DELAY
        elif p.kind == IMPORTANT and p.len > 1 and echo:
            found.append(p.time - echo)
            echo = None
    return found


def waits(queue, count):
    """The waits after the first `count` echoes, each with this queue, s."""
    wait, found = 0, []
    for _ in range(count):
        wait += (queue - TARGET / 2 - math.sqrt(wait * TARGET / 16)) / 2
        found.append(wait)
    return found


@case("150 us by default, at most 20 ms; each namespace has its own", Wire)
def setting(wire):
    equal(wire.a.sysctl("net.ipv4.tlt_crowd"), "150", "tlt_crowd by default")
    wire.a.sysctl("net.ipv4.tlt_crowd", 20_000)
    for wrong in (-1, 20_001, "queue"):
        try:
            wire.a.sysctl("net.ipv4.tlt_crowd", wrong)
        except OSError:
            continue
        raise tap.Failed(f"{wrong} is accepted")
    equal([ns.sysctl("net.ipv4.tlt_crowd") for ns in (wire.a, wire.b)], ["20000", "150"], "values")


@both("late echoes while only important packets arrive: the waits grow, by half of the difference"
      " from the goal of the queue")
def less_than_a_packet(wire, client, server):
    begin_crowd(wire, client, server, 60e-3)
    seen, expected = gaps(wire), waits(QUEUE, 6)
    true(len(seen) >= 6, f"{len(seen)} waits")
    # The base RTT is a microsecond or two above 2 DELAY.
    for number, (gap, wait) in enumerate(zip(seen, expected)):
        within(gap / wait, 0.9, 1.1, f"wait {number}, as a part of {wait * 1e6:.0f} us")
    within(max(seen), 0, WAIT_MAX + 1e-4, "the longest wait, s")
    equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
          "RTOs (after 4 ms, less than a wait) and TLPs")
    equal(wire.a.greenlane()["CrowdWaits"] >= 6, True, "CrowdWaits")
    equal(len(wire.receive(server, 10 * MSS[wire.version])), 10 * MSS[wire.version],
          "bytes that arrive")


@both("the queue is empty: a burst leaves at once again, and without pacing")
def crowd_is_over(wire, client, server):
    begin_crowd(wire, client, server, 10e-3)
    wire.rule = None
    wire.receive(server, 10 * MSS[wire.version])
    # Grow the window.
    wire.transfer(client, server, 200_000)
    wire.run(5e-3)
    before = wire.a.greenlane()["CrowdWaits"]
    wire.mark()
    wire.transfer(client, server, 5 * MSS[wire.version])
    sent = data(wire.from_a())
    equal(kinds(sent), [DATA] * 4 + [IMPORTANT], "kinds of the burst")
    within(sent[-1].time - sent[0].time, 0, 2e-6, "departure of the last packet, s")
    equal(wire.a.greenlane()["CrowdWaits"], before, "CrowdWaits")


@case("tlt_crowd is 0: no connection waits", Wire)
def off(wire):
    wire.a.sysctl("net.ipv4.tlt_crowd", 0)
    client, _ = wire.connect()
    wire.mark()
    crowd(wire, QUEUE)
    client.send(pattern(10 * MSS[4]))
    wire.run(20e-3)
    within(max(gaps(wire)), 0, 20e-6, "the longest wait, s")
    equal(wire.a.greenlane()["CrowdWaits"], 0, "CrowdWaits")


@case("tlt_crowd becomes 0 in a crowd: the waits end", Wire)
def switched_off(wire):
    client, server = wire.connect()
    report(wire, client, server)
    crowd(wire, QUEUE)
    client.send(pattern(20 * MSS[4]))
    wire.run(8e-3)
    wire.a.sysctl("net.ipv4.tlt_crowd", 0)
    wire.run(WAIT_MAX)
    wire.mark()
    wire.run(50e-3)
    true(not (late := [gap for gap in gaps(wire) if gap > 20e-6]), f"waits: {late}")
    wire.rule = None
    equal(len(wire.receive(server, 20 * MSS[4])), 20 * MSS[4], "bytes that arrive")


@both("late echoes while unimportant packets arrive, too: no wait, the window decides")
def not_alone(wire, client, server):
    def rule(p):
        if p.from_a and p.len:
            p.late = QUEUE
        return False
    report(wire, client, server)
    wire.rule = rule
    wire.transfer(client, server, 300_000)
    equal(wire.a.greenlane()["CrowdWaits"], 0, "CrowdWaits")


@both("requests of a packet behind a long queue do not wait")
def requests(wire, client, server):
    report(wire, client, server)
    wire.transfer(client, server, 1000)

    def rule(p):
        p.late = 2e-3 * bool(p.from_a and p.len)
        return False
    wire.rule = rule
    for _ in range(10):
        wire.mark()
        began = time.monotonic()
        wire.transfer(client, server, 1000)
        within(wire.from_a()[0].time - began, 0, 20e-6, "departure of the request, s")
        wire.run(1e-3)
    equal(wire.a.greenlane()["CrowdWaits"], 0, "CrowdWaits")


@both("a burst of four is lost as a whole: a clock replaces the important packet, without a timer "
      "of TCP's")
def guarded(wire, client, server):
    lost_burst(wire, client, 4)
    sent = data(wire.from_a())
    equal(kinds(sent[:5]), [DATA] * 3 + [IMPORTANT, CLOCK], "kinds of the burst and the next packet")
    # Four times the smoothed RTT, which is 20 us and some of the machine's, and the guard's time.
    within(sent[4].time - sent[3].time, GUARD + 4 * 2 * DELAY, GUARD + 4 * 4 * DELAY,
           "the clock follows after, s")
    equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")
    equal(wire.a.greenlane()["EchoesLate"], 1, "EchoesLate")
    equal(len(wire.receive(server, 4 * MSS[wire.version])), 4 * MSS[wire.version],
          "bytes that arrive")


@both("a burst of three is not guarded: TCP's own timers repair it")
def not_guarded(wire, client, _server):
    lost_burst(wire, client, 3)
    equal(kinds(data(wire.from_a()))[:4], [DATA] * 2 + [IMPORTANT, IMPORTANT], "kinds, then the TLP")
    equal(wire.a.greenlane()["EchoesLate"], 0, "EchoesLate")
    equal(wire.a.netstat("TCPLossProbes"), 1, "TLPs")


@both("a burst of three, of which the second packet arrives: the important packet is guarded from the"
      " retransmission of the first one, which is lost, too")
def guarded_beside_a_loss(wire, client, server):
    wire.mark()
    lose(wire, lambda p: p.from_a and p.len, (1, 3, 4))
    client.send(pattern(3 * MSS[wire.version]))
    wire.run(20e-3)
    sent = data(wire.from_a())
    equal(kinds(sent[:5]), [DATA] * 2 + [IMPORTANT, DATA, CLOCK],
          "kinds of the burst, the retransmission and the next packet")
    equal([p.seq for p in sent[3:5]], [sent[0].seq] * 2, "the retransmission and the clock begin at")
    equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
    equal(wire.a.greenlane()["EchoesLate"], 1, "EchoesLate")
    equal(len(wire.receive(server, 3 * MSS[wire.version])), 3 * MSS[wire.version],
          "bytes that arrive")


@both("TCP's timer begins anew with each clock of the guard")
def outage(wire, client, server):
    wire.mark()
    # Longer than the RTO of 4 ms and a jiffy of 4 ms.
    wire.rule = lambda p: p.from_a and p.time < wire.seen[0].time + 10e-3
    client.send(pattern(10 * MSS[wire.version]))
    wire.run(30e-3)
    equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
    true(wire.a.greenlane()["EchoesLate"] >= 6, "clocks are lost")
    equal(len(wire.receive(server, 10 * MSS[wire.version])), 10 * MSS[wire.version],
          "bytes that arrive")


@both("a burst of three in a crowd is guarded")
def guarded_in_a_crowd(wire, client, server):
    report(wire, client, server)
    wire.transfer(client, server, 4 * MSS[wire.version])
    wire.run(1e-3)
    lost_burst(wire, client, 3)
    equal(kinds(data(wire.from_a()))[:4], [DATA] * 2 + [IMPORTANT, CLOCK], "kinds, then the clock")
    equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")


def burst_after(wire, client):
    """Ten packets through a crowded port; returns how often the client waits."""
    before = wire.a.greenlane()["CrowdWaits"]
    crowd(wire, QUEUE)
    client.send(pattern(10 * MSS[wire.version]))
    wire.run(20e-3)
    wire.rule = None
    return wire.a.greenlane()["CrowdWaits"] - before


@both("a long queue alone is no crowd: no wait before an important packet is lost")
def no_loss(wire, client, _server):
    equal(burst_after(wire, client), 0, "waits")


@case("an important packet is late behind a queue, and its clocks, too: no crowd", Wire)
def only_late(wire):
    # With one clock, two and more.
    for queue in 1.5e-3, 2.5e-3, 5e-3:
        client, server = wire.connect()
        late = wire.a.greenlane()["EchoesLate"]

        def rule(p, queue=queue):
            p.late = queue * bool(p.from_a and p.len)
            return False
        wire.rule = rule
        client.send(pattern(40 * MSS[4]))
        wire.run(30e-3)
        true(wire.a.greenlane()["EchoesLate"] > late, f"{queue}: an echo is late")
        wire.receive(server, 40 * MSS[4])
        equal(burst_after(wire, client), 0, f"{queue}: waits")


@both("the echo is lost, and the answer of the clock has its number: no crowd")
def lost_echo(wire, client, server):
    wire.rule = lambda p: not p.from_a and p.kind == CONTROL
    client.send(pattern(8 * MSS[wire.version]))
    wire.run(3e-3)
    equal(wire.a.greenlane()["EchoesLate"], 1, "EchoesLate")
    wire.rule = None
    wire.receive(server, 8 * MSS[wire.version])
    equal(burst_after(wire, client), 0, "waits")


@case("the queue grows: the important packet arrives late, and a second clock leaves before the first one"
      " is answered: no crowd", Wire, rto_min=200)
def overtaken(wire):
    wire.a.sysctl("net.ipv4.tcp_early_retrans", 0)
    client, server = wire.connect()
    wire.transfer(client, server, 1000)
    packets, clocks = itertools.count(1), itertools.count(1)

    def rule(p):
        if p.from_a and p.kind == CLOCK:
            p.late = 10e-3 if next(clocks) == 1 else 12e-3
        elif p.from_a and p.len:
            p.late = 1.5e-3 if next(packets) <= 11 else 12e-3
        return False
    wire.rule = rule
    # More than the first window, and less than the second.
    client.send(pattern(25 * MSS[4]))
    wire.run(40e-3)
    true(wire.a.greenlane()["EchoesLate"] > 1, "two clocks")
    other, _ = wire.connect()
    equal(burst_after(wire, other), 0, "waits")


@case("a clock is late and another one replaces it: the first one's answer finds no packet lost that left"
      " between them", Wire, tso=False)
def between(wire):
    client, _server = wire.connect()

    def rule(p):
        p.late = 2e-3 * bool(p.from_a and p.len)
        return False
    wire.rule = rule
    wire.mark()
    client.send(pattern(5 * MSS[4] + 10), socket.MSG_MORE)
    wire.run(0.5e-3)
    client.send(pattern(MSS[4]), socket.MSG_MORE)
    wire.run(20e-3)
    equal(kinds(data(wire.from_a()))[:9], [DATA] * 5 + [CLOCK, DATA, DATA, CLOCK], "kinds")
    sent = [p.seq for p in data(wire.from_a()) if p.kind != CLOCK]
    equal(len(sent), len(set(sent)), "packets, each once")


@case("a burst is lost, and clocks are answered after 28 of the guard's times, or after two long ones: the"
      " first answer repairs it", queue=((150, 30e-3), (14_000, 81e-3)))
def answered_late(queue):
    crowd, late = queue
    with Wire(rto_min=200) as wire:
        wire.a.sysctl("net.ipv4.tlt_crowd", crowd)
        wire.a.sysctl("net.ipv4.tcp_early_retrans", 0)
        client, server = wire.connect()
        left = itertools.count(1)

        def rule(p):
            p.late = late * (p.kind == CLOCK)
            return p.from_a and p.kind != CLOCK and p.len and next(left) <= 5
        wire.rule = rule
        client.send(pattern(5 * MSS[4]))
        began = time.monotonic()
        wire.receive(server, 5 * MSS[4])
        guard = max(GUARD, crowd * 2.5e-6)
        within(time.monotonic() - began, guard + late, guard + late + 2e-3,
               "time until it arrives, s")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("a connection learns of the crowd at its destination, and how long to wait, from another one",
      Wire)
def shared(wire):
    one, server = wire.connect()
    two, _ = wire.connect()
    begin_crowd(wire, one, server, 20e-3)
    learned = max(gaps(wire))
    wire.mark()
    burst_after(wire, two)
    within(gaps(wire)[0] / learned, 0.9, 1.3, "the other one's first wait, as a part of the last")


@case("after 100 ms without a sign of the crowd no connection waits; a new crowd begins anew", Wire)
def expires(wire):
    one, server = wire.connect()
    begin_crowd(wire, one, server, 20e-3)
    true(max(gaps(wire)) > waits(QUEUE, 4)[-1], "waits")
    wire.rule = None
    wire.receive(server, 10 * MSS[4])
    wire.run(LIFE + 10e-3)
    other, server = wire.connect()
    wire.mark()
    equal(burst_after(wire, other), 0, "waits after 100 ms")
    begin_crowd(wire, other, server, 20e-3)
    within(gaps(wire)[0] / waits(QUEUE, 1)[0], 0.9, 1.1, "the first wait, as a part of the rule's")


@case("eight connections whose echoes arrive at the same time: their wait grows as one's does", Wire)
def at_the_same_time(wire):
    some = [wire.connect() for _ in range(8)]
    report(wire, *some[0])
    wire.mark()
    crowd(wire, QUEUE)
    for client, _ in some:
        client.send(pattern(10 * MSS[4]))
    wire.run(1e-3)
    found = []
    for client, _ in some:
        port = client.getsockname()[1]
        left = [p.time for p in wire.seen if p.from_a and p.sport == port and p.kind == IMPORTANT]
        found.append(left[1] - left[0] - QUEUE - 2 * DELAY)
    first = waits(QUEUE, 1)[0]
    within(min(found) / first, 0.9, 1.3, "the shortest wait, as a part of one connection's")
    within(max(found) / first, 0.9, 1.3, "the longest")


def wait_beside(wire, client, server, packets, queue=QUEUE):
    """All packets of a burst arrive behind QUEUE, in a crowd whose queue may be a shorter one;
    returns (the wait of a connection of the crowd, which is alone; the wait of this one, s).
    """
    other, _ = wire.connect()
    begin_crowd(wire, client, server, 20e-3 if queue == QUEUE else 1e-3, queue)
    learned = max(gaps(wire))
    port = other.getsockname()[1]

    def rule(p):
        p.late = QUEUE * bool(p.from_a and p.len)
        return p.from_a and p.kind == DATA and p.sport != port
    wire.rule = rule
    wire.mark()
    other.send(pattern(packets * MSS[wire.version]))
    wire.run(600e-6)
    other.send(pattern(100))
    wire.run(WAIT_MAX)
    sent = [p for p in data(wire.from_a()) if p.sport == port]
    equal(kinds(sent), [DATA] * (packets - 1) + [IMPORTANT] * 2,
          "kinds of a burst and the next packet")
    return learned, sent[-1].time - sent[-2].time - QUEUE - 2 * DELAY


@both("a connection that is not alone waits for each packet that was delivered: its rate is that of"
      " one that is")
def for_each_packet(wire, client, server):
    learned, wait = wait_beside(wire, client, server, 2)
    cycle = QUEUE + 2 * DELAY
    true(2 * learned + cycle < 11 * QUEUE, f"the other connection's wait: {learned}")
    # The wait does not increase with this connection's echo, which counts as a short queue's.
    within((wait + cycle) / (2 * (learned + cycle)), 0.92, 1, "time of a packet, in the other's")


@both("... if the wait is not shorter than a round trip: behind another port's queue, which this crowd"
      " has not, round trips do not count")
def for_packets_of_another_port(wire, client, server):
    learned, wait = wait_beside(wire, client, server, 4, 90e-6)
    true(learned < QUEUE, f"the other connection's wait: {learned}")
    within(wait, 0, QUEUE, "the wait, s")


@both("... up to twelve queues")
def for_few_packets(wire, client, server):
    learned, wait = wait_beside(wire, client, server, 4)
    true(4 * learned > 12 * QUEUE, f"the other connection's wait: {learned}")
    within(wait / QUEUE, 11.95, 12.2, "the wait, in queues")


@both("a connection that is not alone, behind a queue below tlt_crowd, does not wait")
def innocent(wire, client, server):
    other, _ = wire.connect()
    begin_crowd(wire, client, server, 5e-3)
    port = other.getsockname()[1]
    below = 100e-6

    def rule(p):
        p.late = below * bool(p.from_a and p.len and p.sport == port)
        return p.from_a and p.kind == DATA and p.sport != port
    wire.rule = rule
    wire.mark()
    other.send(pattern(3 * MSS[wire.version]))
    wire.run(300e-6)
    now = wire.seen[-1].time
    other.send(pattern(100))
    wire.run(5e-3)
    sent = [p for p in data(wire.from_a()) if p.sport == port]
    within(sent[3].time - now, 0, 350e-6, "departure of the next packet, s")


@both("a crowd, but a short queue: no wait")
def short_queue(wire, client, server):
    other, _ = wire.connect()
    begin_crowd(wire, client, server, 5e-3)
    port = other.getsockname()[1]
    # The other connection's path has no queue.
    wire.rule = lambda p: p.from_a and p.kind == DATA and p.sport != port
    wire.mark()
    other.send(pattern(3 * MSS[wire.version]))
    wire.run(50e-6)
    now = wire.seen[-1].time
    other.send(pattern(100))
    wire.run(5e-3)
    sent = [p for p in data(wire.from_a()) if p.sport == port]
    within(sent[3].time - now, 0, 60e-6, "departure of the next packet, s")


@case("connections to another destination learn nothing", Wire)
def other_destination(wire):
    one, server = wire.connect()
    report(wire, one, server)
    wire.version = 6
    other, _ = wire.connect(port=1001)
    equal(burst_after(wire, other), 0, "waits")
    wire.version = 4
    true(burst_after(wire, one) > 0, "the first connection waits")


@both("all packets are lost: the clocks end, TCP's timers continue")
def dead(wire, client, _server):
    wire.mark()
    wire.rule = lambda p: p.from_a
    client.send(pattern(10 * MSS[wire.version]))
    wire.run(1.0)
    sent = len(wire.from_a())
    # The RTO doubles from 4 ms: seven in a second.
    true(wire.a.netstat("TCPTimeouts") >= 5, f"RTOs: {wire.a.netstat('TCPTimeouts')}")
    true(sent < 80, f"{sent} packets in a second")


@both("the clocks of an outage do not prolong TCP_USER_TIMEOUT")
def user_timeout(wire, client, _server):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 100)
    wire.rule = lambda p: p.from_a
    client.send(pattern(10 * MSS[wire.version]))
    wire.run(95e-3)
    equal(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0, "error after 95 ms")
    wire.run(35e-3)
    equal(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ETIMEDOUT,
          "error after 130 ms")


@both("a waiting connection changes to reno, or closes: the data arrives")
def leaves(wire, client, server):
    for leave in (lambda: choose(client, "reno"),
                  lambda: client.shutdown(socket.SHUT_WR)):
        begin_crowd(wire, client, server, 5e-3)
        leave()
        wire.rule = None
        equal(len(wire.receive(server, 10 * MSS[wire.version])), 10 * MSS[wire.version],
              "bytes that arrive")


@both("a connection that leaves TLT in a long wait is not paced")
def leaves_its_pace(wire, client, server):
    begin_crowd(wire, client, server, 20e-3)
    true(max(gaps(wire)) > 1.2e-3, f"waits: {gaps(wire)}")
    choose(client, "reno")
    wire.rule = None
    wire.receive(server, 10 * MSS[wire.version])
    wire.transfer(client, server, 200_000)
    wire.run(20e-3)
    wire.mark()
    wire.transfer(client, server, 5 * MSS[wire.version])
    sent = data(wire.from_a())
    within(sent[-1].time - sent[0].time, 0, 5e-6, "departure of the last packet, s")


def slow_port(red, crowd):
    """16 flows through a port of 100 Mbit/s; returns (echoes that were late, packets that were found
    lost in the queue or on a path that seems to reorder)."""
    with Star([10_000] * 4 + [100], port=f"limit 1m red {red}", cc="tlt_reno",
              sysctls={"net.ipv4.tlt_crowd": crowd}.items()) as net:
        pump([net.flow(number % 4, 4) for number in range(16)], 60e-3)
        seen = [host.greenlane() for host in net.hosts[:4]]
        true(sum(one["LossByEcho"] for one in seen) > 20, "packets are lost")
        return (sum(one["EchoesLate"] for one in seen),
                sum(one["Reordered"] for one in seen) +
                sum(host.netstat("TCPDSACKRecv") for host in net.hosts[:4]))


@case("a slow port, tlt_crowd for its queue: no echo is late, and no packet is found lost in the queue",
      red=("100k", "300k"))
def slow_port_advised(red):
    equal(slow_port(red, 8000), (0, 0), "EchoesLate; Reordered, D-SACKs")


@case("a slow port, tlt_crowd by default: clocks overtake their echoes, and no packet is found lost in "
      "the queue", red=("100k", "300k"))
def slow_port_default(red):
    late, needless = slow_port(red, 150)
    true(late > 20, f"{late} late echoes")
    equal(needless, 0, "Reordered, D-SACKs")


@case("the namespace of a waiting connection is removed")
def namespace_goes():
    with Wire() as wire:
        client, server = wire.connect()
        begin_crowd(wire, client, server, 5e-3)


@case("a rate that the application requests in a crowd stays", Wire)
def own_rate(wire):
    client, server = wire.connect()
    begin_crowd(wire, client, server, 5e-3)
    # 10 MB/s: a packet in 145 us.
    client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 10_000_000)
    wire.rule = None
    wire.receive(server, 10 * MSS[4])
    wire.transfer(client, server, 100_000)
    wire.run(5e-3)
    wire.mark()
    wire.transfer(client, server, 8 * MSS[4])
    sent = [p for p in data(wire.from_a()) if p.kind != CLOCK]
    true(sent[-1].time - sent[0].time > 300e-6, "the burst is paced")
    equal([p.kind for p in sent].count(IMPORTANT), 1, "important packets of the burst")


if __name__ == "__main__":
    tap.main()
