# SPDX-License-Identifier: GPL-2.0
"""Checks of the credits, requests and data of an xpass connection on a wire."""
import time

from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.tap import Failed, equal, true
from lab.wire.packet import ACK, FIN, SYN
from lab.wire.wire import MSS, pattern

RETRY = 0x80000000      # in the third word of a request: all credits are lost
WANT = (1 << 21) - 1    # in the third word: the number of packets that wait
ACCEPTED = 0x80000000   # in the second word of a credit: RD_ACCEPTED, and the packet is no credit
BUSY = 0x40000000       # in the second word: the link has many receivers
CLOSED = 0x20000000     # with ACCEPTED: RD_CLOSED, no more credits will be sent

# TCP's counters of duplicate ACKs, losses and duplicate data.
TROUBLE = ("TCPTimeouts", "TCPLossProbes", "TCPFastRetrans", "TCPSackRecovery", "TCPDSACKRecv",
           "TCPDSACKOfoRecv", "TCPSackShiftFallback", "TCPChallengeACK", "TCPOFOQueue",
           "PAWSEstab", "TCPSACKDiscard")


RATE = 1000             # Mbit/s: a credit every 12.9 us (IPv4) at most
RTT = 200e-6            # s, with far(): 15 credits in a round trip at that rate


def far(wire):
    """Set the rate to RATE, and the round trip to RTT, which exceeds the guest's own delays."""
    wire.delay = RTT / 2
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.xpass_rate", RATE)


def gap(wire):
    """The interval of credits at RATE, s: transmission times of a credit and of its data packet."""
    ip = 20 if wire.version == 4 else 40
    return (ip + 28 + 38 + ip + 32 + MSS[wire.version] + 38) * 8e-6 / RATE


def second_word(packet):
    """The second word of a credit: flags, and ns until the next one; 0 if there is no such word."""
    return (packet.words[1:] or [0])[0]


def is_credit(packet):
    """Does the packet permit the other end to send a data packet?"""
    return packet.kind == CREDIT and not second_word(packet) & ACCEPTED


def is_closed(packet):
    """Does the packet announce that its sender sends no more credits?"""
    return packet.kind == CREDIT and bool(second_word(packet) & CLOSED)


def wait(packet):
    """The time until the next credit that this one announces, s; 0 if it announces none."""
    return (second_word(packet) & ~(ACCEPTED | BUSY | CLOSED)) * 1e-9


def credits(packets):
    """The numbers of the credits among them."""
    return [p.words[0] for p in packets if is_credit(p)]


def requests(packets):
    """The words of each request: (last credit, credits, wanted)."""
    return [p.words for p in packets if p.kind == REQUEST]


def well_formed(packets):
    """Fail unless credits and requests are pure ACKs with their words, and all other packets are
    scheduled."""
    for p in packets:
        words = {CREDIT: (1, 2), REQUEST: (3,)}.get(p.kind, (0,))
        if p.kind not in (SCHEDULED, CREDIT, REQUEST) or len(p.words) not in words or (
                p.words and (p.len or p.flags != ACK)):
            raise Failed(f"not a packet of xpass: {p!r}")


def paid(wire, from_a=True):
    """Fail unless each packet with data has a credit of its own that arrived before it was sent;
    returns (credits that arrived, packets with data).  wire.seen must have the whole connection,
    and wire.delay must not have changed during it."""
    size = MSS[wire.version]
    came = [p.time + wire.delay for p in wire.seen
            if is_credit(p) and p.from_a != from_a and not p.dropped]
    sent = [p for p in wire.seen if p.len and p.from_a == from_a]
    for number, p in enumerate(sent):
        true(p.len <= size, f"more than an MSS: {p!r}")
        true(sum(t <= p.time for t in came) > number, f"packet {number + 1} without a credit: {p!r}")
    return len(came), len(sent)


def numbered(packets):
    """Fail unless credits are numbered 1, 2, 3 ..."""
    seen = credits(packets)
    equal(seen, list(range(1, len(seen) + 1)), "numbers of credits")


def silent(wire, seconds=1.0):
    """Fail if any packet is sent in `seconds`, after 0.3 s in which each end may send one delayed
    ACK."""
    before = len(wire.seen)
    wire.run(0.3)
    for p in wire.seen[before:]:
        true(not p.len and p.flags == ACK and p.kind == SCHEDULED, f"a delayed ACK: {p!r}")
    true(len(wire.seen) - before <= 2, "one from each end")
    before = len(wire.seen)
    wire.run(seconds)
    equal((wire.seen[before:], wire.others), ([], []), "packets in the silence")


def segments(ns):
    """TCP's counters of segments (in, out), including SYN and SYN-ACK."""
    with ns, open("/proc/thread-self/net/snmp", encoding="ascii") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    tcp = dict(zip(names, values))
    return int(tcp["InSegs"]), int(tcp["OutSegs"])


def unseen_by_tcp(wire):
    """Fail if TCP has counted a credit or a request as a segment, or has counted any TROUBLE."""
    for ns, own, theirs in ((wire.a, wire.from_a(), wire.from_b()),
                            (wire.b, wire.from_b(), wire.from_a())):
        equal(segments(ns), tuple(sum(p.kind not in (CREDIT, REQUEST) for p in packets)
                                  for packets in (theirs, own)),
              f"{ns.name}: segments in and out, without credits and requests")
        for name in TROUBLE:
            equal(ns.netstat(name), 0, f"{ns.name}: {name}")


def handshake(packets):
    """Fail unless the first three packets are SYN, SYN-ACK and ACK, all scheduled."""
    equal([(p.flags & (SYN | ACK | FIN), p.kind) for p in packets[:3]],
          [(SYN, SCHEDULED), (SYN | ACK, SCHEDULED), (ACK, SCHEDULED)], "handshake")


def arrivals(wire, left, seconds):
    """Wait until each socket has read its bytes of `left`; returns {socket: time, s}."""
    done = {}

    def read():
        for server in left.keys() - done.keys():
            try:
                left[server] -= len(server.recv(1 << 20))
            except BlockingIOError:
                continue
            if not left[server]:
                done[server] = time.monotonic()
        return len(done) == len(left)
    true(wire.run(seconds, read), "all arrives")
    return done


def messages(wire, *packets):
    """Send messages of these numbers of packets, each on its own connection, with 10 us between
    their starts; returns the arrival of each, s after the last start."""
    listener = wire.listen(1001)
    pairs = [wire.connect(1001, listener=listener) for _ in packets]
    for pair in pairs:          # grow the receive window, which limits a sender's request
        true(wire.transfer(*pair, 500_000), "arrives")
    wire.run(0.1)
    wire.mark()
    left = {}
    for (client, server), n in zip(pairs, packets):
        left[server] = n * MSS[wire.version]
        equal(client.send(pattern(left[server])), left[server], "sent")
        wire.run(10e-6)
    began = time.monotonic()
    done = arrivals(wire, left, 2.0)
    return [done[server] - began for _, server in pairs]
