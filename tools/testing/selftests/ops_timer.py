#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane-export.timer: systemd starts the service, until the tools are removed.

	systemd --> greenlane-export.timer --> greenlane-export.service --> greenlane.prom

Units do not depend on the kernel, so this runs where time is virtual; install_export.py runs the
service's sandbox on each kernel.
"""
import os
import pathlib
import subprocess
import time

from lab import exporter
from lab.exporter import FILE, INSTALLED, NAMES
from lab.systemd import UNITS, Systemd
from lab.tap import case, equal, main, true, within


def next_export(after):
    """Wait for an export later than `after`; returns its time."""
    deadline = time.monotonic() + 90
    while not FILE.exists() or FILE.stat().st_mtime <= after:
        true(time.monotonic() < deadline, f"an export after {after}")
        time.sleep(1)
    return FILE.stat().st_mtime


@case("systemd finds no mistake in the units, and a small exposure")
def verified():
    exporter.install()
    done = subprocess.run(["systemd-analyze", "verify", *(INSTALLED / name for name in NAMES)],
                          capture_output=True, text=True, check=False)
    equal((done.returncode, [row for row in done.stderr.splitlines() if "greenlane" in row]),
          (0, []), "status, messages of systemd-analyze verify")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=40",
                           INSTALLED / NAMES[0]], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"an exposure above 4.0: {done.stdout[-300:]}")


@case("the timer is off after the installation; enabled, it exports every 15 s; uninstall stops it")
def timer():
    exporter.install()
    FILE.unlink(missing_ok=True)
    UNITS.mkdir(parents=True, exist_ok=True)
    with Systemd() as systemd:
        def state(verb):
            return systemd.run("systemctl", verb, "greenlane-export.timer").stdout.strip()

        equal((state("is-enabled"), state("is-active")), ("disabled", "inactive"), "the timer")
        done = systemd.run("systemctl", "enable", "--now", "greenlane-export.timer")
        equal(done.returncode, 0, f"systemctl enable: {done.stderr}")
        first = next_export(0)
        within(next_export(first) - first, 14, 22, "seconds until the next export")
        done = systemd.run("make", "-s", "-C", os.environ["GL_TOP"], "uninstall")
        equal(done.returncode, 0, f"make uninstall: {done.stderr}")
        equal(state("is-active"), "inactive", "the timer after uninstall")
    equal([name for name in NAMES if (INSTALLED / name).exists()
           or pathlib.Path("/etc/systemd/system/timers.target.wants", name).is_symlink()], [],
          "units after uninstall")


if __name__ == "__main__":
    main()
