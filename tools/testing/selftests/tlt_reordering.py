#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A path on which packets overtake each other, and nothing is lost: packet spraying, a bond in
round-robin mode, two queues by DSCP.

	a (client, sends) ---- wire: some packets take longer ---- b (server)

An echo that overtakes data takes it for lost.  The D-SACKs that follow show that it was not.
"""
import time

from lab import tap
from lab.codepoints import DATA
from lab.tap import case, equal, true, within
from lab.wire.packet import data
from lab.wire.wire import Wire

COUNT = 5_000_000
# Packets in flight when the path changes, in the first round trip that it has to learn from.
WINDOW = 100


class Path:
    """1 Gbit/s.  Every other packet, or red data, takes `more` seconds longer."""

    def __init__(self, kind, more):
        self.kind, self.more, self.busy, self.n = kind, more, {True: 0.0, False: 0.0}, 0

    def __call__(self, p):
        begin = max(self.busy[p.from_a], p.time)
        self.busy[p.from_a] = begin + (len(p.raw) + 38) * 8 / 1e9
        p.late = self.busy[p.from_a] - p.time
        self.n += 1
        late = self.n % 2 if self.kind == "spray" else p.len and p.kind == DATA
        p.late += self.more * bool(late)
        return False


def warmed_up(wire, size):
    """A client and a server that have exchanged `size` bytes before the path changes."""
    wire.align()
    client, server = wire.connect()
    wire.transfer(client, server, size)
    wire.run(10e-3)
    wire.mark()
    return client, server


def sent_again(wire):
    """The number of a's packets that were retransmitted, clocks not counted."""
    sent = [p for p in data(wire.from_a()) if p.len > 1]
    return len(sent) - len({p.seq for p in sent})


def over(path, cc):
    """(seconds that COUNT bytes take, packets sent again, connections that have learnt)."""
    with Wire(cc=cc) as wire:
        client, server = warmed_up(wire, 200_000)
        wire.rule = path
        begun = time.clock_gettime(time.CLOCK_MONOTONIC)
        true(wire.transfer(client, server, COUNT, 20.0), "all data arrives")
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - begun
        equal(wire.a.netstat("TCPTimeouts"), 0, "RTOs")
        return took, sent_again(wire), wire.a.greenlane()["Reordered"]


@case("TLT is as fast as its base, and retransmits about as few packets", base=("cubic", "dctcp"),
      kind=("spray", "red slower"), more=(0.0, 5e-6, 30e-6, 100e-6))
def as_the_base(base, kind, more):
    own = over(Path(kind, more), base)
    took, again, _ = over(Path(kind, more), f"tlt_{base}")
    print(f"# {COUNT * 8e-6 / took:.0f} Mbit/s, {base} {COUNT * 8e-6 / own[0]:.0f}; sent again"
          f" {again}, {own[1]}")
    true(took <= own[0] / 0.95, "rate of at least 0.95 of the base's")
    true(again < 2 * own[1] + WINDOW, f"retransmissions: {again}, the base's {own[1]}")


@case("bursts that their last packet overtakes: retransmitted in the first burst only",
      base=("cubic", "dctcp"), packets=(2, 3, 5, 10))
def short_bursts(base, packets):
    with Wire(cc=f"tlt_{base}") as wire:
        client, server = warmed_up(wire, 14_480)
        wire.rule = Path("red slower", 30e-6)
        # TCP sees no reordering in the shortest: all late packets have been retransmitted before
        # their ACK arrives.
        for _ in range(30):
            true(wire.transfer(client, server, packets * 1448), "a burst arrives")
            wire.run(5e-3)
        within(sent_again(wire), 1, 3, "retransmitted packets")
        equal(wire.a.greenlane()["Reordered"], 1, "Reordered")


@case("Reordered counts a connection that has detected reordering", more=(30e-6, 0.0))
def counted(more):
    equal(over(Path("red slower", more), "tlt_cubic")[2], int(more > 0), "Reordered")


@case("after reordering is detected, losses need no RTO", base=("cubic", "dctcp", "reno"))
def losses(base):
    path, lost = Path("red slower", 30e-6), []

    def rule(p):
        path(p)
        # A burst of the tail, once the path is known: its red packets.
        drop = p.from_a and p.len and p.kind == DATA and path.n > 3000 and len(lost) < 40
        if drop:
            lost.append(p)
        return drop
    over(rule, f"tlt_{base}")
    true(lost, "data is lost")


if __name__ == "__main__":
    tap.main()
