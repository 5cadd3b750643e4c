# SPDX-License-Identifier: GPL-2.0
"""TCP sockets of all processes.

The counters of a connection are readable through its socket only (getsockopt).  So this module
duplicates each socket of a process (pidfd_getfd), reads it, and closes the duplicate: that works in
every namespace and container, and changes nothing.  It does not read /proc/net/tcp: for each
namespace the kernel would walk the connections of all namespaces.
"""
import errno
import os
import socket
import struct
import threading

from . import netns, uapi
from .transports import FALLEN


def _socket_inode(path):
    """The inode of the socket that /proc/PID/fd/N is, or None; raises PermissionError."""
    try:
        link = os.readlink(path)
    except PermissionError:
        raise
    except OSError:
        return None
    return int(link[8:-1]) if link.startswith("socket:[") else None


def _is_tcp(sock):
    return sock.family in (socket.AF_INET, socket.AF_INET6) and sock.proto == socket.IPPROTO_TCP


def _close(sock):
    """Close the duplicate.  If the owner has closed the socket meanwhile, the duplicate is the last
    reference, and with SO_LINGER the call may block for as long as the owner has set: a thread
    waits, which ends with this process.
    """
    lingers, _ = struct.unpack("ii", sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    if lingers:
        threading.Thread(target=sock.close, daemon=True).start()
    else:
        sock.close()


class Walk:
    """Iterate over (cookie of the network namespace, pid, socket) of TCP sockets, each once.

    The next step closes the socket.  The walk skips processes and sockets that end meanwhile;
    `unseen` counts processes without permission to read them.
    """

    def __init__(self, pids=None):
        self.pids = pids
        self.unseen = 0
        self._seen = set()

    def __iter__(self):
        for pid in netns.pids() if self.pids is None else self.pids:
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
                try:
                    inode = _socket_inode(f"/proc/{pid}/fd/{fd}")
                except PermissionError:
                    self.unseen += 1
                    return
                if inode is None or inode in self._seen:
                    continue
                try:
                    pidfd = os.pidfd_open(pid) if pidfd < 0 else pidfd
                except ProcessLookupError:
                    return
                except OSError:         # forbidden, or the limit of descriptors
                    self.unseen += 1
                    return
                try:
                    copy = uapi.pidfd_getfd(pidfd, int(fd))
                except PermissionError:
                    self.unseen += 1
                    return
                except OSError:
                    continue
                try:
                    # Without Python's wrapper, which makes enums of the numbers, for thousands of
                    # sockets.
                    sock = socket.SocketType(fileno=copy)
                except OSError:         # the number is another file's now
                    os.close(copy)
                    continue
                try:
                    self._seen.add(inode)
                    if _is_tcp(sock):
                        yield uapi.netns_cookie(sock), pid, sock
                finally:
                    _close(sock)
        finally:
            if pidfd >= 0:
                os.close(pidfd)


def _address(name):
    """An address as text; an IPv4-mapped one as IPv4."""
    return name[0][7:] if name[0].startswith("::ffff:") else name[0]


def describe(sock):
    """(cookie, state of a connection or a listener); OSError if it is closed, or not connected."""
    # Not a signed number: a key.
    cookie = str(struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, uapi.SO_COOKIE, 8))[0])
    found = {"cc": uapi.congestion_control(sock)}
    tcp = uapi.tcp_info(sock)
    state = tcp.pop("state")
    if state in (uapi.TCP_CLOSE, uapi.TCP_SYN_SENT):
        raise OSError(errno.ENOTCONN, "not connected")
    if state == uapi.TCP_LISTEN:
        found.update(listens=True, port=sock.getsockname()[1])
        return cookie, found
    info = uapi.greenlane_info(sock)
    if info or found["cc"] in FALLEN:
        name = sock.getsockname()
        found.update(info or {}, local=_address(name), port=name[1],
                    remote=_address(sock.getpeername()), **tcp)
    return cookie, found
