# SPDX-License-Identifier: GPL-2.0
"""The set-up of each host of a network for a congestion control: sysctls, the rate of its link among
them, and its NIC."""

import os
import sys

from lab import units
from lab.net.port import nic
from lab.transports import MBIT

_before = {}    # {setting of net.ipv4 that a run has changed: its value before the first run}


def _exists(name):
    return os.path.exists("/proc/sys/" + name.replace(".", "/"))


def _ecn(cc):
    """The value of net.ipv4.tcp_ecn for a congestion control: in a mix it is 0, because each socket
    whose congestion control needs ECN requests it itself, and no other socket uses it."""
    return int("dctcp" in cc and len(units.ccs(cc)) == 1)


def values_for(config, cc, *settings):
    """{NAME: value} of net.ipv4 that hosts have for CC[:NAME=VALUE]..., if their kernel has NAME;
    and the NAMEs that it must have."""
    values = {"tcp_ecn": _ecn(cc),
              "greenlane_ecn": int(config.get("greenlane_ecn", False))}
    values.update((name, config["rate"] // 10**6) for name in MBIT)
    given = dict(setting.split("=") for setting in (*cc.split(":")[1:], *settings))
    return {**values, **given}, [*given]


def settle(network, config, cc, *settings):
    """Set the hosts up for CC[:NAME=VALUE]...; settings of the previous run are restored first."""
    values, needed = values_for(config, cc, *settings)
    for name in needed:
        if not _exists(f"net.ipv4.{name}"):
            sys.exit(f"no setting net.ipv4.{name}")
    # A transport's settings exist if its module is loaded.
    values = {name: value for name, value in values.items() if _exists(f"net.ipv4.{name}")}
    first = network.ns[network.hosts[0]]
    for name in values.keys() - _before.keys():
        _before[name] = first.sysctl(f"net.ipv4.{name}")
    for host in network.hosts:
        for name, value in {**_before, **values}.items():
            network.ns[host].sysctl(f"net.ipv4.{name}", value)
    network.set_nics(nic(units.scheduled_first(cc)))


def deploy(network, cc, deployed, others):
    """Set the congestion control `cc` on the hosts with these numbers, and `others` on the rest."""
    for number, host in enumerate(network.hosts):
        mine = cc if number in deployed else others
        network.ns[host].sysctl("net.ipv4.tcp_congestion_control", mine)
        network.ns[host].sysctl("net.ipv4.tcp_ecn", _ecn(mine))
