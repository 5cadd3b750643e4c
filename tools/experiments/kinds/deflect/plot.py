# SPDX-License-Identifier: GPL-2.0
"""Plots of the tail of short messages, and of the throughput, against load."""

from experiments.kinds.deflect import network_words
from experiments.plot.style import point, style, two, write

# The linestyle of each kind of port.
_PORTS = {"plain": (0, (4, 2)), "deflect": "-", "pri-q": ":"}


def _against_load(axes, rows, key, scale):
    for name in dict.fromkeys((r["cc"], r["ports"]) for r in rows):
        points = [(r["load"], r[key] / scale) for r in rows
                  if (r["cc"], r["ports"]) == name and key in r]
        look = style(name[0])
        look.update(linestyle=_PORTS[name[1]], label=" ".join(name).removesuffix(" plain"))
        axes.plot(*zip(*sorted(points)), **look | point(name[0]))
    axes.set(xlabel="load of the core (%)", ylim=(0, None),
             xticks=sorted({r["load"] for r in rows}))
    axes.legend(fontsize=8, frameon=False)


def plot(config, rows, prefix):
    """Draw the tail of the largest messages, and the throughput, against load."""
    size = max(config["bytes"])
    rows = [row for row in rows if f"p99_{size}" in row]
    if not rows:
        return
    figure, (left, right) = two()
    _against_load(left, rows, f"p99_{size}", 1e6)
    left.set(ylabel="99th percentile FCT (ms)", title=f"messages of {size / 1024:g} kB")
    _against_load(right, rows, "all_gbit", 1)
    offered = sorted({(r["load"], r["offered_gbit"]) for r in rows})
    right.plot(*zip(*offered), color="black", linewidth=1, linestyle=":", label="offered")
    right.set(ylabel="payload (Gbit/s)", title="throughput")
    right.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"{network_words(config)}, {config['rate'] / 1e9:g} Gbit/s: incasts of"
           f" {config['degree']}, {config['short']} % of the load")
