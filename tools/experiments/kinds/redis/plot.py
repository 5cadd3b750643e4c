# SPDX-License-Identifier: GPL-2.0
"""Figures 12 and 13 of TLT's paper."""

from experiments.apps.plot import ideal, lines, network, write
from experiments.plot.style import two


def plot(config, rows, prefix):
    """Draw Figure 12 and the maximum or, with a background, Figure 13."""
    rows = [row for row in rows if "p99_mean" in row]
    if not rows:
        return
    figure, (left, right) = two()
    # The error bars are +/- half a standard deviation in Figure 12, and a whole one in Figure 13.
    part = 1 if config["background"] else 0.5
    lines(left, rows, "p99_mean", 1e6, lambda row: part * row["p99_sd"])
    left.set(ylabel="response time (ms)",
             title=f"99th percentile, mean of {config['rounds']} rounds")
    if config["background"]:
        lines(right, [row for row in rows if row["background_gbit"]], "background_gbit", 1,
               lambda row: row["background_sd"])
        right.set(ylabel="Gbit/s", title=f"goodput of {config['background'] / 2**20:g} MB"
                  " in the background")
    else:
        ideal(left, rows)
        lines(right, rows, "max", 1e6)
        right.set(ylabel="response time (ms)", title="maximum")
    write(figure, (left, right), prefix,
           f"{config['senders'] - 1} NGINX SET {config['bytes'] / 1024:g} kB in one Redis for"
           f" each request: {network(config)}")
