# SPDX-License-Identifier: GPL-2.0
"""An experiment as two pictures."""

import matplotlib

import report

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402  (the backend comes first)

# Okabe and Ito's colours, which the colour-blind can tell apart; a combinator
# has its base's colour, and a solid line where the base's is dashed.
_COLOURS = {"reno": "#E69F00", "cubic": "#0072B2", "dctcp": "#009E73",
            "xpass": "#D55E00", "dcqcn": "#56B4E9", "dart": "#D55E00"}
_MARKERS = {"reno": "s", "cubic": "^", "dctcp": "o", "xpass": "v", "dcqcn": "s",
            "dart": "v"}
# Of the switches' ports.
_PORTS = {"plain": (0, (4, 2)), "deflect": "-", "pri-q": ":"}


def _name(cc):
    """Without settings, and without the mix that it is of."""
    return cc.partition(":")[0].partition("@")[0]


def base(cc):
    """What a combinator is around, without settings."""
    return _name(cc).rpartition("_")[2]


def is_base(cc):
    """Is it none?"""
    return _name(cc) == base(cc)


def colour(cc):
    """Its base's."""
    return _COLOURS.get(base(cc), "#CC79A7")


def style(cc):
    """Of its line."""
    alone = (0, (4, 2)) if is_base(cc) else "-"
    return {"color": colour(cc), "label": cc, "linewidth": 1.8,
            "linestyle": ":" if "@" in cc else alone}


def two():
    """A figure with two pictures, left and right."""
    return pyplot.subplots(1, 2, figsize=(11, 4.4))


def _tail(axes, rows, ccs):
    for cc in ccs:
        points = sorted((r["flows"], r["p99.9"] / 1e6) for r in rows if r["cc"] == cc)
        axes.plot(*zip(*points), marker=_MARKERS.get(base(cc), "D"), markersize=5,
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


def _cdf(axes, results, rows, ccs, flows):
    for cc in ccs:
        for result in results:
            if (result["cc"], result["flows"]) != (cc, flows) or "fct_ns" not in result:
                continue
            times = sorted(t / 1e6 for r in result["fct_ns"] for t in r if t)
            axes.step(times, [(i + 1) / len(times) for i in range(len(times))],
                      where="post", **style(cc))
    ideal = {r["ideal"] for r in rows if r["flows"] == flows}
    for value in ideal:
        axes.axvline(value / 1e6, color="black", linewidth=1, linestyle=":")
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="FCT (ms)",
             ylabel="share of flows", title=f"FCT of {flows} flows")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))


def _by_size(axes, results, rows, ccs):
    for cc in ccs:
        mine = [r for r in results if r["cc"] == cc]
        times = [sorted(t / 1e6 for one in r["fct_ns"] for t in one if t) for r in mine]
        means = [sum(t) / len(t) for t in times]
        spread = [[m - report.percentile(t, 5) for m, t in zip(means, times)],
                  [report.percentile(t, 95) - m for m, t in zip(means, times)]]
        # Side by side, or the bars would hide one another.
        sizes = [r["bytes"] / 1000 + 0.6 * (ccs.index(cc) - len(ccs) / 2) for r in mine]
        axes.errorbar(sizes, means, yerr=spread, marker=_MARKERS.get(base(cc), "D"), markersize=5,
                      capsize=2, **style(cc))
    ideal = sorted({(r["bytes"] / 1000, r["ideal"] / 1e6) for r in rows})
    axes.plot(*zip(*ideal), color="black", linewidth=1, linestyle=":",
              label="ideal: line rate + RTT/2")
    axes.set(xlabel="message (kB)", ylabel="mean MCT, 5th to 95th percentile (ms)",
             ylim=(0, None), title="by size")
    axes.legend(fontsize=8, frameon=False)


def _queue(axes, rows):
    for key, title, marker in (("queue_peak", "longest", "^"), ("queue", "mean", "o")):
        axes.plot([r["red"] / 1000 for r in rows], [r[key] / 1000 for r in rows],
                  marker=marker, label=title)
    axes.set(xlabel="threshold (kB)", ylabel="queue (kB)",
             title=f"the first RTT's queue, {rows[0]['flows']} senders")
    axes.legend(fontsize=8, frameon=False)


def _used(axes, rows):
    for flows in dict.fromkeys(r["flows"] for r in rows):
        mine = [r for r in rows if r["flows"] == flows]
        axes.plot([r["red"] / 1000 for r in mine], [100 * r["used"] for r in mine],
                  marker="o", label=f"{flows} to 1")
    axes.set(xlabel="threshold (kB)", ylabel="of the line (%)", ylim=(0, 105),
             title="utilisation in the first RTT")
    axes.legend(fontsize=8, frameon=False)


