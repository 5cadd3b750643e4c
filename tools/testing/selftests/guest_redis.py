#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TLT's effect on unmodified applications of the distribution.

	this script (host) --> scripts/experiment --> guests, in virtual time

	client ---> 8 NGINX ---> Redis		wrk ---> NGINX ---> 8 memcached
"""
import os
import sys

from experiments.ask import experiment, refused, rows
from lab import tap
from lab.tap import case, equal, true, within

# Requests.  The port holds the first windows of FEW.  Of MANY it drops at least 1400 packets:
# Redis and the kernel schedule differently from run to run, and one run of six with 300 dropped none.
FEW, MANY = 20, 500
ROUNDS = 6      # with three, possibly no connection of dctcp waits for two successive timers
SETS = "--requests", f"{FEW},{MANY}", "--rounds", str(ROUNDS)


def timers(row):
    """Counters that must be 0 with TLT."""
    return row["timeouts"], row["probes"], row["drops_green"]


def sets():
    """The rows of the SETs, by (cc, requests), and the complete report."""
    whole = experiment("redis", "--cc", "dctcp,tlt_dctcp", *SETS)
    return {(row["cc"], row["flows"]): row for row in whole["summary"]}, whole


@case("Redis: each request is answered, and Redis has its value")
def stored():
    seen, whole = sets()
    equal({key: (row["unfinished"], row["samples"]) for key, row in seen.items()},
          {(cc, n): (0, ROUNDS * n) for cc in ("dctcp", "tlt_dctcp") for n in (FEW, MANY)},
          "(failed or not stored, answered)")
    # All stored values crossed the switch, so the port counted their bytes.
    for run in whole["runs"]:
        least = ROUNDS * run["flows"] * whole["config"]["bytes"]
        true(run["port"][0]["bytes"] >= least, f"{run['cc']}: bytes at the port")
        true(min(map(min, run["fct_ns"])) >= 8 * whole["config"]["delay"],
             "minimum response time: the propagation delays")


@case("Redis: 500 SETs make dctcp wait for timers, and tlt_dctcp for none")
def no_timers():
    seen, _ = sets()
    base, tlt = seen["dctcp", MANY], seen["tlt_dctcp", MANY]
    true(base["timeouts"] + base["probes"] > 0 and base["drops"] > 0,
         f"dctcp: RTOs, probes, drops: {base}")
    equal([timers(seen["tlt_dctcp", n]) for n in (FEW, MANY)], [(0, 0, 0)] * 2,
          "tlt_dctcp: (RTOs, probes, important drops)")
    true(tlt["drops_red"] > 0, "tlt_dctcp: unimportant packets were dropped")
    # The base's slowest request waits for an RTO of 4 ms, or only for a loss probe after 2 ms and
    # two round trips.  The speed-up of TLT depends on that, so check the minimum.
    true(base["max"] > tlt["max"] + 2_000_000, f"slowest, dctcp, tlt_dctcp: {base}, {tlt}")
    within(tlt["ratio"], 0.9, 1.4, "tlt_dctcp: 99.9th percentile / ideal")


@case("Redis: a value of 8 MB in the background arrives too")
def background():
    seen = rows("redis", "--cc", "dctcp,tlt_dctcp", "--requests", "152", "--background", "8m",
                "--rounds", "2")
    equal([row["unfinished"] for row in seen.values()], [0, 0], "unfinished")
    equal(timers(seen["tlt_dctcp"]), (0, 0, 0), "tlt_dctcp: (RTOs, probes, important drops)")
    for row in seen.values():
        within(row["background_gbit"], 5, 40, f"{row['cc']}: Gbit/s")


@case("memcached: wrk's pages are complete; dctcp waits for timers, tlt_dctcp does not")
def memcached():
    # Users with a long pause, so that their requests coincide: an incast of 448.  One of 320 fills
    # the port to 97 %, and in some runs dctcp has no loss.
    users = 56
    seen = rows("memcached", "--cc", "dctcp,tlt_dctcp", "--users", str(users), "--think", "100ms")
    for row in seen.values():
        equal(row["unfinished"], 0, f"{row['cc']}: failed")
        within(row["samples"], users * 8, users * 10, f"{row['cc']}: pages, in a second")
    base, tlt = seen["dctcp"], seen["tlt_dctcp"]
    true(base["timeouts"] + base["probes"] > 0, f"dctcp: RTOs, probes: {base}")
    equal(timers(tlt), (0, 0, 0), "tlt_dctcp: (RTOs, probes, important drops)")
    within(tlt["p99"] / base["p99"], 0, 0.8, "p99, tlt_dctcp / dctcp")


@case("an invalid command line: one line, and status 2")
def command_line():
    for options in (("redis", "--requests", "0"), ("redis", "--requests", "9000"),
                    ("redis", "--bytes", "0"), ("redis", "--background", "8x"),
                    ("redis", "--background", "1m"), ("redis", "--fresh"),
                    ("redis", "--servers", "201"), ("memcached", "--rounds", "2"),
                    ("memcached", "--duration", "1500ms"), ("memcached", "--think", "0ms"),
                    ("redis", "--cc", "nagle"), ("memcached", "--bytes", "1m"), ("memcached", "--users", "x")):
        refused(*options)


@case("a small run, also on the debug kernel: no report, no timer")
def small():
    debug = ["--debug"] * bool(os.environ.get("GL_DEBUG"))
    row = rows("redis", "--cc", "tlt_dctcp", "--requests", "40", "--rounds", "1",
               *debug)["tlt_dctcp"]
    equal((row["unfinished"], row["samples"], timers(row)), (0, 40, (0, 0, 0)),
          "not stored, answered, (RTOs, probes, important drops)")


if __name__ == "__main__":
    if os.environ.get("GL_DEBUG"):
        sys.argv[1:] = ["small"]        # the rest would take too long
    tap.main()
