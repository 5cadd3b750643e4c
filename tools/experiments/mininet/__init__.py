# SPDX-License-Identifier: GPL-2.0
"""greenlane in mininet 2.3: hosts with a congestion control, ports with colours.

	from experiments.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink

	net = Mininet(topo, controller=None, switch=GreenlaneBridge,
	              host=GreenlaneHost.using(cc="tlt_dctcp"),
	              link=GreenlaneLink.using(bw=10000, delay="5us"))

    h1 (host)                                s1 (switch)
    TCP -> rate (color: h1-eth0) ---------->  delay, loss (netem: s1-eth1w)
           delay, loss (netem: h1-eth0w) <--  iofd -> thresholds, rate (color: s1-eth1)

    host egress      a NIC: it sends segments at the link rate.  A veth would pass packets
                     of 64 kB to the switch unsplit
    switch egress    a switch port: color, and iofd over it where there is another path
    ingress          the wire: netem on an ifb.  Before the port, netem would delay a
                     deflected packet twice, and its queue would hold packets that belong
                     on the wire

Documentation/experiments.rst describes it.
"""

import atexit
import contextlib
import functools
import itertools
import json
import shlex
import tempfile

from mininet.link import Intf, Link
from mininet.node import Host, Switch
from mininet.util import natural

from lab.net.namespace import ACTIVE, is_transport
from lab.net.port import nic
from lab.transports import BY_MARKS, MBIT

FULL_FRAME = 1514
FAILED = "greenlane-failed"
# DCTCP's threshold at 1 Gbit/s (SIGCOMM 2010, 3.5), in packets: with less the link would be idle at
# times.
LEAST_ECN = 20
# TCLink's options.  _UNUSED select how TCLink does the work of the qdiscs here, and are ignored;
# _OTHER would add another queue, and are errors.
_UNUSED = ("use_hfsc", "use_tbf", "use_htb", "gro", "txo", "rxo", "disable_gro")
_OTHER = ("enable_ecn", "enable_red", "latency_ms", "speedup")
_OURS = ("bw", "delay", "jitter", "loss", "max_queue_size", "queue", "iofd",
         *_UNUSED, *_OTHER)
# Addresses of links between routers: from 100.64.0.0/10, which is not routed globally (RFC 6598).
_CORE = (100 << 24) + (64 << 16)
_ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"


def stop(why):
    """End the script with a message: a partly configured network gives useless results."""
    raise SystemExit(f"greenlane: {why}")


def _allow(cc):
    """Permit a restricted congestion control, as dctcp, as a namespace's default until the script
    ends."""
    def change(permits):
        with contextlib.suppress(OSError), open(_ALLOWED, "r+", encoding="ascii") as file:
            names = [name for name in file.read().split() if name != cc] + [cc] * permits
            file.seek(0)
            file.write(" ".join(names))

    change(True)
    atexit.register(change, False)


def run(node, *command):
    """Run a program in a node whose shell may be busy; returns its stdout."""
    process = node.popen(list(command))
    out, err = process.communicate()
    if process.returncode:
        stop(f"{node.name}: {err.decode().strip()}")
    return out.decode()


def batch(node, tool, lines):
    """Run commands of ip or tc in a node's shell, with one process for all of them."""
    with tempfile.NamedTemporaryFile("w", prefix="greenlane-") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        said = node.cmd(f"{tool} -batch {file.name} || echo {FAILED}")
    if FAILED not in said:
        return
    # The first rejected command ends the batch; only the first message has its reason.
    why = said.strip().splitlines()[0]
    hint = ""
    if "kind is unknown" in why:
        hint = " (load the module: sch_color, sch_iofd)"
    elif "Unknown qdisc" in why:
        hint = " (tc has no plugin: make install, or TC_LIB_DIR)"
    stop(f"{node.name}: {tool} refuses '{'; '.join(lines)}': {why}{hint}")


def write(node, name, value):
    """Set a sysctl, by its path below /proc/sys, in a node; returns the shell's error, or ""."""
    return node.cmd(f"echo {shlex.quote(str(value))} > /proc/sys/{name}").strip()


def default_queue(bw, packets=None):
    """`preset tlt` of tc-color(8), 200k, 270k and 1800k at 40 Gbit/s, in proportion to the rate;
    but ecn is at least LEAST_ECN packets, for slow links."""
    ecn = max(int(200 * 1024 * bw / 40000), LEAST_ECN * FULL_FRAME)
    limit = 9 * ecn if packets is None else packets * FULL_FRAME
    return f"limit {limit} red {min(ecn * 27 // 20, limit)} ecn {min(ecn, limit)}"


