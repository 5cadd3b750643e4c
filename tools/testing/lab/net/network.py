# SPDX-License-Identifier: GPL-2.0
"""A network of hosts and switches in the guest: namespaces and veth pairs.

    h0 ------ p0 :leaf0: up0 ------ d0 :spine0:
    h1 ------ p1 :     : up1 ---\  /-- d1 :   :
    ...          :     :         \/
    h15 ---- p15 :     :         /\
    h16 ------ p0 :leaf1: up0 --/  \-- d0 :spine1:
    ...          :     : up1 --------- d1 :      :

    host egress (eth0)            a NIC: the link's delay, then line rate
    switch egress (p*, up*, d*)   a switch port: color, or iofd over it
    switch ingress                the link's delay: netem on the switch's ifb

A switch port is p* towards a host, up* towards the core, d* towards a switch below.  topology.py
decides which nodes are linked.

A link's delay D has to follow the port's queue: a packet behind the queue can no longer be
deflected, and with D before the queue a deflected packet would be delayed once more.  So D is at
the end of the link: each switch redirects received packets to its ifb, whose netem returns them D
later.  Hosts have no ifb; the D of their NIC stands for the delay of the last link.  The base
round-trip time over n switches is 2 (n + 1) D.

In a network without deflection `nic_delay` puts all delay into the hosts' NICs, and the switches
need no ifb: with one switch, 2 D for both links of a path.

In a paused fabric (`pause`) each link has a delay in its middle, between two more devices in a
namespace of the links:

    h0: eth0 ------ w0b :wires: w0a ------ p0 :leaf0

A port receives pause frames before the switch's ifb, and sends them past its queue.  With the delay
elsewhere they would arrive too early, and a port would seem to need less headroom than it does.
The hosts' NICs obey pause frames.

A switch has routes down to each host below it, and sends all other packets up.  With several
uplinks it selects one by the client's port (ECMP): rules map each of SLICES ranges of ports to an
uplink.  So a flow's path is known, and the same on every kernel, unlike with multipath routes.
`symmetric`: all switches of a tier map alike, so that both directions of a connection take the same
path, as ExpressPass requires (SIGCOMM 2017, §3.1).  Otherwise each switch maps differently, so a
packet that was deflected down takes another uplink.  `labels`: switches select by a hash of IPv6's
flow label and addresses instead (Linux's multipath routes).
"""

import collections
import random
import time

from lab.net import rtnl
from lab.net.ethtool import no_segmentation
from lab.net.namespace import Namespace, batch, write_sysctl
from lab.net.port import nic
from lab.net.topology import TOPOLOGIES

# The clients' ports; the servers' ports are below.
PORTS = range(10240, 59392)
SLICES = 16
_FIRST_TABLE = 100
# The second byte of a core link's address: above those of the switches with hosts.
_CORE = 200

# Sysctls of the hosts, the same for every congestion control.
HOST_SYSCTLS = {
    "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.tcp_rmem": "4096 4194304 67108864",
    "net.ipv4.tcp_wmem": "4096 4194304 67108864",
    "net.ipv4.tcp_max_syn_backlog": 65536,
    "net.core.somaxconn": 65536,
}
_SWITCH_SYSCTLS = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
}
# The queue between a veth and its peer: an incast's burst is longer than the default, 1000.
_BACKLOG = 1000000
# Thousands of flows end at a host.  Their unsent data, and data that waits for a lost packet, would
# fill TCP's memory, whose limit applies to all namespaces together, and then receivers drop packets.
_TCP_MEM = "1000000 1000000 1000000"        # pages

# Each end of a link has a device and an address; `below` is the host, or the end nearer to hosts.
Link = collections.namedtuple("Link", ["below", "below_dev", "below_address",
                                       "above", "above_dev", "above_address"])


