# SPDX-License-Identifier: GPL-2.0
"""The costs of the transports and of the switch port, as ratios measured in one run.

	scripts/bench [--kernel V] [--repeat N] [PART...]

Parts: bulk (goodput and processor time of one flow), connections (processor
time of a packet, many connections against few), port (a packet through the
qdisc, memory of a port), calls (a packet through the qdisc, called plainly and through
retpolines, and through bands of a port with a rate), queues (two ports with one pool,
on two processors of Linux 7.3), hooks (a packet of a connection that does not use
greenlane), memory (of an idle connection, and its timers), hosts (each transport in
real time, on two processors of Linux 7.3 and over virtio), status (processor time of `greenlane
status` on the distribution's kernel, in an emulated machine).  Runs that are compared
are interleaved; of processor times the minimum counts, because other work of the
machine only adds to them.  This is not a test: it does not fail if a result misses its
goal.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from experiments import pool
from experiments.bench.memory import OTHERS
from lab import TOP

BASES = ("reno", "cubic", "dctcp")
PARTS = ("port", "calls", "queues", "hooks", "memory", "bulk", "connections", "hosts",
         "status")
NETWORK = {
    "experiment": "incast", "segments": False,
    "senders": 8, "bytes": 32768, "rate": 40 * 10**9, "delay": 5000,
    "limit": 1800 << 10, "red": 270 << 10, "ecn": 200 << 10, "rto_min": 4 * 10**6,
    "rounds": 0, "gap": 10**7, "fresh": False, "bulk": 0, "lead": 10**7,
    "duration": 0, "ipv6": False, "tso": True, "port": "",
}
FEW, MANY = 16, 10000
# Transports of the hosts in real time, each against the first.
REAL = ("reno", "tlt_reno", "xpass", "aeolus_xpass", "ndp", "aeolus_ndp", "homa", "aeolus_homa")
# The addresses of functions and tables differ between boots, which changes times by some percent.
BOOTS = 3
RETPOLINES = "KCFLAGS=-mindirect-branch=thunk-inline -mindirect-branch-register"


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="7.3")
    parser.add_argument("--repeat", type=int, default=5, help="turns (5)")
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    return parser.parse_args()


class Bench:
    """The parts, each of which adds rows to the table."""

    def __init__(self, kernel, repeat):
        self.kernel, self.repeat = kernel, repeat
        self.kdir, self.built = self._build(kernel)
        self.rows = []

    @staticmethod
    def _build(kernel, *variant):
        """(a kernel's directory, [scripts/guest's options for that kernel with our modules])"""
        def script(name):
            done = subprocess.run([TOP / "scripts" / name, "--kernel", kernel, *variant],
                                  stdout=subprocess.PIPE, text=True, check=True)
            return done.stdout.strip().rpartition("\n")[2]
        kdir = script("kernel")
        return kdir, ["--kernel", kernel, *variant, "--built", kdir, script("modules")]

    def row(self, what, ratio, goal, detail):
        """Add a row to the table."""
        self.rows.append((what, ratio, goal, detail))
        print(f"bench: {what}: {ratio} ({detail})", file=sys.stderr)

    def runs(self, jobs, **network):
        """The results of incast jobs, all in one guest, each repeated `repeat` times."""
        results = pool.run_jobs(dict(NETWORK, **network), jobs * self.repeat, 1,
                                  [*self.built, "--timeout", "1800"])
        for result in results:
            if "error" in result or result["unfinished"]:
                raise SystemExit(f"bench: {result['cc']}: {result.get('error')}")
        return results

    def bulk(self):
        """One flow at line rate: goodput and processor time of a TLT form and its base."""
        ccs = [cc for base in BASES for cc in (base, f"tlt_{base}")]
        for gbit, duration in ((40, 100), (100, 50)):
            runs = self.runs([{"cc": cc, "flows": 0} for cc in ccs], bulk=1,
                             rate=gbit * 10**9, duration=duration * 10**6)
            for base in BASES:
                mine, its = ([r for r in runs if r["cc"] == cc]
                             for cc in (f"tlt_{base}", base))
                fast = [statistics.median(8 * r["bulk_bytes"] / r["elapsed_ns"]
                                          for r in group) for group in (mine, its)]
                self.row(f"goodput, {gbit} Gbit/s, tlt_{base} / {base}",
                         f"{fast[0] / fast[1]:.3f}", ">= 0.98",
                         f"{fast[0]:.1f} / {fast[1]:.1f} Gbit/s")
                cost = [min(r["cpu_s"] * 1e9 / r["read_bytes"] for r in group)
                        for group in (mine, its)]
                self.row(f"CPU, {gbit} Gbit/s, tlt_{base} / {base}",
                         f"{cost[0] / cost[1]:.3f}", "<= 1.05",
                         f"{cost[0]:.2f} / {cost[1]:.2f} s/GB")

    def connections(self):
        """The same bytes over many connections and over few."""
        whole, short, long = MANY * 16384, 1, 3
        ccs = ("dctcp", "tlt_dctcp")
        jobs = [{"cc": cc, "flows": flows, "bytes": whole // flows, "rounds": rounds}
                for flows in (FEW, MANY) for cc in ccs for rounds in (short, long)]
        # Large limits and thresholds: this measures processor time, not losses.
        room = {key: 1 << 30 for key in ("limit", "red", "ecn")}
        runs = self.runs(jobs, **room)
        cost = {}
        for cc in ccs:
            for flows in (FEW, MANY):
                group = [r for r in runs if (r["cc"], r["flows"]) == (cc, flows)]
                totals = {n: (min(r["cpu_s"] for r in part),
                              statistics.median(r["tcp_info"]["data_segs_out"] for r in part))
                          for n in (short, long)
                          for part in [[r for r in group if r["rounds"] == n]]}
                # The difference excludes the cost of connecting and closing.
                cost[cc, flows] = 1e9 * (totals[long][0] - totals[short][0]) / (
                    totals[long][1] - totals[short][1])
            self.row(f"CPU of a packet, {MANY} connections / {FEW}, {cc}",
                     f"{cost[cc, MANY] / cost[cc, FEW]:.2f}",
                     "<= 1.1" if cc == ccs[1] else "",
                     f"{cost[cc, MANY]:.0f} / {cost[cc, FEW]:.0f} ns")
        for flows in (FEW, MANY):
            self.row(f"CPU of a packet, {flows} connections, tlt_dctcp / dctcp",
                     f"{cost[ccs[1], flows] / cost[ccs[0], flows]:.2f}", "",
                     f"{cost[ccs[1], flows]:.0f} / {cost[ccs[0], flows]:.0f} ns")

    def _guest(self, *command, options=()):
        done = subprocess.run([TOP / "scripts/guest", *(options or self.built), "--", *command],
                              stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)

    @staticmethod
    def _make(kdir, directory, *words):
        subprocess.run(["make", "-s", "-C", kdir, "ARCH=um", f"M={directory}", *words,
                        "modules"], check=True, stdout=sys.stderr)

    def _guest_with(self, module, program):
        """Build a module of this directory, and run a program that uses it in a guest; returns the
        program's JSON."""
        with tempfile.TemporaryDirectory(prefix="greenlane-bench-") as copy:
            shutil.copytree(TOP / "tools/experiments/bench", copy, dirs_exist_ok=True)
            self._make(self.kdir, copy)
            return self._guest("/usr/bin/python3", "-P", "-m", program, f"{copy}/{module}.ko")

    def _boots_with(self, kdir, options, module, program, *words, flags=RETPOLINES):
        """As _guest_with(), in real time, for each of BOOTS guests.  The module makes indirect calls
        as the distribution's kernels do, by retpolines, or as compiled with @flags.  (Our own
        modules do not: in User-Mode Linux every call is indirect, and would be a retpoline.)"""
        with tempfile.TemporaryDirectory(prefix="greenlane-bench-") as copy:
            shutil.copytree(TOP / "tools/experiments/bench", copy, dirs_exist_ok=True)
            self._make(kdir, copy, *filter(None, [flags]))
            return [self._guest("/usr/bin/python3", "-P", "-m", program, f"{copy}/{module}.ko",
                                *words, options=(*options, "--real-time")) for _ in range(BOOTS)]

    def _packet(self, what, boots, one, other, goal, *, unit=("cycles", 1), after=""):
        """Add a row: the cost of a packet through qdisc `one` divided by its cost through `other`.
        `boots`: {qdisc: cycles} of each guest; `unit`: a name, and the cycles in one."""
        name, size = unit
        pairs = [(seen[one], seen[other]) for seen in boots]
        mine, its = (statistics.median(column) / size for column in zip(*pairs))
        ratios = sorted(a / b for a, b in pairs)
        self.row(f"{what}, {one} / {other}{after}", f"{statistics.median(ratios):.2f}", goal,
                 f"{mine:.1f} / {its:.1f} {name}; {ratios[0]:.2f} … {ratios[-1]:.2f}")

    def hooks(self):
        """A packet of another congestion control's connection, through the netfilter hooks."""
        seen = self._guest_with("hook_bench", "experiments.bench.hooks")
        for dscp, ways in seen.items():
            for way, cost in ways.items():
                extra = {name: cost[name] - cost["none"] for name in ("greenlane", "empty")}
                self.row(f"hooks, another's packet, DSCP {dscp}, {way}, greenlane / empty hook",
                         f"{cost['greenlane'] / cost['empty']:.2f}", "1.0",
                         f"{extra['greenlane']:+.0f} / {extra['empty']:+.0f} cycles over none"
                         f" ({cost['none']:.0f})")

    def port(self):
        """The cost of a packet through a qdisc, and the memory of a port."""
        boots = self._boots_with(self.kdir, self.built, "qdisc_bench", "experiments.bench.qdiscs")
        with open("/proc/cpuinfo", encoding="ascii") as file:
            ghz = float(re.search(r"cpu MHz\s*: ([\d.]+)", file.read())[1]) / 1000

        def compare(packets, burst, one, other, goal):
            self._packet(f"enqueue + dequeue, {burst} queued",
                         [seen[packets][burst] for seen in boots], one, other, goal,
                         unit=("ns", ghz),
                         after=", short messages" if packets == "short" else "")

        for burst in boots[0]["cycles"]:
            compare("cycles", burst, "color", "red", "<= 0.75")
            compare("cycles", burst, "color", "bfifo", "<= 1.10")
            for ability in ("ecn", "pool", "rate", "bands", "trim", "auto", "int"):
                compare("cycles", burst, f"color {ability}", "color", "<= 1.3")
            compare("cycles", burst, "color int", "color rate", "")
            for packets in ("cycles", "short"):
                compare(packets, burst, "iofd", "color", "<= 1.1")
                compare(packets, burst, "iofd", "prio", "")
            compare("cycles", burst, "prio action", "prio", "")
        seen = boots[0]
        self.row("timers armed for a packet, 10 Gbit/s, real time", f"{seen['arms']:.3f}",
                 "<= 0.1", "")
        size = seen["port_bytes"]
        self.row("memory of a port, color / red", f"{size['color'] / size['red']:.2f}",
                 "<= 4096 B", f"{size['color']:.0f} / {size['red']:.0f} B")
        self.row("the same, iofd over color / color", f"{size['iofd'] / size['color']:.2f}", "",
                 f"{size['iofd']:.0f} / {size['color']:.0f} B")
        self.row("the same, 2 bands / color", f"{size['color bands'] / size['color']:.2f}",
                 "<= 4096 B", f"{size['color bands']:.0f} / {size['color']:.0f} B")

    def calls(self):
        """The cost of a packet through a qdisc, with plain calls and retpolines, and with bands."""
        for way, flags in (("plain", ""), ("retpolines", RETPOLINES)):
            boots = self._boots_with(self.kdir, self.built, "qdisc_bench", "experiments.bench.qdiscs",
                                     "calls", flags=flags)
            for packets, one, other, goal in (
                    ("mix", "color", "red", "<= 0.85" if flags else "<= 0.78"),
                    ("mix", "color", "bfifo", ""),
                    ("mix", "color rate", "color", ""),
                    ("busy", "color rate, 2 bands", "color", "<= 2"),
                    ("busy", "color rate, 16 bands", "color", "<= 3"),
                    ("busy", "color, 16 bands", "color", "")):
                for burst in boots[0][packets]:
                    self._packet(f"{way}, {burst} queued", [seen[packets][burst] for seen in boots],
                                 one, other, goal)

    def queues(self):
        """Two ports with one pool, each on a processor of its own: do they slow each other?"""
        boots = self._boots_with(*self._build("7.3", "--smp"), "qdisc_bench",
                                 "experiments.bench.qdiscs", "queues")
        for burst in boots[0]:
            def scaling(name, seen, burst=burst):
                alone, together = seen[burst][name]
                return alone / together
            for name in ("color", "color pool"):
                ratios = sorted(scaling(name, seen) / scaling("bfifo", seen) for seen in boots)
                mine, its = (statistics.median(scaling(which, seen) for seen in boots)
                             for which in (name, "bfifo"))
                self.row(f"two processors, {burst} queued, mq with {name} / mq with bfifo",
                         f"{statistics.median(ratios):.2f}", ">= 0.95",
                         f"{mine:.2f} / {its:.2f} of twice one; "
                         f"{ratios[0]:.2f} … {ratios[-1]:.2f}")

    def memory(self):
        """An idle connection with and without TLT or credits, and one that uses neither."""
        said = self._guest("/usr/bin/python3", "-P", "-m", "experiments.bench.memory")
        seen = {name: size for name, (size, _) in said.items()}
        pairs = [(f"tlt_{base}", base) for base in BASES]
        for cc, base in pairs + [(cc, "reno") for cc in OTHERS]:
            mine, its = seen[cc], seen[base]
            self.row(f"memory of a connection, {cc} / {base}", f"{mine / its:.3f}",
                     "<= +384 B", f"{mine:.0f} / {its:.0f} B: {mine - its:+.0f} B")
        for cc in (*OTHERS, "tlt_dctcp"):
            self.row(f"timers of {MANY} idle connections, {cc}", str(said[cc][1]), "0", "")
        loaded, bare = seen["cubic"], seen["cubic, no module"]
        self.row("the same, cubic, modules loaded / not", f"{loaded / bare:.3f}",
                 "+0 B", f"{loaded:.0f} / {bare:.0f} B: {loaded - bare:+.0f} B")

    def hosts(self):
        """Each transport in real time, on two processors: a transfer, the answers to a byte, and an
        incast; over veth, and over two virtio NICs."""
        _, options = self._build("7.3", "--smp")
        nics = ("--machine", "qemu", *2 * ("--nic", "hubport,hubid=1"))
        for what, machine in (("veth", options), ("virtio", nics)):
            seen = self._guest("/usr/bin/python3", "-P", "-m", "experiments.bench.hosts",
                               str(self.repeat), *REAL, options=(*machine, "--timeout", "1800"))
            for mbit, ccs in seen.items():
                # Other work of the machine only adds to a time.
                best = {cc: {key: (max if key == "gbit" else min)(run[key] for run in runs)
                             for key in runs[0]} for cc, runs in ccs.items()}
                its = best[REAL[0]]
                for cc in REAL:
                    mine = best[cc]
                    self.row(f"CPU of a GB, {what}, {mbit} Mbit/s, {cc} / {REAL[0]}",
                             f"{mine['cpu'] / its['cpu']:.2f}", "<= 3",
                             f"{mine['cpu']:.1f} / {its['cpu']:.1f} s; softirq {mine['softirq']:.0%};"
                             f" {1000 * mine['gbit']:.0f} Mbit/s; answers: p50 {mine['p50']:.0f},"
                             f" p99 {mine['p99']:.0f} us; incast {mine['incast']:.2f} x the link's")

    def status(self):
        """`greenlane status` with 4000 sockets in 100 namespaces, and `ss` in each namespace."""
        seen = self._guest("/usr/bin/python3", "-P", "-m", "experiments.bench.status",
                           options=("--machine", "qemu", "--timeout", "1800"))
        self.row("CPU, 4000 sockets, 100 namespaces, greenlane status / ss in each",
                 f"{seen['status'] / seen['ss']:.2f}", "<= 2 s",
                 f"{seen['status']:.1f} / {seen['ss']:.1f} s; state {seen['state'] / 1000:.0f} kB")

    def table(self):
        """All rows, aligned."""
        rows = [("what", "ratio", "goal", "measured"), *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width
                                   in zip(row, widths)).rstrip() for row in rows)


def main():
    """Run the parts on the command line, or all."""
    args = parse_args()
    subprocess.run([TOP / "scripts/setup"], check=True)
    subprocess.run(["make", "-s", "-C", TOP / "tools/tc"], check=True)
    bench = Bench(args.kernel, args.repeat)
    for part in args.part or PARTS:
        getattr(bench, part)()
    print(bench.table())


if __name__ == "__main__":
    main()
