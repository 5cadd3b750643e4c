# SPDX-License-Identifier: GPL-2.0
"""Two long flows over one link, one of them old: who has how much, RTT by RTT?

	scripts/experiment fairness --cc xpass

A flow that has had the line for some time is joined by another of --bytes
(--together: both begin at once).  Jain's index is that of the bytes that each had in
ten RTTs, which are some 115 packets at 10 Gbit/s; the line's share for data is what
credits leave of it, 1538 bytes of 1622 (ExpressPass, 3.1).
"""

from lab import units
from lab.measure import report

OLD, NEW = "10001", "10000"     # ports: the load generator's bulk flow comes last
WINDOW = 10                     # RTTs
LEAST = 50                      # RTTs that the new flow has to last
GAPS = 24                       # FCS, preamble and gap, which a qdisc does not count
DATA, CREDIT = 1538, 84         # on the wire
FAIR = 0.98

COLUMNS = (
    ("cc", "cc", "{}"), ("Jain 10..20", "jain_10", "{:.3f}"),
    ("20..50", "jain_20", "{:.3f}"), ("all after 10", "jain_all", "{:.4f}"),
    ("least", "jain_least", "{:.3f}"), ("fair after RTTs", "fair", "{}"),
    ("of data share", "used", "{:.1%}"), ("drop red", "drops_red", "{}"),
    ("yellow", "drops_yellow", "{}"), ("green", "drops_green", "{}"),
    ("peak kB", "peak", "kB1"), ("RTOs", "timeouts", "{}"),
)

DEFAULTS = {"cc": "xpass,aeolus_xpass", "rate": "10gbit", "delay": "3.5us",
            "limit": "200k", "rounds": 1, "gap": "30ms"}


def add_arguments(add):
    """Those that only this experiment has."""
    add("--bytes", type=units.size, default="8m", help="of the flow that joins (8m)")
    add("--lead", type=units.time, default="20ms", help="of the old flow (20ms)")
    add("--together", action="store_true", help="both begin at once")


def wrong(args):
    """What the command line cannot mean, or nothing."""
    if args.fresh or args.rounds != 1:
        return "fairness: one round, on connections that last"
    if args.bytes * 8e9 < LEAST * 4 * args.delay * args.rate:
        return f"--bytes: so much as the line carries in {LEAST} round trips"
    if args.plot:
        return "--plot: the series are in --json"
    return None


def configure(args):
    """(configuration, jobs)."""
    port = args.port or f"color rate {args.rate}bit limit {args.limit} preset aeolus"
    config = {"senders": 2, "bytes": args.bytes, "port": port, "lead": args.lead,
              "bulk": int(not args.together), "duration": 0, "red": 0, "ecn": 0}
    return config, [{"cc": cc, "flows": 1 + args.together} for cc in args.cc.split(",")]


def jain(shares):
    """Jain's index of fairness: 1 if all are equal, 1/n if one has it all."""
    return sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares)) if any(shares) else 0


def summary(config, result):
    """A run's row: fairness from the RTT in which both flows are there."""
    row = report.summary(config, result)
    if "shares" not in result:
        return row
    old, new = (result["shares"][port] for port in (OLD, NEW))
    begin = max(next(i for i, n in enumerate(seen) if n) for seen in (old, new))
    # The last window of the two that is whole.
    end = min(max(i for i, n in enumerate(seen) if n) for seen in (old, new))
    pairs = list(zip(old[begin:end], new[begin:end]))

    def index(first, last):
        return jain([sum(pair[k] for pair in pairs[first:last]) for k in (0, 1)])

    series = [index(i, i + WINDOW) for i in range(0, len(pairs) - WINDOW + 1)]
    row.update(jain_10=index(10, 20), jain_20=index(20, 50), jain_all=index(10, None),
               jain_least=min(series[WINDOW:]),
               fair=next((i for i, seen in enumerate(series) if seen >= FAIR), None))
    # Full packets: what the line carries of them, gaps included.
    full = report.MTU + 14
    sent = sum(map(sum, pairs[WINDOW:])) * (full + GAPS) / full
    time = (len(pairs) - WINDOW) * 4 * config["delay"]
    row["used"] = sent * 8e9 / time / (config["rate"] * DATA / (DATA + CREDIT))
    row["jain"] = series
    return row


def summaries(config, results):
    """A row for each run."""
    return [summary(config, result) for result in results]
