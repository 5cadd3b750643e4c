#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""color: packets are trimmed to their headers instead of dropped.

	 TCP segments ---> [ color: trim 61 ] p0 ============ p1

The port has a threshold of 0 or few packets for the colour of the segments, and room for their
headers.  trimmed() builds the expected frame.
"""
import hashlib
import random
import socket
import struct
import threading

from lab.codepoints import DSCP
from lab.net import frames as p
from lab.net import pfc
from lab.net.namespace import Namespace, write_sysctl
from lab.tap import case, equal, main, true
from lab.wire import packet
from lab.wire.packet import ACK, CWR, ECE, EXID, EXPERIMENT, FIN, PSH, RST, SYN, checksum

TRIMMED, CODE, HAD_FIN = DSCP["trimmed"], 11, 1 << 31
URG = 0x20
HELD = "rate 8bit"              # only the first packet leaves
ONE = f"yellow 1 trim {TRIMMED}"        # no room for any data
ADDRESSES = {4: (bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))),
             6: (bytes(15) + b"\1", bytes(15) + b"\2")}
TIMESTAMP = b"\1\1\10\12" + bytes(8)


def ip(version, tos, segment, ext=b"", proto=6, frag=0x4000):
    """An IP packet; ext is IPv4 options, or IPv6 extension headers with their next-header
    fields."""
    src, dst = ADDRESSES[version]
    if version == 4:
        head = struct.pack("!BBHHHBBH", 0x45 + len(ext) // 4, tos, 20 + len(ext) + len(segment),
                           7, frag, 64, proto, 0) + src + dst + ext
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + segment
    return struct.pack("!IHBB", 6 << 28 | tos << 20, len(ext) + len(segment), proto, 64) \
        + src + dst + ext + segment


def tcp(version, data, flags=ACK | PSH, options=TIMESTAMP, urgent=0):
    """A TCP segment with a valid checksum."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    src, dst = (socket.inet_ntop(family, address) for address in ADDRESSES[version])
    made = packet.make(version, src, dst, 1000, 80, 0x12345678, 0x9abcdef0, flags, data,
                       options=options, urgent=urgent)
    return bytes(made.raw[made.ip_len:])


def frame(version=4, tos=0, data=bytes(range(250)) * 4, vlans=(), pad=b"", ext=b"", **more):
    """A frame with a segment of that data."""
    return p.ether(0x0800 if version == 4 else 0x86dd,
                   ip(version, tos, tcp(version, data, **more), ext), vlans=vlans) + pad


def trimmed(version=4, tos=0, data=bytes(range(250)) * 4, vlans=(), flags=ACK | PSH,
            options=TIMESTAMP, dscp=TRIMMED, ext=b"", **more):
    """The frame that color should make of frame() with these arguments."""
    word = len(data) | (HAD_FIN if flags & FIN else 0)
    ours = struct.pack("!BBHII", EXPERIMENT, 12, EXID, CODE << 24, word)
    return frame(version, dscp << 2 | tos & 3, b"", vlans, flags=flags & ~(FIN | PSH | URG),
                 options=options + ours, ext=ext, **{**more, "urgent": 0})


def through(options, frames):
    """The packets that a port without a rate sends, in order."""
    p.port(options)
    sender, receiver = p.Sender(), p.Receiver()
    for one in frames:
        sender.send(one)
    got = [one for _, one in receiver.frames(wait=0.05)]
    sender.close()
    receiver.close()
    return got


def start(options):
    """A port whose link is busy with one packet, which is not queued."""
    p.port(f"{HELD} {options}")
    sender = p.Sender()
    sender.send(p.ipv4(64, p.GREEN))
    return sender


# --- trimmed frames --------------------------------------------------------------

@case("headers are kept with valid lengths and checksums, and an option has the data's length",
      version=(4, 6), size=(13, 100, 1428))
def headers(version, size):
    data = bytes(i & 255 for i in range(size))
    got = through(ONE, [frame(version, data=data)])
    equal([one.hex() for one in got], [trimmed(version, data=data).hex()], "frames")
    equal(p.colors()["yellow"]["trims"], 1, "trimmed packets")
    equal(p.shown()["drops"], 0, "drops")


@case("ECN, ECE and CWR are kept; FIN, PSH and URG are cleared, and the option reports a FIN",
      version=(4, 6))