def way_of_slices(number, ways):
    """The uplink, 0 ... ways - 1, of each slice of the clients' ports in a switch."""
    chosen = [i * ways // SLICES for i in range(SLICES)]
    random.Random(number).shuffle(chosen)
    return chosen


def way_of(port, number, ways):
    """The uplink, 0 ... ways - 1, of a connection in a switch."""
    return way_of_slices(number, ways)[(port - PORTS.start) * SLICES // len(PORTS)]


def _added(dev, words):
    """A tc command that adds a qdisc, class or filter of fresh_ports() below a port's root."""
    what, _, rest = words.partition(" add ")
    if rest:
        return f"{what} add dev {dev} {rest}"
    return f"qdisc add dev {dev} parent 1:1 handle 2: {words}"


class Network:
    """The namespaces, their links and queues, for one configuration.

    config: topology and its parameters, rate (bit/s), delay (ns, of a link), rto_min (ns), ipv6;
    and optionally symmetric, labels, tso, nic_delay (ns), sysctls (of the hosts), base (the hosts' TCP:
    linux or paper), pause (the switches' ports may pause their upstream ports), nic_ecn (bytes in a
    paused NIC above which it marks).
    """

    def __init__(self, config):
        self.config = config
        self.v6 = config["ipv6"]
        topology = TOPOLOGIES[config["topology"]](config)
        self.hosts, self.switches = topology.hosts, topology.switches
        self.ns = {}                                    # by name, after build()
        self._nic = nic()                               # the queue of each host's NIC
        self._of_host = {}                              # each host's link
        self._up = {name: [] for name in self.switches}
        self._down = {name: [] for name in self.switches}
        self._nets = {}                                 # numbers of the switches with hosts
        self._tier = {}
        self.wires = None
        self._link(topology.links)

    # --- the plan

    def _address(self, second, third, end):
        if self.v6:
            return f"fd00:0:{second:x}:{third:x}::{end}"
        return f"10.{second}.{third}.{end}"

    def _net(self, second):
        return f"fd00:0:{second:x}::/48" if self.v6 else f"10.{second}.0.0/16"

    def _link(self, links):
        """Name the devices, and assign addresses to the links.  The hosts of a switch are in one
        subnet, so that other switches need one route to them."""
        seen = collections.Counter()        # devices by role
        for below, above in links:
            self._tier[above] = max(self._tier.get(below, 0) + 1, self._tier.get(above, 0))
            if below in self._up:
                dev, role = f"up{len(self._up[below])}", "d"
                net = _CORE + seen["core"] // 250, seen["core"] % 250 + 1
                seen["core"] += 1
            else:
                dev, role = "eth0", "p"
                net = (self._nets.setdefault(above, len(self._nets) + 1),
                       seen[above, role] + 1)
            link = Link(below, dev, self._address(*net, 2),
                        above, f"{role}{seen[above, role]}", self._address(*net, 1))
            seen[above, role] += 1
            self._down[above].append(link)
            if below in self._up:
                self._up[below].append(link)
            else:
                self._of_host[below] = link

    def address(self, host):
        """A host's address."""
        return self._of_host[host].below_address

    def port_of(self, host):
        """(switch, device): the switch port that a host is linked to."""
        link = self._of_host[host]
        return link.above, link.above_dev

    def ports(self, switch):
        """All ports of a switch."""
        return [link.above_dev for link in self._down[switch]] \
            + [link.below_dev for link in self._up[switch]]

    def hop(self, switch, port):
        """The address at the other end of a switch's port."""
        return next(other for link in self._up[switch] + self._down[switch]
                    for name, dev, other in ((link.below, link.below_dev, link.above_address),
                                             (link.above, link.above_dev, link.below_address))
                    if (name, dev) == (switch, port))

    def deflections(self, switch, port):
        """[(port, next hop)]: the ports to which a switch may deflect packets of this port.

        An uplink deflects to the other uplinks, never to a host; a port to a switch below to the
        other switches below, which send the packet up again.
        """
        if port.startswith("up"):
            others = [link.below_dev for link in self._up[switch]]
        else:
            others = [link.above_dev for link in self._down[switch] if link.below in self._up]
        if port not in others:
            return []
        return [(dev, self.hop(switch, dev)) for dev in others if dev != port]

    def _below(self, switch):
        """{subnet: link towards it}, for the switches with hosts below this switch."""
        found = {}
        for link in self._down[switch]:
            if link.below in self._up:
                nets = [self._nets[link.below]] if link.below in self._nets else []
                for net in nets + list(self._below(link.below)):
                    found.setdefault(net, link)
        return found

    def switches_between(self, src, dst):
        """The number of switches on the path between two hosts."""
        switch, target, passed = self._of_host[src].above, self._nets[self._of_host[dst].above], 1
        while self._nets.get(switch) != target:
            below = self._below(switch)
            switch = below[target].below if target in below else self._up[switch][0].above
            passed += 1
        return passed

    # --- the building

    def build(self):
        """Build the network, except the queues of the switches' ports, which each run replaces."""
        for name in self.hosts + self.switches:
            self.ns[name] = ns = Namespace(name)
            own = _SWITCH_SYSCTLS if name in self._up else {
                **HOST_SYSCTLS, **self._rto_sysctl(), **self.config.get("sysctls", {})}
            with ns:
                if not self.v6:     # IPv6 would send packets on each device
                    write_sysctl("net.ipv6.conf.default.disable_ipv6", 1)
                for key, value in own.items():
                    write_sysctl(key, value)
        if self._paused:
            self.wires = Namespace("wires")
            self.wires.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        write_sysctl("net.core.netdev_max_backlog", _BACKLOG)
        write_sysctl("net.ipv4.tcp_mem", _TCP_MEM)
        batch("ip", self._links())
        if self._paused:
            self.wires.ip(*(f"link set {end} up" for ends in self._ends() for end in ends))
            self.wires.tc(*self._middle_lines())
        for host in self.hosts:
            with self.ns[host]:
                self._set_up_host(self._of_host[host])
            self.ns[host].tc(*self._nic_lines())
        family = "-6" if self.v6 else "-4"
        for switch in self.switches:
            self.ns[switch].ip(*self._switch_lines(switch), options=[family])
            if self._has_wires:
                self.ns[switch].tc(*self._wire_lines(switch))
        if not self.config.get("tso", True):
            self._offloads_off()
        # IPv6 needs some time to be ready; sleeping is free in virtual time.
        time.sleep(5)

    def fresh_ports(self, words, ports=None):
        """Replace the queues, and their counters, of these ports, [(switch, device)], or of all.

        words(switch, device): [root qdisc of a port, *additions], as arguments for tc; an addition
        is a qdisc below 1:1, or a command without the device (class add ..., filter add ...).
        """
        by_switch = collections.defaultdict(list)
        for switch, dev in ports or [(s, dev) for s in self.switches for dev in self.ports(s)]:
            by_switch[switch].append(dev)
        for switch, devs in by_switch.items():
            # A pool exists while a port uses it, so all ports leave it first.
            lines = [f"qdisc replace dev {dev} root handle 9: pfifo" for dev in devs]
            for dev in devs:
                root, *below = words(switch, dev)
                lines.append(f"qdisc replace dev {dev} root handle 1: {root}")
                lines += [_added(dev, one) for one in below]
            self.ns[switch].tc(*lines)

    def counters(self, name):
        """The sum over all hosts of a counter of greenlane or, if it begins with TCP, of TCP."""
        hosts = [self.ns[host] for host in self.hosts]
        if name.startswith("TCP"):
            return sum(ns.netstat(name) for ns in hosts)
        return sum(ns.greenlane()[name] for ns in hosts)

    def remove(self):
        """Remove all namespaces, and with them the devices."""
        for ns in [*self.ns.values()] + [self.wires] * self._paused:
            ns.remove()

    @property
    def _paused(self):
        """Whether the links have devices in their middle, with the delay there."""
        return bool(self.config.get("pause"))

    @property
    def _has_wires(self):
        """Whether the links' delay is at their ends, in the switches' ifbs."""
        return self.config.get("nic_delay") is None and not self._paused

    def _all_links(self):
        return [link for switch in self.switches for link in self._down[switch]]

    def _ends(self):
        """[(below, above)]: the devices in the middle of each link."""
        return [(f"w{i}b", f"w{i}a") for i in range(len(self._all_links()))]

    def _offloads_off(self):
        devices = {host: ["eth0"] for host in self.hosts}
        devices.update((switch, self.ports(switch)) for switch in self.switches)
        for name, devs in devices.items():
            with self.ns[name]:
                for dev in devs:
                    no_segmentation(dev)

    def _middle_lines(self):
        """tc commands: the devices in the middle of a link forward packets to each other, a link's
        delay later."""
        lines = []
        for below, above in self._ends():
            for end, other in ((below, above), (above, below)):
                lines += [f"qdisc add dev {end} root netem"
                          f" delay {self.config['delay'] / 1000:g}us limit 1000000",
                          f"qdisc add dev {end} ingress",
                          f"filter add dev {end} parent ffff: matchall"
                          f" action mirred egress redirect dev {other}"]
        return lines

    def _links(self):
        if self._paused:
            return [f"link add {dev} netns {name} type veth peer name {end} netns wires"
                    for link, (below, above) in zip(self._all_links(), self._ends())
                    for name, dev, end in ((link.below, link.below_dev, below),
                                           (link.above, link.above_dev, above))]
        wires = self.switches if self._has_wires else []
        return [f"link add wire netns {switch} type ifb" for switch in wires] + [
            f"link add {link.below_dev} netns {link.below} type veth"
            f" peer name {link.above_dev} netns {link.above}"
            for link in self._all_links()]

    @property
    def _bits(self):
        return 64 if self.v6 else 24

    def _dev_up(self, dev, address):
        return [f"address add {address}/{self._bits} dev {dev}{' nodad' * self.v6}",
                f"link set {dev} up"]

    def _rto_sysctl(self):
        """RTO_min as a sysctl of the hosts of --base paper.  Routes, which have whole milliseconds,
        set it for Linux, because 6.1 has no sysctl."""
        if self.config.get("base", "linux") == "linux":
            return {}
        return {"net.ipv4.tcp_rto_min_us": self.config["rto_min"] // 1000}

    def _set_up_host(self, link):
        """Set up a host's devices, in its namespace."""
        rto_min = None if self._rto_sysctl() else self.config["rto_min"] // 10**6
        host = rtnl.Host()
        host.up("lo")
        host.address(link.below_dev, f"{link.below_address}/{self._bits}")
        host.up(link.below_dev)
        host.route(link.below_dev, via=link.above_address, rto_min=rto_min)
        host.apply()

    def set_nics(self, words):
        """Change the queue of each host's NIC, unless the network may pause it."""
        if not self._paused and words != self._nic:
            self._nic = words
            for host in self.hosts:
                self.ns[host].tc(f"qdisc change dev eth0 parent 1:1 handle 2: color {words}")

    def _nic_lines(self):
        """tc commands: the link's delay, then a queue that sends at line rate, as a NIC does."""
        if self._paused:
            ecn = self.config.get("nic_ecn")
            return [f"qdisc add dev eth0 root handle 1: color rate {self.config['rate']}bit"
                    f" limit 1000m pause obey ecn {ecn or 'none'}"]
        delay = self.config.get("nic_delay")
        delay = self.config["delay"] if delay is None else delay
        return [f"qdisc add dev eth0 root handle 1: netem delay {delay / 1000:g}us limit 1000000",
                f"qdisc add dev eth0 parent 1:1 handle 2: color rate {self.config['rate']}bit"
                f" {self._nic}"]

    def _switch_lines(self, switch):
        lines = ["link set lo up"] + ["link set wire up"] * self._has_wires
        for link in self._down[switch]:
            lines += self._dev_up(link.above_dev, link.above_address)
        if switch in self._nets:    # else packets to missing hosts would loop through the uplinks
            lines += [f"route add unreachable {self._net(self._nets[switch])}"]
        for net, link in self._below(switch).items():
            lines += [f"route add {self._net(net)} via {link.below_address}"]
        ways = self._up[switch]
        for i, link in enumerate(ways):
            lines += self._dev_up(link.below_dev, link.below_address)
            lines += [f"route add default via {link.above_address} dev {link.below_dev}"
                      f" table {_FIRST_TABLE + i}"]
        if not ways:
            return lines
        if self.config.get("labels"):
            hops = [f"nexthop via {link.above_address} dev {link.below_dev}" for link in ways]
            return lines + [f"route add default {' '.join(hops)}"]
        # First the routes down; then a rule for each slice and direction.
        lines += ["rule add pref 10 lookup main"]
        if len(ways) == 1:
            return lines + [f"rule add pref 100 lookup {_FIRST_TABLE}"]
        symmetric = self.config.get("symmetric", True)
        number = self._tier[switch] if symmetric else self.switches.index(switch)
        width = len(PORTS) // SLICES
        for i, way in enumerate(way_of_slices(number, len(ways))):
            first = PORTS.start + i * width
            lines += [f"rule add pref 100 ipproto tcp {end} {first}-{first + width - 1}"
                      f" lookup {_FIRST_TABLE + way}" for end in ("sport", "dport")]
        return lines

    def _wire_lines(self, switch):
        """tc commands: the switch's ifb delays received packets by a link's delay."""
        lines = ["qdisc add dev wire root netem"
                 f" delay {self.config['delay'] / 1000:g}us limit 1000000"]
        for port in self.ports(switch):
            lines += [f"qdisc add dev {port} ingress",
                      f"filter add dev {port} parent ffff: matchall"
                      " action mirred egress redirect dev wire"]
        return lines