def first_rtt(config, results, rows, prefix):
    """Completion times; or, of several thresholds, the queue and the utilisation."""
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
        _cdf(left, [r for r in results if r["bytes"] == size], small, ccs, flows)
        left.set(xlabel="MCT (ms)", ylabel="share of messages",
                 title=f"{flows} to 1, {size / 1000:g} kB")
        left.legend(fontsize=8, frameon=False)
        _by_size(right, [r for r in results if r["flows"] == flows],
                 [row for row in rows if row["flows"] == flows], ccs)
    write(figure, (left, right), prefix,
           f"the first RTT: {config['rate'] / 1e9:g} Gbit/s,"
           f" RTT {4 * config['delay'] / 1000:g} µs")


def plot(config, results, rows, prefix, flows):
    """Write PREFIX.svg and PREFIX.png; `flows` is the fan-in of the CDF."""
    rows = [row for row in rows if row["flows"] and "p99.9" in row]
    if not rows:
        return
    ccs = list(dict.fromkeys(row["cc"] for row in rows))
    figure, (left, right) = two()
    _tail(left, rows, ccs)
    _cdf(right, results, rows, ccs, flows)
    write(figure, (left, right), prefix,
           f"{config['senders']} senders to 1, {config['bytes'] // 1024} kB a flow,"
           f" {config['rate'] / 1e9:g} Gbit/s, RTT {4 * config['delay'] / 1000:g} µs,"
           f" RTO_min {config['rto_min'] / 1e6:g} ms")


def _against_load(axes, rows, key, scale):
    for name in dict.fromkeys((r["cc"], r["ports"]) for r in rows):
        points = [(r["load"], r[key] / scale) for r in rows
                  if (r["cc"], r["ports"]) == name and key in r]
        look = style(name[0])
        look.update(linestyle=_PORTS[name[1]], label=" ".join(name).removesuffix(" plain"))
        axes.plot(*zip(*sorted(points)), marker=_MARKERS.get(base(name[0]), "D"),
                  markersize=5, **look)
    axes.set(xlabel="load of the core (%)", ylim=(0, None),
             xticks=sorted({r["load"] for r in rows}))
    axes.legend(fontsize=8, frameon=False)


def deflect(config, rows, prefix):
    """The largest messages' tail, and the throughput, against load."""
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
           f"{config['hosts']} hosts, {config['leaves']} leaves, {config['spines']} spines,"
           f" {config['rate'] / 1e9:g} Gbit/s: incasts of {config['degree']},"
           f" {config['short']} % of the load")


def converge(config, rows, prefix):
    """Both flows' rates around a join; the share of joins that have converged by a time."""
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
              title="both have half of the line")
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"a flow joins another: {config['rate'] / 1e9:g} Gbit/s, RTT {rtt / 1000:g} µs")


def _distribution(axes, series):
    for cc, times in series:
        times = sorted(time / 1e6 for time in times)
        axes.step(times, [(i + 1) / len(times) for i in range(len(times))], where="post",
                  **style(cc))
    axes.set(xscale="log", ylim=(0, 1.01), xlabel="FCT (ms)", ylabel="share of flows")
    axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))


def _lines_of(axes, rows, key, scale):
    for cc in dict.fromkeys(row["cc"] for row in rows):
        points = sorted((row["load"], row[key] / scale) for row in rows
                        if row["cc"] == cc and key in row)
        if points:
            axes.plot(*zip(*points), marker=_MARKERS.get(base(cc), "D"), markersize=5,
                      **style(cc))
    axes.set(xlabel="load (%)", ylim=(0, None), xticks=sorted({row["load"] for row in rows}))


def load(config, rows, flows, prefix):
    """Incasts and small flows: against load, or their distributions at one.

    flows: {(cc, load): (ns of each incast's flow, {class: [(ns, slowdown)]})}
    """
    if not flows:
        return
    figure, (left, right) = two()
    incasts = any(foreground for foreground, _ in flows.values())
    if len({at for _, at in flows}) > 1:
        name = "fg_p99.9" if incasts else "bg_mean"
        _lines_of(left, rows, name, 1e6)
        left.set(ylabel="99.9th percentile FCT (ms)" if incasts else "mean FCT (ms)")
        _lines_of(right, rows, "small_mean", 1000)
        right.set(ylabel="mean FCT (\u00b5s)")
    else:
        _distribution(left, [(cc, foreground or [fct for fct, _ in sum(classes.values(), [])])
                             for (cc, _), (foreground, classes) in flows.items()])
        _distribution(right, [(cc, [fct for fct, _ in classes["small"]])
                              for (cc, _), (_, classes) in flows.items() if classes["small"]])
    left.set(title="flows of incasts" if incasts else "all flows")
    right.set(title="other flows, up to 100 kB")
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
    write(figure, (left, right), prefix,
           f"{config['topology']}, {config['hosts']} hosts, {config['rate'] / 1e9:g} Gbit/s:"
           f" {config['workload']}, {config['foreground']} % incasts")


def write(figure, both, prefix, title):
    """PREFIX.svg and PREFIX.png."""
    for axes in both:
        axes.grid(True, which="major", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    for suffix in ("svg", "png"):
        figure.savefig(f"{prefix}.{suffix}", dpi=130)
    pyplot.close(figure)
