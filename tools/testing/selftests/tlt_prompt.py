#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Data requests an immediate ACK: when the request ends.

	a (client) ---- wire (this program, injects) ---- b (server)

The request is made at LOCAL_IN, before TCP checks the packet.  If TCP drops the data, it must end with
the packet: if each packet that leaves repeated it, two idle ends would acknowledge each other's ACKs for
ever.  Else it ends with an ACK that covers the data, and not with one that has no room for its block.
"""
import socket

from lab import tap
from lab.codepoints import DATA, IMPORTANT, MESSAGE_END, UNSCHEDULED
from lab.net import modules
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.hold import hold
from lab.wire.packet import ACK, PSH
from lab.wire.sockopt import info
from lab.wire.wire import Wire, connected

# The kind of data that each transport acknowledges at once.
PROMPT = {"tlt_reno": IMPORTANT, "dart": MESSAGE_END, "xpass": UNSCHEDULED}


class Idle:
    """An idle connection, and data that TCP will refuse."""

    def __init__(self, wire, client, server):
        self.wire, self.client, self.server = wire, client, server
        wire.transfer(client, server, 10_000)
        wire.transfer(server, client, 10_000)
        wire.run(0.1)
        self.last = {True: wire.from_a()[-1], False: wire.from_b()[-1]}
        wire.mark()

    def data(self, from_a, seq=0, ack=0, **fields):
        """100 bytes that request an ACK; seq and ack are offsets from the numbers that the receiver
        expects next."""
        wire, own, other = self.wire, self.last[from_a], self.last[not from_a]
        src, dst = (wire.a, wire.b) if from_a else (wire.b, wire.a)
        return pkt.make(wire.version, wire.address(src), wire.address(dst), own.sport, own.dport,
                        own.end + seq, other.end + ack, ACK | PSH, payload=b"i" * 100,
                        **{"dscp": PROMPT[wire.cc]} | fields)

    def inject(self, from_a, packet):
        """Inject a packet into the other end."""
        self.wire.inject(self.wire.b if from_a else self.wire.a, packet)


def bad_checksum(idle, from_a):
    """Data in order, with an invalid checksum."""
    packet = idle.data(from_a)
    packet.raw[-1] ^= 0xff
    return packet


@case("after a FIN of one end, TCP at both ends drops data that requests an ACK: they do not"
      " acknowledge each other's ACKs", version=(4, 6))
def half_closed(version):
    with Wire(cc="xpass", version=version) as wire:
        idle = Idle(wire, *wire.connect())
        idle.client.shutdown(socket.SHUT_WR)
        wire.run(0.1)
        idle.last[True] = wire.from_a()[-1]
        wire.mark()
        for from_a in (True, False):
            idle.inject(from_a, bad_checksum(idle, from_a))
        idle.server.send(b"x")
        wire.run(0.1)
        equal(idle.client.recv(10), b"x", "bytes that arrive")
        # An ACK from each, and the byte's request, credit, data, stop and ACK.
        within(len(wire.seen), 1, 7, "packets")


@case("from the backlog: data outside the window requests no ACK", connected, version=(4, 6))
def outside(wire, client, server):
    idle = Idle(wire, client, server)
    before = wire.b.greenlane()
    holder = hold(server, 2)
    wire.run(100e-6)
    for seq, ack in ((1 << 29, 0), (-(1 << 29), 0), (0, 1 << 29)):
        idle.inject(True, idle.data(True, seq, ack))
    wire.run(5e-3)
    holder.join()
    after = wire.b.greenlane()
    equal([after[n] - before[n] for n in ("EchoSent", "Invalid", "KicksOwned")],
          [0, 3, 0], "EchoSent, Invalid, KicksOwned")


@case("Dart: a forged packet does not replace the end of a message that waits for the socket's"
      " owner", version=(4, 6))
def message_end(version):
    modules.load("tcp_dart")
    with Wire(cc="dart", version=version) as wire:
        idle = Idle(wire, *wire.connect())
        before = wire.b.greenlane()["Invalid"]
        holder = hold(idle.server, 2)
        wire.run(100e-6)
        idle.client.send(b"m" * 500)
        wire.run(100e-6)
        for seq, ack in ((1 << 29, 0), (0, 1 << 29)):
            idle.inject(True, idle.data(True, seq, ack))
        wire.run(5e-3)
        holder.join()
        equal(info(idle.server)["senders"], 0, "senders after the message has ended")
        equal(wire.b.greenlane()["Invalid"] - before, 2, "Invalid")


@case("important data extends the oldest SACK block, while TCP delays an ACK for others: an ACK with room"
      " for three blocks does not end the request", version=(4, 6), blocks=(3, 4, 5))
def oldest_block(version, blocks):
    with Wire(cc="tlt_reno", version=version) as wire:
        wire.delay = 1e-3       # TCP delays ACKs by a part of the round trip
        idle = Idle(wire, *wire.connect())
        wire.rule = lambda p: True      # ACKs of forged packets must not reach a
        for block in range(blocks):
            idle.inject(True, idle.data(True, 1000 * (block + 1), dscp=DATA))
            wire.run(1e-6)
        # TCP has four blocks at most.
        seq = 1100 + 1000 * max(blocks - 4, 0)
        idle.inject(True, idle.data(True, seq))
        wire.run(100e-6)
        end = idle.last[True].end + seq + 100
        true([p for p in wire.from_b() if any(right == end for _, right in p.sacks)],
             f"an ACK with the important packet's block; saw\n{wire.dump()}")


if __name__ == "__main__":
    tap.main()
