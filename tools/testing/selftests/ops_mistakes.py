#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status: exactly one sentence for each deliberate mistake.

	ns a ---- wire ---- ns b        lab.wire, or
	ns a -- color, veth -- ns b     lab.status.Cable
"""
import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import time

from lab import TOP
from lab.codepoints import DATA, IMPORTANT
from lab.net import libc, modules
from lab.net.namespace import Namespace
from lab.status import (Cable, busy, exchange, forget, heal_tunnel, ids, look, sentence, tool,
                        watched)
from lab.tap import case, equal, main, true
from lab.wire.packet import RST
from lab.wire.peer import without_option
from lab.wire.sockopt import abort
from lab.wire.wire import Wire, connected

SYSCTL = "/etc/sysctl.d/90-greenlane.conf"


@case("a healthy port: no sentence; its counters by colour", Cable,
      options="color rate 1gbit limit 1m red 270k ecn 200k")
def healthy_port(cable):
    pair = cable.connect()
    cable.send([pair])
    said = look()
    equal(ids(said), [], "mistakes")
    port, = said["ports"].values()
    shown = next(q for q in json.loads(subprocess.run(
        ["tc", "-n", "left", "-s", "-j", "qdisc", "show", "dev", "va"], check=True,
        capture_output=True).stdout) if q["kind"] == "color")
    for color in ("red", "yellow", "green"):
        for key in ("packets", "bytes", "marks"):
            equal(port["counters"][f"{color}_{key}"], shown["colors"][color][key], key)
    true(port["counters"]["red_packets"] > 500, "red packets")
    cable.send([pair])
    equal(ids(look()), [], "mistakes at the second look")
    _, out, _ = tool("status")
    true("1 port: no change" in out, "an idle port has one line of text")


@case("(a) a peer without TLT: a sentence")
def peer_without():
    for ends in (("tlt_reno", "cubic"), ("cubic", "tlt_cubic")):
        forget()
        with Wire(cc=ends[0], cc_b=ends[1]) as wire:
            exchange(wire, *wire.connect())
            said = look()
            equal(ids(said), ["peer-without"], "mistakes")
            remote = "10.0.0.2" if ends[0] == "tlt_reno" else "10.0.0.1"
            true(f"1 connection to peers without TLT: {remote}." in
                 sentence(said, "peer-without"), "the sentence names the peer")
            # An open connection is reported at each look, a closed one only once.
            equal(ids(look()), ["peer-without"], "mistakes at the second look")


@case("(b) the path bleaches or changes codepoints: a sentence at the receiving end",
      to=(0, DATA, 46))
def bleached(to):
    with watched(cc="tlt_reno") as wire:
        remarked(wire, to)


def remarked(wire, to):
    """The path sets each DSCP to `to` for a while."""
    client, server = wire.connect()
    exchange(wire, client, server)
    equal(ids(look()), [], "mistakes before")
    # Only packets of a, so b reports it.
    wire.rule = lambda p: p.from_a and p.set_dscp(to)
    for port in (1001, 1002):
        exchange(wire, *wire.connect(port))
    said = look()
    equal(ids(said), ["bleached"], "mistakes")
    true(f"{wire.b.name} 2 handshakes arrived with another DSCP" in sentence(said, "bleached"),
         f"the sentence counts handshakes: {sentence(said, 'bleached')}")
    # Neither open connections nor a are reported.
    equal(len(said["problems"]), 1, "number of sentences")
    equal(ids(look()), [], "mistakes at the second look")
    wire.rule = None
    exchange(wire, *wire.connect(1003))
    equal(ids(look()), [], "mistakes without re-marking")
    wire.b.sysctl("net.ipv4.greenlane_dscp_protected", 46)
    exchange(wire, *wire.connect(1004))
    said = look()
    equal([p["where"] for p in said["problems"] if p["id"] == "bleached"],
          [wire.a.name, wire.b.name], "namespaces of the sentences, with different codepoints")


@case("(b) the path removes the option: a sentence", watched, cc="tlt_reno")
def removed(wire):
    wire.rule = without_option
    client, server = wire.connect()
    exchange(wire, client, server)
    said = look()
    equal(ids(said), ["peer-without"], "mistakes")
    advice = said["problems"][0]["advice"]
    true("removes unknown TCP options" in advice, f"advice: {advice}")
    # Open connections are not reported as closed ones, too.
    equal(len(said["problems"]), 2, "number of sentences, one of each end")


@case("(c) important packets are lost: a sentence", connected, of=watched, cc="tlt_reno")
def important_lost(wire, client, server):
    exchange(wire, client, server)
    look()
    wire.rule = lambda p: p.from_a and p.kind in (DATA, IMPORTANT)
    client.send(bytes(20_000))
    wire.run(30e-3)
    wire.rule = None
    wire.run(1)
    said = look()
    equal(ids(said), ["important-lost"], "mistakes")
    true("10.0.0.2" in sentence(said, "important-lost"), "the sentence names the peer")
    equal(ids(look()), [], "mistakes without further losses")


@case("(c) the path reorders packets: a sentence", connected, of=watched, cc="tlt_reno")
def reordered(wire, client, server):
    wire.transfer(client, server, 100_000)
    equal(ids(look()), [], "mistakes before")

    def rule(p):
        p.late = 30e-6 * (p.from_a and p.kind == DATA)
        return False
    wire.rule = rule
    wire.transfer(client, server, 1_000_000)
    said = look()
    equal(ids(said), ["reordered"], "mistakes")
    true("10.0.0.2" in sentence(said, "reordered"), "the sentence names the peer")


@case("(c) a queue of this host drops without regard to colours: a sentence", Cable,
      options="tbf rate 100mbit burst 3k limit 30k")
def blind_queue(cable):
    pairs = [cable.connect() for _ in range(4)]
    equal(ids(look()), [], "mistakes before")
    cable.send(pairs)
    said = look()
    true("blind-queue" in ids(said), f"mistakes: {ids(said)}")
    true("va in left Its tbf dropped" in sentence(said, "blind-queue"),
         "the sentence names port and qdisc")


@case("(d) a port queues packets of 64 kB without splitting them: a sentence", Cable,
      options="color rate 10gbit limit 4m red 2m no-split-gso")
def offload(cable):
    pair = cable.connect()
    look()
    cable.send([pair])
    said = look()
    equal(ids(said), ["offload"], "mistakes")
    cable.tc(cable.a, "qdisc change dev va root color split-gso")
    look()
    cable.send([pair])
    equal(ids(look()), [], "mistakes after the remedy")


@case("(d) a port whose queue is always empty: a sentence",
      Cable, options="color limit 1m red 270k")
def no_line(cable):
    pair = cable.connect()
    cable.send([pair])
    equal(ids(look()), ["no-line"], "mistakes")
    cable.tc(cable.a, "qdisc change dev va root color rate 1gbit")
    cable.send([pair])
    equal(ids(look()), [], "mistakes after the remedy")


@case("(e) a threshold below a bandwidth-delay product: a sentence", Cable,
      options="color rate 1gbit limit 1m red 15k", delay="1ms")
def threshold(cable):
    pair = cable.connect()
    cable.send([pair])
    said = look()
    equal(ids(said), ["threshold"], "mistakes")
    true("15.4kB, but 1Gbit/s times the round trip to 10.1.0.2" in
         sentence(said, "threshold"), f"numbers in {sentence(said, 'threshold')}")
    cable.tc(cable.a, "qdisc change dev va root color red 400k")
    cable.send([pair])
    equal(ids(look()), [], "mistakes after the remedy")


@case("(f) an application sets a protected DSCP: a sentence")
def stripped():
    modules.load("tcp_tlt")
    forget()
    with Wire(cc="tlt_reno") as wire:
        wire.a.sysctl("net.ipv4.greenlane_protect", 1)
        exchange(wire, *wire.connect())
        with wire.a, libc.without_net_admin():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, IMPORTANT.dscp << 2)
                for _ in range(3):
                    udp.sendto(b"x", ("10.0.0.2", 9))
        said = look()
        equal(ids(said), ["stripped"], "mistakes")
        true(f"{wire.a.name} 3 packets" in sentence(said, "stripped"),
             "the sentence counts packets")
        equal(ids(look()), [], "mistakes after the application has stopped")


@case("an RST that repeats the DSCP of a SYN is not reported as a mistake", watched,
      version=(4, 6), cc="tlt_reno")
def reflected(wire):
    exchange(wire, *wire.connect())
    wire.b.sysctl("net.ipv4.greenlane_protect", 1)
    refused = wire.socket(wire.a)
    with contextlib.suppress(BlockingIOError):
        refused.connect((wire.address(wire.b), 9))
    wire.run(5e-3)
    equal(refused.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNREFUSED,
          "error of connect()")
    equal([p.dscp for p in wire.from_b() if p.flags & RST], [IMPORTANT.dscp], "DSCP of the RST")
    equal(ids(look()), [], "mistakes")


@case("(g) dctcp or dcqcn without ECN: a sentence", cc=("tlt_dctcp", "tlt_dcqcn"))
def without_ecn(cc):
    forget()
    with Wire(cc="tlt_cubic", cc_b=cc) as wire:
        exchange(wire, *wire.connect())
        said = look()
        equal(ids(said), ["no-ecn"], "mistakes")
        true("10.0.0.1" in sentence(said, "no-ecn"), "the sentence names the peer")
        true(f"run tlt_reno where {cc} is selected" in sentence(said, "no-ecn"), "and both")
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
    forget()
    with Wire(cc="tlt_cubic", cc_b=cc) as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        exchange(wire, *wire.connect())
        equal(ids(look()), [], "mistakes after the remedy")


@case("(h) green packets are dropped at the limit: a sentence",
      Cable, options="color rate 10mbit limit 6k")
def green_drops(cable):
    cable.send([cable.connect() for _ in range(12)], 50_000)
    said = look()
    true("green-drops" in ids(said), f"mistakes: {ids(said)}")
    true("its limit is too small" in sentence(said, "green-drops"), "the sentence has the reason")


@case("connections that cannot use TLT: a sentence", watched, cc="tlt_reno")
def unsupported(wire):
    wire.b.sysctl("net.ipv4.tcp_sack", 0)
    exchange(wire, *wire.connect())
    equal(ids(look()), ["unsupported"], "mistakes")


@case("(i) modules that are not used, not loaded, or not installed: a sentence")
def loaded():
    modules.unload("greenlane")
    modules.load("tcp_tlt")
    forget()
    equal(ids(look()), ["not-used"], "mistakes with loaded modules that are not selected")
    with Namespace("routed") as ns:
        ns.ip("link set lo up", "route add 10.9.0.0/24 dev lo congctl tlt_cubic")
        equal(ids(look()), [], "mistakes if a route selects TLT")
    ns.remove()
    modules.unload("tcp_tlt", "tcp_hpcc", "tcp_dcqcn")
    equal(ids(look()), [], "mistakes with the tagging layer alone")
    os.makedirs(os.path.dirname(SYSCTL), exist_ok=True)
    with open(SYSCTL, "w", encoding="ascii") as f:
        f.write("# net.ipv4.tcp_congestion_control = bbr\n"
                "net.ipv4.tcp_congestion_control = tlt_dctcp\n")
    said = look()
    equal(ids(said), ["not-loaded"], "mistakes with a configuration and no module")
    true(f"{SYSCTL} selects tlt_dctcp" in sentence(said, "not-loaded"),
         "the sentence names the file")
    os.unlink(SYSCTL)
    modules.unload("greenlane", "sch_color", "sch_iofd")
    said = look()
    equal(ids(said), ["not-installed"], "mistakes without loaded or installed modules")
    true(os.uname().release in sentence(said, "not-installed"), "the sentence names the kernel")


@case("(i) sysctl.d selects TLT without effect: the sentence has file and reason",
      cc=("cubic", "reno"))
def not_in_effect(cc):
    modules.load("tcp_tlt")
    later = "/etc/sysctl.d/99-tuning.conf"
    os.makedirs(os.path.dirname(SYSCTL), exist_ok=True)
    try:
        for value, after, why in (("tlt_dctcp   # all of them", "", "a comment on the same line"),
                                  ("tlt", "", "there is no tlt"),
                                  ("tlt_dctcp", cc, f"{later} sets {cc} after it")):
            for path, words in ((SYSCTL, value), (later, after)):
                with open(path, "w", encoding="ascii") as f:
                    f.write(f"net.ipv4.tcp_congestion_control = {words}\n" * bool(words))
            subprocess.run(["sysctl", "-qw", f"net.ipv4.tcp_congestion_control={cc}"], check=True)
            subprocess.run(["sysctl", "-q", "--system"], capture_output=True, check=False)
            forget()
            said = look()
            true(SYSCTL in sentence(said, "not-in-effect"),
                 f"the sentence names the file: {ids(said)}")
            true(why in sentence(said, "not-in-effect"), f"{why!r}: {sentence(said, 'not-in-effect')}")
    finally:
        os.unlink(SYSCTL)
        os.unlink(later)


@case("(h) a port's map has red and green swapped: a sentence, and its remedy works", Cable,
      options="color rate 1gbit limit 400k red 60k map 8 green map 10 red")
def swapped(cable):
    pairs = [cable.connect() for _ in range(4)]
    said = busy(cable, pairs[0])
    equal(ids(said), ["swapped-map"], "mistakes")
    cable.tc(cable.a, heal(said, "swapped-map"))
    equal(ids(busy(cable, pairs[0])), [], "mistakes after the remedy")


@case("(g) dctcp, and a port that does not mark below red: a sentence, and its remedy works", Cable,
      cc="tlt_dctcp", options=("color rate 1gbit limit 400k red 60k",
                               "color rate 1gbit limit 400k red 60k ecn 200k"))
def no_marks(cable):
    for ns in (cable.a, cable.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    pairs = [cable.connect() for _ in range(4)]
    look()
    cable.send(pairs)
    said = look()
    equal(ids(said), ["no-marks"], "mistakes")
    cable.tc(cable.a, heal(said, "no-marks").replace("BYTES", "30k"))
    look()
    cable.send(pairs)
    equal(ids(look()), [], "mistakes after the remedy")


@case("(f) packets of others with CS1 are dropped as red: a sentence", Cable, cc="cubic",
      options="color rate 1gbit limit 1800k red 30k")
def others_red(cable):
    modules.load("tcp_tlt")
    pairs = [cable.connect() for _ in range(8)]
    for tos, expected in ((0, []), (0x20, ["others-red"])):
        for client, _ in pairs:
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        look()
        cable.send(pairs, 500_000)
        equal([name for name in ids(look()) if name != "not-used"], expected,
              f"mistakes with IP_TOS {tos}")


@case("without a plugin for tc, and if tc fails, status reports \"blind\", with an exit status of its"
      " own", Cable, options="color rate 1gbit limit 1m red 270k")
def no_plugin(cable):
    cable.send([cable.connect()], 50_000)
    os.makedirs("/run/failing")
    with open("/run/failing/tc", "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexit 127\n")
    os.chmod("/run/failing/tc", 0o755)
    path, os.environ["PATH"] = os.environ["PATH"], f"/run/failing:{os.environ['PATH']}"
    try:
        equal(ids(look()), ["blind"], "mistakes with a tc that fails")
    finally:
        os.environ["PATH"] = path
    alone = "/run/alone"
    shutil.copytree(TOP / "tools/greenlane", f"{alone}/tools/greenlane", dirs_exist_ok=True)
    os.makedirs(f"{alone}/scripts", exist_ok=True)
    shutil.copy(TOP / "scripts/greenlane", f"{alone}/scripts")
    done = subprocess.run([sys.executable, f"{alone}/scripts/greenlane", "status", "--json"],
                          capture_output=True, text=True, check=False, cwd="/",
                          env={**os.environ, "TC_LIB_DIR": "/nowhere"})
    equal((ids(json.loads(done.stdout)), done.returncode), (["blind"], 3), "mistakes, exit status")


def heal(said, name):
    """The words of tc in the advice of a problem."""
    advice = next(p["advice"] for p in said["problems"] if p["id"] == name)
    return advice.partition("tc ")[2].partition(", below")[0].rstrip(".")


@case("TLT in a tunnel: the port has only yellow packets until the tunnel copies the DSCP", Cable,
      options="color rate 10gbit limit 1m red 270k")
def tunnel(cable):
    equal(heal_tunnel(cable, "vxlan", "dstport 4789 dev {dev}"),
          ("ip link set tun1 type vxlan tos inherit", ["only-yellow"], []),
          "remedy, mistakes before and after")


@case("hosts use codepoints that the port's map lacks: a sentence, and its remedy works", Cable,
      options="color rate 10gbit limit 1m red 270k")
def moved(cable):
    for ns in (cable.a, cable.b):
        for name, dscp in (("droppable", 2), ("protected", 46)):
            ns.sysctl(f"net.ipv4.greenlane_dscp_{name}", dscp)
    pair = cable.connect()
    said = busy(cable, pair)
    equal(ids(said), ["only-yellow"], "mistakes")
    true("sends with other codepoints (droppable 2, protected 46)" in sentence(said, "only-yellow"),
         sentence(said, "only-yellow"))
    advice, = [p["advice"] for p in said["problems"]]
    command = advice.partition(",")[0]
    equal(command, "tc qdisc change dev va root color map 2 red map 46 green", "the remedy")
    cable.tc(cable.a, command.removeprefix("tc "))
    equal(ids(busy(cable, pair)), [], "mistakes after the remedy")


@case("TLT that does not pass a port causes no sentence about the port's colours", Cable,
      options="color rate 10gbit limit 1m red 270k")
def elsewhere(cable):
    for ns in (cable.a, cable.b):
        ns.ip("link set lo up")
    with cable.a:
        listener = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(listener.getsockname())
        server = listener.accept()[0]
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.close()
    look()
    client.sendall(bytes(100_000))
    server.recv(1 << 20)
    for _ in range(50):
        other.sendto(b"yellow", ("10.1.0.2", 9))
    time.sleep(0.1)
    said = look()
    port, = said["ports"].values()
    true(port["change"]["yellow_packets"] >= 50, "yellow packets: at least 50")
    equal("only-yellow" in ids(said), False, f"mistakes: {ids(said)}")
    abort(client, server)
    other.close()


@case("color on a bridge instead of its ports: a sentence, and its remedy works")
def on_bridge():
    modules.load("sch_color", "tcp_tlt")
    forget()
    ns = Namespace("switch")
    try:
        ns.ip("link add br0 type bridge", "link set br0 up",
              *(line for port in ("p1", "p2") for line in (
                  f"link add {port} type dummy", f"link set {port} master br0 up")))
        ns.tc("qdisc add dev br0 root color rate 10gbit limit 1m red 270k")
        said = look()
        true("on-bridge" in ids(said), f"mistakes: {ids(said)}")
        advice, = [p["advice"] for p in said["problems"] if p["id"] == "on-bridge"]
        equal(advice, "tc qdisc del dev br0 root, and the same color at each port of the bridge: p1,"
              " p2.", "the remedy")
        ns.tc("qdisc del dev br0 root", *(f"qdisc add dev {port} root color rate 10gbit limit 1m"
                                         " red 270k" for port in ("p1", "p2")))
        true("on-bridge" not in ids(look()), "no mistake after the remedy")
    finally:
        ns.remove()


@case("a misspelt name in sysctl.d: a sentence with the probable name, and its remedy works")
def misspelt():
    modules.load("tcp_tlt")
    path = "/etc/sysctl.d/91-greenlane-test.conf"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        for wrong, right in (("net.ipv4.greenlane_protekt = 1", "greenlane_protect"),
                             ("net/ipv4/greenlane_dscp_protectd = 46", "greenlane_dscp_protected"),
                             ("net.ipv4.grenlane_active = 1", "greenlane_active"),
                             ("net.ipv4.tcp_congestion_control = tlt_dctpc", "tlt_dctcp")):
            forget()
            with open(path, "w", encoding="ascii") as file:
                file.write(f"# a comment\n-net.ipv4.conf.*.rp_filter = 1\n{wrong}\n")
            said = look()
            true("misspelt" in ids(said), f"{wrong}: mistakes: {ids(said)}")
            true(f"{path} There is no" in sentence(said, "misspelt")
                 and f"{right} there is" in sentence(said, "misspelt"), sentence(said, "misspelt"))
            with open(path, "w", encoding="ascii") as file:
                file.write(f"net.ipv4.{right} = 1\n".replace("tlt_dctcp = 1", "tcp_ecn = 1"))
            true("misspelt" not in ids(look()), f"{wrong}: no mistake after the remedy")
    finally:
        os.unlink(path)


if __name__ == "__main__":
    main()
