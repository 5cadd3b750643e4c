# SPDX-License-Identifier: GPL-2.0
"""Run a mininet script in a guest, in virtual time, with greenlane's modules loaded.

	scripts/mininet [--kernel V] SCRIPT [ARG...]

SCRIPT is a file of yours, or the name of an example (incast, first_rtt, deflect).  It needs
neither mininet nor a module on this machine: mininet is unpacked beside the guests' kernels,
and is in the script's PYTHONPATH, as greenlane's classes (experiments.mininet) are.  The guest
can read this machine's files but not change them: files that the script writes exist only in the
guest.
"""

import os
import pathlib
import subprocess
import sys

from experiments.apps import unpacked
from lab import TOP
from lab.net import modules

PACKAGES = ("mininet", "iputils-ping")
EXAMPLES = ("incast", "first_rtt", "deflect")
USAGE = "usage: scripts/mininet [--kernel V] SCRIPT [ARG...]"


def environment(apps):
    """The environment in which a script finds the unpacked mininet, its programs and greenlane's
    classes."""
    return dict(unpacked.environment(apps),
                PYTHONPATH=f"{apps}/usr/lib/python3/dist-packages:{TOP}/tools:{TOP}/tools/testing",
                PATH=f"{apps}/usr/bin:{apps}/bin:{os.environ['PATH']}")


def command(script, *args):
    """The command that runs a script in the environment of environment()."""
    words = ["-m", f"experiments.mininet.{script}"] if script in EXAMPLES else [script]
    return [sys.executable, *words, *args]


def _parse(words):
    """(kernel, script, its arguments) of a command line; exits after --help or an error."""
    kernel = "7.3"
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        sys.exit(0)
    if words[:1] == ["--kernel"] and len(words) > 1:
        kernel, words = words[1], words[2:]
    if not words or words[0].startswith("-"):
        sys.exit(USAGE)
    script, *args = words
    if script not in EXAMPLES:
        if not pathlib.Path(script).is_file():
            sys.exit(f"mininet: there is no script {script}, nor an example of that name"
                     f" ({', '.join(EXAMPLES)})")
        script = str(pathlib.Path(script).resolve())
    return kernel, script, args


def main():
    """On the host: start the guest.  In the guest: load the modules, run the script."""
    if "GL_APPS" in os.environ:
        modules.load_all()
        env = environment(pathlib.Path(os.environ["GL_APPS"]))
        done = subprocess.run(command(*sys.argv[1:]), env=env, check=False)
        sys.exit(done.returncode)
    kernel, script, args = _parse(sys.argv[1:])
    os.environ["GL_KERNEL"] = kernel
    unpacked.run_guest(PACKAGES, ["/usr/bin/python3", "-P", "-m", "experiments.apps.mininet", script,
                                  *args], slow=True)


if __name__ == "__main__":
    main()
