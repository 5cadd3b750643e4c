# SPDX-License-Identifier: GPL-2.0
"""An attacker who carries a connection's packets, and so knows its numbers."""
from lab.wire import packet as pkt
from lab.wire.packet import ACK

FAR = 1 << 29           # further than any window of a test
# What is wrong of what comes from beside the path: who guesses both right is on it.
OFF_PATH = ({"seq": FAR}, {"seq": -FAR}, {"ack": FAR}, {"ack": -FAR}, {"seq": FAR, "ack": -FAR})


class Attacker:
    """Forges packets of one connection."""

    def __init__(self, wire, client, server):
        self.wire = wire
        self.ends = {True: client.getsockname()[:2], False: server.getsockname()[:2]}
        self.right = {}         # from a: (next sequence number, acknowledgment)
        self.sent = 0
        self.watch()

    def learn(self, p):
        """A packet has passed."""
        self.right[p.from_a] = (p.end + bool(p.flags & pkt.SYN), p.ack)

    def is_of(self, p):
        """Is it this connection's?"""
        return (p.sport, p.dport) == (self.ends[p.from_a][1], self.ends[not p.from_a][1])

    def watch(self):
        """Learn from the last packet each way that got through."""
        left = {True, False}
        for p in reversed(self.wire.seen):
            if p.from_a in left and not p.dropped and self.is_of(p):
                self.learn(p)
                left.discard(p.from_a)
            if not left:
                break

    def forge(self, from_a, dscp, options=b"", seq=0, ack=0, payload=b""):
        """Send one, beside the right numbers by that much."""
        right = self.right[from_a]
        src, dst = self.ends[from_a], self.ends[not from_a]
        self.wire.inject(self.wire.b if from_a else self.wire.a, pkt.make(
            self.wire.version, src[0], dst[0], src[1], dst[1], right[0] + seq, right[1] + ack,
            flags=ACK, payload=payload, dscp=dscp, window=60000, options=options))
        self.sent += 1
