#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Packets for a socket, on one processor, while its owner leaves greenlane on another.

	client (processor 1) ---- lo ---- server (processor 0)
	connects, writes, aborts          reads a part, selects reno or disconnects

The packets find the socket owned and want to be held, or to kick it; the owner frees its state
without the socket's spinlock.
"""
import multiprocessing
import os
import random
import socket
import struct
import time

from lab.net import libc, modules
from lab.net.namespace import set_cc
from lab.tap import case, equal, main, true

SECONDS = 60 if os.environ.get("GL_FULL") else 15
CONNECTIONS = 10 * SECONDS      # at least; a kernel with checkers takes longer for them
PATIENCE = 600                  # real seconds, which only end a test that hangs
ABORT = struct.pack("ii", 1, 0)


def write(address, stop):
    """Connections with many small writes each, without a pause."""
    os.sched_setaffinity(0, {1})
    while not stop.is_set():
        with socket.socket() as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.settimeout(1)
            try:
                s.connect(address)
                for _ in range(60):
                    s.send(b"x" * 8)
            except OSError:
                continue
            finally:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)


def choose_reno(s):
    """TCP_CONGESTION."""
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


@case("a socket leaves greenlane while packets arrive for it", cc=("tlt_reno", "xpass"),
      how=(choose_reno, libc.disconnect))
def leave(cc, how):
    modules.load_for(cc)
    set_cc(cc)
    os.sched_setaffinity(0, {0})
    rng, left = random.Random(cc), 0
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        stop = multiprocessing.Event()
        writer = multiprocessing.Process(target=write, args=(listener.getsockname(), stop),
                                         daemon=True)
        writer.start()
        began = time.monotonic()
        until, limit = began + SECONDS, began + PATIENCE
        while time.monotonic() < (until if left > CONNECTIONS else limit):
            s = listener.accept()[0]
            s.setblocking(False)
            with s:
                want = 8 * rng.randrange(30)
                for _ in range(200):
                    if want <= 0:
                        break
                    try:
                        want -= len(s.recv(512)) or want
                    except OSError:
                        pass
                how(s)
            left += 1
        stop.set()
        writer.join(60)
        equal(writer.exitcode, 0, "the writer's exit status")
    set_cc("reno")
    print(f"# {left} connections", flush=True)
    true(left > CONNECTIONS, f"connections that left: {left}")


main()
