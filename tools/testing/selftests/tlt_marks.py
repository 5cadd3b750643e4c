#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Algorithm 1: the important packets, and the codepoints of all others.

	a (client, sends) ---- wire (this program) ---- b (server)
"""
import socket

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL, DATA, IMPORTANT
from lab.tap import case, equal, true, using
from lab.wire.packet import ACK, ECE, FIN, RST, SYN, data, kinds
from lab.wire.wire import MSS, Wire, connected, pattern

MSS4 = MSS[4]


both = using(connected, version=(4, 6))


@case("SYN and SYN-ACK are important, the third packet is control", Wire, version=(4, 6))
def handshake(wire):
    wire.connect()
    equal([(p.flags & (SYN | ACK), p.kind) for p in wire.seen[:3]],
          [(SYN, IMPORTANT), (SYN | ACK, IMPORTANT), (ACK, CONTROL)], "flags and kinds")


@both("a single packet of data is important; its ACK is an echo, at once")
def single(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 100), "100 bytes arrive")
    wire.run(1e-3)
    equal(kinds(wire.seen), [IMPORTANT, CONTROL], "kinds of data and ACK")
    true(wire.seen[1].time - wire.seen[0].time < 30e-6, "the echo is not delayed")


@both("only the last packet of the initial window is important")
def initial_window(wire, client, _server):
    wire.mark()
    wire.rule = lambda p: not p.from_a      # all ACKs are lost
    client.send(b"x" * 200000)
    wire.run(100e-6)
    equal(kinds(data(wire.from_a())), [DATA] * 9 + [IMPORTANT], "kinds of an initial window of 10")
    wire.rule = None


@both("the last packet is important when the application's data ends first")
def short_data(wire, client, server):
    mss = MSS[wire.version]
    wire.mark()
    true(wire.transfer(client, server, 3 * mss + 100), "arrives")
    equal(kinds(data(wire.from_a())), [DATA, DATA, DATA, IMPORTANT], "kinds of four packets")


@case("without TSO the last packet is important, too, with and without Nagle", version=(4, 6))
def short_data_no_tso(version):
    for nodelay in (0, 1):
        with Wire(version=version, tso=False) as wire:
            client, server = wire.connect(TCP_NODELAY=nodelay)
            for extra in (0, 1, 100):
                wire.run(1.0)
                wire.mark()
                true(wire.transfer(client, server, 4 * MSS4 + extra), "arrives")
                wire.run(1e-3)
                sent = [p for p in data(wire.from_a()) if p.kind != CLOCK]
                equal(kinds(sent), [DATA] * (len(sent) - 1) + [IMPORTANT],
                      f"kinds of four packets and {extra} bytes, TCP_NODELAY {nodelay}")


@case("the last packet before TCP_CORK or the receiver's window holds back data is important",
      version=(4, 6))
def held_back(version):
    for rmem, options, count in ((None, {"TCP_CORK": 1}, 4 * MSS4 + 10),
                                 ("4096 8192 8192", {}, 20_000)):
        with Wire(version=version, tso=bool(options), rmem=rmem) as wire:
            client, _server = wire.connect(**options)
            wire.mark()
            wire.rule = lambda p: not p.from_a
            client.send(b"h" * count)
            wire.run(40e-6)     # no clock yet
            sent = data(wire.from_a())
            true(2 <= len(sent) <= 4, f"{len(sent)} packets, expected 2 to 4")
            equal(kinds(sent), [DATA] * (len(sent) - 1) + [IMPORTANT], f"kinds, {rmem}, {options}")


@case("a clock follows a burst that ends in the middle of a write", connected, version=(4, 6),
      tso=False)
def middle_of_write(wire, client, server):
    wire.mark()
    wire.rule = lambda p: not p.from_a      # all ACKs are lost, so none arms the sender
    client.send(b"w" * (3 * MSS4 + 10), socket.MSG_MORE)
    wire.run(500e-6)
    sent = kinds(data(wire.from_a()))
    true(DATA in sent and IMPORTANT not in sent, f"kinds without an important packet: {sent}")
    equal(sent[-1], CLOCK, "kind of the last packet")
    wire.rule = None
    client.send(b"w")
    wire.run(50e-3)
    equal(len(server.recv(1 << 20)), 3 * MSS4 + 11, "bytes that arrive")


@both("after idling, the last packet of the new burst is important")
def idle_restart(wire, client, server):
    wire.transfer(client, server, 5000)
    wire.run(1.0)
    wire.mark()
    wire.transfer(client, server, 4 * MSS4)
    sent = data(wire.from_a())
    equal(sent[-1].kind, IMPORTANT, "kind of the last packet")
    equal(kinds(sent).count(IMPORTANT), 1, "important packets")


@case("the first packet that an echo permits is important, not the last one",
      connected, version=(4, 6), tso=False)
def next_after_echo(wire, client, _server):
    wire.mark()
    begin = []

    def two_pass(p):
        """Drop each ACK but the first, sent while data is in flight, and the echo."""
        begin.extend([p.seq] * (p.from_a and not begin))
        acked = (p.ack - begin[0]) & 0xffffffff
        return not p.from_a and acked not in (MSS[wire.version], 10 * MSS[wire.version])

    wire.rule = two_pass
    client.send(b"n" * (100 * MSS4))
    wire.run(200e-6)
    sent = kinds(data(wire.from_a()))
    equal(sent[:12], [DATA] * 9 + [IMPORTANT, DATA, DATA],
          "kinds of the initial window, and of two packets after it")
    # Slow start: all ten were acknowledged, so twenty may be in flight.
    equal(sent[12:30], [IMPORTANT] + [DATA] * 17, "kinds of the packets after the echo")


def in_flight(wire):
    """Maximum number of important packets and clocks in flight at once."""
    most = now = 0
    for p in wire.seen:
        if p.from_a and p.kind in (IMPORTANT, CLOCK) and not p.flags & SYN:
            now += 1
        elif not p.from_a and p.kind in (CONTROL, CLOCK_ECHO):
            now -= 1
        most = max(most, now)
    return most


@both("at most one important packet or clock is in flight, through 2 MB")
def one_in_flight(wire, client, server):
    wire.mark()
    true(wire.transfer(client, server, 2_000_000), "arrives")
    equal(in_flight(wire), 1, "maximum of important packets and clocks in flight")
    marks = kinds(wire.from_a())
    true(marks.count(IMPORTANT) + marks.count(CLOCK) > 3,
         "more than 3 important packets and clocks")


@both("all packets of a marked connection have a codepoint")
def all_marked(wire, client, server):
    wire.transfer(client, server, 300000)
    wire.transfer(server, client, 300000)
    client.close()
    server.close()
    wire.run(1e-3)
    equal([p for p in wire.seen if p.kind == 0], [], "packets with DSCP 0")
    for p in wire.seen:
        if p.len and p.kind not in (DATA, IMPORTANT, CLOCK):
            raise tap.Failed(f"data marked as {p!r}")


@both("pure ACK, FIN and RST are control")
def control(wire, client, server):
    wire.transfer(client, server, 100000)
    client.close()
    wire.run(1e-3)
    for p in wire.from_b():
        if not p.len and not p.flags & (SYN | FIN) and p.kind not in (
                CONTROL, CLOCK_ECHO):
            raise tap.Failed(f"a pure ACK as {p!r}")
    fins = [p for p in wire.from_a() if p.flags & FIN and not p.len]
    equal(kinds(fins), [CONTROL], "FIN")
    wire.mark()
    # packets that arrive for a closed socket
    client, server = wire.connect(port=1001)
    server.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")   # SO_LINGER, 0: RST
    server.close()
    wire.run(1e-3)
    rsts = [p for p in wire.from_b() if p.flags & RST]
    equal(kinds(rsts), [CONTROL], "RST")


@both("if no data is left to send after an echo, a byte is sent as a clock, and answered")
def clock_byte(wire, client, server):
    wire.mark()
    # The ACKs of the first window permit the last three packets; the echo arrives after them, when
    # no data is left to send.
    true(wire.transfer(client, server, 13 * MSS4), "arrives")
    wire.run(1e-3)
    sent = data(wire.from_a())
    clocks = [p for p in sent if p.kind == CLOCK]
    equal([p.len for p in clocks], [1], "bytes of the clocks")
    equal(clocks[0].seq, sent[10].seq, "sequence number of the clock: first unacked byte")
    equal(kinds(wire.from_b())[-1], CLOCK_ECHO, "kind of the answer")


@case("the clock is the first unacked byte, beyond a closed window", Wire, version=(4, 6),
      tso=False)
def clock_content(wire):
    payload = pattern(300_000)
    _client, sent, x = wire.slow_start(payload)
    # To halve the window, the first acknowledged packet permits one packet, and the second, which
    # is the echo, does not (RFC 6937).
    wire.answer(sent[x - 1], CONTROL)
    before = len(sent)
    wire.answer(sent[x], CONTROL, ECE)
    equal(kinds(sent[before:]), [DATA], "packets that the first ACK permits")
    wire.answer(sent[x + 1], CONTROL, ECE)
    equal([(p.kind, p.seq) for p in sent[before + 1:]], [(CLOCK, sent[x + 1].seq)],
          "packets that the echo causes")
    offset = sent[-1].seq - sent[0].seq
    equal(sent[-1].payload, payload[offset:offset + 1], "byte of the clock")
    equal(sent[-1].checksum_ok(), True, "the clock's checksum is valid")


@case("a clock's header has TCP's ACK, window, time stamps and ECE", Wire,
      version=(4, 6))
def clock_header(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    client, server = wire.connect()
    # Data of b is marked with CE, and a sends ECE until b's CWR.
    wire.rule = lambda p: not p.from_a and p.len and p.set_dsfield(p.dsfield | 3)
    true(wire.transfer(server, client, 1000), "arrives")
    wire.rule = None
    wire.run(1e-3)
    wire.mark()
    true(wire.transfer(client, server, 13 * MSS4), "arrives")
    wire.run(1e-3)
    clock = [p for p in wire.from_a() if p.kind == CLOCK][0]
    other = [p for p in data(wire.from_a()) if p.kind != CLOCK][-1]
    for name in ("ack", "window"):
        equal(getattr(clock, name), getattr(other, name), name)
    equal((clock.says, clock.doff), (CLOCK, other.doff + 8),
          "option and header length: ours after the others")
    equal(clock.flags, ACK | ECE, "flags")
    equal(other.flags & ECE, ECE, "ECE of TCP's packet")
    # NOP, NOP, 8, 10, then both stamps: the echoed one is that of TCP's packet
    at = clock.ip_len + 20
    equal(clock.raw[at:at + 4], b"\1\1\10\12", "first bytes of the options")
    equal(clock.raw[at + 8:at + 12], other.raw[at + 8:at + 12], "echoed time stamp")
    sent, before = (int.from_bytes(p.raw[at + 4:at + 8], "big") for p in (clock, other))
    true(0 <= sent - before <= 1, f"time stamp at most 1 ms later: {before}, {sent}")


@both("without unacknowledged data there are no clocks")
def clock_stops(wire, client, server):
    wire.transfer(client, server, 100000)
    wire.run(1e-3)
    wire.mark()
    wire.run(5.0)
    equal(wire.seen, [], "packets on an idle connection")


@case("TCP sets the ECN bits (dctcp: ECT(0) on data)", connected, cc="tlt_dctcp")
def ecn(wire, client, server):
    wire.mark()
    wire.transfer(client, server, 100000)
    equal({p.ecn for p in data(wire.from_a()) if p.kind != CLOCK}, {2}, "ECN of data")
    equal({p.kind for p in data(wire.from_a())} - {CLOCK}, {DATA, IMPORTANT}, "DSCP of data")


@case("the answer to a clock with a CE mark has ECE", Wire, version=(4, 6))
def clock_marked(wire):
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.tcp_ecn", 1)
    client, server = wire.connect()
    wire.mark()
    wire.rule = lambda p: p.kind == CLOCK and p.set_dsfield(p.dsfield | 3)
    true(wire.transfer(client, server, 13 * MSS4), "arrives")
    wire.run(1e-3)
    answers = [p for p in wire.from_b() if p.kind == CLOCK_ECHO]
    true(answers, "a clock is answered")
    equal({p.flags for p in answers}, {ACK | ECE}, "flags of the answers")
    before = [p for p in wire.from_b() if p.kind == CONTROL and p.time < answers[0].time]
    equal({p.flags & ECE for p in before}, {0}, "ECE before")


if __name__ == "__main__":
    tap.main()
