# SPDX-License-Identifier: GPL-2.0
"""The papers' figures, from the real kernel, beside the papers' numbers.

	scripts/figures [--scale small|large] [--strict] [FIGURE...]

Writes build/figures/SCALE/index.html and figures.pdf, and prints how many of the papers'
numbers are met.  A run that is finished is not run again; remove its file in
build/figures/SCALE/runs, or all of it, for another.  FIGURE is a figure's name, or a part of
some; --list shows them.

--strict fails if a verdict is worse than the recorded one, which is in
Documentation/gallery/verdicts.toml.  --record makes the verdicts of this run the recorded ones, and
writes the tables of Documentation/results.rst and README's shares of met numbers.  --recorded writes
every recorded number to build/verdicts.rst, without a run.

The work is Snakemake's: arguments behind -- are for it, as in

	scripts/figures --scale large -- --profile scripts/slurm
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

from experiments.figures import catalogue, record, verdict
from lab import TOP

FIGURES = catalogue.HERE


def _left(figures, out):
    """(runs that are to do, all of them)"""
    runs = {run.name for figure in figures for run in figure.runs}
    return sum(not (out / "runs" / f"{name}.json").exists() for name in runs), len(runs)


def _missing():
    """The programs that draw and write the report, and are not on this machine."""
    return ([] if shutil.which("snakemake") else ["snakemake"]) + [
        name for name in ("matplotlib", "weasyprint") if not importlib.util.find_spec(name)]


def _absolute(theirs):
    """Snakemake's part, with the directory of its profile where Snakemake will look for it.

    It starts in --directory, and reads the paths of a profile from there.
    """
    def found(text):
        return str(pathlib.Path(text).resolve()) if os.path.isdir(text) else text

    words = [f"--profile={found(word[10:])}" if word.startswith("--profile=") else word
             for word in theirs]
    return [found(word) if before == "--profile" else word
            for before, word in zip(["", *words], words)]


def parse_args():
    """The command line, and Snakemake's part of it."""
    ours, theirs = sys.argv[1:], []
    if "--" in ours:
        at = ours.index("--")
        ours, theirs = ours[:at], ours[at + 1:]
    parser = argparse.ArgumentParser(
        prog="figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE")
    parser.add_argument("--scale", choices=catalogue.SCALES, default="small", help="(small)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="guests at a time (one a processor)")
    parser.add_argument("--list", action="store_true", help="name the figures")
    parser.add_argument("--strict", action="store_true",
                        help="fail if a verdict is worse than the recorded one")
    parser.add_argument("--record", action="store_true", help="record the verdicts in the tree")
    parser.add_argument("--recorded", action="store_true",
                        help="write the recorded numbers to build/verdicts.rst")
    parser.add_argument("--catalogue", type=pathlib.Path, default=FIGURES, metavar="DIR",
                        help="figures of your own, described in DIR/*.toml")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="in place of build/figures/SCALE")
    return parser.parse_args(ours), _absolute(theirs)


def _wait_for(command):
    """Run it; its exit status, or 130 after a Ctrl-C.

    The terminal sends that to Snakemake as well, which then ends its guests or cancels its jobs.
    subprocess.run() would kill it a quarter of a second later.
    """
    with subprocess.Popen(command) as child:
        interrupted = False
        while child.poll() is None:
            try:
                child.wait()
            except KeyboardInterrupt:
                interrupted = True
    return 130 if interrupted else child.returncode


def _verdicts(args, figures, out):
    """Print the verdicts, compare them with the record, or record them; the exit status."""
    now = record.outcome(figures, out)
    of = {figure.name: figure.of for figure in figures}
    counts = verdict.counts((of[name], verdict.Verdict(number["verdict"]))
                            for name, one in now.items() for number in one["numbers"].values())
    for paper, count in counts.items():
        print(f"figures: {paper}: {verdict.sentence(count)}", file=sys.stderr)
    if args.strict:
        worse = record.strict(record.read(args.scale), figures, now)
        for line in worse:
            print(f"figures: worse: {line}", file=sys.stderr)
        if worse:
            return 1
    if args.record:
        record.write(args.scale, now)
    return 0


def main():
    """Print the number of runs, start Snakemake, and judge."""
    args, more = parse_args()
    own = args.catalogue.resolve() != FIGURES
    if own and (args.strict or args.record):
        sys.exit("figures: --strict and --record are for the tree's own figures")
    try:
        figures = catalogue.load(args.scale, args.figures, args.catalogue)
    except catalogue.Wrong as why:
        sys.exit(f"figures: {why}")
    if args.list:
        for figure in figures:
            print(f"{figure.name:16} {figure.about['paper']}: {figure.about['title']}")
        return
    if args.recorded:
        record.write_page()
        print(f"figures: {record.PAGE}", file=sys.stderr)
        return
    if missing := _missing():
        sys.exit(f"figures: no {', '.join(missing)}: scripts/setup --figures")
    out = (args.out or TOP / "build/figures" / args.scale).resolve()
    out.mkdir(parents=True, exist_ok=True)
    left, runs = _left(figures, out)
    print(f"figures: {len(figures)} figures, {left} of {runs} runs to do", file=sys.stderr)
    config = [f"scale={args.scale}", f"out={out}", f"catalogue={args.catalogue.resolve()}"]
    if args.figures:
        config.append(f"only={' '.join(args.figures)}")
    status = _wait_for([
        "snakemake", "--snakefile", str(FIGURES / "Snakefile"), "--directory", str(out),
        "--cores", str(args.jobs), "--keep-going", "--rerun-triggers", "mtime", "params",
        "--log-handler-script", str(FIGURES / "progress.py"), *more, "--config", *config])
    sys.exit(status or _verdicts(args, figures, out))


if __name__ == "__main__":
    main()
