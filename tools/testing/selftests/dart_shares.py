#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""DASR: the senders that count, the shares in ACKs, and a sender's rate (Dart §III).

	a (many hosts, send) ---- wire (this program) ---- b (receives)
"""
import contextlib
import resource
import socket

from lab.codepoints import CONTROL, MESSAGE, MESSAGE_END, SHARE, SHORT
from lab.net.libc import without_net_admin
from lab.tap import case, equal, main, true, using, within
from lab.wire.dart import (ALONE, END, HEADERS, KNOWN, LINE, NAMES, ONE, RATE, RTT, SHARE_MASK,
                           connect, dart, divisor_of, divisors, host, line, name, of, read_all)
from lab.wire.packet import ACK, ECE, SYN, data
from lab.wire.sockopt import (GREENLANE_COSENDERS, GREENLANE_MESSAGE, GREENLANE_SENDERS,
                              GREENLANE_WEIGHT, info, ip_level, option, pacing, refused)
from lab.wire.wire import MSS

CE = 3
EPERM, EINVAL, EOPNOTSUPP = 1, 22, 95


everywhere = using(dart, version=(4, 6), tso=(True, False))


class Flow:
    """A connection that sends on demand."""

    def __init__(self, wire, number, port=1000, listener=None):
        self.wire = wire
        self.tx, self.rx = connect(wire, number, port, listener)

    def send(self, count):
        """Send count bytes at once."""
        equal(self.tx.send(bytes(count)), count, "bytes that the socket takes")

    @property
    def packets(self):
        """Packets of the connection on the wire."""
        return of(self.wire.seen, self.tx)

    @property
    def divisor(self):
        """The divisor of the share that it has received last, and obeys."""
        return info(self.tx)["divisor"]

    @property
    def share(self):
        """The share that the last ACK advertised, in kB/s."""
        return [p.words[0] for p in self.packets if not p.from_a and p.words][-1] & SHARE_MASK

    def is_at(self, divisor, what):
        """Check that the pacing rate is line rate divided by divisor."""
        within(pacing(self.tx), 0.995 * line(self.wire.version, divisor),
               1.005 * line(self.wire.version, divisor), what)


def run(wire, flows, seconds, until=None):
    """Carry packets, and read all data that arrives."""
    def step():
        read_all(flow.rx for flow in flows)
        return bool(until and until())
    return wire.run(seconds, step)


@everywhere("codepoints of the handshake, data, the last packet, and ACKs with a word")
def codepoints(wire):
    flow = Flow(wire, 0)
    flow.send(100_000)
    run(wire, [flow], 5e-3)
    seen = flow.packets
    equal([(p.flags & (SYN | ACK), p.kind) for p in seen[:3]],
          [(SYN, SHARE), (SYN | ACK, SHARE), (ACK, CONTROL)], "flags and DSCPs of the handshake")
    sent = data([p for p in seen if p.from_a])
    equal([p.kind for p in sent], [MESSAGE] * (len(sent) - 1) + [MESSAGE_END], "DSCPs of data")
    acks = [p for p in seen[3:] if not p.from_a]
    equal({(p.kind, len(p.words)) for p in acks}, {(SHARE, 1)}, "ACKs: DSCP, number of words")
    true(all(p.checksum_ok() for p in seen), "valid checksums")
    equal(divisors(acks), [ONE], "divisors of the shares in ACKs")
    flow.is_at(1, "rate")
    equal(wire.b.greenlane()["MessageBegun"], 1, "MessageBegun")
    equal(wire.b.greenlane()["MessageEnded"], 1, "MessageEnded")


@everywhere("two senders: each has half of the link within one ACK, and all of it after the other",
            hosts=1)
def two_senders(wire):
    old, new = Flow(wire, 0), Flow(wire, 1, 1001)
    wire.mark()
    old.send(250_000)
    run(wire, [old, new], 1e-3)
    equal(divisors(old.packets), [ONE], "divisors before the second sender")
    begin = wire.seen[-1].time
    new.send(40_000)
    true(run(wire, [old, new], 1e-3, lambda: old.divisor == new.divisor == 2 * ONE),
         "both receive the share of two")
    first = next(p for p in data(new.packets))
    within(wire.seen[-1].time - first.time, 0, RTT + 4 * 12.3e-6,
           "time from the second sender's first packet, s")
    for flow in (old, new):
        flow.is_at(2, "half of the line")
    true(first.time >= begin, "the second sender's first packet is later than the mark")
    true(run(wire, [old, new], 3e-3, lambda: old.divisor == ONE), "the second sender has ended")
    old.is_at(1, "all of the line")
    equal(divisors(old.packets), [ONE, 2 * ONE, ONE], "divisors that the first sender has received")


@case("a change is advertised with the next packet's ACK, in spite of delayed ACKs")
def at_once():
    # An odd packet and an even one: TCP acknowledges every other.
    for offset in (0, 12.3e-6, 24.6e-6, 36.9e-6):
        with dart(1) as wire:
            old, new = Flow(wire, 0), Flow(wire, 1, 1001)
            old.send(250_000)
            run(wire, [old, new], 1e-3 + offset)        # TCP's first ACKs are quick ones
            wire.mark()
            new.send(20_000)
            run(wire, [old, new], 0.4e-3)
            known = data(new.packets)[0].time + RTT / 2
            came = next(p.time + RTT / 2 for p in data(old.packets)
                        if p.from_a and p.time + RTT / 2 > known)
            told = next(p.time for p in old.packets
                        if not p.from_a and p.words and divisor_of(p.words[0]) == 2 * ONE)
            # The guest takes some time for the second sender's first packets, ten at once.
            within(told - came, -5e-6, 10e-6, "time from the next packet to the new share, s")


@case("packets are paced at the share: half of line rate", dart, hosts=1)
def paced(wire):
    flows = [Flow(wire, 0), Flow(wire, 1, 1001)]
    wire.mark()
    for flow in flows:
        flow.send(200_000)
    run(wire, flows, 2.5e-3)
    for flow in flows:
        sent = [p for p in data(flow.packets) if p.time > flow.packets[0].time + 3 * RTT]
        rate = sum(p.len for p in sent[:-1]) / (sent[-1].time - sent[0].time)
        within(rate, 0.96 * line(4, 2), 1.04 * line(4, 2), "rate of payload, bytes/s")


@case("packets of a flow more than a round trip apart: its message continues, and all flows"
      " together fill the link", n=(2, 12, 32, 1000))
def many_senders(n):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * n + 100,) * 2)
    hosts = min(n, 4)
    with dart(hosts) as wire:
        listener = wire.listen()
        flows = [Flow(wire, 1 + number % hosts, 1000, listener) for number in range(n)]
        # Reading from a thousand sockets without data takes time.
        read = flows if n < 100 else []
        # The first ten packets of a connection are not paced, and a thousand flows that send
        # at line rate until they have a share are too much for this program.
        for _ in range(12 if n > 100 else 0):
            for flow in flows:
                option(flow.tx, GREENLANE_MESSAGE, 1)
                flow.send(1_000)
            run(wire, read, 2 * RTT)
        for flow in flows:
            flow.send(40 * MSS[4] if n > 100 else 400_000)
        gap = n * (MSS[4] + HEADERS[4]) * 8e-6 / RATE
        run(wire, read, 4 * RTT + 2 * gap)
        wire.mark()
        window = max(6 * gap, 10 * RTT)
        run(wire, read, window)
        sent = sum(p.len + HEADERS[4] for p in wire.seen if p.from_a and p.len)
        # In that time each flow has five to seven packets.
        within(sent * 8e-6 / window / RATE, 0.8, 1.2, "rate of all flows, divided by the link's")
        for flow in flows:
            within(flow.divisor, 0.999 * n * ONE, 1.001 * n * ONE, "divisor")
        equal(wire.b.greenlane()["MessageBegun"], n, "messages begun")


@everywhere("a message of many writes, with and without pauses for ACKs, keeps its share",
            hosts=1)
def writes_in_flight(wire):
    flows = [Flow(wire, 0), Flow(wire, 1, 1001)]
    option(flows[0].tx, GREENLANE_MESSAGE, 1)
    flows[1].send(300_000)
    # Twelve packets, after which TCP paces.
    for _ in range(12):
        flows[0].send(1_000)
        run(wire, flows, RTT + 50e-6)
    for pause in (0.3 * RTT, 1.5 * RTT):
        for _ in range(8):
            flows[0].send(1_000)
            run(wire, flows, pause)
            flows[0].is_at(2, f"its rate, {pause * 1e6:.0f} us after a write")
    equal(wire.b.greenlane()["MessageBegun"], 2, "messages begun")
    # An old share expires.
    run(wire, flows, 0.2)
    flows[0].send(1_000)
    flows[0].is_at(1, "after a pause: line rate")


@contextlib.contextmanager
def unequal(faster, **options):
    """A wire, one end of which has four times the other end's line rate."""
    with dart(8, **options) as wire:
        (wire.b if faster == "receiver" else wire.a).sysctl("net.ipv4.dcqcn_rate", 4 * RATE)
        yield wire, faster


