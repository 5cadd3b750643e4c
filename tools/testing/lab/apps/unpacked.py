# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution, unpacked and not installed (scripts/apps)."""

import os
import pathlib
import subprocess
import sys

from lab import TOP


def run_guest(packages, command, slow=False):
    """Unpack packages and become a guest that runs the command, with their directory in $GL_APPS.

    `slow`: it starts hundreds of processes, which takes long where ptrace traps system
    calls (6.1).
    """
    done = subprocess.run([TOP / "scripts/apps", *packages], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        sys.exit(1)     # and has said why
    kernel = os.environ.get("GL_KERNEL", "7.3")
    os.execv(TOP / "scripts/guest", [
        "guest", "--kernel", kernel, *["--debug"] * bool(os.environ.get("GL_DEBUG")),
        "--env", f"GL_APPS={done.stdout.strip()}",
        *["--timeout", "900"] * (slow and kernel == "6.1"), "--", *command])


def in_guest(*packages, slow=False):
    """The directory of the packages, in a guest.

    On the host, this does not return: the same program runs in a guest.
    """
    if "GL_APPS" in os.environ:
        return pathlib.Path(os.environ["GL_APPS"])
    return run_guest(packages, [str(pathlib.Path(sys.argv[0]).resolve()), *sys.argv[1:]], slow)


def libraries(apps):
    """The LD_LIBRARY_PATH of programs among them."""
    return ":".join(map(str, apps.glob("usr/lib/*-linux-gnu")))


def environment(apps):
    """What programs among them need, to find their libraries."""
    return dict(os.environ, LD_LIBRARY_PATH=libraries(apps))
