#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: hosts change over from cubic to tlt_cubic, and meet at one queue.

	s0 ... s3 ---- switch [color] ---- r       see experiments/traffic/rollout.py
"""
from experiments.traffic import rollout
from lab import tap
from lab.tap import case, equal, true


@case("hosts change over: no host falls below 0.6 of its share, tlt_cubic waits for no timer",
      changed=(1, 3), red=("270k", "auto"))
def change_over(changed, red):
    seen = rollout.run(changed, red)
    print(f"# {seen}")
    fair = seen["sum"] / rollout.SENDERS
    true(min(seen["cubic_gbit"], seen["tlt_gbit"]) > 0.6 * fair, "neither starves")
    true(seen["sum"] > 9, "the link is busy")
    equal((seen["green"], seen["tlt_rtos"]), (0, 0), "green drops, RTOs of tlt_cubic")


if __name__ == "__main__":
    tap.main()
