#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""iperf3, Redis and NGINX, as the distribution has them, over the credit transports:
tools/testing/apps/credits.py, in a guest.
"""
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]


def main():
    """Fetch them and go; the guest's TAP is ours."""
    apps = subprocess.run([TOP / "scripts/apps"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()
    os.execv(TOP / "scripts/guest", [
        "guest", "--kernel", os.environ.get("GL_KERNEL", "7.3"),
        *["--debug"] * bool(os.environ.get("GL_DEBUG")), "--env", f"GL_APPS={apps}", "--",
        str(TOP / "tools/testing/apps/credits.py"), *sys.argv[1:]])


main()
