#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A trimmed packet becomes a report of one loss to its sender (net/greenlane/gl_trim.c).

	a (client) ---- wire (this program, trims) ---- b (server)
"""
import contextlib
import socket
import struct
import subprocess

from lab import tap
from lab.codepoints import DSCP, REPORT, TRIMMED
from lab.net import libc, modules
from lab.net.queue import Queue
from lab.tap import case, equal, true, within
from lab.wire.hold import hold, owned_again_and_again
from lab.wire.packet import Packet, data
from lab.wire.sockopt import cc_of, cwnd, set_tos, ssthresh, tcp_info
from lab.wire.trim import cut, forged, reports, trims
from lab.wire.wire import IFF_NAPI, MSS, Wire, pattern

MERGE = 20_000          # ns
SO_MEMINFO = 55
CCS = ("reno", "cubic", "dctcp", "bbr", "tlt_reno", "tlt_cubic", "tlt_dctcp", "tlt_bbr", "xpass",
       "aeolus_xpass", "dcqcn", "tlt_dcqcn", "dart", "tlt_dart", "timely", "hpcc", "tlt_hpcc", "ndp",
       "homa", "aeolus_homa", "aeolus_ndp", "aeolus_reno", "aeolus_cubic", "aeolus_dctcp")


class Merging(Wire):
    """A wire whose hosts merge packets that arrive within MERGE (GRO)."""
    flags = Wire.flags | IFF_NAPI

    def __init__(self, **options):
        super().__init__(**options)
        for ns in (self.a, self.b):
            # ip-netns(8) mounts the namespace's /sys.
            subprocess.run(["ip", "netns", "exec", ns.name, "sh", "-c",
                            f"echo {MERGE} >/sys/class/net/tun0/gro_flush_timeout"], check=True)


def wires(cc="reno", of=Wire, **options):
    """A wire whose hosts read trimmed packets."""
    wire = of(**{"cc": cc, "cc_b": None, "tso": False, "rto_min": 200, **options})
    modules.load("greenlane")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_active", 1)
    return wire


def counters(ns):
    """TrimmedReceived, TrimReportSent, TrimReportReceived."""
    read = ns.greenlane()
    return [read[name] for name in ("TrimmedReceived", "TrimReportSent", "TrimReportReceived")]


def timers(ns):
    """Timers of TCP's that have expired."""
    return [ns.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")]


@case("a report that the host's own queue drops is not counted", version=(4, 6))
def refused(version):
    with wires(version=version) as wire:
        pair = wire.connect()
        true(wire.transfer(*pair, 20_000), "bytes arrive")
        trims(wire, 3)
        wire.b.tc("qdisc add dev tun0 root pfifo limit 0")
        pair[0].send(pattern(10 * MSS[version]))
        wire.run(1e-3)
        equal(counters(wire.b)[:2], [1, 0], "TrimmedReceived, TrimReportSent")


@case("the receiver reports a trimmed packet, and the sender repeats that one", version=(4, 6), cc=CCS)
def exact(version, cc):
    with wires(cc, version=version) as wire:
        client, server = wire.connect()
        equal(cc_of(client), cc, "congestion control")
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        before = timers(wire.a)
        wire.mark()
        done = trims(wire, 3)
        payload = pattern(20_000)
        client.send(payload)
        equal(wire.receive(server, len(payload), 5e-3), payload, "bytes, within 5 ms")
        equal(len(done), 1, "trimmed packets")
        equal(reports(wire), done, "reports")
        equal(timers(wire.a), before, "RTOs, TLPs")
        equal(counters(wire.b)[:2] + counters(wire.a)[2:], [1, 1, 1], "counters")
        repeated = [(p.seq, p.len) for p in wire.from_a() if p.len and p.seq == done[0][0]]
        # A transport may repeat a byte to get an answer.
        equal(repeated.count(done[0]), 1, "repeated, beside the trimmed one")


@case("only the trimmed segments of a GSO packet are repeated", version=(4, 6),
      which=((0,), (3,), (1, 2, 5), (9,), tuple(range(10))), cc=("reno", "dctcp"))
def segments(version, which, cc):
    # The device has no TSO: the stack splits the packet that TCP keeps whole.
    with wires(cc, version=version, tso=True) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 40_000), "bytes arrive")
        wire.run(1e-3)
        wire.mark()
        done, mss = trims(wire, *which), MSS[version]
        payload = pattern(10 * mss)
        client.send(payload)
        equal(wire.receive(server, len(payload), 2e-3), payload, "bytes, within 2 ms")
        equal(sorted(reports(wire)), sorted(done), "reports")
        sent = [(p.seq, p.len) for p in wire.from_a() if p.dscp != DSCP["trimmed"] and p.len]
        equal(sorted(sent[10 - len(which):]), sorted(done), "segments that are repeated")
        equal(timers(wire.a), [0, 0], "RTOs, TLPs")
        # TCP's own counts of packets in flight are right: it sends on.
        true(wire.transfer(client, server, 300_000), "bytes arrive later")
        wire.run(5e-3)
        equal(outstanding(client), 0, "packets in flight at the end")


