# SPDX-License-Identifier: GPL-2.0
"""Hosts and switches, built in the guest from namespaces and veth pairs.

    h0 ------ p0 :leaf0: up0 ------ d0 :spine0:
    h1 ------ p1 :     : up1 ---\  /-- d1 :   :
    ...          :     :         \/
    h15 ---- p15 :     :         /\
    h16 ------ p0 :leaf1: up0 --/  \-- d0 :spine1:
    ...          :     : up1 --------- d1 :      :

    host egress (eth0)            a NIC: the wire's delay, then line rate
    switch egress (p*, up*, d*)   a switch port: color, or iofd over it
    switch ingress                the link's delay: netem on the switch's ifb

A port of a switch is p* towards a host, up* towards the core, d* towards a switch below.
Which nodes are linked is topology.py's part.

A link's delay D has to come after the port's queue, where a packet that has left it cannot
be deflected any more, and not in front of it, where a deflected packet would pay it once
more.  So it is at the end of the link: each switch redirects what comes in to an ifb of
its own, whose netem returns it D later.  Hosts have no ifb; the D of their NIC, in front,
is that of the last link.  The base round-trip time over n switches is 2 (n + 1) D.

Where nothing is deflected, `nic_delay` puts all delay into the hosts' NICs, and the
switches need no ifb: of one switch, 2 D for both links of a way.

In a paused fabric (`pause`) each link is a wire of two ends more, in a namespace of their own,
and has its delay in the middle:

    h0: eth0 ------ w0b :wires: w0a ------ p0 :leaf0

A port hears pause frames ahead of the switch's ifb, and sends them past its queue, so anywhere
else they would come too early, and a port would seem to need less headroom than it does.  The
hosts' NICs obey.

A switch knows the way down to each host below it.  All else goes up, and of several ways
up it chooses one by the client's port (ECMP): rules send each SLICES-th of the range of
ports to one.  So a flow's way is known, and the same on every kernel, which multipath
routes do not give.  `symmetric`: all switches of a tier choose alike, so that what comes
back takes the way that it went, as ExpressPass requires (SIGCOMM 2017, §3.1).  Otherwise
each switch has other slices: what is deflected and goes up again goes up elsewhere.
"""

import collections
import random
import subprocess
import time

from lab.net.namespace import Namespace, batch, write_sysctl
from lab.net.port import NIC
from lab.net.topology import TOPOLOGIES

# Of the clients; a server's is below.
PORTS = range(10240, 59392)
SLICES = 16
_FIRST_TABLE = 100
# The second byte of a core link's address: above those of the switches with hosts.
_CORE = 200

