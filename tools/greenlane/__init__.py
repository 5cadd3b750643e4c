# SPDX-License-Identifier: GPL-2.0
"""What greenlane(8) and greenlane-cgroup(8) share."""
import pathlib

# The tree's tools/, or /usr/lib/greenlane: what is not Python lies beside us.
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Refused(Exception):
    """It cannot be done; the message says why, in one line."""