def flags(version):
    for bits in (ACK, ACK | PSH, ACK | FIN, ACK | PSH | FIN | URG | ECE | CWR):
        for ecn in range(4):
            got = through(ONE, [frame(version, ecn, flags=bits, urgent=9)])
            want = trimmed(version, ecn, flags=bits, urgent=9)
            equal([one.hex() for one in got], [want.hex()], f"flags {bits:#x}, ECN {ecn}")


@case("TCP options are kept if they leave room for ours, else the packet is dropped",
      version=(4, 6))
def room(version):
    for length in range(0, 41, 4):
        options = b"\1" * length
        got = through(ONE, [frame(version, options=options)])
        want = [trimmed(version, options=options)] if length <= 28 else []
        equal([one.hex() for one in got], [one.hex() for one in want],
              f"frames with {length} bytes of options")
        equal(p.shown()["trim"]["unfit_drops"], length > 28,
              f"unfit with {length} bytes of options")


@case("EOL and the bytes after it become NOPs: receivers would not read our option behind EOL",
      version=(4, 6))
def eol(version):
    for options in (TIMESTAMP + bytes(4), bytes(4), TIMESTAMP + b"\0\x13\x12\x55"):
        at = options.rindex(b"\0\0\0\0") if options.endswith(bytes(4)) else len(TIMESTAMP)
        got = through(ONE, [frame(version, options=options)])
        want = trimmed(version, options=options[:at] + b"\1" * (len(options) - at))
        equal([one.hex() for one in got], [want.hex()], f"options {options.hex()}")


@case("packets with VLAN tags, IPv4 options or Ethernet's padding are trimmed")
def places():
    for vlans in (((0x8100, 5),), ((0x88a8, 5), (0x8100, 6))):
        got = through(ONE, [frame(vlans=vlans)])
        equal([one[-60:].hex() for one in got], [trimmed(vlans=vlans)[-60:].hex()],
              f"frames with {len(vlans)} tags")
    got = through(ONE, [frame(ext=b"\1\1\1\0")])
    equal([one.hex() for one in got], [trimmed(ext=b"\1\1\1\0").hex()], "frames with IPv4 options")
    got = through(ONE, [frame(pad=bytes(100))])
    equal([one.hex() for one in got], [trimmed().hex()], "frames with padding")


@case("trim-size pads the headers to a length", version=(4, 6))
def size(version):
    sent, want = frame(version), trimmed(version)
    for words, most in ((0, 0), (64, 64), (256, 256), (528, 528), (9216, 9216)):
        got = through(f"{ONE} trim-size {words}", [sent])
        length = max(len(want), min(most, len(sent)))
        equal([len(one) for one in got], [length], f"length with {words}")
        equal(got[0][:len(want)].hex(), want.hex(), f"headers with {words}")
        equal(got[0][len(want):], sent[len(want):length], f"padding with {words}")


# --- untrimmed packets ---------------------------------------------------------

UNFIT = {
    "SYN": {"flags": SYN | ACK}, "RST": {"flags": RST | ACK}, "no ACK": {"flags": PSH},
    "12 bytes": {"data": bytes(12)}, "no data": {"data": b""},
    "MD5": {"options": b"\1\1\x13\x12" + bytes(16)}, "TCP-AO": {"options": b"\x1d\x10" + bytes(14)},
    "MPTCP": {"options": b"\x1e\x0c" + bytes(10)},
    "an option of length 1": {"options": b"\x05\x01\x01\x01"},
    "an option that is cut": {"options": b"\x01\x01\x05\x0a"},
}


@case("packets that are useless without their data are dropped", version=(4, 6))
def unfit(version):
    for what, how in UNFIT.items():
        equal(through(ONE, [frame(version, **how)]), [], what)
        seen = p.shown()
        equal((seen["drops"], seen["trim"]["unfit_drops"]), (1, 1), f"drops and unfit, {what}")
        equal(seen["colors"]["yellow"]["trims"], 0, f"trimmed, {what}")


@case("a damaged packet is not trimmed, because its checksum would become valid")
def damaged():
    rng = random.Random(1)
    for version in (4, 6):
        good, tcp_at = frame(version), 34 if version == 4 else 54
        for _ in range(8):
            at = rng.randrange(tcp_at, len(good))
            if at == tcp_at + 12:
                continue                # the header's length
            bad = bytearray(good)
            bad[at] ^= 1 << rng.randrange(8)
            equal(through(ONE, [bytes(bad)]), [], f"frames with a damaged byte {at}, IPv{version}")
            equal(p.shown()["trim"]["unfit_drops"], 1, "unfit")


