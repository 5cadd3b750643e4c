# SPDX-License-Identifier: GPL-2.0
"""The figures: the experiments that each of them needs, and the paper's values.

The *.toml files beside this one describe them:

    [tlt-fig5]
    title = "..."
    paper = "TLT (EuroSys 2021), Figure 5"
    setting = "96 hosts, 2 tiers, ..."      # the paper's; ours is read off the runs
    command = "load --hosts 96 --load 40"   # of scripts/experiment
    vary = { cc = ["dctcp", "tlt_dctcp"] }  # of several, each pair
    small = "--background 300"              # --scale adds it
    large = "--background 10000"
    plot = [{ y = "fg_p99.9", unit = "ms", title = "..." }]     # a panel each

Each value that varies is a run; but at the small scale, one run is all congestion controls,
because its start is half of its time.  Two figures with the same run share it, whatever the order
of its options.

A figure that compares with a base varies the kernel:

    vary = { base = ["paper", "linux"], cc = ["dctcp", "tlt_dctcp"], seed = [1, 2, 3] }
    also = { paper = ["dctcp:tcp_rto_min_us=200"] }     # transports of this value only
    fewer = { linux = { seed = [1] } }                  # this base has these values only
    base_options = { paper = "--uplinks 1" }            # options of this base only

A key of `also` may be several values: its transports are of the runs that have all of them.

"paper" is the base of the papers' simulators (scripts/experiment --base), "linux" is today's Linux,
which is the default.  A compared number is of the paper's base, and has its verdict there; over
today's Linux it stands beside it without one.

In a panel, y is a key of the table's row (scripts/experiment --json), x is an option that varies,
and each congestion control is a curve, or a bar if x has no order (or bars is true).  Without x,
each row is a bar, and each base has a panel.  Each value of another option has panels of its own;
but seeds are pooled: the mean, and from the lowest to the highest.  The text of an axis is the
key's in WORDS, or the panel's `label`.

    compare = [{ what = "...", of = { cc = "tlt_dctcp" }, to = { cc = "dctcp" },
                 key = "fg_p99.9", want = "less", paper = -80.9, read = "text, 7.1" }]

is a number beside the paper's, and gets a verdict (verdict.py has the rule).  Without `to` it
is the row's own; with it, the change in percent, or with as = "ratio", how many times `to` is
of `of`.  With over = { load = [20, 40] } there is one for each of these, and take says which
of them counts: mean, best or worst.  If the figure varies seeds, it is of their mean.

- `paper` is a number, [LOW, HIGH], or a word: similar, more, less.
- `read` begins with text, table, words or curve, and says where that is.  What is read off a
  curve has an `uncertainty`.
- `want` is what is good: less, more, or the same, which is also what it is without.
- `not_comparable` says why there is no verdict.
- because = [{ for = [-75, -60], why = "..." }] is shown while the number is in that range.
- `samples` is the key of how many trials a share is of.
- `headline` is true for what the paper puts first: results.rst lists it at the top, and README
  counts it.
- `today` replaces values of `of` and `to` over today's Linux: today = { to = { cc = "dctcp" } }.
- `ideal` is the key of how many times the physical limit the row of `of` takes over today's Linux,
  or that limit itself, in the row's own unit (ns): then it divides the row's value.
- `never` is true where a row without a value is an event that never occurred: that is missed.

    [tlt-absent]
    paper = "TLT (EuroSys 2021)"
    absent = { "Figure 1" = "why" }         # what no figure is of
"""

import dataclasses
import difflib
import hashlib
import itertools
import json
import pathlib
import shlex
import tomllib

from experiments.figures import verdict

HERE = pathlib.Path(__file__).resolve().parent
SCALES = ("small", "large")
_KEYS = {"title", "paper", "setting", "command", "vary", "small", "large", "plot", "compare",
         "text", "also", "fewer", "base_options"}
