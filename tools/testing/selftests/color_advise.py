#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tc accepts the ports of scripts/experiment advise, and a port's own Xoff is the advised one.

	p ---- q        a veth pair; advise's delay and packets are those of a network card
"""
import subprocess

from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.net.port import shown
from lab.tap import case, equal, main, true

PORT = ("--rate", "40gbit", "--rtt", "20us", "--buffer", "1800k", "--fan-in", "320")


def advised(*options):
    """The output of advise."""
    return subprocess.check_output([TOP / "scripts/experiment", "advise", *PORT, *options],
                                   text=True).splitlines()


@case("the commands for a port, with a red threshold and with pause")
def accepted():
    modules.load("sch_color")
    numbers = {row[:15].strip(): int(row[15:].split()[0]) for row in advised()[:6]}
    commands = advised("--only", "tc")
    equal(len(commands), 2, "commands")
    ns = Namespace("ns")
    ns.ip("link add p type veth peer name q", "link set p up", "link set q up")
    for command in commands:
        true(command.startswith("tc qdisc add dev DEV root color "), command)
        # A veth passes longer packets, and in bursts.
        words = command.removeprefix("tc ").replace("DEV", "p")
        ns.tc(words + " unit 1514 slack 0us" * ("pause" in words))
        port, = (qdisc for qdisc in shown("p", ns) if qdisc["kind"] == "color")
        options = port["options"]
        equal((options["limit"], options["ecn"]["min"], options["ecn"]["max"]),
              (numbers["limit"], numbers["ecn"], numbers["ecn"]), "limit, ecn")
        if "pause" in words:
            equal(port["pause"]["xoff"], numbers["xoff"], "Xoff")
        else:
            equal(options["red"], numbers["red"], "red")
        ns.tc("qdisc del dev p root")
    ns.remove()


if __name__ == "__main__":
    main()
