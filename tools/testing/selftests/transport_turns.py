#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The core of receiver-driven transports, with a policy that is not ExpressPass's
(modules/tcp_turns.c): what a transport decides is its own, and the rest is the core's.

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
COST = 2 * 12_900e-9    # a turn, s: twice a credit and a packet at 1 Gbit/s
HEADROOM = 3 * xpass.RTT


def load():
    """Load it, and xpass, to which it is a stranger."""
    modules.load("rd_core", "tcp_xpass")
    modules.load_helper("tcp_turns")
    modules.allow()


@contextlib.contextmanager
def turns(version=4, cc_b="turns"):
    """Two ends and a long wire."""
    load()
    with Wire(cc="turns", cc_b=cc_b, version=version, rto_min="200ms") as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(ACTIVE, 1)
        wire.delay = xpass.RTT / 2
        yield wire


def is_credit(packet):
    """It lets the other end send a packet."""
    return packet.dscp == CREDIT and not xpass.second_word(packet) & xpass.HEARD


def credits(wire):
    """When each credit left."""
    return [p.time for p in wire.from_b() if is_credit(p)]


@case("its cost: the link is taken for as long as that says", version=(4, 6))
def cost(version):
    with turns(version) as wire:
        n = 200
        took, = xpass.messages(wire, n)
        within(took / (n * COST), 1, 1 + HEADROOM / (n * COST), "of the turns' time")
        data = [p.dscp for p in wire.from_a() if p.len]
        equal(set(data), {DATA}, "data with a credit has its own codepoint")
        before = wire.b.greenlane()
        true(before["TurnsCreditSent"] >= n, f"it counts by its own names: {before}")
        equal(before["CreditSent"], 0, "credits of xpass")


@case("its pick: the shortest goes first, without a sysctl")
def pick():
    with turns() as wire:
        long, short = xpass.messages(wire, 200, 20)
        within(short, 0, 20 * COST * 1.1 + HEADROOM, "s, the short message")
        within(long, 0, 220 * COST * 1.05 + HEADROOM, "s, the long one")


@case("it learns nothing from lost credits: every second is lost, and the next are as soon")
def learns_nothing():
    with turns() as wire:
        lost = iter(range(1 << 20))
        wire.rule = lambda p: is_credit(p) and next(lost) % 2
        xpass.messages(wire, 200)
        at = credits(wire)
        gaps = [b - a for a, b in zip(at, at[1:])]
        # A few are longer, where the last credits that were asked for are lost.  xpass's rate
        # would be half after each round trip.
        soon = sum(gap < 1.25 * COST for gap in gaps) / len(gaps)
        within(soon, 0.95, 1, "of the credits without a pause")


@case("its fallback: with a peer that has xpass, or nothing, it is reno", cc=("xpass", "reno"))
def fallback(cc):
    with turns(cc_b=cc) as wire:
        client, server = wire.connect()
        equal((cc_of(client), cc_of(server)), ("turns-reno", "xpass-reno" if cc == "xpass" else cc),
              "congestion controls")
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)


@case("the peer goes over to reno: it says so, and this end continues")
def leaves():
    with turns() as wire:
        client, server = wire.connect()
        equal(info(client)["peer"], YES, "peer")
        exchange(wire, client, server)
        choose(server, "reno")
        wire.run(1e-3)
        began = time.monotonic()
        true(wire.transfer(client, server, 50_000), "arrives")
        within(time.monotonic() - began, 0, 20e-3, "s")
        equal(cc_of(client), "turns-reno", "congestion control")


@case("a transport without a policy, a cost, a credit's code, a probe's word, all of what it does"
      " first, or a fallback is refused", without=(1, 2, 3, 4, 5, 6))
def incomplete(without):
    load()
    modules.unload("tcp_turns")
    path = f"{os.environ['GL_MODDIR']}/tools/testing/modules/tcp_turns.ko"
    done = subprocess.run(["insmod", path, f"without={without}"], capture_output=True, text=True,
                          check=False)
    true(done.returncode, "insmod fails")
    true("Invalid" in done.stderr, done.stderr)
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        true("turns" not in file.read().split(), "it is not there")
    equal(modules.is_loaded("tcp_turns"), False, "loaded")


if __name__ == "__main__":
    tap.main()
