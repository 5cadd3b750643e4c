# SPDX-License-Identifier: GPL-2.0
"""Run the tests; the output ends with "N passed, N failed".

	scripts/check [--kernel V]... [--debug | --smp | --smp-debug | --base paper | --all] [NAME...]

Without options: all tests on User-Mode Linux 7.3 (6.1, which is slower, where the machine's apt
sources have no 7.3), and on the distribution's own kernel the tests that need it (stock_*), or two
processors (smp_*), or test an installation (install_*).  --all adds User-Mode Linux 6.1, 6.12, 7.3 with
the TCP of the papers' baselines (paper_*), and 7.3 with KASAN, lockdep and kmemleak, and two
kernels with processors: the same watchdogs, and KCSAN.

The tests that failed in the last run start first, then the longest.  Those with two emulated processors
run at the end, each alone.
On each kernel: the modules build without a warning, KUnit, then each file of
tools/testing/selftests in a guest of its own.  guest_* files start guests, so
they run on the host.  The tree must also build on the distribution's headers, and
scripts/lint, without its slow parts, must have no findings.
A NAME selects the tests whose name contains it.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import heapq
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from lab import TOP
from lab.check import complaints, tap
from lab.guest import CACHE, kernel_options

SELFTESTS = TOP / "tools/testing/selftests"

# Seconds after which the name of a running test is printed: the longest, on emulated
# processors, takes 500.
SLOW = 900

# Rows of each failure that the end of the output repeats.
AGAIN = 3

# Time limit of a file of tests that starts guests, in seconds.  The longest is
# guest_install.py: 170 on an idle machine, 290 beside other tests.
HOST_LIMIT = 1500

# The tests without a guest.
HEADERS, LINT = "build, distribution headers", "lint"

# The longest tests, in seconds, run in parallel on two processors: they start first.  The names are
# those of the output, without the kernel.
LONG = {"guest_install.py": 250, "guest_load.py": 440,
        "install_autoload.py": 180, "guest_incast.py": 370,
        "stock_bpftrace.py": 150, LINT: 250, "guest_mininet.py": 240, "install_geneve.py": 140,
        "guest_deflect.py": 170, HEADERS: 155, "guest_hosts.py": 150, "guest_first_rtt.py": 150,
        "load_network.py": 140, "guest_kselftest.sh": 130, "guest_redis.py": 125}

# The names of the tests that failed when they ran last, one a row.
FAILED = CACHE / "check-failed"

_print_lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Config:
    """A kernel to test on."""

    machine: str
    kernel: str
    variant: str = ""

    @property
    def label(self):
        """The kernel's name in the output."""
        return self.kernel + f"-{self.variant}" * bool(self.variant)

    @property
    def which(self):
        """The options of scripts/kernel, scripts/modules and scripts/guest."""
        return kernel_options(self.machine, self.kernel, self.variant)

    @property
    def paper(self):
        """Is its TCP that of the papers' baselines?"""
        return self.variant == "paper"

    @property
    def smp(self):
        """Does it have several processors, and so no virtual time?"""
        return self.machine == "qemu" or self.variant.startswith("smp")

    def limit(self, full):
        """The option of scripts/guest for the time limit of a test; `full`: of a --full run."""
        if self.machine == "qemu":
            return ["--timeout", "7200" if self.variant else "3600" if full else "1200"]
        return ["--timeout", "3600" if self.variant else "900"] * full

    def is_alone(self, name):
        """Does a test have two emulated processors, which would wait for each other while another
        test has a processor of the host?  Beside another test smp_churn.py takes three times as
        long, and 1.7 times the processor time."""
        return self.machine == "qemu" and name.startswith("smp_")

    def processors(self, name):
        """The option of scripts/guest for the processors of a test."""
        return ["--cpus", "1"] * (self.machine == "qemu" and not self.is_alone(name))

    def wants(self, name):
        """Does this file of selftests run on this kernel?"""
        if self.smp:
            return name.startswith(("smp_",) if self.variant else ("smp_", "install_", "stock_"))
        return name.startswith("paper_") if self.paper else not name.startswith(
            ("smp_", "paper_", "stock_"))


STOCK = Config("qemu", "stock")
UML_DEBUG = Config("uml", "7.3", "debug")
SMP = Config("uml", "7.3", "smp")
SMP_DEBUG = [Config("uml", "7.3", "smp-debug"), Config("qemu", "7.3", "kcsan")]
PAPER = Config("uml", "7.3", "paper")
# 7.3 traps system calls with seccomp, 6.1 with ptrace: the same tests take 6.1 two to five times as
# long.  Backports have 7.3 only until the next kernel replaces it; Debian 12 keeps 6.1.
FASTEST, OLDEST = Config("uml", "7.3"), Config("uml", "6.1")
DEFAULT = [FASTEST, STOCK]
ALL = [FASTEST, Config("uml", "6.12"), OLDEST, STOCK, PAPER, UML_DEBUG, *SMP_DEBUG]

