# SPDX-License-Identifier: GPL-2.0
"""The guest's half: joins, and their convergence times."""

from experiments.kinds.converge import joins
from experiments.traffic import incast

network = incast.Incast


def run(network, config, job):
    """A run of joins with one congestion control."""
    return incast.run(network, config, job, look=lambda packets, config: {
        "converged": joins.converged(packets, config), "rates": joins.rates(packets, config)})
