#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status: what it counts, and a sentence for each mistake made on purpose.

	ns a ---- wire ---- ns b        gl.wire, or
	ns a -- color, veth -- ns b     Cable

and no sentence where no mistake was made.
"""
import contextlib
import errno
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from gl.packet import DATA, IMPORTANT, RST
from gl.tap import case, equal, main, true
from gl.wire import GREENLANE_INFO, TCP_CONGESTION, Namespace, Wire, ip_level, load

TOP = os.environ["GL_TOP"]
TOOL = f"{TOP}/scripts/greenlane"
STATE = "/run/greenlane/status.json"
SYSCTL = "/etc/sysctl.d/90-greenlane.conf"
COUNTERS = ("important_sent", "echoes", "clocks_byte", "clocks_mss", "marked_lost", "unechoed",
            "rearmed", "echoes_sent")


def tool(*words, command=(sys.executable, TOOL)):
    """(exit status, stdout, stderr) of greenlane."""
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def forget():
    """The next look is the first one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(STATE)


def look(*words):
    """What greenlane status --json says; its status must agree with its problems."""
    status, out, err = tool("status", "--json", *words)
    equal(err, "", "stderr")
    said = json.loads(out)
    equal(status, 1 if said["problems"] else 0, "exit status")
    return said


def ids(said):
    """The names of the mistakes that were found, once each."""
    return sorted({problem["id"] for problem in said["problems"]})


def sentence(said, name):
    """What is said about one of them."""
    return " ".join(p["where"] + " " + p["text"] for p in said["problems"] if p["id"] == name)


def info(s):
    """The counters of struct greenlane_info."""
    raw = s.getsockopt(ip_level(s), GREENLANE_INFO, 36)
    return dict(zip(COUNTERS, struct.unpack("4B8I", raw)[4:]))


def exchange(wire, client, server, count=100_000):
    """Some traffic both ways; virtual time for the last echoes."""
    true(wire.transfer(client, server, count), "arrives")
    true(wire.transfer(server, client, count), "arrives back")
    wire.run(5e-3)


class Cable:
    """Two namespaces, a veth between them, a color port on a's side."""

    def __init__(self, options, cc="tlt_reno", delay=None):
        load()
        if not os.path.exists("/sys/module/sch_color"):
            subprocess.run(["insmod", f"{os.environ['GL_MODDIR']}/net/sched/sch_color.ko"],
                           check=True)
        self.a, self.b = Namespace("left"), Namespace("right")
        subprocess.run(["ip", "link", "add", "va", "netns", "left", "type", "veth", "peer",
                        "name", "vb", "netns", "right"], check=True)
        for ns, dev, own in ((self.a, "va", 1), (self.b, "vb", 2)):
            ns.sysctl("net.ipv4.tcp_congestion_control", cc)
            ns.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
            ns.ip(f"addr add 10.1.0.{own}/24 dev {dev}", f"link set {dev} up")
        self.tc(self.a, f"qdisc add dev va root handle 1: {options}")
        if delay:
            self.tc(self.b, f"qdisc add dev vb root netem delay {delay}")
        self._open = []

    @staticmethod
    def tc(ns, words):
        """tc in one of them."""
        subprocess.run(["tc", "-n", ns.name, *words.split()], check=True)

    def connect(self):
        """A connection from a to b."""
        with self.b:
            listener = socket.create_server(("10.1.0.2", 0))
        with self.a:
            client = socket.create_connection(listener.getsockname(), timeout=60)
        server = listener.accept()[0]
        server.settimeout(60)
        listener.close()
        self._open += [client, server]
        return client, server

    @staticmethod
    def send(pairs, count=1_000_000):
        """All clients send at once, all servers read."""
        def read(server):
            left = count
            while left:
                left -= len(server.recv(min(left, 1 << 20)))

        threads = [threading.Thread(target=read, args=[server]) for _, server in pairs]
        threads += [threading.Thread(target=client.sendall, args=[bytes(count)])
                    for client, _ in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.1)

    def __enter__(self):
        forget()
        return self

    def __exit__(self, *exc):
        for s in self._open:
            s.close()
        time.sleep(1)
        self.a.remove()
        self.b.remove()


# --- what is counted ----------------------------------------------------------------


