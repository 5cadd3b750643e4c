# SPDX-License-Identifier: GPL-2.0
"""A port that deflects, devices to deflect to, and messages as frames.

	 frames ---> [ iofd [ color ] ] p0 ============ p1
	                                d1 ============ e1   the ports of the list
	                                d2 ============ e2

All devices are in one namespace and have no addresses, as in frames.py.  The color
below sends one byte a second, so packets stay in it and are the congestion.
"""
import socket
import struct

from lab.net import frames as p
from lab.net import rtnl
from lab.net import modules
from lab.net.namespace import write_sysctl
from lab.wire.packet import checksum

START, MIDDLE, END, ONLY = 0x10, 0, 0x20, 0x30
STILL = "rate 8bit limit 1m"
TCA_STATS2, TCA_STATS_APP = 7, 4


def dscp(part, tokens=4):
    """The DSCP of a packet of a message."""
    return part | (tokens - 1) << 2 | 3


def insmod():
    """Load the modules unless they are loaded."""
    modules.load("sch_color", "sch_iofd")


def _udp(version, size, tos, flow, ends=(b"\1", b"\2")):
    """An IP packet of `size` bytes; the flow is its source port."""
    head = 20 if version == 4 else 40
    udp = struct.pack("!HHHH", flow & 0xffff, 7, size - head, 0)
    if version == 4:
        src, dst = (bytes((10, 0, flow >> 16)) + end for end in ends)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, tos, size, 0, 0, 64, 17, 0, src, dst)
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    else:
        src, dst = (b"\xfd" + bytes(13) + bytes((flow >> 16,)) + end for end in ends)
        ip = struct.pack("!IHBB16s16s", 6 << 28 | tos << 20, size - head, 17, 64, src, dst)
    return (ip + udp).ljust(size, b"\0")


def frame(code, flow=1, number=0, size=1000, version=4, ecn=0, ends=(b"\1", b"\2")):
    """An Ethernet frame of a flow, with this DSCP and a number at its end."""
    packet = _udp(version, size - p.ETH_LEN, code << 2 | ecn, flow, ends)
    return p.ether(0x0800 if version == 4 else 0x86dd, packet[:-4] + struct.pack("!I", number))


def message(count, flow=1, number=0, tokens=4, **how):
    """The frames of a message: start, middle, end; or the only frame."""
    if count == 1:
        return [frame(dscp(ONLY, tokens), flow, number, **how)]
    parts = [START] + [MIDDLE] * (count - 2) + [END]
    return [frame(dscp(part, tokens), flow, number + at, **how) for at, part in enumerate(parts)]


def readdressed(ethernet, address=None, link=None):
    """The frame with another IP destination, or another link-layer destination (both as text)."""
    changed = bytearray(ethernet)
    if link:
        changed[:6] = bytes.fromhex(link.replace(":", ""))
    if address and ":" in address:
        changed[38:54] = socket.inet_pton(socket.AF_INET6, address)
    elif address:
        changed[30:34] = socket.inet_aton(address)
        changed[24:26] = b"\0\0"
        changed[24:26] = struct.pack("!H", checksum(bytes(changed[14:34])))
    return bytes(changed)


def codes(frames):
    """The DSCPs of what Receiver.frames() returns; an error if an IPv4 checksum is wrong."""
    found = []
    for _, got in frames:
        if got[12:14] == b"\x08\x00":
            if checksum(got[14:34]):
                raise RuntimeError("bad IPv4 checksum")
            found.append(got[15] >> 2)
        else:
            found.append((struct.unpack("!H", got[14:16])[0] >> 4 & 255) >> 2)
    return found


def via(number, version=4):
    """The address of the next hop at the port with this number."""
    return f"10.9.{number}.2" if version == 4 else f"fd00:9:{number}::2"


def lladdr(number):
    """The link-layer address of that next hop."""
    return f"02:00:00:00:09:{number:02x}"


def add_port(number, version=4, mtu=1500):
    """Add a device to deflect to, and its next hop."""
    # The far end is set up first, so the device has a carrier from the start.
    p.veth(f"e{number}", f"d{number}", "mtu", str(mtu))
    if version == 6:            # no address of its own, which would need DAD
        p.run("ip", "link", "set", f"d{number}", "addrgenmode", "none")
        write_sysctl(f"net.ipv6.conf.d{number}.disable_ipv6", 0)
    neighbour(number, version)


