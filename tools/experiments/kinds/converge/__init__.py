# SPDX-License-Identifier: GPL-2.0
"""The convergence time of a flow that joins a long flow: until each has half of the link.

	scripts/experiment converge --cc dcqcn,dart
	scripts/experiment converge --cc dart --rounds 1024
	scripts/experiment converge --plot out/converge

A join is a message of --bytes, on a connection that was idle for --gap; --rounds is the number of
joins.  The convergence time begins with the joining flow's first packet at the switch, and ends
when both flows send at half of the line rate, within 5 %, until the message ends (joins.py).  Its
unit is the round trip of the idle network.
"""

import math

from lab import units
from lab.measure import report
from lab.net import port as ports

RUN = 32                # joins of a run: the maximum for the capture's buffer at 40 Gbit/s
PER_GBIT = 2250         # bytes of the threshold: Dart's 22.5 kB at 10 Gbit/s (§VI-A)

COLUMNS = (
    ("cc", "cc", "{}"), ("Gbit/s", "gbit", "{:g}"), ("joins", "joins", "{}"),
    ("RTTs p50", "rtts_p50", "{:.2f}"), ("p90", "rtts_p90", "{:.2f}"),
    ("p99", "rtts_p99", "{:.2f}"), ("p99.9", "rtts_p99.9", "{:.2f}"),
    ("never", "never", "{}"), ("message ms", "p50", "ms"), ("old Gbit/s", "bulk_gbit", "{:.2f}"),
    ("marks", "marks", "{}"), ("drops", "drops", "{}"), ("peak kB", "peak", "kB1"),
    ("RTOs", "timeouts", "{}"),
)

DEFAULTS = {"cc": "dcqcn,dart", "rate": "10gbit", "delay": "5us", "limit": "2m",
            "rounds": 64, "gap": "1ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--bytes", type=units.size, help="of a message (60 RTTs at half of the line rate)")
    add("--lead", type=units.time, default="5ms", help="of the old flow (5ms)")
    add("--ecn", type=units.size, help="marking threshold (22500 bytes for each 10 Gbit/s)")
    ports.add_pause(add)


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.fresh:
        return "converge: joins are messages of a persistent connection"
    if args.bytes and args.bytes * 16e9 < 40 * 4 * args.delay * args.rate:
        return "--bytes: at least 40 round trips at half of the line rate"
    return None


def configure(args):
    """(configuration, jobs)."""
    ecn = args.ecn or PER_GBIT * args.rate // 10**9
    size = args.bytes or 60 * 4 * args.delay * args.rate // (16 * 10**9)
    port = args.port or (f"color rate {args.rate}bit overhead 24 limit {args.limit} ecn {ecn}"
                         + ports.pausing(args.pause, args.delay))
    runs = [RUN] * (args.rounds // RUN) + [args.rounds % RUN] * bool(args.rounds % RUN)
    return ({"senders": 2, "bytes": size, "port": port, "lead": args.lead, "bulk": 1,
             "duration": 0, "red": 0, "ecn": ecn, "pause": args.pause},
            [{"cc": cc, "flows": 1, "rounds": rounds}
             for cc in args.cc.split(",") for rounds in runs])


def summaries(config, results):
    """A row for each congestion control, over all its runs."""
    rows = []
    for cc in dict.fromkeys(result["cc"] for result in results):
        runs = [result for result in results if result["cc"] == cc]
        row = report.summary(config, runs[0])
        rows.append(row)
        if any("converged" not in run for run in runs):
            continue
        every = [report.summary(config, run) for run in runs]
        for name in ("marks", "drops", "timeouts", "unfinished"):
            row[name] = sum(r[name] for r in every)
        if row["pauses"] is not None:
            for name in ("pauses", "paused"):
                row[name] = sum(r[name] for r in every)
        row["peak"] = max(r["peak"] for r in every)
        for name in ("bulk_gbit", "p50"):
            row[name] = sum(r[name] for r in every) / len(every)
        times = [time for run in runs for time in run["converged"]]
        ordered = sorted(time / (4 * config["delay"]) for time in times if time is not None)
        row.update(gbit=config["rate"] / 10**9, joins=len(times),
                   never=len(times) - len(ordered), converged=times, rates=runs[0]["rates"])
        for percent in (50, 90, 99, 99.9):
            row[f"rtts_p{percent:g}"] = report.percentile(ordered, percent) if ordered \
                else math.nan
    return rows


def plot(config, _results, rows, args):
    """Draw both flows' rates around a join, and the distribution of the convergence times."""
    from experiments.kinds.converge.plot import plot as draw   # matplotlib takes a second to import
    draw(config, rows, args.plot)
