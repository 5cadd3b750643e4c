#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Windows of receivers, of homa and ndp: lost data, lost credits, peers that die, forge or stop.

	a (client, sends) ---- wire (this program) ---- b (server, grants or pulls)
"""
import contextlib
import socket
import time

from lab import tap
from lab.codepoints import CREDIT, REQUEST
from lab.net import modules
from lab.tap import case, equal, true, using, within
from lab.wire import xpass
from lab.wire.attack import OFF_PATH, Attacker
from lab.wire.hold import hold
from lab.wire.packet import data, option
from lab.wire.sockopt import abort, choose, info, ssthresh
from lab.wire.window import (ALONE, HOLD, RTT, WINDOW, drop, innocent, is_grant, lose, small,
                             started, wires)
from lab.wire.wire import MSS, Wire, pattern

CCS = ("homa", "ndp")


def counters(ns, cc):
    """The counters of the transport."""
    return {name[len(cc):]: n for name, n in ns.greenlane().items()
            if name.startswith(cc.capitalize())}


def beyond(packets):
    """The fourth word of a request whose sender has this number of packets beyond its sequence
    number in flight, and has received no report."""
    return (packets & 0xffff) << 16


def overcommit_of(wire, cc, windows=1):
    """This number of windows of the link may be in flight."""
    for ns in (wire.a, wire.b):
        ns.sysctl(f"net.ipv4.{cc}_overcommit", windows)


def silence(wire, pairs):
    """The senders of these connections send nothing but what they request."""
    ports = {client.getsockname()[1] for client, _ in pairs}
    wire.rule = lambda p: p.from_a and bool(p.len) and p.sport in ports


def permitted(wire, cc, pair, rtt):
    """Number of packets that a receiver permits a silent sender in 2.5 round trips of `rtt`."""
    silence(wire, [pair])
    before = counters(wire.b, cc)["CreditSent"]
    pair[0].send(pattern(200_000))
    # The link would carry 40 packets in 2.5 RTT.
    wire.run(2.5 * rtt)
    return counters(wire.b, cc)["CreditSent"] - before


def within_a_window(cc, packets):
    """Fail unless this is the window of a sender of this cc."""
    # Alone on the link it may have four packets more, and those of 10 us.
    slack = 4 if cc == "ndp" else 0
    within(packets, WINDOW[0] - 1 + slack, WINDOW[1] + slack, "packets that it has permitted")


@case("a sender that requests and does not send: a window is permitted, not its message", cc=CCS,
      version=(4, 6))
def one_window(cc, version):
    with wires(cc, version=version) as wire:
        within_a_window(cc, permitted(wire, cc, *started(wire, 1, 300_000), RTT))


@case("data from off the path opens no window", cc=CCS, version=(4, 6))
def off_path(cc, version):
    with wires(cc, version=version) as wire:
        (pair,) = started(wire, 1, 300_000)
        permitted(wire, cc, pair, RTT)
        attacker, before = Attacker(wire, *pair), counters(wire.b, cc)["CreditSent"]
        for wrong in OFF_PATH:
            for _ in range(5):
                attacker.forge(True, 0, payload=bytes(100), **wrong)
        wire.run(RTT)
        equal(counters(wire.b, cc)["CreditSent"] - before, 0, "packets that it permits for them")


@case("a burst on a slow link: the bytes that it carries in a round trip", cc=CCS, mbit=(7, 15))
def slow_link(cc, mbit):
    with wires(cc, speed=mbit) as wire:
        wire.delay = 50e-3
        wire.listen()
        client = wire.socket(wire.a)
        wire.begin(client, wire.b)
        wire.run(0.3)
        within(info(client)["bdp"] / (mbit * 1e6 / 8), 0.1, 0.101, "burst, s of the link")


@case("the handshake was late: the window covers the minimum RTT that the sender measures", cc=CCS)
def late_handshake(cc):
    with wires(cc) as wire:
        wire.delay = 4 * RTT
        pair = wire.connect()
        wire.delay = RTT / 2
        true(wire.transfer(*pair, 300_000), "arrives")
        wire.run(5e-3)
        small(wire, pair[0])
        within_a_window(cc, permitted(wire, cc, pair, RTT))


@case("a long queue: the sender's minimum RTT becomes longer, and the window does not", cc=CCS)
def long_queue(cc):
    with wires(cc) as wire:
        wire.a.sysctl("net.ipv4.tcp_min_rtt_wlen", 1)
        pair = wire.connect()
        wire.delay = 2 * RTT
        for _ in range(25):
            true(wire.transfer(*pair, 100_000), "arrives")
            wire.run(0.1)
        small(wire, pair[0])
        within_a_window(cc, permitted(wire, cc, pair, 4 * RTT))


@case("senders that request and do not send, together: the limit of the link", cc=CCS,
      overcommit=(1, 2, 3))
def limit(cc, overcommit):
    with wires(cc) as wire:
        overcommit_of(wire, cc, overcommit)
        pairs = started(wire, 6, 300_000)
        silence(wire, pairs)
        before = counters(wire.b, cc)["CreditSent"]
        for client, _ in pairs:
            client.send(pattern(100_000))
        wire.run(0.9 * HOLD)
        # The last one may have a window when the limit is not quite reached.
        within(counters(wire.b, cc)["CreditSent"] - before, overcommit * (WINDOW[0] - 1),
               (overcommit + (cc == "homa")) * WINDOW[1], "packets that it has permitted")


@case("senders that request and do not send: others have the link again after the hold", cc=CCS,
      count=(4, 8), idle=(0, 3.2))
def claimed(cc, count, idle):
    with wires(cc) as wire:
        pairs = started(wire, count + 1)
        # The low half of the time at which data moved last wraps.
        wire.run(idle)
        silence(wire, pairs[:count])
        for client, _ in pairs[:count]:
            client.send(pattern(30_000))
        wire.run(RTT)
        began = time.monotonic()
        client, server = pairs[-1]
        true(wire.transfer(client, server, 290_000), "arrives")
        # 2.4 ms of the link.  The end of a stall finds each silent sender, and others share the link
        # with their single pulls.  ndp's stalls are longer, by an eighth.
        stall = HOLD if cc == "homa" else HOLD * 9 / 8
        within(time.monotonic() - began, 2.4e-3, 2.4e-3 * 1.3 + 2 * stall, "time of 290 kB, s")
        wire.run(20e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 290_000), "arrives again")
        within(time.monotonic() - began, 2.4e-3, 4e-3, "time of 290 kB, s")


@case("peers die in the midst of their windows: others have the link again after the hold", cc=CCS)
def half_open(cc):
    with wires(cc) as wire:
        overcommit_of(wire, cc)
        first, second, other = started(wire, 3, 300_000)
        left = {pair[0].getsockname()[1]: 3 for pair in (first, second)}

        def rule(p):
            if not (p.from_a and p.len and p.sport in left):
                return False
            left[p.sport] -= 1
            return left[p.sport] < 0
        wire.rule = rule
        first[0].send(pattern(290_000))
        second[0].send(pattern(100_000))
        wire.run(2.7 * RTT)
        drop(wire, (first, second))
        wire.run(20 * HOLD)
        innocent(wire, other)


@case("data is lost: grants repair it, and the window does not shrink for good", cc=CCS,
      version=(4, 6), which=((3,), (1,), (5, 6, 7), tuple(range(20, 60, 3))))
def lost_data(cc, version, which):
    with wires(cc, version=version) as wire:
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
        within(time.monotonic() - wire.seen[0].time, 3.3e-3, 5.5e-3, "time of 400 kB, s")


@case("another congestion control after a loss: it begins in slow start", cc=CCS)
def slow_start(cc):
    with wires(cc) as wire:
        client, server = wire.connect()
        lose(wire, lambda p: p.from_a and p.len, (3,))
        true(wire.transfer(client, server, 100_000, 50e-3), "arrives")
        wire.run(5e-3)
        choose(client, "cubic")
        within(ssthresh(client), 1 << 30, 1 << 31, "slow start threshold, packets")


@case("a process that owns the receiver's socket: the window is full when it has released it",
      cc=CCS)
def owned(cc):
    with wires(cc) as wire:
        client, server = wire.connect()
        small(wire, client)
        holder = hold(server, 1)
        client.send(pattern(50_000))
        wire.run(2e-3)
        holder.join()
        equal(wire.receive(server, 50_000, 5e-3), pattern(50_000), "bytes")
        # The process owns the socket for more than four round trips.
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")
        equal([counters(wire.a, cc)[name] for name in ("Uncredited", "CreditWasted")], [0, 0],
              "Uncredited, CreditWasted")


@case("forged words of a request: the window stays a window", cc=CCS,
      word=(0, 100, 4096, -100, -5000, 1 << 15), rtt=(0, 1023))
def forged_word(cc, word, rtt):
    with wires(cc) as wire:
        client, server = wire.connect()
        small(wire, client)
        true(wire.transfer(client, server, 100_000), "arrives")
        wire.run(5e-3)
        sent = counters(wire.b, cc)["CreditSent"]
        attacker = Attacker(wire, client, server)
        for _ in range(10):
            attacker.forge(True, REQUEST, option(REQUEST, sent, sent, rtt << 21 | 10_000, beyond(word)))
        wire.run(0.5e-3)
        within(counters(wire.b, cc)["CreditSent"] - sent, 0, WINDOW[1], "packets that it has permitted")
        wire.run(10e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 100_000), "arrives")
        within(time.monotonic() - began, 0, 10e-3, "time of 100 kB, s")


@case("a sender rests with credits on their way: others have its part of the link at once", cc=CCS)
def rests(cc):
    with wires(cc) as wire:
        overcommit_of(wire, cc)
        (other,) = started(wire, 1, 300_000)
        client, server = wire.connect(1002, listener=wire.listen(1002), SO_SNDBUF=50_000)
        end = time.monotonic() + 3e-3

        def step():
            with contextlib.suppress(BlockingIOError):
                if time.monotonic() < end:
                    client.send(pattern(200_000))
            with contextlib.suppress(BlockingIOError):
                server.recv(1 << 20)
            return time.monotonic() > end and not info(client)["credits_wanted"]
        wire.run(1.0, step)
        innocent(wire, other, 1.12 * ALONE)


def attacks(wire, pairs):
    """[(attacker, credits that b has sent)] of idle connections, whose peers are silent from now on."""
    found = []
    for client, server in pairs:
        true(wire.transfer(client, server, 10), "arrives")
        found.append((Attacker(wire, client, server), info(server)["credits_sent"]))
    wire.run(50e-3)
    drop(wire, pairs)
    return found


def die_behind(wire, pairs, size):
    """The peers of these connections request data, and die while it is permitted."""
    silence(wire, pairs)
    for client, _ in pairs:
        client.send(pattern(size))
    wire.run(0.6 * RTT)
    drop(wire, pairs)


def twice(wire, pair, limit):
    """2.9 MB on another connection, twice: at first up to `limit` times as long as alone."""
    for most in (limit, 1.5):
        began = time.monotonic()
        true(wire.transfer(*pair, 10 * 290_000, 5), "arrives")
        within(time.monotonic() - began, 8 * ALONE, most * 10 * ALONE, "time of 2.9 MB, s")


def at_distance(wire, rtt, count):
    """Connections over another round trip than the first ones'."""
    return started(wire, count, 300_000, rtt=rtt, port=1002)


