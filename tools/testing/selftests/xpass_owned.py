#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A process owns the socket when a credit, a request or a probe arrives: the packet is handled
when the process releases the socket, each credit is used or counted, and no timer of TCP expires.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)

gl_hold.ko owns one of the sockets for some milliseconds, in a second thread, while
packets arrive for it.  The wire is long, so that no sender repeats a request meanwhile.
"""
import contextlib
import socket

from lab import tap
from lab.codepoints import PROBE, PROBE_ACK, CREDIT, UNSCHEDULED, REQUEST, SCHEDULED
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire import xpass
from lab.wire.hold import hold, owned_again_and_again, run_owned
from lab.wire.packet import data
from lab.wire.transcript import lose
from lab.wire.wire import Wire, pattern

RTT = 2e-3              # a sender repeats its request after four of them
COUNT = 100_000
CCS = ("xpass", "aeolus_xpass")


@contextlib.contextmanager
def resting(cc="xpass", version=4):
    """A connection over a long wire, at rest; TCP's timers are too long to interfere."""
    with Wire(cc=cc, version=version, rto_min=200) as wire:
        wire.delay = RTT / 2
        client, server = wire.connect()
        true(wire.transfer(client, server, 10_000), "arrives")
        wire.run(10e-3)
        xpass.silent(wire)
        wire.mark()
        yield wire, client, server


@contextlib.contextmanager
def connected(cc="xpass", version=4):
    """The same, and at the end check that no timer has expired and no counter shows an error."""
    with resting(cc, version) as (wire, client, server):
        yield wire, client, server
        if cc == "xpass":
            equal([ns.netstat("TCPFastRetrans") for ns in (wire.a, wire.b)], [0, 0],
                  "TCPFastRetrans")
        settled(wire, client, server)


def settled(wire, client, server):
    """Check the counters of both ends, and that data still arrives in both directions."""
    xpass.silent(wire)
    for ns in (wire.a, wire.b):
        for name in ("TCPTimeouts", "TCPLossProbes"):
            equal(ns.netstat(name), 0, f"{ns.name}: {name}")
        counters = ns.greenlane()
        equal(counters["Uncredited"], 0, f"{ns.name}: Uncredited")
        equal(counters["ScheduledSent"] + counters["CreditWasted"], counters["CreditReceived"],
              f"{ns.name}: ScheduledSent plus CreditWasted, compared with CreditReceived")
        equal(counters["Fallback"], 0, f"{ns.name}: Fallback")
        peer = (wire.b if ns is wire.a else wire.a).greenlane()
        for got, sent in (("RequestReceived", "RequestSent"),
                          ("ProbeAckReceived", "ProbeAckSent")):
            equal(counters[got], peer[sent], f"{ns.name}: {got}, compared with the peer's {sent}")
    for sender, receiver in ((server, client), (client, server)):
        true(wire.transfer(sender, receiver, 10_000), "the next transfer arrives")
        wire.run(10e-3)


def finish(wire, server, count=COUNT):
    """Read all bytes as they arrive (ACKs would wait for the read) and compare them."""
    got = wire.receive(server, count, 50e-3)
    equal(len(got), count, "bytes that arrive")
    wire.run(10e-3)
    equal(got == pattern(count), True, "the bytes are those sent")


@case("the sender is owned when credits arrive: each is used when the socket is released",
      version=(4, 6))
def sender_credits(version):
    with connected(version=version) as (wire, client, server):
        before = wire.a.greenlane()["CreditReceived"]
        count = 80_000          # fewer credits than may wait
        client.send(pattern(count))
        wire.run(RTT * 0.9)
        equal(data(wire.from_a()), [], "data before the first credit arrives")
        holder = hold(client, 3)
        # Credits arrive half a round trip later, for two milliseconds.
        wire.run(2.9e-3)
        came = len(xpass.credits(p for p in wire.from_b() if p.time < wire.seen[0].time
                                 + RTT / 2 + 1.5e-3))
        true(came > 10, f"{came} credits have arrived, expected more than 10")
        equal(data(wire.from_a()), [], "data while the socket is owned")
        wire.run(0.5e-3)
        holder.join()
        equal(wire.a.greenlane()["KicksOwned"] >= came, True, "KicksOwned counts each credit")
        true(len(data(wire.from_a())) >= came, "a packet for each credit, after the release")
        finish(wire, server, count)
        xpass.paid(wire)
        equal(wire.a.greenlane()["CreditReceived"] - before,
              len(xpass.credits(wire.from_b())), "CreditReceived")
        equal(wire.a.greenlane()["RequestRetried"], 0, "RequestRetried")
        equal(wire.a.greenlane()["NoMemory"], 0, "NoMemory")


