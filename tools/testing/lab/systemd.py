# SPDX-License-Identifier: GPL-2.0
"""systemd in a guest, in namespaces of its own: units run as on a host.

	this program --> unshare (pid, mount, cgroup) --> systemd --> units
"""
import contextlib
import os
import pathlib
import subprocess
import time

UNITS = pathlib.Path("/run/systemd/system")
# Without the units of the machine whose file system this is, which would clean /tmp, for example.
_PATH = f"{UNITS}:/etc/systemd/system:/usr/local/lib/systemd/system"
_TARGETS = ("guest", "sysinit", "basic", "timers", "shutdown")
_TARGET = "[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n"


def _child(pid):
    """The process that `unshare --fork` has started."""
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            number = int(entry.name)
            stat = pathlib.Path(entry.path, "stat").read_text(encoding="ascii", errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                return number
    return None


class Systemd:
    """A running systemd; run() executes a command beside it."""

    def __init__(self):
        UNITS.mkdir(parents=True, exist_ok=True)
        for name in _TARGETS:
            (UNITS / f"{name}.target").write_text(_TARGET, encoding="ascii")
        self._log = open("/run/systemd.log", "wb")  # closed with the process
        self._process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--cgroup",
             "/lib/systemd/systemd", "--unit=guest.target", "--log-target=console"],
            stdout=self._log, stderr=self._log, stdin=subprocess.DEVNULL,
            env=dict(os.environ, container="guest", SYSTEMD_UNIT_PATH=_PATH))

    def run(self, *command):
        """Run a command in systemd's pid and mount namespaces; returns the finished process."""
        return subprocess.run(self.beside(*command), capture_output=True, text=True, check=False)

    def beside(self, *command):
        """The command that runs this one there."""
        return ["nsenter", "-t", str(_child(self._process.pid)), "-p", "-m", "--", *command]

    def __enter__(self):
        for _ in range(60):
            if _child(self._process.pid) and not self.run("systemctl", "is-active",
                                                          "guest.target").returncode:
                return self
            time.sleep(1)
        self.__exit__()
        raise TimeoutError("systemd does not start: " + pathlib.Path("/run/systemd.log").read_text(
            encoding="utf-8", errors="replace")[-2000:])

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._log.close()
