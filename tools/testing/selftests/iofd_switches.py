#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: switches that deflect to each other, and route (lab/net/switches.py)."""
import os
import time

from lab.codepoints import SPENT, SPENT_END
from lab.net import iofd as i
from lab.net import frames as p
from lab.net.namespace import write_sysctl
from lab.net.switches import NEXT, switches
from lab.tap import case, equal, main, timed, true, within


@case("a loop of three ends when the tokens do; in order; IPv4 and IPv6, neighbours unresolved",
      version=(4, 6))
def loop(version):
    with switches("threshold 15000", version=version) as net:
        net.congest()
        sender = net.open(p.Sender, 1, "host")
        for frame in i.message(6, version=version):
            sender.send(frame)
        time.sleep(3)           # for ARP
        want = {1: (2, 12), 2: (1, 6), 3: (1, 6)}
        for n, (messages, packets) in want.items():
            seen = net.counters(n)
            equal(seen["deflected.messages"], messages, f"messages that sw{n} deflects")
            equal(seen["deflected.starts"] + seen["deflected.followers"], packets,
                  f"packets that sw{n} deflects")
            equal(seen["table.entries"], 0, f"entries of sw{n}")
            equal(seen["passed.spent"], 6 if n == 2 else 0, f"spent at sw{n}")
        equal([net.backlog(n) for n in (1, 2, 3)], [16, 22, 16], "backlog of each switch")
        got = net.drain(2)
        equal([number for number, _, _ in got], list(range(6)), "numbers")
        equal([code for _, code, _ in got], [SPENT.dscp] * 5 + [SPENT_END.dscp], "DSCPs")
        ttl = 22 if version == 4 else 21
        equal({frame[ttl] for _, _, frame in got}, {64 - 5}, "hops: TTL")
        sender.close()


@case("fewer tokens: a shorter path; a message of one packet as well")
def tokens():
    for count in (6, 1):
        for number, (at, ends) in enumerate(((2, 4), (1, 3), (3, 2), (2, 1))):
            with switches("threshold 15000") as net:
                net.congest()
                sender = net.open(p.Sender, 1, "host")
                for frame in i.message(count, tokens=ends, number=number):
                    sender.send(frame)
                time.sleep(3)
                total = sum(net.counters(n)["deflected.messages"] for n in NEXT)
                equal(total, ends, f"deflections with {ends} tokens")
                # 4: back at sw1, and on to sw2
                equal([net.backlog(n) - 16 for n in NEXT],
                      [count if n == {4: 2, 3: 1, 2: 3, 1: 2}[ends] else 0 for n in NEXT],
                      f"where they are, {at}")
                sender.close()


