# SPDX-License-Identifier: GPL-2.0
"""Background flows between random hosts, and incasts, on a network of switches.

	scripts/experiment load --load 20,40 --cc dctcp,tlt_dctcp
	scripts/experiment load --topology fat-tree --k 8 --workload cache-follower

Background: --background flows between random hosts, with sizes from --workload.
Foreground: incasts, --foreground percent of all bytes: --senders random hosts send --flows
messages of --bytes each to another host.  Both arrive as Poisson processes.  Load is payload, in
percent of the capacity of the core's links, or without a core, of the hosts' links; more than 100
overloads them.

CC+CC... is a mix: each connection has one of these congestion controls, with equal probability, at
both ends, and all share the switches.  The mix's row has all flows, and the counters of hosts and
ports; each row CC@mix below it has the flows of one congestion control.  If CC also runs alone in
the same command, the text below the table compares its flows with the same flows alone.  With
--apart 1,5,2 each port has a queue for each congestion control of a mix, and the queues share a
busy link as 1 : 5 : 2; a row CC@mix then has the drops and marks of its queue.

--deployed 0,50,100 gives CC to that percentage of the hosts, by their
net.ipv4.tcp_congestion_control, and --others to the rest; the rows CC@both, CC@one and CC@none
then have the flows between hosts of which both, one or neither have CC.

With --lab the hosts of a file are the network, and then the same load runs in virtual time
(Documentation/experiments.rst, "On real hosts").

With --request, each flow is the answer to a request of that size, and its completion time begins
with the request.

With --segments the row has percentiles of the delivery time of segments (TLT's Figure 16): from a
segment's first transmission to its ACK, retransmissions included.  The hosts' switch ports capture
every segment.  --segments PERCENT captures that share of the connections, and needs less of the
guest's memory in proportion: 128 bytes for each packet, three times.

Slowdown is a flow's completion time divided by its ideal: all its bytes, headers included, at line
rate, and the delay of each switch on its path.  Background flows are small up to 100 kB, medium up
to 1 MB, else large.
"""

import collections
import functools
import statistics

from experiments.kinds.incast import segments
from experiments.kinds.load import schedule as traffic
from experiments.machines import inventory
from experiments.traffic import fabric
from experiments.traffic import sizes
from experiments.traffic.plan import FIRST_SERVER
from lab import units
from lab.codepoints import UNSCHEDULED
from lab.measure import report
from lab.net import port as ports
from lab.net import topology as topologies
from lab.net.network import Network

# Maximum sizes, in bytes, in ascending order.
CLASSES = (("small", 100_000), ("medium", 1_000_000), ("large", float("inf")))

# ns, from section 2.2 of TLT's paper: the minimum RTO, and the limit above which an RTO is long.
RTO_MIN, RTO_LONG = 200_000, 1_100_000

# {key of a row: its name in the text that compares a mix's flows with the same flows alone}
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
    ("queue p99", "queue_p99", "kB"), ("p99.9", "queue_p99.9", "kB"),
    ("important", "important", "{:.1%}"), ("late us", "late", "us"), ("real s", "real_s", "{:.0f}"),
)

# Separates the root qdisc of a job's port and the commands that add to it.
BELOW = " ; "

# In this experiment a congestion control of the command line may be a mix.
parse_cc = units.ccs

# The fabric of TLT's paper (§7.1), except the number of hosts.
DEFAULTS = {"cc": "dctcp,tlt_dctcp", "rate": "40gbit", "delay": "10us", "limit": "4500000",
            "rounds": 1, "gap": "0ms"}