@case("fragments, other protocols and inconsistent headers are dropped")
def strange():
    whole = tcp(4, bytes(1000))
    cut = {
        "first fragment": ip(4, 0, whole, frag=0x2000), "fragment": ip(4, 0, whole, frag=0x0010),
        "UDP": ip(4, 0, whole, proto=17), "ESP": ip(6, 0, whole, proto=50),
        "IPv6 extension": ip(6, 0, whole, ext=b"\6\0" + bytes(6), proto=0),
        "longer than it is": ip(4, 0, whole)[:-1], "TCP header cut": ip(4, 0, whole[:19]),
        "doff of 4": ip(4, 0, whole[:12] + b"\x40" + whole[13:]),
        "doff beyond the end": ip(4, 0, whole[:12] + b"\xf0" + whole[13:40]),
    }
    for what, one in cut.items():
        got = through(ONE, [p.ether(0x0800 if one[0] >> 4 == 4 else 0x86dd, one)])
        equal(got, [], what)
        equal(p.shown()["trim"]["unfit_drops"], 1, f"unfit, {what}")


# --- reasons, limits and queues ---------------------------------------------------------------

@case("every reason for a drop also trims: colour, pool, limit, band")
def reasons():
    for words in (f"yellow 1 trim {TRIMMED}",
                  f"pool sw size 1600 alpha 1024 trim {TRIMMED}",
                  f"limit 1600 trim {TRIMMED}",
                  f"bands 2 prio {TRIMMED} 0 trim {TRIMMED} band-limit 1 1"):
        sender = start(words)
        if "yellow" not in words:               # the first frame fits
            sender.send(frame())
        sender.send(frame())
        seen = p.shown()
        equal(seen["colors"]["yellow"]["trims"], 1, f"trimmed: {words}")
        equal(seen["colors"]["yellow"]["drops"], {"color": 0, "pool": 0, "limit": 0}, "drops")
        equal(seen["trim"]["qlen"], 1, "trimmed packets in the queue")
        sender.close()


@case("without trim, and for other colours, packets are dropped")
def colours():
    for words, trims in (("yellow 1", 0), (f"{ONE} trim-colors red", 0),
                         (f"{ONE} trim-colors yellow,red", 1), (f"{ONE} trim-colors yellow", 1)):
        sender = start(words)
        sender.send(frame())
        yellow = p.colors()["yellow"]
        equal((yellow["trims"], yellow["drops"]["color"]), (trims, 1 - trims), words)
        sender.close()


@case("trim-limit is the maximum of trimmed packets that wait; one that leaves makes room",
      limit=(1, 7))
def limit(limit):
    sender = start(f"{ONE} trim-limit {limit}")
    for _ in range(limit + 3):
        sender.send(frame())
    seen = p.shown()
    equal((seen["trim"]["qlen"], seen["trim"]["limit_drops"]), (limit, 3), "queued and dropped")
    equal(seen["colors"]["yellow"]["drops"]["color"], 3, "drops of the colour")
    p.tc("qdisc change dev p0 root color rate none")
    p.settle()
    equal(p.shown()["trim"]["qlen"], 0, "trimmed packets in the queue")
    sender.close()


@case("trim-limit on a port without a rate: packets that leave make room")
def limit_unpaced():
    p.insmod()
    p.fresh_namespace()
    p.veth()
    p.tc("qdisc add dev p0 root handle 9: tbf rate 80kbit burst 2k limit 1m")
    p.tc(f"qdisc add dev p0 parent 9:1 handle 1: color {ONE} trim-limit 2")
    sender = p.Sender()
    for drops in (1, 2):
        # more than the burst
        sender.send(p.ipv4(1500, p.GREEN), 2)
        for _ in range(3):
            sender.send(frame())
        seen = p.shown()["trim"]
        equal((seen["qlen"], seen["limit_drops"]), (2, drops), "queued and dropped")
        p.settle(1)
        equal(p.shown()["trim"]["qlen"], 0, "trimmed packets in the queue after all have left")
    sender.close()


