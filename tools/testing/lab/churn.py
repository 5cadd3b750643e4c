# SPDX-License-Identifier: GPL-2.0
"""Connections that check every byte, while modules, settings and congestion controls change.

	client process (ns a)                     server process (ns b)
	`persistent` connections, with requests and answers for the whole run
	and short ones: some end with FIN, some with RST, some in the middle of an answer

A request is a header (number of the connection, number of bytes) and that number of
bytes; the answer has the same number of bytes.  The value of a byte is a function of
the connection and the offset, so a lost, repeated, foreign or moved byte is detected.

The parent sends orders to both processes over pipes: to set another congestion control
on all sockets, to report counters, or to end.  A process answers with its counters when it
has executed an order.
"""
import contextlib
import errno
import heapq
import multiprocessing
import os
import random
import selectors
import socket
import struct
import time

from lab.wire.sockopt import (GREENLANE_COSENDERS, GREENLANE_MESSAGE, GREENLANE_SENDERS,
                              GREENLANE_WEIGHT, TCP_CONGESTION, ip_level)

PORT = 5000
HEADER = struct.Struct("!II")
PERIOD = 1 << 16
LONGEST = 60_000
BLOCK = random.Random(2021).randbytes(PERIOD) * 3
RST = struct.pack("ii", 1, 0)           # SO_LINGER: close() resets
SENDERS = b"".join(bytes(10) + b"\xff\xff\x0a\0\1" + bytes([n]) for n in range(64))


def pattern(number, offset, length):
    """The bytes of connection `number` from `offset` on (length <= PERIOD)."""
    at = (number * 7919 + offset) % PERIOD
    return BLOCK[at:at + length]


# A kernel with KASAN or KCSAN: ten times as slow.
CHECKED = os.environ.get("GL_VARIANT", "") not in ("", "smp")
# Seconds.  A kernel with KASAN needs tens of ms for a probe and its ACK; with 10 s the probes of 200
# connections alone were more than it can do.
KEEPIDLE = 100 if CHECKED else 10


class Endless(Exception):
    """A connection without progress."""


class End:
    """One end of a connection, with the bytes to be sent and to be received."""

    def __init__(self, sock, number=None):
        self.sock = sock
        self.number = number
        self.outbox = self.inbox = b""
        self.sent = self.got = 0        # offsets in the patterns of the two directions
        self.length = self.left = 0     # bytes of this request: all, and not yet received
        self.fate = None                # how a short connection ends
        self.moved = time.monotonic()

    def queue(self, length, header=b""):
        """Queue a header and `length` bytes of the pattern to be sent."""
        self.outbox += header + pattern(self.number, self.sent, length)
        self.sent += length

    def flush(self):
        """Send the queued bytes until the socket is full."""
        while self.outbox:
            try:
                done = self.sock.send(self.outbox)
            except BlockingIOError:
                return
            self.outbox = self.outbox[done:]
            self.moved = time.monotonic()

    def check(self, data):
        """Check received bytes; returns the number of wrong ones."""
        want = pattern(self.number, self.got, len(data))
        self.got += len(data)
        self.left -= len(data)
        self.moved = time.monotonic()
        return 0 if data == want else sum(a != b for a, b in zip(data, want))


