#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Credits and rates are fractions of a link's speed: that of the route's device.

	ns a -- va ===== veth, netem ===== vb -- ns b      Hosts, and devices on top of it
	ns a -- tun ==== this program ==== tun -- ns b     lab.wire: the test sets a tun's speed

dcqcn's pacing rate shows the speed of the sender's link, the time of a transfer by xpass that of
the receiver's.
"""
import contextlib
import selectors
import socket
import subprocess
import time

from lab import tap
from lab.codepoints import REQUEST
from lab.net import modules
from lab.net.ethtool import set_speed
from lab.net.namespace import Namespace
from lab.status import forget, ids, look, sentence
from lab.tap import Skip, case, equal, main, true, within
from lab.wire.sockopt import abort, pacing
from lab.wire.wire import MSS, Wire, pattern
from lab.wire.xpass import far, requests

HEADERS = 90            # IPv4, TCP with time stamps, Ethernet with all its gaps
CREDIT = 84
DELAY = "20us"
FIELDS = ("ifindex", "mbit", "source", "extra", "wire", "guesses")


def table(ns):
    """/proc/net/link_speed, {device: {field: value}}."""
    found = {}
    for line in ns.read("/proc/thread-self/net/link_speed").splitlines():
        *values, dev = line.split()
        found[dev] = dict(zip(FIELDS, (int(v) if v.isdigit() else v for v in values)))
    return found


def link(ns, dev):
    """(speed in Mbit/s, its source) of a device."""
    row = table(ns)[dev]
    return row["mbit"], row["source"]


def run(*commands):
    """Run commands with blanks between their words; skip the case if the kernel lacks one."""
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if "Unknown device type" in done.stderr or "not supported" in done.stderr:
            raise Skip(f"not in this kernel: {command}")
        equal(done.returncode, 0, f"{command}: {done.stderr}")


class Hosts:
    """Two namespaces and a veth between them."""
    number = 0

    def __init__(self, cc="dcqcn", delay=DELAY, mtu=1500):
        tap.need_virtual_time()
        modules.load_all()
        Hosts.number += 1
        self.open = []
        self.a, self.b = self.pair = [Namespace(f"{name}{Hosts.number}") for name in "ab"]
        self.wire("va", "vb", 1, mtu, delay)
        for ns in self.pair:
            ns.ip("link set lo up")
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)
            ns.sysctl("net.ipv4.tcp_no_metrics_save", 1)
            ns.sysctl("net.ipv4.tcp_rmem", "4096 4194304 16777216")
            ns.sysctl("net.ipv4.tcp_wmem", "4096 4194304 16777216")

    def wire(self, dev_a, dev_b, subnet, mtu=1500, delay=None):
        """One more veth."""
        run(f"ip link add {dev_a} netns {self.a.name} mtu {mtu} type veth"
            f" peer {dev_b} netns {self.b.name} mtu {mtu}")
        for ns, dev, number in ((self.a, dev_a, 1), (self.b, dev_b, 2)):
            ns.ip(f"addr add 10.{subnet}.0.{number}/24 dev {dev}", f"link set {dev} up")
            if delay:
                ns.tc(f"qdisc add dev {dev} root handle 1: netem delay {delay} limit 100000")

    def connect(self, address="10.1.0.2", client=None, bind=None, cc=None):
        """(client, server)"""
        with self.b:
            listener = socket.socket()
        with client or self.a:
            s = socket.socket()
        for end, dev in zip((s, listener), bind or ()):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, dev.encode())
        listener.bind((address, 0))
        listener.listen()
        if cc:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        s.settimeout(10)
        s.connect(listener.getsockname())
        server = listener.accept()[0]
        listener.close()
        self.open += [s, server]
        for end in (s, server):
            end.setblocking(False)
        return s, server

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        abort(*self.open)
        for ns in self.pair:
            ns.remove()


def pump(flows, seconds, enough=float("inf")):
    """Each flow sends and reads as much as possible for `seconds`, or until `enough` bytes of one
    have arrived; returns the bytes that arrived of each."""
    got = dict.fromkeys((server for _, server in flows), 0)
    chunk = bytes(1 << 16)
    senders = {client for client, _ in flows}
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for s in senders | got.keys():
            selector.register(s, selectors.EVENT_WRITE * (s in senders)
                              | selectors.EVENT_READ * (s in got))
        while time.monotonic() < end and max(got.values()) < enough:
            for key, events in selector.select(end - time.monotonic()):
                with contextlib.suppress(BlockingIOError):
                    if events & selectors.EVENT_READ:
                        got[key.fileobj] += len(key.fileobj.recv(1 << 20))
                    if events & selectors.EVENT_WRITE:
                        key.fileobj.send(chunk)
    return list(got.values())


def segment(s):
    """Bytes of payload a packet."""
    return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)


def paced(flow, extra=0):
    """Speed of the link in Mbit/s, derived from dcqcn's initial rate."""
    pump([flow], 2e-3)
    mss = segment(flow[0])
    return pacing(flow[0]) * 8 / 1e6 * (mss + HEADERS + extra) / mss


