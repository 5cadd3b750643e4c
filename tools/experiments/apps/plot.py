# SPDX-License-Identifier: GPL-2.0
"""Common parts of the figures of the experiments with applications."""

from experiments.plot import style


def _bars(axes, rows, key, scale, spread):
    """For one number of requests: a bar for each congestion control."""
    for place, row in enumerate(rows):
        colour = style.colour(row["cc"])
        axes.bar(place, row[key] / scale, yerr=spread(row) / scale, capsize=4, width=0.6,
                 edgecolor=colour, color="white" if style.is_base(row["cc"]) else colour)
    axes.set_xticks(range(len(rows)), [row["cc"] for row in rows])


def lines(axes, rows, key, scale, spread=None):
    """A curve for each congestion control, over the number of requests.  spread(row) gives error
    bars; with it and only one number of requests, bars are drawn in place of curves."""
    if len({row["flows"] for row in rows}) == 1 and spread:
        _bars(axes, rows, key, scale, spread)
        return
    axes.set_xlabel("requests at one time")
    for cc in dict.fromkeys(row["cc"] for row in rows):
        mine = sorted((row for row in rows if row["cc"] == cc), key=lambda r: r["flows"])
        axes.errorbar([r["flows"] for r in mine], [r[key] / scale for r in mine],
                      yerr=[spread(r) / scale for r in mine] if spread else None,
                      capsize=2, **style.style(cc) | style.point(cc))


def ideal(axes, rows):
    """The lower bound of all curves."""
    points = sorted({(row["flows"], row["ideal"] / 1e6) for row in rows})
    axes.plot(*zip(*points), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + the ways")


def write(figure, both, prefix, title):
    """Write PREFIX.svg and PREFIX.png."""
    for axes in both:
        axes.set_ylim(0, None)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, frameon=False)
    style.write(figure, both, prefix, title)


def network(config):
    """The network in words, for a title."""
    return (f"{config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
            f" RTO_min {config['rto_min'] / 1e6:g} ms")