def outstanding(s):
    """tcpi_unacked + tcpi_lost + tcpi_retrans + tcpi_sacked"""
    return sum(tcp_info(s, at) for at in (24, 32, 36, 28))


@case("the retransmission is trimmed, too, twice", version=(4, 6), cc=("reno", "dctcp", "tlt_dctcp"))
def repeated(version, cc):
    with wires(cc, version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        before = timers(wire.a)
        wire.mark()
        victim, done = None, []

        def rule(p):
            nonlocal victim
            if p.from_a and p.len > 1 and len(done) < 3 and victim in (None, p.seq):
                victim = p.seq
                done.append((p.seq, p.len))
                cut(p)
            return False
        wire.rule = rule
        payload = pattern(8000)
        client.send(payload)
        equal(wire.receive(server, len(payload), 5e-3), payload, "bytes, within 5 ms")
        equal(reports(wire), done, "reports")
        equal(len(done), 3, "trimmed")
        equal(timers(wire.a), before, "RTOs, TLPs")


@case("the last packet, with a FIN, is trimmed", version=(4, 6))
def fin(version):
    with wires("reno", version=version) as wire:
        client, server = wire.connect()
        wire.mark()
        done = trims(wire, 2)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.send(pattern(2 * MSS[version] + 100))
        client.shutdown(socket.SHUT_WR)
        equal(len(wire.receive(server, 2 * MSS[version] + 100, 2e-3)), 2 * MSS[version] + 100, "bytes")
        equal(reports(wire), done, "reports")
        wire.run(1e-3)
        equal(server.recv(1), b"", "end of data")
        equal(timers(wire.a), [0, 0], "RTOs, TLPs")


@case("reports leave one in the time that the link needs for the repair", version=(4, 6))
def paced(version):
    with wires("reno", version=version, speed=1000) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 100_000), "bytes arrive")
        wire.run(5e-3)
        wire.mark()
        done = trims(wire, *range(8))
        client.send(pattern(8 * MSS[version]))
        wire.run(5e-3)
        # RACK may find the last ones, once repairs of others have arrived.
        true(set(reports(wire)) <= set(done) and len(reports(wire)) >= 6, "reports of trimmed packets")
        times = [p.time for p in wire.from_b() if p.options_at]
        took = 1538 * 8e-9
        slots = done.index(reports(wire)[-1])
        within((times[-1] - times[0]) / (slots * took), 0.97, 1.1, "time of the reports, packets")
        equal(len(server.recv(1 << 20)), 8 * MSS[version], "bytes")


@case("net.ipv4.greenlane_trim = 0: at the receiver no report, at the sender no use", at=("a", "b"))
def off(at):
    with wires("reno") as wire:
        getattr(wire, at).sysctl("net.ipv4.greenlane_trim", 0)
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        wire.mark()
        done = trims(wire, 9)
        client.send(pattern(10 * MSS[4]))
        wire.run(1e-3)
        equal(reports(wire), done if at == "a" else [], "reports")
        equal(len(server.recv(1 << 20)), 9 * MSS[4], "bytes in the first ms")
        wire.run(0.5)
        equal(len(server.recv(1 << 20)), MSS[4], "bytes later")
        equal(wire.a.netstat("TCPTimeouts") + wire.a.netstat("TCPLossProbes") > 0, True,
              "a timer of TCP's")


