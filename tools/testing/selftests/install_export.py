#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane-export.service: in its sandbox the export reads all that it reads as root.

	systemd --> greenlane-export.service --> greenlane.prom

ops_timer.py has the timer.  The file system belongs to the guest, which installs the tools there.
"""
import subprocess
import sys

from lab import exporter
from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import CONNECTION
from lab.systemd import Systemd
from lab.tap import case, equal, main, true


@case("the sandbox of the service: ports, other namespaces, other users' connections")
def sandbox():
    exporter.install()
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
    text = exporter.FILE.read_text(encoding="utf-8")
    for row in ("greenlane_up 1", 'greenlane_module_info{module="tcp_tlt",',
                'greenlane_connections{netns="tenant",transport="tlt_reno",role="server",'
                'peer="yes"} 1',
                'greenlane_port_packets_total{netns="tenant",device="d0",',
                "greenlane_unreadable_processes 0"):
        true(row in text, f"the export has {row}: {text}")
    # This systemd has a PID namespace of its own, which the look reports.
    true('where="this look"' not in text and "not-installed" not in text,
         f"the sandbox hides nothing: {text}")
    equal([path.name for path in exporter.FILE.parent.iterdir()], [exporter.FILE.name], "files")
    ns.remove()


if __name__ == "__main__":
    main()
