# SPDX-License-Identifier: GPL-2.0
"""Packets that no host would send: every field may be wrong, and every layer cut.

A Forger is on the path: it knows the last numbers of both ends, so about half
of its packets are inside a window.
"""
import struct

from lab.codepoints import (CLOCK, CREDIT, IMPORTANT, KINDS, PROBE, REPORT, REQUEST, SAYS, SCHEDULED,
                            SHARE, SHORT, TRIMMED, dscp_of)
from lab.wire import packet as pkt
from lab.wire.packet import ACK, EXID, EXPERIMENT, FIN, PSH, RST, SYN
from lab.wire.trim import HAD_FIN

OURS = KINDS * 2 + SHORT
WORDS = {CREDIT: 1, REQUEST: 3, PROBE: 4, SHARE: 1, TRIMMED: 1, REPORT: 2}
HELLOS = (IMPORTANT, SCHEDULED, SHARE)
RETRY = 1 << 31
URG = 0x20
OFFSETS = (0, 0, 0, 1, -1, 2, -2, 100, -100, 1448, -1448, 5000, -5000, 65535, 1 << 20, -(1 << 20),
           1 << 30, -(1 << 30), (1 << 31) - 1, 1 << 31)
LENGTHS = (0, 0, 0, 1, 1, 2, 100, 536, 1447, 1448, 1460)


def option(kind, data, length=None):
    """A TCP option; its length may be a lie."""
    return bytes((kind, len(data) + 2 if length is None else length)) + data


def sack(rng, ack):
    """A SACK option of any form."""
    edges = [(ack + rng.choice(OFFSETS)) & 0xffffffff for _ in range(2 * rng.randrange(5))]
    data = b"".join(struct.pack("!I", edge) for edge in edges)
    if rng.random() < 0.2:
        data = data[:rng.randrange(len(data) + 1)]
    return option(5, data, rng.choice((None,) * 4 + (0, 1, 2, 3, 9, 10, 34, 40, 255)))


def share(rng):
    """The words of a dart option: a share, an end, names; some have impossible values."""
    if rng.random() < 0.5:
        return (rng.choice((0, 1 << 31, 1 << 29, 7 << 29))
                | rng.choice((0, 1, 125, 0xfffffff, rng.randrange(1 << 28))),)
    edges = (0, 1, 2, 3, 4, 61, 63, 64, 65, 255)
    return (1 << 30 | rng.randrange(4) << 16 | rng.choice(edges) << 8 | rng.choice(edges),
            *(rng.randrange(1 << 32) for _ in range(rng.randrange(5))))


def trim(rng, kind, ack):
    """The words of a trimmed packet, or of a report whose sender acknowledges `ack`."""
    length = rng.choice((0, 1, 1448, 1448, 5000, 65535)) | rng.choice((0, 0, HAD_FIN))
    return (length,) if kind == TRIMMED else (ack, length | rng.choice((0, 1, 2, 4096)) << 16)


def words(rng, kind, said, asked):
    """A greenlane option: its words may be near the last ones (`said`), and its number that of the
    other end's last request for an answer; it may be cut, or have a wrong length."""
    count = WORDS.get(kind, 0) if rng.random() < 0.8 else rng.randrange(6)
    if kind == SHARE and rng.random() < 0.7:
        said = share(rng)
        count = len(said)
    data = EXID.to_bytes(2, "big") if rng.random() < 0.95 else rng.randbytes(2)
    code = getattr(kind, "code", 0) if rng.random() < 0.9 else rng.randrange(20)
    data += code.to_bytes(1, "big") + (bytes((0, 0, asked)) if rng.random() < 0.9 else
                                     rng.randbytes(3))
    for base in (said + (0,) * count)[:count]:
        if rng.random() < 0.4:
            base += rng.choice(OFFSETS + (RETRY, 64, -64, 65536, 65537))
        elif rng.random() < 0.1:
            base = rng.randrange(1 << 32)
        data += struct.pack("!I", base & 0xffffffff)
    if rng.random() < 0.1:
        data = data[:rng.randrange(len(data) + 1)]
    return option(EXPERIMENT, data, rng.choice((None,) * 20 + (0, 1, 2, 3, 4, 7, 8, 9, 40, 255)))


