#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: a device that stops its queue, and packets that it requeues.

	 frames ---> [ color pool sw ] t0: a tap, room for 4 ===> this script, at chosen times
	                   |
	                 buffer
	                   |
	 frames ---> [ color pool sw ] a0 ============ a1

A requeued packet waits between qdisc and device.  The core counts it in the qdisc's qlen, but it
is in no queue of the port, and holds no bytes of the pool.
"""
from lab.net import frames as p
from lab.net.tapdev import Tap
from lab.tap import case, equal, main, need_virtual_time, true, within

SIZE = 90000


def pair(first="pool sw size 90000", second="pool sw"):
    """(tap, its sender, the sender of a0): both ports in a fresh namespace."""
    p.insmod()
    p.fresh_namespace()
    tap = Tap("t0")
    p.veth("a0", "a1")
    p.tc(f"qdisc add dev t0 root handle 1: color {first}")
    p.tc(f"qdisc add dev a0 root color {second}")
    return tap, p.Sender("t0"), p.Sender("a0")


def queued(dev="t0"):
    """Bytes in the queues of a port: the sum over its colours."""
    return sum(colour["backlog"] for colour in p.colors(dev).values())


def used():
    """Bytes in the pool; checks that they are the bytes of the ports' packets."""
    seen = p.shown("a0")["pool"]["used"]
    other = p.shown("t0").get("pool") and queued()
    equal(seen, (other or 0) + queued("a0"), "bytes in the pool, and those of its ports' packets")
    return seen


def stopped(sender, count=10):
    """Send frames until the device stops and requeues one."""
    sender.send(p.ipv4(1000), count)
    seen = p.shown("t0")
    true(seen["requeues"] > 0, "requeues: at least one")
    equal(seen["backlog"] - queued(), 1000, "bytes that the core counts but no queue has")


def goes_on(sender, name):
    """Check that the other port has the whole pool."""
    equal(used(), 0, f"bytes in the pool, {name}")
    equal(sender.send(p.ipv4(1000), 5), 5, "frames that the other port enqueues")


@case("a port with a requeued packet leaves the pool: the pool is empty",
      how=("down", "none", "del"))
def leaves(how):
    tap, sender, other = pair()
    stopped(sender)
    true(used() > 0, "the pool is in use")
    if how == "down":
        p.run("ip", "link", "set", "t0", "down")
    elif how == "none":
        p.tc("qdisc change dev t0 root color pool none")
    else:
        p.tc("qdisc del dev t0 root")
    seen = p.shown("a0")["pool"]["used"]
    equal(seen, 0, f"bytes in the pool after {how}")
    equal(other.send(p.ipv4(1000), 5), 5, "frames that the other port enqueues")
    sender.close()
    other.close()
    tap.close()


@case("a port with a requeued packet joins the pool, then drains: the pool is empty")
def joins():
    tap, sender, other = pair("", "pool sw size 90000")
    stopped(sender)
    p.tc("qdisc change dev t0 root color pool sw")
    equal(used(), queued(), "bytes in the pool after joining")
    tap.read()
    equal(p.shown("t0")["qlen"], 0, "packets left")
    goes_on(other, "drained")
    sender.close()
    other.close()
    tap.close()