def carried(flow, count, seconds, extra=0):
    """Speed in Mbit/s of a link that `count` bytes in `seconds` fill, with their credits."""
    mss = segment(flow[0])
    return count / mss * (mss + HEADERS + CREDIT + 2 * extra) * 8 / seconds / 1e6


def near(seen, mbit, what, part=0.002):
    """Check that a speed is mbit Mbit/s, within a fraction `part`."""
    within(seen, (1 - part) * mbit, (1 + part) * mbit, what)


def credited(hosts, what, mbit, flow=None, seconds=10e-3, extra=0):
    """Check the goodput of xpass, after its first round trips."""
    flow = flow or hosts.connect()
    pump([flow], 10e-3)
    near(carried(flow, pump([flow], seconds)[0], seconds, extra), mbit, what, 0.05)


# --- speeds ---------------------------------------------------------------------------------


@case("a veth: 10 Gbit/s, as its driver reports; its peer's rate does not matter")
def veth():
    with Hosts() as hosts:
        equal(hosts.a.sysctl("net.ipv4.dcqcn_rate"), "0", "dcqcn_rate")
        equal(hosts.a.sysctl("net.ipv4.xpass_rate"), "0", "xpass_rate")
        equal(link(hosts.a, "va"), (10000, "device"), "the link")
        hosts.b.tc("qdisc replace dev vb root color rate 1gbit")
        near(paced(hosts.connect()), 10000, "dcqcn")
        near(paced(hosts.connect()[::-1]), 1000, "dcqcn at the other end")


@case("a port's rate overrides the device's speed; flows follow its changes and its removal")
def port():
    with Hosts(delay=None) as hosts:
        flow = hosts.connect()
        near(paced(flow), 10000, "without a port")
        for words, mbit in (("add dev va root handle 1: color rate 1gbit", 1000),
                            ("change dev va root color rate 400mbit", 400),
                            ("change dev va root color rate 2500mbit", 2500)):
            hosts.a.tc(f"qdisc {words}")
            equal(link(hosts.a, "va"), (mbit, "port"), words)
            near(paced(hosts.connect()), mbit, f"a new flow: {words}")
            true(paced(flow) < 1.002 * mbit, "an old flow is not faster than the port")
        hosts.a.tc("qdisc change dev va root color rate none")
        equal(link(hosts.a, "va"), (10000, "device"), "speed with a port without a rate")
        hosts.a.tc("qdisc change dev va root color rate 1gbit", "qdisc del dev va root")
        equal(link(hosts.a, "va"), (10000, "device"), "speed without a port")
        near(paced(hosts.connect()), 10000, "a new flow")


PARENTS = {"netem": "netem delay 5us", "tbf": "tbf rate 2gbit burst 1m limit 1m",
           "red": "red limit 1m avpkt 1000 bandwidth 10gbit",
           "iofd": "iofd deflect dev vd via 10.9.0.2", "prio": "prio", "htb": "htb"}


@case("a port below a qdisc with one class sets the device's speed; packets may bypass other ports",
      parent=tuple(PARENTS))
def below(parent):
    bypassed = parent in ("prio", "htb")
    with Hosts(delay=None) as hosts:
        hosts.a.ip("link add vd type dummy", "addr add 10.9.0.1/24 dev vd", "link set vd up")
        hosts.a.tc(f"qdisc add dev va root handle 1: {PARENTS[parent]}")
        if parent == "htb":     # packets that no filter classifies bypass its only class
            hosts.a.tc("class add dev va parent 1: classid 1:1 htb rate 1gbit quantum 60000")
        hosts.a.tc("qdisc add dev va parent 1:1 handle 2: color rate 1gbit")
        equal(link(hosts.a, "va"), (10000, "device") if bypassed else (1000, "port"), "speed")
        if parent == "netem":
            near(paced(hosts.connect()), 1000, "dcqcn")


