# SPDX-License-Identifier: GPL-2.0
"""Loading the kernel modules that are tested: those of $GL_MODDIR, or the installed ones."""

import contextlib
import os
import pathlib
import subprocess
import time

from lab.net import libc
from lab.tap import Failed, Skip, is_time_virtual

_SYSCTL = "/proc/sys/net/ipv4/tcp"

_HOOKS = "table inet stay {{ {} }}".format(" ".join(
    f"chain {hook} {{ type filter hook {hook} priority 0; }};" for hook in ("input", "output")))

# Each after those that it needs.
_SCHED = ("rd_link", "sch_color", "sch_iofd")
_IPV4 = ("greenlane", "rd_link", "rd_core", "tcp_dcqcn", "tcp_dart", "tcp_tlt", "tcp_xpass",
         "tcp_aeolus")
# What else a transport's module needs.
_NEEDS = {"tcp_dart": ("greenlane", "tcp_dcqcn"), "tcp_tlt": ("greenlane", "tcp_dcqcn", "tcp_dart"),
          "rd_core": ("greenlane", "rd_link"), "tcp_xpass": ("rd_core",), "tcp_aeolus": ("tcp_xpass",),
          "tcp_dcqcn": ("rd_link",), "sch_color": ("rd_link",),
          "sch_iofd": ("sch_color",), "tcp_toy": ("greenlane",), "tcp_turns": ("rd_core",)}
# The module of a congestion control whose name does not begin with its module's.
_MODULE_OF = {"xpass": "tcp_xpass", "aeolus_xpass": "tcp_aeolus", "dart": "tcp_dart",
              "dcqcn": "tcp_dcqcn"}


def path(name):
    """The file of a module that was built for this kernel."""
    if os.environ.get("GL_MODDIR"):
        return pathlib.Path(os.environ["GL_MODDIR"], "net", f"{name}.ko")
    found = subprocess.run(["modinfo", "-n", name], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Skip(f"no module {name}: install it, or set GL_MODDIR")
    return pathlib.Path(found.stdout.strip())


def is_loaded(name):
    """Is it?"""
    return os.path.exists(f"/sys/module/{name}")


def load_helper(name):
    """Load one of tools/testing/modules, which are built for UML guests only, or skip."""
    file = pathlib.Path(os.environ.get("GL_MODDIR", "/"), f"tools/testing/modules/{name}.ko")
    if is_loaded(name):
        return
    if not file.exists() and not is_time_virtual():
        raise Skip(f"no {name}.ko here, which is built for UML guests only")
    subprocess.run(["insmod", file], check=True)


def allow(*ccs):
    """Let applications, and other namespaces than the first one, have these congestion
    controls: most of ours are restricted, as dctcp is.  None for all that there are."""
    outer, first = (os.open(f"/proc/{task}/ns/net", os.O_RDONLY) for task in ("thread-self", 1))
    libc.enter_network(first)       # which has the only list
    try:
        if not ccs:
            with open(f"{_SYSCTL}_available_congestion_control", encoding="ascii") as file:
                ccs = file.read().split()
        with open(f"{_SYSCTL}_allowed_congestion_control", "w", encoding="ascii") as file:
            file.write(" ".join(ccs))
    finally:
        libc.enter_network(outer)
        os.close(outer)
        os.close(first)


def _load(*names):
    for name in names:
        _load(*_NEEDS.get(name, ()))
        if not is_loaded(name):
            # In virtual time a timer costs nothing, and ports are exact.
            exact = ["slack=0"] * (name == "sch_color" and is_time_virtual())
            subprocess.run(["insmod", path(name), *exact], check=True)


def load(*names):
    """Load modules and what they need, unless they are there, and allow() theirs."""
    _load(*names)
    allow()


def rmmod(name):
    """True if it went; while anything uses it, it stays."""
    return subprocess.run(["rmmod", name], capture_output=True, check=False).returncode == 0


def unload(*names):
    """Take modules out that are there, each after those that need it, as soon as their
    last users are gone: closed connections and namespaces take a moment.

    In a machine that all files share, an earlier one may have left it a user for longer.
    """
    for name in names:
        if not is_loaded(name):
            continue
        unload(*(other for other, needed in _NEEDS.items() if name in needed))
        limit = time.monotonic() + 130      # TIME_WAIT, and retries of a lost last packet
        while not rmmod(name):
            if time.monotonic() > limit:
                why = f"{name} is still in use"
                raise Failed(why) if os.environ.get("GL_MODDIR") else Skip(why)
            time.sleep(0.1)


def load_for(*ccs):
    """Load what these congestion controls need, and TLT."""
    load("tcp_tlt", *(_MODULE_OF[cc] for cc in ccs if cc in _MODULE_OF))


def load_all():
    """Load all of them."""
    load(*_SCHED, *_IPV4)


@contextlib.contextmanager
def other_hooks():
    """Netfilter hooks that stay while ours come and go, so that the kernel's code does not change.

    Without them each load and unload patches jumps on the packets' way.  In one of a hundred
    turns or so, an emulated processor never gets past such a jump again (QEMU 7.2, TCG).
    """
    subprocess.run(["nft", _HOOKS], check=True)
    yield
    subprocess.run(["nft", "delete table inet stay"], check=True)
