#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Containers: settings by network namespace, colours through a bridge, and the view of status.

	container (veth) ---- br0 :left: va, color ---- vb :right       Docker's bridge network
"""
import contextlib
import json
import os
import subprocess
import sys
import time

from lab import TOP
from lab.net import modules
from lab.net.namespace import ACTIVE, CC, Namespace, read_sysctl, write_sysctl
from lab.status import CONNECTION, Cable, connections, forget, ids, look, sentence
from lab.systemd import UNITS, Systemd
from lab.tap import case, equal, main, true

ALLOWED = "net.ipv4.tcp_allowed_congestion_control"
STATUS = (sys.executable, f"{TOP}/scripts/greenlane", "status", "--json")
CAPABILITIES = "+sys_admin,+sys_ptrace,+dac_read_search"
# `status` on a machine whose security module protects processes.
FORBIDDEN = """
import sys
sys.path.insert(0, sys.argv[1])
from greenlane import status, uapi
def forbidden(*_):
    raise PermissionError
uapi.pidfd_getfd = forbidden
sys.exit(status.main(["status", "--json"]))
"""
# Selects a congestion control by the sysctl and by a socket option, and prints both results.
SELECT = """
import socket, sys
def tried(function):
    try:
        function()
        return "ok"
    except OSError as why:
        return type(why).__name__
def sysctl():
    with open("/proc/sys/net/ipv4/tcp_congestion_control", "w") as file:
        file.write(sys.argv[1])
print(tried(sysctl), tried(lambda: socket.socket().setsockopt(
    socket.IPPROTO_TCP, 13, sys.argv[1].encode())))
"""


@contextlib.contextmanager
def process(*command):
    """Run a process that prints one row when it is ready, for a block."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        true(running.stdout.readline(), "it is ready")
        yield running
        running.stdin.close()


def unshare(*command):
    """The output of a command in a container of its own: network, PID, mount, user."""
    return subprocess.run(["unshare", "--net", "--pid", "--fork", "--mount-proc", "--user",
                           "--map-root-user", *command], capture_output=True, text=True,
                          check=False)


def user(cc):
    """The results of SELECT in a container with a user namespace."""
    return unshare(sys.executable, "-c", SELECT, cc).stdout.split()


def docker(cc):
    """The results of SELECT without one, and without CAP_NET_ADMIN, which Docker removes."""
    return subprocess.run(
        ["unshare", "--net", "setpriv", "--bounding-set", "-net_admin", "--reuid", "65534",
         "--clear-groups", sys.executable, "-c", SELECT, cc], capture_output=True, text=True,
        check=False).stdout.split()


@contextlib.contextmanager
def default(cc):
    """The host's default, for a block."""
    before = read_sysctl(CC)
    write_sysctl(CC, cc)
    yield
    write_sysctl(CC, before)
    forget()


@case("without a module, status in a container points to the host")
def without_module():
    said = json.loads(unshare(*STATUS).stdout)
    true("Load it on the host" in "".join(p["advice"] for p in said["problems"]),
         f"the advice: {said['problems']}")


@case("a new network namespace has the host's default, and is active if that is a transport")
def inherited():
    modules.load("tcp_tlt")
    write_sysctl(ACTIVE, 1)
    for cc, active in (("tlt_reno", "1"), ("cubic", "0")):
        with default(cc):
            ns = Namespace("c1")
            equal((ns.sysctl(CC), ns.sysctl(ACTIVE)), (cc, active), "default, active")
        with ns:
            write_sysctl(CC, "reno")
        equal(read_sysctl(CC), "cubic", "default of the host")
        ns.remove()


@case("a container selects an unrestricted congestion control; the host permits others")
def permitted():
    modules.load("tcp_tlt")
    before = read_sysctl(ALLOWED)
    # As after modprobe: lab.net.modules permits all.
    write_sysctl(ALLOWED, "reno cubic tlt_reno")
    equal(user("tlt_reno"), ["ok", "ok"], "tlt_reno: sysctl, socket option")
    equal(user("tlt_dctcp"), ["PermissionError", "ok"], "tlt_dctcp, by root of a user namespace")
    equal(docker("tlt_reno"), ["PermissionError", "ok"], "tlt_reno, without CAP_NET_ADMIN")
    equal(docker("tlt_dctcp"), ["PermissionError", "PermissionError"],
          "tlt_dctcp, without CAP_NET_ADMIN")
    write_sysctl(ALLOWED, "reno cubic tlt_reno tlt_dctcp")
    equal(user("tlt_dctcp"), ["ok", "ok"], "tlt_dctcp, permitted, by root of a user namespace")
    equal(docker("tlt_dctcp"), ["PermissionError", "ok"], "tlt_dctcp, permitted")
    done = unshare("sh", "-c", f"echo reno > /proc/sys/{ALLOWED.replace('.', '/')}")
    true(done.returncode, "a container may not change the permission")
    true("tlt_dctcp" in read_sysctl(ALLOWED).split(), "the host's permission")
    write_sysctl(ALLOWED, before)


