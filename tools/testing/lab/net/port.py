# SPDX-License-Identifier: GPL-2.0
"""A switch port: its qdiscs as arguments for tc, and their statistics."""

import json
import subprocess

from lab.codepoints import CREDIT, GREEN, SCHEDULED

# A port drops the data that a credit transport sends without credits above a threshold (Aeolus), or
# queues it behind all other data ("priority queueing", section V-E of Aeolus).
UNSCHEDULED = ("drop", "behind")
# All green DSCPs except that of credits.
_SCHEDULED = tuple(sorted(set(GREEN) - {CREDIT.dscp}))
# In a mix with TLT the other green DSCPs also mark TLT's packets, which must not overtake TLT's
# other data; an Aeolus probe is then in one queue with the unscheduled data sent before it.
_ONLY_CREDITS = (SCHEDULED.dscp,)
# Bytes on the link of a credit and of the data packet that it permits, as in tc-color(8)'s presets.
_CREDIT_AND_DATA = 1648


def nic(scheduled_first=True):
    """The qdisc of a host's NIC: credits have priority.

    So have scheduled packets, if ports limit credits (ExpressPass): a burst of another connection
    would delay them, and packets that receivers scheduled at different times would then arrive in
    the network together.  Where nothing limits credits at a sender (NDP, Homa), its scheduled
    packets may fill its link, and bursts would wait for milliseconds.
    """
    return (f"limit 1000m bands 2 prio {SCHEDULED.dscp} {int(not scheduled_first)}"
            f" prio {CREDIT.dscp} 0")


def behind(band, mix=False):
    """Two bands, numbers `band` and `band` + 1: scheduled packets, then unscheduled data together
    with all DSCPs that no `prio` option names."""
    first = _ONLY_CREDITS if mix else _SCHEDULED
    return " ".join([f"bands {band + 2}", *(f"prio {dscp} {band}" for dscp in first)])


def credits_of(rate, percent):
    """Limit band 0, of credits: they and the data that they permit use `percent` of a link of
    `rate` bit/s."""
    return f"band-rate 0 {rate * percent // (100 * 8 * _CREDIT_AND_DATA)}pps"


# Minimum of htb's burst, in bytes and in ns at the link rate: after a late timer a class loses the
# bytes above it.  tc rounds it down to whole microseconds at the class's rate.
_BURST, _BURST_NS = 6 << 10, 1200
# Bytes of a full-size packet on the link, and how many of them a qdisc does not count.
_PACKET, _OVERHEAD = 1538, 24


def apart(rate, shares, queues, ports, v6=False):
    """A port with a queue for each of several transports, in tc's words: the root qdisc, then the
    commands that add its classes, their qdiscs and the filters.

    rate: of the link, bit/s.  For each transport: its part of a busy link, its queue (a qdisc),
    and the TCP port of its servers, by which the filters select its packets.

        1:1, the link ---- 1:10 ---- 10: the first queue      shares 1, 3: a quarter of a busy link,
                      \\--- 1:11 ---- 11: the second queue     and all that the second does not use

    The classes are htb's.  ets and drr stop when the scheduled queue has packets but dequeues none,
    as a port with a band of credits does.
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


# Packets whose bytes count towards a pause of the upstream port (color's `pause` option).
PAUSES = ("all", "green")
# Minimum interval of timers of the guest's clock device, ns.
_CLOCK = 500
# Maximum size of a packet at the lab's ports, bytes: they have a rate, so they split GSO packets.
_UNIT = 1514


def add_pause(add):
    """Add the option of an experiment whose ports may pause."""
    add("--pause", choices=PAUSES,
        help="ports pause their upstream ports, so that these packets are not lost")


def pausing(mode, delay):
    """Options of a port that pauses by `mode` (all, green) on links with this delay, ns; an empty
    string without a mode."""
    return f" pause {mode} delay {delay + 2 * _CLOCK}ns unit {_UNIT}" if mode else ""


def shown(dev=None, ns=None):
    """tc's report, with statistics, of the qdiscs of one device or of all."""
    command = ["tc", *(["-n", ns.name] if ns else []), "-j", "-s", "qdisc", "show",
               *(["dev", dev] if dev else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout or "[]")