# The same for every congestion control.
_HOST_SYSCTLS = {
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

# The ends of a link: a device, an address; below is the host, or nearer to one.
Link = collections.namedtuple("Link", ["below", "below_dev", "below_address",
                                       "above", "above_dev", "above_address"])


def way_of_slices(number, ways):
    """Which of the ways up each slice of the clients' ports has in that switch."""
    chosen = [i * ways // SLICES for i in range(SLICES)]
    random.Random(number).shuffle(chosen)
    return chosen


def way_of(port, number, ways):
    """Which of the ways up a switch sends a connection."""
    return way_of_slices(number, ways)[(port - PORTS.start) * SLICES // len(PORTS)]


def _added(dev, words):
    """A line for tc: what fresh_ports() has below the root of a port."""
    what, _, rest = words.partition(" add ")
    if rest:
        return f"{what} add dev {dev} {rest}"
    return f"qdisc add dev {dev} parent 1:1 handle 2: {words}"


class Network:
    """The namespaces, their links and queues, for one configuration.

    config: topology and what it takes, rate (bit/s), delay (ns, of a link), rto_min (ns),
    ipv6; and optionally symmetric, tso, nic_delay (ns), sysctls (of the hosts), base (the hosts'
    TCP: linux or paper), pause (the switches' ports may pause those that send to them).
    """

    def __init__(self, config):
        self.config = config
        self.v6 = config["ipv6"]
        topology = TOPOLOGIES[config["topology"]](config)
        self.hosts, self.switches = topology.hosts, topology.switches
        self.ns = {}                                    # by name, once it is built
        self._of_host = {}                              # its link
        self._up = {name: [] for name in self.switches}
        self._down = {name: [] for name in self.switches}
        self._nets = {}                                 # of the switches with hosts
        self._tier = {}
        self._wires = None
        self._link(topology.links)

    # --- the plan

    def _address(self, second, third, end):
        if self.v6:
            return f"fd00:0:{second:x}:{third:x}::{end}"
        return f"10.{second}.{third}.{end}"

    def _net(self, second):
        return f"fd00:0:{second:x}::/48" if self.v6 else f"10.{second}.0.0/16"

    def _link(self, links):
        """Name the devices, and give the links addresses: the hosts of a switch are of one
        net, so that there is one route to them."""
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
        """A host's."""
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
        """[(port, next hop)]: where a switch may deflect what is for this port.

        From a way up to the other ones, never to a host.  A switch at the top: to any
        other switch below, which sends it up again.
        """
        if port.startswith("up"):
            others = [link.below_dev for link in self._up[switch]]
        elif self._up[switch]:
            others = []
        else:
            others = [link.above_dev for link in self._down[switch] if link.below in self._up]
        if port not in others:
            return []
        return [(dev, self.hop(switch, dev)) for dev in others if dev != port]

    def _below(self, switch):
        """{net: link that leads to it} of the switches with hosts below this one."""
        found = {}
        for link in self._down[switch]:
            if link.below in self._up:
                nets = [self._nets[link.below]] if link.below in self._nets else []
                for net in nets + list(self._below(link.below)):
                    found.setdefault(net, link)
        return found

    def switches_between(self, src, dst):
        """How many switches are on the way from host to host."""
        switch, target, passed = self._of_host[src].above, self._nets[self._of_host[dst].above], 1
        while self._nets.get(switch) != target:
            below = self._below(switch)
            switch = below[target].below if target in below else self._up[switch][0].above
            passed += 1
        return passed

    # --- the building

    def build(self):
        """Everything but the switches' ports, which each run makes anew."""
        for name in self.hosts + self.switches:
            self.ns[name] = ns = Namespace(name)
            if not self.v6:     # or each device would send packets of its own
                ns.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
            own = _SWITCH_SYSCTLS if name in self._up else {
                **_HOST_SYSCTLS, **self._rto_sysctl(), **self.config.get("sysctls", {})}
            for key, value in own.items():
                ns.sysctl(key, value)
        if self._paused:
            self._wires = Namespace("wires")
            self._wires.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        write_sysctl("net.core.netdev_max_backlog", _BACKLOG)
        batch("ip", self._links())
        if self._paused:
            self._wires.ip(*(f"link set {end} up" for ends in self._ends() for end in ends))
            self._wires.tc(*self._middle_lines())
        for host in self.hosts:
            self.ns[host].ip(*self._host_lines(self._of_host[host]))
            self.ns[host].tc(*self._nic_lines())
        family = "-6" if self.v6 else "-4"
        for switch in self.switches:
            self.ns[switch].ip(*self._switch_lines(switch), options=[family])
            if self._has_wires:
                self.ns[switch].tc(*self._wire_lines(switch))
        if not self.config.get("tso", True):
            self._offloads_off()
        # IPv6 is not ready at once, and waiting costs nothing here.
        time.sleep(5)

    def fresh_ports(self, words, ports=None):
        """New queues, with new counters, at these [(switch, device)], or at all of them.

        words(switch, device): the root qdisc of a port, and what is below it, in tc's words: a
        qdisc below its 1:1, or a line for tc without the device (class add ..., filter add ...).
        """
        by_switch = collections.defaultdict(list)
        for switch, dev in ports or [(s, dev) for s in self.switches for dev in self.ports(s)]:
            by_switch[switch].append(dev)
        for switch, devs in by_switch.items():
            # A pool lives as long as a port is in it: so all of them leave it first.
            lines = [f"qdisc replace dev {dev} root handle 9: pfifo" for dev in devs]
            for dev in devs:
                root, *below = words(switch, dev)
                lines.append(f"qdisc replace dev {dev} root handle 1: {root}")
                lines += [_added(dev, one) for one in below]
            self.ns[switch].tc(*lines)

    def remove(self):
        """All namespaces, and with them everything else."""
        for ns in [*self.ns.values()] + [self._wires] * self._paused:
            ns.remove()

    @property
    def _paused(self):
        """Are links wires of their own, with the delay in the middle?"""
        return bool(self.config.get("pause"))

    @property
    def _has_wires(self):
        """Is the links' delay at their ends?"""
        return self.config.get("nic_delay") is None and not self._paused

    def _all_links(self):
        return [link for switch in self.switches for link in self._down[switch]]

    def _ends(self):
        """[(below, above)]: the ends of the links' wires."""
        return [(f"w{i}b", f"w{i}a") for i in range(len(self._all_links()))]

    def _offloads_off(self):
        devices = {host: ["eth0"] for host in self.hosts}
        devices.update((switch, self.ports(switch)) for switch in self.switches)
        for name, devs in devices.items():
            with self.ns[name]:
                for dev in devs:
                    subprocess.run(["ethtool", "-K", dev, "tso", "off", "gso", "off"], check=True)

    def _middle_lines(self):
        """What comes in at one end of a wire leaves it at the other one, a link's delay later."""
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

    def _dev_up(self, dev, address):
        bits = "64 nodad" if self.v6 else "24"
        address, _, nodad = f"{address}/{bits}".partition(" ")
        return [f"address add {address} dev {dev} {nodad}", f"link set {dev} up"]

    def _rto_sysctl(self):
        """RTO_min as a sysctl of the hosts: a route counts whole milliseconds, but Linux 6.1 has
        nothing else."""
        if self.config.get("base", "linux") == "linux":
            return {}
        return {"net.ipv4.tcp_rto_min_us": self.config["rto_min"] // 1000}

    def _host_lines(self, link):
        rto_min = "" if self._rto_sysctl() else f" rto_min {self.config['rto_min'] // 10**6}ms"
        return ["link set lo up", *self._dev_up(link.below_dev, link.below_address),
                f"route add default via {link.above_address}{rto_min}"]

    def _nic_lines(self):
        """The wire's delay, then a line that sends segments, as a NIC does."""
        if self._paused:
            return [f"qdisc add dev eth0 root handle 1: color rate {self.config['rate']}bit"
                    " limit 1000m pause obey"]
        delay = self.config.get("nic_delay")
        delay = self.config["delay"] if delay is None else delay
        return [f"qdisc add dev eth0 root handle 1: netem delay {delay / 1000:g}us limit 1000000",
                f"qdisc add dev eth0 parent 1:1 handle 2: color rate {self.config['rate']}bit {NIC}"]

    def _switch_lines(self, switch):
        lines = ["link set lo up"] + ["link set wire up"] * self._has_wires
        for link in self._down[switch]:
            lines += self._dev_up(link.above_dev, link.above_address)
        if switch in self._nets:    # or packets for none of its hosts go up, and return
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
        # What is below first; then a rule each way for every slice.
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
        """What comes in arrives a link's delay later."""
        lines = ["qdisc add dev wire root netem"
                 f" delay {self.config['delay'] / 1000:g}us limit 1000000"]
        for port in self.ports(switch):
            lines += [f"qdisc add dev {port} ingress",
                      f"filter add dev {port} parent ffff: matchall"
                      " action mirred egress redirect dev wire"]
        return lines
