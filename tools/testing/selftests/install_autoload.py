#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Installed modules are loaded on demand, and removed by rmmod.

	sysctl, setsockopt --> tcp_tlt.ko  --> greenlane.ko
	                       tcp_dart.ko --> tcp_dcqcn.ko --> link_speed.ko
	tc (q_color.so)    --> sch_color.ko --> link_speed.ko

The guest's /lib/modules is its own: nothing is installed on the host.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

from lab import VERSION, tap
from lab.tap import case, equal, true
from lab.transports import MODULES

TOP = pathlib.Path(os.environ["GL_TOP"])
KERNEL = pathlib.Path("/lib/modules", os.uname().release)
TLT = {"link_speed", "tcp_tlt", "tcp_dcqcn", "tcp_dart", "tcp_hpcc"}    # it requests its bases
AEOLUS = {"tcp_aeolus", "tcp_xpass", "tcp_homa", "tcp_ndp", "rd_core"}
OURS = MODULES[::-1]        # in order of removal
CONTROL = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
# tc finds its plugin where it is installed.
os.environ.pop("TC_LIB_DIR")
# Directories that an uninstall must clean.
PLACES = (f"{KERNEL}/updates", "/usr/lib/x86_64-linux-gnu/tc", "/usr/sbin", "/usr/include/linux",
          "/usr/share/man/man8", "/usr/share/doc/greenlane", "/usr/lib/systemd/system")


def run(*command):
    """Run a command; returns the finished process."""
    return subprocess.run(command, text=True, capture_output=True, check=False)


