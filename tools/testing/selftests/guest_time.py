#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The host's load changes neither virtual time nor results.

	this program --> scripts/guest --> a guest, on one processor
	             --> busy loops, on the same processor

Each loop has its own session, so that the host's scheduler gives it the same share as the guest.
"""
import contextlib
import os
import resource
import subprocess
import time

from lab import TOP
from lab.tap import case, equal, main, true, within

LOOPS = 4
KERNEL = ["--kernel", os.environ.get("GL_KERNEL") or "7.3", "--no-modules"]
VARIANT = ["--debug"] * bool(os.environ.get("GL_DEBUG"))
STEP = 256              # ns of virtual time that reading the clock takes

# Processes, timers, TCP, failing system calls; at the end the kernel's counters.
BUSY = """
import os, socket, subprocess, sys, time
def note(*words):
	print(time.monotonic_ns(), *words, flush=True)
note("begin")
server = socket.create_server(("127.0.0.1", 5000))
client = socket.create_connection(("127.0.0.1", 5000))
other = server.accept()[0]
for n in range(20):
	time.sleep(n * 1e-4)
	client.sendall(bytes(10_000 * n))
	got = 0
	while got < 10_000 * n:
		got += len(other.recv(1 << 16))
	note("received", got, subprocess.run(["sh", "-c", f"exit {n}"]).returncode)
	for _ in range(100):
		os.path.exists(f"/proc/{n}/missing")
	with open("/dev/kmsg", "w") as log:
		log.write(f"guest_time {n}")
for line in open("/proc/stat"):
	if line.split()[0] in ("intr", "ctxt", "processes", "softirq"):
		note(line.strip())
"""
# A test; VAIN is the number of failing system calls before its first case, and in it.
CASES = """
import os, sys, time
from lab.tap import case, main
def vain():
	for _ in range(int(os.environ["VAIN"])):
		os.path.exists("/missing")
@case("one")
def one():
	print("#", time.monotonic_ns())
	vain()
@case("two")
def two():
	print("#", time.monotonic_ns())
vain()
main()
"""
# Takes some seconds of processor time.
WORK = "for _ in range(100_000_000): pass"


def guest(*options, program):
    """Run a Python program in a guest; its stdout."""
    done = subprocess.run(
        ["taskset", "-c", str(here()),
         TOP / "scripts/guest", *KERNEL, *VARIANT, *options, "--", "python3", "-c", program],
        capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), "status and stderr")
    return done.stdout


def here():
    """The processor of the guest and the loops."""
    return min(os.sched_getaffinity(0))


@contextlib.contextmanager
def loops():
    """Run busy loops on the guest's processor."""
    running = []
    try:
        for _ in range(LOOPS):
            running.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(here()),
                 "sh", "-c", "while :; do :; done"], start_new_session=True))
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


@case("beside busy processes every event has the same virtual time, to the nanosecond")
def same():
    alone = guest(program=BUSY).splitlines()
    true(len(alone) > 20, f"the program ran to its end: {alone[-3:]}")
    with loops():
        beside = guest(program=BUSY).splitlines()
    equal([pair for pair in zip(alone, beside) if pair[0] != pair[1]], [], "output that differs")
    equal(len(beside), len(alone), "lines")


@case("a case begins at a full second, independent of failed system calls before")
def begin():
    def times(vain, *options):
        out = guest("--env", f"VAIN={vain}", *options, program=CASES)
        return [int(line[1:]) for line in out.splitlines() if line.startswith("# ")]
    base = times(0)
    equal(len(base), 2, "cases")
    for vain in (1, 17, 300):
        for seen, expected in zip(times(vain), base):
            within(seen - expected, -STEP, STEP, f"ns, after {vain} failed calls")
    for seen, expected in zip(times(17, "--env", "GL_PHASE=300"), base):
        # the sleep may end one reading of the clock later
        within(seen - expected, 300_000 - 2 * STEP, 300_000 + 2 * STEP, "ns, GL_PHASE=300")


@case("the limit is the guest's processor time, not other processes'")
def limit():
    def used():
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime
    before = used()
    guest(program=WORK)
    enough = 1.5 * (used() - before) + 1
    with loops():
        began = time.monotonic()
        guest("--timeout", f"{enough:.1f}", program=WORK)
        took = time.monotonic() - began
    true(took > enough, f"the loops slow the guest: {took:.1f} s, above the limit of {enough:.1f}")


if __name__ == "__main__":
    main()
