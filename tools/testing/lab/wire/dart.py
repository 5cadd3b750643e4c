# SPDX-License-Identifier: GPL-2.0
"""A wire for Dart with many senders at one end.

	a: 10.0.0.1, 10.0.0.11, 10.0.0.12 ... ---- wire ---- b: 10.0.0.2, receives

Dart counts senders by address, so each address of a is a host to b.
"""
import socket

from lab.codepoints import MESSAGE, MESSAGE_END, SHARE, SHORT
from lab.tap import true, within
from lab.wire.packet import data
from lab.wire.sockopt import (GREENLANE_COSENDERS, GREENLANE_SENDERS, SO_MAX_PACING_RATE, choose,
                              ip_level)
from lab.wire.wire import MSS, Wire

# Bytes of a packet besides its payload, by IP version: TCP with time stamps, IP, and Ethernet with
# preamble and gap.
HEADERS = {4: 90, 6: 110}
RATE = 1000             # Mbit/s: a full packet in 12.3 us
RTT = 100e-6
ONE = 256               # divisors of share words are in 1/256
LINE = RATE * 125       # the link rate in kB/s, the unit of advertised shares
END, NAMES, KNOWN, ALONE = 1 << 31, 1 << 30, 1 << 29, 1 << 28   # flags in the first word
SHARE_MASK = (1 << 28) - 1
DATA = (MESSAGE, MESSAGE_END, *SHORT)


def line(version, divisor=1.0):
    """Payload rate at the link rate divided by `divisor`, bytes/s."""
    return RATE * 125_000 / divisor * MSS[version] / (MSS[version] + HEADERS[version])


def host(version, number):
    """The address of a host at a; host 0 has the wire's own address."""
    if version == 4:
        return f"10.0.0.{10 + number}" if number else "10.0.0.1"
    return f"fd00::{10 + number}" if number else "fd00::1"


def dart(hosts=0, **options):
    """A wire with `hosts` more hosts at a.  The minimum RTO, 200 ms, is far above the RTT."""
    wire = Wire(**{"cc": "dart", "rto_min": 200, **options})
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.dcqcn_rate", RATE)
    for number in range(1, hosts + 1):
        for version, bits in ((4, 32), (6, 128)):
            address = f"{host(version, number)}/{bits}"
            wire.a.ip(f"addr add {address} dev tun0" + " nodad" * (version == 6))
            wire.b.ip(f"route add {address} dev tun0 rto_min 200ms")
    wire.connect(999)           # the kernel's one-time work at a first connection
    wire.mark()
    wire.delay = RTT / 2
    return wire


def reno_after(wire, limited):
    """A transfer, then reno: TCP does not pace, unless the application limits the rate."""
    client, server = wire.connect()
    true(wire.transfer(client, server, 100_000), "arrives")
    if limited:
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 125_000_000)
    choose(client, "reno")
    wire.run(5e-3)
    wire.mark()
    client.send(bytes(10 * 1400))
    wire.run(5e-3)
    sent = data(wire.from_a())[:10]         # without a loss probe
    # the limit is a packet in 12 us
    within(sent[-1].time - sent[0].time, *(80e-6, 130e-6) if limited else (0, 10e-6),
           "time from the first to the last of ten packets, s")


def connect(wire, number, port=1000, listener=None):
    """A connection from the host with this number to b."""
    return wire.connect(port, source=host(wire.version, number), listener=listener)


def share(divisor):
    """The word that advertises the link rate divided by `divisor`, which is in 1/ONE."""
    return LINE * ONE // divisor


def divisor_of(word):
    """The divisor of the link rate, in 1/ONE, that gives the share in a word."""
    return round(LINE * ONE / (word & SHARE_MASK))


def shares(packets):
    """[(time, divisor)] of the ACKs that advertise a share; the divisor is in 1/ONE."""
    return [(p.time, divisor_of(p.words[0])) for p in packets
            if p.kind == SHARE and len(p.words) == 1 and p.words[0] & SHARE_MASK]


def divisors(packets):
    """The advertised divisors in order, without repetitions of the previous one."""
    found = []
    for _, divisor in shares(packets):
        if not found or found[-1] != divisor:
            found.append(divisor)
    return found


def of(packets, s):
    """The packets of a connection in both directions, given a's socket: those with both its ports.
    Two hosts at a may have the same local port, for connections to different ports of b."""
    ports = {s.getsockname()[1], s.getpeername()[1]}
    return [p for p in packets if {p.sport, p.dport} == ports]


def name(s, addresses, co=False):
    """Set GREENLANE_SENDERS, or GREENLANE_COSENDERS, to these addresses (text)."""
    packed = b"".join(socket.inet_pton(socket.AF_INET6, a if ":" in a else f"::ffff:{a}")
                      for a in addresses)
    s.setsockopt(ip_level(s), GREENLANE_COSENDERS if co else GREENLANE_SENDERS, packed)


def read_all(sockets):
    """Read and discard all received bytes, so that no window closes."""
    for s in sockets:
        try:
            while s.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