def must(*command):
    """Run a command that has to succeed; returns its output."""
    done = run(*command)
    equal(done.returncode, 0, f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def loaded():
    """Our modules that are loaded."""
    with open("/proc/modules", encoding="ascii") as modules:
        return {line.split()[0] for line in modules} & set(OURS)


def unload():
    """Remove our loaded modules; one program, as each takes a while in a virtual machine."""
    CONTROL.write_text("reno", encoding="ascii")
    here = loaded()
    if here:
        must("rmmod", *(name for name in OURS if name in here))


def files():
    """All files in the directories of an installation."""
    return {str(path) for place in PLACES for path in pathlib.Path(place).rglob("*")}


def install():
    """Like make install, without a build."""
    for ko in pathlib.Path(os.environ["GL_MODDIR"], "net").glob("*.ko"):
        to = KERNEL / "updates/greenlane" / ko.parent.name
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy(ko, to)
    must("depmod")
    must("make", "-s", "-C", str(TOP), "install-tools", "PREFIX=/usr")


def helper_here():
    """The kernel starts modprobe in init's mount namespace: make it run in this one, where we
    install."""
    here = f"/proc/{os.getpid()}"
    script = pathlib.Path("/run/gl-modprobe")
    script.write_text(f'#!/bin/sh\nexec nsenter --mount={here}/ns/mnt --root={here}/root '
                      '/sbin/modprobe "$@"\n', encoding="ascii")
    script.chmod(0o755)
    must("sysctl", "-qw", f"kernel.modprobe={here}/root{script}")


def hide(*names):
    """Hide modules from depmod, which would read them for minutes in a virtual machine."""
    for name in names:
        if (KERNEL / "kernel" / name).is_dir():
            must("mount", "-t", "tmpfs", "none", str(KERNEL / "kernel" / name))


hide("arch", "crypto", "drivers", "fs", "lib", "sound",
     *(f"net/{path.name}" for path in (KERNEL / "kernel/net").glob("*")
       if path.name not in ("core", "ipv4", "ipv6", "sched")))
if not (KERNEL / "modules.dep").exists():       # User-Mode Linux has none of its own
    KERNEL.mkdir(parents=True, exist_ok=True)
    must("depmod")
if os.readlink("/proc/self/ns/mnt") != os.readlink("/proc/1/ns/mnt"):
    helper_here()
before = files()


@case("without an installation, selecting TLT or color fails")
def absent():
    done = run("sysctl", "-w", "net.ipv4.tcp_congestion_control=tlt_dctcp")
    true("No such file" in done.stderr, done.stderr)
    done = run("tc", "qdisc", "add", "dev", "lo", "root", "color", "limit", "1m")
    true(done.returncode and "qdisc" in done.stderr, done.stderr)
    equal(loaded(), set(), "loaded")


@case("sysctl -w net.ipv4.tcp_congestion_control=NAME loads the modules of NAME")
def by_sysctl():
    install()
    for name, modules in (("tlt_reno", TLT), ("tlt_cubic", TLT), ("tlt_dctcp", TLT),
                          ("tlt_dcqcn", TLT), ("tlt_bbr", TLT), ("tlt_dart", TLT), ("tlt_hpcc", TLT),
                          ("aeolus_dctcp", TLT),
                          ("xpass", {"tcp_xpass", "rd_core"}),
                          ("aeolus_xpass", AEOLUS),
                          ("dcqcn", {"tcp_dcqcn"}), ("dart", {"tcp_dart", "tcp_dcqcn"}),
                          ("timely", {"tcp_timely"}), ("hpcc", {"tcp_hpcc"}),
                          ("ndp", {"tcp_ndp", "rd_core"}), ("homa", {"tcp_homa", "rd_core"}),
                          ("aeolus_homa", AEOLUS), ("aeolus_ndp", AEOLUS)):
        must("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={name}")
        equal(CONTROL.read_text(encoding="ascii").strip(), name, "tcp_congestion_control")
        layer = set() if name in ("dcqcn", "timely") else {"greenlane"}     # they mark no packets
        equal(loaded(), modules | layer | {"link_speed"}, f"modules loaded by {name}")
        for module in modules:
            version = pathlib.Path(f"/sys/module/{module}/version").read_text(encoding="ascii")
            equal(version, f"{VERSION}\n", f"version of {module}")
        unload()


@case("sysctl also loads the base, where that is a module")
def base():
    if not run("modinfo", "-F", "filename", "tcp_dctcp").stdout.startswith("/"):
        return      # built in, as in User-Mode Linux
    must("modprobe", "-r", "tcp_dctcp")
    must("sysctl", "-qw", "net.ipv4.tcp_congestion_control=tlt_dctcp")
    equal(CONTROL.read_text(encoding="ascii").strip(), "tlt_dctcp", "tcp_congestion_control")
    used = int(pathlib.Path("/sys/module/tcp_dctcp/refcnt").read_text(encoding="ascii"))
    true(used > 0, "tcp_dctcp is loaded, and used")
    unload()


@case("a base that is a module and cannot be loaded: the others are available without it")
def without_base():
    if not run("modinfo", "-F", "filename", "tcp_dctcp").stdout.startswith("/"):
        return      # built in: see tlt_module
    forbidden = pathlib.Path("/etc/modprobe.d/greenlane-test.conf")
    must("modprobe", "-r", "tcp_dctcp")
    forbidden.write_text("install tcp_dctcp /bin/false\n", encoding="ascii")
    must("sysctl", "-qw", "net.ipv4.tcp_congestion_control=tlt_cubic")
    there = must("sysctl", "-n", "net.ipv4.tcp_available_congestion_control").split()
    equal({name for name in there if name.startswith("tlt_")},
          {"tlt_reno", "tlt_cubic", "tlt_dcqcn", "tlt_bbr", "tlt_dart", "tlt_hpcc"},
          "available combinators")
    done = run("sysctl", "-w", "net.ipv4.tcp_congestion_control=tlt_dctcp")
    true("No such file" in done.stderr, done.stderr)
    forbidden.unlink()
    unload()


@case("setsockopt(TCP_CONGESTION) loads the modules, too")
def by_setsockopt():
    with socket.socket() as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"tlt_cubic")
        equal(loaded(), TLT | {"greenlane"}, "loaded modules")
        done = run("rmmod", "tcp_tlt")
        true(done.returncode and "in use" in done.stderr, f"rmmod with a socket: {done.stderr}")
        done = run("rmmod", "greenlane")
        true(done.returncode and "in use" in done.stderr,
             f"rmmod of the layer below: {done.stderr}")
    unload()
    equal(loaded(), set(), "loaded")


