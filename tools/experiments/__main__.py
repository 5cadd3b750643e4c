# SPDX-License-Identifier: GPL-2.0
"""Run an experiment in guests, in virtual time, and print one table.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from experiments import advise, kinds, machines, pool
from experiments.machines import inventory, measure
from lab import TOP, units
from lab.measure import report


class OneLine(argparse.ArgumentParser):
    """Errors of the command line, as one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def add_common(add, defaults):
    """Options of all experiments: the network, and how to run it."""
    add("--cc", default=defaults["cc"],
        help=f"congestion controls, separated by commas ({defaults['cc']});"
        " CC:NAME=VALUE is one with net.ipv4.NAME set")
    add("--rate", type=units.rate, default=defaults["rate"],
        help=f"of every link ({defaults['rate']})")
    add("--delay", type=units.time, default=defaults["delay"],
        help=f"of every link ({defaults['delay']}); the RTT is four delays")
    add("--limit", type=units.size, default=defaults["limit"],
        help=f"of the switch port ({defaults['limit']})")
    add("--rto-min", type=units.time, default="4ms", help="(4ms; Linux: 200ms)")
    add("--rounds", type=units.count, default=defaults["rounds"],
        help=f"({defaults['rounds']})")
    add("--gap", type=units.time, default=defaults["gap"],
        help=f"between rounds ({defaults['gap']})")
    add("--fresh", action="store_true", help="new connections in each round")
    add("--ipv6", action="store_true")
    add("--no-tso", dest="tso", action="store_false", help="TSO and GSO off")
    add("--port", default="", metavar="QDISC",
        help="qdisc of the switch ports, as arguments for tc")
    add("--kernel", default="7.3")
    add("--debug", action="store_true", help="use the debug kernel")
    add("--fine", action="store_true",
        help="reading the clock takes 8 ns of virtual time, not 256")
    add("--base", choices=["linux", "paper"], default="linux",
        help="the hosts' TCP: Linux's, or the TCP of the papers' baselines (linux)")
    add("--guest-options", default="", help="for scripts/guest, separated by spaces")
    add("--timeout", default="600", help="maximum processor time of a guest, in seconds (600)")
    add("--guests", type=int, default=len(os.sched_getaffinity(0)),
        help="number of guests that share the runs (one per processor)")
    add("--json", metavar="FILE", help="write all results, flow by flow")
    add("--plot", metavar="PREFIX", help="write PREFIX.svg and PREFIX.png")


def parse_args():
    """The command line."""
    form = argparse.RawDescriptionHelpFormatter
    known = kinds.known()
    examples = "\n".join(kinds.example(kind) for kind in known.values())
    parser = OneLine(prog="experiment", description=f"{__doc__}\n{examples}",
                     formatter_class=form)
    commands = parser.add_subparsers(dest="kind", required=True)
    for name, kind in known.items():
        sub = commands.add_parser(name, description=kind.__doc__, formatter_class=form)
        kind.add_arguments(sub.add_argument)
        add_common(sub.add_argument, kind.DEFAULTS)
    sub = commands.add_parser("advise", description=advise.__doc__, formatter_class=form)
    advise.add_arguments(sub.add_argument)
    args = parser.parse_args()
    if args.kind == "advise":
        try:
            message = advise.wrong(args)
        except inventory.Wrong as why:
            refuse(why)
        if message:
            parser.error(message)
        return advise, args
    if args.base == "paper" and (args.debug or args.kernel != "7.3"):
        parser.error("--base paper: not with --debug, and of 7.3 only")
    tick, words = (10**5, "hundreds of us") if args.base == "paper" else (10**6, "milliseconds")
    if not args.rto_min or args.rto_min % tick:
        parser.error(f"--rto-min: whole {words}, as the kernel's clock")
    try:
        for cc in args.cc.split(","):
            getattr(known[args.kind], "parse_cc", units.cc_name)(cc)
    except ValueError as why:
        parser.error(f"--cc: {why}")
    try:
        message = hasattr(args, "lab") and inventory.wrong(args) or known[args.kind].wrong(args)
    except inventory.Wrong as why:
        refuse(why)
    if message:
        parser.error(message)
    return known[args.kind], args


def refuse(why):
    """Print the errors of a lab's file, and exit."""
    print(*(f"experiment: {row}" for row in str(why).splitlines()), sep="\n", file=sys.stderr)
    sys.exit(2)


# Options of all experiments that are keys of the configuration.
_COMMON = "rate delay limit rto_min rounds gap fresh ipv6 tso kernel base".split()


