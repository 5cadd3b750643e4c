# SPDX-License-Identifier: GPL-2.0
"""Codepoints, read from include/uapi/linux/greenlane_dscp.h, and kinds of packets.

Switches distinguish packets by their codepoint; each codepoint has a DSCP.  The kind of a packet is
its meaning to the two ends: the meaning of its greenlane option or, without the option, that of its
DSCP, which depends on whether the packet has data.
"""
import pathlib
import re
from typing import NamedTuple

_TABLE = re.findall(r'GREENLANE_CODEPOINT\((\w+), "(\w+)", (\d+), (\w+)\)',
                    (pathlib.Path(__file__).parent / "greenlane_dscp.h").read_text())
# Default DSCPs, by the name in net.ipv4.greenlane_dscp_*.
DSCP = {name: int(dscp) for _, name, dscp, _ in _TABLE}
# DSCPs of packets of short messages that may still be deflected: they end with 11 in binary.
SHORT = tuple(range(3, 64, 4))


def is_whole(dscp):
    """Whether a DSCP of SHORT has all four tokens: bits 2 and 3 are their number less one."""
    return dscp & 0xc == 0xc


# The default map of a color port: all other DSCPs are yellow.
RED, GREEN = (tuple(int(dscp) for *_, dscp, colour in _TABLE if colour == wanted)
              for wanted in ("RED", "GREEN"))


class Kind(NamedTuple):
    """A kind of packet: its name, its default DSCP, its option's code (0: it has no option)."""
    name: str
    dscp: int
    code: int = 0

    def __str__(self):
        return self.name


DATA = Kind("data", DSCP["droppable"])
IMPORTANT = Kind("important", DSCP["protected"], 1)         # the code is in SYNs and SYN-ACKs only
IMPORTANT_END = Kind("important end", DSCP["protected_end"])
CLOCK = Kind("clock", DSCP["protected"], 4)
CLOCK_ECHO = Kind("clock echo", DSCP["protected"], 5)
CONTROL = Kind("control", DSCP["protected"])
SCHEDULED = Kind("scheduled", DSCP["scheduled"], 2)         # in SYNs and SYN-ACKs only
UNSCHEDULED = Kind("unscheduled", DSCP["unscheduled"])
REQUEST = Kind("request", DSCP["scheduled"], 6)
CREDIT = Kind("credit", DSCP["credit"], 7)
PROBE = Kind("probe", DSCP["protected"], 8)
PROBE_ACK = Kind("probe ack", DSCP["protected"], 9)
SHARE = Kind("share", DSCP["protected"], 3)                 # also in SYNs and SYN-ACKs
MESSAGE = Kind("message", DSCP["message"])
MESSAGE_END = Kind("message end", DSCP["message_end"])
SPENT = Kind("spent", DSCP["spent"])
SPENT_END = Kind("spent end", DSCP["spent_end"])
TELEMETRY = Kind("telemetry", DSCP["protected"], 12)        # data keeps the application's DSCP
TELEMETRY_ECHO = Kind("telemetry echo", DSCP["protected"], 13)
TRIMMED = Kind("trimmed", DSCP["trimmed"], 11)              # a switch port has cut off its data
REPORT = Kind("report", DSCP["trimmed"], 15)                # of a trimmed packet

KINDS = (DATA, IMPORTANT, IMPORTANT_END, CLOCK, CLOCK_ECHO, CONTROL, SCHEDULED, UNSCHEDULED,
         REQUEST, CREDIT, PROBE, PROBE_ACK, SHARE, MESSAGE, MESSAGE_END, SPENT, SPENT_END,
         TELEMETRY, TELEMETRY_ECHO, TRIMMED, REPORT)
# Kinds by the code in the option (enum gl_code), which is ABI between hosts.
SAYS = {kind.code: kind for kind in KINDS if kind.code}
CODED = tuple(SAYS.values())
# The first kind of each codepoint is the kind of its data packets and SYNs.
_OF_DSCP = {kind.dscp: kind for kind in reversed(KINDS)}


def kind_of(dscp, says, data):
    """The kind of a packet with this DSCP, this option (a kind or None) and this amount of data;
    the DSCP itself if no kind has that DSCP."""
    if says and says.dscp == dscp:
        return says
    if dscp == CONTROL.dscp and not data:
        return CONTROL
    return _OF_DSCP.get(dscp, dscp)


def dscp_of(kind):
    """The DSCP of a kind; a DSCP is returned unchanged."""
    return getattr(kind, "dscp", kind)
