#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""experiments.mininet under the distribution's mininet, and its examples, in a guest."""
import functools
import json
import pathlib
import re
import subprocess
import sys

from experiments.apps import unpacked
from experiments.apps.mininet import PACKAGES, environment
from lab import TOP
from lab.net.modules import load_all
from lab.tap import case, equal, main, true, within

APPS = unpacked.in_guest(*PACKAGES, slow=True)
modules = functools.cache(load_all)
ENV = environment(APPS)
# The rows of the page, with single blanks.
RESULTS = [" ".join(row.split()) for row in
           (TOP / "Documentation/results.rst").read_text(encoding="utf-8").splitlines()]
# A typical user's script, and the changes for experiments.mininet.
THEIRS = """\
from mininet.net import Mininet
from mininet.topo import Topo
from mininet.nodelib import LinuxBridge
from mininet.link import TCLink

class Mine(Topo):
    def build(self, n=4):
        left, right = self.addSwitch('s1'), self.addSwitch('s2')
        self.addLink(left, right, bw=20, delay='5ms', max_queue_size=100)
        for h in range(n):
            host = self.addHost('h%s' % (h + 1))
            self.addLink(host, left if h % 2 else right, bw=100, delay='1ms', use_htb=True)

net = Mininet(topo=Mine(n=4), controller=None,
              switch=LinuxBridge,
              link=TCLink)
net.start()
print(net.pingAll())
h1, h2 = net.get('h1', 'h2')
print(h1.cmd('ping -c3', h2.IP()))
server = h2.popen('iperf -s')
print(h1.cmd('iperf -f k -t 2 -c', h2.IP()))
server.terminate()
print(h1.cmd('sysctl -n net.ipv4.tcp_congestion_control'))
net.stop()
"""
CHANGES = {
    "from mininet.link import TCLink":
    "from experiments.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink, GreenlaneRouter",
    "              switch=LinuxBridge,":
    "              switch=GreenlaneBridge, host=GreenlaneHost.using(cc='tlt_cubic'),",
    "              link=TCLink)": "              link=GreenlaneLink)",
}

# Starts invalid networks and prints the error of each.
REFUSED = """\
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo, LinearTopo, Topo
from experiments.mininet import *
class Mixed(Topo):
    def build(self):
        self.addLink(self.addSwitch('s1'), self.addSwitch('s2', cls=GreenlaneBridge))
def network(topo=SingleSwitchTopo(2), host={}, switch=GreenlaneBridge, link={'bw': 100}):
    try:
        Mininet(topo, controller=None, host=GreenlaneHost.using(**host), switch=switch,
                link=GreenlaneLink.using(**link)).start()
        print('started', flush=True)
    except SystemExit as why:
        print(why, flush=True)
"""

CANNOT = {
    "host={'cc': 'tlt_bogus'}": "h1: no congestion control 'tlt_bogus'",
    "host={'sysctl': {'net.ipv4.no_such': 1}}": "h1: net.ipv4.no_such=1: .*No such file",
    "link={}": "h1-eth0: bw=None: Mbit/s",
    "link={'bw': 'fast'}": "h1-eth0: bw='fast': Mbit/s",
    "link={'bw': 100, 'queue': 'bogus'}": "s1: tc refuses '.*bogus'.*bogus",
    "link={'bw': 100, 'queue': 'limit 10k red 20k'}": "s1: tc refuses .*red.*limit",
    "link={'bw': 100, 'delay': 'soon'}": "h1: tc refuses .*delay soon",
    "link={'bw': 100, 'loss': 101}": "h1: tc refuses .*loss 101",
    "link={'bw': 100, 'enable_red': True}": "h1-eth0: enable_red is TCLink's",
    "link={'bw': 100, 'iofd': 'threshold 1k'}":
    "s1-eth1: iofd needs next hops: switch=GreenlaneRouter",
    "Mixed(), switch=GreenlaneRouter": "s1-eth1: a router beside another kind of switch",
    "LinearTopo(2), switch=GreenlaneRouter, link={'bw': 1, 'iofd': 'deflect dev no via 1.2.3.4'}":
    "s1: tc refuses .*iofd deflect dev no",
}

