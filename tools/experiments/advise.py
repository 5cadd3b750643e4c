# SPDX-License-Identifier: GPL-2.0
"""Thresholds of a switch port for TLT, and its configuration: tc, SONiC and Cumulus Linux.

	scripts/experiment advise --rate 40gbit --rtt 20us --buffer 1800k --fan-in 320

Each number has its rule, and the page of Documentation that explains it.  --verify runs the incast
of that fan-in in virtual time, through such a port.
"""

import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile

from experiments.machines import inventory
from lab import TOP, units
from lab.codepoints import DSCP
from lab.measure.report import MTU

# Room for the important packet of a flow, bytes, and marks below red, as in the testbed of TLT's
# paper (operations.rst, Tuning a link).
FLOW = 1500
MARKS = 200 / 270
# A minimum of red below this, bytes, is less than a burst of one sender (operations.rst, Tuning a
# link).
SMALL, PRODUCTS = 30_000, 3
# A pause frame, and a packet with its Ethernet header, bytes (color.rst, Xoff, Xon, headroom).
FRAME, PACKET = 60, MTU + 14
# net.ipv4.tlt_crowd by the time in which the buffer drains, its limit, and the least time after which
# an echo is late, us (tlt.rst, Crowds).
CROWD, CROWD_MAX, LATE = 0.4, 20_000, 1000
# The codepoints of TLT.
DSCPS = sorted(DSCP[name] for name in ("droppable", "protected", "protected_end"))
# The queue of TLT, which SONiC's default maps a lossless priority to, and its default Xon.
QUEUE, SONIC_XON = 3, 19456

_HEADER = (TOP / "include/uapi/linux/pkt_color.h").read_text(encoding="ascii")


def _largest(name):
    """TC_COLOR_<name>_MAX of the header."""
    return int(re.search(rf"^#define TC_COLOR_{name}_MAX\s+(0x[\da-f]+|\d+)", _HEADER, re.M)[1], 0)


_LARGEST = {"buffer": _largest("LIMIT"), "rate": _largest("RATE"), "delay": _largest("PAUSE_DELAY")}


