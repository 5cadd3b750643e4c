#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TLT around hpcc (tlt_hpcc): each packet of data has TLT's DSCP and requests telemetry.

	a (client) ---- wire (this program, writes telemetry) ---- b (server)
"""
from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, DATA, IMPORTANT
from lab.tap import case, equal, true, within
from lab.wire.hpcc import ACK_CODE, BDP, COLLECT, DATA_CODE, ONE, hpcc, option, port, room, window
from lab.wire.packet import SYN, data
from lab.wire.sockopt import NO, YES, cc_of, info
from lab.wire.wire import pattern

HELLO = 14


def nested(**options):
    """hpcc()'s wire, with tlt_hpcc."""
    wire = hpcc(**{"cc": "tlt_hpcc", **options})
    port(wire, ONE // 2)
    return wire


def everywhere(description, **options):
    """A case with both IP versions."""
    return case(description, version=(4, 6), **options)


@everywhere("a hello of its own; data has TLT's kinds and requests telemetry, ACKs have the echo")
def speaks(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        equal([option(p)[0] for p in wire.seen if p.flags & SYN], [HELLO] * 2, "codes of the handshake")
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
        wire.mark()
        true(wire.transfer(client, server, 10 * BDP), "bytes arrive")
        sent = data(wire.from_a())
        equal({p.dscp for p in sent}, {DATA.dscp, IMPORTANT.dscp}, "DSCPs of data")
        asked = [p for p in sent if p.kind != CLOCK]
        # The wire has written the utilisation when this program sees the packet.
        equal({option(p)[:2] for p in asked}, {(DATA_CODE, COLLECT | ONE // 2)}, "options of data")
        equal(max(p.len for p in sent), room(version), "payload of a full packet")
        echoes = [option(p) for p in wire.from_b() if option(p) and option(p)[0] == ACK_CODE]
        true(echoes and {echo[1] for echo in echoes} == {ONE // 2}, f"echoes: {echoes[:3]}")
        true(info(client)["important_sent"] > 0 and info(client)["echoes"] > 0, "important, echoes")
        true(info(server)["echoes_sent"] > 0, "important packets that the server has noticed")


@everywhere("a utilisation of 2 halves the window, as without TLT")
def halves(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 4 * BDP), "bytes arrive")
        port(wire, 2 * ONE)
        client.send(pattern(2 * BDP))
        wire.run(1e-3)
        within(window(client, version), 0, 0.6, "window, BDPs")
        server.recv(1 << 20)


@everywhere("all unimportant data of a burst is lost: the important packet finds it, before any timer of TCP's")
def tail(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 2 * BDP), "bytes arrive")
        wire.mark()
        raised, lost = wire.rule, []

        def rule(p):
            if p.from_a and p.len and p.dscp == DATA.dscp and len(lost) < 5:
                lost.append(p)
                return True
            return raised(p)
        wire.rule = rule
        client.send(pattern(6 * room(version)))
        wire.run(5e-3)
        equal(len(lost), 5, "packets lost")
        equal(len(server.recv(1 << 20)), 6 * room(version), "bytes that arrive within 5 ms")
        equal([wire.a.netstat(name) for name in ("TCPTimeouts", "TCPLossProbes")], [0, 0],
              "RTOs, TLPs")


@everywhere("each clock is answered, also while data requests telemetry")
def clocks(version):
    with nested(version=version) as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 2 * BDP), "bytes arrive")
        wire.mark()
        # The second message leaves while the first one's packet is in flight, and has no other.
        client.send(b"1" * 100)
        wire.run(30e-6)
        client.send(b"2" * 100)
        wire.run(10e-3)
        equal(len(server.recv(1000)), 200, "bytes")
        asked = [p for p in wire.from_a() if p.kind == CLOCK]
        true(asked, "clocks")
        answers = [p for p in wire.from_b() if p.kind == CLOCK_ECHO]
        equal(len(asked), len(answers), "clocks, answers")


@everywhere("a peer that runs only one of both: tlt_reno", cc_b=("hpcc", "tlt_dctcp", "cubic"))
def falls_back(version, cc_b):
    with hpcc(version=version, cc="tlt_hpcc", cc_b=cc_b) as wire:
        client, server = wire.connect()
        equal((cc_of(client), info(client)["peer"]), ("tlt_reno", NO), "client's")
        wire.mark()
        true(wire.transfer(client, server, 10_000), "bytes arrive")
        equal({p.dscp for p in data(wire.from_a())}, {0}, "DSCPs of data")


tap.main()
