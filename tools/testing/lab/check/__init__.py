# SPDX-License-Identifier: GPL-2.0
"""The runner of the tests (scripts/check)."""
import re


def complaints(log):
    """The rows of a build's output with a warning or an error about the tree, not about the
    distribution's headers and compiler."""
    return [row for row in log.splitlines()
            if re.search(r"warning:|^WARNING|error:|ERROR:", row)
            and "BTF" not in row and "compiler differs" not in row]
