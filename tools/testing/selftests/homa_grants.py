#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Homa: unscheduled data, grants and their levels (net/ipv4/tcp_homa.c).

	a (client, sends) ---- wire (this program) ---- b (server, grants)

The wire's round trip is 200 us, much longer than the guest's system calls.
"""
import random
import time

from lab import tap
from lab.codepoints import DSCP, REQUEST
from lab.tap import case, equal, true, within
from lab.wire import xpass
from lab.wire.packet import SYN, data
from lab.wire.sockopt import cc_of
from lab.wire.window import RTT, WINDOW, grants, is_grant, lose, small, started, wires
from lab.wire.wire import MSS, Wire, pattern

UNSCHEDULED = tuple(DSCP[f"unscheduled{of}"] for of in ("", "_2", "_3"))
SCHEDULED = tuple(DSCP[f"scheduled{of}"] for of in ("", "_2", "_3", "_4"))


def homa(ns):
    """Homa's counters."""
    return {name[4:]: n for name, n in ns.greenlane().items() if name.startswith("Homa")}


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


@case("granted data of a shorter message has a higher level, also behind its unscheduled data")
def above_unscheduled():
    with wires() as wire:
        pairs = started(wire, 2, 300_000)
        for client, _ in pairs:
            small(wire, client, 16)
        (long, its), (short, other) = pairs
        long.send(pattern(290_000))
        wire.run(3 * RTT)
        # Its first grants arrive while unscheduled data is in flight, as behind a busy link.
        port = short.getsockname()[1]
        lose(wire, lambda p: p.dport == port and p.says is None, range(1, 17))
        short.send(pattern(100_000))
        xpass.arrivals(wire, {its: 290_000, other: 100_000}, 0.1)
        bands = [{p.dscp for p in data(of(client, wire.from_a()))} & set(SCHEDULED)
                 for client, _ in pairs]
        equal(bands, [{SCHEDULED[3]}, {SCHEDULED[2]}], "bands of the longer, of the shorter one")
        equal(wire.a.netstat("TCPSACKReorder"), 0, "TCPSACKReorder")
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


@case("an outage of seconds: the first repeated request that arrives is answered",
      cc=("homa", "aeolus_homa"), seconds=(1.5, 3.2))
def outage(cc, seconds):
    with Wire(cc=cc, rto_min=200) as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 300_000)
        wire.run(0.1)
        count = client.send(pattern(1_000_000))
        wire.run(60e-6)
        wire.rule = lambda p: True
        wire.run(seconds)
        wire.mark()
        wire.rule = None
        # A request is repeated each 0.16 s.
        equal(len(wire.receive(server, count, 0.25)), count, "bytes within 0.25 s")


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
