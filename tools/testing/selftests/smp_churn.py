#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Traffic, configuration and removal at once, on processors that run in parallel.

	ns a (clients) ---- color :sw: color ---- ns b (servers)

200 persistent connections and many short ones check each byte (lab/churn.py), while
modules are loaded and removed, namespaces with connections are created and removed, tc and
sysctl change options every 10 ms, and half-open connections accumulate at listeners that close.
"""
import ctypes
import errno
import fcntl
import multiprocessing
import os
import random
import socket
import struct
import subprocess
import time
import traceback

from lab import tap
from lab.net import modules, pfc
from lab.net.namespace import FAMILY, Namespace
from lab.net.rtnl import NLA_F_NESTED, TCA_OPTIONS, Qdisc, attr
from lab.net.uapi import COLOR
from lab.tap import case, equal, main, true
from lab.churn import CHECKED, PORT, Traffic
from lab.wire import packet

SLOW = bool(os.environ.get("GL_VARIANT"))
FULL = bool(os.environ.get("GL_FULL"))  # set by scripts/check --all
CONNECTIONS = 60 if CHECKED else 200
CYCLES = 50 if FULL else 5 if CHECKED else 10           # of the modules
SPACES = 200 if FULL else 10 if CHECKED else 20         # namespaces
PERIOD = 0.3 if CHECKED else 0.05 if SLOW else 0.01     # s, of tc and sysctl; less saturates the kernel
PATIENCE = 1800         # real seconds; ends a case that hangs, as the host may be busy
GRACE = 3 if SLOW else 12               # s in which namespaces are still created
TRANSPORTS = ("tlt_reno", "dart", "tlt_cubic", "xpass", "dcqcn", "tlt_dctcp", "dart",
              "aeolus_xpass", "hpcc", "tlt_hpcc", "timely", "ndp", "homa", "aeolus_homa",
              "aeolus_ndp", "aeolus_dctcp")
ADDRESSES = [(socket.AF_INET, "10.0.2.2"), (socket.AF_INET6, "fd00:2::2")]
MODULES = ("link_speed", "greenlane", "rd_core", "tcp_dcqcn", "tcp_dart", "tcp_timely", "tcp_hpcc",
           "tcp_tlt", "tcp_xpass", "tcp_ndp", "tcp_homa", "tcp_aeolus", "sch_color")
# In order of removal.
OUT = ("tcp_aeolus", "tcp_homa", "tcp_ndp", "tcp_xpass", "rd_core", "tcp_tlt", "tcp_dart", "tcp_dcqcn",
       "tcp_hpcc", "tcp_timely", "greenlane", "sch_color", "link_speed")
KINDS = ("net_namespace", "TCP", "TCPv6")
FINIT_MODULE, DELETE_MODULE, SIOCSIFFLAGS = 313, 176, 0x8914

# Held from insmod to modules.allow(): in 6.1, a namespace that selects a congestion control
# without permission (EPERM) holds a reference on its module permanently.
LOADING = multiprocessing.Lock()
# Held while both ports get their qdisc: a change of the first may leave too little room for the
# second's Xoff (ENOSPC).
PORTS = multiprocessing.Lock()
GATE = multiprocessing.Event()          # set while modules are removed,
LAST_GATE = multiprocessing.Event()     # and this one when their removal fails

_libc = ctypes.CDLL(None, use_errno=True)


def insmod_all():
    """Load all modules that are not loaded."""
    with LOADING:
        for name in MODULES:
            if not modules.is_loaded(name):
                with open(modules.path(name), "rb") as f:
                    equal(_libc.syscall(FINIT_MODULE, f.fileno(), b"", 0), 0, f"insmod {name}")
        modules.allow()


def rmmod(name):
    """Remove a module; returns whether it is removed.  The program rmmod would take longer."""
    return _libc.syscall(DELETE_MODULE, name.encode(), os.O_NONBLOCK) == 0


def up(dev):
    """ip link set DEV up"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", dev.encode(), 1))


