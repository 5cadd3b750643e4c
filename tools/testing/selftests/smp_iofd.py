#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd on CPUs that run in parallel (lab/net/switches.py).

	2 processes ---- messages, complete and not ----> hosts of sw1 and sw2
	this one    ---- tc, devices down and up, a switch that is removed, rmmod

Three switches that deflect to each other, with queues that are always full.  Other tests
check what arrives.  This one checks that lockdep, KASAN and the other checkers have
nothing to report, and that devices, qdiscs and the module can be removed.
"""
import multiprocessing
import os
import random
import subprocess
import time

from lab.net import iofd as i
from lab.net import frames as p
from lab.net.switches import NEXT, switches
from lab.tap import case, equal, main, true, within

PATIENCE = 600          # real seconds; ends a test that hangs, as the host may be busy
SLOW = bool(os.environ.get("GL_VARIANT"))
CHANGES = 12 if SLOW else 30     # a change takes 6 s on a slow kernel
# An emulated processor sends some 60 packets a second, which have to congest these ports.
CHILD = "rate 100kbit limit 60k"
ENTRIES = 64            # the largest table of change()


def flood(sender, seed, stop, sent):
    """Send messages of many flows; some lose their end."""
    rng = random.Random(seed)
    flow = seed << 8
    while not stop.is_set():
        flow += 1
        frames = i.message(rng.randrange(1, 7), flow=flow & 0xffff, tokens=rng.randrange(1, 5))
        if rng.random() < 0.1:
            frames.pop()
        for frame in frames:
            sender.send(frame)
        sent.value += len(frames)
        time.sleep(2e-3)        # so that other processes run


def change(net, rng):
    """Make a random change, as an operator would."""
    n = rng.choice(list(NEXT))
    with net.ns[n]:
        choice = rng.randrange(5)
        if choice == 0:
            p.tc(f"qdisc change dev out root handle 1: iofd threshold {rng.randrange(1, 40000)}"
                 f" timeout {rng.randrange(1, 50)}ms")
        elif choice == 1:
            p.tc(f"qdisc change dev out root handle 1: iofd entries {rng.choice((1, 8, ENTRIES))}",
                 check=False)
        elif choice == 2:
            dev = f"to{NEXT[n]}"
            p.run("ip", "link", "set", dev, "down")
            time.sleep(0.01)
            p.run("ip", "link", "set", dev, "up")
        elif choice == 3:
            p.tc("qdisc del dev out root")
            p.tc(f"qdisc add dev out root handle 1: iofd threshold 15000 {net.deflect(n)}")
            p.tc(f"qdisc add dev out parent 1:1 handle 2: color {CHILD}")
        else:
            within(i.counters("out")["table.entries"], 0, ENTRIES, "entries of the table")


@case(f"{CHANGES} changes under traffic, then a switch is removed, then the module")
def churn():
    with switches("threshold 15000 timeout 10ms", child=CHILD) as net:
        stop, sent = multiprocessing.Event(), multiprocessing.Value("I", 0)
        floods = [multiprocessing.Process(target=flood, args=(net.open(p.Sender, n, "host"), n,
                                                              stop, sent), daemon=True)
                  for n in (1, 2)]
        for process in floods:
            process.start()
        rng, deflected = random.Random(1), 0
        for number in range(CHANGES):
            before = sent.value
            change(net, rng)
            deadline = time.monotonic() + PATIENCE
            while sent.value < before + 20 and time.monotonic() < deadline:
                time.sleep(0.005)
            true(sent.value >= before + 20, f"packets are sent after change {number + 1}")
            if number % 10 == 9:    # three programs, of some seconds each beside the floods
                deflected = max(deflected, *(net.counters(n)["deflected.messages"] for n in NEXT))
                print(f"# {number + 1}: {sent.value} packets, {deflected} messages", flush=True)
        # The last changes may have made new qdiscs, whose counters begin at 0.
        deadline = time.monotonic() + PATIENCE
        while deflected <= 20 and time.monotonic() < deadline:
            time.sleep(0.1)
            deflected = max(deflected, *(net.counters(n)["deflected.messages"] for n in NEXT))
        true(deflected > 20, f"messages that a switch has deflected: {deflected}")
        # Remove a switch that the others deflect to, while packets are sent to it.
        with net.ns[3]:
            p.tc("qdisc del dev out root")
            for other in (1, 2):
                p.run("ip", "link", "del", f"to{other}")
        time.sleep(0.3)
        gone = sum(net.counters(n)["dropped.port"] for n in (1, 2))
        stop.set()
        for process in floods:
            process.join(PATIENCE)
            equal(process.exitcode, 0, "a flood's exit status")
        print(f"# {gone} packets dropped for a port that was down or gone", flush=True)
    deadline = time.monotonic() + PATIENCE
    while subprocess.run(["rmmod", "sch_iofd"], check=False).returncode:
        true(time.monotonic() < deadline, "rmmod sch_iofd")
        time.sleep(0.5)


main()
