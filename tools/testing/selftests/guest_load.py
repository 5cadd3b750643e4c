#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment load: its traffic and its results.

	this script (host) --> scripts/experiment --> guests, in virtual time

load_network.py tests the networks.
"""
import bisect
import collections
import os
import pathlib
import random
import sys
import tempfile

from experiments.ask import asked, experiment, refused
from experiments.kinds import load
from experiments.kinds.load import schedule as traffic
from experiments.traffic import sizes
from lab import tap
from lab.net import network as fabric
from lab.tap import case, equal, true, within
from lab.units import CCS

SMALL = ["--hosts", "16", "--spines", "2", "--background", "60"]
# Incasts that overflow the memory of a port.
PRESSED = [*SMALL, "--incasts", "3", "--flows", "16", "--pool", "1m", "--cc", "dctcp"]
MIXED = ["tlt_dctcp", "aeolus_xpass", "dart"]
MIX = "+".join(MIXED)
MANY = ["tlt_dctcp", "aeolus_dctcp", "hpcc", "dart", "aeolus_xpass", "ndp", "aeolus_ndp", "homa"]
CONFIG = {"topology": "leaf-spine", "symmetric": True, "hosts": 24, "leaves": 4, "spines": 3,
          "k": 4, "rate": 10**10, "delay": 5000, "ipv6": False, "workload": "web-search",
          "background": 4000, "foreground": 10, "incasts": 1, "periodic": False, "senders": 23,
          "each": 2, "bytes": 8192, "request": 0, "look": 0, "load": 40, "seed": 1}
# The papers' values: mean, and shares of flows up to 100 kB and up to 1 MB (Aeolus, ToN,
# Table I).  The table's web search does not add up to one; its mean is TLT's, 1.72 MB.
PAPERS = {"web-server": (64e3, .81, 1), "cache-follower": (701e3, .53, .71),
          "web-search": (1.72e6, None, .70), "data-mining": (7.41e6, .83, .91)}


# A size that half of the flows have.
STEPS = {"data-mining": [1460]}


@case("four distributions: the papers' means and classes, and flows drawn from them")
def distributions():
    equal(set(PAPERS), set(sizes.DISTRIBUTIONS), "names")
    for name, (mean, small, medium) in PAPERS.items():
        points = sizes.DISTRIBUTIONS[name]
        equal([points, points[0][1], points[-1][1]], [sorted(points), 0, 1], f"{name}: in order")
        within(sizes.mean(name) / mean, 0.98, 1.02, f"{name}: mean")
        source = random.Random(1)
        drawn = sorted(sizes.draw(name, source) for _ in range(100_000))
        within(sum(drawn) / len(drawn) / sizes.mean(name), 0.95, 1.05, f"{name}: mean of flows")
        for most, share in ((100_000, small), (1_000_000, medium)):
            if share:
                within(sum(n <= most for n in drawn) / len(drawn), share - .015, share + .015,
                       f"{name}: flows up to {most}")
        # Kolmogorov-Smirnov test: a deviation above 1.95 / sqrt(n) has a probability of 0.001.
        for share in (n / 100 for n in range(1, 100)):
            size = sizes.quantile(name, share)
            if all(size != step for step in STEPS.get(name, ())):
                within(bisect.bisect_right(drawn, size) / len(drawn),
                       share - 1.95 / len(drawn) ** .5, share + 1.95 / len(drawn) ** .5,
                       f"{name}: flows up to {size}")


def plan(**options):
    """A schedule, by default of CONFIG."""
    return traffic.Schedule(dict(CONFIG, **options))


@case("the schedule has the requested load and share of the foreground")
def offered():
    for options in ({}, {"load": 80}, {"foreground": 0, "incasts": 0}, {"foreground": 50},
                    {"workload": "web-server"}, {"background": 0, "incasts": 5},
                    {"topology": "star"}, {"topology": "fat-tree", "hosts": 16, "senders": 15}):
        seen = plan(**options)
        config = seen.config
        sent = collections.Counter()
        for message in seen.messages:
            sent[seen.kind(message)] += message.bytes
        rate = 8e9 * sum(sent.values()) / seen.end
        # The number of incasts is an integer.
        within(rate / traffic.capacity(config), config["load"] / 100 * 0.93,
               config["load"] / 100 * 1.07, f"{options}: load")
        if config["background"]:
            within(sent[traffic.FOREGROUND] / sum(sent.values()), config["foreground"] / 100 - .03,
                   config["foreground"] / 100 + .03, f"{options}: foreground")


@case("capacity: the rate of the hosts that fills the core")
def capacity():
    # 24 hosts at 4 leaves: 18 of the 23 others are behind the core, 12 links of 10 Gbit/s.
    equal(round(traffic.capacity(CONFIG) / 1e9, 3), round(120 / (18 / 23), 3), "leaf-spine")
    # 8 of 15 pairs cross one link, in both directions.
    equal(round(traffic.capacity(dict(CONFIG, topology="dumbbell", hosts=16)) / 1e9, 3),
          round(20 / (8 / 15), 3), "dumbbell")
    for name in ("star", "fat-tree"):
        equal(traffic.capacity(dict(CONFIG, topology=name, hosts=16)), 16e10, name)


@case("arrivals are a Poisson process between random hosts; an incast's messages begin at once")
def arrivals():
    seen = plan(foreground=5)
    background = [m for m in seen.messages if seen.kind(m) == traffic.BACKGROUND]
    equal(len(background), 4000, "flows")
    gaps = [b.at - a.at for a, b in zip(background, background[1:])]
    mean = sum(gaps) / len(gaps)
    # A share of e^-1 of an exponential distribution is above the mean.
    within(sum(g > mean for g in gaps) / len(gaps), 0.34, 0.40, "gaps above the mean")
    ends = [seen.connections[m.connection] for m in background]
    for name in ("src", "dst"):
        often = collections.Counter(getattr(c, name) for c in ends)
        within(min(often.values()) / (4000 / 24), 0.7, 1, f"minimum of {name}")
        within(max(often.values()) / (4000 / 24), 1, 1.3, f"maximum of {name}")
    true(all(c.src != c.dst for c in seen.connections), "no host sends to itself")
    incasts = collections.defaultdict(list)
    for message in seen.messages:
        if seen.kind(message) == traffic.FOREGROUND:
            incasts[message.at].append(seen.connections[message.connection])
    for at, wires in incasts.items():
        equal((len(wires), len({c.dst for c in wires}), len({c.src for c in wires})), (46, 1, 23),
              f"flows, receivers, senders of the incast at {at}")


@case("--periodic: the same incasts, at equal intervals")
def periodic():
    ways = []
    for way in (False, True):
        seen = plan(foreground=5, periodic=way)
        incasts = {m.at: seen.connections[m.connection].dst for m in seen.messages
                   if seen.kind(m) == traffic.FOREGROUND}
        times = [0, *sorted(incasts), seen.end]
        ways.append((list(incasts.values()), {b - a for a, b in zip(times, times[1:])}))
    (receivers, gaps), (same, equals) = ways
    true(len(receivers) > 10 and len(gaps) > 10, f"{len(receivers)} incasts, {len(gaps)} intervals")
    equal(same, receivers, "receivers")
    true(max(equals) - min(equals) <= 1, f"ns between incasts: {equals}")


@case("a seed gives the same schedule twice, and another seed another")
def seeds():
    net = fabric.Network(CONFIG)
    first, again, other = (plan(seed=seed).text(net, 0, 0) for seed in (1, 1, 2))
    true(first == again, "the same")
    true(first != other, "another")
    slow, fast = (plan(load=load, foreground=0, incasts=0) for load in (20, 40))
    equal([(m.bytes, slow.connections[m.connection]) for m in slow.messages],
          [(m.bytes, fast.connections[m.connection]) for m in fast.messages], "flows at two loads")
    within(slow.messages[-1].at / fast.messages[-1].at, 1.999, 2.001, "twice as far apart")
    # The schedule is the same for every congestion control, and independent of the ports' options.
    true(plan(red=1, ecn=2).text(net, 0, 0) == first, "with other options of the ports")


@case("the ideal, computed by hand: a packet over one switch, 100 packets over five")
def ideal():
    # A port delivers a packet when its transmission starts: one packet takes only propagation.
    equal(load.ideal_ns(CONFIG, 1448, 1), 2 * 5000, "a packet")
    # 99 times 1514 bytes before the last one, which take 1.2112 us each.
    equal(load.ideal_ns(CONFIG, 144_800, 5), 99 * 1514 * .8 + 6 * 5000, "144.8 kB")
    equal(load.ideal_ns(dict(CONFIG, request=134), 1448, 1), 4 * 5000,
          "a packet with its request")


@case("first_rtt: the share of flows that take at most the round trip of their two hosts")
def first_rtt():
    equal([load.first_rtt_ns(CONFIG, count) for count in (1, 5)], [20_000, 60_000], "round trips")
    seen = plan(foreground=0, incasts=0)
    trips = [20_000 + 1000 * (number % 2) for number in range(len(seen.flows))]
    # Each third flow takes a nanosecond longer.
    times = [trip + (not number % 3) for number, trip in enumerate(trips)]
    flows = load._Flows()
    flows.add(seen, [1] * len(times), trips,
              {"fct_ns": times, "bytes": {}, "retrans": {}, "sent": {}, "resent": {}})
    row = flows.row()
    for name, of in flows.classes.items():
        equal(row[f"{name}_first_rtt"], sum(not fct % 1000 for fct, *_ in of) / len(of), name)
        within(row[f"{name}_first_rtt"], 0.5, 0.8, name)
        within(row[f"{name}_rtts"], 1, 1.001, f"{name}: round trips")
        # The ideal is a nanosecond here.
        equal(row[f"{name}_rtt_behind"], sum(fct % 1000 > 0 for fct, *_ in of) / len(of),
              f"{name}: a round trip more")


@case("with requests the same flows are answers to requests from their receivers")
def requests():
    alone, asked_for = plan(), plan(request=100)
    wires = [[(flow.bytes, seen.connections[flow.connection].src,
               seen.connections[flow.connection].dst) for flow in seen.flows]
             for seen in (alone, asked_for)]
    equal([number for number, (one, other) in enumerate(zip(*wires)) if one != other], [],
          "numbers of flows that differ")
    equal(len(wires[0]), len(wires[1]), "number of flows")
    for message in asked_for.messages:
        there, back = (asked_for.connections[m.connection] for m in (message, message.answer))
        equal((message.bytes, there.src, there.dst), (100, back.dst, back.src), "a request")


@case("request and response, with and without credits: every flow completes after its request")
def answered():
    for row in experiment("load", *SMALL, "--cc", "tlt_dctcp,aeolus_xpass", "--request",
                          "200")["summary"]:
        equal([row[name] for name in ("unfinished", "bg_flows", "timeouts")], [0, 60, 0],
              f"{row['cc']}: unfinished, flows, RTOs")
        # Request and answer each cross at least a switch: four links.
        true(row["fg_p50"] > 4 * 10000, f"{row['cc']}: {row['fg_p50']}")
        true(min(row[f"{name}_slowdown"] for name in ("small", "medium", "large")) > 1,
             f"{row['cc']}: slowdown")


@case("--look samples every port at the interval, and no sample exceeds the peak")
def looked():
    whole = experiment("load", *SMALL, "--cc", "dctcp", "--look", "50us")
    run, row = whole["runs"][0], whole["summary"][0]
    # 4 leaves of 4 hosts, 2 spines: 4 × (4 + 2) + 2 × 4 ports.
    end = plan(**dict(whole["config"], load=40, seed=1)).end
    # The measured time ends after the last messages begin, and an incast's begin one by one.
    within(sum(run["queues"].values()) / 32, end / 50000 - 2,
           (end + run["late_ns"]["max"]) / 50000 + 2, "samples of a port")
    equal(sum(run["queues"].values()) % 32, 0, "samples that do not include all ports")
    longest = max(map(int, run["queues"]))
    true(0 < row["queue_p99"] <= row["queue_p99.9"] <= longest <= row["peak"],
         f"{row['queue_p99']}, {row['queue_p99.9']}, {longest}, {row['peak']}")
    equal(row["queue_p50"], 0, "median of all ports and times")


def differing(one, two):
    """The keys in which two runs differ, except the machine's time and memory."""
    return [key for key in one if one[key] != two[key]
            and key not in ("setup_s", "cpu_s", "real_s", "memory")]


