#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The incast: the testbed's accuracy, and TLT's tail, timers and losses.

	this script (host) --> scripts/experiment --> guests, in virtual time

	s0 ... s7 ---- switch ---- r       8 senders, 40 Gbit/s, 20 us, 32 kB a flow

Times are virtual: they do not depend on the machine's speed or load.
"""
import os
import sys
import tempfile

from experiments.ask import experiment, refused
from experiments.kinds.incast.plot import tails
from experiments.kinds.incast.segments import deliveries
from experiments.plot import style
from experiments.traffic import shares
from lab import tap, units
from lab.measure import capture, report
from lab.tap import case, equal, true, within

TLT = ("tlt_reno", "tlt_cubic", "tlt_dctcp")
FAN_IN = (80, 320, 640, 1000)


def incast(ccs, fan_in, *options):
    """The experiment's rows, by (cc, flows), and its complete report."""
    whole = experiment("incast", "--cc", ",".join(ccs), "--fan-in", ",".join(map(str, fan_in)),
                       *options)
    return {(row["cc"], row["flows"]): row for row in whole["summary"]}, whole


def tlt(*options):
    """The rows of TLT over all its bases, at all fan-ins."""
    return incast(TLT, FAN_IN, *options)[0]


@case("results that cannot be written are refused before the measurement")
def unwritable():
    with tempfile.TemporaryDirectory() as here:
        os.mkdir(f"{here}/plot.svg")
        os.symlink(f"{here}/loop", f"{here}/loop")
        for option, name in (("--json", "/dev/null"), ("--json", f"{here}/{'a' * 252}"),
                             ("--json", f"{here}/loop"), ("--json", "/proc/x.json"),
                             ("--plot", f"{here}/plot")):
            refused("incast", option, name)
        equal(sorted(os.listdir(here)), ["loop", "plot.svg"], "files")


@case("sizes, rates and times; invalid ones are refused")
def parse_units():
    equal(units.size("32k"), 32768, "32k")
    equal(units.rate("40gbit"), 40 * 10**9, "40gbit")
    equal(units.time("5us"), 5000, "5us")
    for parse, text in ((units.size, "-1"), (units.rate, "40"), (units.rate, "gbit"),
                        (units.time, "5"), (units.time, "5 us"),
                        (units.rate, "9" * 400 + "gbit")):
        try:
            seen = parse(text)
        except ValueError:
            continue
        raise tap.Failed(f"{text} was parsed as {seen}")


@case("percentiles are nearest-rank")
def percentiles():
    values = list(range(1, 1001))
    equal([report.percentile(values, p) for p in (50, 99, 99.9, 100)],
          [500, 990, 999, 1000], "of 1 ... 1000")
    equal(report.percentile([7], 99.9), 7, "of one value")


@case("an incast that the port holds runs at line rate, and loses nothing")
def line_rate():
    rows, whole = incast(("reno",), (16,))
    row = rows["reno", 16]
    # The ideal has no time for the first round trip, 20 us of 120.
    within(row["ratio"], 1, 1.25, "99.9th percentile / ideal")
    equal((row["timeouts"], row["probes"], row["drops"], row["host_drops"]),
          (0, 0, 0, 0), "RTOs, probes, drops")
    config, run = whole["config"], whole["runs"][0]
    equal([len(times) for times in run["fct_ns"]], [16] * config["rounds"], "flows, rounds")
    # The minimum of one flow: its transmission time, and two links of 5 us.
    least = config["bytes"] * 8e9 / config["rate"] + 2 * config["delay"]
    true(min(map(min, run["fct_ns"])) >= least, "minimum: transmission time and propagation")


@case("the ideal is a lower bound, also for single packets without queueing")
def ideal():
    rows, whole = incast(("reno", "dctcp", "tlt_dctcp"), (8,), "--bytes", "1k")
    config, least = whole["config"], 1024 + 66
    for row in rows.values():
        # Seven packets on the link before the last one starts, and two links of 5 us.
        within(row["ideal"], 7 * least * .2 + 10000 - 1, 7 * least * .2 + 10000 + 1, "by hand, ns")
        true(row["ratio"] >= 1, f"{row['cc']}: {row['ratio']:.3f} times the ideal")
    equal(config["bytes"], 1024, "bytes")



