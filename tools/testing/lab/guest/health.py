# SPDX-License-Identifier: GPL-2.0
"""The verdict on a guest: complaints in its kernel's log, and its exit status."""

import re

from lab.transports import MODULES

EXIT_KERNEL = 70

# Messages that a healthy kernel never logs.
COMPLAINTS = re.compile(rb"""
    WARNING:\ |BUG:\ |Oops[:\ ]|Kernel\ panic|general\ protection|
    \bKASAN:|kmemleak:\ |
    INFO:\ (?:possible|task|trying|rcu|suspicious|inconsistent)|
    possible\ (?:circular|recursive)\ locking|suspicious\ RCU|
    rcu:?\ .*(?:stall|self-detected)|refcount_t:|list_(?:add|del)\ corruption|
    unregister_netdevice:\ waiting|ref_tracker:|Internal\ error|
    scheduling\ while\ atomic|sleeping\ function\ called|
    unable\ to\ handle|Segfault\ with\ no\ mm|greenlane-init:\ 
""", re.VERBOSE)
# Harmless: kmemleak's messages without a leak, and data races that involve no function of
# greenlane's modules, of which the kernel has many.
HARMLESS = re.compile(rb"""kmemleak:\ (?:Kernel\ memory\ leak\ detector|
    Automatic\ memory\ scanning|\d+\ new\ suspected)|
    BUG:\ KCSAN:\ (?!.*\[(?:%s)\])""" % "|".join(MODULES).encode(), re.VERBOSE)
# User-Mode Linux 7.3 logs this warning when it starts a second processor, before init runs: it
# frees memory on that processor too early.
BOOT = b"kernel/rcu/tree.c:", b"Callback enqueued on offline CPU!!"
# Length of the shown part of the log, from a complaint on: in CI no other log is kept.
SHOWN = 60


def read_status(run):
    """The status that init reported, as a dict; empty if init did not report."""
    try:
        lines = (run / "status").read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split(" ", 1) for line in lines)


def is_boot(lines):
    """Does the BOOT warning begin here?"""
    return any(all(part in line for part in BOOT) for line in lines[:4])


def complaint_in(log):
    """[the log from the first complaint on, up to SHOWN lines]; empty without a complaint."""
    lines = log.read_bytes().splitlines()
    for number, line in enumerate(lines):
        if COMPLAINTS.search(line) and not HARMLESS.search(line) and not is_boot(lines[number:]):
            return [line.decode(errors="replace").strip() for line in lines[number:][:SHOWN]]
    return []


def verdict(run, log, exceeded):
    """(exit status, message, or None without a failure of the guest).  @exceeded: the limit after
    which the guest was stopped, or None."""
    status = read_status(run)
    late = f"no end after {exceeded}" if exceeded else ""
    complaint = complaint_in(log)
    if complaint:
        return EXIT_KERNEL, (f"the kernel complained: {complaint[0]}" + "; and " * bool(late) + late
                             + "".join(f"\n  {line}" for line in complaint[1:]))
    if late:
        return EXIT_KERNEL, late
    if "exit" not in status:
        return EXIT_KERNEL, "the guest died"
    # Bits of the taint: 4 machine check, 5 bad page, 7 oops, 9 WARN, 14 lockup.
    if int(status["tainted"]) & (1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14):
        return EXIT_KERNEL, f"the kernel is tainted: {status['tainted']}"
    return int(status["exit"]), None
