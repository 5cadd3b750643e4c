# SPDX-License-Identifier: GPL-2.0
"""The incast: N senders answer one receiver at the same time.

	scripts/experiment incast --cc dctcp,tlt_dctcp --fan-in 80,320

Every flow is one block of bytes on a persistent connection.  The ideal, a lower bound, is all
bytes, headers included, at line rate, plus the propagation delay to the receiver.  --segments adds
the delivery time of segments, from the first transmission to the ACK, retransmissions included.
"""

from experiments.kinds.incast import segments
from experiments.machines import inventory
from lab import units
from lab.measure import report
from lab.net.port import add_pause

COLUMNS = report.COLUMNS
DEFAULTS = {"cc": "reno,cubic,dctcp,tlt_reno,tlt_cubic,tlt_dctcp", "rate": "40gbit",
            "delay": "5us", "limit": "1800k", "rounds": 5, "gap": "10ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--senders", type=units.count, default=8)
    add("--flows", type=units.count, default=20, help="of each sender (20)")
    add("--fan-in", type=units.several(units.count), metavar="N,...",
        help="flows in all, several runs; instead of --flows")
    add("--bytes", type=units.size, default="32k", help="of each flow (32k)")
    add("--red", type=units.size_or_auto, default="270k", help="colour threshold, or auto (270k)")
    add("--ecn", type=units.size, default="200k", help="marking threshold")
    add("--bulk", type=int, default=0, help="endless flows beside the incast")
    add("--lead", type=units.time, default="20ms", help="of the bulk flows (20ms)")
    add("--duration", type=units.time, default="0ms",
        help="minimum measured time (0ms)")
    add("--request", action="store_true",
        help="the receiver requests each block, and the time begins with its request")
    inventory.add_arguments(add, "--senders, --rate, --delay")
    add("--cdf", type=int, help="the fan-in of the plot's CDF")
    add_pause(add)
    segments.add_argument(add)


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.request and args.fresh:
        return "--request: not with --fresh"
    if args.lab:
        if args.fresh or args.bulk or args.segments or args.pause:
            return "--lab: without --fresh, --bulk, --segments, --pause"
        args.senders, args.request = len(args.lab.senders), True
    return segments.wrong(args)


def configure(args):
    """(configuration, jobs)."""
    keys = "senders bytes red ecn bulk lead duration port segments pause request".split()
    fan_in = args.fan_in or [args.senders * args.flows]
    args.cdf = args.cdf or max(fan_in)
    config = {key: getattr(args, key) for key in keys}
    return (config,
            [{"cc": cc, "flows": n} for cc in args.cc.split(",") for n in fan_in])


def summaries(config, results):
    """A row for each run."""
    return [report.summary(config, result) for result in results]


def on_machines():
    """The hosts of a lab during this experiment."""
    from experiments.machines.incast import Incast
    return Incast


def plot(config, results, rows, args):
    """Draw the tail against the fan-in, and one CDF."""
    from experiments.kinds.incast.plot import plot as draw   # matplotlib takes a second to import
    draw(config, results, rows, args.plot, args.cdf)