@case("two peers die: others, which keep the link busy, have their parts before long", cc=CCS,
      rtt=(200e-6, 260e-6, 2e-3))
def two_die(cc, rtt):
    with wires(cc) as wire:
        (other,) = started(wire, 1, 300_000)
        die_behind(wire, at_distance(wire, rtt, 2), 290_000)
        twice(wire, other, 3)


@case("two peers request less than a window, and die", cc=CCS, want=(14, 17))
def less(cc, want):
    with wires(cc) as wire:
        *pairs, other = started(wire, 3, 300_000)
        for attacker, sent in attacks(wire, pairs):
            attacker.forge(True, REQUEST, option(REQUEST, sent, sent, want, 0))
        twice(wire, other, 2)


@case("four peers of ndp die beside another transport, with one limit of the link",
      cc=("homa", "xpass"), rtt=(200e-6, 40e-3))
def beside(cc, rtt):
    modules.load_for(cc, cc)
    with wires("ndp") as wire:
        for one in {"ndp", cc} & set(CCS):
            overcommit_of(wire, one, 2)
        other = wire.connect(1003, cc=cc, listener=wire.listen(1003, cc=cc))
        true(wire.transfer(*other, 300_000), "arrives")
        die_behind(wire, at_distance(wire, rtt, 4), 290_000)
        wire.run(20 * 12.3e-6)
        for limit in (5, 3, 2 if cc == "homa" else 1.5):
            innocent(wire, other, limit * ALONE)


