# SPDX-License-Identifier: GPL-2.0
"""Guests: User-Mode Linux in virtual time, or a virtual machine."""
import os
import pathlib

# The cache of scripts/lib.sh
CACHE = pathlib.Path(os.environ.get("GREENLANE_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "greenlane"))


def kernel_options(machine, kernel, variant=None):
    """The options by which scripts/kernel, scripts/modules and scripts/guest select a kernel."""
    options = ["--machine", machine, "--kernel", kernel]
    if variant == "paper":
        return [*options, "--base", variant]
    return [*options, f"--{variant}"] if variant else options
