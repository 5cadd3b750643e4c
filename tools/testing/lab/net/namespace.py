# SPDX-License-Identifier: GPL-2.0
"""Network namespaces with names, as of ip-netns(8): commands, sysctls and counters in them."""

import atexit
import contextlib
import os
import socket
import subprocess

from lab import transports
from lab.net import libc

FAMILY = {4: socket.AF_INET, 6: socket.AF_INET6}        # by IP version
_DIRECTORY = "/run/netns"


def batch(tool, lines, *options):
    """Run commands of ip or tc, all in one process."""
    subprocess.run([tool, *options, "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                   check=True)


def sysctl_path(name):
    """The file of a sysctl, by its name with dots."""
    return "/proc/sys/" + name.replace(".", "/")


def read_sysctl(name):
    """Read a sysctl of the current namespace, by its name with dots."""
    with open(sysctl_path(name), encoding="ascii") as file:
        return file.read().strip()


def write_sysctl(name, value):
    """Set a sysctl of the current namespace."""
    with open(sysctl_path(name), "wb", buffering=0) as file:
        file.write(str(value).encode())


CC = "net.ipv4.tcp_congestion_control"
ACTIVE = "net.ipv4.greenlane_active"


def is_transport(cc):
    """Does this congestion control mark packets?"""
    row = transports.of(cc)
    return bool(row and row.tagged)


def set_cc(cc):
    """Set the default congestion control of the current namespace; marks begin with its first
    connection."""
    write_sysctl(CC, cc)
    if is_transport(cc):
        write_sysctl(ACTIVE, 1)


# {name of an existing namespace: pid of the process that made it}
_made = {}


@atexit.register
def _leave_nothing():
    """Delete this process's namespaces: another program may run on the same machine."""
    for name in [name for name, pid in _made.items() if pid == os.getpid()]:
        with contextlib.suppress(OSError):
            _delete(name)


def _delete(name):
    """Delete a name, as ip-netns(8) does."""
    path = f"{_DIRECTORY}/{name}"
    libc.detach_mount(path)
    os.unlink(path)


class Counting:
    """The kernel's counters, for a class that has read(path)."""

    def greenlane(self):
        """/proc/net/greenlane as a dict."""
        lines = self.read("/proc/thread-self/net/greenlane").splitlines()
        return {line.split()[0]: int(line.split()[1]) for line in lines}

    def tcp(self):
        """The counters of TCP and MPTCP, of /proc/net/netstat and /proc/net/snmp, as a dict."""
        seen = {}
        for file in ("netstat", "snmp"):
            lines = self.read(f"/proc/thread-self/net/{file}").splitlines()
            for names, values in zip(lines[::2], lines[1::2]):
                if names.startswith(("TcpExt:", "MPTcpExt:", "Tcp:")):
                    seen.update(zip(names.split()[1:], map(int, values.split()[1:])))
        return seen

    def netstat(self, name):
        """One of TCP's counters."""
        return self.tcp()[name]


class Namespace(Counting):
    """A network namespace that `ip -n NAME` knows; `with` enters it."""

    def __init__(self, name):
        self.name = name
        path = f"{_DIRECTORY}/{name}"
        os.makedirs(_DIRECTORY, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY))
        outer = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        # In this process: `ip netns add` would start a process for each of a thousand hosts.
        try:
            libc.unshare_network()
            libc.bind_mount("/proc/thread-self/ns/net", path)
        finally:
            libc.enter_network(outer)
            os.close(outer)
        self._fd = os.open(path, os.O_RDONLY)
        self._outer = []
        _made[name] = os.getpid()

    def __enter__(self):
        self._outer.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
        libc.enter_network(self._fd)
        return self

    def __exit__(self, *exc):
        outer = self._outer.pop()
        libc.enter_network(outer)
        os.close(outer)

    def ip(self, *lines, options=()):
        """Run commands by ip -batch."""
        batch("ip", lines, "-n", self.name, *options)

    def tc(self, *lines):
        """Run commands by tc -batch."""
        batch("tc", lines, "-n", self.name)

    def read(self, path):
        """The text of a file, read in this namespace."""
        with self, open(path, encoding="ascii") as file:
            return file.read()

    def sysctl(self, name, value=None):
        """Read or write a sysctl, by its name with dots."""
        with self:
            if value is None:
                return read_sysctl(name)
            return set_cc(value) if name == CC else write_sysctl(name, value)

    def remove(self):
        """Delete the name: the namespace and its devices exist until its last process and socket
        end."""
        del _made[self.name]
        os.close(self._fd)
        _delete(self.name)
