# SPDX-License-Identifier: GPL-2.0
"""The default codepoints (DSCPs), as include/net/gl_codepoint.h and gl_deflect.h have them."""

DATA, IMPORTANT, CLOCK, CLOCK_ECHO, CONTROL = 8, 10, 18, 20, 26
SCHEDULED, REQUEST, CREDIT = 25, 29, 33
MESSAGE, MESSAGE_END, SHARE, SPENT, SPENT_END = 37, 41, 49, 53, 57
# Of a short message that may still be deflected: those that end with 11 in binary.
SHORT = tuple(range(3, 64, 4))

NAMES = {0: "-", DATA: "data", IMPORTANT: "important", CLOCK: "clock",
         CLOCK_ECHO: "clock echo", CONTROL: "control", SCHEDULED: "scheduled",
         REQUEST: "request", CREDIT: "credit", MESSAGE: "message",
         MESSAGE_END: "message end", SHARE: "share", SPENT: "spent", SPENT_END: "spent end"}

# What a TCP option of ours says, by the DSCP of such a packet (net/ipv4/gl_option.c).
CODES = {IMPORTANT: 1, SCHEDULED: 2, SHARE: 3, CLOCK: 4, CLOCK_ECHO: 5, REQUEST: 6, CREDIT: 7}

# The switch port's default map: all others are yellow.
RED = (DATA,)
GREEN = (IMPORTANT, CLOCK, CLOCK_ECHO, SCHEDULED, CONTROL, REQUEST, CREDIT, SHARE)
