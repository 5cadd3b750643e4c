#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: several queues in strict priority, each with a shaper and a limit.

	   frames    +-- band 0 --(rate)--+
	 ----------> |   ...              | link p0 ============ p1
	             +-- band N - 1 ------+

Frames of 1000 bytes take 1 ms at 8 Mbit/s.  A frame leaves when its transmission starts; the
guest's clock device has a shortest delay of 500 ns.
"""
import copy
import os
import struct
import time

from lab.net import frames as p
from lab.tap import case, equal, main, timed, true, within

LATE = 1000                     # ns, see color_rate.py
MS = 1000000
STOPPED = "rate 8bit"           # no frame leaves, so that all queued ones can be counted
CREDIT, CREDIT_LEN, DATA_LEN = 33 << 2, 62, 1514
HIGH, MIDDLE, LOW = 10 << 2, 20 << 2, 0
THREE = "bands 3 prio 10 0 prio 20 1"
TWO = "bands 2 prio 33 0"


def tos(frame):
    """The TOS byte or traffic class of a frame."""
    return struct.unpack_from("!H", frame, 14)[0] >> (4 if frame[14] >> 4 == 6 else 0) & 255


def start(options, frame=None):
    """A port whose link is busy with one frame, which is not queued."""
    p.port(options)
    sender = p.Sender()
    sender.send(frame or p.ipv4(64, LOW))
    return sender


def out(options, batches, count, frame=None):
    """The dequeued packets, as (ns since the first frame, TOS, number).

    All frames are sent at the time at which the transmission of the first one starts.
    """
    p.port(f"limit 500m {options}")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.ipv4(64))             # the first switches time stamps on
    receiver.frames(1)
    p.settle(0.1)
    sender.send(frame or p.numbered(0))
    for batch in batches:
        for one in batch:
            sender.send(one)
    got = receiver.frames(count)
    sender.close()
    receiver.close()
    equal(len(got), count, "frames")
    return [(when - got[0][0], tos(frame), struct.unpack("!I", frame[-4:])[0])
            for when, frame in got]


def band(number):
    """Counters of a band, by its number."""
    return p.shown()["bands"][str(number)]


# --- order -------------------------------------------------------------------

@timed("the lowest band number is served first, in order within a band", version=(4, 6))
def strict(version):
    batches = [[p.numbered(i, ds, make=p.IP[version]) for i in range(5)]
               for ds in (LOW, MIDDLE, HIGH)]
    got = out(f"rate 8mbit {THREE}", batches, 16)
    equal([(ds, number) for _, ds, number in got[1:]],
          [(ds, i) for ds in (HIGH, MIDDLE, LOW) for i in range(5)], "TOS and number")
    for i, (when, _, _) in enumerate(got):
        within(when, i * MS, i * MS + LATE, f"arrival time of frame {i}, ns")


@timed("a frame overtakes all queued frames of lower bands, but not the one in transmission")
def overtakes():
    p.port(f"rate 8mbit limit 1m {THREE}")
    sender, receiver = p.Sender(), p.Receiver()
    for number in range(4):
        sender.send(p.numbered(number))
    time.sleep(0.0015)                  # 0 has arrived, 1 is in transmission
    sender.send(p.numbered(10, MIDDLE))
    sender.send(p.numbered(20, HIGH))
    equal(p.numbers(receiver.frames(6)), [0, 1, 20, 10, 2, 3], "numbers")
    sender.close()
    receiver.close()


@case("every DSCP has its band; other DSCPs, and frames without IP, have the last", version=(4, 6))
def every_dscp(version):
    words = " ".join(f"prio {dscp} {dscp // 8}" for dscp in range(0, 56))
    sender = start(f"{STOPPED} limit 1m bands 8 {words}", p.arp())
    for dsfield in range(256):
        sender.send(p.IP[version](100, dsfield))
    sender.send(p.arp(), 3)
    equal([band(i)["packets"] for i in range(8)], [32] * 7 + [32 + 3 + 1], "packets by band")
    sender.close()


@case("a single band: no options or statistics of bands, and no priority")
def one():
    p.port(f"rate 8mbit limit 1m {THREE}")
    p.tc("qdisc change dev p0 root color bands 1")
    true("bands" not in p.options() and "bands" not in p.shown(),
         "no options or statistics of bands")
    sender, receiver = p.Sender(), p.Receiver()
    for number, dsfield in enumerate((LOW, LOW, MIDDLE, HIGH, LOW, HIGH)):
        sender.send(p.numbered(number, dsfield))
    equal(p.numbers(receiver.frames(6)), list(range(6)), "numbers")
    sender.close()
    receiver.close()


# --- shaper ------------------------------------------------------------------

@timed("a shaped band is exact to the packet, alone, with and without a line rate")
def shaped():
    for line in ("rate 10gbit", ""):
        got = out(f"{line} overhead 24 {TWO} band-rate 0 500mbit",
                  [[p.numbered(i, CREDIT, CREDIT_LEN) for i in range(1, 2000)]], 2000,
                  p.numbered(0, CREDIT, CREDIT_LEN))
        for i, (when, _, _) in enumerate(got):
            due = i * (CREDIT_LEN + 24) * 8 * 2
            within(when, due, due + LATE, f"{line}: arrival time of credit {i}, ns")


@timed("a band with a rate in packets: their size does not matter")
def counted():
    sizes = (62, 82, 1514)
    got = out(f"rate 10gbit overhead 24 {TWO} band-rate 0 100000pps",
              [[p.numbered(i, CREDIT, sizes[i % 3]) for i in range(1, 500)]], 500,
              p.numbered(0, CREDIT, sizes[0]))
    for i, (when, _, _) in enumerate(got):
        within(when, i * 10_000, i * 10_000 + LATE, f"arrival time of packet {i}, ns")


@timed("preset xpass: credits have their share, data all the rest, and the link is full")
def share():
    credits_, data = 1500, 1600
    rate = 1250000000 // 1648
    got = out("rate 10gbit preset xpass band-limit 0 none band-yield 0 none",
              [[p.numbered(i, LOW, DATA_LEN) for i in range(1, data)],
               [p.numbered(i, CREDIT, CREDIT_LEN) for i in range(credits_)]], credits_ + data,
              p.numbered(0, LOW, DATA_LEN))
    sent = seen = 0
    for i, (when, dsfield, _) in enumerate(got):
        due = sent * 8 // 10            # ns at 10 Gbit/s
        within(when, due, due + LATE, f"arrival time of frame {i} on a link that is never idle, ns")
        sent += 24 + (CREDIT_LEN if dsfield == CREDIT else DATA_LEN)
        if dsfield == CREDIT:
            # its own time, or when the data packet before it has left
            due = seen * 10**9 // rate
            within(when, due, due + 1231 + LATE, f"arrival time of credit {seen}, ns")
            seen += 1
    equal(seen, credits_, "credits")


@timed("a band that yields: its clock advances by a fraction of the others' transmission time")
def yields():
    # 4 ms for each of its frames, and a quarter of the 1 ms of each frame of the other band
    for words, each in (("band-rate 0 250pps", 4 * MS), ("band-rate 0 2mbit", 4 * MS)):
        got = out(f"rate 8mbit {TWO} {words} band-yield 0 0.25",
                  [[p.numbered(i, CREDIT) for i in range(1, 10)], [p.numbered(i) for i in range(60)]],
                  70, p.numbered(0, CREDIT))
        came = [when for when, dsfield, _ in got if dsfield == CREDIT]
        for i, when in enumerate(came):
            # Of each n ms, the other band's frames have all but the 1 ms of this band's frame.
            due = i * (each - MS // 4) * 4 // 3
            within(when, due, due + MS + LATE, f"arrival time of frame {i} of the band, ns: {came}")


@timed("band-yield keeps fractions of a nanosecond; other bands' time does not delay an idle band")
def yields_exactly():
    got = out(f"rate 10gbit overhead 24 {TWO} band-rate 0 100000pps band-yield 0 0.01",
              [[p.numbered(i, CREDIT, CREDIT_LEN) for i in range(1, 100)],
               [p.numbered(i, LOW, 100) for i in range(10500)]], 10600,
              p.numbered(0, CREDIT, CREDIT_LEN))
    came = [when for when, dsfield, _ in got if dsfield == CREDIT]
    # 100 + 24 bytes take 99.2 ns; the other band has all link time but the credits' 68.8 ns
    part = 655 / 65536
    each = (10_000 - part * 68.8) / (1 - part)
    within(came[-1], 99 * each, 99 * each + 200 + LATE, "arrival time of the last credit, ns")
    p.port(f"rate 8mbit limit 1m {TWO} band-rate 0 250pps band-yield 0 1")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.numbered(0), 20)
    p.settle(0.1)
    sender.send(p.numbered(0, CREDIT), 2)
    got = receiver.frames(22)
    within(got[21][0] - got[20][0], 4 * MS - LATE, 4 * MS + LATE,
           "time between two frames of the band, ns")
    sender.close()
    receiver.close()


@timed("while a band waits for its clock the others have the whole link")
def waits():
    got = out(f"rate 8mbit {TWO} band-rate 0 8bit",
              [[p.numbered(i, CREDIT) for i in range(3)], [p.numbered(i) for i in range(50)]], 52)
    equal([dsfield for _, dsfield, _ in got].count(CREDIT), 1, "frames of the band that waits")
    for i, (when, _, _) in enumerate(got):
        within(when, i * MS, i * MS + LATE, f"arrival time of frame {i}, ns")


@timed("a shaped band below a busy one makes up for the delay by one packet, not by a burst")
def starved():
    # 2 ms for each of its frames, and 20 ms in which none may leave
    got = out("rate 8mbit bands 3 prio 10 0 prio 20 1 band-rate 1 4mbit",
              [[p.numbered(i, MIDDLE) for i in range(6)], [p.numbered(i, HIGH) for i in range(20)]],
              27, p.numbered(0, HIGH))
    came = [when / MS for when, dsfield, _ in got if dsfield == MIDDLE]
    for seen, due in zip(came, (21, 22, 23, 25, 27, 29)):
        within(seen, due, due + LATE / MS, f"arrival times of the band's frames, ms: {came}")


@timed("an idle shaped band gains no burst")
def idle():
    p.port(f"limit 1m {TWO} band-rate 0 8mbit")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.numbered(0, CREDIT))
    p.settle(0.05)
    sender.send(p.numbered(0, CREDIT), 3)
    got = [when for when, _ in receiver.frames(4)]
    equal(len(got), 4, "frames")
    for a, b in ((1, 2), (2, 3)):
        within(got[b] - got[a], MS - LATE, MS + LATE, f"time between frames {a} and {b}, ns")
    sender.close()
    receiver.close()


@timed("the timer is set for the next frame to leave: when the link is free, or for either band")
def timer():
    p.port("rate 8mbit limit 1m bands 3 prio 10 0 prio 20 1 band-rate 0 400kbit band-rate 1 800kbit")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.numbered(0, HIGH), 2)           # 20 ms each
    sender.send(p.numbered(0, MIDDLE), 3)         # 10 ms
    got = receiver.frames(5)
    came = [((when - got[0][0]) / MS, tos(frame)) for when, frame in got]
    equal([dsfield for _, dsfield in came], [HIGH, MIDDLE, MIDDLE, HIGH, MIDDLE], "bands")
    for (seen, _), due in zip(came, (0, 1, 10, 20, 21)):
        within(seen, due, due + LATE / MS, f"arrival times of all frames, ms: {came}")
    sender.close()
    receiver.close()


# --- limits and thresholds ---------------------------------------------------

@case("a band queues exactly its limit of packets, and only the band counts the drops")
def limit():
    sender = start(f"{STOPPED} limit 1m {TWO} band-limit 0 8")
    equal(sender.send(p.ipv4(CREDIT_LEN, CREDIT), 20), 8, "credits")
    equal(sender.send(p.ipv4(1000), 50), 50, "others")
    seen = p.shown()
    equal(seen["bands"]["0"], {"packets": 8, "bytes": 496, "drops": 12, "backlog": 496,
                               "peak_backlog": 496, "qlen": 8}, "band 0")
    equal(seen["bands"]["1"], {"packets": 51, "bytes": 50064, "drops": 0, "backlog": 50000,
                               "peak_backlog": 50000, "qlen": 50}, "band 1")
    equal((seen["drops"], seen["qlen"], seen["backlog"]), (12, 58, 50496),
          "drops, qlen and backlog of the qdisc")
    equal(seen["colors"]["green"]["drops"], {"color": 0, "pool": 0, "limit": 0}, "green drops")
    sender.close()


@case("red counts: the band (count queue), all bands (count port), red in all bands (count color)")
def count():
    for words, fit in (("count queue", 10), ("count port", 6), ("count color", 10),
                       ("count color map 33 red", 6)):
        sender = start(f"{STOPPED} limit 1m red 10000 {TWO} {words}")
        equal(sender.send(p.ipv4(1000, CREDIT), 4), 4, f"{words}: frames in band 0")
        equal(sender.send(p.ipv4(1000, p.RED), 20), fit, f"{words}: red frames in band 1")
        equal(p.colors()["red"]["drops"]["color"], 20 - fit, f"{words}: drops")
        sender.close()


@case("count queue: a band's threshold is exact to a byte")
def count_byte():
    for bytes_, fit in ((9999, 9), (10000, 10), (10001, 10)):
        sender = start(f"{STOPPED} limit 1m red {bytes_} count queue {TWO} prio 8 0")
        equal(sender.send(p.ipv4(1000), 30), 30, "yellow frames in band 1")
        equal(sender.send(p.ipv4(1000, p.RED), 20), fit, f"red frames in band 0, red {bytes_}")
        sender.close()


@case("limit, pool and marks count the bytes of all bands")
def port_wide():
    sender = start(f"{STOPPED} limit 10000 {TWO}")
    equal(sender.send(p.ipv4(1000), 7), 7, "frames in band 1")
    equal(sender.send(p.ipv4(1000, CREDIT), 7), 3, "frames in band 0")
    equal(p.colors()["green"]["drops"]["limit"], 4, "drops")
    sender.close()
    sender = start(f"{STOPPED} limit 1m pool sw size 20000 {TWO}")
    equal(sender.send(p.ipv4(1000), 7), 7, "frames in band 1")
    equal(sender.send(p.ipv4(1000, CREDIT), 7), 3, "frames in band 0, half of the pool")
    equal(p.shown()["pool"]["used"], 10000, "bytes in the pool")
    sender.close()
    sender = start(f"{STOPPED} limit 1m ecn 5000 {TWO}")
    sender.send(p.ipv4(1000, LOW | p.ECT0), 4)
    sender.send(p.ipv4(1000, CREDIT | p.ECT0), 4)
    equal(p.colors()["green"]["marks"], 3, "marks in band 0")
    sender.close()


@case("preset aeolus: four packets of unscheduled data, and scheduled data up to the limit")
def aeolus():
    sender = start("rate 8bit limit 200k preset aeolus overhead 1000 band-rate 0 none")
    equal(sender.send(p.ipv4(CREDIT_LEN, CREDIT), 20), 8, "credits")
    equal(sender.send(p.ipv4(DATA_LEN, p.RED), 20), 4, "unscheduled")
    equal(sender.send(p.ipv4(DATA_LEN, p.GREEN), 200),
          (204800 - 8 * CREDIT_LEN) // DATA_LEN - 4, "scheduled packets")
    equal(sender.send(p.ipv4(DATA_LEN, p.RED), 20), 0, "unscheduled")
    sender.close()


# --- change ------------------------------------------------------------------

@case("change under traffic: every frame arrives, in order within its band")
def change():
    p.port(f"rate 100mbit limit 1m {TWO} prio 0 0")
    receiver = p.Receiver()
    pid = os.fork()
    if not pid:
        try:
            sender = p.Sender()
            for number in range(2000):
                sender.send(p.numbered(number, (LOW, p.RED)[number % 2]))
                time.sleep(0.00008)
        finally:
            os._exit(0)
    for words in ("band-rate 0 20mbit", "band-limit 0 1000", "band-rate 1 60mbit", "rate 200mbit",
                  "band-rate 0 none", "band-limit 0 none", "band-rate 1 90mbit", "count port",
                  "rate none", "band-rate 1 none", "pool a size 1m", "rate 300mbit",
                  "pool none", "prio 33 1"):
        p.tc(f"qdisc change dev p0 root color {words}")
        p.settle(0.005)
    os.waitpid(pid, 0)
    p.settle(0.5)
    got = p.numbers(receiver.frames(wait=0.05))
    for parity in (0, 1):
        equal([number for number in got if number % 2 == parity],
              list(range(parity, 2000, 2)), f"numbers of band {parity}")
    equal([p.shown()[key] for key in ("qlen", "backlog", "drops")], [0, 0, 0],
          "qlen, backlog, drops at the end")
    receiver.close()


@timed("another number of bands is refused, without effect, while frames are queued; then accepted")
def another_number():
    for words, new in ((THREE, "bands 2"), (THREE, "bands 1"), ("", "bands 8")):
        p.port(f"rate 8mbit limit 1m {words}")
        sender, receiver = p.Sender(), p.Receiver()
        for number in range(5):
            sender.send(p.numbered(number))
        before = p.options()
        done = p.tc(f"qdisc change dev p0 root color rate 1mbit pool x size 1m {new}", check=False)
        true("while packets are queued" in done.stderr, f"{new}: {done.stderr!r}")
        equal(p.options(), before, f"options after {new}")
        equal(p.numbers(receiver.frames(5)), list(range(5)), "numbers")
        p.tc(f"qdisc change dev p0 root color {new}")
        equal(p.options().get("bands", 1), int(new[-1]), "bands")
        equal(p.options().get("prio", {}), {}, "the map is the default")
        sender.send(p.numbered(7))
        equal(p.numbers(receiver.frames(1)), [7], "a frame after that")
        sender.close()
        receiver.close()


@case("setting the same number of bands has no effect")
def same_number():
    sender = start(f"{STOPPED} limit 1m {TWO} band-limit 0 8")
    sender.send(p.ipv4(100), 3)
    before = p.options()
    p.tc("qdisc change dev p0 root color bands 2")
    equal(p.options(), before, "options")
    sender.close()


@case("a band whose rate is raised sends at once")
def faster():
    p.port(f"limit 1m {TWO} band-rate 0 8bit")
    sender, receiver = p.Sender(), p.Receiver()
    for number in range(3):
        sender.send(p.numbered(number, CREDIT))
    equal(p.numbers(receiver.frames(1)), [0], "numbers before the change")
    p.tc("qdisc change dev p0 root color band-rate 0 none")
    equal(p.numbers(receiver.frames(2)), [1, 2], "numbers after the change")
    sender.close()
    receiver.close()


@case("a device that is set down empties all bands and the pool")
def down():
    sender = start(f"{STOPPED} limit 1m {THREE} pool sw size 1m")
    for dsfield in (LOW, MIDDLE, HIGH):
        sender.send(p.ipv4(1000, dsfield), 5)
    p.run("ip", "link", "set", "p0", "down")
    seen = p.shown()
    equal((seen["qlen"], seen["backlog"], seen["queue"]["backlog"], seen["pool"]["used"]),
          (0, 0, 0, 0), "qlen, backlog, backlog of the queue, bytes in the pool")
    for one_ in seen["bands"].values():
        equal((one_["qlen"], one_["backlog"]), (0, 0), "qlen and backlog of a band")
    equal([one_["packets"] for one_ in seen["bands"].values()], [5, 5, 6], "packets")
    p.run("ip", "link", "set", "p0", "up")
    receiver = p.Receiver()
    sender.send(p.numbered(7))
    equal(p.numbers(receiver.frames(1)), [7], "number of the first frame, at once")
    sender.close()
    receiver.close()


@timed("below prio, and below tbf, which peeks: parent and child have the same qlen and backlog, "
       "and priority holds")
def stacked():
    for parent in ("prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                   "tbf rate 50mbit burst 2k limit 1m"):
        kind = parent.split()[0]
        for words in ("rate 20mbit", "", "rate 20mbit band-rate 0 4mbit"):
            p.insmod()
            p.fresh_namespace()
            p.veth()
            p.tc(f"qdisc add dev p0 root handle 9: {parent}")
            p.tc(f"qdisc add dev p0 parent 9:1 color limit 1m {THREE} band-limit 2 20 {words}")
            sender, receiver = p.Sender(), p.Receiver()
            for number in range(30):
                sender.send(p.numbered(number))
            for number in range(30, 40):
                sender.send(p.numbered(number, HIGH))
            below, above = (next(q for q in p.qdiscs() if q["kind"] == k)
                            for k in ("color", kind))
            equal((above["qlen"], above["backlog"]), (below["qlen"], below["backlog"]),
                  f"queues of {kind} and color {words}")
            got = p.numbers(receiver.frames(wait=0.1))
            low = [n for n in got if n < 30]
            high = [n for n in got if n >= 30]
            equal(low, sorted(low), f"order below {kind}, color {words}")
            equal(high, list(range(30, 40)), f"high frames below {kind}, color {words}")
            equal(len(got) + sender.refused, 40, f"frames below {kind}, color {words}")
            if "band-rate" not in words and len(low) < 30:      # there was a queue
                within(got.index(30), 1, 3, f"frames before the first high one, {kind}, {words}")
                equal(got.index(39) - got.index(30), 9, "high frames in a row")
            below, above = (next(q for q in p.qdiscs() if q["kind"] == k)
                            for k in ("color", kind))
            equal((below["qlen"], below["backlog"], above["qlen"], above["backlog"]),
                  (0, 0, 0, 0), f"queues of {kind} and color {words}, at the end")
            sender.close()
            receiver.close()


# --- options -----------------------------------------------------------------

def dumped(**what):
    """The options of bands, with defaults for those that are not given."""
    return {"prio": {}, "band_rate": {}, "band_pps": {}, "band_limit": {}, "band_yield": {},
            **what}


def part(of):
    """band-yield of band 0, as the kernel stores it and tc prints it."""
    return {"0": float(f"{int(of * 65536) / 65536:g}")}


# The limit is the credits of 10 us, if more than 8.  Each packet of data has an ACK: band-yield is
# (14 + 40 + 20 + 12 + 24) bytes divided by (1514 + 24).
XPASS_BARE = dumped(bands=2, prio={"33": 0}, band_limit={"0": 8}, band_yield=part(110 / 1538))
XPASS = {**XPASS_BARE, "overhead": 24}
AEOLUS = {**XPASS, "red": 6144, "count": "queue"}
STEP = {"probability": 1}

SET = [
    ("bands 1", {}),
    ("bands 8", dumped(bands=8)),
    ("bands 2 prio af41 0", dumped(bands=2, prio={"34": 0})),
    ("bands 4 prio cs1 0 prio 0 3 prio ef 2 prio 63 1",
     dumped(bands=4, prio={"8": 0, "46": 2, "63": 1})),
    ("bands 3 band-rate 0 529556648bit band-rate 2 1gbit",
     dumped(bands=3, band_rate={"0": 66194581, "2": 125000000})),
    ("bands 3 band-rate 0 1pps band-rate 1 12500000000000pps band-rate 2 8bit",
     dumped(bands=3, band_pps={"0": 1, "1": 12500000000000}, band_rate={"2": 1})),
    ("rate 8bit bands 2 band-rate 0 2pps", dumped(rate=1, bands=2, band_pps={"0": 2})),
    ("bands 2 band-rate 1 8bit", dumped(bands=2, band_rate={"1": 1})),
    ("rate 1gbit bands 2 band-rate 1 1gbit",
     dumped(rate=125000000, bands=2, band_rate={"1": 125000000})),
    ("bands 8 band-limit 0 1 band-limit 7 2147483647",
     dumped(bands=8, band_limit={"0": 1, "7": 2147483647})),
    ("bands 3 band-yield 0 0.5 band-yield 2 1", dumped(bands=3, band_yield={"0": 0.5, "2": 1})),
    ("bands 2 band-rate 0 none band-limit 0 none band-yield 0 none", dumped(bands=2)),
    ("count port", {"count": "port"}),
    # 10 Gbit/s divided by (86 + 24 + 1514 + 24) bytes
    ("rate 10gbit preset xpass", {**XPASS, "rate": 1250000000, "band_pps": {"0": 758495}}),
    ("preset xpass rate 40gbit overhead 0",
     {**XPASS_BARE, "rate": 5000000000, "band_pps": {"0": 5000000000 // 1600},
      "band_limit": {"0": 31}, "band_yield": part(86 / 1514)}),
    ("rate 100gbit limit 200k preset aeolus",
     {**AEOLUS, "rate": 12500000000, "limit": 204800, "band_limit": {"0": 75},
      "band_pps": {"0": 12500000000 // 1648}}),
    ("rate 10gbit preset aeolus red 12k count port classify ecn bands 4 prio 33 1 prio 0 2 "
     "band-rate 0 none band-limit 0 10 band-limit 1 3 band-yield 0 none overhead 20",
     {**AEOLUS, "band_yield": {}, "rate": 1250000000, "red": 12288, "count": "port", "classify": "ecn", "bands": 4,
      "prio": {"33": 1, "0": 2}, "band_limit": {"0": 10, "1": 3}, "overhead": 20}),
    ("rate 40gbit preset tlt",
     {"rate": 5000000000, "limit": 1800 << 10, "red": 270 << 10,
      "ecn": {**STEP, "min": 200 << 10, "max": 200 << 10}}),
    ("preset tlt rate 10gbit",
     {"rate": 1250000000, "limit": 450 << 10, "red": 69120,
      "ecn": {**STEP, "min": 50 << 10, "max": 50 << 10}}),
    ("rate 40gbit preset tlt limit 1m red 100k ecn none",
     {"rate": 5000000000, "limit": 1 << 20, "red": 100 << 10}),
    ("rate 40gbit preset tlt ecn 1k 2k 0.5",
     {"rate": 5000000000, "limit": 1800 << 10, "red": 270 << 10,
      "ecn": {"min": 1024, "max": 2048, "probability": 0.5}}),
]

# words of tc -> a word of the message
BAD = [
    ("bands", "argument"), ("bands 0", "1 ... 16"), ("bands 17", "1 ... 16"), ("bands -1", "bands"),
    ("bands two", "number"), ("bands 2 bands 2", "twice"),
    ("prio", "argument"), ("prio 33", "argument"), ("prio 64 0", "63"), ("prio x 0", "DSCP"),
    ("prio 33 16", "0 ... 15"), ("prio 33 -1", "prio"), ("prio 33 x", "number"),
    ("prio 34 0 prio af41 1", "two bands"), ("bands 2 prio 34 2", "does not exist"),
    ("bands 1 prio 33 1", "does not exist"),
    ("band-rate 0", "argument"), ("band-rate 0 0", "band-rate"), ("band-rate 0 -1", "band-rate"),
    ("band-rate 0 fast", "rate"), ("band-rate 16 1gbit", "0 ... 15"),
    ("band-rate 0 0pps", "rate"), ("band-rate 0 -1pps", "rate"), ("band-rate 0 1kpps", "rate"),
    ("band-rate 0 12500000000001pps", "rate"), ("band-rate 0 pps", "rate"),
    ("band-rate 0 1pps band-rate 0 8bit", "two rates"),
    ("band-rate 0 101tbit", "band-rate"), ("band-rate 0 1bit", "band-rate"),
    ("band-rate 0 1gbit band-rate 0 2gbit", "two rates"),
    ("bands 2 band-rate 2 1gbit", "does not exist"), ("bands 1 band-rate 0 1gbit", "single band"),
    ("rate 1gbit bands 2 band-rate 0 1001mbit", "never acts"),
    ("band-limit 0", "argument"), ("band-limit 0 0", "band-limit"), ("band-limit 0 -1", "band-limit"),
    ("band-limit 0 8k", "number"), ("band-limit 0 2147483648", "band-limit"),
    ("band-limit 16 1", "0 ... 15"), ("band-limit 0 1 band-limit 0 2", "two limits"),
    ("bands 2 band-limit 2 1", "does not exist"), ("bands 1 band-limit 0 1", "single band"),
    ("band-yield 0", "argument"), ("band-yield 0 0", "band-yield"), ("band-yield 0 1.1", "band-yield"),
    ("band-yield 0 -1", "band-yield"), ("band-yield 0 half", "number"),
    ("band-yield 16 1", "0 ... 15"), ("band-yield 0 1 band-yield 0 0.5", "yields twice"),
    ("bands 2 band-yield 2 1", "does not exist"), ("bands 1 band-yield 0 1", "single band"),
    ("count bands", "not one of color queue port"),
    ("preset", "argument"), ("preset swift rate 1gbit", "not one of xpass aeolus tlt"),
    ("preset xpass", "needs a rate"), ("preset tlt rate none", "needs a rate"),
    ("rate 10gbit preset xpass preset aeolus", "twice"), ("rate 8bit preset xpass", "fit"),
    ("rate 8bit preset tlt", "fit"), ("rate 100tbit preset tlt", "fit"),
    ("rate 10gbit preset aeolus limit 2k", "never acts"),
    ("rate 10gbit preset xpass bands 1", "single band"),
]


@case("another rate of a band that yields does not prolong its current wait")
def rate_after_yield():
    # 1 ms a frame of 1000 bytes; band 0 yields all of that.
    p.port("rate 8mbit bands 2 prio 33 0 band-rate 0 1000000pps band-yield 0 1 limit 10m")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.ipv4(1000, LOW), 20)
    p.settle(0.005)
    sender.send(p.ipv4(100, CREDIT))
    p.tc("qdisc change dev p0 root color band-rate 0 10pps")
    got = [when for when, frame in receiver.frames(21, wait=2) if len(frame) == 100]
    equal(len(got), 1, "frames of the band within 2 s")
    sender.close()
    receiver.close()


@case("a port with all bands replaces another one: the notification has both")
def notified():
    p.port("bands 16 pool sw size 1m rate 1gbit")
    with p.notified("qdisc color 6:", "deleted qdisc color 6:", "qdisc color 7:"):
        words = " ".join(f"band-rate {n} {n + 1}00kbit band-limit {n}"
                         f" {60000 if n in (0, 1, 2, 3, 5, 6, 7, 9) else 9} band-yield {n} 0.5"
                         for n in range(16))
        every = " ".join(f"prio {dscp} {dscp % 16} map {dscp} {p.COLORS[dscp % 3]}"
                         for dscp in range(64))
        sender = p.Sender()
        for handle in (6, 7):
            p.tc(f"qdisc replace dev p0 root handle {handle}: color rate 8mbit bands 16"
                 f" pool sw size 1m ecn 1k 2k 0.3 red auto min 1k trim 61 trim-limit 1 trim-size 99"
                 f" pause all storm 3s delay 1us unit 1514 pause-map 3 9 int 100us overhead 24"
                 f" slack 1us catch-up 10us split-gso {words} {every}")
            # Only counters other than 0 take room: in each band, of each colour, and drops.
            for dscp in range(64):
                for _ in range(10):
                    sender.send(p.ipv4(1000, dscp << 2))
        sender.close()


@case("every option and preset is shown as the values that it sets")
def shown():
    p.port()
    defaults = p.options()
    for words, change_ in SET:
        p.port(words)
        equal(p.options(), {**defaults, "split_gso": "rate" in change_, **change_},
              f"options of \"{words}\"")


@case("change keeps the options that it does not name")
def keeps():
    p.port("rate 10gbit preset xpass")
    want = p.options()
    for words, change_ in [
            ("prio 8 0", {"prio": {"8": 0, "33": 0}}), ("prio 8 1", {"prio": {"33": 0}}),
            ("band-rate 1 9gbit", {"band_rate": {"1": 1125000000}}),
            ("band-rate 1 none", {"band_rate": {}}),
            ("band-rate 0 1gbit", {"band_rate": {"0": 125000000}, "band_pps": {}}),
            ("band-rate 0 100pps", {"band_rate": {}, "band_pps": {"0": 100}}),
            ("band-limit 1 100", {"band_limit": {"0": 8, "1": 100}}),
            ("band-limit 0 none", {"band_limit": {"1": 100}}),
            ("band-yield 1 0.25", {"band_yield": {**part(110 / 1538), "1": 0.25}}),
            ("band-yield 0 none", {"band_yield": {"1": 0.25}}),
            ("limit 1m", {"limit": 1 << 20}),
            ("bands 3", dumped(bands=3))]:
        p.tc(f"qdisc change dev p0 root color {words}")
        want.update(change_)
        equal(p.options(), want, f"options after \"{words}\"")


@case("bad input is refused with one line of text and a status, has no effect, leaves no qdisc")
def bad():
    p.port("rate 10gbit bands 2 band-rate 0 1gbit prio 33 0 band-limit 1 9")
    before = copy.deepcopy(p.options())
    for words, expect in BAD:
        done = p.tc(f"qdisc change dev p0 root color {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
        equal(len(done.stderr.strip().splitlines()), 1, f"lines of text for \"{words}\"")
        equal(p.options(), before, f"options after \"{words}\"")
    done = p.tc("qdisc change dev p0 root color rate 999mbit", check=False)
    true("never acts" in done.stderr, f"a port slower than its band: {done.stderr!r}")
    p.tc("qdisc del dev p0 root")
    for words, expect in BAD:
        done = p.tc(f"qdisc add dev p0 root color {words}", check=False)
        true(done.returncode != 0, f"\"{words}\" is refused")
        true(expect in done.stderr, f"\"{words}\": {done.stderr!r} contains {expect}")
    true("color" not in p.tc("qdisc show dev p0").stdout, "no qdisc")


@case("tc prints options as it accepts them, and statistics in text")
def text():
    words = ("bands 3 prio 10 0 prio 33 1 band-rate 0 66194584bit band-rate 1 1500Mbit "
             "band-limit 0 8 band-limit 2 100 band-yield 0 0.25")
    p.port(words)
    said = p.tc("qdisc show dev p0").stdout.strip()
    true(words in said, said)
    p.port(f"{STOPPED} limit 1m {TWO} band-limit 0 2")
    sender = p.Sender()
    sender.send(p.ipv4(500, LOW), 3)
    sender.send(p.ipv4(100, CREDIT), 5)
    said = p.tc("-s qdisc show dev p0").stdout
    for line in ("band 0 queued 2 pkt 200 bytes, dropped 3, backlog 200 peak 200 bytes 2 pkt",
                 "band 1 queued 3 pkt 1500 bytes, dropped 0, backlog 1000 peak 1000 bytes 2 pkt"):
        true(line in said, f"{line!r} in {said!r}")
    sender.close()


main()
