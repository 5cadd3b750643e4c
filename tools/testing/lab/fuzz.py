# SPDX-License-Identifier: GPL-2.0
"""Many cases from one seed, any of which can be run alone.

	for number, rng in fuzz.rounds("change", 100_000, 1000):
	        ...                     # 1000 cases, all from rng

A round starts from a state of its own and takes its chance from a generator of
its own, so that nothing depends on the rounds before it.  Which round it is
stands in the kernel's log ("fuzz change 17"), in front of whatever the kernel
says about it; a failing round says how to run it again:

	scripts/guest --env GL_ROUND=change:17 -- tools/testing/selftests/FILE

GL_FULL=1 runs all of them, otherwise a tenth is run; with KASAN, which is ten times
slower, a tenth of that.
"""
import contextlib
import os
import random

from lab.tap import equal, true

SEED = 20210426         # EuroSys 2021 began on that day


def share(full):
    """How many of these are to be run today."""
    part = 1 if os.environ.get("GL_FULL") else 10
    return max(full // (part * 10 if os.environ.get("GL_DEBUG") else part), 1)


def _log(text):
    with open("/dev/kmsg", "w", encoding="ascii") as log:
        log.write(text)


def rounds(what, full, each=1):
    """(number, generator) of every round; there are `each` of `full` cases in one."""
    only = os.environ.get("GL_ROUND")
    for number in range(-(-share(full) // each)):
        name = f"{what}:{number}"
        if only in (None, name):
            _log(f"fuzz {name}")
            yield number, random.Random(f"{SEED} {name}")


def damaged(rng, data):
    """Bytes, of which now and then the end is missing or a bit is wrong."""
    if rng.random() < 0.15:
        data = data[:rng.randrange(len(data) + 1)]
    if rng.random() < 0.1 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    return data


def change(link, attrs, before, at):
    """Change a qdisc, which may refuse it, but then without a change.

    Returns its options afterwards, and whether it took these.
    """
    error = link.change(attrs)
    after = link.config()
    true(after is not None, f"change {at}: the qdisc is there")
    if error:
        equal(after.hex(), before.hex(),
              f"change {at}: options after error {error} for {attrs.hex()}")
    return after, not error


@contextlib.contextmanager
def replayable(what, number):
    """Inside of a round: a failure says how to run it again."""
    try:
        yield
    except Exception:
        print(f"# seed {SEED}, again: GL_ROUND={what}:{number}", flush=True)
        raise
