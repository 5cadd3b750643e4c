#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""getsockopt() and setsockopt() with random numbers, lengths and pointers, in every state.

	this program ---- system calls, as raw as C's ----> sockets of both ends
	a ---- wire ---- b                                  of a wire

A call that fails has no effect: neither on the socket's congestion control nor on
GREENLANE_INFO, nor on the caller's memory outside of the buffer.  A call that succeeds
has its documented effect.  Afterwards the connections still carry every byte.

A failing round can be run alone: see lab/fuzz.py.
"""
import ctypes
import errno
import mmap
import socket
import struct

from lab import fuzz, tap
from lab.net import modules
from lab.tap import case, equal, true
from lab.wire.sockopt import (GREENLANE_AEOLUS, GREENLANE_BDP, GREENLANE_COSENDERS, GREENLANE_INFO,
                              GREENLANE_MESSAGE, GREENLANE_SENDERS, GREENLANE_TLT,
                              GREENLANE_WEIGHT, INFO_SIZE, TCP_CONGESTION)
from lab.wire.wire import Wire, connected

CALLS = 100_000
TOTAL = {}              # kind of call -> number of calls that have succeeded
EACH = 500              # calls a round
RTO_MIN = 1000          # a round takes 15 ms of virtual time

SOL_TCP, SOL_MPTCP, IPPROTO_MPTCP = 6, 284, 262
LEVELS = (0,) * 4 + (41,) * 4 + (SOL_TCP, 1, SOL_MPTCP, -1, 1 << 31)
# Maximum of each; BDP accepts any number, and returns another.
MOST = {GREENLANE_TLT: 1, GREENLANE_AEOLUS: 1, GREENLANE_BDP: 1 << 31, GREENLANE_MESSAGE: 1,
        GREENLANE_WEIGHT: 1000}
LISTS = (GREENLANE_SENDERS, GREENLANE_COSENDERS)        # set as addresses, read as a number
NUMBERS = (*MOST, *LISTS)
NAMES = (GREENLANE_INFO, *NUMBERS) * 4 + tuple(range(GREENLANE_INFO - 3, GREENLANE_COSENDERS + 4)) \
    + (GREENLANE_INFO & 0xffff, GREENLANE_INFO | 1 << 31, GREENLANE_TLT | 1 << 30)
ADDRESS, ADDRESSES = 16, 64             # bytes of one, and how many
LENGTHS = (0, 1, 2, 3, 4, 4, 4, 5, 7, 8, 15, 16, 17, 32, 160, 1008, 1024, 1025, 1040, 35, 36, 37, INFO_SIZE - 1, INFO_SIZE,
           INFO_SIZE, INFO_SIZE + 1, 64, 4095, 4096, 1 << 20,
           (1 << 31) - 1, -(1 << 31), -4, -1)
VALUES = (0, 1, 0, 1, 0, 1, 2, 1000, 1001, -1, 1 << 30, 255, 256, -(1 << 31))
CCS = (b"tlt_reno", b"tlt_cubic", b"tlt_dctcp", b"tlt_dart", b"tlt_hpcc", b"xpass", b"aeolus_xpass",
       b"dcqcn", b"dart", b"timely", b"hpcc", b"ndp", b"homa", b"aeolus_homa", b"aeolus_ndp",
       b"aeolus_cubic", b"aeolus_dctcp", b"reno", b"cubic", b"nobody", b"", b"tlt_", b"tlt_reno" * 3, b"\xff\xfe")
CANARY = 0xa5
PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.getsockopt.argtypes = 3 * [ctypes.c_int] + [ctypes.c_void_p, ctypes.c_void_p]
_libc.setsockopt.argtypes = 3 * [ctypes.c_int] + [ctypes.c_void_p, ctypes.c_uint]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Memory:
    """Pages for pointers: writable ones, a read-only one, an inaccessible one."""

    def __init__(self):
        self.map = mmap.mmap(-1, 6 * PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.read_only = self.base + 3 * PAGE
        self.gone = self.base + 5 * PAGE
        _libc.mprotect(self.read_only, PAGE, mmap.PROT_READ)
        _libc.mprotect(self.gone, PAGE, 0)

    def pointer(self, rng):
        """A random pointer, valid in most cases."""
        return rng.choice((self.base, self.base, self.base, self.base, self.base + 1,
                           self.base + rng.randrange(PAGE), self.gone - rng.randrange(40),
                           self.read_only, self.read_only - 2, self.gone, 0, 1, (1 << 64) - 1,
                           (1 << 47) - 1, 0xffff888000000000, 0xffffffff81000000, 0x60000000))

    def paint(self):
        """Fill the writable pages."""
        self.map[:3 * PAGE] = bytes([CANARY]) * (3 * PAGE)

    def put(self, pointer, data):
        """Write data at the pointer if the memory is writable; returns whether it is."""
        offset = pointer - self.base
        if 0 <= offset <= 3 * PAGE - len(data):
            self.map[offset:offset + len(data)] = data
            return True
        return False


def state(s):
    """All state that greenlane's socket options can change."""
    try:
        cc = s.getsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, 16)
    except OSError as why:
        return why.errno
    seen = [cc]
    for name, length in ((GREENLANE_INFO, INFO_SIZE), *((name, 4) for name in NUMBERS)):
        for level in (socket.IPPROTO_IP, socket.IPPROTO_IPV6):
            try:
                seen.append(s.getsockopt(level, name, length))
            except OSError as why:
                seen.append(why.errno)
    return seen


