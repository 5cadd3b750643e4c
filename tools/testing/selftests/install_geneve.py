#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The cure for a Geneve tunnel that greenlane status prints; the distribution's kernel has Geneve.

	a (client) [color] === tunnel === b (server)
"""
import subprocess

from lab import tap
from lab.status import Cable, heal_tunnel
from lab.tap import case, equal, main, true


@case("TLT in a Geneve tunnel: the port sees only yellow until the tunnel copies the DSCP", Cable,
      options="color rate 10gbit limit 1m red 270k")
def geneve(cable):
    if subprocess.run(["modprobe", "-q", "geneve"], check=False).returncode:
        raise tap.Skip("this kernel has no Geneve")
    command, before, after = heal_tunnel(cable, "geneve")
    # Two processors reorder what a veth carries, and status may say that too.
    equal(["only-yellow" in them for them in (before, after)], [True, False],
          f"only yellow before and after: {before}, {after}")
    true(" id 5 remote 10.1.0.2 " in command, f"the cure names the tunnel's ends: {command}")


main()
