#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane-cgroup: TLT for one cgroup, and for nobody else.

	cgroup web: sockets ---- wire ---- sockets        this process makes them,
	     no cgroup: sockets ---- wire ---- sockets    now in a cgroup, now not
"""
import contextlib
import json
import os
import subprocess
import sys

from lab import TOP
from lab.codepoints import CONTROL, IMPORTANT
from lab.net import modules
from lab.net.namespace import ACTIVE
from lab.tap import case, equal, main, need_tree, true
from lab.wire.packet import ACK, CWR, ECE, SYN
from lab.wire.sockopt import NO, YES, cc_of, info
from lab.wire.wire import Wire

TOOL = f"{TOP}/scripts/greenlane-cgroup"
MOUNT = "/sys/fs/cgroup"
PINS = "/sys/fs/bpf/greenlane"


def tool(*words, env=None):
    """(exit status, stdout, stderr) of greenlane-cgroup."""
    done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True,
                          check=False, env=env)
    return done.returncode, done.stdout, done.stderr


def good(*words):
    """Its stdout; it must succeed and complain of nothing."""
    status, out, err = tool(*words)
    equal((status, err), (0, ""), f"greenlane-cgroup {' '.join(words)}")
    return out


def refused(*words, env=None):
    """Its complaint, which must be one line."""
    status, out, err = tool(*words, env=env)
    equal((status, out), (2, ""), f"greenlane-cgroup {' '.join(words)}: {err}")
    equal(err.count("\n"), 1, f"lines of {err!r}")
    return err


def move(cgroup):
    """This process into a cgroup."""
    with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


@contextlib.contextmanager
def inside(cgroup):
    """Be in a cgroup for a while: a socket belongs to that of who made it."""
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
    """A wire between namespaces that no process of the cgroup is in."""
    with Wire(cc="cubic", **options) as wire:
        for ns in (wire.a, wire.b):
            ns.sysctl(ACTIVE, 1)
        yield wire


def handshake(wire, port=1000):
    """(flags without ECN's, DSCP, what the option says) of the first three packets of that
    port."""
    seen = [p for p in wire.seen if port in (p.sport, p.dport)]
    return [(p.flags & (SYN | ACK), p.kind, p.says) for p in seen[:3]]


MARKED = [(SYN, IMPORTANT, IMPORTANT), (SYN | ACK, IMPORTANT, IMPORTANT), (ACK, CONTROL, None)]
PLAIN = [(SYN, 0, None), (SYN | ACK, 0, None), (ACK, 0, None)]


@case("in the cgroup both ends run it, from the SYN on; outside no socket does",
      version=(4, 6), cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"))
def inside_and_outside(version, cc):
    with cgroup_of("web") as web, active_wire(version=version) as wire:
        good("attach", web, "--cc", cc)
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_ecn", 0)    # dctcp asks for it itself
        with inside(web):
            client, server = wire.connect(cc="reno")    # which the cgroup overrides
        equal(handshake(wire), MARKED, f"{cc}: handshake")
        equal((cc_of(client), cc_of(server)), (cc, cc), "congestion controls")
        equal(tuple(info(s)["peer"] for s in (client, server)), (YES, YES), "peers")
        true(wire.transfer(client, server, 50_000), "arrives")
        true(wire.transfer(server, client, 50_000), "arrives back")
        for ns in (wire.a, wire.b):
            equal(ns.greenlane()["Unsupported"], 0, "Unsupported")
            true(ns.greenlane()["EchoReceived"] > 0, "echoes came")
        equal(bool(wire.seen[0].flags & ECE), cc == "tlt_dctcp", "the SYN asks for ECN")
        wire.mark()
        other, accepted = wire.connect(port=1001)
        equal(handshake(wire, 1001), PLAIN, "outside")
        equal((cc_of(other), cc_of(accepted)), ("cubic", "cubic"), "outside")
        good("detach", web)


@case("attach has the namespaces of the cgroup's processes use greenlane from the first"
      " connection on")
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


@case("a cgroup below it has it too, one beside it has not")
def below():
    with cgroup_of("web") as web, cgroup_of("web/child") as child, \
         cgroup_of("mail") as mail, active_wire() as wire:
        good("attach", web)
        with inside(child):
            equal(cc_of(wire.connect()[0]), "tlt_dctcp", "below")
        with inside(mail):
            equal(cc_of(wire.connect(port=1001)[0]), "cubic", "beside")
        good("detach", web)


@case("who listens already is taken up, and let go")
def listeners():
    with cgroup_of("web") as web, active_wire() as wire:
        with inside(web):
            before = wire.listen(1000)
            true("1 listening socket changed" in good("attach", "web"), "says so")
            equal(cc_of(before), "tlt_dctcp", "listened before")
            after = wire.listen(1001)
            equal(cc_of(after), "tlt_dctcp", "listens since")
            client, server = wire.connect(1000, listener=before)
            equal(tuple(info(s)["peer"] for s in (client, server)), (YES, YES), "peers")
            true("2 listening sockets changed" in good("detach", "web"), "says so")
            equal((cc_of(before), cc_of(after)), ("cubic", "cubic"), "let go")
            for port, listener in ((1000, before), (1001, after)):
                wire.mark()
                client = wire.connect(port, cc="tlt_cubic", listener=listener)[0]
                equal(handshake(wire, port), [MARKED[0], *PLAIN[1:]], "handshake, let go")
                equal(info(client)["peer"], NO, "peer, let go")


@case("after detach: new connections are cubic's, old ones go on")
def after_detach():
    with cgroup_of("web") as web, active_wire() as wire:
        with inside(web):
            good("attach", web)
            client, server = wire.connect()
            good("detach", web)
            wire.mark()
            new, accepted = wire.connect(port=1001)
        equal(handshake(wire, 1001), PLAIN, "the new one")
        equal((cc_of(new), cc_of(accepted)), ("cubic", "cubic"), "the new one")
        wire.mark()
        true(wire.transfer(client, server, 50_000), "arrives")
        equal(cc_of(client), "tlt_dctcp", "the old one")
        true(any(p.kind == IMPORTANT for p in wire.from_a()), "the old one marks")
        equal(os.path.exists(PINS), False, "pins are left")
        equal(good("status"), "no cgroup has anything of ours\n", "status")


@case("a connection without the other end's cgroup is its base's")
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


@case("status names them; attaching twice is the same as once, or refused")
def twice():
    with cgroup_of("web") as web, cgroup_of("mail") as mail:
        good("attach", web)
        true("already" in good("attach", web), "says so")
        good("attach", mail, "--cc", "tlt_cubic")
        equal(sorted(good("status").splitlines()),
              [f"{mail}: tlt_cubic, 0 processes", f"{web}: tlt_dctcp, 0 processes"], "status")
        true("detach it first" in refused("attach", web, "--cc", "tlt_reno"), "says what to do")
        shown = json.loads(subprocess.run(["bpftool", "-j", "cgroup", "show", web], check=True,
                                          capture_output=True).stdout)
        equal(len(shown), 1, "programs")
        good("detach", web)
        equal(os.listdir(PINS), ["tlt_cubic"], "pins")
        good("detach", mail)
        true("nothing of ours" in refused("detach", mail), "says so")


# A program of somebody else's, that asks for ECN.
OTHER = """
#include <linux/bpf.h>
__attribute__((section("sockops"), used)) int other(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_NEEDS_ECN)
		ops->reply = ops->is_fullsock;	/* the SYN's, not the SYN-ACK's */
	return 1;
}
char _license[] __attribute__((section("license"), used)) = "GPL";
"""


def attach_other(cgroup, pin="/sys/fs/bpf/other"):
    """Attach it; returns its pin."""
    with open("/run/other.bpf.c", "w", encoding="ascii") as f:
        f.write(OTHER)
    subprocess.run(["make", "-s", "-C", "/run", "-f", f"{TOP}/tools/bpf/Makefile",
                    "other.bpf.o"], check=True)
    subprocess.run(["bpftool", "prog", "load", "/run/other.bpf.o", pin], check=True,
                   capture_output=True)
    subprocess.run(["bpftool", "cgroup", "attach", cgroup, "sock_ops", "pinned", pin, "multi"],
                   check=True)
    return pin


@case("another program of the same kind goes on working, whoever came first")
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
                equal(cc_of(client), "tlt_cubic", "ours")
                true(wire.seen[0].flags & (ECE | CWR), "the other one asks for ECN")
                good("detach", web)
                wire.mark()
                client = wire.connect(port=1001)[0]
            equal(cc_of(client), "cubic", "ours, detached")
            true(wire.seen[0].flags & (ECE | CWR), "the other one after our detach")
            os.unlink(pin)


@case("a cgroup that goes while attached: status says so, the next command tidies up")
def goes():
    with cgroup_of("web") as web:
        good("attach", web)
        os.rmdir(web)
        equal(good("status"), "tlt_dctcp: loaded, but its cgroups are gone; the next attach or"
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


@case("mistakes: one line, status 2, nothing changed")
def mistakes():
    with cgroup_of("web") as web, cgroup_of("a") as a, cgroup_of("a/web"):
        for words in ((), ("attach",), ("attach", "/etc"), ("attach", "/sys/fs/cgroup/none"),
                      ("attach", "none.service"), ("attach", web, "--cc", "tlt_none"),
                      ("attach", web, "--cc", "tlt_/../x"),
                      ("attach", web, "--cc", "cubic"), ("detach", "/tmp"), ("frobnicate",)):
            refused(*words)
        true("is not one cgroup but 2" in refused("attach", "web"), "an ambiguous name")
        del a
        path = dict(os.environ, PATH="/nonexistent")
        true("no bpftool" in refused("attach", web, env=path), "without bpftool")
        code = f"umount {MOUNT}; exec {sys.executable} {TOOL} attach {web}"
        done = subprocess.run(["unshare", "-m", "sh", "-c", code], capture_output=True,
                              text=True, check=False)
        equal((done.returncode, done.stderr),
              (2, "greenlane-cgroup: no cgroup2 is mounted (usually at /sys/fs/cgroup)\n"),
              "without cgroup2")
        equal(os.path.exists(PINS), False, "pins are left")


def prepare():
    """Build the program."""
    subprocess.run(["make", "-s", "-C", need_tree("tools/bpf")], check=True)


if __name__ == "__main__":
    main(prepare)