class GreenlaneIntf(Intf):
    """One end of a link: a NIC at a host, a switch port at a switch."""

    bw = iofd = port = wire = None

    # pylint: disable=arguments-differ
    def config(self, bw=None, delay=None, jitter=None, loss=None, max_queue_size=None,
               queue=None, iofd=None, **params):
        """bw: link rate, Mbit/s; delay, jitter: of the wire, as "5us"; loss: of the wire, in
        percent; queue: options of a switch port, as in tc-color(8); max_queue_size: its limit in
        packets; iofd: options of a GreenlaneRouter's port, as in tc-iofd(8)."""
        for name in _OTHER:
            if params.pop(name, None):
                stop(f"{self}: {name} is TCLink's; the port's options are queue='...'")
        if not isinstance(bw, (int, float)) or bw <= 0:
            stop(f"{self}: bw={bw!r}: Mbit/s; a link that is never full has no queue")
        if iofd and not isinstance(self.node, GreenlaneRouter) and isinstance(self.node, Switch):
            stop(f"{self}: iofd needs next hops: switch=GreenlaneRouter")
        result = Intf.config(self, **dict(params, up=False))
        self.bw, self.iofd = bw, iofd
        if not isinstance(self.node, Switch):
            queue = nic()
        elif not queue:
            queue = default_queue(bw, max_queue_size)
        elif max_queue_size is not None:
            queue += f" limit {max_queue_size * FULL_FRAME}"
        self.port = f"color rate {bw}mbit {queue}"
        netem = " ".join([f"delay {delay} {jitter or ''}"] * bool(delay)
                         + [f"loss {loss}%"] * bool(loss))
        links = [f"link set {self} up"]
        lines = [f"qdisc replace dev {self} root handle 2: {self.port}"]
        if netem:
            self.wire = f"{self}w"
            links += [f"link add {self.wire} type ifb", f"link set {self.wire} up"]
            lines += [f"qdisc add dev {self.wire} root netem {netem} limit 1000000",
                      f"qdisc add dev {self} ingress",
                      f"filter add dev {self} parent ffff: matchall"
                      f" action mirred egress redirect dev {self.wire}"]
        batch(self.node, "ip", links)
        batch(self.node, "tc", lines)
        return result

    def deflect(self, iofd):
        """Put iofd over the port's queue."""
        batch(self.node, "tc", [f"qdisc replace dev {self} root handle 1: iofd {iofd}",
                                f"qdisc add dev {self} parent 1:1 handle 2: {self.port}"])

    def delete(self):
        """Delete the interface and its ifb.  A node with a namespace of its own loses the ifb with
        that."""
        if self.wire and not self.node.inNamespace:
            self.cmd("ip link del", self.wire)
        Intf.delete(self)

    def peer(self):
        """The interface at the other end of the link."""
        return self.link.intf2 if self is self.link.intf1 else self.link.intf1

    def stats(self):
        """tc's statistics of the port, by qdisc: stats()["color"]["drops"]."""
        shown = run(self.node, "tc", "-j", "-s", "qdisc", "show", "dev", str(self))
        return {qdisc["kind"]: qdisc for qdisc in json.loads(shown)}


class GreenlaneLink(Link):
    """A link with a GreenlaneIntf at each end; params1 and params2 override params at one end."""

    numbers = itertools.count()

    @classmethod
    def using(cls, **params):
        """The class with these default parameters, which those of a topology's link override."""
        return functools.partial(cls, **params)

    def __init__(self, node1, node2, params1=None, params2=None, **params):
        both = {key: params.pop(key) for key in _OURS if key in params}
        self.number = next(self.numbers)
        params = {"cls1": GreenlaneIntf, "cls2": GreenlaneIntf, **params}
        Link.__init__(self, node1, node2, params1={**both, **(params1 or {})},
                      params2={**both, **(params2 or {})}, **params)


class GreenlaneHost(Host):
    """A host whose connections have a congestion control."""

    @classmethod
    def using(cls, **params):
        """The class with these default parameters, which those of a topology's host override."""
        return functools.partial(cls, **params)

    def config(self, cc=None, sysctl=None, **params):
        """cc: congestion control; sysctl: {name: value} of this host, set last."""
        result = Host.config(self, **params)
        rates = [intf.bw for intf in self.intfList() if isinstance(intf, GreenlaneIntf)]
        if rates:
            line = max(1, int(min(rates)))
            for name in MBIT:
                # The sysctl exists only if the transport's module is loaded.
                self.cmd(f"[ ! -e /proc/sys/net/ipv4/{name} ] ||"
                         f" echo {line} > /proc/sys/net/ipv4/{name}")
        if cc:
            self.set_cc(cc)
        for name, value in (sysctl or {}).items():
            if failed := write(self, name.replace(".", "/"), value):
                stop(f"{self}: {name}={value}: {failed}")
        return result

    def set_cc(self, cc):
        """Set the congestion control of new connections."""
        setting = functools.partial(write, self, "net/ipv4/tcp_congestion_control", cc)
        failed = setting()
        if "not permitted" in failed:
            _allow(cc)
            failed = setting()
        if failed:
            stop(f"{self}: no congestion control '{cc}' (is its module there?): {failed}")
        if is_transport(cc):
            write(self, ACTIVE.replace(".", "/"), 1)
        write(self, "net/ipv4/tcp_ecn", 1 if cc.endswith(BY_MARKS) else 2)

    def counters(self):
        """The counters of the namespace, by name: TCP's and greenlane's."""
        text = run(self, "sh", "-c", "cd /proc/net; cat netstat snmp; [ ! -e greenlane ] ||"
                   " cat greenlane").splitlines()
        seen = {}
        for line, below in itertools.zip_longest(text, text[1:], fillvalue=""):
            group, *words = line.split() or [""]
            if group.endswith(":") and below.startswith(group) and not words[0].isdigit():
                seen.update(zip(words, map(int, below.split()[1:])))
            elif len(words) == 1 and words[0].isdigit():
                seen[group] = int(words[0])
        return seen


