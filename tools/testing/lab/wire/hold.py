# SPDX-License-Identifier: GPL-2.0
"""A socket that a process owns for a while (tools/testing/modules/gl_hold.c)."""
import contextlib
import os
import threading

from lab.net import modules


def hold(s, milliseconds):
    """Own the socket from now on; returns a thread to join."""
    modules.load_helper("gl_hold")

    def write():
        fd = os.open("/proc/gl_hold", os.O_WRONLY)
        os.write(fd, f"{s.fileno()} {milliseconds}".encode())
        os.close(fd)
    thread = threading.Thread(target=write)
    thread.start()
    return thread


@contextlib.contextmanager
def owned_again_and_again(s, owners=3, pause=0):
    """Meanwhile `owners` threads own the socket, 1 ms at a time; after that each waits for `pause`
    seconds."""
    stop = threading.Event()

    def own():
        while not stop.is_set():
            hold(s, 1).join()
            if pause:
                stop.wait(pause)
    threads = [threading.Thread(target=own) for _ in range(owners)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def run_owned(wire, ends, application, *sockets):
    """Run the wire for a second, in which both ends are owned again and again.  Meanwhile a
    thread for each of the sockets runs application(stop, s): its calls wait for the socket's
    owner, so they cannot be in the thread that runs the wire.
    """
    stop = threading.Event()
    threads = [threading.Thread(target=application, args=(stop, s)) for s in sockets]
    # different periods, or both ends would always be free at the same times
    with owned_again_and_again(ends[0], 1, 0.0005), owned_again_and_again(ends[1], 1, 0.0008):
        for t in threads:
            t.start()
        wire.run(1.0)
        stop.set()
    for t in threads:
        t.join()
