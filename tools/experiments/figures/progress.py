# SPDX-License-Identifier: GPL-2.0
"""Snakemake's progress and failures, a message at a time.

scripts/figures passes this file to it (--log-handler-script).
"""

import sys
import time

from snakemake.logging import logger

# This handler replaces Snakemake's own.
if logger.text_handler in logger.log_handler:
    logger.log_handler.remove(logger.text_handler)

_BEGAN = time.monotonic()
_EVERY = 10             # seconds between two messages in a log
_last = [0.0]


def _say(text, stays):
    tty = sys.stderr.isatty()
    print(f"\r\033[K{text}" if tty else text, end="" if tty and not stays else "\n",
          file=sys.stderr, flush=True)


def _minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def progress(done, total, passed):
    """The steps, and the time that the rest takes at the present rate."""
    left = passed / done * (total - done)
    return (f"figures: {100 * done // total:3d} % ({done} of {total} steps;"
            f" {_minutes(passed)} passed, about {_minutes(left)} left)")


def log_handler(msg):
    """Print Snakemake's progress, at most each _EVERY seconds in a log, and its failures."""
    level = msg["level"]
    if level == "progress":
        now = time.monotonic()
        end = msg["done"] == msg["total"]
        if sys.stderr.isatty() or end or now >= _last[0] + _EVERY:
            _last[0] = now
            _say(progress(msg["done"], msg["total"], now - _BEGAN), end)
    elif level == "job_error":
        logs = " ".join(msg.get("log") or [])
        _say(f"figures: {' '.join(msg['output'])} failed" + (f"; see {logs}" if logs else ""), True)
    elif level == "error":
        _say(f"figures: {msg['msg']}", True)
