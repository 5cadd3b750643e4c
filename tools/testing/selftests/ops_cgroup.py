#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane-cgroup: TLT for the sockets of one cgroup, and for no others.

	cgroup web: sockets ---- wire ---- sockets        this process makes them,
	     no cgroup: sockets ---- wire ---- sockets    inside and outside of a cgroup
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys

from lab import TOP
from lab.codepoints import CONTROL, IMPORTANT
from lab.net import modules
from lab.net.namespace import ACTIVE
from lab.tap import case, equal, main, need_tree, true
from lab.transports import BY_MARKS
from lab.wire.packet import ACK, CWR, ECE, SYN
from lab.wire.sockopt import NO, YES, cc_of, info
from lab.wire.wire import Wire

TOOL = f"{TOP}/scripts/greenlane-cgroup"
MOUNT = "/sys/fs/cgroup"
BPFFS = "/sys/fs/bpf"
PINS = f"{BPFFS}/greenlane"


def tool(*words):
    """(exit status, stdout, stderr) of greenlane-cgroup."""
    done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    """Run greenlane-cgroup; returns its stdout, checks status 0 and an empty stderr."""
    status, out, err = tool(*words)
    equal((status, err), (0, ""), f"greenlane-cgroup {' '.join(words)}")
    return out


def refused(*words):
    """Run greenlane-cgroup; returns its stderr, checks status 2 and one line of text."""
    status, out, err = tool(*words)
    equal((status, out), (2, ""), f"greenlane-cgroup {' '.join(words)}: {err}")
    equal(err.count("\n"), 1, f"lines of text in {err!r}")
    return err


def move(cgroup):
    """Move this process into a cgroup."""
    with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


@contextlib.contextmanager
def inside(cgroup):
    """Be in a cgroup for the block: a socket belongs to the cgroup of its creator."""
    move(cgroup)
    try:
        yield
    finally:
        move(MOUNT)


@contextlib.contextmanager
def cgroup_of(name):
    """A fresh cgroup."""
    modules.load("tcp_tlt")
    path = f"{MOUNT}/{name}"
    os.makedirs(path)
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(path)


@contextlib.contextmanager
def active_wire(**options):
    """A wire between namespaces without processes of the cgroup."""
    with Wire(cc="cubic", **options) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(ACTIVE, 1)
        yield wire


def handshake(wire, port=1000):
    """(flags without ECN's, DSCP, code of the option) of the port's first three packets."""
    seen = [p for p in wire.seen if port in (p.sport, p.dport)]
    return [(p.flags & (SYN | ACK), p.kind, p.says) for p in seen[:3]]


MARKED = [(SYN, IMPORTANT, IMPORTANT), (SYN | ACK, IMPORTANT, IMPORTANT), (ACK, CONTROL, None)]
PLAIN = [(SYN, 0, None), (SYN | ACK, 0, None), (ACK, 0, None)]


@case("sockets in the cgroup run TLT at both ends, from the SYN on; others do not",
      version=(4, 6), cc=("tlt_reno", "tlt_cubic", "tlt_dctcp", "tlt_dcqcn", "tlt_hpcc",
                          "aeolus_dctcp"))
def inside_and_outside(version, cc):
    with cgroup_of("web") as web, active_wire(version=version) as wire:
        good("attach", web, "--cc", cc)
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 0)    # dctcp requests ECN itself
        with inside(web):
            client, server = wire.connect(cc="reno")    # which the cgroup overrides
        if cc != "tlt_hpcc":        # its option has another code
            equal(handshake(wire), MARKED, f"{cc}: handshake")
        equal((cc_of(client), cc_of(server)), (cc, cc), "congestion controls")
        equal(tuple(info(s)["peer"] for s in (client, server)), (YES, YES), "peers")
        true(wire.transfer(client, server, 50_000), "arrives")
        true(wire.transfer(server, client, 50_000), "arrives back")
        for ns in (wire.a, wire.b):
            equal(ns.greenlane()["Unsupported"], 0, "Unsupported")
            # One in 96 packets of tlt_dcqcn is important, and the last one of a message.
            seen = ("ImportantSent",) if cc == "tlt_dcqcn" else ("EchoReceived", "ClockEchoReceived")
            true(sum(ns.greenlane()[name] for name in seen), f"{' + '.join(seen)}: more than 0")
        equal(bool(wire.seen[0].flags & ECE), cc.endswith(BY_MARKS), "the SYN requests ECN")
        wire.mark()
        other, accepted = wire.connect(port=1001)
        equal(handshake(wire, 1001), PLAIN, "handshake outside")
        equal((cc_of(other), cc_of(accepted)), ("cubic", "cubic"), "congestion controls outside")
        good("detach", web)


