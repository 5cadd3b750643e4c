# SPDX-License-Identifier: GPL-2.0
"""Logins by ssh: keys, an sshd that is unpacked and not installed, because its package starts it."""

import json
import os
import pathlib
import pwd
import subprocess

from experiments.apps import unpacked
from lab import TOP

_SSHD = """\
HostKey {here}/host
AuthorizedKeysFile {here}/user.pub
StrictModes no
PasswordAuthentication no
UsePAM no
PidFile none
PermitRootLogin yes
SetEnv TMPDIR={here}/tmp TC_LIB_DIR={tc} PATH={here}/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
_SSH = """\
Host *
    User root
    IdentityFile {here}/user
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""


class Login:
    """A directory with the configurations of ssh (ssh_config) and sshd (sshd_config), their keys,
    and the program `greenlane` for its sessions."""

    def __init__(self, here, ssh):
        """ssh: lines of ssh_config after the common ones; {here} is the directory."""
        self.here = pathlib.Path(here)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.here / name],
                           check=True)
        for name, text in (("sshd_config", _SSHD), ("ssh_config", _SSH + ssh)):
            (self.here / name).write_text(text.format(here=here, tc=TOP / "tools/tc"))
        for name in ("bin", "tmp"):
            (self.here / name).mkdir()
        (self.here / "bin/greenlane").symlink_to(TOP / "scripts/greenlane")

    def host(self, ssh, role, **keys):
        """A host of lab.toml (inventory.py); keys: strings or lists."""
        rows = {"ssh": ssh, "options": ["-F", f"{self.here}/ssh_config"], "role": role, **keys}
        # JSON's strings and lists of strings are TOML's.
        return "\n[[host]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())


def sshd(apps):
    """(program, environment) of sshd, with the directory and the user that it needs, in a guest."""
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    if "sshd" not in {user.pw_name for user in pwd.getpwall()}:
        with open("/etc/passwd", "a", encoding="ascii") as file:
            file.write("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
    return apps / "usr/sbin/sshd", unpacked.environment(apps)