@case("a container with a user namespace loads no module, root in a network namespace does")
def by_container():
    command = ("sysctl", "-w", "net.ipv4.tcp_congestion_control=tlt_reno")
    container = ("unshare", "--net", "--user", "--map-root-user")
    done = run(*container, *command)
    true("No such file" in done.stderr, f"sysctl: {done.stderr}")
    done = run(*container, sys.executable, "-c",
               "import socket; socket.socket().setsockopt(6, 13, b'tlt_reno')")
    true("FileNotFoundError" in done.stderr, f"setsockopt: {done.stderr}")
    equal(loaded(), set(), "loaded by a container")
    must("unshare", "--net", *command)
    true("tcp_tlt" in loaded(), "root of the host loads it")
    time.sleep(2)       # the namespace is removed asynchronously
    unload()


@case("tc qdisc add ... color loads sch_color, and finds its plugin")
def by_tc():
    must("tc", "qdisc", "add", "dev", "lo", "root", "color", "rate", "1gbit", "limit", "1m",
         "red", "100k")
    equal(loaded(), {"link_speed", "sch_color"}, "loaded")
    shown = must("tc", "-s", "qdisc", "show", "dev", "lo")
    true("rate 1Gbit" in shown and "red 100" in shown, f"tc shows the options: {shown}")
    done = run("rmmod", "sch_color")
    true(done.returncode and "in use" in done.stderr, f"rmmod with a qdisc: {done.stderr}")
    must("tc", "qdisc", "del", "dev", "lo", "root")
    unload()