@case("healthy: every connection's counters, summed, and no sentence")
def healthy():
    for version in (4, 6):
        for cc in ("tlt_reno", "tlt_cubic", "tlt_dctcp"):
            forget()
            with Wire(cc=cc, version=version) as wire:
                pairs = [wire.connect(port) for port in (1000, 1001, 1002)]
                for client, server in pairs:
                    exchange(wire, client, server)
                said = look()
                equal(ids(said), [], f"{cc}: mistakes")
                for side, ns in enumerate((wire.a, wire.b)):
                    here = [c for c in said["connections"].values()
                            if said["namespaces"][c["ns"]]["name"] == ns.name]
                    equal(len(here), 3, "connections")
                    equal({(c["cc"], c["peer"]) for c in here}, {(cc, "yes")}, "each")
                    equal({c["remote"] for c in here},
                          {wire.address(wire.b if ns is wire.a else wire.a)}, "remote")
                    for name in COUNTERS:
                        equal(sum(c["counters"][name] for c in here),
                              sum(info(pair[side])[name] for pair in pairs), name)
                    counted = next(n for n in said["namespaces"].values()
                                   if n["name"] == ns.name)
                    equal(counted["cc"], cc, "default")
                    equal(counted["counters"], ns.greenlane(), "/proc/net/greenlane")
                    true(counted["counters"]["ImportantSent"] > 0, "something was counted")


@case("the text: 80 columns, a table by transport, and the verdict")
def text():
    forget()
    with Wire(cc="tlt_dctcp") as wire:
        pairs = [wire.connect(port) for port in (1000, 1001)]
        exchange(wire, *pairs[0])
        status, out, err = tool("status")
        equal((status, err), (0, ""), "status")
        equal([line for line in out.splitlines() if len(line) > 80], [], "lines that are too long")
        row = next(line.split() for line in out.splitlines()
                   if line.split()[:2] == [wire.a.name, "tlt_dctcp"])
        equal(row[:4], [wire.a.name, "tlt_dctcp", "2", "2/0/0"], "a's connections")
        equal(row[4], str(info(pairs[0][0])["important_sent"]
                          + info(pairs[1][0])["important_sent"]), "important")
        true(out.endswith("No mistake found.\n"), "the verdict")


@case("the second look has what changed since; --all has all")
def changes():
    forget()
    with Wire(cc="tlt_reno") as wire:
        client, server = wire.connect()
        exchange(wire, client, server)
        first = look()
        equal(first["since"], None, "the first look is since")
        before = wire.a.greenlane()
        mine = info(client)
        exchange(wire, client, server, 50_000)
        second = look()
        equal(second["since"], first["time"], "since")
        ns = next(n for n in second["namespaces"].values() if n["name"] == wire.a.name)
        equal(ns["change"], {k: v - before[k] for k, v in wire.a.greenlane().items()}, "change")
        true(ns["change"]["ImportantSent"] > 0, "something changed")
        one = next(c for c in second["connections"].values() if c["local"] == "10.0.0.1")
        equal(one["change"], {k: v - mine[k] for k, v in info(client).items()}, "connection")
        third = look()
        equal({v for n in third["namespaces"].values() for v in n["change"].values()}, {0},
              "nothing happened, but")
        _, out, _ = tool("status")
        true("ImportantSent" not in out, "what did not change is not shown")
        _, out, _ = tool("status", "--all")
        true("ImportantSent" in out and "PeerAppeared" in out, "--all")
        equal(look("--all")["since"], None, "--all is since")


@case("counters that went backwards count from their beginning")
def backwards():
    load()
    forget()
    for count in (3, 1):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
            for _ in range(count):
                with socket.socket() as client:
                    client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
                    client.connect(listener.getsockname())
                    listener.accept()[0].close()
        said = look()
        host = next(n for n in said["namespaces"].values() if n["name"] == "host")
        # SYN, SYN-ACK
        equal(host["change"]["HandshakeMarked"], 2 * count, "HandshakeMarked")
        time.sleep(120)         # TIME_WAIT
        subprocess.run(["rmmod", "tcp_tlt", "greenlane"], check=True)
        load()


@case("a process in a namespace without a name; sockets of both families")
def container():
    load()
    forget()
    code = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
open("/proc/sys/net/ipv4/tcp_congestion_control", "w").write("tlt_cubic")
keep = []
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((host, 0), family=family)
    keep += [listener, socket.create_connection(listener.getsockname()[:2])]
    keep += [listener.accept()[0]]
