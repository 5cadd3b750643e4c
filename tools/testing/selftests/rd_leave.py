#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Sockets and namespaces are removed while windows are open and bursts are in flight.

	a (client, sends) ---- wire (this program) ---- b (server, grants or pulls)

The wire loses the clients' data, so their windows stay open, or their bursts incomplete.
"""
from lab import tap, transports
from lab.net import modules
from lab.tap import case, equal, true
from lab.wire.sockopt import abort, choose
from lab.wire.window import ALONE, HOLD, RTT, drop, innocent, started, wires
from lab.wire.wire import Wire, pattern

CCS = ("homa", "ndp")
COUNT = 4


def give_up_soon(wire):
    """Limit the timeouts for which TCP retransmits a closed socket's data, and keeps its namespace."""
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_orphan_retries", 1)


def open_windows(wire, size=100_000):
    """Connections whose windows are open, and one more; (the pairs, the pair)."""
    give_up_soon(wire)
    *pairs, other = started(wire, COUNT + 1, 300_000)
    drop(wire, pairs)
    for client, _ in pairs:
        client.send(pattern(size))
    wire.run(2 * RTT)
    return pairs, other


def unload(cc):
    """Fail unless the transport's module can be unloaded: no socket or queue has a reference."""
    modules.unload(transports.of(cc).module, "rd_core")


@case("the namespaces are removed while windows are open", cc=CCS)
def namespaces(cc):
    with wires(cc) as wire:
        open_windows(wire)
        wire.rule = lambda p: True      # no FIN arrives
    unload(cc)


@case("receivers choose another congestion control while their windows are open: others have the link",
      cc=CCS)
def receivers_leave(cc):
    with wires(cc) as wire:
        pairs, other = open_windows(wire)
        for _, server in pairs:
            choose(server, "reno")
        innocent(wire, other)
    unload(cc)


@case("senders choose another congestion control while windows are open: others have the link after the"
      " hold", cc=CCS)
def senders_leave(cc):
    with wires(cc) as wire:
        pairs, other = open_windows(wire)
        for client, _ in pairs:
            choose(client, "reno")
        innocent(wire, other, 1.5 * ALONE + 2 * HOLD)
        # TCP alone repairs.
        wire.rule = None
        for _, server in pairs:
            equal(len(wire.receive(server, 100_000, 5)), 100_000, "bytes that arrive")
    unload(cc)


@case("sockets are closed, half of them by a reset, while windows are open", cc=CCS)
def closed(cc):
    with wires(cc) as wire:
        pairs, other = open_windows(wire)
        for number, (client, server) in enumerate(pairs):
            if number % 2:
                abort(server)
            server.close()
            client.close()
        innocent(wire, other)
    unload(cc)


@case("the namespaces are removed while the first packets of a burst are in flight",
      cc=("aeolus_dctcp", "aeolus_ndp", "aeolus_homa", "aeolus_xpass"))
def in_mid_burst(cc):
    with Wire(cc=cc, tso=False, speed=1000) as wire:
        give_up_soon(wire)
        client, server = wire.connect()
        true(wire.transfer(client, server, 100_000), "arrives")
        wire.run(5e-3)
        wire.delay = RTT / 2
        client.send(pattern(100_000))
        wire.run(RTT / 4)
        wire.rule = lambda p: True
    unload(cc)


if __name__ == "__main__":
    tap.main()
