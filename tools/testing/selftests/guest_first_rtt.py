#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The first RTT: Aeolus uses it, and no scheduled packet is lost.

	this script (host) --> scripts/experiment --> guests, in virtual time

	s0 ... s6 ---- switch ---- r       7 senders, 10 Gbit/s, 14 us, a message each

Credits are sent with jitter, so two runs of a credit transport differ a little.
"""
import os
import sys

from experiments.ask import experiment, refused, rows
from experiments.kinds import fairness as fair
from experiments.kinds import first_rtt as fr
from experiments.kinds.fairness.guest import shares
from experiments.kinds.first_rtt import windows
from experiments.traffic import incast
from lab import tap
from lab.measure import capture, report
from lab.tap import case, equal, true, within

BOTH = "xpass,aeolus_xpass"


def first_rtt(*options):
    """The experiment's rows, by congestion control; the last one of several."""
    return rows("first-rtt", *options)


def lossless(rows):
    """Check that the credit transports have no RTOs and lose only red packets."""
    equal({row["cc"]: seen for row in rows if row["cc"] in BOTH.split(",")
           and any(seen := (row["timeouts"], row["drops_green"], row["drops_yellow"]))},
          {}, "(RTOs, scheduled packets dropped, others) that are not 0")


@case("7 to 1, 30 kB: aeolus_xpass uses the first RTT, xpass does not; no scheduled packet lost")
def messages():
    rows = first_rtt("--bytes", "30000", "--rounds", "20")
    lossless(rows.values())
    xpass, aeolus = rows["xpass"], rows["aeolus_xpass"]
    # It can save the first round trip, 14 of 210 us (results.rst).
    within(aeolus["p50"] / xpass["p50"], 0.85, 0.94, "median, aeolus_xpass / xpass")
    within(aeolus["used"], 0.9, 1, "of the first RTT, aeolus_xpass")
    # The senders begin one after the other, and the first one's credits arrive before the last.
    within(xpass["used"], 0, 0.4, "of the first RTT, xpass")
    true(aeolus["drops_red"] > 0, "unscheduled packets were dropped")
    true(aeolus["unscheduled"] >= 20 * 7 * 10, f"a BDP of each: {aeolus['unscheduled']}")
    equal((xpass["unscheduled"], xpass["drops_red"]), (0, 0), "xpass, unscheduled")
    # A dropped packet is retransmitted once, with a credit; few other packets are sent twice.
    equal(aeolus["unscheduled"] + aeolus["scheduled"] - aeolus["drops_red"] - 20 * 7 * 21
          in range(0, 20 * 7 // 4), True, "packets sent beyond those of the messages")
    for cc in ("dctcp", "tlt_dctcp"):
        within(rows[cc]["ratio"], 1, 1.1, f"{cc}, slowest / ideal")


@case("--pause: the switch pauses the senders of a burst above its room, and loses no packet",
      mode=("all", None))
def pausing(mode):
    options = ["--pause", mode] if mode else []
    reno = first_rtt("--bytes", "120k", "--rounds", "4", "--cc", "reno", *options)["reno"]
    equal((bool(reno["pauses"]), bool(reno["paused"]), bool(reno["drops"])),
          (bool(mode), bool(mode), not mode), "pauses, time, drops")
    # 7 senders, 4 bursts
    within(reno["paused"] or 0, 0, 7 * 4 * reno["max"], "paused time, ns")
    equal([title in report.table([reno], fr.COLUMNS) for title in ("pauses", "paused ms")],
          [bool(mode)] * 2, "columns")
    if mode:
        dcqcn = rows("fairness", "--cc", "dcqcn", "--senders", "4", "--bytes", "1m", "--together",
                     *options)["dcqcn"]
        joins = rows("converge", "--cc", "dcqcn", "--rounds", "2", "--limit", "100k", *options)["dcqcn"]
        for row in (dcqcn, joins):
            true(row["pauses"] > 0 and row["paused"] > 0, "the switch pauses hosts")
            equal((row["drops"], row["timeouts"]), (0, 0), "drops, RTOs")


@case("a switch that classifies by the ECN field gives the same result")
def by_ecn():
    rows = first_rtt("--cc", "aeolus_xpass", "--bytes", "30000", "--rounds", "5",
                     "--classify", "ecn")
    lossless(rows.values())
    row = rows["aeolus_xpass"]
    within(row["used"], 0.9, 1, "of the first RTT")
    true(row["drops_red"] > 0, "unscheduled packets were dropped")
    equal(row["drops_yellow"], 0, "drops of other packets")


@case("unscheduled data behind all other data in the same memory: scheduled packets are dropped")
def behind():
    options = ("--cc", "aeolus_xpass", "--senders", "20", "--bytes", "400k", "--rate", "100gbit",
               "--rounds", "2")
    row, other = (first_rtt(*options, "--unscheduled", how)["aeolus_xpass"]
                  for how in ("drop", "behind"))
    lossless([row])
    true(other["drops_green"] > 100, f"scheduled packets dropped: {other['drops_green']}")
    within(other["peak"], 190_000, 205_000, "the memory is full, bytes")
    true(row["peak"] < 100_000, f"with a threshold: {row['peak']}")


@case("12 kB from one sender: aeolus_xpass near the ideal, xpass a round trip later")
def alone():
    rows = first_rtt("--cc", BOTH + ",dctcp", "--senders", "1", "--bytes", "12000",
                     "--rounds", "5")
    lossless(rows.values())
    # The guest's process takes about 1 us to send (results.rst), so at most 19.7 us.
    within(rows["aeolus_xpass"]["ratio"], 1, 1.24, "aeolus_xpass / ideal")
    within(rows["aeolus_xpass"]["p50"] / rows["dctcp"]["p50"], 0.9, 1.1, "aeolus_xpass / dctcp")
    true(rows["xpass"]["p50"] > rows["aeolus_xpass"]["p50"] + 14000, "xpass: a round trip longer")
    within(rows["aeolus_xpass"]["used"], 0.68, 0.78, "12 kB of the 17.5 kB of a BDP")


@case("10 kB, repeatedly on a connection: a lost burst waits for no timer of TCP")
def again():
    rows = first_rtt("--cc", BOTH, "--bytes", "10k", "--rounds", "20")
    lossless(rows.values())
    within(rows["aeolus_xpass"]["max"] / rows["xpass"]["max"], 0, 1.2,
           "slowest, aeolus_xpass / xpass")


@case("the ideal, computed by hand: simultaneous, separate and overlapping messages")
def ideal():
    config = {"delay": 1000, "rate": 10**10, "ipv6": False, "fresh": False}
    # One full packet of 1514 bytes takes 1211.2 ns; the last one's start counts.
    for starts, slowest in (([0], 0), ([0, 0, 0], 2 * 1211.2), ([0, 5000, 9000], 0),
                            ([900, 0], 311.2), ([0, 200, 5000], 1011.2)):
        equal(round(fr.ideal_ns(config, 1448, starts), 1), round(2000 + slowest, 1), f"{starts}")
    equal(fr.ideal_ns(dict(config, fresh=True), 1448, [0]), 6000, "with a handshake")


@case("--spread: a seed determines each message's start, from which its time is counted")
def apart():
    options = ("--cc", BOTH + ",dctcp", "--bytes", "30000", "--rounds", "10")
    runs = experiment("first-rtt", *options, "--spread", "30us")["runs"]
    drawn = incast.starts({"seed": 1, "spread": 30_000, "rounds": 10}, 7)
    equal(drawn == incast.starts({"seed": 2, "spread": 30_000, "rounds": 10}, 7), False,
          "another seed has the same start times")
    moments = sum(drawn, [])
    within(min(moments), 0, 2000, "the earliest")
    within(max(moments), 28_000, 30_000, "the latest")
    within(sum(moments) / 70, 13_000, 17_000, "mean")
    for run in runs:
        for planned, began in zip(drawn, run["began_ns"]):
            late = [seen - due for seen, due in zip(began, planned)]
            within(min(late), 0, 3000, f"{run['cc']}: the least late")
            # The load generator may have packets to receive first: up to 15 us on 6.1, whose clock
            # has steps of 256 ns.
            within(max(late), 0, 20_000, f"{run['cc']}: the latest")
    rows = first_rtt(*options, "--spread", "30us")
    lossless(rows.values())
    far, single = (first_rtt(*options, *more) for more in (("--spread", "5ms"), ("--senders", "1")))
    for cc, row in rows.items():
        within(row["ratio"], 1, 1.5, f"{cc}: slowest / ideal")
        # A time counted from the burst's start would include the message's delay.
        within(far[cc]["p50"] / single[cc]["p50"], 0.9, 1.1, f"{cc}: median, far apart / alone")
    true(far["aeolus_xpass"]["drops_red"] * 10 < rows["aeolus_xpass"]["drops_red"], "drops")


@case("the queue grows with the threshold, and the link is fully used from 2 kB on")
def thresholds():
    rows = experiment("first-rtt", "--cc", "aeolus_xpass", "--senders", "7",
                      "--bytes", "200k", "--red", "2k,8k,32k", "--rounds", "3")["summary"]
    lossless(rows)
    for row in rows:
        within(row["queue_peak"], 0.9 * row["red"], row["red"] + 2 * 1514 + 1000,
               f"threshold {row['red']}: longest queue")
        within(row["used"], 0.95, 1, f"threshold {row['red']}: utilisation")
    means = [row["queue"] for row in rows]
    true(means[0] * 2 < means[1] and means[1] * 2 < means[2], f"mean queues: {means}")


@case("two long flows: fair, no data lost, the data share of the link fully used")
def fairness():
    # A run of some 300 RTTs, of which convergence may take 50 (results.rst).
    for row in experiment("fairness", "--cc", BOTH, "--delay", "25us",
                          "--bytes", "20m")["summary"]:
        equal((row["timeouts"], row["drops_green"]), (0, 0), f"{row['cc']}: RTOs, drops")
        within(row["jain_all"], 0.98, 1, f"{row['cc']}: Jain's index")
        within(row["used"], 0.95, 1.01, f"{row['cc']}: of the data share")


@case("ten flows that begin at once are fair within ten round trips (20 in ExpressPass's paper)")
def ten():
    # A long round trip, because the load generator begins one flow after the other.
    for row in experiment("fairness", "--cc", BOTH, "--senders", "10", "--together", "--delay",
                          "25us")["summary"]:
        equal((row["timeouts"], row["drops_green"]), (0, 0), f"{row['cc']}: RTOs, drops")
        within(row["fair"], 0, 10, f"{row['cc']}: round trips until Jain's index is 0.98")
        within(row["jain_least"], 0.99, 1, f"{row['cc']}: minimum after ten round trips")


@case("fairness() computed by hand: from the first join, including flows that begin later")
def joined():
    full = [1000] * 60
    flows = [[0] * 25 + full[25:], full, [0] * 5 + full[5:]]
    for bulk, first, fair_at in ((1, [10, 10, 0], 18), (0, [10, 5, 0], 23)):
        row = fair.fairness(flows, {"delay": 1000, "rate": 10**10, "bulk": bulk})
        equal(row["jain"][0], report.jain(first), f"bulk {bulk}: index of the first ten RTTs")
        # 10, 10 and 7 have 0.976, with 8 it is 0.990.
        equal(row["fair"], fair_at, f"bulk {bulk}: fair after")


@case("stays() computed by hand: a fair period before an unfair one does not count")
def stays():
    fair_at, unfair = fair.FAIR, fair.FAIR - 0.001
    for series, first in (([fair_at] * 60, 0), ([unfair] + [fair_at] * 60, 1),
                          ([1] * 60 + [unfair] + [1] * 50, 61),
                          ([1] * 60 + [unfair] + [1] * 49, None), ([1] * 60 + [unfair], None)):
        equal(fair.stays(series), first, f"{len(series)} windows")


@case("ten long flows remain fair: with credits or shares early, with reno late or never")
def stay():
    rows = experiment("fairness", "--cc", "xpass,dart,reno,dctcp", "--senders", "10",
                      "--together")["summary"]
    for row in rows:
        true(row["rtts"] > 400, f"{row['cc']}: {row['rtts']} round trips")
        if row["cc"] in ("xpass", "dart"):
            # dart: 14 with --fine, 55 on 6.1
            within(row["stays"], 0, 100, f"{row['cc']}: round trips until it stays fair")
        else:
            true(row["stays"] is None or row["stays"] > 200, f"{row['cc']}: {row['stays']}")


@case("IPv6, new connections, TSO off: no scheduled packet lost")
def others():
    lossless(experiment("first-rtt", "--cc", BOTH, "--bytes", "30000", "--rounds", "3",
                        "--ipv6", "--fresh", "--no-tso")["summary"])


@case("the first RTT of hand-made packets")
def by_hand():
    # 1250 bytes take 1 us of 10 Gbit/s; the RTT is 4 us.
    config = {"delay": 1000, "gap": 100000, "rate": 10**10, "rounds": 1}

    def packet(port, arrived, sent, syn=False):
        return capture.Packet(port, syn, 1250, 1196, arrived, sent)

    # A handshake long before; then two flows at once, the third packet dropped.
    packets = [packet(1, 0, 0, True), packet(1, 500, 500),
               packet(1, 200000, 200000), packet(2, 200000, 201000),
               packet(2, 200500, None), packet(1, 203500, 203500),
               packet(2, 204500, 204500)]
    seen = windows.first_rtt(packets, config)
    equal(seen["used"], [2.5 / 4], "half of the last packet but one is after the RTT")
    equal(seen["queue"], [1250 / 4], "one packet waits 1 us of 4")
    equal(seen["peak"], [2500], "the longest queue, with the arriving packet")
    equal(shares(packets, 200000), {1: [2500, 1250], 2: [0, 2500]}, "shares")
    equal([report.jain([1, 1]), report.jain([1, 0]), report.jain([0, 0])], [1, 0.5, 0], "Jain")


@case("an invalid command line: one line, and status 2")
def command_line():
    for options in (["--bytes", "30x"], ["--bytes", "0"], ["--red", "300k"], ["--bogus"],
                    ["--spread", "16ms"], ["--spread", "5"], ["--seed", "0"],
                    ["--senders", "65"], ["--classify", "colour"], ["--senders", "0"], ["--rto-min", "50ms"],
                    ["--unscheduled", "first"], ["--unscheduled", "behind", "--classify", "ecn"]):
        refused("first-rtt", *options)
    for options in (["--senders", "1"], ["--senders", "65"], ["--bytes", "1k"]):
        refused("fairness", *options)


@case("a small run, also on the debug kernel")
def small():
    options = ["--rounds", "2"] + ["--debug"] * bool(os.environ.get("GL_DEBUG"))
    lossless(experiment("first-rtt", "--cc", BOTH, "--bytes", "30000", *options)["summary"])


if __name__ == "__main__":
    if os.environ.get("GL_DEBUG"):
        sys.argv[1:] = ["small"]        # the rest would take too long
    tap.main()
