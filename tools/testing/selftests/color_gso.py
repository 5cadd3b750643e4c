#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: GSO packets.

	 UDP with UDP_SEGMENT                                  received frames
	 TCP with a vnet header ----> [ color ] p0 ============ p1

A socket passes one packet of up to 64 kB to the stack, and the device splits it.
"""
import socket
import struct

from lab.net import frames as p
from lab.tap import case, equal, main, timed

HELD = "rate 8bit limit 100000000"
UDP_SEGMENT, PACKET_VNET_HDR = 103, 15
SIZE, COUNT = 1000, 20          # of a segment's payload, of segments
WIRE = SIZE + 42                # with UDP, IP and Ethernet


def udp(options, above=""):
    """A port, and a UDP socket that sends COUNT segments at once through it."""
    p.insmod()
    p.fresh_namespace()
    p.veth()
    p.run("ip", "-batch", "-", text="addr add 10.0.0.1/24 dev p0\n"
          "neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev p0 nud permanent\n")
    if above:
        p.tc(f"qdisc add dev p0 root handle 9: {above}")
    p.tc(f"qdisc add dev p0 {'parent 9:1' if above else 'root'} handle 1: color {options}")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, p.SO_SNDBUFFORCE, 1 << 26)
    sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)
    return sock


def send(sock, segments=COUNT):
    """Send one GSO datagram, which is many on the link."""
    try:
        sock.sendto(bytes(SIZE * segments), ("10.0.0.2", 9))
    except OSError as why:
        if why.errno != 105:
            raise


def first(sock):
    """Send one datagram, whose transmission takes longer than the case."""
    sock.sendto(b"", ("10.0.0.2", 9))


@case("split-gso: the queue holds segments, each counted with its headers")
def split():
    sock = udp(HELD)
    first(sock)
    send(sock)
    seen = p.shown()
    equal(seen["qlen"], COUNT, "packets in the queue")
    equal(seen["backlog"], COUNT * WIRE, "backlog")
    yellow = seen["colors"]["yellow"]
    equal((yellow["packets"], yellow["backlog"]), (COUNT + 1, COUNT * WIRE), "yellow")
    sock.close()


@case("no-split-gso: one packet in the queue counts as its segments")
def not_split():
    sock = udp(HELD + " no-split-gso")
    first(sock)
    send(sock)
    seen = p.shown()
    equal(seen["qlen"], 1, "packets in the queue")
    equal(seen["backlog"], COUNT * WIRE, "backlog")
    yellow = seen["colors"]["yellow"]
    equal((yellow["packets"], yellow["backlog"]), (COUNT + 1, COUNT * WIRE), "yellow")
    sock.close()


@case("split-gso: the segments below a threshold are enqueued; no-split-gso: the packet is dropped")
def threshold():
    for words, packets, dropped in (("", 7, 13), ("no-split-gso", 0, 20)):
        sock = udp(f"{HELD} yellow {7 * WIRE} {words}")
        first(sock)
        send(sock)
        yellow = p.colors()["yellow"]
        equal(yellow["packets"] - 1, packets, f"segments queued {words}")
        equal(yellow["drops"], {"color": dropped, "pool": 0, "limit": 0},
              f"segments dropped {words}")
        sock.close()


@case("split-gso: a packet whose segments are all dropped leaves the parent's queue empty")
def all_refused():
    sock = udp(HELD, "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
    first(sock)
    p.tc("qdisc change dev p0 parent 9:1 color yellow 1")
    send(sock)
    equal(p.colors()["yellow"]["drops"]["color"], COUNT, "segments dropped")
    seen = p.shown(kind="prio")
    equal((seen["qlen"], seen["backlog"]), (0, 0), "qlen and backlog of the parent")
    sock.close()


@case("split or not, the parent has the qlen and backlog of its child")
def parent():
    for words in ("", "no-split-gso"):
        sock = udp(f"{HELD} yellow 30k {words}",
                   "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
        receiver = p.Receiver()
        first(sock)
        for segments in (1, COUNT, 5, COUNT, 2):
            send(sock, segments)
            child, above = p.shown(), p.shown(kind="prio")
            equal((above["qlen"], above["backlog"]), (child["qlen"], child["backlog"]),
                  f"qlen and backlog, parent and child {words}")
        packets = p.colors()["yellow"]["packets"]
        p.tc("qdisc change dev p0 parent 9:1 handle 1: color rate none")
        got = receiver.frames(wait=0.05)
        equal(sum(max(1, (len(frame) - 42) // SIZE) for _, frame in got), packets,
              f"received segments {words}")
        child, above = p.shown(), p.shown(kind="prio")
        equal((child["qlen"], child["backlog"]), (0, 0), f"qlen and backlog of the child {words}")
        equal((above["qlen"], above["backlog"]), (0, 0), f"qlen and backlog of the parent {words}")
        sock.close()
        receiver.close()


@case("a band's limit counts segments: split-gso fills it, no-split-gso enqueues all or drops all")
def band_limit():
    for words, packets, dropped in (("band-limit 1 7", 7, 13), ("no-split-gso band-limit 1 7", 0, 20),
                                    ("no-split-gso band-limit 1 20", 20, 0)):
        sock = udp(f"{HELD} bands 2 {words}",
                   "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
        first(sock)
        send(sock)
        seen = p.shown()
        band = seen["bands"]["1"]
        equal((band["packets"] - 1, band["drops"], band["qlen"], band["backlog"]),
              (packets, dropped, packets, packets * WIRE),
              f"packets, drops, qlen and bytes of the band, {words}")
        above = p.shown(kind="prio")
        equal((above["qlen"], above["backlog"]), (seen["qlen"], packets * WIRE),
              f"qlen and backlog of the parent, {words}")
        p.tc("qdisc change dev p0 parent 9:1 color rate none")
        p.settle()
        above = p.shown(kind="prio")
        equal((above["qlen"], above["backlog"]), (0, 0),
              f"parent's qlen and backlog at the end, {words}")
        equal(p.shown()["bands"]["1"]["qlen"], 0, f"qlen of the band at the end, {words}")
        sock.close()


@timed("a GSO packet has the transmission time of its segments, overhead included")
def rate():
    ends = []
    for words in ("", "no-split-gso"):
        sock = udp(f"rate 8mbit overhead 24 limit 100m {words}")
        receiver = p.Receiver()
        first(sock)
        receiver.frames(1)
        p.settle(0.1)
        send(sock)
        sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
        first(sock)             # this one starts when all segments have been sent
        got = [(when, frame) for when, frame in receiver.frames(wait=0.5)]
        ends.append(got[-1][0] - got[0][0])
        sock.close()
        receiver.close()
    for end in ends:
        equal(round(end / 1000), COUNT * (WIRE + 24), "transmission time at 8 Mbit/s, us")


@case("a TCP packet with a vnet header is counted and marked per segment")
def tcp_vnet():
    for words, out in (("", COUNT), ("no-split-gso", 1)):
        p.port(f"{HELD} ecn 0 {words}")
        sender, receiver = p.Sender(), p.Receiver()
        sender.send(p.ipv4(64))
        sender.socket.setsockopt(p.SOL_PACKET, PACKET_VNET_HDR, 1)
        frame = bytearray(p.ipv4(14 + 40 + SIZE * COUNT, p.GREEN | p.ECT0))
        frame[23] = 6                                   # TCP
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", p.checksum(bytes(frame[14:34])))
        frame[34:54] = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 0x50, 0x10, 5, 0, 0)
        vnet = struct.pack("=BBHHHH", 1, 1, 54, SIZE, 34, 16)
        sender.send(vnet + bytes(frame))
        seen = p.shown()
        green = seen["colors"]["green"]
        equal(seen["qlen"], out, f"packets in the queue {words}")
        equal(green["packets"], COUNT, f"segments {words}")
        equal(green["marks"], COUNT, f"marks {words}")
        equal(green["bytes"], COUNT * (SIZE + 54), f"bytes {words}")
        p.tc("qdisc change dev p0 root color rate none")
        got = [frame for _, frame in receiver.frames(out + 1)][1:]
        equal([frame[15] for frame in got], [p.GREEN | p.CE] * out, f"TOS bytes {words}")
        sender.close()
        receiver.close()


main()
