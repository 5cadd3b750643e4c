# SPDX-License-Identifier: GPL-2.0
"""TCP sockets of all processes, asked directly.

What a connection counts is told to whoever has its socket.  So each is
duplicated out of its process (pidfd_getfd), asked, and closed again: that works
in every namespace and container, and changes nothing.
"""
import contextlib
import os
import socket
import struct

from . import host, netns, uapi

TABLES = ("tcp", "tcp6")
_INODE = 9      # the column in /proc/net/tcp


def inodes_here():
    """The inodes of the TCP sockets of the namespace that we are in."""
    found = []
    for table in TABLES:
        with contextlib.suppress(OSError):
            with open(f"/proc/thread-self/net/{table}", encoding="ascii") as f:
                next(f, None)
                found += [int(line.split()[_INODE]) for line in f]
    return [inode for inode in found if inode]


def _socket_inode(path):
    """The inode of the socket that /proc/PID/fd/N is, or None."""
    try:
        link = os.readlink(path)
    except OSError:
        return None
    return int(link[8:-1]) if link.startswith("socket:[") else None


class Walk:
    """Iterate over (inode, pid, socket) of the sockets wanted; each once.

    The socket is closed as the next one is asked for.  Processes and sockets
    that vanish meanwhile are passed over; `unseen` counts processes that may
    not be looked into.
    """

    def __init__(self, wanted, pids=None):
        self.left = set(wanted)
        self.pids = pids
        self.unseen = 0

    def __iter__(self):
        for pid in netns.pids() if self.pids is None else self.pids:
            if not self.left:
                return
            try:
                fds = os.listdir(f"/proc/{pid}/fd")
            except PermissionError:
                self.unseen += 1
                continue
            except OSError:
                continue
            yield from self._of_process(pid, fds)

    def _of_process(self, pid, fds):
        pidfd = -1
        try:
            for fd in fds:
                inode = _socket_inode(f"/proc/{pid}/fd/{fd}")
                if inode not in self.left:
                    continue
                if pidfd < 0:
                    pidfd = os.pidfd_open(pid)
                try:
                    copy = uapi.pidfd_getfd(pidfd, int(fd))
                except PermissionError:
                    self.unseen += 1
                    return
                except OSError:
                    continue
                with socket.socket(fileno=copy) as sock:
                    # The number may be another file's by now.
                    if os.fstat(copy).st_ino == inode:
                        self.left.discard(inode)
                        yield inode, pid, sock
        except ProcessLookupError:
            return
        finally:
            if pidfd >= 0:
                os.close(pidfd)


def _address(name):
    """An address as it is written; IPv4 in IPv6 as IPv4."""
    return name[0][7:] if name[0].startswith("::ffff:") else name[0]


def describe(sock):
    """(cookie, what a connection or a listener says of itself); OSError if it is gone."""
    # Not a signed number: a key.
    cookie = str(struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, uapi.SO_COOKIE, 8))[0])
    said = {"cc": uapi.congestion_control(sock)}
    if uapi.tcp_state(sock) == uapi.TCP_LISTEN:
        said["listens"] = True
        return cookie, said
    info = uapi.greenlane_info(sock)
    if info or said["cc"] in host.FALLEN:
        said.update(info or {}, local=_address(sock.getsockname()),
                    remote=_address(sock.getpeername()), **uapi.tcp_info(sock))
    return cookie, said
