# SPDX-License-Identifier: GPL-2.0
"""Ways in which a connection can come to be, and what it looks like where nobody marks."""
import contextlib
import socket

from gl.packet import SYN
from gl.tap import Failed, equal

IPPROTO_MPTCP = 262


def unmarked(packets):
    """All with DSCP 0?"""
    bad = [p for p in packets if p.dscp]
    if bad:
        raise Failed(f"{len(bad)} packets are marked, the first: {bad[0]!r}")


def fast_open(wire):
    """(client, server): 500 bytes in the SYN."""
    listener = wire.listen(TCP_FASTOPEN=100)
    client = wire.socket(wire.a)
    client.sendto(b"f" * 500, socket.MSG_FASTOPEN, (wire.address(wire.b), 1000))
    wire.run(5e-3)
    server = listener.accept()[0]
    server.setblocking(False)
    equal(len(server.recv(1000)), 500, "data")
    equal((wire.seen[0].len, wire.seen[0].flags & SYN), (500, SYN), "the SYN has data")
    return client, server


@contextlib.contextmanager
def mptcp(wire):
    """(client, server) that speak MPTCP."""
    family = socket.AF_INET if wire.version == 4 else socket.AF_INET6
    with wire.b:
        listener = socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.setblocking(False)
    listener.bind((wire.address(wire.b), 1000))
    listener.listen(5)
    with wire.a:
        client = socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP)
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.connect((wire.address(wire.b), 1000))
    wire.run(5e-3)
    server = listener.accept()[0]
    server.setblocking(False)
    yield client, server
    for s in (client, server, listener):
        s.close()
