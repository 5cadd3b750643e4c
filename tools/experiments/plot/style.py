# SPDX-License-Identifier: GPL-2.0
"""Common parts of the experiments' figures: colours, markers, and a distribution."""

import re

import matplotlib

from lab.transports import BASES, TRANSPORTS

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)

# One colour and one marker for each base, in every plot.  A combinator has the colour and the
# marker of its base, but its curve is solid and its marker filled; those of a base are dashed and
# hollow.
_STYLED = (*BASES, *(row for row in TRANSPORTS if row.colour))
_COLOURS = {row.name: row.colour for row in _STYLED}
_MARKERS = {row.name: row.marker for row in _STYLED}
# Congestion controls that run around no other one: the baselines of the comparisons.
_BASES = tuple(row.name for row in (*BASES, *TRANSPORTS) if row in BASES or row.baseline)

# Names of congestion controls with settings, or with ports of their own.
_NAMES = {
    "reno:tcp_early_retrans=0": "reno, no probes",
    "dctcp:tcp_early_retrans=0": "dctcp, no probes",
    "reno:tcp_early_retrans=3": "reno, probes", "dctcp:tcp_early_retrans=3": "dctcp, probes",
    "reno:tcp_rto_min_us=200": "reno, RTO_min 200 us",
    "dctcp:tcp_rto_min_us=200": "dctcp, RTO_min 200 us",
    "dctcp:paper_rto_us=160": "dctcp, RTO 160 us",
    "dctcp:tcp_early_retrans=3:paper_repair=0": "dctcp, probes, RACK",
    "dcqcn:dcqcn_recovery=1:paper_rto_us=4000": "dcqcn, go-back-N",
    "dcqcn:dcqcn_recovery=2:dcqcn_rto_low=454:dcqcn_rto_high=1930": "dcqcn, IRN",
    "tlt_dcqcn:dcqcn_recovery=1:paper_rto_us=4000": "tlt_dcqcn, go-back-N",
    "tlt_dcqcn:dcqcn_recovery=2:dcqcn_rto_low=454:dcqcn_rto_high=1930": "tlt_dcqcn, IRN",
    "tlt_dctcp:tlt_clock=0": "adaptive", "tlt_dctcp:tlt_clock=1": "a byte",
    "tlt_dctcp:tlt_clock=2": "an MSS", "tlt_dctcp:tcp_early_retrans=0": "tlt_dctcp",
    "aeolus_xpass:aeolus_probe=0": "aeolus_xpass, no probe",
    "aeolus_xpass:aeolus_probe=0:paper_repair=2": "aeolus_xpass, timer alone",
    "aeolus_xpass:aeolus_probe=0:paper_repair=2:paper_rto_us=20": "aeolus_xpass, RTO 20 us",
    "aeolus_homa:homa_overcommit=6:paper_repair=0": "aeolus_homa",
    "dcqcn@pri-q": "dcqcn, short first", "dart": "dart (DASR alone)",
    "dart@escape": "dart with iofd", "dart:dart_shares=0@escape": "iofd alone",
    "dart:dart_lookahead=0": "dart, no look-ahead",
}
# Homa as in Aeolus' figures, which vary its timeout, us.
_HOMA = re.compile(r"homa:homa_overcommit=6:paper_repair=3:paper_rto_us=(\d+)")
# Flows by how many of their two hosts run the congestion control.
_ENDS = {"both": "at both ends", "one": "at one end", "none": "at no end"}


def _name(cc):
    """The congestion control without its settings and without its ports or mix."""
    return cc.partition(":")[0].partition("@")[0]


def name(cc, all_of=()):
    """The name in a legend.  dart is called "DASR alone" only if `all_of` has dart with iofd."""
    if cc == "dart" and "dart@escape" not in all_of:
        return cc
    mine, _, ends = cc.partition("@")
    if ends in _ENDS:
        return f"{_NAMES.get(mine, mine.partition(':')[0])}, {_ENDS[ends]}"
    if homa := _HOMA.fullmatch(cc):
        return f"homa, RTO {int(homa[1]) / 1000:g} ms"
    mine, delayed, _ = cc.replace(":paper_delack=0", "").partition(":paper_delack=2")
    return _NAMES.get(mine, mine) + ", delayed ACKs" * bool(delayed)


def base(cc):
    """The base that a combinator runs around, without settings; of a base itself, its name."""
    return _name(cc).rpartition("_")[2]


def is_base(cc):
    """Is it one of the baselines?"""
    return _name(cc) in _BASES


def is_variant(cc):
    """Does it have settings, or ports of its own, or is it part of a mix?  Of an experiment on real
    hosts (cc@measured), the virtual runs are (cc@virtual)."""
    return ":" in cc or "@" in cc.removesuffix("@measured")


def colour(cc):
    """The colour of its base."""
    return _COLOURS.get(base(cc), "#000000")


def marker(cc):
    """The marker of its base."""
    return _MARKERS.get(base(cc), "X")


def style(cc):
    """matplotlib's arguments for its curve."""
    alone = (0, (4, 2)) if is_base(cc) else "-"
    return {"color": colour(cc), "label": cc, "linewidth": 1.8,
            "linestyle": ":" if is_variant(cc) else alone}


def point(cc):
    """matplotlib's arguments for its markers."""
    return {"marker": marker(cc), "markersize": 6, "markeredgecolor": colour(cc),
            "markerfacecolor": "white" if is_base(cc) else colour(cc)}


def two():
    """A figure with two axes, left and right."""
    return pyplot.subplots(1, 2, figsize=(11, 4.4))


def log_ticks(axis):
    """Ticks 1, 2, 5, 10 ... of a logarithmic axis, as plain numbers; finer on a shorter range."""
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
    """Write PREFIX.svg and PREFIX.png."""
    for axes in both:
        axes.grid(True, which="major", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    for suffix in ("svg", "png"):
        figure.savefig(f"{prefix}.{suffix}", dpi=130)
    pyplot.close(figure)