@case("two runs have identical results")
def repeated():
    # A guest each: a second run in the same guest begins at other phases of its timers.
    first, again = (experiment("load", *SMALL, "--cc", "tlt_dctcp,aeolus_xpass", "--guests", "2")
                    for _ in range(2))
    for one, two in zip(*(sorted(whole["runs"], key=lambda run: run["cc"])
                          for whole in (first, again))):
        equal(differing(one, two), [], f"keys that differ for {one['cc']}")


@case("dctcp and tlt_dctcp: all flows complete; TLT has no RTO and a shorter tail")
def figures():
    # 31 senders with 16 flows of 8 kB: twice what a port may queue.
    whole = experiment("load", "--hosts", "32", "--background", "100", "--foreground", "20",
                       "--flows", "16", "--cc", "dctcp:tcp_early_retrans=0,tlt_dctcp")
    base, tlt = whole["summary"]
    for row in (base, tlt):
        equal(row["unfinished"], 0, f"{row['cc']}: unfinished")
        within(row["bg_flows"], 100, 100, f"{row['cc']}: flows")
        for name in ("small", "medium", "large"):
            true(row[f"{name}_slowdown"] > 1, f"{row['cc']}: slowdown of {name}")
        true(row["fg_p50"] <= row["fg_p99"] <= row["fg_p99.9"], f"{row['cc']}: percentiles")
    true(base["timeouts"] > 0, "dctcp has RTOs")
    equal([tlt[name] for name in ("timeouts", "probes", "drops_green")], [0, 0, 0],
          "TLT: RTOs, probes, green drops")
    true(tlt["drops_red"] > 0, "TLT: red packets are dropped")
    true(tlt["fg_p99.9"] < base["fg_p99.9"] / 2, f"tail: {tlt['fg_p99.9']} of {base['fg_p99.9']}")
    within(tlt["important"], 0.01, 0.15, "TLT: important bytes")
    equal(base["important"], 0, "dctcp: important bytes")


