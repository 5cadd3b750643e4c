# SPDX-License-Identifier: GPL-2.0
"""greenlane-cgroup: a congestion control for one cgroup, through BPF.

There is one program for each congestion control, pinned under its name (cgroup_tlt.bpf.c), and
attached to any number of cgroups: the removal of a cgroup removes its attachment, too.

Root runs this, and other users may have made cgroups, units and, where bpffs has mode 1777,
directories and pins with the names that it looks for.  So it uses pins only in a directory of
root's own, a program only if its name and its tag (a hash of its instructions) are greenlane's, and
the name of a unit never means a cgroup of another user.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

from . import ROOT, Refused, host, netns, sockets, transports, uapi
from .units import visible

OBJECT = ROOT / "bpf/cgroup_tlt.bpf.o"
BPFFS = "/sys/fs/bpf"
PROGRAM = "greenlane"       # its function in cgroup_tlt.bpf.c
AVAILABLE = "net.ipv4.tcp_available_congestion_control"
# The kernel initialises a cgroup's congestion control before the SYN, when ECN is not negotiated: dart
# falls back, and the SYN advertises another one.
NOT_HERE = "tlt_dart"
EXIT_REFUSED = 2
# systemd starts units, each with its ExecStartPre=, at once.  A run changes pins and attachments that
# another one reads.
LOCK = "/run/greenlane-cgroup.lock"


def _run(*command):
    """A program's stdout; Refused with its first message if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              errors="surrogateescape", check=False)
    except (FileNotFoundError, PermissionError):
        raise Refused(f"no {command[0]}: install it (package {command[0]})") from None
    if done.returncode:
        errors = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
        error = (errors or ["it failed"])[0].removeprefix("Error: ")
        raise Refused(f"{command[0]}: {visible(error)}")
    return done.stdout


def _bpftool_json(*words):
    """bpftool's JSON, [] if empty."""
    # bpftool does not escape control characters of names.
    try:
        return json.loads(_run("bpftool", "-j", *words).strip() or "[]", strict=False)
    except ValueError:
        raise Refused("bpftool's answer is not JSON") from None


# --- cgroups -----------------------------------------------------------------------


def mount_point():
    """The mount point of the unified hierarchy."""
    # Other users may mount anywhere (FUSE).
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape",
              newline="\n") as f:
        for line in f:
            words, _, kind = line.partition(" - ")
            if kind.split()[:1] == ["cgroup2"]:
                return pathlib.Path(words.split()[4])
    raise Refused("no cgroup2 is mounted (usually at /sys/fs/cgroup)")


def _of_unit(name):
    """The cgroup that systemd has made for a unit, or None."""
    with contextlib.suppress(FileNotFoundError):
        done = subprocess.run(["systemctl", "show", "--property=ControlGroup", "--value", "--",
                               name], capture_output=True, text=True, check=False)
        return done.stdout.strip() or None
    return None


def _is_roots(path, mount):
    """Does root own this cgroup and all above it?  A user owns the cgroups of his systemd units."""
    return not any(one.lstat().st_uid for one in (path, *path.parents)
                   if one == mount or mount in one.parents)


def _named(mount, name):
    """The cgroups of root's with this name."""
    found = [pathlib.Path(where) for where, _, _ in os.walk(mount)
             if os.path.basename(where) == name]
    return [path for path in found if _is_roots(path, mount)]


def find_cgroup(name):
    """The directory of a cgroup: a path, a path below the mount, or a unit."""
    mount = mount_point()
    if name.startswith("/"):
        choices = [pathlib.Path(name), mount / name[1:]]
    else:
        unit = _of_unit(name)
        choices = [mount / unit[1:]] if unit else _named(mount, name)
        if len(choices) > 1:
            raise Refused(f"{visible(name)} is not one cgroup but {len(choices)}: name its path")
    for path in choices:
        if (path / "cgroup.procs").exists() and path.stat().st_dev == mount.stat().st_dev:
            return path.resolve()
    raise Refused(f"{visible(name)} is not a cgroup, nor a running unit; that of another user needs"
                  " its path")


def _pids(cgroup):
    """The processes in it and below it."""
    found = set()
    for where, _, _ in os.walk(cgroup):
        with contextlib.suppress(OSError), open(f"{where}/cgroup.procs", encoding="ascii") as f:
            found.update(int(line) for line in f)
    return sorted(found)


