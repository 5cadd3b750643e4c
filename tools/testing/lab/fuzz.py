# SPDX-License-Identifier: GPL-2.0
"""Many random cases from one seed, in batches; each batch can be run alone.

	for number, rng in fuzz.rounds("change", 100_000, 1000):
	        ...                     # 1000 cases, all from rng

A batch begins with a state of its own and has a random generator of its own, so it
does not depend on earlier batches.  The kernel's log gets the name of each batch
("fuzz change:17") before the messages of the kernel about it.  A failing batch
prints the variable with which it runs again:

	scripts/guest --env GL_ROUND=change:17 -- tools/testing/selftests/FILE

GL_FULL=1 runs all batches, otherwise a tenth of them runs; with KASAN, which is ten
times slower, a tenth of that.
"""
import contextlib
import os
import random

from lab.tap import equal, true

SEED = 20210426         # EuroSys 2021 began on that day


def share(full):
    """The number of cases, of `full`, that this run executes; at least 1."""
    part = 1 if os.environ.get("GL_FULL") else 10
    return max(full // (part * 10 if os.environ.get("GL_DEBUG") else part), 1)


def _log(text):
    with open("/dev/kmsg", "w", encoding="ascii") as log:
        log.write(text)


def rounds(what, full, each=1):
    """(number, generator) of every batch; a batch has `each` of the `full` cases."""
    only = os.environ.get("GL_ROUND")
    for number in range(-(-share(full) // each)):
        name = f"{what}:{number}"
        if only in (None, name):
            _log(f"fuzz {name}")
            yield number, random.Random(f"{SEED} {name}")


def damaged(rng, data):
    """The bytes, with a probability of 15 % cut short, and of 10 % with one bit inverted."""
    if rng.random() < 0.15:
        data = data[:rng.randrange(len(data) + 1)]
    if rng.random() < 0.1 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    return data


def change(link, attrs, before, at):
    """Send a change to a qdisc.  If the qdisc rejects it, its options must not have changed.

    Returns the qdisc's options afterwards, and whether it accepted the change.
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
    """Inside a batch: a failure prints the seed, and GL_ROUND with which it runs again."""
    try:
        yield
    except Exception:
        print(f"# seed {SEED}, again: GL_ROUND={what}:{number}", flush=True)
        raise