def color_on(dev, pause=0):
    """tc qdisc add dev DEV root color rate 50mbit limit 600k red 60k ecn 40k pause PAUSE, and
    p1 trim 61"""
    values = ((COLOR.RATE64, struct.pack("Q", 6_250_000)), (COLOR.LIMIT, struct.pack("I", 600_000)),
              (COLOR.RED, struct.pack("I", 60_000)), (COLOR.ECN_MIN, struct.pack("I", 40_000)),
              (COLOR.ECN_MAX, struct.pack("I", 40_000)),
              (COLOR.ECN_PROB, struct.pack("I", 0xffffffff)),
              *([(COLOR.TRIM_DSCP, struct.pack("I", 61))] if dev == "p1" else []),
              (COLOR.PAUSE, struct.pack("I", pause)))
    return Qdisc(dev).add(attr(TCA_OPTIONS | NLA_F_NESTED,
                               b"".join(attr(*value) for value in values)))


class World:
    """The two hosts and the switch between them."""

    def __init__(self):
        self.a, self.sw, self.b = (Namespace(n) for n in ("ca", "csw", "cb"))
        for number, ns in ((1, self.a), (2, self.b)):
            subprocess.run(["ip", "-n", "csw", "link", "add", f"p{number}", "type", "veth",
                            "peer", "name", "eth0", "netns", ns.name], check=True)
            ns.sysctl("net.ipv6.conf.all.accept_dad", 0)
            self.sw.sysctl("net.ipv6.conf.all.accept_dad", 0)
            ns.ip(f"addr add 10.0.{number}.2/24 dev eth0", "link set lo up",
                  f"addr add fd00:{number}::2/64 dev eth0 nodad", "link set eth0 up",
                  f"route add default via 10.0.{number}.1 rto_min 20ms",
                  f"route add default via fd00:{number}::1 rto_min 20ms")
            self.sw.ip(f"addr add 10.0.{number}.1/24 dev p{number}",
                       f"addr add fd00:{number}::1/64 dev p{number} nodad",
                       f"link set p{number} up")
            ns.sysctl("net.ipv4.tcp_ecn", 1)
            ns.sysctl("net.ipv4.tcp_max_syn_backlog", 256)
        self.sw.sysctl("net.ipv4.ip_forward", 1)
        self.sw.sysctl("net.ipv6.conf.all.forwarding", 1)

    def ports_on(self):
        """color on both ports of the switch."""
        with self.sw, PORTS:
            for dev in ("p1", "p2"):
                equal(color_on(dev, pause=2), 0, f"color on {dev}: error")

    def ports_off(self):
        """Remove color from both ports."""
        with self.sw:
            for dev in ("p1", "p2"):
                equal(Qdisc(dev).delete(), 0, f"no color on {dev}: error")

    def default(self, cc):
        """The congestion control of new sockets."""
        for ns in (self.a, self.b):
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)

    def tcp_left(self):
        """Number of the hosts' TCP sockets, without TIME_WAIT."""
        left = 0
        for ns in (self.a, self.b):
            seen = subprocess.run(["ss", "-N", ns.name, "-tanH", "exclude", "time-wait"],
                                  text=True, capture_output=True, check=True).stdout
            left += len(seen.splitlines())
        return left

    def remove(self):
        """Remove the namespaces."""
        for ns in (self.a, self.sw, self.b):
            ns.remove()


class Actor:
    """A process in a namespace that repeats one action until it is stopped, except while its gate
    is set.
    """

    def __init__(self, ns, turn, period=PERIOD, gate=None):
        self._stop = multiprocessing.Event()
        self._turns = multiprocessing.Value("I", 0)
        self._process = multiprocessing.Process(
            target=self._loop, args=(ns, turn, period, gate), daemon=True)
        self._process.start()

    def _loop(self, ns, turn, period, gate):
        rng = random.Random(f"{turn.__name__} {os.getpid()}")
        with ns:
            while not self._stop.wait(period):
                while gate and gate.is_set():
                    time.sleep(0.01)
                turn(rng)
                self._turns.value += 1

    @property
    def turns(self):
        """Number of completed actions; fails if the process has died."""
        true(self._process.is_alive() or self._stop.is_set(), "an actor has died")
        return self._turns.value

    def stop(self):
        """Stop the process; returns the number of completed actions."""
        self._stop.set()
        self._process.join(60)
        equal(self._process.exitcode, 0, "exit status of an actor")
        return self.turns


