# SPDX-License-Identifier: GPL-2.0
"""Fairness of long flows over one link, RTT by RTT, after flows join an old one.

	scripts/experiment fairness --cc xpass
	scripts/experiment fairness --cc xpass --senders 10 --together

One flow uses the link alone for --lead.  Then a flow of --bytes from each other sender joins it
(--together: all begin at once).  Jain's index is computed from the bytes of each flow in windows of
ten RTTs, some 115 packets at 10 Gbit/s.  Credits leave 1538 bytes of 1622 of the link rate to data
(ExpressPass, 3.1): that is the data share.

"Fair after" is the first window with an index of 0.98 or more, in RTTs from the join.  An unfair
transport has such windows by chance, and flows that start together begin with some.  "Stays" is the
first window from which the index remains at 0.98 or more until the first flow ends.  It is null,
and "-" in the table, if the last fair period is shorter than 50 RTTs.  --bytes sets the length of
the run: 8 MB last for 480 RTTs on a link of 10 Gbit/s, or for 4,800 if ten flows share it.
"""

from lab import units
from lab.measure import report
from lab.net import port as ports

WINDOW = 10                     # RTTs
LEAST = 50                      # RTTs: minimum length of the new flow and of the last fair period
GAPS = 24                       # FCS, preamble and gap, which a qdisc does not count
DATA, CREDIT = 1538, 84         # on the wire
FAIR = 0.98

COLUMNS = (
    ("cc", "cc", "{}"), ("Jain 10..20", "jain_10", "{:.3f}"),
    ("20..50", "jain_20", "{:.3f}"), ("all after 10", "jain_all", "{:.4f}"),
    ("least", "jain_least", "{:.3f}"), ("fair after RTTs", "fair", "{}"),
    ("stays", "stays", "{}"), ("of RTTs", "rtts", "{}"),
    ("of data share", "used", "{:.1%}"), ("drop red", "drops_red", "{}"),
    ("yellow", "drops_yellow", "{}"), ("green", "drops_green", "{}"),
    ("peak kB", "peak", "kB1"), ("RTOs", "timeouts", "{}"),
)

DEFAULTS = {"cc": "xpass,aeolus_xpass", "rate": "10gbit", "delay": "3.5us",
            "limit": "200k", "rounds": 1, "gap": "30ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--senders", type=units.count, default="2", help="with a flow each (2)")
    add("--bytes", type=units.size, default="8m", help="of each flow that joins (8m)")
    add("--lead", type=units.time, default="20ms", help="of the old flow (20ms)")
    ports.add_pause(add)
    add("--together", action="store_true", help="all begin at once")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.fresh or args.rounds != 1:
        return "fairness: this experiment does not have --fresh and --rounds"
    if not 2 <= args.senders <= 64:     # loadgen/incast
        return "--senders: from 2 to 64"
    if args.bytes * 8e9 < LEAST * 4 * args.delay * args.rate:
        return f"--bytes: at least {LEAST} round trips at line rate"
    if args.plot:
        return "--plot: the series are in --json"
    return None


def configure(args):
    """(configuration, jobs)."""
    port = args.port or (f"color rate {args.rate}bit limit {args.limit} preset aeolus"
                         + ports.pausing(args.pause, args.delay)
                         # Credits (band 0) are lost by design.
                         + " pause-map 7 none" * bool(args.pause))
    config = {"senders": args.senders, "bytes": args.bytes, "port": port, "lead": args.lead,
              "bulk": int(not args.together), "duration": 0, "red": 0, "ecn": 0, "pause": args.pause}
    flows = args.senders - (not args.together)
    return config, [{"cc": cc, "flows": flows} for cc in args.cc.split(",")]


def stays(series):
    """The first window from which all have an index of at least FAIR; None if they are fewer than
    LEAST."""
    unfair = next((i for i, seen in enumerate(reversed(series)) if seen < FAIR), len(series))
    return len(series) - unfair if unfair >= LEAST else None


def fairness(shares, config):
    """Fairness of the flows' bytes per RTT, from the RTT in which the first new flow joins (without
    an old flow: begins) until the first flow ends."""
    begin = sorted(next(i for i, n in enumerate(seen) if n) for seen in shares)[config["bulk"]]
    # The last RTT in which all flows send may be incomplete, so it is excluded.
    end = min(max(i for i, n in enumerate(seen) if n) for seen in shares)
    rounds = list(zip(*(seen[begin:end] for seen in shares)))

    def index(first, last):
        return report.jain([sum(seen) for seen in zip(*rounds[first:last])])

    series = [index(i, i + WINDOW) for i in range(0, len(rounds) - WINDOW + 1)]
    # Bytes on the link if all packets are full, gaps included.
    full = report.MTU + 14
    sent = sum(map(sum, rounds[WINDOW:])) * (full + GAPS) / full
    time = (len(rounds) - WINDOW) * 4 * config["delay"]
    return {"jain_10": index(10, 20), "jain_20": index(20, 50), "jain_all": index(10, None),
            "jain_least": min(series[WINDOW:]), "jain": series,
            "fair": next((i for i, seen in enumerate(series) if seen >= FAIR), None),
            "stays": stays(series), "rtts": len(rounds),
            "used": sent * 8e9 / time / (config["rate"] * DATA / (DATA + CREDIT))}


def summary(config, result):
    """A run's row."""
    row = report.summary(config, result)
    if "shares" not in result:
        return row
    if len(result["shares"]) < config["senders"]:
        return row | {"error": "a flow sent no data"}
    return row | fairness(list(result["shares"].values()), config)


def summaries(config, results):
    """A row for each run."""
    return [summary(config, result) for result in results]