@case("a request is lost, and a process owns the sender for seconds: the next request follows the"
      " release", cc=CCS, seconds=(1, 3))
def owned_long(cc, seconds):
    with resting(cc) as (wire, client, server):
        wire.rule = lambda p: p.from_a
        client.send(pattern(COUNT))
        wire.run(RTT / 100)
        holder = hold(client, 1000 * seconds)
        wire.run(seconds - RTT)
        wire.rule = None
        wire.run(RTT)
        got = wire.receive(server, COUNT, 20 * RTT)
        holder.join()
        equal(len(got), COUNT, "bytes within 20 round trips")


@case("the receiver is owned when a request arrives: its credits start at the release, once",
      version=(4, 6))
def receiver_request(version):
    with connected(version=version) as (wire, client, server):
        client.send(pattern(COUNT))
        wire.run(RTT / 4)
        holder = hold(server, 3)
        wire.run(2.9e-3)
        equal(wire.from_b(), [], "packets of b while its socket is owned")
        wire.run(0.3e-3)
        holder.join()
        true(xpass.credits(wire.from_b()), "credits once the socket is released")
        true(wire.b.greenlane()["KicksOwned"] > 0, "KicksOwned counts the request")
        finish(wire, server)
        seen = xpass.credits(wire.from_b())
        equal(seen, list(range(seen[0], seen[0] + len(seen))), "numbers of credits")
        equal([p for p in wire.from_a() if p.kind == REQUEST and p.words[2] & xpass.RETRY], [],
              "repeated requests")


@case("the receiver is owned when the stop arrives: no credit after it", version=(4, 6))
def receiver_stop(version):
    with connected(version=version) as (wire, client, server):
        holder = []

        def rule(p, holder=holder, server=server):
            if p.from_a and p.kind == REQUEST and not p.words[2] and not holder:
                holder.append(hold(server, 3))
            return False
        wire.rule = rule
        client.send(pattern(COUNT))
        true(wire.run(20e-3, lambda holder=holder: holder), "a stop is sent")
        # While the socket is owned, no other process can read.
        wire.run(2.9e-3)
        holder[0].join()
        finish(wire, server)
        stop = next(p for p in wire.from_a() if p.kind == REQUEST and not p.words[2])
        equal([p for p in wire.from_b() if p.kind == CREDIT and p.time > stop.time + 50e-6], [],
              "credits more than 50 us after the stop")


@case("the receiver is owned when the probe arrives: one answer, when the socket is released",
      version=(4, 6))
def receiver_probe(version):
    with connected("aeolus_xpass", version) as (wire, client, server):
        # All of it fits into the window; a burst that waits for the window has no probe yet.
        client.send(pattern(30_000))
        wire.run(RTT / 4)
        holder = hold(server, 3)
        wire.run(2.9e-3)
        probe = [p for p in wire.from_a() if p.kind == PROBE]
        equal((len(probe), wire.from_b()), (1, []),
              "probes, and packets of b while its socket is owned")
        wire.run(0.3e-3)
        holder.join()
        echoes = [p for p in wire.from_b() if p.kind == PROBE_ACK]
        equal(len(echoes), 1, "answers once the socket is released")
        finish(wire, server, 30_000)
        equal(len([p for p in wire.from_b() if p.kind == PROBE_ACK]), 1, "answers")
        true(wire.b.greenlane()["KicksOwned"] > 0, "KicksOwned counts the probe")


@case("the sender is owned when the probe's answer arrives: lost packets are retransmitted with "
      "credits", version=(4, 6))
def sender_answer(version):
    with connected("aeolus_xpass", version) as (wire, client, server):
        wire.rule = lose("> unscheduled 3-4, unscheduled 20")
        # Less than a burst, and its last packet is lost.
        client.send(pattern(20 * xpass.MSS[version]))
        wire.run(RTT * 0.9)
        holder = hold(client, 3)
        wire.run(2.9e-3)
        lost = {p.seq for p in wire.rule.dropped}
        equal(len(lost), 3, "lost packets")
        equal([p for p in data(wire.from_a()) if p.kind != UNSCHEDULED], [],
              "data while the socket is owned")
        true([p for p in wire.from_b() if p.kind == PROBE_ACK], "the answer has arrived")
        wire.run(0.3e-3)
        holder.join()
        finish(wire, server, 20 * xpass.MSS[version])
        again = [p.seq for p in data(wire.from_a()) if p.kind == SCHEDULED]
        true(lost <= set(again), "each lost packet is retransmitted with a credit")


