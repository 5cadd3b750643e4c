# SPDX-License-Identifier: GPL-2.0
"""The incast's network, built in the guest from namespaces and veth pairs.

    s0: eth0 ---- p0 :sw: pr ---- eth0 :r
    s1: eth0 ---- p1 :  :
    ...              :  :
    s7: eth0 ---- p7 :  :

    host egress (eth0)   a NIC: line rate, then the wire's delay
    switch egress (p*)   a switch port: the color qdisc

Each link has the delay D each way.  A host's egress carries the delay of both
links on the way (2 D), so that the switch port is the port and nothing else,
and the base round-trip time is 4 D.
"""

import ctypes
import os
import subprocess
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_MS_BIND = 4096
SWITCH, RECEIVER = "sw", "r"

# The same in every namespace and for every congestion control.
SYSCTLS = {
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_rmem": "4096 4194304 67108864",
    "net/ipv4/tcp_wmem": "4096 4194304 67108864",
    "net/ipv4/tcp_max_syn_backlog": "65536",
    "net/core/somaxconn": "65536",
}


def _check(result, what):
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def make_namespace(name):
    """A network namespace that `ip -n` knows; this process is in it."""
    path = f"/run/netns/{name}"
    os.makedirs("/run/netns", exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY))
    _check(_LIBC.unshare(_CLONE_NEWNET), "unshare")
    _check(_LIBC.mount(b"/proc/self/ns/net", path.encode(), b"none", _MS_BIND, None),
           "mount")


def enter(name):
    """Make a namespace this process's own; None is the first one."""
    fd = os.open(f"/run/netns/{name}" if name else "/proc/1/ns/net", os.O_RDONLY)
    _check(_LIBC.setns(fd, _CLONE_NEWNET), f"setns {name}")
    os.close(fd)


def read_in(name, path):
    """A file's text as seen in a namespace."""
    enter(name)
    with open(path, encoding="ascii") as file:
        return file.read()


def write_sysctl(name, key, value):
    """Set a sysctl in a namespace; one that this kernel lacks is skipped."""
    enter(name)
    try:
        with open(f"/proc/sys/{key}", "w", encoding="ascii") as file:
            file.write(value)
    except FileNotFoundError:
        pass


def batch(tool, name, lines, *options):
    """Run lines of ip or tc in a namespace, in one process."""
    command = [tool, *options] + (["-n", name] if name else []) + ["-batch", "-"]
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True)


def nic(delay, rate):
    """A host's egress: the wires' delay, then a line that sends segments, as a NIC does."""
    return [f"qdisc add dev eth0 root handle 1: netem delay {delay / 1000:g}us limit 1000000",
            f"qdisc add dev eth0 parent 1:1 handle 2: color rate {rate}bit limit 1000m"]


class Network:
    """The namespaces, their links and queues, for one configuration."""

    def __init__(self, config):
        self.config = config
        self.senders = [f"s{i}" for i in range(config["senders"])]
        self.hosts = self.senders + [RECEIVER]
        self.namespaces = self.hosts + [SWITCH]

    def _addresses(self, host, v6):
        """(host's own, its switch port's) address, without the prefix."""
        n = self.hosts.index(host) + 1
        net = f"fd00:0:0:{n:x}::" if v6 else f"10.0.{n}."
        return net + "2", net + "1"

    def address(self, host):
        """A host's, of the family in use."""
        return self._addresses(host, self.config["ipv6"])[0]

    def receiver_address(self):
        """Where the senders connect to."""
        return self.address(RECEIVER)

    def port(self, host):
        """The switch's interface towards a host."""
        return "p" + host.lstrip("s")

    def build(self):
        """Everything but the receiver's switch port, which each run makes anew."""
        for name in self.namespaces:
            make_namespace(name)
        enter(None)
        # The one queue between a veth and its peer: a burst of an incast is
        # longer than its default of 1000.
        write_sysctl(None, "net/core/netdev_max_backlog", "1000000")
        batch("ip", None, [f"link add eth0 netns {h} type veth peer name {self.port(h)}"
                           f" netns {SWITCH}" for h in self.hosts])
        for name in self.namespaces:
            for key, value in SYSCTLS.items():
                write_sysctl(name, key, value)
        write_sysctl(SWITCH, "net/ipv4/ip_forward", "1")
        write_sysctl(SWITCH, "net/ipv6/conf/all/forwarding", "1")
        enter(None)
        batch("ip", SWITCH, self._switch_lines())
        for host in self.hosts:
            batch("ip", host, self._host_lines(host))
            batch("tc", host, nic(2 * self.config["delay"], self.config["rate"]))
        batch("tc", SWITCH, [f"qdisc add dev {self.port(h)} root {self.port_qdisc()}"
                             for h in self.hosts])
        if not self.config["tso"]:
            self._offloads_off()
        # IPv6 is not ready at once, and waiting costs nothing here.
        time.sleep(5)

    def _switch_lines(self):
        lines = ["link set lo up"]
        for host in self.hosts:
            dev = self.port(host)
            lines += [f"address add {self._addresses(host, False)[1]}/24 dev {dev}",
                      f"address add {self._addresses(host, True)[1]}/64 dev {dev} nodad",
                      f"link set {dev} up"]
        return lines

    def _host_lines(self, host):
        lines = ["link set lo up"]
        for v6, bits in ((False, 24), (True, 64)):
            own, gateway = self._addresses(host, v6)
            lines += [f"address add {own}/{bits} dev eth0" + " nodad" * v6]
        lines += ["link set eth0 up"]
        for v6 in (False, True):
            gateway = self._addresses(host, v6)[1]
            lines += [f"route add default via {gateway}"
                      f" rto_min {self.config['rto_min'] // 10**6}ms"]
        return lines

    def port_qdisc(self):
        """A switch port's queue, in tc's words."""
        c = self.config
        if c["port"]:
            return c["port"]
        return (f"color rate {c['rate']}bit limit {c['limit']} red {c['red']}"
                f" ecn {c['ecn']}")

    def renew_port(self, qdisc=None):
        """A fresh queue, with fresh counters, on the port to the receiver."""
        dev = self.port(RECEIVER)
        batch("tc", SWITCH, [f"qdisc del dev {dev} root",
                             f"qdisc add dev {dev} root {qdisc or self.port_qdisc()}"])

    def port_stats(self):
        """The receiver's switch port, as tc -j -s tells it."""
        return subprocess.run(
            ["tc", "-n", SWITCH, "-j", "-s", "qdisc", "show", "dev",
             self.port(RECEIVER), "root"],
            stdout=subprocess.PIPE, text=True, check=True).stdout

    def _offloads_off(self):
        for name in self.namespaces:
            devs = map(self.port, self.hosts) if name == SWITCH else ["eth0"]
            for dev in devs:
                subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", dev,
                                "tso", "off", "gso", "off"], check=True)
