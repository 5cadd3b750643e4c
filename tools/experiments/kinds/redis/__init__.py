# SPDX-License-Identifier: GPL-2.0
"""Redis behind eight NGINX servers: simultaneous requests store a value each.

	scripts/experiment redis --cc dctcp,tlt_dctcp --requests 20,60,100,140,180
	scripts/experiment redis --requests 152 --background 8m --rounds 4

	client --- HTTP ---> s0 ... s7 (NGINX, Lua) --- SET ---> r (Redis)

The client sends all --requests at once, spread evenly over the web servers, on persistent
connections.  For each request the web server SETs --bytes in Redis, on a persistent connection of
that request.  The client measures the time from the first request to each answer.  The table has
percentiles over all repetitions, and the mean of their p99 values, as in the paper.  --background
adds a SET of a value of that size, which begins --lead earlier.  The repetitions are --gap and up
to a tenth more apart, a random time selected by --seed, so that they begin at different phases of
the kernel's 1 ms tick.
"""

import statistics

from experiments.apps import rows as app_rows
from lab import units
from lab.measure import report

COLUMNS = (
    ("cc", "cc", "{}"), ("requests", "flows", "{}"),
    ("p50 ms", "p50", "ms"), ("p99 ms", "p99", "ms"), ("a round's", "p99_mean", "ms"),
    ("sd", "p99_sd", "ms"), ("%", "p99_mean_gain", "{:+.1f}"), ("max ms", "max", "ms"),
    ("%", "max_gain", "{:+.1f}"), *app_rows.NETWORK,
    ("background Gbit/s", "background_gbit", "{:.2f}"), ("sd", "background_sd", "{:.2f}"),
    ("%", "background_gbit_gain", "{:+.1f}"),
)
DEFAULTS = dict(app_rows.DEFAULTS, rounds=12, gap="50ms")


def add_arguments(add):
    """Add the options of this experiment."""
    app_rows.add_arguments(add)
    add("--requests", type=units.several(units.count), default="20,60,100,140,180",
        metavar="N,...", help="at once, several runs (20,60,100,140,180)")
    add("--background", type=units.size, default=0, metavar="SIZE",
        help="of one more value, stored in the background (0: no background)")
    add("--lead", type=units.time, default="500us",
        help="head start of the background (500us)")
    add("--seed", type=units.count, default="1", help="of the gaps (1)")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if max(args.requests) > 8000:
        return "--requests: at most 8000, because of Redis's limit of clients"
    if args.background > 256 << 20:
        return "--background: at most 256m"
    if args.background and args.lead * args.rate >= args.background * 8e9:
        return "--lead: the background would be complete before the requests"
    return app_rows.wrong(args)


def configure(args):
    """(configuration, jobs)."""
    config = app_rows.configure(args)
    config.update(background=args.background, lead=args.lead, seed=args.seed)
    return config, [{"cc": cc, "flows": n} for cc in args.cc.split(",")
                    for n in args.requests]


def _mean(row, name, values):
    """Add mean and standard deviation over the repetitions."""
    if values:
        row[f"{name}_mean"] = statistics.mean(values)
        row[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else 0


def summary(config, result):
    """A run's row."""
    row = app_rows.summary(config, result)
    if "fct_ns" not in result:
        return row
    rounds = [sorted(filter(None, times)) for times in result["fct_ns"]]
    _mean(row, "p99", [report.percentile(times, 99) for times in rounds if times])
    _mean(row, "background", [8 * config["background"] / took
                              for took in result["background_ns"] if took])
    row["background_gbit"] = row.get("background_mean")
    return row


def summaries(config, results):
    """All rows; a TLT variant's row has its difference from its base's row."""
    rows = [summary(config, result) for result in results]
    return app_rows.compare(rows, ("p99", "p99_mean", "max", "background_gbit"))


def plot(config, _results, rows, args):
    """Draw the tail, and the maximum or the background's goodput, against the requests."""
    from experiments.kinds.redis.plot import plot as draw   # matplotlib takes a second to import
    draw(config, rows, args.plot)
