#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Homa: unscheduled data, grants and their levels (net/ipv4/tcp_homa.c).

	a (client, sends) ---- wire (this program) ---- b (server, grants)

The wire's round trip is 200 us, much longer than the guest's system calls.
"""
import contextlib
import itertools
import random
import socket
import time

from lab import tap
from lab.codepoints import CREDIT, DSCP, REQUEST
from lab.net import modules
from lab.tap import case, equal, true, within
from lab.wire import xpass
from lab.wire.attack import Attacker
from lab.wire.hold import hold
from lab.wire.packet import SYN, data, option
from lab.wire.sockopt import GREENLANE_BDP, abort, cc_of, info
from lab.wire.sockopt import option as sockopt
from lab.wire.wire import MSS, Wire, pattern

RTT = 200e-6            # s
# At 1 Gbit/s: packets of 1538 bytes in that time, with a microsecond of the guest's, and two more.
WINDOW = (18, 20)
HOLD = 1.6e-3           # s: eight round trips, for which a closed window is held
UNSCHEDULED = tuple(DSCP[f"unscheduled{of}"] for of in ("", "_2", "_3"))
SCHEDULED = tuple(DSCP[f"scheduled{of}"] for of in ("", "_2", "_3", "_4"))


def wires(**options):
    """A wire with this round trip.  One connection is made before: the first takes longer."""
    wire = Wire(**{"cc": "homa", "tso": False, "rto_min": "200ms", "speed": 1000, **options})
    wire.connect(999)
    wire.mark()
    wire.delay = RTT / 2
    return wire


def small(wire, client, packets=1):
    """A message has up to this number of unscheduled packets."""
    sockopt(client, GREENLANE_BDP, packets * MSS[wire.version])


def homa(ns):
    """Homa's counters."""
    return {name[4:]: n for name, n in ns.greenlane().items() if name.startswith("Homa")}


def is_grant(p):
    """Does the packet permit data?  Requests have its codepoint, too."""
    return p.says == CREDIT and not xpass.second_word(p) & xpass.ACCEPTED


def grants(wire, port=None):
    """b's grants: (time, the last packet that it permits)."""
    return [(p.time, p.words[0]) for p in wire.from_b() if is_grant(p) and port in (None, p.sport)]


def requests(wire):
    """The words of a's requests."""
    return [p.words for p in wire.from_a() if p.says == REQUEST]


