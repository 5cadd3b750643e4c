#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""tcp_hpcc.ko can be removed when no socket uses it, and not before; connections end, change their
congestion control and lose their namespace while data is in flight.

	a (client, sends) ---- wire (this program) ---- b (server)
"""
import contextlib
import socket
import time

from lab.net import modules
from lab.net.namespace import CC, Namespace
from lab.tap import case, equal, main, true
from lab.wire.hpcc import ONE, hpcc, port
from lab.wire.sockopt import NO, cc_of, choose, info, mss
from lab.wire.wire import MSS


@case("the module cannot be removed with data in flight; namespaces can, and then the module",
      version=(4, 6))
def in_flight(version):
    with hpcc(version=version) as wire:
        port(wire, ONE)
        flows = [wire.connect(1000 + number) for number in range(3)]
        for client, _ in flows:
            client.send(bytes(200_000))
        wire.run(0.3e-3)
        for module in ("tcp_hpcc", "greenlane", "link_speed"):
            equal(modules.rmmod(module), False, f"rmmod {module} with connections")
    modules.unload("tcp_hpcc")
    equal(modules.is_loaded("tcp_hpcc"), False, "the module is loaded")
    modules.load("tcp_hpcc")


@case("each congestion control after hpcc, and hpcc after it, in the middle of a transfer",
      version=(4, 6), cc=("reno", "dctcp", "tlt_reno", "dcqcn"))
def changes(version, cc):
    modules.load_for(cc)
    modules.allow()
    with hpcc(version=version) as wire:
        port(wire, ONE // 2)
        client, server = wire.connect()
        client.send(bytes(100_000))
        wire.run(0.3e-3)
        choose(client, cc)
        equal(mss(client), MSS[version], "MSS after the change")
        wire.run(1e-3)
        choose(client, "hpcc")
        equal(cc_of(client), "hpcc-reno", "congestion control: the handshake has passed")
        equal(len(wire.receive(server, 100_000)), 100_000, "bytes")
        true(wire.transfer(client, server, 100_000), "arrives")


@case("a connection that is disconnected and connects again", version=(4, 6))
def again(version):
    with hpcc(version=version) as wire:
        port(wire, ONE // 2)
        client, server = wire.connect()
        true(wire.transfer(client, server, 50_000), "arrives")
        client.shutdown(socket.SHUT_RDWR)
        server.close()
        wire.run(1e-3)
        client.close()
        client, server = wire.connect()
        true(wire.transfer(client, server, 50_000), "arrives")
        equal(mss(client), MSS[version] - 8, "MSS")


@case("counters and sysctls exist while the module is loaded, and are separate in each namespace")
def separate():
    with hpcc() as wire:
        port(wire, ONE // 2)
        client, server = wire.connect()
        true(wire.transfer(client, server, 50_000), "arrives")
        wire.a.sysctl("net.ipv4.hpcc_eta", 80)
        equal(wire.b.sysctl("net.ipv4.hpcc_eta"), "95", "hpcc_eta of b")
        true(wire.a.greenlane()["HpccRequestSent"] > 30, "HpccRequestSent of a")
        equal(wire.b.greenlane()["HpccRequestSent"], 0, "HpccRequestSent of b")
        for s in (client, server):
            s.close()
        for ns in (wire.a, wire.b):
            ns.sysctl(CC, "reno")
        wire.run(0.1)
        modules.unload("tcp_hpcc")
        equal([name for name in wire.a.greenlane() if name.startswith("Hpcc")], [],
              "counters after the module is removed")
    modules.load("tcp_hpcc")


@contextlib.contextmanager
def alone(cc="hpcc", mtu=65536):
    """(namespace, client, server): a connection over loopback."""
    modules.load_for(cc)
    modules.allow()
    ns = Namespace("alone")
    try:
        ns.ip(f"link set lo mtu {mtu} up")
        ns.sysctl("net.ipv4.greenlane_active", 1)
        ns.sysctl(CC, cc)
        with ns, socket.create_server(("127.0.0.1", 1000)) as listener:
            client = socket.create_connection(("127.0.0.1", 1000))
            server = listener.accept()[0]
        with client, server:
            yield ns, client, server
    finally:
        ns.remove()


@case("over loopback, without a wire: data arrives, and the connection is idle again", alone)
def loopback(_ns, client, server):
    got = 0
    for _ in range(50):
        client.sendall(bytes(10_000))
        while got % 10_000 or not got:
            got += len(server.recv(10_000))
        got = 0
    true(info(client)["peer"] != NO, "peer")


@case("a process holds the socket while a window of data and more arrives: nothing is Invalid", alone,
      cc=("hpcc", "tlt_hpcc"), mtu=(1500, 9000))
def held_for_a_window(ns, client, server):
    for s in (client, server):
        s.setblocking(False)
    # Over loopback a process receives the packets that it sends, within its own system calls.  The
    # phase decides how many of 3 MB do.
    for _ in range(10):
        sent = got = 0
        while got < 3_000_000:
            with contextlib.suppress(BlockingIOError):
                sent += client.send(bytes(min(100_000, 3_000_000 - sent)))
            try:
                got += len(server.recv(1 << 20))
            except BlockingIOError:
                time.sleep(10e-6)
        if ns.greenlane()["KicksOwned"] > 50:
            break
    true(ns.greenlane()["KicksOwned"] > 50, "packets that arrived while a process held the socket")
    equal(ns.greenlane()["Invalid"], 0, "Invalid")


if __name__ == "__main__":
    main()
