# SPDX-License-Identifier: GPL-2.0
"""A wire on which Aeolus's first round trip is told apart from all else."""
import contextlib

from lab.wire.wire import Wire

RTT = 200e-6            # long beside what the guest's own calls take


@contextlib.contextmanager
def aeolus(**options):
    """A wire of that length.  TCP's timers are out of the way, and so is what the
    kernel does for its first connection of a kind, which takes time.
    """
    with Wire(**{"cc": "aeolus_xpass", "rto_min": "200ms", **options}) as wire:
        wire.connect(999)
        wire.mark()
        wire.delay = RTT / 2
        yield wire
