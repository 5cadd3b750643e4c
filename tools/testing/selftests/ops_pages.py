#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The commands of tc, ip and sysctl that the pages print are executed as printed.

Each literal block has a network namespace of its own, with the devices that the pages name.  Other
tests execute the commands of greenlane (ops_cures), make (guest_install) and scripts (guest_advise,
guest_figures), or parse them (guest_commands).
"""
import contextlib
import re
import shlex
import subprocess

from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.tap import case, equal, main, true

PAGES = {path.name: path.read_text(encoding="utf-8")
         for path in (TOP / "README.md", *sorted((TOP / "Documentation").glob("*.rst")))}
COMMAND = re.compile(r"(?:tc (?:qdisc|class|filter)|sysctl -w|ip route change) (?!\.\.\.)")
# The ports of a switch in iofd.rst and dart.rst, and their neighbours.
VIA = {"up1": "10.2.1", "sw3": "10.1.3", "sw4": "10.1.4"}
PORTS = ("DEV", "TENANT", "up0", "sw1", *VIA)
# Routes and queueing disciplines that a block changes.
BEFORE = ("ip route add 10.0.2.0/24 via 10.0.1.1", "ip route add 10.9.0.0/24 dev DEV",
          "tc qdisc add dev DEV root color rate 10gbit limit 1m")


def blocks(text):
    """The literal blocks of a page that have commands: a list of commands each."""
    text = re.sub(r"\\\n\s*", "", text)
    for block in re.findall(r"```\n(.*?)```|((?:^\t.*\n)+)", text, re.M | re.S):
        commands = [row.strip() for row in "".join(block).split("\n") if COMMAND.match(row.strip())]
        if commands:
            yield commands


def run(ns, command):
    """Execute a command, as in a shell; returns the text of its error."""
    done = subprocess.run(["ip", "netns", "exec", ns.name, *shlex.split(command, comments=True)],
                          capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


@contextlib.contextmanager
def host():
    """A namespace with all devices."""
    ns = Namespace("host")
    for number, dev in enumerate(PORTS):
        ns.ip(f"link add {dev} numtxqueues 4 numrxqueues 4 type veth peer name peer{number}")
        ns.ip(f"link set {dev} up", f"link set peer{number} up")
    ns.ip("addr add 10.0.1.2/24 dev DEV",
          *(f"addr add {net}.1/24 dev {dev}" for dev, net in VIA.items()))
    for command in BEFORE[:2]:
        equal(run(ns, command), "", command)
    try:
        yield ns
    finally:
        ns.remove()


@case("each block of commands succeeds", page=tuple(
    name for name, text in PAGES.items() if any(blocks(text))))
def executed(page):
    modules.load_all()
    for commands in blocks(PAGES[page]):
        with host() as ns:
            if re.match("tc qdisc change dev DEV", commands[0]):
                equal(run(ns, BEFORE[2]), "", BEFORE[2])
            for command in commands:
                # The commands of README are alternatives.
                if re.match("tc qdisc add dev DEV root", command):
                    run(ns, "tc qdisc del dev DEV root")
                equal(run(ns, command), "", f"{page}: {command}")


@case("the pages have commands, and a wrong one is found")
def found():
    count = sum(len(commands) for text in PAGES.values() for commands in blocks(text))
    true(count >= 60, f"{count} commands")
    equal(list(blocks("Text::\n\n\ttc qdisc add dev DEV root color \\\n\t\tred 1k   # a note\n\tls\n")),
          [["tc qdisc add dev DEV root color red 1k   # a note"]], "the commands of a block")
    with host() as ns:
        true(run(ns, "tc qdisc add dev DEV root color redd 1k"), "an error of tc")
        true(run(ns, "sysctl -w net.ipv4.tlt_crowds=1"), "an error of sysctl")


if __name__ == "__main__":
    main()