def add_arguments(add):
    """Add the options of this experiment."""
    topologies.add_arguments(add)
    add("--uplinks", type=units.count, metavar="N",
        help="uplinks of each leaf that carry packets, as if a hash selected no other; --load"
        " remains in percent of all of them (--spines)")
    add("--workload", choices=sizes.DISTRIBUTIONS, default="web-search", help="(web-search)")
    add("--load", type=units.several(units.count), default="40", metavar="N,...",
        help="in percent, several runs (40)")
    add("--background", type=int, default=1000, metavar="N", help="flows (1000)")
    add("--foreground", type=int, default=5, metavar="PERCENT", help="of all bytes (5)")
    add("--incasts", type=int, default=1, metavar="N", help="minimum number, if any (1)")
    add("--periodic", action="store_true",
        help="incasts at equal intervals, as in TLT's published simulator (at random times)")
    add("--senders", type=units.count, help="of an incast (all other hosts)")
    add("--flows", dest="each", type=units.count, default=8, help="of each sender (8)")
    add("--bytes", type=units.size, default="8k", help="of each of these flows (8k)")
    add("--request", type=units.size, default="0", metavar="BYTES",
        help="each flow is the answer to a request of this size (0: no requests)")
    add("--look", type=units.time, default="0us", metavar="TIME",
        help="interval of samples of all queues, for percentiles (0us: no samples)")
    segments.add_argument(add)
    inventory.add_arguments(add, "--topology, --hosts, --rate, --delay")
    add("--labels", action="store_true",
        help="switches select the path by the flow label, with --ipv6 (by the client's port)")
    add("--tcp-info", action="store_true",
        help="report the senders' estimates after each flow: the RTT, and the RTO computed from it")
    add("--red", type=units.size_or_auto,
        help="colour threshold, or auto (400k; credits' transports: 6k)")
    add("--yellow", type=units.size,
        help="colour threshold, at the ports of a mix (1m, or --limit if that is less)")
    add("--unscheduled", choices=ports.UNSCHEDULED, default="drop",
        help="ports drop the unscheduled data of credit transports above --red, or queue it behind"
        " all other data (drop)")
    add("--credits", type=units.count, default="100", metavar="PERCENT",
        help="share of each link's rate that credits may request (100)")
    add("--ecn", type=units.size, default="200k",
        help="marking threshold (200k; half of it with --apart)")
    add("--port-options", metavar="OPTIONS",
        help="tc's options of each port, in place of those of --red and --ecn")
    add("--apart", type=units.several(units.count), metavar="N,...",
        help="a queue for each congestion control of a mix, with these shares of a busy link;"
        " credits request at most their queue's share")
    add("--deployed", type=units.several(units.percent), metavar="PERCENT,...",
        help="share of the hosts with CC, several runs (all hosts, by socket option)")
    add("--others", type=units.cc_name, default="dctcp", metavar="CC",
        help="congestion control of the other hosts, with --deployed (dctcp)")
    add("--pool", type=units.size, default="4500000",
        help="memory that a switch's ports share, each up to half of it; 0: no pool (4500000)")
    ports.add_pause(add)
    add("--drain", type=units.time, default="1s", help="maximum wait for the last flow (1s)")
    add("--seed", type=units.several(units.count), default="1", metavar="N,...",
        help="of the schedule, several runs (1)")


def _wrong_with_lab(args):
    """As wrong(), for a lab, whose hosts are at one switch."""
    others = {"--topology": args.topology != "leaf-spine", "--hosts": args.hosts is not None,
              "--uplinks": args.uplinks, "--look": args.look, "--segments": args.segments,
              "--pause": args.pause, "--deployed": args.deployed, "--credits": args.credits < 100,
              "a mix": "+" in args.cc}
    if any(others.values()):
        return f"--lab: without {', '.join(name for name, has in others.items() if has)}"
    args.topology, args.hosts, args.lab.mesh = "star", len(args.lab.ends), True
    args.request = args.request or 1
    return None


def wrong(args):
    """The reason why the command line is refused, or None."""
    if args.fresh or not args.tso or args.rounds != 1 or args.gap:
        return "--fresh, --no-tso, --rounds, --gap: this experiment does not have them"
    if args.lab and (message := _wrong_with_lab(args)):
        return message
    if message := topologies.settle(args):
        return message
    if args.labels and not args.ipv6:
        return "--labels: with --ipv6"
    if args.uplinks and (args.topology != "leaf-spine" or args.uplinks > args.spines):
        return "--uplinks: of a leaf-spine, at most --spines"
    if args.senders is None:
        args.senders = args.hosts - 1
    if args.senders >= args.hosts:
        return "--senders: fewer than --hosts"
    if not 0 <= args.foreground < 100 or args.background < 0 or args.incasts < 0:
        return "--foreground: percent; --background and --incasts: numbers"
    if not args.background and not args.incasts:
        return "--background or --incasts: more than 0"
    if max(args.load) > 1000 or args.credits > 100 or not args.bytes:
        return "--load and --credits: percent, at most 1000 and 100; --bytes: more than 0"
    if args.apart and (args.port or args.pause):
        return "--apart: not with --port or --pause"
    if args.port_options and (args.port or args.apart):
        return "--port-options: not with --port or --apart"
    mixes = [cc for cc in args.cc.split(",") if len(units.ccs(cc)) > 1]
    if args.deployed and mixes:
        return "--deployed: not with a mix"
    if message := segments.wrong(args):
        return message
    if args.apart and not (mixes and all(_is_apart(args, cc) for cc in mixes)):
        return "--apart: needs a mix, and a number for each of its congestion controls"
    return None


