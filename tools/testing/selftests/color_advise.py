#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tc accepts the ports of scripts/experiment advise, and computes the advised Xoff.

	p ---- q        a veth pair; advise assumes the delay and packets of a network card
"""
import subprocess

from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.net.port import shown
from lab.tap import case, equal, main, true


def port(rate, rtt, buffer, flows):
    """The options of a port."""
    return "--rate", rate, "--rtt", rtt, "--buffer", buffer, "--fan-in", flows


# The usual port, and ports at the limits of what advise accepts.
PORTS = (port("40gbit", "20us", "1800k", "320"),
         port("8bit", "1ns", "3014", "1"),
         (*port("100000gbit", "100us", "2147483647", "1"), "--delay", "10ms"))


def advised(options, *more):
    """The output of advise."""
    return subprocess.check_output([TOP / "scripts/experiment", "advise", *options, *more],
                                   text=True).splitlines()


def try_port(ns, options):
    """Set each of the commands; returns their number."""
    numbers = {row[:15].strip(): int(row[15:].split()[0]) for row in advised(options)[:6]}
    commands = advised(options, "--only", "tc")
    for command in commands:
        true(command.startswith("tc qdisc add dev DEV root color "), command)
        # A veth passes longer packets, and in bursts.
        words = command.removeprefix("tc ").replace("DEV", "p")
        ns.tc(words + " unit 1514 slack 0us" * ("pause" in words))
        qdisc, = (one for one in shown("p", ns) if one["kind"] == "color")
        given = qdisc["options"]
        equal((given["limit"], given["ecn"]["min"], given["ecn"]["max"]),
              (numbers["limit"], numbers["ecn"], numbers["ecn"]), f"{command}: limit, ecn")
        if "pause" in words:
            equal(qdisc["pause"]["xoff"], numbers["xoff"], f"{command}: Xoff")
        else:
            equal(given["red"], numbers["red"], f"{command}: red")
        ns.tc("qdisc del dev p root")
    return len(commands)


@case("the commands for a port, with a red threshold and with pause")
def accepted():
    modules.load("sch_color")
    ns = Namespace("ns")
    ns.ip("link add p type veth peer name q", "link set p up", "link set q up")
    equal([try_port(ns, options) for options in PORTS], [2, 1, 1], "commands of each port")
    ns.remove()


if __name__ == "__main__":
    main()
