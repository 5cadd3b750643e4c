# SPDX-License-Identifier: GPL-2.0
"""The common library of greenlane's tests and experiments.

    net          namespaces, networks of hosts and switches, a switch port
    wire         a programmable wire between two hosts, packets, socket options
    traffic      flows and load generators
    measure      counters, captures, percentiles
    apps         the distribution's programs on the hosts of a network
    guest        User-Mode Linux in virtual time, virtual machines, runs shared among them
    experiments  scripts/experiment: a folder for each kind
    figures      scripts/figures: the papers' figures
    mininet      hosts, links and switches for mininet
    bench        scripts/bench: costs as ratios
    check        scripts/check: runs the tests
"""

import os
import pathlib

# The source tree: the one that the package is in, or, for an installed copy, $GL_TOP.
TOP = pathlib.Path(__file__).resolve().parents[3]
if not (TOP / "Kbuild").exists():
    TOP = pathlib.Path(os.environ.get("GL_TOP", "/nonexistent"))
