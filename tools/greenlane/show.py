# SPDX-License-Identifier: GPL-2.0
"""A look in 80 columns."""
import collections
import textwrap
import time

from .diagnose import name_of
from .transports import CREDITS, RATE, TAGS, kind_of, of
from .units import ago, amount, rate

WIDTH = 80


def table(head, rows):
    """A table as text; the first two columns are left-aligned, the others right."""
    if not rows:
        return []
    cells = [head] + [[str(cell) for cell in row] for row in rows]
    wide = [max(len(row[i]) for row in cells) for i in range(len(head))]
    # Only the name may be truncated.
    wide[0] = max(8, wide[0] - max(0, sum(wide) + 2 * (len(wide) - 1) - WIDTH))
    lines = []
    for row in cells:
        first = row[0] if len(row[0]) <= wide[0] else row[0][:wide[0] - 1] + "~"
        parts = [first.ljust(wide[0]), row[1].ljust(wide[1])]
        parts += [cell.rjust(wide[i + 2]) for i, cell in enumerate(row[2:])]
        lines.append("  ".join(parts).rstrip())
    return lines


def transports(look):
    """[(namespace, cc, sums)] of greenlane's connections, and of all others."""
    sums = collections.defaultdict(collections.Counter)
    for connection in look["connections"].values():
        one = sums[name_of(look, connection), connection["cc"]]
        one["connections"] += 1
        one["peer_" + connection["peer"]] += 1
        for flag in connection["flags"]:
            one[flag] += 1
        for name, count in connection["change"].items():
            if count:
                one[name] += count
        gauges = connection["gauges"]
        for name in ("credit_rate", "credits_wanted"):
            one[name] += gauges[name]
        for name in ("bdp", "senders", "divisor"):
            if gauges[name] > one[name]:
                one[name] = gauges[name]
        if not 0 < one["least"] <= connection["pacing_rate"]:
            one["least"] = connection["pacing_rate"]
    for connection in look["fallen"].values():
        sums[name_of(look, connection), connection["selected"]].update(
            {"connections": 1, "fallback": 1})
    for key, count in look["plain"].items():
        inode, cc = key.split()
        sums[name_of(look, {"ns": inode}), cc]["connections"] += count
    return [(name, cc, one) for (name, cc), one in sorted(sums.items())]


def _share(divisor):
    """1/n of the link, as the peer advertises it in 1/256."""
    return f"1/{divisor / 256:.3g}" if divisor else ""


def _connections(look):
    """One table for TLT and plain TCP, one for credit transports, one for those with a rate."""
    rows, credits, rates = [], [], []
    for name, cc, one in transports(look):
        if kind_of(cc) == TAGS:
            peers = "/".join(amount(one["peer_" + peer]) for peer in ("yes", "no"))
            clocks = one["clocks_byte"] + one["clocks_mss"]
            rows.append((name, cc, amount(one["connections"]), peers, *map(amount, (
                one["important_sent"], one["echoes"], clocks, one["marked_lost"],
                one["rearmed"]))))
        elif kind_of(cc) == RATE:
            peers = "/".join(amount(one["peer_" + peer]) for peer in ("yes", "no"))
            rates.append((name, cc, amount(one["connections"]), peers * of(cc).tagged,
                          _share(one["divisor"]), rate(one["least"]) if one["least"] else "",
                          *map(amount, (one["senders"], one["messages"], one["fallback"]))))
        elif kind_of(cc) == CREDITS:
            credits.append((name, cc, *(amount(one[key]) for key in (
                "connections", "credits_received", "credits_sent", "credit_rate",
                "credits_wanted", "unscheduled", "bdp", "fallback"))))
        else:
            rows.append((name, cc, amount(one["connections"]), "", *[""] * 5))
    lines = table(["NAMESPACE", "CC", "CONN", "PEER", "IMPORT", "ECHO", "CLOCK", "LOST",
                   "RTO"], rows)
    for others in (table(["NAMESPACE", "CC", "CONN", "CREDIT", "GIVEN", "RATE", "WAIT", "UNSCHED",
                          "BDP", "BACK"], credits),
                   table(["NAMESPACE", "CC", "CONN", "PEER", "SHARE", "RATE", "SENDERS", "MSGS",
                          "BACK"], rates)):
        lines += [""] * bool(lines and others) + others
    return lines


