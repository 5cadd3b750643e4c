#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: the rate of a port, in virtual time.

	   frames                          ->   frames and their arrival times
	 ----------> [ color rate ... ] p0 ============ p1

A frame leaves when its transmission starts.  The guest's clock device has a shortest delay of
500 ns, so a frame may arrive late by that much, and never early; the delay does not affect the
next frame.
"""
import time

from lab.net import frames as p
from lab.net.trace import traced
from lab.tap import case, equal, main, need_virtual_time, true, within

LATE = 1000         # ns: the clock device's shortest delay, twice


def times(options, frame, count, gap=0.0):
    """Arrival times of `count` frames, ns after the first."""
    p.port(f"limit 500m {options}")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(frame)              # the first switches time stamps on
    receiver.frames(1)
    p.settle(0.1)
    for _ in range(count):
        sender.send(frame)
        if gap:
            time.sleep(gap)
    got = [when for when, _ in receiver.frames(count)]
    sender.close()
    receiver.close()
    equal(len(got), count, "frames")
    if not gap and options:
        true(p.shown()["overlimits"] > 0, "overlimits: frames have waited for the link")
    return [when - got[0] for when in got]


def check(rate, size, overhead=0, count=3000):
    """Check that each of many frames arrives at its own time, without drift."""
    words = f"rate {rate}gbit" + (f" overhead {overhead}" if overhead else "")
    for i, seen in enumerate(times(words, p.ipv4(size), count)):
        due = i * (size + overhead) * 8 // rate
        within(seen, due, due + LATE, f"{words}, {size} bytes: arrival time of frame {i}, ns")


@case("10 Gbit/s is exact")
def rate_10():
    check(10, 1500)


@case("40 Gbit/s is exact, with and without overhead")
def rate_40():
    check(40, 1500)
    check(40, 1514, overhead=24)


@case("100 Gbit/s is exact: 1500, 1513 and 64 bytes, with overhead")
def rate_100():
    check(100, 1500)
    check(100, 1513)
    check(100, 64, overhead=24)


@case("400 Gbit/s is exact")
def rate_400():
    check(400, 1500)


@case("1 Mbit/s is exact")
def rate_slow():
    for i, seen in enumerate(times("rate 1mbit", p.ipv4(1250), 50)):
        within(seen, i * 10000000, i * 10000000 + LATE, f"arrival time of frame {i}, ns")


@case("idle time permits no burst")
def idle():
    # 1000 bytes at 8 Mbit/s are 1 ms; idle for 50 ms, then three at once
    p.port("rate 8mbit limit 1m")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.ipv4(1000))
    p.settle(0.05)
    sender.send(p.ipv4(1000), 3)
    got = [when for when, _ in receiver.frames(4)]
    equal(len(got), 4, "frames")
    within(got[2] - got[1], 1000000, 1000000 + LATE,
           "time between the second and the third frame, ns")
    within(got[3] - got[2], 1000000 - LATE, 1000000 + LATE, "time between the last two frames, ns")
    sender.close()
    receiver.close()


@case("frames that arrive below the rate are not delayed")
def slower():
    seen = times("rate 8mbit", p.ipv4(500), 10, gap=0.002)
    for i, (a, b) in enumerate(zip(seen, seen[1:])):
        within(b - a, 2000000, 2200000, f"time between frames {i} and {i + 1}, ns")


@case("without a rate all frames leave at once")
def no_rate():
    seen = times("", p.ipv4(1500), 1000)
    within(seen[-1], 0, LATE, "time of 1000 frames, ns")


@case("a new rate holds for the rest of the frame in transmission")
def change_rate():
    p.port("rate 8bit limit 1m")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.ipv4(1000), 3)
    first = receiver.frames(1)[0][0]
    p.settle(500)                               # 500 bytes later
    p.tc("qdisc change dev p0 root color rate 8kbit")
    got = [when - first for when, _ in receiver.frames(2, wait=5)]
    equal(len(got), 2, "frames after the change")
    within(got[0], 500.4e9, 500.7e9, "time from the first to the second frame, ns")
    within(got[1] - got[0], 1e9 - LATE, 1e9 + LATE, "time from the second to the third frame, ns")
    sender.close()
    receiver.close()


@case("slack: several frames share a timer; each is late by the slack at most, without drift",
      gbit=(1, 10))
def slack(gbit):
    count, size = 2000, 1514
    seen = {}
    for ns in (0, 20000):
        p.port(f"limit 500m rate {gbit}gbit slack {ns}ns")
        sender, receiver = p.Sender(), p.Receiver()
        sender.send(p.ipv4(size))
        receiver.frames(1)
        p.settle(0.1)
        with traced("timer/hrtimer_start") as started:
            sender.send(p.ipv4(size), count)
            p.settle(0.05)
        seen[ns] = sum("=qdisc_watchdog" in line for line in started)
        got = [when for when, _ in receiver.frames(count)]
        equal(len(got), count, "frames")
        for i, when in enumerate(got):
            due = i * size * 8 // gbit
            within(when - got[0], due, due + ns + LATE,
                   f"slack {ns}: arrival time of frame {i}, ns")
        sender.close()
        receiver.close()
    print(f"# {gbit} Gbit/s: timers for {count} frames: {seen}", flush=True)
    # Frames that start within the slack share a timer.
    within(seen[20000], 10, count / (1 + 20000 // (size * 8 // gbit)) + 10, "slack 20 us: timers")
    within(seen[0], count / 2, count + 10, "slack 0: timers")


@case("a port without a slack has the module's, and shows it")
def default_slack():
    with open("/sys/module/sch_color/parameters/slack", "r+", encoding="ascii") as file:
        before = file.read()
        file.write("12345")
        file.flush()
        p.port("rate 1gbit")
        equal(p.options()["slack"], 12345, "slack")
        file.write("4000000000")
        file.flush()
        p.port("rate 1gbit")
        equal(p.options()["slack"], 1000000, "slack: the maximum of a port")
        file.write(before)
    p.port("rate 1gbit")
    equal(p.options()["slack"], 0, "slack in the lab")


main(need_virtual_time)