_PANEL = {"x", "y", "unit", "title", "log", "by", "label", "bars"}
_COMPARE = {"what", "of", "to", "over", "take", "key", "paper", "read", "uncertainty", "want",
            "as", "unit", "because", "not_comparable", "samples", "headline", "today", "ideal",
            "never"}
READ = ("text", "table", "words", "curve")
# Of a miss; a text that explains a part of it ends with the second.
NO_CAUSE, PART = "cause unknown", "the rest is unknown"
POOLED = "seed"         # its values are runs of the same thing
BASES = PAPER, LINUX = "paper", "linux"

# The names of keys on an axis and in a table.
WORDS = {
    # x: varied options
    "load": "load (%)", "red": "colour threshold", "requests": "requests at a time",
    "threshold": "threshold of iofd", "degree": "senders of an incast",
    "fan-in": "flows at a time", "flows": "flows of each sender", "bytes": "size of a message",
    "foreground": "incasts, % of all bytes", "workload": "workload", "senders": "senders",
    "short": "short messages, % of the load", "long-bytes": "size of a long flow",
    "long-flows": "long flows without an end",
    "hosts": "hosts", "deployed": "hosts that have it (%)", "background": "flows",
    "rate": "rate of a link", "ipv6": "IPv6",
    "unscheduled": "unscheduled packets", "cc": "transport", "seed": "seed",
    "base": "base", "limit": "size of a port", "spread": "messages begin within",
    "pause": "packets that pause",
    # y: measured values
    "fg_p99.9": "FCT, 99.9th percentile", "fg_p99": "FCT, 99th percentile",
    "fg_mean": "mean FCT", "fg_p50": "FCT, median", "bg_mean": "mean FCT",
    "fg_rtt_p90": "smoothed RTT, 90th percentile", "fg_rto_p90": "RTO, 90th percentile",
    "fg_rto_long": "share of flows",
    "rtos": "RTOs of 1000 flows",
    "important": "share of all bytes", "important_loss": "share of important packets",
    "peak": "longest queue", "p50": "completion time, median", "mean": "completion time, mean",
    "p99": "completion time, 99th percentile", "max": "completion time, slowest",
    "p99_mean": "response time, mean of rounds", "background_gbit": "goodput (Gbit/s)",
    "timeouts": "RTOs", "segment_p50": "delivery time", "segment_p99": "delivery time",
    "segment_p99.9": "delivery time", "clock_bytes": "sent by ACK-clocking",
    "small_mean": "mean FCT", "small_p50": "FCT, median", "small_p99": "FCT, 99th percentile",
    "small_p99.9": "FCT, 99.9th percentile", "small_first_rtt": "share of flows",
    "small_rtt_behind": "share of flows", "efficiency": "share of bytes",
    "drops_green": "packets dropped", "small_slowdown": "mean slowdown",
    "medium_slowdown": "mean slowdown", "large_slowdown": "mean slowdown",
    "queue_peak": "queue", "queue": "queue", "used": "share of the link",
    "victim_gbit": "throughput (Gbit/s)", "pauses": "PFC frames", "paused": "time of links",
    "gbit": "goodput (Gbit/s)",
    "retransmitted": "packets", "rtts_p50": "round trips",
    "small_rtts": "mean FCT, round trips",
    "rtts_p99": "round trips", "never": "joins", "bulk_gbit": "throughput (Gbit/s)",
    "p99_8192": "FCT of 8 kB, 99th percentile", "p50_8192": "FCT of 8 kB, median",
    "all_gbit": "throughput (Gbit/s)", "long_gbit": "throughput (Gbit/s)",
    "marked": "packets with marks", "marked_core": "packets with marks",
    "links": "links crossed by a packet", "bytes_a_byte": "bytes on links by byte delivered",
    "fair": "round trips", "stays": "round trips", "jain_10": "Jain's index",
    "small_max": "FCT, slowest", "bg_gbit": "goodput (Gbit/s)",
    "ratio": "99.9th percentile by the ideal", "fg_p99.9_ratio": "FCT by alone",
    "small_slowdown_ratio": "slowdown by alone", "large_slowdown_ratio": "slowdown by alone",
    "setup_s": "real time (s)", "cpu_s": "processor time (s)", "memory": "memory",
}


