# SPDX-License-Identifier: GPL-2.0
"""Hosts, leaves and spines, built in the guest from namespaces and veth pairs.

    h0 ------ p0 :leaf0: up0 ------ d0 :spine0:
    h1 ------ p1 :     : up1 ---\  /-- d1 :   :
    ...          :     :         \/
    h15 ---- p15 :     :         /\
    h16 ------ p0 :leaf1: up0 --/  \-- d0 :spine1:
    ...          :     : up1 --------- d1 :      :

    host egress (eth0)            a NIC: one link's delay, then line rate
    switch egress (p*, up*, d*)   a switch port: the color qdisc, or iofd over it
    switch ingress                the link's delay: netem on the switch's ifb

A link's delay D has to come after the port's queue, where a packet that has left it
cannot be deflected any more, and not in front of it, where a deflected one would pay it
once more.  So it is at the end of the link: each switch redirects what comes in to an
ifb of its own, whose netem gives it back D later.  Hosts have no ifb; their NIC's D, in
front, is that of the last link.  The base round-trip time over n switches is 2 (n + 1) D.

A leaf has a route over each spine, and chooses by the client's port (ECMP): rules send
each SLICES-th of the range of ports to a spine, other slices in each leaf.  So a flow's
way is known, and the same on every kernel, which multipath routes do not give.
"""

import random
import time

from topology import SYSCTLS, batch, enter, make_namespace, nic, write_sysctl

# Of the clients; a server's is below.
PORTS = range(10240, 59392)
SLICES = 16
_FIRST_TABLE = 100

_SWITCH_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
}


