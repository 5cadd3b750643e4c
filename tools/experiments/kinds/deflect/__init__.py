# SPDX-License-Identifier: GPL-2.0
"""Incasts of short messages beside long flows in a leaf-spine network.

	scripts/experiment deflect --cc dcqcn,dart --load 20,40,60 --deflect

	spine0     spine1     spine2     spine3
	  |  \\  \\  /  |  \\  ...  each leaf to each spine  ...
	leaf0      leaf1      leaf2      leaf3
	| | ... |  | | ... |  | | ... |  | | ... |
	h0 ... h15 h16 . h31  h32 . h47  h48 . h63     all links 10 Gbit/s, 5 us

Short messages: in an incast, --degree random hosts send a message each, of one of the sizes
--bytes, to one random host.  Long flows of --long-bytes run between random hosts.  Both arrive as
Poisson processes.  Load is the payload that crosses the core, in percent of the capacity of all
leaves' uplinks.  The schedule depends on --seed, and is the same for all congestion controls.

--pods N --cores N is a network of three tiers: the --leaves are divided into pods, each pod has
--spines switches above its leaves, and these divide --cores among themselves.  Load is then of the
capacity of all links between pods and cores.

--long-flows N replaces the long flows by N endless ones, each from another host while N is not
above --hosts; --seed selects their hosts.  The short messages are the same for any N: --load and
--short still give the number of the incasts, and the long flows take the bandwidth that remains.

--deflect repeats all runs with iofd at the switches' ports, --escape with iofd and a priority band
for messages at the limit of deflections, --pri-q with priority for short messages.  ACKs always
have the highest priority.  CC@PORTS is a congestion control with one kind of port: dcqcn@pri-q, or
dart@escape; @lossy is iofd, and a port drops deflected messages above --lossy bytes of them.

--pause: ports pause their upstream ports, so that no packet is lost.  A detour leads down and up
again, so packets that wait for each other's port may stop for ever; deflected messages of @lossy
pause no port.  The baseline of the comparisons is dcqcn (without it: the first of --cc) with plain
ports, at the same load.

CC:NAME=VALUE is a congestion control with net.ipv4.NAME set: dart:dart_shares=0 leaves
the rates to DCQCN.  With --look-ahead an incast's receiver names its senders before the incast
begins (Dart III-D); dart:dart_lookahead=0 ignores the names.
"""

from experiments.kinds.deflect import schedule as workload
from lab import units
from lab.measure import report

BASELINE = "dcqcn"
PORTS = ("plain", "deflect", "escape", "lossy", "pri-q")
DEFLECTING = ("deflect", "escape", "lossy")
GBIT = "{:.1f}"
PER_HOST = 16       # maximum of --long-flows

COLUMNS = (
    ("cc", "cc", "{}"), ("ports", "ports", "{}"), ("load", "load", "{}"),
    ("2k p50 ms", "p50_2048", "ms"), ("p99 ms", "p99_2048", "ms"),
    ("8k p50 ms", "p50_8192", "ms"), ("p99 ms", "p99_8192", "ms"),
    ("p99 /", "p99_ratio", "{:.2f}"), ("short Gbit/s", "short_gbit", GBIT),
    ("long", "long_gbit", GBIT), ("long p50 ms", "p50_long", "ms"), ("all %", "all_gain", "{:+.1f}"),
    ("marked short", "marked", "{:.1%}"), ("in core", "marked_core", "{:.1%}"), ("drops", "drops", "{}"),
    ("RTOs", "timeouts", "{}"), ("probes", "probes", "{}"),
    ("out of order", "out_of_order", "{}"), ("behind", "behind", "{}"), ("links", "links", "{:.2f}"),
    ("deflected", "deflected", "{}"), ("pauses", "pauses", "{}"), ("paused ms", "paused", "ms"), ("links %", "links_gain", "{:+.1f}"), ("load %", "load_gain", "{:+.1f}"),
    ("late us", "late", "us"), ("real s", "real_s", "{:.0f}"),
)

