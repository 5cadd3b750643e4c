#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tail loss: the gain by the probe when the burst's last packet is lost (Aeolus ToN §V-E), and
its effect in a network that reorders packets.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)

A message of 100 kB begins with a burst.  The burst's last packet is lost, and the probe
follows, or with net.ipv4.aeolus_probe=0 an ordinary request.  The first bytes of a message
are often the first operations of a transaction, which can begin when they have arrived.
Without the probe, the paper's sender detects the loss only when it has no other data to
send; TCP detects it when later packets are SACKed, so the probe gains less here.
"""
import contextlib
import errno
import itertools
import socket
import time

from lab.codepoints import CREDIT, PROBE, PROBE_ACK, REQUEST, SCHEDULED, UNSCHEDULED
from lab.tap import case, equal, main, true, within
from lab.wire import packet
from lab.wire.aeolus import RTT, aeolus
from lab.wire.attack import Attacker
from lab.wire.packet import data
from lab.wire.sockopt import info
from lab.wire.wire import MSS, pattern
from lab.wire.xpass import ACCEPTED

RATE = 2400             # Mbit/s: 60 kB in that time, less than the window; a credit in 80 us
MESSAGE = 100_000
TCP_USER_TIMEOUT = 18


def tail_lost(version, tso, probe):
    """Times in RTTs: until the burst's bytes are read in order, until all bytes are; with the probe
    also from its answer to the receiver's next credit, and from that credit to the burst's bytes.
    """
    with aeolus(version=version, tso=tso) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.xpass_rate", RATE)
        wire.a.sysctl("net.ipv4.aeolus_probe", int(probe))
        client, server = wire.connect()
        wire.mark()
        burst = info(client)["bdp"] // MSS[version]
        within(burst, 40, 44, "packets of a burst")
        first = []

        def rule(p):
            if p.kind == UNSCHEDULED and p.len:
                first.append(p)
                return len(first) == burst
            return False
        wire.rule = rule
        payload, got, reached = pattern(MESSAGE), bytearray(), []

        def step():
            with contextlib.suppress(BlockingIOError):
                got.extend(server.recv(MESSAGE))
            reached.append((time.monotonic(), len(got)))
            return len(got) >= MESSAGE
        equal(client.send(payload), MESSAGE, "bytes that the socket takes")
        true(wire.run(0.1, step), "all arrives")
        equal(bytes(got) == payload, True, "the bytes are those sent")
        wire.run(1e-3)
        equal([len(first), first[-1].dropped], [burst, True],
              "packets of the burst, and whether the last one is lost")
        again = [p.kind for p in data(wire.from_a()) if p.seq == first[-1].seq]
        equal(again, [UNSCHEDULED, SCHEDULED], "kinds of the lost packet and its retransmission")
        probes = [p for p in wire.from_a() if p.kind == PROBE]
        equal(len(probes), int(probe), "probes")
        behind = next(p for p in wire.from_a() if p.time >= first[-1].time and not p.len)
        equal(behind.kind, PROBE if probe else REQUEST, "kind of the packet after the burst")
        for name in ("TCPTimeouts", "TCPLossProbes"):
            equal(wire.a.netstat(name), 0, name)
        began, end = wire.seen[0].time, sum(p.len for p in first)
        read = [next(when for when, count in reached if count >= size) for size in (end, MESSAGE)]
        steps = ()
        if probe:
            answered = itertools.dropwhile(lambda p: p.kind != PROBE_ACK, wire.from_b())
            answer, credit = next(answered), next(p for p in answered if p.kind == CREDIT)
            steps = credit.time - answer.time, read[0] - credit.time
        return [span / RTT for span in (read[0] - began, read[1] - began, *steps)]


@case("the probe overtakes a burst with losses: they are repaired without a timer",
      version=(4, 6), late=(0.5, 0.75, 3), lost=(2, 3))
def overtaken(version, late, lost):
    with aeolus(version=version, rto_min=4) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.xpass_rate", 1000)      # a burst is 17 packets
        client, server = wire.connect()
        true(wire.transfer(client, server, 300_000), "arrives")
        burst = itertools.count(1)

        def rule(p):
            if p.kind != UNSCHEDULED:
                return False
            p.late = late * RTT
            return not next(burst) % lost
        wire.rule = rule
        for _ in range(6):
            began = time.monotonic()
            true(wire.transfer(client, server, 40 * MSS[version]), "arrives")
            within((time.monotonic() - began) / RTT, 1, 12, "transfer time, RTTs")
            wire.run(20e-3)
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "RTOs, TLPs")
        equal(wire.a.greenlane()["Uncredited"], 0, "Uncredited")


@case("each probe is repeated before its answer arrives, and the burst's last packet is lost: the first"
      " answer repairs it", version=(4, 6), cc=("aeolus_homa", "aeolus_ndp"))
def answered_late(version, cc):
    back = 3e-3
    with aeolus(version=version, cc=cc) as wire:
        client, server = wire.connect()
        sent = itertools.count(1)

        def rule(p):
            p.late = back * (not p.from_a)
            return p.kind == UNSCHEDULED and next(sent) == 5
        wire.rule = rule
        wire.mark()
        client.send(pattern(5 * MSS[version]))
        wire.run(back + 0.9 * RTT)
        true([p.kind for p in wire.from_a()].count(PROBE) > 1, "the probe is repeated")
        began = time.monotonic()
        wire.receive(server, 5 * MSS[version])
        within((time.monotonic() - began) / RTT, 0, 1, "RTTs from the answer to the packet")


@case("the burst's last packet is lost: with the probe its bytes arrive earlier",
      version=(4, 6), tso=(True, False))
def tail(version, tso):
    (early, done, wait, repair), (late, all_late) = (tail_lost(version, tso, probe)
                                                     for probe in (True, False))
    print(f"# IPv{version}, TSO {'on' if tso else 'off'}: the burst's bytes in order after"
          f" {early:.2f} RTT with the probe, {late:.2f} without; the message after"
          f" {done:.2f} and {all_late:.2f}", flush=True)
    true(early < late, f"burst in order after {early:.2f} RTT with the probe, {late:.2f} without")
    # 80 us are 0.4 of an RTT; xpass_issue() adds a tenth at most, and the clock its tick.
    within(wait, 0, 0.5, "RTTs from the probe's answer to the next credit")
    within(repair, 1, 1.1, "RTTs from that credit to the lost packet's bytes")


@case("lost bursts wait for credits longer than an RTO: no timer sends them without a credit",
      version=(4, 6))
def slow_credits(version):
    with aeolus(version=version, rto_min=4) as wire:
        wire.b.sysctl("net.ipv4.xpass_rate", 20)        # a credit each 0.6 ms
        pairs = [wire.connect() for _ in range(20)]
        wire.mark()
        wire.rule = lambda p: p.kind == UNSCHEDULED
        for client, _ in pairs:
            client.send(pattern(10_000))
        for _, server in pairs:
            equal(wire.receive(server, 10_000, 0.4), pattern(10_000), "bytes")
        gaps = [q.time - p.time for p, q in itertools.pairwise(data(wire.from_a()))
                if p.kind == q.kind == SCHEDULED]
        true(sum(gaps) > 80e-3, f"the repairs take {sum(gaps):.3f} s")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "RTOs, TLPs")
        equal(wire.a.greenlane()["Uncredited"], 0, "Uncredited")


@case("the receiver answers no more while a burst's losses wait: TCP's timer repairs them",
      version=(4, 6))
def no_credits(version):
    with aeolus(version=version, rto_min=4) as wire:
        client, server = wire.connect()
        wire.rule = lambda p: p.kind in (UNSCHEDULED, CREDIT)
        wire.mark()
        client.send(pattern(5000))
        began = time.monotonic()
        true(wire.run(50e-3, lambda: wire.a.netstat("TCPTimeouts")), "an RTO")
        within(time.monotonic() - began, 4e-3, 10e-3, "time until the RTO, s")
        again = [p for p in data(wire.from_a()) if p.kind == SCHEDULED]
        true(again, "the packet of the RTO is protected")
        wire.rule = None
        equal(wire.receive(server, 5000, 0.5), pattern(5000), "bytes")


@case("a peer answers requests without credits: TCP_USER_TIMEOUT applies", version=(4, 6),
      every=(1e-3, 0.15))
def drip(version, every):
    with aeolus(version=version, rto_min=4 if every < 0.1 else 200) as wire:
        client, server = wire.connect()
        client.setsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT, 500)
        wire.rule = lambda p: p.kind in (UNSCHEDULED, CREDIT)
        client.send(pattern(5000))
        wire.run(1.5e-3)
        attacker = Attacker(wire, client, server)
        wire.rule = lambda p: True
        began = time.monotonic()
        while not (error := client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
            attacker.forge(False, CREDIT, packet.option(CREDIT, 1, ACCEPTED | 1000))
            wire.run(every)
            true(time.monotonic() - began < 3, "an error within 3 s")
        equal(error, errno.ETIMEDOUT, "error")


@case("requests overtake the probe, as in a host's queue: the probe is answered, and not Invalid",
      version=(4, 6))
def behind(version):
    with aeolus(version=version) as wire:
        client, server = wire.connect()
        wire.mark()

        def rule(p):
            p.late = 5 * RTT if p.kind == PROBE else 0
        wire.rule = rule
        true(wire.transfer(client, server, 300_000), "all arrives")
        wire.run(10 * RTT)
        sent = wire.from_a()
        probe = next(p for p in sent if p.kind == PROBE)
        true([p for p in sent if p.kind == REQUEST and p.words[0] > probe.words[0]
              and p.time < probe.time + 5 * RTT], "a request with a later credit arrives earlier")
        equal(len([p for p in wire.from_b() if p.kind == PROBE_ACK]), 1, "answers")
        equal([ns.greenlane()["Invalid"] for ns in (wire.a, wire.b)], [0, 0], "Invalid")


if __name__ == "__main__":
    main()
