#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The core of receiver-driven transports with another policy than ExpressPass's
(modules/tcp_turns.c): the transport decides its policy, the core does the rest.

	a (clients, send) ---- wire (this program) ---- b (server, sends credits)
"""
import contextlib
import os
import subprocess
import time

from lab import tap
from lab.codepoints import DSCP
from lab.net import modules
from lab.net.namespace import ACTIVE
from lab.tap import case, equal, true, within
from lab.wire import xpass
from lab.wire.peer import exchange, unmarked
from lab.wire.sockopt import YES, cc_of, choose, info
from lab.wire.wire import Wire

CREDIT, DATA, RTO = DSCP["credit"], DSCP["message"], DSCP["unscheduled"]
COST = 2 * 12_900e-9    # link time of a credit, s: twice that of a credit and a packet at 1 Gbit/s
HEADROOM = 3 * xpass.RTT


def load():
    """Load the transport, and xpass, which is another protocol."""
    modules.load("rd_core", "tcp_xpass")
    modules.load_helper("tcp_turns")
    modules.allow()


@contextlib.contextmanager
def turns(version=4, cc_b="turns"):
    """Two ends and a long wire."""
    load()
    with Wire(cc="turns", cc_b=cc_b, version=version, rto_min=200) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(ACTIVE, 1)
        wire.delay = xpass.RTT / 2
        yield wire


def is_credit(packet):
    """Does the packet permit the other end a packet?"""
    return packet.dscp == CREDIT and not xpass.second_word(packet) & xpass.ACCEPTED


def credits(wire):
    """The time at which each credit leaves."""
    return [p.time for p in wire.from_b() if is_credit(p)]


@case("a credit takes the link time that the policy's cost sets", version=(4, 6))
def cost(version):
    with turns(version) as wire:
        n = 200
        took, = xpass.messages(wire, n)
        within(took / (n * COST), 1, 1 + HEADROOM / (n * COST),
               "completion time, divided by the credits' link time")
        data = [p.dscp for p in wire.from_a() if p.len]
        equal(set(data), {DATA}, "DSCP of data with a credit")
        before = wire.b.greenlane()
        true(before["TurnsCreditSent"] >= n, f"counters of its own: {before}")
        equal(before["CreditSent"], 0, "credits of xpass")


@case("the policy's discipline is SRPT: the shortest message is served first, without a sysctl")
def pick():
    with turns() as wire:
        long, short = xpass.messages(wire, 200, 20)
        within(short, 0, 20 * COST * 1.1 + HEADROOM, "completion time of the short message, s")
        within(long, 0, 220 * COST * 1.05 + HEADROOM, "completion time of the long message, s")


@case("the policy ignores losses: every second credit is lost, and the gaps do not grow")
def learns_nothing():
    with turns() as wire:
        lost = iter(range(1 << 20))
        wire.rule = lambda p: is_credit(p) and next(lost) % 2
        xpass.messages(wire, 200)
        at = credits(wire)
        gaps = [b - a for a, b in zip(at, at[1:])]
        # A few gaps are longer, where the last credits of a request are lost.  xpass would halve
        # its rate each round trip.
        soon = sum(gap < 1.25 * COST for gap in gaps) / len(gaps)
        within(soon, 0.95, 1, "fraction of the gaps without a pause")


@case("with a peer that runs xpass or reno it falls back to reno", cc=("xpass", "reno"))
def fallback(cc):
    with turns(cc_b=cc) as wire:
        client, server = wire.connect()
        equal((cc_of(client), cc_of(server)), ("turns-reno", "xpass-reno" if cc == "xpass" else cc),
              "congestion controls")
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)


@case("the peer selects reno and announces it: this end falls back, and data arrives")
def leaves():
    with turns() as wire:
        client, server = wire.connect()
        equal(info(client)["peer"], YES, "peer")
        exchange(wire, client, server)
        choose(server, "reno")
        wire.run(1e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 50_000), "arrives")
        within(time.monotonic() - began, 0, 20e-3, "transfer time, s")
        equal(cc_of(client), "turns-reno", "congestion control")


@case("a transport without a policy, a cost, a credit's code, a probe's word, all first-RTT"
      " callbacks, or a fallback is refused", without=(1, 2, 3, 4, 5, 6))
def incomplete(without):
    load()
    modules.unload("tcp_turns")
    path = f"{os.environ['GL_MODDIR']}/tools/testing/modules/tcp_turns.ko"
    done = subprocess.run(["insmod", path, f"without={without}"], capture_output=True, text=True,
                          check=False)
    true(done.returncode, "insmod fails")
    true("Invalid" in done.stderr, done.stderr)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        true("turns" not in file.read().split(), "it is not available")
    equal(modules.is_loaded("tcp_turns"), False, "tcp_turns is loaded")


if __name__ == "__main__":
    tap.main()
