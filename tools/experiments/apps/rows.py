# SPDX-License-Identifier: GPL-2.0
"""Common parts, on the host, of the experiments with applications: options, programs, rows."""

import subprocess
import sys

from lab import TOP, units
from lab.measure import report
from lab.net.port import add_pause

# scripts/apps adds their dependencies: lua-nginx-redis depends on NGINX and its Lua module.
PACKAGES = ("redis-server", "lua-nginx-redis", "memcached", "wrk")

DEFAULTS = {"cc": "reno,tlt_reno,dctcp,tlt_dctcp", "rate": "40gbit", "delay": "5us",
            "limit": "1800k"}

NETWORK = (
    ("RTOs", "timeouts", "{}"), ("probes", "probes", "{}"), ("drop red", "drops_red", "{}"),
    ("yellow", "drops_yellow", "{}"), ("green", "drops_green", "{}"),
    ("marks", "marks", "{}"), ("peak kB", "peak", "kB"),
)


def add_arguments(add):
    """Add the options of the network's size, of the values' size, and of the thresholds."""
    add("--servers", type=units.count, default=8, help="(8)")
    add("--bytes", type=units.size, default="32k", help="of each value (32k)")
    add("--red", type=units.size, default="270k", help="colour threshold")
    add("--ecn", type=units.size, default="200k", help="marking threshold")
    add_pause(add)


def wrong(args):
    """An error message for options that none of these experiments permits, or None."""
    if args.fresh:
        return "--fresh: the applications' connections last"
    if args.servers > 200:
        return "--servers: at most 200"
    if not 0 < args.bytes <= 64 << 20:
        return "--bytes: more than 0, and at most 64m"
    return None


def configure(args):
    """The common configuration: the unpacked programs, and one host more than servers, which sends
    the requests."""
    done = subprocess.run([TOP / "scripts/apps", *PACKAGES], text=True, check=False,
                          stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(1)     # scripts/apps has printed the reason
    return {"apps": done.stdout.strip(), "senders": args.servers + 1,
            "bytes": args.bytes, "red": args.red, "ecn": args.ecn, "port": args.port,
            "pause": args.pause}


def summary(config, result):
    """A run's row: an incast's row, in which the number of flows is the fan-in.

    The ideal is the time of the values alone, plus three propagation delays (2 * delay each) of the
    other messages: the client's request and its answer, and the servers' request or answer.
    """
    row = report.summary(config, result)
    if "fct_ns" in result:
        row["ideal"] += 6 * config["delay"]
        row["ratio"] = row["p99.9"] / row["ideal"]
        row["timeouts"] += result["receiver"]["tcp"].get("TCPTimeouts", 0)
    return row


def compare(rows, keys=("p99", "max")):
    """Add to each row of a TLT form, as KEY_gain, by how many % a value exceeds its base's."""
    bases = {(row["cc"], row["flows"]): row for row in rows}
    for row in rows:
        base = bases.get((row["cc"].removeprefix("tlt_"), row["flows"]))
        if base and base is not row:
            for key in keys:
                if row.get(key) and base.get(key):
                    row[f"{key}_gain"] = 100 * (row[key] / base[key] - 1)
    return rows
