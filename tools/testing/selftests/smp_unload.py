#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane.ko is removed while packets are in its hooks on another processor.

	2 processes ---- UDP with a protected DSCP ----> lo
	this one    ---- insmod, rmmod, insmod, rmmod ...

A hook that still runs must be able to read the codepoints and the counters.
"""
import multiprocessing
import os
import socket
import subprocess
import time

from lab.net import libc, modules
from lab.tap import case, equal, main, true
from lab.wire.sockopt import set_tos

TIMES = 60 if os.environ.get("GL_FULL") else 15


def flood(family, address, stop, sent):
    """Send until stopped: LOCAL_OUT strips the DSCP, LOCAL_IN checks it."""
    with libc.without_net_admin():
        s = socket.socket(family, socket.SOCK_DGRAM)
    with s:
        set_tos(s, 10 << 2)
        with socket.socket(family, socket.SOCK_DGRAM) as sink:
            sink.bind((address, 0))
            while not stop.is_set():
                for _ in range(50):
                    s.sendto(b"x" * 64, sink.getsockname())
                sent.value += 50
                time.sleep(1e-3)        # so that other processes run


@case(f"{TIMES} unloads while packets pass its hooks")
@modules.other_hooks()
def unload():
    modules.unload("greenlane")         # another test file may have loaded it
    modules.load("link_speed")          # which it needs
    stop, sent = multiprocessing.Event(), multiprocessing.Value("I", 0)
    floods = [multiprocessing.Process(target=flood, args=(*where, stop, sent), daemon=True)
              for where in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))]
    for process in floods:
        process.start()
    stripped = 0
    for number in range(TIMES):
        subprocess.run(["insmod", modules.path("greenlane")], check=True)
        with open("/proc/sys/net/ipv4/greenlane_protect", "w", encoding="ascii") as f:
            f.write("1")
        before = sent.value
        while sent.value < before + 400:
            time.sleep(0.01)
        with open("/proc/net/greenlane", encoding="ascii") as f:
            counters = dict(line.split() for line in f)
        stripped += int(counters["Stripped"])
        equal(subprocess.run(["rmmod", "greenlane"], check=False).returncode, 0,
              f"rmmod {number}")
        print(f"# {number + 1}: {stripped} packets", flush=True)
    stop.set()
    for process in floods:
        process.join(600)
        equal(process.exitcode, 0, "a flood's exit status")
    true(stripped >= TIMES * 100, f"packets that were stripped: {stripped}")


main()