@case("--request: completion times begin half a round trip earlier, and so does the ideal")
def request():
    pushed, _ = incast(("reno",), (16,), "--rounds", "20")
    pulled, whole = incast(("reno",), (16,), "--rounds", "20", "--request")
    row, before = pulled["reno", 16], pushed["reno", 16]
    half = 2 * whole["config"]["delay"]
    equal(row["ideal"] - before["ideal"], half, "ideal, ns")
    # The requests leave one after the other: a microsecond of the guest's time each.  The two guests'
    # ticks have different phases, which move a median by as much.
    within(row["p50"] - before["p50"], half - 1_000, half + 16_000, "median, ns")
    equal([len(times) for times in whole["runs"][0]["fct_ns"]], [16] * 20, "flows, rounds")


@case("an incast above the port's capacity makes DCTCP wait for timers")
def base_breaks():
    rows, _ = incast(("dctcp",), (320,))
    row = rows["dctcp", 320]
    true(row["drops"] > 0 and row["timeouts"] + row["probes"] > 0, f"drops and timers: {row}")
    equal(row["host_drops"], 0, "drops in the hosts")


@case("bbr, 160 flows: waits for timers; tlt_bbr: none, at most half the time; 8 flows: the same")
def bbr():
    rows, _ = incast(("bbr", "tlt_bbr"), (160,))
    base, row = rows["bbr", 160], rows["tlt_bbr", 160]
    true(base["timeouts"] + base["probes"] > 0, f"timers of bbr: {base}")
    equal((row["timeouts"], row["probes"], row["drops_green"]), (0, 0, 0),
          "RTOs, probes, green drops of tlt_bbr")
    true(row["ratio"] <= base["ratio"] / 2, f"99.9th percentile: {row}, {base}")
    # Two runs of 5 repetitions of bbr differ by 3 %, so use 200.
    rows, _ = incast(("bbr", "tlt_bbr"), (8,), "--rounds", "200")
    base, row = rows["bbr", 8], rows["tlt_bbr", 8]
    within(row["p50"] / base["p50"], 0.98, 1.02, "median, with 8 flows")
    within(row["p99.9"] / base["p99.9"], 0.9, 1.02, "99.9th percentile, with 8 flows")


@case("TLT, 80 to 1000 flows: no RTO, no loss probe, no important packet dropped")
def no_timers():
    equal({key: seen for key, row in tlt().items()
           if any(seen := (row["timeouts"], row["probes"], row["drops_green"]))},
          {}, "(RTOs, probes, important drops) that are not 0")


@case("TLT, 3000 flows, whose important packets the port cannot hold: no RTO, the tail is near the"
      " ideal; without the crowd's rule: thousands")
def crowd():
    rows, _ = incast((*TLT, "tlt_dctcp:tlt_crowd=0"), (3000,), "--rounds", "2")
    base = rows.pop(("tlt_dctcp:tlt_crowd=0", 3000))
    true(base["timeouts"] > 1000, f"RTOs without the rule: {base['timeouts']}")
    for (cc, flows), row in rows.items():
        equal(row["timeouts"], 0, f"{cc}: RTOs")
        within(row["ratio"], 1, 1.1, f"{cc}: 99.9th percentile / ideal")


@case("aeolus_homa, 2600 flows: lost bursts wait for their grants, and the tail is near the ideal")
def granted():
    # From 3000 on data waits in the last band for longer than RTO_min: results.rst, Homa.
    rows, _ = incast(("aeolus_homa",), (2600,), "--rounds", "3",
                     "--port", "color rate 40gbit limit 1800k preset homa red 6k count queue")
    for (cc, flows), row in rows.items():
        equal(row["unfinished"], 0, f"{cc}: flows that do not end")
        # Data that waits in the last band for longer than an RTO is sent again, once.
        within(row["timeouts"], 0, flows / 10, f"{cc}: RTOs")
        within(row["ratio"], 1, 1.06, f"{cc}: 99.9th percentile / ideal")


