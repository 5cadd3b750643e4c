# SPDX-License-Identifier: GPL-2.0
"""Packet captures at switch ports.

A packet socket sees each packet twice: when the switch receives it from the sender, and when the
port transmits it.  A packet that the port does not transmit was dropped.

No program reads the socket while the load runs: reading the clock takes a quarter of a microsecond
of a guest's virtual time, and poll() reads it.  Instead the kernel writes the packets' first bytes
and their times into a ring (packet(7), PACKET_RX_RING).
"""

import array
import collections
import ctypes
import mmap
import socket
import struct

from lab.net.network import PORTS

_SOL_PACKET = 263
_SO_ATTACH_FILTER = 26
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION, _TPACKET_V2 = 5, 6, 10, 1
_TP_STATUS_USER = 1
_ETH_P_ALL = 3
_FRAME, _BLOCK, _FRAMES = 256, 1 << 16, 1 << 20
# Frames of Ends: the kernel's 66 bytes, then the Ethernet, IPv4 and TCP headers without options.
_SHORT_FRAME = 128
# struct tpacket2_hdr: status, two lengths, offset of the frame, time; then struct sockaddr_ll:
# interface, type of packet.
_HEADER = struct.Struct("=IIIHHIIHH4x 4xiHB5x")
_SYN = 2

Packet = collections.namedtuple("Packet", "port syn length data arrived sent seq",
                                defaults=(0,))


def _tcp(frame):
    """The offset of the TCP header, None if the packet is not TCP."""
    if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
        return 14 + 4 * (frame[14] & 15)
    if frame[12:14] == b"\x86\xdd" and frame[20] == socket.IPPROTO_TCP:
        return 14 + 40
    return None


def _packet(frame, tcp, length, arrived, sent=None):
    """The packet with these first bytes and the TCP header at this offset."""
    return Packet(int.from_bytes(frame[tcp:tcp + 2]), bool(frame[tcp + 13] & _SYN), length,
                  length - tcp - 4 * (frame[tcp + 12] >> 4), arrived, sent,
                  int.from_bytes(frame[tcp + 4:tcp + 8]))


