# SPDX-License-Identifier: GPL-2.0
"""Draw one figure.

	python3 -m experiments.figures.draw SCALE CATALOGUE DIRECTORY NAME
"""

import pathlib
import re
import sys

from experiments.figures import catalogue
from experiments.plot import style
from experiments.plot.style import pyplot, ticker

# Variants of one transport, the first of which is plain.
_HATCHES = ("", "///", "...", "xxx", "\\\\\\")
_DASHES = (None, ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
_FILLS = ("full", "left", "bottom", "top", "right")


def _is_scale(values):
    """Have they an order, as numbers have, with or without a unit?"""
    return all(not isinstance(value, bool) and re.match(r"[0-9]", str(value)) for value in values)


def _said(name, value, all_of=()):
    """The name of a varied value, on an axis or in a title."""
    if name == "cc":
        return style.name(value, all_of)
    if isinstance(value, bool):
        return {"ipv6": ("IPv4", "IPv6"), "pause": ("none", "")}.get(name, ("no", "yes"))[value]
    if name == "bytes" and isinstance(value, int):
        return f"{value / 1000:g} kB"
    words = {"unscheduled": {"drop": "dropped early", "behind": "behind the rest"},
             "base": {"paper": "the paper's base", "linux": "today's Linux"}}
    text = words.get(name, {}).get(value, str(value))
    if unit := re.fullmatch(r"([0-9]+)([kmg])b?", text):
        return f"{unit[1]} {'kMG'['kmg'.index(unit[2])]}B"
    return text.replace("-", " ").replace("gbit", " Gbit/s")


def _pooled(rows, panel):
    """(mean, below it, above it) of the rows that differ in their seeds alone."""
    values = [value for row in rows if (value := catalogue.value(row, panel)) is not None]
    values = [value for value in values if value == value]
    if not values:
        return float("nan"), 0, 0
    mean = sum(values) / len(values)
    return mean, mean - min(values), max(values) - mean


def _ccs(rows, vary):
    """The transports, in the figure's order, and then the members of mixes."""
    seen = dict.fromkeys(row["cc"] for row in rows)
    return sorted(seen, key=lambda cc: (vary["cc"].index(cc) if cc in vary.get("cc", ()) else 99))


def _variants(ccs):
    """{transport: which of its own variants it is}."""
    found, used = {}, {}
    for cc in ccs:
        kind = style.base(cc), style.is_base(cc)
        found[cc] = used[kind] = used.get(kind, -1) + 1
    return found


def _look(ccs):
    """How each one's bars are filled: variants of one colour by their hatches."""
    return {cc: {"edgecolor": style.colour(cc), "linewidth": 1.2, "hatch": _HATCHES[number % 5],
                 "facecolor": "white" if style.is_base(cc) else f"{style.colour(cc)}99"}
            for cc, number in _variants(ccs).items()}


def _line(cc, number):
    """The style of a curve: dashes distinguish variants."""
    look = style.style(cc) | style.point(cc) | {"fillstyle": _FILLS[number % 5]}
    alone = "-" if not style.is_base(cc) else (0, (4, 2))
    return look | {"linestyle": _DASHES[number % 5] or alone}


def _stated(figure, panel, place):
    """The paper's values for a panel: [(x, value, transport)] of the numbers that have
    a place there."""
    for number in figure.about.get("compare", []):
        if (number["key"] == panel["y"] and not number.keys() & {"to", "over"}
                and isinstance(number["paper"], (int, float))):
            x = place(figure.on(figure.judged, number["of"]))
            if x is not None:
                yield x, number["paper"], number["of"].get("cc")


def _hollow(axes, stated, coloured):
    """The paper's values, hollow; coloured where no bar names the transport."""
    look = {"linestyle": "", "marker": "h", "markersize": 9, "markerfacecolor": "none",
            "markeredgewidth": 1.6, "zorder": 5}
    for x, value, cc in dict.fromkeys(stated):
        edge = style.colour(cc) if coloured and cc else "black"
        axes.plot([x], [value], markeredgecolor=edge, **look)
    if stated:
        axes.plot([], [], markeredgecolor="black", label="the paper", **look)


def _bars(axes, rows, panel, figure, fixed):
    """A bar for each combination of varied values."""
    vary = figure.about.get("vary", {})
    names = [name for name in vary if name not in fixed and name != catalogue.POOLED] or ["cc"]
    groups = dict.fromkeys(tuple(row[name] for name in names) for row in rows)
    ccs = _ccs(rows, vary)
    looks = _look(ccs)
    for at, key in enumerate(groups):
        mine = [row for row in rows if tuple(row[name] for name in names) == key]
        mean, below, above = _pooled(mine, panel)
        axes.bar(at, mean, 0.7, **looks[mine[0]["cc"]])
        _spread(axes, at, mean, below, above)
        if mean == mean:
            axes.annotate(catalogue.digits(mean), (at, mean + above), ha="center", va="bottom",
                          fontsize=8)
    said = [name for name in names if len({key[names.index(name)] for key in groups}) > 1] or names
    texts = ["\n".join(_said(name, key[names.index(name)], ccs) for name in said)
             for key in groups]
    axes.set_xticks(range(len(groups)), [text.replace(", ", ",\n") for text in texts], fontsize=8,
                    **({"rotation": 25, "ha": "right"} if len(groups) > 3 else {}))

    def place(of):
        if any(of.get(name, value) != value for name, value in fixed.items()):
            return None
        return next((at for at, key in enumerate(groups)
                     if all(key[names.index(name)] == value for name, value in of.items()
                            if name in names)), None)
    _hollow(axes, list(_stated(figure, panel, place)), coloured=False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, frameon=False)


def _spread(axes, at, mean, below, above):
    """From the lowest seed to the highest."""
    if below or above:
        axes.errorbar(at, mean, [[below], [above]], color="0.25", capsize=3, linewidth=1,
                      zorder=4)


def _against(axes, rows, panel, figure, fixed):
    """Values against a varied option: a curve for each transport, or bars where there is no order."""
    vary, x = figure.about["vary"], panel["x"]
    ccs = _ccs(rows, vary)
    shown = [cc for cc in ccs if any(catalogue.value(row, panel) is not None
                                     for row in rows if row["cc"] == cc)]
    lines = _is_scale(vary[x]) and not panel.get("bars")
    looks, numbers = _look(ccs), _variants(ccs)
    wide = 0.8 / max(1, len(shown))
    for number, cc in enumerate(shown):
        values = [_pooled([row for row in rows if row["cc"] == cc and row[x] == value], panel)
                  for value in vary[x]]
        means, said = [mean for mean, _, _ in values], style.name(cc, ccs)
        # Seeds' spreads stand beside each other.
        places = [at + 0.05 * (number - (len(shown) - 1) / 2) for at in range(len(means))]
        if lines:
            places = places if any(below or above for _, below, above in values) else range(len(means))
            axes.plot(places, means, **_line(cc, numbers[cc]) | {"label": said})
        else:
            places = [at + wide * (number - (len(shown) - 1) / 2) for at in range(len(means))]
            axes.bar(places, means, wide, label=said, **looks[cc])
        for place, value in zip(places, values):
            _spread(axes, place, *value)
    axes.set_xticks(range(len(vary[x])), [_said(x, value) for value in vary[x]],
                    fontsize=9 if lines else 8)
    axes.set_xlabel(catalogue.WORDS.get(x, x))

    def place(of):
        if of.get(x) not in vary[x] or any(of.get(name, value) != value
                                           for name, value in fixed.items()):
            return None
        at = vary[x].index(of[x])
        if lines or of.get("cc") not in shown:
            return at
        return at + wide * (shown.index(of["cc"]) - (len(shown) - 1) / 2)
    _hollow(axes, list(_stated(figure, panel, place)), coloured=lines)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(fontsize=8, frameon=False)


def _facets(figure, panel):
    """[{name: value}] of the other varied options: each has a panel of its own."""
    vary = figure.about.get("vary", {})
    rest = [name for name, values in vary.items()
            if name not in ("cc", panel.get("x"), catalogue.POOLED)
            and ("x" in panel or name == "base") and len(values) > 1]
    found = [{}]
    for name in rest:
        found = [one | {name: value} for one in found for value in vary[name]]
    return found


def _axis(axes, panel):
    axes.set_ylabel(catalogue.label(panel))
    if panel.get("log"):
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(low / 1.2, high * 1.2)
        style.log_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.06 or 1)
        axes.yaxis.set_major_locator(ticker.MaxNLocator(6))
    axes.grid(True, axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw(figure, rows, prefix, made=""):
    """Write PREFIX.svg and PREFIX.png; the former names the versions of its runs."""
    grid = [[(panel, facet) for facet in _facets(figure, panel)]
            for panel in figure.about["plot"]]
    if all(len(line) == 1 for line in grid):    # panels side by side
        grid = [[line[0] for line in grid]]
    wide = max(map(len, grid))
    picture, axes = pyplot.subplots(len(grid), wide, figsize=(
        min(5.2 if wide > 1 else 8, 16 / wide) * wide, 4 * len(grid)), squeeze=False)
    for line, places in zip(grid, axes):
        for one in places[len(line):]:
            one.remove()
        for (panel, facet), one in zip(line, places):
            mine = [row for row in rows
                    if all(row.get(name) == value for name, value in facet.items())]
            (_against if "x" in panel else _bars)(one, mine, panel, figure, facet)
            _axis(one, panel)
            said = [panel.get("title", "")] + [
                f"{catalogue.WORDS.get(name, name)}: {_said(name, value)}"
                for name, value in facet.items()]
            one.set_title("\n".join(filter(None, said)), fontsize=10)
        # Side by side the same height is the same number.
        if len({panel["y"] for panel, _ in line}) == 1 and not line[0][0].get("log"):
            top = max(one.get_ylim()[1] for one in places[:len(line)])
            for one in places[:len(line)]:
                one.set_ylim(0, top)
    picture.suptitle(f"{figure.about['paper']}: {figure.about['title']}", fontsize=10)
    picture.tight_layout()
    # A page may be dark: a picture has its own white ground.
    picture.savefig(f"{prefix}.png", dpi=130, facecolor="white")
    # The same numbers are the same file.
    with pyplot.rc_context({"svg.hashsalt": figure.name}):
        picture.savefig(f"{prefix}.svg", facecolor="white",
                        metadata={"Date": None, "Description": made})
    pyplot.close(picture)


def main(scale, where, directory, name):
    """One figure of the catalogue."""
    figure = next(f for f in catalogue.load(scale, directory=where) if f.name == name)
    results = figure.results(pathlib.Path(directory, "runs"))
    rows = figure.rows(results)
    if wrong := list(catalogue.unknown(figure, rows)):
        sys.exit("\n".join(f"figures: {line}" for line in wrong))
    draw(figure, rows, pathlib.Path(directory, name), catalogue.made(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
