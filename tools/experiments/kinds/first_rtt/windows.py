# SPDX-License-Identifier: GPL-2.0
"""Utilisation and queue of the receiver's port in the first RTT of each burst."""

import bisect


def _overlap(begin, end, window):
    return max(0, min(end, window[1]) - max(begin, window[0]))


def _windows(packets, config):
    """The first RTT of each burst at the port: [begin, end].

    From the burst's first packet that is not a SYN, to a base round trip after the first packet of
    the sender that starts last.
    """
    silence, last = config["gap"] // 2, -config["gap"]
    windows, here = [], set()
    for packet in packets:
        if packet.syn:
            continue
        if packet.arrived - last >= silence:
            windows.append([packet.arrived, 0])
            here = set()
        last = packet.sent or packet.arrived
        if packet.port not in here:
            here.add(packet.port)
            windows[-1][1] = packet.arrived + 4 * config["delay"]
    # The first windows may be from the opening of the connections.
    return windows[-config["rounds"]:]


def first_rtt(packets, config):
    """For each burst's first RTT: utilisation, mean queue, peak queue."""
    windows = _windows(packets, config)
    begins = [begin for begin, _ in windows]
    used, queue, peak = ([0] * len(windows) for _ in range(3))
    for packet in packets:
        i = bisect.bisect_right(begins, packet.arrived) - 1
        if i < 0 or not packet.sent:
            continue
        length = windows[i][1] - windows[i][0]
        done = packet.sent + packet.length * 8 * 10**9 // config["rate"]
        used[i] += _overlap(packet.sent, done, windows[i]) / length
        queue[i] += packet.length * _overlap(packet.arrived, packet.sent,
                                             windows[i]) / length
        if packet.arrived < windows[i][1]:
            # The packets before it in the queue, and the packet itself.
            ahead = (packet.sent - packet.arrived) * config["rate"] // (8 * 10**9)
            peak[i] = max(peak[i], ahead + packet.length)
    return {"used": used, "queue": queue, "peak": peak}
