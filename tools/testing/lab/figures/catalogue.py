# SPDX-License-Identifier: GPL-2.0
"""The figures: which experiments each of them needs, and what the paper says.

The *.toml files beside this one describe them:

    [tlt-fig5]
    title = "..."
    paper = "TLT (EuroSys 2021), Figure 5"
    setting = "96 hosts, 2 tiers, ..."      # the paper's; ours is read off the runs
    command = "load --hosts 96 --load 40"   # of scripts/experiment
    vary = { cc = ["dctcp", "tlt_dctcp"] }  # of several, each pair
    small = "--background 300"              # what --scale adds
    large = "--background 10000"
    plot = [{ y = "fg_p99.9", unit = "ms", title = "..." }]     # a panel each

Each value that varies is a run; but at the small scale, one run is all congestion controls,
because its start is half of its time.

In a panel, y is a key of the table's row (scripts/experiment --json), x is what is varied,
and each congestion control is a line, or a bar if x has no order (or bars is true).  Without x,
each row is a bar.  Of what else varies each value has panels of its own; but seeds are pooled: the mean, and
from the lowest to the highest.  An axis has the words that WORDS has for its key, or those of
the panel's `label`.

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
- `headline` is true for what the paper puts first: README has it, met or missed.

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

from lab.figures import verdict

HERE = pathlib.Path(__file__).resolve().parent
SCALES = ("small", "large")
_KEYS = {"title", "paper", "setting", "command", "vary", "small", "large", "plot", "compare",
         "text"}
_PANEL = {"x", "y", "unit", "title", "log", "by", "label", "bars"}
_COMPARE = {"what", "of", "to", "over", "take", "key", "paper", "read", "uncertainty", "want",
            "as", "unit", "because", "not_comparable", "samples", "headline"}
READ = ("text", "table", "words", "curve")
POOLED = "seed"         # its values are runs of the same thing

# What a key is called on an axis and in a table.
WORDS = {
    # x: what is varied
    "load": "load (%)", "red": "colour threshold", "requests": "requests at a time",
    "threshold": "threshold of iofd", "degree": "senders of an incast",
    "fan-in": "flows at a time", "flows": "flows of each sender", "bytes": "size of a message",
    "foreground": "incasts, % of all bytes", "workload": "workload", "senders": "senders",
    "short": "short messages, % of the load", "long-bytes": "size of a long flow",
    "hosts": "hosts", "deployed": "hosts that have it (%)", "background": "flows",
    "rate": "rate of a link", "ipv6": "IPv6",
    "unscheduled": "unscheduled packets", "cc": "transport", "seed": "seed",
    # y: what is measured
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
    "small_mean": "mean FCT", "small_p99": "FCT, 99th percentile",
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
    "fair": "round trips", "jain_10": "Jain's index",
    "ratio": "99.9th percentile by the ideal", "fg_p99.9_ratio": "FCT by alone",
    "small_slowdown_ratio": "slowdown by alone", "large_slowdown_ratio": "slowdown by alone",
    "setup_s": "real time (s)", "cpu_s": "processor time (s)", "memory": "memory",
}


class Wrong(Exception):
    """A description that cannot be; the message says which and why."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One scripts/experiment."""
    command: tuple
    varied: tuple           # (name, value) of what is not in its rows

    @property
    def name(self):
        """What its results are called: figures that want the same run share it."""
        digest = hashlib.sha256("\0".join(self.command).encode()).hexdigest()[:10]
        return f"{self.command[0]}-{digest}"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure, at one scale."""
    name: str
    about: dict
    runs: tuple

    def results(self, directory, partly=False):
        """What its runs have written there; partly: None for those that have not."""
        paths = [pathlib.Path(directory, f"{run.name}.json") for run in self.runs]
        return [None if partly and not path.exists()
                else json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def rows(self, results):
        """The table's rows of all of them, with what is varied in them; but each has its own
        congestion control, of which a mix has several."""
        return [self._named(row) | {name: value for name, value in run.varied if name != "cc"}
                for run, result in zip(self.runs, results) if result
                for row in result["summary"]]

    def _named(self, row):
        """With its congestion control as the figure calls it: CC@PORTS, if it does."""
        name = f"{row.get('cc')}@{row.get('ports')}"
        return row | {"cc": name} if name in self.about.get("vary", {}).get("cc", ()) else row

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
    named = [*number["of"].items(), *number.get("to", {}).items(),
             *((key, value) for key, values in number.get("over", {}).items() for value in values)]
    for key, value in named:
        if value not in about.get("vary", {}).get(key, [value]):
            wrong(f"compare: {key} is never {value}")


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
        if panel.get("x", "cc") not in about.get("vary", {}):
            wrong(f"plot: x is {panel.get('x', 'cc')}, which is not varied")
    seen = set()
    for number in about.get("compare", []):
        _check_number(number, about, wrong)
        if number["what"] in seen:
            wrong(f"compare: two are called {number['what']}")
        seen.add(number["what"])


def _option(name, value):
    """Words of the command line; an option without a value is there or not."""
    if isinstance(value, bool):
        return [f"--{name}"] * value
    return [f"--{name}", str(value)]


def runs(about, scale):
    """Those of a description."""
    vary = dict(about.get("vary", {}))
    command, more = about["command"], about.get(scale, "")
    if scale == "small" and "cc" in vary:
        command += f" --cc {','.join(vary.pop('cc'))}"
    for values in itertools.product(*vary.values()):
        varied = tuple(zip(vary, values))
        options = [word for name, value in varied for word in _option(name, value)]
        yield Run((*shlex.split(command), *options, *shlex.split(more)), varied)


def _described(directory):
    """Everything that the files there say, by name."""
    for path in sorted(pathlib.Path(directory).glob("*.toml")):
        try:
            yield from tomllib.loads(path.read_text(encoding="utf-8")).items()
        except tomllib.TOMLDecodeError as why:
            raise Wrong(f"{path.name}: {why}") from why


def load(scale="small", only=(), directory=HERE):
    """All figures, or those of `only`: each word is a figure's name, or else a part of some."""
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
    """{paper: {what no figure is of: why}}."""
    return {about["paper"]: about["absent"] for _, about in _described(directory)
            if isinstance(about, dict) and "absent" in about}


