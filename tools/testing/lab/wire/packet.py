# SPDX-License-Identifier: GPL-2.0
"""TCP packets on the wire: parse, change and build them."""
import socket
import struct

from lab.codepoints import SAYS, dscp_of, kind_of

FIN, SYN, RST, PSH, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x08, 0x10, 0x40, 0x80

# The greenlane option: its kind (RFC 6994), and the experiment's number (net/greenlane/gl_wire.c)
EXPERIMENT, EXID = 254, 0x474c


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def option(says, *words, length=None, answer=False, field=0):
    """The greenlane option; `says` is a kind or a code, `answer` is set in a SYN-ACK, and `length`
    may be wrong."""
    return struct.pack(f"!BBHI{len(words)}I", EXPERIMENT, 8 + 4 * len(words) if length is None
                       else length, EXID, getattr(says, "code", says or 0) << 24 | answer << 16 | field,
                       *(w & 0xffffffff for w in words))


class Packet:
    """One IP packet; it has the TCP fields if it is TCP (self.tcp)."""

    def __init__(self, raw):
        self.raw = bytearray(raw)
        self.time = 0.0       # virtual seconds, set by the wire
        self.from_a = True    # direction, set by the wire
        self.dropped = False  # set by the wire
        self.version = raw[0] >> 4
        if self.version == 4:
            self.ip_len = (raw[0] & 15) * 4
            proto = raw[9]
        else:
            self.ip_len = 40
            proto = raw[6]
        self.tcp = proto == 6 and len(raw) >= self.ip_len + 20
        if not self.tcp:
            return
        t = self.ip_len
        self.sport, self.dport, self.seq, self.ack = struct.unpack_from("!HHII", raw, t)
        self.doff = (raw[t + 12] >> 4) * 4
        self.flags = raw[t + 13]
        self.window = struct.unpack_from("!H", raw, t + 14)[0]
        self.payload = bytes(raw[t + self.doff:])
        self._parse()

    def _parse(self):
        """Set sacks, says (the kind by the greenlane option's code), field and words (the option's),
        and options_at (where in self.raw greenlane options begin: a time stamp may have their
        bytes)."""
        self.sacks, self.says, self.field, self.words, self.options_at = [], None, 0, (), []
        start = self.ip_len + 20
        options, i = bytes(self.raw[start:self.ip_len + self.doff]), 0
        while i < len(options):
            kind = options[i]
            if kind == 0:
                break
            if kind == 1:
                i += 1
                continue
            if i + 1 >= len(options) or options[i + 1] < 2:
                break
            if kind == 5:
                for at in range(i + 2, min(i + options[i + 1], len(options)) - 7, 8):
                    self.sacks.append(struct.unpack_from("!II", options, at))
            if kind == EXPERIMENT and options[i + 2:i + 4] == EXID.to_bytes(2, "big"):
                end = min(i + options[i + 1], len(options))
                if end >= i + 8:
                    self.options_at.append(start + i)
                    self.says = SAYS.get(options[i + 4])
                    self.field = int.from_bytes(options[i + 6:i + 8], "big")
                self.words = tuple(int.from_bytes(options[at:at + 4], "big")
                                   for at in range(i + 8, end - 3, 4))
            i += options[i + 1]

    def set_field(self, field):
        """Overwrite the 16-bit field of the greenlane option."""
        for at in self.options_at:
            struct.pack_into("!H", self.raw, at + 6, field)
        self._parse()
        self.fix_checksum()

    @property
    def len(self):
        """Payload bytes."""
        return len(self.payload)

    @property
    def end(self):
        """Sequence number after the payload."""
        return (self.seq + self.len) & 0xffffffff

    @property
    def dsfield(self):
        """The DS field: DSCP and ECN."""
        if self.version == 4:
            return self.raw[1]
        return (self.raw[0] & 15) << 4 | self.raw[1] >> 4

    @property
    def dscp(self):
        """The DSCP, six bits."""
        return self.dsfield >> 2

    @property
    def kind(self):
        """The packet's kind, or its DSCP if no kind has that DSCP."""
        return kind_of(self.dscp, self.says, self.len or self.flags & SYN)

    @property
    def ecn(self):
        """The ECN field, two bits."""
        return self.dsfield & 3

    def set_dsfield(self, value):
        """Change the DS field, and the IPv4 header checksum."""
        if self.version == 4:
            self.raw[1] = value
            self.raw[10:12] = b"\0\0"
            self.raw[10:12] = struct.pack("!H", checksum(bytes(self.raw[:self.ip_len])))
        else:
            self.raw[0] = self.raw[0] & 0xf0 | value >> 4
            self.raw[1] = self.raw[1] & 0x0f | (value & 15) << 4

    def set_dscp(self, dscp):
        """Set the DSCP to this one, or to the default of a kind; the ECN bits stay."""
        self.set_dsfield(dscp_of(dscp) << 2 | self.ecn)

    def fix_checksum(self):
        """Compute TCP's checksum after the packet was changed."""
        t = self.ip_len
        segment = bytes(self.raw[t:])
        segment = segment[:16] + b"\0\0" + segment[18:]
        if self.version == 4:
            pseudo = bytes(self.raw[12:20]) + struct.pack("!BBH", 0, 6, len(segment))
        else:
            pseudo = bytes(self.raw[8:40]) + struct.pack("!II", len(segment), 6)
        self.raw[t + 16:t + 18] = struct.pack("!H", checksum(pseudo + segment))

    def add_options(self, options):
        """Add TCP options, of a multiple of 4 bytes, to a packet without data.  The length in the IP
        header becomes that of self.raw."""
        t = self.ip_len
        self.raw += options
        self.doff += len(options)
        self.raw[t + 12] = self.doff << 2 | self.raw[t + 12] & 15
        at, length = (2, len(self.raw)) if self.version == 4 else (4, len(self.raw) - 40)
        self.raw[at:at + 2] = struct.pack("!H", length)
        self.set_dsfield(self.dsfield)          # computes IPv4's checksum, too
        self.fix_checksum()
        self._parse()

    def checksum_ok(self):
        """Is TCP's checksum correct?"""
        t = self.ip_len
        segment = bytes(self.raw[t:])
        if self.version == 4:
            pseudo = bytes(self.raw[12:20]) + struct.pack("!BBH", 0, 6, len(segment))
        else:
            pseudo = bytes(self.raw[8:40]) + struct.pack("!II", len(segment), 6)
        return checksum(pseudo + segment) == 0

    def __repr__(self):
        if not self.tcp:
            return f"<{'>' if self.from_a else '<'} not TCP>"
        flags = "".join(n for b, n in ((SYN, "S"), (FIN, "F"), (RST, "R"), (PSH, "P"),
                                       (ACK, "."), (ECE, "E"), (CWR, "W")) if self.flags & b)
        return (f"{self.time * 1e6:9.1f} {'a>b' if self.from_a else 'b>a'} {flags:4}"
                f" seq {self.seq}+{self.len} ack {self.ack}"
                f" {self.kind}"
                f"{' sack ' + str(self.sacks) if self.sacks else ''}"
                f"{' says ' + self.says.name if self.says else ''}"
                f"{' ' + str(self.words) if self.words else ''}"
                f"{' DROPPED' if self.dropped else ''}")


