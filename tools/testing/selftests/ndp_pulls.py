#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""NDP: the first window, reports of trimmed packets, and pulls (net/ipv4/tcp_ndp.c).

	a (client, sends) ---- wire (this program, trims) ---- b (server, pulls)

The wire's round trip is 200 us, much longer than the guest's system calls.
"""
import collections
import contextlib
import itertools
import random
import socket
import time

from lab import tap
from lab.codepoints import CREDIT, PROBE, PROBE_ACK, REQUEST, SCHEDULED, UNSCHEDULED
from lab.net.trace import fired, traced
from lab.tap import case, equal, true, within
from lab.wire import window, xpass
from lab.wire.attack import Attacker
from lab.wire.hold import hold
from lab.wire.packet import data, kinds, option
from lab.wire.sockopt import GREENLANE_BDP, cc_of, info, tcp_info
from lab.wire.sockopt import option as sockopt
from lab.wire.trim import cut, forged, reports, trims
from lab.wire.window import RTT
from lab.wire.wire import MSS, pattern

MBIT = 10_000
BDP = 250_000           # bytes, at that rate
IPV6_AUTOFLOWLABEL = 70  # linux/in6.h
REORD_SEEN = 220        # offset of tcpi_reord_seen


def wires(cc="ndp", **options):
    """A wire with a round trip of RTT and that rate."""
    return window.wires(cc, **{"speed": MBIT, **options})


def ndp(ns):
    """NDP's counters."""
    return {name[3:]: n for name, n in ns.greenlane().items() if name.startswith("Ndp")}


def no_timer(wire, retried=(0, 0)):
    """No timer of TCP has expired, no credit was wasted, all data left by a pull or in a burst."""
    for ns, times in zip((wire.a, wire.b), retried):
        equal([ns.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              f"{ns.name}: RTOs, TLPs")
        equal([ndp(ns)[name] for name in ("Uncredited", "CreditWasted", "RequestRetried")],
              [0, 0, times], f"{ns.name}: Uncredited, CreditWasted, RequestRetried")


def numbers(wire):
    """The numbers of the reports that b has sent, in their order."""
    return [p.words[1] >> 16 for p in wire.from_b() if p.words and p.dscp == 61]


def repairs(wire, lost):
    """The packets of a with data that are in `lost`, a list of (seq, length), in their order."""
    return [p for p in data(wire.from_a()) if (p.seq, p.len) in lost]


@case("a message that fits into the first window leaves at once, without a request or a pull",
      version=(4, 6), tso=(True, False))
def first_window(version, tso):
    with wires(version=version, tso=tso) as wire:
        client, server = wire.connect()
        equal([cc_of(s) for s in (client, server)], ["ndp", "ndp"], "congestion control")
        wire.mark()
        true(wire.transfer(client, server, 50_000), "arrives")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        sent = wire.from_a()
        equal(set(kinds(sent)), {UNSCHEDULED}, "kinds of a's packets")
        equal(sum(p.len for p in sent), 50_000, "bytes, each once")
        equal([p for p in wire.from_b() if p.kind == CREDIT], [], "pulls")
        within(took, 0.5 * RTT, 0.65 * RTT, "time until the message is read, s")
        no_timer(wire)


@case("the rest of a message is requested at once, and pulled", version=(4, 6), tso=(True, False))
def rest(version, tso):
    packets, mss = 60, MSS[version]
    with wires(version=version, tso=tso) as wire:
        client, server = wire.connect()
        sockopt(client, GREENLANE_BDP, 20 * mss)
        equal(info(client)["bdp"], 20 * mss, "bdp of the socket")
        wire.mark()
        true(wire.transfer(client, server, packets * mss), "arrives")
        wire.run(5e-3)
        # The system call pushes data before the process has written all of it.
        asked = [p for p in wire.from_a() if p.kind == REQUEST and p.time < wire.seen[0].time + RTT / 2]
        true(asked, "a request before the burst arrives")
        equal([(*p.words[:2], p.words[3] & 0xffff) for p in asked], [(0, 0, 0)] * len(asked),
              "last pull, pulls that arrived, last report")
        within(asked[-1].words[2] & xpass.WANT, 2, packets - 20, "packets wanted")
        equal([ndp(wire.a)[name] for name in ("UnscheduledSent", "ScheduledSent", "CreditReceived")],
              [20, packets - 20, packets - 20], "unscheduled packets, pulled packets, pulls")
        xpass.numbered(wire.from_b())
        equal(info(client)["unscheduled"], 20, "unscheduled, of the socket")
        no_timer(wire)


@case("each trimmed packet is reported at once, pulled at once, and repaired after one round trip",
      version=(4, 6), tso=(True, False))
def trimmed(version, tso):
    packets, which = 23, range(3, 20)
    with wires(version=version, tso=tso) as wire:
        client, server = wire.connect()
        wire.mark()
        lost, payload = trims(wire, *which), pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 5e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        equal(len(lost), len(which), "trimmed packets")
        equal(reports(wire), lost, "reports")
        equal(numbers(wire), list(range(1, len(lost) + 1)), "numbers of the reports")
        equal(xpass.credits(wire.from_b()), list(range(1, len(lost) + 1)), "numbers of the pulls")
        equal([(p.seq, p.len) for p in repairs(wire, lost)], lost, "repairs")
        within(took, 1.5 * RTT, 1.75 * RTT, "time until the message is read, s")
        no_timer(wire)


@case("a repair is trimmed again and again: each time it is reported and pulled", version=(4, 6),
      times=(1, 3))
def again(version, times):
    packets = 12
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, 5, *range(packets, packets + times))
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 5e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        equal(lost, [lost[0]] * (times + 1), "trimmed packets")
        equal(reports(wire), lost, "reports")
        within(took, (times + 1.5) * RTT, (times + 1.8) * RTT, "time until the message is read, s")
        no_timer(wire)


