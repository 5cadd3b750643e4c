# SPDX-License-Identifier: GPL-2.0
"""The cost of PFC for a victim: a long flow that shares only a trunk with an incast.

	scripts/experiment victim --cc dctcp,tlt_dctcp
	scripts/experiment victim --cc dctcp --pause none

	s0 ... s5 ---- :     : trunk :     : ---- r0    --flows from s0 ... s5, all at once
	       s6 ---- : sw0 : ----> : sw1 : ---- r1    the victim, an endless flow from s6

The incast fills r0's port.  With PFC sw1 then pauses the trunk, and with it the victim, although
the port to r1 is idle (TLT's paper, 7.4).
"""

from experiments.kinds.victim import schedule
from experiments.traffic import fabric
from lab import units
from lab.measure import report
from lab.net import port as ports

COLUMNS = (
    ("cc", "cc", "{}"), ("pause", "pause", "{}"), ("flows", "flows", "{}"),
    ("p50 ms", "p50", "ms"), ("p99 ms", "p99", "ms"), ("max ms", "max", "ms"),
    ("victim Gbit/s", "victim_gbit", "{:.2f}"), ("pauses", "pauses", "{}"),
    ("trunk paused ms", "paused", "ms"), ("RTOs", "timeouts", "{}"), ("probes", "probes", "{}"),
    ("drop red", "drops_red", "{}"), ("green", "drops_green", "{}"), ("marks", "marks", "{}"),
    ("peak kB", "peak", "kB"), ("late us", "late", "us"),
)
# The paper's testbed: 10 Gbit/s to the hosts, 40 between the switches, 12 MB, of which one port
# alone may have a half (alpha 1, as in its 7.1).
DEFAULTS = {"cc": "dctcp,tlt_dctcp", "rate": "10gbit", "delay": "5us", "limit": "6m",
            "rounds": 4, "gap": "60ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--senders", type=units.count, default="6", help="of the incast (6)")
    add("--flows", type=units.count, default="600", help="of all senders together (600)")
    add("--bytes", type=units.size, default="32k", help="of each flow (32k)")
    add("--trunk", type=units.rate, default="40gbit", help="between the switches (40gbit)")
    add("--red", type=units.size, default="270k", help="colour threshold of hosts' ports (270k)")
    add("--ecn", type=units.size, default="65k", help="marking threshold of hosts' ports (65k)")
    add("--pause", choices=(*ports.PAUSES, "none"), default="all",
        help="packets that PFC protects from loss (all)")
    add("--lead", type=units.time, default="20ms", help="of the victim (20ms)")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.fresh or args.plot or args.port:
        return "victim: this experiment does not have --fresh, --plot and --port"
    if args.flows % args.senders or args.flows > 10_000 * args.senders:
        return "--flows: a multiple of --senders, and at most 10000 of each"
    if not (args.bytes and args.red and args.ecn):
        return "--bytes, --red, --ecn: more than 0"
    if args.trunk < args.rate:
        return "--trunk: at least --rate"
    if args.red * args.trunk > args.limit * args.rate:
        return "--red: in proportion to the trunk's rate, at most --limit"
    if args.gap * args.rate < 8e9 * args.flows * args.bytes:
        return "--gap: at least the transmission time of an incast's --bytes"
    return None


def configure(args):
    """(configuration, jobs)."""
    keys = "senders flows bytes trunk red ecn pause lead".split()
    config = {key: getattr(args, key) for key in keys}
    config.update(topology="trunk", pause=None if args.pause == "none" else args.pause)
    return config, [{"cc": cc, "flows": args.flows} for cc in args.cc.split(",")]


def summary(config, result):
    """A run's row."""
    row = {"cc": result["cc"], "flows": result["flows"], "pause": config["pause"] or "none"}
    if "fct_ns" not in result:
        return dict(row, error=result["error"], unfinished=0)
    plan = schedule.Schedule(config)
    times = sorted(fct for message, fct in zip(plan.messages, result["fct_ns"])
                   if plan.kind(message) == schedule.INCAST and fct)
    tcp = result["counters"]["tcp"]
    if times:
        row.update({name: report.percentile(times, percent) for name, percent in
                    (("p50", 50), ("p99", 99), ("max", 100))})
    row.update(
        fabric.ports([result]), unfinished=len(plan.messages) - 1 - len(times),
        timeouts=tcp["TCPTimeouts"], probes=tcp["TCPLossProbes"], late=result["late_ns"]["mean"],
        victim_gbit=8 * result["bytes"]["victim"] / (plan.end - config["lead"]))
    if config["pause"]:
        # PFC pauses sw0's port to the trunk, and no port to a host.
        row["paused"] = result["switches"]["up"]["color"].get("pause.paused.0", 0)
    return row


def summaries(config, results):
    """A row for each congestion control."""
    return [summary(config, result) for result in results]
