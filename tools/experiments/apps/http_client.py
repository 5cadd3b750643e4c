# SPDX-License-Identifier: GPL-2.0
"""An HTTP client that sends many requests at one time, on persistent connections.

It reads the clock once for all requests, and once for all connections that one poll() finds
readable: a reading takes 0.256 us of virtual time, everything else takes none.
"""

import contextlib
import re
import select
import signal
import socket
import time

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class _Late(Exception):
    pass


@contextlib.contextmanager
def _at_most(seconds):
    # Not a timeout of poll(), which reads the clock at each call.
    def late(*_):
        raise _Late
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.suppress(_Late):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _complete(seen):
    """The body of a complete answer, empty if its status is not 200; None if it is incomplete."""
    head, end, body = seen.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if not end or length and len(body) < int(length[1]):
        return None
    return body if head.startswith(b"HTTP/1.1 200 ") else b""


class Client:
    """Connections to the servers: connection i to server i modulo the number of servers."""

    def __init__(self, ns, servers, port, connections):
        with ns:
            self.sockets = [socket.create_connection((servers[i % len(servers)], port))
                            for i in range(connections)]
        self.epoll = select.epoll()
        for i, one in enumerate(self.sockets):
            self.epoll.register(one, select.EPOLLIN)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = {one.fileno(): i for i, one in enumerate(self.sockets)}
        self.started, self.seen = {}, {}

    def ask(self, first, paths):
        """Send a request for each path at once, on consecutive connections from `first` on."""
        now = time.monotonic_ns()
        for i, path in enumerate(paths, first):
            self.started[i], self.seen[i] = now, b""
            self.sockets[i].sendall(f"GET {path} HTTP/1.1\r\nHost: server\r\n\r\n".encode())

    def answers(self, seconds):
        """Wait for the answers to all requests, for up to `seconds`.  Returns {connection:
        (duration in ns, body)}, without connections that have not answered; a closed connection
        has (0, b"")."""
        found = {}
        with _at_most(seconds):
            while len(found) < len(self.started):
                ready = self.epoll.poll()
                now = time.monotonic_ns()
                for fd, _ in ready:
                    i = self.number[fd]
                    got = self.sockets[i].recv(1 << 16)
                    if not got:
                        self.epoll.unregister(fd)       # it would stay readable
                        found[i] = 0, b""
                        continue
                    self.seen[i] += got
                    body = _complete(self.seen[i])
                    if body is not None:
                        found[i] = now - self.started[i], body
        self.started, self.seen = {}, {}
        return found

    def close(self):
        """Close all connections."""
        for one in self.sockets:
            one.close()
        self.epoll.close()