# What a row's number is divided by; times are in ns there, sizes in bytes.
UNITS = {"ms": 1e6, "us": 1e3, "kB": 1e3, "MB": 1e6, "%": 0.01}


def made(results):
    """With which versions."""
    return "; ".join(sorted({f"{result['version']}, Linux {result['config']['kernel']}"
                             for result in results if result}))


def unknown(figure, rows):
    """A line for each key that a panel or a number reads and no row has, with the nearest ones."""
    about, there = figure.about, sorted({key for row in rows for key in row})
    wanted = [(f"plot: {name}", key) for panel in about["plot"]
              for name, keys in (("y", [panel["y"]]), ("by", panel.get("by", []))) for key in keys]
    wanted += [(f"compare: {number['what']}: {name}", number[name])
               for number in about.get("compare", []) for name in ("key", "samples")
               if name in number]
    for where, key in dict.fromkeys(wanted):
        if there and key not in there:
            near = difflib.get_close_matches(key, there)
            yield (f"{figure.name}: {where} is {key}, which no run has"
                   + (f" (is it {' or '.join(near)}?)" if near else ""))


def _of(rows, wanted, key):
    """What the first row that is wanted says."""
    return next((row.get(key) for row in rows
                 if all(row.get(name) == value for name, value in wanted.items())), None)


def _mean(rows, wanted, key, seeds):
    """The mean of all seeds; None if one of them does not say it."""
    values = [_of(rows, wanted | seed, key) for seed in seeds]
    return None if None in values else sum(values) / len(values)


def _measured(number, rows, seeds):
    """Ours: of one combination of `over`, or of all of them that which is taken; and each."""
    over, values = number.get("over", {}), []
    for combination in itertools.product(*over.values()):
        more = dict(zip(over, combination))
        ours = _mean(rows, number["of"] | more, number["key"], seeds)
        if "to" in number:
            ours = verdict.difference(
                ours, _mean(rows, number["to"] | more, number["key"], seeds), number)
        elif ours is not None:
            ours /= UNITS.get(number.get("unit", ""), 1)
        values.append(ours)
    # Of a run that is missing nothing is known, the best of the rest included.
    return None if None in values else verdict.taken(values, number), values


def _samples(number, rows):
    """Of how many trials a share is, in all seeds together."""
    counts = [row[number["samples"]] for row in rows if "samples" in number
              and all(row.get(name) == value for name, value in number["of"].items())
              and row.get(number["samples"]) is not None]
    return sum(counts) if counts else None


@dataclasses.dataclass(frozen=True)
class Compared:
    """A number, the paper's, and what comes of it."""
    number: dict
    ours: float | None
    spread: tuple               # of the numbers that it was taken from: lowest, highest
    verdict: verdict.Verdict

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
        return why or ("cause unknown" if self.verdict.kind == verdict.MISSED else "")


def _spread(each):
    """(lowest, highest) of what is known."""
    each = [value for value in each if value is not None]
    return (min(each), max(each)) if len(each) > 1 else ()


def compared(figure, rows):
    """Each of the figure's numbers beside the paper's; seeds are pooled."""
    found = []
    seeds = [{POOLED: seed} for seed in figure.about.get("vary", {}).get(POOLED, [])] or [{}]
    for number in figure.about.get("compare", []):
        ours, each = _measured(number, rows, seeds)
        alone = [_measured(number, rows, [seed])[0] for seed in seeds] if len(seeds) > 1 else []
        found.append(Compared(number, ours, _spread(alone or each), verdict.judge(
            ours, number, _samples(number, rows), alone)))
    return found


def value(row, panel):
    """What a panel shows of a row, in its unit; None if the row has none."""
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
