# SPDX-License-Identifier: GPL-2.0
"""The figures: which experiments each of them needs, and what the paper says.

The *.toml files beside this one describe them:

    [tlt-fig5]
    title = "..."
    paper = "TLT (EuroSys 2021), Figure 5"
    command = "load --hosts 96 --load 40"   # of scripts/experiment
    vary = { cc = ["dctcp", "tlt_dctcp"] }  # of several, each pair
    small = "--background 300"              # what --scale adds
    paper-scale = "--background 10000"
    plot = [{ y = "fg_p99.9", unit = "ms", title = "..." }]     # a panel each

Each value that varies is a run; but at the small scale, one run is all congestion controls,
because its start is half of its time.

In a panel, y is a key of the table's row (scripts/experiment --json), x is what is varied,
and each combination of the rest, and of the keys in `by`, is a line.  Without x, each row is
a bar.

    compare = [{ what = "...", of = { cc = "tlt_dctcp" }, to = { cc = "dctcp" },
                 key = "fg_p99.9", paper = -80.9, differs = "..." }]

is a number beside the paper's: without `to`, the row's own; with it, the change in percent,
or with as = "ratio", how many times `to` is of `of`.  `differs` says why, where we do.
"""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import shlex
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
SCALES = ("small", "paper")
_KEYS = {"title", "paper", "command", "vary", "small", "paper-scale", "plot", "compare", "text"}
_PANEL = {"x", "y", "unit", "title", "log", "by"}
_COMPARE = {"what", "of", "to", "key", "paper", "as", "unit", "differs"}


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

    def results(self, directory):
        """What its runs have written there."""
        return [json.loads(pathlib.Path(directory, f"{run.name}.json").read_text(encoding="utf-8"))
                for run in self.runs]

    def rows(self, results):
        """The table's rows of all of them, with what is varied in them; but each has its own
        congestion control, of which a mix has several."""
        return [self._named(row) | {name: value for name, value in run.varied if name != "cc"}
                for run, result in zip(self.runs, results) for row in result["summary"]]

    def _named(self, row):
        """With its congestion control as the figure calls it: CC@PORTS, if it does."""
        name = f"{row.get('cc')}@{row.get('ports')}"
        return row | {"cc": name} if name in self.about.get("vary", {}).get("cc", ()) else row


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
    for number in about.get("compare", []):
        if unknown := set(number) - _COMPARE:
            wrong(f"compare: what is {min(unknown)}?")
        if not {"what", "of", "key", "paper"} <= set(number):
            wrong("compare: what, of, key and paper")
        for key, value in [*number["of"].items(), *number.get("to", {}).items()]:
            if value not in about.get("vary", {}).get(key, [value]):
                wrong(f"compare: {key} is never {value}")


def _option(name, value):
    """Words of the command line; an option without a value is there or not."""
    if isinstance(value, bool):
        return [f"--{name}"] * value
    return [f"--{name}", str(value)]


def runs(about, scale):
    """Those of a description."""
    vary = dict(about.get("vary", {}))
    command, more = about["command"], about.get("paper-scale", "")
    if scale == "small":
        more = about.get("small", "")
        if "cc" in vary:
            command += f" --cc {','.join(vary.pop('cc'))}"
    for values in itertools.product(*vary.values()):
        varied = tuple(zip(vary, values))
        options = [word for name, value in varied for word in _option(name, value)]
        yield Run((*shlex.split(command), *options, *shlex.split(more)), varied)


def load(scale="small", only=(), directory=HERE):
    """All figures, or those whose name has one of `only` in it."""
    if scale not in SCALES:
        raise Wrong(f"--scale: {' or '.join(SCALES)}")
    figures = []
    for path in sorted(pathlib.Path(directory).glob("*.toml")):
        try:
            described = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as why:
            raise Wrong(f"{path.name}: {why}") from why
        for name, about in described.items():
            _check(name, about)
            figures.append(Figure(name, about, tuple(runs(about, scale))))
    chosen = [f for f in figures if not only or any(word in f.name for word in only)]
    if not chosen:
        raise Wrong(f"no figure of that name; there are {', '.join(f.name for f in figures)}")
    return chosen


def _find(rows, wanted):
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return found[0] if found else {}


def compared(figure, rows):
    """[(what, ours, the paper's, unit, why it differs)]; ours is None if there is no such run,
    and the unit is +% if it is a change."""
    numbers = []
    for number in figure.about.get("compare", []):
        ours = _find(rows, number["of"]).get(number["key"])
        unit = number.get("unit", "")
        if "to" in number:
            other = _find(rows, number["to"]).get(number["key"])
            unit = "×" if number.get("as") == "ratio" else "+%"
            if not ours or not other:
                ours = None
            else:
                ours = other / ours if unit == "×" else 100 * (ours / other - 1)
        elif ours is not None:
            ours /= UNITS.get(unit, 1)
        numbers.append((number["what"], ours, number["paper"], unit, number.get("differs", "")))
    return numbers


# What a row's number is divided by; times are in ns there, sizes in bytes.
UNITS = {"ms": 1e6, "us": 1e3, "kB": 1e3, "MB": 1e6, "%": 0.01}


def value(row, panel):
    """What a panel shows of a row, in its unit; None if the row has none."""
    number = row.get(panel["y"])
    return None if number is None else number / UNITS.get(panel.get("unit"), 1)


def label(panel):
    """Of a panel's values."""
    return f"{panel['y']} ({panel['unit']})" if "unit" in panel else panel["y"]