@case("one flow over links in a row, where full packets take longer than the handshake's",
      rtt=(10e-6, 50e-6), links=(0, 4), speed=(1000, 10_000))
def in_a_row(rtt, links, speed):
    with Wire(cc="ndp", tso=False, rto_min=200, speed=speed) as wire:
        wire.delay = rtt / 2
        pair = wire.connect()

        def rule(p):
            p.late = links * p.len * 8e-6 / speed if p.len else 0
            return False
        wire.rule = rule
        true(wire.transfer(*pair, 300_000), "arrives")
        wire.run(5e-3)
        began = time.monotonic()
        true(wire.transfer(*pair, 2_900_000), "arrives")
        within(2.9e6 * 8e-6 / speed / (time.monotonic() - began), 0.87, 1, "of the link")


@case("peers are reset in the middle of their messages: the windows are free at once", cc=CCS)
def resets(cc):
    with wires(cc) as wire:
        *pairs, other = started(wire, 9)
        for client, _ in pairs:
            client.send(pattern(60_000))
        wire.run(0.35e-3)
        abort(*(client for client, _ in pairs))
        wire.run(20e-3)
        innocent(wire, other)


@case("peers die, and a process owns their sockets when the windows give up", cc=CCS,
      owned=(False, True))
def dies(cc, owned):
    with wires(cc) as wire:
        overcommit_of(wire, cc)
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


