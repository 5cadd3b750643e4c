# SPDX-License-Identifier: GPL-2.0
"""greenlane-export.service and its timer, installed in a guest's own file system."""
import os
import pathlib
import subprocess

from lab.tap import equal

FILE = pathlib.Path("/var/lib/prometheus/node-exporter/greenlane.prom")
INSTALLED = pathlib.Path("/usr/local/lib/systemd/system")
NAMES = ("greenlane-export.service", "greenlane-export.timer")


def install():
    """Install the tools, if no other case has; where node_exporter is installed, its directory
    exists."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    os.chown(FILE.parent.parent, 65534, 65534)
    if (INSTALLED / NAMES[0]).exists():
        return
    done = subprocess.run(["make", "-s", "-C", os.environ["GL_TOP"], "install-tools"],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"make install-tools: {done.stderr}")
