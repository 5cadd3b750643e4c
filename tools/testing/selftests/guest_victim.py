#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment victim: the cost of PFC for a flow outside of the incast.

	this script (host) --> scripts/experiment --> guests, in virtual time
"""
from experiments.ask import experiment, refused
from experiments.kinds.victim import schedule
from lab import tap
from lab.tap import case, equal, true, within

TWO = "--cc", "dctcp,tlt_dctcp", "--rounds", "2"


def rows(*options):
    """The rows of dctcp and of tlt_dctcp."""
    return experiment("victim", *TWO, *options)["summary"]


@case("the schedule, computed by hand")
def planned():
    plan = schedule.Schedule({"senders": 3, "flows": 6, "bytes": 100, "rounds": 2, "lead": 50,
                              "gap": 1000})
    equal([(m.at, m.bytes, plan.connections[m.connection].src, plan.connections[m.connection].dst)
           for m in plan.messages],
          [(0, 0, 3, 5)] + [(at, 100, src, 4) for at in (50, 1050) for src in (0, 1, 2, 0, 1, 2)],
          "messages: the victim goes to r1, the incast to r0")
    equal(plan.end, 2050, "end")


@case("the trunk is paused for the incast, and with TLT for half as long; the victim gains")
def paused():
    base, tlt = rows()
    equal([(row["unfinished"], row["drops_green"]) for row in (base, tlt)], [(0, 0)] * 2,
          "unfinished, packets dropped in spite of PFC")
    true(base["paused"] > 1_000_000, f"dctcp: the trunk was paused for {base['paused']} ns")
    # The paper: 6.24 and 3.26 ms.
    within(tlt["paused"] / base["paused"], 0, 0.55, "time paused, tlt_dctcp / dctcp")
    true(tlt["victim_gbit"] > base["victim_gbit"],
         f"victim: {base['victim_gbit']}, {tlt['victim_gbit']} Gbit/s")
    equal((tlt["timeouts"], tlt["probes"]), (0, 0), "tlt_dctcp: RTOs, probes")


@case("without PFC, or beside a small incast, the victim has its link's rate")
def free():
    for options in (("--pause", "none"), ("--flows", "6")):
        for row in rows(*options):
            # The payload is 1448 of 1514 bytes, and drops at the trunk cost some of the rate.
            within(row["victim_gbit"], 9.2, 9.57, f"{options}: {row['cc']}")
    equal([row.get("paused") for row in rows("--pause", "none")], [None, None], "nothing pauses")


@case("an invalid command line: one line, and status 2")
def wrong():
    for words in (["--flows", "7"], ["--gap", "1ms"], ["--port", "pfifo"], ["--fresh"],
                  ["--pause", "some"], ["--trunk", "1gbit"],
                  ["--bytes", "0"], ["--red", "0"], ["--red", "7m"], ["--limit", "100k"],
                  ["--flows", "600000", "--gap", "100s"]):
        refused("victim", *words)


if __name__ == "__main__":
    tap.main()
