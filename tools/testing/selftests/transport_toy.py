#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A transport of another module, unknown to the tagging layer (modules/tcp_toy.c).

	a (client) ---- wire (this program) ---- b (server)

The module defines its kinds, counters, a sysctl and a socket option.
"""
import contextlib
import errno
import os
import socket
import subprocess

from lab import tap
from lab.codepoints import DSCP
from lab.net import modules
from lab.net.namespace import ACTIVE, CC, Namespace
from lab.tap import case, equal, true
from lab.wire.packet import ACK, SYN
from lab.wire.peer import exchange, unmarked
from lab.wire.sockopt import (GREENLANE_AEOLUS, GREENLANE_BDP, GREENLANE_TLT, NO, YES, cc_of,
                              choose, info, ip_level, option, refused, tos)
from lab.wire.wire import MSS, Wire

DATA, LAST, WORD, ANSWER, CONTROL = (DSCP[name] for name in (
    "message", "spent", "credit", "scheduled", "unscheduled"))
COUNTERS = ("ToyDataSent", "ToyLastSent", "ToyLastReceived", "ToyWordReceived", "ToyAnswerSent",
            "ToyAnswerReceived", "ToySum")


def load():
    """Load the toy transport."""
    modules.load("greenlane")
    modules.load_helper("tcp_toy")
    modules.allow()


@contextlib.contextmanager
def toy_wire(version=4, cc_b="toy"):
    """Two ends and the wire, active before the first connection."""
    load()
    with Wire(cc="toy", cc_b=cc_b, version=version) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(ACTIVE, 1)
        yield wire


@contextlib.contextmanager
def toys(version=4, cc_b="toy"):
    """The same, connected."""
    with toy_wire(version, cc_b) as wire:
        yield wire, *wire.connect()


def counted(ns):
    """The toy's counters in a namespace."""
    counters = ns.greenlane()
    return [counters[name] for name in COUNTERS]


def codes(wire):
    """The values of the options in the packets, by code; None without one."""
    return [p.raw[p.options_at[0] + 4] if p.options_at else None for p in wire.seen if not p.len]


@case("the toy has a hello of its own, and each of its kinds has a codepoint", version=(4, 6))
def speaks(version):
    with toys(version) as (wire, client, server):
        equal([p.dscp for p in wire.seen[:3]], [CONTROL] * 3, "DSCP of the handshake")
        equal(codes(wire), [48, 48, None], "codes of the options in the handshake")
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peer, of both sockets")
        wire.mark()
        client.send(bytes(4 * MSS[version]))
        wire.run(1e-3)
        equal([p.dscp for p in wire.from_a() if p.len], [DATA] * 3 + [LAST], "DSCP of data")
        equal([(p.dscp, p.words) for p in wire.from_a() if not p.len], [(WORD, (1,))],
              "DSCP and words of packets without data")
        equal([p.dscp for p in wire.from_b()].count(ANSWER), 1, "answers")


@case("the toy's counters exist in each namespace, and are 0 after it is loaded again")
def counters():
    with toys() as (wire, client, server):
        for _ in range(3):
            client.send(bytes(2 * MSS[4]))
            wire.run(1e-3)
        equal(counted(wire.a), [3, 3, 0, 0, 0, 3, 0], "counters of a")
        equal(counted(wire.b), [0, 0, 3, 3, 3, 0, 1 + 2 + 3], "counters of b")
        equal(wire.a.greenlane()["ImportantSent"], 0, "ImportantSent, of TLT")
        before = wire.a.greenlane()["ControlSent"]
        server.close()
        client.close()
        for ns in (wire.a, wire.b):
            ns.sysctl(CC, "reno")
        wire.run(0.1)
        modules.unload("tcp_toy")
        equal([name for name in COUNTERS if name in wire.a.greenlane()], [],
              "the toy's counters after it is removed")
        true(wire.a.greenlane()["ControlSent"] >= before, "ControlSent, of the layer, is kept")
        load()
        equal(counted(wire.a) + counted(wire.b), [0] * 14,
              "counters of a and b after it is loaded again")


@case("the other end runs another protocol: both run their base",
      cc_b=("tlt_reno", "dart", "xpass"))
def strangers(cc_b):
    modules.load_for(cc_b)
    with toys(cc_b=cc_b) as (wire, client, server):
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)
        equal(info(client)["peer"], NO, "peer")