# In the guest: load the KUnit modules, and print their log (the results in debugfs are cut
# short on 6.1).
KUNIT = r"""
dmesg -C
insmod $GL_MODDIR/net/link_speed.ko
insmod $GL_MODDIR/net/greenlane.ko
for module in $GL_MODDIR/tools/testing/kunit/*.ko; do
	insmod "$module" || echo "    not ok 1 - insmod ${module##*/}"
done
dmesg -t
"""


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="check", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", metavar="V",
                        help="only on this one: 6.1, 6.12, 7.3 or stock")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--debug", action="store_true",
                       help="KASAN, lockdep, kmemleak; 7.3 if no --kernel is given")
    group.add_argument("--smp", action="store_true",
                       help="with two processors at the host's speed, on 7.3")
    group.add_argument("--smp-debug", action="store_true",
                       help="both, and KCSAN")
    group.add_argument("--base", choices=["linux", "paper"], default="linux",
                       help="paper: 7.3 with the TCP of the papers' baselines")
    group.add_argument("--all", action="store_true", help="every kernel there is; --full")
    parser.add_argument("--full", action="store_true",
                        help="churn and fuzz as long as there is to find something")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="guests at a time (one a processor)")
    parser.add_argument("--phase", type=int, default=0, metavar="US",
                        help="begin each case so many us after a second of virtual time (0)")
    parser.add_argument("name", nargs="*", help="only tests with this in their name")
    args = parser.parse_args()
    if args.kernel and (args.all or args.smp or args.smp_debug or args.base == "paper"):
        parser.error("--kernel: alone, or with --debug")
    return args


def configs(args):
    """The kernels that the command line selects."""
    if args.all:
        return ALL
    if args.smp:
        return [SMP]
    if args.smp_debug:
        return SMP_DEBUG
    if args.base == "paper":
        return [PAPER]
    if args.debug:
        return [Config("uml", v, "debug") for v in args.kernel or [UML_DEBUG.kernel]]
    return [STOCK if v == "stock" else Config("uml", v)
            for v in args.kernel or []] or DEFAULT


def script(name, *args):
    """Run a script; returns the last row of its stdout, or None if it fails."""
    done = subprocess.run([TOP / "scripts" / name, *args], text=True,
                          stdout=subprocess.PIPE, check=False)
    return done.stdout.strip().rpartition("\n")[2] if not done.returncode else None


def broken_test(reason):
    """An outcome with one failure, in place of the tests that cannot run."""
    outcome = tap.Outcome()
    outcome.fail(reason)
    return outcome


def run(command, env=None):
    """Run a command; returns (stdout, stderr, exit status)."""
    done = subprocess.run(command, text=True, capture_output=True, check=False,
                          errors="replace", env=env)
    return done.stdout, done.stderr, done.returncode


def sources():
    """The sources of the modules, relative to the tree."""
    out, _, _ = run(["bash", "-c", f". '{TOP}/scripts/lib.sh'; echo ${{GL_SOURCES[*]}}"])
    return out.split()


def build_test(kdir, *make_args):
    """The tree builds, in a fresh copy and without a warning."""
    outcome = tap.Outcome()
    with tempfile.TemporaryDirectory(prefix="greenlane-build-") as copy:
        ignore = shutil.ignore_patterns("*.o", "*.ko", "*.mod", "*.mod.c", "*.cmd",
                                        "Module.symvers", "modules.order")
        for part in sources():
            if (TOP / part).is_dir():
                shutil.copytree(TOP / part, pathlib.Path(copy, part), ignore=ignore)
            elif (TOP / part).exists():
                shutil.copy(TOP / part, pathlib.Path(copy, part))
        out, err, status = run(["make", "-C", kdir, f"M={copy}", *make_args,
                                f"-j{os.cpu_count()}", "modules"])
        said = complaints(out + err)
        if status or said:
            outcome.fail(f"make: exit status {status}")
            outcome.reasons += said or err.splitlines()[-20:]
        else:
            outcome.passed = 1
    return outcome


def newest_headers():
    """The build directory of the distribution's newest installed headers."""
    out, _, _ = run(["bash", "-c", f". '{TOP}/scripts/lib.sh'; newest_headers"])
    return out.strip()


def lint_test(kernel):
    """The quick parts of scripts/lint."""
    outcome = tap.Outcome()
    out, err, status = run([TOP / "scripts/lint", "--kernel", kernel,
                            "tree", "shell", "python", "words", "pages", "build"])
    if status:
        outcome.fail(f"exit status {status}")
        outcome.reasons += (out + err).splitlines()
    else:
        outcome.passed = 1
    return outcome