@case("after an RTO a report does not make TCP skip earlier lost packets", how=("trim", "pass"))
def after_rto(how):
    with wires("reno") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 3000), "bytes arrive")
        wire.mark()
        later = []

        def rule(p):
            if not p.from_a or not p.len:
                return False
            if not wire.a.netstat("TCPTimeouts"):
                return True
            # F-RTO sends new data after the head's retransmission.
            later.extend([p] * (p.seq != wire.from_a()[0].seq and not later))
            return how == "trim" and later[:1] == [p] and not cut(p)
        wire.rule = rule
        client.send(pattern(40 * MSS[4]))
        equal(len(wire.receive(server, 40 * MSS[4], 0.3)), 40 * MSS[4], "bytes within 0.3 s")
        equal(wire.a.netstat("TCPTimeouts"), 1, "RTOs")


def beside(wire, forge, late=0.0):
    """Another connection of the receiver gets the headers that forge(trimmed, end) makes; then a packet
    of this one is trimmed, and all bytes arrive within 1 ms and `late` s."""
    other, other_server = wire.connect(port=2000)
    _, trimmed, end = forged(wire, other, other_server)
    client, server = wire.connect()
    true(wire.transfer(client, server, 20_000), "bytes arrive")
    wire.run(5e-3)
    forge(trimmed, end)
    wire.mark()
    trims(wire, 9)
    client.send(pattern(10 * MSS[4]))
    equal(len(wire.receive(server, 10 * MSS[4], 1e-3 + late)), 10 * MSS[4], "bytes in time")


@case("headers of data that has arrived do not reserve the link of others", length=(65535, 1448))
def squat(length):
    def forge(trimmed, end):
        for _ in range(200):
            trimmed((end - length) & 0xffffffff, length)
        trimmed(end, 60_000)            # as long as no packet: counts as one of an MSS

    with wires("reno", speed=1000) as wire:
        beside(wire, forge)


@case("headers that arrive again and again: a report of each part, other connections' repairs do not wait",
      step=(0, 1, 500))
def again(step):
    def forge(trimmed, end):
        for number in range(200):
            trimmed(end + number * step, 1448)

    with wires("reno", speed=1000) as wire:
        beside(wire, forge, (1448 + 200 * step) * 8e-9 * 1.1)
        # The first leaves at once, and so does not wait when the second arrives.
        within(sum(length for _, length in reports(wire)), 3 * 1448, 3 * 1448 + 200 * step,
               "bytes in reports: twice the first segment, the rest, the other connection's")


@case("the minimum RTT contains a queue, which headers bypass: a retransmission's report counts")
def bypassed():
    with wires("reno") as wire:
        wire.rule = lambda p: setattr(p, "late", 200e-6)
        client, server = wire.connect()
        true(wire.transfer(client, server, 3000), "bytes arrive")
        wire.run(2e-3)
        wire.mark()
        done = []

        def rule(p):
            p.late = 200e-6 * p.from_a
            if p.from_a and p.len and len(done) < 2 and p.seq in (*done, p.seq)[:1]:
                done.append(p.seq)
                p.late = 0
                cut(p)
            return False
        wire.rule = rule
        client.send(pattern(8000))
        equal(len(wire.receive(server, 8000, 5e-3)), 8000, "bytes within 5 ms")
        equal(len(reports(wire)), 2, "reports")


@case("an ACK overtakes the report, which TCP then ignores: the segment is repeated, the window reduced")
def overtaken():
    with wires("reno") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        wire.run(2e-3)
        wire.mark()
        trims(wire, 9)
        first = wire.rule

        def rule(p):
            count = len([q for q in wire.from_a() if q.len or q.dscp == DSCP["trimmed"]])
            first(p)
            p.late = 30e-6 if p.from_a and p.len and count == 9 else 0
            p.late += 100e-6 * bool(not p.from_a and p.options_at)
            return False
        wire.rule = rule
        client.send(pattern(10 * MSS[4]))
        equal(len(wire.receive(server, 10 * MSS[4], 1e-3)), 10 * MSS[4], "bytes within 1 ms")
        true(ssthresh(client) < 1000, "the window is reduced")


