# SPDX-License-Identifier: GPL-2.0
"""wrk requests pages of eight parts from a web server; each part is in another memcached.

	scripts/experiment memcached --cc dctcp,tlt_dctcp --users 4,10,20

	wrk --- HTTP ---> r (NGINX, Lua) --- GET ---> s0 ... s7 (memcached)

For each page the web server requests --bytes from all memcached servers at once, and answers when
it has all parts: the incast is at the web server's port, with a fan-in of --users times the
servers.  Each of wrk's --users waits for its page, pauses for --think, and requests the next one on
the same connection; all users begin at once.  wrk measures the time of each page.
"""

from experiments.apps import rows as app_rows
from lab import units

COLUMNS = (
    ("cc", "cc", "{}"), ("users", "users", "{}"), ("fan-in", "flows", "{}"),
    ("pages", "samples", "{}"), ("p50 ms", "p50", "ms"), ("p99 ms", "p99", "ms"),
    ("%", "p99_gain", "{:+.1f}"), ("p99.9 ms", "p99.9", "ms"), ("max ms", "max", "ms"),
    ("%", "max_gain", "{:+.1f}"), *app_rows.NETWORK,
)
DEFAULTS = dict(app_rows.DEFAULTS, rounds=1, gap="0ms")
SECOND = 10**9


def add_arguments(add):
    """Add the options of this experiment."""
    app_rows.add_arguments(add)
    add("--users", type=units.several(units.count), default="4,10,20,40",
        metavar="N,...", help="wrk's connections, several runs (4,10,20,40)")
    add("--think", type=units.time, default="20ms", help="pause between two pages (20ms)")
    add("--duration", type=units.time, default="1s", help="whole seconds (1s)")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.rounds != 1 or args.gap:
        return "--rounds, --gap: this experiment does not have them"
    if args.duration < SECOND or args.duration % SECOND or args.think % 10**6:
        return "--duration in whole seconds, --think in whole milliseconds, wrk's units"
    if not args.think or args.think >= args.duration:
        return "--think: more than 0, and less than --duration"
    if max(args.users) > 1000:
        return "--users: at most 1000"
    if args.bytes >= 1 << 20:
        return "--bytes: less than 1m, memcached's limit of a value"
    return app_rows.wrong(args)


def configure(args):
    """(configuration, jobs)."""
    config = app_rows.configure(args)
    config.update(think=args.think, duration=args.duration)
    return config, [{"cc": cc, "flows": users * args.servers, "users": users}
                    for cc in args.cc.split(",") for users in args.users]


def summaries(config, results):
    """All rows; a TLT variant's row has its difference from its base's row."""
    rows = []
    for result in results:
        row = app_rows.summary(config, result)
        row["users"] = result["users"]
        rows.append(row)
    return app_rows.compare(rows)


def plot(config, _results, rows, args):
    """Draw the tail and the maximum against the fan-in."""
    from experiments.kinds.memcached.plot import plot as draw   # matplotlib takes a second to import
    draw(config, rows, args.plot)