def headers_test():
    """The tree builds on the distribution's headers."""
    headers = newest_headers()
    return build_test(headers) if headers else broken_test("no linux-headers-amd64")


def kunit_test(guest):
    """The KUnit modules, all in one guest."""
    out, err, status = run([*guest, "--", "sh", "-c", KUNIT])
    outcome = tap.read_kunit(out)
    if status:
        outcome.fail(f"exit status {status}")
    if not outcome.passed + outcome.failed:
        outcome.fail("no KUnit test reported")
    if outcome.failed:
        outcome.reasons += err.splitlines()[-25:]
    return outcome


def file_test(path, guest, config):
    """One file of selftests; a file that starts guests runs on the host."""
    if path.name.startswith("guest_"):
        limit = 4 * HOST_LIMIT if config.variant else HOST_LIMIT
        out, err, status = run(["timeout", "--kill-after=30", str(limit), path], dict(
            os.environ, GL_KERNEL=config.kernel,
            GL_DEBUG="1" if config.variant == "debug" else ""))
    else:
        out, err, status = run([*guest, *config.processors(path.name), "--", path])
    return tap.read(out, status, err)


def timed(name, function, *args):
    """Run one test and print its result; returns the outcome."""
    began = time.monotonic()
    outcome = function(*args)
    seconds = time.monotonic() - began
    skipped = f", {outcome.skipped} skipped" if outcome.skipped else ""
    with _print_lock:
        print(f"{'FAIL' if outcome.failed else 'ok  '} {name:<36}"
              f" {outcome.passed:3} passed, {outcome.failed} failed{skipped}"
              f" ({seconds:.1f} s)")
        for reason in outcome.reasons:
            print(f"       {reason}")
        sys.stdout.flush()
        remember(name, outcome.failed)
    return outcome


def expected(name):
    """Expected seconds of a test; 0 if it is short."""
    file, _, kernel = name.partition(", ")
    if file.startswith("install_") and kernel != STOCK.label:
        return 0        # without emulation it is short
    return LONG.get(name, LONG.get(file, 0))


