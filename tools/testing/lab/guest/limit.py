# SPDX-License-Identifier: GPL-2.0
"""How long a guest may run, in seconds that the host's load does not shorten.

In virtual time a guest always computes, so the limit is processor time: beside busy
processes it needs the same, and only the real time grows.  A guest that waits for
something on the host uses none, hence a limit of real time as well, LOAD times as long.
In real time a guest sleeps, and both limits are the same.
"""

import os
import subprocess
import time

LOAD = 4        # factor by which other work may prolong a guest's real time
LOOK = 1        # seconds between two checks


def processor_seconds(leader):
    """User and system time of a session, s: a guest's kernel and its programs."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            # A program that ended is in its parent's account.
            last = 15 if int(pid) == leader else 13
            total += sum(map(int, fields[11:last]))
    return total / os.sysconf("SC_CLK_TCK")


def wait(guest, seconds, virtual):
    """Wait for the leader of a session; None, or which limit it has exceeded."""
    end = time.monotonic() + seconds * (LOAD if virtual else 1)
    while True:
        left = end - time.monotonic()
        try:
            guest.wait(min(LOOK, max(left, 0)))
            return None
        except subprocess.TimeoutExpired:
            if left <= 0:
                return f"{seconds * (LOAD if virtual else 1):g} s of real time"
        if virtual and processor_seconds(guest.pid) >= seconds:
            return f"{seconds:g} s of processor time"
