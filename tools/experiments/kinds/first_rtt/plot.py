# SPDX-License-Identifier: GPL-2.0
"""Plots of the first RTT: completion times, or the queue and the utilisation."""

from experiments.plot.style import cdf, point, style, two, write
from lab.measure import report


def _by_size(axes, results, rows, ccs):
    for cc in ccs:
        mine = [r for r in results if r["cc"] == cc]
        times = [sorted(t / 1e6 for one in r["fct_ns"] for t in one if t) for r in mine]
        means = [sum(t) / len(t) for t in times]
        spread = [[m - report.percentile(t, 5) for m, t in zip(means, times)],
                  [report.percentile(t, 95) - m for m, t in zip(means, times)]]
        # Side by side, so that no bar hides another.
        sizes = [r["bytes"] / 1000 + 0.6 * (ccs.index(cc) - len(ccs) / 2) for r in mine]
        axes.errorbar(sizes, means, yerr=spread, capsize=2, **style(cc) | point(cc))
    ideal = sorted({(r["bytes"] / 1000, r["ideal"] / 1e6) for r in rows})
    axes.plot(*zip(*ideal), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + RTT/2")
    axes.set(xlabel="message (kB)", ylabel="mean MCT, 5th to 95th percentile (ms)",
             ylim=(0, None), title="by size")
    axes.legend(fontsize=8, frameon=False)


def _queue(axes, rows):
    for key, title, sign in (("queue_peak", "longest", "^"), ("queue", "mean", "o")):
        axes.plot([r["red"] / 1000 for r in rows], [r[key] / 1000 for r in rows],
                  marker=sign, label=title)
    axes.set(xlabel="threshold (kB)", ylabel="queue (kB)",
             title=f"the first RTT's queue, {rows[0]['flows']} senders")
    axes.legend(fontsize=8, frameon=False)


def _used(axes, rows):
    for flows in dict.fromkeys(r["flows"] for r in rows):
        mine = [r for r in rows if r["flows"] == flows]
        axes.plot([r["red"] / 1000 for r in mine], [100 * r["used"] for r in mine],
                  marker="o", label=f"{flows} to 1")
    axes.set(xlabel="threshold (kB)", ylabel="of the line rate (%)", ylim=(0, 105),
             title="utilisation in the first RTT")
    axes.legend(fontsize=8, frameon=False)


def plot(config, results, rows, prefix):
    """Draw completion times or, for several thresholds, the queue and the utilisation."""
    rows = [row for row in rows if "p50" in row]
    results = [r for r in results if "fct_ns" in r]
    reds = {row["red"] for row in rows if row["red"]}
    flows = max((row["flows"] for row in rows), default=0)
    size = min((row["bytes"] for row in rows), default=0)
    ccs = list(dict.fromkeys(row["cc"] for row in rows))
    if not rows:
        return
    figure, (left, right) = two()
    if len(reds) > 1:
        swept = [row for row in rows if row["red"] and row["bytes"] == size]
        _queue(left, [r for r in swept if r["flows"] == flows and r["cc"] == swept[0]["cc"]])
        _used(right, [r for r in swept if r["cc"] == swept[0]["cc"]])
    else:
        small = [row for row in rows if row["bytes"] == size]
        cdf(left, [r for r in results if r["bytes"] == size], small, ccs, flows)
        left.set(xlabel="MCT (ms)", ylabel="share of messages",
                 title=f"{flows} to 1, {size / 1000:g} kB")
        left.legend(fontsize=8, frameon=False)
        _by_size(right, [r for r in results if r["flows"] == flows],
                 [row for row in rows if row["flows"] == flows], ccs)
    write(figure, (left, right), prefix,
           f"the first RTT: {config['rate'] / 1e9:g} Gbit/s,"
           f" RTT {4 * config['delay'] / 1000:g} µs")
