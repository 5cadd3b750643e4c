# SPDX-License-Identifier: GPL-2.0
"""Run one command as root in a guest: User-Mode Linux in virtual time, or, with
--machine qemu, the distribution's kernel on two processors.

The guest has a read-only view of the host's file system, with the host's
programs and the tree; a tmpfs, discarded at the end, takes its writes.  Only
the directory $GL_OUT is shared.  The command's stdout and stderr are passed
through at once and unchanged; kernel messages are written to a log.  The exit
status is the command's, or 70 if the kernel reported a problem (oops, WARN,
lockdep, KASAN, kmemleak), died or did not finish in time.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from lab import TOP
from lab.guest import CACHE, health, kernel_options, limit, processor, qemu, uml


def parse_args():
    """The command line; all words after the first -- are the command."""
    parser = argparse.ArgumentParser(
        prog="guest", usage="guest [options] -- CMD...", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="uml", choices=["uml", "qemu"],
                        help="User-Mode Linux (default), or a virtual machine: real time, SMP")
    parser.add_argument("--kernel",
                        help="6.1, 6.12, 7.3 (default) or, --machine qemu's, stock")
    variant = parser.add_mutually_exclusive_group()
    for name, what in (("debug", "KASAN, lockdep, kmemleak, DEBUG_ATOMIC_SLEEP"),
                       ("kcsan", "data races (--machine qemu)"),
                       ("gcov", "coverage of the modules"),
                       ("smp", "several processors at the host's speed, in real time"),
                       ("smp-debug", "both: --smp and --debug")):
        variant.add_argument(f"--{name}", dest="variant", action="store_const",
                             const=name, help=what)
    parser.add_argument("--base", choices=["linux", "paper"], default="linux",
                        help="paper: 7.3 --fine with the TCP of the papers' baselines")
    parser.add_argument("--fine", action="store_true",
                        help="reading the clock takes 8 ns of virtual time, not 256 (7.3)")
    parser.add_argument("--cpus", type=int, default=2,
                        help="processors of a virtual machine, or with --smp (2)")
    parser.add_argument("--real-time", action="store_true",
                        help="the guest's clock is the host's")
    parser.add_argument("--timeout", type=float, default=None, metavar="S",
                        help="limit: seconds of processor time in virtual time, else of"
                        " real time (300; five times that for a variant)")
    parser.add_argument("--nic", action="append", default=[], metavar="NETDEV",
                        help="--machine qemu: a network card, with this -netdev of QEMU's")
    parser.add_argument("--secure-boot", action="store_true",
                        help="--machine qemu --kernel stock: UEFI firmware with Secure Boot")
    parser.add_argument("--mem", default="2G", help="the guest's memory (2G)")
    parser.add_argument("--env", action="append", default=[], metavar="K=V",
                        help="a variable of the command's environment")
    parser.add_argument("--log", type=pathlib.Path,
                        help="keep the kernel's log here")
    parser.add_argument("--bare", action="store_true",
                        help="without the kernel's own modules")
    parser.add_argument("--no-modules", action="store_true",
                        help="do not build the tree's modules")
    parser.add_argument("--built", nargs=2, type=pathlib.Path, metavar=("KERNEL", "MODULES"),
                        help="build nothing, use these directories")
    parser.add_argument("--no-seccomp", action="store_true",
                        help="trap system calls with ptrace: slower")
    parser.add_argument("command", nargs="+", metavar="CMD")
    args = parser.parse_args()
    if args.kernel is None:
        args.kernel = "stock" if args.machine == "qemu" and not args.variant else "7.3"
    if args.base == "paper":
        if args.variant:
            parser.error(f"--base paper: not with --{args.variant}")
        args.variant = "paper"
        args.fine = True
    args.smp = args.variant in ("smp", "smp-debug")
    args.debug = args.variant in ("debug", "smp-debug")
    args.real_time |= args.smp
    if args.fine and (args.kernel != "7.3" or args.machine != "uml" or args.real_time):
        parser.error("--fine: User-Mode Linux 7.3 in virtual time only")
    if args.nic and args.machine != "qemu":
        parser.error("--nic: --machine qemu only")
    if args.secure_boot and (args.machine, args.kernel) != ("qemu", "stock"):
        parser.error("--secure-boot: --machine qemu --kernel stock only")
    args.cache = CACHE
    return args


def built(script, *args):
    """Run a build script; returns the directory that it prints."""
    done = subprocess.run([TOP / "scripts" / script, *args],
                          stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(2)
    return pathlib.Path(done.stdout.decode().strip().splitlines()[-1])


def build_init():
    """Compile the guest's init, once per version of its source."""
    source = TOP / "tools/testing/lab/guest/init.c"
    version = hashlib.sha256(source.read_bytes()).hexdigest()[:10]
    binary = CACHE / f"init-{version}"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = CACHE / f"{binary.name}.{os.getpid()}"
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Wno-unused-result",
                        "-o", fresh, source], check=True)
        fresh.rename(binary)
    return binary