# The paper's ports have 225 kB and pause their senders.  These have so much that they do not drop
# either; with --pause an Xoff decides.
DEFAULTS = {"cc": "dcqcn,dart", "rate": "10gbit", "delay": "5us", "limit": "20m",
            "rounds": 1, "gap": "0ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    add("--load", type=units.several(units.count), default="20,40,60", metavar="N,...",
        help="of the core, in percent, several runs (20,40,60)")
    add("--deflect", action="store_true", help="repeat all runs with iofd at the ports")
    add("--escape", action="store_true",
        help="repeat them with priority for messages at the limit of deflections")
    add("--pri-q", action="store_true", help="repeat them with priority for short messages")
    add("--hosts", type=units.count, default=64)
    add("--leaves", type=units.count, default=4)
    add("--spines", type=units.count, default=4, help="of each pod with --pods (4)")
    add("--pods", type=units.count, metavar="N", help="a third tier, above N pods of leaves")
    add("--cores", type=units.count, metavar="N", help="of the third tier")
    add("--short", type=int, default=40, metavar="PERCENT",
        help="of the load, in short messages (40)")
    add("--degree", type=units.count, default=16, help="of an incast (16)")
    add("--bytes", type=units.several(units.size), default="2k,4k,8k", metavar="N,...",
        help="of a short message, one of these (2k,4k,8k)")
    add("--long-bytes", type=units.size, default="1g",
        help="of a long flow (1g); a flow that would take longer than the run is endless")
    add("--long-flows", type=units.count, metavar="N",
        help="exactly N endless flows, in place of the number that --load implies")
    add("--ecn", type=units.size, default="22500", help="marking threshold (22500)")
    add("--threshold", type=units.size, default="15k", help="of iofd (15k)")
    add("--lossy", type=units.size, default="100k", help="threshold of @lossy (100k)")
    add("--pause", action="store_true", help="ports pause their upstream ports")
    add("--xoff", type=units.size, default="200k",
        help="bytes from one neighbour that pause it (200k)")
    add("--nic-ecn", type=units.size, metavar="BYTES",
        help="marking threshold of the hosts' NICs, with --pause (none)")
    add("--entries", type=units.count, default=8, help="of iofd's table (8)")
    add("--duration", type=units.time, default="20ms", help="measured time (20ms)")
    add("--messages", type=units.count, metavar="N",
        help="in place of --duration: the time of about N short messages at each load")
    add("--warm-up", type=units.time, default="5ms", help="before the measured time (5ms)")
    add("--drain", type=units.time, default="200ms",
        help="maximum wait for the last message (200ms)")
    add("--seed", type=units.count, default=1, help="of the schedule (1)")
    add("--look-ahead", action="store_true",
        help="receivers name an incast's senders before it begins")
    add("--sysctl", action="append", default=[], metavar="NAME=VALUE",
        help="set net.ipv4.NAME of each host")
    add("--option", action="append", default=[], metavar="LEVEL:NAME:VALUE",
        help="setsockopt() on the senders' sockets, in numbers")


def _at(cc):
    """(CC, PORTS) of CC@PORTS; PORTS is empty if there is none."""
    return cc.partition("@")[::2]