def configure(kind, args, rate=None):
    """(configuration, jobs), for links of `rate`, or of --rate."""
    args.rate = rate or args.rate
    config, jobs = kind.configure(args)
    config.update({key: getattr(args, key) for key in _COMMON},
                  experiment=kind.__name__.rpartition(".")[2])
    return config, jobs


def run(kind, args, options):
    """(configuration, results, errors) of the runs: virtual, on real hosts, or both."""
    if not getattr(args, "lab", None):
        config, jobs = configure(kind, args)
        return config, pool.run_jobs(config, jobs, args.guests, options), []
    config, jobs, measured, errors = measure.measure(
        args.lab, kind.on_machines(), lambda rate: configure(kind, args, rate))
    if errors or not args.virtual:
        return config, _named(measured, "measured"), errors
    try:
        virtual = pool.run_jobs(config, jobs, args.guests, options)
    except pool.GuestFailed as why:
        return config, _named(measured, "measured"), [f"a guest failed: {why}"]
    except KeyboardInterrupt:
        return config, _named(measured, "measured"), ["interrupted: without the virtual part"]
    return config, [one for pair in zip(_named(measured, "measured"), _named(virtual, "virtual"))
                    for one in pair], []


def _named(results, source):
    """The results with CC@SOURCE in place of CC."""
    return [dict(result, cc=f"{result['cc']}@{source}") for result in results]


def _part(path):
    """The name of a file until it is complete: a killed run leaves no partial file."""
    path = pathlib.Path(path).resolve()
    return path.with_name(f"{path.name}.part")


def unwritable(args):
    """The reason why results cannot be written, before they are measured; or None."""
    for name in [args.json] * bool(args.json) + [
            f"{args.plot}.{kind}" for kind in ("svg", "png") if args.plot]:
        try:
            part = _part(name)
            part.parent.mkdir(parents=True, exist_ok=True)
            if os.path.exists(name) and not os.path.isfile(name):
                return f"{name}: not a file"
            part.touch()
            part.unlink()
        except (OSError, RuntimeError) as why:      # RuntimeError: symbolic links in a circle
            return f"{name}: {getattr(why, 'strerror', None) or why}"
    return None


def write_json(path, config, rows, results):
    """Write all results, flow by flow."""
    version = subprocess.run([TOP / "scripts/version"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip()
    part = _part(path)
    part.write_text(json.dumps({
        "command": ["scripts/experiment", *sys.argv[1:]], "version": version,
        "config": config, "summary": rows, "runs": results}), encoding="utf-8")
    part.replace(pathlib.Path(path).resolve())


def _written(name, function, *args):
    """Write results; returns [the error] or []."""
    try:
        function(*args)
    except OSError as why:
        print(f"experiment: {name}: {why.strerror}", file=sys.stderr)
        return [why]
    return []


def main():
    """Run, print, write."""
    kind, args = parse_args()
    if kind is advise:
        return advise.run(args)
    options = ["--bare", "--kernel", args.kernel, "--timeout", args.timeout]
    options += ["--debug"] * args.debug + ["--fine"] * args.fine + ["--base", args.base]
    options += args.guest_options.split()
    if why := unwritable(args):
        print(f"experiment: {why}", file=sys.stderr)
        return 2
    try:
        config, results, failed = run(kind, args, options)
    except machines.Refused:
        return 1
    except pool.GuestFailed as why:
        print(f"experiment: a guest failed: {why}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(*(f"experiment: {error}" for error in failed), sep="\n", end="\n" * bool(failed),
          file=sys.stderr)
    if not results:
        return 1
    rows = kind.summaries(config, results)
    if args.json:       # before the table: stdout may be closed
        failed = failed + _written(args.json, write_json, args.json, config, rows, results)
    print(report.table(rows, kind.COLUMNS))
    if hasattr(kind, "notes"):
        print(kind.notes(config, results, rows))
    if args.plot:
        failed = failed + _written(args.plot, kind.plot, config, results, rows, args)
    errors = [row for row in rows if "error" in row or row["unfinished"]]
    said = [f"experiment: {row['cc']}, {row['flows']} flows:"
            f" {row.get('error') or str(row['unfinished']) + ' unfinished'}"
            for row in errors]
    print(*dict.fromkeys(said), sep="\n", end="\n" * bool(said), file=sys.stderr)
    return 1 if errors or failed else 0


if __name__ == "__main__":
    sys.exit(main())
