#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: ports that share a buffer.

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

HELD = "rate 8bit"          # the frame on the line is 64 bytes


def ports(*options):
    """A fresh namespace with a port for each of the options, its line busy."""
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
    """A port's statistics of its pool, without the bytes that it holds itself."""
    seen = p.shown(dev).get("pool")
    if seen:
        del seen["held"]
    return seen


def close(senders):
    """So that the namespace can go."""
    for sender in senders:
        sender.close()


@case("dynamic threshold: one port at alpha 1 gets half, exactly")
def one_port():
    senders = ports("pool sw size 90000")
    equal(senders[0].send(p.ipv4(1500), 60), 30, "frames of 1500 in 90000")
    seen = p.shown("a0")
    equal(seen["colors"]["yellow"]["drops"],
          {"color": 0, "pool": 30, "limit": 0}, "drops")
    equal(seen["pool"], {"used": 45000, "peak": 45000, "size": 90000, "ports": 1, "held": 45000},
          "pool")
    close(senders)


@case("dynamic threshold: exact at the byte")
def one_byte():
    # q + len <= size - q, so 30 frames of 1000 need 59000 and 31 need 61000
    for size, want in ((58999, 29), (59000, 30), (60999, 30), (61000, 31)):
        senders = ports(f"pool sw size {size}")
        equal(senders[0].send(p.ipv4(1000), 60), want, f"frames in {size}")
        close(senders)


@case("alpha: 0.0625, 0.5, 2 and 64 of what is free, and never more than there is")
def alphas():
    for alpha, want in ((0.0625, 5), (0.5, 33), (2, 67), (64, 99)):
        senders = ports(f"pool sw size 100000 alpha {alpha}")
        got = 0
        while senders[0].send(p.ipv4(1000)):
            got += 1
        # the last one admitted found q = 1000 (got - 1) there
        true(1000 * got <= alpha * (100000 - 1000 * (got - 1)), f"alpha {alpha}: {got} is allowed")
        equal(got, want, f"frames at alpha {alpha}")
        close(senders)
    # 1024 times the last 500 bytes is much, and still only 500 bytes
    senders = ports("pool sw size 100500 alpha 1024")
    equal(senders[0].send(p.ipv4(1000), 110), 100, "frames at alpha 1024")
    close(senders)


@case("two ports: what one holds the other lacks")
def two_ports():
    senders = ports("pool sw size 90000", "pool sw")
    equal(pool("b0"), {"used": 0, "peak": 64, "size": 90000, "ports": 2}, "pool")
    equal(senders[0].send(p.ipv4(1500), 60), 30, "the first port")
    equal(senders[1].send(p.ipv4(1500), 60), 15, "the second")
    equal(pool("a0"), {"used": 67500, "peak": 67500, "size": 90000, "ports": 2}, "pool")
    equal(senders[0].send(p.ipv4(1500)), 0, "the first again")
    p.tc("qdisc change dev a0 root color rate none")
    p.settle()
    equal(pool("b0"), {"used": 22500, "peak": 67500, "size": 90000, "ports": 2},
          "pool when the first has drained")
    equal(senders[1].send(p.ipv4(1500), 60), 15, "the second has room for a half")
    close(senders)


@case("each port has its own alpha")
def own_alpha():
    senders = ports("pool sw size 90000 alpha 1", "pool sw alpha 0.125")
    equal(p.options("b0")["pool"], {"name": "sw", "size": 90000, "alpha": 0.125}, "options")
    equal(senders[1].send(p.ipv4(1000), 60), 10, "at 1/8")
    equal(senders[0].send(p.ipv4(1000), 60), 40, "at 1")
    close(senders)


@case("green too: the pool is for all colours, the threshold comes first")
def colours():
    senders = ports("pool sw size 20000 red 3000")
    equal(senders[0].send(p.ipv4(1000, p.RED), 5), 3, "red frames")
    equal(senders[0].send(p.ipv4(1000, p.GREEN), 20), 7, "green frames")
    seen = p.colors("a0")
    equal(seen["red"]["drops"], {"color": 2, "pool": 0, "limit": 0}, "red drops")
    equal(seen["green"]["drops"], {"color": 0, "pool": 13, "limit": 0}, "green drops")
    close(senders)


@case("the limit comes last and gives the pool back what it asked for")
def limit_last():
    senders = ports("pool sw size 90000 limit 10000")
    equal(senders[0].send(p.ipv4(1000), 20), 10, "frames")
    equal(pool(), {"used": 10000, "peak": 10000, "size": 90000, "ports": 1}, "pool")
    equal(p.colors("a0")["yellow"]["drops"],
          {"color": 0, "pool": 0, "limit": 10}, "drops")
    close(senders)


@case("a full queue that the pool would not let grow either: the pool's drop")
def full_both():
    # 10 frames of 1000: at the limit, and 10000 + 1000 > 20000 - 10000
    senders = ports("pool sw size 20000 limit 10000")
    equal(senders[0].send(p.ipv4(1000), 12), 10, "frames")
    equal(p.colors("a0")["yellow"]["drops"],
          {"color": 0, "pool": 2, "limit": 0}, "drops")
    close(senders)


@case("a pool named with another size is refused, with the same one not")
def two_sizes():
    senders = ports("pool sw size 90000")
    p.veth("b0", "b1")
    done = p.tc("qdisc add dev b0 root color pool sw size 90001", check=False)
    true(done.returncode and "another size" in done.stderr, f"refused: {done.stderr!r}")
    equal(pool()["ports"], 1, "ports after the refusal")
    p.tc("qdisc add dev b0 root color pool sw size 90000")
    equal(pool()["ports"], 2, "ports")
    close(senders)


def held(dev="a0"):
    """Bytes of the pool that a port holds."""
    return p.shown(dev)["pool"]["held"]


