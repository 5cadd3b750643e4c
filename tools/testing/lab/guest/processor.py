# SPDX-License-Identifier: GPL-2.0
"""A processor of the host for each guest that has one processor itself.

The guest's kernel and its programs are processes of the host that wait for one another: one of
them runs at a time.  On one processor the next one begins with a context switch.  On two it begins
with the wake-up of an idle processor, which in a virtual machine costs several times as much
(an incast of 1000 flows, 20 rounds, on a host that is a virtual machine: 36 s, and 12 s).
"""
import contextlib
import fcntl
import os


@contextlib.contextmanager
def reserve(directory):
    """Reserve a processor that this process may use and that no other guest has.

    Yields the command that starts a program there, or, if each processor has a guest, an empty
    one.  The lock files in the directory end with the process that holds them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number in sorted(os.sched_getaffinity(0)):
        lock = os.open(directory / f"processor-{number}", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        try:
            yield ["taskset", "--cpu-list", str(number)]
        finally:
            os.close(lock)
        return
    yield []
