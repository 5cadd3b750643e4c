# SPDX-License-Identifier: GPL-2.0
"""First RTTs: N idle connections to one receiver send a message each.

	scripts/experiment first-rtt --bytes 30k,50k

N senders start a message each at once, on connections that have been idle for longer than an RTO,
and repeat that after --gap: every burst is a first RTT, without a handshake before it (--fresh:
with one).  The ideal is all bytes, headers included, at line rate, plus half an RTT of propagation.
"x ideal" is the ratio of a burst's slowest message, in the median burst.

With --spread TIME each message of a burst starts at a random time, uniform in 0 ... TIME after the
burst's start, and its completion time is counted from there.  --seed selects the start times, which
are the same for all congestion controls.  The ideal is then a link that serves the messages in the
order of their starts.
"""

import statistics

from lab import units
from lab.measure import report
from lab.net import port as ports

BASELINE = "xpass"

COLUMNS = (
    ("cc", "cc", "{}"), ("senders", "flows", "{}"), ("bytes", "bytes", "{}"),
    ("red", "red", "{}"),
    ("p50 ms", "p50", "ms"), ("mean ms", "mean", "ms"), ("p99 ms", "p99", "ms"),
    ("max ms", "max", "ms"), ("x ideal", "ratio", "{:.2f}"),
    ("p50 %", "p50_gain", "{:+.1f}"), ("mean %", "mean_gain", "{:+.1f}"),
    ("RTOs", "timeouts", "{}"), ("drop red", "drops_red", "{}"),
    ("yellow", "drops_yellow", "{}"), ("green", "drops_green", "{}"),
    ("unsched", "unscheduled", "{}"), ("sched", "scheduled", "{}"),
    ("wasted", "wasted", "{}"),
    ("peak kB", "peak", "kB1"), ("RTT 1: peak", "queue_peak", "kB1"),
    ("mean kB", "queue", "kB1"), ("used", "used", "{:.1%}"),
)

DEFAULTS = {"cc": "xpass,aeolus_xpass,dctcp,tlt_dctcp", "rate": "10gbit",
            "delay": "3.5us", "limit": "200k", "rounds": 50, "gap": "30ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--senders", type=units.several(units.count), default="7", metavar="N,...",
        help="one message each, several runs (7)")
    add("--bytes", type=units.several(units.size), default="30000,40000,50000",
        metavar="N,...", help="of a message, several runs (30000,40000,50000)")
    add("--spread", type=units.time, default="0us", metavar="TIME",
        help="a burst's messages start at random times within this time (0us: together)")
    add("--seed", type=units.count, default=1, metavar="N", help="of these times (1)")
    add("--red", type=units.several(units.size), default="6k", metavar="N,...",
        help="threshold of the queue above which the credit transports' port drops unscheduled"
        " packets, several runs (6k)")
    add("--unscheduled", choices=ports.UNSCHEDULED, default="drop",
        help="the port drops unscheduled packets above --red, or queues them behind all others,"
        " in the same memory (drop)")
    ports.add_pause(add)
    add("--classify", choices=("dscp", "ecn"), default="dscp",
        help="the field by which the port recognizes them (dscp)")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if max(args.senders) > 64:
        return "--senders: at most 64, the load generator's maximum"
    if not all(args.bytes + args.red):
        return "--bytes and --red: more than 0"
    if args.unscheduled == "behind" and args.classify != "dscp":
        return "--unscheduled behind: classifies by DSCP only"
    if max(args.red) > args.limit:
        return "--red: a threshold above --limit has no effect"
    if args.gap <= args.rto_min:
        return "--gap: an idle connection's first RTT begins after an RTO: --rto-min"
    if 2 * args.spread > args.gap:
        return "--spread: at most half of --gap, which separates the bursts"
    return None


def configure(args):
    """(configuration, jobs): each congestion control with the switch port that it needs."""
    line = (f"color rate {args.rate}bit limit {args.limit}"
            + ports.pausing(args.pause, args.delay))

    def port(cc, red):
        if args.port:
            return args.port
        if units.preset(cc):
            return f"{line} preset {units.preset(cc)}"
        if units.has_credits(cc) and args.unscheduled == "behind":
            return f"{line} {ports.behind(0)}"
        if units.has_credits(cc):
            return f"{line} classify {args.classify} red {red} count queue"
        return f"{line} preset tlt"

    jobs = [{"cc": cc, "flows": n, "bytes": size, "red": red, "qdisc": port(cc, red)}
            for cc in args.cc.split(",")
            for red in (args.red if units.has_credits(cc) else args.red[:1])
            for n in args.senders for size in args.bytes]
    return {"senders": max(args.senders), "port": args.port or line,
            "bytes": 0, "ecn": 0, "bulk": 0, "lead": 0, "duration": 0,
            "greenlane_ecn": args.classify == "ecn",
            "spread": args.spread, "seed": args.seed, "pause": args.pause}, jobs


def ideal_ns(config, size, starts):
    """Completion time of the slowest of a burst's messages of this size, if the link is always busy
    and serves the messages in the order of their starts.  Any other order has a slower one."""
    one, two = (report.line_ns(dict(config, bytes=size), n) for n in (1, 2))
    done = slowest = 0
    for start in sorted(starts):
        done = max(done, start) + two - one
        slowest = max(slowest, done - start)
    # line_ns() ends with the start of the last packet.
    return slowest - (two - one) + one + (2 + 4 * config["fresh"]) * config["delay"]


def summary(config, result):
    """A run's row: the incast's, and the queue and the utilisation in the first RTT."""
    row = report.summary(config, result)
    row.update({key: result[key] for key in ("bytes", "red")})
    if "fct_ns" not in result:
        return row
    together = [[0] * row["flows"]] * len(result["fct_ns"])
    ideals = [ideal_ns(config, row["bytes"], starts)
              for starts in result.get("began_ns", together)]
    row["ideal"] = statistics.median(ideals)
    row["ratio"] = statistics.median(max(times) / ideal
                                     for times, ideal in zip(result["fct_ns"], ideals))
    if not units.has_credits(row["cc"]):
        row["red"] = None
    ours = result["senders"]["greenlane"]
    if units.has_credits(row["cc"]):
        row.update(unscheduled=ours["UnscheduledSent"], scheduled=ours["ScheduledSent"],
                   credits=result["receiver"]["greenlane"]["CreditSent"],
                   wasted=ours["CreditWasted"])
    seen = result["first_rtt"]
    row["used"] = statistics.mean(seen["used"])
    row["queue"] = statistics.mean(seen["queue"])
    if "bands" not in result["qdisc"]:      # with bands a packet's wait is not the queue's length
        row["queue_peak"] = max(seen["peak"])
    return row


def summaries(config, results):
    """All rows, each with its difference from the baseline's row, in percent."""
    rows = [summary(config, result) for result in results]
    base = {(row["flows"], row["bytes"], row["red"]): row
            for row in rows if row["cc"] == BASELINE and "p50" in row}
    for row in rows:
        # Other transports' ports have no such threshold: compare with its first value.
        other = next((b for key, b in base.items()
                      if key[:2] == (row["flows"], row["bytes"])
                      and row["red"] in (key[2], None)), None)
        if other and row is not other and "p50" in row:
            for name in ("p50", "mean"):
                row[f"{name}_gain"] = 100 * (row[name] / other[name] - 1)
    return rows


def plot(config, results, rows, args):
    """Draw completion times or, for several thresholds, the queue and the utilisation."""
    from experiments.kinds.first_rtt.plot import plot as draw   # matplotlib takes a second to import
    draw(config, results, rows, args.plot)