def label(p):
    """A packet's flow label."""
    return int.from_bytes(p.raw[1:4], "big") & 0xfffff


def labels(wire, client, server):
    """The numbers of data packets and of their flow labels, and the labels of a's other packets."""
    wire.run(5e-3)
    wire.mark()
    true(wire.transfer(client, server, 400_000), "arrives")
    wire.run(5e-3)
    sent = data(wire.from_a())
    equal(len({p.seq for p in sent}), len(sent), "packets of data, each once")
    return len(sent), len({label(p) for p in sent}), {label(p) for p in wire.from_a() if not p.len}


@case("over IPv6 each packet of data has a flow label of its own; paths reorder them: no repair",
      late=(0.02, 0.3))
def sprayed(late):
    with wires(version=6) as wire:
        client, server = wire.connect()

        def rule(p):
            p.late = random.uniform(0, late * RTT) if p.len else 0
        wire.rule = rule
        count, of_data, others = labels(wire, client, server)
        within(of_data, 0.99 * count, count, "flow labels of data")
        equal(len(others), 1, "flow labels of requests and ACKs")
        no_timer(wire)


@case("a socket with a flow label, or without automatic labels, and aeolus_ndp: one path",
      how=("IPV6_AUTOFLOWLABEL", "auto_flowlabels", "aeolus_ndp"))
def unsprayed(how):
    with wires(version=6, cc="aeolus_ndp" if how == "aeolus_ndp" else "ndp") as wire:
        if how == "auto_flowlabels":
            wire.a.sysctl("net.ipv6.auto_flowlabels", 0)
        client, server = wire.connect()
        if how == "IPV6_AUTOFLOWLABEL":
            client.setsockopt(socket.IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0)
        _, of_data, others = labels(wire, client, server)
        equal((of_data, len(others)), (1, 1), "flow labels of data, of other packets")


