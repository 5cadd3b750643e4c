# SPDX-License-Identifier: GPL-2.0
"""TAP for selftests: functions marked @case are run in the order they stand.

A case passes if it returns and fails if it raises; Check says what was seen
and what was expected, so that a failing line can be read alone.
"""
import sys
import traceback

_cases = []


class Failed(Exception):
    """A check that did not hold."""


def case(description):
    """Register a function as a test case."""
    def mark(function):
        _cases.append((description, function))
        return function
    return mark


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


def main():
    """Run every case; exit with 0 only if all passed."""
    only = sys.argv[1:]
    chosen = [c for c in _cases if not only or any(o in c[0] or o == c[1].__name__ for o in only)]
    print("TAP version 13")
    print(f"1..{len(chosen)}")
    failed = 0
    for number, (description, function) in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} - {description}", flush=True)
        except Failed as why:
            failed += 1
            print(f"not ok {number} - {description}\n# {why}", flush=True)
        except Exception:  # a broken test is a failed test
            failed += 1
            print(f"not ok {number} - {description}", flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    sys.exit(1 if failed else 0)
