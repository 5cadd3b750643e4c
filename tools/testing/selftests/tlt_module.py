#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Loading and unloading with open connections; removal of namespaces; tracing.

	a (client) ---- wire (this program) ---- b (server)
"""
import os
import socket
import subprocess
import threading
import time

from lab import tap
from lab.codepoints import CLOCK, DATA, IMPORTANT
from lab.net import libc, modules
from lab.net.trace import fired, traced
from lab.tap import case, equal, true
from lab.wire.packet import SYN
from lab.wire.sockopt import TCP_CONGESTION, info
from lab.wire.wire import Wire, connected


def references(name):
    """A module's use count."""
    with open(f"/sys/module/{name}/refcnt", encoding="ascii") as f:
        return int(f.read())


@case("rmmod is refused while connections are open, and succeeds after they are closed")
def rmmod_refused():
    with Wire() as wire:
        client, server = wire.connect()
        equal(modules.rmmod("tcp_tlt"), False, "rmmod tcp_tlt with connections")
        equal(modules.rmmod("greenlane"), False, "rmmod greenlane below tcp_tlt")
        true(wire.transfer(client, server, 100_000), "data still arrives")
    modules.unload("greenlane")
    modules.load("tcp_tlt")


def wait_unused():
    """Wait until the namespaces of the last case are removed."""
    for _ in range(200):
        if references("tcp_tlt") == 0:
            return
        time.sleep(0.05)
    raise tap.Failed(f"tcp_tlt is still used: {references('tcp_tlt')}")


@case("a namespace's default congestion control keeps the module")
def default_keeps():
    modules.load("tcp_tlt")
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control=tlt_reno"], check=True)
    equal(modules.rmmod("tcp_tlt"), False, "rmmod with the default set")
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"], check=True)
    modules.unload("tcp_tlt")


@case("a combinator whose base is missing is left out, the others are registered")
def without_base():
    # A base that this insmod may not use counts as missing.
    modules.load("tcp_tlt")
    modules.unload("greenlane")
    subprocess.run(["dmesg", "-C"], check=True)
    subprocess.run(["insmod", modules.path("greenlane")], check=True)
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_allowed_congestion_control=reno cubic"],
                   check=True)
    subprocess.run(["setpriv", "--bounding-set=-net_admin", "insmod", modules.path("tcp_tlt")],
                   check=True)
    ours = {name for name in available() if name.startswith("tlt_")}
    equal(ours, {"tlt_reno", "tlt_cubic"}, "available combinators")
    log = subprocess.run(["dmesg", "-t"], capture_output=True, text=True, check=True).stdout
    true("tcp_tlt: no tlt_dctcp without its base (-1)" in log, f"the log has the reason: {log}")
    with Wire(cc="tlt_cubic") as wire:
        client, server = wire.connect()
        true(wire.transfer(client, server, 100_000), "data arrives with tlt_cubic")
    modules.unload("greenlane")
    modules.load("tcp_tlt")
    ours = {name for name in available() if name.startswith("tlt_")}
    equal(ours, {"tlt_reno", "tlt_cubic", "tlt_dctcp", "tlt_dcqcn", "tlt_bbr",
                 "tlt_dart", "tlt_hpcc"}, "available combinators after loading again")


def available():
    """The available congestion controls."""
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as f:
        return f.read().split()


@case("loaded and unloaded 20 times under traffic of other congestion controls", connected,
      cc="cubic")
def churn(wire, client, server):
    stop = threading.Event()
    faults = []

    def churn_modules():
        for _ in range(20):
            for name in ("tcp_tlt", "tcp_hpcc", "tcp_dart", "tcp_dcqcn", "greenlane"):
                if os.path.exists(f"/sys/module/{name}") and not modules.rmmod(name):
                    faults.append(name)
            time.sleep(2e-3)        # otherwise no virtual time passes
            for name in ("greenlane", "tcp_dcqcn", "tcp_dart", "tcp_hpcc", "tcp_tlt"):
                subprocess.run(["insmod", modules.path(name)], check=True)
        stop.set()
    wait_unused()
    thread = threading.Thread(target=churn_modules)
    thread.start()
    moved = 0
    while not stop.is_set():
        true(wire.transfer(client, server, 20_000), "data arrives")
        moved += 1
        wire.run(1e-3)
    thread.join()
    equal(faults, [], "modules whose rmmod failed")
    true(moved > 10, f"transfers meanwhile: {moved}, more than 10")


@case("namespaces are removed with open connections, which end, too", version=(4, 6))
def namespaces_go(version):
    modules.load("tcp_tlt")
    for _ in range(3):
        wire = Wire(cc="tlt_dctcp", version=version)
        pairs = [wire.connect(port=1000 + n) for n in range(3)]
        for client, _ in pairs:
            client.send(b"g" * 50_000)
        wire.run(30e-6)         # with data in flight
        wire.cut()
        wire.a.remove()
        wire.b.remove()
        for pair in pairs:
            for s in pair:
                s.close()
    # The last sockets are removed when TCP gives up, after some minutes of RTOs.
    subprocess.run(["sleep", "600"], check=True)
    equal(references("tcp_tlt"), 0, "use count of tcp_tlt: remaining sockets")


