# SPDX-License-Identifier: GPL-2.0
"""What the first RTT of each round was used for, as the receiver's port sees it."""

import bisect


def _overlap(begin, end, window):
    return max(0, min(end, window[1]) - max(begin, window[0]))


def _windows(packets, config):
    """The first RTT of all senders in each round, as the port sees it.

    From the round's first packet that is no SYN, to a base round trip after the last
    sender's first: they do not begin in the same instant.
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
    # Before them connections were made.
    return windows[-config["rounds"]:]


def first_rtt(packets, config):
    """Of each round's first RTT: share of the line used; the queue's mean and peak."""
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
            # What is before it in the queue, and the packet itself.
            ahead = (packet.sent - packet.arrived) * config["rate"] // (8 * 10**9)
            peak[i] = max(peak[i], ahead + packet.length)
    return {"used": used, "queue": queue, "peak": peak}
