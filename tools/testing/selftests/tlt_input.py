#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Applications cannot spoof codepoints, and forged or malformed packets do no harm.

	a (client) ---- wire (this program, injects) ---- b (server)
"""
import contextlib
import ctypes
import errno
import random
import socket
import struct
import time

from lab import tap
from lab.codepoints import (CLOCK, CLOCK_ECHO, CODED, CONTROL, CREDIT, DATA, DSCP, GREEN, IMPORTANT,
                            REQUEST, SCHEDULED, SHARE, SHORT)
from lab.net import libc, modules
from lab.net.namespace import FAMILY
from lab.tap import case, equal, true, within
from lab.wire import packet as pkt
from lab.wire.packet import ACK, EXID, EXPERIMENT, FIN, RST, SYN
from lab.wire.sockopt import (GREENLANE_AEOLUS, GREENLANE_BDP, GREENLANE_COSENDERS, GREENLANE_INFO,
                              GREENLANE_TLT, INFO_SIZE, NO, info, ip_level, option, refused,
                              set_tos)
from lab.wire.wire import Wire, connected

# Green in the default map of a color port; an application may not send these.
PROTECTED = (IMPORTANT, CLOCK, CLOCK_ECHO, CONTROL, SCHEDULED, REQUEST, CREDIT, SHARE)
SEED = 20260110


# --- applications

class Application(Wire):
    """A wire on which a's greenlane_protect is on, and whose sockets lack CAP_NET_ADMIN."""

    def __init__(self, **how):
        super().__init__(**how)
        self.a.sysctl("net.ipv4.greenlane_protect", 1)

    def connect(self, **how):
        with libc.without_net_admin():
            return super().connect(**how)

    def datagram(self, dscp, privileged=False):
        """Send a UDP packet with this DSCP; returns (the DSCP that arrives, growth of Stripped)."""
        before = self.a.greenlane()["Stripped"]
        with contextlib.nullcontext() if privileged else libc.without_net_admin(), self.a:
            s = socket.socket(FAMILY[self.version], socket.SOCK_DGRAM)
        set_tos(s, dscp << 2 | 2)
        self.others.clear()
        s.sendto(b"u" * 10, (self.address(self.b), 9))
        self.run(5e-6)
        s.close()
        true(self.others, "a packet is sent")
        sent = self.others[0]
        if self.version == 4:
            equal(pkt.checksum(bytes(sent.raw[:20])), 0, "IPv4 header checksum")
        equal(sent.ecn, 2, "ECN bits")
        return sent.dscp, self.a.greenlane()["Stripped"] - before


@case("greenlane_protect: an application's green codepoints are stripped and counted, all others"
      " are kept", Application, version=(4, 6), cc="cubic")
def spoofed_tos(wire):
    for dscp in range(64):
        equal(wire.datagram(dscp), (0, 1) if dscp in GREEN else (dscp, 0),
              f"DSCP {dscp}: sent DSCP, Stripped")


@case("greenlane_protect: an application with CAP_NET_ADMIN keeps its codepoint", Application,
      version=(4, 6), cc="cubic")
def privileged_tos(wire):
    for dscp in GREEN:
        equal(wire.datagram(dscp, privileged=True), (dscp, 0), f"DSCP {dscp}")


@case("greenlane_protect: off by default, and per namespace", Application, version=(4, 6),
      cc="cubic")
def protect_off(wire):
    equal(wire.b.sysctl("net.ipv4.greenlane_protect"), "0",
          "greenlane_protect of the other namespace")
    wire.a.sysctl("net.ipv4.greenlane_protect", 0)
    for dscp in range(64):
        equal(wire.datagram(dscp), (dscp, 0), f"DSCP {dscp}")


@case("greenlane_protect: one of two namespaces disables it, the other keeps it", Application,
      version=(4, 6), cc="cubic")
