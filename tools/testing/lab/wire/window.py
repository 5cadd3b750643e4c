# SPDX-License-Identifier: GPL-2.0
"""Receivers with windows (homa, ndp), on a wire: credits, and connections to attack."""
import itertools
import time

from lab.codepoints import CREDIT
from lab.tap import true, within
from lab.wire import xpass
from lab.wire.sockopt import GREENLANE_BDP
from lab.wire.sockopt import option as sockopt
from lab.wire.wire import MSS, Wire

RTT = 200e-6            # s, much longer than the guest's system calls
# At 1 Gbit/s: packets of 1538 bytes in that time, with a microsecond of the guest's, and two more.
WINDOW = (18, 20)
HOLD = 1.6e-3           # s: eight round trips, for which a closed window is held


def wires(cc="homa", **options):
    """A wire with this round trip.  One connection is made before: the first takes longer."""
    wire = Wire(**{"cc": cc, "tso": False, "rto_min": 200, "speed": 1000, **options})
    wire.connect(999)
    wire.mark()
    wire.delay = RTT / 2
    return wire


def small(wire, client, packets=1):
    """A message has up to this number of unscheduled packets."""
    sockopt(client, GREENLANE_BDP, packets * MSS[wire.version])


def is_grant(p):
    """Does the packet permit data?  Requests have its codepoint, too."""
    return p.says == CREDIT and not xpass.second_word(p) & xpass.ACCEPTED


def grants(wire, port=None):
    """b's grants: (time, the last packet that it permits)."""
    return [(p.time, p.words[0]) for p in wire.from_b() if is_grant(p) and port in (None, p.sport)]


def lose(wire, of, which):
    """The wire loses these packets, numbered from 1, of those for which of() is true."""
    number = itertools.count(1)
    wire.rule = lambda p: bool(of(p)) and next(number) in which


def started(wire, count, size=60_000, *, rtt=RTT, port=1001):
    """Connections over this round trip whose receive window has grown, each with one unscheduled
    packet.  Others have the wire's round trip again."""
    listener = wire.listen(port)
    wire.delay = rtt / 2
    wire.run(2 * rtt)
    pairs = [wire.connect(port, listener=listener) for _ in range(count)]
    for client, server in pairs:
        true(wire.transfer(client, server, size, 20), "arrives")
        small(wire, client)
    wire.run(5e-3 + rtt)
    wire.delay = RTT / 2
    wire.run(rtt)
    wire.mark()
    return pairs


ALONE = 2.55e-3         # s: the time of 290 kB


def innocent(wire, pair, limit=1.5 * ALONE):
    """290 kB on another connection take no longer than alone."""
    began = time.monotonic()
    true(wire.transfer(*pair, 290_000, 5), "arrives")
    within(time.monotonic() - began, 0.9 * ALONE, limit, "time of 290 kB, s")


def drop(wire, pairs):
    """Drop the data of these connections, or all that a sends by them."""
    ports = {client.getsockname()[1] for client, _ in pairs}
    wire.rule = lambda p: p.from_a and p.sport in ports