def quiet(wire, retried=0):
    """No timer of TCP has expired, and all data left by a grant or unscheduled."""
    for ns in (wire.a, wire.b):
        equal([ns.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              f"{ns.name}: RTOs, TLPs")
    equal([homa(wire.a)[name] for name in ("Uncredited", "CreditWasted", "RequestRetried")],
          [0, 0, retried], "Uncredited, CreditWasted, RequestRetried")


def lose(wire, of, which):
    """The wire loses these packets, numbered from 1, of those for which of() is true."""
    number = itertools.count(1)
    wire.rule = lambda p: bool(of(p)) and next(number) in which


def flying(wire, port=None):
    """The most packets that were permitted, or were unscheduled and in flight, and had not arrived at b,
    when it granted."""
    sent = [p for p in data(wire.from_a()) if port in (None, p.dport)]
    return max((last + sum(p.time <= at for p in sent if p.dscp in UNSCHEDULED)
                - sum(p.time + wire.delay <= at for p in sent) for at, last in grants(wire, port)),
               default=0)


@case("a message that fits leaves at once, without a request or a grant, in the band of its length",
      version=(4, 6), tso=(True, False),
      of=((1000, 0), (1400, 0), (1401, 1), (10_000, 1), (10_001, 2), (20_000, 2)))
def unscheduled(version, tso, of):
    size, band = of
    with wires(version=version, tso=tso) as wire:
        client, server = wire.connect()
        equal([cc_of(s) for s in (client, server)], ["homa", "homa"], "congestion control")
        wire.mark()
        payload = pattern(size)
        client.send(payload)
        equal(wire.receive(server, size, 5e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        sent = wire.from_a()
        # TCP sends the first packet of a long write before it has the rest.
        bands = [UNSCHEDULED.index(p.dscp) for p in sent]
        equal((bands, bands[-1]), (sorted(bands), band), "bands of a's packets, of the last one")
        true(bands[0] > 0 or band == 0, "of the first one")
        equal(sum(p.len for p in sent), size, "bytes, each once")
        equal(grants(wire), [], "grants")
        within(took, 0.5 * RTT, 0.65 * RTT, "time until the message is read, s")
        quiet(wire)


@case("homa_short and homa_medium: lengths, of messages that are written afterwards")
def lengths():
    with wires() as wire:
        wire.a.sysctl("net.ipv4.homa_short", 5000)
        wire.a.sysctl("net.ipv4.homa_medium", 6000)
        client, server = wire.connect()
        for size, band in ((5000, 0), (5001, 1), (6000, 1), (6001, 2)):
            wire.mark()
            true(wire.transfer(client, server, size), "arrives")
            equal(data(wire.from_a())[-1].dscp, UNSCHEDULED[band], f"DSCP of {size} bytes")
            wire.run(5e-3)


@case("packets without data are in the first band", version=(4, 6))
def control(version):
    with wires(version=version) as wire:
        wire.seen.clear()
        client, server = wire.connect()
        small(wire, client)
        true(wire.transfer(client, server, 100_000), "arrives")
        client.close()
        wire.run(5e-3)
        bare = [p for p in wire.seen if not p.len]
        true(any(p.flags & SYN for p in bare) and any(p.says == REQUEST for p in bare), "all kinds")
        equal({p.dscp for p in bare}, {DSCP["credit"]}, "DSCPs")


@case("the rest of a message is requested at once, and granted, as fast as the link carries it",
      version=(4, 6), tso=(True, False))
def rest(version, tso):
    packets, mss = 200, MSS[version]
    with wires(version=version, tso=tso) as wire:
        client, server = wire.connect()
        small(wire, client, 10)
        true(wire.transfer(client, server, 300_000), "the receive window grows")
        wire.run(5e-3)
        wire.mark()
        before = homa(wire.a)
        payload = pattern(packets * mss)
        equal(client.send(payload), len(payload), "sent")
        equal(wire.receive(server, len(payload), 0.1), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        after = homa(wire.a)
        equal([after[name] - before[name] for name in ("UnscheduledSent", "ScheduledSent",
                                                       "CreditReceived")],
              [10, packets - 10, packets - 10], "unscheduled packets, granted packets, grants")
        equal({p.dscp for p in data(wire.from_a())} - set(UNSCHEDULED), {SCHEDULED[3]},
              "band of granted data: the last one")
        numbers = [last for _, last in grants(wire)]
        equal(numbers, sorted(set(numbers)), "grants ascend")
        within(took, packets / WINDOW[1] * RTT, packets / WINDOW[0] * 1.2 * RTT, "time, s")
        quiet(wire)


@case("no more than a window is in flight; the arrival of data permits more", version=(4, 6))
def window(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        small(wire, client)
        wire.mark()
        true(wire.transfer(client, server, 400_000), "arrives")
        # One unscheduled packet is in flight at first.
        within(flying(wire), WINDOW[0] - 1, WINDOW[1], "packets permitted that have not arrived")


@case("unscheduled data counts: grants are for what the window has left", burst=(5, 12, 40))
def counted(burst):
    with wires() as wire:
        client, server = wire.connect()
        small(wire, client, burst)
        wire.mark()
        client.send(pattern(300_000))
        equal(len(wire.receive(server, 300_000, 0.1)), 300_000, "bytes")
        equal(homa(wire.a)["UnscheduledSent"], burst, "unscheduled packets")
        within(flying(wire), WINDOW[0] - 1, max(WINDOW[1], burst), "packets in flight")


def started(wire, count, size=60_000):
    """Connections whose receive window has grown, each with one unscheduled packet."""
    listener = wire.listen(1001)
    pairs = [wire.connect(1001, listener=listener) for _ in range(count)]
    for client, server in pairs:
        true(wire.transfer(client, server, size), "arrives")
        small(wire, client)
    wire.run(5e-3)
    wire.mark()
    return pairs


def of(client, packets):
    """Those of a's packets that belong to a connection."""
    return [p for p in packets if p.sport == client.getsockname()[1]]


@case("a shorter message has a higher level and ends first; the longer one goes on")
def shortest():
    with wires() as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.homa_overcommit", 1)
        (long, its), (short, other) = pairs = started(wire, 2, 300_000)
        sizes = 290_000, 50_000
        long.send(pattern(sizes[0]))
        wire.run(3 * RTT)
        short.send(pattern(sizes[1]))
        done = xpass.arrivals(wire, {its: sizes[0], other: sizes[1]}, 0.1)
        true(done[other] < done[its], "the short message ends first")
        levels = [{p.dscp for p in data(of(client, wire.from_a()))} & set(SCHEDULED)
                  for client, _ in pairs]
        equal(levels[1], {SCHEDULED[2]}, "band of the shorter message")
        true(SCHEDULED[3] in levels[0], f"bands of the longer message: {levels[0]}")
        quiet(wire)


@case("a message does not rise above its own data when a longer one begins")
def stays():
    with wires() as wire:
        (first, its), (longer, other) = started(wire, 2, 300_000)
        first.send(pattern(150_000))
        wire.run(2 * RTT)
        longer.send(pattern(290_000))
        xpass.arrivals(wire, {its: 150_000, other: 290_000}, 0.1)
        equal({p.dscp for p in data(of(first, wire.from_a()))} & set(SCHEDULED), {SCHEDULED[3]},
              "bands of the first message")
        equal(wire.a.netstat("TCPSACKReorder"), 0, "TCPSACKReorder")
        quiet(wire)


@case("senders that request and do not send: others have the link again after the hold",
      count=(4, 8))
def claimed(count):
    with wires() as wire:
        pairs = started(wire, count + 1)
        silent = {client.getsockname()[1] for client, _ in pairs[:count]}
        wire.rule = lambda p: p.from_a and bool(p.len) and p.sport in silent
        for client, _ in pairs[:count]:
            client.send(pattern(30_000))
        wire.run(RTT)
        began = time.monotonic()
        client, server = pairs[-1]
        true(wire.transfer(client, server, 290_000), "arrives")
        # 2.4 ms of the link.
        within(time.monotonic() - began, 2.4e-3, 2.4e-3 * 1.3 + 2 * HOLD, "time of 290 kB, s")
        wire.run(20e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 290_000), "arrives again")
        within(time.monotonic() - began, 2.4e-3, 4e-3, "time of 290 kB, s")


@case("a grant is lost: the next one permits its packets, too", version=(4, 6), which=(1, 4))
def lost_grant(version, which):
    with wires(version=version) as wire:
        client, server = wire.connect()
        small(wire, client)
        wire.mark()
        lose(wire, is_grant, (which,))
        true(wire.transfer(client, server, 200_000, 20e-3), "arrives within 20 ms")
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "RTOs")


@case("a request is lost: the sender repeats it, without a timer of TCP's", version=(4, 6))
def lost_request(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        small(wire, client)
        wire.mark()
        end = time.monotonic() + 2 * RTT
        wire.rule = lambda p: p.says == REQUEST and p.time < end
        true(wire.transfer(client, server, 30_000, 20 * RTT), "arrives")
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "RTOs")
        within(homa(wire.a)["RequestRetried"], 1, 1, "repeated requests")


@case("data is lost: grants repair it, and the window does not shrink for good",
      version=(4, 6), which=((3,), (1,), (5, 6, 7), tuple(range(20, 60, 3))))
def lost_data(version, which):
    with wires(version=version) as wire:
        client, server = wire.connect()
        small(wire, client)
        wire.mark()
        lose(wire, lambda p: p.from_a and p.len, which)
        true(wire.transfer(client, server, 400_000, 50e-3), "arrives within 50 ms")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
        wire.rule = None
        wire.run(5e-3)
        wire.mark()
        true(wire.transfer(client, server, 400_000), "arrives")
        within(flying(wire) - grants(wire)[0][1], -2, WINDOW[1], "packets in flight")
        within(time.monotonic() - wire.seen[0].time, 3.3e-3, 5.5e-3, "time of 400 kB, s")


@case("a process that owns the receiver's socket: the window is full when it has released it")
def owned():
    with wires() as wire:
        client, server = wire.connect()
        small(wire, client)
        holder = hold(server, 1)
        client.send(pattern(50_000))
        wire.run(2e-3)
        holder.join()
        equal(wire.receive(server, 50_000, 5e-3), pattern(50_000), "bytes")
        # The process owns the socket for more than four round trips.
        quiet(wire, retried=1)


@case("forged words of a request: the window stays a window", word=(0, 100, 4096, -100, -5000, 1 << 31))
def forged_word(word):
    with wires() as wire:
        client, server = wire.connect()
        small(wire, client)
        true(wire.transfer(client, server, 100_000), "arrives")
        wire.run(5e-3)
        sent = homa(wire.b)["CreditSent"]
        attacker = Attacker(wire, client, server)
        for _ in range(10):
            attacker.forge(True, REQUEST, option(REQUEST, sent, sent, 10_000, word))
        wire.run(0.5e-3)
        within(homa(wire.b)["CreditSent"] - sent, 0, WINDOW[1], "packets that it has permitted")
        wire.run(10e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 100_000), "arrives")
        within(time.monotonic() - began, 0, 10e-3, "time of 100 kB, s")


ALONE = 2.55e-3         # s: the time of 290 kB


def innocent(wire, pair, limit=1.5 * ALONE):
    """290 kB on another connection take no longer than alone."""
    began = time.monotonic()
    true(wire.transfer(*pair, 290_000, 5), "arrives")
    within(time.monotonic() - began, 0.9 * ALONE, limit, "time of 290 kB, s")


def only_one(wire):
    """One window of the link may be in flight."""
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.homa_overcommit", 1)


def drop(wire, pairs):
    """Drop the data of these connections, or all that a sends by them."""
    ports = {client.getsockname()[1] for client, _ in pairs}
    wire.rule = lambda p: p.from_a and p.sport in ports


@case("peers are reset in the middle of their messages: the windows are free at once")
def resets():
    with wires() as wire:
        *pairs, other = started(wire, 9)
        for client, _ in pairs:
            client.send(pattern(60_000))
        wire.run(0.35e-3)
        abort(*(client for client, _ in pairs))
        wire.run(20e-3)
        innocent(wire, other)


@case("peers die, and a process owns their sockets when the windows give up", owned=(False, True))
def dies(owned):
    with wires() as wire:
        only_one(wire)
        *pairs, other = started(wire, 3, 300_000)
        ports, granted = {client.getsockname()[1] for client, _ in pairs}, set()

        def rule(p):
            if is_grant(p) and p.dport in ports:
                granted.add(p.dport)
            return p.from_a and p.sport in granted
        wire.rule = rule
        for client, _ in pairs:
            client.send(pattern(20_000))
        wire.run(20e-3, lambda: len(granted) == 2)
        wire.run(1.2e-3)
        holders = [hold(server, 2) for _, server in pairs if owned]
        wire.run(6e-3)
        for holder in holders:
            holder.join()
        wire.run(50e-3)
        innocent(wire, other)


def attacks(wire, pairs):
    """[(attacker, credits that b has sent)] of idle connections, whose peers are silent from now on."""
    found = []
    for client, server in pairs:
        true(wire.transfer(client, server, 10), "arrives")
        found.append((Attacker(wire, client, server), info(server)["credits_sent"]))
    wire.run(50e-3)
    drop(wire, pairs)
    return found


@case("peers claim data in flight, and stop: the windows are free again")
def stops():
    with wires() as wire:
        *pairs, other = started(wire, 13)
        found = attacks(wire, pairs)
        for want, claim, rest in ((1, 6, 20e-3), (0, 7, 20e-3)):
            for attacker, sent in found:
                attacker.forge(True, REQUEST, option(REQUEST, sent, sent, want, claim))
            wire.run(rest)
        innocent(wire, other)


@case("peers that request each millisecond and send nothing lose their windows",
      word=(0, -100), again=(0, xpass.RETRY))
def storm(word, again):
    with wires() as wire:
        *pairs, (client, server) = started(wire, 5, 300_000)
        found = attacks(wire, pairs)
        end = time.monotonic() + 30e-3

        def request():
            for attacker, credits in found:
                attacker.forge(True, REQUEST, option(REQUEST, credits, credits, 18 | again, word))
        while time.monotonic() < end:
            request()
            wire.run(1e-3)
        begun, left, sent, due = time.monotonic(), 290_000, 0, 0

        def step():
            nonlocal left, sent, due
            if time.monotonic() >= due:
                due = time.monotonic() + 1e-3
                request()
            with contextlib.suppress(BlockingIOError):
                sent += client.send(pattern(290_000 - sent)) if sent < 290_000 else 0
            with contextlib.suppress(BlockingIOError):
                left -= len(server.recv(1 << 20))
            return not left
        true(wire.run(0.2, step), "arrives")
        within(time.monotonic() - begun, 0.9 * ALONE, 1.6 * ALONE, "time of 290 kB, s")


@case("a peer with a round trip of 40 ms dies: it has one window, and the near ones have theirs")
def far():
    with wires() as wire:
        (other,) = started(wire, 1, 300_000)
        listener = wire.listen(1002)
        wire.delay = 20e-3
        pair = wire.connect(1002, listener=listener)
        wire.run(0.3)
        true(wire.transfer(*pair, 300_000, 20), "arrives")
        small(wire, pair[0])
        wire.run(1)
        wire.delay = RTT / 2
        port = pair[0].getsockname()[1]
        wire.rule = lambda p: p.sport == port and bool(p.len)
        pair[0].send(pattern(290_000))
        wire.run(20e-3)
        innocent(wire, other)


@case("all grants of a message are lost: the next request counts", size=(15_000, 20_000))
def lost_grants(size):
    with wires() as wire:
        (pair,) = started(wire, 1, 300_000)
        seen = []

        def rule(p):
            if is_grant(p):
                seen.append(p)
            return bool(seen) and is_grant(p) and p.time - seen[0].time < 50e-6
        wire.rule = rule
        began = time.monotonic()
        true(wire.transfer(*pair, size), "arrives")
        within(time.monotonic() - began, 5 * RTT, 7 * RTT, "time, s")


@case("small records are granted beyond the link's time: others do not wait for it",
      cc=("homa", "xpass", "ndp"))
def records(cc):
    modules.load_for(cc, cc)
    with wires() as wire:
        other = wire.connect(1003, cc=cc, listener=wire.listen(1003, cc=cc))
        true(wire.transfer(*other, 300_000), "arrives")
        pairs = started(wire, 4)
        for client, _ in pairs:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.monotonic() + 50e-3

        def step():
            for client, server in pairs:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(40):
                        client.send(bytes(100), socket.MSG_EOR)
                with contextlib.suppress(BlockingIOError):
                    server.recv(1 << 20)
            return time.monotonic() > end
        wire.run(1, step)
        wire.run(20e-3)
        # One that is judged has no window: the link limits it.
        drop(wire, pairs[:1])
        pairs[0][0].send(pattern(25_000))
        wire.run(30e-3)
        wire.rule = None
        for _ in range(5):
            innocent(wire, other, 1.7 * ALONE)


@case("aeolus_homa: a probe ends the burst, and the receiver permits the repair of what was dropped",
      version=(4, 6), tso=(True, False), lost=((3,), (1,), (8, 9, 10), (10,), tuple(range(1, 11))))
def probed(version, tso, lost):
    packets = 10
    with wires(cc="aeolus_homa", version=version, tso=tso) as wire:
        client, server = wire.connect()
        equal([cc_of(end) for end in (client, server)], ["aeolus_homa"] * 2, "congestion control")
        wire.mark()
        lose(wire, lambda p: p.from_a and p.len, lost)
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        sent = data(wire.from_a())
        equal([len(sent), sum(p.dscp in SCHEDULED for p in sent)], [packets + len(lost), len(lost)],
              "packets, those that were granted")
        within(took, 1.5 * RTT, 1.8 * RTT, "time until the message is read, s")
        quiet(wire)


@case("aeolus_homa: the rest of a message is granted, and dropped packets of its burst, too",
      version=(4, 6), share=(0, 0.3, 1))
def probed_rest(version, share):
    chance = random.Random(1)
    with wires(cc="aeolus_homa", version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 300_000), "the receive window grows")
        wire.run(5e-3)
        small(wire, client, 15)
        wire.mark()
        wire.rule = lambda p: (p.from_a and p.dscp == UNSCHEDULED[0] and bool(p.len)
                               and chance.random() < share)
        payload = pattern(250_000)
        client.send(payload)
        equal(wire.receive(server, len(payload), 50e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "RTOs, TLPs")
        equal(homa(wire.a)["CreditWasted"], 0, "CreditWasted")
        # 2.1 ms of the link.
        within(took, 1.5e-3, 4e-3, "time until the message is read, s")


@case("aeolus_homa and homa are peers")
def peers():
    with wires(cc="aeolus_homa", cc_b="homa") as wire:
        client, server = wire.connect()
        equal([cc_of(end) for end in (client, server)], ["aeolus_homa", "homa"], "congestion control")
        wire.rule = lambda p: p.dscp == UNSCHEDULED[0] and bool(p.len) and p.seq % 3 == 0
        true(wire.transfer_both(client, server, 300_000), "both arrive")
        equal(wire.a.greenlane()["PeerWithout"], 0, "PeerWithout")


@case("both ends send at once", version=(4, 6), tso=(True, False))
def both(version, tso):
    with wires(version=version, tso=tso) as wire:
        ends = wire.connect()
        true(wire.transfer_both(*ends, 500_000), "both arrive")
        equal([ns.netstat("TCPTimeouts") for ns in (wire.a, wire.b)], [0, 0], "RTOs")


@case("a peer without homa: reno", cc_b=("reno", "ndp", "xpass"))
def without(cc_b):
    with wires(cc_b=cc_b) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 100_000), "arrives")
        equal([cc_of(client), wire.a.greenlane()["PeerWithout"] > 0], ["homa-reno", True],
              "congestion control, PeerWithout")


if __name__ == "__main__":
    tap.main()
