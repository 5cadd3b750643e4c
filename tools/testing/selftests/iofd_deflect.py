#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iofd: which packets are deflected, to which port, and how they arrive.

	 frames ---> [ iofd [ color ] ] p0 ============ p1
	                                d1 ============ e1
	                                d2 ============ e2

Each case sends packets and compares what arrives, to the byte and to the packet.
"""
import collections
import time

from lab.codepoints import SPENT, SPENT_END
from lab.net import iofd as i
from lab.net import frames as p
from lab.tap import case, equal, main, true, within

# The timeout is longer than any case takes, but for those about the timeout.
ALL = "threshold 15000 entries 8 timeout 100s"


def send(sender, frames):
    """Send all frames."""
    for frame in frames:
        sender.send(frame)


def came(receiver):
    """(numbers, DSCPs) of the frames that have arrived."""
    got = receiver.frames(wait=0.05)
    return p.numbers(got), i.codes(got)


def expect(before=None, **changed):
    """Compare the counters, by their last word; those not named are as before, or 0."""
    seen = {name.split(".")[1]: value for name, value in i.counters().items()}
    want = dict.fromkeys(seen, 0) if before is None else dict(before)
    want.update(changed)
    equal(seen, want, "counters")


@case("a message is deflected whole, in order, with one token less", version=(4, 6))
def whole(version):
    for tokens, code in ((4, 2), (3, 1), (2, 0)):
        i.setup(ALL, version=version)
        sender, (receiver,) = p.Sender(), i.receivers(1)
        i.congest(sender)
        send(sender, i.message(5, number=10, tokens=tokens, version=version, ecn=p.ECT0))
        got = receiver.frames(wait=0.05)
        equal(p.numbers(got), [10, 11, 12, 13, 14], "numbers")
        low = code << 2 | 3
        equal(i.codes(got), [low | 0x10, low, low, low, low | 0x20], "DSCPs")
        for _, frame in got:
            equal(i.listen(frame), i.lladdr(1), "its link-layer destination")
            field = frame[15] if version == 4 else frame[15] >> 4
            equal(field & 3, p.ECT0, "ECN")
        expect(messages=1, starts=1, followers=4, bytes=5000, peak=1)
        equal(i.shown()["ports"], [{"packets": 5, "bytes": 5000}], "ports")
        sender.close()
        receiver.close()


@case("the last token: the codepoints of spent packets, which are not deflected but counted")
def last_token():
    i.setup(ALL)
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    send(sender, i.message(3, tokens=1))
    send(sender, i.message(1, tokens=1))
    equal(came(receiver)[1], [SPENT.dscp] * 2 + [SPENT_END.dscp] * 2, "DSCPs")
    send(sender, [i.frame(SPENT.dscp), i.frame(SPENT_END.dscp), i.frame(SPENT.dscp, version=6)])
    # DSCPs that look similar
    send(sender, [i.frame(code) for code in (1, 5, 49, 61, 52, 54)])
    equal(came(receiver), ([], []), "numbers and DSCPs of deflected packets")
    expect(messages=2, starts=2, followers=2, bytes=4000, peak=1, spent=3)
    p.tc("qdisc change dev p0 parent 1:1 handle 2: color rate 1gbit")
    time.sleep(0.1)
    send(sender, [i.frame(SPENT.dscp)])
    expect(messages=2, starts=2, followers=2, bytes=4000, peak=1, spent=3)
    sender.close()
    receiver.close()


@case("all 64 DSCPs, IPv4, IPv6 and neither: only the sixteen with a start are deflected",
      version=(4, 6))
def every_dscp(version):
    i.setup("threshold 15000 entries 64", version=version)
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    send(sender, [i.frame(code, flow=code, number=code, version=version)
                  for code in range(64)])
    equal(came(receiver)[0], [code for code in range(64) if code & 0x13 == 0x13], "deflected")
    sender.send(p.arp())
    sender.send(p.ether(0x0800, b"\x65\xff" + bytes(40)))
    sender.send(p.ether(0x86dd, b"\x4f\xff" + bytes(40)))
    sender.send(p.ether(0x0800, b"\x45"))
    sender.send(p.ether(0x88b5, b"\xff" * 40))
    tagged = i.message(1, version=version)[0]
    sender.send(tagged[:12] + b"\x81\0\0\5" + tagged[12:])
    equal(came(receiver)[0], [],
          "numbers of deflected frames: no IP header, truncated or with a tag")
    sender.close()
    receiver.close()


@case("threshold: exact to a byte")
def threshold():
    for limit, deflected in ((16000, 0), (15999, 1), (1, 1), (17000, 0), (15001, 1)):
        i.setup(f"threshold {limit}")
        sender, (receiver,) = p.Sender(), i.receivers(1)
        i.congest(sender, 16000)
        equal(i.shown()["backlog"], 16000, "backlog")
        send(sender, i.message(2))
        equal(len(came(receiver)[0]), 2 * deflected, f"deflected above {limit}")
        equal(i.shown()["backlog"], 16000 + 2000 * (1 - deflected), "backlog")
        send(sender, i.message(1, flow=2))
        true(limit == 17000 or len(came(receiver)[0]) == 1, "the next message is deflected")
        sender.close()
        receiver.close()


@case("with an empty queue all packets pass to the child, which sends them in order")
def not_congested():
    i.setup(ALL, child="rate 1gbit")
    sender, (receiver,), straight = p.Sender(), i.receivers(1), p.Receiver("p1")
    send(sender, i.message(10) + i.message(1, number=10))
    equal(p.numbers(straight.frames(wait=0.05)), list(range(11)), "straight on")
    equal(came(receiver)[0], [], "deflected")
    expect()
    for each in (sender, receiver, straight):
        each.close()


@case("a message that began at the child stays there, however long the queue gets")
def straight_on():
    i.setup(ALL)
    sender, (receiver,) = p.Sender(), i.receivers(1)
    frames = i.message(4)
    sender.send(frames[0])
    i.congest(sender)
    send(sender, frames[1:])
    equal(came(receiver)[0], [], "deflected")
    expect()
    sender.close()
    receiver.close()


@case("a message that was deflected keeps its port, however short the queue gets")
def elsewhere():
    i.setup(ALL)
    sender, (receiver,), straight = p.Sender(), i.receivers(1), p.Receiver("p1")
    i.congest(sender)
    frames = i.message(4)
    send(sender, frames[:2])
    p.tc("qdisc change dev p0 parent 1:1 handle 2: color rate 1gbit")
    time.sleep(0.1)
    equal(i.shown()["backlog"], 0, "backlog")
    straight.frames(wait=0.05)
    send(sender, frames[2:] + i.message(4, number=4))
    equal(came(receiver)[0], [0, 1, 2, 3], "deflected")
    equal(p.numbers(straight.frames(wait=0.05)), [4, 5, 6, 7], "the next message, straight on")
    expect(messages=1, starts=1, followers=3, bytes=4000, peak=1)
    for each in (sender, receiver, straight):
        each.close()


@case("the entry is of the flow: addresses, ports, protocol, family, tokens")
def key():
    i.setup("threshold 15000 entries 64")
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    sender.send(i.frame(i.dscp(i.START), number=1))
    middle = i.dscp(i.MIDDLE)
    others = [i.frame(middle, flow=2), i.frame(middle, ends=(b"\3", b"\2")),
              i.frame(middle, ends=(b"\1", b"\3")), i.frame(middle, version=6),
              i.frame(i.dscp(i.MIDDLE, 3)), i.frame(i.dscp(i.END, 1))]
    tcp = bytearray(i.frame(middle))
    tcp[23] = 6
    tcp[24:26] = b"\0\0"
    tcp[24:26] = p.checksum(bytes(tcp[14:34])).to_bytes(2, "big")
    port = bytearray(i.frame(middle))
    port[37] = 8
    send(sender, others + [bytes(tcp), bytes(port)])
    equal(came(receiver)[0], [1], "deflected")
    equal(i.counters()["table.entries"], 1, "entries")
    send(sender, [i.frame(i.dscp(i.END), number=2)])
    equal(came(receiver)[0], [2], "its own")
    equal(i.counters()["table.entries"], 0, "entries")
    sender.close()
    receiver.close()


@case("fragments have no ports: they are one flow, and follow each other")
def fragments():
    i.setup(ALL)
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    frames = []
    for frame, offset in zip(i.message(3), (0x2000, 0x2064, 0x00c8)):
        frame = bytearray(frame)
        frame[20:22] = offset.to_bytes(2, "big")
        frame[34:38] = offset.to_bytes(4, "big")        # where the first fragment has ports
        frame[24:26] = b"\0\0"
        frame[24:26] = p.checksum(bytes(frame[14:34])).to_bytes(2, "big")
        frames.append(bytes(frame))
    send(sender, frames)
    equal(came(receiver)[0], [0, 1, 2], "deflected")
    expect(messages=1, starts=1, followers=2, bytes=3000, peak=1)
    sender.close()
    receiver.close()


@case("a second start of a message that is deflected follows the first")
def restart():
    i.setup(ALL, ports=2)
    sender, receivers = p.Sender(), i.receivers(2)
    i.congest(sender)
    frames = i.message(3)
    send(sender, frames[:2] + frames[:2] * 5 + frames)
    lengths = sorted(len(came(each)[0]) for each in receivers)
    equal(lengths, [0, 15], "frames at the two ports")
    expect(messages=1, starts=1, followers=14, bytes=15000, peak=1)
    sender.close()
    for each in receivers:
        each.close()


@case("a message of one packet takes no entry, but follows one of its flow, and frees it")
def only():
    i.setup(ALL, ports=1)
    sender, (receiver,) = p.Sender(), i.receivers(1)
    only = i.message(1)[0]
    sender.send(only)
    equal(came(receiver)[0], [], "without congestion")
    i.congest(sender)
    send(sender, [only] * 3)
    equal(len(came(receiver)[0]), 3, "deflected")
    expect(messages=3, starts=3, bytes=3000)
    sender.send(i.message(2)[0])
    equal(i.counters()["table.entries"], 1, "entries")
    sender.send(only)
    equal(len(came(receiver)[0]), 2, "deflected")
    expect(messages=4, starts=4, followers=1, bytes=5000, peak=1)
    sender.close()
    receiver.close()


@case("a full table: the message passes and is counted, and no entry is lost")
def full():
    for entries in (1, 8, 64):
        i.setup(f"threshold 15000 entries {entries} timeout 100s")
        sender, (receiver,) = p.Sender(), i.receivers(1)
        i.congest(sender)
        flows = range(1, entries + 4)
        send(sender, [i.frame(i.dscp(i.START), flow, flow) for flow in flows])
        equal(came(receiver)[0], list(flows)[:entries], "starts that are deflected")
        send(sender, [i.frame(i.dscp(i.MIDDLE), flow, flow) for flow in flows])
        equal(came(receiver)[0], list(flows)[:entries], "their followers")
        # a message of one packet needs no entry
        sender.send(i.message(1, flow=1000)[0])
        equal(len(came(receiver)[0]), 1, "a message of one packet")
        expect(messages=entries + 1, starts=entries + 1, followers=entries,
               bytes=1000 * (2 * entries + 1), entries=entries, peak=entries, full=3)
        send(sender, [i.frame(i.dscp(i.END), 1), i.frame(i.dscp(i.START), 2000)])
        equal(len(came(receiver)[0]), 2, "an end makes room for a start")
        equal(i.counters()["passed.full"], 3, "full")
        sender.close()
        receiver.close()


@case("messages that do not end and send little hold no entry that another message needs")
def unpaid():
    i.setup("threshold 15000 entries 8 timeout 100ms")
    sender = p.Sender()
    i.congest(sender)
    for flow in range(8):
        sender.send(i.frame(i.dscp(i.START), flow=1000 + flow))
    before = i.counters()["deflected.messages"]
    for turn in range(20):
        p.settle(0.09)
        for flow in range(8):
            sender.send(i.frame(i.dscp(i.MIDDLE), flow=1000 + flow, size=60))
        for one in i.message(3, flow=50 + turn):
            sender.send(one)
    seen = i.counters()
    within(seen["deflected.messages"] - before, 19, 20, "of 20 messages deflected")
    sender.close()


@case("an entry is reused when its packet does not pay for it and a message needs one, not before")
def timeout():
    i.setup("threshold 15000 entries 1 timeout 50ms")
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    start, middle = i.dscp(i.START), i.dscp(i.MIDDLE)
    sender.send(i.frame(start, 1, 1))
    time.sleep(0.04)
    sender.send(i.frame(middle, 1, 2))          # refreshes the entry: 1000 bytes for 0.59 ms
    time.sleep(0.0004)
    sender.send(i.frame(start, 2, 3))           # the entry is not free yet
    equal(i.counters()["table.expired"], 0, "expired")
    time.sleep(0.0004)
    sender.send(i.frame(start, 2, 4))
    sender.send(i.frame(middle, 1, 5))          # its entry was reused
    sender.send(i.frame(middle, 2, 6))
    equal(came(receiver)[0], [1, 2, 4, 6], "deflected")
    expect(messages=2, starts=2, followers=2, bytes=4000, entries=1, peak=1, expired=1, full=1)
    sender.close()
    receiver.close()


@case("timeout: a stale entry is a miss: its packets pass, and a start takes a new entry")
def stale():
    i.setup("threshold 15000 entries 8 timeout 50ms")
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    start, middle, end = (i.dscp(part) for part in (i.START, i.MIDDLE, i.END))
    for part in (middle, end):                  # what a sender retransmits
        sender.send(i.frame(start, 1, 1))
        time.sleep(0.049)
        sender.send(i.frame(middle, 1, 2))
        equal(came(receiver)[0], [1, 2], "deflected, since the entry is fresh")   # waits 50 ms
        before, held = i.counters(), i.shown()["qlen"]
        equal(sender.send(i.frame(part, 1, 3)), 1, "sent")
        equal(came(receiver)[0], [], "deflected with a stale entry")
        equal(i.shown()["qlen"], held + 1, "packets in the queue")
        changed = {name for name, value in i.counters().items() if value != before[name]}
        equal(changed, {"table.entries", "table.expired"}, "counters that have changed")
    equal([i.counters()[f"table.{name}"] for name in ("entries", "expired")], [0, 2], "table")
    # A start that finds a stale entry is a new message, with an entry that is as good as any.
    sender.send(i.frame(start, 2, 4))
    time.sleep(0.06)
    send(sender, [i.frame(start, 2, 5), i.frame(middle, 2, 6), i.frame(end, 2, 7)])
    equal(came(receiver)[0], [4, 5, 6, 7], "deflected")
    seen = i.counters()
    equal([seen[name] for name in ("deflected.messages", "table.entries", "table.expired")],
          [4, 0, 3], "messages, entries, expired")
    sender.close()
    receiver.close()


@case("timeout: a smaller table is refused for fresh entries, and not for stale ones")
def stale_resize():
    i.setup("threshold 15000 entries 8 timeout 50ms")
    sender = p.Sender()
    i.congest(sender)
    send(sender, [i.frame(i.dscp(i.START), flow) for flow in range(3)])
    time.sleep(0.04)
    send(sender, [i.frame(i.dscp(i.START), 9)])
    time.sleep(0.02)
    i.change("entries 1")
    equal([i.counters()[f"table.{name}"] for name in ("entries", "expired")], [1, 3], "table")
    sender.close()


@case("multicast, broadcast and link-local destinations pass, IP's and the link layer's")
def multicast():
    i.setup("threshold 15000 entries 64")
    sender, (receiver,) = p.Sender(), i.receivers(1)
    i.congest(sender)
    passed = [(4, {"address": to}) for to in ("224.0.0.0", "224.0.0.1", "239.255.255.255",
                                              "255.255.255.255", "169.254.0.1")]
    passed += [(6, {"address": to}) for to in ("ff02::1", "ff0e::5", "ffff::1", "fe80::2",
                                               "febf::1")]
    passed += [(version, {"link": to}) for version in (4, 6)
               for to in ("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01", "33:33:00:00:00:01",
                          "01:80:c2:00:00:00", "03:00:00:00:00:01")]
    for version, to in passed:
        held = i.shown()["qlen"]
        for count in (1, 3):
            send(sender, [i.readdressed(frame, **to)
                          for frame in i.message(count, version=version)])
        equal(came(receiver)[0], [], f"deflected to {to}")
        equal(i.shown()["qlen"], held + 4, f"in the queue, to {to}")
    equal((i.counters()["deflected.messages"], i.counters()["table.entries"]), (0, 0), "messages")
    # the neighbours of those addresses
    deflected = [(4, {"address": to}) for to in ("223.255.255.255", "240.0.0.0", "169.253.255.255",
                                                 "169.255.0.1", "255.255.255.254")]
    deflected += [(6, {"address": to}) for to in ("fdff::1", "fec0::1", "2001:db8::1")]
    deflected += [(version, {"link": to}) for version in (4, 6)
                  for to in ("02:00:00:00:00:ff", "fe:ff:ff:ff:ff:ff")]
    for version, to in deflected:
        send(sender, [i.readdressed(frame, **to) for frame in i.message(3, version=version)])
        equal(came(receiver)[0], [0, 1, 2], f"deflected to {to}")
    sender.close()
    receiver.close()


@case("ports: chosen at random, evenly; the same seed, the same choice")
def choice():
    ways = []
    for seed in ("seed 1", "seed 1", "seed 2", ""):
        i.setup(f"threshold 15000 {seed}", ports=4)
        sender, receivers = p.Sender(), i.receivers(4)
        i.congest(sender)
        send(sender, [i.message(1, number=n)[0] for n in range(400)])
        at = {}
        for port, each in enumerate(receivers):
            at.update(dict.fromkeys(came(each)[0], port))
            each.close()
        equal(len(at), 400, "frames")
        count = collections.Counter(at.values())
        for port in range(4):
            within(count[port], 70, 130, f"of 400 at port {port}")
        ways.append([at[n] for n in range(400)])
        sender.close()
    equal(ways[0], ways[1], "the same seed")
    true(ways[0] != ways[2] and ways[0] != ways[3], "another seed")


@case("each message has one port, and all of its packets arrive there, in order")
def interleaved():
    i.setup("threshold 15000 entries 64", ports=4)
    sender, receivers = p.Sender(), i.receivers(4)
    i.congest(sender)
    messages = [i.message(6, flow, flow * 100) for flow in range(1, 65)]
    for part in zip(*messages):
        send(sender, part)
    for each in receivers:
        flows = {}
        for number in came(each)[0]:
            flows.setdefault(number // 100, []).append(number % 100)
        true(len(flows) > 5, f"{len(flows)} flows at a port")
        equal(set(map(tuple, flows.values())), {(0, 1, 2, 3, 4, 5)}, "packets of each")
        each.close()
    expect(messages=64, starts=64, followers=320, bytes=384000, peak=64)
    sender.close()


@case("wrap: 20,000 messages, 200 ends lost, over a table of 8")
def wrap():
    i.setup("threshold 15000 entries 8 timeout 1ms", ports=2)
    sender = p.Sender()
    i.congest(sender)
    lost = 0
    for flow in range(1, 20001):
        start, end = i.message(2, flow, size=100)
        sender.send(start)
        if flow % 100:
            sender.send(end)
        else:
            lost += 1
        if flow % 500 == 0:
            time.sleep(0.002)
    seen = i.counters()
    equal(seen["deflected.messages"], 20000 - seen["passed.full"], "messages")
    equal(seen["deflected.followers"], 20000 - lost - seen["passed.full"], "followers")
    equal(seen["passed.full"], 0, "full: fewer than eight are lost in a timeout")
    equal(seen["table.entries"] + seen["table.expired"], lost, "lost ends: reused, or still there")
    sender.close()


@case("the child: any qdisc, by default a bfifo; classes")
def children():
    for child in ("", "pfifo limit 1000", "bfifo limit 100k", "netem delay 1s", "fq_codel",
                  "tbf rate 8kbit burst 1600 limit 1m"):
        i.setup(ALL, child=None)
        if child:
            p.tc(f"qdisc add dev p0 parent 1:1 handle 2: {child}")
        true("class iofd 1:1" in p.tc("class show dev p0").stdout, "class")
        sender, straight = p.Sender(), p.Receiver("p1")
        for number in range(20):
            sender.send(p.numbered(number))
        got = p.numbers(straight.frames(20, wait=5)) if "tbf" not in child else []
        equal(got, list(range(20)) if got else [], f"through {child}")
        if "tbf" in child:
            true(i.shown()["qlen"] >= 17, "packets wait")
        equal(p.tc("qdisc add dev p0 parent 1:2 bfifo", check=False).returncode != 0, True,
              "another class")
        equal(len(i.shown()["ports"]), 1, "ports")
        if child:
            p.tc("qdisc del dev p0 parent 1:1")
            equal((i.shown()["qlen"], i.shown()["backlog"]), (0, 0), "queue")
            sender.send(p.numbered(7))
            equal(p.numbers(straight.frames(wait=0.05))[-1:], [7], "through the default again")
        sender.close()
        straight.close()
        p.tc("qdisc del dev p0 root")


main()
