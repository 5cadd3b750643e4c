# SPDX-License-Identifier: GPL-2.0
"""wrk asks a web server for pages of eight parts, each of them in another memcached.

	scripts/experiment memcached --cc dctcp,tlt_dctcp --users 4,10,20

	wrk --- HTTP ---> r (NGINX, Lua) --- GET ---> s0 ... s7 (memcached)

The web server asks all its memcached at once for --bytes each, and answers when it has
all: the incast is at its port, --users times the servers wide.  Each of wrk's --users
waits for its page, thinks for --think, and asks again, on connections that last; all
begin at once.  The time is wrk's, of a page.
"""

from lab import units
from lab.apps import rows as app_rows

COLUMNS = (
    ("cc", "cc", "{}"), ("users", "users", "{}"), ("fan-in", "flows", "{}"),
    ("pages", "samples", "{}"), ("p50 ms", "p50", "ms"), ("p99 ms", "p99", "ms"),
    ("%", "p99_gain", "{:+.1f}"), ("p99.9 ms", "p99.9", "ms"), ("max ms", "max", "ms"),
    ("%", "max_gain", "{:+.1f}"), *app_rows.NETWORK,
)
DEFAULTS = dict(app_rows.DEFAULTS, rounds=1, gap="0ms")
SECOND = 10**9


def add_arguments(add):
    """Those that only this experiment has."""
    app_rows.add_arguments(add)
    add("--users", type=units.several(units.count), default="4,10,20,40",
        metavar="N,...", help="wrk's connections, several runs (4,10,20,40)")
    add("--think", type=units.time, default="20ms", help="between two pages (20ms)")
    add("--duration", type=units.time, default="1s", help="whole seconds (1s)")


def wrong(args):
    """What the command line cannot mean, or nothing."""
    if args.rounds != 1 or args.gap:
        return "--rounds, --gap: not of this experiment"
    if args.duration < SECOND or args.duration % SECOND or args.think % 10**6:
        return "--duration in whole seconds, --think in whole milliseconds, as wrk has them"
    if not args.think or args.think >= args.duration:
        return "--think: more than 0, and less than --duration"
    if max(args.users) > 1000:
        return "--users: at most 1000"
    if args.bytes >= 1 << 20:
        return "--bytes: less than 1m, which is what memcached takes"
    return app_rows.wrong(args)


def configure(args):
    """(configuration, jobs)."""
    config = app_rows.configure(args)
    config.update(think=args.think, duration=args.duration)
    return config, [{"cc": cc, "flows": users * args.servers, "users": users}
                    for cc in args.cc.split(",") for users in args.users]


def summaries(config, results):
    """All rows, each TLT form's with its difference to its base's."""
    rows = []
    for result in results:
        row = app_rows.summary(config, result)
        row["users"] = result["users"]
        rows.append(row)
    return app_rows.compare(rows)


def plot(config, _results, rows, args):
    """The tail and the longest against the fan-in."""
    from lab.experiments.memcached.plot import plot as draw   # matplotlib takes a second to import
    draw(config, rows, args.plot)
