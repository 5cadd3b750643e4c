# SPDX-License-Identifier: GPL-2.0
"""Connections that check every byte, while the world changes around them.

	client process (ns a)                     server process (ns b)
	PERSISTENT connections, which ask and are answered for the whole run
	and short ones: some end with FIN, some with RST, some in mid-sentence

A request is a header (which connection, how many bytes), and that many bytes;
the answer has as many.  What byte stands where follows from the connection and
the offset, so that a lost, repeated, foreign or moved byte is seen.

Either process is told by its parent, over a pipe, to put all its sockets on
another congestion control, or to come to an end, and says when it has.
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


# Seconds.  A kernel with KASAN needs tens of ms for a probe and its ACK; with 10 s the probes of 200
# connections alone were more than it can do.
KEEPIDLE = 100 if os.environ.get("GL_VARIANT") in ("smp-debug", "kcsan") else 10


class Endless(Exception):
    """A connection that did not get on."""


class End:
    """One end of a connection: what is to be sent and what is to come."""

    def __init__(self, sock, number=None):
        self.sock = sock
        self.number = number
        self.outbox = self.inbox = b""
        self.sent = self.got = 0        # offsets of the patterns
        self.length = self.left = 0     # of this request: all, still to come
        self.fate = None                # of a short connection
        self.moved = time.monotonic()

    def queue(self, length, header=b""):
        """Send so many bytes of the pattern."""
        self.outbox += header + pattern(self.number, self.sent, length)
        self.sent += length

    def flush(self):
        """Send what the socket takes."""
        while self.outbox:
            try:
                done = self.sock.send(self.outbox)
            except BlockingIOError:
                return
            self.outbox = self.outbox[done:]
            self.moved = time.monotonic()

    def check(self, data):
        """Received bytes; the number of wrong ones."""
        want = pattern(self.number, self.got, len(data))
        self.got += len(data)
        self.left -= len(data)
        self.moved = time.monotonic()
        return 0 if data == want else sum(a != b for a, b in zip(data, want))


class Peer:
    """What client and server have in common: an event loop, and a parent."""

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
        """Wait for what this connection waits for."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if end.outbox else 0)
        try:
            self.selector.modify(end.sock, events, end)
        except KeyError:
            self.selector.register(end.sock, events, end)

    def drop(self, end):
        """Forget a connection."""
        self.selector.unregister(end.sock)
        end.sock.close()

    def use(self, sock):
        """Put a socket on the congestion control of the day."""
        if self.cc:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, self.cc.encode())
            except OSError as why:
                if why.errno not in (errno.ENOENT, errno.EINVAL, errno.EBUSY):
                    raise
            if self.cc == "dart":
                self.incast(sock)

    def incast(self, sock):
        """Name senders, and begin a message that does not end; neither is possible of a
        socket that is not connected, or not dart's after all."""
        for option, value in ((GREENLANE_SENDERS, SENDERS), (GREENLANE_COSENDERS, SENDERS[:160]),
                              (GREENLANE_WEIGHT, struct.pack("i", 7)),
                              (GREENLANE_MESSAGE, struct.pack("i", self.count["opened"] % 2))):
            with contextlib.suppress(OSError):
                sock.setsockopt(ip_level(sock), option, value)

    def obey(self):
        """One order of the parent's."""
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
        """Another congestion control, or the end."""

    def look_for_stuck(self):
        """Raise if a connection waits for too long."""
        now = time.monotonic()
        for end in self.ends():
            if (end.left or end.outbox) and now - end.moved > self.STUCK:
                raise Endless(f"connection {end.number}: sent {end.sent}, got {end.got}, "
                              f"{end.left} to come, {len(end.outbox)} unsent")

    def run(self):
        """Until the end; the counters go to the parent."""
        try:
            looked = time.monotonic()
            while not self.done():
                for key, events in self.selector.select(0.1):
                    # On a slow kernel a round of events takes half a minute.
                    if self.orders.poll():
                        self.obey()
                    if key.fileobj is self.orders:
                        pass
                    elif key.fileobj.fileno() < 0:
                        pass            # closed by the event before
                    elif isinstance(key.data, End):
                        self.serve(key.data, events)
                    else:
                        self.accept(key.fileobj)
                if time.monotonic() - looked > 5:
                    looked = time.monotonic()
                    self.look_for_stuck()
                self.every_turn()
            self.orders.send(self.count)
        except Exception as why:        # the parent makes a failure of it
            self.orders.send({"error": f"{type(why).__name__}: {why}", **self.count})
            raise

    def serve(self, end, events):
        """Something to read, or room to write."""
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
        """After each round of events."""

    def accept(self, sock):
        """A connection has come."""


class Server(Peer):
    """Answers."""

    def __init__(self, orders, addresses):
        super().__init__(orders)
        self.addresses = addresses
        self.listeners = []
        self.listen()

    def listen(self):
        """Open the listeners; a closed one leaves half-open children to TCP."""
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
        """Listeners go, with their half-open children, and new ones come."""
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
            # A reset that gets lost is not sent again: find out.
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
        """The client knows."""

    def done(self):
        return self.ending and not self.ends()


class Client(Peer):
    """Asks: over connections that last, and over ones that end in each way."""

    FATES = ("fin", "reset", "leave", "nothing")
    SHORT = 8               # short connections at a time
    THINK = 10.0            # seconds, at most, from an answer to the next request

    def __init__(self, orders, addresses, persistent):
        super().__init__(orders)
        self.addresses = addresses
        self.rng = random.Random(1)
        self.count.update(lost=0, short=0)
        self.thinking = []      # (when, number, connection)
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
        """One request."""
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
        """Give an order; each one's counters (server, client) once obeyed."""
        for _, pipe in self._peers:
            pipe.send(order)
        return [pipe.recv() for _, pipe in self._peers]

    def end(self, patience):
        """Let all requests be answered; the last counters."""
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
