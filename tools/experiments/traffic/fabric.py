# SPDX-License-Identifier: GPL-2.0
"""The switches' counters of several runs (experiments.traffic.play), as values of a result row."""

import collections


def ports(results, qdisc="color"):
    """Losses, marks and peak backlog over all runs, switches and ports.  Counters are sums over the
    runs, peaks are maxima.  Without such a port, no values."""
    total = collections.Counter()
    for result in results:
        for kinds in result["switches"].values():
            for name, value in kinds.get(qdisc, {}).items():
                total[name] = max(total[name], value) if "peak" in name else total[name] + value
    if not total:
        return {}
    found = {"drops": total["drops"], "peak": total["queue.peak_backlog"]}
    if "pause.off" in total:
        # Includes frames to hosts.  The time for which hosts were paused is in their own ports.
        found.update(pauses=total["pause.off"], paused=total["pause.paused.0"])
    colours = ("green", "yellow", "red")
    found["marks"] = sum(total[f"colors.{colour}.marks"] for colour in colours)
    for colour in colours:
        found[f"drops_{colour}"] = sum(value for name, value in total.items()
                                       if name.startswith(f"colors.{colour}.drops"))
        found[f"bytes_{colour}"] = total[f"colors.{colour}.bytes"]
        found[f"packets_{colour}"] = total[f"colors.{colour}.packets"]
    everything = sum(found[f"bytes_{colour}"] for colour in colours)
    if everything:
        found["important"] = found["bytes_green"] / everything
        found["important_loss"] = found["drops_green"] / max(1, found["packets_green"])
    return found
