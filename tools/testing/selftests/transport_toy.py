#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A transport that the tagging layer has never heard of (modules/tcp_toy.c).

	a (client) ---- wire (this program) ---- b (server)

What it has, it has brought with it: kinds, counters, a sysctl and a socket option.
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
    """Load it."""
    modules.load("greenlane")
    modules.load_helper("tcp_toy")
    modules.allow()


@contextlib.contextmanager
def toy_wire(version=4, cc_b="toy"):
    """Two ends and the wire; their first connection has the hooks already."""
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
    """Its counters in a namespace."""
    counters = ns.greenlane()
    return [counters[name] for name in COUNTERS]


def codes(wire):
    """The values of the options in the packets, by code; None without one."""
    return [p.raw[p.raw.index(b"GL", p.ip_len + 20) + 2] if b"GL" in p.raw[p.ip_len + 20:] else None
            for p in wire.seen if not p.len]


@case("peers by its own hello; each kind has its codepoint", version=(4, 6))
def speaks(version):
    with toys(version) as (wire, client, server):
        equal([p.dscp for p in wire.seen[:3]], [CONTROL] * 3, "DSCP of the handshake")
        equal(codes(wire), [48, 48, None], "codes in it")
        equal([info(s)["peer"] for s in (client, server)], [YES, YES], "peers")
        wire.mark()
        client.send(bytes(4 * MSS[version]))
        wire.run(1e-3)
        equal([p.dscp for p in wire.from_a() if p.len], [DATA] * 3 + [LAST], "DSCP of data")
        equal([(p.dscp, p.words) for p in wire.from_a() if not p.len], [(WORD, (1,))], "the word")
        equal([p.dscp for p in wire.from_b()].count(ANSWER), 1, "answers")


@case("counters: its own, in each namespace, and from 0 when it comes again")
def counters():
    with toys() as (wire, client, server):
        for _ in range(3):
            client.send(bytes(2 * MSS[4]))
            wire.run(1e-3)
        equal(counted(wire.a), [3, 3, 0, 0, 0, 3, 0], "at a")
        equal(counted(wire.b), [0, 0, 3, 3, 3, 0, 1 + 2 + 3], "at b")
        equal(wire.a.greenlane()["ImportantSent"], 0, "TLT's")
        before = wire.a.greenlane()["ControlSent"]
        server.close()
        client.close()
        for ns in (wire.a, wire.b):
            ns.sysctl(CC, "reno")
        wire.run(0.1)
        modules.unload("tcp_toy")
        equal([name for name in COUNTERS if name in wire.a.greenlane()], [], "counters without it")
        true(wire.a.greenlane()["ControlSent"] >= before, "the layer's are as they were")
        load()
        equal(counted(wire.a) + counted(wire.b), [0] * 14, "when it is there again")


@case("another protocol's end is no peer: both as their base", cc_b=("tlt_reno", "dart", "xpass"))
def strangers(cc_b):
    modules.load_for(cc_b)
    with toys(cc_b=cc_b) as (wire, client, server):
        wire.mark()
        exchange(wire, client, server)
        unmarked(wire.seen)
        equal(info(client)["peer"], NO, "peer")


@case("a socket option of its own: its range; others' options are not its")
def options():
    with toys() as (wire, client, server):
        equal(option(client, GREENLANE_AEOLUS), 0, "at first")
        option(client, GREENLANE_AEOLUS, 7)
        equal(option(client, GREENLANE_AEOLUS), 7, "then")
        for value in (8, -1):
            refused(str(value), errno.EINVAL, option, client, GREENLANE_AEOLUS, value)
        refused("short", errno.EINVAL, client.setsockopt, ip_level(client), GREENLANE_AEOLUS, b"\1")
        refused("another's", errno.EOPNOTSUPP, option, client, GREENLANE_BDP, 1)
        refused("another's", errno.EOPNOTSUPP, client.getsockopt, ip_level(client),
                GREENLANE_BDP, 4)
        client.send(b"x")
        wire.run(1e-3)
        equal(wire.b.greenlane()["ToySum"], 8, "what the peer has heard")
        option(client, GREENLANE_TLT, 0)
        wire.mark()
        client.send(b"x")
        wire.run(1e-3)
        unmarked(wire.from_a())
        choose(server, "reno")
        refused("reno's", errno.ENOPROTOOPT, option, server, GREENLANE_AEOLUS, 1)


@case("a sysctl of its own, in each namespace")
def sysctls():
    with toys() as (wire, client, _):
        wire.a.sysctl("net.ipv4.toy_words", 0)
        equal(wire.b.sysctl("net.ipv4.toy_words"), "1", "at b")
        client.send(b"x")
        wire.run(1e-3)
        equal(wire.b.greenlane()["ToyWordReceived"], 0, "words")


@case("a SYN of before it was loaded, with the DSCP of its hello and no option: no peer",
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


@case("two protocols with the same hello: the second is refused")
def twice():
    load()
    path = f"{os.environ['GL_MODDIR']}/tools/testing/modules/tcp_toy.ko"
    done = subprocess.run(["insmod", path], capture_output=True, text=True, check=False)
    true(done.returncode, "insmod fails")
    true("File exists" in done.stderr, done.stderr)


@case("a SYN-ACK that comes when it is unloaded is nobody's")
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


@case("dcqcn alone does not bring the tagging layer")
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
