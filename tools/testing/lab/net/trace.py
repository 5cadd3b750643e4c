# SPDX-License-Identifier: GPL-2.0
"""Trace events of the kernel."""
import contextlib
import pathlib
import re
import subprocess

from lab.tap import Skip

TOP = pathlib.Path("/sys/kernel/tracing")
BUFFER = "8192"         # kB for each processor: 100,000 events


def events(system):
    """The names of a system's events; empty if the kernel lacks it."""
    if not (TOP / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "none", TOP], check=False, capture_output=True)
    return sorted(path.name for path in (TOP / "events" / system).glob("*") if path.is_dir())


@contextlib.contextmanager
def traced(event):
    """A list of the records of an event ("skb/kfree_skb"), or of all events of a system
    ("greenlane"), complete after the block; skips if the kernel lacks it."""
    system, _, name = event.partition("/")
    present = events(system)
    if not present or name and name not in present:
        raise Skip(f"no trace event {event}")
    enable = TOP / "events" / event / "enable"
    lines = []
    (TOP / "buffer_size_kb").write_text(BUFFER, encoding="ascii")
    (TOP / "trace").write_text("", encoding="ascii")
    enable.write_text("1", encoding="ascii")
    try:
        yield lines
    finally:
        enable.write_text("0", encoding="ascii")
        text = (TOP / "trace").read_text(encoding="utf-8")
        lines += [line for line in text.splitlines()
                  if any(f" {one}:" in line for one in ([name] if name else present))]


def fired(lines, event):
    """(seq, value) of each record of an event of greenlane, in their order."""
    return [tuple(map(int, re.search(r"seq=(\d+) value=(\d+)", line).groups()))
            for line in lines if f" greenlane_{event}:" in line]
