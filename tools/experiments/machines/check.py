# SPDX-License-Identifier: GPL-2.0
"""The hosts of a lab: a table, and the problems of each host.  Changes no host."""

import ipaddress
import json
import time

from lab import transports, units
from lab.measure import report
from lab.net.hosts import values_for
from lab.net.namespace import ACTIVE, is_transport, sysctl_path

COLUMNS = ("host", "role", "kernel", "greenlane", "status", "clock", "device", "rate", "MTU")
# Qdiscs that Linux itself adds again when another one is deleted have this handle.
_DEFAULT_HANDLE = "0:"
_CCS = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def _device(session, dev):
    """{file: number} of a device in sysfs; None if there is no such device."""
    names = ("speed", "mtu", "carrier")
    paths = {name: f"/sys/class/net/{dev}/{name}" for name in names}
    texts = session.call("read", paths=list(paths.values()))["texts"]
    found = {name: int(text) for name, path in paths.items()
             if (text := texts[path]) and text.strip().lstrip("-").isdigit()}
    return found if "mtu" in found else None


def _version(session):
    """The version of the loaded greenlane module, or None."""
    try:
        return session.read("/sys/module/greenlane/version").strip()
    except FileNotFoundError:
        return None


def _offset(session):
    """The host's clock minus ours, ms.  Half of the request's time is its error."""
    began = time.time()
    theirs = session.run("date", "+%s.%N", may_fail=True)
    if not theirs or not theirs.strip().replace(".", "").isdigit():
        return None
    return 1000 * (float(theirs) - (began + time.time()) / 2)


def _status(session):
    """The problems that `greenlane status` reports there, or "-" without the program."""
    try:
        found = json.loads(session.call("status")["out"])
        return ",".join(problem["id"] for problem in found["problems"]) or "good"
    except (json.JSONDecodeError, KeyError, TypeError):
        return "-"


def _path_problems(session, lab, device):
    """The problems of a host's device, and of its routes to its peers."""
    host = session.host
    if not device:
        yield f"no device {host.device}"
        return
    if not device.get("carrier"):
        yield f"{host.device} has no carrier: is it up, with a cable?"
    if device["mtu"] != report.MTU:
        yield f"{host.device} has an MTU of {device['mtu']}; the ideal is of {report.MTU}"
    links = session.json("ip", "-j", "addr", "show", "dev", host.device, may_fail=True)
    if links is None:
        yield "no ip: install iproute2"
        return
    if ipaddress.ip_address(host.address) not in [
            ipaddress.ip_address(one["local"]) for link in links
            for one in link.get("addr_info", ()) if "local" in one]:
        yield f"{host.device} does not have the address {host.address}"
    for peer in lab.peers(host):
        route = session.json("ip", "-j", "route", "get", peer.address, may_fail=True)
        dev = route[0]["dev"] if route else None
        if dev != host.device:
            yield f"{peer.address} is reached by {dev or 'no device'}, not by {host.device}"


def _end_problems(session, config, ccs, facts):
    """The congestion controls and settings that a host lacks."""
    available = session.read(_CCS).split()
    for cc in ccs:
        name = units.cc_name(cc)
        if name not in available:
            row = transports.of(name)
            yield f"no {name}: modprobe {row.module if row else 'tcp_' + name}"
        for setting in values_for(config, cc)[1]:
            path = sysctl_path(f"net.ipv4.{setting}")
            if session.call("read", paths=[path])["texts"][path] is None:
                yield f"no setting net.ipv4.{setting}"
    if any(is_transport(units.cc_name(cc)) for cc in ccs):
        if not facts["version"]:
            yield "greenlane is not loaded"
        elif session.read(sysctl_path(ACTIVE)).strip() != "1":
            # An active host stays active, so the experiment could not restore it.
            yield f"greenlane is not active: sysctl -w {ACTIVE}=1"


def _switch_problems(session):
    """Missing ports of a switch, and qdiscs that the session could not restore."""
    for dev in session.host.ports:
        qdiscs = session.json("tc", "-j", "qdisc", "show", "dev", dev, may_fail=True)
        if qdiscs is None:
            yield f"no port {dev}, or no tc"
            continue
        for qdisc in qdiscs:
            if qdisc.get("root") and qdisc.get("handle") != _DEFAULT_HANDLE:
                yield (f"{dev} has the qdisc {qdisc['kind']}, which would not be restored:"
                       " delete it, or leave the port out")


def look(session):
    """The facts of a host."""
    host = session.host
    return {"version": _version(session), "offset": _offset(session), "status": _status(session),
            "device": _device(session, host.device or host.ports[0])}


def problems(session, lab, config, ccs, facts):
    """["host: problem"] of a host."""
    found = []
    if session.facts["ready"]:
        found.append("the user is not root: set user = \"root\", or sudo = true")
    if session.host.role == "switch":
        found += _switch_problems(session)
    else:
        found += [*_path_problems(session, lab, facts["device"]),
                  *_end_problems(session, config, ccs, facts)]
    return [f"{session.host.name}: {one}" for one in found]


def _cells(session, facts):
    """A host's row of the table."""
    device = facts["device"] or {}
    speed = device.get("speed", -1)
    offset = facts["offset"]
    return (session.host.name, session.host.role, session.facts["release"],
            facts["version"] or "-", facts["status"],
            "-" if offset is None else f"{offset:+.0f} ms", session.host.device or "-",
            f"{speed / 1000:g} Gbit/s" if speed > 0 else "-", str(device.get("mtu", "-")))


def table(sessions, facts):
    """The table of all hosts."""
    rows = [COLUMNS, *(_cells(*pair) for pair in zip(sessions, facts))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in rows)


def differences(facts, speeds):
    """Differences between hosts that the experiment does not allow, of the links' speeds too."""
    mtus = {str((one["device"] or {}).get("mtu")) for one in facts}
    versions = {str(one["version"]) for one in facts}
    rates = {str((one["device"] or {}).get("speed")) for one in facts if speeds}
    for name, values in (("MTUs", mtus), ("versions of greenlane", versions),
                         ("speeds, Mbit/s: set rate in the file of the lab", rates)):
        if len(values - {"None"}) > 1:
            yield f"different {name}: {', '.join(sorted(values))}"
