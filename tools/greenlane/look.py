# SPDX-License-Identifier: GPL-2.0
"""One look: a dict, also as JSON, and the change since another look.

Each object with counters has "counters", and compare() adds "change".
"""
import contextlib
import itertools
import json
import os
import platform
import stat
import sys
import tempfile
import time

from . import Refused, host, netns, ports, rtnl, sockets
from .transports import FALLEN, MBIT, selected
from .units import visible

STATE = "/run/greenlane/status.json"
PROGRAM = "greenlane status"
VERSION = 4     # of the state file's layout
# The codepoints that TLT's data has, by the names of their sysctls.
_COLOURED = ("droppable", "protected")
_CHANGING = ("namespaces", "connections", "ports", "queues", "devices", "links")


def _greenlane_counters():
    """/proc/net/greenlane of the current namespace; None without the module."""
    try:
        with open("/proc/thread-self/net/greenlane", encoding="ascii") as f:
            return {name: int(count) for name, count in map(str.split, f)}
    except OSError:
        return None


def _timeouts():
    """TCP's retransmission timeouts in the current namespace; None if they cannot be read."""
    with contextlib.suppress(OSError, ValueError), open("/proc/thread-self/net/netstat",
                                                        encoding="ascii") as f:
        names, values = f.readline().split(), f.readline().split()      # of TcpExt
        return int(values[names.index("TCPTimeouts")])
    return None


def _links():
    """{dev: its speed, from /proc/net/link_speed of the current namespace}."""
    found = {}
    with contextlib.suppress(OSError), open("/proc/thread-self/net/link_speed", encoding="utf-8",
                                            errors="surrogateescape") as f:
        for line in f:
            _, mbit, source, extra, _, guesses, dev = line.rstrip("\n").split(" ", 6)
            found[visible(dev)] = {"mbit": int(mbit), "source": source, "extra": int(extra),
                                   "counters": {"guesses": int(guesses)}}
    return found


def _route_selects():
    """Does a route of the current namespace select a transport of greenlane's?"""
    with contextlib.suppress(OSError):
        return any(map(host.module_of, rtnl.congctls()))
    return False


