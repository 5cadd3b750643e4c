#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the port benchmarks: cycles of a packet, bytes of a port.

	ports.py BENCH_MODULE

Prints one line of JSON: {"cycles": {burst: {qdisc: cycles}}, "port_bytes": {...}}.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import slab

# By name: the qdisc, in tc's words.  The thresholds are out of the way, so that
# every packet is queued and none is marked.
QDISCS = {
    "bfifo": "bfifo limit 3600000",
    "red": "red limit 3600000 min 1700000 max 3500000 avpkt 1500 burst 1200"
           " bandwidth 30gbit probability 0.02 ecn",
    "color": "color limit 3600k red 3600k ecn 3500k",
    "color bands": "color limit 3600k red 3600k ecn 3500k bands 2",
    "color pool": "color limit 3600k red 3600k ecn 3500k pool p size 36m alpha 1",
}
# Queued at a time: a busy link, and the port of an incast.
BURSTS = (64, 1024)
PORTS = 100


def batch(tool, lines):
    """Many lines of ip or tc, one process."""
    subprocess.run([tool, "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                   check=True)


def cycles(module, burst):
    """Cycles of one packet through each qdisc, from the median turn."""
    devs = [f"bench{i}" for i in range(len(QDISCS))]
    batch("ip", [f"link add {dev} up type dummy" for dev in devs])
    batch("tc", [f"qdisc add dev {dev} root {words}"
                 for dev, words in zip(devs, QDISCS.values())])
    subprocess.run(["insmod", module, "devs=" + ",".join(devs), f"burst={burst}"],
                   check=True)
    subprocess.run(["rmmod", "qdisc_bench"], check=True)
    log = subprocess.run(["dmesg", "-c"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = dict(re.findall(r"qdisc_bench: (\w+) best \d+ median (\d+) millicycles", log))
    batch("ip", [f"link delete {dev}" for dev in devs])
    return {name: int(found[dev]) / 1000 for name, dev in zip(QDISCS, devs)}


def port_bytes(words):
    """What a port takes of the kernel's memory."""
    devs = [f"port{i}" for i in range(PORTS)]
    batch("ip", [f"link add {dev} up type dummy" for dev in devs])
    before = slab.used()
    batch("tc", [f"qdisc add dev {dev} root {words}" for dev in devs])
    after = slab.used()
    batch("ip", [f"link delete {dev}" for dev in devs])
    return (after - before) / PORTS


def main():
    """All of it."""
    path = pathlib.Path(os.environ["GL_MODDIR"], "net/sched/sch_color.ko")
    subprocess.run(["insmod", path], check=True)
    result = {"cycles": {burst: cycles(sys.argv[1], burst) for burst in BURSTS}}
    # The first of anything brings caches of its own into being.
    for words in QDISCS.values():
        port_bytes(words)
    result["port_bytes"] = {name: port_bytes(words) for name, words in QDISCS.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