@case("a host's fq_codel takes a sprayed connection for one: cubic beside it has half of the link")
def fair_queue():
    with wires(version=6, speed=1000, tso=False) as wire:
        for words in ("root handle 1: tbf rate 1gbit burst 30k limit 20m",
                      "parent 1:1 handle 2: fq_codel"):
            wire.a.tc(f"qdisc add dev tun0 {words}")
        pairs = [wire.connect(1001), wire.connect(1002, cc="cubic")]
        got = [0, 0]

        def step():
            for number, (client, server) in enumerate(pairs):
                with contextlib.suppress(BlockingIOError):
                    client.send(bytes(1 << 16))
                with contextlib.suppress(BlockingIOError):
                    got[number] += len(server.recv(1 << 20))
            return False
        wire.run(30e-3, step)
        before = list(got)
        wire.run(50e-3, step)
        within((got[1] - before[1]) / (sum(got) - sum(before)), 0.4, 0.6, "cubic's share")


@case("tracepoints of requests, pulls, trimmed packets and reports have the values of the wire")
def tracepoints():
    mss = MSS[4]
    with traced("greenlane") as lines, wires() as wire:
        client, server = wire.connect()
        sockopt(client, GREENLANE_BDP, 20 * mss)
        lost = trims(wire, 3, 5)
        true(wire.transfer(client, server, 60 * mss), "arrives")
        wire.run(5e-3)
        sent, came = ndp(wire.a), ndp(wire.b)
    for name in ("trimmed", "reported"):
        equal(fired(lines, name), lost, name)
    equal([number for number, _ in fired(lines, "credit")], list(range(1, came["CreditSent"] + 1)),
          "numbers of the pulls")
    equal(fired(lines, "credited"), fired(lines, "credit"), "pulls that arrived")
    equal((sent["CreditReceived"], len(fired(lines, "request"))), (42, came["RequestReceived"]),
          "pulls, requests")


@case("windows of repairs are trimmed: headers make room for pulls as data does", version=(4, 6),
      packets=(16, 60))
def trimmed_windows(version, packets):
    with wires(version=version, speed=1000) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 300_000), "arrives")
        sockopt(client, GREENLANE_BDP, 16 * MSS[version])
        wire.run(5e-3)
        wire.mark()
        # More than half of many would look as if the sender did not use its pulls.
        seen, times = collections.Counter(), 4 if packets == 16 else 1

        def rule(p):
            if p.from_a and p.len:
                seen[p.seq] += 1
                if seen[p.seq] <= times:
                    cut(p)
            return False
        wire.rule = rule
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        # The burst and its repairs, each with the time of its pulls or less; or 120 pulls and a round
        # trip.
        within(took / RTT, *((5.5, 6.2) if packets == 16 else (8.4, 9.4)), "round trips")
        no_timer(wire)


@case("many connections, of whose packets most are trimmed: no pull is wasted, no request repeated",
      version=(4, 6), share=(0.2, 0.7))
def crowd(version, share):
    chance = random.Random(1)

    def rule(p):
        if p.from_a and p.len and chance.random() < share:
            cut(p)
        return False
    with wires(version=version) as wire:
        listener = wire.listen(1001)
        pairs = [wire.connect(1001, listener=listener) for _ in range(14)]
        wire.mark()
        wire.rule = rule
        payload = pattern(23 * MSS[version])
        for client, _ in pairs:
            equal(client.send(payload), len(payload), "sent")
        for _, server in pairs:
            equal(wire.receive(server, len(payload), 10e-3), payload, "bytes")
        wire.run(5e-3)
        counters = ndp(wire.a)
        equal(counters["ScheduledSent"], counters["CreditReceived"], "pulled packets, pulls")
        no_timer(wire)


@case("a pull is lost: the next one permits two packets", version=(4, 6), which=((3,), (3, 4, 7)))
def lost_pull(version, which):
    packets = 23
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, *range(3, 15))
        trim = wire.rule
        wire.rule = lambda p: trim(p) or xpass.is_credit(p) and p.words[0] in which
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 2 * RTT), payload, "bytes, within two round trips")
        wire.run(5e-3)
        equal([(p.seq, p.len) for p in repairs(wire, lost)], lost, "repairs")
        no_timer(wire)


