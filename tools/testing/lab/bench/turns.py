# SPDX-License-Identifier: GPL-2.0
"""What the benchmark modules (turns.h) say."""

import pathlib
import re
import subprocess


def cycles(module, *params, pass_fds=()):
    """{what: (cycles of a packet in the best turn, in the median turn)}"""
    name = pathlib.Path(module).stem
    subprocess.run(["insmod", module, *params], pass_fds=pass_fds, check=True)
    subprocess.run(["rmmod", name], check=True)
    log = subprocess.run(["dmesg", "-c"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {what: (int(best) / 1000, int(median) / 1000) for what, best, median in re.findall(
        rf"{name}: (\S+) best (\d+) median (\d+) millicycles", log)}
