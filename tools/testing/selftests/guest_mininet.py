#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""mininet, as the distribution has it, with our qdiscs and congestion controls:
tools/testing/mininet/check.py, in a guest.
"""
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]


def main():
    """Fetch it and go; the guest's TAP is ours."""
    apps = subprocess.run([TOP / "scripts/apps", "mininet", "iputils-ping"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    os.execv(TOP / "scripts/guest", [
        "guest", "--kernel", os.environ.get("GL_KERNEL", "7.3"),
        *["--debug"] * bool(os.environ.get("GL_DEBUG")), "--env", f"GL_APPS={apps}",
        # mininet starts hundreds of processes, which is slow where ptrace traps their calls
        *["--timeout", "900"] * (os.environ.get("GL_KERNEL") == "6.1"), "--",
        str(TOP / "tools/testing/mininet/check.py"), *sys.argv[1:]])


main()
