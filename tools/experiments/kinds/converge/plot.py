# SPDX-License-Identifier: GPL-2.0
"""Plots of a join: both rates, and the distribution of the convergence times."""

from experiments.plot.style import style, two, write


def plot(config, rows, prefix):
    """Draw both flows' rates around a join, and the distribution of the convergence times."""
    rows = [row for row in rows if "converged" in row]
    if not rows:
        return
    rtt = 4 * config["delay"]
    figure, (left, right) = two()
    for row in rows:
        rates = row["rates"]
        rounds = range(rates["first"], rates["first"] + len(rates["gbit"][0]))
        for flow, line, name in zip(rates["gbit"], ("-", "--"), ("old", "new")):
            left.plot(rounds, flow, **dict(style(row["cc"]), linestyle=line,
                                           label=f"{row['cc']}, {name}"))
        times = sorted(time / rtt for time in row["converged"] if time is not None)
        joins = len(row["converged"])
        right.step(times, [(i + 1) / joins for i in range(len(times))], where="post",
                   **style(row["cc"]))
    left.axhline(config["rate"] / 2e9, color="black", linewidth=1, linestyle=":")
    left.set(xlabel="round trips after the new flow's first packet", ylabel="Gbit/s",
             title="a join")
    right.set(xlabel="round trips", ylabel="share of joins", ylim=(0, 1.01),
              title="each has half of the link")
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"a flow joins another: {config['rate'] / 1e9:g} Gbit/s, RTT {rtt / 1000:g} µs")