@case("aeolus_ndp, 3000 flows: no timer, the tail is near the ideal, and the queue of the port is short")
def pulled():
    rows, _ = incast(("aeolus_ndp",), (80, 3000), "--rounds", "3",
                     "--port", "color rate 40gbit limit 1800k preset aeolus")
    for (cc, flows), row in rows.items():
        equal([row["unfinished"], row["timeouts"], row["drops_green"]], [0, 0, 0],
              f"{cc}, {flows} flows: flows that do not end, RTOs, pulled packets dropped")
        within(row["ratio"], 1, 1.07, f"{cc}, {flows} flows: 99.9th percentile / ideal")
        # 15 kB where hosts send pulled data before the bursts of other connections; else what a
        # burst has delayed arrives at once.  1.8 MB without time for requests (rd_yield_header()).
        within(row["peak"], 0, 60_000, f"{cc}, {flows} flows: longest queue, bytes")


@case("TLT, 750 flows at a port that holds 300 important packets: the flows' rates are equal")
def fair():
    # A quarter of the rate, the port and the flows of 3000 flows at 40 Gbit/s.
    _, whole = incast(TLT, (750,), "--rate", "10gbit", "--limit", "450k", "--red", "68k",
                      "--bytes", "160k", "--rounds", "2")
    for run in whole["runs"]:
        for times in run["fct_ns"]:
            # 0.57 to 0.79 if each connection computes its own wait.
            within(report.jain([1 / ns for ns in times]), 0.9, 1, f"{run['cc']}: Jain's index")
        equal(run["senders"]["tcp"]["TCPTimeouts"], 0, f"{run['cc']}: RTOs")


@case("TLT, 80 to 1000 flows: the tail is near the ideal")
def near_ideal():
    for (cc, flows), row in tlt().items():
        # with 80 flows the percentile is the slowest of 400
        most = 1.05 if flows >= 320 else 1.25
        within(row["ratio"], 1, most, f"{cc}, {flows} flows: 99.9th percentile / ideal")


@case("TSO on and off: the same within 5 %")
def tso():
    on, off = tlt(), tlt("--no-tso")
    for (cc, flows), row in on.items():
        if flows != min(FAN_IN):
            within(off[cc, flows]["p99.9"] / row["p99.9"], 0.95, 1.05, f"{cc}, {flows}: off / on")
    equal(sum(row["timeouts"] + row["probes"] for row in off.values()), 0, "timers, TSO off")

    # With 80 flows, 5 repetitions are too few for a 99.9th percentile, which is the slowest of
    # 400.  With cubic, one flow in some hundred repetitions gets a cwnd of two and remains slow for
    # twenty, because so short a flow does not increase it.  More repetitions would have more of the
    # same flow, so use new connections.
    few = (min(FAN_IN),), "--fresh", "--rounds", "50"
    on, off = incast(TLT, *few)[0], incast(TLT, *few, "--no-tso")[0]
    for key, row in on.items():
        within(off[key]["p99.9"] / row["p99.9"], 0.95, 1.05, f"{key}, new connections: off / on")


@case("IPv6: no timers, no important drops, a tail near the ideal")
def ipv6():
    rows, _ = incast(TLT, (320,), "--ipv6")
    for (cc, _), row in rows.items():
        equal((row["timeouts"], row["probes"], row["drops_green"]), (0, 0, 0), cc)
        within(row["ratio"], 1, 1.05, f"{cc}: 99.9th percentile / ideal")


@case("Linux's RTO_min of 200 ms: the tail is at least 95 % lower than DCTCP's")
def rto_min():
    rows, _ = incast(("dctcp", "tlt_dctcp"), (1000,), "--rto-min", "200ms")
    within(rows["tlt_dctcp", 1000]["p99.9"] / rows["dctcp", 1000]["p99.9"], 0, 0.05,
           "tlt_dctcp / dctcp")


