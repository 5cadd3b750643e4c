# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution, unpacked but not installed (scripts/apps)."""

import os
import pathlib
import subprocess
import sys

from lab import TOP


def run_guest(packages, command, slow=False):
    """Unpack packages, and replace this process by a guest that runs the command.  $GL_APPS is the
    packages' directory.

    `slow`: the command starts hundreds of processes, which takes minutes of a processor, and longer
    where ptrace traps system calls (6.1).
    """
    done = subprocess.run([TOP / "scripts/apps", *packages], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        sys.exit(1)     # scripts/apps has printed the reason
    kernel = os.environ.get("GL_KERNEL", "7.3")
    os.execv(TOP / "scripts/guest", [
        "guest", "--kernel", kernel, *["--debug"] * bool(os.environ.get("GL_DEBUG")),
        "--env", f"GL_APPS={done.stdout.strip()}",
        *["--timeout", "900"] * slow, "--", *command])


def in_guest(*packages, slow=False):
    """The directory of the packages, in a guest.

    On the host, this does not return: the same program runs in a guest.
    """
    if "GL_APPS" in os.environ:
        return pathlib.Path(os.environ["GL_APPS"])
    return run_guest(packages, [str(pathlib.Path(sys.argv[0]).resolve()), *sys.argv[1:]], slow)


def libraries(apps):
    """The LD_LIBRARY_PATH of programs of the packages."""
    return ":".join(map(str, apps.glob("usr/lib/*-linux-gnu")))


def environment(apps):
    """The environment in which programs of the packages find their libraries."""
    return dict(os.environ, LD_LIBRARY_PATH=libraries(apps))