def protect_elsewhere(wire):
    wire.b.sysctl("net.ipv4.greenlane_protect", 1)
    wire.a.sysctl("net.ipv4.greenlane_protect", 1)      # again, without effect
    wire.b.sysctl("net.ipv4.greenlane_protect", 0)
    equal(wire.datagram(IMPORTANT.dscp), (0, 1), "DSCP and Stripped in the first namespace")
    wire.b.sysctl("net.ipv4.greenlane_protect", 1)
    wire.a.sysctl("net.ipv4.greenlane_protect", 0)
    equal(wire.datagram(IMPORTANT.dscp), (IMPORTANT.dscp, 0),
          "DSCP and Stripped with only the second namespace protected")


@case("greenlane_protect: a SYN-ACK keeps the listener's DSCP only if its known owner may send it",
      version=(4, 6), how=("request", "cookie", "fast open"), privileged=(False, True))
def protect_synack(version, how, privileged):
    with Wire(cc="cubic", version=version) as wire:
        wire.b.sysctl("net.ipv4.greenlane_protect", 1)
        wire.b.sysctl("net.ipv4.tcp_syncookies", 2 if how == "cookie" else 0)
        wire.run(1.0)           # a cookie's time stamp needs uptime
        with contextlib.nullcontext() if privileged else libc.without_net_admin():
            listener = wire.listen(TCP_FASTOPEN=100)
            set_tos(listener, IMPORTANT.dscp << 2)
            client = wire.socket(wire.a)
            if how == "fast open":
                client.sendto(b"f" * 500, socket.MSG_FASTOPEN, (wire.address(wire.b), 1000))
            else:
                wire.begin(client, wire.b)
            wire.run(1e-3)
        synack = [p for p in wire.from_b() if p.flags & SYN]
        # A child that was not accepted belongs to no process, a cookie of IPv4 to no socket.
        known = how == "request" or (how == "cookie" and version == 6)
        equal([p.dscp for p in synack], [IMPORTANT.dscp if privileged and known else 0],
              "DSCP of the SYN-ACK")
        equal(synack[0].ack - wire.from_a()[0].seq, 501 if how == "fast open" else 1,
              "bytes that the SYN-ACK acknowledges")


@case("greenlane_protect: packets of another congestion control are stripped, also after the"
      " socket is closed with data to send", Application, version=(4, 6), cc="cubic")
def spoofed_tcp(wire):
    client, server = wire.connect()
    set_tos(client, IMPORTANT.dscp << 2)
    wire.transfer(client, server, 20_000)
    client.sendall(bytes(200_000))
    client.close()
    wire.run(0.1)
    true([p for p in wire.from_a() if p.flags & FIN], "a FIN is sent")
    equal({p.kind for p in wire.from_a()}, {0}, "DSCPs")


@case("greenlane_protect: a connection of ours that does not mark is stripped, too",
      version=(4, 6), why=("without a peer", "switched off"))
def spoofed_unmarked(version, why):
    with Application(version=version, cc_b="reno" if why == "without a peer" else None) as wire:
        client, server = wire.connect()
        set_tos(client, IMPORTANT.dscp << 2)
        if why == "switched off":
            option(client, GREENLANE_TLT, 0)
        wire.run(1e-3)
        wire.mark()
        true(wire.transfer(client, server, 20_000), "arrives")
        equal({p.kind for p in wire.from_a()}, {0}, "DSCP")
        true(wire.a.greenlane()["Stripped"] > 0, "Stripped")


@case("a connection of ours ignores IP_TOS", Wire)
def own_tos(wire):
    client, server = wire.connect(IP_TOS=46 << 2)
    wire.transfer(client, server, 50_000)
    equal({p.kind for p in wire.from_a() if p.len} - {DATA, IMPORTANT, CLOCK}, set(),
          "other DSCPs of data")


