# SPDX-License-Identifier: GPL-2.0
"""What the experiments' pictures share: colours, markers, and a distribution."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)

# Okabe and Ito's colours, which the colour-blind can tell apart; a combinator
# has its base's colour, and a solid line where the base's is dashed.
_COLOURS = {"reno": "#E69F00", "cubic": "#0072B2", "dctcp": "#009E73",
            "xpass": "#D55E00", "dcqcn": "#56B4E9", "dart": "#D55E00"}
_MARKERS = {"reno": "s", "cubic": "^", "dctcp": "o", "xpass": "v", "dcqcn": "s",
            "dart": "v"}


def _name(cc):
    """Without settings, and without the mix that it is of."""
    return cc.partition(":")[0].partition("@")[0]


def base(cc):
    """What a combinator is around, without settings."""
    return _name(cc).rpartition("_")[2]


def is_base(cc):
    """Is it none?"""
    return _name(cc) == base(cc)


def colour(cc):
    """Its base's."""
    return _COLOURS.get(base(cc), "#CC79A7")


def marker(cc):
    """Its base's."""
    return _MARKERS.get(base(cc), "D")


def style(cc):
    """Of its line."""
    alone = (0, (4, 2)) if is_base(cc) else "-"
    return {"color": colour(cc), "label": cc, "linewidth": 1.8,
            "linestyle": ":" if "@" in cc else alone}


def two():
    """A figure with two pictures, left and right."""
    return pyplot.subplots(1, 2, figsize=(11, 4.4))


def log_ticks(axis):
    """1, 2, 5, 10 ... of a logarithmic axis, as plain numbers; finer where it spans less."""
    low, high = axis.get_view_interval()
    subs = (1, 2, 5) if high / low > 4 else range(1, 10) if high / low > 1.6 else (
        tenth / 10 for tenth in range(10, 100))
    axis.set_major_locator(ticker.LogLocator(subs=tuple(subs), numticks=20))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))


def cdf(axes, results, rows, ccs, flows):
    """The distribution of each congestion control's FCTs at one fan-in."""
    for cc in ccs:
        for result in results:
            if (result["cc"], result["flows"]) != (cc, flows) or "fct_ns" not in result:
                continue
            times = sorted(t / 1e6 for r in result["fct_ns"] for t in r if t)
            axes.step(times, [(i + 1) / len(times) for i in range(len(times))],
                      where="post", **style(cc))
    ideal = {r["ideal"] for r in rows if r["flows"] == flows}
    for value in ideal:
        axes.axvline(value / 1e6, color="black", linewidth=1, linestyle=":")
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="FCT (ms)",
             ylabel="share of flows", title=f"FCT of {flows} flows")
    log_ticks(axes.xaxis)


def write(figure, both, prefix, title):
    """PREFIX.svg and PREFIX.png."""
    for axes in both:
        axes.grid(True, which="major", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    for suffix in ("svg", "png"):
        figure.savefig(f"{prefix}.{suffix}", dpi=130)
    pyplot.close(figure)