class Wrong(Exception):
    """A description that cannot be; the message names it and the reason."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One scripts/experiment."""
    command: tuple
    varied: tuple           # (name, value) that its rows lack

    @property
    def name(self):
        """The name of its results: figures that want the same run share it."""
        words = "\0".join([self.command[0], *sorted(self._options())])
        return f"{self.command[0]}-{hashlib.sha256(words.encode()).hexdigest()[:10]}"

    def _options(self):
        """Each option with its value."""
        found = []
        for word in self.command[1:]:
            if word.startswith("--") or not found:
                found.append(word)
            else:
                found[-1] += f" {word}"
        return found


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure, at one scale."""
    name: str
    about: dict
    runs: tuple

    def results(self, directory, partly=False):
        """The results of its runs there; partly: None for a run without one."""
        paths = [pathlib.Path(directory, f"{run.name}.json") for run in self.runs]
        return [None if partly and not path.exists()
                else json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def rows(self, results):
        """The rows of all results, with their varied options; but each has its own
        congestion control, of which a mix has several."""
        return [self._named(row) | dict(run.varied)
                for run, result in zip(self.runs, results) if result
                for row in result["summary"]]

    def _named(self, row):
        """With its congestion control as the figure calls it: CC@PORTS, if it does."""
        name = f"{row.get('cc')}@{row.get('ports')}"
        return row | {"cc": name} if name in self.about.get("vary", {}).get("cc", ()) else row

    @property
    def bases(self):
        """The bases that it varies; a figure without them has its command's base."""
        return tuple(self.about.get("vary", {}).get("base", ()))

    @property
    def judged(self):
        """The base whose numbers have a verdict."""
        if self.bases:
            return PAPER if PAPER in self.bases else self.bases[0]
        return PAPER if "--base paper" in self.about.get("command", "") else LINUX

    def on(self, base, of):
        """The values that a row of that base has besides `of`."""
        return {"base": base} | of if base in self.bases else of

    def seeds(self, base):
        """Each seed of a base, as the value of a row; an empty one without seeds."""
        vary = self.about.get("vary", {}) | self.about.get("fewer", {}).get(base, {})
        return [{POOLED: seed} for seed in vary.get(POOLED, [])] or [{}]

    @property
    def of(self):
        """The paper, in a word."""
        return self.about["paper"].split()[0]


def _check_number(number, about, wrong):
    """One of compare's."""
    if unknown := set(number) - _COMPARE:
        wrong(f"compare: what is {min(unknown)}?")
    if not {"what", "of", "key", "paper", "read"} <= set(number):
        wrong("compare: what, of, key, paper and read")
    what, paper = number["what"], number["paper"]
    if number["read"].split(",")[0].split(":")[0] not in READ:
        wrong(f"{what}: read begins with one of {', '.join(READ)}")
    if isinstance(paper, str) and (paper not in verdict.WORDS
                                   or not number["read"].startswith("words")):
        wrong(f"{what}: paper is a number, or one of {', '.join(verdict.WORDS)} that is read in"
              " words")
    if isinstance(paper, list) and (len(paper) != 2 or paper[0] > paper[1]):
        wrong(f"{what}: paper is [LOW, HIGH]")
    if number["read"].startswith("curve") != ("uncertainty" in number):
        wrong(f"{what}: what is read off a curve has an uncertainty, and nothing else")
    if number.get("want", "same") not in verdict.WANTS:
        wrong(f"{what}: want is one of {', '.join(verdict.WANTS)}")
    if number.get("take", "mean") not in verdict.TAKES:
        wrong(f"{what}: take is one of {', '.join(verdict.TAKES)}")
    for one in number.get("because", []):
        if set(one) != {"for", "why"} or len(one["for"]) != 2 or one["for"][0] > one["for"][1]:
            wrong(f"{what}: because is of for = [LOW, HIGH] and why")
    today = number.get("today", {})
    if set(today) - {"of", "to"}:
        wrong(f"{what}: today is of and to")
    if today and LINUX not in about.get("vary", {}).get("base", ()):
        wrong(f"{what}: today is of a figure that varies the base")
    named = [*number["of"].items(), *number.get("to", {}).items(),
             *(item for part in today.values() for item in part.items()),
             *((key, value) for key, values in number.get("over", {}).items() for value in values)]
    for key, value in named:
        if value not in _varied(about, key, value):
            wrong(f"compare: {key} is never {value}")