def parse_cc(text):
    """A congestion control, with an optional kind of port, which wrong() checks."""
    return units.cc_name(_at(text)[0])


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.fresh or not args.tso or args.rounds != 1 or args.gap:
        return "--fresh, --no-tso, --rounds, --gap: this experiment does not have them"
    if args.leaves < 2 or args.hosts % args.leaves or args.hosts // args.leaves > 250:
        return "--hosts: a multiple of --leaves, at most 250 at each; --leaves: at least 2"
    if args.leaves > 50 or args.spines > 16:
        return "--leaves and --spines: at most 50, and 16"
    if bool(args.pods) != bool(args.cores):
        return "--pods and --cores: both, or none"
    if args.pods and (args.pods < 2 or args.leaves % args.pods or args.cores % args.spines
                      or args.cores > 16 * args.spines):
        return ("--leaves: a multiple of --pods, at least 2; --cores: a multiple of --spines,"
                " at most 16 of each")
    if args.degree >= args.hosts:
        return "--degree: fewer than --hosts"
    if not 0 <= args.short <= 100:
        return "--short: percent"
    most = workload.offered(vars(args), max(args.load)) / args.hosts
    if most >= args.rate:
        return "--load: more than the hosts' links carry"
    if not all(args.bytes) or max(args.bytes) >= args.long_bytes:
        return "--bytes: more than 0, and less than --long-bytes"
    if not args.duration:
        return "--duration: more than 0"
    if args.messages and not args.short:
        return "--messages: --short is 0, so there are no short messages"
    if args.long_flows and args.long_flows > PER_HOST * args.hosts:
        return f"--long-flows: at most {PER_HOST} for each of the --hosts"
    ends = args.long_bytes * 8e9 / args.rate
    if args.long_flows and any(ends <= args.warm_up + workload.duration(vars(args), load)
                               for load in args.load):
        return "--long-flows: its flows are endless, but flows of --long-bytes end within the run"
    for cc in args.cc.split(","):
        if "@" in cc and not (_at(cc)[0] and _at(cc)[1] in PORTS):
            return f"--cc: CC@PORTS, of {', '.join(PORTS)}: {cc}"
    if not args.xoff:
        return "--xoff: more than 0"
    if args.nic_ecn and not args.pause:
        return "--nic-ecn: only with --pause, which a NIC obeys"
    if not all(setting.count("=") == 1 for setting in args.sysctl):
        return "--sysctl: NAME=VALUE"
    return None


def configure(args):
    """(configuration, jobs).  A run's time is proportional to its messages."""
    keys = ("hosts leaves spines pods cores short degree bytes long_bytes long_flows ecn threshold entries"
            " duration messages warm_up drain seed look_ahead sysctl option port pause xoff lossy"
            " nic_ecn").split()
    config = {key: getattr(args, key) for key in keys}
    config.update(topology="pods" if args.pods else "leaf-spine", symmetric=False, rate=args.rate)
    ports = ["plain"] + ["deflect"] * args.deflect + ["escape"] * args.escape \
        + ["pri-q"] * args.pri_q
    pairs = [(name, port) for name, its in map(_at, args.cc.split(","))
             for port in ([its] if its else ports)]
    flows = {load: len(workload.Schedule(config, load).messages) for load in args.load}
    jobs = [{"cc": cc, "flows": flows[load], "load": load, "ports": port}
            for cc, port in dict.fromkeys(pairs) for load in args.load]
    return config, jobs


def _switches(result):
    """Totals of all ports: packets, marks, drops, links per short packet and per byte."""
    total = {}
    for role, kinds in result["switches"].items():
        for name, value in kinds.get("color", {}).items():
            total[name] = total.get(name, 0) + value
            total[role, name] = value
    short, everything = "colors.green.packets", "bytes"
    if not total.get(("p", short)):
        return {}
    found = {
        "drops": total["drops"],
        "deflected": sum(kinds["iofd"]["deflected.messages"]
                         for kinds in result["switches"].values() if "iofd" in kinds) or None,
        # The first link is the host's, without a switch port; a leaf's port ends the path.
        "bytes_a_byte": 1 + total[everything] / total["p", everything],
    }
    if "pause.off" in total:
        found.update(pauses=total["pause.off"], paused=total["pause.paused.0"])
    if result["ports"] == "lossy":      # green are all packets but deflected ones
        return found
    return found | {
        # A port does not count the mark of a packet that is already marked.
        "marked": total["colors.green.marks"] / total["p", short],
        "marked_core": sum(total[role, "colors.green.marks"] for role in ("up", "d"))
                       / total["p", short],
        "links": 1 + total[short] / total["p", short],
    }


