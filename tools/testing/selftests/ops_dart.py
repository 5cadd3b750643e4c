#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status of dart: its counters, and exactly one sentence for each deliberate mistake.

	ns a (hosts, send) ---- wire ---- ns b          lab.wire.dart, or
	ns a -- color, veth -- ns b                     lab.status.Cable
"""
import socket

from lab.codepoints import SHARE
from lab.status import Cable, connections, exchange, forget, ids, look, sentence, tool, watched
from lab.tap import case, equal, main, true, within
from lab.wire.dart import ONE, RATE, connect, dart, read_all
from lab.wire.peer import without_option
from lab.wire.sockopt import (COUNTERS, GAUGES, GREENLANE_MESSAGE, SO_MAX_PACING_RATE, cc_of,
                              info, option, pacing)
from lab.wire.wire import Wire

CE = 3


def send(wire, flows, count, seconds):
    """Send count bytes on each flow, and read for some seconds."""
    for tx, _ in flows:
        equal(tx.send(bytes(count)), count, "bytes that the socket takes")
    wire.run(seconds, lambda: read_all(rx for _, rx in flows))


@case("a healthy network: every connection's counters, gauges and rate, no sentence", watched,
      of=dart, version=(4, 6), hosts=1)
def healthy(wire):
    flows = [connect(wire, n, 1000 + n) for n in range(2)]
    for tx, _ in flows:
        option(tx, GREENLANE_MESSAGE, 1)
    send(wire, flows, 100_000, 10e-3)
    said = look()
    equal(ids(said), [], "mistakes")
    for side, ns in enumerate((wire.a, wire.b)):
        # Without dart()'s first connection, to port 999.
        here = [c for c in connections(said, ns)
                if c["acked"] > 1 or c["counters"]["messages"]]
        equal({(c["cc"], c["peer"]) for c in here}, {("dart", "yes")},
              "congestion control and peer of each")
        for name in COUNTERS:
            kind = "gauges" if name in GAUGES else "counters"
            equal(sorted(c[kind][name] for c in here),
                  sorted(info(flow[side])[name] for flow in flows), name)
        equal(sorted(c["pacing_rate"] for c in here),
              sorted(pacing(flow[side]) for flow in flows), "pacing rates")
    equal(sorted(c["gauges"]["divisor"] for c in connections(said, wire.a)),
          [0, 2 * ONE, 2 * ONE], "divisors")
    status, out, err = tool("status", "--all")
    equal((status, err), (0, ""), "status, stderr")
    equal([line for line in out.splitlines() if len(line) > 80], [], "text lines that are too long")
    lines = [line.split() for line in out.splitlines()]
    head = next(line for line in lines if line[4:5] == ["SHARE"])
    equal(head[2:], ["CONN", "PEER", "SHARE", "RATE", "SENDERS", "MSGS", "BACK"], "columns")
    rows = [line for line in lines if line[1:2] == ["dart"] and len(line) > 6]
    equal(rows[0][2:5] + rows[0][6:], ["3", "3/0", "1/2", "0", "0", "0"], "row of a")
    equal(rows[1][-3:], ["2", "2", "0"], "row of b: SENDERS, MSGS, BACK")


@case("a peer without dart, or without ECN: a sentence", cc=("dcqcn", "cubic"))
def peer_without(cc):
    found = {"dcqcn": "peer-without", "cubic": "no-ecn"}[cc]
    forget()
    with Wire(cc="dart", cc_b=cc) as wire:
        client, server = wire.connect()
        exchange(wire, client, server)
        said = look()
        equal(ids(said), [found], f"mistakes with {cc}")
        true("10.0.0.2" in sentence(said, found), f"the sentence names it: {sentence(said, found)}")
        if found == "no-ecn":
            equal(cc_of(client), "dart-reno", "congestion control")
            true("1 connection of dart run dart-reno" in sentence(said, found),
                 "the sentence names dart-reno")
            rows = [line.split() for line in tool("status")[1].splitlines()]
            true([wire.a.name, "dart", "1"] in [row[:3] for row in rows],
                 "a row of the table has the connection")


@case("the path bleaches ACKs: shares are still received, a sentence after a handshake", watched,
      of=dart, version=(4, 6))
def no_codepoints(wire):
    flow = wire.connect()
    wire.rule = lambda p: not p.from_a and p.kind == SHARE and p.set_dscp(0)
    send(wire, [flow], 100_000, 5e-3)
    equal(ids(look()), [], "mistakes")
    wire.connect(1001)
    said = look()
    equal([(p["id"], p["where"]) for p in said["problems"]], [("bleached", wire.a.name)],
          "mistakes, and where")


@case("the path removes the ACKs' option: no share is received, and a sentence", watched, of=dart,
      version=(4, 6))
def no_share(wire):
    flow = wire.connect()
    wire.rule = lambda p: not p.from_a and without_option(p)
    send(wire, [flow], 5_000, 5e-3)
    equal(ids(look()), [], "mistakes after a few packets")
    send(wire, [flow], 100_000, 5e-3)
    said = look()
    equal(ids(said), ["no-share"], "mistakes")
    true(wire.address(wire.b) in sentence(said, "no-share"), "the sentence names the peer")
    wire.rule = None
    send(wire, [flow], 100_000, 5e-3)
    equal(ids(look()), [], "mistakes after a share is received")


@case("marks from inside the network: the share is line rate, less than half is used; a sentence",
      watched,
      of=dart)
def inside_network(wire):
    flow = wire.connect()
    option(flow[0], GREENLANE_MESSAGE, 1)

    def rule(p):
        if p.from_a and p.len:
            p.set_dsfield(p.dsfield | CE)
    # Otherwise b's link would be full, and its marks would not count.
    flow[0].setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, RATE * 125_000 // 5)
    send(wire, [flow], 10_000, 5e-3)
    equal(ids(look()), [], "mistakes of a flow that the application limits")
    wire.rule = rule
    send(wire, [flow], 100_000, 5e-3)
    flow[0].setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, bytes([255] * 8))
    send(wire, [flow], 100_000, 1e-3)
    within(pacing(flow[0]), 0, RATE * 125_000 / 5, "pacing rate, bytes/s")
    said = look()
    equal(ids(said), ["inside-network"], "mistakes")
    true("10.0.0.2" in sentence(said, "inside-network"), "the sentence names the peer")
    wire.rule = None
    for _ in range(10):          # additive increase: 200 kbit/s each 55 us
        send(wire, [flow], 500_000, 30e-3)
    equal(ids(look()), [], "mistakes after the marks have ended")


@case("dcqcn_rate differs from the port's rate: a sentence")
def dcqcn_rate():
    for mbit, what in ((10_000, "Flows begin with a queue"), (100, "Flows cannot fill the link")):
        with Cable("color rate 1gbit limit 200k", "dart") as cable:
            for ns in (cable.a, cable.b):
                ns.sysctl("net.ipv4.dcqcn_rate", mbit)
            pair = cable.connect()
            cable.send([pair], 10_000)
            said = look()
            true("dcqcn-rate" in ids(said), f"mistakes: {ids(said)}")
            true("va in left The link carries 1Gbit/s" in sentence(said, "dcqcn-rate"),
                 "the sentence names port and rate")
            advice = next(p["advice"] for p in said["problems"] if p["id"] == "dcqcn-rate")
            equal(advice, f"{what}: sysctl -w net.ipv4.dcqcn_rate=1000.", "advice")
            for ns in (cable.a, cable.b):
                ns.sysctl("net.ipv4.dcqcn_rate", 1000)
            cable.send([pair], 20_000_000)      # until line rate
            equal(ids(look()), [], "mistakes after the remedy")


if __name__ == "__main__":
    main()
