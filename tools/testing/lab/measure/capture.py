# SPDX-License-Identifier: GPL-2.0
"""What passes the switch port, packet by packet: the first RTT, who has how much, and how
long segments take.

One packet socket sees both ends of the port: a packet that comes in from a sender,
and the same packet when the port puts it on the line.  What comes in and never goes
out was dropped.

Nobody reads while the load runs: in a guest's virtual time a process that asks for
the time makes a quarter of a microsecond pass, and poll() asks.  So the kernel puts
the packets' first bytes into a ring (packet(7), PACKET_RX_RING), with their times.
"""

import bisect
import collections
import mmap
import socket
import struct

import joins
import report
from topology import RECEIVER, SWITCH, enter

_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION, _TPACKET_V2 = 5, 6, 10, 1
_TP_STATUS_USER = 1
_ETH_P_ALL = 3
_FRAME, _BLOCK, _FRAMES = 256, 1 << 20, 1 << 20
# struct tpacket2_hdr: status, two lengths, offset of the frame, time; and of the
# struct sockaddr_ll behind it: interface, what kind of packet.
_HEADER = struct.Struct("=IIIHHIIHH4x 4xiHB5x")
_SYN = 2

Packet = collections.namedtuple("Packet", "port syn length data arrived sent seq",
                                defaults=(0,))


def _tcp(frame):
    """Offset of the TCP header, None if there is none."""
    if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
        return 14 + 4 * (frame[14] & 15)
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_TCP:
        return 14 + 40
    return None


