# SPDX-License-Identifier: GPL-2.0
"""A wire whose delay separates Aeolus's first round trip in time from the following ones."""
import contextlib

from lab.wire.wire import Wire

RTT = 200e-6            # s; long compared with the guest's system calls


@contextlib.contextmanager
def aeolus(**options):
    """A wire with this round trip.  The minimum RTO, 200 ms, is far above it, and one connection is
    made before, because the kernel's first connection of a kind takes longer.
    """
    with Wire(**{"cc": "aeolus_xpass", "rto_min": 200, **options}) as wire:
        wire.connect(999)
        wire.mark()
        wire.delay = RTT / 2
        yield wire