@case("several queues: the speed is the sum of their ports, if each queue has one")
def queues():
    with Hosts(delay=None) as hosts:
        run(f"ip link add m0 netns {hosts.a.name} numtxqueues 2 numrxqueues 2 type veth"
            f" peer m1 netns {hosts.b.name} numtxqueues 2 numrxqueues 2")
        hosts.a.ip("link set m0 up")
        hosts.a.tc("qdisc add dev m0 root handle 1: mq",
                   "qdisc add dev m0 parent 1:1 handle 2: color rate 1gbit")
        equal(link(hosts.a, "m0"), (10000, "device"), "speed with a port on one of two queues")
        hosts.a.tc("qdisc add dev m0 parent 1:2 handle 3: color rate 1500mbit")
        equal(link(hosts.a, "m0"), (2500, "port"), "speed with a port on both queues")


@case("the sysctls override port and device, in the whole namespace; 0 restores their speed")
def sysctl():
    with Hosts(delay=None) as hosts:
        hosts.a.tc("qdisc add dev va root handle 1: color rate 1gbit")
        for value, mbit in ((300, 300), (0, 1000)):
            hosts.a.sysctl("net.ipv4.dcqcn_rate", value)
            near(paced(hosts.connect()), mbit, f"dcqcn_rate={value}")
    with Hosts("xpass") as hosts:
        hosts.b.tc("qdisc add dev vb parent 1: handle 2: color rate 1500mbit limit 10m")
        flow = hosts.connect()
        for value, mbit in ((0, 1500), (1000, 1000), (0, 1500)):
            hosts.b.sysctl("net.ipv4.xpass_rate", value)
            credited(hosts, f"xpass_rate={value}", mbit, flow)


@case("a flow follows its device's speed up and down; without a carrier the last speed holds")
def changes():
    with Wire(cc="dcqcn", rto_min=200, speed=1000) as wire:
        client, server = wire.connect()
        wire.transfer(client, server, 20_000)
        for mbit in (100, 40_000):
            with wire.a:
                set_speed("tun0", mbit)
            wire.a.ip("link set tun0 carrier off", "link set tun0 carrier on")
            wire.run(2.0)       # the kernel reports one such event a second
            equal(link(wire.a, "tun0"), (mbit, "device"), "the link")
            wire.transfer(client, server, 20_000)
            rate = pacing(client) * 8 / 1e6 * (1448 + HEADERS) / 1448
            if mbit == 100:
                near(rate, mbit, "dcqcn")
        # dcqcn raises its rate in steps.
        for _ in range(20):
            wire.transfer(client, server, 1_000_000)
        true(pacing(client) * 8 / 1e6 > 1100, "pacing rate above 1100 Mbit/s")
        with wire.a:
            set_speed("tun0", None)
        wire.a.ip("link set tun0 carrier off")
        wire.run(2.0)
        equal(link(wire.a, "tun0"), (40_000, "device"), "speed without carrier")
        wire.a.ip("link set tun0 carrier on")
        wire.run(2.0)
        equal(link(wire.a, "tun0"), (10_000, "unknown"), "speed with carrier again")


@case("an xpass flow follows a port whose rate changes")
def changes_xpass():
    with Hosts("xpass") as hosts:
        hosts.b.tc("qdisc replace dev vb root handle 1: netem delay 20us limit 100000",
                   "qdisc add dev vb parent 1:1 handle 2: color rate 1gbit limit 10m")
        flow = hosts.connect()
        credited(hosts, "at first", 1000, flow)
        hosts.b.tc("qdisc change dev vb handle 2: parent 1:1 color rate 3gbit")
        credited(hosts, "then", 3000, flow)
        hosts.b.tc("qdisc change dev vb handle 2: parent 1:1 color rate 500mbit")
        credited(hosts, "and at last", 500, flow)


@case("a device without a speed: 10 Gbit/s, and greenlane status prints the remedy",
      cc=("xpass", "dcqcn"))