@case("a port with a requeued packet has room for each byte that Xoff promises")
def promised():
    p.insmod()
    p.fresh_namespace()
    p.veth("n0", "p0")
    tap = Tap("t0")
    p.tc("qdisc add dev p0 ingress")
    p.tc("filter add dev p0 parent ffff: matchall action mirred egress redirect dev t0")
    p.tc("qdisc add dev p0 root color rate 1gbit limit 1m pause all delay 2us unit 1514")
    p.tc("qdisc add dev t0 root color limit 100k pause obey")
    sender = p.Sender("n0")
    stopped(sender)
    headroom = 5000 + 3 * 1514 + 60
    room = p.shown("p0")["pause"]["xoff"] + headroom - queued()
    sender.send(p.ipv4(1000), room // 1000)
    equal(p.shown("t0")["drops"], 0, "drops")
    sender.close()
    tap.close()


@case("a port that holds a reserve returns it when another port of the pool begins to pause")
def exact():
    tap, sender, other = pair("pool sw size 4m", "pool sw size 4m")
    sender.send(p.ipv4(1000), 10)
    within(p.shown("t0")["pool"]["held"] - queued(), 1000, 16384, "reserve of the port, bytes")
    p.tc("qdisc change dev a0 root color rate 1gbit pause all delay 2us unit 1514")
    equal(p.shown("t0")["pool"]["held"] - queued(), 0, "its reserve, bytes")
    sender.send(p.ipv4(1000), 10)
    equal(p.shown("t0")["pool"]["held"] - queued(), 0, "its reserve after more packets, bytes")
    p.tc("qdisc change dev a0 root color pause none")
    sender.send(p.ipv4(1000), 10)
    within(p.shown("t0")["pool"]["held"] - queued(), 1000, 16384, "its reserve in the end, bytes")
    sender.close()
    other.close()
    tap.close()


@case("a port that holds a reserve of a larger pool returns all of it",
      how=("drain", "down"))
def reserve(how):
    tap, sender, other = pair("pool sw size 4m", "pool sw size 4m")
    stopped(sender)
    seen = p.shown("t0")["pool"]
    equal(seen["used"], seen["held"], "bytes used in the pool, all held by the port")
    within(seen["held"] - queued(), 1000, 16384, "reserve of the port, bytes")
    if how == "drain":
        tap.read()
    else:
        p.run("ip", "link", "set", "t0", "down")
    equal(p.shown("a0")["pool"]["used"], 0, "bytes in the pool")
    sender.close()
    other.close()
    tap.close()


def burst(options):
    """A stall of 1 s; returns (frames in the first millisecond after it, time of all 60, ms)."""
    p.insmod()
    p.fresh_namespace()
    tap = Tap("t0")
    # 1000 bytes take 1 ms
    p.tc(f"qdisc add dev t0 root handle 1: color rate 8mbit limit 1m {options}")
    sender = p.Sender("t0")
    sender.send(p.ipv4(1000), 60)
    p.settle(1)
    came = tap.read()
    sender.close()
    tap.close()
    equal(len(came), 60, "frames")
    return sum(when < 10**6 for when in came), came[-1] / 1e6


@case("after a stall of a second a few frames leave at once, the others at the port's rate",
      options=("", "bands 2", "bands 2 band-rate 1 8mbit"))
def stall(options):
    # The 4 in the device and the requeued one; the 7 that start within the transmission time of
    # four packets (6056 bytes, 6.06 ms) before now; and the next one.
    first, lasts = burst(options)
    within(first, 5, 4 + 1 + 7 + 1, "frames within the first millisecond")
    within(lasts, 60 - 5 - 8, 60, "time of all frames, ms")


@case("catch-up follows the device's MTU")
def mtu():
    p.insmod()
    p.fresh_namespace()
    tap = Tap("t0")
    p.tc("qdisc add dev t0 root handle 1: color rate 8mbit limit 1m")
    p.run("ip", "link", "set", "t0", "mtu", "9000")
    sender = p.Sender("t0")
    sender.send(p.ipv4(1000), 60)
    p.settle(1)
    came = tap.read()
    # 4 * 9014 bytes are 36 ms.
    within(sum(when < 10**6 for when in came), 5 + 36, 5 + 38, "frames within the first millisecond")
    sender.close()
    tap.close()


@case("catch-up has the configured time", options=("", "bands 2"))
def asked(options):
    for ms in (1, 20):
        first, lasts = burst(f"{options} catch-up {ms}ms")
        within(first, 5 + ms, 5 + ms + 2, f"catch-up {ms}ms: frames within the first millisecond")
        within(lasts, 60 - 5 - ms - 3, 60 - 5 - ms + 1, f"catch-up {ms}ms: time of all frames, ms")


main(need_virtual_time)