def _namespaces(look, everything):
    """The default and the counters of each; one row for all without counts."""
    lines, quiet = [], collections.defaultdict(list)
    for ns in look["namespaces"].values():
        change = {k: v for k, v in ns["change"].items() if v}
        if not change and not everything:
            quiet[ns["cc"]].append(ns["name"])
            continue
        lines.append(f"{ns['name']}: default {ns['cc']}")
        if everything:
            change = ns["counters"]
        # A counter and its number stay on one line.
        words = ", ".join(f"{name}={amount(count)}" for name, count in change.items())
        lines += [line.replace("=", " ") for line in textwrap.wrap(
            words, WIDTH, initial_indent="  ", subsequent_indent="  ")]
    for cc, names in quiet.items():
        which = names[0] if len(names) == 1 else f"{len(names)} namespaces"
        lines.append(f"{which}: default {cc or 'unknown'}, no counts")
    return lines


def _ports(look, everything):
    rows, idle = [], 0
    for port in sorted(look["ports"].values(), key=lambda p: (p["ns"], p["dev"])):
        change = port["change"]
        if not any(change.values()) and not everything:
            idle += 1
            continue
        numbers = port["counters"] if everything else change
        name = f"{port['dev']} in {name_of(look, port)}"
        line = port["options"].get("rate")
        for color in ("red", "yellow", "green"):
            drops = sum(v for k, v in numbers.items() if k.startswith(f"{color}_drops_"))
            rows.append((name, color, *map(amount, (
                numbers[f"{color}_packets"], numbers[f"{color}_bytes"], drops,
                numbers[f"{color}_marks"], port["backlog"][color], port["peak"][color]))))
            name = ("  " + rate(line) if line else "") if color == "red" else ""
        shaped = {band: rate(value)
                  for band, value in port["options"].get("band_rate", {}).items()}
        shaped.update({band: f"{value}pps"
                       for band, value in port["options"].get("band_pps", {}).items()})
        for band, now in port["bands"].items():
            rows.append(("  " + shaped.get(band, ""), f"band {band}",
                         *(amount(numbers[f"band{band}_{key}"])
                           for key in ("packets", "bytes", "drops")),
                         "", amount(now["backlog"]), amount(now["peak"])))
    lines = table(["PORT", "COLOUR", "PACKETS", "BYTES", "DROPPED", "MARKED", "BACKLOG",
                   "PEAK"], rows)
    if idle:
        lines.append(f"{idle} port{'s' if idle > 1 else ''}: no change")
    return lines


def _heading(look, everything):
    loaded = [f"{name} {version}".strip() for name, version in look["modules"].items()]
    lines = textwrap.wrap(f"Linux {look['kernel']}; "
                          + (", ".join(loaded) or "no module of greenlane is loaded"), WIDTH)
    lines.append(f"The plugin for tc is in {look['plugin']}." if look["plugin"] else
                 "The plugin for tc is missing (package greenlane-tools, or make tc).")
    if everything:
        lines.append("Counted since the modules were loaded.")
    elif look["since"]:
        when = time.strftime("%H:%M:%S", time.localtime(look["since"]))
        lines.append(f"Counted since {when}, {ago(look['time'] - look['since'])} ago.")
    else:
        lines.append("The first look: counted since each object was made.")
    if look["unseen"]:
        lines.append(f"{look['unseen']} processes could not be read.")
    if look["tc_failed"]:
        lines.append("tc cannot show the ports.")
    return lines


def _sentence(problem):
    return (textwrap.wrap(f"{problem.where}: {problem.text}", WIDTH, initial_indent="! ",
                          subsequent_indent="  ")
            + textwrap.wrap(problem.advice, WIDTH, initial_indent="  ",
                            subsequent_indent="  "))


def text(look, found, everything=False):
    """The whole look."""
    parts = [_heading(look, everything), _namespaces(look, everything), _connections(look),
             _ports(look, everything)]
    parts += [_sentence(problem) for problem in found] or [["No mistake found."]]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
