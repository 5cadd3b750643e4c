# SPDX-License-Identifier: GPL-2.0
"""Runs the benchmark modules and reads their report()."""

import pathlib
import re
import subprocess


def cycles(module, *params, pass_fds=()):
    """Load a module with these parameters; returns {measurement: (cycles of a packet in the fastest
    repetition, in the median one)}."""
    name = pathlib.Path(module).stem
    subprocess.run(["insmod", module, *params], pass_fds=pass_fds, check=True)
    subprocess.run(["rmmod", name], check=True)
    log = subprocess.run(["dmesg", "-c"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {what: (int(best) / 1000, int(median) / 1000) for what, best, median in re.findall(
        rf"{name}: (\S+) best (\d+) median (\d+) millicycles", log)}