def neighbour(number, version=4):
    """Add the next hop of a device to deflect to."""
    p.run("ip", "neigh", "add", via(number, version), "lladdr", lladdr(number), "dev",
          f"d{number}", "nud", "permanent")


def deflect(*numbers, version=4):
    """The list of ports, as words for tc."""
    return " ".join(f"deflect dev d{n} via {via(n, version)}" for n in numbers)


def setup(options="", ports=1, child=STILL, version=4):
    """A fresh namespace with a port that deflects to this many others.

    A packet in a queue holds its socket, which holds its namespace: so the qdisc of the
    last namespace is deleted first.
    """
    p.tc("qdisc del dev p0 root", check=False)
    insmod()
    p.fresh_namespace()
    p.veth()
    for number in range(1, ports + 1):
        add_port(number, version)
    p.settle(1.1)       # the kernel checks carriers once a second
    for _ in range(60):     # and later than that where time is real and the CPUs are busy
        if p.run("ip", "link").stdout.count("state UP") >= 2 + 2 * ports:
            break
        p.settle(0.5)
    p.tc(f"qdisc add dev p0 root handle 1: iofd {options} "
         f"{deflect(*range(1, ports + 1), version=version)}")
    if child:
        p.tc(f"qdisc add dev p0 parent 1:1 handle 2: color {child}")


def change(words, check=True):
    """tc qdisc change."""
    return p.tc(f"qdisc change dev p0 root handle 1: iofd {words}", check=check)


def congest(sender, size=16000):
    """Put this many bytes into the queue, rounded up to frames; one more frame is sent."""
    sender.send(frame(0, size=1000), 1 + -(-size // 1000))


def shown(dev="p0"):
    """The qdisc, as tc shows it."""
    return p.shown(dev, "iofd")


def counters(dev="p0"):
    """The counters of the qdisc, by "object.name"."""
    seen = shown(dev)
    return {f"{group}.{name}": value for group in ("deflected", "table", "passed", "dropped")
            for name, value in seen[group].items()}


def waiting(dev="p0"):
    """Packets and bytes that wait in the FIFO, and the most packets that have waited."""
    return shown(dev)["waiting"]


def attributes(data, mask=0x3fff):
    """[(type, payload)] of netlink attributes; an error if the bytes are something else."""
    found = []
    while data:
        length, kind = struct.unpack_from("HH", data)
        if not 4 <= length <= len(data):
            raise ValueError(f"an attribute of {length} bytes in {len(data)}")
        found.append((kind & mask, data[4:length]))
        data = data[length + 3 & ~3:]
    return found


def stats_app(dev="p0"):
    """The bytes of TCA_STATS_APP, which the kernel sends for the iofd of a device."""
    index = socket.if_nametoindex(dev)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.settimeout(5)
        link.send(struct.pack("IHHII", 36, rtnl.RTM_GETQDISC, rtnl.NLM_F_REQUEST | rtnl.NLM_F_DUMP,
                              1, 0) + bytes(20))
        while True:
            data = link.recv(65536)
            while data:
                length, what = struct.unpack_from("IH", data)
                if what != rtnl.RTM_NEWQDISC:
                    raise RuntimeError(f"no iofd on {dev}")
                found = dict(attributes(data[36:length]))
                if (struct.unpack_from("i", data, 20)[0] == index and
                        found[rtnl.TCA_KIND] == b"iofd\0"):
                    # without flags, as tc's older parsers need it
                    return dict(attributes(found[TCA_STATS2], 0xffff))[TCA_STATS_APP]
                data = data[length + 3 & ~3:]


def receivers(ports):
    """A Receiver at the far end of each port."""
    return [p.Receiver(f"e{number}") for number in range(1, ports + 1)]


def listen(dev):
    """The link-layer destination of a frame, as text."""
    return ":".join(f"{byte:02x}" for byte in dev[:6])


def address(text):
    """An IPv4 address as bytes."""
    return socket.inet_aton(text)
