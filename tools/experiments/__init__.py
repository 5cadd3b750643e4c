# SPDX-License-Identifier: GPL-2.0
"""The experiments, on the networks and guests of the tests' package (lab).

    kinds        scripts/experiment: a folder for each kind
    traffic      flows and load generators
    apps         the distribution's programs on the hosts of a network
    figures      scripts/figures: the papers' figures
    plot         colours and markers of the figures
    mininet      hosts, links and switches for mininet
    bench        scripts/bench: costs as ratios
    machines     real hosts, over ssh
    advise       thresholds of a switch port, and its configuration
    pool, jobs   distribute the runs of an experiment among guests, and execute them there
"""
