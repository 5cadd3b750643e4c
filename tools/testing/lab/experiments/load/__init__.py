# SPDX-License-Identifier: GPL-2.0
"""Flows of a datacenter, and incasts beside them, on a network of switches.

	scripts/experiment load --load 20,40 --cc dctcp,tlt_dctcp
	scripts/experiment load --topology fat-tree --k 8 --workload cache-follower

Background: --background flows between random hosts, their sizes from --workload.
Foreground: incasts, --foreground percent of all bytes: --senders random hosts send --flows
messages of --bytes each to another one.  Both come as Poisson processes.  Load is payload,
of the links of the core, in percent of what they carry; without a core, of the hosts'.

CC+CC... is a mix: each connection has one of them, each with the same chance, at both ends,
and all at the same switches.  The row of the mix is of all flows, and has what hosts and
ports count; those below, CC@mix, are of the flows of each.  If CC runs alone in the same
command, what follows the table says how the same flows fared there.  With --apart 1,5,2
each port has a queue for each of a mix, and the queues share a busy link as 1 : 5 : 2; the rows
CC@mix then have the drops and marks of their queues.

--deployed 0,50,100 gives CC to that many percent of the hosts, by their
net.ipv4.tcp_congestion_control, and --others to the rest; then the rows CC@both, CC@one and
CC@none are of the flows between hosts of which both, one or none have CC.

With --request, each flow is the answer to a request of so many bytes, and its completion
time is counted from when its receiver asked.

With --segments the row has percentiles of the delivery time of segments (TLT's Figure 16): from the
first transmission of each to its ACK, with all retransmissions.  All of them are captured, at the
switch ports of the hosts; --segments PERCENT captures that share of the connections, and needs as
much less of the guest's memory: 128 bytes for each packet, three times.

Slowdown is a flow's completion time by what it has alone on its way: all its bytes, headers
included, at line rate, and each switch's delay.  Classes of the background are up to 100 kB,
up to 1 MB, and larger.
"""

import collections
import functools
import statistics

from lab import units
from lab.codepoints import UNSCHEDULED
from lab.experiments.incast import segments
from lab.experiments.load import schedule as traffic
from lab.measure import fabric, report
from lab.net import port as ports
from lab.net import topology as topologies
from lab.net.network import Network
from lab.traffic import sizes
from lab.traffic.plan import FIRST_SERVER

# bytes; a flow is of the first class that has it.
CLASSES = (("small", 100_000), ("medium", 1_000_000), ("large", float("inf")))

# ns, what TLT's paper has in 2.2: the smallest RTO, and one that is long.
RTO_MIN, RTO_LONG = 200_000, 1_100_000

# What is said of a mix's flows, and how.
RATIOS = {"fg_p99.9": "incasts' p99.9", "small_slowdown": "slowdown of small",
          "medium_slowdown": "medium", "large_slowdown": "large"}

COLUMNS = (
    ("cc", "cc", "{}"), ("load", "load", "{}"), ("deployed", "deployed", "{}"),
    ("fg p50 ms", "fg_p50", "ms"), ("p99 ms", "fg_p99", "ms"), ("p99.9 ms", "fg_p99.9", "ms"),
    ("bg mean ms", "bg_mean", "ms"), ("small mean us", "small_mean", "us"),
    ("p99 us", "small_p99", "us"), ("slowdown", "small_slowdown", "{:.2f}"),
    ("medium", "medium_slowdown", "{:.2f}"), ("large", "large_slowdown", "{:.2f}"),
    ("Gbit/s", "gbit", "{:.1f}"), ("RTOs/1k", "rtos", "{:.2f}"), ("probes", "probes", "{}"),
    ("drop red", "drops_red", "{}"), ("yellow", "drops_yellow", "{}"),
    ("green", "drops_green", "{}"), ("marks", "marks", "{}"), ("peak kB", "peak", "kB"),
    ("pauses", "pauses", "{}"), ("queue p99", "queue_p99", "kB"), ("p99.9", "queue_p99.9", "kB"),
    ("important", "important", "{:.1%}"), ("late us", "late", "us"), ("real s", "real_s", "{:.0f}"),
)