def _behind(schedule, times):
    """The number of short messages that were written before the previous one on their connection
    was complete.  Each message may take another path, so they may overtake one another."""
    done, found = {}, 0
    for message, fct in zip(schedule.messages, times):
        if schedule.kind(message) == workload.SHORT:
            found += done.get(message.connection, 0) > message.at
            done[message.connection] = message.at + fct
    return found


def summary(config, result):
    """A run's row."""
    row = {key: result[key] for key in ("cc", "ports", "load", "flows")}
    if "fct_ns" not in result:
        return dict(row, error=result["error"])
    schedule = workload.Schedule(config, result["load"])
    measured = [(m.bytes, fct) for m, fct in zip(schedule.messages, result["fct_ns"])
                if schedule.counts(m)]
    row["unfinished"] = sum(not fct for _, fct in measured)
    row["long_flows"] = sum(schedule.kind(m) == workload.LONG for m in schedule.messages)
    for size in config["bytes"] + [config["long_bytes"]]:
        times = sorted(fct for n, fct in measured if n == size and fct)
        row[f"samples_{size}"] = len(times)
        for percent in (50, 99) if times else ():
            row[f"p{percent}_{size}"] = report.percentile(times, percent)
    row["p50_long"] = row.get(f"p50_{config['long_bytes']}")
    for kind in workload.CLASSES:
        row[f"{kind}_gbit"] = 8 * result["bytes"][kind] / schedule.duration
    row["all_gbit"] = row["short_gbit"] + row["long_gbit"]
    row["offered_gbit"] = workload.offered(config, result["load"]) / 1e9
    tcp = result["counters"]["tcp"]
    row["named"] = result["counters"].get("greenlane", {}).get("SendersNamed", 0)
    row.update(timeouts=tcp["TCPTimeouts"], probes=tcp["TCPLossProbes"],
               retransmitted=tcp["RetransSegs"], out_of_order=tcp["TCPOFOQueue"],
               behind=_behind(schedule, result["fct_ns"]),
               late=result["late_ns"]["mean"], setup_s=result["setup_s"],
               cpu_s=result["cpu_s"], real_s=result["real_s"], **_switches(result))
    return row


def _gain(row, base, key):
    if base.get(key) and row.get(key):
        return 100 * (row[key] / base[key] - 1)
    return None


def summaries(config, results):
    """All rows, each with its difference from the baseline's row at that load."""
    rows = [summary(config, result) for result in results]
    ccs = [row["cc"] for row in rows]
    name = BASELINE if BASELINE in ccs else ccs[0]
    base = {row["load"]: row for row in rows if (row["cc"], row["ports"]) == (name, "plain")}
    largest = f"p99_{max(config['bytes'])}"
    for row in rows:
        other = base.get(row["load"])
        if other is None or row is other:
            continue
        row.update(all_gain=_gain(row, other, "all_gbit"),
                   links_gain=_gain(row, other, "links"),
                   load_gain=_gain(row, other, "bytes_a_byte"))
        if row.get(largest) and other.get(largest):
            row["p99_ratio"] = other[largest] / row[largest]
    return rows


def network_words(config):
    """The network's size."""
    tops = (f"in {config['pods']} pods of {config['spines']} spines, {config['cores']} cores"
            if config["pods"] else f"{config['spines']} spines")
    return f"{config['hosts']} hosts, {config['leaves']} leaves, {tops}"


def notes(config, results, _rows):
    """The text below the table."""
    setup = max((r["setup_s"] for r in results), default=0)
    return f"{network_words(config)}: booted and set up in {setup:.1f} s"


def plot(config, _results, rows, args):
    """Draw the tail and the throughput against load."""
    from experiments.kinds.deflect.plot import plot as draw   # matplotlib takes a second to import
    draw(config, rows, args.plot)
