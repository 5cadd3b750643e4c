#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: below other qdiscs, GSO packets, and bursts.

	 UDP, with UDP_SEGMENT ---> [ parent [ iofd [ color ] ] ] p0 ============ p1
	                                                          d1 ============ e1

A deflected packet is not in the queue: neither the parent nor iofd may count it.
"""
import contextlib
import socket

from lab.net import iofd as i
from lab.net import frames as p
from lab.tap import case, equal, main, timed, true

UDP_SEGMENT = 103
SIZE, COUNT = 1000, 20          # of a segment's payload, of segments
WIRE = SIZE + 42                # with UDP, IP and Ethernet
PRIO = "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
PARENTS = (PRIO, "htb default 1", "tbf rate 1gbit burst 64k limit 1m", "netem delay 1ms",
           "red limit 1m min 500k max 900k avpkt 1000 burst 600 bandwidth 10gbit")
START, MIDDLE, END, ONLY = (i.dscp(part) for part in (i.START, i.MIDDLE, i.END, i.ONLY))


def setup(parent="", child="rate 8bit limit 10m"):
    """A port below a parent, and a UDP socket whose packets go through it."""
    i.setup("", child=None)
    p.tc("qdisc del dev p0 root")
    if parent:
        p.tc(f"qdisc add dev p0 root handle 9: {parent}")
    if parent.startswith("htb"):
        p.tc("class add dev p0 parent 9: classid 9:1 htb rate 10gbit burst 100k")
    p.tc(f"qdisc add dev p0 {'parent 9:1' if parent else 'root'} handle 1: iofd "
         f"threshold 15000 entries 8 {i.deflect(1)}")
    p.tc(f"qdisc add dev p0 parent 1:1 handle 2: color {child}")
    p.run("ip", "-batch", "-", text="addr add 10.0.0.1/24 dev p0\n"
          "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev p0 nud permanent\n")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, p.SO_SNDBUFFORCE, 1 << 26)
    sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)
    sock.bind(("10.0.0.1", 1000))
    return sock


def send(sock, code, segments=1):
    """Send one GSO packet of so many segments."""
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, code << 2)
    try:
        sock.sendto(bytes(SIZE * segments), ("10.0.0.2", 9))
    except OSError as why:
        if why.errno != 105:
            raise


def payload(frames):
    """Bytes of UDP payload in frames, which may be GSO packets."""
    return sum(len(frame) - 42 for _, frame in frames)


def agree(what, held):
    """All qdiscs have the same number of packets in their queue, and it is this number."""
    p.settle(0.005)                     # netem's delay
    seen = {q["kind"]: (q["qlen"], q["backlog"]) for q in p.qdiscs()}
    equal(set(seen.values()), {(held, held * WIRE)}, f"queues {what}: {seen}")


@case("a GSO packet is deflected whole, and counted as its segments")
def gso():
    sock = setup()
    receiver = p.Receiver("e1")
    send(sock, 0, 17)
    send(sock, 0)
    agree("before", 17)
    for code in (START, MIDDLE, END):
        send(sock, code, COUNT)
    got = receiver.frames(wait=0.05)
    equal(payload(got), 3 * COUNT * SIZE, "bytes that came out")
    equal(i.codes(got)[0], START - 4, "DSCP")
    seen = i.counters()
    equal([seen[f"deflected.{name}"] for name in ("messages", "starts", "followers", "bytes")],
          [1, COUNT, 2 * COUNT, 3 * COUNT * WIRE], "counters")
    equal(i.shown()["ports"], [{"packets": 3 * COUNT, "bytes": 3 * COUNT * WIRE}], "ports")
    p.run("ip", "link", "set", "d1", "down")
    send(sock, START, COUNT)
    agree("after", 17 + COUNT)          # at the child, where color splits it
    p.run("ip", "link", "set", "d1", "up")
    p.settle(2)
    i.neighbour(1)
    send(sock, START, COUNT)
    p.run("ip", "link", "set", "d1", "down")
    send(sock, MIDDLE, COUNT)
    equal(i.counters()["dropped.port"], COUNT, "segments dropped")
    agree("at last", 17 + COUNT)
    p.run("ip", "link", "set", "d1", "up")
    p.settle(2)
    i.neighbour(1)
    p.tc("qdisc add dev d1 root netem delay 100s limit 1")
    send(sock, START, COUNT)
    send(sock, MIDDLE, COUNT)
    equal(i.counters()["dropped.refused"], COUNT, "segments that the queue of d1 refused")
    p.tc("qdisc del dev d1 root")
    sock.close()
    receiver.close()


@case("a deflected packet whose checksum is left to the device")
def offload():
    sock = setup()
    receiver = p.Receiver("e1")
    send(sock, 0, 18)
    send(sock, ONLY)
    got = receiver.frames(wait=0.05)
    equal((len(got), payload(got)), (1, SIZE), "came out")
    equal(i.codes(got), [ONLY - 4], "DSCP, and IPv4's checksum")
    sock.close()
    receiver.close()


@case("below prio, htb, tbf, netem, red: all of them count the same")
def parents():
    for words in PARENTS:
        sock = setup(words)
        straight, away = p.Receiver(), p.Receiver("e1")
        send(sock, 0, 17)
        send(sock, 0)
        agree(f"below {words}", 17)
        for code in (START, MIDDLE, MIDDLE, END, ONLY):
            send(sock, code)
            send(sock, code if code != END else 0, COUNT if code != END else 5)
            agree(f"below {words}, after {code:#x}", 17 if code not in (END, ONLY) else 22)
        away_bytes = payload(away.frames(wait=0.05))
        true(away_bytes >= 5 * SIZE, f"{away_bytes} bytes were deflected")
        send(sock, START)
        p.settle(0.005)
        p.run("ip", "link", "set", "d1", "down")
        send(sock, END)
        agree(f"below {words}, port down", 22)
        equal(i.counters()["dropped.port"], 1, "dropped")
        p.tc("qdisc change dev p0 parent 1:1 handle 2: color rate 1gbit")
        p.settle(0.1)
        agree(f"below {words}, at the end", 0)
        equal(payload(straight.frames(wait=0.05)), 23 * SIZE, "bytes straight on")
        for each in (sock, straight, away):
            each.close()


@contextlib.contextmanager
def backlog_of(packets):
    """Set net.core.netdev_max_backlog, a sysctl of the first namespace, for a while."""
    def write(value):
        return p.run("nsenter", "-t", "1", "-n", "sysctl", "-n", "-w",
                     f"net.core.netdev_max_backlog={value}")
    before = p.run("nsenter", "-t", "1", "-n", "sysctl", "-n", "net.core.netdev_max_backlog")
    write(packets)
    try:
        yield
    finally:
        write(before.stdout.strip())


@timed("1100 packets at once: 1000 fit into the FIFO, and several runs send them")
def budget():
    # netem enqueues all packets of a slot to iofd in one softirq; the work item runs after it.
    sock = setup("netem delay 1ms slot 50ms 50ms limit 10000")
    sender, away = p.Sender(), p.Receiver("e1")
    i.congest(sender)
    p.settle(0.2)
    equal(i.waiting(), {"packets": 0, "bytes": 0, "peak": 0}, "waiting before")
    # The far end of a veth drops packets above this backlog.  A softirq runs a work item that is
    # queued again up to ten times, so up to 640 packets arrive before the backlog is processed.
    with backlog_of(700):
        for number in range(1100):
            sender.send(i.frame(MIDDLE if number else START, number=number))
        p.settle(0.2)
    equal(p.numbers(away.frames(wait=0.05)), list(range(1000)), "numbers that came out")
    seen = i.counters()
    equal([seen[name] for name in ("deflected.starts", "deflected.followers", "deflected.bytes",
                                   "dropped.fifo")], [1, 999, 1000000, 100], "counters")
    equal(i.waiting(), {"packets": 0, "bytes": 0, "peak": 1000}, "waiting after")
    for each in (sock, sender, away):
        each.close()


@timed("tbf peeks: it gets the packet that it has seen, and its rate holds")
def peeked():
    for child in ("rate 10gbit limit 10m", "rate 4mbit limit 10m"):
        sock = setup("tbf rate 8mbit burst 2000 limit 1m", child)
        straight = p.Receiver()
        for _ in range(20):
            send(sock, 0)
        got = straight.frames(20)
        equal(len(got), 20, "frames")
        due = 19 * WIRE * 8 // (8 if "10g" in child else 4)         # µs
        took = (got[-1][0] - got[0][0]) // 1000
        true(0.85 * due < took < 1.02 * due, f"{took} us, {due} are due")
        agree("at the end", 0)
        sock.close()
        straight.close()


@case("deleted with packets in the queue, and after packets were deflected")
def deleted():
    for _ in range(20):
        sock = setup(PRIO)
        send(sock, 0, 18)
        send(sock, START)
        for _ in range(50):
            send(sock, MIDDLE)
        p.tc("qdisc del dev p0 parent 9:1")
        equal([q["qlen"] for q in p.qdiscs()], [0], "the parent's queue")
        send(sock, MIDDLE)
        p.tc("qdisc del dev p0 root")
        sock.close()


main()
