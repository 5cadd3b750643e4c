# SPDX-License-Identifier: GPL-2.0
"""The row of a run (percentiles, the ratio to the ideal, counters), and the table of the rows."""

import math

HEADER = 14 + 20 + 20 + 12      # Ethernet, IPv4, TCP with timestamps
HEADER_V6 = HEADER + 20
MTU = 1500


def line_ns(config, flows):
    """The time from the start of the first packet's transmission to the start of the last one's.

    All bytes, headers included, at line rate, except the last packet, which may be the longest: a
    port of the lab delivers a packet when its transmission starts.
    """
    header = HEADER_V6 if config["ipv6"] else HEADER
    payload = MTU + 14 - header
    segments = math.ceil(config["bytes"] / payload)
    wire = flows * (config["bytes"] + segments * header)
    return (wire - min(config["bytes"], payload) - header) * 8 * 10**9 / config["rate"]


def ideal_ns(config, flows, percent=100):
    """The ideal: the minimum time in which `percent` of the flows can complete.

    Their bytes at line rate, plus propagation, also of a request; a lower bound for any transport
    and any order of the flows.
    """
    paths = 2 if config.get("request") else 1
    return line_ns(config, math.ceil(flows * percent / 100)) + paths * 2 * config["delay"]


def percentile(ordered, percent):
    """The nearest-rank percentile: the smallest value that `percent` of all do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def jain(shares):
    """Jain's index of fairness: 1 if all shares are equal, 1/n if one flow has everything."""
    if not any(shares):
        return 0
    # Rounding must not exceed 1.
    return min(1, sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares)))


def _port(port):
    """The counters of the switch port; color's per-colour counters only if it has them."""
    qdisc = port[0] if port else {}
    colours = qdisc.get("colors", {})
    found = {
        "drops": qdisc.get("drops", 0),
        "peak": qdisc.get("queue", {}).get("peak_backlog"),
        "marks": sum(c["marks"] for c in colours.values()) if colours else None,
    }
    for colour, stats in colours.items():
        found[f"drops_{colour}"] = sum(stats["drops"].values())
        found[f"bytes_{colour}"] = stats["bytes"]
    total = sum(c["bytes"] for c in colours.values())
    found["important"] = colours["green"]["bytes"] / total if total else None
    return found


def summary(config, result):
    """A run's row: a flat dict of numbers; times are in ns."""
    config = dict(config, bytes=result.get("bytes", config["bytes"]))
    if "fct_ns" not in result:
        return dict(result, ideal=ideal_ns(config, result["flows"]))
    times = sorted(t for r in result["fct_ns"] for t in r if t)
    ideal = ideal_ns(config, result["flows"], 99.9)
    tcp = result["senders"]["tcp"]
    row = {
        "cc": result["cc"], "flows": result["flows"], "samples": len(times),
        "unfinished": result["unfinished"], "ideal": ideal,
        "timeouts": tcp.get("TCPTimeouts", 0),
        "probes": tcp.get("TCPLossProbes", 0),
        "probes_repaired": tcp.get("TCPLossProbeRecovery", 0),
        "retransmitted": tcp.get("RetransSegs", 0),
        "host_drops": tcp["softnet_drops"] + tcp.get("TCPBacklogDrop", 0),
        "pauses": result.get("pauses"), "paused": result.get("paused"),
        "cpu_s": result["cpu_s"], "real_s": result["real_s"],
    }
    row.update(_port(result["port"]))
    for name, percent in (("p50", 50), ("p99", 99), ("p99.9", 99.9), ("max", 100)):
        row[name] = percentile(times, percent) if times else math.nan
    row["mean"] = sum(times) / len(times) if times else math.nan
    row["ratio"] = row["p99.9"] / ideal
    for name, value in result.get("segments", {}).items():
        row[f"segment_{name}"] = value
    if result["bulk_flows"]:
        row["bulk_gbit"] = 8 * result["bulk_bytes"] / result["elapsed_ns"]
    return row


# (title, key of the row, format); a row without the key has "-".
COLUMNS = (
    ("cc", "cc", "{}"), ("flows", "flows", "{}"),
    ("p50 ms", "p50", "ms"), ("p99 ms", "p99", "ms"),
    ("p99.9 ms", "p99.9", "ms"), ("max ms", "max", "ms"),
    ("x ideal", "ratio", "{:.2f}"), ("RTOs", "timeouts", "{}"),
    ("probes", "probes", "{}"), ("drop red", "drops_red", "{}"),
    ("yellow", "drops_yellow", "{}"), ("green", "drops_green", "{}"),
    ("marks", "marks", "{}"), ("peak kB", "peak", "kB"),
    ("important", "important", "{:.1%}"), ("cpu s", "cpu_s", "{:.1f}"),
)

# Behind the others, if ports pause: Xoff frames, and the time of all ports that they have paused.
PAUSES = (("pauses", "pauses", "{}"), ("paused ms", "paused", "ms"))


def _cell(row, key, form):
    value = row.get(key)
    if value is None:
        return "-"
    if form == "ms":
        return f"{value / 1e6:.3f}"
    if form == "us":
        return f"{value / 1000:.1f}"
    if form == "kB1":
        return f"{value / 1000:.1f}"
    if form == "kB":
        return f"{value / 1000:.0f}"
    return form.format(value)


def table(rows, columns=COLUMNS):
    """The rows as a text table, with an empty row between congestion controls."""
    if any(row.get("pauses") is not None for row in rows) and PAUSES[0] not in columns:
        columns += PAUSES
    if any("bulk_gbit" in row for row in rows):
        columns += (("bulk Gbit/s", "bulk_gbit", "{:.1f}"),)
    if any("segment_p99" in row for row in rows):
        columns += (("segment p50 ms", "segment_p50", "ms"), ("p99", "segment_p99", "ms"),
                    ("p99.9", "segment_p99.9", "ms"), ("max", "segment_max", "ms"))
    cells = [[title for title, _, _ in columns]]
    for row in rows:
        cells.append([_cell(row, key, form) for _, key, form in columns])
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines, previous = [], None
    for line in cells:
        if previous not in (None, "cc", line[0]):
            lines.append("")
        previous = line[0]
        lines.append(line[0].ljust(widths[0]) + "  " + "  ".join(
            text.rjust(width) for text, width in zip(line[1:], widths[1:])))
    return "\n".join(lines)
