# SPDX-License-Identifier: GPL-2.0
"""The host's half of an experiment: distribute the runs among guests."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from lab import TOP
from lab.guest import limit


class GuestFailed(Exception):
    """A guest failed; it has printed the reason itself."""


def share(jobs, parts):
    """Split jobs into lists of about the same cost, in the order of rising cost."""
    lists = [[] for _ in range(max(1, min(parts, len(jobs))))]
    for job in sorted(jobs, key=lambda j: -j["flows"]):
        min(lists, key=lambda part: sum(j["flows"] + 20 for j in part)).append(job)
    # Cheap runs first, so that progress is visible early.
    return [part[::-1] for part in lists]


def _cpu_seconds(guest):
    """Processor time of a running guest, s.  `guest` is the pid of scripts/guest, whose child leads
    the guest's session."""
    try:
        path = f"/proc/{guest}/task/{guest}/children"
        with open(path, encoding="ascii") as file:
            leader = int(file.read().split()[0])
    except (OSError, IndexError):
        return 0.0
    return limit.processor_seconds(leader)


class Progress:
    """The progress of the runs on stderr: on a terminal one line, in a log one every 10 s."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.tty = sys.stderr.isatty()
        self.shown = time.monotonic()

    @staticmethod
    def _cost(runs):
        # The set-up of a run costs about as much as twenty flows.
        return sum(run["flows"] + 20 for run in runs)

    def show(self, results):
        """Show the progress after these results, the newest last."""
        if not self.tty and time.monotonic() < self.shown + 10:
            return
        self.shown = time.monotonic()
        last = results[-1]
        text = (f"runs: {100 * self._cost(results) // self._cost(self.jobs):3d} %"
                f" ({len(results)} of {len(self.jobs)};"
                f" {last['cc']}, {last['flows']} flows)")
        print(f"\r\033[K{text}" if self.tty else text,
              end="" if self.tty else "\n", file=sys.stderr, flush=True)

    def clear(self):
        """Clear the terminal's row for later output."""
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Guest(threading.Thread):
    """One guest, whose results are passed to `deliver` as they arrive."""

    def __init__(self, config, jobs, options, deliver):
        super().__init__(daemon=True)
        self.config = dict(config, jobs=jobs)
        self.options = options
        self.deliver = deliver
        self.failed = True      # until the guest has succeeded
        self.process = None

    def run(self):
        with tempfile.TemporaryDirectory(prefix="greenlane-incast-") as out:
            path = pathlib.Path(out, "config.json")
            path.write_text(json.dumps(self.config), encoding="utf-8")
            self.process = subprocess.Popen(
                [TOP / "scripts/guest", *self.options, "--",
                 "/usr/bin/python3", "-P", "-m", "experiments.jobs", path],
                stdout=subprocess.PIPE, text=True, env=dict(os.environ, GL_OUT=out))
            cpu, real = 0.0, time.monotonic()
            setup = 0.0
            for line in self.process.stdout:
                result = json.loads(line)
                before, cpu = cpu, _cpu_seconds(self.process.pid)
                began, real = real, time.monotonic()
                if "ready" in result:
                    setup = real - began
                if "cc" in result:
                    result["setup_s"] = round(setup, 3)
                    result["cpu_s"] = round(cpu - before, 3)
                    result["real_s"] = round(real - began, 3)
                    self.deliver(result)
            self.failed = self.process.wait() != 0


def run_jobs(config, jobs, guests, options):
    """Run all jobs; returns their results in the order of `jobs`.

    All jobs have the same keys.  The results of equal jobs are adjacent, in the order in which
    they were run.
    """
    results, lock = [], threading.Lock()
    progress = Progress(jobs)

    def deliver(result):
        with lock:
            results.append(result)
            progress.show(results)

    loadgen = TOP / "tools/experiments/traffic/loadgen"
    subprocess.run(["flock", loadgen, "make", "-s", "-C", loadgen],
                   check=True, stdout=sys.stderr)
    threads = [_Guest(config, part, options, deliver) for part in share(jobs, guests)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        for thread in threads:
            if thread.process:
                thread.process.terminate()
        raise
    finally:
        progress.clear()
    if any(thread.failed for thread in threads):
        raise GuestFailed(f"{len(results)} of {len(jobs)} runs done")
    order = {}
    for job in jobs:
        order.setdefault(tuple(job.values()), len(order))
    return sorted(results, key=lambda r: order[tuple(r[key] for key in jobs[0])])
