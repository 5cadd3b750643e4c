#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TIMELY on the wire: the RTT, and its effect on the rate.

	a (client, sends) ---- wire (this program: a queue that delays data) ---- b (server)

timely_kunit.c tests the arithmetic.  These cases test which RTTs are samples, and when a flow
begins.
"""
import array
import contextlib
import fcntl
import functools
import itertools
import socket
import time

from lab.net import modules
from lab.net.namespace import CC, Namespace
from lab.tap import case, equal, main, true, using, within
from lab.wire.dart import HEADERS, RATE, RTT, line, read_all, reno_after
from lab.wire.packet import SYN, data
from lab.wire.sockopt import SO_MAX_PACING_RATE, abort, cc_of, choose, cwnd, pacing, refused
from lab.wire.transcript import lose
from lab.wire.wire import MSS, Wire, connected

SEGMENT = 16384         # bytes of a completion event: 141 us on the wire, at 1 Gbit/s
DELTA = 10              # Mbit/s
SYSCTLS = {"rate": RATE, "rtt": round(RTT * 1e6)}


def timely(cc="timely", quiet=True, **options):
    """A wire at 1 Gbit/s.  If `quiet`, no RTT is above or below a threshold, and no gradient has an
    effect."""
    wire = Wire(**{"cc": cc, "rto_min": 200, **options})
    for ns in (wire.a, wire.b):
        for name, value in (SYSCTLS | ({"beta": 0} if quiet else {})).items():
            ns.sysctl(f"net.ipv4.timely_{name}", value)
    wire.delay = RTT / 2
    return wire


everywhere = using(connected, of=timely, version=(4, 6), tso=(True, False))
loud = functools.partial(timely, quiet=False)


def configure(wire, **values):
    """Set net.ipv4.timely_* of a."""
    for name, value in values.items():
        wire.a.sysctl(f"net.ipv4.timely_{name}", value)


def mbit(s, version=4):
    """The rate on the link, Mbit/s."""
    return pacing(s) / line(version) * RATE


def sending(wire, client, server, seconds, until):
    """a sends for `seconds`, or until until(rate in Mbit/s) is true; returns whether it was."""
    def step():
        read_all([server])
        with contextlib.suppress(BlockingIOError):
            client.send(bytes(100_000))
        return until(mbit(client, wire.version))
    return wire.run(seconds, step)


def rates(wire, client, server, count, seconds=50e-3):
    """The rate, and up to `count` more, each different from the one before, Mbit/s."""
    seen = [mbit(client, wire.version)]

    def changed(rate):
        if rate != seen[-1]:
            seen.append(rate)
        return len(seen) > count
    sending(wire, client, server, seconds, changed)
    return seen


def steps(seen):
    """Differences between successive rates."""
    return [after - before for before, after in zip(seen, seen[1:])]


def slowed(wire, client, server, to=600):
    """Reduce the rate by RTTs above a threshold, to `to` Mbit/s or less."""
    configure(wire, t_high=90, t_low=0, beta=800)

    true(sending(wire, client, server, 50e-3, lambda rate: rate <= to), f"{to} Mbit/s or less")
    configure(wire, t_high=500, t_low=50, beta=0)


@everywhere("a flow begins at line rate, and keeps it; data has no option and no ECN")
def line_rate(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 400_000), "arrives")
    sent = data(wire.from_a())[20:]
    rate = sum(p.len for p in sent[:-1]) / (sent[-1].time - sent[0].time)
    within(rate / line(wire.version), 0.97, 1.03, "rate of payload, by line rate")
    within(mbit(client, wire.version), 0.999 * RATE, 1.001 * RATE, "Mbit/s")
    equal({(p.dsfield, p.doff) for p in sent}, {(0, 32)}, "DS field, TCP header of data")


@everywhere("below timely_t_low the rate rises by a step for each completion event")
def below(wire, client, server):
    slowed(wire, client, server)
    configure(wire, t_low=500)
    begin = time.monotonic()
    seen = steps(rates(wire, client, server, 12))
    for step in seen[1:]:
        within(step, 0.98 * DELTA, 1.02 * DELTA, f"step, Mbit/s, of {seen}")
    # 600 Mbit/s are a segment in 235 us
    within((time.monotonic() - begin) / 12, 200e-6, 320e-6, "time of an event, s")


@everywhere("a smaller segment: an event each base RTT, not more often")
def often(wire, client, server):
    slowed(wire, client, server)
    configure(wire, t_low=500, segment=1)
    begin = time.monotonic()
    seen = steps(rates(wire, client, server, 21)[1:])
    within(max(seen), 0.98 * DELTA, 1.02 * DELTA, "longest step, Mbit/s")
    within((time.monotonic() - begin) / 21, RTT, RTT + 45e-6, "time of an event, s")


@everywhere("above timely_t_high the rate falls by beta (1 - t_high / RTT)")
def above(wire, client, server):
    rates(wire, client, server, 1, 2e-3)
    configure(wire, t_high=50, t_low=0, beta=800)
    seen = rates(wire, client, server, 4)
    # the RTT is 100 us, and the time of a burst
    for before, after in zip(seen, seen[1:]):
        within(after / before, 1 - 0.8 * (1 - 50 / 160), 1 - 0.8 * (1 - 50 / 100), f"of {seen}")


def growing(wire, slope, begin=0.0):
    """From now on the queue of a's data grows by `slope` seconds a second; returns its function."""
    since = time.monotonic()

    def late():
        return max(begin + slope * (time.monotonic() - since), 0)

    def rule(p):
        if p.from_a and p.len:
            p.late = late()
        return False
    wire.rule = rule
    return late


