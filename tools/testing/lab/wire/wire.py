# SPDX-License-Identifier: GPL-2.0
"""A programmable wire between two hosts.

	ns a ---- tun a ==== this program ==== tun b ---- ns b
	10.0.0.1, fd00::1                      10.0.0.2, fd00::2

The program reads every packet, may drop or change it, and delivers it after
DELAY.  Time is the guest's virtual time, which does not advance while this
program computes: every run of a test sees the same packets at the same times.

Packets move only inside Wire.run(): all sockets are non-blocking, and one
thread serves both ends.
"""
import contextlib
import fcntl
import heapq
import os
import select
import socket
import stat
import struct
import time

from lab import tap
from lab.codepoints import CLOCK, CLOCK_ECHO, CONTROL
from lab.net import libc, modules, rtnl
from lab.net.ethtool import no_segmentation, set_speed
from lab.net.namespace import Namespace, set_cc, write_sysctl
from lab.wire import packet as pkt
from lab.wire.batch import Batch
from lab.wire.sockopt import TCP_CONGESTION

DELAY = 10e-6           # propagation delay of one direction, s
READ = 256e-9           # time that the wire takes to read a packet, s: a step of the guest's clock
MSS = {4: 1448, 6: 1428}        # MTU 1500, time stamps

IFF_TUN, IFF_NAPI, IFF_NO_PI = 0x0001, 0x0010, 0x1000

libc.exact_timers()
_count = 0