@case("the last pull is lost: the sender requests again, without a timer of TCP's", version=(4, 6))
def last_pull(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost, number = trims(wire, 3, 4, 5), []
        trim = wire.rule

        def rule(p):
            if xpass.is_credit(p) and p.words[0] == 3 and not number:
                number.append(p)
                return True
            return trim(p)
        wire.rule = rule
        payload = pattern(10 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 10 * RTT), payload, "bytes, within ten round trips")
        equal([(p.seq, p.len) for p in repairs(wire, lost)], lost, "repairs")
        no_timer(wire, retried=(1, 0))


@case("a pull that was overtaken permits nothing more", version=(4, 6))
def overtaken(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, *range(3, 15))
        trim = wire.rule

        def rule(p):
            if xpass.is_credit(p) and p.words[0] == 5:
                p.late = RTT / 4
            return trim(p)
        wire.rule = rule
        payload = pattern(23 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 3 * RTT), payload, "bytes")
        wire.run(5e-3)
        equal([(p.seq, p.len) for p in repairs(wire, lost)], lost, "repairs")
        equal([ndp(wire.a)["CreditReceived"], wire.a.greenlane()["Invalid"]], [len(lost), 1],
              "pulls that count, Invalid")


@case("a request is lost: the sender repeats it, without a timer of TCP's", version=(4, 6))
def lost_request(version):
    packets = 20
    with wires(version=version) as wire:
        client, server = wire.connect()
        sockopt(client, GREENLANE_BDP, MSS[version])
        wire.mark()
        end = time.monotonic() + 2 * RTT
        wire.rule = lambda p: p.says == REQUEST and p.time < end
        true(wire.transfer(client, server, packets * MSS[version], 10 * RTT), "arrives in ten round trips")
        equal(len(data(wire.from_a())), packets, "packets, each once")
        asked = [p for p in wire.from_a() if p.says == REQUEST]
        true(asked[0].dropped and not asked[-1].dropped, "a request is lost, and a later one is not")
        no_timer(wire, retried=(1, 0))


@case("a report is lost: its packet is repaired, too, without an RTO, and no request is repeated",
      version=(4, 6), which=(1, 5, 12))
def lost_report(version, which):
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, *range(3, 15))
        trim = wire.rule
        wire.rule = lambda p: trim(p) or (not p.from_a and p.dscp == 61 and
                                          p.words[1] >> 16 == which)
        payload = pattern(23 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes, within 20 ms")
        wire.run(5e-3)
        equal(sorted((p.seq, p.len) for p in repairs(wire, lost)), lost, "repairs")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
        true(wire.transfer(client, server, 500_000), "and the connection goes on")


@case("a report is lost, and later round trips are faster: RACK repairs its packet, not an RTO",
      version=(4, 6))
def faster(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        trims(wire, *range(3, 15))
        trim = wire.rule

        def rule(p):
            lost = trim(p) or (not p.from_a and p.dscp == 61 and p.words[1] >> 16 == 12)
            if not p.from_a:
                # The repairs' round trips are less than the minimum: RACK ignores their ACKs.
                wire.delay = RTT / 2 - 5e-6
            return lost
        wire.rule = rule
        payload = pattern(23 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes, within 20 ms")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("a report arrives after its pull: the pull waits for it", version=(4, 6), asked=(True, False))
def early(version, asked):
    with wires(version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, 3)
        trim = wire.rule

        def rule(p):
            if not p.from_a and p.dscp == 61:
                p.late = RTT / 4
            return trim(p)
        wire.rule = rule
        payload = pattern(10 * MSS[version])
        if asked:
            sockopt(client, GREENLANE_BDP, 8 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 3 * RTT), payload, "bytes")
        equal([(p.seq, p.len) for p in repairs(wire, lost)], lost, "repairs")
        no_timer(wire)


@case("one pull in the time that the link needs for its data", version=(4, 6))
def paced(version):
    mss = MSS[version]
    with wires(version=version) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.ndp_rate", 1000)
        client, server = wire.connect()
        wire.mark()
        true(wire.transfer(client, server, 200 * mss), "arrives")
        pulls = [p.time for p in wire.from_b() if xpass.is_credit(p)]
        # 38 bytes of Ethernet, preamble and gap, and the headers.
        ideal = (mss + 32 + (20 if version == 4 else 40) + 38) * 8e-9
        within((pulls[-1] - pulls[0]) / (len(pulls) - 1) / ideal, 0.99, 1.02, "interval / ideal")


@case("ndp_idle: the first window of the next message", version=(4, 6), idle=(0, 1000))
def idle(version, idle):
    with wires(version=version) as wire:
        wire.a.sysctl("net.ipv4.ndp_idle", idle)
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "arrives")
        wire.run(5e-3)
        wire.mark()
        true(wire.transfer(client, server, 20_000), "the next one arrives")
        pulled = any(xpass.is_credit(p) for p in wire.from_b())
        equal(pulled, bool(idle), "the next message waits for pulls")
        wire.run(1.0)
        wire.mark()
        true(wire.transfer(client, server, 20_000), "the one after a second arrives")
        equal([p for p in wire.from_b() if xpass.is_credit(p)], [], "pulls after a second")


@case("greenlane_trim=0 at the receiver: TCP itself finds what was trimmed", version=(4, 6))
def unreported(version):
    with wires(version=version) as wire:
        wire.b.sysctl("net.ipv4.greenlane_trim", 0)
        client, server = wire.connect()
        wire.mark()
        trims(wire, 3, 4, 9)
        payload = pattern(23 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 0.1), payload, "bytes")
        equal([reports(wire), wire.a.netstat("TCPTimeouts")], [[], 0], "reports, RTOs")