@case("two that deflect to each other, flooded from both sides: no loss, all in order")
def mutual():
    flows, length = 100, 6
    with switches("threshold 15000 entries 1000", ring={1: 2, 2: 1, 3: 1},
                  child="rate 8bit limit 100m") as net:
        net.congest()
        senders = {n: net.open(p.Sender, n, "host") for n in (1, 2)}
        for n, sender in senders.items():       # so that neighbours are resolved
            sender.send(i.message(1, flow=60000 + n, number=9999)[0])
        time.sleep(3)
        base = {n: net.backlog(n) for n in NEXT}
        for part in range(length):
            for flow in range(flows):
                for n, sender in senders.items():
                    number = (n * 1000 + flow) * 10 + part
                    sender.send(i.message(length, n * 1000 + flow)[part][:-4]
                                + number.to_bytes(4, "big"))
                if flow % 20 == 19:     # the FIFO has room for 1000 packets
                    time.sleep(0.00001)
        time.sleep(0.1)
        for n in (1, 2):
            seen = net.counters(n)
            # its own messages twice, and those of the other switch twice
            equal(seen["deflected.messages"] - 4, 4 * flows, f"messages of sw{n}")
            equal(seen["deflected.followers"], 4 * flows * (length - 1), f"followers of sw{n}")
            equal((seen["table.entries"], seen["dropped.port"], seen["dropped.fifo"]), (0, 0, 0),
                  f"entries and drops of sw{n}")
            equal(net.backlog(n) - base[n], flows * length, f"in the queue of sw{n}")
        for n in (1, 2):
            order = {}
            for number, _, _ in net.drain(n):
                order.setdefault(number // 10, []).append(number % 10)
            equal(set(map(tuple, order.values())), {tuple(range(length))}, f"order at sw{n}")
            equal(sorted(order), [n * 1000 + flow for flow in range(flows)], f"flows at sw{n}")
        for sender in senders.values():
            sender.close()


def strict_drops():
    """The number of packets that rp_filter has dropped in this namespace, from nstat."""
    name = "TcpExtIPReversePathFilter"
    lines = [line.split() for line in p.run("nstat", "-asz", name).stdout.splitlines()]
    return next(int(line[1]) for line in lines if line[0] == name)


@case("rp_filter at the next hop: strict drops what is deflected, and loose delivers it")
def reverse_path():
    for mode, passed in ((1, 0), (2, 1), (0, 1)):
        with switches("threshold 15000") as net:
            net.congest()
            with net.ns[2]:             # its route to the source is another device, out
                write_sysctl("net.ipv4.conf.to1.rp_filter", mode)
                before = strict_drops()
            sender = net.open(p.Sender, 1, "host")
            for frame in i.message(3, tokens=1):
                sender.send(frame)
            time.sleep(3)               # for ARP
            seen = net.counters(1)
            equal(seen["deflected.starts"] + seen["deflected.followers"], 3, "deflected by sw1")
            equal(net.backlog(2) - 16, 3 * passed, f"in the queue of sw2, rp_filter {mode}")
            with net.ns[2]:
                equal(strict_drops() - before, 3 * (1 - passed), f"dropped, rp_filter {mode}")
            sender.close()


@timed("under load, with a queue that fills and drains: each message on one path, in order")
def load():
    with switches("threshold 15000 entries 8", child="rate 1gbit limit 200k") as net:
        sender = net.open(p.Sender, 1, "host")
        ends = {n: net.open(p.Receiver, n, "sink") for n in NEXT}
        for n, ns in net.ns.items():            # neighbours that need no ARP
            with ns:
                other = NEXT[n]
                address = net.deflect(n).split()[-1]
                p.run("ip", "neigh", "replace", address, "dev", f"to{other}", "lladdr",
                      net.mac(other, n), "nud", "permanent")
        flow, live, sent = 0, [], 0
        for step in range(1500):
            if step % 150 < 75 and len(live) < 30:      # a burst, a pause
                for _ in range(3):
                    flow += 1
                    live.append((flow, iter(i.message(8, flow, flow * 10))))
            for entry in list(live):
                frame = next(entry[1], None)
                if frame is None:
                    live.remove(entry)
                else:
                    sent += sender.send(frame)
            time.sleep(0.0001)
        time.sleep(0.1)
        way = {}
        for n, receiver in ends.items():
            for when, frame in receiver.frames(wait=0.1):
                number = int.from_bytes(frame[-4:], "big")
                way.setdefault(number // 10, []).append((when, n, number % 10))
        way.pop(0, None)
        got = 0
        for number, packets in way.items():
            packets.sort()
            got += len(packets)
            equal(len({n for _, n, _ in packets}), 1, f"paths of message {number}")
            order = [part for _, _, part in packets]
            equal(order, sorted(order), f"order of message {number}")
        elsewhere = sum(packets[0][1] != 1 for packets in way.values())
        within(elsewhere, len(way) // 20, len(way) * 19 // 20, f"of {len(way)} deflected")
        seen = net.counters(1)
        true(seen["passed.full"], "the table was full now and then")
        equal((seen["table.entries"], seen["table.peak"]), (0, 8), "entries, peak")
        drops = 0
        for n in NEXT:
            with net.ns[n]:
                drops += i.shown("out")["drops"]
        equal(got + drops, sent, "all arrived or were dropped by a full queue")
        sender.close()
        for receiver in ends.values():
            receiver.close()


@timed("too many at once: packets that do not fit into the FIFO are dropped and counted")
def fifo():
    count = 3000
    with switches("threshold 15000 entries 8 timeout 100s", child="rate 8bit limit 100m") as net:
        net.congest()
        # One run of the softirq forwards all of them, and runs the work item after that.
        for name, value in (("dev_weight", 10000), ("netdev_budget", 100000),
                            ("netdev_budget_usecs", 10000000), ("netdev_max_backlog", 100000)):
            write_sysctl(f"net.core.{name}", value)
        sender = net.open(p.Sender, 1, "host")
        frames = i.message(3, tokens=1)
        sender.send(frames[0])
        time.sleep(3)
        with net.ns[1]:
            p.tc("qdisc add dev host root netem delay 10ms limit 100000")
        arrivals = net.open(p.Receiver, 2, "to1")
        for number in range(count):
            sender.send(frames[1][:-4] + number.to_bytes(4, "big"))
        sender.send(frames[2])
        time.sleep(0.1)
        seen = net.counters(1)
        got = [number for number in p.numbers(arrivals.frames(wait=0.1)) if number < count]
        true(seen["dropped.fifo"] > 0, f"some did not fit: {seen}")
        equal(seen["deflected.followers"] + seen["dropped.fifo"], count + 1, "all of them")
        equal(got, list(range(len(got))), "the first ones, in order")
        equal(seen["deflected.followers"], 1000, "of them waited")
        equal(seen["table.entries"], 0, "the dropped end freed the entry")
        for each in (sender, arrivals):
            each.close()


# veth has a backlog for each CPU: packets of a sender that moves to another CPU may overtake
# each other.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
main()
