#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The commands that greenlane status and leave print are executed as printed.

	ns left -- color, veth -- ns right      lab.status.Cable
	ns ports: qdiscs of both kinds on dummies, as root and below a class; a card with default qdiscs

ops_mistakes, ops_credits, ops_dart and link_speed execute the other cures of status.
"""
import os
import re
import shlex
import socket
import subprocess

from lab.codepoints import IMPORTANT
from lab.net import libc, modules
from lab.net.namespace import CC, Namespace
from lab.status import Cable, exchange, forget, ids, look, tool, watched
from lab.tap import case, equal, main, true
from lab.wire.sockopt import abort
from lab.wire.wire import connected

QUEUES = 4              # of the card, gl_nic.c
SYSCTL = "/etc/sysctl.d/90-greenlane.conf"
LATER = "/etc/sysctl.d/99-tuning.conf"


def shell(command, ns=None):
    """Execute a printed command in a namespace; it must succeed."""
    words = shlex.split(command)
    done = subprocess.run([*(["ip", "netns", "exec", ns] * bool(ns)), *words], text=True,
                          capture_output=True, check=False)
    equal(done.returncode, 0, f"{command}: {done.stderr}")


def advice(said, name):
    """The advice of the problems of this name, which is the same at both ends."""
    found = {p["advice"] for p in said["problems"] if p["id"] == name}
    equal(len(found), 1, f"advice on {name} among {ids(said)}")
    return found.pop()


def write(path, text):
    """Write a file of sysctl.d."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def printed(out):
    """[(a user of greenlane, how to end it)] in the output of greenlane leave."""
    lines = out.splitlines()
    return [(line, after.strip()) for line, after in zip(lines, lines[1:])
            if after.startswith("  ") and not line.startswith(" ")]


@case("after all commands that leave prints are executed, greenlane is not in use")
def leave():
    modules.load("tcp_tlt", "sch_color", "sch_iofd")
    before = subprocess.run(["sysctl", "-n", "net.core.default_qdisc"], text=True, check=True,
                            capture_output=True).stdout.strip()
    ns = Namespace("ports")
    try:
        ns.ip(*(line for dev in ("one", "two", "three", "four") for line in (
            f"link add {dev} type dummy", f"link set {dev} up")))
        ns.ip("route add 10.9.0.0/16 dev one congctl tlt_cubic")
        ns.tc("qdisc add dev one root color limit 1m red 100k",
              "qdisc add dev two root handle 7: prio", "qdisc add dev two parent 7:2 color limit 1m",
              "qdisc add dev three root iofd threshold 100k deflect dev one via 10.0.0.1",
              "qdisc add dev four root handle 7: prio",
              "qdisc add dev four parent 7:1 iofd threshold 100k deflect dev one via 10.0.0.1")
        ns.sysctl(CC, "tlt_cubic")
        write(SYSCTL, "net.ipv4.tcp_congestion_control = tlt_dctcp\n")
        subprocess.run(["sysctl", "-qw", "net.core.default_qdisc=color"], check=True)
        modules.load_helper("gl_nic")
        subprocess.run(["ip", "link", "set", "nic0", "netns", ns.name], check=True)
        ns.ip("link set nic0 up")
        status, out, err = tool("leave")
        equal((status, err), (1, ""), f"status, stderr: {out}")
        equal(out.count("nic0 has the qdisc color"), QUEUES, f"queues of the card in {out}")
        executed = 0
        for what, how in printed(out):
            if how.startswith(("tc ", "sysctl ")):
                command, _, where = how.partition(", in ")
                shell(command, what.partition(":")[0] if where else None)
                executed += 1
            elif how == "ip route change ... without it":
                ns.ip("route change 10.9.0.0/16 dev one")
            else:
                equal((how, what.partition(":")[0]), ("remove that line", SYSCTL),
                      "remedy and file")
                os.unlink(SYSCTL)
        equal(executed, 6 + QUEUES, f"commands executed of {out}")
        status, out, _ = tool("leave")
        equal(status, 0, f"status: {out}")
        true("greenlane is not in use" in out, out)
    finally:
        subprocess.run(["sysctl", "-qw", f"net.core.default_qdisc={before}"], check=True)
        ns.remove()
        modules.unload("gl_nic")


@case("a port below a class: status prints its parent, and tc accepts the command", Cable,
      options="htb default 1")
def below_a_class(cable):
    modules.load("sch_color")
    cable.a.tc("class add dev va parent 1: classid 1:1 htb rate 1gbit",
               "qdisc add dev va parent 1:1 color limit 400k red 60k map 8 green map 10 red")
    pair = cable.connect()
    look()
    cable.send([pair])
    said = look()
    true("swapped-map" in ids(said), f"mistakes: {ids(said)}")
    command = advice(said, "swapped-map").rstrip(".")
    true(" parent 1:1 color " in command, command)
    shell(command, cable.a.name)
    true("swapped-map" not in ids(look()), "no mistake after the command")


@case("a queue of the host drops: the remedy is color in its place", Cable,
      options="tbf rate 1gbit burst 3k limit 30k")