class Looker:
    """Collects one look."""

    def __init__(self):
        self.plugin = ports.plugin()
        available = netns.sysctl("net.ipv4.tcp_available_congestion_control") or ""
        self.seen = {"version": VERSION, "time": time.time(), "boot": host.boot_id(),
                     "kernel": platform.release(), "modules": host.modules(),
                     "installed": host.installed(host.modules()),
                     "misspelt": host.misspelt(available),
                     "plugin": self.plugin, "pinned": host.pinned(),
                     "configured": [[visible(word) for word in found]
                                    for found in host.configured_ccs()],
                     "available": available.split(),
                     "default_cc": netns.sysctl("net.ipv4.tcp_congestion_control"),
                     "unseen": 0,
                     "container": host.namespaces_not_first(),
                     "incapable": host.capabilities_missing(),
                     "tc_failed": False, "plain": {}, "fallen": {}, "listeners": {},
                     "listening": [], "iofd": {}, "routes": [], "used": False,
                     **{kind: {} for kind in _CHANGING}}

    def look(self):
        """Take the look."""
        spaces = netns.find()
        inodes = {}         # by the namespace's cookie, which its sockets have
        for ns in spaces.values():
            with contextlib.suppress(OSError), ns.entered():
                self._namespace(ns)
                inodes[netns.cookie()] = ns.inode
        self._sockets(inodes)
        busy = {c["ns"] for c in self.seen["connections"].values()}
        for ns in spaces.values():
            if {"sch_color", "sch_iofd"} & set(self.seen["modules"]) or str(ns.inode) in busy:
                with contextlib.suppress(OSError), ns.entered():
                    self._queues(str(ns.inode), str(ns.inode) in busy)
        if host.transports(self.seen["modules"]):
            for ns in spaces.values():
                with contextlib.suppress(OSError), ns.entered():
                    if _route_selects():
                        self.seen["routes"].append(ns.name)
        self.seen["used"] = self._used()
        return self.seen

    def _used(self):
        return bool(
            self.seen["connections"] or self.seen["fallen"] or self.seen["pinned"]
            or self.seen["routes"]
            or any(map(host.module_of, self.seen["listeners"]))
            or any(host.module_of(ns["cc"]) for ns in self.seen["namespaces"].values()))

    def _namespace(self, ns):
        rates = {name: netns.sysctl(f"net.ipv4.{name}") for name in MBIT}
        self.seen["namespaces"][str(ns.inode)] = {
            "name": ns.name, "cc": netns.sysctl("net.ipv4.tcp_congestion_control"),
            **{name: int(mbit) if mbit else None for name, mbit in rates.items()},
            "dscp": {name: netns.sysctl(f"net.ipv4.greenlane_dscp_{name}") for name in _COLOURED},
            "timeouts": _timeouts(), "counters": _greenlane_counters() or {}}
        for dev, link in _links().items():
            self.seen["links"][f"{ns.inode} {dev}"] = {"ns": str(ns.inode), "dev": dev, **link}

    def _sockets(self, inodes):
        """greenlane's connections, and the number of the others, by "NS CC"."""
        walk = sockets.Walk()
        served = set()      # (namespace, port) of listeners
        for netns_cookie, pid, sock in walk:
            if netns_cookie not in inodes:
                continue        # a new namespace, or one that cannot be entered
            ns = str(inodes[netns_cookie])
            try:
                cookie, said = sockets.describe(sock)
            except OSError:
                continue
            if said.pop("listens", False):
                cc = said["cc"]
                served.add((ns, said["port"]))
                self.seen["listeners"][cc] = self.seen["listeners"].get(cc, 0) + 1
                if host.module_of(cc):
                    self.seen["listening"].append({"ns": ns, "pid": pid, "cc": cc})
            elif "counters" in said:
                self.seen["connections"][cookie] = {"ns": ns, "pid": pid, **said}
            elif said["cc"] in FALLEN:
                default = self.seen["namespaces"].get(ns, {}).get("cc")
                self.seen["fallen"][cookie] = {"ns": ns, "pid": pid, **said,
                                               "selected": selected(said["cc"], default)}
            else:
                key = f"{ns} {said['cc']}"
                self.seen["plain"][key] = self.seen["plain"].get(key, 0) + 1
        for one in (*self.seen["connections"].values(), *self.seen["fallen"].values()):
            one["role"] = "server" if (one["ns"], one["port"]) in served else "client"
        self.seen["unseen"] = walk.unseen

    def _queues(self, ns, busy):
        kinds = rtnl.qdiscs()
        # Without a port or a queue that drops there is no need for tc, as in most containers.
        if not {"color", "iofd"} & kinds and not (busy and kinds - set(ports.NOT_QUEUES)):
            return
        queues = ports.queues_here(self.plugin)
        if queues is None:
            self.seen["tc_failed"] = True
            return
        here, others, iofd = queues
        for (dev, handle), queue in iofd.items():
            self.seen["iofd"][f"{ns} {dev} {handle}"] = {"ns": ns, "dev": dev, "handle": handle,
                                                           **queue}
        for kind, found in (("ports", here), ("queues", others)):
            for (dev, handle), queue in found.items():
                self.seen[kind][f"{ns} {dev} {handle}"] = {
                    "ns": ns, "dev": dev, "handle": handle, **queue}
        if here or busy:
            for dev, device in ports.devices_here().items():
                self.seen["devices"][f"{ns} {dev}"] = {"ns": ns, "dev": dev, **device}


def compare(now, before):
    """Add "change" to each object with counters; before may be None.

    A new object counts from its beginning.  So does one whose counter is lower than before: it is
    another object of the same name (a module was loaded again, a namespace or a qdisc was made
    again).
    """
    now["since"] = before["time"] if before else None
    for kind in _CHANGING:
        old_ones = before[kind] if before else {}
        for key, thing in now[kind].items():
            old, counters = old_ones.get(key), thing["counters"]
            thing["known"] = old is not None and all(
                counters.get(k, 0) >= v for k, v in old["counters"].items())
            old = old["counters"] if thing["known"] else {}
            thing["change"] = {k: v - old.get(k, 0) for k, v in counters.items()}
    return now


