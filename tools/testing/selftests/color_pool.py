#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: ports that share a buffer, a pool.

	 ----------> [ color pool sw ] a0 ============ a1
	                   |
	                 buffer
	                   |
	 ----------> [ color pool sw ] b0 ============ b1
"""
import os
import subprocess

from lab.net import frames as p
from lab.tap import case, equal, main, true

HELD = "rate 8bit"          # the frame in transmission has 64 bytes


def ports(*options):
    """A fresh namespace with a port for each of the options, its link busy."""
    p.insmod()
    p.fresh_namespace()
    senders = []
    for name, words in zip("abcd", options):
        p.veth(f"{name}0", f"{name}1")
        p.tc(f"qdisc add dev {name}0 root color {HELD} {words}")
        sender = p.Sender(f"{name}0")
        sender.send(p.ipv4(64))
        senders.append(sender)
    return senders


def pool(dev="a0"):
    """A port's statistics of its pool, without the bytes that the port holds."""
    seen = p.shown(dev).get("pool")
    if seen:
        del seen["held"]
    return seen


def close(senders):
    """Close the sockets, which hold the namespace."""
    for sender in senders:
        sender.close()


@case("dynamic threshold: one port at alpha 1 may fill exactly half of the pool")
def one_port():
    senders = ports("pool sw size 90000")
    equal(senders[0].send(p.ipv4(1500), 60), 30, "frames of 1500 in 90000")
    seen = p.shown("a0")
    equal(seen["colors"]["yellow"]["drops"],
          {"color": 0, "pool": 30, "limit": 0}, "drops")
    equal(seen["pool"], {"used": 45000, "peak": 45000, "size": 90000, "ports": 1, "held": 45000},
          "pool")
    close(senders)


@case("the dynamic threshold is exact to a byte")
def one_byte():
    # q + len <= size - q, so 30 frames of 1000 need 59000 and 31 need 61000
    for size, want in ((58999, 29), (59000, 30), (60999, 30), (61000, 31)):
        senders = ports(f"pool sw size {size}")
        equal(senders[0].send(p.ipv4(1000), 60), want, f"frames in {size}")
        close(senders)


@case("a port may fill alpha times the free bytes, and never more than the pool")
def alphas():
    for alpha, want in ((0.0625, 5), (0.5, 33), (2, 67), (64, 99)):
        senders = ports(f"pool sw size 100000 alpha {alpha}")
        got = 0
        while senders[0].send(p.ipv4(1000)):
            got += 1
        # q was 1000 (got - 1) when the last frame was enqueued
        true(1000 * got <= alpha * (100000 - 1000 * (got - 1)),
             f"alpha {alpha} permits {got} frames")
        equal(got, want, f"frames at alpha {alpha}")
        close(senders)
    # alpha permits 1024 times the last 500 bytes, but only 500 are free
    senders = ports("pool sw size 100500 alpha 1024")
    equal(senders[0].send(p.ipv4(1000), 110), 100, "frames at alpha 1024")
    close(senders)


@case("two ports: bytes that one holds are not free for the other")
def two_ports():
    senders = ports("pool sw size 90000", "pool sw")
    equal(pool("b0"), {"used": 0, "peak": 64, "size": 90000, "ports": 2}, "pool")
    equal(senders[0].send(p.ipv4(1500), 60), 30, "frames of the first port")
    equal(senders[1].send(p.ipv4(1500), 60), 15, "frames of the second port")
    equal(pool("a0"), {"used": 67500, "peak": 67500, "size": 90000, "ports": 2}, "pool")
    equal(senders[0].send(p.ipv4(1500)), 0, "more frames of the first port")
    p.tc("qdisc change dev a0 root color rate none")
    p.settle()
    equal(pool("b0"), {"used": 22500, "peak": 67500, "size": 90000, "ports": 2},
          "pool after the first has drained")
    equal(senders[1].send(p.ipv4(1500), 60), 15, "more frames of the second port, up to half")
    close(senders)


@case("each port has its own alpha")
def own_alpha():
    senders = ports("pool sw size 90000 alpha 1", "pool sw alpha 0.125")
    equal(p.options("b0")["pool"], {"name": "sw", "size": 90000, "alpha": 0.125}, "options")
    equal(senders[1].send(p.ipv4(1000), 60), 10, "frames at alpha 1/8")
    equal(senders[0].send(p.ipv4(1000), 60), 40, "frames at alpha 1")
    close(senders)


