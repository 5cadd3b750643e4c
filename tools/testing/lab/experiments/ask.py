# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment, as tests on the host ask it."""
import functools
import json
import os
import subprocess
import tempfile

from lab import TOP, tap


@functools.cache
def experiment(kind, *options):
    """The experiment's whole report; the same question is asked once."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run(
            [TOP / "scripts/experiment", kind, "--json", out.name,
             "--kernel", os.environ.get("GL_KERNEL", "7.3"), *options],
            capture_output=True, text=True, check=False)
        if done.returncode:
            raise tap.Failed(f"experiment: {done.returncode}: {done.stderr[-500:]}")
        return json.load(open(out.name, encoding="utf-8"))


def rows(kind, *options, key="cc"):
    """Its rows, by one of their numbers; of several, the last."""
    return {row[key]: row for row in experiment(kind, *options)["summary"]}


def asked(*words):
    """The process of that command line, whatever it ends with."""
    return subprocess.run([TOP / "scripts/experiment", *words], capture_output=True, text=True,
                          check=False)


def refused(*words):
    """That command line cannot be: one line says so, and status 2."""
    done = asked(*words)
    tap.equal((done.returncode, done.stdout, done.stderr.count("\n"),
               done.stderr.startswith("experiment")), (2, "", 1, True),
              f"{words}: {done.stderr}")