@case("a peer without ndp: reno's RACK has no wider window", version=(4, 6),
      ccs=(("ndp", "cubic"), ("cubic", "ndp")))
def own_rack(version, ccs):
    with wires(ccs[0], cc_b=ccs[1], version=version) as wire:
        pair = wire.connect()
        true(wire.transfer(*pair, 50_000), "arrives")
        equal([tcp_info(end, REORD_SEEN) for end in pair], [0, 0], "reordering that TCP has seen")


@case("a forged trimmed packet has the receiver pull once", version=(4, 6))
def forged_trim(version):
    with wires(version=version) as wire:
        client, server = wire.connect()
        _, trimmed, end = forged(wire, client, server)
        before = ndp(wire.b)["CreditSent"]
        trimmed(end, 1000)
        wire.run(5e-3)
        equal(ndp(wire.b)["CreditSent"] - before, 1, "pulls")
        true(wire.transfer(client, server, 200_000), "the connection goes on")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("forged numbers of reports: real ones count afterwards", version=(4, 6),
      number=(1, 100, 4096, 4097, 0x7fff, 0x8000, 0xffff))
def forged_number(version, number):
    with wires(version=version) as wire:
        client, server = wire.connect()
        report, _, end = forged(wire, client, server)
        report(end, 1000 | number << 16)
        wire.run(5e-3)
        wire.mark()
        lost = trims(wire, *range(3, 15))
        payload = pattern(23 * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 5 * RTT), payload, "bytes, within five round trips")
        equal(sorted((p.seq, p.len) for p in repairs(wire, lost)), lost, "repairs")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("a forged pull permits no more than a window, and the connection stays", ahead=(60, 60_000))
def forged_pull(ahead):
    with wires(speed=1000) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 200_000), "arrives")
        wire.run(5e-3)
        Attacker(wire, client, server).forge(
            False, CREDIT, option(CREDIT, ndp(wire.b)["CreditSent"] + ahead))
        wire.run(1e-3)
        for _ in range(3):
            began = time.monotonic()
            true(wire.transfer(client, server, 100_000), "arrives")
            # 0.86 ms of the link, and round trips; the first request is repeated.
            within(time.monotonic() - began, 0.8e-3, 4e-3, "time of 100 kB, s")
        equal([cc_of(client), wire.a.greenlane()["Fallback"]], ["ndp", 0],
              "congestion control, Fallback")