def kinds(packets):
    """The kind of each packet."""
    return [p.kind for p in packets]


def data(packets):
    """The packets with payload."""
    return [p for p in packets if p.len]


def make(version, src, dst, sport, dport, seq, ack, flags=ACK, payload=b"", dscp=0,
         window=1000, options=b"", doff=None, urgent=0):
    """A packet from its parts, with correct checksums; `dscp` may be a kind."""
    dscp = dscp_of(dscp)
    if doff is None:
        doff = 5 + len(options) // 4
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xffffffff, ack & 0xffffffff,
                      doff << 4, flags, window, 0, urgent) + options + payload
    if version == 4:
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, dscp << 2, 20 + len(tcp), 1, 0x4000, 64, 6,
                         0, socket.inet_pton(socket.AF_INET, src),
                         socket.inet_pton(socket.AF_INET, dst))
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    else:
        ip = struct.pack("!IHBB16s16s", 6 << 28 | dscp << 22, len(tcp), 6, 64,
                         socket.inet_pton(socket.AF_INET6, src),
                         socket.inet_pton(socket.AF_INET6, dst))
    packet = Packet(ip + tcp)
    packet.fix_checksum()
    return packet


def tsval(p):
    """The time stamp of a packet, TSval."""
    # NOP, NOP, the option's kind and length: TCP's own order, and greenlane's.
    return struct.unpack_from("!I", p.raw, p.raw.index(b"\x01\x01\x08\x0a", p.ip_len + 20) + 4)[0]
