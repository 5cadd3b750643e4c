# SPDX-License-Identifier: GPL-2.0
"""The host's root with a tmpfs over it, to test installations in.

	host's root, read only --+
	                         +--> overlay: the root of commands
	tmpfs, discarded --------+

changes() lists exactly the files that a command has changed.  Mounts and the
network are in namespaces of this process's own, which end with it.
"""
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

# Records of dpkg, apt and their triggers, and DKMS's own key: not in changes().
RECORDS = ("/var/lib/dpkg/", "/var/log/", "/var/cache/", "/var/lib/dkms/mok.", "/tmp/")


# Timeout of a command in real seconds; the slowest builds all modules, beside other work.
_HANGS = 3600


def isolate():
    """Execute this program again, in mount and network namespaces of its own."""
    if os.environ.get("GL_ISOLATED") != str(os.getppid()):
        os.environ["GL_ISOLATED"] = str(os.getpid())
        # unshare has our pid and forks: the isolated program's parent is GL_ISOLATED.
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private",
                              "--fork", sys.executable, *sys.argv])


def fingerprint(path):
    """A file's kind, mode and contents; None if there is no such file."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(status.st_mode):
        return "link", os.readlink(path)
    if stat.S_ISREG(status.st_mode):
        return "file", oct(status.st_mode), hashlib.sha256(path.read_bytes()).hexdigest()
    return "other", oct(status.st_mode)


class Overlay:
    """A root directory to run commands in; a context manager."""

    def __init__(self, release):
        """release: the output of `uname -r` in this root."""
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="greenlane-"))
        self.root = self.base / "root"
        self.upper = self.base / "upper"
        self._mount("-t", "tmpfs", "tmpfs", self.base)
        for name in ("root", "upper", "work"):
            (self.base / name).mkdir()
        self._mount("-t", "overlay", "overlay", "-o",
                    f"lowerdir=/,upperdir={self.upper},workdir={self.base / 'work'}", self.root)
        self._mount("-t", "proc", "proc", self.root / "proc")
        self._mount("--rbind", "/dev", self.root / "dev")
        uname = self.root / "usr/bin/uname"
        shutil.copy2(uname, f"{uname}.real")
        uname.unlink()
        self.write("/usr/bin/uname", "#!/bin/sh\n"
                   f'[ "$*" = -r ] && echo "{release}" || exec uname.real "$@"\n')
        uname.chmod(0o755)

    @staticmethod
    def _mount(*args):
        subprocess.run(["mount", *args], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--recursive", "--lazy", self.base], check=True)
        self.base.rmdir()

    def path(self, name):
        """The path at which this process finds a file of the overlay."""
        return self.root / name.lstrip("/")

    def write(self, name, text):
        """Write a file; make its directory if necessary."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *command, cwd="/", env=None):
        """Run a command; returns the finished process with its output."""
        return subprocess.run(
            ["chroot", self.root, "env", "-C", cwd, *command], check=False, text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=_HANGS,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                 "HOME": "/root", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive",
                 **(env or {})})

    def changes(self):
        """{path: its fingerprint now} of all files that differ from the host's."""
        found = {}
        for directory, names, files in os.walk(self.upper):
            here = "/" + os.path.relpath(directory, self.upper) + "/"
            here = here.replace("/./", "/")
            merged, lower = self.path(here), pathlib.Path(here)
            present = set(os.listdir(merged))
            before = set(os.listdir(lower)) if lower.is_dir() else set()
            for name in present.union(before).intersection([*names, *files, *(before - present)]):
                path = here + name
                if path.startswith(RECORDS):
                    continue
                now = fingerprint(merged / name)
                if now != fingerprint(lower / name):
                    found[path] = now
        return found