@case("where the base loses nothing, TLT with operations.rst's red threshold performs as the base")
def no_cost():
    # 40 flows: 1.8 MB less 1.5 kB for each.
    rows = [incast((cc,), (40,), "--red", "1700k")[0][cc, 40] for cc in ("cubic", "tlt_cubic")]
    equal([row["drops"] for row in rows], [0, 0], "drops of cubic, of tlt_cubic")
    within(rows[1]["p99.9"] / rows[0]["p99.9"], 0.9, 1.02, "99.9th percentile, tlt_cubic / cubic")


@case("red auto: without losses TLT performs as the base; with 1000 flows no green packet is lost")
def red_auto():
    rows = [incast((cc,), (40,), "--red", "auto")[0][cc, 40] for cc in ("cubic", "tlt_cubic")]
    equal([row["drops"] for row in rows], [0, 0], "drops of cubic, of tlt_cubic")
    within(rows[1]["p99.9"] / rows[0]["p99.9"], 0.9, 1.02, "99.9th percentile, tlt_cubic / cubic")
    by_hand, _ = incast(("tlt_cubic",), (160, 320, 1000))
    by_itself, _ = incast(("tlt_cubic",), (160, 320, 1000), "--red", "auto")
    for key, row in by_itself.items():
        equal((row["timeouts"], row["probes"], row["drops_green"]), (0, 0, 0),
              f"RTOs, probes, green drops, {key}")
        within(row["p99.9"] / by_hand[key]["p99.9"], 0.9, 1.02, f"{key}: auto / by hand")


@case("red auto with a shared buffer: no green losses, fewer red ones than with a fixed threshold")
def red_auto_pool():
    star = ("load", "--topology", "star", "--hosts", "16", "--workload", "cache-follower",
            "--load", "40", "--senders", "15", "--cc", "tlt_cubic")
    row, = experiment(*star, "--red", "auto")["summary"]
    equal((row["timeouts"], row["probes"], row["drops_green"]), (0, 0, 0),
          "RTOs, probes, green drops")
    by_hand, = experiment(*star, "--red", "800k")["summary"]
    true(row["drops_red"] < by_hand["drops_red"], f"{row['drops_red']} red drops of {by_hand['drops_red']}")


@case("a plot's axes have plain numbers, also for a single fan-in")
def plot_axes():
    _, axes = style.two()
    rows = [{"cc": cc, "flows": 40, "p99.9": ms * 1e6, "ideal": 2e6}
            for cc, ms in (("cubic", 5.2), ("tlt_cubic", 2.4))]
    tails(axes[0], rows, ["cubic", "tlt_cubic"])
    axes[1].set_yscale("log")
    for low, high in ((2.1, 2.5), (4, 9), (0.5, 20), (1, 4000)):
        axes[1].set_ylim(low, high)
        style.log_ticks(axes[1].yaxis)
        for ax in axes:
            least, most = ax.get_ylim()
            labels = [text for at, text in zip(
                ax.get_yticks(), ax.yaxis.get_major_formatter().format_ticks(ax.get_yticks()))
                if least <= at <= most]
            within(len(labels), 2, 12, f"{low} to {high}: {labels}")
            true(not any("e" in label for label in labels), f"{low} to {high}: {labels}")
    equal(axes[0].get_ylim()[0], 0, "a bar begins at")


@case("a plot distinguishes measured runs from virtual ones, and each has its base's colour")
def plot_sources():
    seen = {cc: style.style(cc) for cc in ("tlt_dctcp", "tlt_dctcp@measured", "tlt_dctcp@virtual",
                                           "dctcp", "dctcp@measured", "dctcp@virtual")}
    for cc in ("tlt_dctcp", "dctcp"):
        equal(seen[f"{cc}@measured"]["linestyle"], seen[cc]["linestyle"], f"{cc}, measured")
        equal(seen[f"{cc}@virtual"]["linestyle"], ":", f"{cc}, virtual")
    equal(len({one["color"] for one in seen.values()}), 1, "colours")


