# SPDX-License-Identifier: GPL-2.0
"""A switch port to test: one veth pair in a fresh network namespace.

Both ends are in the same namespace and have no addresses.  A test writes frames
to one end, which pass its qdisc, and reads frames from the other, so that the
kernel sends no packets of its own between them.
"""
import atexit
import contextlib
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import time

from lab.net import libc, modules
from lab.net import port as switch_port
from lab.net.namespace import write_sysctl
from lab.net.rtnl import Drops
from lab.tap import Skip, equal, true
from lab.wire.packet import checksum

COLORS = ("red", "yellow", "green")
RED, GREEN, YELLOW = 8 << 2, 10 << 2, 0         # TOS bytes of the default map
ECT0, CE = 2, 3
ETH_LEN = 14

SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23


def run(*args, check=True, text=None):
    """Run a program; returns its CompletedProcess."""
    done = subprocess.run(args, capture_output=True, text=True, check=False, input=text)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()}")
    return done


def insmod():
    """Load sch_color unless it is loaded."""
    modules.load("sch_color")


# [pid] of the process that has moved into a namespace of its own, or empty.
_alone = []


@atexit.register
def _clear():
    """Delete the devices of our namespace.  A packet in a qdisc holds the socket that sent it, and
    the socket holds the namespace with the qdisc, until a slow port has sent the packet."""
    if _alone != [os.getpid()]:
        return
    names = [link["ifname"] for link in json.loads(run("ip", "-j", "link", "show").stdout or "[]")]
    run("ip", "-force", "-batch", "-", check=False,
        text="".join(f"link del {name}\n" for name in names if name != "lo"))


def fresh_namespace():
    """Move into a new network namespace without IPv6, which would send packets of its own."""
    _clear()
    _alone[:] = [os.getpid()]
    libc.unshare_network()
    for which in ("default", "all"):
        write_sysctl(f"net.ipv6.conf.{which}.disable_ipv6", 1)


def veth(a="p0", b="p1", *more):
    """A pair of devices, up."""
    run("ip", "-batch", "-", text=f"link add {a} {' '.join(more)} type veth peer name {b}"
        f" {' '.join(more)}\nlink set {a} up\nlink set {b} up\n")


def tc(words, check=True):
    """Run tc with the arguments in a string."""
    return run("tc", *words.split(), check=check)


def port(options="", dev="p0", mtu=1500):
    """Make a fresh namespace with one color port that has these options."""
    insmod()
    fresh_namespace()
    veth("p0", "p1", "mtu", str(mtu))
    tc(f"qdisc add dev {dev} root handle 1: color {options}")


def qdiscs(dev="p0"):
    """tc's report, with statistics, of a device's qdiscs."""
    return switch_port.shown(dev)


def shown(dev="p0", kind="color"):
    """tc's report of a device's qdisc of this kind."""
    for qdisc in qdiscs(dev):
        if qdisc["kind"] == kind:
            return qdisc
    raise RuntimeError(f"no {kind} on {dev}")


def options(dev="p0"):
    """The options as tc dumps them."""
    return shown(dev)["options"]


def colors(dev="p0"):
    """The counters by colour."""
    return shown(dev)["colors"]


@contextlib.contextmanager
def notified(*lines):
    """`tc monitor` must print these lines before the end of the block."""
    with subprocess.Popen(["tc", "monitor"], stdout=subprocess.PIPE, text=True) as monitor:
        settle(0.1)
        try:
            yield
            settle(0.1)
        finally:
            monitor.terminate()
        said = monitor.stdout.read()
    for line in lines:
        true(line in said, f"{line!r} in {said[:600]!r}")


def ether(proto, payload, size=0, vlans=()):
    """A frame of at least `size` bytes to an address that no device has."""
    head = bytes.fromhex("020000000002020000000001")
    for tpid, tci in vlans:
        head += struct.pack("!HH", tpid, tci)
    return (head + struct.pack("!H", proto) + payload).ljust(size, b"\0")


