# SPDX-License-Identifier: GPL-2.0
"""Plots of the incast: the tail against the fan-in, and one distribution."""

from matplotlib import ticker

from experiments.plot.style import cdf, colour, is_base, log_ticks, point, style, two, write


def _bars(axes, rows, ccs):
    """Draw the tail for a single fan-in: a bar for each congestion control, from 0."""
    tails = {row["cc"]: row["p99.9"] / 1e6 for row in rows}
    for cc in ccs:
        axes.bar(cc, tails[cc], color="white" if is_base(cc) else colour(cc),
                 edgecolor=colour(cc), linewidth=1.8)
    axes.axhline(rows[0]["ideal"] / 1e6, color="black", linewidth=1, linestyle=":",
                 label="ideal: line rate + propagation")
    axes.set(ylabel="99.9th percentile FCT (ms)", title=f"tail, {rows[0]['flows']} flows")
    axes.tick_params(axis="x", labelrotation=30)
    axes.legend(fontsize=8, frameon=False)


def _tail(axes, rows, ccs):
    for cc in ccs:
        points = sorted((r["flows"], r["p99.9"] / 1e6) for r in rows if r["cc"] == cc)
        axes.plot(*zip(*points), **style(cc) | point(cc))
    ideal = sorted({(r["flows"], r["ideal"] / 1e6) for r in rows})
    axes.plot(*zip(*ideal), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + propagation")
    axes.set(xscale="log", yscale="log", xlabel="flows in the incast",
             ylabel="99.9th percentile FCT (ms)", title="tail against fan-in")
    axes.set_xticks([flows for flows, _ in ideal])
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    log_ticks(axes.yaxis)
    axes.legend(fontsize=8, frameon=False)


def tails(axes, rows, ccs):
    """Draw the tail: against the fan-in, or for a single one."""
    (_tail if len({row["flows"] for row in rows}) > 1 else _bars)(axes, rows, ccs)


def plot(config, results, rows, prefix, flows):
    """Write PREFIX.svg and PREFIX.png; `flows` is the fan-in of the CDF."""
    rows = [row for row in rows if row["flows"] and "p99.9" in row]
    if not rows:
        return
    ccs = list(dict.fromkeys(row["cc"] for row in rows))
    figure, (left, right) = two()
    tails(left, rows, ccs)
    cdf(right, results, rows, ccs, flows)
    right.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"{config['senders']} senders to 1, {config['bytes'] // 1024} kB a flow,"
           f" {config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
           f" RTO_min {config['rto_min'] / 1e6:g} ms")