class Sockets:
    """Every kind of socket, in every state."""

    def __init__(self, wire):
        self.wire = wire
        self.all = []
        self.pairs = []
        for version in (4, 6):
            wire.version = version
            self.tcp()
        self.mapped()
        self.others()

    def keep(self, *sockets):
        """Remember the sockets, and return them."""
        self.all += sockets
        return sockets

    def tcp(self):
        """TCP of one IP version."""
        wire = self.wire
        self.pairs.append(self.keep(*wire.connect(1000)))
        listener, = self.keep(wire.listen(2000))
        client, server = self.keep(*wire.connect(2000, listener=listener))
        client.shutdown(socket.SHUT_WR)             # FIN_WAIT2, CLOSE_WAIT
        client, server = self.keep(*wire.connect(2000, listener=listener))
        client.shutdown(socket.SHUT_WR)
        wire.run(1e-4)
        server.shutdown(socket.SHUT_WR)             # TIME_WAIT, closed
        client, server = self.keep(*wire.connect(2000, listener=listener))
        client.shutdown(socket.SHUT_RDWR)
        client, = self.keep(wire.socket(wire.a))    # not connected
        client, = self.keep(wire.socket(wire.a))    # SYN_SENT
        wire.rule = lambda p: True
        try:
            client.connect((wire.address(wire.b), 2000))
        except BlockingIOError:
            pass
        wire.run(1e-4)
        wire.rule = None
        del server

    def mapped(self):
        """IPv4 through an IPv6 socket."""
        wire = self.wire
        wire.version = 4
        listener = wire.listen(3000)
        wire.version = 6
        client = wire.socket(wire.a)
        try:
            client.connect(("::ffff:10.0.0.2", 3000))
        except BlockingIOError:
            pass
        wire.run(1e-3)
        server = listener.accept()[0]
        server.setblocking(False)
        self.pairs.append(self.keep(client, server))
        self.keep(listener)

    def others(self):
        """Open sockets of other protocols, and of MPTCP."""
        with self.wire.a:
            for family in (socket.AF_INET, socket.AF_INET6):
                self.keep(socket.socket(family, socket.SOCK_DGRAM),
                          socket.socket(family, socket.SOCK_RAW, 253),
                          socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP))
            self.keep(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))

    def close(self):
        """Close all sockets."""
        self.wire.run(1e-3)
        for s in self.all:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.wire.run(1e-3)
        self.wire.mark()