@case("a writer with a small buffer rests: no pull of before adds to the next first window",
      size=(20_000, 35_000, 50_000))
def kept(size):
    with wires(speed=1000) as wire:
        client, server = wire.connect(SO_SNDBUF=size)
        end = time.monotonic() + 3e-3

        def step():
            for io in (lambda: client.send(pattern(200_000)) if time.monotonic() < end else None,
                       lambda: server.recv(1 << 20)):
                try:
                    io()
                except BlockingIOError:
                    pass
            return False
        wire.run(1.0, step)
        wire.mark()
        sockopt(client, GREENLANE_BDP, 3 * MSS[4])
        client.send(pattern(10 * MSS[4]))
        wire.run(RTT / 2)
        equal(len(data(wire.from_a())), 3, "packets that leave at once")


@case("reports that are lost for good take no credit of later requests", how=("sysctl", "wire"))
def unread(how):
    with wires(speed=1000) as wire:
        if how == "sysctl":
            wire.a.sysctl("net.ipv4.greenlane_trim", 0)
        client, server = wire.connect()
        trim = trims(wire, *range(0, 120, 3)) and None or wire.rule
        wire.rule = lambda p: trim(p) or (how == "wire" and not p.from_a and p.dscp == 61)
        true(wire.transfer(client, server, 120_000, 5.0), "arrives")
        wire.run(20e-3)
        wire.rule = None
        sockopt(client, GREENLANE_BDP, MSS[4])
        true(wire.transfer(client, server, 5 * MSS[4]), "arrives, and ends what was left")
        wire.run(1e-3)
        before = ndp(wire.b)["CreditSent"], ndp(wire.a)["CreditWasted"]
        for _ in range(20):
            true(wire.transfer(client, server, 5 * MSS[4]), "arrives")
            wire.run(1e-3)
        equal((ndp(wire.b)["CreditSent"] - before[0], ndp(wire.a)["CreditWasted"] - before[1]),
              (20 * 4, 0), "pulls, wasted")


@case("headers that wait for a process are pulled for, each of them")
def owned():
    packets = 12
    with wires(speed=1000) as wire:
        client, server = wire.connect()
        wire.mark()
        lost = trims(wire, *range(packets))
        holder = hold(server, 1)
        payload = pattern(packets * MSS[4])
        client.send(payload)
        wire.run(2e-3 - RTT)
        holder.join()
        equal(wire.receive(server, len(payload), 5e-3), payload, "bytes")
        equal(len(reports(wire)), len(lost), "reports")
        pulls = [p.time for p in wire.from_b() if xpass.is_credit(p)]
        # 12.3 us each, at 1 Gbit/s: all of them before the sender can answer the first.
        true(pulls[-1] - pulls[0] < RTT, f"pulls in {(pulls[-1] - pulls[0]) * 1e6:.0f} us")
        no_timer(wire)


@case("a peer that sends headers only loses its share of the link")
def headers_only():
    with wires(speed=1000) as wire:
        cheat, honest = wire.connect(1001), wire.connect(1002)
        for pair in (cheat, honest):
            true(wire.transfer(*pair, 3000), "arrives")

        def rule(p):
            if p.from_a and p.len and p.dport == 1001:
                cut(p)
            return False
        wire.rule = rule
        cheat[0].send(pattern(60_000))
        wire.run(4e-3)
        began = time.monotonic()
        true(wire.transfer(*honest, 300_000), "arrives")
        # 2.8 ms alone; with half of the link 5.2.
        within(time.monotonic() - began, 2.5e-3, 3.6e-3, "time of 300 kB, s")


def drop_first(wire, which):
    """The wire drops these of a's packets with data, numbered from 1."""
    number = itertools.count(1)
    wire.rule = lambda p: bool(p.from_a and p.len) and next(number) in which


@case("aeolus_ndp: a probe ends the first window, and the receiver pulls what was dropped",
      version=(4, 6), tso=(True, False), lost=((3,), (1,), (8, 9, 10), (10,), tuple(range(1, 11))))