class Wire:
    """Two hosts and the wire between them."""
    flags = IFF_TUN | IFF_NO_PI     # of the hosts' devices

    def __init__(self, cc="tlt_reno", cc_b=None, version=4, mtu=1500, rto_min=4,
                 tso=True, rmem=None, speed=10_000):
        global _count
        tap.need_virtual_time()
        _count += 1
        modules.load_for(cc, cc_b)
        self.version = version
        self.tso = tso
        self.cc, self.cc_b = cc, cc_b or cc
        self.delay = DELAY
        # Called with each TCP packet; True drops it.  May change it, and its additional delay
        # `late`, s.
        self.rule = None
        self.seen = []          # every TCP packet, in the order sent
        self.others = []        # packets that are not TCP
        self.asked = 0          # number of a's last clock
        self._flying = []       # (arrival, number, packet)
        self._number = 0
        self._read_at = 0.0     # when the last packet was read
        self._moved = True      # whether sockets may have new data, or new room
        self._open = []
        self.a = Namespace(f"a{_count}")
        self.b = Namespace(f"b{_count}")
        self._tun = {}
        for ns, own, peer, name in ((self.a, 1, 2, cc), (self.b, 2, 1, cc_b or cc)):
            with ns:
                self._tun[ns] = self._make_tun()
                set_speed("tun0", speed)        # kernels before 6.12 default to 10 Mbit/s
                if not tso:
                    no_segmentation("tun0")
                write_sysctl("net.ipv6.conf.all.accept_dad", 0)
                write_sysctl("net.ipv6.conf.tun0.addr_gen_mode", 1)
                set_cc(name)
                write_sysctl("net.ipv4.tcp_no_metrics_save", 1)
                write_sysctl("net.ipv4.tcp_fastopen", 0x207)    # no cookies
                write_sysctl("net.ipv4.tcp_ecn", 1 if name.endswith("dctcp") else 2)
                write_sysctl("net.ipv4.tcp_rmem", rmem or "4096 1048576 6291456")
                write_sysctl("net.ipv4.tcp_wmem", "4096 1048576 4194304")
                host = rtnl.Host()
                # TCP makes GSO packets on each device, unless the device's maximum is one segment.
                host.up("tun0", mtu, None if tso else 1)
                host.up("lo")
                for net, bits in (("10.0.0.", 32), ("fd00::", 128)):
                    host.address("tun0", f"{net}{own}/{bits}")
                    host.route("tun0", f"{net}{peer}/{bits}", rto_min=rto_min)
                host.apply()
        self._batch = Batch([self._tun[self.a], self._tun[self.b]])

    def _make_tun(self):
        node = "/run/tun-node"
        if not os.path.exists(node):
            os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(10, 200))
        fd = os.open(node, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", b"tun0", self.flags))
        return fd

    # --- addresses and sockets

    def address(self, ns):
        """The address of a or b, of the wire's IP version."""
        host = 1 if ns is self.a else 2
        return f"10.0.0.{host}" if self.version == 4 else f"fd00::{host}"

    def socket(self, ns, cc=None, proto=0, **options):
        """A non-blocking TCP socket in ns; options: IP_TOS=…, TCP_NODELAY=…"""
        with ns:
            s = socket.socket(socket.AF_INET if self.version == 4 else socket.AF_INET6,
                              socket.SOCK_STREAM | socket.SOCK_NONBLOCK, proto)
        if cc:
            s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cc.encode())
        for name, value in options.items():
            level = {"TCP": socket.IPPROTO_TCP, "IP": socket.IPPROTO_IP,
                     "IPV6": socket.IPPROTO_IPV6, "SO": socket.SOL_SOCKET}[name.split("_")[0]]
            s.setsockopt(level, getattr(socket, name), value)
        self._open.append(s)
        return s

    def listen(self, port=1000, cc=None, **options):
        """A listener in b."""
        s = self.socket(self.b, cc, SO_REUSEADDR=1, **options)
        s.bind((self.address(self.b), port))
        s.listen(100)
        return s

    def begin(self, client, to, port=1000):
        """connect() to a host: the SYN is sent; Wire.run() carries it."""
        with contextlib.suppress(BlockingIOError):
            client.connect((self.address(to), port))

    def accept(self, listener):
        """Accept a connection from the listener's queue."""
        server = listener.accept()[0]
        server.setblocking(False)
        self._open.append(server)
        return server

    def connect(self, port=1000, cc=None, listener=None, source=None, **options):
        """A connection from a (one of its addresses) to b: (socket in a, socket in b)."""
        own = listener is None
        listener = listener or self.listen(port)
        client = self.socket(self.a, cc, **options)
        if source:
            client.bind((source, 0))
        self.begin(client, self.b, port)
        server = None
        for _ in range(2000):
            self.run(50e-6)
            try:
                server = self.accept(listener)
                break
            except BlockingIOError:
                continue
        if server is None:
            raise TimeoutError("no connection")
        if own:
            listener.close()
        self.run(100e-6)
        return client, server

    # --- the wire

    def inject(self, ns, packet):
        """Deliver a packet to ns as if the wire had carried it."""
        os.write(self._tun[ns], bytes(packet.raw if hasattr(packet, "raw") else packet))

    def answer(self, to, kind, flags=0, sack=None, window=60000, seconds=2e-6):
        """Inject an ACK in b's name to a: it acknowledges all data before the packet `to`, and
        selectively the packet `sack`; as a clock echo it answers the last clock.  Then run, unless
        `seconds` is 0."""
        options = b"" if sack is None else b"\1\1\5\12" + struct.pack("!II", sack.seq, sack.end)
        if kind == CLOCK_ECHO:
            options += pkt.option(CLOCK_ECHO, field=self.asked)
        self.inject(self.a, pkt.make(
            self.version, self.address(self.b), self.address(self.a), to.dport, to.sport,
            to.ack, to.seq, pkt.ACK | flags, dscp=kind, window=window, options=options))
        if seconds:
            self.run(seconds)

    def slow_start(self, payload):
        """Connect without time stamps, drop all packets and send ACKs in b's name, until a has sent
        a second important packet.  Returns a's socket, the packets, and that packet's index x; all
        data before packet x - 2 is acknowledged."""
        for ns in (self.a, self.b):
            ns.sysctl("net.ipv4.tcp_ecn", 1)
            ns.sysctl("net.ipv4.tcp_timestamps", 0)
        client, _ = self.connect()
        self.mark()
        self.rule = lambda p: True
        client.send(payload)
        self.run(2e-6)
        for n in range(1, 10):
            self.answer(self.seen[n], CONTROL)
        x = len(self.seen)
        self.answer(self.seen[10], CONTROL)
        for n in range(11, x - 1):
            self.answer(self.seen[n], CONTROL)
        return client, self.seen, x

    def _carry(self, now):
        """Deliver the packets whose time has passed, and take those that the hosts have sent."""
        due = []
        while self._flying and self._flying[0][0] <= now:
            packet = heapq.heappop(self._flying)[2]
            due.append((self._tun[self.b if packet.from_a else self.a], packet.raw))
        sent = self._batch(due)
        self._moved = bool(due) or not any(sent)
        if not any(sent):
            return
        self._read_at = max(self._read_at, time.clock_gettime(time.CLOCK_MONOTONIC))
        for packets, from_a in zip(sent, (True, False)):
            for raw in packets:
                self._take(pkt.Packet(raw), from_a)

    def _take(self, packet, from_a):
        self._read_at += READ
        packet.time, packet.from_a, packet.late = self._read_at, from_a, 0.0
        if packet.tcp:
            self.seen.append(packet)
            if from_a and packet.says == CLOCK:
                self.asked = packet.field
        else:
            self.others.append(packet)
        if self.rule and packet.tcp and self.rule(packet):
            packet.dropped = True
            return
        self._number += 1
        heapq.heappush(self._flying, (packet.time + self.delay + packet.late, self._number, packet))

    def run(self, seconds, until=None):
        """Carry packets for `seconds`, or until until() is true; returns whether it was."""
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        end = now + seconds
        while True:
            self._carry(now)
            if until and until():
                return True
            now = time.clock_gettime(time.CLOCK_MONOTONIC)
            if now >= end:
                return False
            wake = min([end] + [f[0] for f in self._flying[:1]])
            if wake > now:
                if libc.ppoll(self._tun.values(), select.POLLIN, wake - now):
                    now = time.clock_gettime(time.CLOCK_MONOTONIC)
                else:
                    now = wake

    def _if_moved(self, step):
        """An until() of run() that calls step() only if sockets may have something new for it: first,
        and then not after packets that the wire has only taken from the hosts."""
        waits = False

        def until():
            nonlocal waits
            if waits and not self._moved:
                return False
            waits = True
            return step()
        return until

    def align(self):
        """Wait for a full second, so that runs begin at the same phase of every timer."""
        self.run(1.0 - time.clock_gettime(time.CLOCK_MONOTONIC) % 1.0)

    def transfer(self, source, sink, count, seconds=1.0):
        """Send count bytes and read them at the other end; they must be equal.  True if all
        arrived within `seconds`."""
        sent, got = 0, bytearray()
        data = memoryview(pattern(count))

        def step():
            nonlocal sent
            if sent < count:
                sent += _send(source, data[sent:])
            if len(got) < count:
                got.extend(_receive(sink))
            return len(got) >= count

        done = self.run(seconds, self._if_moved(step))
        if got != data[:len(got)]:
            raise AssertionError("the bytes received are not those sent")
        return done

    def receive(self, sink, count, seconds=1.0):
        """Read until `count` bytes have arrived, for up to `seconds`; returns the bytes."""
        got = bytearray()

        def step():
            with contextlib.suppress(ConnectionError):
                got.extend(_receive(sink))
            return len(got) >= count
        self.run(seconds, self._if_moved(step))
        return bytes(got)

    def transfer_both(self, client, server, count, seconds=1.0):
        """transfer() in both directions at once; true if all arrived."""
        ends = (client, server)
        payload = memoryview(pattern(count))
        sent = dict.fromkeys(ends, 0)
        got = {s: bytearray() for s in ends}

        def step():
            for s in ends:
                if sent[s] < count:
                    sent[s] += _send(s, payload[sent[s]:])
                if len(got[s]) < count:
                    got[s].extend(_receive(s))
            return all(len(g) == count for g in got.values())
        done = self.run(seconds, self._if_moved(step))
        for g in got.values():
            if g != payload[:len(g)]:
                raise AssertionError("the bytes received are not those sent")
        return done

    def third_lost(self, client, server):
        """Send 40 kB, of which the third packet is lost once; returns (length, offset) of each
        packet that a sent."""
        self.mark()
        count = 0

        def drop(p):
            nonlocal count
            count += bool(p.from_a and p.len)
            return p.from_a and p.len and count == 3
        self.rule = drop
        if not self.transfer(client, server, 40_000):
            raise AssertionError("40 kB do not arrive")
        base = self.seen[0].seq
        return [(p.len, (p.seq - base) & 0xffffffff) for p in self.from_a()]

    # --- what was seen

    def mark(self):
        """Clear the list of seen packets."""
        self.seen.clear()

    def from_a(self):
        """The packets from a, including dropped ones."""
        return [p for p in self.seen if p.from_a]

    def from_b(self):
        """The packets from b, including dropped ones."""
        return [p for p in self.seen if not p.from_a]

    def dump(self):
        """The seen packets, one per row of text."""
        return "\n".join(map(repr, self.seen))

    def cut(self):
        """Remove the devices of both hosts; their sockets stay open."""
        self._batch.close()
        for fd in self._tun.values():
            os.close(fd)

    def close(self):
        """Close all sockets and remove the devices and namespaces."""
        for s in self._open:
            s.close()
        self.run(1e-3)
        self.cut()
        self.a.remove()
        self.b.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _send(s, data):
    """The number of bytes that a socket accepts."""
    try:
        return s.send(data)
    except BlockingIOError:
        return 0


def _receive(s):
    """All bytes that a socket has."""
    try:
        data = s.recv(1 << 24)
    except BlockingIOError:
        return b""
    if not data:
        raise ConnectionError("closed in the middle of a transfer")
    return data


@contextlib.contextmanager
def connected(of=Wire, by=Wire.connect, **options):
    """(wire, client, server): a wire, or the result of another context manager, and a connection
    over it.  `by` makes the connection: Wire.connect, or a function like those of
    lab.wire.peer."""
    with of(**options) as wire:
        yield wire, *by(wire)


def pattern(count):
    """`count` bytes of a pattern in which a misplaced byte is detected."""
    block = bytes((i * 7 + (i >> 8) * 13) & 0xff for i in range(65521))
    return (block * (count // len(block) + 1))[:count]
