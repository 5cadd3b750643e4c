# SPDX-License-Identifier: GPL-2.0
"""TCP sockets of all processes, asked directly.

What a connection counts is told to whoever has its socket.  So each socket of a
process is duplicated (pidfd_getfd), asked, and closed again: that works in every
namespace and container, and changes nothing.  /proc/net/tcp is not read: for each
namespace the kernel goes through the connections of all of them.
"""
import os
import socket
import struct
import threading

from . import host, netns, uapi


def _socket_inode(path):
    """The inode of the socket that /proc/PID/fd/N is, or None."""
    try:
        link = os.readlink(path)
    except OSError:
        return None
    return int(link[8:-1]) if link.startswith("socket:[") else None


def _is_tcp(sock):
    return sock.family in (socket.AF_INET, socket.AF_INET6) and sock.proto == socket.IPPROTO_TCP


def _close(sock):
    """Close our duplicate.  If its owner has closed his meanwhile, ours is the last one, and with
    SO_LINGER the call may take as long as the owner likes: let a thread wait, which ends with us.
    """
    lingers, _ = struct.unpack("ii", sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
    if lingers:
        threading.Thread(target=sock.close, daemon=True).start()
    else:
        sock.close()


class Walk:
    """Iterate over (the cookie of the network namespace, pid, socket) of TCP sockets; each once.

    The socket is closed as the next one is asked for.  Processes and sockets
    that vanish meanwhile are passed over; `unseen` counts processes that may
    not be looked into.
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
                inode = _socket_inode(f"/proc/{pid}/fd/{fd}")
                if inode is None or inode in self._seen:
                    continue
                try:
                    pidfd = os.pidfd_open(pid) if pidfd < 0 else pidfd
                except ProcessLookupError:
                    return
                except OSError:         # forbidden, or no more of them
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
                    # Without the wrapper in Python, which makes enums of the numbers: there may be
                    # thousands of sockets.
                    sock = socket.SocketType(fileno=copy)
                except OSError:         # the number is another file's by now
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
    """An address as it is written; IPv4 in IPv6 as IPv4."""
    return name[0][7:] if name[0].startswith("::ffff:") else name[0]


def describe(sock):
    """(cookie, state of a connection or a listener); OSError if it is closed."""
    # Not a signed number: a key.
    cookie = str(struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, uapi.SO_COOKIE, 8))[0])
    said = {"cc": uapi.congestion_control(sock)}
    tcp = uapi.tcp_info(sock)
    if tcp.pop("state") == uapi.TCP_LISTEN:
        said["listens"] = True
        return cookie, said
    info = uapi.greenlane_info(sock)
    if info or said["cc"] in host.FALLEN:
        said.update(info or {}, local=_address(sock.getsockname()),
                    remote=_address(sock.getpeername()), **tcp)
    return cookie, said