def add_arguments(add):
    """The options."""
    add("--rate", type=units.rate, help="of the link")
    add("--rtt", type=units.time, help="of the idle network, on the longest path")
    add("--lab", metavar="FILE", help="rate and rtt of this lab (see incast --lab)")
    add("--buffer", type=units.size, required=True,
        help="of the port; of a shared buffer the part that alpha permits")
    add("--fan-in", type=units.count, required=True, help="flows that can meet at the port")
    add("--links", type=units.count, default=1, help="that pause with the same buffer (1)")
    add("--delay", type=units.time, default="5us",
        help="of a link and both its ends, until a pause frame has an effect (5us)")
    add("--red", type=units.size, help="this threshold, not the rule's")
    add("--ecn", type=units.size, help="this threshold, not the rule's")
    add("--only", choices=list(FORMATS), help="print the configuration of this switch only")
    add("--verify", action="store_true", help="run the incast in virtual time")
    add("--kernel", default="7.3", help="of --verify")


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.lab:
        lab = inventory.read(args.lab)
        args.rate, args.rtt = args.rate or lab.rate, args.rtt or lab.rtt
    if not args.rate or not args.rtt:
        return "--rate and --rtt are needed, or --lab with both in its file"
    if args.red is not None and args.red < PACKET:
        return f"--red: below {PACKET}, a packet, so it would drop all unimportant packets"
    if args.ecn == 0:
        return "--ecn: 0 is no threshold"
    for name, value, unit in (("buffer", args.buffer, "bytes"), ("rate", args.rate // 8, "bytes/s"),
                              ("delay", args.delay, "ns")):
        if not 1 <= value <= _LARGEST[name]:
            return f"--{name}: {value} {unit}; a port can have 1 to {_LARGEST[name]}"
    red = args.red or least(args)
    if red + FLOW > args.buffer:
        return (f"--buffer: {args.buffer} bytes have no room for an important packet above"
                f" {'--red' if args.red else 'the minimum of red'}, {red}: no colour would be"
                " protected")
    if (args.ecn or 0) > (red := advice(args).red):
        return f"--ecn: above red, {red}"
    return None


def product(args):
    """The bandwidth-delay product, bytes."""
    return args.rate * args.rtt // (8 * 10**9)


def least(args):
    """The minimum of red, bytes."""
    return max(PACKET, product(args) * (PRODUCTS if product(args) < SMALL else 1))


@dataclasses.dataclass
class Advice:
    """The numbers of a port; bytes."""
    rate: int
    limit: int
    red: int
    ecn: int
    headroom: int
    xoff: int
    delay: int
    least: int          # the minimum of red
    crowded: bool       # the buffer has no room for an important packet of each flow


def advice(args):
    """The Advice for a command line."""
    room = args.buffer - FLOW * args.fan_in
    red = args.red or max(least(args), room)
    ecn = args.ecn or min(round(MARKS * least(args)), red)
    headroom = args.rate * 2 * args.delay // (8 * 10**9) + 3 * PACKET + FRAME
    return Advice(args.rate, args.buffer, red, ecn, headroom, args.buffer // args.links - headroom,
                  args.delay, least(args), room < least(args))


def numbers(args, a):
    """(name, value, rule) of each number."""
    red = "--red" if args.red else (
        "the minimum: the buffer is too small for an important packet of each flow" if a.crowded
        else f"buffer - {FLOW} B x {args.fan_in} flows (operations.rst, The right threshold)")
    if a.crowded:
        red += "; flows divide the room (tlt.rst, Crowds)"
    times = f"{PRODUCTS} x " if product(args) < SMALL else ""
    floor = ", or a packet" if a.least == PACKET else ""
    yield "minimum of red", a.least, f"{times}rate x RTT{floor} (operations.rst, Tuning a link)"
    yield "limit", a.limit, "--buffer"
    yield "red", a.red, red
    yield "ecn", a.ecn, ("--ecn" if args.ecn else
                         "200/270 of the minimum of red (operations.rst, Tuning a link)")
    yield "headroom", a.headroom, ("rate x 2 delay + 2 packets + MTU + frame"
                                   " (color.rst, Xoff, Xon, headroom)")
    if (drain := a.limit * 8 * 10**6 // a.rate) > LATE:
        yield "tlt_crowd", min(round(CROWD * drain), CROWD_MAX), (
            f"us, a sysctl of the hosts: {CROWD} of the time in which the buffer drains, at most"
            f" {CROWD_MAX} (tlt.rst, Crowds)")
    yield "xoff", a.xoff, (f"buffer / {args.links} - headroom (color.rst, Xoff, Xon, headroom)"
                           if a.xoff > 2 * PACKET else
                           "the buffer has no room for Xoff and headroom of all links: no pause")


def _rate(rate):
    """A rate for tc, in the largest unit without a fraction."""
    unit, size = next(one for one in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3), ("bit", 1))
                      if rate % one[1] == 0)
    return f"{rate // size}{unit}"


def tc(a):
    """Commands of a software switch: with a red threshold, or lossless, without one."""
    port = f"tc qdisc add dev DEV root color rate {_rate(a.rate)} limit {a.limit}"
    yield f"{port} red {a.red} ecn {a.ecn}"
    if a.xoff > 2 * PACKET:
        # Marks precede the pause of a link that fills the queue alone.
        yield f"{port} ecn {min(a.ecn, round(MARKS * a.xoff))} pause all delay {a.delay}ns"


def _profile(a):
    """SONiC's WRED profile: red drops, the other colours are marked."""
    colours = {"red": a.red, "green": a.ecn, "yellow": a.ecn}
    profile = {"ecn": "ecn_green_yellow"}
    for colour, threshold in colours.items():
        profile[f"wred_{colour}_enable"] = "true"
        profile[f"{colour}_min_threshold"] = profile[f"{colour}_max_threshold"] = str(threshold)
        profile[f"{colour}_drop_probability"] = "100"
    return profile