@using(connected, of=loud, version=(4, 6), tso=(True, False))(
    "while the RTT grows between the thresholds the rate falls by the gradient; while it falls the"
    " rate rises, and from the fifth event on by five steps")
def gradient(wire, client, server):
    configure(wire, t_high=100_000, t_low=0)
    rates(wire, client, server, 1, 2e-3)
    late = growing(wire, 0.2)
    seen = rates(wire, client, server, 8)
    ratios = [after / before for before, after in zip(seen, seen[1:])]
    # An event takes 141 us and more, so the RTT grows by 0.28 base RTTs: 1 - 0.8 * 0.28.  At
    # lower rates an event takes longer, and the ratio is smaller, but not below a half.
    true(all(0.499 < ratio < 0.85 for ratio in ratios[1:]), f"all fall: {ratios}")
    within(ratios[1], 0.7, 0.85, f"first full ratio of {ratios}")
    within(ratios[-1], 0.499, 0.501, f"last of {ratios}")
    configure(wire, segment=1)      # or an event takes milliseconds
    growing(wire, -0.05, begin=late())
    seen = steps(rates(wire, client, server, 30, 50e-3))
    rising = list(itertools.dropwhile(lambda step: step < 0, seen))
    for step, count in zip(rising, (1, 1, 1, 1, 5, 5, 5)):
        within(step, 0.98 * count * DELTA, 1.02 * count * DELTA, f"step, Mbit/s, of {rising}")


@case("the rate has a minimum: 1/1024 of line rate, and 1.2 Mbit/s", rate=(RATE, 100))
def least(rate):
    with loud() as wire:
        client, server = wire.connect()
        configure(wire, t_high=10, rate=rate)
        rates(wire, client, server, 100, 0.6)
        within(mbit(client), *(f * max(rate / 1024, 1.2) for f in (0.98, 1.02)), "Mbit/s")
        configure(wire, t_low=1000, delta=10_000_000, segment=1)
        true(sending(wire, client, server, 0.1, lambda now: 0.99 * rate < now < 1.01 * rate),
             "line rate after short RTTs")


@case("an ACK of data that was sent twice is no sample", stamps=(1, 0))
def twice(stamps):
    with loud(tso=False) as wire:
        # An RTT of a time stamp is 1 ms at least, above T_high.  All others are below T_low.
        configure(wire, t_low=500)
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_timestamps", stamps)
        client, server = wire.connect()
        for _ in range(5):
            numbers = itertools.count()
            wire.rule = lambda p, numbers=numbers: \
                bool(p.from_a and p.len and next(numbers) in range(10, 40))
            true(wire.transfer(client, server, 60 * 1448, 0.1), "arrives")
            within(mbit(client), 0.99 * RATE, 1.01 * RATE, "Mbit/s after losses")