@case("the example for sysctl.d works with sysctl and systemd-sysctl, as at boot")
def at_boot():
    must("sysctl", "-q", "-p", str(TOP / "packaging/90-greenlane.conf"))
    equal(must("sysctl", "-n", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn").split(),
          ["tlt_dctcp", "1"], "sysctls")
    equal(loaded(), TLT | {"greenlane"}, "loaded")
    done = run("rmmod", "tcp_tlt")
    true(done.returncode and "in use" in done.stderr, f"rmmod of the default: {done.stderr}")
    unload()
    # systemd has its own rules.  The file is read from the tree as from /etc.
    systemd = "/lib/systemd/systemd-sysctl"
    if os.path.exists(systemd):
        must(systemd, str(TOP / "packaging/90-greenlane.conf"))
        equal(loaded(), TLT | {"greenlane"}, "modules loaded by systemd-sysctl")
        unload()


@case("an upgrade while the old modules are loaded: status reports both versions")
def other_version():
    must("sysctl", "-qw", "net.ipv4.tcp_congestion_control=tlt_cubic")
    status = [str(TOP / "scripts/greenlane"), "status"]
    true("! tcp_tlt: Version" not in run(*status).stdout,
         "status before the upgrade has no sentence")
    file = pathlib.Path(must("modinfo", "-n", "tcp_tlt").strip())
    old = file.read_bytes()

    def replace(data):
        # A new file: the loaded module must not change.
        file.with_suffix(".new").write_bytes(data)
        file.with_suffix(".new").rename(file)

    mark = f"\0version={VERSION}\0".encode()
    replace(old.replace(mark, mark.replace(b"=0.", b"=1.")))
    done = run(*status)
    said = " ".join(done.stdout.split())
    true(f"! tcp_tlt: Version {VERSION} is loaded, 1{VERSION[1:]} is installed." in said
         and "greenlane leave" in said and done.returncode == 1, f"status: {done.stdout}")
    unload()
    must("modprobe", "tcp_tlt")
    true("! tcp_tlt: Version" not in run(*status).stdout,
         "status after the new module is loaded has no sentence")
    unload()
    replace(old)


@case("each module has a version, and modprobe resolves its aliases")
def names():
    equal(must("modinfo", "-F", "version", *OURS).split(), [VERSION] * len(OURS), "versions")
    for alias in ("tcp_tlt_reno", "tcp_tlt_cubic", "tcp_tlt_dctcp", "tcp_tlt_dcqcn",
                  "tcp_tlt_bbr", "tcp_tlt_dart", "tcp_tlt_hpcc", "tcp_aeolus_reno",
                  "tcp_aeolus_cubic", "tcp_aeolus_dctcp"):
        equal(must("modprobe", "-R", alias).strip(), "tcp_tlt", alias)
    equal(set(must("modinfo", "-F", "depends", "tcp_tlt").strip().split(",")),
          {"greenlane", "link_speed"}, "tcp_tlt depends on")
    equal(set(must("modinfo", "-F", "depends", "tcp_dart").strip().split(",")),
          {"greenlane", "tcp_dcqcn"}, "tcp_dart depends on")
    # A port, DCQCN and TIMELY need no receivers.
    for name in ("tcp_dcqcn", "tcp_timely", "sch_color"):
        equal(must("modinfo", "-F", "depends", name).strip(), "link_speed", f"{name} depends on")
    equal(must("modinfo", "-F", "depends", "link_speed").strip(), "", "link_speed depends on")
    equal(set(must("modinfo", "-F", "depends", "rd_core").strip().split(",")),
          {"greenlane", "link_speed"}, "rd_core depends on")
    equal(set(must("modinfo", "-F", "depends", "tcp_xpass").strip().split(",")),
          {"greenlane", "rd_core"}, "tcp_xpass depends on")
    # Since 6.8 the kernel requests a qdisc by an alias.
    release = [int(n) for n in os.uname().release.split("-")[0].split(".")[:2]]
    alias = "sch_color" if release < [6, 8] else "net-sch-color"
    equal(must("modprobe", "-R", alias).strip(), "sch_color", alias)


# The kernel reverses neither mode before it boots again: after this case no module can be loaded.
@case("with Secure Boot: the messages of install.rst, and sysctl reports an unknown name")
def secure_boot():
    lockdown = pathlib.Path("/sys/kernel/security/lockdown")
    if not lockdown.exists():
        run("mount", "-t", "securityfs", "none", "/sys/kernel/security")
    enforce = pathlib.Path("/sys/module/module/parameters/sig_enforce")
    if not lockdown.exists() or not enforce.exists():
        raise tap.Skip("not in this kernel")
    unload()
    text = (TOP / "Documentation/install.rst").read_text(encoding="utf-8")
    block = re.search(r"The failure appears as::\n\n((?:\t.*\n)+)", text)[1]
    rejected, restricted, *logged = [row.strip() for row in block.splitlines()]
    must("dmesg", "-C")
    lockdown.write_text("integrity", encoding="ascii")
    equal(run("modprobe", "greenlane").stderr.strip(), restricted, "modprobe, lockdown")
    enforce.write_text("1", encoding="ascii")
    equal(run("modprobe", "greenlane").stderr.strip(), rejected, "modprobe, signatures enforced")
    log = must("dmesg")
    for row in logged:
        true(row.removeprefix("kernel: ") in log, f"{row}, in the log: {log}")
    done = run("sysctl", "-w", "net.ipv4.tcp_congestion_control=tlt_dctcp")
    true("No such file" in done.stderr, done.stderr)
    equal(loaded(), set(), "loaded")


@case("make uninstall removes all files, and selecting TLT or color fails again")
def uninstall():
    true(files() - before, "files are installed before")
    must("make", "-s", "-C", str(TOP), "uninstall", "PREFIX=/usr")
    equal(files() ^ before, set(), "files that differ from those before the installation")
    absent()


if __name__ == "__main__":
    tap.main()