class Peer:
    """The common part of client and server: an event loop, and orders of the parent."""

    STUCK = 600         # real seconds without progress that count as a hang

    def __init__(self, orders):
        self.orders = orders
        self.selector = selectors.DefaultSelector()
        self.selector.register(orders, selectors.EVENT_READ)
        self.cc = None
        self.ending = False
        self.count = {"exchanges": 0, "bytes": 0, "wrong": 0, "opened": 0, "resets": 0}

    def ends(self):
        """All connections."""
        return [key.data for key in self.selector.get_map().values()
                if isinstance(key.data, End)]

    def watch(self, end):
        """Wait for data on this connection and, if bytes are queued, for room to send."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if end.outbox else 0)
        try:
            self.selector.modify(end.sock, events, end)
        except KeyError:
            self.selector.register(end.sock, events, end)

    def drop(self, end):
        """Close a connection."""
        self.selector.unregister(end.sock)
        end.sock.close()

    def use(self, sock):
        """Set the congestion control of the last order on a socket."""
        if self.cc:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.cc.encode())
            except OSError as why:
                if why.errno not in (errno.ENOENT, errno.EINVAL, errno.EBUSY):
                    raise
            if self.cc == "dart":
                self.incast(sock)

    def incast(self, sock):
        """Name senders, and begin a message that does not end.  Both fail on a socket that is not
        connected, or that does not run dart."""
        for option, value in ((GREENLANE_SENDERS, SENDERS), (GREENLANE_COSENDERS, SENDERS[:160]),
                              (GREENLANE_WEIGHT, struct.pack("i", 7)),
                              (GREENLANE_MESSAGE, struct.pack("i", self.count["opened"] % 2))):
            with contextlib.suppress(OSError):
                sock.setsockopt(ip_level(sock), option, value)

    def obey(self):
        """Execute one order of the parent: "count", "end", or a congestion control."""
        order = self.orders.recv()
        if order == "end":
            self.ending = True
        elif order != "count":
            self.cc = order
            for key in list(self.selector.get_map().values()):
                if isinstance(key.fileobj, socket.socket):
                    self.use(key.fileobj)
        if order != "count":
            self.changed()
        if order != "end":
            self.orders.send(dict(self.count))

    def changed(self):
        """Called after an order to change the congestion control, or to end."""

    def look_for_stuck(self):
        """Raise Endless if a connection has made no progress for STUCK seconds."""
        now = time.monotonic()
        for end in self.ends():
            if (end.left or end.outbox) and now - end.moved > self.STUCK:
                raise Endless(f"connection {end.number}: sent {end.sent}, got {end.got}, "
                              f"{end.left} to come, {len(end.outbox)} unsent")

    def run(self):
        """Serve events until the end, then send the counters to the parent."""
        try:
            looked = time.monotonic()
            while not self.done():
                for key, events in self.selector.select(0.1):
                    # On a slow kernel the events of one select() take half a minute.
                    if self.orders.poll():
                        self.obey()
                    if key.fileobj is self.orders:
                        pass
                    elif key.fileobj.fileno() < 0:
                        pass            # closed by an earlier event
                    elif isinstance(key.data, End):
                        self.serve(key.data, events)
                    else:
                        self.accept(key.fileobj)
                if time.monotonic() - looked > 5:
                    looked = time.monotonic()
                    self.look_for_stuck()
                self.every_turn()
            self.orders.send(self.count)
        except Exception as why:        # the parent reports it as a failure
            self.orders.send({"error": f"{type(why).__name__}: {why}", **self.count})
            raise

    def serve(self, end, events):
        """Serve a connection that is readable or writable."""
        try:
            if events & selectors.EVENT_WRITE:
                end.flush()
            if events & selectors.EVENT_READ:
                data = end.sock.recv(65536)
                if not data:
                    self.closed(end)
                    return
                self.count["bytes"] += len(data)
                self.received(end, data)
            if end.sock.fileno() >= 0:
                end.flush()
                self.watch(end)
        except (ConnectionError, TimeoutError):
            self.count["resets"] += 1
            self.closed(end)

    def every_turn(self):
        """Called after the events of each select()."""

    def accept(self, sock):
        """Accept connections from a listener's queue."""


class Server(Peer):
    """Receives requests and sends answers."""

    def __init__(self, orders, addresses):
        super().__init__(orders)
        self.addresses = addresses
        self.listeners = []
        self.listen()

    def listen(self):
        """Open the listeners."""
        for family, address in self.addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.use(sock)
            sock.bind((address, PORT))
            sock.listen(512)
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ)
            self.listeners.append(sock)

    def changed(self):
        """Replace the listeners; at the end only close them.  TCP removes the half-open children of
        a closed listener."""
        for sock in self.listeners:
            self.accept(sock)
            self.selector.unregister(sock)
            sock.close()
        self.listeners = []
        if not self.ending:
            self.listen()

    def accept(self, sock):
        while True:
            try:
                child, _ = sock.accept()
            except (BlockingIOError, ConnectionError):
                return
            child.setblocking(False)
            # A lost RST is not retransmitted: keepalive probes find out.
            child.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            child.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPIDLE)
            child.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPIDLE // 5)
            self.use(child)
            self.watch(End(child))
            self.count["opened"] += 1

    def received(self, end, data):
        end.inbox += data
        while True:
            if not end.left:
                if len(end.inbox) < HEADER.size:
                    return
                number, end.length = HEADER.unpack_from(end.inbox)
                if end.number not in (None, number) or not 0 < end.length <= LONGEST:
                    self.count["wrong"] += HEADER.size
                    raise ConnectionError("a header that was never sent")
                end.inbox = end.inbox[HEADER.size:]
                end.number, end.left = number, end.length
            part, end.inbox = end.inbox[:end.left], end.inbox[end.left:]
            self.count["wrong"] += end.check(part)
            if end.left:
                return
            self.count["exchanges"] += 1
            end.queue(end.length)

    def closed(self, end):
        self.drop(end)

    def look_for_stuck(self):
        """The client detects it."""

    def done(self):
        return self.ending and not self.ends()