LEAVES = """\
from mininet.net import Mininet
from mininet.topo import Topo
from experiments.mininet import *

class LeafSpine(Topo):
    def build(self):
        leaves = [self.addSwitch(f's{n}') for n in (1, 2, 3)]
        for number in (4, 5):
            spine = self.addSwitch(f's{number}')
            for leaf in leaves:
                self.addLink(leaf, spine, iofd='threshold 20k entries 4')
        for number in range(6):
            self.addLink(leaves[number // 2], self.addHost(f'h{number + 1}'))

net = Mininet(LeafSpine(), controller=None, switch=GreenlaneRouter,
              host=GreenlaneHost.using(cc='dcqcn', sysctl={'net.ipv4.tcp_sack': 0}),
              link=GreenlaneLink.using(bw=1000, delay='1ms'))
net.start()
print(net.pingAll())
for leaf in ('s1', 's2', 's3'):
    print(leaf, ' '.join(net[leaf].cmd('ip route').split()))
print(net['s1'].intf('s1-eth1').stats()['iofd']['options']['deflect'])
print(net['s4'].intf('s4-eth1').stats()['iofd']['options']['deflect'])
print('h1', net['h1'].intf().stats()['color']['options']['rate'] * 8 // 10**6,
      *net['h1'].cmd('sysctl -n net.ipv4.xpass_rate net.ipv4.dcqcn_rate net.ipv4.tcp_ecn'
                     ' net.ipv4.tcp_sack net.ipv4.tcp_congestion_control').split())
print('host port', sorted(net['s1'].intf('s1-eth3').stats()))
net.stop()
"""


