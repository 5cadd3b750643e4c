# SPDX-License-Identifier: GPL-2.0
"""How much memory the kernel has handed out in small pieces."""

import time


def used():
    """Bytes of all live slab objects, after what is dying has died."""
    # Freed by RCU, or by work that has not run yet; waiting costs nothing here.
    time.sleep(2)
    total = 0
    with open("/proc/slabinfo", encoding="ascii") as file:
        for line in file.readlines()[2:]:
            _, active, _, size, *_ = line.split()
            total += int(active) * int(size)
    return total