class Client(Peer):
    """Sends requests over persistent connections, and over short ones that end by each fate."""

    FATES = ("fin", "reset", "leave", "nothing")
    SHORT = 8               # short connections at a time
    THINK = 10.0            # seconds, at most, from an answer to the next request

    def __init__(self, orders, addresses, persistent):
        super().__init__(orders)
        self.addresses = addresses
        self.rng = random.Random(1)
        self.count.update(lost=0, short=0)
        self.thinking = []      # heap of (time of the next request, number, connection)
        self.next = 0
        self.short = 0
        for _ in range(persistent):
            self.open()

    def open(self, fate=None):
        """Connect; `fate` is how a short connection ends."""
        family, address = self.addresses[self.next % len(self.addresses)]
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        self.use(sock)
        end = End(sock, self.next)
        end.fate = fate
        self.next += 1
        self.short += fate is not None
        if sock.connect_ex((address, PORT)) not in (0, errno.EINPROGRESS):
            raise ConnectionError(f"connect: {address}")
        if fate == "nothing":
            self.watch(end)
            self.closed(end)
            return
        self.ask(end)
        self.watch(end)

    def ask(self, end):
        """Queue one request."""
        end.left = self.rng.choice((1, 100, 1448, 20_000, LONGEST))
        end.queue(end.left, HEADER.pack(end.number, end.left))

    def received(self, end, data):
        if len(data) > end.left:
            self.count["wrong"] += len(data) - end.left
        self.count["wrong"] += end.check(data[:end.left])
        if end.fate in ("reset", "leave"):
            if end.fate == "reset":
                end.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
            self.closed(end)
        elif not end.left:
            self.count["exchanges"] += 1
            if end.fate or self.ending:
                self.closed(end)
            else:
                when = time.monotonic() + self.rng.random() * self.THINK
                heapq.heappush(self.thinking, (when, end.number, end))

    def closed(self, end):
        if end.fate:
            self.short -= 1
            self.count["short"] += 1
        elif not (self.ending and not end.left):
            self.count["lost"] += 1
        self.drop(end)

    def every_turn(self):
        while self.thinking and (self.ending or self.thinking[0][0] <= time.monotonic()):
            end = heapq.heappop(self.thinking)[2]
            if end.sock.fileno() < 0:
                continue
            if self.ending:
                self.closed(end)
                continue
            end.moved = time.monotonic()
            self.ask(end)
            self.serve(end, selectors.EVENT_WRITE)
        while self.short < self.SHORT and not self.ending:
            self.open(self.rng.choice(self.FATES))

    def done(self):
        return self.ending and not self.ends()


class Traffic:
    """Both processes, each in its namespace."""

    def __init__(self, a, b, addresses, persistent):
        self._peers = []
        context = multiprocessing.get_context("fork")
        for ns, kind, args in ((b, Server, (addresses,)), (a, Client, (addresses, persistent))):
            ours, theirs = context.Pipe()
            with ns:
                process = context.Process(target=lambda k, o, a: k(o, *a).run(),
                                          args=(kind, theirs, args), daemon=True)
                process.start()
            theirs.close()
            self._peers.append((process, ours))
            self.tell("count")          # the server listens; the client has connected
        while self.tell("count")[0]["opened"] < persistent:
            time.sleep(0.1)

    def tell(self, order):
        """Send an order to both processes; returns their counters, [server, client], after it."""
        for _, pipe in self._peers:
            pipe.send(order)
        return [pipe.recv() for _, pipe in self._peers]

    def end(self, patience):
        """End both processes after all answers, within `patience` seconds each; returns the last
        counters, [server, client]."""
        self._peers[1][1].send("end")
        last = [self._last(1, patience)]
        self._peers[0][1].send("end")
        return [self._last(0, patience)] + last

    def _last(self, which, patience):
        process, pipe = self._peers[which]
        if not pipe.poll(patience):
            return {"error": f"no end after {patience} s"}
        count = pipe.recv()
        process.join(10)
        return count
