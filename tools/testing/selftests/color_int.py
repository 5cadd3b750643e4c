#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: `int`, which writes the highest utilisation of its path into a packet.

	   frames
	 ----------> [ color ] p0 ============ p1 --> [ color ] q0 ============ q1

The test reads the frames that leave the first port, and writes them to the second.
"""
import struct

from lab.net import frames as p
from lab.tap import case, equal, main, timed, true, within
from lab.wire import packet
from lab.wire.packet import ACK, EXID, EXPERIMENT, SYN

SOURCE = {4: "10.0.0.1", 6: "fd00::1"}
TARGET = {4: "10.0.0.2", 6: "fd00::2"}
ETHER = bytes.fromhex("020000000002020000000001")
TYPE = {4: b"\x08\x00", 6: b"\x86\xdd"}
COLLECT, ONE = 0x8000, 1024
NOP, TIMESTAMP = b"\1", bytes((8, 10)) + bytes(8)


def option(field, words=0, length=None):
    """Our option, with this half word."""
    return struct.pack("!BBHBBH", EXPERIMENT, length or 8 + 4 * words, EXID, 5, 0, field) \
        + bytes(range(1, 1 + 4 * words))


def frame(version, options, payload=b"", flags=ACK, tags=b""):
    """A TCP segment with those options, padded to words."""
    options += NOP * (-len(options) % 4)
    made = packet.make(version, SOURCE[version], TARGET[version], 1000, 2000, 77, 88, flags,
                       payload, options=options)
    return ETHER + tags + TYPE[version] + bytes(made.raw)


def field_of(got, at):
    """The utilisation field of the option at that offset."""
    return struct.unpack_from("!H", got, at)[0]


def changed(before, after):
    """Offsets at which two frames differ."""
    equal(len(before), len(after), "length")
    return [at for at, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]


def passed(sender, receiver, sent):
    """Send a frame through a port; returns the frame that is received."""
    sender.send(sent)
    got = receiver.frames(1)
    equal(len(got), 1, "received frames")
    return got[0][1]


class Way:
    """Two ports."""

    def __init__(self, first, second):
        p.port(first)
        p.veth("q0", "q1")
        p.tc(f"qdisc add dev q0 root handle 1: color {second}")
        self.pairs = [(p.Sender(a), p.Receiver(b)) for a, b in (("p0", "p1"), ("q0", "q1"))]

    def __call__(self, sent):
        for pair in self.pairs:
            sent = passed(*pair, sent)
        return sent

    def close(self):
        """Close the sockets, which hold the namespace."""
        for pair in self.pairs:
            for end in pair:
                end.close()


# Utilisation by one packet alone: its length divided by rate and time (B T).
def alone(length, bdp):
    """Utilisation by one packet, in units of 2^-10."""
    return length * ONE // bdp


@case("a packet with COLLECT gets the higher utilisation of two ports; its checksum stays valid",
      version=(4, 6))
def two_ports(version):
    # B T of 1 MB at 100 Gbit/s and 80 us, and of 100 kB at 10 Gbit/s
    for first, second in ((100_000, 1_000_000), (1_000_000, 100_000)):
        way = Way(*(f"rate {bdp // 10_000}gbit int 80us" for bdp in (first, second)))
        for head in (b"", NOP, NOP * 2, NOP * 3, TIMESTAMP, NOP + TIMESTAMP):
            for words in (0, 1, 3):
                sent = frame(version, head + option(COLLECT, words), bytes(range(256)) * 4)
                at = sent.index(struct.pack("!BBH", EXPERIMENT, 8 + 4 * words, EXID)) + 6
                got = way(sent)
                field = field_of(got, at)
                true(field & COLLECT, "COLLECT is kept")
                within(field & ~COLLECT, alone(len(sent), 100_000), ONE,
                       "utilisation of the slower port, of this packet and some before it")
                tcp = 14 + (20 if version == 4 else 40)
                true(set(changed(sent, got)) <= {at, at + 1, tcp + 16, tcp + 17},
                     f"bytes {changed(sent, got)} differ, field {at}, TCP {tcp}")
                true(packet.Packet(got[14:]).checksum_ok(), "TCP's checksum")
        way.close()


@case("the utilisation ends at its largest value, and does not wrap", version=(4, 6))
def largest(version):
    # B T of 12 bytes: a packet alone is a utilisation of 88.
    way = Way("rate 1mbit int 100us", "rate 10gbit int 80us")
    sent = frame(version, option(COLLECT), bytes(1000))
    at = sent.index(struct.pack("!BBH", EXPERIMENT, 8, EXID)) + 6
    for _ in range(2):
        got = way(sent)
        equal(field_of(got, at), COLLECT | 32767, "field")
        true(packet.Packet(got[14:]).checksum_ok(), "TCP's checksum")
    way.close()


@case("a higher utilisation of an earlier port is kept", version=(4, 6))
def keeps(version):
    way = Way("rate 10gbit int 80us", "rate 10gbit int 80us")
    for field in (COLLECT | 32767, COLLECT | 5000):
        sent = frame(version, option(field), bytes(1000))
        equal(way(sent), sent, f"a packet with the field {field:#x}")
    way.close()
    equal((p.shown("p0")["int"]["stamped"], p.shown("q0")["int"]["stamped"]), (0, 0),
          "stamped packets of both ports")


@case("packets without COLLECT, or malformed, pass unchanged", version=(4, 6))
def untouched(version):
    way = Way("rate 10gbit int 80us", "rate 1gbit int 80us")
    asks = option(COLLECT)
    good = frame(version, asks, bytes(100))
    tcp = 14 + (20 if version == 4 else 40)
    cut = [good[:at] for at in range(tcp + 12, tcp + 28, 3)]
    others = [
        frame(version, b""), frame(version, TIMESTAMP), frame(version, option(0)),
        frame(version, option(0x7fff)), frame(version, asks, flags=SYN),
        frame(version, asks, flags=SYN | ACK),
        frame(version, struct.pack("!BBHI", 253, 8, EXID, COLLECT)),        # another kind
        frame(version, struct.pack("!BBHI", 254, 8, 0x474d, COLLECT)),      # another experiment
        frame(version, b"\0" * 4 + asks),                                   # behind the end
        frame(version, bytes((8, 0, 0, 0)) + asks),                         # a length of 0
        frame(version, bytes((8, 1, 0, 0)) + asks),
        frame(version, bytes((8, 41, 0, 0)) + asks),
        frame(version, option(COLLECT, length=7)), frame(version, option(COLLECT, length=12)),
        frame(version, option(COLLECT, length=255)),
        frame(version, NOP * 33 + asks[:7]),
        good[:tcp + 12] + b"\x50" + good[tcp + 13:],        # header of 20 bytes
        good[:tcp + 12] + b"\x40" + good[tcp + 13:],        # of 16
        good[:tcp + 12] + b"\xf0" + good[tcp + 13:tcp + 30],        # longer than the packet
        good[:23] + b"\x11" + good[24:] if version == 4 else good[:20] + b"\x11" + good[21:],
        p.arp(), p.IP[version](100), *cut,
    ]
    if version == 4:
        others += [good[:20] + b"\x20\0" + good[22:], good[:20] + b"\0\1" + good[22:],
                   good[:14] + b"\x44" + good[15:]]                 # fragments; a short header
    for number, sent in enumerate(others):
        got = way(sent)
        equal(got[:len(sent)], sent, f"frame {number}")
    true(way(good) != good, "a packet with COLLECT is changed")
    way.close()


@case("int writes into packets with VLAN tags, and in a band")
def tags():
    for words in ("", "bands 2 prio 0 0"):
        way = Way(f"rate 10gbit int 80us {words}", "rate 10gbit")
        for tag in (b"", b"\x81\0\0\5"):
            sent = frame(4, option(COLLECT), bytes(1000), tags=tag)
            got = way(sent)
            # The kernel removes the tag from the frame that a socket receives.
            equal(len(got), len(sent) - len(tag), f"length, tag {tag.hex()}")
            true(field_of(got, 60) > COLLECT and packet.Packet(got[14:]).checksum_ok(),
                 f"utilisation and checksum, tag {tag.hex()}, {words}")
        way.close()


@timed("utilisation is the queue and the rate, within 2 %")
def value():
    # 100 Mbit/s, 1 ms: 12500 bytes
    p.port("rate 100mbit limit 1m int 1ms")
    sender, receiver = p.Sender(), p.Receiver()
    size = 1250
    sent = frame(4, option(COLLECT), bytes(size - 14 - 20 - 28))
    equal(len(sent), size, "bytes of a frame")
    for _ in range(60):
        sender.send(sent)
    got = [field_of(f, 14 + 20 + 20 + 6) & ~COLLECT for _, f in receiver.frames(60)]
    equal(len(got), 60, "frames")
    # After some round trips the link is full, and the rest of the queue is known.
    for number in range(40, 60):
        due = ((59 - number) * size + 12500) * ONE / 12500
        within(got[number], due * 0.98, due * 1.01, f"utilisation in frame {number}, 2^-10")
    # Half of the link: a frame each 200 us
    got = []
    for _ in range(60):
        p.settle(0.0002)
        got += [passed(sender, receiver, sent)]
    within(field_of(got[-1], 14 + 20 + 20 + 6) & ~COLLECT, ONE * 0.35, ONE * 0.62,
           "utilisation at half of the rate, 2^-10")
    seen = p.shown()["int"]
    equal(seen["stamped"], 120, "stamped packets")
    text = p.tc("-s qdisc show dev p0").stdout
    true("int    stamped 120 pkt, utilisation " in text, text)
    sender.close()
    receiver.close()


NEEDS_CSUM, GSO_TCPV4 = 1, 1
PACKET_VNET_HDR = 15


def offloaded(sender, sent, gso=0):
    """Send a frame whose checksum the device has to compute, or a GSO packet."""
    head = struct.pack("=BBHHHH", NEEDS_CSUM, GSO_TCPV4 if gso else 0, 14 + 20 + 20 + 8 if gso else 0,
                       gso, 14 + 20, 16)
    pseudo = sent[26:34] + struct.pack("!BBH", 0, 6, len(sent) - 34)
    partial = ~packet.checksum(pseudo) & 0xffff
    sender.socket.send(head + sent[:50] + struct.pack("!H", partial) + sent[52:])


@case("partial checksums and GSO packets, split by color or the device: received ones are valid")
def offload():
    for words in ("split-gso", "no-split-gso"):
        p.port(f"rate 10gbit int 80us {words}")
        p.run("ethtool", "-K", "p0", "tx", "off", "tso", "off")
        sender, receiver = p.Sender(), p.Receiver()
        sender.socket.setsockopt(263, PACKET_VNET_HDR, 1)
        sent = frame(4, option(COLLECT), bytes(range(200)) * 20)
        offloaded(sender, sent[:1000 + 62][:16] + struct.pack("!H", 1048) + sent[18:1062])
        offloaded(sender, sent, gso=1000)
        got = [f for _, f in receiver.frames(5)]
        equal([len(f) for f in got], [1062] * 5, f"frames, {words}")
        for f in got:
            true(field_of(f, 60) > COLLECT, f"utilisation is above 0, {words}")
            true(packet.Packet(f[14:]).checksum_ok(), f"TCP's checksum, {words}")
        sender.close()
        receiver.close()


@case("change: int on and off, another rate; with int the rate cannot be removed")
def change():
    way = Way("rate 10gbit", "rate 10gbit")
    sent = frame(4, option(COLLECT), bytes(1000))
    equal(way(sent), sent, "without int")
    p.tc("qdisc change dev p0 root color int 80us")
    true(way(sent) != sent, "a packet is changed with int")
    true(p.tc("qdisc change dev p0 root color rate none", check=False).returncode,
         "rate none is refused")
    p.tc("qdisc change dev p0 root color rate 1gbit")
    true(field_of(way(sent), 60) & ~COLLECT >= alone(len(sent), 10_000),
         "utilisation at another rate")
    p.tc("qdisc change dev p0 root color int none rate none")
    equal(way(sent), sent, "without int")
    way.close()


main()
