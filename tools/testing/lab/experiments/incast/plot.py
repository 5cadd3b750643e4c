# SPDX-License-Identifier: GPL-2.0
"""The incast as two pictures: the tail against the fan-in, and one distribution."""

from matplotlib import ticker

from lab.plot.style import cdf, is_base, marker, style, two, write


def _tail(axes, rows, ccs):
    for cc in ccs:
        points = sorted((r["flows"], r["p99.9"] / 1e6) for r in rows if r["cc"] == cc)
        axes.plot(*zip(*points), marker=marker(cc), markersize=5,
                  markerfacecolor="white" if is_base(cc) else None, **style(cc))
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


def plot(config, results, rows, prefix, flows):
    """Write PREFIX.svg and PREFIX.png; `flows` is the fan-in of the CDF."""
    rows = [row for row in rows if row["flows"] and "p99.9" in row]
    if not rows:
        return
    ccs = list(dict.fromkeys(row["cc"] for row in rows))
    figure, (left, right) = two()
    _tail(left, rows, ccs)
    cdf(right, results, rows, ccs, flows)
    write(figure, (left, right), prefix,
           f"{config['senders']} senders to 1, {config['bytes'] // 1024} kB a flow,"
           f" {config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
           f" RTO_min {config['rto_min'] / 1e6:g} ms")