def _varied(about, key, default):
    """All values of an option; the default is the value of an option that does not vary."""
    values = about.get("vary", {}).get(key, [default])
    more = about.get("also", {}).values() if key == "cc" else ()
    return [*values, *(cc for ccs in more for cc in ccs)]


def _check_bases(about, wrong):
    """Of vary, also, fewer and base_options."""
    bases = about.get("vary", {}).get("base", [])
    if unknown := [base for base in bases if base not in BASES]:
        wrong(f"base is {' or '.join(BASES)}: {unknown[0]}")
    for key in ("fewer", "base_options"):
        if unknown := set(about.get(key, {})) - set(bases):
            wrong(f"{key}: base is never {min(unknown)}")
    varied = {str(value) for values in about.get("vary", {}).values() for value in values}
    for words in about.get("also", {}):
        if unknown := set(words.split()) - varied:
            wrong(f"also: no option is ever {min(unknown)}")
    for base, fewer in about.get("fewer", {}).items():
        for name, values in fewer.items():
            if not values or set(values) - set(about["vary"].get(name, ())):
                wrong(f"fewer: {base}: {name}: of those that vary, one at least")


def _check(name, about):
    def wrong(why):
        raise Wrong(f"{name}: {why}")

    if not isinstance(about, dict):
        wrong("not a figure")
    for key in ("title", "paper", "command", "plot"):
        if key not in about:
            wrong(f"no {key}")
    if unknown := set(about) - _KEYS:
        wrong(f"what is {min(unknown)}?")
    for panel in about["plot"]:
        if unknown := set(panel) - _PANEL:
            wrong(f"plot: what is {min(unknown)}?")
        if "y" not in panel:
            wrong("plot: no y")
        # Bars of transports that the command names are not varied.
        bars = "x" not in panel and "--cc" in about["command"].split()
        if panel.get("x", "cc") not in about.get("vary", {}) and not bars:
            wrong(f"plot: x is {panel.get('x', 'cc')}, which is not varied")
    _check_bases(about, wrong)
    seen = set()
    for number in about.get("compare", []):
        _check_number(number, about, wrong)
        if number["what"] in seen:
            wrong(f"compare: two are called {number['what']}")
        seen.add(number["what"])


def _option(name, value):
    """Words of the command line; an option without a value is there or not, and a default is not."""
    if isinstance(value, bool):
        return [f"--{name}"] * value
    return [] if (name, value) == ("base", LINUX) else [f"--{name}", str(value)]


def _ccs(about, varied, scale):
    """The words of --cc, of each run with these values."""
    values = set(map(str, varied.values()))
    ccs = [*about["vary"]["cc"],
           *(cc for words, more in about.get("also", {}).items() if values.issuperset(words.split())
             for cc in more)]
    return [",".join(ccs)] if scale == "small" else ccs


def runs(about, scale):
    """The runs of a description."""
    vary = dict(about.get("vary", {}))
    has_cc = vary.pop("cc", None)
    for values in itertools.product(*vary.values()):
        varied = dict(zip(vary, values))
        base = varied.get("base")
        fewer = about.get("fewer", {}).get(base, {})
        if any(value not in fewer.get(name, [value]) for name, value in varied.items()):
            continue
        options = [word for name, value in varied.items() for word in _option(name, value)]
        for cc in [None] if has_cc is None else _ccs(about, varied, scale):
            command = [*shlex.split(about["command"]), *(["--cc", cc] if cc else [])]
            own = about.get("base_options", {}).get(base, "")
            yield Run((*command, *options, *shlex.split(own),
                       *shlex.split(about.get(scale, ""))),
                      tuple(varied.items()))