def spine_of_slices(leaf, spines):
    """Which spine each slice of the clients' ports has in a leaf."""
    chosen = [i * spines // SLICES for i in range(SLICES)]
    random.Random(leaf).shuffle(chosen)
    return chosen


def spine_of(port, leaf, spines):
    """Which spine a leaf sends a connection to."""
    return spine_of_slices(leaf, spines)[(port - PORTS.start) * SLICES // len(PORTS)]


class LeafSpine:
    """The namespaces, their links and queues, for one configuration."""

    def __init__(self, config):
        self.config = config
        self.v6 = config["ipv6"]
        self.leaves = [f"leaf{i}" for i in range(config["leaves"])]
        self.spines = [f"spine{i}" for i in range(config["spines"])]
        self.hosts = [f"h{i}" for i in range(config["hosts"])]
        self.per_leaf = config["hosts"] // config["leaves"]
        self.switches = self.leaves + self.spines

    def _address(self, second, third, end):
        if self.v6:
            return f"fd00:0:{second:x}:{third:x}::{end}"
        return f"10.{second}.{third}.{end}"

    def leaf_of(self, host):
        """(leaf, port) of a host, all by number."""
        return divmod(host, self.per_leaf)

    def host_link(self, host):
        """(leaf's, host's) address on the link of a host."""
        leaf, port = self.leaf_of(host)
        return self._address(leaf + 1, port + 1, 1), self._address(leaf + 1, port + 1, 2)

    def core_link(self, leaf, spine):
        """(leaf's, spine's) address on the link between the two."""
        return (self._address(leaf + 201, spine + 1, 1),
                self._address(leaf + 201, spine + 1, 2))

    def ports(self, switch):
        """All ports of a switch."""
        if switch in self.spines:
            return [f"d{i}" for i in range(len(self.leaves))]
        return ([f"p{i}" for i in range(self.per_leaf)]
                + [f"up{i}" for i in range(len(self.spines))])

    def deflections(self, switch, port):
        """[(port, next hop)]: where a switch may deflect what is for this port.

        A leaf: to its other uplinks, never to a host.  A spine: to any other leaf, which
        sends it up again.
        """
        if switch in self.spines:
            spine = self.spines.index(switch)
            return [(f"d{i}", self.core_link(i, spine)[0])
                    for i in range(len(self.leaves)) if f"d{i}" != port]
        if port.startswith("p"):
            return []
        leaf = self.leaves.index(switch)
        return [(f"up{i}", self.core_link(leaf, i)[1])
                for i in range(len(self.spines)) if f"up{i}" != port]

    def build(self):
        """Everything but the switches' ports, which each run makes anew."""
        for name in self.hosts + self.switches:
            make_namespace(name)
            for key, value in SYSCTLS.items():
                write_sysctl(name, key, value)
            if not self.v6:     # or each device would speak of itself
                write_sysctl(name, "net/ipv6/conf/default/disable_ipv6", "1")
            for key, value in _SWITCH_SYSCTLS.items() if name in self.switches else ():
                write_sysctl(name, key, value)
        enter(None)
        write_sysctl(None, "net/core/netdev_max_backlog", "1000000")
        batch("ip", None, self._links())
        for number, host in enumerate(self.hosts):
            batch("ip", host, self._host_lines(number))
            batch("tc", host, nic(self.config["delay"], self.config["rate"]))
        for number, leaf in enumerate(self.leaves):
            batch("ip", leaf, self._leaf_lines(number), "-6" if self.v6 else "-4")
        for number, spine in enumerate(self.spines):
            batch("ip", spine, self._spine_lines(number))
        for switch in self.switches:
            batch("tc", switch, self._wire_lines(switch))
        # IPv6 is not ready at once, and waiting costs nothing here.
        time.sleep(5)

    def _links(self):
        pair = "link add {} netns {} type veth peer name {} netns {}".format
        lines = [f"link add wire netns {switch} type ifb" for switch in self.switches]
        for number, host in enumerate(self.hosts):
            leaf, port = self.leaf_of(number)
            lines.append(pair("eth0", host, f"p{port}", self.leaves[leaf]))
        for i, leaf in enumerate(self.leaves):
            lines += [pair(f"up{j}", leaf, f"d{i}", spine)
                      for j, spine in enumerate(self.spines)]
        return lines

    def _up(self, dev, address):
        bits = "64 nodad" if self.v6 else "24"
        address, _, nodad = f"{address}/{bits}".partition(" ")
        return [f"address add {address} dev {dev} {nodad}", f"link set {dev} up"]

    def _host_lines(self, number):
        gateway, own = self.host_link(number)
        return ["link set lo up", *self._up("eth0", own),
                f"route add default via {gateway}"
                f" rto_min {self.config['rto_min'] // 10**6}ms"]

    def _leaf_lines(self, leaf):
        lines = ["link set lo up", "link set wire up"]
        for host in range(leaf * self.per_leaf, (leaf + 1) * self.per_leaf):
            lines += self._up(f"p{self.leaf_of(host)[1]}", self.host_link(host)[0])
        for spine in range(len(self.spines)):
            own, other = self.core_link(leaf, spine)
            lines += self._up(f"up{spine}", own)
            lines += [f"route add default via {other} dev up{spine}"
                      f" table {_FIRST_TABLE + spine}"]
        # Its own hosts first; then a rule each way for every slice.
        lines += ["rule add pref 10 lookup main"]
        width = len(PORTS) // SLICES
        for i, spine in enumerate(spine_of_slices(leaf, len(self.spines))):
            first = PORTS.start + i * width
            lines += [f"rule add pref 100 ipproto tcp {end} {first}-{first + width - 1}"
                      f" lookup {_FIRST_TABLE + spine}" for end in ("sport", "dport")]
        return lines

    def _spine_lines(self, spine):
        lines = ["link set lo up", "link set wire up"]
        for leaf in range(len(self.leaves)):
            own, other = self.core_link(leaf, spine)[::-1]
            lines += self._up(f"d{leaf}", own)
            net = f"fd00:0:{leaf + 1:x}::/48" if self.v6 else f"10.{leaf + 1}.0.0/16"
            lines += [f"route add {net} via {other}"]
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
