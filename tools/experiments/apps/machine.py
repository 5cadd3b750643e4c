# SPDX-License-Identifier: GPL-2.0
"""A virtual machine of a lab: its addresses, greenlane, and an sshd.  Runs in a guest.

	python3 -m experiments.apps.machine DIRECTORY DEVICE=ADDRESS... [via ADDRESS]

DIRECTORY is that of a experiments.apps.login.Login.  `via` is the router of the traffic.
"""

import os
import subprocess
import sys

from experiments.apps import unpacked
from experiments.apps.login import sshd
from lab.net import modules
from lab.net.namespace import ACTIVE, write_sysctl


def main():
    """Set up, print a row, and become sshd."""
    here, *words = sys.argv[1:]
    subprocess.run(["modprobe", "virtio_net"], check=True)
    via = words.pop() if "via" in words else None
    for device, address in (word.split("=") for word in words if word != "via"):
        for command in (f"addr add {address} dev {device}", f"link set {device} up"):
            subprocess.run(["ip", *command.split()], check=True)
    if via:
        subprocess.run(["ip", "route", "add", "10.9.0.0/16", "via", via], check=True)
    write_sysctl("net.ipv4.ip_forward", 1)
    modules.load_all()
    write_sysctl(ACTIVE, 1)
    program, env = sshd(unpacked.in_guest("openssh-server"))
    print("ready", flush=True)
    os.execve(program, [program, "-D", "-e", "-f", f"{here}/sshd_config"], env)


if __name__ == "__main__":
    main()