@case("trim none while trimmed packets wait, and a reset: the counter stays correct")
def disarmed():
    sender = start(ONE)
    for _ in range(5):
        sender.send(frame())
    p.tc("qdisc change dev p0 root color trim none yellow none")
    true("trim" not in p.options(), "the option is not shown")
    sender.send(frame())
    equal((p.shown()["trim"]["qlen"], p.shown()["qlen"]), (5, 6), "trimmed packets, and all")
    p.tc("qdisc change dev p0 root color rate none")
    p.settle()
    seen = p.shown()
    true("trim" not in seen, "statistics of trim are not shown")
    equal((seen["qlen"], seen["backlog"]), (0, 0), "qlen and backlog after all have left")
    p.tc(f"qdisc change dev p0 root color {HELD} {ONE}")
    sender.send(p.ipv4(64, p.GREEN))
    sender.send(frame())
    p.run("ip", "link", "set", "p0", "down")
    equal(p.shown()["trim"]["qlen"], 0, "trimmed packets in the queue after a reset")
    sender.close()


@case("trimmed packets overtake data, in the band and with the colour of their DSCP")
def overtake():
    p.port(f"rate 8mbit bands 2 prio {TRIMMED} 0 yellow 3000 trim {TRIMMED}")
    sender, receiver = p.Sender(), p.Receiver()
    for i in range(6):
        sender.send(frame(data=bytes([i]) * 1000))
    got = [one for _, one in receiver.frames(wait=0.05)]
    lengths = [len(one) for one in got]
    short, long = len(trimmed()), len(frame())
    equal(lengths, [long, short, short, short, long, long], "lengths, in order")
    green = p.colors()["green"]
    equal((green["packets"], green["bytes"]), (3, 3 * short), "green packets and bytes")
    equal(p.shown()["bands"]["0"]["packets"], 3, "packets in the first band")
    sender.close()
    receiver.close()


@case("a trimmed packet that does not fit is a drop of its new colour")
def no_room():
    sender = start(ONE)
    p.tc("qdisc change dev p0 root color green 1")
    sender.send(frame())
    seen = p.shown()
    equal(seen["colors"]["green"]["drops"]["color"], 1, "green drops")
    equal((seen["qlen"], seen["backlog"], seen["trim"]["qlen"]), (0, 0, 0),
          "qlen, backlog, trimmed packets in the queue")
    equal(seen["trim"]["unfit_drops"], 0, "unfit")
    sender.close()


def flooded_by_bridge(words, data):
    """Two ports of a bridge with these words have a copy each; returns the frames that left them."""
    p.insmod()
    p.fresh_namespace()
    for i in (0, 2, 4):
        p.veth(f"p{i}", f"p{i + 1}")
    p.run("ip", "-batch", "-", text="link add name b0 type bridge\nlink set b0 up\n" + "".join(
        f"link set p{i} master b0\n" for i in (0, 2, 4)))
    for dev, of in zip(("p0", "p2"), words):
        p.tc(f"qdisc add dev {dev} root color {of}")
    sender, receivers = p.Sender("p5"), [p.Receiver(dev) for dev in ("p1", "p3")]
    sender.send(data)
    got = [[one for _, one in receiver.frames(1)] for receiver in receivers]
    for one in (sender, *receivers):
        one.close()
    return got


@case("a packet that a bridge floods is trimmed at one port and whole at the other")
def flooded():
    got = flooded_by_bridge(("yellow 1 trim 61", "yellow none trim 61"), frame())
    equal(got, [[trimmed()], [frame()]], "frames")


@case("a packet that a bridge floods is marked at one port and not at the other", version=(4, 6))
def flooded_ect(version):
    got = flooded_by_bridge(("ecn 0", "ecn none"), frame(version, tos=2))
    equal(got, [[frame(version, tos=3)], [frame(version, tos=2)]], "frames")


@case("a neighbour is not paused for trimmed packets, in whose band it has sent nothing")
def unpaused():
    with pfc.switch("rate 1gbit limit 1m pause all delay 2us unit 1514",
                    "rate 8bit limit 200k bands 2 prio 61 0 trim 61 trim-size 256 trim-limit 400"
                    " red 12112 count queue pause obey") as net:
        net.senders[0].send(frame(tos=p.RED), 400)
        true(p.shown("p1")["qlen"] > 350, "packets in the queue, most of them trimmed: above 350")
        equal(net.received(), [], "pause frames")