def _mixed(args, names, credit, behind):
    """The options of a port that all congestion controls of a mix share.

    Credits need their band, TLT the red threshold, ECN-capable packets the marking threshold.  dart
    and dcqcn begin at line rate and expect a lossless network, so they fill a port within a round
    trip: their data is yellow by default, with a threshold that reserves room for green packets.
    In a mix without such transports yellow is unscheduled data, with Aeolus's threshold; in a mix
    with one, unscheduled data is red, as TLT's.
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
    """Whether it is a mix with a queue for each congestion control (--apart)."""
    return len(args.apart or []) == len(units.ccs(cc)) > 1


def _percent(args, cc):
    """The percentage of a link's rate that credits may request: at most their queue's share."""
    if not _is_apart(args, cc):
        return args.credits
    own = [share for name, share in zip(units.ccs(cc), args.apart) if units.has_credits(name)]
    return min([args.credits, *(100 * share // sum(args.apart) for share in own)])


def _own(args, credit, ecn):
    """The thresholds of a port, or of one of its queues, that only one transport uses."""
    if not credit:
        red = f"red {args.red or 400 * 1024} " if args.red or args.pause != "all" else ""
        return f"{red}ecn {ecn}"
    if args.unscheduled == "behind":
        return f"preset xpass {ports.behind(1)}"
    return f"preset aeolus red {args.red or 6 * 1024}"


def _port(args, cc):
    """A switch port for a congestion control or a mix, as arguments for tc: its root qdisc, and the
    commands that add to it."""
    if args.port:
        return [args.port]
    queue = f"limit {args.limit}{ports.pausing(args.pause, args.delay)}"
    if args.pool:
        # Pausing bounds the queues, so one port may use all of the pool.
        queue += f" pool sw size {args.pool} alpha {1024 if args.pause else 1}"
    line, percent = f"color rate {args.rate}bit {queue}", _percent(args, cc)
    credits = f"{line} {ports.credits_of(args.rate, percent)}" if percent < 100 else line
    names = units.ccs(cc)
    credit = [units.has_credits(name) for name in names]
    if args.port_options:
        return [f"{line} {args.port_options}"]
    preset, *others = {units.preset(name) for name in names}
    if preset and not others:
        return [f"{line} preset {preset}"]
    if _is_apart(args, cc):
        # Only the band of credits needs a rate.  Marks depend on the length of one queue, which
        # drains more slowly than the port: half of the threshold.
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
    """(configuration, jobs).  A run's time is proportional to its bytes."""
    keys = ("topology hosts leaves spines uplinks k workload background foreground incasts periodic"
            " senders each bytes request drain look tcp_info pause segments labels").split()
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
    """All bytes of a flow at line rate, plus the propagation delay of its last packet."""
    return report.line_ns(dict(config, bytes=size), 1) + (switches + 1) * config["delay"]


def first_rtt_ns(config, switches):
    """A round trip of the idle network over this number of switches."""
    return 2 * (switches + 1) * config["delay"]


def beside_ns(config, switches):
    """Propagation delays of a segment and its ACK outside the capture (Ends): the hosts' links and
    the path back.  In a paused fabric the first link's delay is behind the host's port."""
    return (switches + 2 + bool(config["pause"])) * config["delay"]


def rto_ns(srtt, rttvar):
    """The RTO of RFC 6298, from two values of TCP_INFO in us, with the minimum of TLT's paper
    (2.2).  Linux applies its minimum to the variation instead."""
    return max(RTO_MIN, 1000 * (srtt + 4 * rttvar))


def ideal_ns(config, size, switches):
    """Completion time of a flow alone in the network, its request included."""
    asked = _alone(config, config["request"], switches) if config["request"] else 0
    return asked + _alone(config, size, switches)