def sonic(a):
    """A fragment of config_db.json."""
    port = "Ethernet0"
    tables = {
        "DSCP_TO_TC_MAP": {"TLT": {str(dscp): str(QUEUE) for dscp in DSCPS}},
        "TC_TO_QUEUE_MAP": {"TLT": {str(QUEUE): str(QUEUE)}},
        "PORT_QOS_MAP": {port: {"dscp_to_tc_map": "TLT", "tc_to_queue_map": "TLT"}},
        "WRED_PROFILE": {"TLT": _profile(a)},
        "BUFFER_PROFILE": {"TLT": {"pool": "egress_lossy_pool", "size": "0",
                                   "static_th": str(a.limit)}},
        "BUFFER_QUEUE": {f"{port}|{QUEUE}": {"profile": "TLT"}},
        "QUEUE": {f"{port}|{QUEUE}": {"wred_profile": "TLT"}},
    }
    yield from json.dumps(tables, indent=4).splitlines()


def sonic_pause(a):
    """The profile of a lossless priority, in which xoff is the headroom."""
    if a.xoff > 2 * PACKET:
        yield f"config buffer profile add tlt --xon {SONIC_XON} --xoff {a.headroom}"


def nvue(a):
    """Commands of Cumulus Linux: one queue for TLT's codepoints, its ECN, and pause."""
    yield "nv set qos mapping default-global trust l3"
    yield (f"nv set qos mapping default-global dscp {','.join(map(str, DSCPS))} "
           f"switch-priority {QUEUE}")
    yield (f"nv set qos egress-queue-mapping default-global switch-priority {QUEUE} "
           f"traffic-class {QUEUE}")
    congestion = f"nv set qos congestion-control tlt traffic-class {QUEUE}"
    yield f"{congestion} min-threshold-bytes {a.ecn}"
    yield f"{congestion} max-threshold-bytes {a.ecn}"
    yield f"{congestion} probability 100"
    yield "nv set interface swp1 qos congestion-control profile tlt"
    if a.xoff > 2 * PACKET:
        yield f"nv set qos pfc tlt switch-priority {QUEUE}"
        yield f"nv set qos pfc tlt xoff-threshold {a.xoff}"
        yield f"nv set qos pfc tlt xon-threshold {2 * PACKET}"
        yield "nv set interface swp1 qos pfc profile tlt"


FORMATS = {"tc": ("a software switch", tc), "sonic": ("SONiC, not tried on hardware", sonic),
           "sonic-pause": ("SONiC, a lossless priority", sonic_pause),
           "nvue": ("Cumulus Linux, not tried on hardware", nvue)}


def _verify(args, a):
    """Run the incast; returns the exit status."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run(
            [TOP / "scripts/experiment", "incast", "--cc", "dctcp,tlt_dctcp",
             "--kernel", args.kernel, "--rate", f"{a.rate}bit",
             "--delay", f"{args.rtt // 4}ns", "--limit", str(a.limit),
             "--red", str(a.red), "--ecn", str(a.ecn), "--fan-in", str(args.fan_in),
             "--json", out.name], stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            return done.returncode
        # The experiment has replaced the file.
        report = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))
    print(f"verified in virtual time: 8 senders, {args.fan_in} flows of 32 kB")
    for row in report["summary"]:
        print(f"  {row['cc']}: p99.9 is {row['ratio']:.2f} times the ideal,"
              f" {row['timeouts']} RTOs, {row['drops_green']} important packets dropped")
    return 0


def run(args):
    """Print the advice; returns the exit status."""
    a = advice(args)
    if args.only:
        print(*FORMATS[args.only][1](a), sep="\n")
    else:
        for name, value, rule in numbers(args, a):
            print(f"{name:<15} {value:>9}  {rule}")
        for title, lines in FORMATS.values():
            print("", f"# {title}", *lines(a), sep="\n")
        print(flush=True)
    return _verify(args, a) if args.verify else 0
