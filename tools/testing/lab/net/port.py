# SPDX-License-Identifier: GPL-2.0
"""A switch port: its queue in tc's words, and what tc says of it."""

import json
import subprocess

from lab.codepoints import CREDIT, GREEN, SCHEDULED

# What a port does to data that a credit transport sends without credits: drop it above a
# threshold (Aeolus), or have it behind all other data (its V-E's "priority queueing").
UNSCHEDULED = ("drop", "behind")
# All but unscheduled data and the credits' own.
_SCHEDULED = tuple(sorted(set(GREEN) - {CREDIT.dscp}))
# In a mix the others are TLT's as well, which must not overtake TLT's other data; and a
# probe is then in the queue of the unscheduled data before it.
_ONLY_CREDITS = (SCHEDULED.dscp,)
# Bytes on the link, of a credit and of the packet that it calls for: tc-color(8)'s presets.
_CREDIT_AND_DATA = 1648


# A host's own queue.  What its peers have called for comes first, or a burst of another connection
# would hold it up, and what the receivers have spread over time would meet in the network.
NIC = " ".join(["limit 1000m bands 2",
                *(f"prio {dscp} 0" for dscp in sorted((SCHEDULED.dscp, CREDIT.dscp)))])


def behind(band, mix=False):
    """Bands from that one on: what is scheduled, then unscheduled data, with everything that
    the map does not know."""
    first = _ONLY_CREDITS if mix else _SCHEDULED
    return " ".join([f"bands {band + 2}", *(f"prio {dscp} {band}" for dscp in first)])


def credits_of(rate, percent):
    """A band of credits that call for that much of a link of so many bit/s."""
    return f"band-rate 0 {rate * percent // (100 * 8 * _CREDIT_AND_DATA)}pps"


# What counts where a port pauses the one that sends to it.
PAUSES = ("all", "green")
# Timers of the guest's clock device come no closer than that, ns.
_CLOCK = 500


def pausing(mode, delay):
    """A port that pauses (all, green) over links of so many ns, or an empty string without."""
    return f" pause {mode} delay {delay + 2 * _CLOCK}ns" if mode else ""


def shown(dev=None, ns=None):
    """What tc says of the qdiscs of a device, or of all: statistics included."""
    command = ["tc", *(["-n", ns.name] if ns else []), "-j", "-s", "qdisc", "show",
               *(["dev", dev] if dev else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout or "[]")