def _described(directory):
    """The descriptions of all files there, by name."""
    for path in sorted(pathlib.Path(directory).glob("*.toml")):
        try:
            yield from tomllib.loads(path.read_text(encoding="utf-8")).items()
        except tomllib.TOMLDecodeError as why:
            raise Wrong(f"{path.name}: {why}") from why


def load(scale="small", only=(), directory=HERE):
    """All figures, or the ones that `only` names: each word is a figure's name, or a part of some."""
    if scale not in SCALES:
        raise Wrong(f"--scale: {' or '.join(SCALES)}")
    figures = []
    for name, about in _described(directory):
        if isinstance(about, dict) and "absent" in about:
            continue
        _check(name, about)
        figures.append(Figure(name, about, tuple(runs(about, scale))))
    names = {figure.name for figure in figures}
    chosen = [f for f in figures if not only or any(
        word == f.name or word in f.name and word not in names for word in only)]
    if not chosen:
        raise Wrong(f"no figure of that name; there are {', '.join(f.name for f in figures)}")
    return chosen


def absent(directory=HERE):
    """{paper: {an absent item: why}}."""
    return {about["paper"]: about["absent"] for _, about in _described(directory)
            if isinstance(about, dict) and "absent" in about}


# Divisors of a row's numbers; times are in ns there, sizes in bytes.
UNITS = {"ms": 1e6, "us": 1e3, "kB": 1e3, "MB": 1e6, "%": 0.01}


def made(results):
    """With which versions."""
    return "; ".join(sorted({f"{result['version']}, Linux {result['config']['kernel']}"
                             for result in results if result}))


def unknown(figure, rows):
    """A message for each key that a panel or a number reads and no row has: the nearest keys."""
    about, there = figure.about, sorted({key for row in rows for key in row})
    wanted = [(f"plot: {name}", key) for panel in about["plot"]
              for name, keys in (("y", [panel["y"]]), ("by", panel.get("by", []))) for key in keys]
    wanted += [(f"compare: {number['what']}: {name}", number[name])
               for number in about.get("compare", []) for name in ("key", "samples", "ideal")
               if isinstance(number.get(name), str)]
    for where, key in dict.fromkeys(wanted):
        if there and key not in there:
            near = (difflib.get_close_matches(key, there)
                    or difflib.get_close_matches(key, there, cutoff=0))
            yield (f"{figure.name}: {where} is {key}, which no run has"
                   f" (is it {' or '.join(near)}?)")


def _matching(rows, wanted):
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def _of(rows, wanted, key):
    """The value of the first row that is wanted."""
    return next((row.get(key) for row in _matching(rows, wanted)), None)


def _mean(rows, wanted, key, seeds):
    """The mean of all seeds; None if one of them has no value."""
    values = [_of(rows, wanted | seed, key) for seed in seeds]
    return None if None in values else sum(values) / len(values)


def _each(number, one):
    """The values of one() for each combination of `over`."""
    over = number.get("over", {})
    return [one(dict(zip(over, values))) for values in itertools.product(*over.values())]


def _measured(number, rows, seeds):
    """Ours: of one combination of `over`, or of all of them that which is taken; and each."""
    def one(more):
        ours = _mean(rows, number["of"] | more, number["key"], seeds)
        if "to" in number:
            return verdict.difference(
                ours, _mean(rows, number["to"] | more, number["key"], seeds), number)
        return None if ours is None else ours / UNITS.get(number.get("unit", ""), 1)

    values = _each(number, one)
    # A missing run may have been the best.
    return None if None in values else verdict.taken(values, number), values


def _on(figure, number, base):
    """The number of that base."""
    today = number.get("today", {}) if base != figure.judged else {}
    return number | {name: figure.on(base, number[name] | today.get(name, {}))
                     for name in ("of", "to") if name in number}