# Of a job's port: the root qdisc, and what is added below it.
BELOW = " ; "

# A congestion control of the command line; here it may be a mix.
parse_cc = units.ccs

# TLT's fabric (§7.1), but for the number of its hosts.
DEFAULTS = {"cc": "dctcp,tlt_dctcp", "rate": "40gbit", "delay": "10us", "limit": "4500000",
            "rounds": 1, "gap": "0ms"}


def add_arguments(add):
    """Those that only this experiment has."""
    topologies.add_arguments(add)
    add("--workload", choices=sizes.DISTRIBUTIONS, default="web-search", help="(web-search)")
    add("--load", type=units.several(units.count), default="40", metavar="N,...",
        help="in percent, several runs (40)")
    add("--background", type=int, default=1000, metavar="N", help="flows (1000)")
    add("--foreground", type=int, default=5, metavar="PERCENT", help="of all bytes (5)")
    add("--incasts", type=int, default=1, metavar="N", help="at least so many, if any (1)")
    add("--senders", type=units.count, help="of an incast (all other hosts)")
    add("--flows", dest="each", type=units.count, default=8, help="of each of them (8)")
    add("--bytes", type=units.size, default="8k", help="of each of those (8k)")
    add("--request", type=units.size, default="0", metavar="BYTES",
        help="flows are answers to so much (0: they begin by themselves)")
    add("--look", type=units.time, default="0us", metavar="TIME",
        help="at all queues, so often: percentiles (0us: not)")
    segments.add_argument(add)
    add("--tcp-info", action="store_true",
        help="after each flow, its sender's estimates: RTT, and the RTO that they make")
    add("--red", type=units.size_or_auto,
        help="colour threshold, or auto (400k; credits' transports: 6k)")
    add("--yellow", type=units.size,
        help="colour threshold, at the ports of a mix (1m, or --limit if that is less)")
    add("--unscheduled", choices=ports.UNSCHEDULED, default="drop",
        help="what credits' transports send before credits: dropped above --red, or behind"
        " all else (drop)")
    add("--credits", type=units.count, default="100", metavar="PERCENT",
        help="of each line, that credits may call for (100)")
    add("--ecn", type=units.size, default="200k",
        help="marking threshold (200k; half of it with --apart)")
    add("--apart", type=units.several(units.count), metavar="N,...",
        help="a queue for each of a mix, with so many parts of a busy link; credits call for no"
        " more than their queue's part")
    add("--deployed", type=units.several(units.percent), metavar="PERCENT,...",
        help="of the hosts have it, several runs (all of them, by socket option)")
    add("--others", type=units.cc_name, default="dctcp", metavar="CC",
        help="what the other hosts have, with --deployed (dctcp)")
    add("--pool", type=units.size, default="4500000",
        help="memory that a switch's ports share, each up to half of it; 0: none (4500000)")
    add("--pause", choices=ports.PAUSES,
        help="a paused fabric, where these packets are not lost")
    add("--drain", type=units.time, default="1s", help="wait so long for the last flow (1s)")
    add("--seed", type=units.several(units.count), default="1", metavar="N,...",
        help="of the schedule, several runs (1)")