def blind_queue(cable):
    pairs = [cable.connect() for _ in range(4)]
    look()
    cable.send(pairs)
    true("use color there" in advice(look(), "blind-queue"), "the advice")
    cable.tc(cable.a, "qdisc del dev va root")
    cable.tc(cable.a, "qdisc add dev va root handle 1: color rate 1gbit limit 1m red 100k")
    look()
    cable.send(pairs)
    equal(ids(look()), [], "mistakes with color")


@case("a queue without colours drops important packets: the remedy is a threshold and room above "
      "it", Cable,
      options="color rate 1gbit limit 30k red none")
def green_drops(cable):
    pairs = [cable.connect() for _ in range(12)]
    look()
    cable.send(pairs, 200_000)
    true(advice(look(), "green-drops").startswith("Raise limit, lower red"), "the advice")
    cable.tc(cable.a, "qdisc change dev va root color limit 1m red 30k")
    # New connections: TCP keeps its estimates after timeouts for each connection.
    abort(*(end for pair in pairs for end in pair))
    pairs = [cable.connect() for _ in range(12)]
    look()
    cable.send(pairs, 200_000)
    equal(ids(look()), [], "mistakes with a threshold and room")


@case("a peer without TLT: the remedy is to select the same at the peer", connected, of=watched,
      cc="tlt_reno", cc_b="cubic")
def peer_without(wire, client, server):
    exchange(wire, client, server)
    true("select the same" in advice(look(), "peer-without"), "the advice")
    wire.b.sysctl(CC, "tlt_reno")
    client.close()
    server.close()
    wire.run(1)
    look()
    wire.cc_b = "tlt_reno"
    exchange(wire, *wire.connect(1001))
    equal(ids(look()), [], "mistakes")


@case("connections without SACK: the remedy is the sysctl that status prints",
      watched, cc="tlt_reno")
def unsupported(wire):
    wire.b.sysctl("net.ipv4.tcp_sack", 0)
    client, server = wire.connect()
    exchange(wire, client, server)
    name = re.search(r"sysctl (net\.ipv4\.tcp_sack), at both ends", advice(look(), "unsupported"))
    true(name, "the advice has a sysctl")
    for ns in (wire.a, wire.b):
        ns.sysctl(name[1], 1)
    client.close()
    server.close()
    wire.run(1)
    look()
    exchange(wire, *wire.connect(1001))
    equal(ids(look()), [], "mistakes")


@case("an application uses TLT's DSCP: the remedy is another DSCP by the sysctl that status prints",
      watched, cc="tlt_reno")
def stripped(wire):
    def send():
        with wire.a, libc.without_net_admin():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, IMPORTANT.dscp << 2)
                udp.sendto(b"x", ("10.0.0.2", 9))

    wire.a.sysctl("net.ipv4.greenlane_protect", 1)
    exchange(wire, *wire.connect())
    send()
    true("sysctl net.ipv4.greenlane_dscp_*" in advice(look(), "stripped"), "the advice")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_dscp_protected", 46)
    send()
    exchange(wire, *wire.connect(1001))
    equal(ids(look()), [], "mistakes")


@case("modules are loaded but not used: the remedy is the sysctl that status prints")
def not_used():
    modules.load("tcp_tlt")
    forget()
    before = subprocess.run(["sysctl", "-n", CC], text=True, check=True,
                            capture_output=True).stdout.strip()
    try:
        shell(advice(look(), "not-used").partition(" (or")[0])
        equal(ids(look()), [], "mistakes")
    finally:
        shell(f"sysctl -qw {CC}={before}")


@case("sysctl.d is not in effect: each remedy that status prints")
def not_in_effect():
    modules.load("tcp_tlt")
    before = subprocess.run(["sysctl", "-n", CC], text=True, check=True,
                            capture_output=True).stdout.strip()

    def system():
        subprocess.run(["sysctl", "-q", "--system"], capture_output=True, check=False)

    def heal(cure):
        if match := re.match(r"Leave only (\S+) there, and sysctl --system\.$", cure):
            write(SYSCTL, f"{CC} = {match[1]}\n")
        elif cure.startswith("Remove the setting in one of them"):
            os.unlink(LATER)
        elif cure.startswith("Correct it: tlt_dctcp"):
            write(SYSCTL, f"{CC} = tlt_dctcp\n")
        else:
            equal(cure, "sysctl --system sets it again.", "the advice")
        system()

    try:
        for value, after in (("tlt_dctcp   # all of them", ""), ("tlt", ""), ("tlt_dctcp", "reno"),
                             ("tlt_dctcp", None)):
            write(SYSCTL, f"{CC} = {value}\n")
            if after:
                write(LATER, f"{CC} = {after}\n")
            system()
            shell(f"sysctl -qw {CC}=reno")
            forget()
            heal(advice(look(), "not-in-effect"))
            equal(ids(look()), [], f"mistakes after {value!r}, {after!r}")
    finally:
        for path in (SYSCTL, LATER):
            if os.path.exists(path):
                os.unlink(path)
        shell(f"sysctl -qw {CC}={before}")


if __name__ == "__main__":
    main()