def beside(wire):
    """The rate at which another flow starts, Mbit/s."""
    client, server = wire.connect(7000)
    client.send(bytes(1000))
    found = mbit(client, wire.version)
    wire.run(5e-3, lambda: read_all([server]) and False)
    return found


@case("a connection without data in flight is not active", how=("SYN_SENT", "window", "cork"))
def inactive(how):
    with timely() as wire:
        listener, ends = wire.listen(1000, **({"SO_RCVBUF": 4096} if how == "window" else {})), []
        for _ in range(9):
            if how == "SYN_SENT":
                client = wire.socket(wire.a, "reno")
                wire.begin(client, wire.b)
                choose(client, "timely")
                wire.run(3e-3)
                ends.append((client, wire.accept(listener)))
                continue
            client, server = wire.connect(1000, listener=listener)
            ends.append((client, server))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, how == "cork")
            client.send(bytes(200_000 if how == "window" else 2000))
        wire.run(1)
        within(beside(wire), 0.99 * RATE, 1.01 * RATE, "Mbit/s of a flow beside 9 others")


@case("a peer with small packets and late ACKs gets a window below 2^31", cc=("timely", "dcqcn"))
def enormous(cc):
    with timely(cc=cc) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(f"net.ipv4.{cc}_rate", 1_600_000)
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        listener = wire.listen(1000, TCP_MAXSEG=88)
        client, server = wire.connect(1000, listener=listener)
        wire.delay = 1
        client.send(bytes(1000))
        wire.run(8, lambda: read_all([server]) and False)
        true(64 <= cwnd(client) < 1 << 31, f"window: {cwnd(client)} packets")


@case("a loss does not change the rate", connected, of=timely)
def losses(wire, client, server):
    wire.mark()
    lost, seen = lose("> unmarked", every=10), set()
    wire.rule = lambda p: seen.add(mbit(client)) or lost(p)
    true(wire.transfer(client, server, 400_000, 50e-3), "arrives")
    wire.rule = None
    true(len(lost.dropped) > 20, "more than 20 packets are lost")
    within(min(seen), 0.999 * RATE, 1.001 * RATE, "minimum of the rate, Mbit/s")
    equal(wire.a.netstat("TCPTimeouts"), 0, "timeouts")


@case("after a timeout the window does not limit the flow", connected, of=timely)
def timeout(wire, client, server):
    cut = time.monotonic() + 0.15
    wire.rule = lambda p: bool(p.from_a and p.len and time.monotonic() < cut)
    true(wire.transfer(client, server, 300_000), "arrives")
    true(wire.a.netstat("TCPTimeouts") > 0, "timeouts")
    true(cwnd(client) >= 64, f"window: {cwnd(client)} packets")


@case("a delayed ACK of a lone packet is no sample", size=(1000, MSS[4], 3 * MSS[4]))
def delayed(size):
    with loud(tso=False) as wire:
        client, server = wire.connect()
        configure(wire, t_high=1000)
        late = 0
        for _ in range(20):
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            wire.mark()
            client.send(bytes(size))
            wire.run(0.1, lambda: read_all([server]))
            late += wire.from_b()[-1].time - wire.from_a()[-1].time > 10e-3
        true(late >= 10, f"delayed ACKs: {late}")
        within(mbit(client), 0.999 * RATE, 1.001 * RATE, "Mbit/s")


@case("a slow flow with one packet in flight has samples", connected, of=loud)
def lone(wire, client, server):
    configure(wire, t_high=10)
    rates(wire, client, server, 100, 0.2)
    within(mbit(client), 0.9, 1.3, "Mbit/s: a packet in 10 ms")
    configure(wire, t_low=1000, t_high=1000, segment=1, delta=1000)
    seen = steps(rates(wire, client, server, 5, 0.2)[1:])
    equal([round(step, 1) for step in seen], [1.0] * 4, "steps, Mbit/s")