def unknown(cc):
    forget()
    with Wire(cc=cc, rto_min=200, speed=None) as wire:
        equal(link(wire.a, "tun0"), (10000, "unknown"), "the link")
        client, server = wire.connect()
        wire.transfer(client, server, 50_000)
        wire.transfer(server, client, 50_000)
        if cc == "dcqcn":
            near(pacing(client) * 8 / 1e6 * (1448 + HEADERS) / 1448, 10000, "dcqcn")
        said = look()
        equal([i for i in ids(said) if i == "no-speed"], ["no-speed"], "mistakes")
        true(f"tun0 in {wire.a.name} The device reports no speed: 10Gbit/s is assumed."
             in sentence(said, "no-speed"), sentence(said, "no-speed"))
        advice = next(p["advice"] for p in said["problems"] if p["id"] == "no-speed")
        true("net.ipv4.ndp_rate or net.ipv4.xpass_rate or net.ipv4.hpcc_rate or net.ipv4.timely_rate or"
             " net.ipv4.dcqcn_rate" in advice and "tc qdisc add dev tun0 root color rate" in advice, advice)
        for ns in (wire.a, wire.b):
            for name in ("xpass_rate", "dcqcn_rate"):
                ns.sysctl(f"net.ipv4.{name}", 10_000)
        look()
        wire.transfer(client, server, 50_000)
        equal(ids(look()), [], "mistakes after the remedy")


