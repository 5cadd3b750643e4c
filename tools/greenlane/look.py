# SPDX-License-Identifier: GPL-2.0
"""One look at everything: a dict that is also JSON, and what changed since another.

Whatever counts has "counters" here, and gets "change" when it is compared.
"""
import contextlib
import json
import os
import platform
import re
import subprocess
import time

from . import Refused, host, netns, ports, sockets

STATE = "/run/greenlane/status.json"
VERSION = 2     # of the state file's layout
_CONGCTL = re.compile(r"\bcongctl (?:lock )?(\S+)")
_CHANGING = ("namespaces", "connections", "ports", "queues", "devices")


def _greenlane_counters():
    """/proc/net/greenlane of the namespace that we are in; None without the module."""
    try:
        with open("/proc/thread-self/net/greenlane", encoding="ascii") as f:
            return {name: int(count) for name, count in map(str.split, f)}
    except OSError:
        return None


def _routes_ask():
    """Does a route of the namespace that we are in name a transport of ours?"""
    for family in ("-4", "-6"):
        with contextlib.suppress(OSError):
            done = subprocess.run(["ip", family, "route", "show", "table", "all"],
                                  capture_output=True, text=True, check=False)
            if any(map(host.module_of, _CONGCTL.findall(done.stdout))):
                return True
    return False


class Looker:
    """Collects one look."""

    def __init__(self):
        self.plugin = ports.plugin()
        self.seen = {"version": VERSION, "time": time.time(), "boot": host.boot_id(),
                     "kernel": platform.release(), "modules": host.modules(),
                     "plugin": self.plugin, "pinned": host.pinned(),
                     "root": os.geteuid() == 0, "unseen": 0,
                     "tc_failed": False, "plain": {}, "fallen": {}, "listeners": {},
                     "used": False,
                     **{kind: {} for kind in _CHANGING}}

    def look(self):
        """Everything."""
        spaces = netns.find()
        inodes = {}
        for ns in spaces.values():
            with contextlib.suppress(OSError), ns.entered():
                self._namespace(ns)
                inodes.update(dict.fromkeys(sockets.inodes_here(), ns.inode))
        self._sockets(inodes)
        busy = {c["ns"] for c in self.seen["connections"].values()}
        for ns in spaces.values():
            if "sch_color" in self.seen["modules"] or str(ns.inode) in busy:
                with contextlib.suppress(OSError), ns.entered():
                    self._queues(str(ns.inode), str(ns.inode) in busy)
        self.seen["used"] = self._used()
        if host.transports(self.seen["modules"]):
            for ns in spaces.values():
                with contextlib.suppress(OSError), ns.entered():
                    self.seen["used"] = self.seen["used"] or _routes_ask()
        return self.seen

    def _used(self):
        return bool(
            self.seen["connections"] or self.seen["fallen"] or self.seen["pinned"]
            or any(map(host.module_of, self.seen["listeners"]))
            or any(host.module_of(ns["cc"]) for ns in self.seen["namespaces"].values()))

    def _namespace(self, ns):
        rates = {name: netns.sysctl(f"net.ipv4.{name}") for name in ("xpass_rate", "dcqcn_rate")}
        self.seen["namespaces"][str(ns.inode)] = {
            "name": ns.name, "cc": netns.sysctl("net.ipv4.tcp_congestion_control"),
            **{name: int(mbit) if mbit else None for name, mbit in rates.items()},
            "counters": _greenlane_counters() or {}}

    def _sockets(self, inodes):
        """Of connections that are not ours only the number, by "NS CC"."""
        walk = sockets.Walk(inodes)
        for inode, pid, sock in walk:
            try:
                cookie, said = sockets.describe(sock)
            except OSError:
                continue
            if said.pop("listens", False):
                cc = said["cc"]
                self.seen["listeners"][cc] = self.seen["listeners"].get(cc, 0) + 1
            elif "counters" in said:
                self.seen["connections"][cookie] = {"ns": str(inodes[inode]), "pid": pid, **said}
            elif said["cc"] in host.FALLEN:
                self.seen["fallen"][cookie] = {"ns": str(inodes[inode]), "pid": pid, **said}
            else:
                key = f"{inodes[inode]} {said['cc']}"
                self.seen["plain"][key] = self.seen["plain"].get(key, 0) + 1
        self.seen["unseen"] = walk.unseen

    def _queues(self, ns, busy):
        queues = ports.queues_here(self.plugin)
        if queues is None:
            self.seen["tc_failed"] = True
            return
        here, others = queues
        for kind, found in (("ports", here), ("queues", others)):
            for (dev, handle), queue in found.items():
                self.seen[kind][f"{ns} {dev} {handle}"] = {
                    "ns": ns, "dev": dev, "handle": handle, **queue}
        if here or busy:
            for dev, device in ports.devices_here().items():
                self.seen["devices"][f"{ns} {dev}"] = {"ns": ns, "dev": dev, **device}


def compare(now, before):
    """Give everything that counts its "change"; before may be None.

    What was not there before counts from its beginning.  So does what went
    backwards: it is another one of the same name (a module that was loaded
    anew, a namespace or a qdisc that was made anew).
    """
    now["since"] = before["time"] if before else None
    for kind in _CHANGING:
        old_ones = before[kind] if before else {}
        for key, thing in now[kind].items():
            old = old_ones.get(key, {}).get("counters", {})
            counters = thing["counters"]
            thing["known"] = bool(old) and all(counters.get(k, 0) >= v for k, v in old.items())
            thing["change"] = {k: v - old.get(k, 0) if thing["known"] else v
                               for k, v in counters.items()}
    return now


def load(path=STATE):
    """The look before, or None: none, of another boot, or not ours to read."""
    try:
        with open(path, encoding="utf-8") as f:
            before = json.load(f)
        if before["version"] == VERSION and before["boot"] == host.boot_id():
            return before
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def save(now, path=STATE):
    """Remember this look; whoever may not write there always has a first one."""
    fresh = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w",
                  encoding="utf-8") as f:
            json.dump(now, f)
        os.replace(fresh, path)


def take():
    """A look; Refused if it cannot be taken at all."""
    if platform.system() != "Linux":
        raise Refused("this is not Linux")
    return Looker().look()
