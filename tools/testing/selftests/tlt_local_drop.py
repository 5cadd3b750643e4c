#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The host's own device drops: an early drop is congestion, not a refusal.

	a (clients) [color] ------ [color] b (servers)

After NET_XMIT_DROP TCP assumes that the packet was never sent, and if no packet is in flight it
waits for its window-probe timer, 200 ms.  An early drop is NET_XMIT_CN.
"""
import time

from lab import tap
from lab.codepoints import IMPORTANT
from lab.net.port import shown
from lab.status import Cable
from lab.tap import case, equal, true, within
from lab.wire.packet import data
from lab.wire.wire import MSS, Wire

BURST = 14480


def bursts(port, cc, count=60, colour="red"):
    """`count` bursts at once: (time of the slowest, s; RTOs and TLPs; drops of the colour)."""
    with Cable(port, cc=cc) as cable:
        for ns in (cable.a, cable.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
        slowest = cable.burst(count, BURST)
        drops = shown("va", cable.a)[0]["colors"][colour]["drops"]
        return slowest, [cable.a.netstat(n) for n in ("TCPTimeouts", "TCPLossProbes")], drops


@case("60 bursts of 10 packets through the host's own port: no timer expires",
      cc=("tlt_cubic", "tlt_dctcp"), red=("270k", "30k"), also=("", "bands 2", "pool p size 900k"))
def own_port(cc, red, also):
    slowest, timers, drops = bursts(f"color rate 10gbit limit 1800k red {red} ecn 20k {also}", cc)
    true(drops["color"] > 0, "red data is dropped")
    true(slowest < 2e-3,
         f"time of the slowest burst: {slowest * 1e3:.2f} ms; all at line rate: 0.7 ms")
    equal(timers, [0, 0], "RTOs, TLPs")


@case("the device refuses the important packet (limit): a clock follows, no RTO", cc="tlt_cubic")
def refused(cc):
    slowest, timers, drops = bursts("color rate 1gbit limit 45k red 30k", cc, count=20,
                                    colour="green")
    print("#", slowest, timers, drops)
    true(drops["limit"] > 0, "important packets are refused")
    equal(timers[0], 0, "RTOs")


@case("the device refuses a burst on an idle connection: it leaves in 200 us, the last packet important",
      cc=("tlt_cubic", "tlt_dcqcn"), packets=(1, 4), version=(4, 6))
def lone(cc, packets, version):
    with Wire(cc=cc, version=version, tso=False) as wire:
        client, server = wire.connect()
        wire.mark()
        wire.a.tc("qdisc add dev tun0 root pfifo limit 1",
                  "qdisc change dev tun0 root pfifo limit 0")
        client.send(bytes(packets * MSS[version]))
        wire.a.tc("qdisc del dev tun0 root")
        begun = time.monotonic()
        true(wire.run(300e-3, lambda: len(data(wire.from_a())) >= packets), "all packets leave")
        within(time.monotonic() - begun, 0, 200e-6, "time until all packets have left, s")
        equal(data(wire.from_a())[packets - 1].kind, IMPORTANT, "kind of the last packet")
        equal(wire.a.netstat("TCPLossProbes"), 0, "TLPs")


if __name__ == "__main__":
    tap.main()