print(flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(["unshare", "-n", sys.executable, "-c", code], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        said = look()
        process.stdin.close()
    equal(len(said["connections"]), 4, "connections")
    names = {said["namespaces"][c["ns"]]["name"] for c in said["connections"].values()}
    equal(len(names), 1, "namespaces")
    true(names.pop().startswith("python3["), "named after its process")
    equal(ids(said), [], "mistakes")


@case("a socket that two processes have counts once; what is not greenlane's, by its name")
def shared():
    load()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            server = listener.accept()[0]
            child = os.fork()
            if not child:
                time.sleep(1000)
                os._exit(0)
            forget()
            said = look()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            server.close()
            del client
    host = next(key for key, n in said["namespaces"].items() if n["name"] == "host")
    equal(said["plain"], {f"{host} cubic": 2}, "connections")
    equal(said["listeners"], {"cubic": 1}, "listeners")
    time.sleep(120)


@case("10,000 connections")
def many():
    load()
    forget()
    resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
    keep = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
        for _ in range(5000):
            client = socket.socket()
            client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"tlt_reno")
            client.connect(listener.getsockname())
            client.send(b"x")
            keep += [client, listener.accept()[0]]
        said = look()
        again = look()
    equal(len(said["connections"]), 10_000, "connections")
    equal(len(again["connections"]), 10_000, "connections of the second look")
    equal(sum(c["counters"]["important_sent"] for c in said["connections"].values()), 5000,
          "important")
    equal(sum(c["change"]["important_sent"] for c in again["connections"].values()), 0,
          "important since")
    for s in keep:
        s.close()
    time.sleep(120)


@case("processes and sockets that come and go meanwhile")
def vanish():
    load()
    code = """
import os, socket, time
while True:
    if not os.fork():
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        os._exit(0)
    os.wait()
    time.sleep(0.0001)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        for _ in range(5):
            forget()
            look()
        process.kill()
    time.sleep(120)


@case("who is not root sees what he may, and is told")
def not_root():
    load()
    forget()
    with Wire(cc="tlt_reno") as wire:
        exchange(wire, *wire.connect())
        status, out, err = tool("status", command=("setpriv", "--reuid", "65534",
                                                   "--clear-groups", sys.executable, TOOL))
        equal((status, err), (0, ""), "status")
        true("You are not root" in " ".join(out.split()), "says so")
        true("tcp_tlt" in out, "modules")


@case("--watch: a look each time, what changed since the one before, no state file")
def watch():
    forget()
    with Wire(cc="tlt_reno") as wire:
        exchange(wire, *wire.connect())
        done = subprocess.run(["timeout", "-s", "INT", "3.5", sys.executable, TOOL, "status",
                               "--json", "--watch", "1"], capture_output=True, text=True,
                              check=False)
        equal(done.stderr, "", "stderr")
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        true(len(looks) >= 3, f"{len(looks)} looks")
        equal(looks[0]["since"], None, "the first is since")
        equal(looks[1]["since"], looks[0]["time"], "the second is since")
        equal(os.path.exists(STATE), False, "a state file")


@case("installed in /usr it finds its parts, through a symbolic link too")
def installed():
    load()
    forget()
    subprocess.run(["install", "-D", TOOL, "/usr/sbin/greenlane"], check=True)
    subprocess.run(["mkdir", "-p", "/usr/lib/greenlane"], check=True)
    subprocess.run(["cp", "-r", f"{TOP}/tools/greenlane", "/usr/lib/greenlane/"], check=True)
    subprocess.run(["rm", "-rf", "/usr/lib/greenlane/greenlane/__pycache__"], check=True)
    os.symlink("/usr/sbin/greenlane", "/run/gl")
    for command in ("/usr/sbin/greenlane", "/run/gl"):
        status, out, err = tool("status", command=(command,))
        equal((status, err), (1, ""), command)
        true("tcp_tlt is loaded, but no" in " ".join(out.split()), "says something")
    equal(os.path.exists("/usr/lib/greenlane/greenlane/__pycache__"), False, "rubbish")
    # and says if there is no plugin
    with Cable("color rate 1gbit limit 1m red 270k"):
        status, out, err = tool("status", command=("env", "-u", "TC_LIB_DIR", "/run/gl"))
        equal((status, err), (0, ""), "without the plugin")
        true("no plugin for tc" in out and "tc cannot show the ports" in out, out)


@case("mistakes in the command line: one line, status 2")
def usage():
    for words in ((), ("stat",), ("status", "--watch", "x"), ("status", "--watch", "-1"),
                  ("status", "--frobnicate"), ("status", "more")):
        status, out, err = tool(*words)
        equal((status, out, err.count("\n")), (2, "", 1), f"greenlane {' '.join(words)}: {err}")


# --- a sentence for each mistake ------------------------------------------------------


@case("no sentence at a healthy port; its counters by colour")
def healthy_port():
    with Cable("color rate 1gbit limit 1m red 270k ecn 200k") as cable:
        pair = cable.connect()
        cable.send([pair])
        said = look()
        equal(ids(said), [], "mistakes")
        port, = said["ports"].values()
        shown = next(q for q in json.loads(subprocess.run(
            ["tc", "-n", "left", "-s", "-j", "qdisc", "show", "dev", "va"], check=True,
            capture_output=True).stdout) if q["kind"] == "color")
        for color in ("red", "yellow", "green"):
            for key in ("packets", "bytes", "marks"):
                equal(port["counters"][f"{color}_{key}"], shown["colors"][color][key], key)
        true(port["counters"]["red_packets"] > 500, "red packets")
        cable.send([pair])
        equal(ids(look()), [], "mistakes at the second look")
        _, out, _ = tool("status")
        true("1 port: no change" in out, "an idle port is one line")


@case("(a) a peer without it")
def peer_without():
    for ends in (("tlt_reno", "cubic"), ("cubic", "tlt_cubic")):
        forget()
        with Wire(cc=ends[0], cc_b=ends[1]) as wire:
            exchange(wire, *wire.connect())
            said = look()
            equal(ids(said), ["peer-without"], "mistakes")
            remote = "10.0.0.2" if ends[0] == "tlt_reno" else "10.0.0.1"
            true(f"1 connection to peers that show no TLT: {remote}." in
                 sentence(said, "peer-without"), "names it")
            # It is so as long as it lives; of one that ended only what grew is told.
            equal(ids(look()), ["peer-without"], "mistakes at the second look")


@case("(b) codepoints that get lost on the way")
def bleached():
    forget()
    with Wire(cc="tlt_reno") as wire:
        client, server = wire.connect()
        exchange(wire, client, server)
        equal(ids(look()), [], "mistakes before")
        wire.rule = lambda p: p.set_dscp(0)
        for _ in range(4):
            wire.transfer(client, server, 20_000)
            wire.run(1e-3)
        said = look()
        equal(ids(said), ["bleached"], "mistakes")
        true("10.0.0.2" in sentence(said, "bleached"), "names it")
        client.close()
        server.close()
        wire.rule = None
        wire.run(0.1)
        equal(ids(look()), [], "mistakes when it has gone")


@case("(c) important packets get lost")
def important_lost():
    forget()
    with Wire(cc="tlt_reno") as wire:
        client, server = wire.connect()
        exchange(wire, client, server)
        look()
        wire.rule = lambda p: p.from_a and p.dscp in (DATA, IMPORTANT)
        client.send(bytes(20_000))
        wire.run(30e-3)
        wire.rule = None
        wire.run(1)
        said = look()
        equal(ids(said), ["important-lost"], "mistakes")
        true("10.0.0.2" in sentence(said, "important-lost"), "names it")
        equal(ids(look()), [], "mistakes when nothing more was lost")


@case("(c) a queue of this host drops and looks at no colour")
def blind_queue():
    with Cable("tbf rate 100mbit burst 3k limit 30k") as cable:
        pairs = [cable.connect() for _ in range(4)]
        equal(ids(look()), [], "mistakes before")
        cable.send(pairs)
        said = look()
        true("blind-queue" in ids(said), f"mistakes: {ids(said)}")
        true("va in left Its tbf dropped" in sentence(said, "blind-queue"), "names it")


@case("(d) packets of 64 kB go through a port in one piece")
def offload():
    with Cable("color rate 10gbit limit 4m red 2m no-split-gso") as cable:
        pair = cable.connect()
        look()
        cable.send([pair])
        said = look()
        equal(ids(said), ["offload"], "mistakes")
        cable.tc(cable.a, "qdisc change dev va root color split-gso")
        look()
        cable.send([pair])
        equal(ids(look()), [], "mistakes when repaired as told")


@case("(d) a port at which nothing ever waits")
def no_line():
    with Cable("color limit 1m red 270k") as cable:
        pair = cable.connect()
        cable.send([pair])
        equal(ids(look()), ["no-line"], "mistakes")
        cable.tc(cable.a, "qdisc change dev va root color rate 1gbit")
        cable.send([pair])
        equal(ids(look()), [], "mistakes when repaired as told")


@case("(e) a threshold under a bandwidth-delay product")
def threshold():
    with Cable("color rate 1gbit limit 1m red 15k", delay="1ms") as cable:
        pair = cable.connect()
        cable.send([pair])
        said = look()
        equal(ids(said), ["threshold"], "mistakes")
        true("15.4kB, but 1Gbit/s times the round trip to 10.1.0.2" in
             sentence(said, "threshold"), f"numbers in {sentence(said, 'threshold')}")
        cable.tc(cable.a, "qdisc change dev va root color red 400k")
        cable.send([pair])
        equal(ids(look()), [], "mistakes when repaired as told")


@case("(f) an application sets a protected DSCP")
def stripped():
    load()
    forget()
    with Wire(cc="tlt_reno") as wire:
        exchange(wire, *wire.connect())
        with wire.a:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, IMPORTANT << 2)
                for _ in range(3):
                    udp.sendto(b"x", ("10.0.0.2", 9))
        said = look()
        equal(ids(said), ["stripped"], "mistakes")
        true(f"{wire.a.name} 3 packets" in sentence(said, "stripped"), "counts them")
        equal(ids(look()), [], "mistakes when it has stopped")


@case("an RST that repeats the DSCP of a SYN is nobody's mistake")
def reflected():
    for version in (4, 6):
        forget()
        with Wire(cc="tlt_reno", version=version) as wire:
            exchange(wire, *wire.connect())
            refused = wire.socket(wire.a)
            with contextlib.suppress(BlockingIOError):
                refused.connect((wire.address(wire.b), 9))
            wire.run(5e-3)
            equal(refused.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNREFUSED,
                  "connect()")
            equal([p.dscp for p in wire.from_b() if p.flags & RST], [0], "DSCP of the RST")
            equal(ids(look()), [], "mistakes")


@case("(g) dctcp without ECN")
def without_ecn():
    forget()
    with Wire(cc="tlt_cubic", cc_b="tlt_dctcp") as wire:
        exchange(wire, *wire.connect())
        said = look()
        equal(ids(said), ["no-ecn"], "mistakes")
        true("10.0.0.1" in sentence(said, "no-ecn"), "names it")
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
    forget()
    with Wire(cc="tlt_cubic", cc_b="tlt_dctcp") as wire:
        wire.a.sysctl("net.ipv4.tcp_ecn", 1)
        exchange(wire, *wire.connect())
        equal(ids(look()), [], "mistakes when repaired as told")


@case("(h) green packets dropped at the limit")
def green_drops():
    with Cable("color rate 10mbit limit 6k") as cable:
        cable.send([cable.connect() for _ in range(12)], 50_000)
        said = look()
        true("green-drops" in ids(said), f"mistakes: {ids(said)}")
        true("its limit is too small" in sentence(said, "green-drops"), "names it")


@case("connections that cannot use it")
def unsupported():
    forget()
    with Wire(cc="tlt_reno") as wire:
        wire.b.sysctl("net.ipv4.tcp_sack", 0)
        exchange(wire, *wire.connect())
        equal(ids(look()), ["unsupported"], "mistakes")


@case("(i) loaded and not used; configured and not loaded; not there at all")
def loaded():
    load()
    forget()
    equal(ids(look()), ["not-used"], "loaded, and nobody selects it")
    with Namespace("routed") as ns:
        ns.ip("link set lo up", "route add 10.9.0.0/24 dev lo congctl tlt_cubic")
        equal(ids(look()), [], "a route selects it")
    ns.remove()
    subprocess.run(["rmmod", "tcp_tlt"], check=True)
    equal(ids(look()), [], "the tagging layer alone")
    os.makedirs(os.path.dirname(SYSCTL), exist_ok=True)
    with open(SYSCTL, "w", encoding="ascii") as f:
        f.write("# net.ipv4.tcp_congestion_control = bbr\n"
                "net.ipv4.tcp_congestion_control = tlt_dctcp\n")
    said = look()
    equal(ids(said), ["not-loaded"], "configured")
    true(f"{SYSCTL} selects tlt_dctcp" in sentence(said, "not-loaded"), "names the file")
    os.unlink(SYSCTL)
    subprocess.run(["rmmod", "greenlane"], check=True)
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["rmmod", "sch_color"], check=False, capture_output=True)
    equal(ids(look()), ["not-loaded"], "nothing is loaded")


if __name__ == "__main__":
    main()