@case("Jain's index of the flows of a crowd, of hand-made packets")
def crowd_shares():
    def flow(times, length=1000):
        return [capture.Packet(1, False, length, length - 66, at, at) for at in times]
    first, burst = [0, 5], [100, 110, 120, 130, 140, 150]
    equal(shares.second(flow(first + burst)), flow(burst), "packets of the second burst")
    equal(shares.indices([flow(burst), flow(burst)], 20), [1], "two equal flows")
    # In 120 ... 139 the second flow sends a packet, in 140 ... 159 it has no packet any more.
    equal(shares.indices([flow(range(100, 200, 10)), flow([100, 125, 141])], 20),
          [report.jain([2, 1])], "a flow that ends")
    equal(shares.indices([flow(burst), flow(burst, 3000)], 20), [report.jain([1, 3])],
          "bytes, not packets")
    # 90 % of the flows are enough, and the others do not count.
    many = [flow(range(100, 200, 10))] * 9
    equal(shares.indices([*many, flow([100, 110])], 20), [1] * 3, "nine of ten flows")
    equal(shares.indices([*many, flow(range(135, 200, 10))], 20), [1] * 3, "a flow that begins late")
    equal(shares.indices([*many[1:], flow([100, 110])], 20), [], "eight of nine flows")


@case("deliveries() of hand-made packets")
def segments_by_hand():
    def packet(port, seq, data, arrived, sent):
        return capture.Packet(port, False, data + 66, data, arrived, sent, seq & 0xffffffff)

    packets = [
        packet(1, -500, 1000, 0, None),             # is dropped, and dropped again,
        packet(1, 500, 1000, 10, None),             # as is the next segment,
        packet(1, -500, 1, 600, 700),               # a clock
        packet(1, -500, 1000, 800, None),
        packet(1, -500, 2000, 900, 1000),           # and both are retransmitted as one
        packet(1, 1500, 100, 1000, None),           # never arrives
        packet(2, -500, 1000, 20, 40), packet(2, -500, 1000, 30, 50),       # arrives twice
        packet(2, 500, 0, 60, 70),                  # an ACK
    ]
    equal(deliveries(packets, 4000), [5000, 4990, None, 4020], "ns")


@case("--segments: every segment has a time, between the minimum and its flow's completion time")
def segments():
    rows, _ = incast(("tlt_dctcp",), (160,), "--segments", "--rounds", "2")
    row = rows["tlt_dctcp", 160]
    equal((row["segment_count"], row["segment_lost"]), (2 * 160 * 23, 0), "segments, lost")
    true(row["drops"] > 0, "packets were dropped")
    # The last ACK arrives a one-way delay after the receiver has all data.
    true(20_000 <= row["segment_p50"] <= row["segment_p99"] <= row["segment_p99.9"]
         <= row["segment_max"] <= row["max"] + 10_000, "percentiles")
    # Ports 10000 to 10159.
    rows, _ = incast(("tlt_dctcp",), (160,), "--segments", "30", "--rounds", "2")
    row = rows["tlt_dctcp", 160]
    equal((row["segment_count"], row["segment_lost"]), (2 * 60 * 23, 0), "of a sample")


@case("a small run, also on the debug kernel: no report, no timer")
def small():
    options = ["--rounds", "2"] + ["--debug"] * bool(os.environ.get("GL_DEBUG"))
    rows, _ = incast(("tlt_dctcp",), (160,), *options)
    row = rows["tlt_dctcp", 160]
    equal((row["timeouts"], row["probes"], row["drops_green"]), (0, 0, 0),
          "RTOs, probes, important drops")
    true(row["drops"] > 0, "red packets were dropped")


if __name__ == "__main__":
    if os.environ.get("GL_DEBUG"):
        sys.argv[1:] = ["small"]        # the rest would take too long
    tap.main()