def build(args):
    """Build the kernel and, without --no-modules, the tree's modules and tc plugin."""
    which = kernel_options(args.machine, args.kernel, args.variant) + ["--bare"] * args.bare
    if args.no_modules:
        return built("kernel", *which), None
    moddir = built("modules", *which)
    subprocess.run(["flock", TOP / "tools/tc", "make", "-s", "-C", TOP / "tools/tc"],
                   stdout=2, check=False)
    return built("kernel", *which), moddir


class Stream:
    """A pipe from the guest, which a thread copies to a file descriptor.

    The guest's consoles do not wait for a slow reader, so the pipe is large and
    its thread only copies.  It is a FIFO, for processes that do not inherit it.
    """

    def __init__(self, to, path):
        self.path = path
        os.mkfifo(path)
        self.out = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.into = os.open(path, os.O_WRONLY)
        os.set_blocking(self.out, True)
        os.set_inheritable(self.into, True)
        fcntl.fcntl(self.into, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.to = to
        self.thread = threading.Thread(target=self._pump, daemon=True)
        self.thread.start()

    def _pump(self):
        broken = False
        while True:
            data = os.read(self.out, 1 << 16)
            if not data:
                return
            while data and not broken:
                try:
                    data = data[os.write(self.to, data):]
                except OSError:     # the reader closed its end: keep draining the pipe
                    broken = True

    def close(self):
        """Wait for the rest of the output; the guest has ended."""
        os.close(self.into)
        self.thread.join(10)


def write_orders(run, args, kdir, moddir, out):
    """Write the command, its directory and its environment into the run directory, for init."""
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root", "USER": "root", "LANG": "C.UTF-8", "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{TOP}/tools:{TOP}/tools/testing",
        "GL_TOP": str(TOP), "GL_OUT": str(out), "GL_KERNEL": args.kernel,
        "GL_MACHINE": args.machine, "GL_VARIANT": args.variant or "",
        "GL_DEBUG": "1" if args.debug else "",
        # A bare guest does not depend on another one's builds.
        "GL_KERNEL_MODULES": "" if args.bare else str(qemu.own_modules(kdir)),
        "GL_KERNEL_SOURCE": str((kdir / "source").resolve()),
        "GL_MODDIR": str(moddir or ""), "TC_LIB_DIR": str(TOP / "tools/tc"),
    }
    for pair in args.env:
        key, _, value = pair.partition("=")
        env[key] = value
    for name, strings in (("argv", args.command), ("cwd", [os.getcwd()]),
                          ("env", [f"{k}={v}" for k, v in env.items()])):
        (run / name).write_bytes(b"".join(os.fsencode(s) + b"\0" for s in strings))


def hold_signals():
    """Hold back the signals that end this program.

    Returns a function that restores the handlers and raises the signals received.
    """
    came = []
    before = {number: signal.signal(number, lambda number, _: came.append(number))
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def release():
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
    return release


def boot(command, streams, timeout, virtual):
    """Run the command that is the guest; None, or which limit it has exceeded."""
    # A signal inside of Popen() would leave a guest running that this program cannot kill.
    release_signals = hold_signals()
    guest = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command],
        stdin=subprocess.DEVNULL, stdout=streams[0].into, stderr=streams[0].into,
        pass_fds=[s.into for s in streams], start_new_session=True)
    try:
        release_signals()
        return limit.wait(guest, timeout, virtual)
    finally:
        try:
            os.killpg(guest.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        guest.wait()


def run_guest(args, kdir, moddir, run):
    """Boot, wait, clean up; returns (status, message, log)."""
    log = run / "kernel.log"
    out = pathlib.Path(os.environ.get("GL_OUT") or run / "out").absolute()
    out.mkdir(parents=True, exist_ok=True)
    write_orders(run, args, kdir, moddir, out)
    timeout = args.timeout or (1500 if args.variant else 300)
    logfd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    streams = [Stream(to, run / name) for to, name in (
        (logfd, "console"), (1, "stdout"), (2, "stderr"))]
    machine = uml if args.machine == "uml" else qemu
    command = machine.command(kdir, build_init(), run, out, args, streams)
    single = machine is uml and not args.smp
    try:
        with processor.reserve(args.cache) if single else contextlib.nullcontext([]) as pin:
            late = boot([*pin, *command], streams, timeout, virtual=single and not args.real_time)
    finally:
        for stream in streams:
            stream.close()
        os.close(logfd)
    return *health.verdict(run, log, late), log


def main():
    """Build the kernel and the modules, run the guest, report a failure."""
    args = parse_args()
    kdir, moddir = args.built or build(args)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    run = pathlib.Path(tempfile.mkdtemp(prefix="greenlane-"))
    keep = False
    try:
        status, message, log = run_guest(args, kdir, moddir, run)
        if args.log:
            shutil.copyfile(log, args.log)
            log = args.log
        if message:
            keep = not args.log
            print(f"guest: {message}\n(log: {log})", file=sys.stderr)
        return status
    except KeyboardInterrupt:
        return 130
    finally:
        if not keep:
            shutil.rmtree(run, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
