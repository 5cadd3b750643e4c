# SPDX-License-Identifier: GPL-2.0
"""What a wire tells of an xpass connection: its credits, requests and data."""
import time

from lab.codepoints import CREDIT, REQUEST, SCHEDULED
from lab.tap import Failed, equal, true
from lab.wire.packet import ACK, FIN, SYN
from lab.wire.wire import MSS, pattern

RETRY = 0x80000000      # in the third word of a request: all credits are lost
HEARD = 0x80000000      # in the second word of a credit: it is none, the request was heard
BUSY = 0x40000000       # there: the link has many receivers
GONE = 0x20000000       # with HEARD: there will be no more credits

# What TCP counts when it sees a duplicate ACK, a loss or a byte twice.
TROUBLE = ("TCPTimeouts", "TCPLossProbes", "TCPFastRetrans", "TCPSackRecovery", "TCPDSACKRecv",
           "TCPDSACKOfoRecv", "TCPSackShiftFallback", "TCPChallengeACK", "TCPOFOQueue",
           "PAWSEstab", "TCPSACKDiscard")


RATE = 1000             # Mbit/s: a credit every 12.9 us (IPv4) at most
RTT = 200e-6            # with far(): 15 credits a round trip at that rate


def far(wire):
    """A longer wire, with times that are told apart from those of the guest."""
    wire.delay = RTT / 2
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.xpass_rate", RATE)


def gap(wire):
    """Between two credits at that rate: the time of one and of the packet that it lets come, s."""
    ip = 20 if wire.version == 4 else 40
    return (ip + 28 + 38 + ip + 32 + MSS[wire.version] + 38) * 8e-6 / RATE


def second_word(packet):
    """Of a credit: flags and the time until the next one; 0 if it has none."""
    return (packet.words[1:] or [0])[0]


def is_credit(packet):
    """It lets the other end send a packet."""
    return packet.kind == CREDIT and not second_word(packet) & HEARD


def is_gone(packet):
    """It says that its sender sends no more credits."""
    return packet.kind == CREDIT and bool(second_word(packet) & GONE)


def wait(packet):
    """How long until the next credit, as this one says, s; 0 if it does not."""
    return (second_word(packet) & ~(HEARD | BUSY | GONE)) * 1e-9


def credits(packets):
    """The numbers of the credits among them."""
    return [p.words[0] for p in packets if is_credit(p)]


def requests(packets):
    """The words of the requests among them: (last credit, credits, wanted)."""
    return [p.words for p in packets if p.kind == REQUEST]


def well_formed(packets):
    """Credits and requests are pure ACKs with their words, all else is scheduled."""
    for p in packets:
        words = {CREDIT: (1, 2), REQUEST: (3,)}.get(p.kind, (0,))
        if p.kind not in (SCHEDULED, CREDIT, REQUEST) or len(p.words) not in words or (
                p.words and (p.len or p.flags != ACK)):
            raise Failed(f"not a packet of xpass: {p!r}")


def paid(wire, from_a=True):
    """Every packet with data has a credit of its own, which has come before it; returns
    (credits that came, packets with data).  All of the connection must be in wire.seen,
    and wire.delay the same for all of it."""
    size = MSS[wire.version]
    came = [p.time + wire.delay for p in wire.seen
            if is_credit(p) and p.from_a != from_a and not p.dropped]
    sent = [p for p in wire.seen if p.len and p.from_a == from_a]
    for number, p in enumerate(sent):
        true(p.len <= size, f"more than an MSS: {p!r}")
        true(sum(t <= p.time for t in came) > number, f"packet {number + 1} without a credit: {p!r}")
    return len(came), len(sent)


def numbered(packets):
    """Credits are 1, 2, 3 ..."""
    seen = credits(packets)
    equal(seen, list(range(1, len(seen) + 1)), "numbers of credits")


def silent(wire, seconds=1.0):
    """Nothing is on the wire for that long, but TCP's own delayed ACK before."""
    before = len(wire.seen)
    wire.run(0.3)
    for p in wire.seen[before:]:
        true(not p.len and p.flags == ACK and p.kind == SCHEDULED, f"a delayed ACK: {p!r}")
    true(len(wire.seen) - before <= 2, "one from each end")
    before = len(wire.seen)
    wire.run(seconds)
    equal((wire.seen[before:], wire.others), ([], []), "packets in the silence")


def segments(ns):
    """(in, out): what TCP has counted, SYN and SYN-ACK included."""
    with ns, open("/proc/thread-self/net/snmp", encoding="ascii") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    tcp = dict(zip(names, values))
    return int(tcp["InSegs"]), int(tcp["OutSegs"])


def unseen_by_tcp(wire):
    """TCP has seen no credit and no request, and nothing has worried it."""
    for ns, own, theirs in ((wire.a, wire.from_a(), wire.from_b()),
                            (wire.b, wire.from_b(), wire.from_a())):
        equal(segments(ns), tuple(sum(p.kind not in (CREDIT, REQUEST) for p in packets)
                                  for packets in (theirs, own)),
              f"{ns.name}: segments in and out, without credits and requests")
        for name in TROUBLE:
            equal(ns.netstat(name), 0, f"{ns.name}: {name}")


def handshake(packets):
    """SYN, SYN-ACK and the third packet."""
    equal([(p.flags & (SYN | ACK | FIN), p.kind) for p in packets[:3]],
          [(SYN, SCHEDULED), (SYN | ACK, SCHEDULED), (ACK, SCHEDULED)], "handshake")


def arrivals(wire, left, seconds):
    """Wait until each socket has read the bytes that are left for it: {socket: when it had}."""
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
    """Messages of so many packets, each on a connection of its own, which begin one after the
    other; when each has arrived, s after the last one has begun."""
    listener = wire.listen(1001)
    pairs = [wire.connect(1001, listener=listener) for _ in packets]
    for pair in pairs:          # opens the window, or a sender asks for no more than that
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