@case("peers claim data in flight, and stop: the windows are free again", cc=CCS)
def stops(cc):
    with wires(cc) as wire:
        *pairs, other = started(wire, 13)
        found = attacks(wire, pairs)
        for want, claim, rest in ((1, 6, 20e-3), (0, 7, 20e-3)):
            for attacker, sent in found:
                attacker.forge(True, REQUEST, option(REQUEST, sent, sent, want, beyond(claim)))
            wire.run(rest)
        innocent(wire, other)


@case("peers that request each millisecond and send nothing lose their windows", cc=CCS,
      word=(0, -100), again=(0, xpass.RETRY))
def storm(cc, word, again):
    with wires(cc) as wire:
        *pairs, (client, server) = started(wire, 5, 300_000)
        found = attacks(wire, pairs)
        end = time.monotonic() + 30e-3

        def request():
            for attacker, credits in found:
                attacker.forge(True, REQUEST, option(REQUEST, credits, credits, 18 | again, beyond(word)))
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


@case("a peer with a round trip of 40 ms dies: it has one window, and the near ones have theirs",
      cc=CCS)
def far(cc):
    with wires(cc) as wire:
        (other,) = started(wire, 1, 300_000)
        (pair,) = pairs = at_distance(wire, 40e-3, 1)
        silence(wire, pairs)
        pair[0].send(pattern(290_000))
        wire.run(20e-3)
        innocent(wire, other)


@case("all grants of a message are lost: the next request counts", cc=CCS, size=(15_000, 20_000))
def lost_grants(cc, size):
    with wires(cc) as wire:
        (pair,) = started(wire, 1, 300_000)
        seen = []

        def rule(p):
            if is_grant(p):
                seen.append(p)
            return bool(seen) and is_grant(p) and p.time - seen[0].time < 50e-6
        wire.rule = rule
        began = time.monotonic()
        true(wire.transfer(*pair, size), "arrives")
        # A later pull permits the same packets.
        within(time.monotonic() - began, (5 if cc == "homa" else 2) * RTT, 7 * RTT, "time, s")


@case("a stop is lost: others have the whole link soon, and its sender another window", cc=CCS,
      version=(4, 6))
def lost_stop(cc, version):
    with wires(cc, version=version) as wire:
        overcommit_of(wire, cc)
        pair, other = started(wire, 2, 300_000)
        last, sent, stops = -(-200_000 // MSS[version]), 0, []

        def rule(p):
            nonlocal sent
            if p.from_a and p.len:
                sent += 1
                # The sender requests their repair, and needs none when they have arrived.
                p.late = 1.5 * RTT if last - 18 < sent < last - 2 else 0
            stops.extend([p] * (p.says == REQUEST and not p.words[2] & xpass.WANT))
            return p in stops[-1:] or is_grant(p) and sent == last
        wire.rule = rule
        true(wire.transfer(*pair, 200_000), "arrives")
        wire.run(5e-3)
        equal(len(stops), 1, "stops")
        wire.rule = None
        innocent(wire, other)
        wire.run(20e-3)
        wire.mark()
        wire.run(0.2)
        equal(wire.seen, [], "packets in 200 ms")
        innocent(wire, pair)
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")


@case("a process does not read for long: the window closes, opens and closes, and all data arrives",
      cc=CCS, version=(4, 6))
def not_read(cc, version):
    with wires(cc, version=version, rmem="4096 16384 16384") as wire:
        client, server = wire.connect()
        payload, got = pattern(200_000), b""
        equal(client.send(payload), len(payload), "sent")
        wire.run(0.5)
        true(sum(p.len for p in wire.from_a()) < 60_000, "the window is closed")
        for _ in range(20):
            got += server.recv(4000)
            wire.run(20e-3)
        wire.run(0.5)
        began = time.monotonic()
        got += wire.receive(server, len(payload) - len(got), 1.0)
        equal(got == payload, True, "bytes")
        # 1 ms of the link, in windows.
        within(time.monotonic() - began, 1e-3, 10e-3, "time of the rest, s")
        within(counters(wire.a, cc)["CreditWasted"], 0, 2, "CreditWasted")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0], "RTOs, TLPs")


