#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status: its counters, namespaces and sockets, and changes since the last look.

	ns a ---- wire ---- ns b
"""
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from lab import TOP
from lab.net import modules
from lab.net.namespace import ACTIVE, write_sysctl
from lab.status import STATE, TOOL, Cable, connections, exchange, forget, ids, look, tool, watched
from lab.tap import case, equal, main, true, within
from lab.wire.sockopt import COUNTERS, GAUGES, TCP_CONGESTION, info
from lab.wire.wire import Wire, connected

TLT = COUNTERS[:7]


def load():
    """Load TLT's modules, and make the host active."""
    modules.load("tcp_tlt")
    write_sysctl(ACTIVE, 1)


@case("a healthy network: the sum of every connection's counters, no sentence",
      watched, version=(4, 6),
      cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"))
def healthy(wire):
    pairs = [wire.connect(port) for port in (1000, 1001, 1002)]
    for client, server in pairs:
        exchange(wire, client, server)
    said = look()
    equal(ids(said), [], f"{wire.cc}: mistakes")
    for side, ns in enumerate((wire.a, wire.b)):
        here = connections(said, ns)
        equal(len(here), 3, "connections")
        equal({(c["cc"], c["peer"]) for c in here}, {(wire.cc, "yes")},
              "congestion control and peer of each")
        equal({c["remote"] for c in here},
              {wire.address(wire.b if ns is wire.a else wire.a)}, "remote addresses")
        for name in TLT:
            equal(sum(c["counters"][name] for c in here),
                  sum(info(pair[side])[name] for pair in pairs), name)
        counted = next(n for n in said["namespaces"].values()
                       if n["name"] == ns.name)
        equal(counted["cc"], wire.cc, "default congestion control")
        equal(counted["counters"], ns.greenlane(), "/proc/net/greenlane")
        true(counted["counters"]["ImportantSent"] > 0, "ImportantSent: more than 0")


@case("the text: 80 columns, a table by transport, and the verdict", watched, cc="tlt_dctcp")
def text(wire):
    pairs = [wire.connect(port) for port in (1000, 1001)]
    exchange(wire, *pairs[0])
    status, out, err = tool("status")
    equal((status, err), (0, ""), f"status, stderr; the output is {' '.join(out.split())}")
    equal([line for line in out.splitlines() if len(line) > 80], [], "text lines that are too long")
    lines = [line.split() for line in out.splitlines()]
    head = next(line for line in lines if line[:2] == ["NAMESPACE", "CC"])
    equal(head[2:], ["CONN", "PEER", "IMPORT", "ECHO", "CLOCK", "LOST", "RTO"], "columns")
    row = next(line for line in lines if line[:2] == [wire.a.name, "tlt_dctcp"])
    equal(len(row), len(head), "number of columns")
    equal(row[:4], [wire.a.name, "tlt_dctcp", "2", "2/0"], "connections of a")
    equal(row[4], str(info(pairs[0][0])["important_sent"]
                      + info(pairs[1][0])["important_sent"]), "column IMPORT of a")
    true(out.endswith("No mistake found.\n"), "the verdict")


@case("the second look shows changes since the first; --all shows all counters",
      connected, of=watched,
      cc="tlt_reno")
def changes(wire, client, server):
    exchange(wire, client, server)
    first = look()
    equal(first["since"], None, "since, of the first look")
    before = wire.a.greenlane()
    mine = info(client)
    exchange(wire, client, server, 50_000)
    second = look()
    equal(second["since"], first["time"], "since, of the second look")
    ns = next(n for n in second["namespaces"].values() if n["name"] == wire.a.name)
    equal(ns["change"], {k: v - before[k] for k, v in wire.a.greenlane().items()},
          "changes of the counters")
    true(ns["change"]["ImportantSent"] > 0, "ImportantSent has grown")
    one = next(c for c in second["connections"].values() if c["local"] == "10.0.0.1")
    equal(one["change"], {k: info(client)[k] - mine[k] for k in COUNTERS if k not in GAUGES},
          "changes of the connection")
    third = look()
    equal({v for n in third["namespaces"].values() for v in n["change"].values()}, {0},
          "changes without traffic")
    _, out, _ = tool("status")
    true("ImportantSent" not in out, "an unchanged counter is not shown")
    _, out, _ = tool("status", "--all")
    true("ImportantSent" in out and "HandshakeRemarked" in out, "--all shows all counters")
    equal(look("--all")["since"], None, "since, of --all")


@case("counters that have fallen count from 0")
def backwards():
    load()
    forget()
    for count in (3, 1):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
            for _ in range(count):
                with socket.socket() as client:
                    client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
                    client.connect(listener.getsockname())
                    listener.accept()[0].close()
        said = look()
        host = next(n for n in said["namespaces"].values() if n["name"] == "host")
        # SYN, SYN-ACK
        equal(host["change"]["HandshakeMarked"], 2 * count, "HandshakeMarked")
        modules.unload("greenlane")
        load()


@case("a namespace without a name is named after its process; sockets of both families")
def container():
    load()
    forget()
    code = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
for name, value in (("tcp_congestion_control", "tlt_cubic"), ("greenlane_active", "1")):
    open(f"/proc/sys/net/ipv4/{name}", "w").write(value)
keep = []
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((host, 0), family=family)
    keep += [listener, socket.create_connection(listener.getsockname()[:2])]
    keep += [listener.accept()[0]]
print(flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(["unshare", "-n", sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        said = look()
        process.stdin.close()
    equal(len(said["connections"]), 4, "connections")
    names = {said["namespaces"][c["ns"]]["name"] for c in said["connections"].values()}
    equal(len(names), 1, "namespaces")
    true(names.pop().startswith("python3["), "the name begins with the process's name")
    equal(ids(said), [], "mistakes")


@case("a socket of two processes counts once, one without a connection does not; other congestion"
      " controls are counted by name")
def shared():
    load()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            server = listener.accept()[0]
            child = os.fork()
            if not child:
                time.sleep(1000)
                os._exit(0)
            forget()
            idle = [socket.socket() for _ in range(5)]      # sockets without a connection
            said = look()
            for s in idle:
                s.close()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            server.close()
            del client
    host = next(key for key, n in said["namespaces"].items() if n["name"] == "host")
    equal(said["plain"], {f"{host} cubic": 2}, "connections")
    equal(said["listeners"], {"cubic": 1}, "listeners")
    time.sleep(120)


@case("status reads 10,000 connections")
def many():
    load()
    forget()
    resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
    # All connections close at once.  With a shorter backlog the loopback device would drop packets,
    # which the next look would report.
    with open("/proc/sys/net/core/netdev_max_backlog", "w", encoding="ascii") as f:
        f.write("100000")
    keep = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
        for _ in range(5000):
            client = socket.socket()
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
            client.connect(listener.getsockname())
            client.send(b"x")
            keep += [client, listener.accept()[0]]
        said = look()
        again = look()
    equal(len(said["connections"]), 10_000, "connections")
    equal(len(again["connections"]), 10_000, "connections of the second look")
    equal(sum(c["counters"]["important_sent"] for c in said["connections"].values()), 5000,
          "important_sent of all connections")
    equal(sum(c["change"]["important_sent"] for c in again["connections"].values()), 0,
          "growth of important_sent since the first look")
    within(os.path.getsize(STATE), 1, 10_000 * 100, "size of the state file, bytes")
    for s in keep:
        s.close()
    time.sleep(120)


@case("processes and sockets begin and end while status runs")
def vanish():
    load()
    code = """
import os, socket, time
while True:
    if not os.fork():
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        os._exit(0)
    os.wait()
    time.sleep(0.0001)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        for _ in range(5):
            forget()
            look()
        process.kill()
    time.sleep(120)


@case("status for users other than root shows less, and reports that")
def not_root():
    load()
    forget()
    with Wire(cc="tlt_reno") as wire:
        exchange(wire, *wire.connect())
        status, out, err = tool("status", command=("setpriv", "--reuid", "65534",
                                                   "--clear-groups", sys.executable, TOOL))
        equal((status, err), (3, ""), f"status, stderr; the output is {' '.join(out.split())}")
        true("without CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE" in " ".join(out.split()),
             "the output reports that")
        true("tcp_tlt" in out, "the output has the modules")


@case("--watch: periodic looks with changes since the last one, no state file", watched,
      cc="tlt_reno")
def watch(wire):
    exchange(wire, *wire.connect())
    done = subprocess.run(["timeout", "-s", "INT", "3.5", sys.executable, TOOL, "status",
                           "--json", "--watch", "1"], capture_output=True, text=True,
                          check=False)
    equal(done.stderr, "", "stderr")
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    true(len(looks) >= 3, f"{len(looks)} looks")
    equal(looks[0]["since"], None, "since, of the first look")
    equal(looks[1]["since"], looks[0]["time"], "since, of the second look")
    equal(os.path.exists(STATE), False, "a state file exists")


@case("greenlane in /usr finds its parts, also through a symbolic link")
def installed():
    load()
    forget()
    subprocess.run(["install", "-D", TOOL, "/usr/sbin/greenlane"], check=True)
    subprocess.run(["mkdir", "-p", "/usr/lib/greenlane"], check=True)
    subprocess.run(["cp", "-r", f"{TOP}/tools/greenlane", "/usr/lib/greenlane/"], check=True)
    subprocess.run(["rm", "-rf", "/usr/lib/greenlane/greenlane/__pycache__"], check=True)
    os.symlink("/usr/sbin/greenlane", "/run/gl")
    for command in ("/usr/sbin/greenlane", "/run/gl"):
        status, out, err = tool("status", command=(command,))
        equal((status, err), (1, ""), command)
        true("tcp_tlt is loaded, but no" in " ".join(out.split()), "the output has a sentence")
    equal(os.path.exists("/usr/lib/greenlane/greenlane/__pycache__"), False, "__pycache__ exists")
    # It reports a missing plugin.
    with Cable("color rate 1gbit limit 1m red 270k"):
        status, out, err = tool("status", command=("env", "-u", "TC_LIB_DIR", "/run/gl"))
        equal((status, err), (3, ""),
              f"status, stderr without the plugin; the output is {' '.join(out.split())}")
        true("The plugin for tc is missing" in out and "tc cannot show the ports" in out, out)


@case("mistakes in the command line are refused with one line of text and status 2")
def usage():
    for words in ((), ("stat",), ("status", "--watch", "x"), ("status", "--watch", "-1"),
                  ("status", "--frobnicate"), ("status", "more")):
        status, out, err = tool(*words)
        equal((status, out, err.count("\n")), (2, "", 1), f"greenlane {' '.join(words)}: {err}")


if __name__ == "__main__":
    main()
