# SPDX-License-Identifier: GPL-2.0
"""Network namespaces: find, name and enter them."""
import collections
import contextlib
import os
import socket

from . import uapi
from .units import visible

OWN = "/proc/thread-self/ns/net"
# iproute2's and Docker's; the first process may have another mount namespace, in which there are more.
NAMED = [root + directory for root in ("", "/proc/1/root")
         for directory in ("/run/netns", "/run/docker/netns")]


class Namespace(collections.namedtuple("Namespace", "inode name path")):
    """A network namespace: its name in visible form, and a path to it."""

    @contextlib.contextmanager
    def entered(self):
        """Enter it; OSError if it was removed or may not be entered."""
        own = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(own).st_ino == self.inode:
                yield
                return
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # The process may have ended, and another have its number.
                if os.fstat(fd).st_ino != self.inode:
                    raise FileNotFoundError(self.path)
                uapi.setns_net(fd)
            finally:
                os.close(fd)
            try:
                yield
            finally:
                uapi.setns_net(own)
        finally:
            os.close(own)


def cookie():
    """The cookie of the current namespace."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        return uapi.netns_cookie(sock)


def pids():
    """All processes, the oldest numbers first."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def comm(pid):
    """The name of a process, visible."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="surrogateescape") as f:
            return visible(f.read().removesuffix("\n"))
    except OSError:
        return "?"


def find():
    """{inode: Namespace} of all namespaces that have a process or a name."""
    found = {}
    own, nsfs = os.stat(OWN).st_ino, os.stat(OWN).st_dev
    try:
        first = os.stat("/proc/1/ns/net").st_ino
    except OSError:
        first = own
    found[own] = Namespace(own, "host" if own == first else "here", OWN)
    for directory in NAMED:
        with contextlib.suppress(OSError):
            for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
                try:
                    stat = entry.stat()
                except OSError:         # it was removed just now
                    continue
                # An ordinary file: its namespace was unmounted.
                if stat.st_dev == nsfs:
                    found.setdefault(stat.st_ino,
                                     Namespace(stat.st_ino, visible(entry.name), entry.path))
    for pid in pids():
        path = f"/proc/{pid}/ns/net"
        with contextlib.suppress(OSError):
            inode = os.stat(path).st_ino
            if inode not in found:
                name = "host" if inode == first else f"{comm(pid)}[{pid}]"
                found[inode] = Namespace(inode, name, path)
    return found


def sysctl(name):
    """The value of a sysctl of the current namespace; None if it does not exist."""
    try:
        with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None
