#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The programs print the outputs that the pages show: the same words in the same order.

The numbers are those of another run.  guest_advise compares the commands for switches,
guest_lab a report of make check, guest_mininet the tables of mininet's examples.
"""
import contextlib
import re
import socket
import time

from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import Cable, tool
from lab.tap import case, equal, main, true
from lab.wire.sockopt import cc_of

NUMBER = re.compile(r"\d[\d.:]*[kMG]?")
# The directory of tc's plugin is the distribution's, or the tree's.
DIRECTORY = re.compile(r"/\S*/")


def words(text):
    """The words of an output, in which numbers are #."""
    return NUMBER.sub("#", DIRECTORY.sub("DIR/", text)).split()


def shown(page, first):
    """The words of the literal block of a page that begins with `first`."""
    text = (TOP / "Documentation" / page).read_text(encoding="utf-8")
    block, = re.findall(rf"^\t{first}.*\n(?:(?:\t.*)?\n)*", text, re.M)
    return words(block)


def matches(out, expected):
    """Whether an output has these words, one behind the other; "..." is any number of words."""
    pattern = " ".join(r"(?:\S+ )*?\S+" if word.rstrip(",") == "..." else re.escape(word)
                       for word in expected)
    return re.search(pattern, " ".join(words(out))) is not None


def has(out, expected):
    """Check that an output has these words."""
    true(matches(out, expected),
         f"expected {' '.join(expected)}, saw {' '.join(words(out))}")


@case("status: TLT's table, a port below a link's product, and its cure")
def tlt():
    with Cable("color rate 1gbit limit 100k red 15400", delay="1ms") as cable:
        pairs = [cable.connect() for _ in range(3)]
        tool("status")
        cable.send(pairs)
        has(tool("status")[1], shown("operations.rst", "Linux 7"))


@case("status: the table of credit transports, and a port with bands")
def credits():
    with Cable("color rate 1gbit limit 200k preset aeolus", "aeolus_xpass") as cable:
        pair = cable.connect()
        for ns in (cable.a, cable.b):
            ns.sysctl("net.ipv4.xpass_rate", 1000)
        tool("status")
        cable.send([pair])
        has(tool("status")[1], shown("operations.rst", "NAMESPACE  CC            CONN  CREDIT"))


@case("/proc/net/link_speed: a device, and a VLAN of it")
def link_speed():
    modules.load_for("xpass")
    with contextlib.ExitStack() as stack:
        near, far = Namespace("near"), Namespace("far")
        stack.callback(far.remove)
        stack.callback(near.remove)
        near.ip("link add eth0 type veth peer name eth0 netns far")
        for ns, own in ((near, 1), (far, 2)):
            ns.ip("link set eth0 up", "link add link eth0 name eth0.10 type vlan id 10",
                  "link set eth0.10 up", f"addr add 10.1.0.{own}/24 dev eth0",
                  f"addr add 10.2.0.{own}/24 dev eth0.10")
            ns.sysctl("net.ipv4.tcp_congestion_control", "xpass")
        for net in ("10.1.0", "10.2.0"):
            with far:
                listener = stack.enter_context(socket.create_server((f"{net}.2", 0)))
            with near:
                client = stack.enter_context(socket.create_connection(listener.getsockname()))
            equal(cc_of(client), "xpass", "congestion control")
            server = stack.enter_context(listener.accept()[0])
            server.sendall(b"x" * 10_000)
            time.sleep(10e-3)
        has(near.read("/proc/thread-self/net/link_speed"), shown("credits.rst", "2 10000"))


@case("an output with another word, or without a row, is found")
def found():
    expected = words("CC CONN\ntlt_reno 3\n! va: too small\n")
    has("CC  CONN\ntlt_reno  12.5k\n! va: too\n  small\n", expected)
    for wrong in ("CC CONNS\ntlt_reno 3\n! va: too small\n", "CC CONN\n! va: too small\n"):
        equal(matches(wrong, expected), False, wrong)
    equal(words("/usr/lib/tc/q_color.so 15.4kB 06:21:39"), ["DIR/q_color.so", "#B", "#"], "words")


if __name__ == "__main__":
    main()
