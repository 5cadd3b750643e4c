# SPDX-License-Identifier: GPL-2.0
"""What passes the switch port, packet by packet: the first RTT, and who has how much.

One packet socket sees both ends of the port: a packet that comes in from a sender,
and the same packet when the port puts it on the line.  What comes in and never goes
out was dropped.  In virtual time looking costs nothing, and the times are exact.
"""

import bisect
import collections
import socket
import struct
import threading

from topology import RECEIVER, SWITCH, enter

_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_ROOM = 1 << 28                 # bytes of packets, of which nobody is waited for
_HEADERS = 14 + 40 + 60 + 12    # Ethernet, IPv6, the longest of TCP: enough to know it
_SYN = 2

Packet = collections.namedtuple("Packet", "port syn length data arrived sent")


def _tcp(frame):
    """Offset of the TCP header, None if there is none."""
    if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
        return 14 + 4 * (frame[14] & 15)
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_TCP:
        return 14 + 40
    return None


class Capture(threading.Thread):
    """Runs beside the load; `stop()` returns the packets, dropped ones included."""

    def __init__(self, network):
        super().__init__(daemon=True)
        enter(SWITCH)
        self.name = network.port(RECEIVER)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(_ETH_P_ALL))
        enter(None)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.socket.settimeout(0.1)
        self.waiting, self.packets = {}, []
        self.done = False
        self.start()

    def run(self):
        while True:
            try:
                frame, notes, _, (dev, _, kind, *_) = self.socket.recvmsg(
                    _HEADERS, 64, socket.MSG_TRUNC)
            except TimeoutError:
                if self.done:
                    return
                continue
            seconds, ns = struct.unpack("qq", notes[0][2])
            self._see(frame, dev == self.name, kind == socket.PACKET_OUTGOING,
                      seconds * 10**9 + ns)

    def _see(self, frame, at_port, leaves, time):
        tcp = _tcp(frame)
        if tcp is None or at_port != leaves:
            return
        # The length is the IP header's: the frame was cut off.
        length = 14 + (40 + int.from_bytes(frame[18:20]) if tcp == 54
                       else int.from_bytes(frame[16:18]))
        # What is the same on both sides of the router; IPv4's identification and
        # TCP's timestamps tell a packet from the one that is sent again.
        key = frame[18:20] + frame[tcp:]
        port = int.from_bytes(frame[tcp:tcp + 2])
        syn = bool(frame[tcp + 13] & _SYN)
        data = length - tcp - 4 * (frame[tcp + 12] >> 4)
        if not leaves:
            self.waiting[key] = len(self.packets)
            self.packets.append(Packet(port, syn, length, data, time, None))
        elif key in self.waiting:
            i = self.waiting.pop(key)
            self.packets[i] = self.packets[i]._replace(sent=time)

    def stop(self):
        """No more packets will come."""
        self.done = True
        self.join()
        lost = struct.unpack("II", self.socket.getsockopt(
            _SOL_PACKET, _PACKET_STATISTICS, 8))[1]
        self.socket.close()
        if lost:
            raise OSError(f"the capture missed {lost} packets")
        return self.packets


def _overlap(begin, end, window):
    return max(0, min(end, window[1]) - max(begin, window[0]))


def first_rtt(packets, config):
    """Share of the line used, and the queue's mean length, in each round's first RTT.

    As the port sees it: the base round trip that begins with the round's first packet
    that is no SYN.  What has a credit cannot come before it is over.
    """
    rtt, silence = 4 * config["delay"], config["gap"] // 2
    begins, last = [], -silence
    for packet in packets:
        if packet.syn:
            continue
        if packet.arrived - last >= silence:
            begins.append(packet.arrived)
        last = packet.sent or packet.arrived
    used, queue = [0] * len(begins), [0] * len(begins)
    for packet in packets:
        i = bisect.bisect_right(begins, packet.arrived) - 1
        if i < 0 or not packet.sent:
            continue
        window = (begins[i], begins[i] + rtt)
        done = packet.sent + packet.length * 8 * 10**9 // config["rate"]
        used[i] += _overlap(packet.sent, done, window) / rtt
        queue[i] += packet.length * _overlap(packet.arrived, packet.sent, window) / rtt
    return {"used": used, "queue": queue}


def shares(packets, rtt):
    """Bytes of packets with data that each flow had of the line, RTT by RTT."""
    flows = collections.defaultdict(collections.Counter)
    sent = [p for p in packets if p.sent and p.data]
    begin = min(p.sent for p in sent)
    for packet in sent:
        flows[packet.port][(packet.sent - begin) // rtt] += packet.length
    rounds = max(map(max, flows.values())) + 1
    return {port: [seen[i] for i in range(rounds)] for port, seen in flows.items()}


def look(packets, config):
    """What the configuration wants to know of them."""
    if config["capture"] == "first_rtt":
        return {"first_rtt": first_rtt(packets, config)}
    return {"shares": shares(packets, 4 * config["delay"])}
