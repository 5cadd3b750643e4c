#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: ports are set down, deleted and added again; the list changes; all are removed.

	 frames ---> [ iofd [ color ] ] p0 ============ p1
	                                d1 ============ e1
	                                d2 ============ e2

All packets of a message take the path of the first, also if its port is set down or deleted.
"""
import os
import subprocess
import time

from lab.net import iofd as i
from lab.net import frames as p
from lab.net.trace import events, traced
from lab.tap import Skip, case, equal, main, true

ALL = "threshold 15000 entries 8 seed 1 timeout 100s"
START, MIDDLE, END = (i.dscp(part) for part in (i.START, i.MIDDLE, i.END))


def ip(words):
    """Run ip with the words of a string."""
    p.run("ip", *words.split())


def begun(ports=2, options=ALL):
    """A congested port and one deflected message: (the sender, the message's port)."""
    i.setup(options, ports=ports)
    sender, receivers = p.Sender(), i.receivers(ports)
    i.congest(sender)
    sender.send(i.frame(START, number=1))
    got = [len(each.frames(wait=0.02)) for each in receivers]
    equal(sum(got), 1, "packets that were deflected: the start")
    for each in receivers:
        each.close()
    return sender, got.index(1) + 1


def at(port):
    """A function that returns the numbers of the frames that arrive at a port from now on."""
    receiver = p.Receiver(f"e{port}")

    def numbers():
        got = p.numbers(receiver.frames(wait=0.02))
        receiver.close()
        return got
    return numbers


def expect_drops(sender, numbers, others=()):
    """The next packets of the message are dropped and counted, and arrive at no other port."""
    before, there = i.counters(), [at(port) for port in others]
    for number in numbers:
        equal(sender.send(i.frame(MIDDLE, number=number)), 0, "sent")
    for port in there:
        equal(port(), [], "numbers of frames at another port")
    after = i.counters()
    equal(after["dropped.port"] - before["dropped.port"], len(numbers), "dropped")
    equal(after["deflected.followers"], before["deflected.followers"], "followers")
    equal(i.shown()["drops"] >= len(numbers), True, "the drops of the qdisc are at least that many")
    equal(after["table.entries"], 1, "entries")


@case("a port that is down: packets of its messages are dropped, new messages use another port; "
      "after it is up its messages continue")
def down():
    for how in ("d", "e"):          # the device is down, the carrier is off
        sender, port = begun()
        other = 3 - port
        ip(f"link set {how}{port} down")
        expect_drops(sender, [2, 3], [other])
        there = at(other)
        for flow in range(2, 7):
            sender.send(i.frame(START, flow, flow))
            sender.send(i.frame(END, flow, flow))
        equal(there(), [2, 2, 3, 3, 4, 4, 5, 5, 6, 6], "new messages")
        ip(f"link set {how}{port} up")
        if how == "d":              # a device that is set down loses its neighbours
            ip(f"neigh replace {i.via(port)} lladdr {i.lladdr(port)} dev d{port} nud permanent")
        p.settle(2)                 # the kernel checks carriers once a second
        there = at(port)
        sender.send(i.frame(MIDDLE, number=4))
        equal(there(), [4], "the old message, after it is up")
        sender.close()


@case("the end of a message frees its entry, also if its port is down")
def down_end():
    sender, port = begun(ports=1)
    ip(f"link set d{port} down")
    equal(sender.send(i.frame(END)), 0, "sent")
    seen = i.counters()
    equal((seen["table.entries"], seen["dropped.port"]), (0, 1), "entries, drops")
    equal(sender.send(i.frame(START)), 1, "packets to the child, as no port is up")
    equal(i.counters()["passed.no_port"], 1, "passed.no_port")
    equal(i.counters()["table.entries"], 0, "entries")
    sender.close()


@case("packets that are dropped at a port that is down do not refresh the entry, which expires")
def down_timeout():
    sender, port = begun(options="threshold 15000 entries 8 seed 1 timeout 200ms")
    ip(f"link set d{port} down")
    sender.send(i.frame(MIDDLE, number=2))
    time.sleep(0.1)
    sender.send(i.frame(MIDDLE, number=3))      # less than the timeout after the last sent one
    seen = i.counters()
    equal((seen["dropped.port"], seen["table.entries"], seen["table.expired"]), (2, 1, 0),
          "dropped, entries, expired")
    time.sleep(0.15)
    equal(sender.send(i.frame(MIDDLE, number=4)), 1, "packets to the child")
    after = i.counters()
    equal((after["dropped.port"], after["table.entries"], after["table.expired"]), (2, 0, 1),
          "dropped, entries, expired")
    there = at(3 - port)
    sender.send(i.frame(START, number=5))
    sender.send(i.frame(END, number=6))
    equal(there(), [5, 6], "the next message of that flow, at the other port")
    sender.close()


@case("packets that the queue of a port drops are counted as refused",
      words=("limit 1514", "limit 1m yellow 1514", "limit 1m pool sw size 1514"))
def refused(words):
    sender, port = begun(ports=1)
    p.tc(f"qdisc add dev d{port} root color rate 8bit {words}")
    for number in range(5):                     # the link has one, the queue another one
        equal(sender.send(i.frame(MIDDLE, number=number)), 1, "sent")
    seen = i.counters()
    equal((seen["dropped.refused"], seen["dropped.port"]), (3, 0), "dropped.refused, dropped.port")
    equal(p.shown(f"d{port}")["drops"], 3, "drops of the port's own queue")
    sender.close()
    p.tc(f"qdisc del dev d{port} root")


@case("a packet whose port is down is dropped with a reason")
def reasons():
    sender, port = begun(ports=1)
    ip(f"link set d{port} down")
    with traced("skb/kfree_skb") as lines:
        sender.send(i.frame(MIDDLE, number=2))
        equal(i.counters()["dropped.port"], 1, "dropped")
    found = [line.split("reason: ")[1].split()[0] for line in lines if "reason: " in line]
    sender.close()
    if "QDISC_DROP" in found:
        if "qdisc_drop" not in events("qdisc"):
            raise Skip("this kernel's qdiscs have no reasons")
    equal("DEV_READY" in found, True, f"DEV_READY in the reasons {found}")


@case("a deleted port with entries in use: packets are dropped and counted; tc shows it as gone")
def gone():
    sender, port = begun()
    ip(f"link del d{port}")
    expect_drops(sender, [2, 3], [3 - port])
    options = i.shown()["options"]["deflect"]
    equal(options[port - 1], {"dev": f"d{port}", "via": i.via(port), "gone": True}, "options")
    true(f"deflect dev d{port} via {i.via(port)} (gone)" in p.tc("qdisc show dev p0").stdout,
         "text")
    # a new device with the same name is another port
    i.add_port(port)
    expect_drops(sender, [4], [1, 2])
    i.change(i.deflect(1, 2))
    true("gone" not in i.shown()["options"]["deflect"][port - 1],
         "the new port is not shown as gone")
    expect_drops(sender, [5], [1, 2])
    equal(sender.send(i.frame(END)), 0, "packets to the child: the end of the message")
    equal(i.counters()["table.entries"], 0, "entries")
    sender.close()


@case("all ports are deleted: messages pass to the child")
def all_gone():
    sender, _ = begun()
    for port in (1, 2):
        ip(f"link del e{port}")
    expect_drops(sender, [2])
    equal(sender.send(i.frame(START, 2)), 1, "packets to the child, of another message")
    equal(i.counters()["passed.no_port"], 1, "passed.no_port")
    sender.close()


@case("a port that is moved to another namespace counts as deleted")
def moved():
    sender, port = begun()
    ip("netns add far")
    ip(f"link set d{port} netns far")
    expect_drops(sender, [2], [3 - port])
    true(i.shown()["options"]["deflect"][port - 1]["gone"], "the port is shown as gone")
    ip(f"-n far link set d{port} netns {os.getpid()}")
    ip(f"link set d{port} up")
    expect_drops(sender, [3], [3 - port])
    ip("netns del far")
    sender.close()


@case("change: a message keeps its port while the port is in the list")
def change_list():
    sender, port = begun()
    other = 3 - port
    there = at(port)
    i.change(f"{i.deflect(other, port)} threshold 14000")       # in reverse order
    sender.send(i.frame(MIDDLE, number=2))
    i.change(i.deflect(port))
    sender.send(i.frame(MIDDLE, number=3))
    i.change(f"entries 1 timeout 1s {i.deflect(port)}")         # another table
    sender.send(i.frame(MIDDLE, number=4))
    equal(there(), [2, 3, 4], "numbers at the port of the message")
    equal(i.shown()["ports"], [{"packets": 4, "bytes": 4000}], "counters")
    i.change(i.deflect(other))
    expect_drops(sender, [5], [1, 2])
    i.change(i.deflect(port))                       # a new port with the same options
    expect_drops(sender, [6], [1, 2])
    equal(i.shown()["ports"], [{"packets": 0, "bytes": 0}], "counters")
    sender.close()


@case("change: another next hop makes another port")
def change_via():
    sender, port = begun(ports=1)
    ip(f"neigh add 10.9.1.3 lladdr 02:00:00:00:09:33 dev d{port} nud permanent")
    i.change(f"deflect dev d{port} via 10.9.1.3")
    expect_drops(sender, [2], [port])
    receiver = p.Receiver(f"e{port}")
    sender.send(i.frame(START, 2))
    equal(i.listen(receiver.frames(1)[0][1]), "02:00:00:00:09:33", "link-layer destination")
    sender.close()
    receiver.close()


@case("change: a table that is smaller than the number of entries in use is refused")
def change_entries():
    i.setup(ALL)
    sender = p.Sender()
    i.congest(sender)
    for flow in range(1, 6):
        sender.send(i.frame(START, flow))
    before = i.shown()["options"]
    done = i.change(f"entries 4 threshold 1 {i.deflect(1)}", check=False)
    true(done.returncode and "in use" in done.stderr, f"refused: {done.stderr}")
    equal(i.shown()["options"], before, "options")
    i.change("entries 5")
    there = at(1)
    for flow in range(1, 6):
        sender.send(i.frame(END, flow, flow))
    equal(there(), [1, 2, 3, 4, 5], "numbers at the port: the ends")
    seen = i.counters()
    equal((seen["table.entries"], seen["table.peak"]), (0, 5), "entries, peak")
    sender.close()


@case("the deflecting device is set down and up: messages keep their ports")
def own_down():
    sender, port = begun()
    ip("link set p0 down")
    equal((i.shown()["qlen"], i.shown()["backlog"]), (0, 0), "qlen and backlog")
    ip("link set p0 up")
    there = at(port)
    sender.send(i.frame(MIDDLE, number=2))
    equal(there(), [2], "numbers at the port of the message")
    sender.close()


@case("change under traffic: each message arrives in order, at one port")
def change_live():
    i.setup("threshold 15000 entries 64", ports=4)
    sender, receivers = p.Sender(), i.receivers(4)
    i.congest(sender)
    words = [i.deflect(1, 2, 3, 4), "entries 70", i.deflect(4, 3, 2, 1), "timeout 1s",
             f"threshold 14000 {i.deflect(2, 4, 1, 3)}", "entries 64", "seed 3"]
    flows = range(1, 41)
    for number in range(30):
        for flow in flows:
            part = START if not number else END if number == 29 else MIDDLE
            sender.send(i.frame(part, flow, flow * 100 + number))
        i.change(words[number % len(words)])
    seen = []
    for each in receivers:
        at_port = {}
        for number in p.numbers(each.frames(wait=0.02)):
            at_port.setdefault(number // 100, []).append(number % 100)
        equal(set(map(tuple, at_port.values())), {tuple(range(30))}, "numbers of each")
        seen += at_port
        each.close()
    equal(sorted(seen), list(flows), "flows")
    sender.close()


def flood():
    """Send messages without end; every second one lacks its last packet."""
    i.setup("threshold 1000 entries 8", ports=2, child="rate 8mbit limit 1m")
    sender = p.Sender()
    # two devices that deflect to each other
    p.tc(f"qdisc add dev d1 root iofd threshold 1 deflect dev p0 via {i.via(1)} {i.deflect(2)}")
    flow = 0
    while True:
        flow = flow % 60000 + 1
        for frame in i.message(3, flow, size=200)[:2 + flow % 2]:
            sender.send(frame)
        if flow % 50 == 0:
            i.congest(sender, 2000)
            time.sleep(0.001)


@case("a namespace is removed with entries in use, ports in each other's lists, and traffic")
def namespace():
    for _ in range(10):
        pid = p.in_background(flood)
        p.settle(1.4)
        p.kill(pid)
    p.tc("qdisc del dev p0 root", check=False)
    p.fresh_namespace()
    p.unused("sch_iofd")


@case("ports and qdiscs are added and deleted under traffic")
def churn():
    def send():
        sender = p.Sender()
        while True:
            i.congest(sender, 2000)
            for flow in range(50):
                for frame in i.message(3, flow, size=200):
                    sender.send(frame)
            time.sleep(0.0002)

    i.setup(ALL, ports=2)
    pid = p.in_background(send)
    for turn in range(40):
        if turn % 4 == 0:
            p.tc("qdisc del dev p0 root")
            p.tc(f"qdisc add dev p0 root handle 1: iofd threshold 1000 {i.deflect(1, 2)}")
            p.tc(f"qdisc add dev p0 parent 1:1 handle 2: color {i.STILL}")
        ip("link set d1 down")
        p.settle(0.003)
        ip("link set d1 up")
        ip("link del d2")
        p.settle(0.003)
        i.add_port(2)
        i.change(i.deflect(1, 2))
        if turn % 3 == 0:
            p.tc("qdisc del dev p0 parent 1:1")
            p.settle(0.003)
            p.tc(f"qdisc add dev p0 parent 1:1 handle 2: color {i.STILL}")
    p.kill(pid)
    true(i.counters()["deflected.messages"], "deflected messages: more than 0")
    p.tc("qdisc del dev p0 root")


@case("rmmod is refused while a qdisc exists, and succeeds afterwards; with entries in use")
def rmmod():
    i.setup(ALL)
    sender = p.Sender()
    i.congest(sender)
    for flow in range(5):
        sender.send(i.frame(START, flow))
    true(subprocess.run(["rmmod", "sch_iofd"], capture_output=True, check=False).returncode,
         "refused with a port")
    sender.close()
    p.tc("qdisc del dev p0 root")
    p.unused("sch_iofd")
    p.run("rmmod", "sch_iofd")
    true(not os.path.exists("/sys/module/sch_iofd"), "the module is removed")
    equal(p.run("ip", "link", "del", "d1").returncode, 0, "status of the deletion of the port")


main()