def python(*words, text=None):
    """Run a Python program with mininet's library: (exit status, stdout, stderr)."""
    done = subprocess.run([sys.executable, *map(str, words)], input=text, env=ENV, text=True,
                          capture_output=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


def script(text):
    """Run a script that has to succeed; returns its stdout."""
    status, out, err = python("-", text=text)
    equal(status, 0, f"exit status: {err[-400:]}")
    return out


def example(name, *options):
    """An example's rows, by their first column."""
    status, out, err = python("-m", f"experiments.mininet.{name}", "--json", *options)
    equal(status, 0, f"{name}: {err[-400:]}")
    rows = json.loads(out)
    for row in rows:
        print(f"# {row}", flush=True)
    true(" ".join(rows[0]) in RESULTS, f"results.rst has a table of {', '.join(rows[0])}")
    return {next(iter(row.values())): row for row in rows}


@case("without our modules: an error that names the missing module")
def no_modules():
    equal("sch_color" in pathlib.Path("/proc/modules").read_text(encoding="ascii"), False,
          "sch_color is loaded")
    status, out, err = python("-", text=REFUSED + "Mininet(SingleSwitchTopo(2), controller=None,"
                              " switch=GreenlaneBridge, link=GreenlaneLink.using(bw=100))")
    equal((status, out, err.count("\n")), (1, "", 1), f"status, stdout, length: {err[-400:]}")
    true(re.fullmatch(r"greenlane: h1: tc refuses 'qdisc replace dev \S+ root handle 2: color "
                      r"rate 100mbit.*load the module: sch_color.*\n", err), err)


@case("an incast: dctcp waits for timers, tlt_dctcp does not; the port's counters agree")
def incast():
    modules()
    rows = example("incast", "--rounds", "1")
    dctcp, tlt = rows["dctcp"], rows["tlt_dctcp"]
    equal([row["answers"] for row in rows.values()], [640, 640], "answers")
    true(dctcp["RTOs"] > 0 and dctcp["p100 ms"] > 200, "dctcp: RTOs, of 200 ms at least")
    true(dctcp["drop yellow"] > 0, "dctcp: drops")
    equal((tlt["RTOs"], tlt["drop green"]), (0, 0), "tlt_dctcp: RTOs, important packets lost")
    true(tlt["drop red"] > 0, "tlt_dctcp: drops of the others")
    # 640 times 32 kB with headers, and some retransmissions
    within(tlt["p100 ms"], 16.9, 1.15 * 16.9, "tlt_dctcp: the last answer")


@case("the first RTT: aeolus_xpass uses it, xpass does not; no scheduled packet is lost")
def first_rtt():
    modules()
    rows = example("first_rtt")
    xpass, aeolus = rows["xpass"], rows["aeolus_xpass"]
    for row in rows.values():
        equal((row["RTOs"], row["drop yellow"], row["drop green"]), (0, 0, 0),
              f"{row['cc']}: RTOs, drops of other data, scheduled drops")
    equal((xpass["unscheduled"], xpass["drop red"]), (0, 0), "xpass: unscheduled")
    true(aeolus["unscheduled"] >= 20 * 7 and aeolus["drop red"] > 0, "aeolus_xpass: unscheduled")
    # 7 times 30 kB in packets of 1538 bytes on a link of 10 Gbit/s.  xpass waits for credits, a
    # round trip of 50 us with the hosts' delays; aeolus_xpass saves a fifth of it at least.
    ideal = 7 * 21 * 1538 * 8 / 1e7
    within(xpass["p50 ms"] / ideal, 1.2, 1.4, "median, xpass / ideal")
    within(aeolus["p50 ms"], ideal, 0.94 * xpass["p50 ms"], "median, aeolus_xpass")


@case("deflection: short messages bypass the queue, in order, and wait less")
def deflect():
    modules()
    plain, iofd = example("deflect", "--rounds", "150").values()
    equal((plain["deflected"], iofd["deflected"] > 10), (0, True), "deflected")
    equal((iofd["RTOs"], iofd["late"]), (0, 0), "RTOs, packets out of order")
    within(iofd["p99 ms"] / plain["p99 ms"], 0, 0.4, "p99, with iofd / without")


@case("a typical script: with three changes it runs, with the same bw and delay")
def three_lines():
    modules()
    before = THEIRS.splitlines()
    after = [CHANGES.get(line, line) for line in before]
    equal(sum(old != new for old, new in zip(before, after)), 3, "changes")
    out = script("\n".join(after))
    equal(out.splitlines()[0], "0.0", "pingAll")
    # three links, in both directions; twelve transmissions of a frame
    lowest = float(re.search(r"rtt min/avg/max/mdev = ([\d.]+)", out)[1])
    within(lowest, 14, 14.3, "round trip, ms")
    rate = int(re.search(r"(\d+) Kbits/sec", out)[1])
    print(f"# round trip {lowest} ms, {rate} kbit/s", flush=True)
    within(rate, 18000, 19200, "iperf through 20 Mbit/s, kbit/s")
    true("\ntlt_cubic" in out, "the congestion control")


@case("routers: all hosts are reachable, over both spines, and iofd has all other paths")
def routers():
    modules()
    out = script(LEAVES)
    equal(out.splitlines()[0], "0.0", "pingAll")
    last = {}
    for leaf in ("s1", "s2", "s3"):
        routes = re.search(f"^{leaf} (.*)", out, re.M)[1]
        ways = re.findall(r"10\.0\.0\.\d via \S+ dev (\S+)", routes)
        last[leaf] = ways[-1][-1]
        equal(sorted(ways), [f"{leaf}-eth1"] * 2 + [f"{leaf}-eth2"] * 2, f"{leaf}: uplinks")
    true(last["s1"] != last["s2"], "two leaves have different uplinks for the last host")
    listed = [re.findall(r"'dev': '(\S+)'", line) for line in out.splitlines()[-4:-2]]
    equal(listed, [["s1-eth2"], ["s4-eth2", "s4-eth3"]], "deflections of a leaf, a spine")
    equal(out.splitlines()[-2], "h1 1000 1000 1000 1 0 dcqcn",
          "a host's link rate; xpass_rate, dcqcn_rate, tcp_ecn, tcp_sack, congestion control")
    equal(out.splitlines()[-1], "host port ['color', 'ingress']", "qdiscs of a host's port")


@case("an invalid network: an error, and no network starts")
def bad_input():
    modules()
    said = script(REFUSED + "".join(f"network({words})\n" for words in CANNOT)).splitlines()
    equal(len(said), len(CANNOT), f"errors: {said}")
    for (words, expected), line in zip(CANNOT.items(), said):
        true(re.fullmatch(f"greenlane: {expected}.*", line), f"{words}: {line}")


if __name__ == "__main__":
    main()