def _ideal(figure, number, rows):
    """How many times the physical limit the row takes over today's Linux; of several, the one
    farthest from the limit, but with their mean, the mean."""
    base = LINUX if LINUX in figure.bases else figure.judged
    if "ideal" not in number or base != LINUX:
        return None
    number, limit = _on(figure, number, base), number["ideal"]
    key, by = (limit, 1) if isinstance(limit, str) else (number["key"], limit)
    values = _each(number, lambda more: _mean(rows, number["of"] | more, key, figure.seeds(base)))
    if None in values:
        return None
    mean = number.get("take", "mean") == "mean"
    return (sum(values) / len(values) if mean else max(values)) / by


def _never(number, rows):
    """Has one of its rows no value, of an event that may never occur?"""
    if not number.get("never"):
        return False
    values = [row[number["key"]] for row in _matching(rows, number["of"]) if number["key"] in row]
    return any(value is None or value != value for value in values)


def _samples(number, rows):
    """Of how many trials a share is, in all seeds together."""
    counts = [row[number["samples"]] for row in _matching(rows, number["of"])
              if row.get(number.get("samples")) is not None]
    return sum(counts) if counts else None


@dataclasses.dataclass(frozen=True)
class Compared:
    """A number, the paper's, and their verdict."""
    number: dict
    ours: float | None
    spread: tuple               # of the numbers that it was taken from: lowest, highest
    verdict: verdict.Verdict
    base: str = LINUX           # that the verdict is of
    today: float | None = None  # the same over today's Linux, if that is another base
    today_spread: tuple = ()
    ideal: float | None = None  # how many times the physical limit it takes there

    @property
    def what(self):
        """Its name."""
        return self.number["what"]

    @property
    def unit(self):
        """+% of a change, × of a ratio."""
        if "to" not in self.number:
            return self.number.get("unit", "")
        return "×" if self.number.get("as") == "ratio" else "+%"

    @property
    def explanation(self):
        """Why, where that was written for a number like this; of a miss without, that."""
        why = verdict.explanation(self.ours, self.number)
        return why or (NO_CAUSE if self.verdict.kind == verdict.MISSED else "")


def _spread(each):
    """(lowest, highest) of the known values."""
    each = [value for value in each if value is not None]
    return (min(each), max(each)) if len(each) > 1 else ()


def _pooled(number, rows, seeds):
    """Ours, its spread, and of each seed; seeds are pooled."""
    ours, each = _measured(number, rows, seeds)
    alone = [_measured(number, rows, [seed])[0] for seed in seeds] if len(seeds) > 1 else []
    return ours, _spread(alone or each), alone


def compared(figure, rows):
    """Each of the figure's numbers beside the paper's."""
    found, base = [], figure.judged
    for number in figure.about.get("compare", []):
        mine = _on(figure, number, base)
        ours, spread, alone = _pooled(mine, rows, figure.seeds(base))
        if _never(mine, rows):
            ours, came = None, verdict.Verdict(verdict.MISSED, "by all: it never occurs")
        else:
            came = verdict.judge(ours, number, _samples(mine, rows), alone)
        today, around = None, ()
        if base != LINUX and LINUX in figure.bases:
            today, around, _ = _pooled(_on(figure, number, LINUX), rows, figure.seeds(LINUX))
        found.append(Compared(number, ours, spread, came, base, today, around,
                              _ideal(figure, number, rows)))
    return found


def value(row, panel):
    """A row's value for a panel, in its unit; None if the row has no value."""
    number = row.get(panel["y"])
    return None if number is None else number / UNITS.get(panel.get("unit"), 1)


def digits(number, sign=""):
    """Three of them, and no power of ten where there are more."""
    text = f"{number:{sign}.3g}"
    return f"{float(text):{sign}.0f}" if "e+" in text else text


def label(panel):
    """Of a panel's values."""
    words = panel.get("label") or WORDS.get(panel["y"], panel["y"])
    return f"{words} ({panel['unit']})" if "unit" in panel else words