@case("the parent has the qlen and backlog of its child")
def parent():
    p.insmod()
    p.fresh_namespace()
    p.veth()
    p.tc("qdisc add dev p0 root handle 9: prio bands 2 priomap" + " 0" * 16)
    p.tc(f"qdisc add dev p0 parent 9:1 handle 1: color {HELD} yellow 3000 trim {TRIMMED}")
    sender = p.Sender()
    for _ in range(10):
        sender.send(frame())
        child, above = p.shown(), p.shown(kind="prio")
        equal((above["qlen"], above["backlog"]), (child["qlen"], child["backlog"]),
              "qlen and backlog, parent and child")
    p.tc("qdisc change dev p0 parent 9:1 handle 1: color rate none")
    p.settle()
    above = p.shown(kind="prio")
    equal((above["qlen"], above["backlog"]), (0, 0), "qlen and backlog of the parent at the end")
    sender.close()


# --- real TCP --------------------------------------------------------------------------

ERRORS = {"snmp": ("Ip: InHdrErrors", "Ip: InDiscards", "Tcp: InErrs", "Tcp: InCsumErrors"),
          "netstat": ("IpExt: InTruncatedPkts", "IpExt: InCsumErrors"),
          "snmp6": ("Ip6InHdrErrors", "Ip6InTruncatedPkts", "Ip6InDiscards")}


def errors(ns):
    """A namespace's counters of malformed packets that are not 0."""
    seen = {}
    for file, names in ERRORS.items():
        lines = [line.split() for line in ns.read(f"/proc/thread-self/net/{file}").splitlines()]
        if file == "snmp6":
            all_ = {name: int(count) for name, count in lines}
        else:
            all_ = {f"{head[0]} {name}": int(count) for head, counts in zip(lines[::2], lines[1::2])
                    for name, count in zip(head[1:], counts[1:])}
        seen.update({name: all_[name] for name in names if all_[name]})
    return seen


def exchange(options, size, version, gso=True):
    """Send size bytes over TCP through the port to another namespace.  Checks the received bytes
    and the receiver's counters of errors; returns the statistics of the port."""
    p.insmod()
    p.fresh_namespace()
    for which in ("default", "all"):
        write_sysctl(f"net.ipv6.conf.{which}.disable_ipv6", 0)
    far = Namespace("far")
    address = "10.9.0.2" if version == 4 else "fd00::2"
    p.run("ip", "-batch", "-", text="link add p0 type veth peer name p1 netns far\n"
          "addr add 10.9.0.1/24 dev p0\naddr add fd00::1/64 dev p0 nodad\nlink set p0 up\n")
    far.ip("addr add 10.9.0.2/24 dev p1", "addr add fd00::2/64 dev p1 nodad", "link set p1 up")
    if not gso:
        p.run("ethtool", "-K", "p0", "tso", "off", "gso", "off", "tx", "off")
    p.tc(f"qdisc add dev p0 root handle 1: color {options}")
    data = random.Random(size).randbytes(size)
    with far:
        listener = socket.create_server(
            (address, 0), family=socket.AF_INET if version == 4 else socket.AF_INET6)
    got = hashlib.sha256()

    def serve():
        with listener.accept()[0] as s:
            while part := s.recv(1 << 16):
                got.update(part)
    server = threading.Thread(target=serve)
    server.start()
    with socket.create_connection(listener.getsockname()[:2]) as s:
        s.sendall(data)
    server.join()
    listener.close()
    equal(got.hexdigest(), hashlib.sha256(data).hexdigest(), "bytes")
    equal(errors(far), {}, "packets with an error")
    seen = p.shown()
    far.remove()
    return seen


@case("TCP without greenlane receives the same bytes, and no packet with an error",
      version=(4, 6), gso=(True, False))
def stock(version, gso):
    seen = exchange(f"rate 100mbit limit 1m yellow 20k trim {TRIMMED} bands 2 prio {TRIMMED} 0",
                    3_000_000, version, gso)
    yellow = seen["colors"]["yellow"]
    true(yellow["trims"] > 20, f"trimmed: {yellow['trims']}")
    equal(yellow["drops"]["color"], 0, "dropped packets")


@case("a GSO packet is split first: segments that fit keep their data")
def gso_first():
    seen = exchange(f"no-split-gso rate 100mbit limit 1m yellow 9k trim {TRIMMED}", 500_000, 4)
    yellow = seen["colors"]["yellow"]
    true(yellow["trims"] > 5, f"trimmed: {yellow['trims']}")
    equal((yellow["drops"]["color"], seen["trim"]["unfit_drops"]), (0, 0), "dropped packets, unfit")


main()
