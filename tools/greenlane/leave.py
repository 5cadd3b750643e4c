# SPDX-License-Identifier: GPL-2.0
"""greenlane leave: name all users of greenlane in any namespace, and unload unused modules.

It changes no setting, cuts no connection and deletes no qdisc: it names the holders of each module,
and unloads modules without a holder.  The kernel counts the users of a module, so it unloads
none that is in use.
"""
import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
from shlex import quote

from . import Refused, diagnose, host, look, netns, ports
from .transports import MODULES
from .units import plural


def _processes(connections, most=4):
    """The processes that have these connections: NAME[PID]."""
    pids = sorted({connection["pid"] for connection in connections})
    names = [f"{netns.comm(pid)}[{pid}]" for pid in pids[:most]]
    return ", ".join(names) + (f" and {len(pids) - most} more" if len(pids) > most else "")


def _there(seen, thing):
    """The namespace for a command, unless it is the current one."""
    here = str(os.stat(netns.OWN).st_ino)
    return "" if thing["ns"] == here else f", in the namespace {diagnose.name_of(seen, thing)}"


def _defaults(seen):
    for ns in seen["namespaces"].values():
        if host.module_of(ns["cc"]):
            yield (f"{ns['name']}: new connections get {ns['cc']}",
                   "sysctl -w net.ipv4.tcp_congestion_control=cubic, in that namespace")


def _sockets(seen):
    kinds = (("connection", [*seen["connections"].values(), *seen["fallen"].values()]),
             ("listening socket", seen["listening"]))
    for noun, things in kinds:
        found = collections.defaultdict(list)
        for thing in things:
            found[thing["ns"], thing["cc"]].append(thing)
        for (_, cc), those in sorted(found.items()):
            yield (f"{diagnose.name_of(seen, those[0])}: {plural(len(those), noun)} of {cc}:"
                   f" {_processes(those)}",
                   "wait until they end" if noun == "connection" else "restart the service")


def _removal(queue):
    """The command that removes a qdisc, after the default qdisc has changed."""
    dev = quote(queue["dev"])
    if not ports.is_default(queue["handle"]):
        return f"tc qdisc del dev {dev} {ports.place(queue)}"
    return f"tc qdisc replace dev {dev} root {'mq' if queue['parent'] else 'fq_codel'}"


def _queues(seen):
    for port in seen["ports"].values():
        yield (f"{diagnose.name_of(seen, port)}: {port['dev']} has the qdisc color",
               _removal(port) + _there(seen, port))
    for queue in seen["iofd"].values():
        yield (f"{diagnose.name_of(seen, queue)}: {queue['dev']} has the qdisc iofd",
               _removal(queue) + _there(seen, queue))


def _others(seen):
    for name in seen["routes"]:
        yield (f"{name}: the congctl of a route is one of greenlane's",
               "ip route change ... without it")
    for cc in seen["pinned"]:
        yield f"a cgroup selects {cc}", "greenlane-cgroup status, greenlane-cgroup detach CGROUP"
    if host.default_qdisc() in ("color", "iofd"):
        yield (f"the default qdisc is {host.default_qdisc()}",
               "sysctl -w net.core.default_qdisc=fq_codel")
    configured = host.configured_cc()
    if configured and host.module_of(configured[1]):
        yield (f"{configured[0]}: the default is {configured[1]} again after the next boot",
               "remove that line")


def _unload(name):
    """Try to unload a module; the kernel refuses if it is in use."""
    try:
        done = subprocess.run(["rmmod", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refused("no rmmod: install kmod") from None
    return not done.returncode


def _forget():
    """Remove the remembered look, if it is root's own."""
    with contextlib.suppress(OSError):
        if look.directory_is_ours(os.path.dirname(look.STATE)):
            shutil.rmtree(pathlib.Path(look.STATE).parent)


def leave():
    """Returns true if no module is loaded, and none is configured for the next boot."""
    if os.geteuid():
        raise Refused("only root can unload modules")
    seen = look.take()
    users = [user for find in (_defaults, _sockets, _others, _queues) for user in find(seen)]
    unloaded = [name for name in reversed(MODULES)
            if name in host.modules() and not host.references(name) and _unload(name)]
    left = list(host.modules())
    for user, command in users:
        print(f"{user}\n  {command}")
    if unloaded:
        print("unloaded: " + ", ".join(unloaded))
    if left:
        print("still loaded: " + ", ".join(left))
        blind = list(diagnose.blind(seen))
        for problem in blind:
            print(f"  {problem.where}: {problem.text}\n    {problem.advice}")
        if not users and not blind:
            print("  in use by an object of no process: a closed socket that waits for its end, or"
                  " on Linux 6.1 a leaked reference of the kernel (install.rst)")
    elif not users:
        _forget()
        print("greenlane is not in use; remove its files as they were installed: make uninstall,"
              " make dkms-remove or apt-get purge")
    return not (users or left)
