# SPDX-License-Identifier: GPL-2.0
"""The common library of greenlane's tests and experiments.

    net          namespaces, networks of hosts and switches, a switch port
    wire         a programmable wire between two hosts, packets, socket options
    measure      counters, captures, percentiles
    guest        User-Mode Linux in virtual time, virtual machines
    check        scripts/check: runs the tests

The package of the experiments (tools/experiments) imports this one, which does not import it.
"""

import os
import pathlib

# The source tree: the one that the package is in, or, for an installed copy, $GL_TOP.
TOP = pathlib.Path(__file__).resolve().parents[3]
if not (TOP / "Kbuild").exists():
    TOP = pathlib.Path(os.environ.get("GL_TOP", "/nonexistent"))

# The version of the tree and of its modules, without the commit; None in an installed copy.
VERSION = None
if (TOP / "VERSION").exists():
    VERSION = (TOP / "VERSION").read_text(encoding="ascii").split("GL_VERSION ?= ")[1].strip()
