# SPDX-License-Identifier: GPL-2.0
"""The machine: modules, and the settings of its configuration files."""
import contextlib
import difflib
import glob
import os
import re
import stat
import subprocess

from .transports import MODULES, TLT, TRANSPORTS, of
from .units import visible

# sysctl.d(5): of files with one name, that in the first directory counts.
SYSCTL_D = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d",
            "/lib/sysctl.d")
# To sysctl(8) all text behind "=" is the value, a comment included.
_SETTING = re.compile(r"^\s*-?\s*net[./]ipv4[./]([^\s=./*?\[]+)\s*=\s*(\S.*?)\s*$")
# Prefixes of greenlane's sysctls.
_SYSCTLS = ("greenlane_", *(f"{row.name.rstrip('_')}_" for row in TRANSPORTS))
PINS = "/sys/fs/bpf/greenlane"
# The first PID and user namespaces: PROC_PID_INIT_INO and PROC_USER_INIT_INO of linux/proc_ns.h.
_FIRST = {"pid": 0xeffffffc, "user": 0xeffffffd}
# A look needs these capabilities (linux/capability.h) to list the sockets of processes, to read
# them, and to enter network namespaces; CAP_DAC_OVERRIDE, 1, is as good as the first.
_NEEDED = {"CAP_DAC_READ_SEARCH": 1 << 2 | 1 << 1, "CAP_SYS_PTRACE": 1 << 19,
           "CAP_SYS_ADMIN": 1 << 21}


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return None


def find_programs():
    """Find ip, tc, modinfo and rmmod also with the PATH of an ordinary user."""
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def module_of(cc):
    """The module of a congestion control of greenlane's, None for others."""
    row = of(cc)
    return row and row.module


def transports(names):
    """The transports among these modules."""
    known = [row.module for row in TRANSPORTS]
    return [name for name in names if name in known]


def modules():
    """{name: version, "" without one} of the loaded modules."""
    return {name: _read(f"/sys/module/{name}/version") or "" for name in MODULES
            if os.path.isdir(f"/sys/module/{name}")}


def installed(names):
    """{name: version} of these modules, if modprobe would load them for this kernel."""
    names = list(names)
    if not names:
        return {}
    try:
        done = subprocess.run(["modinfo", "-F", "version", *names], capture_output=True, text=True,
                              errors="surrogateescape", check=False)
    except FileNotFoundError:
        return {}
    versions = done.stdout.splitlines()
    # modinfo prints one line for each module that exists, without its name.
    return dict(zip(names, map(visible, versions))) if len(versions) == len(names) else {}


def namespaces_not_first():
    """The kinds of namespaces (pid, user) in which this process is not in the kernel's first one, as
    in a container."""
    found = []
    for kind, first in _FIRST.items():
        with contextlib.suppress(OSError):      # a kernel without them
            if os.stat(f"/proc/self/ns/{kind}").st_ino != first:
                found.append(kind)
    return found


def capabilities_missing():
    """The capabilities that a complete look needs, and this process lacks."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _read("/proc/self/status") or "", re.M)
    effective = int(match[1], 16) if match else 0
    return [name for name, bits in _NEEDED.items() if not effective & bits]


def references(name):
    """The reference count of a module; None if the kernel has none, and cannot unload."""
    count = _read(f"/sys/module/{name}/refcnt")
    return None if count is None else int(count)


def boot_id():
    """The identifier of this boot."""
    return _read("/proc/sys/kernel/random/boot_id")


def _configured():
    """(file, sysctl below net.ipv4, value) of each setting of sysctl --system, in its order."""
    files = {}
    for directory in SYSCTL_D:
        for path in glob.glob(f"{glob.escape(directory)}/*.conf"):
            files.setdefault(os.path.basename(path), path)
    for path in [files[name] for name in sorted(files)] + ["/etc/sysctl.conf"]:
        for line in (_read(path) or "").splitlines():
            match = _SETTING.match(line)
            if match:
                yield path, match[1], match[2]


def configured_ccs():
    """[(file, value)] of the default congestion control, in the order of sysctl --system."""
    return [(path, value) for path, name, value in _configured()
            if name == "tcp_congestion_control"]


def configured_cc():
    """(file, congestion control) that sysctl --system would leave, or None."""
    return (configured_ccs() or [None])[-1]


def default_qdisc():
    """The default qdisc of new devices."""
    return _read("/proc/sys/net/core/default_qdisc")


def misspelt(ccs):
    """[(file, its name, the probable name)] of settings whose sysctl or congestion control does not
    exist, and is similar to one of greenlane's; ccs: the existing ones, as one string."""
    try:
        ours = [name for name in os.listdir("/proc/sys/net/ipv4") if name.startswith(_SYSCTLS)]
    except OSError:
        return []
    ccs = [cc for cc in (ccs or "").split() if module_of(cc)]
    found = []
    for path, name, value in _configured():
        wrong, known = ((value, ccs) if name == "tcp_congestion_control" else (name, ours))
        if wrong in known or os.path.exists(f"/proc/sys/net/ipv4/{name}") and known is ours:
            continue
        # Names of modules that are not loaded are unknown.
        near = difflib.get_close_matches(wrong, known, 1, 0.8)
        if near:
            found.append((visible(path), visible(wrong), near[0]))
    return found


def pins_are_roots():
    """Is the directory of the pins writable by root only?  bpffs may be mounted with mode 1777,
    where every user may make a directory."""
    status = os.lstat(PINS)
    return stat.S_ISDIR(status.st_mode) and not status.st_uid and not status.st_mode & 0o022


def pinned():
    """Congestion controls for which greenlane-cgroup has loaded its program."""
    with contextlib.suppress(OSError):
        if pins_are_roots():
            return sorted(name for name in os.listdir(PINS) if name in TLT)
    return []