def probed(version, tso, lost):
    packets = 10
    with wires(cc="aeolus_ndp", version=version, tso=tso) as wire:
        client, server = wire.connect()
        equal([cc_of(end) for end in (client, server)], ["aeolus_ndp"] * 2, "congestion control")
        wire.mark()
        drop_first(wire, lost)
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        sent = data(wire.from_a())
        equal([p.dscp for p in sent],
              [UNSCHEDULED.dscp] * packets + [SCHEDULED.dscp] * len(lost), "DSCPs of data")
        equal(kinds(wire.from_a()).count(PROBE), 1, "probes")
        equal(ndp(wire.b)["CreditSent"], len(lost), "pulls")
        within(took, 1.5 * RTT, 1.8 * RTT, "time until the message is read, s")
        no_timer(wire)


@case("the probe or its answer is lost: the probe is repeated, and no timer of TCP's expires",
      version=(4, 6), cc=("aeolus_ndp", "aeolus_homa"), kind=(PROBE, PROBE_ACK),
      lost=((), (10,), tuple(range(1, 11))))
def probe_lost(version, cc, kind, lost):
    packets = 10
    with wires(cc=cc, version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        number, probes = itertools.count(1), itertools.count()
        wire.rule = lambda p: (next(probes) == 0 if p.kind == kind else
                               bool(p.from_a and p.len) and next(number) in lost)
        payload = pattern(packets * MSS[version])
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(20e-3)
        equal([len(data(wire.from_a())), kinds(wire.from_a()).count(PROBE)],
              [packets + len(lost), 1 + bool(lost)], "packets, probes")
        # Of the next burst all arrives.
        retried = wire.a.greenlane()
        wire.mark()
        true(wire.transfer(client, server, len(payload)), "the next message arrives")
        wire.run(5e-3)
        equal([kinds(wire.from_a()).count(kind) for kind in (PROBE, REQUEST)], [1, 0],
              "probes and requests of the next message")
        name = f"{cc.removeprefix('aeolus_').title()}RequestRetried"
        equal(wire.a.greenlane()[name], retried[name], name)
        # The wait of the sender for a credit, and two round trips.
        within(took, 0.5 * RTT, 6 * RTT if lost else 0.65 * RTT, "time until the message is read, s")
        for ns in (wire.a, wire.b):
            equal([ns.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
                  f"{ns.name}: RTOs, TLPs")


@case("a process owns the sender when the answer of the probe arrives: its lost packets are repaired",
      version=(4, 6), cc=("aeolus_ndp", "aeolus_homa"), lost=((10,), (9, 10), tuple(range(1, 11))))
def answer_held(version, cc, lost):
    packets = 10
    with wires(cc=cc, version=version) as wire:
        client, server = wire.connect()
        drop_first(wire, lost)
        payload = pattern(packets * MSS[version])
        wire.mark()
        client.send(payload)
        wire.run(0.9 * RTT)
        holder = hold(client, 3)
        wire.run(3e-3)
        holder.join()
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")


@case("answers of probes are late, for many messages: the next lost probe is repeated at once, too",
      cc=("aeolus_ndp", "aeolus_homa"))
def late_answers(cc):
    packets = 10
    with wires(cc=cc) as wire:
        client, server = wire.connect()
        payload = pattern(packets * MSS[4])
        for _ in range(12):
            # The sender repeats a probe after four of the shortest round trips.
            wire.delay = 2 * RTT
            true(wire.transfer(client, server, len(payload)), "arrives")
            wire.run(5e-3)
            wire.delay = RTT / 2
            wire.run(5e-3)
        equal(cc_of(client), cc, "congestion control")
        wire.mark()
        number, probes = itertools.count(1), itertools.count()
        wire.rule = lambda p: (next(probes) == 0 if p.kind == PROBE else
                               bool(p.from_a and p.len) and next(number) == packets)
        client.send(payload)
        equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
        within(time.monotonic() - wire.seen[0].time, RTT, 6 * RTT, "time until the message is read, s")


@case("aeolus_ndp: one pull for each dropped packet of the first window, and for the rest of a message",
      version=(4, 6), share=(0, 0.3, 1), size=(250_000, 500_000))
def probed_rest(version, share, size):
    chance = random.Random(1)
    with wires(cc="aeolus_ndp", version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 300_000), "the receive window grows")
        wire.run(5e-3)
        wire.mark()
        wire.rule = lambda p: (p.from_a and p.dscp == UNSCHEDULED.dscp and bool(p.len)
                               and chance.random() < share)
        payload = pattern(size)
        client.send(payload)
        equal(wire.receive(server, len(payload), 50e-3), payload, "bytes")
        took = time.monotonic() - wire.seen[0].time
        wire.run(5e-3)
        equal(len(xpass.credits(wire.from_b())),
              sum(p.dscp == SCHEDULED.dscp for p in data(wire.from_a())), "pulls; pulled packets")
        # The link needs 0.2 ms for the first window.
        within(took, 0.5 * RTT, 0.6e-3 + (size - 250_000) * 1.4e-9,
               "time until the message is read, s")
        no_timer(wire)


@case("aeolus_ndp: ports that trim and ports that drop on one path", version=(4, 6))
def trimmed_and_dropped(version):
    packets = 40
    with wires(cc="aeolus_ndp", version=version) as wire:
        client, server = wire.connect()
        number = itertools.count(1)

        def rule(p):
            n = next(number) if p.from_a and p.len and p.dscp == UNSCHEDULED.dscp else 0
            if n % 4 == 1:
                cut(p)
            return n % 4 == 2
        wire.rule = rule
        payload = pattern(packets * MSS[version])
        for _ in range(4):
            wire.mark()
            client.send(payload)
            equal(wire.receive(server, len(payload), 20e-3), payload, "bytes")
            took = time.monotonic() - wire.seen[0].time
            wire.run(5e-3)
            # A trimmed packet has no data.
            equal(len(data(wire.from_a())), packets + packets // 4, "packets, each repaired once")
            equal(len(xpass.credits(wire.from_b())), packets // 2, "pulls")
            within(took, 1.5 * RTT, 2 * RTT, "time until the message is read, s")
        no_timer(wire)


@case("aeolus_ndp and ndp are peers", version=(4, 6))
def peers(version):
    with wires(cc="aeolus_ndp", cc_b="ndp", version=version) as wire:
        client, server = wire.connect()
        equal([cc_of(end) for end in (client, server)], ["aeolus_ndp", "ndp"], "congestion control")
        wire.rule = lambda p: p.from_a and p.dscp == UNSCHEDULED.dscp and bool(p.len) and p.seq % 3 == 0
        true(wire.transfer_both(client, server, 300_000), "both arrive")
        equal(wire.a.greenlane()["PeerWithout"], 0, "PeerWithout")


@case("both ends send at once, and packets of both are trimmed", version=(4, 6), tso=(True, False))
def both(version, tso):
    chance = random.Random(2)

    def rule(p):
        if p.len and chance.random() < 0.3:
            cut(p)
        return False
    with wires(version=version, tso=tso) as wire:
        ends = wire.connect()
        wire.mark()
        wire.rule = rule
        payload = pattern(400_000)
        got = {s: bytearray() for s in ends}

        def step():
            for s in ends:
                for io in (lambda s=s: got[s].extend(s.recv(1 << 20)),
                           lambda s=s: sent.update({s: sent[s] + s.send(payload[sent[s]:])})):
                    try:
                        io()
                    except BlockingIOError:
                        pass
            return all(len(b) == len(payload) for b in got.values())
        sent = dict.fromkeys(ends, 0)
        true(wire.run(50e-3, step), "both arrive")
        true(all(b == payload for b in got.values()), "the bytes received are those sent")
        for ns in (wire.a, wire.b):
            equal(ns.netstat("TCPTimeouts"), 0, f"{ns.name}: RTOs")


if __name__ == "__main__":
    tap.main()
