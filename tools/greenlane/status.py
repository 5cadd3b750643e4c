# SPDX-License-Identifier: GPL-2.0
"""greenlane status, greenlane export and greenlane leave: the command line."""
import argparse
import json
import sys
import time

from . import Refused, diagnose, host, look, show

EXIT_HEALTHY, EXIT_MISTAKE, EXIT_USAGE, EXIT_BLIND = 0, 1, 2, 3
_CLEAR = "\033[H\033[2J"


def _seconds(word):
    value = float(word)
    if not 0.1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{word} is not within 0.1 ... 86400 seconds")
    return value


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line."""

    def error(self, message):
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def _parse(words):
    parser = _Parser(prog="greenlane", description="Is it working?")
    commands = parser.add_subparsers(dest="command", metavar="status|export|leave")
    commands.add_parser("leave", help="list the users of greenlane; unload the rest")
    export = commands.add_parser("export", help="counters and problems for Prometheus")
    export.add_argument("--output", metavar="FILE",
                        help="replace this file, for node_exporter's textfile collector")
    status = commands.add_parser("status", help="modules, connections, ports, and mistakes")
    status.add_argument("--watch", nargs="?", type=_seconds, const=2.0, metavar="SECONDS",
                        help="repeat the look, every 2 seconds by default")
    status.add_argument("--json", action="store_true", help="machine-readable")
    status.add_argument("--all", action="store_true",
                        help="all counters since the beginning, also those without a change")
    status.add_argument("--state", metavar="FILE",
                        help="remember the look there, not in the common file: one file for"
                        " each program that looks")
    args = parser.parse_args(words)
    if not args.command:
        parser.error("a command is missing: status, export or leave; --help has more")
    if args.command == "status" and args.state is not None and args.watch:
        parser.error("--watch compares a look with its own last one: no --state")
    return args


def _show(now, args):
    """Print a look; returns its problems."""
    found = diagnose.problems(now)
    if args.json:
        # One line for each look, so that a reader of --watch can separate them.
        print(json.dumps({**now, "problems": [p._asdict() for p in found]}))
    else:
        if args.watch and sys.stdout.isatty():
            print(_CLEAR, end="")
        print(show.text(now, found, args.all), end="" if not args.watch else "\n")
    sys.stdout.flush()
    return found


def _exit_status(found):
    if any(problem.id != diagnose.BLIND for problem in found):
        return EXIT_MISTAKE
    return EXIT_BLIND if found else EXIT_HEALTHY


def _status(args):
    if not args.watch:
        state = look.State(args.state)
        before = state.load()
        now = look.compare(look.take(), None if args.all else before)
        found = _show(now, args)
        state.save(now)
        return _exit_status(found)
    before = None
    while True:
        before = look.compare(look.take(), None if args.all else before)
        _show(before, args)
        time.sleep(args.watch)


def main(words=None):
    """Returns the exit status."""
    args = _parse(sys.argv[1:] if words is None else words)
    host.find_programs()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if args.command == "leave":
            from . import leave     # status does not need it
            return EXIT_HEALTHY if leave.leave() else EXIT_MISTAKE
        if args.command == "export":
            from . import export
            export.export(args.output)
            return EXIT_HEALTHY
        return _status(args)
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_HEALTHY
    except (Refused, OSError) as why:
        print(f"greenlane: {why}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_HEALTHY