class Capture:
    """Everything from now on; `stop()` returns the packets, dropped ones included."""

    def __init__(self, network):
        enter(SWITCH)
        self.port = socket.if_nametoindex(network.port(RECEIVER))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(_ETH_P_ALL))
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, struct.pack(
            "IIII", _BLOCK, _FRAMES * _FRAME // _BLOCK, _FRAME, _FRAMES))
        self.ring = mmap.mmap(self.socket.fileno(), _FRAMES * _FRAME)
        enter(None)
        self.waiting, self.packets = {}, []

    def _see(self, frame, length, at_port, leaves, time):
        tcp = _tcp(frame)
        if tcp is None or at_port != leaves:
            return
        # What is the same on both sides of the router; IPv4's identification and
        # TCP's timestamps tell a packet from the one that is sent again.
        key = frame[18:20] + frame[tcp:]
        port = int.from_bytes(frame[tcp:tcp + 2])
        syn = bool(frame[tcp + 13] & _SYN)
        data = length - tcp - 4 * (frame[tcp + 12] >> 4)
        seq = int.from_bytes(frame[tcp + 4:tcp + 8])
        if not leaves:
            self.waiting[key] = len(self.packets)
            self.packets.append(Packet(port, syn, length, data, time, None, seq))
        elif key in self.waiting:
            i = self.waiting.pop(key)
            self.packets[i] = self.packets[i]._replace(sent=time)

    def stop(self):
        """No more packets will come."""
        _, lost = struct.unpack("II", self.socket.getsockopt(
            _SOL_PACKET, _PACKET_STATISTICS, 8))
        if lost:
            raise OSError(f"the capture missed {lost} packets")
        for at in range(0, len(self.ring), _FRAME):
            status, length, kept, mac, _, s, ns, _, _, dev, _, kind = _HEADER.unpack_from(
                self.ring, at)
            if not status & _TP_STATUS_USER:
                break
            self._see(self.ring[at + mac:at + mac + kept], length, dev == self.port,
                      kind == socket.PACKET_OUTGOING, s * 10**9 + ns)
        self.ring.close()
        self.socket.close()
        return self.packets


def _overlap(begin, end, window):
    return max(0, min(end, window[1]) - max(begin, window[0]))


def _windows(packets, config):
    """The first RTT of all senders in each round, as the port sees it.

    From the round's first packet that is no SYN, to a base round trip after the last
    sender's first: they do not begin in the same instant.
    """
    silence, last = config["gap"] // 2, -config["gap"]
    windows, here = [], set()
    for packet in packets:
        if packet.syn:
            continue
        if packet.arrived - last >= silence:
            windows.append([packet.arrived, 0])
            here = set()
        last = packet.sent or packet.arrived
        if packet.port not in here:
            here.add(packet.port)
            windows[-1][1] = packet.arrived + 4 * config["delay"]
    # Before them connections were made.
    return windows[-config["rounds"]:]


def first_rtt(packets, config):
    """Of each round's first RTT: share of the line used; the queue's mean and peak."""
    windows = _windows(packets, config)
    begins = [begin for begin, _ in windows]
    used, queue, peak = ([0] * len(windows) for _ in range(3))
    for packet in packets:
        i = bisect.bisect_right(begins, packet.arrived) - 1
        if i < 0 or not packet.sent:
            continue
        length = windows[i][1] - windows[i][0]
        done = packet.sent + packet.length * 8 * 10**9 // config["rate"]
        used[i] += _overlap(packet.sent, done, windows[i]) / length
        queue[i] += packet.length * _overlap(packet.arrived, packet.sent,
                                             windows[i]) / length
        if packet.arrived < windows[i][1]:
            # What is before it in the queue, and the packet itself.
            ahead = (packet.sent - packet.arrived) * config["rate"] // (8 * 10**9)
            peak[i] = max(peak[i], ahead + packet.length)
    return {"used": used, "queue": queue, "peak": peak}


def shares(packets, rtt):
    """Bytes of packets with data that each flow had of the line, RTT by RTT."""
    flows = collections.defaultdict(collections.Counter)
    sent = [p for p in packets if p.sent and p.data]
    begin = min(p.sent for p in sent)
    for packet in sent:
        flows[packet.port][(packet.sent - begin) // rtt] += packet.length
    rounds = max(map(max, flows.values())) + 1
    return {port: [seen[i] for i in range(rounds)] for port, seen in flows.items()}


def deliveries(packets, config):
    """ns from when each segment left its sender first, to when it is acknowledged; None of
    one that never was.

    It is seen at the port: when it comes first, and when a packet that has all of it goes
    (a clock's byte has not).  The ways there and back take a round trip of the empty network.
    """
    flows, times = collections.defaultdict(list), []
    for packet in packets:
        if packet.data and not packet.syn:
            flows[packet.port].append(packet)
    for flow in flows.values():
        # Bytes are counted from the flow's first.
        places = [(packet.seq - flow[0].seq) & 0xffffffff for packet in flow]
        came, gone = {}, {}     # by the segment's first byte: (end, when); when
        for begin, packet in zip(places, flow):
            came.setdefault(begin, (begin + packet.data, packet.arrived))
        begins = sorted(came)
        for begin, packet in zip(places, flow):
            end = begin + packet.data
            for i in range(bisect.bisect_left(begins, begin), bisect.bisect_left(begins, end)):
                if packet.sent and came[begins[i]][0] <= end:
                    gone[begins[i]] = min(gone.get(begins[i], packet.sent), packet.sent)
        times += [gone[begin] - first + 4 * config["delay"] if begin in gone else None
                  for begin, (_, first) in came.items()]
    return times


def _spread(times):
    """Percentiles of them."""
    arrived = sorted(time for time in times if time is not None)
    return {"count": len(times), "lost": len(times) - len(arrived), "max": arrived[-1]} | {
        f"p{percent:g}": report.percentile(arrived, percent) for percent in (50, 99, 99.9)}


def look(packets, config):
    """What the configuration wants to know of them."""
    if config["capture"] == "first_rtt":
        return {"first_rtt": first_rtt(packets, config)}
    if config["capture"] == "segments":
        return {"segments": _spread(deliveries(packets, config))}
    if config["capture"] == "joins":
        return {"converged": joins.converged(packets, config),
                "rates": joins.rates(packets, config)}
    return {"shares": shares(packets, 4 * config["delay"])}