class Caller:
    """Makes calls, and checks their effects."""

    def __init__(self, rng):
        self.rng = rng
        self.memory = Memory()
        self.length = Memory()
        self.succeeded = {"get": 0, "set": 0, "cc": 0}

    def get(self, s):
        """getsockopt()."""
        rng, memory = self.rng, self.memory
        level, name = rng.choice(LEVELS), rng.choice(NAMES)
        size, where = rng.choice(LENGTHS), memory.pointer(rng)
        size_at = self.length.pointer(rng)
        memory.paint()
        self.length.put(size_at, struct.pack("i", size))
        before = state(s)
        done = _libc.getsockopt(s.fileno(), level, name, where, size_at)
        what = f"getsockopt({level}, {name:#x}, {where:#x}, {size}) of {s!r}: {done}"
        equal(state(s), before, what)
        first = where - memory.base
        if not 0 <= first < 3 * PAGE:
            first, size = 0, 0
        offered = max(size, 0)
        true(memory.map[:first].strip(bytes([CANARY])) == b"", f"{what}: memory before it")
        # Also after a failure, memory outside of the buffer is unchanged.
        true(memory.map[first + offered:3 * PAGE].strip(bytes([CANARY])) == b"",
             f"{what}: memory beyond it")
        self.succeeded["get"] += not done

    def set(self, s):
        """setsockopt()."""
        rng = self.rng
        level, name, value = rng.choice(LEVELS), rng.choice(NAMES), rng.choice(VALUES)
        size, where = rng.choice(LENGTHS), self.memory.pointer(rng)
        self.memory.paint()
        there = self.memory.put(where, struct.pack("i", value))
        before = state(s)
        done = _libc.setsockopt(s.fileno(), level, name, where, size & 0xffffffff)
        after = state(s)
        what = f"setsockopt({level}, {name:#x}, {value} at {where:#x}, {size}) of {s!r}: {done}"
        if done:
            equal(after, before, what)
        elif there:
            name &= 0xffffffff
            true(name in NUMBERS, f"{what}: an option that can be set")
            if name in LISTS:
                true(size % ADDRESS == 0 and 0 <= size <= ADDRESS * ADDRESSES,
                     f"{what}: a valid size")
                value = size // ADDRESS
            else:
                true(0 <= value <= MOST[name] and (value or name != GREENLANE_WEIGHT),
                     f"{what}: a valid value")
            true(struct.pack("i", value) in after[3:] or value == 0, f"{what}: {after}")
        self.succeeded["set"] += not done

    def congestion(self, s):
        """setsockopt(TCP_CONGESTION), with a valid name or not."""
        before = state(s)
        name = self.rng.choice(CCS)
        try:
            s.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, name)
        except OSError:
            equal(state(s), before, f"TCP_CONGESTION {name} of {s!r}")
        else:
            after = state(s)
            # some fall back to reno without ECN; credits begin with the handshake only
            expected = (name, {b"tlt_dctcp": b"tlt_reno", b"tlt_dart": b"tlt_reno", b"tlt_hpcc": b"tlt_reno",
                               b"aeolus_dctcp": b"aeolus_reno",
                               b"xpass": b"xpass-reno",
                               b"aeolus_xpass": b"aeolus-reno", b"dcqcn": b"dcqcn-reno",
                               b"dart": b"dart-reno",
                               b"hpcc": b"hpcc-reno", b"ndp": b"ndp-reno",
                               b"homa": b"homa-reno", b"aeolus_homa": b"aeolus-reno",
                               b"aeolus_ndp": b"aeolus-reno"}.get(name))
            true(isinstance(after, list) and after[0].rstrip(b"\0") in expected,
                 f"TCP_CONGESTION {name}: {after}")
            self.succeeded["cc"] += 1


def fuzzed(cc, calls, total):
    """Make random calls on connections that run cc and others; counts the calls that succeed."""
    # A retransmission between two reads of a socket's state would change it.
    with Wire(cc=cc, rto_min=RTO_MIN) as wire:
        modules.load("tcp_tlt", "tcp_aeolus", "tcp_dart", "tcp_timely", "tcp_hpcc", "tcp_ndp", "tcp_homa")
        for number, rng in fuzz.rounds(f"call-{cc}", calls, EACH):
            with fuzz.replayable(f"call-{cc}", number):
                sockets, caller = Sockets(wire), Caller(rng)
                for _ in range(EACH):
                    call = rng.choice((caller.get, caller.get, caller.set, caller.set,
                                       caller.congestion))
                    call(rng.choice(sockets.all))
                for client, server in sockets.pairs:
                    for source, sink in ((client, server), (server, client)):
                        true(wire.transfer(source, sink, 10_000, seconds=10), "the bytes arrive")
                sockets.close()
                for kind, count in caller.succeeded.items():
                    total[kind] = total.get(kind, 0) + count


@case("random numbers, lengths and pointers: a call that fails has no effect",
      cc=("tlt_reno", "aeolus_xpass", "dart"))
def calls(cc):
    fuzzed(cc, CALLS // 3, TOTAL)


@case("some calls of each kind have succeeded")
def succeeded():
    tap.need_virtual_time()
    modules.load("tcp_tlt")
    true(TOTAL, "some calls were made")
    for kind, count in TOTAL.items():
        true(count > 0, f"{kind}: calls that succeeded, of {TOTAL}")


@case("getsockopt() with each length from -1 to 100 fills at most that many bytes", connected,
      cc="tlt_reno")
def lengths(wire, client, _server):
    buffer = ctypes.create_string_buffer(200)
    for name, size, least in ((GREENLANE_INFO, INFO_SIZE, 0), (GREENLANE_TLT, 4, 4)):
        for length in range(-1, 101):
            offered = ctypes.c_int(length)
            ctypes.memset(buffer, CANARY, 200)
            done = _libc.getsockopt(client.fileno(), 0, name, ctypes.addressof(buffer),
                                    ctypes.addressof(offered))
            what = f"option {name:#x}, {length} bytes"
            if length < least:
                equal((done, ctypes.get_errno()), (-1, errno.EINVAL), what)
                equal(buffer.raw, bytes([CANARY]) * 200, f"{what}: memory")
                continue
            equal((done, offered.value), (0, min(length, size)), what)
            equal(buffer.raw[offered.value:], bytes([CANARY]) * (200 - offered.value),
                  f"{what}: memory beyond")


if __name__ == "__main__":
    tap.main()
