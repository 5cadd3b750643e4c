# SPDX-License-Identifier: GPL-2.0
"""What a switch port does to a credit transport's unscheduled data, in tc's words."""

# drop: above a threshold (Aeolus).  behind: after all else (its V-E's "priority queueing").
UNSCHEDULED = ("drop", "behind")
# All but unscheduled data: include/net/gl_codepoint.h.
_SCHEDULED = (10, 12, 18, 20, 25, 26, 29)


def behind(band):
    """Bands from that one on: what is scheduled, and unscheduled data, with all that the
    map does not know."""
    return " ".join([f"bands {band + 2}", *(f"prio {dscp} {band}" for dscp in _SCHEDULED)])