def may_have(cc):
    """May an application without privileges select cc?"""
    with libc.without_net_admin(), socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        except PermissionError:
            return False
    return True


@case("an application that may not select a base may not select its TLT, nor a control that"
      " ignores losses; the administrator may allow it")
def restricted():
    modules.load("tcp_tlt")
    modules.unload("greenlane")
    modules.allow("reno", "cubic")
    for name in ("greenlane", "tcp_dcqcn", "tcp_tlt", "tcp_dart", "rd_core", "tcp_xpass", "tcp_homa",
                 "tcp_aeolus"):
        if not modules.is_loaded(name):
            subprocess.run(["insmod", modules.path(name)], check=True)
    for base in ("reno", "cubic", "dctcp", "dcqcn", "bbr"):
        expected = base in ("reno", "cubic")
        equal((may_have(base), may_have(f"tlt_{base}")), (expected, expected),
              f"permission to select {base}, tlt_{base}")
    equal([cc for cc in ("dart", "xpass", "aeolus_xpass") if may_have(cc)], [],
          "transports that may be selected")
    modules.allow("reno", "cubic", "tlt_dctcp", "xpass")
    equal([cc for cc in ("dctcp", "tlt_dctcp", "dart", "xpass") if may_have(cc)],
          ["tlt_dctcp", "xpass"], "transports that may be selected when allowed")
    modules.allow()


@case("the modules' aliases and licence")
def modinfo():
    seen = subprocess.run(["modinfo", "-F", "alias", modules.path("tcp_tlt")], text=True,
                          capture_output=True, check=True).stdout.split()
    equal(sorted(seen), ["tcp_aeolus_cubic", "tcp_aeolus_dctcp", "tcp_aeolus_reno", "tcp_tlt_bbr",
                         "tcp_tlt_cubic", "tcp_tlt_dart", "tcp_tlt_dcqcn", "tcp_tlt_dctcp",
                         "tcp_tlt_hpcc", "tcp_tlt_reno"], "aliases")
    for name in ("greenlane", "tcp_tlt"):
        licence = subprocess.run(["modinfo", "-F", "license", modules.path(name)], text=True,
                                 capture_output=True, check=True).stdout.strip()
        equal(licence, "GPL", f"licence of {name}")


OF_TLT = ("clock", "echo", "fallback", "important", "lost")


@case("each tracepoint of TLT fires, and has the values of the wire")
def tracepoints():
    modules.load("tcp_tlt")
    with traced("greenlane") as lines, Wire() as wire:
        client, server = wire.connect()
        n = [0]

        def drop(p):
            n[0] += bool(p.from_a and p.len and p.kind == DATA)
            return p.from_a and p.len and p.kind == DATA and 9 < n[0] < 14
        wire.rule = drop
        wire.transfer(client, server, 13 * 1448)
        wire.run(1e-3)
        important = [p for p in wire.seen if p.len and p.kind == IMPORTANT]
        clocks = [p for p in wire.seen if p.kind == CLOCK]
        echoes = [info(s)["echoes"] for s in (client, server)]
        # And a connection to a server without TLT.
        wire.connect(2000, listener=wire.listen(2000, cc="reno"))
    for p in important:
        true(p.end in [end for end, _ in fired(lines, "important")],
             f"important, end {p.end}, is traced")
    true([size for _, size in fired(lines, "clock")].count(1) >= len(clocks), "clocks are traced")
    equal([name for name in OF_TLT if not fired(lines, name)], [], "tracepoints that have not fired")
    equal(len(fired(lines, "echo")), sum(echoes), "echoes are traced")


@case("a namespace has counters of its own, which agree with the packets on the wire", connected)
def counters(wire, client, server):
    wire.transfer(client, server, 200_000)
    wire.run(1e-3)
    sent = wire.a.greenlane()
    data = [p for p in wire.from_a() if p.len and p.kind != CLOCK]
    equal(sent["ImportantSentBytes"] + sent["DataSentBytes"], 200_000, "bytes")
    equal(sent["ImportantSent"], sum(p.kind == IMPORTANT for p in data
                                     if not p.flags & SYN), "ImportantSent")
    equal(sent["DataSent"], sum(p.kind == DATA for p in data), "DataSent")
    equal(sent["ClockByteSent"], sum(p.kind == CLOCK for p in wire.from_a()), "clocks")
    equal(wire.b.greenlane()["DataSent"], 0, "b's DataSent")


if __name__ == "__main__":
    tap.main()