@case("attach makes the namespaces of the cgroup's processes active, from the first connection on")
def activates():
    with cgroup_of("web") as web:
        code = f"open('{web}/cgroup.procs', 'w').write('0'); print(flush=True); input()"
        with subprocess.Popen(["unshare", "-n", sys.executable, "-c", code], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            seen = ["nsenter", "-t", str(process.pid), "-n", "sysctl", "-n", ACTIVE]
            equal(subprocess.check_output(seen, text=True), "0\n", "active before")
            good("attach", web)
            equal(subprocess.check_output(seen, text=True), "1\n", "active")
            process.communicate("\n")
        good("detach", web)


@case("sockets in a child cgroup run TLT, too; those in sibling cgroups do not")
def below():
    with cgroup_of("web") as web, cgroup_of("web/child") as child, \
         cgroup_of("mail") as mail, active_wire() as wire:
        good("attach", web)
        with inside(child):
            equal(cc_of(wire.connect()[0]), "tlt_dctcp", "congestion control in the child cgroup")
        with inside(mail):
            equal(cc_of(wire.connect(port=1001)[0]), "cubic",
                  "congestion control in the sibling cgroup")
        good("detach", web)


@case("attach and detach change existing listeners")
def listeners():
    with cgroup_of("web") as web, active_wire() as wire:
        with inside(web):
            before = wire.listen(1000)
            true("1 listening socket changed" in good("attach", "web"), "the output counts one")
            equal(cc_of(before), "tlt_dctcp", "congestion control of the existing listener")
            after = wire.listen(1001)
            equal(cc_of(after), "tlt_dctcp", "congestion control of a new listener")
            client, server = wire.connect(1000, listener=before)
            equal(tuple(info(s)["peer"] for s in (client, server)), (YES, YES), "peers")
            true("2 listening sockets changed" in good("detach", "web"), "the output counts two")
            equal((cc_of(before), cc_of(after)), ("cubic", "cubic"),
                  "congestion controls of the listeners after detach")
            for port, listener in ((1000, before), (1001, after)):
                wire.mark()
                client = wire.connect(port, cc="tlt_cubic", listener=listener)[0]
                equal(handshake(wire, port), [MARKED[0], *PLAIN[1:]], "handshake after detach")
                equal(info(client)["peer"], NO, "peer after detach")


@case("after detach new connections run cubic, old ones continue")
def after_detach():
    with cgroup_of("web") as web, active_wire() as wire:
        with inside(web):
            good("attach", web)
            client, server = wire.connect()
            good("detach", web)
            wire.mark()
            new, accepted = wire.connect(port=1001)
        equal(handshake(wire, 1001), PLAIN, "handshake of the new connection")
        equal((cc_of(new), cc_of(accepted)), ("cubic", "cubic"),
              "congestion controls of the new connection")
        wire.mark()
        true(wire.transfer(client, server, 50_000), "arrives")
        equal(cc_of(client), "tlt_dctcp", "congestion control of the old connection")
        true(any(p.kind == IMPORTANT for p in wire.from_a()), "the old connection marks packets")
        equal(os.path.exists(PINS), False, "pins are left")
        equal(good("status"), "no cgroup has a congestion control of greenlane's\n", "status")


@case("a connection whose other end has no cgroup runs the base")
def one_end():
    with cgroup_of("web") as web, active_wire() as wire:
        good("attach", web, "--cc", "tlt_cubic")
        listener = wire.listen()
        with inside(web):
            client, server = wire.connect(listener=listener)
        true(wire.transfer(client, server, 20_000), "arrives")
        equal(info(client)["peer"], NO, "peer")
        equal({p.kind for p in wire.from_a() if p.len}, {0}, "DSCP of data")
        good("detach", web)


@case("status lists the cgroups; a second attach has no effect, or is refused")
def twice():
    with cgroup_of("web") as web, cgroup_of("mail") as mail:
        good("attach", web)
        true("already" in good("attach", web), "the output of a second attach")
        good("attach", mail, "--cc", "tlt_cubic")
        equal(sorted(good("status").splitlines()),
              [f"{mail}: tlt_cubic, 0 processes", f"{web}: tlt_dctcp, 0 processes"], "status")
        true("detach it first" in refused("attach", web, "--cc", "tlt_reno"),
             "the remedy in stderr")
        shown = json.loads(subprocess.run(["bpftool", "-j", "cgroup", "show", web], check=True,
                                          capture_output=True).stdout)
        equal(len(shown), 1, "programs")
        good("detach", web)
        equal(os.listdir(PINS), ["tlt_cubic"], "pins")
        good("detach", mail)
        true("no congestion control of greenlane's" in refused("detach", mail),
             "the reason in stderr")


@case("units that start at once: each has the program, and detach removes it")
def at_once():
    slow = "/run/slow"      # it sleeps between the look for a program and the program's pin
    os.makedirs(slow)
    with open(f"{slow}/bpftool", "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\ncase "$*" in *"map update"*) sleep 1;; esac\n'
                f'exec {shutil.which("bpftool")} "$@"\n')
    os.chmod(f"{slow}/bpftool", 0o755)
    with cgroup_of("web") as web, cgroup_of("mail") as mail:
        runs = [subprocess.Popen([sys.executable, TOOL, "attach", path], stdout=subprocess.DEVNULL,
                                 env={**os.environ, "PATH": f"{slow}:{os.environ['PATH']}"})
                for path in (web, mail)]
        equal([run.wait() for run in runs], [0, 0], "exit statuses")
        equal(sorted(good("status").splitlines()),
              [f"{path}: tlt_dctcp, 0 processes" for path in (mail, web)], "status")
        good("detach", web)
        good("detach", mail)


# A program of another user, which requests ECN.
OTHER = r"""
#include <linux/bpf.h>
__attribute__((section("sockops"), used)) int NAME(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_NEEDS_ECN)
		ops->reply = ops->is_fullsock;	/* the SYN's, not the SYN-ACK's */
	return 1;
}
char _license[] __attribute__((section("license"), used)) = "GPL";
"""


def attach_other(cgroup, pin="/sys/fs/bpf/other", name="other"):
    """Attach the other program; returns its pin."""
    with open("/run/other.bpf.c", "w", encoding="ascii") as f:
        f.write(OTHER.replace("NAME", name))
    subprocess.run(["make", "-s", "-C", "/run", "-f", f"{TOP}/tools/bpf/Makefile",
                    "other.bpf.o"], check=True)
    subprocess.run(["bpftool", "prog", "load", "/run/other.bpf.o", pin], check=True,
                   capture_output=True)
    subprocess.run(["bpftool", "cgroup", "attach", cgroup, "sock_ops", "pinned", pin, "multi"],
                   check=True)
    return pin


@case("another program of the same kind still works, attached before or after")
def others():
    for first in (True, False):
        with cgroup_of("web") as web, active_wire() as wire:
            if first:
                good("attach", web, "--cc", "tlt_cubic")
            pin = attach_other(web)
            if not first:
                good("attach", web, "--cc", "tlt_cubic")
            with inside(web):
                client = wire.connect()[0]
                equal(cc_of(client), "tlt_cubic", "congestion control, by our program")
                true(wire.seen[0].flags & (ECE | CWR), "the other program requests ECN")
                good("detach", web)
                wire.mark()
                client = wire.connect(port=1001)[0]
            equal(cc_of(client), "cubic", "congestion control after our detach")
            true(wire.seen[0].flags & (ECE | CWR),
                 "the other program requests ECN after our detach")
            os.unlink(pin)


@case("a cgroup is removed while attached: status reports it, the next command cleans up")
def goes():
    with cgroup_of("web") as web:
        good("attach", web)
        os.rmdir(web)
        equal(good("status"), "tlt_dctcp: loaded, but its cgroups were removed; the next attach or"
              " detach unloads it\n", "status")
        refused("detach", web)
        equal(os.path.exists(PINS), False, "pins are left")
        with cgroup_of("again") as again:
            good("attach", again)
            os.rmdir(again)
        with cgroup_of("third") as third:
            good("attach", third, "--cc", "tlt_cubic")
            good("detach", third)
        equal(os.path.exists(PINS), False, "pins are left")


# --- files that other users can create beforehand

USER = 1000


def as_user(function, *words):
    """Call a function as another user."""
    pid = os.fork()
    if not pid:
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        function(*words)
        os._exit(0)
    equal(os.waitpid(pid, 0)[1], 0, f"{function.__name__}{words} as another user")


@contextlib.contextmanager
def fresh_bpffs(options="mode=1777"):
    """A fresh bpffs, by default one in which every user may write; or no bpffs."""
    while os.path.ismount(BPFFS):
        subprocess.run(["umount", BPFFS], check=True)
    if options:
        subprocess.run(["mount", "-t", "bpf", "-o", options, "bpf", BPFFS], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", BPFFS], check=False)


def refused_all(web, why):
    """Check that each command is refused with the reason."""
    for words in (("attach", web), ("detach", web), ("status",)):
        true(why in refused(*words), f"{words}: stderr contains {why}")


@case("only root may write to the bpffs that is mounted, and to the pins")
def own_bpffs():
    with fresh_bpffs(options=None), cgroup_of("web") as web:
        old = os.umask(0)
        try:
            good("attach", web)
        finally:
            os.umask(old)
        for path in (BPFFS, PINS):
            equal(os.lstat(path).st_mode & 0o777, 0o700, f"mode of {path}")
        good("detach", web)


@case("another user's directory in place of the pins' is refused and not used")
def users_directory():
    with fresh_bpffs(), cgroup_of("web") as web:
        as_user(os.mkdir, PINS)
        refused_all(web, "not root's own directory")
        os.chown(PINS, 0, 0)
        os.chmod(PINS, 0o777)
        refused_all(web, "not root's own directory")
        equal(os.listdir(PINS), [], "pins")


@case("another user's symbolic link in place of the pins' directory is refused")
def users_link():
    with fresh_bpffs(), cgroup_of("web") as web:
        os.mkdir(f"{BPFFS}/elsewhere")
        as_user(os.symlink, f"{BPFFS}/elsewhere", PINS)
        refused_all(web, "not root's own directory")
        equal(os.listdir(f"{BPFFS}/elsewhere"), [], "pins behind the link")


@case("a pin of another program is refused, and that program stays unchanged")
def foreign_pin():
    with fresh_bpffs("mode=0700"), cgroup_of("web") as web, cgroup_of("mail") as mail:
        os.mkdir(PINS)
        pin = attach_other(mail, pin=f"{PINS}/tlt_cubic")
        true("not greenlane's program" in refused("attach", web, "--cc", "tlt_cubic"),
             "the reason in stderr")
        equal(os.path.exists(pin), True, "the pin exists")
        os.unlink(pin)


@case("a program of another version is not used for another cgroup, and its map is kept")
def other_version():
    with fresh_bpffs("mode=0700"), cgroup_of("web") as web, cgroup_of("mail") as mail:
        os.mkdir(PINS)
        attach_other(mail, pin=f"{PINS}/tlt_cubic", name="greenlane")
        true("another version" in refused("attach", web, "--cc", "tlt_cubic"),
             "the reason in stderr")
        equal(good("status"), f"{mail}: tlt_cubic, 0 processes\n", "status")
        good("detach", mail)
        equal(os.path.exists(PINS), False, "pins are left")


@case("a unit's name never selects a cgroup of another user; its path does")
def users_unit():
    with fresh_bpffs("mode=0700"), cgroup_of("user.slice"), \
         cgroup_of("user.slice/redis.service") as users, cgroup_of("system.slice"), \
         cgroup_of("user.slice/below"), cgroup_of("user.slice/below/mail.service"):
        os.chown(users, USER, USER)
        os.chown(f"{MOUNT}/user.slice/below", USER, USER)
        for name in ("redis.service", "mail.service"):
            true("that of another user needs its path" in refused("attach", name), name)
        with cgroup_of("system.slice/redis.service") as systems:
            good("attach", "redis.service")
            equal(good("status"), f"{systems}: tlt_dctcp, 0 processes\n", "status")
            good("detach", "redis.service")
        good("attach", users)
        good("detach", users)


@case("an escape sequence in a cgroup's name is not sent to the terminal")
def escapes():
    with fresh_bpffs("mode=0700"), cgroup_of("w\x1b[2Jb") as web:
        for said in (good("attach", web), good("status"), good("detach", web),
                     refused("detach", web), refused("attach", "\x1b[2J")):
            equal("\x1b" in said, False, f"an escape in {said!r}")
            equal(said.count("\n"), 1, f"lines of text in {said!r}")


@case("mistakes are refused with one line of text and status 2, without effect")
def mistakes():
    with fresh_bpffs("mode=0700"), cgroup_of("web") as web, cgroup_of("a") as a, \
         cgroup_of("a/web"):
        for words in ((), ("attach",), ("attach", "/etc"), ("attach", "/sys/fs/cgroup/none"),
                      ("attach", "none.service"), ("attach", web, "--cc", "tlt_none"),
                      ("attach", web, "--cc", "tlt_/../x"),
                      ("attach", web, "--cc", "cubic"), ("attach", web, "--cc", "tlt_dart"), ("detach", "/tmp"), ("frobnicate",)):
            refused(*words)
        true("is not one cgroup but 2" in refused("attach", "web"), "stderr with an ambiguous name")
        del a
        bpftool = shutil.which("bpftool")
        subprocess.run(["mount", "--bind", "/dev/null", bpftool], check=True)
        true("no bpftool" in refused("attach", web), "stderr without bpftool")
        subprocess.run(["umount", bpftool], check=True)
        code = f"umount {MOUNT}; exec {sys.executable} {TOOL} attach {web}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", code], capture_output=True,
                              text=True, check=False)
        equal((done.returncode, done.stderr),
              (2, "greenlane-cgroup: no cgroup2 is mounted (usually at /sys/fs/cgroup)\n"),
              "status and stderr without cgroup2")
        equal(os.path.exists(PINS), False, "pins are left")


def prepare():
    """Build the program."""
    subprocess.run(["make", "-s", "-C", need_tree("tools/bpf")], check=True)


if __name__ == "__main__":
    main(prepare)
