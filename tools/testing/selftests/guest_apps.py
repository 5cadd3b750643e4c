#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Unmodified applications over the transports that need their own ports, in a guest.

	a1 (clients) ---- sw1 ==== 10 Gbit/s ==== sw2 ---- b1 (servers)

The congestion control is the namespaces' sysctl, and the switches' ports have a preset: the
applications do not depend on either.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.request

import experiments
from experiments.apps import unpacked
from lab.net.pairs import network
from lab.tap import Failed, equal, main, true, using

APPS = unpacked.in_guest("iperf3", "redis-server", "nginx-light", "python3-grpcio")
DROP = "rate 10gbit limit 200k preset aeolus"
TRIM = "rate 10gbit limit 1m preset ndp"
BANDS = "rate 10gbit limit 1m preset homa"
# Documentation/tlt.rst has this one for 40 Gbit/s.
TLT = "rate 10gbit limit 450k count queue map 8 yellow red 7500 yellow 67k ecn 50k"
# aeolus_homa drops unscheduled data above 6 kB.
PORTS = {"xpass": DROP, "aeolus_xpass": DROP, "ndp": TRIM, "aeolus_ndp": DROP, "homa": BANDS,
         "aeolus_homa": f"{BANDS} red 6k count queue", "aeolus_dctcp": TLT}
LONG = ("xpass", "aeolus_xpass")        # all requests, and iperf3; fewer over the others
RPC = pathlib.Path(experiments.__file__).parent / "apps/rpc.py"


def command(net, host, program, *words):
    """The command that runs an application in a host."""
    found = next(path for path in (APPS / "usr/bin" / program, APPS / "usr/sbin" / program,
                                   RPC.parent / program) if path.exists())
    return ["ip", "netns", "exec", net.ns[host].name, "env",
            f"LD_LIBRARY_PATH={unpacked.libraries(APPS)}",
            f"PYTHONPATH={APPS}/usr/lib/python3/dist-packages", str(found), *map(str, words)]


def client(net, program, *words):
    """Run an application in a1; returns its output."""
    done = subprocess.run(command(net, "a1", program, *words), capture_output=True,
                          text=True, check=False, timeout=100)
    if done.returncode:
        raise Failed(f"{program}: {done.returncode}: {done.stdout[-300:]} {done.stderr[-300:]}")
    return done.stdout


