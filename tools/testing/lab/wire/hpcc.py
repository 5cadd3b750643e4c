# SPDX-License-Identifier: GPL-2.0
"""A wire for HPCC, which writes telemetry into packets as switch ports do."""
import contextlib

from lab.wire.sockopt import pacing
from lab.wire.wire import MSS, Wire

RATE = 1000             # Mbit/s: a full packet in 12.3 us
RTT = 100e-6
BDP = 12_500            # bytes: 8.1 full packets
ETHERNET = 38           # header, checksum, preamble and gap
OPTION = 8
COLLECT, ONE = 0x8000, 1024      # the request; a full link without a queue
DATA_CODE, ACK_CODE = 12, 13


def hpcc(cc="hpcc", **options):
    """A wire with a fixed base RTT and rate."""
    wire = Wire(**{"cc": cc, "rto_min": 200, **options})
    for ns in (wire.a, wire.b):
        with contextlib.suppress(FileNotFoundError):
            ns.sysctl("net.ipv4.hpcc_rate", RATE)
            ns.sysctl("net.ipv4.hpcc_rtt", round(RTT * 1e6))
        ns.sysctl("net.ipv4.greenlane_active", 1)
    wire.delay = RTT / 2
    return wire


def option(p):
    """(code, telemetry field, words) of a packet's greenlane option, or None."""
    if not p.options_at:
        return None
    return p.raw[p.options_at[0] + 4], p.field, p.words


def raise_to(p, util):
    """Raise U in a packet that requests it, as a port does."""
    if p.field & COLLECT and p.field & 0x7fff < util:
        p.set_field(COLLECT | util)


def port(wire, util):
    """The path has this utilisation: a number, or a function of the packet."""
    def rule(p):
        if p.from_a and p.len:
            raise_to(p, util(p) if callable(util) else util)
        return False
    wire.rule = rule


def room(version, mtu=1500):
    """Payload of a full packet with the option."""
    return MSS[version] + mtu - 1500 - OPTION


def line(version, mtu=1500):
    """Payload rate at the link rate, bytes/s."""
    return RATE * 125_000 * room(version, mtu) / (mtu + ETHERNET)


def window(s, version=4):
    """HPCC's window in BDPs, which is the pacing rate in line rates."""
    return pacing(s) / line(version)