class _Flows:
    """Results of the flows of several runs: of all flows or, for a mix, of the flows whose
    congestion control in the mix is `one`.  `played`: the runs played the mix, and not `one` alone.
    """

    def __init__(self, ccs=(), one=None, played=True):
        self.ccs, self.one, self.played = ccs, one, played
        self.foreground, self.unfinished = [], 0
        self.gbit = {kind: [] for kind in traffic.Schedule.classes}
        self.retransmitted = self.sent = self.resent = 0    # segments, bytes, bytes
        self.classes = {name: [] for name, _ in CLASSES}    # (ns, slowdown, round trips)
        self.early = collections.Counter()      # by class: complete within the first round trip
        self.behind = collections.Counter()     # by class: a round trip or more above the ideal
        self.estimates = []     # (RTT, RTO), ns, of the senders of the foreground

    def add(self, plan, ideals, trips, result):
        """Add a run of the plan; `trips` are its flows' round trips."""
        has = self._chosen(plan)
        # The results of answers follow the results of all requests.
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
        """The sum over the classes of loadgen/play, which are NAME, or NAME@CC in a mix."""
        mine = f"{kind}@{self.one}" if self.one and self.played else kind
        return sum(count for name, count in by_class.items()
                   if mine in (name, name.partition("@")[0]))

    def _chosen(self, _):
        """A predicate: whether a connection's flows belong to this object."""
        return lambda connection: (
            self.one is None or self.one == self.ccs[connection.part(len(self.ccs))])

    @property
    def background(self):
        """Completion times of all classes."""
        return [fct for flows in self.classes.values() for fct, *_ in flows]

    def __len__(self):
        return len(self.foreground) + len(self.background) + self.unfinished

    def row(self):
        """The flows' times(), and the counters that loadgen/play has for each class."""
        found = self.times() | {"retransmitted": self.retransmitted}
        found["bg_gbit"], found["fg_gbit"] = (statistics.mean(self.gbit[kind])
                                              for kind in traffic.Schedule.classes)
        found["gbit"] = found["bg_gbit"] + found["fg_gbit"]
        if self.sent:
            found["efficiency"] = 1 - self.resent / self.sent
        return found

    def times(self):
        """Numbers and completion times of the flows."""
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


# The flows between hosts of which neither, one or both have the transport of --deployed.
ENDS = ("none", "one", "both")


class _Between(_Flows):
    """The flows with the transport at `ends` of their two ends, if `percent` of the hosts have it.
    Only times() applies to them: loadgen/play's counters include all flows of a class."""

    def __init__(self, percent, ends):
        super().__init__()
        self.percent, self.ends = percent, ends

    def _chosen(self, plan):
        have = plan.deployed(self.percent)
        return lambda connection: (
            (connection.src in have) + (connection.dst in have) == self.ends)


def _at(result):
    """The parameters, besides the seed, that differ between the runs of a congestion control."""
    return result["load"], result.get("deployed")


def _plan(config, result):
    return traffic.Schedule(dict(config, load=result["load"], seed=result["seed"]))


def _one(mix, one):
    """The name on the command line of a mix's congestion control when it runs alone."""
    return ":".join([one, *mix.split(":")[1:]])


def _parts(cc, ccs, percent):
    """The flows of cc's runs: all at (cc, None).  Of a mix also at (cc, one) for each of its
    congestion controls; of a single one at (mix, one) for each mix that contains it, limited to its
    flows there; with --deployed at (cc, name) for each of ENDS."""
    if percent is not None:
        return {(cc, None): _Flows()} | {
            (cc, name): _Between(percent, ends) for ends, name in enumerate(ENDS)}
    mixes = [mix for mix in ccs if "+" in mix]
    return {(cc, None): _Flows()} | {
        (mix, one): _Flows(units.ccs(mix), one, mix == cc) for mix in mixes
        for one in units.ccs(mix) if cc in (mix, _one(mix, one))}


def _pooled(config, results):
    """{(cc, *_at()): its _parts()}.  A schedule is generated once for all its runs."""
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
    """Percentiles of the backlog over all samples of all ports, in bytes, in steps of 1000."""
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
    """The row of one congestion control at one load, over all seeds."""
    row = {key: results[0][key] for key in ("cc", "load", "deployed", "flows")
           if key in results[0]}
    for result in results:
        if "fct_ns" not in result:
            return dict(row, error=result["error"])
    row.update(flows.row())
    tcp = sum((collections.Counter(result["counters"]["tcp"]) for result in results),
              collections.Counter())
    row.update(timeouts=tcp["TCPTimeouts"], probes=tcp["TCPLossProbes"], **fabric.ports(results),
               rtos=1000 * tcp["TCPTimeouts"] / max(1, row["fg_flows"] + row["bg_flows"]),
               late=max(result["late_ns"]["mean"] for result in results))
    row["memory"] = max(result["memory"] for result in results)
    if "queues" in results[0]:
        row.update(_queues(results))
    if "segments" in results[0]:
        row.update(_segments(results))
    row["clock_bytes"] = sum(result["counters"]["greenlane"].get("ClockSentBytes", 0)
                             for result in results)
    for name in ("setup_s", "cpu_s", "real_s"):
        row[name] = sum(result[name] or 0 for result in results)
    return row