# --- the state file --------------------------------------------------------------------


def _is_counted(things):
    """Does this have the form of one of _CHANGING, as compare() reads it?"""
    return isinstance(things, dict) and all(
        isinstance(thing, dict) and isinstance(thing["counters"], dict)
        and all(isinstance(count, int) for count in thing["counters"].values())
        for thing in things.values())


def _checked(text):
    """The look in a state file's text, None if it is of another boot or version; ValueError if the
    text is not a look."""
    try:
        before = json.loads(text)
        if before["program"] != PROGRAM:
            raise ValueError
        if (before["version"], before["boot"]) != (VERSION, host.boot_id()):
            return None
        if not isinstance(before["time"], (int, float)) or not all(
                _is_counted(before[kind]) for kind in _CHANGING):
            raise ValueError
    except (KeyError, TypeError, RecursionError):
        raise ValueError from None
    return before


def _read_own(path):
    """A file's text; Refused if it is not an ordinary file of this user."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, encoding="utf-8") as f:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise Refused(f"{path} is not a file of this user")
        return f.read()


def directory_is_ours(path):
    """Is the directory this user's, and not writable by others?  Make it if it is missing."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    return (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            and not status.st_mode & 0o022)


def _warn(text):
    print(f"greenlane: {text}", file=sys.stderr)


# Maximum of remembered objects of a kind; further ones count from their beginning at each look.  It
# bounds the file to some megabytes, a hundred bytes or so an object.
_MOST = 20_000


def _kept(things):
    """The part that the next look needs: counters other than 0."""
    return {key: {"counters": {name: count for name, count in thing["counters"].items() if count}}
            for key, thing in itertools.islice(things.items(), _MOST)}


class State:
    """The file that keeps a look for the next one.

    path: a reader's own file, or None for the common one.  The common file is a convenience: a look
    ignores it if it cannot be trusted.  A reader's own file must be as the last look left it, so a
    look refuses any other file at its path, and leaves it unchanged.
    """

    def __init__(self, path=None):
        self.own = path is not None
        self.path = path or STATE
        # /run is root's: others have no common file.
        self.usable = self.own or not os.geteuid()

    def load(self):
        """The look before, or None."""
        if not self.usable:
            return None
        try:
            if not self.own and not directory_is_ours(os.path.dirname(self.path)):
                raise Refused(f"{os.path.dirname(self.path)} is not this user's alone")
            text = _read_own(self.path)
            return _checked(text) if text else None
        except FileNotFoundError:
            return None
        except (OSError, Refused) as why:
            self.usable = False
            why = why if isinstance(why, Refused) else f"{self.path}: {why.strerror}"
            if self.own:
                raise Refused(str(why)) from None
            _warn(f"{why}, so the look is not remembered")
        except ValueError:
            if self.own:
                raise Refused(f"{self.path} is not a state file of greenlane status") from None
            _warn(f"{self.path} was damaged, and is discarded")
        return None

    def save(self, now):
        """Keep the part of this look that the next one needs."""
        if not self.usable:
            return
        kept = {"program": PROGRAM, **{key: now[key] for key in ("version", "boot", "time")},
                **{kind: _kept(now[kind]) for kind in _CHANGING}}
        directory = os.path.dirname(os.path.abspath(self.path))
        try:
            # O_EXCL, an unpredictable name, mode 0600
            fd, fresh = tempfile.mkstemp(prefix=".status.", dir=directory)
        except OSError as why:
            if self.own:
                raise Refused(f"{self.path}: {why.strerror}") from None
            return
        try:
            with open(fd, "w", encoding="utf-8") as f:
                # json.dump() would use the encoder that is written in Python.
                f.write(json.dumps(kept, separators=(",", ":")))
            os.replace(fresh, self.path)
        except OSError as why:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            if self.own:
                raise Refused(f"{self.path}: {why.strerror}") from None
            _warn(f"{self.path}: {why.strerror}")


def take():
    """A look; Refused if it cannot be taken at all."""
    if platform.system() != "Linux":
        raise Refused("this is not Linux")
    return Looker().look()