def forge(wire, pair, number, **wrong):
    """A grant or pull in b's name; `wrong` is added to its numbers."""
    Attacker(wire, *pair).forge(False, CREDIT, option(CREDIT, number), **wrong)


ASKED = 60              # packets of a message before its sender requests the others


@contextlib.contextmanager
def waiting(cc, version):
    """(wire, a connection whose sender waits for credits, which are lost, number of the last one)"""
    with wires(cc, version=version) as wire:
        (pair,) = started(wire, 1, 300_000)
        true(wire.transfer(*pair, 100_000), "arrives")
        wire.run(5e-3)
        last = counters(wire.b, cc)["CreditSent"]
        wire.rule = is_grant
        pair[0].send(pattern(290_000)[:ASKED * MSS[version]])
        wire.run(0.6 * RTT)
        pair[0].send(pattern(290_000)[ASKED * MSS[version]:])
        yield wire, pair, last


def finish(wire, pair):
    """The message of waiting() arrives, and others after it."""
    wire.rule = None
    equal(wire.receive(pair[1], 290_000, 50e-3) == pattern(290_000), True, "the bytes, within 50 ms")
    wire.run(5e-3)
    innocent(wire, pair)
    equal([wire.a.netstat("TCPTimeouts"), wire.a.greenlane()["Fallback"]], [0, 0], "RTOs, Fallback")


@using(waiting, cc=CCS, version=(4, 6))(
    "grants and pulls from off the path, or with a wrong number: counted, nothing leaves")
def forged_credit(wire, pair, last):
    sent, before = len(data(wire.from_a())), wire.a.greenlane()
    for wrong in OFF_PATH:
        forge(wire, pair, last + 1, **wrong)
    for number in (last, last - 1, last + (1 << 31)):
        forge(wire, pair, number)
    wire.run(50e-6)
    after = wire.a.greenlane()
    # TCP may answer a wrong number by an ACK.
    changed = {name: after[name] - n for name, n in before.items()
               if after[name] != n and name != "ControlSent"}
    equal(changed, {"Invalid": len(OFF_PATH) + 3}, "counters that change")
    equal(len(data(wire.from_a())), sent, "packets with data")
    finish(wire, pair)


@case("a forged grant or pull before the first packet of data: one packet leaves", version=(4, 6),
      cc=(*CCS, "aeolus_homa", "aeolus_ndp"))
def forged_first(cc, version):
    with wires(cc, version=version) as wire:
        pair = wire.connect()
        pair[0].send(pattern(290_000)[:100], socket.MSG_MORE)
        forge(wire, pair, 1)
        wire.run(50e-6)
        equal([p.len for p in data(wire.from_a())], [100], "bytes of each packet")
        pair[0].send(pattern(290_000)[100:])
        equal(wire.receive(pair[1], 290_000, 50e-3) == pattern(290_000), True, "the bytes, within 50 ms")
        equal([wire.a.netstat("TCPTimeouts"), wire.a.greenlane()["Fallback"]], [0, 0],
              "RTOs, Fallback")


@case("a forged grant or pull on the path: no more than the requested packets leave", cc=CCS,
      version=(4, 6), ahead=(1, 5, 1000))
def forged_on_path(cc, version, ahead):
    with waiting(cc, version) as (wire, pair, last):
        sent = len(data(wire.from_a()))
        forge(wire, pair, last + ahead)
        wire.run(50e-6)
        # The unscheduled one has no request.  It is in flight, and could have been trimmed.
        within(len(data(wire.from_a())) - sent, min(ahead, ASKED - 1), min(ahead, ASKED), "packets")
        finish(wire, pair)


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


if __name__ == "__main__":
    tap.main()