@case("shares divide the receiver's line rate, independent of the sender's", unequal,
      version=(4, 6), faster=("sender", "receiver"))
def unequal_lines(wire, faster):
    slow = faster == "sender"
    flows = [Flow(wire, n, 1000 + n) for n in range(8)]
    for n in (1, 2, 8):
        for flow in flows[:n]:
            option(flow.tx, GREENLANE_MESSAGE, 1)
            flow.send(20_000)
        run(wire, flows, 0.5e-3)
        for flow in flows[:n]:
            equal(flow.share, (1 if slow else 4) * LINE // n, f"kB/s of each of {n}")
            # A sender does not exceed its own line rate.
            flow.is_at(n if slow else max(n / 4, 1), f"rate, one of {n}")
        equal(info(flows[0].tx)["divisor"], 4 * n * ONE if slow else max(n * ONE // 4, ONE),
              "divisor of the sender's own line rate")


@case("a sender is a host: two connections of a host count once, and divide its share", dart,
      version=(4, 6), hosts=1)
def by_host(wire):
    flows = [Flow(wire, 0), Flow(wire, 0, 1001), Flow(wire, 1, 1002)]
    for flow in flows[:2]:
        flow.send(200_000)
    run(wire, flows, 0.5e-3)
    equal([info(flow.rx)["senders"] for flow in flows], [1, 1, 0], "senders")
    equal([flow.divisor for flow in flows[:2]], [2 * ONE] * 2,
          "divisors of two messages of one host")
    flows[2].send(100_000)
    run(wire, flows, 0.5e-3)
    equal([info(flow.rx)["senders"] for flow in flows], [2] * 3, "senders")
    equal([flow.divisor for flow in flows], [4 * ONE, 4 * ONE, 2 * ONE], "their divisors")


@case("two incasts that overlap: a sender in both counts once", dart, hosts=6)
def overlapping(wire):
    groups = ((1, 2, 3, 4), (3, 4, 5, 6))
    flows = [Flow(wire, n, 1000 + i) for i, n in enumerate(groups[0] + groups[1])]
    for flow in flows:
        flow.send(60_000)
    run(wire, flows, 0.6e-3)
    equal({info(flow.rx)["senders"] for flow in flows}, {6}, "senders")
    equal([flow.divisor for flow in flows], [6 * ONE, 6 * ONE, 12 * ONE, 12 * ONE] + [12 * ONE] * 2
          + [6 * ONE] * 2, "their divisors")
    run(wire, flows, 10e-3)
    equal({info(flow.rx)["senders"] for flow in flows}, {0}, "senders afterwards")


@everywhere("the last packet is lost: the sender counts until it has arrived", hosts=1)
def end_lost(wire):
    old, new = Flow(wire, 0), Flow(wire, 1, 1001)
    lost = []

    def rule(p):
        if p.kind == MESSAGE_END and p.from_a and not lost:
            lost.append(p)
            return True
        return False
    wire.rule = rule
    new.send(30_000)
    run(wire, [old, new], 20e-3, lambda: lost)
    equal(info(new.rx)["senders"], 1, "senders when the last packet is lost")
    old.send(10_000)
    run(wire, [old, new], 2e-3)
    true(run(wire, [old, new], 1.0, lambda: info(new.rx)["senders"] == 0),
         "no sender counts after the retransmission")
    equal(wire.b.greenlane()["MessageBegun"], wire.b.greenlane()["MessageEnded"],
          "messages begun and ended")
    again = [p for p in data(new.packets) if p.seq == lost[0].seq]
    equal([p.kind for p in again], [MESSAGE_END] * 2,
          "DSCPs of the last packet and its retransmission")


@everywhere("the end of a message is retransmitted after the next one's has arrived: both have "
            "ended",
            hosts=1)
def older_end(wire):
    old, new = Flow(wire, 0), Flow(wire, 1, 1001)
    lost = []

    def rule(p):
        if p.from_a and p.len and not lost:
            lost.append(p)
            return True
        return False
    wire.rule = rule
    old.tx.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    old.send(1_000)
    run(wire, [old, new], 30e-6)
    old.send(7_000)
    run(wire, [old, new], 20e-3)
    sent = data(old.packets)
    equal(sent[-1].seq, lost[0].seq, "sequence numbers of the last packet and the lost one")
    equal([p.kind in (MESSAGE_END, *SHORT) for p in sent], [True, *[False] * (len(sent) - 3), True,
                                                           True], "packets that end a message")
    equal(info(old.rx)["senders"], 0, "senders")
    new.send(200_000)
    run(wire, [old, new], 1e-3)
    equal(new.divisor, ONE, "divisor of another sender")
    counters = wire.b.greenlane()
    equal(counters["MessageEnded"], counters["MessageBegun"] - 1, "MessageEnded, all but the last")


@everywhere("GREENLANE_MESSAGE makes one message of many writes, with pauses between them", hosts=1)
def explicit(wire):
    flow, other = Flow(wire, 0), Flow(wire, 1, 1001)
    equal(option(flow.tx, GREENLANE_MESSAGE), 0, "GREENLANE_MESSAGE by default")
    option(flow.tx, GREENLANE_MESSAGE, 1)
    wire.mark()
    for _ in range(3):
        flow.send(10_000)
        run(wire, [flow, other], 5e-3)
        equal(info(flow.rx)["senders"], 1, "senders between two writes")
    equal({p.kind for p in data(flow.packets)} & {MESSAGE_END}, set(), "ends")
    option(flow.tx, GREENLANE_MESSAGE, 0)
    run(wire, [flow, other], 1e-3)
    equal(info(flow.rx)["senders"], 0, "senders after the message has ended")
    equal([p.words for p in flow.packets if p.from_a and p.words and p.words[0] & END],
          [(END | ALONE,)], "words of the end, in a packet without data")
    equal(wire.b.greenlane()["MessageBegun"], 1, "messages")
    # An end before the last bytes are sent: the last packet has its codepoint.
    option(flow.tx, GREENLANE_MESSAGE, 1)
    flow.send(30_000)
    option(flow.tx, GREENLANE_MESSAGE, 0)
    run(wire, [flow, other], 5e-3)
    equal(info(flow.rx)["senders"], 0, "senders after the second message has ended")
    equal(data(flow.packets)[-1].kind, MESSAGE_END, "DSCP of the last packet")


@case("GREENLANE_WEIGHT divides the link by weight", dart, hosts=2)
def weights(wire):
    flows = [Flow(wire, n, 1000 + n) for n in range(3)]
    for flow, weight in zip(flows, (1, 2, 5)):
        equal(option(flow.rx, GREENLANE_WEIGHT), 1, "GREENLANE_WEIGHT by default")
        option(flow.rx, GREENLANE_WEIGHT, weight)
        flow.send(60_000)
    run(wire, flows, 0.5e-3)
    equal([flow.divisor for flow in flows], [8 * ONE, 4 * ONE, 8 * ONE // 5], "divisors")
    for bad in (0, -1, 1001):
        refused(f"weight {bad}", EINVAL, option, flows[0].rx, GREENLANE_WEIGHT, bad)
    with without_net_admin():
        for weight in (1, 5, 1000):
            refused("without CAP_NET_ADMIN", EPERM, option, flows[2].rx, GREENLANE_WEIGHT, weight)
    equal(option(flows[2].rx, GREENLANE_WEIGHT), 5, "GREENLANE_WEIGHT after the refusals")


@case("a dead sender stays in the set for two seconds; meanwhile the others use its share", dart,
      version=(4, 6), hosts=1)
def dead(wire):
    old, new = Flow(wire, 0), Flow(wire, 1, 1001)
    new.send(100_000)
    run(wire, [old, new], 0.5e-3)
    port = new.tx.getsockname()[1]
    wire.rule = lambda p: p.sport == port
    option(old.tx, GREENLANE_MESSAGE, 1)
    for _ in range(9):
        old.send(2_000)
        run(wire, [old, new], 0.2)
    equal(info(old.rx)["senders"], 2, "senders after 1.8 s")
    equal(old.divisor, ONE, "divisor of the other sender")
    for _ in range(4):
        old.send(2_000)
        run(wire, [old, new], 0.2)
    equal(info(old.rx)["senders"], 1, "senders after 2.6 s")
    equal(wire.b.greenlane()["SenderDead"], 1, "SenderDead")
    # Only the wire was cut: TCP's retransmission begins a message again.
    wire.rule = None
    true(run(wire, [old, new], 10.0, lambda: wire.b.greenlane()["MessageBegun"] == 3),
         "the sender counts again")
    old.send(2_000)
    run(wire, [old, new], 0.1)
    equal(info(old.rx)["senders"], 1, "senders: the one with an open message")


@case("a connection that is closed or reset within a message no longer counts")
def closed():
    for how in ("close", "reset"):
        with dart(1) as wire:
            old, new = Flow(wire, 0), Flow(wire, 1, 1001)
            for flow in (old, new):
                option(flow.tx, GREENLANE_MESSAGE, 1)
                flow.send(5_000)
            run(wire, [old, new], 1e-3)
            equal(info(old.rx)["senders"], 2, "senders")
            if how == "reset":
                new.tx.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            new.tx.close()
            new.rx.close()
            run(wire, [old], 2e-3)
            equal(info(old.rx)["senders"], 1, f"senders after a {how}")


@case("data both ways: a change of the share is advertised without waiting for data", dart,
      version=(4, 6), hosts=1)
def duplex(wire):
    flow, other = Flow(wire, 0), Flow(wire, 1, 1001)
    flow.send(200_000)
    equal(flow.rx.send(bytes(200_000)), 200_000, "bytes that the receiver's socket takes")
    run(wire, [flow, other], 0.5e-3)
    other.send(30_000)

    def step():
        read_all((flow.tx, flow.rx, other.rx))
        return flow.divisor == 2 * ONE
    true(wire.run(0.5e-3, step), "the new share is advertised within 0.5 ms")


@case("tenants by mark have sets of senders of their own", dart, hosts=3)
def tenants(wire):
    wire.b.sysctl("net.ipv4.dart_tenant", 1)
    flows = []
    for number, mark in enumerate((1, 1, 1, 2)):
        listener = wire.listen(1000 + number, SO_MARK=mark)
        flows.append(Flow(wire, number, 1000 + number, listener))
    for flow in flows:
        flow.send(150_000)
    run(wire, flows, 0.5e-3)
    equal([info(flow.rx)["senders"] for flow in flows], [3, 3, 3, 1], "senders")
    equal([flow.divisor for flow in flows], [3 * ONE] * 3 + [ONE], "divisors")
    refused("dart_tenant", EINVAL, wire.b.sysctl, "net.ipv4.dart_tenant", 3)


# --- look-ahead

@case("look-ahead at the receiver: the first message makes all named senders count", dart,
      version=(4, 6), hosts=4)
def named_by_receiver(wire):
    flows = [Flow(wire, n, 1000 + n) for n in range(3)]
    everybody = [host(wire.version, n) for n in range(5)]
    for flow in flows:
        name(flow.rx, everybody)
        equal(option(flow.rx, GREENLANE_SENDERS), 5, "named senders")
    wire.mark()
    flows[0].send(150_000)
    run(wire, flows, 0.4e-3)
    equal(divisors(flows[0].packets), [5 * ONE], "divisors from the first ACK on")
    equal(info(flows[0].rx)["senders"], 5, "senders")
    # Two of them send and end; two never send.
    flows[1].send(3_000)
    flows[2].send(3_000)
    run(wire, flows, 0.4e-3)
    equal(info(flows[0].rx)["senders"], 3, "senders after two have ended")
    run(wire, flows, 0.6e-3)
    equal(info(flows[0].rx)["senders"], 1, "when no other sender has come for 1 ms")
    equal(wire.b.greenlane()["SendersNamed"], 3, "SendersNamed")


ROTATING = 20           # lists of unrelated hosts, one after another


def names_of_strangers(number):
    """A list of 64 hosts that send no data."""
    return [f"10.{number + 1}.0.{n + 1}" for n in range(64)]


@case("look-ahead without CAP_NET_ADMIN: only in a tenant of its own, or with dart_trust", dart,
      version=(4, 6), hosts=1)
def unprivileged_names(wire):
    wire.b.sysctl("net.ipv4.dart_tenant", 1)
    flows = [Flow(wire, n, 1000 + n, wire.listen(1000 + n, SO_MARK=n)) for n in range(2)]
    common, own = (flow.rx for flow in flows)
    with without_net_admin():
        for tenant in (0, 1, 2):
            wire.b.sysctl("net.ipv4.dart_tenant", tenant)
            refused("the common tenant", EPERM, name, common, names_of_strangers(0))
            equal(option(common, GREENLANE_SENDERS), 0, "named senders in the common tenant")
            if tenant != 1:
                refused("no mark", EPERM, name, own, names_of_strangers(0))
        name(common, [])
        wire.b.sysctl("net.ipv4.dart_tenant", 1)
        name(own, names_of_strangers(0))
        wire.b.sysctl("net.ipv4.dart_trust", 1)
        name(common, names_of_strangers(1))
    # Permission is checked again with each message.
    for tenant, trust, n in ((1, 0, 1), (0, 0, 0), (0, 1, 2)):
        wire.b.sysctl("net.ipv4.dart_tenant", tenant)
        wire.b.sysctl("net.ipv4.dart_trust", trust)
        before = wire.b.greenlane()
        for flow in flows:
            flow.send(1_000)
        run(wire, flows, 5e-3)
        after = wire.b.greenlane()
        equal([after[c] - before[c] for c in ("SendersNamed", "NamingRefused")], [n, 2 - n],
              f"SendersNamed and NamingRefused, dart_tenant = {tenant}, dart_trust = {trust}")


@case("look-ahead: senders that a peer names count only with dart_trust",
      version=(4, 6), tenant=(0, 1))
def names_of_a_peer(version, tenant):
    with dart(1, version=version) as wire:
        wire.b.sysctl("net.ipv4.dart_tenant", tenant)
        flow, victim = (Flow(wire, n, 1000 + n, wire.listen(1000 + n, SO_MARK=1))
                        for n in range(2))
        option(victim.tx, GREENLANE_MESSAGE, 1)
        for trust in (0, 1):
            wire.b.sysctl("net.ipv4.dart_trust", trust)
            for number in range(ROTATING):
                name(flow.tx, names_of_strangers(number), co=True)
                wire.mark()
                for one in (victim, flow):
                    one.send(1_000)
                run(wire, [flow, victim], 1.1e-3)
                true(max(divisors(victim.packets)) <= (67 if trust else 2) * ONE,
                     f"list {number}, dart_trust {trust}, divisors: {divisors(victim.packets)}")
            counters = wire.b.greenlane()
            equal(counters["NamingRefused"], ROTATING, f"NamingRefused, dart_trust {trust}")
            within(counters["SendersNamed"], ROTATING - 3 if trust else 0,
                   ROTATING if trust else 0, "SendersNamed")


@case("look-ahead: at most 64 hosts are expected at a time, however many are named", dart,
      hosts=1)
def rotating_names(wire):
    flow, victim = Flow(wire, 0), Flow(wire, 1, 1001)
    option(victim.tx, GREENLANE_MESSAGE, 1)
    for number in range(ROTATING):
        name(flow.rx, names_of_strangers(number))
        for one in (victim, flow):
            one.send(1_000)
        run(wire, [flow, victim], 0.12e-3)
        true(victim.divisor <= 67 * ONE, f"list {number}, divisor: {victim.divisor / ONE}")
    within(wire.b.greenlane()["SendersNamed"], 16, ROTATING, "SendersNamed")


@case("look-ahead by a sender: names precede the message, until the receiver has them", dart,
      version=(4, 6), hosts=10)
def named_by_sender(wire):
    wire.b.sysctl("net.ipv4.dart_trust", 1)
    flow, old = Flow(wire, 0), Flow(wire, 1, 1001)
    option(old.tx, GREENLANE_MESSAGE, 1)
    old.send(60_000)
    run(wire, [flow, old], 0.3e-3)
    name(flow.tx, [host(wire.version, n) for n in range(10)], co=True)
    equal(option(flow.tx, GREENLANE_COSENDERS), 10, "named senders")
    wire.mark()
    flow.send(60_000)
    run(wire, [flow, old], 0.5e-3)
    seen = [p for p in flow.packets if p.from_a]
    names = [p for p in seen if p.words and p.words[0] & NAMES]
    equal([len(p.words) for p in names], [4, 4, 4, 2], "words of the packets with names")
    equal(seen[:4], names, "the first packets, and those with names")
    acks = [p.words[0] for p in flow.packets if not p.from_a and p.words]
    true(all(word & KNOWN for word in acks), "all ACKs acknowledge the names")
    true(10 * ONE in divisors(old.packets),
         f"divisors of the other sender: {divisors(old.packets)}")
    run(wire, [flow, old], 20e-3)
    wire.mark()
    flow.send(3_000)
    run(wire, [flow, old], 0.5e-3)
    equal([p for p in flow.packets if p.from_a and p.words], [],
          "packets with names before the next message")


@case("look-ahead: lost names are sent again with the next message", dart, hosts=10)
def name_lost(wire):
    wire.b.sysctl("net.ipv4.dart_trust", 1)
    flow = Flow(wire, 0)
    name(flow.tx, [host(4, n) for n in range(6)], co=True)
    lost = []

    def rule(p):
        if p.words and p.words[0] & NAMES and p.from_a and not lost:
            lost.append(p)
            return True
        return False
    wire.rule = rule
    wire.mark()
    flow.send(3_000)
    run(wire, [flow], 5e-3)
    equal(divisors(flow.packets), [ONE], "divisors with half of a list")
    wire.mark()
    flow.send(3_000)
    run(wire, [flow], 5e-3)
    equal([len(p.words) for p in flow.packets if p.from_a and p.words], [4, 4],
          "words of the packets with names, again")
    equal(divisors(flow.packets)[0], 6 * ONE, "divisor with the whole list")


@case("look-ahead is limited per tenant, and can be disabled", dart, hosts=4)
def naming_limits(wire):
    flow = Flow(wire, 0)
    name(flow.rx, [host(4, n) for n in range(5)])
    wire.b.sysctl("net.ipv4.dart_lookahead", 0)
    flow.send(3_000)
    run(wire, [flow], 1e-3)
    equal([wire.b.greenlane()[n] for n in ("SendersNamed", "NamingLimited")], [0, 1],
          "SendersNamed and NamingLimited, look-ahead disabled")
    wire.b.sysctl("net.ipv4.dart_lookahead", 10)
    for _ in range(40):
        flow.send(1_000)
        run(wire, [flow], 0.5e-3)
    within(wire.b.greenlane()["SendersNamed"], 16, 17, "SendersNamed at once")
    run(wire, [flow], 1.0)
    for _ in range(40):
        flow.send(1_000)
        run(wire, [flow], 0.5e-3)
    within(wire.b.greenlane()["SendersNamed"], 26, 28,
           "SendersNamed a second later, with ten a second")


@case("look-ahead: an invalid list is refused without effect", dart)
def bad_lists(wire):
    flow = Flow(wire, 0)
    level = ip_level(flow.tx)
    name(flow.tx, ["10.0.0.9"], co=True)
    for size in (1, 15, 17, 65 * 16, 1 << 20):
        refused(f"{size} bytes", EINVAL, flow.tx.setsockopt, level, GREENLANE_COSENDERS,
                bytes(size))
    equal(option(flow.tx, GREENLANE_COSENDERS), 1, "named senders after the refusals")
    name(flow.tx, [], co=True)
    equal(option(flow.tx, GREENLANE_COSENDERS), 0, "named senders after an empty list")
    name(flow.tx, ["10.0.0.9"] * 64, co=True)
    for other in ("tlt_reno", "dcqcn"):
        flow.tx.setsockopt(socket.IPPROTO_TCP, 13, other.encode())
        refused(other, EOPNOTSUPP if other == "tlt_reno" else 92, flow.tx.setsockopt, level,
                GREENLANE_SENDERS, bytes(16))


# --- marks

def marking(wire, share):
    """The switch sets CE on this fraction of a's packets with data."""
    count = 0

    def rule(p):
        nonlocal count
        if p.from_a and p.len:
            count += 1
            if count * share % 1 < share:
                p.set_dsfield(p.dsfield | CE)
        return False
    wire.rule = rule


@everywhere("receiver congestion, marks and a full link: no mark is echoed", hosts=1)
def receiver_congestion(wire):
    flows = [Flow(wire, n, 1000 + n) for n in range(2)]
    wire.mark()
    for flow in flows:
        flow.send(150_000)
    run(wire, flows, 0.3e-3)        # a queue needs time to grow
    marking(wire, 0.5)
    run(wire, flows, 0.7e-3)
    said = divisors(flows[0].packets)
    # 1/32 of the rate is kept back to drain the queue, more if the queue stays
    within(said[-1], 2 * ONE * 32 // 31, 2 * ONE * 32 // 28, f"divisor, the last of {said}")
    run(wire, flows, 3e-3)
    equal([p for p in wire.from_b() if p.flags & ECE], [], "ECE")
    true(wire.b.greenlane()["MarkSuppressed"] > 0, "MarkSuppressed: more than 0")
    for flow in flows:
        true(pacing(flow.tx) >= 0.85 * line(wire.version, 2), "DCQCN has not acted")


@everywhere("other congestion, marks and a link that is not full: n = 1, and DCQCN acts", hosts=1)
def other_congestion(wire):
    wire.b.sysctl("net.ipv4.dcqcn_rate", 10 * RATE)
    flows = [Flow(wire, n, 1000 + n) for n in range(2)]
    for flow in flows:
        flow.send(150_000)
    run(wire, flows, 0.5e-3)
    equal(flows[0].share, 10 * LINE // 2, "kB/s before")
    marking(wire, 0.5)
    wire.mark()
    run(wire, flows, 0.5e-3)
    equal(flows[0].share, 10 * LINE, "kB/s: n = 1")
    true([p for p in wire.from_b() if p.flags & ECE], "ECE")
    true(wire.b.greenlane()["MarkPassed"] > 0, "MarkPassed: more than 0")
    true(min(pacing(flow.tx) for flow in flows) < 0.7 * line(wire.version), "DCQCN has acted")
    wire.rule = None
    run(wire, flows, 0.3e-3)
    equal(flows[0].share, 10 * LINE // 2, "kB/s after the marks have ended")


@case("two tenants on one link: marks are echoed, because shares do not cover the other tenant",
      dart,
      hosts=1)
def tenants_marked(wire):
    wire.b.sysctl("net.ipv4.dart_tenant", 1)
    flows = [Flow(wire, n, 1000 + n, wire.listen(1000 + n, SO_MARK=n + 1)) for n in range(2)]
    marking(wire, 0.5)
    wire.mark()
    for flow in flows:
        flow.send(150_000)
    run(wire, flows, 1e-3)
    true([p for p in wire.from_b() if p.flags & ECE], "ECE")


if __name__ == "__main__":
    main()
