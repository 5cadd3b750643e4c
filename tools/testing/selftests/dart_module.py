#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tcp_dart.ko and tcp_dcqcn.ko can be removed when no socket uses them, and not before; a
namespace can be removed with messages in flight and named senders.
"""
from lab.net import modules
from lab.tap import case, equal, main, true
from lab.wire.dart import connect, dart, host, name
from lab.wire.sockopt import GREENLANE_MESSAGE, info, option


@case("modules cannot be removed during messages; namespaces can, and then the modules",
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
        true(info(flows[0][1])["senders"] >= 3, "senders: at least 3")
        for module in ("tcp_dart", "tcp_dcqcn", "greenlane"):
            equal(modules.rmmod(module), False, f"rmmod {module} with connections")
    modules.unload("greenlane")
    modules.load("tcp_tlt", "tcp_dart")


if __name__ == "__main__":
    main()