@case("a congestion control's setting applies to its runs only")
def setting():
    whole = experiment("load", "--topology", "star", "--hosts", "40", "--background", "0",
                       "--incasts", "3", "--bytes", "16k", "--guests", "1", "--cc",
                       "dctcp,dctcp:tcp_early_retrans=0")
    first, without = whole["summary"]
    equal([first["probes"] > 0, without["probes"]], [True, 0], "loss probes")
    # A guest runs jobs of equal cost in reverse order.
    turned = experiment("load", "--topology", "star", "--hosts", "40", "--background", "0",
                        "--incasts", "3", "--bytes", "16k", "--guests", "1", "--cc",
                        "dctcp:tcp_early_retrans=0,dctcp")
    equal([row["probes"] > 0 for row in turned["summary"]], [False, True], "in the other order")


@case("credits over a fat-tree: no scheduled packet is dropped")
def credits():
    row = experiment("load", "--topology", "fat-tree", "--cc", "aeolus_xpass", "--foreground", "0",
                     "--background", "100", "--workload", "cache-follower", "--rate", "10gbit",
                     "--limit", "200k", "--pool", "0")["summary"][0]
    equal([row[name] for name in ("unfinished", "drops_green", "timeouts")], [0, 0, 0],
          "unfinished, green drops, RTOs")
    true(row["drops_red"] > 0, "unscheduled packets are dropped")


