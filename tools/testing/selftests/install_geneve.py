#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The remedy for a Geneve tunnel that greenlane status prints; distributions' kernels have Geneve.

	a (client) [color] === tunnel === b (server)
"""
import subprocess

from lab import tap
from lab.status import Cable, heal_tunnel
from lab.tap import case, equal, main, true


@case("TLT in a Geneve tunnel: the port has only yellow packets until the tunnel copies the DSCP",
      Cable,
      options="color rate 10gbit limit 1m red 270k")
def geneve(cable):
    if subprocess.run(["modprobe", "-q", "geneve"], check=False).returncode:
        raise tap.Skip("this kernel has no Geneve")
    command, before, after = heal_tunnel(cable, "geneve")
    # A veth of two processors reorders packets, which status may report, too.
    equal(["only-yellow" in them for them in (before, after)], [True, False],
          f"only yellow before and after: {before}, {after}")
    true(" id 5 remote 10.1.0.2 " in command, f"the remedy names the tunnel's ends: {command}")


main()