def _ends(cc, name, flows, results):
    """The row of one of ENDS.  It has no counters of hosts and ports, which include all flows."""
    return {"cc": f"{cc}@{name}", "load": results[0]["load"],
            "deployed": results[0]["deployed"], "flows": len(flows)} | flows.times()


def _part(mix, one, pooled, load, results):
    """The row of one congestion control of a mix: its flows, and the counters of its queues if it
    has its own (--apart).  Other counters of hosts and ports include the whole mix."""
    flows = pooled[mix, load, None][mix, one]
    found = flows.row()
    row = {"cc": _one(mix, f"{one}@mix"), "mix": mix, "load": load, "flows": len(flows)} | found
    queue = f"color 1:1{units.ccs(mix).index(one)}"
    if any(queue in kinds for result in results for kinds in result["switches"].values()):
        row.update(fabric.ports(results, queue))
    # Divided by the results of the same flows in a run where all flows had this congestion control.
    alone = pooled.get((_one(mix, one), load, None), {}).get((mix, one))
    if alone:
        was = alone.row()
        row.update({f"{key}_ratio": found[key] / was[key] for key in RATIOS
                    if key in found and key in was})
    return row


def summaries(config, results):
    """A row for each congestion control, load and deployment; below a mix's row, one for each of
    its congestion controls, and below a partial deployment's row one for each of ENDS."""
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
    """For each mix, the ratios of its flows' results to the same flows alone."""
    for row in rows:
        if any(f"{key}_ratio" in row for key in RATIOS):
            yield f"{row['cc']}, load {row['load']}, divided by the same flows alone: " + ", ".join(
                f"{words} {row[f'{key}_ratio']:.2f}" for key, words in RATIOS.items()
                if f"{key}_ratio" in row)


def _estimates(rows):
    """The RTT and RTO estimates of the senders of incasts."""
    for row in rows:
        if "fg_rto_long" in row:
            yield (f"{row['cc']}, load {row['load']}, incasts: 90 % of the senders have an RTT of"
                   f" up to {row['fg_rtt_p90'] / 1e3:.0f} us and an RTO of up to"
                   f" {row['fg_rto_p90'] / 1e3:.0f} us, if the minimum is {RTO_MIN // 1000} us;"
                   f" {row['fg_rto_long']:.1%} have one above {RTO_LONG / 1e6:g} ms")


def notes(config, results, rows):
    """The text below the table."""
    setup = max((result["setup_s"] for result in results), default=0)
    plan = _plan(config, results[0])
    kinds = collections.Counter(map(plan.kind, plan.messages))
    return (f"{len(Network(config).switches)} switches, {config['hosts']} hosts:"
            f" {kinds[traffic.BACKGROUND]} flows of {config['workload']},"
            f" {kinds[traffic.FOREGROUND]} of incasts, in {plan.end / 1e6:.1f} ms;"
            f" set up in {setup:.1f} s of real time" + "".join(
                f"\n{line}" for line in [*_ratios(rows), *_estimates(rows)]))


def on_machines():
    """The hosts of a lab during this experiment."""
    from experiments.machines.load import Load
    return Load


def plot(config, results, rows, args):
    """Draw tail and mean against the loads or deployments; for a single one, the distributions."""
    from experiments.kinds.load.plot import plot as draw   # matplotlib takes a second to import
    flows = {}
    for (cc, *at), parts in _pooled(config, [r for r in results if "fct_ns" in r]).items():
        for (mix, one), mine in parts.items():
            if mix != cc:
                continue
            name = cc if not one else f"{cc}@{one}" if one in ENDS else _one(mix, f"{one}@mix")
            flows[name, *at] = mine.foreground, mine.classes
    draw(config, rows, flows, args.plot)
