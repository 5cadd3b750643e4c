# SPDX-License-Identifier: GPL-2.0
"""Experiments on real hosts, over ssh.

    inventory    lab.toml: the hosts, and the errors in it
    far          runs on a host, from ssh's stdin: it changes and restores
    session      an ssh connection to a host, and to all of them
    check        a table of the hosts, and their problems
    lab_hosts    the hosts during an experiment
    incast, load the traffic of scripts/experiment, on these hosts
    measure      all jobs of an experiment

The machine that runs scripts/experiment needs OpenSSH's client; the hosts need sshd and python3.
Nothing is installed on a host, and no file of the experiment is on it.
"""


class Refused(Exception):
    """The lab lacks something; the reasons have been printed."""
