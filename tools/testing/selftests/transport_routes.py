#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A host without a route, for a while: the transport must not try to send for ever.

	a (client) ---- wire (this program) ---- b (server)

Every 50 us a transport looks again at a packet that was refused.  It does so for 10 ms at most, then
TCP's own timers continue.
"""
from lab import tap
from lab.tap import case, true
from lab.wire.wire import Wire

# Attempts in a second.  One every 50 us makes 20,000 and more.
MOST = 1500


def refusals(wire, ns):
    """The packets that ns could not send for want of a route."""
    if wire.version == 6:
        lines = ns.read("/proc/thread-self/net/snmp6").splitlines()
        return {line.split()[0]: int(line.split()[1]) for line in lines}["Ip6OutNoRoutes"]
    names, values = [line.split() for line in ns.read("/proc/thread-self/net/snmp").splitlines()
                     if line.startswith("Ip:")]
    return int(values[names.index("OutNoRoutes")])


@case("a host loses its route in the middle of a transfer: few attempts, and all data arrives later",
      cc=("cubic", "tlt_reno", "tlt_dctcp", "tlt_bbr", "tlt_dcqcn", "tlt_dart", "dart", "xpass",
          "aeolus_xpass"), end=("a", "b"), when=("data is in flight", "a has closed"), version=(4, 6))
def route_gone(cc, end, when, version):
    with Wire(cc=cc, version=version) as wire:
        client, server = wire.connect()
        wire.rule = lambda p: p.from_a and end == "a"       # TCP retransmits
        client.send(bytes(60_000))
        wire.run(15e-6)             # data is in flight
        ns, other = (wire.a, wire.b) if end == "a" else (wire.b, wire.a)
        route = f"route del {wire.address(other)} dev tun0"
        ns.ip(route)
        if when == "a has closed":
            client.close()
        before = refusals(wire, ns)
        wire.run(1.0)
        tried = refusals(wire, ns) - before
        print(f"# {tried} attempts")
        true(0 < tried < MOST, f"{tried} attempts in a second")
        wire.rule = None
        ns.ip(route.replace("del", "add"))
        true(len(wire.receive(server, 60_000, 5.0)) == 60_000, "all data arrives")


@case("an idle host without a route begins a burst: few attempts",
      cc=("tlt_reno", "tlt_dctcp", "tlt_dcqcn", "tlt_dart"), tso=(False, True))
def idle(cc, tso):
    with Wire(cc=cc, tso=tso) as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 3_000_000)        # a window of several GSO packets
        wire.run(2e-3)
        wire.a.ip(f"route del {wire.address(wire.b)} dev tun0")
        before = refusals(wire, wire.a)
        client.send(bytes(300_000))
        wire.run(1.0)
        tried = refusals(wire, wire.a) - before
        true(0 < tried < MOST, f"{tried} attempts in a second")


if __name__ == "__main__":
    tap.main()
