#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""How DCQCN repairs losses (net.ipv4.dcqcn_recovery): SACK, go-back-N, IRN.

	a (client, sends) ---- wire (this program: loses) ---- b (server)

The links have 1 Gbit/s, so a packet takes 12 us, and the round trip of 100 us is 8 packets.
"""
import functools
import itertools
import socket

from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.tap import case, equal, main, true, using, within
from lab.wire.dart import RATE, dart
from lab.wire.packet import SYN, data
from lab.wire.sockopt import cc_of, choose, cwnd, refused
from lab.wire.wire import MSS, connected, pattern

SACK, GO_BACK_N, IRN = 0, 1, 2
TICK = 10e-3            # at HZ 100, the longest tick of a guest
PACKET = 1538           # bytes on the link


def repairing(mode, **options):
    """A wire whose hosts repair in this mode, without tail loss probes."""
    wire = dart(**{"cc": "dcqcn", **options})
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_recovery", mode)
        ns.sysctl("net.ipv4.tcp_early_retrans", 0)
    return wire


everywhere = functools.partial(using, connected, of=repairing, version=(4, 6), tso=(True, False))


class Losing:
    """Lose data from one end: the first `times` packets with one of `count` segments."""

    def __init__(self, wire, number, times=1, from_a=True, count=1):
        self.size, self.times = MSS[wire.version], times
        self.numbers = range(number, number + count)
        self.from_a, self.base, self.lost = from_a, None, 0
        wire.rule = self

    def segments(self, p):
        """Numbers of the segments in a packet, from 0."""
        first = ((p.seq - self.base) & 0xffffffff) // self.size
        return range(first, first + -(-p.len // self.size))

    def __call__(self, p):
        if p.from_a != self.from_a or not p.len:
            return False
        self.base = p.seq if self.base is None else self.base
        lost = any(n in self.numbers for n in self.segments(p)) and self.lost < self.times
        self.lost += lost
        return lost


def copies(losing, packets):
    """How often each segment was sent, by its number."""
    sent = {}
    for p in packets:
        for n in losing.segments(p):
            sent[n] = sent.get(n, 0) + 1
    return sent


def repeated(packets):
    """The packets that were sent before, in their order."""
    return [p for i, p in enumerate(packets) if any(q.seq == p.seq for q in packets[:i])]


def after_nack(losing, packets):
    """The numbers of the segments from the first packet that was sent again on."""
    return [n for p in packets[packets.index(repeated(packets)[0]):] for n in losing.segments(p)]


@everywhere(mode=GO_BACK_N, cc=("dcqcn", "dart"))(
    "go-back-N: everything from the lost packet is sent again, once and in order")
def goes_back(wire, client, server):
    wire.mark()
    losing = Losing(wire, 20)
    true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
    sent = data(wire.from_a())
    again = repeated(sent)
    # The lost packet may be a segment of a burst, which is lost as a whole.
    first = losing.segments(again[0])[0]
    equal(after_nack(losing, sent), list(range(first, 60)), "segments after the NACK")
    true(len(again) >= 4, f"packets that are sent again: {len(again)}")
    true(max(copies(losing, sent).values()) == 2, "no segment is sent three times")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@case("go-back-N at 40 Gbit/s: a packet that left in the microsecond of the NACK is sent again, too",
      connected, of=repairing, mode=GO_BACK_N, cc=("dcqcn", "tlt_dcqcn"), tso=False, speed=40_000)
def in_that_microsecond(wire, client, server):
    wire.a.sysctl("net.ipv4.dcqcn_rate", 40_000)
    true(wire.transfer(client, server, 400 * MSS[4]), "the RTT is known")
    for number in range(20, 40):
        wire.run(1e-3)
        wire.mark()
        losing = Losing(wire, number)
        true(wire.transfer(client, server, 400 * MSS[4]), "arrives")
        sent = data(wire.from_a())
        equal(after_nack(losing, sent), list(range(number, 400)), "segments after the NACK")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@everywhere(mode=GO_BACK_N)("go-back-N: the receiver has discarded all data behind the lost packet")
def discards(wire, client, server):
    wire.mark()
    losing = Losing(wire, 20)
    true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
    arrived, expected = [], None
    for p in sorted((p for p in wire.seen if not getattr(p, "dropped", False)),
                    key=lambda p: p.time + (wire.delay if p.from_a else 0)):
        if p.from_a and p.len:
            expected = p.seq if expected is None else expected
            expected = p.end if p.seq == expected else expected
            arrived.append(p)
        elif not p.from_a and expected is not None:
            true((expected - p.ack) & 0xffffffff < 1 << 31,
                 f"ACKs confirm no discarded data: {p} with {expected} expected")
    true(losing.lost == 1 and len(arrived) > 60 * (not wire.tso), "a packet is lost")


@case("without SACK: duplicate ACKs are NACKs, and TCP's counters stay consistent", repairing,
      mode=(GO_BACK_N, IRN), cc=("dcqcn", "tlt_dcqcn", "dart"), tso=(True, False))
def without_sack(wire):
    # An inconsistency is a WARN, for which the guest fails.
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_sack", 0)
    client, server = wire.connect()
    numbers = itertools.count()
    wire.rule = lambda p: bool(p.len and next(numbers) % 15 == 5)
    true(wire.transfer_both(client, server, 200_000, 20), "arrives both ways")


@case("go-back-N: after a timeout all packets are sent again in order, before new data", connected,
      of=repairing, mode=GO_BACK_N, tso=False, rto_min=20)
def after_timeout(wire, client, server):
    true(wire.transfer(client, server, 100 * MSS[4]), "the RTT is known")
    wire.run(1)
    wire.mark()
    wire.rule = lambda p: True
    client.send(pattern(400 * MSS[4]))
    wire.run(5e-3)
    lost = data(wire.from_a())
    wire.rule = None
    equal(len(wire.receive(server, 400 * MSS[4], 3)), 400 * MSS[4], "arrives")
    again = data(wire.from_a())[len(lost):]
    equal([((p.seq - lost[0].seq) & 0xffffffff) // MSS[4] for p in again], list(range(400)),
          "segments after the timeout")
    equal(wire.a.netstat("TCPTimeouts"), 1, "timeouts")


@everywhere(mode=SACK)("SACK: only the lost packet is sent again")
def sack(wire, client, server):
    wire.mark()
    losing = Losing(wire, 20)
    true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
    again = [n for n, count in copies(losing, data(wire.from_a())).items() if count > 1]
    true(20 in again and len(again) <= 8, f"segments that are sent again: {again}")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@case("go-back-N: a second NACK for the same packet is ignored, so the timer repairs",
      connected, of=repairing, mode=GO_BACK_N, version=(4, 6), tso=False)
def twice(wire, client, server):
    wire.mark()
    losing = Losing(wire, 20, times=2)
    true(wire.transfer(client, server, 60 * MSS[wire.version]), "arrives")
    equal(losing.lost, 2, "losses")
    equal(wire.a.netstat("TCPTimeouts"), 1, "timeouts")
    equal(copies(losing, data(wire.from_a()))[20], 3, "copies of the packet")


@case("go-back-N: a timeout repeats also what left in the last round trip", connected,
      of=repairing, mode=GO_BACK_N, rto_min=4, tso=False)
def timeout(wire, client, server):
    wire.delay = 5e-3
    true(wire.transfer(client, server, 10_000), "arrives")
    wire.run(0.1)
    before = wire.a.netstat("TCPTimeouts")
    wire.mark()
    Losing(wire, 20, times=2)
    written = client.send(pattern(100 * MSS[4]))
    while wire.a.netstat("TCPTimeouts") == before and written < 200 * MSS[4]:
        written += client.send(pattern(MSS[4]))
        wire.run(1e-3)
    equal(len(wire.receive(server, written, 5)), written, "arrives")
    sent = data(wire.from_a())
    again = max(i for i, p in enumerate(sent) if p.seq == sent[20].seq)
    true(sent[again].time - sent[again - 1].time < 10e-3, "a packet left less than an RTT before")
    equal(wire.a.netstat("TCPTimeouts") - before, 1, "timeouts")
    after = [p.seq - sent[again].seq & 0xffffffff for p in sent[again:]]
    equal(after, sorted(set(after)), "sequence numbers after the timeout")


@case("go-back-N: a packet that is late, after the sender went back: no timer expires",
      connected, of=repairing, mode=GO_BACK_N, version=(4, 6), tso=False)
def late(wire, client, server):
    wire.delay = 5e-3       # time stamps count milliseconds
    true(wire.transfer(client, server, 10_000), "arrives")
    wire.mark()
    losing = Losing(wire, 3, times=0)

    def rule(p):
        losing(p)
        if p.from_a and p.len and 3 in losing.segments(p) and not losing.lost:
            p.late, losing.lost = 4e-3, 1
        return False
    wire.rule = rule
    payload = pattern(24 * MSS[wire.version])
    client.send(payload)
    wire.run(3e-3)
    # A packet in 1.2 ms: the late one is acknowledged before all others have left again.
    wire.a.sysctl("net.ipv4.dcqcn_rate", RATE // 100)
    equal(wire.receive(server, len(payload)), payload, "data")
    equal(losing.lost, 1, "late packets")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@everywhere(mode=GO_BACK_N, cc="tlt_dcqcn")(
    "TLT with go-back-N: the first and the last packet of a round are important")
def edges(wire, client, server):
    wire.a.sysctl("net.ipv4.dcqcn_burst", 100)
    wire.mark()
    # A whole burst is lost, then a packet so late that the last one arrives behind it.
    for number, count in ((18, 8), (37, 1)):
        wire.mark()
        losing = Losing(wire, number, count, count=count)
        true(wire.transfer(client, server, 40 * MSS[wire.version]), "arrives")
        wire.run(1e-3)
        sent = data(wire.from_a())
        again = repeated(sent)
        equal((again[0].kind, len(losing.segments(again[0]))), (IMPORTANT, 1),
              "kind and segments of the first packet that is sent again")
        equal(sent[-1].kind, IMPORTANT, "kind of the last packet")
        true(count > 1 or max(copies(losing, sent).values()) == 2, "two copies of a packet")
        equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@everywhere(mode=(GO_BACK_N, IRN), cc="tlt_dcqcn")(
    "TLT: unimportant packets are lost in three rounds, and no timer expires")
def red_lost(wire, client, server):
    for count in (1, 2, 10, 60, 200):
        wire.mark()
        seen = {}

        def rule(p):
            if not p.from_a or not p.len or p.kind != DATA:
                return False
            seen[p.seq] = seen.get(p.seq, 0) + 1
            return seen[p.seq] <= 3
        wire.rule = rule
        true(wire.transfer(client, server, count * MSS[wire.version], 0.19), f"{count} arrive")
        wire.rule = None
        wire.run(1e-3)
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@everywhere(mode=(SACK, GO_BACK_N, IRN))("every tenth packet of both directions is lost: all arrives")
def duplex(wire, client, server):
    count = {True: 0, False: 0}

    def rule(p):
        count[p.from_a] += bool(p.len)
        return p.len and count[p.from_a] % 10 == 5
    wire.rule = rule
    true(wire.transfer_both(client, server, 200_000, 60), "arrives")


@case("TLT with IRN: the window becomes smaller than the data in flight: a clock, unless the last"
      " packet that left is important", connected,
      of=repairing, mode=IRN, cc="tlt_dcqcn")
def shrinks(wire, client, server):
    true(wire.transfer(client, server, 10_000), "arrives")
    wire.mark()
    acks = []

    def rule(p):
        if p.from_a:
            return False
        acks.append(p)
        return len(acks) > 1
    wire.rule = rule
    client.send(pattern(100_000))
    wire.run(80e-6)                 # the first packets are in flight
    true([p.kind for p in wire.from_a()].count(DATA) >= 4, "four unimportant packets at least")
    wire.a.sysctl("net.ipv4.dcqcn_rate", RATE // 4)
    wire.run(100e-6)
    true(wire.from_a()[-1].kind in (CLOCK, IMPORTANT), "the last packet is a clock or important")


def most_in_flight(wire, client):
    """The maximum number of segments that a has in flight when the path is ten times as long as at
    the handshake."""
    wire.a.sysctl("net.ipv4.dcqcn_rto_high", 500_000)
    wire.delay *= 10
    wire.mark()
    client.send(pattern(300_000))
    wire.run(10e-3)
    acked, most = wire.from_a()[0].seq, 0
    for p in wire.seen:
        if p.from_a and p.len:
            most = max(most, -(-((p.end - acked) & 0xffffffff) // MSS[wire.version]))
        elif not p.from_a:
            acked = p.ack
    return most


@case("IRN: at most one BDP of the shortest round trip is in flight", version=(4, 6),
      tso=(True, False))
def window(version, tso):
    seen = {}
    for mode in (SACK, IRN):
        with connected(of=repairing, mode=mode, version=version, tso=tso) as (wire, client, _):
            seen[mode] = most_in_flight(wire, client)
    # The round trip of the handshake is 100 us and a few us more.
    bdp = RATE * 125_000 * 100e-6 / PACKET
    within(seen[IRN], bdp - 1, 1.15 * bdp, "segments in flight")
    true(seen[SACK] > 3 * bdp, f"with SACK alone: {seen[SACK]}")


def first_timeout(wire, client, writes):
    """Lose all packets of some writes, (s after the one before, segments), and return the time
    between the last one and the first retransmission."""
    wire.mark()
    wire.rule = lambda p: p.from_a and p.len
    for pause, segments in writes:
        wire.run(pause)
        client.send(bytes(segments * MSS[wire.version]))
    wire.run(1e-3)
    sent = data(wire.from_a())
    last = sent[-1].time
    wire.run(1.0, lambda: len(data(wire.from_a())) > len(sent))
    return data(wire.from_a())[len(sent)].time - last


@case("IRN: RTO_low with two packets in flight, RTO_high with three, constant and for any RTT",
      version=(4, 6), writes=(((0, 1),), ((0, 2),), ((0, 3),), ((0, 8),), ((0, 1), (3e-3, 5))))
def two_rtos(version, writes):
    with connected(of=repairing, mode=IRN, version=version) as (wire, client, server):
        wire.a.sysctl("net.ipv4.dcqcn_rto_low", 30_000)
        wire.a.sysctl("net.ipv4.dcqcn_rto_high", 90_000)
        wire.delay = 5e-3       # an RTT of 10 ms does not add to them
        wire.transfer(client, server, 3 * MSS[version])
        wire.run(0.1)
        low = sum(segments for _, segments in writes) < 3
        expected = 30e-3 if low else 90e-3
        within(first_timeout(wire, client, writes), expected - 1e-3, expected + 2 * TICK,
               "time to the first retransmission, s")


@case("a change of the sysctl applies to new connections", repairing, mode=SACK, tso=False)
def live(wire):
    old = wire.connect()
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_recovery", GO_BACK_N)
    new = wire.connect(1001)
    for (client, server), expected in ((old, False), (new, True)):
        wire.mark()
        losing = Losing(wire, 20)
        true(wire.transfer(client, server, 60 * MSS[4]), "arrives")
        again = [n for n, count in copies(losing, data(wire.from_a())).items() if count > 1]
        equal(len(again) > 1, expected, f"more than the lost packet is sent again: {again}")
    # Leave and select dcqcn again in the middle of a recovery.
    client, server = new
    losing = Losing(wire, 20)
    client.send(pattern(60 * MSS[4]))
    wire.run(400e-6)
    choose(client, "reno")
    wire.run(100e-6)
    choose(client, "dcqcn")
    equal(len(wire.receive(server, 60 * MSS[4], 3.0)), 60 * MSS[4], "bytes that arrive")


@case("a peer that repairs by SACK: all arrives, and it keeps data behind a loss",
      mode=(GO_BACK_N, IRN), version=(4, 6), tso=False)
def peer(mode, version, tso):
    with repairing(mode, cc="cubic", cc_b="dcqcn", version=version, tso=tso) as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        client, server = wire.connect()
        equal(cc_of(server), "dcqcn", "congestion control")
        wire.mark()
        losing = Losing(wire, 20, from_a=False)
        true(wire.transfer(server, client, 60 * MSS[version]), "arrives at the peer")
        again = [n for n, count in copies(losing, data(wire.from_b())).items() if count > 1]
        equal(again[0] if again else None, 20, "first segment that is sent again")
        equal(wire.b.netstat("TCPTimeouts"), 0, "timeouts")
        Losing(wire, 20)
        true(wire.transfer(client, server, 60 * MSS[version], 2), "arrives from the peer")


@case("sysctls: defaults and limits", repairing, mode=SACK)
def sysctls(wire):
    for name, default, bad in (("recovery", 0, 3), ("rto_low", 100, 0), ("rto_high", 320, 1000001)):
        key = f"net.ipv4.dcqcn_{name}"
        equal(int(wire.a.sysctl(key)), default, key)
        refused(key, 22, wire.a.sysctl, key, bad)
        equal(int(wire.a.sysctl(key)), default, f"{key} afterwards")


@case("IRN: without an RTT the window is dcqcn's own", repairing, mode=IRN, tso=False)
def first_rtt(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_rate", 10_000)
    listener = wire.listen(TCP_FASTOPEN=100)
    client = wire.socket(wire.a)
    try:
        client.sendto(b"f" * 500, socket.MSG_FASTOPEN, (wire.address(wire.b), 1000))
    except BlockingIOError:
        pass
    wire.run(60e-6)
    server = wire.accept(listener)
    equal(cc_of(server), "dcqcn", "the server's congestion control")
    equal(cwnd(server), 64, "window, packets")


def rto(s):
    """The RTO of a socket, s."""
    return int.from_bytes(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 12)[8:], "little") / 1e6


@case("IRN: the RTO is longer than the path, and TCP's own after another congestion control",
      to=("cubic", "dctcp", "reno"))
def leaves(to):
    with repairing(IRN, tso=False, rto_min=200) as wire:
        wire.delay = 20e-3
        client, server = wire.connect()
        true(wire.transfer(client, server, 50 * MSS[4], 5), "arrives")
        equal((wire.a.netstat("TCPTimeouts"), len(data(wire.from_a()))), (0, 50), "timeouts, packets")
        within(rto(client), 40e-3, 40e-3 + 2 * TICK, "RTO, s")
        choose(client, to)
        within(rto(client), 200e-3, 400e-3, "RTO of the other one, s")


@case("IRN, selected while SYNs are lost: TCP repeats them after its own time", version=(4, 6))
def lost_syns(version):
    with repairing(IRN, cc="cubic", version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        client = wire.socket(wire.a)
        wire.mark()
        wire.rule = lambda p: p.flags & SYN
        wire.begin(client, wire.b)
        wire.run(1e-3)
        choose(client, "dcqcn")
        wire.run(5)
        syns = [p.time for p in wire.seen if p.flags & SYN]
        within(len(syns), 3, 6, "SYNs")
        within(min(b - a for a, b in zip(syns, syns[1:])), 0.9, 3.1, "time between two, s")


@case("IRN: requests and responses without a loss have no timeout", mode=(SACK, GO_BACK_N, IRN),
      cc=("dcqcn", "tlt_dcqcn"), period=(5e-3, 15e-3))
def answers(mode, cc, period):
    with repairing(mode, cc=cc) as wire:
        client, server = wire.connect()
        wire.mark()
        for _ in range(40):
            true(wire.transfer(client, server, 500) and wire.transfer(server, client, 500), "arrives")
            wire.run(period)
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "timeouts")
        equal(len(data(wire.seen)), 80, "packets of data")


if __name__ == "__main__":
    main()