def write(path, text):
    """Write a sysctl if it exists: its module may be removed meanwhile."""
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    except OSError as why:
        if why.errno not in (errno.ENOENT, errno.EINVAL, errno.EBUSY):
            raise


def turn_sysctl(rng):
    """Set another codepoint, or an invalid one, then the old one again; and dart's criterion of a
    tenant and its limits."""
    name = rng.choice(("droppable", "protected", "message", "message_end"))
    path = f"/proc/sys/net/ipv4/greenlane_dscp_{name}"
    for name, most in (("tenant", 2), ("tokens", 4), ("short", 65535), ("lookahead", 1000)):
        write(f"/proc/sys/net/ipv4/dart_{name}", str(rng.randint(0, most)))
    try:
        with open(path, encoding="ascii") as f:
            before = f.read()
    except OSError:
        return
    write(path, str(rng.choice((1, 5, 8, 10, 33, 63, 64, -1))))
    write("/proc/sys/net/ipv4/greenlane_protect", str(rng.randrange(2)))
    write(path, before)


def turn_tc(rng):
    """Set another rate, limit, threshold, pool or pause option on one of the ports."""
    changes = ((COLOR.RATE64, struct.pack("Q", rng.choice((3_000_000, 6_250_000, 12_500_000)))),
               (COLOR.LIMIT, struct.pack("I", rng.choice((100_000, 450_000, 600_000)))),
               (COLOR.RED, struct.pack("I", rng.choice((20_000, 60_000)))),
               (COLOR.COUNT, struct.pack("I", rng.randrange(2))),
               (COLOR.POOL, rng.choice((b"one\0", b"two\0"))),
               (COLOR.PAUSE, struct.pack("I", rng.randrange(4))),
               (COLOR.PAUSE_XOFF, struct.pack("I", rng.choice((0, 10_000, 50_000)))),
               (COLOR.RED_AUTO, struct.pack("I", 1)), (COLOR.RED_MIN, struct.pack("I", 9_000)),
               (COLOR.INT_RTT, struct.pack("I", rng.choice((0, 50_000)))))
    # A new pool needs a size.
    options = attr(TCA_OPTIONS | NLA_F_NESTED, attr(*rng.choice(changes)) +
                   attr(COLOR.POOL_SIZE, struct.pack("I", 1_000_000)))
    with PORTS:
        Qdisc(rng.choice(("p1", "p2"))).change(options)     # fails while there is no qdisc


def turn_pause(rng):
    """The neighbour of a port pauses it for up to 2 ms (50 Mbit/s), or ends the pause."""
    times = {priority: rng.choice((0, 20, 200)) for priority in range(8) if rng.randrange(2)}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.bind(("eth0", 0))
        raw.send(pfc.frame(times))


def turn_half_open(rng):
    """Send a SYN from a host that does not exist."""
    version = rng.choice((4, 6))
    source = (f"10.0.1.{rng.randrange(10, 250)}" if version == 4
              else f"fd00:1::{rng.randrange(16, 4096):x}")
    target = ADDRESSES[version == 6][1]
    syn = packet.make(version, source, target, rng.randrange(1024, 65535), PORT,
                      rng.randrange(1 << 32), 0, packet.SYN, dscp=rng.choice((0, 10)),
                      options=bytes((2, 4, 5, 180, 4, 2, 1, 1)))
    family = FAMILY[version]
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(bytes(syn.raw), (target, 0))


def turn_namespace(rng):
    """Create a namespace, and remove it with connections in mid-transfer and color on lo."""
    pid = os.fork()
    if pid:
        equal(os.waitpid(pid, 0)[1], 0, "status of a namespace's process")
        return
    try:
        _libc.unshare(0x40000000)
        up("lo")
        color_on("lo")
        with LOADING:
            write("/proc/sys/net/ipv4/tcp_congestion_control", rng.choice(TRANSPORTS))
        listener = socket.create_server(("127.0.0.1", 0))
        ends = []
        for _ in range(3):
            client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            for end in (client, server):
                end.setblocking(False)
                end.send(bytes(200_000))
            ends += [client, server]
        if rng.randrange(2):
            ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def objects(slab):
    """Exact number of the kernel's objects of a kind."""
    with open(f"/sys/kernel/slab/{slab}/shrink", "w", encoding="ascii") as f:
        f.write("1")
    with open("/proc/slabinfo", encoding="ascii") as slabs:
        for line in slabs:
            if line.startswith(slab + " "):
                return int(line.split()[1])
    return 0