def failed_before():
    """The names in FAILED; without it, none."""
    try:
        return set(FAILED.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return set()


def remember(name, failed):
    """Write the result of a test to FAILED, if that can be written; _print_lock is held."""
    before = failed_before()
    names = before - {name} | ({name} if failed else set())
    with contextlib.suppress(OSError):
        if names != before:
            FAILED.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


class Queue:
    """Tests that wait for a thread of a pool.  A free thread takes one that failed in the last run,
    or the longest of them, because a long test that started last would leave the other processors
    idle.
    """

    def __init__(self, pool):
        self._pool, self._lock, self._waiting = pool, threading.Lock(), []
        self._first = failed_before()
        self.running = {}       # {future: [name]}, without a name until it starts

    def put(self, name, function, *args):
        """Add a test."""
        with self._lock:
            # The number keeps the order of equally long tests, and heapq compares no functions.
            heapq.heappush(self._waiting, (name not in self._first, -expected(name),
                                           len(self.running), name, function, args))
        slot = []
        self.running[self._pool.submit(self._take, slot)] = slot

    def _take(self, slot):
        with self._lock:
            *_, name, function, args = heapq.heappop(self._waiting)
        slot.append(name)
        return timed(name, function, *args)


def await_all(running, total, failed):
    """Add all outcomes to `total`, and the reasons of failed tests to `failed`, {name: reasons}.
    Meanwhile, print the name of each test that runs longer than SLOW: if this program is stopped at
    a time limit, its output shows which test was slow.
    """
    began, waiting = {}, set(running)
    while waiting:
        done, waiting = concurrent.futures.wait(waiting, timeout=5)
        for future in done:
            outcome = future.result()
            total.add(outcome)
            if outcome.failed:
                failed[running[future][0]] = outcome.reasons
        now = time.monotonic()
        for future in waiting:
            if future.running() and now - began.setdefault(future, now) > SLOW:
                with _print_lock:
                    print(f"...  {running[future][0]} still runs after {SLOW} s", flush=True)
                began[future] = float("inf")


def run_all(tests, jobs, total, failed):
    """Run these tests, `jobs` at a time; total, failed: as of await_all()."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        queue = Queue(pool)
        try:
            for test in tests:
                queue.put(*test)
            await_all(queue.running, total, failed)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def names_for(config, on_host):
    """{name: file, or None} of every test on one guest kernel, without building it."""
    names = {}
    if config is not STOCK:     # the distribution's headers are a test of their own
        names[f"build, {config.label}"] = None
    if config.machine == "uml":
        names[f"kunit, {config.label}"] = None
    for path in sorted(SELFTESTS.iterdir()):
        if (re.fullmatch(r"[a-z0-9]+_.*\.(py|sh)", path.name) and os.access(path, os.X_OK)
                and config.wants(path.name)
                and (on_host or not path.name.startswith("guest_"))):
            names[f"{path.name}, {config.label}"] = path
    return names


def chosen_tests(args):
    """([names of tests without a guest kernel], [(kernel, its tests)]) that the command line
    selects."""
    def wanted(name):
        return not args.name or any(part in name for part in args.name)

    plain, had, kernels = [], set(), []
    if not (args.debug or args.smp or args.smp_debug or args.base == "paper"):
        uml = any(config.machine == "uml" for config in configs(args))
        plain = list(filter(wanted, (HEADERS, LINT)[:1 + uml]))
    for config in configs(args):
        # Tests on the host run once, and once with debugging.
        names = names_for(config, config.variant not in had)
        had.add(config.variant)
        kernels.append((config, {name: path for name, path in names.items() if wanted(name)}))
    if LINT in plain:
        # Lint builds with the first of these kernels, and finds more warnings.
        linted = next(config for config, _ in kernels if config.machine == "uml")
        dict(kernels)[linted].pop(f"build, {linted.label}", None)
    if any(config is STOCK for config, names in kernels if names) and any(
            name.startswith("guest_install.py") for _, names in kernels for name in names):
        # DKMS builds the transports and qdiscs on the distribution's headers, and the guest's
        # modules the tests', both without a warning.
        plain = [name for name in plain if name != HEADERS]
    return plain, [(config, names) for config, names in kernels if names]


def tests_for(config, names, full, phase):
    """(name, function, arguments) of these tests on one guest kernel."""
    kdir = script("kernel", *config.which)
    if kdir is None:
        yield f"kernel, {config.label}", broken_test, "the guest kernel is not there"
        return
    build = f"build, {config.label}"
    if build in names:
        arch = "um" if config.machine == "uml" else "x86_64"
        yield build, build_test, kdir, f"ARCH={arch}"
    if set(names) == {build}:
        return
    modules, warnings, status = run([TOP / "scripts/modules", *config.which])
    sys.stderr.write(warnings)
    if status:
        yield f"modules, {config.label}", broken_test, "without modules no test can run"
        return
    for row in complaints(warnings)[:1]:
        yield f"modules, {config.label}", broken_test, row
    modules = modules.strip()
    guest = [TOP / "scripts/guest", *config.which, "--built", kdir, modules,
             "--env", f"GL_FULL={'1' if full else ''}", "--env", f"GL_PHASE={phase}",
             *config.limit(full)]
    for name, path in names.items():
        if path:
            yield name, file_test, path, guest, config
        elif name != build:
            yield name, kunit_test, guest


def beside_others(args, plain, kernels, alone):
    """(name, function, arguments) of the tests that others may run beside; the rest are added to
    `alone`."""
    if HEADERS in plain:
        yield HEADERS, headers_test
    if LINT in plain:
        yield LINT, lint_test, next(c.kernel for c in configs(args) if c.machine == "uml")
    for config, names in kernels:
        for test in tests_for(config, names, args.all or args.full, args.phase):
            if config.is_alone(test[0]):
                alone.append(test)
            else:
                yield test


def prepare(args, names):
    """Install the packages that these tests, or without a NAME all tests, need, and build the plugins and
    programs for tc and BPF; True on success."""
    need = ("--for", *names) if args.name else ("--check",)
    return script("setup", *need) is not None and not subprocess.run(
        ["make", "-s", "-C", TOP, "tc", *["bpf"] * (not args.name)], check=False).returncode


def main():
    """Run the selected tests, --jobs at a time; the exit status is 0 if all passed."""
    args = parse_args()
    plain, kernels = chosen_tests(args)
    names = [*plain, *(name for _, of in kernels for name in of)]
    if not names:
        print(f"check: no test has {' or '.join(args.name)} in its name", file=sys.stderr)
        return 2
    if not prepare(args, names):
        print("check: cannot prepare the machine", file=sys.stderr)
        return 2
    if configs(args) is DEFAULT and script("kernel", *FASTEST.which) is None:
        print(f"check: no kernel {FASTEST.label} here, so {OLDEST.label}, which is slower")
        args.kernel = [OLDEST.kernel, STOCK.kernel]
        plain, kernels = chosen_tests(args)
    total, failed, alone = tap.Outcome(), {}, []
    try:
        run_all(beside_others(args, plain, kernels, alone), args.jobs, total, failed)
        run_all(alone, 1, total, failed)
    except KeyboardInterrupt:
        return 130
    for name, reasons in sorted(failed.items()):    # again, where the reader of a long log looks
        print(*[f"FAIL {name}"] + reasons[:AGAIN], sep="\n       ")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
