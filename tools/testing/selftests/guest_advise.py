#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment advise: its numbers, its configurations, the pages that cite it, --verify."""
import json
import os
import re
import shlex

from experiments.ask import asked, refused
from lab import TOP
from lab.tap import case, equal, main, true, within

PAGE = (TOP / "Documentation/operations.rst").read_text(encoding="utf-8")
# A command of advise on a page, in a literal block; a row that ends with \ continues.
COMMAND = re.compile(r"^\tscripts/experiment (advise (?:.*\\\n)*.*)$", re.M)


def advise(*options):
    """The output of advise."""
    done = asked("advise", *options)
    equal((done.returncode, done.stderr), (0, ""), f"{options}: exit status, stderr")
    return done.stdout


def numbers(*options):
    """{name: number} of the table."""
    rows = advise(*options).split("\n\n", maxsplit=1)[0].splitlines()
    return {row[:15].strip(): int(row[15:].split()[0]) for row in rows}


def port(rate, rtt, buffer, flows):
    """The options of a port."""
    return "--rate", rate, "--rtt", rtt, "--buffer", buffer, "--fan-in", str(flows)


# {port: (minimum of red, red, ecn)}: the table of operations.rst (Tuning a link), with room for
# 1000 flows beyond the minimum; then more room, less room, and a minimum of a few packets.
BY_HAND = {
    port("25gbit", "80us", "1750000", 1000): (250_000, 250_000, 185_185),
    port("100gbit", "80us", "2500000", 1000): (1_000_000, 1_000_000, 740_741),
    port("40gbit", "20us", "1800000", 320): (100_000, 1_320_000, 74_074),
    port("40gbit", "20us", "1000000", 1000): (100_000, 100_000, 74_074),
    port("10gbit", "20us", "1575000", 1000): (75_000, 75_000, 55_556),
}


@case("red, its minimum and ecn by the rules of operations.rst")
def rules():
    for options, wanted in BY_HAND.items():
        seen = numbers(*options)
        equal((seen["minimum of red"], seen["red"], seen["ecn"]), wanted, str(options))


@case("headroom and Xoff by the rule of color.rst; no pause without room for them")
def pause():
    options = port("10gbit", "20us", "200000", 10)
    headroom = 2 * 2500 + 3 * 1514 + 60
    seen = numbers(*options, "--delay", "2us", "--links", "2")
    equal((seen["headroom"], seen["xoff"]), (headroom, 100_000 - headroom), "headroom, Xoff")
    for links, xoff in ((2, 100_000 - headroom), (4, 50_000 - headroom)):
        words = advise(*options, "--delay", "2us", "--links", str(links), "--only", "tc").splitlines()[1]
        equal(re.findall(r" ecn (\d+) pause", words), [str(min(55_556, round(xoff * 200 / 270)))],
              "ecn of a port that pauses")
    text = advise(*options, "--delay", "2us", "--links", "20")
    true("no room for Xoff" in text and "pause all" not in text and "pfc" not in text, text)


@case("tlt_crowd for ports whose queue makes echoes late, and for no other")
def crowd():
    seen = numbers(*port("1gbit", "40us", "1800000", 40))
    equal(seen["tlt_crowd"], 5760, "0.4 of 14.4 ms, us")
    equal(numbers(*port("100mbit", "40us", "1800000", 40))["tlt_crowd"], 20_000, "the limit, us")
    true("tlt_crowd" not in numbers(*port("40gbit", "20us", "1800000", 320)), "40 Gbit/s")


@case("SONiC's fragment is JSON with the thresholds, and one queue for all of TLT's codepoints")
def sonic():
    tables = json.loads(advise(*port("40gbit", "20us", "1800k", 1000), "--red", "270k",
                               "--ecn", "200k", "--only", "sonic"))
    profile = tables["WRED_PROFILE"]["TLT"]
    equal([profile[f"{colour}_{end}_threshold"] for colour in ("red", "yellow", "green")
           for end in ("min", "max")], ["276480"] * 2 + ["204800"] * 4, "thresholds")
    equal(tables["DSCP_TO_TC_MAP"]["TLT"], dict.fromkeys(("8", "10", "49"), "3"), "codepoints")
    equal(tables["BUFFER_PROFILE"]["TLT"]["static_th"], "1843200", "limit")


@case("the commands on the page run, and the page has their output")
def page():
    commands = [shlex.split(found.replace("\\\n", " ")) for found in COMMAND.findall(PAGE)]
    true(len(commands) >= 3, f"{commands}")
    for _, *options in commands:
        rows = advise(*options).splitlines()
        if options[-1] == "nvue":
            true("".join(f"\t{row}\n" for row in rows) in PAGE, f"{options}: {rows}")
    row, = advise(*commands[0][1:], "--only", "sonic-pause").splitlines()
    true(f"\t{row}\n" in PAGE, row)
    row = advise(*commands[0][1:], "--red", "270k", "--ecn", "200k", "--only", "tc").splitlines()[0]
    exact = re.search(r"^\t(tc .* limit) 1800k red 270k ecn 200k$", PAGE, re.M)[1]
    equal(row, f"{exact} 1843200 red 276480 ecn 204800", "the appendix's port")


@case("invalid options are refused")
def invalid():
    options = port("40gbit", "20us", "1800k", 10)
    for wrong in (options[2:], options[:4], ("--rtt", "400us", *options[:2], *options[4:]),
                  (*options, "--red", "2m"), (*options, "--red", "100k", "--ecn", "200k"),
                  (*options, "--fan-in", "0"), (*options, "--only", "ios"),
                  (*options, "--red", "1513"), (*options, "--ecn", "1799k"), (*options, "--ecn", "0"), (*options, "--delay", "0us"),
                  (*options, "--delay", "1s"), (*options, "--buffer", "4g"),
                  (*options, "--rate", "7bit"), (*options, "--rate", "100001gbit"),
                  # Three products, and no room above them.
                  port("10gbit", "20us", "75000", 10), (*options, "--red", "1800k")):
        refused("advise", *wrong)
    done = asked("advise", "--lab", "/nonexistent", *options[4:])
    equal((done.returncode, done.stderr),
          (2, "experiment: /nonexistent: No such file or directory\n"), "no file of a lab")


@case("--verify: the advised port has no RTO, and a tail near the ideal")
def verify():
    done = asked("advise", *port("40gbit", "20us", "1800k", 320), "--verify",
                 "--kernel", os.environ.get("GL_KERNEL", "7.3"))
    equal(done.returncode, 0, f"exit status: {done.stderr}")
    text = done.stdout
    seen = re.search(r"tlt_dctcp: p99.9 is ([\d.]+) times the ideal, (\d+) RTOs, (\d+) imp", text)
    true(seen, text)
    within(float(seen[1]), 1, 1.05, "p99.9 / ideal")
    equal((seen[2], seen[3]), ("0", "0"), "RTOs, important packets dropped")


if __name__ == "__main__":
    main()
