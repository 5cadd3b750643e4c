# SPDX-License-Identifier: GPL-2.0
"""Switch ports, other queues and devices of the current namespace."""
import glob
import json
import os
import subprocess

from . import ROOT, Refused
from .units import visible

# The handle of queues that Linux adds by itself.
DEFAULT = "0:"
COLORS = ("red", "yellow", "green")
# Qdiscs that do not drop by themselves, or that other functions list.
NOT_QUEUES = ("color", "iofd", "noqueue", "ingress", "clsact", "mq", "multiq")


def plugin():
    """The directory in which tc finds its plugin for color, or None."""
    here = [os.environ.get("TC_LIB_DIR", "")]
    stock = glob.glob("/usr/lib/*/tc") + ["/usr/lib/tc", "/usr/lib64/tc"]
    for directory in here + stock + [str(ROOT / "tc")]:
        if directory and os.path.exists(f"{directory}/q_color.so"):
            return directory
    return None


def _json(command, directory):
    env = dict(os.environ, LC_ALL="C", TC_LIB_DIR=directory) if directory else None
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=env, text=True,
                              errors="surrogateescape")
    except FileNotFoundError:
        raise Refused(f"no {command[0]}: install iproute2") from None
    if done.returncode:
        return None
    try:
        # iproute2 writes control characters of names as they are.
        return json.loads(done.stdout or "[]", strict=False)
    except json.JSONDecodeError:        # tc without the plugin
        return None


def _port(qdisc):
    """A color qdisc: its counters, which grow, and its state."""
    options, colors = qdisc["options"], qdisc["colors"]
    counters = {"packets": qdisc["packets"], "gso_drops": qdisc["queue"]["gso_drops"]}
    for name in COLORS:
        one = colors[name]
        for key in ("packets", "bytes", "marks"):
            counters[f"{name}_{key}"] = one[key]
        for why, count in one["drops"].items():
            counters[f"{name}_drops_{why}"] = count
    bands = qdisc.get("bands", {})
    for band, one in bands.items():
        for key in ("packets", "bytes", "drops"):
            counters[f"band{band}_{key}"] = one[key]
    return {"counters": counters, "options": options, "root": qdisc.get("root", False),
            "parent": qdisc.get("parent"),
            "backlog": {name: colors[name]["backlog"] for name in COLORS},
            "peak": {name: colors[name]["peak_backlog"] for name in COLORS},
            "bands": {band: {"backlog": one["backlog"], "peak": one["peak_backlog"]}
                      for band, one in bands.items()},
            "peak_backlog": qdisc["queue"]["peak_backlog"]}


def place(qdisc):
    """The place of a qdisc on its device, in tc's words: root, or below a class."""
    return f"parent {qdisc['parent']}" if qdisc["parent"] else "root"


def is_default(handle):
    """Has Linux added a queue with this handle by itself?  No command can delete or change it."""
    return handle.startswith(DEFAULT)


def _name(qdisc):
    """The handle of a qdisc.  Each default qdisc below mq has handle 0, and a parent of its own."""
    if qdisc["handle"] != DEFAULT or not qdisc.get("parent"):
        return qdisc["handle"]
    return f"{DEFAULT} {qdisc['parent']}"


def queues_here(directory):
    """({(dev, handle): port}, the same of other queues, and of iofd); None if tc fails."""
    shown = _json(["tc", "-s", "-j", "-d", "qdisc", "show"], directory)
    if shown is None:
        return None
    ports, others, iofd = {}, {}, {}
    for qdisc in shown:
        key = (visible(qdisc["dev"]), _name(qdisc))
        if qdisc["kind"] == "color":
            if "colors" in qdisc:
                ports[key] = _port(qdisc)
        elif qdisc["kind"] == "iofd":
            iofd[key] = {"parent": qdisc.get("parent")}
        elif qdisc["kind"] not in NOT_QUEUES:
            others[key] = {"kind": qdisc["kind"], "counters": {"drops": qdisc.get("drops", 0)}}
    return ports, others, iofd


def devices_here():
    """{dev: its kind, addresses and counters}."""
    addresses = {}
    for link in _json(["ip", "-j", "addr", "show"], None) or []:
        addresses[link.get("ifname")] = [a["local"] for a in link.get("addr_info", ())
                                         if "local" in a]
    found = {}
    for link in _json(["ip", "-s", "-j", "-d", "link", "show"], None) or []:
        dev = link.get("ifname")
        if dev:
            found[visible(dev)] = {
                "kind": link.get("linkinfo", {}).get("info_kind"),
                "tos": link.get("linkinfo", {}).get("info_data", {}).get("tos"),
                "id": link.get("linkinfo", {}).get("info_data", {}).get("id"),
                "remote": link.get("linkinfo", {}).get("info_data", {}).get("remote")
                or link.get("linkinfo", {}).get("info_data", {}).get("remote6"),
                "master": visible(link.get("master", "")),
                "mtu": link.get("mtu"), "addresses": addresses.get(dev, []),
                "counters": {"packets": link.get("stats64", {}).get("tx", {}).get("packets", 0)},
            }
    return found
