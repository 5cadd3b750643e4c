# SPDX-License-Identifier: GPL-2.0
"""The experiments with applications as two pictures."""

import plot


def _bars(axes, rows, key, scale, spread):
    """Of one number of requests: a bar for each congestion control."""
    for place, row in enumerate(rows):
        colour = plot.colour(row["cc"])
        axes.bar(place, row[key] / scale, yerr=spread(row) / scale, capsize=4, width=0.6,
                 edgecolor=colour, color="white" if plot.is_base(row["cc"]) else colour)
    axes.set_xticks(range(len(rows)), [row["cc"] for row in rows])


def _lines(axes, rows, key, scale, spread=None):
    """A line for each congestion control; `spread` is what its bars show."""
    if len({row["flows"] for row in rows}) == 1 and spread:
        _bars(axes, rows, key, scale, spread)
        return
    axes.set_xlabel("requests at one time")
    for cc in dict.fromkeys(row["cc"] for row in rows):
        mine = sorted((row for row in rows if row["cc"] == cc), key=lambda r: r["flows"])
        axes.errorbar([r["flows"] for r in mine], [r[key] / scale for r in mine],
                      yerr=[spread(r) / scale for r in mine] if spread else None,
                      capsize=2, marker="o", markersize=5,
                      markerfacecolor="white" if plot.is_base(cc) else None, **plot.style(cc))


def _ideal(axes, rows):
    points = sorted({(row["flows"], row["ideal"] / 1e6) for row in rows})
    axes.plot(*zip(*points), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + RTTs")


def _write(figure, both, prefix, title):
    for axes in both:
        axes.set_ylim(0, None)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, frameon=False)
    plot.write(figure, both, prefix, title)


def _network(config):
    return (f"{config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
            f" RTO_min {config['rto_min'] / 1e6:g} ms")


def redis(config, rows, prefix):
    """TLT's Figure 12, and the longest; or, with a background, Figure 13."""
    rows = [row for row in rows if "p99_mean" in row]
    if not rows:
        return
    figure, (left, right) = plot.two()
    # Half a standard deviation each way in Figure 12, a whole one in Figure 13.
    part = 1 if config["background"] else 0.5
    _lines(left, rows, "p99_mean", 1e6, lambda row: part * row["p99_sd"])
    left.set(ylabel="response time (ms)",
             title=f"99th percentile, mean of {config['rounds']} rounds")
    if config["background"]:
        _lines(right, [row for row in rows if row["background_gbit"]], "background_gbit", 1,
               lambda row: row["background_sd"])
        right.set(ylabel="Gbit/s", title=f"goodput of {config['background'] / 2**20:g} MB"
                  " in the background")
    else:
        _ideal(left, rows)
        _lines(right, rows, "max", 1e6)
        right.set(ylabel="response time (ms)", title="the slowest of all")
    _write(figure, (left, right), prefix,
           f"{config['senders'] - 1} NGINX SET {config['bytes'] / 1024:g} kB in one Redis for"
           f" each request: {_network(config)}")


def memcached(config, rows, prefix):
    """The tail, and the longest, against the fan-in."""
    rows = [row for row in rows if "p99" in row]
    if not rows:
        return
    figure, (left, right) = plot.two()
    for axes, key, title in ((left, "p99", "99th percentile"), (right, "max", "the slowest")):
        _lines(axes, rows, key, 1e6)
        axes.set(xlabel="fan-in: wrk's users × memcached", ylabel="page (ms)", title=title)
    _write(figure, (left, right), prefix,
           f"NGINX GETs {config['bytes'] / 1024:g} kB of each of {config['senders'] - 1}"
           f" memcached for each page: {_network(config)}")