class _OwnNamespace(Switch):
    """A switch in a namespace of its own, which removes its devices at the end."""

    controlIntf = None          # mininet does not set it in this case

    def __init__(self, name, **params):
        Switch.__init__(self, name, **dict(params, inNamespace=True))


class GreenlaneBridge(_OwnNamespace):
    """A learning switch: a Linux bridge.  It has one path to each host."""

    def start(self, _controllers):
        """Add all ports to the bridge."""
        batch(self, "ip", [f"link add {self} type bridge"]
              + [f"link set {intf} master {self}" for intf in self.intfList()]
              + [f"link set {self} up"])


class GreenlaneRouter(_OwnNamespace):
    """A switch that routes IPv4 on shortest paths; iofd needs one.

    Hosts keep their addresses, in one subnet: the router answers for the other hosts (proxy
    ARP) and has a route to each.  Of n shortest paths, switch j uses path (i + j) mod n to
    host i: a flow keeps its path, and different switches use different ones.
    """

    def start(self, _controllers):
        """Set addresses and routes, and iofd at the ports for which another path exists."""
        ours = self.intfList()
        for intf in ours:
            if isinstance(intf.peer().node, Switch) and not self._core(intf):
                stop(f"{intf}: a router beside another kind of switch")
        settings = {"net/ipv4/ip_forward": 1}
        for name in ["all", *map(str, ours)]:
            settings.update({f"net/ipv4/conf/{name}/rp_filter": 0,
                             f"net/ipv4/conf/{name}/proxy_arp": 1,
                             f"net/ipv4/conf/{name}/send_redirects": 0})
        settings.update({f"net/ipv4/neigh/{intf}/proxy_delay": 0 for intf in ours})
        for name, value in settings.items():
            if failed := write(self, name, value):
                stop(f"{self}: {failed}")
        core = [intf for intf in ours if self._core(intf)]
        batch(self, "ip", [f"address add {self._address(intf)}/31 dev {intf}" for intf in core]
              + self._routes())
        for intf in core:
            others = " ".join(f"deflect dev {other} via {self._address(other.peer())}"
                              for other in core if other is not intf)
            if intf.iofd and "deflect" in intf.iofd:
                intf.deflect(intf.iofd)
            elif intf.iofd and others:
                intf.deflect(f"{intf.iofd} {others}")

    @staticmethod
    def _core(intf):
        """Is the interface an end of a link between routers?"""
        return (isinstance(intf.node, GreenlaneRouter)
                and isinstance(intf.peer().node, GreenlaneRouter))

    @staticmethod
    def _address(intf):
        """The address of one end of a link between routers."""
        number = _CORE + 2 * intf.link.number + (intf is intf.link.intf2)
        return ".".join(str(byte) for byte in number.to_bytes(4, "big"))

    def _hops(self):
        """{router: hops from this one}, nearest first."""
        hops = {self: 0}
        queue = [self]
        for router in queue:
            for intf in filter(self._core, router.intfList()):
                other = intf.peer().node
                if other not in hops:
                    hops[other] = hops[router] + 1
                    queue.append(other)
        return hops

    def _routes(self):
        """Commands of ip for a route to each address of each host, over a shortest path."""
        found = [intf for router in self._hops() for intf in router.intfList()
                 if not self._core(intf) and intf.peer().IP()]
        found.sort(key=lambda intf: natural(str(intf.peer())))
        lines = []
        for number, intf in enumerate(found):
            route = f"route replace {intf.peer().IP()}/32"
            if intf.node is self:
                lines.append(f"{route} dev {intf}")
                continue
            hops = intf.node._hops()        # pylint: disable=protected-access
            ways = [own for own in filter(self._core, self.intfList())
                    if hops[own.peer().node] < hops[self]]
            way = ways[(number + int(self.dpid, 16)) % len(ways)]
            lines.append(f"{route} via {self._address(way.peer())} dev {way}")
        return lines