def wrong(args):
    """What the command line cannot mean, or nothing."""
    if args.fresh or not args.tso or args.rounds != 1 or args.gap:
        return "--fresh, --no-tso, --rounds, --gap: not of this experiment"
    if message := topologies.settle(args):
        return message
    if args.senders is None:
        args.senders = args.hosts - 1
    if args.senders >= args.hosts:
        return "--senders: as many other --hosts"
    if not 0 <= args.foreground < 100 or args.background < 0 or args.incasts < 0:
        return "--foreground: percent; --background and --incasts: numbers"
    if not args.background and not args.incasts:
        return "--background or --incasts: more than 0"
    if max(args.load) > 100 or args.credits > 100 or not args.bytes:
        return "--load and --credits: percent; --bytes: more than 0"
    if args.apart and (args.port or args.pause):
        return "--apart: not with --port or --pause"
    mixes = [cc for cc in args.cc.split(",") if len(units.ccs(cc)) > 1]
    if args.deployed and mixes:
        return "--deployed: not with a mix"
    if message := segments.wrong(args):
        return message
    if args.apart and not (mixes and all(_is_apart(args, cc) for cc in mixes)):
        return "--apart: a mix, and a number for each of it"
    return None


def _mixed(args, names, credit, behind):
    """What a port needs for all of a mix at one time.

    Credits: their band.  TLT: the red threshold.  ECN: for all who ask.  Yellow is for one more
    threshold.  Who begins at line rate and counts on nothing being dropped (dart, dcqcn) fills a
    port within a round trip, so yellow, as their data is by default, has a threshold that keeps
    room for what is green.  Without them, it is unscheduled data that is yellow, and has
    Aeolus's threshold; beside them it is red, as TLT's.
    """
    words = ["preset xpass"] * any(credit) + [ports.behind(1, mix=True)] * (any(credit) and behind)
    yellow = 1 << 20
    plain = [name for name in names if not units.has_credits(name) and not units.is_coloured(name)]
    if any(credit) and not behind and not plain:
        words.append(f"map {UNSCHEDULED.dscp} yellow")
        yellow = 6 << 10
    yellow = args.yellow or min(yellow, args.limit)
    return " ".join([*words, f"red {args.red or 400 * 1024} yellow {yellow} ecn {args.ecn}"])


def _is_apart(args, cc):
    """Is it a mix for which --apart makes a queue for each?"""
    return len(args.apart or []) == len(units.ccs(cc)) > 1