@case("dummy devices and loopback: no speed, and no mistake")
def dummy():
    forget()
    with Hosts() as hosts:
        hosts.a.ip("link add d0 type dummy", "link set d0 up", "addr add 10.7.0.1/24 dev d0")
        equal((link(hosts.a, "d0"), link(hosts.a, "lo")),
              ((10000, "unknown"), (10000, "local")), "the links")
        with hosts.a, socket.create_server(("10.7.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            server = listener.accept()[0]
        hosts.open += [client, server]
        client.setblocking(False)
        server.setblocking(False)
        near(paced((client, server)), 10000, "loopback", 0.05)
        equal([i for i in ids(look()) if i == "no-speed"], [], "mistakes")


# --- devices on top of others ------------------------------------------------------------------


def vlans(hosts):
    """VLAN 10 on both hosts, 10.10.0.1 and 10.10.0.2."""
    for ns, dev, number in ((hosts.a, "va", 1), (hosts.b, "vb", 2)):
        run(f"ip -n {ns.name} link add link {dev} name v10 type vlan id 10")
        ns.ip("link set v10 up", f"addr add 10.10.0.{number}/24 dev v10")


@case("a VLAN has the speed of the device below, counts its tag, and shares that device's link "
      "time",
      cc=("dcqcn", "xpass"))
def vlan(cc):
    with Hosts(cc) as hosts:
        vlans(hosts)
        for ns in hosts.pair:
            run(f"ip -n {ns.name} link add link v10 name v10.7 type vlan id 7")
            ns.ip("link set v10.7 up")
        seen = table(hosts.a)
        equal((seen["v10"]["mbit"], seen["v10"]["extra"]), (10000, 4), "v10")
        equal((seen["v10.7"]["mbit"], seen["v10.7"]["extra"]), (10000, 8), "v10.7")
        equal({seen[dev]["wire"] for dev in ("va", "v10", "v10.7")}, {seen["va"]["ifindex"]},
              "wire")
        flow = hosts.connect("10.10.0.2")
        if cc == "dcqcn":
            near(paced(flow, 4), 10000, "dcqcn", 0.0005)
            hosts.a.tc("qdisc replace dev va root color rate 1gbit")
            equal(link(hosts.a, "v10.7"), (1000, "port"), "a port below")
            near(paced(hosts.connect("10.10.0.2"), 4), 1000, "dcqcn through it")
            hosts.a.tc("qdisc add dev v10 root color rate 300mbit")
            equal((link(hosts.a, "v10"), link(hosts.a, "va")), ((300, "port"), (1000, "port")),
                  "a port of its own")
            seen = table(hosts.a)
            equal(seen["v10"]["wire"], seen["v10"]["ifindex"],
                  "ifindex of the link that v10 shares")
            hosts.a.tc("qdisc del dev v10 root")
            hosts.a.ip("link del v10")
            equal(link(hosts.a, "va"), (1000, "port"), "speed after the VLANs are removed")
            return
        # Both share one link, and together do not exceed its rate.
        hosts.b.sysctl("net.ipv4.xpass_rate", 2000)
        flows = [flow, hosts.connect()]
        pump(flows, 5e-3)
        got = pump(flows, 10e-3)
        total = carried(flow, got[0], 10e-3, 4) + carried(flow, got[1], 10e-3)
        near(total, 2000, "two flows", 0.1)


@case("a VLAN gets a port, and loses it, while connections use it: they move to the VLAN's own link "
      "time, and back")
def moves():
    with Hosts("xpass") as hosts:
        hosts.b.tc("qdisc replace dev vb root handle 1: netem delay 20us limit 100000",
                   "qdisc add dev vb parent 1:1 handle 2: color rate 1gbit limit 10m")
        vlans(hosts)
        flows = [hosts.connect("10.10.0.2"), hosts.connect()]
        for words, tagged, total in (("", 500, 1000),
                                     ("add dev v10 root color rate 300mbit limit 10m", 300, 1300),
                                     ("del dev v10 root", 500, 1000)):
            if words:
                hosts.b.tc(f"qdisc {words}")
            pump(flows, 10e-3)
            got = pump(flows, 10e-3)
            mbit = [carried(flows[0], got[0], 10e-3, 4), carried(flows[1], got[1], 10e-3)]
            near(mbit[0], tagged, f"the VLAN's flow: {words}", 0.05)
            near(sum(mbit), total, f"both flows: {words}", 0.05)


@case("the route changes while both ends request credits: an end that got none repeats its request")
def both_wait():
    with Wire(cc="xpass", rto_min=200) as wire:
        client, server = wire.connect()
        true(wire.transfer_both(client, server, 100_000), "arrives")
        run(f"ip -n {wire.a.name} link add x0 type veth peer name x1")
        wire.a.ip("link set x1 up", "link set x0 up",
                  "neigh add 10.0.0.2 lladdr 02:00:00:00:00:01 nud permanent dev x0")
        wire.run(1e-3)
        wire.mark()
        wire.rule = lambda p: p.from_a and p.kind == REQUEST
        count = 40 * MSS[4]
        equal(client.send(pattern(count)), count, "sent")
        # The next one follows after 40 ms or more: not while the route is another one.
        true(wire.run(1.0, lambda: len(requests(wire.from_a())) == 10), "requests are repeated")
        equal(server.send(pattern(count)), count, "sent")
        for route in "x0", "tun0 rto_min 200ms":
            wire.a.ip(f"route replace 10.0.0.2/32 dev {route}")
            wire.run(3e-3)
        wire.rule = None
        equal(len(wire.receive(server, count, 0.4)), count, "bytes that arrive in 0.4 s")
        equal(len(wire.receive(client, count)), count, "bytes in the other direction")


@case("a VRF: the speed of the device that packets leave on, whichever the socket is bound to")
def vrf():
    with Hosts() as hosts:
        for ns, dev in ((hosts.a, "va"), (hosts.b, "vb")):
            run(f"ip -n {ns.name} link add red type vrf table 10")
            ns.ip("link set red up", f"link set {dev} master red")
        hosts.a.tc("qdisc replace dev va root color rate 1gbit")
        equal((link(hosts.a, "va"), link(hosts.a, "red")), ((1000, "port"), (10000, "local")),
              "the links")
        for bound in (("red", "red"), ("va", "vb")):
            near(paced(hosts.connect(bind=bound)), 1000, f"bound to {bound}")


@case("a bond: the sum of its members, as the driver reports, also when a member is removed")
def bond():
    with Hosts() as hosts:
        hosts.wire("vc", "vd", 2)
        for ns, devs in ((hosts.a, "va vc"), (hosts.b, "vb vd")):
            run(f"ip -n {ns.name} link add bond0 type bond mode balance-rr miimon 10")
            for dev in devs.split():
                ns.ip(f"link set {dev} down", f"link set {dev} master bond0")
            ns.ip("link set bond0 up")
        time.sleep(0.1)
        equal(link(hosts.a, "bond0"), (20000, "device"), "speed of two members")
        hosts.a.ip("link set vc nomaster")
        time.sleep(0.1)
        equal(link(hosts.a, "bond0"), (10000, "device"), "speed of one member")


@case("a macvlan or ipvlan in another namespace: the speed of the device below, its own link time",
      kind=("macvlan", "ipvlan mode l2"))
def other_namespace(kind):
    with Hosts() as hosts:
        inside = Namespace(f"in{Hosts.number}")
        hosts.pair.append(inside)
        inside.sysctl("net.ipv4.tcp_congestion_control", "dcqcn")
        run(f"ip -n {hosts.a.name} link add x0 link va type {kind}",
            f"ip -n {hosts.a.name} link set x0 netns {inside.name}")
        inside.ip("link set x0 up", "addr add 10.1.0.9/24 dev x0")
        hosts.a.tc("qdisc replace dev va root color rate 1gbit")
        equal(link(inside, "x0"), (1000, "port"), "the link")
        row = table(inside)["x0"]
        equal(row["wire"], row["ifindex"], "wire")
        near(paced(hosts.connect(client=inside)), 1000, "dcqcn")


@case("a tunnel's headers count as link time")
def tunnel():
    with Hosts() as hosts:
        for ns, dev, number in ((hosts.a, "va", 1), (hosts.b, "vb", 2)):
            run(f"ip -n {ns.name} link add x0 type vxlan id 7 dstport 4789 dev {dev}"
                f" local 10.1.0.{number} remote 10.1.0.{3 - number}")
            ns.ip("link set x0 up", f"addr add 10.9.0.{number}/24 dev x0")
        row = table(hosts.a)["x0"]
        equal((row["mbit"], row["extra"]), (10000, 50), "vxlan")
        near(paced(hosts.connect("10.9.0.2"), 50), 10000, "dcqcn", 0.0005)


# --- devices that are renamed, moved and deleted -------------------------------------------------


@case("a device with connections is renamed, moved to another namespace and deleted",
      cc=("dcqcn", "xpass"))
def leaves(cc):
    with Hosts(cc, delay=None) as hosts:
        other = Namespace(f"other{Hosts.number}")
        hosts.pair.append(other)
        hosts.a.tc("qdisc add dev va root color rate 1gbit limit 10m")
        flow = hosts.connect()
        pump([flow], 2e-3)
        # Before 6.2, only while it is down.
        hosts.a.ip("link set va down", "link set va name renamed", "link set renamed up")
        equal(link(hosts.a, "renamed"), (1000, "port"), "renamed")
        pump([flow], 2e-3)
        hosts.a.ip(f"link set renamed netns {other.name}")
        equal("renamed" in table(hosts.a), False, "in the table of the old namespace")
        equal(link(other, "renamed"), (10000, "device"),
              "speed after the move, which removes the port")
        pump([flow, flow[::-1]], 2e-3)
        other.ip(f"link set renamed netns {hosts.a.name}")
        hosts.a.ip("link set renamed up", "addr add 10.1.0.1/24 dev renamed")
        equal(link(hosts.a, "renamed"), (10000, "device"), "speed after the move back")
        # A second at the device's speed would take minutes on a slow machine.
        true(pump([flow], 1.0, enough=1 << 20)[0] >= 1 << 20, "1 MB more arrives")
        hosts.a.ip("link del renamed")
        pump([flow, flow[::-1]], 0.5)
        equal(list(table(hosts.a)), ["lo"], "deleted")


@case("modules cannot be removed while connections use them, and find devices when loaded again")
def unload():
    with Hosts() as hosts:
        hosts.a.tc("qdisc replace dev va root color rate 1gbit")
        flow = hosts.connect()
        pump([flow], 1e-3)
        for name in ("link_speed", "tcp_dcqcn", "sch_color"):
            equal(modules.rmmod(name), False, f"rmmod {name} in use")
        near(paced(flow), 1000, "and it goes on")
        abort(*flow)
        for ns in hosts.pair:
            ns.sysctl("net.ipv4.tcp_congestion_control", "reno")
        hosts.a.tc("qdisc del dev va root")
        modules.unload("link_speed")
        modules.load_all()
        equal(link(hosts.a, "va"), (10000, "device"), "speed after the modules are loaded again")


@case("rd_core is removed while a port keeps link_speed, and loaded again: the port's rate holds, "
      "and flows of all devices get their credits", device=("va", "v10"))
def unload_core(device):
    with Hosts("xpass") as hosts:
        hosts.b.tc("qdisc replace dev vb root handle 1: netem delay 20us limit 100000",
                   "qdisc add dev vb parent 1:1 handle 2: color rate 1gbit limit 10m")
        vlans(hosts)
        port = "qdisc change dev vb parent 1:1 handle 2: color"
        address = "10.1.0.2" if device == "va" else "10.10.0.2"
        extra = 0 if device == "va" else 4
        for cycle in range(3):
            modules.load("tcp_xpass")
            for ns in hosts.pair:
                ns.sysctl("net.ipv4.tcp_congestion_control", "xpass")
            # Two connections: the second one finds the queue of the first one.
            flows = [hosts.connect(address), hosts.connect(address)]
            pump(flows, 5e-3)
            total = sum(carried(flow, count, 10e-3, extra)
                        for flow, count in zip(flows, pump(flows, 10e-3)))
            near(total, 1000, f"two flows, cycle {cycle}", 0.05)
            equal(modules.rmmod("rd_core"), False, "rmmod rd_core in use")
            for ns in hosts.pair:
                ns.sysctl("net.ipv4.tcp_congestion_control", "reno")
            # The queue's timer waits for the end of a packet, 13 ms, while the module is removed.
            hosts.b.tc(f"{port} rate 1mbit limit 10m")
            pump(flows, 50e-3)
            abort(*flows[0], *flows[1])
            modules.unload("rd_core")
            equal((modules.is_loaded("tcp_xpass"), modules.is_loaded("link_speed")), (False, True),
                  "tcp_xpass and link_speed are loaded")
            equal(modules.rmmod("link_speed"), False, "rmmod link_speed with a port")
            for rate, mbit in (("2500mbit", 2500), ("1gbit", 1000)):
                hosts.b.tc(f"{port} rate {rate} limit 10m")
                time.sleep(10e-3)       # a work item reads it
                for dev in ("vb", "v10"):
                    equal(link(hosts.b, dev), (mbit, "port"), f"speed of {dev} without rd_core")
        hosts.b.ip("link del v10")
        hosts.b.tc("qdisc del dev vb root")
        equal(link(hosts.b, "vb"), (10000, "device"), "speed without a port")


# --- time of a link ---------------------------------------------------------------------------


@case("flows over loopback and over another device take no credits of a link")
def apart():
    with Hosts("xpass") as hosts:
        hosts.wire("vc", "vd", 2, delay=DELAY)
        hosts.b.sysctl("net.ipv4.xpass_rate", 2000)
        alone = hosts.connect()
        local = hosts.connect("127.0.0.1", client=hosts.b)
        second = hosts.connect("10.2.0.2")
        pump([alone, local, second], 5e-3)
        got = pump([alone, local, second], 10e-3)
        for count, what in zip((got[0], got[2]), ("the wire", "another device")):
            near(carried(alone, count, 10e-3), 2000, what, 0.05)
        true(carried(alone, got[1], 10e-3) > 1000, "more than 1000 Mbit/s over loopback")


@case("a device of MTU 9000 beside one of 1500: a flow on each fills its link")
def jumbo():
    with Hosts("xpass", mtu=9000) as hosts:
        hosts.wire("vc", "vd", 2, delay=DELAY)
        hosts.b.sysctl("net.ipv4.xpass_rate", 2000)
        flows = [hosts.connect(), hosts.connect("10.2.0.2")]
        equal([segment(client) for client, _ in flows], [8948, 1448], "bytes a packet")
        pump(flows, 10e-3)
        for flow, count in zip(flows, pump(flows, 10e-3)):
            near(carried(flow, count, 10e-3), 2000, f"of {segment(flow[0])} bytes", 0.05)


@case("MTU 9000, and a peer that sends packets of 1500: a credit counts the size that arrives")
def smaller():
    with Hosts("xpass", mtu=9000) as hosts:
        # The server announces this MSS; its own segments may have 8948 bytes.
        hosts.b.ip("route add 10.1.0.1/32 dev vb advmss 1460")
        flow = hosts.connect()
        equal([segment(s) for s in flow], [1448, 8948], "bytes a packet")
        hosts.b.sysctl("net.ipv4.xpass_rate", 2000)
        credited(hosts, "of 1448 bytes", 2000, flow)


@case("a long wire: credits at the speed that the device reports", mbit=(500, 1000))
def speeds(mbit):
    with Wire(cc="xpass", rto_min=200, speed=mbit) as wire:
        far(wire)
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.xpass_rate", 0)
        client, server = wire.connect()
        wire.transfer(client, server, 4_000_000)    # until line rate
        count = mbit * 1000
        began = time.monotonic()
        true(wire.transfer(client, server, count), "arrives")
        near(carried((client, server), count, time.monotonic() - began), mbit, "Mbit/s", 0.1)


if __name__ == "__main__":
    main()