def ipv4(size=1500, tos=0, vlans=()):
    """An Ethernet frame of `size` bytes with an IPv4 header of this TOS."""
    length = max(size - ETH_LEN - 4 * len(vlans), 20)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, tos, length, 0, 0, 64, 253, 0,
                       bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return ether(0x0800, head, size, vlans)


def ipv6(size=1500, tos=0, vlans=()):
    """An Ethernet frame of `size` bytes with an IPv6 header of this class."""
    length = max(size - ETH_LEN - 40 - 4 * len(vlans), 0)
    head = struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, length, 59, 64,
                       bytes(15) + b"\1", bytes(15) + b"\2")
    return ether(0x86dd, head, size, vlans)


IP = {4: ipv4, 6: ipv6}


def numbered(number, tos=0, size=1000, make=ipv4):
    """A frame with a number at its end."""
    return make(size, tos)[:-4] + struct.pack("!I", number)


def numbers(frames):
    """The numbers at the end of frames, as Receiver.frames() returns them."""
    return [struct.unpack("!I", frame[-4:])[0] for _, frame in frames]


def arp(size=60):
    """A frame that is not IP."""
    return ether(0x0806, bytes(28), size)


class Sender:
    """Writes frames to a device, and counts the frames that its qdisc dropped."""

    def __init__(self, dev="p0"):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30)
        self.socket.bind((dev, 0))      # the kernel reads the frame's own type
        self.drops = Drops(dev)
        self.refused = 0

    def send(self, frame, count=1):
        """Send `count` times; returns how many frames were not dropped at once.  For an early drop
        send() gives no error, so the qdisc's counter is read, too."""
        before, errors = self.drops(), 0
        for _ in range(count):
            try:
                self.socket.send(frame)
            except OSError as why:
                if why.errno != errno.ENOBUFS:
                    raise
                errors += 1
        lost = max(errors, self.drops() - before)
        self.refused += lost
        return count - lost

    def close(self):
        """Close the sockets, which hold the namespace."""
        self.socket.close()
        self.drops.close()


class Receiver:
    """Reads the frames that a device receives, with their time stamps."""

    def __init__(self, dev="p1"):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                    socket.htons(3))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 30)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((dev, 3))

    def frames(self, count=None, wait=1.0):
        """[(ns, frame)] of `count` frames, or of all until no frame arrives for `wait` s."""
        got = []
        self.socket.settimeout(wait)
        while count is None or len(got) < count:
            try:
                data, anc, _, _ = self.socket.recvmsg(65536, 64)
            except (TimeoutError, BlockingIOError):
                break
            when = 0
            for level, kind, value in anc:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    sec, nsec = struct.unpack("qq", value[:16])
                    when = sec * 1000000000 + nsec
            got.append((when, data))
        return got

    def close(self):
        """Close the socket, which holds the namespace."""
        self.socket.close()


def in_background(function, *args):
    """Run a function in a process of its own; returns its pid."""
    pid = os.fork()
    if not pid:
        try:
            function(*args)
        finally:
            os._exit(0)
    return pid


def kill(pid):
    """Kill a process of in_background()."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _users(module):
    with open(f"/sys/module/{module}/refcnt", encoding="ascii") as file:
        return int(file.read())


# Modules in use before this program: packets of an earlier program may be in a queue for hours.
_USED = {module for module in ("sch_color", "sch_iofd") if modules.is_loaded(module) and
         _users(module)}


def unused(module):
    """Wait until a module has no qdisc: the kernel removes namespaces in the background.

    A socket holds its namespace until its last packet is sent, so before a case that calls this
    no queue may have packets that are never sent.
    """
    if module in _USED:
        raise Skip(f"an earlier program's packets still wait in a qdisc of {module}")
    modules.load(module)
    for _ in range(100):
        if not _users(module):
            break
        settle(0.1)
    equal(_users(module), 0, "users of the module")


def settle(seconds=0.05):
    """Sleep, so that timers fire: only sleeping advances virtual time."""
    time.sleep(seconds)
