#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Dart's convergence time: until a long flow and a joining flow each have half of the link.

	this script (host) --> scripts/experiment --> guests, in virtual time

	s0 (a long flow) --+
	                   +-- switch port, marks from 22.5 kB (10 Gbit/s) -- r
	s1 (joins) --------+
"""
import pathlib
import subprocess
import tempfile

from experiments.ask import rows
from experiments.kinds.converge import joins
from lab import TOP, tap
from lab.measure import capture
from lab.tap import case, equal, true, within


def two_rates(second, change, rate=10 * 10**9, end=1_400_000):
    """Packets of two flows.  The second begins at 0 with `second` of the line rate, and has half
    from `change` ns on; the first has the rest."""
    packets, size = [], 1514
    step = (size + joins.GAPS) * 8e9 / rate
    for port, parts in ((joins.OLD, (1.0, 0.5)), (joins.NEW, (second, 0.5))):
        time = -200_000.0 if port == joins.OLD else 0.0
        while time < end:
            part = parts[0] if time < change else parts[1]
            packets.append(capture.Packet(int(port), False, size, 1448, int(time), int(time)))
            time += step / part
    return sorted(packets, key=lambda p: p.arrived)


@case("joins.converged() finds the convergence time of synthetic flows")
def measure():
    config = {"delay": 5000, "rate": 10 * 10**9, "gap": 10**6}
    for change in (0, 20_000, 40_000, 200_000):
        [found] = joins.converged(two_rates(1.0, change), config)
        within(found, max(0, change - 12_000), change + 2_000, f"ns, for {change}")
    for part in (0.45, 0.4, 0.6):
        packets = two_rates(part, 10**9)
        equal(joins.converged(packets, config), [None], f"a flow with {part} of the line rate")


# The paper's 90th, 99th and 99.9th percentile, in its round trips of 15 us (V-A).
PAPER = {"rtts_p90": 28 / 15, "rtts_p99": 41 / 15, "rtts_p99.9": 44 / 15}


def as_in_the_paper(row):
    """Compare with the paper's percentiles; with 16 or 32 joins the higher ones are the slowest."""
    for name, most in PAPER.items():
        within(row[name], 0.5, most, f"round trips, {name}")
    equal([row["never"], row["timeouts"], row["drops"]], [0, 0, 0], "never, RTOs, drops")


@case("10 Gbit/s: dart converges as soon as in the paper, half of its joins in 1.5 round trips")
def ten():
    dart = rows("converge", "--rounds", "32", "--cc", "dart")["dart"]
    equal(dart["joins"], 32, "joins")
    as_in_the_paper(dart)
    within(dart["rtts_p50"], 0.5, 1.5, "round trips, median")
    # Half of the line rate during a message, all of it between two messages.
    within(dart["bulk_gbit"], 5, 9.8, "the old flow, Gbit/s")


@case("40 Gbit/s: the same")
def forty():
    dart = rows("converge", "--rounds", "16", "--rate", "40gbit", "--cc", "dart")["dart"]
    equal(dart["joins"], 16, "joins")
    as_in_the_paper(dart)


@case("16 to 1, 256 kB beside a long flow: near the ideal, and the long flow keeps the rest")
def incast():
    # Relative to the ideal and not to dcqcn, whose result is poor.
    dart = rows("incast", "--cc", "dart", "--senders", "17", "--fan-in", "16",
                "--bytes", "256k", "--bulk", "1", "--rate", "10gbit", "--rounds", "4",
                "--gap", "100ms", "--port", "color rate 10gbit limit 4m ecn 22500")["dart"]
    within(dart["ratio"], 1.0, 1.12, "dart: the slowest, divided by the ideal")
    within(dart["bulk_gbit"], 8, 10, "dart: the long flow, Gbit/s")
    equal([dart["timeouts"], dart["drops"]], [0, 0], "RTOs, drops")


@case("--plot writes a plot, from correct rates")
def drawn():
    with tempfile.TemporaryDirectory() as out:
        rows("converge", "--rounds", "2", "--plot", f"{out}/plot")
        for suffix in ("svg", "png"):
            true(pathlib.Path(f"{out}/plot.{suffix}").stat().st_size > 5000, suffix)
    gbit = rows("converge", "--rounds", "2", "--cc", "dart")["dart"]["rates"]["gbit"]
    for flow in gbit:
        within(sum(flow[-10:]) / 10, 4.5, 5.2, "Gbit/s of each flow at the end")
    within(sum(gbit[0][:4]) / 4, 9.5, 10.2, "Gbit/s of the old flow before the join")


@case("an invalid command line is refused in one line")
def mistakes():
    for words, expect in ((("--fresh",), "persistent"), (("--bytes", "10k"), "round trips"),
                          (("--rounds", "0"), "rounds")):
        done = subprocess.run([TOP / "scripts/experiment", "converge", *words],
                              capture_output=True, text=True, check=False)
        equal(done.returncode, 2, f"{words}: status")
        equal(len(done.stderr.splitlines()), 1, f"{words}: length of the message in text lines")
        true(expect in done.stderr, f"{words}: {done.stderr}")


if __name__ == "__main__":
    tap.main()
