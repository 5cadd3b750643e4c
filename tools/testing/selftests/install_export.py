#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane-export.timer: its service sees all in its sandbox, and systemd starts it.

	systemd --> greenlane-export.timer --> greenlane-export.service --> greenlane.prom

The guest's file system is its own: nothing is installed on the host.
"""
import os
import pathlib
import subprocess
import sys
import time

from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import CONNECTION
from lab.systemd import UNITS, Systemd
from lab.tap import case, equal, is_time_virtual, main, true, within

TOP = pathlib.Path(os.environ["GL_TOP"])
FILE = pathlib.Path("/var/lib/prometheus/node-exporter/greenlane.prom")
INSTALLED = pathlib.Path("/usr/local/lib/systemd/system")
NAMES = ("greenlane-export.service", "greenlane-export.timer")


def make(target):
    """make in the tree."""
    done = subprocess.run(["make", "-s", "-C", TOP, target], capture_output=True, text=True,
                          check=False)
    equal(done.returncode, 0, f"make {target}: {done.stderr}")


def installed():
    """Install the tools, if no other case has; where node_exporter is installed, its directory
    exists."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    os.chown(FILE.parent.parent, 65534, 65534)
    if not (INSTALLED / NAMES[0]).exists():
        make("install-tools")


@case("the sandbox of the service: ports, other namespaces, other users' connections")
def sandbox():
    installed()
    modules.load("tcp_tlt")
    modules.load("sch_color")
    ns = Namespace("tenant")
    ns.ip("link set lo up", "link add d0 type dummy", "link set d0 up")
    ns.tc("qdisc add dev d0 root color rate 1gbit")
    ns.sysctl("net.ipv4.tcp_congestion_control", "tlt_reno")
    with Systemd() as systemd:
        with subprocess.Popen(systemd.beside(
                "nsenter", "--net=/run/netns/tenant", "setpriv", "--reuid", "65534",
                "--clear-groups", sys.executable, "-c", CONNECTION), stdin=subprocess.PIPE,
                stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            done = systemd.run("systemctl", "start", "greenlane-export.service")
            state = systemd.run("systemctl", "status", "-l", "greenlane-export.service")
            process.stdin.close()
        equal((done.returncode, done.stderr), (0, ""), f"status, stderr of start; {state.stdout}")
    text = FILE.read_text(encoding="utf-8")
    for row in ("greenlane_up 1", 'greenlane_module_info{module="tcp_tlt",',
                'greenlane_connections{netns="tenant",transport="tlt_reno",role="server",'
                'peer="yes"} 1',
                'greenlane_port_packets_total{netns="tenant",device="d0",',
                "greenlane_unreadable_processes 0"):
        true(row in text, f"the export has {row}: {text}")
    # This systemd has a PID namespace of its own, which the look reports.
    true('where="this look"' not in text and "not-installed" not in text,
         f"the sandbox hides nothing: {text}")
    equal([path.name for path in FILE.parent.iterdir()], [FILE.name], "files")
    ns.remove()


def next_export(after):
    """Wait for an export later than `after`; returns its time."""
    deadline = time.monotonic() + 90
    while not FILE.exists() or FILE.stat().st_mtime <= after:
        true(time.monotonic() < deadline, f"an export after {after}")
        time.sleep(1)
    return FILE.stat().st_mtime


@case("systemd finds no mistake in the units, and a small exposure")
def verified():
    installed()
    done = subprocess.run(["systemd-analyze", "verify", *(INSTALLED / name for name in NAMES)],
                          capture_output=True, text=True, check=False)
    equal((done.returncode, [row for row in done.stderr.splitlines() if "greenlane" in row]),
          (0, []), "status, messages of systemd-analyze verify")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=40",
                           INSTALLED / NAMES[0]], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"an exposure above 4.0: {done.stdout[-300:]}")


@case("the timer is off after the installation; enabled, it exports every 15 s; uninstall stops it")
def timer():
    installed()
    FILE.unlink(missing_ok=True)
    UNITS.mkdir(parents=True, exist_ok=True)
    with Systemd() as systemd:
        def state(verb):
            return systemd.run("systemctl", verb, "greenlane-export.timer").stdout.strip()

        equal((state("is-enabled"), state("is-active")), ("disabled", "inactive"), "the timer")
        done = systemd.run("systemctl", "enable", "--now", "greenlane-export.timer")
        equal(done.returncode, 0, f"systemctl enable: {done.stderr}")
        first = next_export(0)
        later = next_export(first) - first
        if is_time_virtual():       # emulated processors need seconds for an export
            within(later, 14, 22, "seconds until the next export")
        done = systemd.run("make", "-s", "-C", TOP, "uninstall")
        equal(done.returncode, 0, f"make uninstall: {done.stderr}")
        equal(state("is-active"), "inactive", "the timer after uninstall")
    equal([name for name in NAMES if (INSTALLED / name).exists()
           or pathlib.Path("/etc/systemd/system/timers.target.wants", name).is_symlink()], [],
          "units after uninstall")


if __name__ == "__main__":
    main()
