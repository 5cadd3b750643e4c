# SPDX-License-Identifier: GPL-2.0
"""What passes a switch port, packet by packet.

One packet socket sees both ends of the port: a packet that comes in from a sender,
and the same packet when the port puts it on the line.  What comes in and never goes
out was dropped.

No program reads while the load runs: in a guest's virtual time a process that asks for
the time makes a quarter of a microsecond pass, and poll() asks.  So the kernel puts
the packets' first bytes into a ring (packet(7), PACKET_RX_RING), with their times.
"""

import collections
import mmap
import socket
import struct

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
    """Everything at the port to a host from now on; `stop()` returns the packets, dropped
    ones included."""

    def __init__(self, network, host):
        switch, dev = network.port_of(host)
        with network.ns[switch]:
            self.port = socket.if_nametoindex(dev)
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        socket.htons(_ETH_P_ALL))
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, struct.pack(
            "IIII", _BLOCK, _FRAMES * _FRAME // _BLOCK, _FRAME, _FRAMES))
        self.ring = mmap.mmap(self.socket.fileno(), _FRAMES * _FRAME)
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
