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


# What htb may send at once after a late timer, in bytes and ns at least: a class loses what does
# not fit.  tc rounds it down to whole microseconds at the class's rate.
_BURST, _BURST_NS = 6 << 10, 1200
# Bytes of a full-size packet on the link, and those of them that a qdisc does not see.
_PACKET, _OVERHEAD = 1538, 24


def apart(rate, shares, queues, ports, v6=False):
    """A port with a queue for each of several transports, in tc's words: the root qdisc, and the
    lines that add what is below it.

    rate: of the link, bit/s.  For each transport: its part of a busy link, its queue (a qdisc),
    and the TCP port of its servers, which tells its packets from the others'.

        1:1, the link ---- 1:10 ---- 10: the first queue      shares 1, 3: a quarter of a busy link,
                      \\--- 1:11 ---- 11: the second queue     and what the second leaves

    The classes are htb's.  ets and drr stop when the queue whose turn it is has packets and gives
    none, as one with a band of credits does.
    """
    burst = max(_BURST, rate * _BURST_NS // (8 * 10**9))
    htb = f"burst {burst} cburst {burst} overhead {_OVERHEAD}"
    lines = ["htb default 10", "class add parent 1: classid 1:1"
             f" htb rate {rate}bit ceil {rate}bit quantum {_PACKET} {htb}"]
    for number, (share, queue, port) in enumerate(zip(shares, queues, ports)):
        # The classes' own rates must not exceed the link's in sum; htb does not check that.
        own = 97 * rate * share // (100 * sum(shares))
        lines += [f"class add parent 1:1 classid 1:1{number} htb rate {own}bit ceil {rate}bit"
                  f" quantum {_PACKET * share} {htb}",
                  f"qdisc add parent 1:1{number} handle 1{number}: {queue}"]
        lines += [f"filter add parent 1: protocol {'ipv6' if v6 else 'ip'} prio {prio}"
                  f" flower ip_proto tcp {end}_port {port} classid 1:1{number}"
                  for prio, end in enumerate(("dst", "src"), 1)]
    return lines


# What counts where a port pauses the one that sends to it.
PAUSES = ("all", "green")
# Timers of the guest's clock device come no closer than that, ns.
_CLOCK = 500
# The lab's ports have a rate, so they split GSO packets.
_UNIT = 1514


def pausing(mode, delay):
    """A port that pauses (all, green) over links of so many ns, or an empty string without."""
    return f" pause {mode} delay {delay + 2 * _CLOCK}ns unit {_UNIT}" if mode else ""


def shown(dev=None, ns=None):
    """What tc says of the qdiscs of a device, or of all: statistics included."""
    command = ["tc", *(["-n", ns.name] if ns else []), "-j", "-s", "qdisc", "show",
               *(["dev", dev] if dev else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout or "[]")
