# SPDX-License-Identifier: GPL-2.0
"""An attacker on the path of a connection, which knows its sequence numbers."""
from lab.wire import packet as pkt
from lab.wire.packet import ACK

FAR = 1 << 29           # bytes; more than the window of any test
# Errors in the numbers of an off-path attacker; one that guesses both equals one on the path.
OFF_PATH = ({"seq": FAR}, {"seq": -FAR}, {"ack": FAR}, {"ack": -FAR}, {"seq": FAR, "ack": -FAR})


class Attacker:
    """Forges packets of one connection."""

    def __init__(self, wire, client, server):
        self.wire = wire
        self.ends = {True: client.getsockname()[:2], False: server.getsockname()[:2]}
        self.right = {}         # {sent by a: (next sequence number, acknowledgment)}
        self.sent = 0
        self.watch()

    def learn(self, p):
        """Save the numbers that follow this packet."""
        self.right[p.from_a] = (p.end + bool(p.flags & pkt.SYN), p.ack)

    def is_of(self, p):
        """Does the packet belong to this connection?"""
        return (p.sport, p.dport) == (self.ends[p.from_a][1], self.ends[not p.from_a][1])

    def watch(self):
        """Learn from the last packet of each direction that was not dropped."""
        left = {True, False}
        for p in reversed(self.wire.seen):
            if p.from_a in left and not p.dropped and self.is_of(p):
                self.learn(p)
                left.discard(p.from_a)
            if not left:
                break

    def forge(self, from_a, dscp, options=b"", seq=0, ack=0, payload=b""):
        """Inject a packet; `seq` and `ack` are added to the correct numbers."""
        right = self.right[from_a]
        src, dst = self.ends[from_a], self.ends[not from_a]
        self.wire.inject(self.wire.b if from_a else self.wire.a, pkt.make(
            self.wire.version, src[0], dst[0], src[1], dst[1], right[0] + seq, right[1] + ack,
            flags=ACK, payload=payload, dscp=dscp, window=60000, options=options))
        self.sent += 1
