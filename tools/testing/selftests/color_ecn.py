#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: the packets that get a CE mark.

	   frames                             ->   frames, marked or not
	 ----------> [ color ecn ... ] p0 ============ p1
"""
import struct

from lab.net import frames as p
from lab.tap import case, equal, main, true, within

HELD = "rate 8bit limit 100000000"


def pass_through(options, frames):
    """Queue all frames on a stopped link, then start it; returns (the frames, the qdisc's
    statistics when all were queued)."""
    p.port(f"{HELD} {options}")
    sender, receiver = p.Sender(), p.Receiver()
    sender.send(p.ipv4(64))
    for frame in frames:
        sender.send(frame)
    seen = p.shown()
    p.tc("qdisc change dev p0 root color rate none")
    got = [frame for _, frame in receiver.frames(len(frames) + 1)][1:]
    sender.close()
    receiver.close()
    equal(len(got), len(frames), "frames that were received")
    return got, seen


def ecn_of(frame):
    """The ECN field of an IPv4 or IPv6 frame."""
    if frame[12:14] == b"\x86\xdd":
        return frame[15] >> 4 & 3
    return frame[15] & 3


@case("step: each packet that takes the queue above K is marked, and no other")
def step_exact():
    got, seen = pass_through("ecn 200000", [p.ipv4(1000, p.ECT0)] * 250)
    equal([ecn_of(f) for f in got], [2] * 200 + [3] * 50, "ECN fields")
    equal(seen["colors"]["yellow"]["marks"], 50, "marks counted")


@case("step: a queue of K bytes is not marked, one of K + 1 is")
def step_one_byte():
    got, _ = pass_through("ecn 9999", [p.ipv4(1000, p.ECT0)] * 11)
    equal([ecn_of(f) for f in got], [2] * 9 + [3] * 2, "ECN fields, K = 9999")
    got, _ = pass_through("ecn 10000", [p.ipv4(1000, p.ECT0)] * 11)
    equal([ecn_of(f) for f in got], [2] * 10 + [3], "ECN fields, K = 10000")


@case("step: K is compared with the bytes of all colours in the queue")
def step_whole_queue():
    got, seen = pass_through("ecn 5000", [p.ipv4(1000, p.RED)] * 3 +
                             [p.ipv4(1000, p.GREEN | p.ECT0)] * 4)
    equal([ecn_of(f) for f in got], [0] * 3 + [2] * 2 + [3] * 2, "ECN fields")
    equal(seen["colors"]["green"]["marks"], 2, "green marks")
    equal(seen["colors"]["red"]["marks"], 0, "red marks")


@case("ecn 0 marks all packets; ecn none marks no packet")
def step_zero_and_none():
    got, _ = pass_through("ecn 0", [p.ipv4(100, p.ECT0)] * 5)
    equal([ecn_of(f) for f in got], [3] * 5, "ECN fields, ecn 0")
    got, _ = pass_through("ecn none", [p.ipv4(1000, p.ECT0)] * 5)
    equal([ecn_of(f) for f in got], [2] * 5, "ECN fields, ecn none")


@case("Non-ECT is never marked, ECT(1) is, CE is kept and not counted", version=(4, 6))
def by_codepoint(version):
    got, seen = pass_through("ecn 0", [p.IP[version](100, tos) for tos in range(4)] + [p.arp()])
    equal([ecn_of(f) for f in got[:4]], [0, 3, 3, 3], "ECN fields")
    equal(got[4], p.arp(), "ARP")
    equal(sum(c["marks"] for c in seen["colors"].values()), 2, "marks counted")


@case("a mark changes only the ECN field and the checksum, which stays valid", version=(4, 6))
def nothing_else(version):
    sent = [p.IP[version](200, tos, vlans) for tos in (p.ECT0, 1, 0xb8 | p.ECT0)
            for vlans in ((), [(0x8100, 7)], [(0x88a8, 7), (0x8100, 0x4008)])]
    got, _ = pass_through("ecn 0", sent)
    for before, after in zip(sent, got):
        at = 14
        while before[at - 2:at] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        want = bytearray(before)
        if version == 4:
            want[at + 1] |= 3
            want[at + 10:at + 12] = b"\0\0"
            want[at + 10:at + 12] = struct.pack("!H", p.checksum(bytes(want[at:at + 20])))
        else:
            want[at + 1] |= 0x30
        # the receiving end removes the outer tag from the frame
        if at > 14:
            del want[12:16]
        equal(after.hex(), bytes(want).hex(), "frame")


@case("linear: no packet is marked up to MIN, PROB of them at MAX, all above")
def linear():
    # 1000 frames each below, between and above
    frames = [p.ipv4(100, p.ECT0)] * 3000
    got, seen = pass_through("ecn 100000 200000 0.5", frames)
    ecn = [ecn_of(f) for f in got]
    equal(ecn[:1000], [2] * 1000, "ECN fields up to MIN")
    equal(ecn[2000:], [3] * 1000, "ECN fields above MAX")
    # the mean of 0 ... 0.5 over 1000 trials: 250, deviation 14
    marks = ecn[1000:2000].count(3)
    within(marks, 250 - 70, 250 + 70, "marks between MIN and MAX")
    halves = ecn[1000:1500].count(3), ecn[1500:2000].count(3)
    true(halves[0] < halves[1], f"more marks in the second half: {halves}")
    equal(seen["colors"]["yellow"]["marks"], 1000 + marks, "marks counted")


main()
