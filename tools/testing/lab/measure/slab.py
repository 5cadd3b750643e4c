# SPDX-License-Identifier: GPL-2.0
"""The memory of the kernel's slab allocator."""

import time


def used():
    """Bytes of all live slab objects, after pending frees."""
    # Objects wait to be freed by RCU or by work; sleeping is free in virtual time.
    time.sleep(2)
    total = 0
    with open("/proc/slabinfo", encoding="ascii") as file:
        for line in file.readlines()[2:]:
            _, active, _, size, *_ = line.split()
            total += int(active) * int(size)
    return total