@case("the pool limits all colours, after red's threshold")
def colours():
    senders = ports("pool sw size 20000 red 3000")
    equal(senders[0].send(p.ipv4(1000, p.RED), 5), 3, "red frames")
    equal(senders[0].send(p.ipv4(1000, p.GREEN), 20), 7, "green frames")
    seen = p.colors("a0")
    equal(seen["red"]["drops"], {"color": 2, "pool": 0, "limit": 0}, "red drops")
    equal(seen["green"]["drops"], {"color": 0, "pool": 13, "limit": 0}, "green drops")
    close(senders)


@case("the limit is checked after the pool, and a packet dropped by it is not charged to the pool")
def limit_last():
    senders = ports("pool sw size 90000 limit 10000")
    equal(senders[0].send(p.ipv4(1000), 20), 10, "frames")
    equal(pool(), {"used": 10000, "peak": 10000, "size": 90000, "ports": 1}, "pool")
    equal(p.colors("a0")["yellow"]["drops"],
          {"color": 0, "pool": 0, "limit": 10}, "drops")
    close(senders)


@case("a packet above both limit and pool is a drop of the pool")
def full_both():
    # 10 frames of 1000: at the limit, and 10000 + 1000 > 20000 - 10000
    senders = ports("pool sw size 20000 limit 10000")
    equal(senders[0].send(p.ipv4(1000), 12), 10, "frames")
    equal(p.colors("a0")["yellow"]["drops"],
          {"color": 0, "pool": 2, "limit": 0}, "drops")
    close(senders)


@case("a pool with another size is refused, with the same size accepted")
def two_sizes():
    senders = ports("pool sw size 90000")
    p.veth("b0", "b1")
    done = p.tc("qdisc add dev b0 root color pool sw size 90001", check=False)
    true(done.returncode and "another size" in done.stderr,
         f"another size is refused: {done.stderr!r}")
    equal(pool()["ports"], 1, "ports after the refusal")
    p.tc("qdisc add dev b0 root color pool sw size 90000")
    equal(pool()["ports"], 2, "ports")
    close(senders)


def held(dev="a0"):
    """Bytes of the pool that a port holds."""
    return p.shown(dev)["pool"]["held"]


@case("a new size or alpha returns the reserves that ports hold by the old one")
def resize():
    senders = ports("pool sw size 4m", "pool sw")
    equal([sender.send(p.ipv4(1000), 4) for sender in senders], [4, 4], "frames of each port")
    true(held("a0") > 4000 and held("b0") > 4000, "both ports hold a reserve")
    p.tc("qdisc change dev a0 root color pool sw size 1514")
    equal((held("a0"), held("b0")), (4000, 4000), "bytes held, after one port has set the size")
    equal([sender.send(p.ipv4(1000), 4) for sender in senders], [0, 0],
          "frames that an over-full pool admits")
    p.tc("qdisc change dev b0 root color pool sw size 18000")
    # q + 1000 <= 18000 - used
    equal([sender.send(p.ipv4(1000), 20) for sender in senders], [3, 2],
          "frames that fit after the second resize")
    p.tc("qdisc change dev b0 root color size 4m")
    equal(senders[0].send(p.ipv4(1000), 10), 10, "frames")
    true(held() > p.shown("a0")["backlog"], "the port holds a reserve")
    p.tc("qdisc change dev a0 root color alpha 0.0001")
    equal(held(), p.shown("a0")["backlog"], "bytes held, after another alpha")
    equal(senders[0].send(p.ipv4(1000), 4), 0, "frames above the new threshold")
    close(senders)


@case("ports with a short queue hold no reserve: a busy port may use the rest")
def short_queues():
    count = 16
    p.insmod()
    p.fresh_namespace()
    senders = []
    for number in range(count + 1):
        p.veth(f"s{number}", f"r{number}")
        p.tc(f"qdisc add dev s{number} root color {HELD} pool sw size 1m")
        senders.append(p.Sender(f"s{number}"))
        senders[-1].send(p.ipv4(64), 2)
    equal(p.shown("s0")["pool"]["used"], 64 * (count + 1), "bytes of a frame for each port")
    # The last frame that is enqueued has n = 523: 64 + 1000 n + 1000 <= 1048576 - 64 * 17 - 1000 n
    equal(senders[0].send(p.ipv4(1000), 600), 524, "frames of the busy port")
    close(senders)


@case("a port without a rate returns bytes as its queue becomes shorter")
def shorter():
    p.insmod()
    p.fresh_namespace()
    p.veth("a0", "a1")
    p.tc("qdisc add dev a0 root handle 1: tbf rate 8mbit burst 2k limit 1m")
    p.tc("qdisc add dev a0 parent 1:1 color pool sw size 4m")
    sender = p.Sender("a0")
    sender.send(p.ipv4(1000), 200)
    before = p.shown("a0")
    p.settle(0.1)
    seen = p.shown("a0")
    true(before["backlog"] - seen["backlog"] > 80_000, "80 kB or more have been sent in 100 ms")
    # color_share_low(): the reserve is two chunks of 16 kB at most
    true(seen["backlog"] <= held() <= seen["backlog"] + 2 * 16384,
         f"bytes held: {held()}, for a queue of {seen['backlog']}")
    sender.close()