# --- programs ------------------------------------------------------------------------


def _pin(cc):
    return f"{host.PINS}/{cc}"


def _check_pins():
    """Refused if other users could have replaced the pins."""
    with contextlib.suppress(FileNotFoundError):
        if not host.pins_are_roots():
            raise Refused(f"{host.PINS} is not root's own directory: remove it")


def _program(pin):
    """bpftool's description of a pinned greenlane program; Refused if it is another program."""
    program = _bpftool_json("prog", "show", "pinned", pin)
    if program.get("type") != "sock_ops" or program.get("name") != PROGRAM:
        raise Refused(f"{pin} is not greenlane's program: remove it")
    return program


def _programs():
    """{id: congestion control} of the loaded programs."""
    _check_pins()
    return {_program(_pin(cc))["id"]: cc for cc in host.pinned()}


def attachments():
    """[(cgroup, congestion control)] of all cgroups with greenlane's program."""
    ours = _programs()
    if not ours:
        return []
    return [(pathlib.Path(one["cgroup"]), ours[program["id"]])
            for one in _bpftool_json("cgroup", "tree", mount_point())
            for program in one["programs"] if program["id"] in ours]


def _mount_bpffs():
    if not os.path.ismount(BPFFS):
        _run("mount", "-t", "bpf", "-o", "mode=0700", "bpf", BPFFS)
    with contextlib.suppress(FileExistsError):
        os.mkdir(host.PINS, 0o700)
    _check_pins()


def _configure(program, cc):
    """Set the congestion control of a new program."""
    # struct wanted
    wanted = struct.pack(f"{uapi.CA_NAME_MAX}sI", cc.encode(),
                         cc.endswith(transports.BY_MARKS))
    _run("bpftool", "map", "update", "id", program["map_ids"][0], "key", *("0",) * 4,
         "value", *(str(byte) for byte in wanted))


def _load(cc):
    """Load the program, unless the same one is pinned."""
    if not OBJECT.exists():
        raise Refused(f"no {OBJECT}: make -C tools/bpf, or install greenlane-tools")
    _mount_bpffs()
    fresh = f"{host.PINS}/new_{os.getpid()}"
    _run("bpftool", "prog", "load", OBJECT, fresh)
    try:
        new = _program(fresh)
        if cc not in host.pinned():
            _configure(new, cc)
            os.rename(fresh, _pin(cc))
        elif _program(_pin(cc))["tag"] != new["tag"]:
            raise Refused(f"{_pin(cc)} is another version's program: detach its cgroups first")
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)


def _tidy():
    """Unload the programs that are not attached."""
    _check_pins()
    used = {cc for _, cc in attachments()}
    for cc in host.pinned():
        if cc not in used:
            os.unlink(_pin(cc))
    with contextlib.suppress(OSError):
        os.rmdir(host.PINS)


def _have_congestion_control(cc):
    """Load the congestion control's module, because BPF does not."""
    if cc not in transports.TLT:
        raise Refused(f"{cc} is not one of TLT's congestion controls, tlt_* and aeolus_*")
    if cc == NOT_HERE:
        raise Refused(f"a cgroup cannot select {cc}: use a namespace's sysctl, or a route")
    if cc in (netns.sysctl(AVAILABLE) or "").split():
        return
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["modprobe", "-q", f"tcp_{cc}"], check=False)
    if cc not in (netns.sysctl(AVAILABLE) or "").split():
        raise Refused(f"no congestion control {cc}: modprobe tcp_{cc} does not load it")


# --- listeners -------------------------------------------------------------------------


def _defaults():
    """{cookie of a namespace: its default}"""
    found = {}
    for ns in netns.find().values():
        with contextlib.suppress(OSError), ns.entered():
            found[netns.cookie()] = netns.sysctl("net.ipv4.tcp_congestion_control")
    return found


def _listeners(cgroup, change):
    """Set the congestion control change(cc, default) of listeners of a cgroup's processes, if it is
    not None.

    The program runs when a socket begins to listen, so it does not change existing listeners.
    Returns their number.
    """
    defaults, count = _defaults(), 0
    for cookie, _, sock in sockets.Walk(_pids(cgroup)):
        with contextlib.suppress(OSError):
            if uapi.tcp_state(sock) != uapi.TCP_LISTEN:
                continue
            wanted = change(uapi.congestion_control(sock), defaults.get(cookie))
            if wanted:
                sock.setsockopt(socket.IPPROTO_TCP, uapi.TCP_CONGESTION, wanted.encode())
                count += 1
    return count


