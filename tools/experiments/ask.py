# SPDX-License-Identifier: GPL-2.0
"""Run scripts/experiment from a test on the host."""
import functools
import json
import os
import subprocess
import tempfile

from lab import TOP, tap


@functools.cache
def experiment(kind, *options):
    """The experiment's complete report; each command line runs once."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run(
            [TOP / "scripts/experiment", kind, "--json", out.name,
             "--kernel", os.environ.get("GL_KERNEL", "7.3"), *options],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise tap.Failed(f"experiment: {done.returncode}: {done.stderr[-500:]}")
        return json.load(open(out.name, encoding="utf-8"))


def rows(kind, *options, key="cc"):
    """The rows of the experiment's table, by `key`; the last one of several with the same value."""
    return {row[key]: row for row in experiment(kind, *options)["summary"]}


def asked(*words):
    """Run scripts/experiment; returns the completed process, also of a failure."""
    return subprocess.run([TOP / "scripts/experiment", *words], capture_output=True, text=True,
                          check=False)


def refused(*words):
    """Check that the command line is refused: one line on stderr, and exit status 2."""
    done = asked(*words)
    tap.equal((done.returncode, done.stdout, done.stderr.count("\n"),
               done.stderr.startswith("experiment")), (2, "", 1, True),
              f"{words}: {done.stderr}")