@case("forged reports: nothing in flight, old, ahead, outside the windows, without the codepoint",
      version=(4, 6))
def forged_report(version):
    with wires("reno", version=version) as wire:
        client, server = wire.connect()
        report, _, una = forged(wire, client, server)
        wire.mark()
        report(una, 1000)                               # nothing is in flight
        report(una - 1000, 1000)                        # acknowledged
        report(una - 100_000, 65535)
        report(una + 10, 1000, ack=una + 10)            # acknowledges unsent data
        report(una + 0x7fffffff, 0xffff)
        wire.run(1e-3)
        true(len(wire.from_a()) <= 1, "packets of a: at most a challenge ACK")
        # In flight, the whole window is named: each segment is repeated once.
        wire.rule = lambda p: p.from_a and p.len
        client.send(pattern(5 * MSS[version]))
        wire.run(20e-6)
        sent = len([p for p in wire.from_a() if p.len])
        equal(sent, 5, "packets sent")
        wire.rule = None
        report(una, 5 * MSS[version], dscp=0)           # not a report by its codepoint
        wire.run(50e-6)
        equal(len([p for p in wire.from_a() if p.len]), 5, "packets without the codepoint")
        report(una, 0xffff)
        report(una, 0xffff)
        equal(len(wire.receive(server, 5 * MSS[version], 5e-3)), 5 * MSS[version], "bytes")
        equal(len([p for p in wire.from_a() if p.len]), 10, "packets sent in all")


@case("a peer with a small MSS reports each segment: the cuts take no more memory than TCP's own")
def cuts():
    # cubic's slow start would end by the delay of packets.
    with wires("reno", tso=True) as wire:
        listener = wire.listen()
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 88)
        client, server = wire.connect(listener=listener)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 300_000)
        while cwnd(client) < 4000:
            true(wire.transfer(client, server, 500_000, 5), "bytes arrive")
        wire.run(0.1)
        report, _, una = forged(wire, client, server)
        wire.rule = lambda p: not p.from_a
        client.setblocking(False)
        client.send(pattern(300_000))
        wire.run(2e-3)
        mss, flying = tcp_info(client, 16), tcp_info(client, 24)
        true(flying > 2500, f"packets in flight: {flying}, more than 2500")
        # TCP has no limit for the last packet of its queue, of 64 kB.
        for n in range(1, flying - 66_000 // mss):
            report(una + n * mss, mss)
        wire.run(2e-3)
        sndbuf, _, queued = struct.unpack_from("3I", client.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 36), 12)
        # tcp_fragment()'s limit: two packets of 64 kB more than the buffer, twice.
        within(queued, sndbuf / 2, 2 * (sndbuf + 2 * 66_200) + 5000, "memory of the packets")