@case("a pool is removed with its last port")
def freed():
    senders = ports("pool sw size 90000", "pool sw")
    p.tc("qdisc del dev a0 root")
    equal(pool("b0")["ports"], 1, "ports left")
    p.tc("qdisc del dev b0 root")
    true(p.tc("qdisc add dev a0 root color pool sw", check=False).returncode,
         "the pool no longer exists")
    p.tc("qdisc add dev a0 root color pool sw size 50000")
    equal(pool(), {"used": 0, "peak": 0, "size": 50000, "ports": 1},
          "statistics of a new pool with that name")
    close(senders)


@case("a failed add leaves no pool behind")
def failed_add():
    senders = ports("")
    p.veth("b0", "b1")
    done = p.tc("qdisc add dev b0 root color limit 1000 red 2000 pool new size 1m", check=False)
    true(done.returncode, "the add is refused")
    true(p.tc("qdisc change dev a0 root color pool new", check=False).returncode, "no such pool")
    close(senders)


@case("a deleted port returns its bytes to the pool")
def uncharged():
    senders = ports("pool sw size 90000", "pool sw")
    senders[0].send(p.ipv4(1500), 10)
    equal(pool("b0")["used"], 15000, "used")
    p.tc("qdisc del dev a0 root")
    equal(pool("b0")["used"], 0, "used after the port is deleted")
    close(senders)


@case("a device that is set down returns its bytes to the pool")
def down():
    senders = ports("pool sw size 90000", "pool sw")
    senders[0].send(p.ipv4(1500), 10)
    p.run("ip", "link", "set", "a0", "down")
    equal(pool("b0")["used"], 0, "used")
    p.run("ip", "link", "set", "a0", "up")
    senders[0].send(p.ipv4(1500), 3)
    equal(pool("b0")["used"], 3000, "used, with one frame in transmission")
    close(senders)


@case("a port joins a pool, another one, and leaves it: its packets are charged accordingly")
def moved():
    senders = ports("", "pool one size 90000", "pool two size 80000")
    senders[0].send(p.ipv4(1000), 20)
    p.tc("qdisc change dev a0 root color pool one alpha 0.5")
    equal((pool("b0")["used"], pool("b0")["ports"]), (20000, 2), "one: used and ports")
    p.tc("qdisc change dev a0 root color pool two")
    equal((pool("b0")["used"], pool("b0")["ports"]), (0, 1),
          "one: used and ports, after the port has left")
    equal((pool("c0")["used"], pool("c0")["ports"]), (20000, 2), "two: used and ports")
    equal(p.options("a0")["pool"]["alpha"], 0.5, "alpha is kept")
    p.tc("qdisc change dev a0 root color red 100k")
    equal(pool("c0")["ports"], 2, "ports after a change of red")
    p.tc("qdisc change dev a0 root color pool none")
    equal((pool("c0")["used"], pool("c0")["ports"]), (0, 1),
          "two: used and ports, after the port has left")
    equal(pool("a0"), None, "pool of a port that has left")
    equal(p.shown("a0")["qlen"], 20, "packets in the queue")
    close(senders)


@case("an over-full pool admits no packet until it has drained")
def overfull():
    senders = ports("", "pool sw size 30000")
    senders[0].send(p.ipv4(1000), 50)
    p.tc("qdisc change dev a0 root color pool sw")
    equal(pool("b0")["used"], 50000, "used of 30000")
    equal(senders[1].send(p.ipv4(64)), 0, "frames that the other port enqueues")
    p.tc("qdisc change dev a0 root color rate none")
    p.settle()
    equal(pool("b0")["used"], 0, "used")
    equal(senders[1].send(p.ipv4(1000)), 1, "frames that the other port enqueues after that")
    close(senders)


@case("namespaces have pools of their own")
def namespaces():
    senders = ports("pool sw size 90000")
    child = subprocess.run(
        ["unshare", "-n", "sh", "-ec",
         "ip link add a0 type veth peer name a1; ip link set a0 up;"
         "tc qdisc add dev a0 root color pool sw size 70000;"
         "tc -j -s qdisc show dev a0 | grep -q '\"size\":70000,\"ports\":1'"],
        check=False, env=os.environ)
    equal(child.returncode, 0, "status of tc with the same name in another namespace")
    equal(pool(), {"used": 0, "peak": 64, "size": 90000, "ports": 1}, "pool of our namespace")
    close(senders)


main()