@case("with N active flows another one begins at C / (N + 1); an idle one does not count",
      version=(4, 6))
def share(version):
    with timely(version=version) as wire:
        flows = [wire.connect(1000 + number) for number in range(4)]
        for number, (client, _) in enumerate(flows[:3]):
            client.send(bytes(500_000))
            within(mbit(client, version), 0.99 * RATE / (number + 1), 1.01 * RATE / (number + 1),
                   f"Mbit/s with {number} active flows")
        wire.run(30e-3, lambda: read_all([server for _, server in flows]))
        client, server = flows[3]
        client.send(bytes(10_000))
        within(mbit(client, version), 0.99 * RATE, 1.01 * RATE, "Mbit/s after them")
        # One that ends with data in flight does not count, either.
        flows[0][0].send(bytes(500_000))
        abort(flows[0][0])
        wire.run(10e-3, lambda: read_all([server for _, server in flows[1:]]))
        flows[1][0].send(bytes(10_000))
        within(mbit(flows[1][0], version), 0.99 * RATE, 1.01 * RATE, "Mbit/s after an abort")


def unsent(s):
    """Bytes that are written and not acknowledged (SIOCOUTQ)."""
    count = array.array("i", [0])
    fcntl.ioctl(s, 0x5411, count)
    return count[0]


@case("after eight base RTTs without data a flow begins anew, but not after a shorter pause",
      connected, of=timely)
def idle(wire, client, server):
    slowed(wire, client, server)
    configure(wire, delta=1)
    for pause, low, high in ((5 * RTT, 300, 660), (9 * RTT, 0.99 * RATE, 1.01 * RATE)):
        true(wire.run(20e-3, lambda: read_all([server]) or not unsent(client)), "all is sent")
        wire.run(RTT + pause)
        client.send(bytes(1000))
        within(mbit(client), low, high, f"Mbit/s after {pause} s")
        wire.run(0.5 * RTT)


@case("an idle flow sends no packet", connected, of=timely)
def silent(wire, client, server):
    wire.transfer(client, server, 50_000)
    wire.run(0.3)
    wire.mark()
    wire.run(5.0)
    equal(wire.seen, [], "packets")


@everywhere("data in both directions at once arrives")
def duplex(wire, client, server):
    true(wire.transfer_both(client, server, 300_000), "arrives")


@case("a peer without timely: the rate is TIMELY's", version=(4, 6), cc_b=("cubic", "reno"),
      of_server=(False, True))
def peer(version, cc_b, of_server):
    ccs = {"cc": cc_b, "cc_b": "timely"} if of_server else {"cc": "timely", "cc_b": cc_b}
    with Wire(version=version, rto_min=200, **ccs) as wire:
        wire.delay = RTT / 2
        ends = wire.connect()
        sender, receiver = ends[::-1] if of_server else ends
        ns = wire.b if of_server else wire.a
        for name, value in (SYSCTLS | {"t_low": 0, "t_high": 50}).items():
            ns.sysctl(f"net.ipv4.timely_{name}", value)
        equal(cc_of(sender), "timely", "congestion control")
        true(wire.transfer(sender, receiver, 200_000), "arrives")
        within(mbit(sender, version), 1, 500, "Mbit/s after RTTs above timely_t_high")
        equal({p.ecn for p in wire.seen if not p.flags & SYN}, {0}, "ECN fields")


@case("a listener's children have its congestion control", connected, of=timely, version=(4, 6),
      cc_b="reno")
def children(wire, _client, _server, version=4):
    listener = wire.listen(1001, cc="timely")
    flows = [wire.connect(1001, listener=listener) for _ in range(3)]
    for client, server in flows:
        equal(cc_of(server), "timely", "congestion control")
        true(wire.transfer(server, client, 100_000), "arrives")
        wire.run(1e-3)              # its last ACK
        within(mbit(server, wire.version), 0.99 * RATE, 1.01 * RATE, "Mbit/s")


