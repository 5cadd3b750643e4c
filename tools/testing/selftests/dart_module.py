#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tcp_dart.ko and tcp_dcqcn.ko go when nobody uses them, and not before; a namespace
goes with messages on their way and senders that were named.
"""
from lab.net import modules
from lab.tap import case, equal, main, true
from lab.wire.dart import connect, dart, host, name
from lab.wire.sockopt import GREENLANE_MESSAGE, info, option


@case("in the middle of messages: no module goes; the namespaces go, and then the modules",
      version=(4, 6))
def in_messages(version):
    with dart(3, version=version) as wire:
        flows = [connect(wire, number, 1000 + number) for number in range(3)]
        for tx, rx in flows:
            option(tx, GREENLANE_MESSAGE, 1)
            name(rx, [host(version, n) for n in range(60)])
            name(tx, [host(version, n) for n in range(60)], co=True)
            tx.send(bytes(100_000))
        wire.run(0.3e-3)
        true(info(flows[0][1])["senders"] >= 3, "senders")
        for module in ("tcp_dart", "tcp_dcqcn", "greenlane"):
            equal(modules.rmmod(module), False, f"rmmod {module} with connections")
    modules.unload("greenlane")
    modules.load("tcp_tlt", "tcp_dart")


if __name__ == "__main__":
    main()
