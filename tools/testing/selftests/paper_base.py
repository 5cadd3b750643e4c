#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The TCP of the papers' baselines (scripts/kernel --base paper), packet by packet.

	a (sends) ---- wire (this program) ---- b (receives)

Each case has the setting of this kernel, and that of Linux in its place.  The RTT is 20 us by
default; a tick is 100 us.
"""
from lab.codepoints import IMPORTANT
from lab.tap import case, equal, main, true, within
from lab.wire.wire import MSS, Wire, connected

TICK = 100e-6
DELACK = 0.2
WHEEL = 64 * TICK               # step of the timer wheel for timeouts of 512 to 4095 ticks


def wire(*settings, cc="reno", **options):
    """A wire whose hosts have these settings of net.ipv4, NAME=VALUE each."""
    found = Wire(cc=cc, **options)
    for setting in settings:
        name, _, value = setting.partition("=")
        for ns in (found.a, found.b):
            ns.sysctl(f"net.ipv4.{name}", value)
    return found


def acks(wire, since):
    """When b sent ACKs, s after `since`."""
    return [p.time - since for p in wire.from_b() if not p.len]


def exchange(*settings, segments):
    """Times of the ACKs of N segments that leave one at a time, within 0.5 s."""
    with connected(lambda: wire(*settings, rto_min=1000)) as (w, client, _):
        w.run(0.5)
        w.mark()
        for _ in range(segments):
            client.send(bytes(MSS[4]))
            w.run(50e-6)
        w.run(0.5)
        return acks(w, w.from_a()[0].time)


@case("a lone segment: its ACK at once; with delayed ACKs after 200 ms", delack=(0, 1, 2))
def lone(delack):
    found = exchange(f"paper_delack={delack}", segments=1)
    equal(len(found), 1, "ACKs")
    within(found[0], *((DELACK - TICK, DELACK + WHEEL) if delack == 2 else (0, TICK)),
           "its time")


@case("two segments: an ACK each; with delayed ACKs one at the second", delack=(0, 1, 2))
def second(delack):
    found = exchange(f"paper_delack={delack}", segments=2)
    equal(len(found), 1 if delack == 2 else 2, "ACKs")
    within(found[-1], 50e-6, 100e-6, "ACK of the second")


@case("40 segments after a conversation: an ACK each, or each second, with quick ACKs fewer than one"
      " each", delack=(0, 1, 2))
def each(delack):
    with connected(lambda: wire(f"paper_delack={delack}", rto_min=1000, tso=False)) as (
            w, client, server):
        w.run(0.5)
        for _ in range(3):      # a conversation, in which Linux expects to send ACKs with answers
            client.send(b"?")
            w.run(1e-3)
            server.send(server.recv(100))
            w.run(1e-3)
            client.recv(100)
        w.mark()
        for _ in range(40):
            client.send(bytes(MSS[4]))
            w.run(50e-6)
        count = len(acks(w, w.from_a()[0].time))
        within(count, *((1, 39), (40, 40), (20, 20))[delack], "ACKs")


def lossy(*settings, lost, size=20 * MSS[4], seconds=2.0, cc="reno", **options):
    """Send `size` bytes at once; the data packets (number, copy) in `lost` are lost: number by
    sequence, copy 0 is the first transmission.  Returns ([(time, number, copy)] of
    all data packets, ACKs' times, was all received?)."""
    with connected(lambda: wire(*settings, cc=cc, tso=False, **options)) as (w, client, server):
        w.run(0.5)
        w.mark()
        first, copies, sent = None, {}, []

        def rule(p):
            nonlocal first
            if not p.from_a or not p.len:
                return False
            first = first or p
            number = (p.seq - first.seq & 0xffffffff) // MSS[4]
            copy = copies[number] = copies.get(number, -1) + 1
            sent.append((p.time - first.time, number, copy))
            return (number, copy) in lost
        w.rule = rule
        done = w.transfer(client, server, size, seconds)
        return sent, acks(w, first.time), done


@case("out of order, filled, received again: an ACK at once", delack=(1, 2))
def at_once(delack):
    sent, times, done = lossy(f"paper_delack={delack}", lost={(2, 0)}, size=8 * MSS[4])
    true(done, "all arrives")
    # Two in order make an ACK each, or one, five above the hole one each, the filled hole one.
    equal(len([t for t in times if t < 1e-3]), 9 - delack, f"ACKs: {times}")
    with connected(lambda: wire(f"paper_delack={delack}")) as (w, client, _):
        w.run(0.5)
        w.mark()
        client.send(bytes(2 * MSS[4]))
        w.run(1e-3)
        data, since = w.from_a()[0], len(w.from_b())
        w.inject(w.b, data)
        w.run(1e-3)
        equal(len(w.from_b()) - since, 1, "ACKs of data that b has already")


def at(sent, number, copy):
    """The time at which a copy of a packet left; None if it never did."""
    return next((t for t, n, c in sent if (n, c) == (number, copy)), None)


@case("the first duplicate ACK makes TCP retransmit; by the timer alone it does not",
      repair=(0, 1, 2, 3))
def duplicate(repair):
    sent, _, done = lossy(f"paper_repair={repair}", lost={(2, 0)}, size=4 * MSS[4])
    true(done, "all arrives")
    # One packet is above the hole; for RACK it may be reordering, and its timer has 2 ms.
    within(at(sent, 2, 1), *((2e-3, 3e-3), (0, 2 * TICK), (4e-3 - TICK, 5e-3))[min(repair, 2)],
           "the retransmission")


@case("a lost retransmission waits for the RTO, with RACK for the next ACK", repair=(0, 1))
def lost_again(repair):
    sent, _, done = lossy(f"paper_repair={repair}", lost={(2, 0), (2, 1)})
    true(done, "all arrives")
    within(at(sent, 2, 2), *((4e-3 - TICK, 6e-3) if repair else (0, 1e-3)), "the third copy")


@case("an RTO finds all losses, or those of the first missing range", repair=(2, 3))
def ranges(repair):
    sent, _, done = lossy(f"paper_repair={repair}", lost={(2, 0), (3, 0), (6, 0)}, size=10 * MSS[4])
    true(done, "all arrives")
    for number, rtos in ((2, 1), (3, 1), (6, repair - 1)):
        within(at(sent, number, 1), rtos * (4e-3 - TICK), rtos * 5e-3, f"packet {number} again")


@case("TLT's echo finds a lost retransmission here, too")
def echo():
    sent, _, done = lossy(lost={(2, 0), (2, 1)}, cc="tlt_reno")
    true(done, "all arrives")
    within(at(sent, 2, 2), 0, 1e-3, "the third copy")


@case("a lost tail: no probe; a probe after two RTTs, at least 10 us; Linux's after 2 ms more",
      probes=((0, 10), (3, 10), (3, 0)))
def probe(probes):
    on, pto_us = probes
    sent, _, done = lossy(f"tcp_early_retrans={on}", f"paper_pto_us={pto_us}",
                          lost={(8, 0), (9, 0)}, size=10 * MSS[4])
    true(done, "all arrives")
    again = min(t for t, number, copy in sent if copy)
    within(again, *{(0, 10): (4e-3 - TICK, 5e-3), (3, 10): (0, 2 * TICK),
                    (3, 0): (2e-3, 3e-3)}[probes], "the first retransmission")


@case("RTO: the maximum of RFC 6298's and RTO_min, where Linux adds the smoothed RTT", rfc=(1, 0))
def rto(rfc):
    with connected(lambda: wire(f"paper_rto={rfc}", "tcp_early_retrans=0", tso=False)) as (
            w, client, server):
        w.delay = 1e-3
        for _ in range(30):
            true(w.transfer(client, server, 2 * MSS[4]), "arrives")
            w.run(10e-3)
        w.mark()
        w.rule = lambda p: p.from_a and p.len
        client.send(bytes(MSS[4]))
        w.run(0.05)
        times = [p.time for p in w.from_a()]
        first, then = times[1] - times[0], times[2] - times[1]
        within(first, *((4e-3 - TICK, 4e-3 + 2 * TICK) if rfc else (6e-3 - TICK, 6.5e-3)), "RTO")
        within(then / first, 1.9, 2.2, "the next, by it")


@case("a fixed RTO is that, in whole ticks, after each timeout", us=(160, 1000))
def fixed(us):
    sent, _, _ = lossy(f"paper_rto_us={us}", lost={(0, 0), (0, 1)}, size=MSS[4])
    ticks = -(-us // 100) * TICK
    within(at(sent, 0, 1), ticks - TICK, ticks + TICK, "the first retransmission")
    within(at(sent, 0, 2) - at(sent, 0, 1), ticks - TICK, ticks + 1.5 * TICK, "the second")


@case("an RTO_min below a millisecond counts for sockets that are there already", us=(200, 1000))
def rto_min(us):
    with connected(lambda: wire(tso=False, rto_min=None)) as (w, client, server):
        true(w.transfer(client, server, 2 * MSS[4]), "arrives")
        w.a.sysctl("net.ipv4.tcp_rto_min_us", us)
        for _ in range(40):
            true(w.transfer(client, server, 2 * MSS[4]), "arrives")
        w.mark()
        w.rule = lambda p: p.from_a and p.len
        client.send(bytes(MSS[4]))
        w.run(0.05)
        times = [p.time for p in w.from_a()]
        within(times[1] - times[0], us * 1e-6 - TICK, us * 1e-6 + TICK, "RTO")


@case("a transport's packets are what they are over Linux: important data, its echo at once")
def important():
    with connected(lambda: wire(cc="tlt_reno")) as (w, client, server):
        w.mark()
        client.send(bytes(MSS[4]))
        w.run(1e-3)
        equal([p.kind for p in w.from_a()], [IMPORTANT], "packets")
        within(acks(w, w.from_a()[0].time)[0], 0, TICK, "its echo")
        true(server.recv(1 << 16), "data")


main()
