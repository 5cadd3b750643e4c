#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""ExpressPass with Linux's own buffers and options: at least 75 % of the throughput with large
buffers, and no data is held back.

	a (client, sends) ---- wire (this program) ---- b (server, sends credits)
"""
import socket
import time

from lab.tap import case, equal, main, true
from lab.wire.sockopt import cc_of
from lab.wire.wire import Wire, pattern

WMEM = "4096 16384 4194304"     # Linux's default
LARGE = "4096 8388608 67108864"
COUNT = 8_000_000


def took(cc, delay, sysctls=(), sndbuf=0, wmem=WMEM):
    """Transfer time of COUNT bytes on a new connection, s."""
    with Wire(cc=cc) as wire:
        wire.delay = delay
        for ns in (wire.a, wire.b):
            ns.sysctl("net.ipv4.tcp_wmem", wmem)
            for name, value in sysctls:
                ns.sysctl(name, value)
        client, server = wire.connect()
        equal(cc_of(client), cc, "congestion control")
        if sndbuf:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, sndbuf)
        began = time.monotonic()
        true(wire.transfer(client, server, COUNT, 20.0), "arrives")
        equal(wire.a.greenlane()["Uncredited"], 0, "Uncredited")
        return time.monotonic() - began


@case("the default send buffer grows: at least 75 % of the throughput with a large one",
      delay=(10e-6, 50e-6, 250e-6))
def default_buffer(delay):
    mine, large = took("xpass", delay), took("xpass", delay, wmem=LARGE)
    print(f"# {8e-9 * COUNT / mine:.2f}, with a large one {8e-9 * COUNT / large:.2f} Gbit/s",
          flush=True)
    true(mine < large / 0.75, f"{mine * 1e3:.2f} ms; with a large one {large * 1e3:.2f} ms")


@case("SO_SNDBUF of 64 kB: more than half of the buffer leaves each round trip")
def small_buffer():
    delay = 50e-6
    mine = took("xpass", delay, sndbuf=65536)
    # The kernel doubles it, and counts 2304 bytes for a packet.
    buffers = mine / (2 * delay)
    print(f"# {8e-9 * COUNT / mine:.2f} Gbit/s, {COUNT / buffers / 1e3:.0f} kB a round trip",
          flush=True)
    true(COUNT / buffers > 0.5 * 131072 / 2304 * 1448,
         f"{COUNT / buffers:.0f} bytes a round trip")


@case("MTU probing does not lower the throughput")
def mtu_probing():
    with_it = took("xpass", 50e-6, [("net.ipv4.tcp_mtu_probing", 2)], wmem=LARGE)
    without = took("xpass", 50e-6, wmem=LARGE)
    # two runs differ by some 2 %; waiting for a window took eight times as long
    true(with_it < 1.05 * without, f"{with_it * 1e3:.2f} ms, without {without * 1e3:.2f} ms")


@case("data that TCP_CORK or Nagle's algorithm holds back leaves at once with close()",
      cc=("xpass", "aeolus_xpass"), cork=(True, False), version=(4, 6))
def closed(cc, cork, version):
    with Wire(cc=cc, rto_min=200, version=version) as wire:
        wire.delay = 50e-6
        client, server = wire.connect()
        true(wire.transfer(client, server, 20_000), "arrives")
        wire.run(0.3)
        began = time.monotonic()
        if cork:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.send(pattern(100))
        client.send(pattern(100))
        client.close()
        got = bytearray()

        def ended():
            try:
                while data := server.recv(1 << 16):
                    got.extend(data)
            except BlockingIOError:
                return False
            return True
        true(wire.run(1.0, ended), "the end arrives")
        equal(bytes(got), 2 * pattern(100), "the bytes")
        true(time.monotonic() - began < 1e-3, f"after {(time.monotonic() - began) * 1e3:.3f} ms")


main()