class Forger:
    """Sends credits for b, whose own are all dropped."""

    def __init__(self, wire, client, payload):
        self.wire = wire
        self.before = wire.a.greenlane()
        wire.rule = lambda p: p.kind == CREDIT
        client.send(payload)
        wire.run(1.1 * RTT)
        self.own = next(p for p in wire.from_b() if p.kind == CREDIT)
        self.number = self.own.words[0]
        self.first = self.number

    def credits(self, count):
        """Send count credits, with b's next numbers."""
        wire, p = self.wire, self.own
        for _ in range(count):
            wire.inject(wire.a, pkt.make(
                4, wire.address(wire.b), wire.address(wire.a), p.sport, p.dport, p.seq, p.ack,
                dscp=CREDIT, window=p.window, options=pkt.option(CREDIT, self.number)))
            self.number += 1

    def counted(self, *names):
        """Growth of counters of a since the start."""
        now = self.wire.a.greenlane()
        return [now[name] - self.before[name] for name in names]


LIMIT = 1024            # maximum of packets that wait for a socket: GL_HELD_MAX


@case("5000 credits arrive while a process owns the socket: 1024 wait, the rest is dropped",
      connected)
def bounded(wire, client, server):
    forger = Forger(wire, client, b"x")
    wire.rule = None
    holder = hold(client, 5)
    wire.run(100e-6)
    forger.credits(5000)
    equal(forger.counted("NoMemory"), [5000 - LIMIT], "NoMemory: dropped credits")
    wire.run(20e-3)
    holder.join()
    equal(forger.counted("CreditReceived", "CreditLost", "Invalid", "ScheduledSent"),
          [LIMIT, 0, 0, 1], "CreditReceived, CreditLost, Invalid, ScheduledSent")
    equal(server.recv(10), b"x", "the byte")


@case("credits that waited for the socket are handled before credits that arrive at its release")
def in_order():
    # A credit that more than 32 others overtake is invalid: RD_WINDOW.
    with resting() as (wire, client, server):
        forger = Forger(wire, client, pattern(250_000))
        holder = hold(client, 3)
        wire.run(100e-6)
        forger.credits(LIMIT + 136)
        equal(forger.counted("NoMemory"), [136], "NoMemory: dropped credits")
        wire.run(2.7e-3)
        while forger.number < forger.first + LIMIT + 196:
            forger.credits(1)
            wire.run(10e-6)
        holder.join()
        lost, received, invalid = forger.counted("NoMemory", "CreditReceived", "Invalid")
        within(lost, 137, 186, "NoMemory: dropped credits")
        equal((received, invalid), (LIMIT + 196 - lost, 0), "CreditReceived, Invalid")
        # TCP small queues limit the packets that leave at once: credits beyond that are wasted.
        equal(len(data(wire.from_a())) + forger.counted("CreditWasted")[0], received,
              "packets of data plus CreditWasted")
        wire.rule = None
        finish(wire, server, 250_000)


@case("processes own one end's socket alternately, 1 ms each: data still flows", cc=CCS,
      end=("sender", "receiver"))
def no_gap(cc, end):
    with Wire(cc=cc) as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 100_000)
        wire.run(5e-3)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        client.send(bytes(1_000_000))
        wire.mark()
        with owned_again_and_again(client if end == "sender" else server, 1):
            wire.run(50e-3)
        true(len(data(wire.from_a())) > 40,
             f"{len(data(wire.from_a()))} packets of data in 50 ms, expected more than 40")


@case("both ends are owned repeatedly, with data in both directions and lost credits: all arrives",
      cc=CCS)
def both_under_load(cc):
    with connected(cc) as (wire, client, server):
        ends = (client, server)
        for s in ends:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        wire.rule = lossy = lose("> credit", "< credit", every=4)
        got = {s: bytearray() for s in ends}

        def application(stop, s, got=got):
            payload = pattern(COUNT)
            for at in range(0, COUNT, 2000):
                s.send(payload[at:at + 2000])
                stop.wait(0.0003)
            while not stop.wait(0.001) and len(got[s]) < COUNT:
                with contextlib.suppress(BlockingIOError):
                    got[s].extend(s.recv(COUNT))
        run_owned(wire, ends, application, *ends)
        wire.rule = None
        for s in ends:
            equal(got[s] == pattern(COUNT), True, "the bytes are those sent")
        for ns in (wire.a, wire.b):
            true(ns.greenlane()["KicksOwned"] > 10, f"{ns.name}: KicksOwned is above 10")
        within(lossy.passed, 100, 10_000, "credits")


if __name__ == "__main__":
    tap.main()
