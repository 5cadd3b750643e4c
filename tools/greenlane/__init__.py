# SPDX-License-Identifier: GPL-2.0
"""Shared by greenlane(8) and greenlane-cgroup(8)."""
import pathlib

# The tree's tools/, or /usr/lib/greenlane: files that are not Python lie beside this package.
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Refused(Exception):
    """The command fails; the message has the reason, in one line."""
