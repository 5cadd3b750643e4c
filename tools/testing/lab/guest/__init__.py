# SPDX-License-Identifier: GPL-2.0
"""Guests: User-Mode Linux in virtual time, or a virtual machine."""


def kernel_options(machine, kernel, variant=None):
    """The options by which scripts/kernel, scripts/modules and scripts/guest select a kernel."""
    options = ["--machine", machine, "--kernel", kernel]
    if variant == "paper":
        return [*options, "--base", variant]
    return [*options, f"--{variant}"] if variant else options
