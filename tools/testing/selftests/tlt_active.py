#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""net.ipv4.greenlane_active: a namespace has greenlane's hooks once it uses greenlane.

	a (client) ---- wire (this program) ---- b (server)
"""
import errno
import socket
import time

from lab import tap
from lab.codepoints import DSCP
from lab.net import modules
from lab.net.namespace import ACTIVE, CC, Namespace, write_sysctl
from lab.tap import case, equal
from lab.wire.peer import by_route, by_socket, exchange, unmarked
from lab.wire.sockopt import NO, YES, cc_of, choose, info, refused, tos
from lab.wire.wire import Wire

TCP_SAVE_SYN, TCP_SAVED_SYN = 27, 28


def active(*namespaces):
    """The sysctl of each namespace."""
    return [ns.sysctl(ACTIVE) for ns in namespaces]


def inactive_wire(cc, version=4):
    """A wire for cc, between namespaces that are not active."""
    modules.load_for(cc)
    wire = Wire(cc="cubic", version=version)
    wire.cc = cc
    equal(active(wire.a, wire.b), ["0", "0"], "active")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)        # or dart falls back to reno
    return wire


def by_default(wire):
    """Set net.ipv4.tcp_congestion_control only."""
    for ns in (wire.a, wire.b):
        with ns:
            write_sysctl(CC, wire.cc)
    return wire.connect()


@case("the first connection of a namespace runs its base, the next one its transport",
      version=(4, 6), cc=("tlt_reno", "dart", "xpass"), how=(by_default, by_socket, by_route))
def first(version, cc, how):
    with inactive_wire(cc, version) as wire:
        ends = how(wire)
        exchange(wire, *ends)
        unmarked(wire.seen)
        if cc == "xpass":
            equal([cc_of(s) for s in ends], ["xpass-reno"] * 2, "congestion controls")
        else:
            equal([info(s)["peer"] for s in ends], [NO, NO], "peer, of both sockets")
        equal(active(wire.a, wire.b), ["1", "1"], "active")
        wire.mark()
        ends = how(wire)
        exchange(wire, *ends)
        if cc == "xpass":
            equal([cc_of(s) for s in ends], ["xpass"] * 2, "congestion controls")
        else:
            equal([info(s)["peer"] for s in ends], [YES, YES], "peer, of both sockets")


@case("TCP_CONGESTION in the middle of a connection makes its namespace active",
      cc=("tlt_reno", "dart", "xpass"))
def mid_life(cc):
    with inactive_wire(cc) as wire:
        client, _ = wire.connect()
        choose(client, cc)
        wire.run(1e-3)
        equal(active(wire.a, wire.b), ["1", "0"], "active")


@case("each net.ipv4.greenlane_* makes its namespace active, if the value is valid",
      name=("active", "protect", "ecn", "dscp_protected"))
def by_sysctl(name):
    with inactive_wire("tlt_reno") as wire:
        value = DSCP["protected"] if name == "dscp_protected" else 1
        wire.a.sysctl(f"net.ipv4.greenlane_{name}")
        refused("64", errno.EINVAL, wire.a.sysctl, f"net.ipv4.greenlane_{name}", 64)
        equal(active(wire.a), ["0"], "active")
        wire.a.sysctl(f"net.ipv4.greenlane_{name}", value)
        equal(active(wire.a, wire.b), ["1", "0"], "active")
        refused("0", errno.EBUSY, wire.a.sysctl, ACTIVE, 0)
        wire.a.sysctl(ACTIVE, 1)
        equal(active(wire.a, wire.b), ["1", "0"], "active")


@case("setting greenlane_active to 0 is accepted where it is 0")
def zero():
    with inactive_wire("tlt_reno") as wire:
        wire.a.sysctl(ACTIVE, 0)
        equal(active(wire.a), ["0"], "active")


@case("a namespace that inherits a transport is active from the beginning")
def inherited():
    modules.load("tcp_tlt")
    for cc, expected in (("tlt_reno", "1"), ("cubic", "0")):
        write_sysctl(CC, cc)
        ns = Namespace(f"child{expected}")
        equal((ns.sysctl(CC), ns.sysctl(ACTIVE)), (cc, expected), "default, active")
        ns.remove()


@case("in a namespace that does not use greenlane a SYN keeps its DSCP: reflected, saved",
      version=(4, 6), dscp=(DSCP["protected"], DSCP["message"], 46))
def foreign(version, dscp):
    with inactive_wire("dart", version) as wire:
        wire.b.sysctl("net.ipv4.tcp_reflect_tos", 1)
        listener = wire.listen(1000)
        listener.setsockopt(socket.IPPROTO_TCP, TCP_SAVE_SYN, 1)
        client, server = wire.connect(listener=listener, **tos(version, dscp))
        exchange(wire, client, server)
        equal({p.dscp for p in wire.from_b()}, {dscp}, "DSCP of b")
        syn = server.getsockopt(socket.IPPROTO_TCP, TCP_SAVED_SYN, 200)
        seen = syn[1] if version == 4 else (syn[0] & 15) << 4 | syn[1] >> 4
        equal(seen >> 2, dscp, "DSCP of the saved SYN")
        equal(active(wire.a, wire.b), ["0", "0"], "active")


@case("a namespace is removed while it becomes active")
def short_lived():
    for number in range(50):
        with inactive_wire("tlt_reno") as wire:
            client, _ = wire.connect()
            choose(client, "tlt_reno")
            if number % 2:
                wire.run(number * 1e-6)
    time.sleep(1)
    modules.unload("greenlane")


if __name__ == "__main__":
    tap.main()