@case("the toy's socket option has its own range; other transports' options are refused")
def options():
    with toys() as (wire, client, server):
        equal(option(client, GREENLANE_AEOLUS), 0, "GREENLANE_AEOLUS by default")
        option(client, GREENLANE_AEOLUS, 7)
        equal(option(client, GREENLANE_AEOLUS), 7, "GREENLANE_AEOLUS after it is set")
        for value in (8, -1):
            refused(str(value), errno.EINVAL, option, client, GREENLANE_AEOLUS, value)
        refused("short", errno.EINVAL, client.setsockopt, ip_level(client), GREENLANE_AEOLUS, b"\1")
        refused("another's", errno.EOPNOTSUPP, option, client, GREENLANE_BDP, 1)
        refused("another's", errno.EOPNOTSUPP, client.getsockopt, ip_level(client),
                GREENLANE_BDP, 4)
        client.send(b"x")
        wire.run(1e-3)
        equal(wire.b.greenlane()["ToySum"], 8, "ToySum of the peer")
        option(client, GREENLANE_TLT, 0)
        wire.mark()
        client.send(b"x")
        wire.run(1e-3)
        unmarked(wire.from_a())
        choose(server, "reno")
        refused("reno's", errno.ENOPROTOOPT, option, server, GREENLANE_AEOLUS, 1)


@case("the toy's sysctl is separate in each namespace")
def sysctls():
    with toys() as (wire, client, _):
        wire.a.sysctl("net.ipv4.toy_words", 0)
        equal(wire.b.sysctl("net.ipv4.toy_words"), "1", "toy_words of b")
        client.send(b"x")
        wire.run(1e-3)
        equal(wire.b.greenlane()["ToyWordReceived"], 0, "ToyWordReceived")


@case("a SYN from before the toy was loaded, with its hello's DSCP and no option: no peer",
      version=(4, 6))
def before_it_was_loaded(version):
    modules.unload("tcp_toy")
    modules.load("greenlane")
    with Wire(cc="reno", cc_b="reno", version=version) as wire:
        wire.b.sysctl(ACTIVE, 1)
        listener = wire.listen(1000)
        client = wire.socket(wire.a, **tos(version, LAST))
        held = []
        wire.rule = lambda p: p.from_a and not p.flags & SYN and not held.append(p)
        wire.begin(client, wire.b)
        wire.run(1e-3)
        load()
        wire.b.sysctl(CC, "toy")
        wire.rule = None
        wire.inject(wire.b, held[0])
        wire.run(1e-3)
        server = wire.accept(listener)
        equal((cc_of(server), info(server)["peer"]), ("toy", NO), "congestion control, peer")
        exchange(wire, server, client)
        unmarked(wire.from_b())


@case("a second protocol with the same hello is refused")
def twice():
    load()
    path = f"{os.environ['GL_MODDIR']}/tools/testing/modules/tcp_toy.ko"
    done = subprocess.run(["insmod", path], capture_output=True, text=True, check=False)
    true(done.returncode, "insmod fails")
    true("File exists" in done.stderr, done.stderr)


@case("a SYN-ACK that arrives after the toy is removed has no effect")
def goes_meanwhile():
    with toy_wire() as wire:
        listener = wire.listen(1000)
        client = wire.socket(wire.a)
        wire.rule = lambda p: p.flags & SYN and p.flags & ACK
        wire.begin(client, wire.b)
        wire.run(1e-3)
        answers = [p for p in wire.from_b() if p.flags & SYN]
        equal([p.dscp for p in answers], [CONTROL], "SYN-ACKs")
        client.close()
        listener.close()
        for ns in (wire.a, wire.b):
            ns.sysctl(CC, "reno")
        wire.rule = None
        modules.unload("tcp_toy")
        again = wire.socket(wire.a)
        again.bind((wire.address(wire.a), answers[0].dport))
        wire.begin(again, wire.b)
        wire.inject(wire.a, answers[0])
        wire.run(10e-3)
        exchange(wire, *wire.connect(1001))
        again.close()


@case("dcqcn alone does not load the tagging layer")
def dcqcn_alone():
    modules.unload("tcp_toy", "greenlane", "tcp_dcqcn")
    modules.load("tcp_dcqcn")
    equal(modules.is_loaded("greenlane"), False, "the layer is loaded")
    ns = Namespace("alone")
    with ns, socket.socket() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dcqcn")
    ns.sysctl("net.ipv4.dcqcn_rate", 40_000)
    ns.remove()


if __name__ == "__main__":
    tap.main()
