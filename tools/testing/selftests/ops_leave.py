#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane leave: lists all users of greenlane, in all namespaces, and unloads unused modules.

	ns a (cc is its default) ---- wire ---- ns b        lab.wire
	ns ports: color and iofd on dummies
"""
import contextlib
import os
import subprocess
import sys

from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import STATE, TOOL, look, tool
from lab.tap import case, equal, main, true
from lab.transports import MODULES as OURS
from lab.wire.wire import Wire

CONF = "/etc/sysctl.d/90-greenlane-test.conf"


def loaded():
    """Our modules that are loaded."""
    return {name for name in OURS if os.path.isdir(f"/sys/module/{name}")}


def leave(expected):
    """Run greenlane leave; returns its stdout, checks its exit status and an empty stderr."""
    status, out, err = tool("leave")
    equal((status, err), (expected, ""), f"status, stderr of greenlane leave with the output {out}")
    return out


def has(out, *texts):
    """Check that the output contains each of these texts."""
    for text in texts:
        true(text in out, f"{text!r} in {out}")


@case("without loaded modules leave reports that greenlane is not in use")
def nothing():
    for name in reversed(OURS):
        if name in loaded():
            modules.rmmod(name)
    has(leave(0), "greenlane is not in use")


@case("unused modules are unloaded, in the correct order, and the state file is removed")
def unused():
    modules.load(*OURS)
    look()
    true(os.path.exists(STATE), "a state file exists")
    out = leave(0)
    has(out, "unloaded: sch_iofd, sch_color, tcp_aeolus, tcp_homa, tcp_ndp, tcp_xpass, tcp_tlt, tcp_hpcc, tcp_timely,"
        " tcp_dart", "greenlane is not in use")
    equal(loaded(), set(), "loaded")
    equal(os.path.exists(os.path.dirname(STATE)), False, "the state file exists")


@case("connections, listeners and defaults in other namespaces are listed with processes, and kept")
def sockets():
    with Wire(cc="tlt_reno", cc_b="cubic") as wire:
        modules.load("tcp_aeolus", "sch_color", "sch_iofd")
        wire.connect()
        listener = wire.listen(2000, cc="tlt_cubic")
        wire.a.sysctl("net.ipv4.tcp_congestion_control", "cubic")
        out = leave(1)
        with open("/proc/self/comm", encoding="ascii") as file:
            me = f"{file.read().strip()}[{os.getpid()}]"
        has(out, f"{wire.a.name}: 1 connection of tlt_reno: {me}\n  wait until they end",
            f"{wire.b.name}: 1 listening socket of tlt_cubic: {me}\n  restart the service",
            "unloaded: sch_iofd, sch_color, tcp_aeolus, tcp_homa, tcp_ndp, tcp_xpass",
            "still loaded: link_speed, greenlane, tcp_dcqcn, tcp_dart, tcp_hpcc, tcp_tlt")
        true("new connections get" not in out, f"no default remains: {out}")
        listener.close()
        wire.a.sysctl("net.ipv4.tcp_congestion_control", "tlt_reno")
        out = leave(1)
        has(out, f"{wire.a.name}: new connections get tlt_reno")
        true("listening" not in out, f"no listener remains: {out}")
    has(leave(0), "unloaded: tcp_tlt, tcp_hpcc, tcp_dart, tcp_dcqcn, greenlane, link_speed")


@case("qdiscs of both kinds, routes and configuration files are listed, each with its remedy")
def settings():
    modules.load("tcp_tlt", "sch_color", "sch_iofd")
    ns = Namespace("ports")
    try:
        with ns:
            for name, words in (("one", "color limit 1m red 100k"),
                                ("two", "iofd threshold 100k deflect dev one via 10.0.0.1")):
                subprocess.run(f"ip link add {name} type dummy && ip link set {name} up && "
                               f"tc qdisc add dev {name} root {words}", shell=True, check=True)
            subprocess.run("ip route add 10.9.0.0/16 dev one congctl tlt_cubic", shell=True,
                           check=True)
        os.makedirs(os.path.dirname(CONF), exist_ok=True)
        with open(CONF, "w", encoding="ascii") as file:
            file.write("net.ipv4.tcp_congestion_control = tlt_dctcp\n")
        out = leave(1)
        has(out, "ports: one has the qdisc color\n  tc qdisc del dev one root",
            "ports: two has the qdisc iofd\n  tc qdisc del dev two root",
            "ports: the congctl of a route is one of greenlane's",
            f"{CONF}: the default is tlt_dctcp again after the next boot")
        equal(loaded() & {"sch_color", "sch_iofd"}, {"sch_color", "sch_iofd"}, "in use")
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(CONF)
        ns.remove()
    has(leave(0), "greenlane is not in use")


@case("leave is refused for other users, with one line of text")
def not_root():
    status, out, err = tool("leave", command=("setpriv", "--reuid", "65534", "--clear-groups",
                                              sys.executable, TOOL))
    equal((status, out, err), (2, "", "greenlane: only root can unload modules\n"), "leave")
    equal(tool("leave", "now")[0], 2, "status with an argument")


if __name__ == "__main__":
    main()
