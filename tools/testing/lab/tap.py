# SPDX-License-Identifier: GPL-2.0
"""KTAP for selftests: main() runs the functions marked @case in the order of their definition.

	@case("what must be so", version=(4, 6))
	def name_of_the_case(version):
	        equal(seen, expected, "what was looked at")

A tuple names variants: each combination is a test of its own, "what must be so [IPv6]".
A case passes if it returns, is skipped if it raises Skip, and fails if it raises another
exception.  A failed check reports the seen and the expected value, so that its message is
complete.

Common set-up and clean-up of cases is a context manager, which takes the variants
and returns the arguments of the case:

	@contextlib.contextmanager
	def connected(version, tso):
	        with Wire(version=version, tso=tso) as wire:
	                yield wire, *wire.connect()

	everywhere = using(connected, version=(4, 6), tso=(True, False))

	@everywhere("the last packet of a write is important")
	def last(wire, client, server):
"""
import functools
import itertools
import os
import sys
import time
import traceback

from lab import TOP
from lab.net import libc

# Exit statuses of the kernel's selftests.
_PASS, _FAIL, _SKIP = 0, 1, 4
_LABELS = {"version": "IPv{}".format, "v6": lambda v6: "IPv6" if v6 else "IPv4",
           "tso": lambda tso: "TSO" if tso else "no TSO",
           "cc_b": "peer {}".format, "mode": "mode {}".format,
           "from_a": lambda from_a: "a sends" if from_a else "b sends",
           **dict.fromkeys(("cc", "base", "topology", "offloads", "header"), str)}
_cases = []


class Failed(Exception):
    """A failed check."""


class Skip(Exception):
    """This kernel or machine lacks something that the case needs; the message names it."""


def _label(name, value):
    if callable(value):
        return value.__name__
    return _LABELS[name](value) if name in _LABELS else f"{name} {value}"


def _run(function, setup, options):
    if setup is None:
        function(**options)
        return
    with setup(**options) as given:
        function(*given if isinstance(given, tuple) else (given,))


def case(description, setup=None, **options):
    """Register a function as a test case, once for each combination of the options that are
    tuples; the function, or setup, is called with one value of each option."""
    variants = {name: values for name, values in options.items() if isinstance(values, tuple)}

    def mark(function):
        for values in itertools.product(*variants.values()):
            chosen = dict(zip(variants, values))
            labels = ", ".join(_label(*pair) for pair in chosen.items())
            name = f"{description} [{labels}]" if labels else description
            _cases.append((name, function.__name__,
                           functools.partial(_run, function, setup, {**options, **chosen})))
        return function
    return mark


def timed(description, **options):
    """A case that measures time; it is skipped where time is real."""
    def mark(function):
        @functools.wraps(function)
        def measured(*given, **chosen):
            need_virtual_time()
            function(*given, **chosen)
        case(description, **options)(measured)
        return function
    return mark


def using(setup, **variants):
    """A case() whose functions are called with the result of this context manager."""
    return functools.partial(case, setup=setup, **variants)


def equal(seen, expected, what):
    """Fail unless seen == expected."""
    if seen != expected:
        raise Failed(f"{what}: expected {expected!r}, saw {seen!r}")


def within(seen, low, high, what):
    """Fail unless low <= seen <= high."""
    if not low <= seen <= high:
        raise Failed(f"{what}: expected {low!r} … {high!r}, saw {seen!r}")


def true(value, what):
    """Fail unless value is true."""
    if not value:
        raise Failed(what)


def need_virtual_time():
    """Skip where time is real: the machine's load would change times of some microseconds."""
    if not is_time_virtual():
        raise Skip("time is not virtual")


@functools.cache
def is_time_virtual():
    """Is this a guest in virtual time, which does not advance while programs compute?"""
    with open("/proc/cmdline", encoding="ascii") as file:
        return "time-travel" in file.read()


def need_tree(path):
    """The path of a file of greenlane's source tree; skip where there is no such tree."""
    if not (TOP / "Kbuild").exists():
        raise Skip(f"no source tree, for {path}: set GL_TOP")
    return TOP / path


def _result(function):
    """("ok" or "not ok", the directive behind the description, [diagnosis])"""
    try:
        function()
        return "ok", "", []
    except Skip as why:
        return "ok", f" # SKIP {why}", []
    except Failed as why:
        return "not ok", "", str(why).splitlines()
    except Exception:  # a broken test is a failed test
        return "not ok", "", traceback.format_exc().splitlines()


def _align():
    """Sleep until the next full second of virtual time, and GL_PHASE microseconds more.

    A system call that fails takes 1 us of virtual time, and the number of failed searches for a
    file depends on the host's files (byte code, a library's paths).  Without this, the distance
    of a case from the kernel's ticks would depend on them, and on earlier cases.
    """
    if is_time_virtual():
        # time.sleep() would add the time between its own readings of the clock.
        libc.sleep_until(int(time.clock_gettime(time.CLOCK_MONOTONIC)) + 1,
                         1000 * int(os.environ.get("GL_PHASE") or 0))


def main(prepare=None):
    """Run every case, or those with one of the arguments in their names, after prepare();
    exit with 0 if all passed, 4 if all were skipped."""
    only = sys.argv[1:]
    try:
        if prepare:
            prepare()
    except Skip as why:
        print(f"KTAP version 1\n1..0 # SKIP {why}", flush=True)
        sys.exit(_SKIP)
    chosen = [case for case in _cases
              if not only or any(o in case[0] or o == case[1] for o in only)]
    print(f"KTAP version 1\n1..{len(chosen)}", flush=True)
    failed = skipped = 0
    for number, (name, _, function) in enumerate(chosen, 1):
        _align()
        result, directive, diagnosis = _result(function)
        failed += result != "ok"
        skipped += bool(directive)
        print(f"{result} {number} {name}{directive}", *(f"# {line}" for line in diagnosis),
              sep="\n", flush=True)
    if failed:
        sys.exit(_FAIL)
    sys.exit(_SKIP if skipped and skipped == len(chosen) else _PASS)