@case("bursts of a host do not delay its scheduled packets, so that they do not collide later")
def first():
    row = experiment("load", "--hosts", "16", "--leaves", "4", "--spines", "1", "--load", "20",
                     "--background", "600", "--foreground", "0", "--cc", "aeolus_xpass",
                     "--rate", "10gbit", "--limit", "200k", "--pool", "0")["summary"][0]
    equal(row["drops_green"], 0, "scheduled drops")
    # Credits wait for up to 10 us at each of three ports, so data of 30 us can collide: 37 kB.
    # With a common queue at the hosts, 47 to 50 kB collide.
    within(row["peak"], 0, 37_500, "bytes, the longest queue")


@case("unscheduled data behind all other data: it waits, and is not dropped")
def behind():
    options = ("--topology", "star", "--cc", "aeolus_xpass", "--background", "0", "--incasts", "1",
               "--flows", "1", "--bytes", "16k", "--rate", "10gbit", "--limit", "200k",
               "--pool", "0")
    (row, _), (other, port) = (
        (whole["summary"][0], whole["runs"][0]["switches"]["p"]["color"]) for whole in (
            experiment("load", *options, "--unscheduled", how) for how in ("drop", "behind")))
    equal([row["drops_red"] > 0, other["drops_red"]], [True, 0], "unscheduled drops")
    equal(other["drops_green"], 0, "scheduled drops")
    true(other["peak"] > 2 * row["peak"], f"the queue: {other['peak']} and {row['peak']}")
    first, last = (port[f"bands.{band}.peak_backlog"] for band in (1, 2))
    true(last > 2 * first, f"peak backlog, bytes: scheduled {first}, unscheduled {last}")


@case("beside_ns() computed by hand: the hosts' links, and the ACK's path")
def beside():
    # One switch: a packet waits for the ifb's delay between its two ports; 4 links in all.
    for pause, switches, links in ((None, 1, 3), (None, 5, 7), ("all", 1, 4), ("all", 5, 8)):
        equal(load.beside_ns(dict(CONFIG, pause=pause), switches), links * 5000,
              f"{pause}: {switches}")