def _percent(args, cc):
    """How much of a link credits may call for: no more than the part of their own queue."""
    if not _is_apart(args, cc):
        return args.credits
    own = [share for name, share in zip(units.ccs(cc), args.apart) if units.has_credits(name)]
    return min([args.credits, *(100 * share // sum(args.apart) for share in own)])


def _own(args, credit, ecn):
    """The thresholds of a port, or of a queue of it, that only one transport uses."""
    if not credit:
        red = f"red {args.red or 400 * 1024} " if args.red or args.pause != "all" else ""
        return f"{red}ecn {ecn}"
    if args.unscheduled == "behind":
        return f"preset xpass {ports.behind(1)}"
    return f"preset aeolus red {args.red or 6 * 1024}"


def _port(args, cc):
    """A switch port for that congestion control or mix, in tc's words: its root qdisc, and the
    lines that add what is below it."""
    if args.port:
        return [args.port]
    queue = f"limit {args.limit}{ports.pausing(args.pause, args.delay)}"
    if args.pool:
        # Pausing bounds what is queued: one port may have all of the pool.
        queue += f" pool sw size {args.pool} alpha {1024 if args.pause else 1}"
    line, percent = f"color rate {args.rate}bit {queue}", _percent(args, cc)
    credits = f"{line} {ports.credits_of(args.rate, percent)}" if percent < 100 else line
    names = units.ccs(cc)
    credit = [units.has_credits(name) for name in names]
    if _is_apart(args, cc):
        # Only the band of credits needs a rate.  Marks count one queue, which drains more slowly
        # than the port does: half of the threshold.
        others = f"color split-gso {queue}"
        queues = [f"{credits if one else others} {_own(args, one, args.ecn // 2)}"
                  for one in credit]
        return ports.apart(args.rate, args.apart, queues,
                           range(FIRST_SERVER, FIRST_SERVER + len(names)), args.ipv6)
    if len(credit) > 1 and not all(credit):
        behind = args.unscheduled == "behind"
        return [f"{credits if any(credit) else line} {_mixed(args, names, credit, behind)}"]
    return [f"{credits if all(credit) else line} {_own(args, all(credit), args.ecn)}"]


def configure(args):
    """(configuration, jobs): what a run costs goes with its bytes."""
    keys = ("topology hosts leaves spines k workload background foreground incasts senders"
            " each bytes request drain look tcp_info pause segments").split()
    config = {key: getattr(args, key) for key in keys}
    config.update(symmetric=True, rate=args.rate)
    if not args.foreground and args.background:
        config["incasts"] = 0
    ports_of = {}
    deployed = [{"deployed": percent, "others": args.others} for percent in args.deployed or []]
    deployed = deployed or [{}]
    for cc in args.cc.split(","):
        percent = _percent(args, cc)
        setting = f"xpass_rate={args.rate * percent // 10**8}" * (percent < 100)
        ports_of[cc] = {"qdisc": BELOW.join(_port(args, cc)), "settings": setting}
    jobs = []
    for load in args.load:
        for seed in args.seed:
            flows = len(traffic.Schedule(dict(config, load=load, seed=seed)).messages)
            jobs += [{"cc": cc, "load": load, "seed": seed, "flows": flows, **ports_of[cc], **have}
                     for have in deployed for cc in args.cc.split(",")]
    return config, jobs


def _alone(config, size, switches):
    """All its bytes at line rate, and the way of its last packet."""
    return report.line_ns(dict(config, bytes=size), 1) + (switches + 1) * config["delay"]


def first_rtt_ns(config, switches):
    """What is done by then was done within a round trip of the idle network."""
    return 2 * (switches + 1) * config["delay"]


def beside_ns(config, switches):
    """Propagation delays of a segment and its ACK that Ends does not see: those of the hosts' links
    and the path back.  In a paused fabric the first link's delay is behind the host's port."""
    return (switches + 2 + bool(config["pause"])) * config["delay"]


def rto_ns(srtt, rttvar):
    """The RTO of RFC 6298, of two numbers of TCP_INFO in us, with a minimum as TLT's (2.2).
    Linux's own puts its minimum on the variation."""
    return max(RTO_MIN, 1000 * (srtt + 4 * rttvar))


def ideal_ns(config, size, switches):
    """A flow alone, with its request."""
    asked = _alone(config, config["request"], switches) if config["request"] else 0
    return asked + _alone(config, size, switches)


class _Flows:
    """What runs tell of their flows, those of several seeds together; of a mix, of the flows
    that have this one of its congestion controls, or had if it was played."""

    def __init__(self, ccs=(), one=None, played=True):
        self.ccs, self.one, self.played = ccs, one, played
        self.foreground, self.unfinished = [], 0
        self.gbit = {kind: [] for kind in traffic.Schedule.classes}
        self.retransmitted = self.sent = self.resent = 0    # segments, bytes, bytes
        self.classes = {name: [] for name, _ in CLASSES}    # (ns, slowdown, round trips)
        self.early = collections.Counter()      # by class: done within the first round trip
        self.behind = collections.Counter()     # a round trip or more after an idle network's
        self.estimates = []     # (RTT, RTO), ns, of the senders of the foreground

    def add(self, plan, ideals, trips, result):
        """All of a run that has played the plan; trips are its flows' round trips."""
        has = self._chosen(plan)
        # Answers come behind all requests.
        for message, ideal, trip, fct in zip(plan.flows, ideals, trips,
                                             result["fct_ns"][-len(plan.flows):]):
            if not has(plan.connections[message.connection]):
                continue
            if not fct:
                self.unfinished += 1
            elif plan.kind(message) == traffic.FOREGROUND:
                self.foreground.append(fct)
            else:
                name = next(name for name, most in CLASSES if message.bytes <= most)
                self.classes[name].append((fct, fct / ideal, fct / trip))
                self.early[name] += fct <= trip
                self.behind[name] += fct >= ideal + trip
        for message, fct, *of in zip(plan.flows, *(result.get(key, [])[-len(plan.flows):]
                                                   for key in ("fct_ns", "rtt_us", "rttvar_us"))):
            if fct and has(plan.connections[message.connection]) and plan.kind(
                    message) == traffic.FOREGROUND:
                self.estimates.append((1000 * of[0], rto_ns(*of)))
        for kind, gbit in self.gbit.items():
            gbit.append(8 / plan.end * self._count(result["bytes"], kind))
            self.retransmitted += self._count(result["retrans"], kind)
            self.sent += self._count(result["sent"], kind)
            self.resent += self._count(result["resent"], kind)

    def _count(self, by_class, kind):
        """Of play's classes, NAME, or of a mix NAME@CC."""
        mine = f"{kind}@{self.one}" if self.one and self.played else kind
        return sum(count for name, count in by_class.items()
                   if mine in (name, name.partition("@")[0]))

    def _chosen(self, _):
        """Of a plan's connections those whose flows these are, as a predicate."""
        return lambda connection: (
            self.one is None or self.one == self.ccs[connection.part(len(self.ccs))])

    @property
    def background(self):
        """Of all classes."""
        return [fct for flows in self.classes.values() for fct, *_ in flows]

    def __len__(self):
        return len(self.foreground) + len(self.background) + self.unfinished

    def row(self):
        """Of all of them: their times, and what play counts by class."""
        found = self.times() | {"retransmitted": self.retransmitted}
        found["bg_gbit"], found["fg_gbit"] = (statistics.mean(self.gbit[kind])
                                              for kind in traffic.Schedule.classes)
        found["gbit"] = found["bg_gbit"] + found["fg_gbit"]
        if self.sent:
            found["efficiency"] = 1 - self.resent / self.sent
        return found

    def times(self):
        """Of each by itself: how many, and how long they took."""
        found = {"unfinished": self.unfinished, "fg_flows": len(self.foreground),
                 "bg_flows": len(self.background)}
        found.update(_figures("fg", self.foreground))
        found.update(_figures("bg", self.background))
        if self.estimates:
            for name, values in zip(("fg_rtt", "fg_rto"), zip(*self.estimates)):
                found.update(_figures(name, list(values)))
            found["fg_rto_long"] = statistics.mean(rto > RTO_LONG for _, rto in self.estimates)
        for name, flows in self.classes.items():
            found.update(_figures(name, [fct for fct, *_ in flows]))
            if flows:
                found[f"{name}_slowdown"] = statistics.mean(ratio for _, ratio, _ in flows)
                found[f"{name}_rtts"] = statistics.mean(rtts for *_, rtts in flows)
                found[f"{name}_first_rtt"] = self.early[name] / len(flows)
                found[f"{name}_rtt_behind"] = self.behind[name] / len(flows)
        return found


# The flows between hosts of which none, one or both have the transport that --deployed is of.
ENDS = ("none", "one", "both")


class _Between(_Flows):
    """Those flows of runs in which so many percent of the hosts have the transport.  What play
    counts by class is all flows', so only times() are theirs."""

    def __init__(self, percent, ends):
        super().__init__()
        self.percent, self.ends = percent, ends

    def _chosen(self, plan):
        have = plan.deployed(self.percent)
        return lambda connection: (
            (connection.src in have) + (connection.dst in have) == self.ends)


def _at(result):
    """Of one congestion control, what the runs differ in, but for the seed."""
    return result["load"], result.get("deployed")


def _plan(config, result):
    return traffic.Schedule(dict(config, load=result["load"], seed=result["seed"]))


def _one(mix, one):
    """What it is called on the command line when it runs alone."""
    return ":".join([one, *mix.split(":")[1:]])


def _parts(cc, ccs, percent):
    """{(mix, one of it): its flows}, and under (cc, None) all of them: of a mix, those of each;
    of one, those that it has in each mix; of one that so many percent of the hosts have, those
    of each of ENDS."""
    if percent is not None:
        return {(cc, None): _Flows()} | {
            (cc, name): _Between(percent, ends) for ends, name in enumerate(ENDS)}
    mixes = [mix for mix in ccs if len(units.ccs(mix)) > 1]
    return {(cc, None): _Flows()} | {
        (mix, one): _Flows(units.ccs(mix), one, mix == cc) for mix in mixes
        for one in units.ccs(mix) if cc in (mix, _one(mix, one))}


def _pooled(config, results):
    """{(cc, *_at()): its _parts()}; a schedule is made once for all that played it."""
    network = Network(config)
    between = functools.cache(network.switches_between)
    ccs = dict.fromkeys(result["cc"] for result in results)
    pooled = {(result["cc"], *_at(result)): _parts(result["cc"], ccs, result.get("deployed"))
              for result in results}
    for of in dict.fromkeys((result["load"], result["seed"]) for result in results):
        played = [r for r in results if (r["load"], r["seed"]) == of and "fct_ns" in r]
        if not played:
            continue
        plan = _plan(config, played[0])
        wires = [plan.connections[message.connection] for message in plan.flows]
        switches = [between(network.hosts[wire.src], network.hosts[wire.dst]) for wire in wires]
        ideals = [ideal_ns(config, message.bytes, count)
                  for message, count in zip(plan.flows, switches)]
        trips = [first_rtt_ns(config, count) for count in switches]
        for result in played:
            for flows in pooled[result["cc"], *_at(result)].values():
                flows.add(plan, ideals, trips, result)
    return pooled


def _figures(name, times):
    if not times:
        return {}
    times.sort()
    return {f"{name}_mean": statistics.mean(times), f"{name}_max": times[-1]} | {
        f"{name}_p{percent:g}": report.percentile(times, percent)
        for percent in (50, 90, 99, 99.9)}


def _queues(results):
    """Percentiles over all ports and all looks at them: backlogs in bytes, by thousands."""
    seen = sum((collections.Counter(result["queues"]) for result in results),
               collections.Counter())
    total, found, passed = sum(seen.values()), {}, 0
    left = [50, 99, 99.9]
    for backlog in sorted(map(int, seen)):
        passed += seen[str(backlog)]
        while left and 100 * passed >= left[0] * total:
            found[f"queue_p{left.pop(0):g}"] = backlog
    return found


def _segments(results):
    """Percentiles of all segments' delivery times."""
    seen = sum((collections.Counter(result["segments"]["times"]) for result in results),
               collections.Counter())
    times = sorted(int(time) for time in seen.elements())
    lost = sum(result["segments"]["lost"] for result in results)
    return {f"segment_{name}": value
            for name, value in segments.spread(times + [None] * lost).items()}


def summary(flows, results):
    """The row of one congestion control at one load: all seeds together."""
    row = {key: results[0][key] for key in ("cc", "load", "deployed", "flows")
           if key in results[0]}
    for result in results:
        if "fct_ns" not in result:
            return dict(row, error=result["error"])
    row.update(flows.row())
    tcp = sum((collections.Counter(result["counters"]["tcp"]) for result in results),
              collections.Counter())
    row.update(timeouts=tcp["TCPTimeouts"], probes=tcp["TCPLossProbes"], **fabric.ports(results),
               rtos=1000 * tcp["TCPTimeouts"] / (row["fg_flows"] + row["bg_flows"]),
               late=max(result["late_ns"]["mean"] for result in results))
    row["memory"] = max(result["memory"] for result in results)
    if "queues" in results[0]:
        row.update(_queues(results))
    if "segments" in results[0]:
        row.update(_segments(results))
    row["clock_bytes"] = sum(result["counters"]["greenlane"].get("ClockSentBytes", 0)
                             for result in results)
    for name in ("setup_s", "cpu_s", "real_s"):
        row[name] = sum(result[name] for result in results)
    return row


def _ends(cc, name, flows, results):
    """The row of flows between hosts that have it or not.  What hosts and ports count is all
    flows'."""
    return {"cc": f"{cc}@{name}", "load": results[0]["load"],
            "deployed": results[0]["deployed"], "flows": len(flows)} | flows.times()


def _part(mix, one, pooled, load, results):
    """The row of one of a mix: its flows, and what its queues count if it has some of its own.
    What hosts count, and ports with one queue, is the whole mix's."""
    flows = pooled[mix, load, None][mix, one]
    found = flows.row()
    row = {"cc": _one(mix, f"{one}@mix"), "mix": mix, "load": load, "flows": len(flows)} | found
    queue = f"color 1:1{units.ccs(mix).index(one)}"
    if any(queue in kinds for result in results for kinds in result["switches"].values()):
        row.update(fabric.ports(results, queue))
    # By what the same flows had when all others were its own, if that was played.
    alone = pooled.get((_one(mix, one), load, None), {}).get((mix, one))
    if alone:
        was = alone.row()
        row.update({f"{key}_ratio": found[key] / was[key] for key in RATIOS
                    if key in found and key in was})
    return row


def summaries(config, results):
    """A row for each congestion control, load and deployment; below a mix's, one for each of it,
    and below a partial deployment's one for each of ENDS."""
    rows, pooled = [], _pooled(config, results)
    for (cc, load, percent), parts in pooled.items():
        mine = [r for r in results if (r["cc"], *_at(r)) == (cc, load, percent)]
        whole = summary(parts[cc, None], mine)
        rows.append(whole)
        if "error" not in whole and percent is not None:
            rows += [_ends(cc, name, parts[cc, name], mine) for name in ENDS if parts[cc, name]]
        elif "error" not in whole:
            rows += [_part(cc, one, pooled, load, mine) for mix, one in parts if one and mix == cc]
    return rows


def _ratios(rows):
    """Of each mix, how its flows fared beside the same flows alone."""
    for row in rows:
        if any(f"{key}_ratio" in row for key in RATIOS):
            yield f"{row['cc']}, load {row['load']}, by the same flows alone: " + ", ".join(
                f"{words} {row[f'{key}_ratio']:.2f}" for key, words in RATIOS.items()
                if f"{key}_ratio" in row)


def _estimates(rows):
    """What the senders of incasts think of their paths."""
    for row in rows:
        if "fg_rto_long" in row:
            yield (f"{row['cc']}, load {row['load']}, incasts: 90 % of the senders have an RTT of"
                   f" up to {row['fg_rtt_p90'] / 1e3:.0f} us and an RTO of up to"
                   f" {row['fg_rto_p90'] / 1e3:.0f} us, if {RTO_MIN // 1000} us is the least;"
                   f" {row['fg_rto_long']:.1%} have one above {RTO_LONG / 1e6:g} ms")


def notes(config, results, rows):
    """What is said below the table."""
    setup = max((result["setup_s"] for result in results), default=0)
    plan = _plan(config, results[0])
    kinds = collections.Counter(map(plan.kind, plan.messages))
    return (f"{len(Network(config).switches)} switches, {config['hosts']} hosts:"
            f" {kinds[traffic.BACKGROUND]} flows of {config['workload']},"
            f" {kinds[traffic.FOREGROUND]} of incasts, in {plan.end / 1e6:.1f} ms;"
            f" set up in {setup:.1f} s of real time" + "".join(
                f"\n{line}" for line in [*_ratios(rows), *_estimates(rows)]))


def plot(config, results, rows, args):
    """Several loads or deployments: tail and slowdown against them.  One: the distributions."""
    from lab.experiments.load.plot import plot as draw   # matplotlib takes a second to import
    flows = {}
    for (cc, *at), parts in _pooled(config, [r for r in results if "fct_ns" in r]).items():
        for (mix, one), mine in parts.items():
            if mix != cc:
                continue
            name = cc if not one else f"{cc}@{one}" if one in ENDS else _one(mix, f"{one}@mix")
            flows[name, *at] = mine.foreground, mine.classes
    draw(config, rows, flows, args.plot)
