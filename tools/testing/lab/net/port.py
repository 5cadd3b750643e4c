# SPDX-License-Identifier: GPL-2.0
"""What a switch port does to credits, and to what a credit transport sends without, in tc's
words."""

# drop: above a threshold (Aeolus).  behind: after all else (its V-E's "priority queueing").
UNSCHEDULED = ("drop", "behind")
# All but unscheduled data: include/net/gl_codepoint.h.
_SCHEDULED = (10, 12, 18, 20, 25, 26, 29)
# In a mix 10 to 26 are TLT's as well, which must not overtake its own other data; and a
# probe, 18, is then where the unscheduled data is that it speaks of.
_ONLY_CREDITS = (25, 29)
# Bytes on the line, of a credit and of the packet that it calls for: tc-color(8)'s presets.
_CREDIT_AND_DATA = 1644


def behind(band, mix=False):
    """Bands from that one on: what is scheduled, and unscheduled data, with all that the
    map does not know."""
    first = _ONLY_CREDITS if mix else _SCHEDULED
    return " ".join([f"bands {band + 2}", *(f"prio {dscp} {band}" for dscp in first)])


def credits_of(rate, percent):
    """A band of credits that calls for that much of a line of so many bit/s."""
    return f"band-rate 0 {rate * percent // (100 * 8 * _CREDIT_AND_DATA)}pps"
