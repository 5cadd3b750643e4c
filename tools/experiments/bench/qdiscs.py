# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the port benchmarks: cycles of a packet, bytes of a port.

	python3 -m experiments.bench.qdiscs BENCH_MODULE [queues | calls]

Prints one line of JSON: {"cycles": {burst: {qdisc: cycles}}, "short": {the same for
packets of short messages}, "port_bytes": {...}}; with `queues`, on two processors:
{burst: {qdisc: [cycles of one of two ports alone, of both at one time]}}; with `calls`
{"mix": {burst: {qdisc: cycles}}, "busy": {the same for bands that are all busy}}.
"""

import json
import pathlib
import sys
import time

from experiments.bench import turns
from lab.measure import slab
from lab.net import frames, modules
from lab.net.namespace import batch

# {name: arguments for tc}.  The thresholds are above any backlog, so every packet is queued and
# no packet is marked.
QDISCS = {
    "bfifo": "bfifo limit 3600000",
    "red": "red limit 3600000 min 1700000 max 3500000 avpkt 1500 burst 1200"
           " bandwidth 30gbit probability 0.02 ecn",
    "color": "color limit 3600k red 3600k",
    "color ecn": "color limit 3600k red 3600k ecn 3500k",
    "color pool": "color limit 3600k red 3600k pool p size 36m alpha 1",
    "color rate": "color limit 3600k red 3600k rate 100tbit no-split-gso",
    "color auto": "color limit 3600k red auto",
    "color int": "color limit 3600k red 3600k rate 100tbit no-split-gso int 20us",
    "color bands": "color limit 3600k red 3600k bands 2 prio 10 0",
    "color trim": "color limit 3600k red 3600k trim 61",
    "prio": "handle 1: prio bands 2 priomap" + 16 * " 0",
    "prio action": "handle 1: prio bands 2 priomap" + 16 * " 0",
    "iofd": "handle 1: iofd threshold 2000m deflect dev lost via 10.0.0.1",
}
# Child qdiscs of the classful ones.
CHILDREN = dict.fromkeys(("prio", "prio action", "iofd"),
                         "parent 1:1 color limit 3600k red 3600k")
# The minimum work of an action of clsact: the packet matches a filter, and passes.
ACTION = "parent 1: matchall action gact ok"
# DSCP of the first packet of a short message that is not deflected (include/net/gl_deflect.h): iofd
# searches its table for the message.
SHORT = 31
# color beside bfifo and red, and with the presets' options: a rate, and, in BUSY, bands.
CALLS = {name: QDISCS[name] for name in ("bfifo", "red", "color", "color rate")}
DSCPS = 16


def spread(bands):
    """Options that distribute packets of DSCPS codepoints over all of these bands."""
    return f" bands {bands} " + " ".join(f"prio {n} {n % bands}" for n in range(DSCPS))


BUSY = {
    "color": QDISCS["color"],
    "color rate, 2 bands": QDISCS["color rate"] + spread(2),
    "color rate, 16 bands": QDISCS["color rate"] + spread(16),
    "color, 16 bands": QDISCS["color"] + spread(16),
}
# Packets queued at a time: of a busy link, and of the port of an incast.
BURSTS = (64, 1024)
PORTS = 100
# The child qdiscs of mq.
QUEUES = {name: QDISCS[name] for name in ("bfifo", "color", "color pool")}


def add(devs, name, qdiscs=QDISCS):
    """Add a qdisc, its child and its filter to each of some devices."""
    lines = [f"qdisc add dev {dev} root {qdiscs[name]}" for dev in devs]
    if name in CHILDREN:
        lines += [f"qdisc add dev {dev} {CHILDREN[name]}" for dev in devs]
    if name == "prio action":
        lines += [f"filter add dev {dev} {ACTION}" for dev in devs]
    batch("tc", lines)


def cycles(module, burst, *params, qdiscs=QDISCS):
    """{qdisc: cycles of one packet} in the fastest repetition: other work only adds cycles."""
    devs = [f"bench{i}" for i in range(len(qdiscs))]
    batch("ip", [f"link add {dev} up type dummy" for dev in devs])
    for dev, name in zip(devs, qdiscs):
        add([dev], name, qdiscs)
    found = turns.cycles(module, "devs=" + ",".join(devs), f"burst={burst}", *params)
    batch("ip", [f"link delete {dev}" for dev in devs])
    return {name: found[dev][0] for name, dev in zip(qdiscs, devs)}


def queues(module, burst, n=2):
    """{qdisc: [cycles of a packet through one child of mq alone, through all at one time]}"""
    devs = [f"bench{i}" for i in range(len(QUEUES))]
    batch("ip", [f"link add {dev} numtxqueues {n} up type dummy" for dev in devs])
    for dev, qdisc in zip(devs, QUEUES.values()):
        batch("tc", [f"qdisc add dev {dev} root handle 1: mq",
                     *(f"qdisc add dev {dev} parent 1:{i + 1} {qdisc}" for i in range(n))])
    found = turns.cycles(module, "devs=" + ",".join(devs), f"burst={burst}", f"queues={n}")
    batch("ip", [f"link delete {dev}" for dev in devs])
    # The median: in the fastest repetition the other processor may not have run.
    return {name: [found[f"{dev}/{at}"][1] for at in (1, n)] for name, dev in zip(QUEUES, devs)}


def port_bytes(name):
    """The kernel memory of a port with this qdisc, bytes."""
    devs = [f"port{i}" for i in range(PORTS)]
    batch("ip", [f"link add {dev} up type dummy" for dev in devs])
    before = slab.used()
    add(devs, name)
    after = slab.used()
    batch("ip", [f"link delete {dev}" for dev in devs])
    return (after - before) / PORTS


def arms(packets=5000):
    """Timers that a port of 10 Gbit/s arms for each packet, while many are queued."""
    frames.fresh_namespace()
    frames.veth()
    frames.tc("qdisc add dev p0 root color rate 8bit limit 100m")
    sender = frames.Sender()
    sender.send(frames.ipv4(1514), packets)
    event = pathlib.Path("/sys/kernel/tracing/events/timer/hrtimer_start/enable")
    event.write_text("1", encoding="ascii")
    frames.tc("qdisc change dev p0 root color rate 10gbit")
    while frames.shown()["qlen"]:
        time.sleep(0.01)
    event.write_text("0", encoding="ascii")
    sender.close()
    trace = pathlib.Path("/sys/kernel/tracing/trace").read_text(encoding="ascii")
    return trace.count("=qdisc_watchdog") / packets


def main():
    """Run the benchmark, and print its JSON."""
    modules.load("sch_color", "sch_iofd")
    if sys.argv[2:] == ["queues"]:
        print(json.dumps({burst: queues(sys.argv[1], burst) for burst in BURSTS}))
        return
    if sys.argv[2:] == ["calls"]:
        print(json.dumps({
            "mix": {burst: cycles(sys.argv[1], burst, qdiscs=CALLS) for burst in BURSTS},
            "busy": {burst: cycles(sys.argv[1], burst, f"spread={DSCPS}", qdiscs=BUSY)
                     for burst in BURSTS}}))
        return
    batch("ip", ["link add lost up type dummy"])
    result = {"cycles": {burst: cycles(sys.argv[1], burst) for burst in BURSTS},
              "short": {burst: cycles(sys.argv[1], burst, f"dscp={SHORT}") for burst in BURSTS}}
    # The first port with a qdisc makes the kernel create slab caches.
    for name in QDISCS:
        port_bytes(name)
    result["port_bytes"] = {name: port_bytes(name) for name in QDISCS}
    result["arms"] = arms()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