@case("resize and alpha: the ports' reserves were tested for what was before, and go back")
def resize():
    senders = ports("pool sw size 4m", "pool sw")
    equal([sender.send(p.ipv4(1000), 4) for sender in senders], [4, 4], "frames of each port")
    true(held("a0") > 4000 and held("b0") > 4000, "both have a reserve")
    p.tc("qdisc change dev a0 root color pool sw size 1514")
    equal((held("a0"), held("b0")), (4000, 4000), "held, after the resize by one of them")
    equal([sender.send(p.ipv4(1000), 4) for sender in senders], [0, 0], "frames: over-full")
    p.tc("qdisc change dev b0 root color pool sw size 18000")
    # q + 1000 <= 18000 - used
    equal([sender.send(p.ipv4(1000), 20) for sender in senders], [3, 2], "frames that fit now")
    p.tc("qdisc change dev b0 root color size 4m")
    equal(senders[0].send(p.ipv4(1000), 10), 10, "frames")
    true(held() > p.shown("a0")["backlog"], "a reserve")
    p.tc("qdisc change dev a0 root color alpha 0.0001")
    equal(held(), p.shown("a0")["backlog"], "held, after another alpha")
    equal(senders[0].send(p.ipv4(1000), 4), 0, "frames above the new threshold")
    close(senders)


@case("ports with a short queue hold no more than that: a busy one has what they leave")
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
    # The last one finds n = 523: 64 + 1000 n + 1000 <= 1048576 - 64 * 17 - 1000 n
    equal(senders[0].send(p.ipv4(1000), 600), 524, "frames of the busy port")
    close(senders)


@case("a port without a rate gives back as its queue gets shorter")
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
    true(before["backlog"] - seen["backlog"] > 80_000, "it has sent for 100 ms")
    # color_share_low(): the reserve is two chunks of 16 kB at most
    true(seen["backlog"] <= held() <= seen["backlog"] + 2 * 16384,
         f"it holds {held()} for {seen['backlog']}")
    sender.close()


@case("a pool goes with its last port")
def freed():
    senders = ports("pool sw size 90000", "pool sw")
    p.tc("qdisc del dev a0 root")
    equal(pool("b0")["ports"], 1, "ports left")
    p.tc("qdisc del dev b0 root")
    true(p.tc("qdisc add dev a0 root color pool sw", check=False).returncode, "it is gone")
    p.tc("qdisc add dev a0 root color pool sw size 50000")
    equal(pool(), {"used": 0, "peak": 0, "size": 50000, "ports": 1}, "a new one")
    close(senders)


@case("a failed add leaves no pool behind")
def failed_add():
    senders = ports("")
    p.veth("b0", "b1")
    done = p.tc("qdisc add dev b0 root color limit 1000 red 2000 pool new size 1m", check=False)
    true(done.returncode, "refused")
    true(p.tc("qdisc change dev a0 root color pool new", check=False).returncode, "no such pool")
    close(senders)


@case("what a deleted port held is free again")
def uncharged():
    senders = ports("pool sw size 90000", "pool sw")
    senders[0].send(p.ipv4(1500), 10)
    equal(pool("b0")["used"], 15000, "used")
    p.tc("qdisc del dev a0 root")
    equal(pool("b0")["used"], 0, "used when the port is gone")
    close(senders)


@case("a device that goes down gives back what it held")
def down():
    senders = ports("pool sw size 90000", "pool sw")
    senders[0].send(p.ipv4(1500), 10)
    p.run("ip", "link", "set", "a0", "down")
    equal(pool("b0")["used"], 0, "used")
    p.run("ip", "link", "set", "a0", "up")
    senders[0].send(p.ipv4(1500), 3)
    equal(pool("b0")["used"], 3000, "used, with one frame on the line")
    close(senders)


@case("change: into a pool, to another, out of it, with the packets")
def moved():
    senders = ports("", "pool one size 90000", "pool two size 80000")
    senders[0].send(p.ipv4(1000), 20)
    p.tc("qdisc change dev a0 root color pool one alpha 0.5")
    equal((pool("b0")["used"], pool("b0")["ports"]), (20000, 2), "one: used and ports")
    p.tc("qdisc change dev a0 root color pool two")
    equal((pool("b0")["used"], pool("b0")["ports"]), (0, 1), "one: used and ports, left")
    equal((pool("c0")["used"], pool("c0")["ports"]), (20000, 2), "two: used and ports")
    equal(p.options("a0")["pool"]["alpha"], 0.5, "alpha goes along")
    p.tc("qdisc change dev a0 root color red 100k")
    equal(pool("c0")["ports"], 2, "ports after a change of something else")
    p.tc("qdisc change dev a0 root color pool none")
    equal((pool("c0")["used"], pool("c0")["ports"]), (0, 1), "two: used and ports, left")
    equal(pool("a0"), None, "pool of a port that left")
    equal(p.shown("a0")["qlen"], 20, "packets, all still there")
    close(senders)


@case("change: a pool that is over-full admits nothing, then drains")
def overfull():
    senders = ports("", "pool sw size 30000")
    senders[0].send(p.ipv4(1000), 50)
    p.tc("qdisc change dev a0 root color pool sw")
    equal(pool("b0")["used"], 50000, "used of 30000")
    equal(senders[1].send(p.ipv4(64)), 0, "a frame on the other port")
    p.tc("qdisc change dev a0 root color rate none")
    p.settle()
    equal(pool("b0")["used"], 0, "used")
    equal(senders[1].send(p.ipv4(1000)), 1, "a frame on the other port")
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
    equal(child.returncode, 0, "the same name in another namespace")
    equal(pool(), {"used": 0, "peak": 64, "size": 90000, "ports": 1}, "ours")
    close(senders)


main()