@case("Docker's bridge: a container's colours reach the port of the host's uplink")
def bridge():
    with Cable("color rate 1gbit limit 1m red 270k ecn 200k", "tlt_dctcp") as cable:
        inside = Namespace("inside")
        cable.a.sysctl("net.ipv4.ip_forward", 1)
        cable.a.ip("link add br0 type bridge", "addr add 172.17.0.1/16 dev br0",
                   "link add veth0 type veth peer name eth0 netns inside",
                   "link set veth0 master br0", "link set veth0 up", "link set br0 up")
        inside.ip("addr add 172.17.0.2/16 dev eth0", "link set eth0 up",
                  "route add default via 172.17.0.1")
        cable.b.ip("route add 172.17.0.0/16 via 10.1.0.1")
        inside.sysctl(CC, "tlt_dctcp")
        inner, cable.a = cable.a, inside        # the client's end
        pair = cable.connect()
        cable.send([pair])
        cable.a = inner
        said = look("--all")
        mine, = connections(said, inside)
        equal((mine["cc"], mine["peer"]), ("tlt_dctcp", "yes"), "connection of the container")
        port, = said["ports"].values()
        true(port["counters"]["red_packets"] > 500, "red packets of the uplink's port")
        true(port["counters"]["green_packets"] > 10, "green packets of the uplink's port")
        equal(ids(said), [], "problems")
        inside.remove()


@case("--network host: the host's settings; its own namespaces hide the rest from status")
def network_host():
    modules.load("tcp_tlt")
    with default("tlt_reno"):
        write_sysctl(ACTIVE, 1)
        container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with process(*container, sys.executable, "-c", CONNECTION):
            mine = [c for c in look()["connections"].values()]
            equal([c["cc"] for c in mine], ["tlt_reno"] * 2, "connections, seen from the host")
            done = subprocess.run([*container, *STATUS], capture_output=True, text=True,
                                  check=False)
        said = json.loads(done.stdout)
        equal((done.returncode, ids(said)), (3, ["blind"]), "exit status, problems in a container")
        true("this container It was taken in another pid namespace" in sentence(said, "blind"),
             f"the sentence: {said['problems']}")
        equal(said["connections"], {}, "connections of other containers")


@case("status in a user namespace, and without capabilities, names the limits of its view")
def limits():
    modules.load("tcp_tlt")
    with default("tlt_reno"):
        said = json.loads(unshare(*STATUS).stdout)
        true("another pid and user namespace" in sentence(said, "blind"),
             f"the sentence: {said['problems']}")
        done = subprocess.run(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin",
                               *STATUS], capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)
        equal((done.returncode, ids(said)), (3, ["blind"]), "exit status, problems")
        true("without CAP_SYS_ADMIN" in sentence(said, "blind"), f"{said['problems']}")
        with process(sys.executable, "-c", CONNECTION):
            done = subprocess.run([sys.executable, "-c", FORBIDDEN, TOP / "tools"],
                                  capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)
        equal((done.returncode, ids(said)), (3, ["blind"]), f"forbidden: {done.stderr}")
        true("may not read the sockets" in sentence(said, "blind"), f"{said['problems']}")


@case("status with all capabilities but another user, network or mount namespace is not blind")
def sees_all():
    modules.load("tcp_tlt")
    with default("tlt_reno"):
        ns = Namespace("c1")
        with ns:
            done = subprocess.run(STATUS, capture_output=True, text=True, check=False)
        equal((done.returncode, ids(json.loads(done.stdout))), (0, []), "in ip netns exec")
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps", CAPABILITIES,
             "--ambient-caps", CAPABILITIES, *STATUS, "--all"],
            capture_output=True, text=True, check=False)
        true(done.stdout, done.stderr)
        said = json.loads(done.stdout)
        equal((done.returncode, ids(said)), (0, []), f"another user: {done.stderr}")
        with process("unshare", "--mount", "--propagation", "private", sys.executable, "-c",
                     "import sys; print(1, flush=True); sys.stdin.read()") as running:
            late = Namespace("late")
            done = subprocess.run(["nsenter", "--mount", "-t", str(running.pid), *STATUS],
                                  capture_output=True, text=True, check=False)
            names = {one["name"] for one in json.loads(done.stdout)["namespaces"].values()}
            true({"c1", "late"} <= names, f"namespaces: {names}")
            equal((done.returncode, ids(json.loads(done.stdout))), (0, []), "mount namespace")
            late.remove()
        ns.remove()


@case("PrivateNetwork=: a namespace with lo only, the host's default, visible to status")
def private_network():
    modules.load("tcp_tlt")
    UNITS.mkdir(parents=True, exist_ok=True)
    with open("/run/pair.py", "w", encoding="ascii") as file:
        file.write(CONNECTION.replace("sys.stdin.read()", "import time; time.sleep(1000)"))
    (UNITS / "pair.service").write_text(
        f"[Service]\nPrivateNetwork=yes\nExecStart={sys.executable} /run/pair.py\n",
        encoding="ascii")
    with default("tlt_reno"), Systemd() as systemd:
        done = systemd.run("systemctl", "start", "pair.service")
        equal(done.returncode, 0, f"start: {done.stderr}")
        time.sleep(2)
        mine = list(look()["connections"].values())
        equal([c["cc"] for c in mine], ["tlt_reno"] * 2, "connections of the unit")
        equal({c["remote"] for c in mine}, {"127.0.0.1"}, "their peers")
        pid = mine[0]["pid"]
        true(mine[0]["ns"] != str(os.stat("/proc/self/ns/net").st_ino), "a namespace of its own")
        links = subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "-j", "link"],
                               capture_output=True, text=True, check=True).stdout
        equal({link["ifname"] for link in json.loads(links)}, {"lo"}, "devices")


if __name__ == "__main__":
    main()
