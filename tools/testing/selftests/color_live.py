#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: reconfiguration, removal and stacking while packets pass.

	   numbered frames   [ parent ]
	 ------------------> [ color  ] p0 ============ p1 -->  the same frames
"""
import os
import struct
import time

from lab.net import frames as p
from lab.tap import case, equal, main, timed, true, within


def trickle(count, gap):
    """A process that sends numbered frames at intervals."""
    def send():
        sender = p.Sender()
        for number in range(count):
            sender.send(p.numbered(number))
            time.sleep(gap)
    return p.in_background(send)


def through(changes, count=2000):
    """Frames pass a busy port while tc changes it; returns the numbers of the received frames."""
    p.port("rate 100mbit limit 1m")         # 80 us a frame
    receiver = p.Receiver()
    pid = trickle(count, 0.00008)
    for words in changes:
        p.tc(words)
        p.settle(0.005)
    os.waitpid(pid, 0)
    p.settle(0.2)
    got = p.numbers(receiver.frames(wait=0.05))
    receiver.close()
    return got


CHANGES = ["rate 50mbit", "red 100k ecn 50k", "pool a size 1m", "count queue classify ecn",
           "pool b size 2m alpha 0.5", "rate none int none", "rate 100mbit overhead 24",
           "no-split-gso map 0 green", "pause all", "pool none", "trim 61 trim-limit 10",
           "pause green xoff 100k delay 1us", "limit 500k int 20us", "pause obey",
           "red auto count color", "rate 200mbit trim none pool a size 1m", "pause none",
           "red auto min 5k pool none int none", "red 90k", "red auto"]


@case("change under traffic: every frame arrives, in order")
def change():
    got = through([f"qdisc change dev p0 root color {words}" for words in CHANGES * 2])
    equal(got, list(range(2000)), "numbers")


@case("replacing a qdisc by itself under traffic: every frame arrives, in order")
def replace():
    got = through([f"qdisc replace dev p0 root handle 1: color {words}" for words in CHANGES])
    equal(got, list(range(2000)), "numbers")


@case("refused changes under traffic: every frame arrives, in order")
def refused():
    p.port("rate 100mbit limit 1m red 500k")
    receiver = p.Receiver()
    pid = trickle(1000, 0.00008)
    for words in ("red 2m", "pool x", "ecn 2m", "limit 1k", "red auto count port") * 3:
        true(p.tc(f"qdisc change dev p0 root color {words}", check=False).returncode, "refused")
        p.settle(0.005)
    os.waitpid(pid, 0)
    p.settle(0.2)
    equal(p.numbers(receiver.frames(wait=0.05)), list(range(1000)), "numbers")
    receiver.close()


@case("a queue above its new limit keeps all frames, and drains")
def shrink():
    p.port("rate 8bit limit 1m")
    sender, receiver = p.Sender(), p.Receiver()
    for number in range(101):
        sender.send(p.numbered(number))
    p.tc("qdisc change dev p0 root color limit 10000")
    equal(p.shown()["qlen"], 100, "frames in the queue")
    equal(sender.send(p.numbered(999)), 0, "new frames that are enqueued")
    p.tc("qdisc change dev p0 root color rate 1gbit")
    equal(p.numbers(receiver.frames(101)), list(range(101)), "numbers")
    sender.close()
    receiver.close()


def stacked(parent, child, classid="9:1", devargs=()):
    """A port below another qdisc."""
    p.insmod()
    p.fresh_namespace()
    p.veth("p0", "p1", *devargs)
    p.tc(f"qdisc add dev p0 root handle 9: {parent}")
    if parent.startswith("htb"):
        p.tc("class add dev p0 parent 9: classid 9:1 htb rate 100mbit burst 100k")
    p.tc(f"qdisc add dev p0 parent {classid} handle 1: color {child}")


def family(kind):
    """The port and its parent, from one dump."""
    seen = {qdisc["kind"]: qdisc for qdisc in p.qdiscs()}
    return seen["color"], seen[kind]


PRIO = "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"


# On several processors a veth's receive queues, one for each, would change the order.
@timed("below prio, htb, tbf: parent and child have the same qlen, and frames arrive in order")
def child():
    for parent in (PRIO, "htb default 1", "tbf rate 50mbit burst 20k limit 1m"):
        kind = parent.split()[0]
        for words in ("limit 40000", "rate 20mbit limit 40000", "rate 1gbit limit 40000"):
            stacked(parent, words)
            sender, receiver = p.Sender(), p.Receiver()
            # one by one through the port, then more than its limit
            for number in range(60):
                sender.send(p.numbered(number))
            below, above = family(kind)
            equal((above["qlen"], above["backlog"]), (below["qlen"], below["backlog"]),
                  f"qlen and backlog of {kind} and color {words}")
            got = p.numbers(receiver.frames(wait=0.1))
            equal(got, sorted(got), f"order below {kind}, color {words}")
            equal(len(got) + sender.refused, 60, f"frames below {kind}, color {words}")
            within(len(got), 40, 60, f"frames that fit below {kind}, color {words}")
            below, above = family(kind)
            equal((below["qlen"], below["backlog"]), (0, 0), f"qlen and backlog of color {words}")
            equal((above["qlen"], above["backlog"]), (0, 0), f"qlen and backlog of {kind}")
            equal(below["queue"]["backlog"], 0, "backlog of the port's own counter")
            sender.close()
            receiver.close()


@timed("below tbf, which peeks, the lower of both rates holds")
def peeked():
    for words, rate in (("rate 10mbit", 10), ("rate 500mbit", 50), ("", 50)):
        stacked("tbf rate 50mbit burst 2k limit 10m", f"limit 10m {words}")
        sender, receiver = p.Sender(), p.Receiver()
        sender.send(p.numbered(0))
        receiver.frames(1)
        p.settle(0.1)
        sender.send(p.numbered(0), 201)
        got = [when for when, _ in receiver.frames(201)]
        equal(len(got), 201, f"frames below tbf, {words}")
        due = 200 * 8000 / rate
        within((got[-1] - got[0]) / 1000, due * 0.985, due * 1.002, f"us for 200 frames, {words}")
        sender.close()
        receiver.close()


@case("below mq: a port for each queue, and mq has their sum")
def multiqueue():
    p.insmod()
    p.fresh_namespace()
    p.veth("p0", "p1", "numtxqueues", "4", "numrxqueues", "4")
    p.tc("qdisc add dev p0 root handle 9: mq")
    for queue in range(1, 5):
        p.tc(f"qdisc add dev p0 parent 9:{queue} color rate 8bit limit 100000 pool sw size 1m")
    sender = p.Sender()
    for number in range(100):
        frame = bytearray(p.numbered(number))
        frame[26:30] = bytes((10, number, 0, 1))        # another flow
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", p.checksum(bytes(frame[14:34])))
        sender.send(bytes(frame))
    seen = p.qdiscs()
    ports = [q for q in seen if q["kind"] == "color"]
    above = [q for q in seen if q["kind"] == "mq"][0]
    equal(len(ports), 4, "ports")
    busy = sum(q["qlen"] > 0 for q in ports)
    true(busy > 1, f"{busy} of 4 queues are in use")
    equal(above["qlen"], sum(q["qlen"] for q in ports), "packets")
    equal(above["backlog"], sum(q["queue"]["backlog"] for q in ports), "bytes")
    equal(ports[0]["pool"]["used"], sum(q["pool"]["held"] for q in ports), "bytes in the pool")
    for q in ports:
        # 1/256 of the pool
        within(q["pool"]["held"] - q["backlog"], 0, (1 << 20) // 256, "a port's reserve")
    sender.close()
    p.tc("qdisc del dev p0 root")


@case("a device that is set down and up again has empty queues and keeps its counters")
def down_up():
    p.port("rate 8bit limit 1m")
    sender = p.Sender()
    sender.send(p.ipv4(1000), 10)
    p.run("ip", "link", "set", "p0", "down")
    seen = p.shown()
    equal((seen["qlen"], seen["backlog"], seen["queue"]["backlog"]), (0, 0, 0), "qlen and backlogs")
    equal(seen["colors"]["yellow"]["backlog"], 0, "yellow backlog")
    equal(seen["colors"]["yellow"]["packets"], 10, "yellow packets")
    p.run("ip", "link", "set", "p0", "up")
    receiver = p.Receiver()
    sender.send(p.numbered(7))
    equal(p.numbers(receiver.frames(1)), [7], "number of the first frame, at once")
    sender.close()
    receiver.close()
    p.tc("qdisc del dev p0 root")


@case("a namespace is removed with full queues, a pool and a busy sender")
def namespace():
    def flood():
        p.port("rate 8mbit limit 1m pool sw size 10m pause all")
        sender = p.Sender()
        while True:
            sender.send(p.ipv4(1500, p.RED), 50)
            time.sleep(0.001)

    for _ in range(5):
        pid = p.in_background(flood)
        p.settle(0.5)
        p.kill(pid)
    p.fresh_namespace()
    p.unused("sch_color")


@case("rmmod is refused while a port exists, and succeeds afterwards")
def rmmod():
    p.port()
    true(p.run("rmmod", "sch_color", check=False).returncode, "refused with a port")
    p.tc("qdisc del dev p0 root")
    p.unused("sch_color")
    p.run("rmmod", "sch_color")
    true(not os.path.exists("/sys/module/sch_color"), "the module is removed")


main()