def segments_of(plan, percent=100):
    """The number of segments of the messages on a sample of the connections."""
    return sum(-(-m.bytes // 1448) for m in plan.messages
               if plan.connections[m.connection].port % 100 < percent)


@case("--segments: all are delivered, not earlier than on an idle network, some after an RTO")
def segments():
    # Without tail loss probes, which would repair nearly all losses of a burst's end.
    whole = experiment("load", *PRESSED, "--cc", "dctcp:tcp_early_retrans=0", "--background", "30",
                       "--segments")
    run, row = whole["runs"][0], whole["summary"][0]
    seen = plan(**dict(whole["config"], load=40, seed=1))
    # The window cuts some segments short.
    within(row["segment_count"] / segments_of(seen), 1, 1.05, "segments")
    equal((row["segment_lost"], row["drops"] > 0), (0, True), "not delivered; packets were dropped")
    # Four links of 10 us, at least; the virtual clock has steps of 0.3 us, its timers of 0.5 us.
    within(min(map(int, run["segments"]["times"])), 39_000, 44_000, "minimum")
    true(40_000 < row["segment_p50"] < row["segment_p99"] < row["segment_p99.9"]
         <= row["segment_max"] < max(run["fct_ns"]) + 80_000, f"percentiles: {row}")
    # An RTO is 4 ms at least.
    true(row["timeouts"] > 0 and row["segment_p50"] < 1_000_000 < 4_000_000 < row["segment_max"],
         "a segment that an RTO repaired")


@case("--segments takes no virtual time: any sample gives identical results")
def undisturbed():
    runs = [experiment("load", *PRESSED, "--background", "30", *options)["runs"][0]
            for options in (("--segments",), ("--segments", "1"), ())]
    equal([key for key in differing(*runs[:2]) if key != "segments"], [], "keys that differ")
    true(sum(runs[1]["segments"]["times"].values()) * 10 < sum(
        runs[0]["segments"]["times"].values()), "a smaller sample")
    # Without --segments the run begins earlier, at other phases of the timers.
    median, other = (sorted(run["fct_ns"])[375] for run in runs[1:])
    within(median / other, 0.9, 1.1, "median of all flows, with --segments / without")


@case("--segments PERCENT: that share of the connections; with IPv6, requests and pauses too")
def segment_sample():
    for percent, *options in ((20,), (100, "--ipv6", "--request", "2000"),
                              (100, "--pause", "all"), (100, "--topology", "dumbbell")):
        whole = experiment("load", "--hosts", "16", "--spines", "2", "--background", "20", "--cc",
                           "tlt_dctcp", *options, "--segments", str(percent))
        row, seen = whole["summary"][0], plan(**dict(whole["config"], load=40, seed=1))
        answers = sum(-(-m.bytes // 1428) for m in seen.answers)
        within(row["segment_count"] / (segments_of(seen, percent) + answers), 0.98, 1.1,
               f"{options}: segments")
        equal(row["segment_lost"], 0, f"{options}: not delivered")
        within(min(map(int, whole["runs"][0]["segments"]["times"])), 39_000, 44_000,
               f"{options}: minimum")


@case("several seeds: one row with all their flows")
def pooled():
    one, two, both = (experiment("load", *SMALL, "--cc", "dctcp", "--seed", seed)["summary"]
                      for seed in ("1", "2", "1,2"))
    equal((len(both), both[0]["bg_flows"]), (1, 120), "rows, flows")
    equal(both[0]["drops"], one[0]["drops"] + two[0]["drops"], "drops")
    equal(both[0]["peak"], max(one[0]["peak"], two[0]["peak"]), "peak")
    within(both[0]["bg_mean"], min(one[0]["bg_mean"], two[0]["bg_mean"]),
           max(one[0]["bg_mean"], two[0]["bg_mean"]), "mean")


@case("a plot is written")
def plotted():
    with tempfile.TemporaryDirectory() as out:
        prefix = pathlib.Path(out, "plot")
        for options in ((), ("--load", "20,40")):
            experiment("load", *SMALL, "--cc", "dctcp", "--plot", str(prefix), *options)
            for suffix in ("svg", "png"):
                path = prefix.with_suffix(f".{suffix}")
                true(path.stat().st_size > 5000, f"{path.name}: {path.stat().st_size} bytes")
                path.unlink()


@case("one of two uplinks: half of the core, under a load that is in percent of both")
def uplinks():
    one, other = (experiment("load", *SMALL, "--cc", "tlt_dctcp", *options)["runs"][0]
                  for options in (["--uplinks", "1", "--load", "25"],
                                  ["--spines", "1", "--load", "50"]))
    equal(differing(one, other), ["load"], "differences from a network with one spine")


@case("an invalid command line: one line, and status 2")
def command_line():
    for options in (["--load", "0"], ["--load", "1001"], ["--hosts", "63"], ["--leaves", "1"],
                    ["--senders", "64"], ["--foreground", "100"], ["--fresh"], ["--spines", "17"],
                    ["--uplinks", "5"], ["--uplinks", "1", "--topology", "star"],
                    ["--topology", "ring"], ["--topology", "fat-tree", "--k", "5"],
                    ["--topology", "fat-tree", "--hosts", "9"], ["--topology", "star", "--hosts", "1"],
                    ["--deployed", "101"], ["--deployed", "50", "--cc", "dart+tlt_dctcp"],
                    ["--deployed", "50", "--others", "x"],
                    ["--workload", "all"], ["--request", "x"], ["--look", "5"],
                    ["--background", "0", "--incasts", "0"], ["--unscheduled", "first"],
                    ["--background", "-1"], ["--segments", "0"], ["--segments", "101"],
                    ["--cc", "dctcp:x"], ["--cc", ""], ["--bogus"],
                    ["--cc", "dctcp+dart+dctcp"], ["--cc", "dctcp+"], ["--cc", "+".join(CCS[:9])],
                    ["--cc", "dctcp:a=1+dart"],
                    ["--cc", "tlt_dctcp+nobody"], ["--credits", "0"], ["--credits", "101"],
                    ["--apart", "1,1"], ["--apart", "1,1", "--cc", "dctcp+dart,dctcp+xpass+dart"],
                    ["--apart", "0,1", "--cc", "dctcp+dart"],
                    ["--apart", "1,1", "--cc", "dctcp+dart", "--pause", "all"],
                    ["--apart", "1,1", "--cc", "dctcp+dart", "--port", "pfifo"],
                    ["--port-options", "red 9k", "--port", "pfifo"],
                    ["--port-options", "red 9k", "--cc", "dctcp+dart", "--apart", "1,1"]):
        refused("load", *options)
    # Only load has mixes.
    refused("incast", "--cc", "dctcp+dart")
    for kind in ("incast", "load", "deflect", "first-rtt"):
        done = asked(kind, "--cc", "tlt_dctpc")
        true(done.returncode == 2 and "there are reno, cubic, dctcp" in done.stderr,
             f"{kind}: {done.stderr}")


@case("a mix: each connection has one congestion control, equally distributed, at both ends")
def mixed():
    whole = experiment("load", *SMALL, "--cc", MIX)
    run, (row, *parts) = whole["runs"][0], whole["summary"]
    seen = plan(**dict(whole["config"], load=40, seed=1))
    ends = collections.Counter()
    for wire in seen.connections:
        ends[f"{seen.classes[wire.kind]}@{MIXED[wire.part(3)]}"] += 2
    equal(run["ends"], dict(ends), "sockets of each congestion control")
    for cc in MIXED:
        share = sum(count for name, count in ends.items() if name.endswith(f"@{cc}"))
        # 540 connections: 3.5 standard deviations.
        within(share / sum(ends.values()), 1 / 3 - .07, 1 / 3 + .07, f"{cc}: share of the sockets")
    equal([r["cc"] for r in whole["summary"]], [MIX, *(f"{cc}@mix" for cc in MIXED)], "rows")
    for name in ("bg_flows", "fg_flows", "unfinished", "retransmitted", "flows"):
        equal(sum(part[name] for part in parts), row[name], f"sum of {name}")
    within(sum(part["gbit"] for part in parts) / row["gbit"], 0.9999, 1.0001, "Gbit/s of all")
    equal([name for part in parts for name in ("timeouts", "drops", "marks") if name in part], [],
          "counters of the whole mix")
    equal([part["unfinished"] for part in parts], [0, 0, 0], "unfinished")
    # Each transport's mechanism is in use: marks, echoes, credits, shares.
    true(row["marks"] > 0, "marks")
    port, counters = run["switches"]["p"]["color"], run["counters"]["greenlane"]
    true(port["bands.0.packets"] > 1000, f"credits at the ports: {port['bands.0.packets']}")
    for name in ("EchoReceived", "CreditReceived", "ShareReceived"):
        true(counters[name] > 100, f"{name}: {counters[name]}")


@case("all kinds of transport in one fabric at load 70: each flow completes, by its own mechanism")
def many():
    whole = experiment("load", "--hosts", "16", "--spines", "4", "--background", "60", "--load", "70",
                       "--cc", "+".join(MANY))
    row, *parts = whole["summary"]
    equal([part["unfinished"] for part in parts], [0] * len(MANY), "unfinished")
    within(row["rtos"], 0, 10, "RTOs of 1000 flows")
    counters = whole["runs"][0]["counters"]["greenlane"]
    for name in ("EchoReceived", "HpccEchoReceived", "ShareReceived", "CreditReceived",
                 "NdpCreditReceived", "HomaCreditReceived", "ProbeAckReceived"):
        true(counters[name] > 20, f"{name}: {counters[name]}")
    equal([counters[name] for name in ("PeerWithout", "Fallback", "Invalid")], [0, 0, 0],
          "PeerWithout, Fallback, Invalid")


@case("a mix and a seed: identical results, and the flows of a single congestion control")
def mixed_again():
    first, again = (experiment("load", *SMALL, "--cc", MIX, *options)["runs"][0]
                    for options in ((), ("--seed", "1")))
    equal(differing(first, again), [], "keys that differ")
    net, seen = fabric.Network(CONFIG), plan()
    alone, mix = (seen.text(net, 0, 0, ccs=ccs).splitlines() for ccs in (["dart"], MIXED))
    for what in ("host", "message"):
        equal([line for line in mix if line.startswith(what)],
              [line for line in alone if line.startswith(what)], what)
    equal([line.rpartition(" ")[0] for line in mix if line.startswith("connection")],
          [line.rpartition(" ")[0] for line in alone if line.startswith("connection")], "wires")


@case("a mix with requests: both directions of a connection have the same congestion control")
def mixed_requests():
    whole = experiment("load", *SMALL, "--cc", MIX, "--request", "200")
    run, row = whole["runs"][0], whole["summary"][0]
    equal([row["unfinished"], sum(run["ends"].values())], [0, 2 * run["connections"]],
          "unfinished, ends")


@case("--deployed: all packets between these hosts have the transport's marks, and no others")
def deployed():
    whole = experiment("load", *SMALL, "--cc", "tlt_dctcp", "--deployed", "0,50,100")
    runs = {run["deployed"]: run for run in whole["runs"]}
    seen = plan(**dict(whole["config"], load=40, seed=1))
    have = {percent: seen.deployed(percent) for percent in runs}
    equal([len(hosts) for hosts in have.values()], [0, 8, 16], "hosts with the transport")
    true(have[50] < have[100], "a larger share includes the hosts of a smaller")
    rows = {(row["cc"], row["deployed"]): row for row in whole["summary"]}
    ends = {percent: collections.Counter(
        sum(host in have[percent] for host in (wire.src, wire.dst))
        for wire in (seen.connections[message.connection] for message in seen.flows))
            for percent in runs}
    equal({key: row["flows"] for key, row in rows.items()},
          {("tlt_dctcp", percent): len(seen.flows) for percent in runs} | {
              (f"tlt_dctcp@{load.ENDS[number]}", percent): count
              for percent, counts in ends.items() for number, count in counts.items()}, "flows")
    for percent, run in runs.items():
        counted, between = run["counters"]["greenlane"], sum(
            message.bytes for message in seen.flows
            if {(wire := seen.connections[message.connection]).src, wire.dst} <= have[percent])
        sent = counted["DataSentBytes"] + counted["ImportantSentBytes"]
        # Hosts without the transport retransmit too.
        most = between + sum(run["resent"].values()) * (percent > 0)
        true(between <= sent <= most, f"{percent}: {between} to {most} bytes, {sent} with marks")


@case("pauses are counted; without PFC the row has no such counters")
def pauses():
    paused, = experiment("load", *PRESSED, "--pause", "all")["summary"]
    plain, = experiment("load", *PRESSED)["summary"]
    true(paused["pauses"] > 0 and paused["paused"] > 0,
         f"frames: {paused['pauses']}, ns: {paused['paused']}")
    equal([paused["drops"], plain["drops"] > 0], [0, True], "packets dropped")
    equal([key for key in ("pauses", "paused") if key in plain], [], "without PFC")


@case("--port-options replace --red and --ecn; a port keeps its limit, its pause and its memory")
def port_options():
    options = [*SMALL, "--cc", "dctcp", "--red", "9k", "--port-options", "ecn 30k"]
    for more, rest in (([], "alpha 1"), (["--pause", "all"], "pause all delay 11000ns unit 1514 pool"
                                         " sw size 4500000 alpha 1024")):
        run, = experiment("load", *options, *more)["runs"]
        true(run["qdisc"].startswith("color rate 40000000000bit limit 4500000 ")
             and run["qdisc"].endswith(f"{rest} ecn 30k"), run["qdisc"])


@case("transfer efficiency: first transmissions are the messages' bytes")
def efficiency():
    for more, lost in ((["--pause", "all"], False), ([], True)):
        whole = experiment("load", *PRESSED, *more)
        run, row = whole["runs"][0], whole["summary"][0]
        seen = plan(**dict(whole["config"], load=40, seed=1))
        sent, resent = (sum(run[key].values()) for key in ("sent", "resent"))
        equal((sent - resent, resent > 0),
              (sum(message.bytes for message in seen.messages), lost), "first time, again")
        equal(row["efficiency"], 1 - resent / sent, "efficiency")


@case("senders' estimates: RTTs of the path, and the RTO computed by hand")
def estimates():
    equal([load.rto_ns(*of) for of in ((80, 30), (80, 29), (400, 200))],
          [200_000, 200_000, 1_200_000], "RTOs")
    seen = plan(background=20)
    of = [(100, 10), (400, 200), (300, 200)]    # RTOs of 0.2, 1.2 and 1.1 ms
    rtts, rttvars = zip(*(of[number % 3] for number in range(len(seen.flows))))
    flows, none = load._Flows(), {"bytes": {}, "retrans": {}, "sent": {}, "resent": {}}
    times = [1] * len(seen.flows)
    flows.add(seen, times, times,
              none | {"fct_ns": times, "rtt_us": list(rtts), "rttvar_us": list(rttvars)})
    mine = sorted(1000 * rtt for rtt, flow in zip(rtts, seen.flows)
                  if seen.kind(flow) == traffic.FOREGROUND)
    row = flows.row()
    equal([row[f"fg_{name}"] for name in ("rtt_mean", "rtt_p50", "rto_p90")],
          [sum(mine) / len(mine), 300_000, 1_200_000], "of incasts")
    equal(row["fg_rto_long"], mine.count(400_000) / len(mine), "longer than 1.1 ms")
    # The path has two or four links.  A first SYN waits for neighbour resolution, which doubles its
    # RTT, and the first sample R gives an RTO of 3 R.
    alone = [*SMALL, "--background", "0", "--incasts", "8", "--senders", "1", "--flows", "1",
             "--load", "1", "--cc", "dctcp"]
    run, = experiment("load", *alone, "--tcp-info")["runs"]
    for rtt, rttvar in zip(run["rtt_us"], run["rttvar_us"]):
        within(rtt, 40, 160, "RTT of a path without a queue, us")
        within(load.rto_ns(rtt, rttvar) / 1000, 200, 3 * 160, "its RTO, us")


@case("--tcp-info takes no virtual time, and reports each message")
def estimates_cost():
    runs = [experiment("load", *PRESSED, *more)["runs"][0] for more in ([], ["--tcp-info"])]
    equal(sorted(set(runs[1]) - set(runs[0])), ["rtt_us", "rttvar_us"], "keys that it adds")
    equal(differing(*runs), [], "keys that differ")
    # The base RTT is 40 us; the difference of two times in whole microseconds may be one less.
    for key, least in (("rtt_us", 39), ("rttvar_us", 0)):
        equal((len(runs[1][key]), min(runs[1][key]) >= least, max(runs[1][key]) > 80),
              (len(runs[1]["fct_ns"]), True, True), f"{key}: number, minimum {least}, queueing")


@case("a mix's row divided by the same flows alone, computed by hand")
def mixed_ratio():
    whole = experiment("load", *SMALL, "--cc", "tlt_dctcp,dart,tlt_dctcp+dart")
    rows = {row["cc"]: row for row in whole["summary"]}
    runs = {run["cc"]: run["fct_ns"] for run in whole["runs"]}
    seen = plan(**dict(whole["config"], load=40, seed=1))
    for part, cc in enumerate(("tlt_dctcp", "dart")):
        # With so few flows the 99.9th percentile is the slowest one.
        slowest = [max(fct for message, fct in zip(seen.messages, runs[name])
                       if seen.kind(message) == traffic.FOREGROUND
                       and int(seen.connections[message.connection].share * 2) == part)
                   for name in ("tlt_dctcp+dart", cc)]
        equal(rows[f"{cc}@mix"]["fg_p99.9_ratio"], slowest[0] / slowest[1], cc)
        true("fg_p99.9_ratio" not in rows[cc], "only a mix's row has the ratio")


@case("a mix of TLT and dart: dart's data leaves room for important packets at any threshold")
def mixed_room():
    options = ("--topology", "star", "--hosts", "24", "--background", "0", "--incasts", "1",
               "--bytes", "64k", "--flows", "4", "--cc", "tlt_dctcp+dart", "--yellow")
    whole = [experiment("load", *options, size)["summary"][0] for size in ("300k", "1m", "4m")]
    equal([(row["drops_green"], row["drops_yellow"] > 0) for row in whole], [(0, True)] * 3,
          "important packets dropped, and dart's")
    # At 4 MB dart's data alone would fill the port's share of the shared memory.
    true(whole[0]["peak"] <= whole[2]["peak"] < 1_500_000,
         f"peaks: {[row['peak'] for row in whole]}")


@case("--apart: each congestion control has a queue without others' packets", v6=(False, True))
def apart(v6):
    whole = experiment("load", *SMALL, "--cc", MIX, "--apart", "1,5,2", *["--ipv6"] * v6)
    run, (row, *parts) = whole["runs"][0], whole["summary"]
    equal([part["unfinished"] for part in parts], [0, 0, 0], "unfinished")
    tlt, aeolus, dart = parts
    # ARP and neighbour discovery are in the first queue.
    within(tlt["packets_yellow"] / tlt["packets_red"], 0, 0.02, "TLT's yellow packets / red ones")
    equal([aeolus["packets_yellow"], dart["packets_red"]], [0, 0], "others' packets")
    true(min(tlt["packets_green"], aeolus["packets_red"], dart["packets_yellow"]) > 100, "its own")
    for name in ("packets_green", "packets_yellow", "packets_red", "drops", "marks"):
        equal(sum(part[name] for part in parts), row[name], f"sum of {name}")
    equal([aeolus["marks"], tlt["marks"] > 0, dart["marks"] > 0], [0, True, True], "marks")
    # Five of eight parts: 62 % of the credits of tc-color(8)'s preset at 40 Gbit/s.
    true("band-rate 0 1881067pps" in run["qdisc"], f"credits: {run['qdisc']}")
    equal(run["settings"], "xpass_rate=24800", "the hosts' limit")
    port = run["switches"]["p"]
    equal([port[f"color 1:1{number}"].get("bands.0.packets", 0) > 1000 for number in range(3)],
          [False, True, False], "queues with credits")


@case("--apart: each has its share of a busy link, and Dart causes no green drops of TLT")
def apart_shares():
    options = ("--topology", "star", "--hosts", "24", "--background", "0", "--incasts", "1",
               "--bytes", "64k", "--flows", "4", "--cc", "tlt_dctcp+dart")
    (few, tlt, _), (many, other, _) = (
        experiment("load", *options, "--apart", parts)["summary"] for parts in ("1,9", "9,1"))
    equal([few["drops_green"], many["drops_green"]], [0, 0], "important packets dropped")
    # Both send the same bytes.  With a tenth of the link TLT completes when all is sent, with nine
    # tenths after little more than half of that time.
    within(tlt["fg_p50"] / other["fg_p50"], 1.3, 2.5, "TLT's median, 1 part of 10 / 9 parts")


@case("--credits 50: a credit transport takes twice as long")
def half():
    options = ("--topology", "star", "--hosts", "2", "--cc", "xpass", "--background", "0",
               "--incasts", "1", "--flows", "1", "--bytes", "4m", "--rate", "2gbit")
    whole, part = (experiment("load", *options, "--credits", percent) for percent in ("100", "50"))
    within(part["summary"][0]["fg_p99.9"] / whole["summary"][0]["fg_p99.9"], 1.8, 2.2,
           "the flow's time")
    # At 2 Gbit/s tc-color(8)'s preset has 152068 credits per second.
    first, second = (run["runs"][0]["qdisc"] for run in (whole, part))
    equal(["band-rate" in first, "band-rate 0 75849pps" in second], [False, True], "credits")


@case("an unknown setting: an error that names it")
def no_setting():
    done = asked("load", *SMALL, "--cc", "dctcp:nothing=1",
                 "--kernel", os.environ.get("GL_KERNEL", "7.3"))
    equal(done.returncode, 1, "status")
    true("no setting net.ipv4.nothing" in done.stderr, done.stderr)


@case("a small run, also on the debug kernel")
def small():
    options = ["--debug"] * bool(os.environ.get("GL_DEBUG"))
    row = experiment("load", "--topology", "dumbbell", "--hosts", "4", "--background", "10",
                     "--cc", "tlt_dctcp", *options)["summary"][0]
    equal((row["unfinished"], row["timeouts"]), (0, 0), "unfinished, RTOs")


if __name__ == "__main__":
    if os.environ.get("GL_DEBUG"):
        sys.argv[1:] = ["small"]        # the rest would take too long
    tap.main()