def left():
    """Numbers of objects that must not grow.  The kernel may free a namespace's memory only with
    the next one's: so create one and remove it.
    """
    Namespace("last").remove()
    time.sleep(1)
    return [objects(kind) for kind in KINDS]


def users(name):
    """Possible users of a module: its entry in /proc/modules, and the numbers of KINDS."""
    with open("/proc/modules", encoding="ascii") as modules:
        line = [line.split()[:4] for line in modules if line.startswith(name + " ")]
    return f"{line}, {dict(zip(KINDS, map(objects, KINDS)))}"


def take_out(world, traffic):
    """Remove all modules under traffic; returns the number of failed attempts.

    On a slow kernel the next namespace is created before the last one is removed, so a module
    would always have a user: after GRACE no more are created.
    """
    GATE.set()
    traffic.tell("cubic")
    world.default("cubic")
    world.ports_off()
    attempts = 0
    last = time.monotonic() + GRACE
    for name in OUT:
        limit = time.monotonic() + PATIENCE / 4
        while not rmmod(name):
            attempts += 1
            now = time.monotonic()
            if now >= limit:
                raise tap.Failed(f"rmmod {name}: still used: {users(name)}")
            if now > last:
                LAST_GATE.set()
            time.sleep(0.02)
    return attempts


def bring_back(world, traffic, transport):
    """Load all modules, and restore their users."""
    insmod_all()
    world.ports_on()
    world.default(transport)
    traffic.tell(transport)
    GATE.clear()
    LAST_GATE.clear()


@case(f"{CONNECTIONS} connections, {CYCLES} loads and unloads, {SPACES} namespaces,"
      " with tc and sysctl: no wrong byte, and all memory is freed")
@modules.other_hooks()
def churn():
    insmod_all()
    before = left()
    world = World()
    traffic = Traffic(world.a, world.b, ADDRESSES, CONNECTIONS)
    actors = [Actor(world.a, turn_sysctl), Actor(world.b, turn_sysctl),
              Actor(world.sw, turn_tc), Actor(world.a, turn_half_open), Actor(world.a, turn_pause),
              Actor(world.b, turn_pause)]
    namespaces = [Actor(world.a, turn_namespace, gate=gate)
                  for gate in (LAST_GATE, GATE, GATE, GATE)]
    refused = 0
    began = time.monotonic()
    for cycle in range(CYCLES):
        bring_back(world, traffic, TRANSPORTS[cycle % len(TRANSPORTS)])
        time.sleep(0.2)
        refused += take_out(world, traffic)
        if SLOW or cycle % 10 == 9:
            print(f"# {cycle + 1} cycles after {time.monotonic() - began:.0f} s,"
                  f" {sum(n.turns for n in namespaces)} namespaces", flush=True)
    bring_back(world, traffic, TRANSPORTS[0])
    while sum(n.turns for n in namespaces) < SPACES:
        time.sleep(0.5)
    turns = [actor.stop() for actor in [*actors, *namespaces]]
    server, client = traffic.end(PATIENCE)
    print(f"# {time.monotonic() - began:.0f} s; server {server}, client {client}")
    print(f"# rmmod refused {refused} times; turns of sysctl (two), tc, half-open, pause (two),"
          f" namespaces:"
          f" {turns}", flush=True)
    for who, count in (("server", server), ("client", client)):
        equal(count.get("error"), None, f"{who}: error")
        equal(count["wrong"], 0, f"{who}: wrong bytes")
    equal(client["lost"], 0, "persistent connections lost")
    true(client["exchanges"] > CONNECTIONS * 2, f"exchanges: {client['exchanges']}")
    limit = time.monotonic() + PATIENCE / 2
    while world.tcp_left() and time.monotonic() < limit:
        time.sleep(1)
    equal(world.tcp_left(), 0, "remaining sockets")
    world.remove()
    while (now := left()) != before and time.monotonic() < limit:
        pass
    equal(now, before, f"objects of {KINDS}")
    for name in OUT:
        true(rmmod(name), f"rmmod {name} at the end")


main()