@case("greenlane_protect: the kernel's own replies are not stripped", Application)
def reflected(wire):
    wire.b.sysctl("net.ipv4.greenlane_protect", 1)
    icmp = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
    icmp = icmp[:2] + struct.pack("!H", pkt.checksum(icmp)) + icmp[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, IMPORTANT.dscp << 2, 20 + len(icmp), 1, 0, 64, 1, 0,
                     socket.inet_aton("10.0.0.1"), socket.inet_aton("10.0.0.2"))
    ip = ip[:10] + struct.pack("!H", pkt.checksum(ip)) + ip[12:]
    wire.inject(wire.b, ip + icmp)
    wire.run(1e-3)
    answers = [p for p in wire.others if p.raw[9] == 1]
    equal([p.dscp for p in answers], [IMPORTANT.dscp], "DSCP of the answer")
    equal(wire.b.greenlane()["Stripped"], 0, "Stripped")


# --- socket options and sysctls

@case("socket options: short, wrong level, wrong socket, out of range", connected, version=(4, 6))
def sockopts(wire, client, server):
    level = ip_level(client)
    equal(len(client.getsockopt(level, GREENLANE_INFO, 1000)), INFO_SIZE, "size of the info")
    equal(len(client.getsockopt(level, GREENLANE_INFO, 8)), 8,
          "size of the info for an older program")
    equal(client.getsockopt(level, GREENLANE_TLT), 1, "GREENLANE_TLT")
    for bad in (2, -1, 1 << 30):
        refused(f"GREENLANE_TLT {bad}", errno.EINVAL, client.setsockopt, level,
                GREENLANE_TLT, bad)
    refused("short set", errno.EINVAL, client.setsockopt, level, GREENLANE_TLT, b"\1")
    refused("empty set", errno.EINVAL, client.setsockopt, level, GREENLANE_TLT, b"")
    refused("short get", errno.EINVAL, client.getsockopt, level, GREENLANE_TLT, 2)
    refused("set of the info", errno.ENOPROTOOPT, client.setsockopt, level,
            GREENLANE_INFO, 1)
    refused("wrong level", errno.ENOPROTOOPT, client.getsockopt,
            socket.IPPROTO_TCP, GREENLANE_INFO, INFO_SIZE)
    for name in (GREENLANE_AEOLUS, GREENLANE_BDP):
        refused("another transport's", errno.EOPNOTSUPP, option, client, name)
        refused("another transport's", errno.EOPNOTSUPP, option, client, name, 1)
    refused("beyond ours", errno.ENOPROTOOPT, client.getsockopt, level,
            GREENLANE_COSENDERS + 1, 4)
    equal(client.getsockopt(level, GREENLANE_TLT), 1, "GREENLANE_TLT afterwards")
    with wire.a:
        udp = socket.socket(client.family, socket.SOCK_DGRAM)
        idle = socket.socket(client.family, socket.SOCK_STREAM)
    refused("UDP", errno.ENOPROTOOPT, udp.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    refused("not connected", errno.ENOTCONN, idle.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    idle.setsockopt(socket.IPPROTO_TCP, 13, b"reno")
    refused("another's", errno.ENOPROTOOPT, idle.getsockopt, level, GREENLANE_INFO, INFO_SIZE)
    wire.transfer(client, server, 10_000)
    for s in (udp, idle):
        s.close()


@case("sysctls: every codepoint can be changed, but not to one out of range or in use", Wire)
def sysctls(wire):
    droppable, protected = DSCP["droppable"], DSCP["protected"]
    for name, default in DSCP.items():
        key = f"net.ipv4.greenlane_dscp_{name}"
        equal(wire.a.sysctl(key), str(default), key)
        for bad in ("0", "64", "-1", "4294967306", "x", "", str(protected)
                    if default == droppable else str(droppable), "63"):
            try:
                wire.a.sysctl(key, bad)
                accepted = bad != ""
            except OSError as err:
                equal(err.errno, errno.EINVAL, f"{key} = {bad}")
                accepted = False
            equal(accepted, False, f"{key} = {bad!r} is accepted")
            equal(wire.a.sysctl(key), str(default), f"{key} after {bad!r}")
    for bad in ("2", "-1", "256"):
        try:
            wire.a.sysctl("net.ipv4.greenlane_protect", bad)
            raise tap.Failed(f"greenlane_protect = {bad} is accepted")
        except OSError as err:
            equal(err.errno, errno.EINVAL, "greenlane_protect")
    for ns in (wire.a, wire.b):
        ns.sysctl("net.ipv4.greenlane_dscp_protected", 46)
    client, server = wire.connect()
    wire.transfer(client, server, 50_000)
    true(any(p.dscp == 46 and p.len for p in wire.from_a()), "data with the new codepoint")
    equal([p for p in wire.from_a() if p.dscp == protected], [], "packets with the old codepoint")


# --- the network

class Flow:
    """A connection at rest that has sent data, and functions that forge its packets."""

    def __init__(self, wire):
        self.wire = wire
        self.client, self.server = wire.connect()
        wire.transfer(self.client, self.server, 10_000)
        wire.run(1e-3)
        newest = [p for p in wire.from_a() if p.kind != CLOCK][-1]
        self.seq, self.ack = newest.end, newest.ack     # a's next, b's next
        self._a = (wire.address(wire.a), newest.sport)
        self._b = (wire.address(wire.b), newest.dport)
        wire.mark()

    def from_a(self, seq=0, ack=0, **fields):
        """A forged packet to b; seq and ack are offsets from the valid numbers.  Forged packets
        have no time stamp, which TCP does not require."""
        return pkt.make(self.wire.version, self._a[0], self._b[0], self._a[1], self._b[1],
                        self.seq + seq, self.ack + ack, **fields)

    def from_b(self, seq=0, ack=0, **fields):
        """A forged packet to a."""
        return pkt.make(self.wire.version, self._b[0], self._a[0], self._b[1], self._a[1],
                        self.ack + seq, self.seq + ack, **fields)

    def clock(self, seq=-1, ack=0, payload=b"!", **fields):
        """A forged clock to b."""
        return self.from_a(seq, ack, payload=payload,
                           **{"dscp": CLOCK, "options": pkt.option(CLOCK), **fields})

    def goes_on(self):
        """Check that data still arrives."""
        true(self.wire.transfer(self.client, self.server, 50_000), "data arrives afterwards")


@case("forged clocks are answered in the window, and not outside", Wire, version=(4, 6))
def forged_clocks(wire):
    flow = Flow(wire)
    for offset in (-1, -5000, 0, 10000):
        wire.inject(wire.b, flow.clock(offset))
    wire.run(1e-3)
    equal([(p.kind, p.says) for p in wire.from_b()], [(CLOCK_ECHO, CLOCK_ECHO)] * 4,
          "answers in the window")
    equal({p.ack for p in wire.from_b()}, {flow.seq}, "acknowledgment numbers of the answers")
    wire.mark()
    before = wire.b.greenlane()["Invalid"]
    for offset in (1 << 30, -(1 << 30), 1 << 31):
        wire.inject(wire.b, flow.clock(offset))
        wire.inject(wire.b, flow.clock(0, offset))
    wire.inject(wire.b, flow.clock(0, payload=b""))
    wire.run(1e-3)
    equal([p for p in wire.from_b() if CLOCK_ECHO in (p.kind, p.says)], [], "answers outside")
    equal(wire.b.greenlane()["Invalid"] - before, 7, "Invalid")


@case("a forged clock in the window delivers no byte", Wire)
def clock_delivers_nothing(wire):
    flow = Flow(wire)
    for offset in (-1, 0, 1000):
        wire.inject(wire.b, flow.clock(offset))
    wire.run(1e-3)
    # transfer() compares all bytes, so it would detect an additional one
    flow.goes_on()


@case("the option makes a packet a clock, with any DSCP", Wire, version=(4, 6))
def remarked_clock(wire):
    flow = Flow(wire)
    for dscp in range(64):
        wire.inject(wire.b, flow.clock(dscp=dscp))
    wire.run(1e-3)
    equal([(p.kind, p.says) for p in wire.from_b()], [(CLOCK_ECHO, CLOCK_ECHO)] * 64, "answers")
    flow.goes_on()


def taken(version, cc, dscps, options=(b"",)):
    """Send bytes with these DSCPs and options, each the next one that TCP expects.  Returns for
    each the bytes read and the answers (milliseconds later, flags, bytes), and the counters."""
    modules.load("tcp_xpass", "tcp_dart")           # with their counters
    with Wire(cc=cc, version=version) as wire:
        flow = Flow(wire)
        wire.run(0.3)
        # The answers are dropped, because they acknowledge bytes that a has not sent.
        wire.rule = lambda p: True
        segments = wire.b.tcp()["InSegs"]
        seen = []
        for dscp in dscps:
            for extra in options:
                wire.align()
                wire.mark()
                flow.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
                wire.inject(wire.b, flow.from_a(len(seen), payload=b"!", dscp=dscp, options=extra))
                began = time.clock_gettime(time.CLOCK_MONOTONIC)
                wire.run(0.3)
                answers = [(int((p.time - began) * 1e3), p.flags, p.ack - flow.seq)
                           for p in wire.seen]
                seen.append((flow.server.recv(100), answers))
        equal(wire.b.tcp()["InSegs"] - segments, len(seen), f"{cc}: segments that TCP has received")
        counters = wire.b.greenlane()
        return seen, [counters[n] for n in ("Invalid", "ClockReceived", "ClockEchoReceived",
                                            "ClockEchoSent", "RequestReceived", "CreditReceived",
                                            "ShareReceived")]


@case("a DSCP other than important data's has no effect without our option: TCP receives the "
      "packet as with the base", version=(4, 6))
def dscp_alone(version):
    # An immediate ACK of important data is the only effect of a DSCP.
    dscps = [dscp for dscp in (0, *DSCP.values(), *SHORT) if dscp != DSCP["protected"]]
    base, ours = (taken(version, cc, dscps) for cc in ("reno", "tlt_reno"))
    for dscp, plain, seen in zip(dscps, base[0], ours[0]):
        equal(seen, plain, f"DSCP {dscp}: bytes, answers")
    equal(ours[1], [0] * 7, "Invalid, ClockReceived and so on")


@case("data with the DSCP of important data reaches TCP, and is acknowledged at once",
      version=(4, 6))
def important_alone(version):
    base, _ = taken(version, "reno", [IMPORTANT] * 3)
    true(all(answers[0][0] > 1 for _, answers in base), f"the base delays its ACKs: {base}")
    seen, counters = taken(version, "tlt_reno", [IMPORTANT] * 3)
    equal(seen, [(b"!", [(0, ACK, n + 1)]) for n in range(3)],
          "bytes, answers (milliseconds, flags, bytes acked)")
    equal(counters, [0] * 7, "Invalid, ClockReceived and so on")


# Other experiments' options, malformed ones, and ones with unknown codes.
NOT_OURS = (struct.pack("!BBHI", EXPERIMENT, 8, EXID + 1, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT - 1, 8, EXID, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT, 8, EXID, 0),
            struct.pack("!BBHI", EXPERIMENT, 8, EXID, 8 << 24),
            struct.pack("!BBHI", EXPERIMENT, 8, EXID, 255 << 24),
            struct.pack("!BBHI", EXPERIMENT, 7, EXID, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT, 4, EXID, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT, 9, EXID, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT, 1, EXID, CLOCK.code << 24),
            struct.pack("!BBHI", EXPERIMENT, 0, EXID, CLOCK.code << 24),
            b"\0\0\0\0" + pkt.option(CLOCK))


@case("an option that is not ours has no effect", version=(4, 6))
def other_options(version):
    base, ours = (taken(version, cc, [DATA], NOT_OURS) for cc in ("reno", "tlt_reno"))
    for options, plain, seen in zip(NOT_OURS, base[0], ours[0]):
        equal(seen, plain, f"{options.hex()}: bytes, answers")
    equal(ours[1], [0] * 7, "Invalid, ClockReceived and so on")


@case("our option is found after another experiment's option", Wire, version=(4, 6))
def behind_another(wire):
    flow = Flow(wire)
    other = struct.pack("!BBHI", EXPERIMENT, 8, EXID + 1, 0)
    for before in (b"\1\1\1\1", other, other * 2):
        wire.inject(wire.b, flow.clock(options=before + pkt.option(CLOCK)))
    wire.run(1e-3)
    equal([p.says for p in wire.from_b()], [CLOCK_ECHO] * 3, "answers")
    flow.goes_on()


# --- packets that TCP refuses

def not_answered(wire, flow, *packets):
    """Check that clocks that TCP would refuse are not answered, but counted."""
    wire.mark()
    before = wire.b.greenlane()
    for p in packets or (flow.clock(), flow.clock(0)):
        wire.inject(wire.b, p)
    wire.run(1e-3)
    equal(wire.from_b(), [], "answers")
    after = wire.b.greenlane()
    equal([after[n] - before[n] for n in ("Invalid", "ClockReceived")], [len(packets) or 2, 0],
          "Invalid, ClockReceived")


def answered(wire, flow, *packets):
    """Check that these clocks are answered."""
    wire.mark()
    for p in packets or (flow.clock(),):
        wire.inject(wire.b, p)
    wire.run(1e-3)
    equal([p.says for p in wire.from_b()], [CLOCK_ECHO] * (len(packets) or 1), "answers")


@case("a clock with a bad checksum is not answered", Wire, version=(4, 6))
def bad_checksum(wire):
    flow = Flow(wire)
    p = flow.clock()
    p.raw[-1] ^= 0xff
    not_answered(wire, flow, p)
    flow.goes_on()


@case("IP_MINTTL 255: a clock with a lower TTL is not answered", Wire, version=(4, 6))
def min_ttl(wire):
    flow = Flow(wire)
    least = (socket.IPPROTO_IP, 21) if wire.version == 4 else (socket.IPPROTO_IPV6, 73)
    flow.server.setsockopt(*least, 255)
    near, far = flow.clock(), flow.clock()
    for p, ttl in ((near, 255), (far, 254)):
        if wire.version == 4:
            p.raw[8] = ttl
            p.set_dscp(CLOCK)           # sets the checksum, too
        else:
            p.raw[7] = ttl
    not_answered(wire, flow)
    not_answered(wire, flow, far)
    answered(wire, flow, near)
    flow.server.setsockopt(*least, 0)
    answered(wire, flow)
    flow.goes_on()


def attach(s, *program):
    """SO_ATTACH_FILTER: instructions of classic BPF (code, jt, jf, k)."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *it) for it in program))
    s.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(program), ctypes.addressof(code)))


@case("a socket filter that drops all: no clock is answered, no data acknowledged", Wire,
      version=(4, 6))
def drop_filter(wire):
    flow = Flow(wire)
    attach(flow.server, (0x06, 0, 0, 0))                # ret 0
    not_answered(wire, flow)
    wire.inject(wire.b, flow.from_a(payload=b"!", dscp=IMPORTANT))
    wire.run(0.3)
    equal(wire.from_b(), [], "ACKs")
    flow.server.setsockopt(socket.SOL_SOCKET, 27, 0)    # SO_DETACH_FILTER
    answered(wire, flow)
    flow.goes_on()


@case("a socket filter sees the TCP header of a clock, as of any packet", Wire, version=(4, 6))
def port_filter(wire):
    flow = Flow(wire)
    port = flow.client.getsockname()[1]
    # ldh [0]; jeq port; ret 0; ret -1
    attach(flow.server, (0x28, 0, 0, 0), (0x15, 1, 0, port), (0x06, 0, 0, 0),
           (0x06, 0, 0, 0xffffffff))
    answered(wire, flow)
    attach(flow.server, (0x28, 0, 0, 0), (0x15, 0, 1, port), (0x06, 0, 0, 0),
           (0x06, 0, 0, 0xffffffff))
    not_answered(wire, flow)
    flow.server.setsockopt(socket.SOL_SOCKET, 27, 0)
    flow.goes_on()


@case("an important packet that TCP refuses is not acknowledged", connected, version=(4, 6))
def refused_by_tcp(wire, client, server):
    true(wire.transfer(client, server, 1000), "arrives")
    wire.run(1e-3)
    last = [p for p in wire.from_a() if p.len][-1]
    wire.mark()
    bad = pkt.make(wire.version, wire.address(wire.a), wire.address(wire.b), last.sport,
                   last.dport, last.end, last.ack, dscp=IMPORTANT, payload=b"r" * 100)
    bad.raw[-1] ^= 0xff       # its checksum
    wire.inject(wire.b, bad)
    wire.run(0.3)
    equal(wire.seen, [], "packets")
    true(wire.transfer(client, server, 1000), "the next packet arrives")
    equal([(p.kind, p.ack) for p in wire.from_b()], [(CONTROL, (last.end + 1000) & 0xffffffff)],
          "ACKs of the next packet")


@case("a clock echo does not reach TCP, unless it has news for TCP", connected, version=(4, 6))
def consumed(wire, client, server):
    true(wire.transfer(client, server, 50_000), "arrives")
    wire.run(1e-3)
    last = wire.from_b()[-1]

    def echo(window=last.window, options=pkt.option(CLOCK_ECHO)):
        before = (wire.a.greenlane(), wire.a.tcp())
        wire.inject(wire.a, pkt.make(
            wire.version, wire.address(wire.b), wire.address(wire.a), last.sport, last.dport,
            last.seq, last.ack, dscp=CLOCK_ECHO, window=window, options=options))
        wire.run(1e-3)
        after = (wire.a.greenlane(), wire.a.tcp())
        return (*(after[0][n] - before[0][n] for n in ("ClockEchoReceived", "ClockEchoConsumed")),
                after[1]["InSegs"] - before[1]["InSegs"])
    sack = b"\1\1\5\12" + struct.pack("!II", last.ack - 1000, last.ack)
    for what, expected, seen in (
            ("nothing new", (1, 1, 0), echo()),
            ("without the option", (0, 0, 1), echo(options=b"")),
            ("with another one", (0, 0, 1), echo(options=pkt.option(CONTROL))),
            ("another window", (1, 0, 1), echo(last.window + 1)),
            ("nothing new again", (1, 1, 0), echo(last.window + 1)),
            ("a SACK block", (1, 0, 1), echo(last.window + 1, pkt.option(CLOCK_ECHO) + sack))):
        equal(seen, expected,
              f"{what}: ClockEchoReceived, ClockEchoConsumed, segments that TCP has received")


@case("forged echoes cannot make a sender retransmit, or send clock after clock", Wire,
      version=(4, 6))
def forged_echoes(wire):
    flow = Flow(wire)
    flow.client.send(b"e" * 5000)
    # An attacker guesses the number of the first clock.
    for options in (b"", *(pkt.option(CLOCK_ECHO, field=number) for number in range(256))):
        for ack in (0, -1000, 1, 100000, 1 << 31):
            for seq in (0, 1 << 30):
                wire.inject(wire.a, flow.from_b(seq, ack, options=options,
                                                dscp=CLOCK_ECHO if options else CONTROL))
    wire.run(3e-3)
    data = [p.seq for p in wire.from_a() if p.len and p.kind != CLOCK]
    equal(len(data), len(set(data)), "packets of data, each sent once")
    within(len([p for p in wire.from_a() if p.kind == CLOCK]), 0, 12, "clocks")
    equal(len(flow.server.recv(10_000)), 5000, "bytes that arrive")


@case("forged packets do not make the other end a peer", version=(4, 6))
def forged_peer(version):
    rng = random.Random(SEED)
    with Wire(cc="tlt_reno", cc_b="reno", version=version) as wire:
        flow = Flow(wire)
        for dscp in PROTECTED:
            for options in (b"", pkt.option(dscp)):
                for _ in range(100):
                    far = rng.randrange(1 << 26, (1 << 32) - (1 << 26))
                    for p in (flow.from_b(far, dscp=dscp, options=options),
                              flow.from_b(0, far, dscp=dscp, options=options),
                              flow.from_b(far, payload=b"p", dscp=dscp, options=options)):
                        wire.inject(wire.a, p)
                # from an attacker that has guessed the numbers, too
                wire.inject(wire.a, flow.from_b(dscp=dscp, options=options))
                wire.inject(wire.a, flow.from_b(-1, payload=b"p", dscp=dscp, options=options))
            wire.run(1e-4)
        wire.mark()
        flow.goes_on()
        equal(info(flow.client)["peer"], NO, "peer")
        equal({(p.kind, p.says) for p in wire.from_a()}, {(0, None)}, "DSCP, option")
        equal(wire.a.greenlane()["Invalid"], 0, "Invalid: without a peer no packet is checked")


@case("packets with every TOS, with and without data, in both directions", Wire, version=(4, 6))
def every_tos(wire):
    flow = Flow(wire)
    for dsfield in range(256):
        for payload in (b"", b"x" * 3):
            for base in (0, -100, 1 << 20):
                seq = base - len(payload)
                for ns, forge in ((wire.b, flow.from_a), (wire.a, flow.from_b)):
                    p = forge(seq, payload=payload)
                    p.set_dsfield(dsfield)
                    wire.inject(ns, p)
        wire.run(20e-6)
    wire.run(10e-3)
    flow.goes_on()


def malformed_options(rng):
    """Random bytes, or an option of ours, perhaps with an invalid length."""
    if rng.random() < 0.5:
        return rng.randbytes(4 * rng.randrange(11))
    return pkt.option(rng.choice((DATA, *CODED)), *(rng.randrange(1 << 32)
                                                    for _ in range(rng.randrange(8))),
                      length=rng.choice((None, rng.randrange(256))))


def malformed_packet(rng, forge):
    """Bytes that resemble a packet of the flow with a codepoint of ours."""
    flags = rng.choice((ACK, ACK, ACK, 0, SYN, SYN | ACK, rng.randrange(256)))
    # Far outside of the window, so that TCP itself must refuse it; and not an RST, which may
    # legitimately end the connection.
    p = forge((1 << 30) + rng.randrange(1 << 29), (1 << 30) + rng.randrange(1 << 29),
              flags=flags & ~RST, dscp=rng.choice((DATA, *PROTECTED)),
              payload=b"m" * rng.randrange(4), options=malformed_options(rng),
              doff=rng.choice((None, None, rng.randrange(16))))
    raw = bytes(p.raw)
    return raw[:rng.randrange(1, len(raw) + 1)] if rng.random() < 0.3 else raw


@case("malformed headers and options with our codepoints: no kernel warning, and data still "
      "arrives",
      version=(4, 6))
def malformed(version):
    rng = random.Random(SEED)
    with Wire(version=version) as wire:
        flow = Flow(wire)
        for n in range(3000):
            ns, forge = rng.choice(((wire.b, flow.from_a), (wire.a, flow.from_b)))
            try:
                wire.inject(ns, malformed_packet(rng, forge))
            except OSError:
                pass            # not even an IP packet: tun refuses it
            if n % 50 == 0:
                wire.run(50e-6)
        wire.run(20e-3)
        flow.goes_on()


if __name__ == "__main__":
    tap.main()
