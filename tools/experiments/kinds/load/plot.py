# SPDX-License-Identifier: GPL-2.0
"""Plots of the incasts and of the small background flows."""

from matplotlib import ticker

from experiments.plot.style import point, style, two, write


def _distribution(axes, series):
    for cc, times in series:
        times = sorted(time / 1e6 for time in times)
        axes.step(times, [(i + 1) / len(times) for i in range(len(times))], where="post",
                  **style(cc))
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="FCT (ms)", ylabel="share of flows")
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))


# The parameter of the plot's x axis: its label.
_WORDS = {"load": "load (%)", "deployed": "deployment (% of the hosts)"}


def _lines_of(axes, rows, x, key, scale):
    for cc in dict.fromkeys(row["cc"] for row in rows):
        points = sorted((row[x], row[key] / scale) for row in rows
                        if row["cc"] == cc and key in row)
        if points:
            axes.plot(*zip(*points), **style(cc) | point(cc))
    axes.set(xlabel=_WORDS[x], ylim=(0, None), xticks=sorted({row[x] for row in rows}))


def plot(config, rows, flows, prefix):
    """Draw incasts and small flows: against deployment or load, or the distributions for a single
    one.

    flows: {(cc, load, deployed): (ns of each incast's flow, {class: [(ns, slowdown)]})}
    """
    if not flows:
        return
    figure, (left, right) = two()
    incasts = any(foreground for foreground, _ in flows.values())
    x = next((name for name in ("deployed", "load")
              if len({row.get(name) for row in rows}) > 1), None)
    if x:
        name = "fg_p99.9" if incasts else "bg_mean"
        _lines_of(left, rows, x, name, 1e6)
        left.set(ylabel="99.9th percentile FCT (ms)" if incasts else "mean FCT (ms)")
        _lines_of(right, rows, x, "small_mean", 1000)
        right.set(ylabel="mean FCT (\u00b5s)")
    else:
        _distribution(left, [(cc, foreground or [fct for fct, *_ in sum(classes.values(), [])])
                             for (cc, *_), (foreground, classes) in flows.items()])
        _distribution(right, [(cc, [fct for fct, *_ in classes["small"]])
                              for (cc, *_), (_, classes) in flows.items() if classes["small"]])
    left.set(title="flows of incasts" if incasts else "all flows")
    right.set(title="other flows, up to 100 kB")
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"{config['topology']}, {config['hosts']} hosts, {config['rate'] / 1e9:g} Gbit/s:"
           f" {config['workload']}, {config['foreground']} % incasts")
