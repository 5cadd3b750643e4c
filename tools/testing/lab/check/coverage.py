# SPDX-License-Identifier: GPL-2.0
"""The share of the source of net/greenlane, net/ipv4 and net/sched that the tests run, by gcov.

	scripts/coverage [--kernel V] [--least PERCENT] [--list FILE] [--record] [NAME...]

Runs KUnit and the selftests in guests whose modules are built with gcov; collect.sh saves the
counts of each guest.  Sums the counts of all guests and prints a table by source file;
--list writes the code that no test ran to FILE, --record writes the table of
Documentation/lab.rst, for which all tests must run.  The exit status is 1 if less than
PERCENT (85) of the code ran, or if a test failed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from lab import TOP

PAGE = TOP / "Documentation/lab.rst"
# Its table: three borders, the head and the rows.
_TABLE = re.compile(r"^(=+  =+  =+  =+\n)file .*\n\1(?:.*\n)+?\1", re.M)
SELFTESTS = TOP / "tools/testing/selftests"
COLLECT = TOP / "tools/testing/lab/check/collect.sh"
KUNIT = 'for module in "$GL_MODDIR"/tools/testing/kunit/*.ko; do insmod "$module"; done'


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="coverage", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="7.3", help="6.1, 6.12 or 7.3 (default)")
    parser.add_argument("--least", type=float, default=85, help="lines, in per cent (85)")
    parser.add_argument("--list", type=pathlib.Path, help="write the lines that never ran")
    parser.add_argument("--record", action="store_true", help="write the table of lab.rst")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="guests at a time (one a processor)")
    parser.add_argument("name", nargs="*", help="only tests with this in their name")
    args = parser.parse_args()
    if args.record and args.name:
        parser.error("--record is for a run of all tests")
    return args


def build(script, kernel):
    """Run a build script; returns the path in the last row of its output."""
    done = subprocess.run([TOP / "scripts" / script, "--kernel", kernel, "--gcov"],
                          text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(2)
    return pathlib.Path(done.stdout.strip().rpartition("\n")[2])


def run(guest, name, command, out):
    """Run one test, which leaves its counts in `out`; True if it passed."""
    out.mkdir()
    done = subprocess.run([*guest, "--", COLLECT, *command], capture_output=True, text=True,
                          env=dict(os.environ, GL_OUT=str(out)), check=False)
    if done.returncode:
        print(f"FAIL {name}\n{done.stdout[-2000:]}{done.stderr[-500:]}", file=sys.stderr)
    return done.returncode == 0


def counts_of(outs, modules):
    """{source file: {line number: executions}}, summed over all guests."""
    total = collections.defaultdict(collections.Counter)
    for out in outs:
        for data in out.rglob("*.gcda"):
            notes = modules / data.relative_to(out).with_suffix(".gcno")
            # gcov expects both files in one directory
            (data.with_suffix(".gcno")).write_bytes(notes.read_bytes())
            said = subprocess.run(["gcov", "--json-format", "--stdout", data.name],
                                  cwd=data.parent, capture_output=True, check=True).stdout
            for source in json.loads(said.splitlines()[0])["files"]:
                path = pathlib.Path(source["file"])
                path = pathlib.Path(os.path.normpath(modules / path))
                if not path.is_relative_to(modules / "net"):
                    continue
                lines = total[str(path.relative_to(modules))]
                for line in source["lines"]:
                    lines[line["line_number"]] += line["count"]
    return total


def table(total):
    """The table's text, and the percentage of all code that ran."""
    rows, every, ran = [], 0, 0
    for name in sorted(total):
        hit = sum(count > 0 for count in total[name].values())
        rows.append(f"{name:<28} {hit:>5} of {len(total[name]):>5}"
                    f"  {100 * hit / len(total[name]):5.1f} %")
        every += len(total[name])
        ran += hit
    percent = 100 * ran / every if every else 0
    rows.append(f"{'all':<28} {ran:>5} of {every:>5}  {percent:5.1f} %")
    return "\n".join(rows), percent


def page(text, total):
    """The text of lab.rst with its table replaced by these counts."""
    rows = [(name, sum(count > 0 for count in lines.values()), len(lines))
            for name, lines in sorted(total.items())]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    wide = max(len(name) for name, _, _ in rows)
    border = f"{'=' * wide}  =====  =====  =====\n"
    lines = "".join(f"{name:{wide}}  {hit:<5}  {of:<5}  {100 * hit / of:.1f}\n"
                    for name, hit, of in rows)
    if not _TABLE.search(text):
        raise ValueError("no table")
    return _TABLE.sub(lambda _: f"{border}{'file':{wide}}  ran    of     %\n{border}{lines}{border}",
                      text)


def missed(total):
    """The code that no test ran, as "file:line: text"."""
    for name in sorted(total):
        text = (TOP / name).read_text(encoding="utf-8").splitlines()
        for line in sorted(total[name]):
            if not total[name][line]:
                yield f"{name}:{line}: {text[line - 1].strip()}"


def main():
    """Run, add up, print."""
    args = parse_args()
    subprocess.run(["make", "-s", "-C", TOP / "tools/tc"], check=True)
    kernel, modules = build("kernel", args.kernel), build("modules", args.kernel)
    guest = [TOP / "scripts/guest", "--kernel", args.kernel, "--gcov", "--built", kernel, modules]
    tests = {"kunit": ["sh", "-c", KUNIT]}
    for path in sorted(SELFTESTS.iterdir()):
        if (re.fullmatch(r"[a-z0-9]+_.*\.py", path.name) and os.access(path, os.X_OK)
                and not path.name.startswith(("guest_", "smp_", "stock_"))):
            tests[path.name] = [str(path)]
    tests = {name: command for name, command in tests.items()
             if not args.name or any(wanted in name for wanted in args.name)}
    with tempfile.TemporaryDirectory(prefix="greenlane-coverage-") as base:
        outs = [pathlib.Path(base, name) for name in tests]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            good = list(pool.map(run, [guest] * len(tests), tests, tests.values(), outs))
        total = counts_of(outs, modules)
    text, percent = table(total)
    print(text)
    if args.record and all(good):
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), total), encoding="utf-8")
    if args.list:
        args.list.parent.mkdir(parents=True, exist_ok=True)
        args.list.write_text("\n".join(missed(total)) + "\n", encoding="utf-8")
    return 0 if all(good) and percent >= args.least else 1


if __name__ == "__main__":
    sys.exit(main())
