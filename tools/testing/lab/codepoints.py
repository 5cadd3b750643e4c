# SPDX-License-Identifier: GPL-2.0
"""Codepoints, as include/uapi/linux/greenlane_dscp.h has them, and kinds of packets.

A codepoint is what a switch can tell apart, and stands for a DSCP.  A kind is what the packet
means to the two ends: what our TCP option says, or, without one, what the DSCP means in this
place.
"""
import pathlib
import re
from typing import NamedTuple

_TABLE = re.findall(r'GREENLANE_CODEPOINT\((\w+), "(\w+)", (\d+), (\w+)\)',
                    (pathlib.Path(__file__).parent / "greenlane_dscp.h").read_text())
# By the name in net.ipv4.greenlane_dscp_*.
DSCP = {name: int(dscp) for _, name, dscp, _ in _TABLE}
# Of a short message that may still be deflected: those that end with 11 in binary.
SHORT = tuple(range(3, 64, 4))

# The switch port's default map: all others are yellow.
RED, GREEN = (tuple(int(dscp) for *_, dscp, colour in _TABLE if colour == wanted)
              for wanted in ("RED", "GREEN"))


class Kind(NamedTuple):
    """A kind of packet: its name, its default DSCP, and what its option says; 0 without one."""
    name: str
    dscp: int
    code: int = 0

    def __str__(self):
        return self.name


DATA = Kind("data", DSCP["droppable"])
IMPORTANT = Kind("important", DSCP["protected"], 1)         # the code is that of a SYN
IMPORTANT_END = Kind("important end", DSCP["protected_end"])
CLOCK = Kind("clock", DSCP["protected"], 4)
CLOCK_ECHO = Kind("clock echo", DSCP["protected"], 5)
CONTROL = Kind("control", DSCP["protected"])
SCHEDULED = Kind("scheduled", DSCP["scheduled"], 2)         # the same
UNSCHEDULED = Kind("unscheduled", DSCP["unscheduled"])
REQUEST = Kind("request", DSCP["scheduled"], 6)
CREDIT = Kind("credit", DSCP["credit"], 7)
PROBE = Kind("probe", DSCP["protected"], 8)
PROBE_ACK = Kind("probe ack", DSCP["protected"], 9)
SHARE = Kind("share", DSCP["protected"], 3)                 # and that of a SYN
MESSAGE = Kind("message", DSCP["message"])
MESSAGE_END = Kind("message end", DSCP["message_end"])
SPENT = Kind("spent", DSCP["spent"])
SPENT_END = Kind("spent end", DSCP["spent_end"])

KINDS = (DATA, IMPORTANT, IMPORTANT_END, CLOCK, CLOCK_ECHO, CONTROL, SCHEDULED, UNSCHEDULED,
         REQUEST, CREDIT, PROBE, PROBE_ACK, SHARE, MESSAGE, MESSAGE_END, SPENT, SPENT_END)
# What our option says, by its code (enum gl_code): this is ABI between hosts.
SAYS = {kind.code: kind for kind in KINDS if kind.code}
CODED = tuple(SAYS.values())
# The first kind of each codepoint is that of data, and also of SYNs.
_OF_DSCP = {kind.dscp: kind for kind in reversed(KINDS)}


def kind_of(dscp, says, data):
    """The kind of a packet with this DSCP, option (a kind or None) and amount of data; the DSCP
    itself if it is nobody's, or that of a short message."""
    if says and says.dscp == dscp:
        return says
    if dscp == CONTROL.dscp and not data:
        return CONTROL
    return _OF_DSCP.get(dscp, dscp)


def dscp_of(kind):
    """The DSCP of a kind, or of a DSCP."""
    return getattr(kind, "dscp", kind)