@case("the link's speed is the first rate", speed=(100, 1000, 10_000, 100_000))
def link(speed):
    with Wire(cc="timely", rto_min=200, speed=speed) as wire:
        client, _ = wire.connect()
        within(pacing(client) * 8e-6 * (MSS[4] + HEADERS[4]) / MSS[4], 0.999 * speed,
               1.001 * speed, "Mbit/s")


@case("sysctls: defaults and limits; a flow follows a change of line rate")
def sysctls():
    with Wire(cc="timely", rto_min=200) as wire:
        for name, default, bad in (("rate", 0, (-1, 1600001)), ("delta", 10000, (0, 1600000001)),
                                   ("alpha", 875, (0, 1001)), ("beta", 800, (-1, 1001)),
                                   ("t_low", 50, (-1, 1000001)), ("t_high", 500, (-1, 1000001)),
                                   ("rtt", 0, (-1, 1000001)), ("burst", 5, (-1, 1001)),
                                   ("segment", SEGMENT, (0, 1048577))):
            key = f"net.ipv4.timely_{name}"
            equal(int(wire.a.sysctl(key)), default, key)
            for value in bad:
                refused(key, 22, wire.a.sysctl, key, value)
            equal(int(wire.a.sysctl(key)), default, f"{key} afterwards")
        client, server = wire.connect()
        wire.transfer(client, server, 50_000)
        wire.a.sysctl("net.ipv4.timely_rate", RATE // 4)
        equal(wire.b.sysctl("net.ipv4.timely_rate"), "0", "timely_rate of b")
        wire.transfer(client, server, 50_000)
        within(mbit(client), 0.249 * RATE, 0.251 * RATE, "Mbit/s at a quarter of line rate")
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 5_000_000)
        wire.transfer(client, server, 10_000)
        equal(pacing(client), 5_000_000, "pacing rate with the application's limit, bytes/s")


@case("reno after timely: TCP does not pace, unless the application limits the rate",
      version=(4, 6), limited=(False, True))
def reno(version, limited):
    with timely(version=version, tso=False) as wire:
        reno_after(wire, limited)


@case("each congestion control before and after timely, in the middle of a transfer",
      version=(4, 6), cc=("reno", "dctcp", "dcqcn", "hpcc", "tlt_reno"))
def changes(version, cc):
    modules.load_for(cc)
    modules.allow()
    with timely(version=version) as wire:
        client, server = wire.connect()
        client.send(bytes(300_000))
        wire.run(0.3e-3)
        for name in (cc, "timely", cc):
            choose(client, name)
            wire.run(0.5e-3)
        choose(client, "timely")
        equal(cc_of(client), "timely", "congestion control")
        within(mbit(client, version), 0.99 * RATE, 1.01 * RATE, "Mbit/s: it is the only active flow")
        equal(len(wire.receive(server, 300_000)), 300_000, "bytes")
        true(wire.transfer(client, server, 100_000), "arrives")


@case("the module cannot be removed with data in flight; namespaces can, and then the module",
      version=(4, 6))
def module(version):
    with timely(version=version) as wire:
        flows = [wire.connect(1000 + number) for number in range(3)]
        for client, _ in flows:
            client.send(bytes(200_000))
        wire.run(0.3e-3)
        for name in ("tcp_timely", "link_speed"):
            equal(modules.rmmod(name), False, f"rmmod {name} with connections")
    modules.unload("tcp_timely")
    equal(modules.is_loaded("tcp_timely"), False, "the module is loaded")
    modules.load("tcp_timely")


@case("over loopback: data arrives")
def loopback():
    modules.load("tcp_timely")
    ns = Namespace("alone")
    ns.ip("link set lo up")
    ns.sysctl(CC, "timely")
    with ns:
        listener = socket.create_server(("127.0.0.1", 1000))
        client = socket.create_connection(("127.0.0.1", 1000))
        server = listener.accept()[0]
    for _ in range(50):
        client.sendall(bytes(10_000))
        got = 0
        while got < 10_000:
            got += len(server.recv(10_000))
    for s in (client, server, listener):
        s.close()
    ns.remove()


if __name__ == "__main__":
    main()
