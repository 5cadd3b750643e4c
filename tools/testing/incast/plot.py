# SPDX-License-Identifier: GPL-2.0
"""The incast as two pictures: the tail against fan-in, and one CDF."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)

# Okabe and Ito's colours, which the colour-blind can tell apart; a combinator
# has its base's colour, and a solid line where the base's is dashed.
_COLOURS = {"reno": "#E69F00", "cubic": "#0072B2", "dctcp": "#009E73"}
_MARKERS = {"reno": "s", "cubic": "^", "dctcp": "o"}


def _style(cc):
    base = cc.removeprefix("tlt_")
    return {"color": _COLOURS.get(base, "#CC79A7"), "label": cc, "linewidth": 1.8,
            "linestyle": "-" if cc != base else (0, (4, 2))}


def _tail(axes, rows, ccs):
    for cc in ccs:
        points = sorted((r["flows"], r["p99.9"] / 1e6) for r in rows if r["cc"] == cc)
        base = cc.removeprefix("tlt_")
        axes.plot(*zip(*points), marker=_MARKERS.get(base, "D"), markersize=5,
                  markerfacecolor="white" if cc == base else None, **_style(cc))
    ideal = sorted({(r["flows"], r["ideal"] / 1e6) for r in rows})
    axes.plot(*zip(*ideal), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + RTT")
    axes.set(xscale="log", yscale="log", xlabel="flows in the incast",
             ylabel="99.9th percentile FCT (ms)", title="tail against fan-in")
    axes.set_xticks([flows for flows, _ in ideal])
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.legend(fontsize=8, frameon=False)


def _cdf(axes, results, rows, ccs, flows):
    for cc in ccs:
        for result in results:
            if (result["cc"], result["flows"]) != (cc, flows) or "fct_ns" not in result:
                continue
            times = sorted(t / 1e6 for r in result["fct_ns"] for t in r if t)
            axes.step(times, [(i + 1) / len(times) for i in range(len(times))],
                      where="post", **_style(cc))
    ideal = {r["ideal"] for r in rows if r["flows"] == flows}
    for value in ideal:
        axes.axvline(value / 1e6, color="black", linewidth=1, linestyle=":")
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="FCT (ms)",
             ylabel="share of flows", title=f"FCT of {flows} flows")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))


def plot(config, results, rows, prefix, flows):
    """Write PREFIX.svg and PREFIX.png; `flows` is the fan-in of the CDF."""
    rows = [row for row in rows if row["flows"] and "p99.9" in row]
    if not rows:
        return
    ccs = list(dict.fromkeys(row["cc"] for row in rows))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.4))
    _tail(left, rows, ccs)
    _cdf(right, results, rows, ccs, flows)
    for axes in (left, right):
        axes.grid(True, which="major", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{config['senders']} senders to 1, {config['bytes'] // 1024} kB a flow,"
        f" {config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
        f" RTO_min {config['rto_min'] / 1e6:g} ms", fontsize=11)
    figure.tight_layout()
    for suffix in ("svg", "png"):
        figure.savefig(f"{prefix}.{suffix}", dpi=130)
    pyplot.close(figure)
