#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/slurm: the runs of scripts/figures become jobs, whose results are reported.

	this script (host) --> scripts/figures --> Snakemake --> sbatch --> guests

Shell scripts replace Slurm, whose daemons are not set up on the machine: they print Slurm's
output, and start each job at once.
"""
import os
import pathlib
import signal
import stat
import subprocess
import tempfile
import time

from lab import TOP, tap
from lab.tap import case, equal, true

OWN = f"""
[own]
title = "a star"
paper = "nobody, Figure 1"
command = "load --topology star --hosts 3 --background 5 --incasts 2 --kernel \
{os.environ.get('GL_KERNEL', '7.3')}"
vary = {{ cc = ["reno"], load = [20, 40] }}
plot = [{{ x = "load", y = "fg_p99", unit = "ms" }}]
"""
HEAD = '#!/bin/sh\ncd "$(dirname "$0")"\n'
SLURM = {
    # A job is a process group; files have its options and its state.
    "sbatch": """
for job; do :; done
id=$(($(ls | grep -c asked) + 1))
echo "$@" >$id.asked
if [ -e refuse ]; then mv refuse $id.state; else
	echo RUNNING >$id.state
	(setsid sh -c 'echo $$ >'$id'.pid; sh "$0"' "$job"
	 if [ $? = 0 ]; then echo COMPLETED; else echo FAILED; fi >$id.state) >/dev/null 2>&1 &
fi
echo $id
""",
    "scontrol": """
[ ! -e silent ] || { echo "Unable to contact slurm controller (connect failure)" >&2; exit 1; }
[ -e $4.state ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
echo "JobId=$4 JobName=x UserId=root(0) JobState=$(cat $4.state) Reason=None Dependency=(null)"
""",
    # As slow as on a busy cluster.
    "scancel": """
sleep 1
for id; do
	echo $id >>cancelled
	kill -- -$(cat $id.pid) && echo CANCELLED >$id.state
done
""",
}


class Slurm:
    """The replaced commands, and a directory for the figures."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.top = pathlib.Path(self.temporary.name)
        self.bin = self.top / "bin"
        self.bin.mkdir()
        for name, text in SLURM.items():
            self.program(name, text)
        (self.top / "own").mkdir()
        (self.top / "own/own.toml").write_text(OWN, encoding="utf-8")
        self.env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.temporary.cleanup()

    def program(self, name, text):
        """Write a command that precedes the machine's own in PATH."""
        path = self.bin / name
        path.write_text(HEAD + text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def say(self, name, text):
        """Write a file that the replaced commands read."""
        (self.bin / name).write_text(text + "\n", encoding="utf-8")

    def said(self, pattern):
        """The text of the files that match, line by line."""
        return [line for path in sorted(self.bin.glob(pattern))
                for line in path.read_text(encoding="utf-8").splitlines()]

    def heard(self):
        """The number of jobs that Snakemake has recorded."""
        return sum("external_jobid" in path.read_text(encoding="utf-8")
                   for path in self.top.glob("out/.snakemake/incomplete/*"))

    def begin(self, *profile):
        """Start scripts/figures.  It receives SIGINT even if this process ignores it."""
        return subprocess.Popen(
            ["scripts/figures", "--catalogue", self.top / "own", "--out", self.top / "out", "--",
             *(profile or ["--profile", "scripts/slurm"]), "--jobs", "2"], cwd=TOP, env=self.env, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run(self, *profile):
        """Run scripts/figures: (status, stderr)."""
        with self.begin(*profile) as process:
            said = process.communicate(timeout=1200)[1]
            return process.returncode, said

    def status(self, job):
        """The output of scripts/slurm/status for a job."""
        return subprocess.run(["scripts/slurm/status", job], cwd=TOP, env=self.env, text=True,
                              stdout=subprocess.PIPE, check=True).stdout.strip()


@case("each of Slurm's states maps to one of Snakemake's three")
def states():
    with Slurm() as slurm:
        for state, told in (
                ("PENDING", "running"), ("CONFIGURING", "running"), ("RUNNING", "running"),
                ("SUSPENDED", "running"), ("COMPLETING", "running"), ("REQUEUED", "running"),
                ("COMPLETED", "success"), ("FAILED", "failed"), ("TIMEOUT", "failed"),
                ("OUT_OF_MEMORY", "failed"), ("NODE_FAIL", "failed"), ("CANCELLED", "failed"),
                ("BOOT_FAIL", "failed"), ("DEADLINE", "failed"), ("PREEMPTED", "failed"),
                ("LAUNCH_FAILED", "failed"), ("WHATEVER_IS_NEW", "failed")):
            slurm.say("1.state", state)
            equal(slurm.status("1"), told, state)


@case("a job unknown to scontrol, with and without accounting; no controller")
def forgotten():
    with Slurm() as slurm:
        slurm.program("sacct", "exit 1")
        equal(slurm.status("7"), "success", "without accounting: the run's file decides")
        for state, told in (("COMPLETED", "success"), ("TIMEOUT", "failed"),
                            ("CANCELLED by 0", "failed"), ("RUNNING", "running")):
            slurm.program("sacct", f"[ $5 = 7 ] && echo '{state}'")
            equal(slurm.status("7"), told, f"accounted: {state}")
        slurm.say("silent", "")
        equal(slurm.status("7"), "running", "the controller does not answer")


@case("each run is a job with its memory and time; a job that Slurm ends is reported")
def jobs():
    with Slurm() as slurm:
        slurm.say("refuse", "OUT_OF_MEMORY")
        status, said = slurm.run()
        equal((status, said.count(" failed; see ")), (1, 1), said)
        equal(len(list((slurm.top / "out/runs").glob("*.json"))), 1, "completed runs")
        status, said = slurm.run("--profile=scripts/slurm")
        equal((status, "1 of 2 runs to do" in said), (0, True), said)
        asked = slurm.said("*.asked")
        equal(len(asked), 3, "jobs")
        for words in map(str.split, asked):
            equal([word for word in words if word.startswith(("--mem", "--time", "--cpus"))],
                  ["--cpus-per-task=1", "--mem=2560", "--time=30"], "requested resources")
            true(any(word.startswith("--job-name=load-") for word in words), f"name: {words}")


@case("Ctrl-C cancels the jobs; the same command resumes")
def interrupted():
    with Slurm() as slurm, slurm.begin() as process:
        end = time.monotonic() + 120
        while slurm.heard() < 2 and time.monotonic() < end:
            time.sleep(0.1)
        equal((slurm.heard(), len(slurm.said("*.pid"))), (2, 2), "jobs: recorded, running")
        time.sleep(0.5)     # between Snakemake's record of the jobs and its list of jobs to cancel
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=120)[1]
        equal((process.returncode, sorted(slurm.said("cancelled"))), (130, ["1", "2"]), said)
        equal(list((slurm.top / "out/runs").glob("*.json")), [], "completed runs")
        status, said = slurm.run()
        equal((status, "2 of 2 runs to do" in said), (0, True), said)


if __name__ == "__main__":
    tap.main()