@contextlib.contextmanager
def server(net, program, *words):
    """Run an application in b1 while the context lasts."""
    with subprocess.Popen(command(net, "b1", program, *words), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        time.sleep(1)
        equal(process.poll(), None, f"{program}: exit status")
        try:
            yield
        finally:
            process.terminate()


def requests(cc, count):
    """This number of requests, or a part of it that is enough."""
    return count if cc in LONG else count // 3


def by_transport(net, cc):
    """The transport carried the data: no connection fell back, and no timer of TCP expired."""
    for name in ("PeerWithout", "Fallback", "TCPTimeouts", "TCPAbortOnTimeout"):
        equal(net.counters(name), 0, f"{cc}: {name}")
    if cc == "aeolus_dctcp":
        # This path has less than TCP's first window, so nothing is unscheduled.
        true(net.counters("ImportantSent") > 20, f"{cc}: important packets")
    else:
        of = {"ndp": "Ndp", "homa": "Homa"}.get(cc.removeprefix("aeolus_"), "")
        true(net.counters(f"{of}ScheduledSent") > 100, f"{cc}: packets with a credit")
        equal(net.counters(f"{of}UnscheduledSent") > 0, cc != "xpass", f"{cc}: unscheduled packets")
    for switch in ("sw1", "sw2"):
        colours = net.port(switch)["colors"]
        # Ports of ndp trim, and those of homa have room.
        for colour in ("red", "yellow", "green") if cc in ("ndp", "homa") else ("green",):
            equal(sum(colours[colour]["drops"].values()), 0, f"{cc}: {colour} drops at {switch}")
    if cc.endswith("homa"):
        # Of grants, of unscheduled data, and of the only message that is granted.
        bands = [net.port(switch)["bands"] for switch in ("sw1", "sw2")]
        equal([any(band[of]["packets"] for band in bands) for of in "017"], [True] * 3,
              f"{cc}: bands 0, 1 and 7 have packets")


@contextlib.contextmanager
def switches(cc):
    """A network whose hosts all use this congestion control, and its name."""
    with network(PORTS[cc], PORTS[cc], cc=cc) as net:
        yield net, cc
        by_transport(net, cc)


everywhere = using(switches, cc=tuple(PORTS))


@using(switches, cc=LONG)("iperf3: each direction, and four streams")
def iperf(net, _):
    for words in ((), ("-R",), ("-P", "4")):
        with server(net, "iperf3", "-s", "-1"):
            said = json.loads(client(net, "iperf3", "-c", net.address("b1"), "-J", "-n", "20M", *words))
        rate = said["end"]["sum_received"]["bits_per_second"]
        print(f"# {words}: {rate / 1e6:.0f} Mbit/s", flush=True)
        # at most 1448 of 1538 + 110 bytes
        true(6e9 < rate < 9e9, f"{words}: {rate / 1e6:.0f} Mbit/s")


@everywhere("Redis: GET returns the value of SET; a benchmark with 50 clients")
def redis(net, cc):
    with tempfile.TemporaryDirectory() as where, \
            server(net, "redis-server", "--bind", net.address("b1"), "--protected-mode", "no",
                   "--save", "", "--dir", where):
        value = "".join(chr(33 + i % 90) for i in range(100_000))
        equal(client(net, "redis-cli", "-h", net.address("b1"), "set", "key", value).strip(), "OK", "SET")
        equal(client(net, "redis-cli", "-h", net.address("b1"), "get", "key").strip(), value, "GET")
        said = client(net, "redis-benchmark", "-h", net.address("b1"), "-t", "set,get", "-c", "50",
                      "-n", requests(cc, 1000), "-d", "20000", "--csv").splitlines()
        equal([line.split(",")[0] for line in said[-2:]], ['"SET"', '"GET"'], "tests done")
        # The messages of 50 clients are more than a port queues.
        red = [net.port(switch)["colors"]["red"] for switch in ("sw1", "sw2")]
        if cc in ("aeolus_xpass", "aeolus_ndp"):
            true(red[0]["drops"]["color"] > 0, "unscheduled packets are dropped")
        if cc == "ndp":
            trims = sum(port["trims"] for port in red)
            true(trims > 0, "packets are trimmed")
            equal([net.counters(name) for name in ("TrimReportSent", "TrimReportReceived")],
                  [trims] * 2, "TrimReportSent, TrimReportReceived")


@everywhere("gRPC: small calls on one long connection, one by one and in parallel")
def grpc(net, cc):
    where = f"{net.address('b1')}:50051"
    with server(net, RPC.name, "serve", where):
        took = json.loads(client(net, RPC.name, "call", where, requests(cc, 50)))
        print(f"# us: {took}", flush=True)
        # Links have 3.5 us: Python takes most of the time, and no call waits for a timer.
        true(max(took.values()) < 20_000, f"median of each size, us: {took}")


@everywhere("NGINX: files of every size, byte for byte")
def nginx(net, _):
    with tempfile.TemporaryDirectory() as where:
        files = {str(size): os.urandom(size) for size in (1, 1448, 20_000, 1_000_000)}
        for name, content in files.items():
            pathlib.Path(where, name).write_bytes(content)
        config = pathlib.Path(where, "conf")
        config.write_text(
            f"daemon off; user root; pid {where}/pid; error_log {where}/log;\n"
            f"events {{}} http {{ access_log off; client_body_temp_path {where}/b;"
            f" proxy_temp_path {where}/p; fastcgi_temp_path {where}/f;"
            f" uwsgi_temp_path {where}/u; scgi_temp_path {where}/s;\n"
            f"server {{ listen {net.address('b1')}:80; root {where}; }} }}\n", encoding="ascii")
        with server(net, "nginx", "-c", config, "-e", f"{where}/log"), net.ns["a1"]:
            for _ in range(5):
                for name, content in files.items():
                    with urllib.request.urlopen(f"http://{net.address('b1')}/{name}", timeout=10) as got:
                        equal(got.read() == content, True, f"{name} bytes are the same")


main()