def options(rng, ack):
    """TCP options: 0 to 40 bytes, a multiple of four."""
    choice = rng.randrange(6)
    if choice < 2:
        data = b""
    elif choice == 2:
        data = sack(rng, ack)
    elif choice == 3:
        data = option(8, struct.pack("!II", rng.choice((0, 1, 1 << 31, rng.randrange(1 << 32))),
                                     rng.randrange(1 << 32)))
    elif choice == 4:
        data = rng.randbytes(rng.randrange(41))
    else:
        data = b"".join(rng.choice((b"\1", b"\0", sack(rng, ack), option(2, b"\0\1"),
                                    option(3, b"\16"), option(4, b""), option(19, bytes(16)),
                                    option(29, bytes(14)), option(30, rng.randbytes(10)),
                                    option(34, rng.randbytes(8))))
                        for _ in range(rng.randrange(1, 5)))
    data = data[:40]
    return data + b"\1" * (-len(data) % 4)


def ipv4(rng, src, dst, dsfield, proto, segment):
    """IPv4 packets with this payload: options, fragments, wrong lengths."""
    extra = b""
    if rng.random() < 0.1:
        extra = rng.choice((b"\1\1\1\0", b"\x44\4\5\0", b"\x94\4\0\0", b"\x07\7\4" + bytes(5),
                            b"\x83\7\4" + dst + b"\0", rng.randbytes(4 * rng.randrange(11))))[:40]
    total = 20 + len(extra) + len(segment)
    total = rng.choice((total,) * 12 + (total - 1, total + 1, 20, 0, 65535, total // 2))
    head = 0x40 | rng.choice((5 + len(extra) // 4,) * 12 + (5, rng.randrange(16)))
    ident = rng.randrange(1 << 16)

    def packet(offset, part, length):
        ip = struct.pack("!BBHHHBBH", head, dsfield, length, ident, offset,
                         rng.choice((64, 64, 64, 1)), proto, 0) + src + dst + extra
        check = pkt.checksum(ip) if rng.random() < 0.98 else 0
        return ip[:10] + struct.pack("!H", check) + ip[12:] + part
    if rng.random() < 0.1 and len(segment) > 8:
        cut = rng.randrange(1, len(segment) // 8 + 1) * 8
        pieces = [packet(0x2000, segment[:cut], 20 + len(extra) + cut),
                  packet(cut // 8, segment[cut:], 20 + len(extra) + len(segment) - cut)]
        rng.shuffle(pieces)
        return pieces[:rng.choice((1, 2, 2, 2))]
    return [packet(rng.choice((0x4000, 0x4000, 0, 0x8000)), segment, max(total, 0) & 0xffff)]


def ipv6(rng, src, dst, dsfield, proto, segment):
    """IPv6 packets with this payload: extension headers, fragments, wrong lengths."""
    body, following = segment, proto
    for _ in range(rng.choice((0,) * 8 + (1, 1, 2, 5))):
        kind = rng.choice((0, 43, 60, 60, 44, 51, 59, 135))
        if kind == 44:
            body = struct.pack("!BBHI", following, 0, rng.choice((0, 1, 8, 0xfff8)),
                               rng.randrange(1 << 32)) + body
        else:
            size = rng.choice((0, 0, 1, 2, 255))
            fill = rng.choice((b"\1\4" + bytes(4), bytes(6), b"\xc2\4\0\1\0\0", b"\5\2\0\0\1\0",
                               rng.randbytes(6)))
            body = bytes((following, size)) + (fill + bytes(8 * min(size, 4))) + body
        following = kind
    length = len(body)
    length = rng.choice((length,) * 12 + (length - 1, length + 1, 0, 65535, length // 2))

    def packet(next_header, payload, size):
        label = rng.choice((0, rng.randrange(1 << 20)))
        return struct.pack("!IHBB", 6 << 28 | dsfield << 20 | label, max(size, 0) & 0xffff,
                           next_header, rng.choice((64, 64, 64, 0))) + src + dst + payload
    if rng.random() < 0.1 and len(body) > 8:
        cut = rng.randrange(1, len(body) // 8 + 1) * 8
        ident = rng.randrange(1 << 32)
        pieces = [struct.pack("!BBHI", following, 0, 1, ident) + body[:cut],
                  struct.pack("!BBHI", following, 0, cut & 0xfff8, ident) + body[cut:]]
        rng.shuffle(pieces)
        return [packet(44, piece, len(piece)) for piece in pieces[:rng.choice((1, 2, 2, 2))]]
    return [packet(following, body, length)]


class Forger:
    """Forges packets between two addresses (binary); knows the numbers of each end."""

    def __init__(self, version):
        self.version = version
        self.right = {}         # {(source, its port, port): (next sequence number, ack)}
        self.said = {}          # {(source, its port, port, kind): words of the last option}
        self.asked = {}         # {(source, its port, port): number of the last clock or probe}

    def learn(self, p):
        """Save the numbers that follow this packet, and the words of its option."""
        start = 12 if self.version == 4 else 8
        size = 4 if self.version == 4 else 16
        src = bytes(p.raw[start:start + size])
        self.right[src, p.sport, p.dport] = (p.end + bool(p.flags & (SYN | FIN)) & 0xffffffff,
                                             p.ack)
        if p.words:
            self.said[src, p.sport, p.dport, p.kind] = p.words
        if p.says in (CLOCK, PROBE):
            self.asked[src, p.sport, p.dport] = p.field & 255

    def forget(self):
        """Forget all connections: they are closed."""
        self.right.clear()
        self.said.clear()
        self.asked.clear()

    def segment(self, rng, src, dst, sport, dport, kind):
        """A TCP segment; its checksum is correct in 95 % of cases."""
        seq, ack = self.right.get((src, sport, dport), (0, 0))
        theirs = self.right.get((dst, dport, sport))
        if theirs and rng.random() < 0.7:
            ack = theirs[0]
            seq = rng.choice((seq, theirs[1]))
        if rng.random() < 0.5:
            seq += rng.choice(OFFSETS)
        if rng.random() < 0.4:
            ack += rng.choice(OFFSETS)
        if rng.random() < 0.03:
            seq, ack = rng.randrange(1 << 32), rng.randrange(1 << 32)
        seq, ack = seq & 0xffffffff, ack & 0xffffffff
        if rng.random() < (0.8 if kind in SAYS.values() else 0.05):
            said = (trim(rng, kind, ack) if kind in (TRIMMED, REPORT) else
                    self.said.get((src, sport, dport, kind), ()))
            opts = words(rng, kind, said, self.asked.get((dst, dport, sport), 0))
            opts = (opts + options(rng, ack) if rng.random() < 0.2 else opts)[:40]
            opts += b"\1" * (-len(opts) % 4)
        else:
            opts = options(rng, ack)
        flags = rng.choice((ACK,) * 12 + (ACK | PSH, SYN, SYN | ACK, FIN | ACK, ACK | URG, 0,
                                          rng.randrange(256) & ~RST))
        if rng.random() < 0.01:
            flags |= RST
        if kind in HELLOS and rng.random() < 0.3:
            flags = SYN
        doff = 5 + len(opts) // 4
        doff = rng.choice((doff,) * 15 + (rng.randrange(16),))
        window = rng.choice((0, 1, 500, 500, 500, 65535))
        payload = b"f" * rng.choice(LENGTHS if rng.random() < 0.5 or kind not in WORDS else (0,))
        tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, doff << 4 | rng.choice((0, 0, 15)),
                          flags, window, 0, rng.choice((0, 1, 65535))) + opts + payload
        if self.version == 4:
            pseudo = src + dst + struct.pack("!BBH", 0, 6, len(tcp))
        else:
            pseudo = src + dst + struct.pack("!II", len(tcp), 6)
        check = pkt.checksum(pseudo + tcp) if rng.random() < 0.95 else rng.randrange(1 << 16)
        return tcp[:16] + struct.pack("!H", check) + tcp[18:]

    def packets(self, rng, src, dst, sport, dport):
        """One forged packet, or its fragments."""
        kind = rng.choice(OURS) if rng.random() < 0.8 else rng.randrange(64)
        dsfield = dscp_of(kind) << 2 | rng.randrange(4)
        if rng.random() < 0.2:
            dsfield = rng.randrange(256)
        segment = self.segment(rng, src, dst, sport, dport, kind)
        proto = 6 if rng.random() < 0.99 else rng.choice((1, 17, 58, 59, 41, 47))
        make = ipv4 if self.version == 4 else ipv6
        made = make(rng, src, dst, dsfield, proto, segment)
        if rng.random() < 0.05:
            made = [raw[:rng.randrange(1, len(raw) + 1)] for raw in made]
        return made