# --- namespaces ------------------------------------------------------------------------


def _activate(cgroup):
    """Let the first connection of its processes' namespaces carry greenlane's option, too."""
    inodes = {os.stat(netns.OWN).st_ino}
    for pid in _pids(cgroup):
        with contextlib.suppress(OSError):
            inodes.add(os.stat(f"/proc/{pid}/ns/net").st_ino)
    for ns in netns.find().values():
        if ns.inode in inodes:
            with contextlib.suppress(OSError), ns.entered(), \
                    open("/proc/sys/net/ipv4/greenlane_active", "w", encoding="ascii") as file:
                file.write("1")


# --- commands --------------------------------------------------------------------------


def _listening(count):
    return f"; {count} listening socket{'' if count == 1 else 's'} changed" if count else ""


def attach(name, cc):
    """Connections that the cgroup makes or accepts from now on use cc."""
    cgroup = find_cgroup(name)
    _have_congestion_control(cc)
    there = [one for where, one in attachments() if where == cgroup]
    if there and there != [cc]:
        raise Refused(f"{visible(str(cgroup))} has {there[0]}: detach it first")
    try:
        _load(cc)
        if not there:
            _run("bpftool", "cgroup", "attach", cgroup, "sock_ops", "pinned", _pin(cc), "multi")
    except Refused:
        with contextlib.suppress(Refused):
            _tidy()
        raise
    _activate(cgroup)
    count = _listeners(cgroup, lambda now, _: cc if now != cc else None)
    print(f"{visible(str(cgroup))}: {cc}{' already' if there else ''}{_listening(count)}")


def detach(name):
    """New connections of the cgroup use the default congestion control again."""
    try:
        cgroup = find_cgroup(name)
        all_of_them = attachments()
        there = [cc for where, cc in all_of_them if where == cgroup]
        if not there:
            raise Refused(f"{visible(str(cgroup))} has no congestion control of greenlane's")
        for cc in there:
            _run("bpftool", "cgroup", "detach", cgroup, "sock_ops", "pinned", _pin(cc))
    finally:
        with contextlib.suppress(Refused):
            _tidy()
    # The setting of a parent cgroup still applies.
    above = {cc for where, cc in all_of_them if where in cgroup.parents}
    count = _listeners(cgroup, lambda now, default:
                       default if now in there and now not in above else None)
    print(f"{visible(str(cgroup))}: detached{_listening(count)}")


def status():
    """The cgroups and their congestion controls."""
    found = attachments()
    for cgroup, cc in found:
        number = len(_pids(cgroup))
        print(f"{visible(str(cgroup))}: {cc}, {number} process{'' if number == 1 else 'es'}")
    for cc in host.pinned():
        if cc not in {used for _, used in found}:
            print(f"{cc}: loaded, but its cgroups were removed; the next attach or detach"
                  " unloads it")
    if not found and not host.pinned():
        print("no cgroup has a congestion control of greenlane's")


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line."""

    def error(self, message):
        self.exit(EXIT_REFUSED, f"{self.prog.split()[0]}: {message}\n")


def main(words=None):
    """Returns the exit status."""
    parser = _Parser(prog="greenlane-cgroup", description="TLT for one cgroup.")
    commands = parser.add_subparsers(dest="command", required=True,
                                     metavar="attach|detach|status")
    one = commands.add_parser("attach", help=attach.__doc__)
    one.add_argument("cgroup", help="a path below /sys/fs/cgroup, or a systemd unit")
    one.add_argument("--cc", default="tlt_dctcp", help="congestion control (tlt_dctcp)")
    commands.add_parser("detach", help=detach.__doc__).add_argument("cgroup")
    commands.add_parser("status", help=status.__doc__)
    args = parser.parse_args(sys.argv[1:] if words is None else words)
    host.find_programs()
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if os.geteuid():
            raise Refused("only root may")
        with open(LOCK, "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if args.command == "attach":
                attach(args.cgroup, args.cc)
            elif args.command == "detach":
                detach(args.cgroup)
            else:
                status()
    except (Refused, OSError) as why:
        print(f"greenlane-cgroup: {why}", file=sys.stderr)
        return EXIT_REFUSED
    return 0
