# SPDX-License-Identifier: GPL-2.0
"""Draw one figure.

	python3 -m lab.figures.draw SCALE CATALOGUE DIRECTORY NAME
"""

import pathlib
import sys

import matplotlib

from lab.figures import catalogue

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
MARKERS = "osv^D*x"


def _values(rows, panel):
    values = (catalogue.value(row, panel) for row in rows)
    return [float("nan") if value is None else value for value in values]


def _bars(axes, rows, panel, vary):
    """One for each run, called what is varied."""
    values = _values(rows, panel)
    names = ["\n".join(str(row[name]) for name in vary) for row in rows]
    names = [name.replace(":", "\n").replace("+", "\n+") for name in names]
    axes.bar(range(len(rows)), values,
             color=[COLOURS[i % len(COLOURS)] for i in range(len(rows))])
    axes.set_xticks(range(len(rows)), names, fontsize=7, rotation=25, ha="right")
    for at, value in enumerate(values):
        if value == value:
            axes.annotate(f"{value:.3g}", (at, value), ha="center", va="bottom", fontsize=7)


def _lines(axes, rows, panel, vary):
    """Against what is varied; a line for each combination of the rest."""
    x = panel["x"]
    others = [name for name, values in vary.items() if name != x and len(values) > 1]
    others += panel.get("by", [])
    series = dict.fromkeys(tuple(row[name] for name in others) for row in rows)
    for number, key in enumerate(series):
        mine = [row for row in rows if tuple(row[name] for name in others) == key]
        values = _values(mine, panel)
        if all(value != value for value in values):     # nothing but NaN
            continue
        places = [vary[x].index(row[x]) for row in mine]
        axes.plot(places, values, label=" ".join(map(str, key)),
                  marker=MARKERS[number % len(MARKERS)], markersize=5, linewidth=1.8,
                  color=COLOURS[number % len(COLOURS)])
    axes.set_xticks(range(len(vary[x])), map(str, vary[x]))
    axes.set_xlabel(x)
    if others:
        axes.legend(fontsize=8, frameon=False)


def draw(figure, rows, prefix):
    """Write PREFIX.svg and PREFIX.png."""
    panels = figure.about["plot"]
    vary = figure.about.get("vary", {})
    picture, axes = pyplot.subplots(1, len(panels), figsize=(5.5 * len(panels), 4),
                                    squeeze=False)
    for panel, one in zip(panels, axes[0]):
        if "x" in panel:
            _lines(one, rows, panel, vary)
        else:
            _bars(one, rows, panel, vary)
        if panel.get("log"):
            one.set_yscale("log")
        else:
            one.set_ylim(0, None)
        one.set_ylabel(catalogue.label(panel))
        one.set_title(panel.get("title", ""), fontsize=10)
        one.grid(True, axis="y", color="0.9")
        one.set_axisbelow(True)
        one.spines[["top", "right"]].set_visible(False)
    picture.suptitle(f"{figure.about['paper']}: {figure.about['title']}", fontsize=10)
    picture.tight_layout()
    for suffix in ("svg", "png"):
        picture.savefig(f"{prefix}.{suffix}", dpi=130)
    pyplot.close(picture)


def main(scale, where, directory, name):
    """One figure of the catalogue."""
    figure = next(f for f in catalogue.load(scale, directory=where) if f.name == name)
    rows = figure.rows(figure.results(pathlib.Path(directory, "runs")))
    draw(figure, rows, pathlib.Path(directory, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
