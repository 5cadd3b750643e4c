#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""NDP: the first window, reports of trimmed packets, and pulls (net/ipv4/tcp_ndp.c).

	a (client, sends) ---- wire (this program, trims) ---- b (server, pulls)
"""
from lab import tap
from lab.codepoints import CREDIT, REQUEST, UNSCHEDULED
from lab.tap import case, equal, true
from lab.wire.packet import data
from lab.wire.sockopt import cc_of
from lab.wire.trim import reports, trims
from lab.wire.wire import MSS, Wire, pattern

RTT = 200e-6            # s; long compared with the guest's system calls


def wires(**options):
    """A wire with this round trip."""
    wire = Wire(**{"cc": "ndp", "tso": False, "rto_min": "200ms", **options})
    wire.connect(999)
    wire.mark()
    wire.delay = RTT / 2
    return wire


def ndp(ns):
    """NDP's counters."""
    return {name[3:]: n for name, n in ns.greenlane().items() if name.startswith("Ndp")}


@case("debug", cc=("ndp",))
def debug(cc):
    import random
    from lab.wire.trim import cut
    with wires() as wire:
        listener = wire.listen(1001)
        pairs = [wire.connect(1001, listener=listener) for _ in range(14)]
        wire.run(0.01)
        wire.mark()
        rng = random.Random(1)
        def rule(p):
            if p.from_a and p.len and rng.random() < 0.7:
                cut(p)
            return False
        wire.rule = rule
        payload = pattern(23 * MSS[4])
        for client, _ in pairs:
            client.send(payload)
        for client, server in pairs:
            equal(wire.receive(server, len(payload), 5e-3), payload, "bytes, within 5 ms")
        wire.run(5e-3)
        print("#", ndp(wire.a))
        print("#", ndp(wire.b))
        t0 = wire.seen[0].time
        port = {}
        for p in wire.seen:
            port.setdefault(p.sport if p.from_a else p.dport, []).append(p)
        for n, ps in port.items():
            if any(q.kind == REQUEST and q.words[2] >> 31 for q in ps):
                for p in ps:
                    print(f"# {(p.time - t0) * 1e6:8.1f} {'>' if p.from_a else '<'} {p.kind} {p.seq & 0xffff} {p.len} {tuple(hex(w) for w in p.words)} {p.dscp}")
                break


if __name__ == "__main__":
    tap.main()
