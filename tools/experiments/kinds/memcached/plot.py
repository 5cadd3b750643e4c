# SPDX-License-Identifier: GPL-2.0
"""Plots of the tail and the maximum against the fan-in."""

from experiments.apps.plot import lines, network, write
from experiments.plot.style import two


def plot(config, rows, prefix):
    """Draw the tail and the maximum against the fan-in."""
    rows = [row for row in rows if "p99" in row]
    if not rows:
        return
    figure, (left, right) = two()
    for axes, key, title in ((left, "p99", "99th percentile"), (right, "max", "maximum")):
        lines(axes, rows, key, 1e6)
        axes.set(xlabel="fan-in: wrk's users × memcached", ylabel="page (ms)", title=title)
    write(figure, (left, right), prefix,
           f"NGINX GETs {config['bytes'] / 1024:g} kB of each of {config['senders'] - 1}"
           f" memcached for each page: {network(config)}")
