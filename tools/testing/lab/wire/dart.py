# SPDX-License-Identifier: GPL-2.0
"""A wire for Dart: many senders behind one end of it.

	a: 10.0.0.1, 10.0.0.11, 10.0.0.12 ... ---- wire ---- b: 10.0.0.2, receives

A sender is an address, so each of a's addresses is a host to b.
"""
import socket

from lab.codepoints import MESSAGE, MESSAGE_END, SHARE, SHORT
from lab.wire.sockopt import GREENLANE_COSENDERS, GREENLANE_SENDERS, ip_level
from lab.wire.wire import MSS, Wire

# Of a packet with time stamps, what is not payload: TCP, IP, Ethernet with all its gaps.
HEADERS = {4: 90, 6: 110}
RATE = 1000             # Mbit/s: a full packet in 12.3 us
RTT = 100e-6
ONE = 256               # a divisor of 1
LINE = RATE * 125       # kB/s, as shares are advertised
END, NAMES, KNOWN, ALONE = 1 << 31, 1 << 30, 1 << 29, 1 << 28   # flags in the first word
SHARE_MASK = (1 << 28) - 1
DATA = (MESSAGE, MESSAGE_END, *SHORT)


def line(version, divisor=1.0):
    """Bytes of payload a second of a share of the line."""
    return RATE * 125_000 / divisor * MSS[version] / (MSS[version] + HEADERS[version])


def host(version, number):
    """The address of one of a's hosts; 0 is the wire's own."""
    if version == 4:
        return f"10.0.0.{10 + number}" if number else "10.0.0.1"
    return f"fd00::{10 + number}" if number else "fd00::1"


def dart(hosts=0, **options):
    """A wire with so many more hosts; TCP's timers are out of the way."""
    wire = Wire(**{"cc": "dart", "rto_min": "200ms", **options})
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_rate", RATE)
    for number in range(1, hosts + 1):
        for version, bits in ((4, 32), (6, 128)):
            address = f"{host(version, number)}/{bits}"
            wire.a.ip(f"addr add {address} dev tun0" + " nodad" * (version == 6))
            wire.b.ip(f"route add {address} dev tun0 rto_min 200ms")
    wire.connect(999)           # what the kernel does but once
    wire.mark()
    wire.delay = RTT / 2
    return wire


def connect(wire, number, port=1000, listener=None):
    """A connection from that host."""
    return wire.connect(port, source=host(wire.version, number), listener=listener)


def share(divisor):
    """The word that advertises this share of the line."""
    return LINE * ONE // divisor


def divisor_of(word):
    """What the line is divided by to get the share that a word advertises."""
    return round(LINE * ONE / (word & SHARE_MASK))


def shares(packets):
    """(time, divisor) as each ACK says it, with words."""
    return [(p.time, divisor_of(p.words[0])) for p in packets
            if p.kind == SHARE and len(p.words) == 1 and p.words[0] & SHARE_MASK]


def divisors(packets):
    """Each divisor once, in the order in which they were said."""
    found = []
    for _, divisor in shares(packets):
        if not found or found[-1] != divisor:
            found.append(divisor)
    return found


def of(packets, s):
    """Those of a connection, by a's socket: both ways.  Two of a's hosts may have chosen the
    same port, for connections to different ones."""
    ports = {s.getsockname()[1], s.getpeername()[1]}
    return [p for p in packets if {p.sport, p.dport} == ports]


def name(s, addresses, co=False):
    """GREENLANE_SENDERS, or GREENLANE_COSENDERS."""
    packed = b"".join(socket.inet_pton(socket.AF_INET6, a if ":" in a else f"::ffff:{a}")
                      for a in addresses)
    s.setsockopt(ip_level(s), GREENLANE_COSENDERS if co else GREENLANE_SENDERS, packed)


def read_all(sockets):
    """What has come is thrown away: no window closes."""
    for s in sockets:
        try:
            while s.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
