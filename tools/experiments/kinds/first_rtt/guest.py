# SPDX-License-Identifier: GPL-2.0
"""The guest's half: bursts of messages, and the receiver's port in their first RTTs."""

from experiments.kinds.first_rtt.windows import first_rtt
from experiments.traffic import incast

network = incast.Incast


def run(network, config, job):
    """One congestion control, one number of senders."""
    return incast.run(network, config, job, look=lambda packets, config: {
        "first_rtt": first_rtt(packets, config)})