class Ring:
    """A packet socket with a ring of `frames` frames: of one device or of all of a namespace, and
    of the packets that a filter accepts, or of all."""

    def __init__(self, ns, frames=_FRAMES, frame=_FRAME, dev="", accept=None):
        self.frame = frame
        blocks = -(-frames * frame // _BLOCK)
        with ns:
            # Protocol 0: the socket gets no packet of another device before bind().
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        0 if dev else socket.htons(_ETH_P_ALL))
            if accept:
                _attach(self.socket, accept)
            self.socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
            self.socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, struct.pack(
                "IIII", _BLOCK, blocks, frame, blocks * (_BLOCK // frame)))
            self.memory = mmap.mmap(self.socket.fileno(), blocks * _BLOCK)
            if dev:
                self.socket.bind((dev, _ETH_P_ALL))

    def stop(self):
        """End the capture; yields the offsets of the frames."""
        _, lost = struct.unpack("II", self.socket.getsockopt(
            _SOL_PACKET, _PACKET_STATISTICS, 8))
        if lost:
            raise OSError(f"the capture missed {lost} packets")
        for at in range(0, len(self.memory), self.frame):
            if not _HEADER.unpack_from(self.memory, at)[0] & _TP_STATUS_USER:
                break
            yield at

    def read(self, at):
        """The packet of a frame: (first bytes, length, device, whether outgoing, time in ns)."""
        _, length, kept, mac, _, s, ns, _, _, dev, _, kind = _HEADER.unpack_from(self.memory, at)
        return (self.memory[at + mac:at + mac + kept], length, dev,
                kind == socket.PACKET_OUTGOING, s * 10**9 + ns)

    def close(self):
        """Free the ring."""
        self.memory.close()
        self.socket.close()


class Capture:
    """A capture of all TCP packets to a host, at its switch port; stop() returns them, dropped ones
    included."""

    def __init__(self, network, host):
        switch, dev = network.port_of(host)
        with network.ns[switch]:
            self.port = socket.if_nametoindex(dev)
        self.ring = Ring(network.ns[switch])
        self.waiting, self.packets = {}, []

    def _see(self, frame, length, at_port, leaves, time):
        tcp = _tcp(frame)
        if tcp is None or at_port != leaves:
            return
        # Fields that the router does not change.  IPv4's identification and TCP's timestamps
        # distinguish a packet from its retransmission.
        key = frame[18:20] + frame[tcp:]
        if not leaves:
            self.waiting[key] = len(self.packets)
            self.packets.append(_packet(frame, tcp, length, time))
        elif key in self.waiting:
            i = self.waiting.pop(key)
            self.packets[i] = self.packets[i]._replace(sent=time)

    def stop(self):
        """End the capture; returns the packets."""
        for at in self.ring.stop():
            frame, length, dev, leaves, time = self.ring.read(at)
            self._see(frame, length, dev == self.port, leaves, time)
        self.ring.close()
        return self.packets


def _attach(sock, program):
    """Attach a classic BPF program, [(code, jump if true, jump if false, value)]."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER,
                    struct.pack("HL", len(program), ctypes.addressof(code)))


def _data_of(v6, percent):
    """A filter that accepts TCP packets with data on the connections that is_chosen() selects."""
    ip, kind, proto = (40, 0x86dd, 20) if v6 else (20, 0x800, 23)
    tcp, keep = 14 + ip, 14 + ip + 20
    return [(0x28, 0, 0, 12), (0x15, 0, 15, kind),      # ldh; jeq
            (0x30, 0, 0, proto), (0x15, 0, 13, socket.IPPROTO_TCP),
            (0x30, 0, 0, tcp + 12), (0x54, 0, 0, 0xf0), (0x74, 0, 0, 2),    # the header's length
            (0x04, 0, 0, tcp), (0x07, 0, 0, 0),         # add; tax
            (0x80, 0, 0, 0), (0x2d, 0, 6, 0),           # ld len; jgt x
            (0x28, 0, 0, tcp), (0x35, 1, 0, PORTS.start),       # the source port is the client's
            (0x28, 0, 0, tcp + 2),
            (0x94, 0, 0, 100), (0x35, 1, 0, percent),   # mod; jge
            (0x06, 0, 0, keep), (0x06, 0, 0, 0)]       # ret: the number of bytes to keep


def is_chosen(port, percent):
    """Whether a sample of `percent` of the connections has the connection with this client port."""
    return port % 100 < percent


class Ends:
    """A capture of packets with data at the switch ports of all hosts: where they leave their
    sender and where they reach their receiver, of `percent` of the connections.

    room: {host: maximum number of packets at its port}
    """

    def __init__(self, network, percent, room):
        self.v6 = network.config["ipv6"]
        self.hosts = {socket.inet_pton(socket.AF_INET6 if self.v6 else socket.AF_INET,
                                       network.address(host)): host for host in network.hosts}
        self.rings = []
        for host, packets in room.items():
            switch, dev = network.port_of(host)
            self.rings.append(Ring(network.ns[switch], packets,
                                   _FRAME if self.v6 else _SHORT_FRAME, dev,
                                   _data_of(self.v6, percent)))

    def flows(self):
        """End the capture; yields (source, destination, packets) of each direction of a connection.
        A packet captured at its sender's port has no `sent`; one at its receiver's port has."""
        begin, size = (22, 16) if self.v6 else (26, 4)
        places = collections.defaultdict(lambda: array.array("Q"))
        for number, ring in enumerate(self.rings):
            for at in ring.stop():
                frame = ring.read(at)[0]
                # The key is both addresses, then both ports.
                places[frame[begin:begin + 2 * size + 4]].append(number << 40 | at)
        for key, where in places.items():
            src, dst = (self.hosts[key[i:i + size]] for i in (0, size))
            yield src, dst, sorted((self._packet(*divmod(place, 1 << 40)) for place in where),
                                   key=lambda packet: packet.arrived)
        for ring in self.rings:
            ring.close()

    def _packet(self, number, at):
        frame, length, _, leaves, time = self.rings[number].read(at)
        return _packet(frame, _tcp(frame), length, time, time if leaves else None)
