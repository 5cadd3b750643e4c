# SPDX-License-Identifier: GPL-2.0
"""Load the kernel modules under test, from $GL_MODDIR or as installed."""

import contextlib
import os
import pathlib
import subprocess
import time

from lab import transports
from lab.net import libc
from lab.tap import Failed, Skip, is_time_virtual

_SYSCTL = "/proc/sys/net/ipv4/tcp"

_HOOKS = "table inet stay {{ {} }}".format(" ".join(
    f"chain {hook} {{ type filter hook {hook} priority 0; }};" for hook in ("input", "output")))

# {module: the modules that it needs}; tcp_toy and tcp_turns are transports of the tests.
_NEEDS = {"tcp_toy": ("greenlane",), "tcp_turns": ("rd_core",), **transports.LAYER,
          **transports.PORTS,
          **{row.module: row.needs + row.wraps for row in transports.TRANSPORTS}}
_HELPERS = "tools/testing/modules"


def path(name):
    """The file of a module that was built for this kernel."""
    if os.environ.get("GL_MODDIR"):
        file = pathlib.Path(os.environ["GL_MODDIR"], "net", f"{name}.ko")
        return file if file.exists() else _helper(name)
    found = subprocess.run(["modinfo", "-n", name], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Skip(f"no module {name}: install it, or set GL_MODDIR")
    return pathlib.Path(found.stdout.strip())


def _helper(name):
    return pathlib.Path(os.environ.get("GL_MODDIR", "/"), _HELPERS, f"{name}.ko")


def is_loaded(name):
    """Is the module loaded?"""
    return os.path.exists(f"/sys/module/{name}")


def load_helper(name, *parameters):
    """Load a module of tools/testing/modules, which are built for UML guests only, or skip."""
    file = _helper(name)
    if is_loaded(name):
        return
    if not file.exists() and not is_time_virtual():
        raise Skip(f"no {name}.ko here, which is built for UML guests only")
    subprocess.run(["insmod", file, *parameters], check=True)


def allow(*ccs):
    """Allow applications without CAP_NET_ADMIN, and namespaces other than the first, to use these
    congestion controls: most of greenlane's are restricted, as dctcp is.  Without arguments all
    available ones are allowed."""
    outer, first = (os.open(f"/proc/{task}/ns/net", os.O_RDONLY) for task in ("thread-self", 1))
    libc.enter_network(first)       # only the first namespace has the list
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
            # In virtual time a timer costs nothing, so ports need no slack.
            exact = ["slack=0"] * (name == "sch_color" and is_time_virtual())
            subprocess.run(["insmod", path(name), *exact], check=True)


def load(*names):
    """Load modules and the modules that they need, unless loaded, and allow() all congestion
    controls."""
    _load(*names)
    allow()


def rmmod(name):
    """Remove a module; False if it is in use."""
    return subprocess.run(["rmmod", name], capture_output=True, check=False).returncode == 0


def unload(*names):
    """Remove loaded modules, each after the modules that need it.  Closed connections and removed
    namespaces still use them for some time: wait for these, up to 130 s.

    On a machine that all test files share, an earlier file may have left a user for longer: then
    skip.
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
    """Load the modules of these congestion controls, and TLT's."""
    rows = map(transports.of, ccs)
    load("tcp_tlt", *(row.module for row in rows if row))


def load_all():
    """Load all of greenlane's modules."""
    load(*transports.MODULES)


@contextlib.contextmanager
def other_hooks():
    """Meanwhile other netfilter hooks stay registered, so that the kernel does not patch its code
    when greenlane's are registered and removed.

    Without them each load and unload patches jumps in the packets' code path.  In about one of a
    hundred repetitions an emulated processor never passes such a jump again (QEMU 7.2, TCG).
    """
    subprocess.run(["nft", _HOOKS], check=True)
    yield
    subprocess.run(["nft", "delete table inet stay"], check=True)
