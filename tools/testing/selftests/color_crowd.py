#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: `red auto` leaves room for 1000 flows, after fan-ins of any size.

	s0 ... s7 ---- switch [color red auto] ---- r       see experiments/traffic/crowd.py
"""
from experiments.traffic import crowd
from lab import tap
from lab.tap import case, equal


@case("fan-ins of 16 to 320 flows in any order and phase, then 1000: no green packet is dropped",
      seed=(4, 9, 10))
def rounds(seed):
    network = crowd.build()
    try:
        seen = crowd.run(network, seed)
    finally:
        network.remove()
    print(f"# {seen}")
    equal((seen["green"], seen["rtos"]), (0, 0), "green drops, RTOs")


if __name__ == "__main__":
    tap.main()
