#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TCP time stamps in microseconds: the route's feature tcp_usec_ts, since Linux 6.7.

	a (client, sends) ---- wire (this program) ---- b (server)
"""
import random
import socket
import struct

from lab.net.rtnl import NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, attr
from lab.tap import Skip, case, equal, main, true
from lab.wire.packet import tsval
from lab.wire.wire import Wire

# include/uapi/linux/rtnetlink.h; iproute2 6.1 cannot set the feature.
RTM_NEWROUTE, RTA_DST, RTA_OIF, RTA_METRICS = 24, 1, 4, 8
RTAX_FEATURES, RTAX_RTO_MIN = 12, 13
RTAX_FEATURE_TCP_USEC_TS = 1 << 4
REPLACE = NLM_F_REQUEST | NLM_F_ACK | NLM_F_REPLACE | NLM_F_CREATE


def count_microseconds(ns, to):
    """Replace ns's route to an address by one with the feature, and an RTO_min of 4 ms."""
    with ns:
        index = socket.if_nametoindex("tun0")
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    metrics = attr(RTAX_FEATURES, struct.pack("=I", RTAX_FEATURE_TCP_USEC_TS)) \
        + attr(RTAX_RTO_MIN, struct.pack("=I", 4))
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, 32, 0, 0, 254, 3, 253, 1, 0) \
        + attr(RTA_DST, socket.inet_aton(to)) \
        + attr(RTA_OIF, struct.pack("=I", index)) + attr(RTA_METRICS, metrics)
    with netlink:
        netlink.send(struct.pack("=IHHII", 16 + len(body), RTM_NEWROUTE, REPLACE, 1, 0) + body)
        error = struct.unpack_from("=i", netlink.recv(4096), 16)[0]
    if error:
        raise Skip("this kernel counts milliseconds")


@case("losses: no packet, clocks included, has an older time stamp than the packet before it",
      cc=("tlt_reno", "tlt_cubic", "tlt_dctcp"), loss=(0.02, 0.05))
def in_order(cc, loss):
    with Wire(cc=cc, tso=False) as wire:
        count_microseconds(wire.a, wire.address(wire.b))
        count_microseconds(wire.b, wire.address(wire.a))
        client, server = wire.connect()
        wire.mark()
        dice = random.Random(7)
        wire.rule = lambda p: p.from_a and dice.random() < loss
        for _ in range(60):
            true(wire.transfer(client, server, 200_000, 20.0), "200 kB arrive")
        stamps = [tsval(p) for p in wire.from_a()]
        true(len(stamps) > 8000, f"packets with a time stamp: {len(stamps)}")
        older = [(before, after) for before, after in zip(stamps, stamps[1:])
                 if (after - before) & 0x80000000]
        equal(older, [], "time stamps that are older")
        equal([ns.netstat("PAWSEstab") for ns in (wire.a, wire.b)], [0, 0], "PAWSEstab")


if __name__ == "__main__":
    main()