@case("a report of a range that is SACKed in part: the rest is repeated", version=(4, 6))
def sacked(version):
    with wires("reno", version=version) as wire:
        client, server = wire.connect()
        report, _, una = forged(wire, client, server)
        wire.mark()
        count, mss = 0, MSS[version]

        def rule(p):
            nonlocal count
            count += p.from_a and p.len > 0
            return p.from_a and p.len and count != 3
        wire.rule = rule
        client.send(pattern(5 * mss))
        wire.run(25e-6)
        true([p for p in wire.from_b() if p.sacks], "a SACK")
        report(una, 5 * mss)
        wire.run(2e-6)
        again = {((p.seq - una) & 0xffffffff) // mss for p in wire.from_a()[5:]}
        equal(again, {0, 1, 3, 4}, "segments that are repeated")
        wire.rule = None
        equal(len(wire.receive(server, 5 * mss)), 5 * mss, "bytes")
        wire.run(1e-3)
        equal(outstanding(client), 0, "packets in flight at the end")


@case("forged trimmed packets: data that has arrived, or that the window does not allow",
      version=(4, 6))
def forged_trim(version):
    with wires("reno", version=version) as wire:
        client, server = wire.connect()
        _, trimmed, end = forged(wire, client, server)
        wire.mark()
        trimmed(end - 1000, 1000)               # has arrived
        trimmed(end, 0)                         # no data
        trimmed(end - 10_000_000, 65535)        # outside
        trimmed(end + 100_000_000, 1000)
        wire.run(1e-3)
        equal(reports(wire), [], "reports")
        trimmed(end + 5000, 1448)
        wire.run(1e-3)
        equal(reports(wire), [(end + 5000, 1448)], "report of a plausible one")
        # The sender has not sent these bytes.
        true(wire.transfer(client, server, 100_000), "bytes arrive")
        equal(timers(wire.a), [0, 0], "RTOs, TLPs")


@case("a report that is repeated while the retransmission is in flight changes nothing")
def twice():
    with wires("reno") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        done = trims(wire, 3)
        wire.mark()

        report = []

        def copies(p):
            if not p.from_a and p.says == REPORT:
                report.append(p)
            elif report and p.from_a and p.seq == done[0][0]:
                for _ in range(3):
                    wire.inject(wire.a, report[0])
            return first(p)
        first, wire.rule = wire.rule, copies
        client.send(pattern(12_000))
        equal(len(wire.receive(server, 12_000, 2e-3)), 12_000, "bytes")
        equal(len([p for p in wire.from_a() if p.seq == done[0][0]]), 2, "packets with these bytes")


@case("a process owns the sender, or the receiver, when the packet arrives",
      ends=("a", "b"), version=(4, 6), cc=("reno", "tlt_dctcp"))
def owned(ends, version, cc):
    with wires(cc, version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        before = timers(wire.a)
        done = trims(wire, 5)
        wire.mark()
        client.send(pattern(6 * MSS[version]))
        holder = hold(client if ends == "a" else server, 1)
        wire.run(4e-3)
        holder.join()
        equal(len(wire.receive(server, 6 * MSS[version], 3e-3)), 6 * MSS[version], "bytes within 7 ms")
        if cc == "reno":
            true(ssthresh(client) < 1000, "the window is reduced")
        # TLT's clock may find the loss while the receiver is owned.
        if cc == "reno" or ends == "a":
            equal(reports(wire), done, "reports")
        equal(timers(wire.a), before, "RTOs, TLPs")


@case("a trimmed packet, or its report, waits in an NFQUEUE: one exact report, no timer",
      version=(4, 6), cc=("reno", "ndp", "homa"),
      where=("b prerouting", "b input", "b output", "a input"))
def queued(version, cc, where):
    with wires(cc, version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        before = timers(wire.a)
        host, hook = where.split()
        queue = Queue(getattr(wire, host), f"type filter hook {hook} priority 0;"
                      f" {'ip' if version == 4 else 'ip6'} dscp {TRIMMED.dscp} queue num 0")
        # No later packet reports the loss of the last one.
        payload = pattern(20_000)
        done = trims(wire, len(payload) // MSS[version])
        wire.mark()
        client.send(payload)
        wire.run(0.1e-3)
        held = queue.packets()
        equal(len(held), 1, "packets in the queue")
        equal(len(server.recv(1 << 20)), len(payload) - done[0][1], "bytes meanwhile")
        queue.accept(held[0])
        equal(len(wire.receive(server, done[0][1], 1e-3)), done[0][1], "bytes, within 1 ms")
        wire.run(1e-3)
        equal(reports(wire), done, "reports")
        equal(counters(wire.b)[:2] + counters(wire.a)[2:], [1, 1, 1], "counters")
        equal(timers(wire.a), before, "RTOs, TLPs")


@case("a trimmed packet arrives between others of its flow, which GRO merges: exact reports, no timer",
      version=(4, 6), cc=("reno", "tlt_dctcp", "ndp", "homa"), which=((3,), (3, 4, 9), (4, 7, 8, 10)))
def merged(version, cc, which):
    with wires(cc, Merging, version=version) as wire:
        # GRO merges packets of one flow label, and ndp's have different ones.
        wire.a.sysctl("net.ipv6.auto_flowlabels", 0)
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        wire.run(5e-3)
        before, frames = timers(wire.a), []
        wire.mark()
        done, payload = trims(wire, *which), pattern(20_000)
        with wire.b, socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as seen:
            client.send(payload)
            equal(wire.receive(server, len(payload), 5e-3), payload, "bytes, within 5 ms")
            with contextlib.suppress(BlockingIOError):
                while True:
                    frames.append(Packet(seen.recv(1 << 17, socket.MSG_DONTWAIT)))
        at = [p.says for p in frames].index(TRIMMED)
        true(all(max(p.len for p in part) > MSS[version] for part in (frames[:at], frames[at:])),
             "packets before and behind it are merged")
        equal(sorted(reports(wire)), sorted(done), "reports")
        equal(counters(wire.b)[:2] + counters(wire.a)[2:], [len(which)] * 3, "counters")
        equal(timers(wire.a), before, "RTOs, TLPs")


@case("owned again and again, and each tenth packet is trimmed: all bytes arrive",
      version=(4, 6), cc=("reno", "tlt_dctcp", "xpass"))
def owned_often(version, cc):
    with wires(cc, version=version) as wire:
        client, server = wire.connect()
        trims(wire, *range(5, 4000, 10))
        with owned_again_and_again(client, 1, 0.0007), owned_again_and_again(server, 1, 0.0011):
            client.setblocking(False)
            true(wire.transfer(client, server, 400_000, 5.0), "bytes arrive")
        wire.run(50e-3)
        equal(outstanding(client), 0, "packets in flight at the end")


@case("a connection without SACK neither reports nor uses reports", version=(4, 6))
def no_sack(version):
    with wires("reno", version=version) as wire:
        wire.a.sysctl("net.ipv4.tcp_sack", 0)
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        trims(wire, 3, 4)
        wire.mark()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        equal(reports(wire), [], "reports")
        report, _, una = forged(wire, client, server)
        wire.rule = lambda p: p.from_a and p.len
        client.send(pattern(8000))
        wire.run(20e-6)
        wire.rule = None
        sent, before = len(data(wire.from_a())), counters(wire.a)[2]
        # Three would be enough duplicate ACKs for TCP's own fast retransmit.
        for _ in range(2):
            report(una, 8000)
        wire.run(1e-3)
        equal((len(data(wire.from_a())) - sent, counters(wire.a)[2] - before), (0, 0),
              "packets with data after the reports, TrimReportReceived")
        equal(len(wire.receive(server, 8000)), 8000, "bytes")


@case("greenlane_protect = 1 keeps the DSCP of a report, not that of the application's ACKs",
      version=(4, 6))
def protect(version):
    with wires("reno", version=version) as wire:
        wire.b.sysctl("net.ipv4.greenlane_protect", 1)
        with libc.without_net_admin():
            client, server = wire.connect()
        set_tos(server, DSCP["trimmed"] << 2)
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        done = trims(wire, 3)
        wire.mark()
        client.send(pattern(10_000))
        equal(len(wire.receive(server, 10_000, 5e-3)), 10_000, "bytes, within 5 ms")
        equal(reports(wire), done, "reports")
        equal({p.dscp for p in wire.from_b() if not p.options_at}, {0}, "DSCPs of other packets")


@case("two directions, early demux off, a bound socket", version=(4, 6))
def both(version):
    with wires("dctcp", version=version) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.ip_early_demux", 0)
        listener = wire.listen()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tun0")
        client, server = wire.connect(listener=listener)
        count = 0

        def rule(p):
            nonlocal count
            count += bool(p.len)
            return p.len and not count % 7 and not cut(p)
        wire.rule = rule
        true(wire.transfer_both(client, server, 300_000), "bytes arrive")
        equal([timers(ns)[0] for ns in (wire.a, wire.b)], [0, 0], "RTOs")
        for one, other in ((wire.a, wire.b), (wire.b, wire.a)):
            equal(counters(one)[1], counters(other)[2], "reports sent here, received there")
            true(counters(one)[1] > 10, "reports")


@case("a socket that closes, and a namespace that goes, while reports wait")
def goes():
    with wires("reno", speed=1) as wire:        # 12 ms a report, and 100 ms at most
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "bytes arrive")
        wire.run(1.0)
        trims(wire, *range(100))
        client.send(pattern(10 * MSS[4]))
        wire.run(1e-3)
        true(counters(wire.b)[0] > counters(wire.b)[1] + 3, "reports wait")
        server.close()
        client.close()



tap.main()
