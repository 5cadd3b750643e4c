#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Random writes to net.ipv4.greenlane_*, tlt_*, xpass_*, dart_*, dcqcn_*, timely_*, hpcc_*, ndp_*,
homa_*: values stay valid.

	this program ---- write(2) at any offset ----> /proc/sys of three namespaces

After each write, in its namespace: the codepoints are distinct and in 1 ... 63,
greenlane_protect is 0 or 1, every number of tlt's, xpass's, dart's, dcqcn's, timely's, hpcc's,
ndp's and homa's is in its range, and a write that failed has no effect.  The other namespaces never change.

A failing round can be run alone: see lab/fuzz.py.
"""
import os

from lab import fuzz, tap
from lab.codepoints import DSCP, SHORT
from lab.net import modules
from lab.net.namespace import Namespace
from lab.tap import case, equal, true

WRITES = 100_000
EACH = 500              # writes a round

DSCPS = tuple(f"greenlane_dscp_{name}" for name in DSCP)
NAMES = (*DSCPS, "greenlane_protect")
DEFAULT = (*DSCP.values(), 0)
KINDS = len(DEFAULT) - 1
LOCAL = list(SHORT)             # reserved
FREE = [value for value in range(1, 64) if value not in (*DEFAULT[:KINDS], *LOCAL)]
EDGES = (-1, 0, 1, 2, 62, 63, 64, 65, 127, 128, 255, 256, 257, 1 << 31, -(1 << 31), (1 << 31) - 1,
         1 << 32, (1 << 32) + 10, 1 << 63, -(1 << 63), 1 << 64, (1 << 64) + 10)
# (minimum, default, maximum)
RATES = {
    "greenlane_trim": (0, 1, 1),
    "dart_tenant": (0, 0, 2), "dart_tokens": (0, 4, 4), "dart_short": (0, 8192, 65535),
    "dart_lookahead": (0, 1000, 1_000_000), "dart_trust": (0, 0, 1), "tlt_clock": (0, 0, 2),
    "tlt_crowd": (0, 150, 20_000), "tlt_every": (0, 96, 65535), "tlt_rate": (0, 0, 1_600_000),
    "ndp_rate": (0, 0, 1_600_000), "ndp_idle": (0, 0, 3_600_000), "ndp_overcommit": (1, 2, 64),
    "homa_rate": (0, 0, 1_600_000), "homa_idle": (0, 0, 3_600_000), "homa_overcommit": (1, 4, 64),
    "homa_short": (0, 1400, (1 << 31) - 1), "homa_medium": (0, 10_000, (1 << 31) - 1),
    "aeolus_idle": (0, 0, 3_600_000), "aeolus_probe": (0, 1, 1),
    "xpass_rate": (0, 0, 1_600_000), "xpass_initial": (1, 16, 1000), "xpass_pick": (0, 0, 1),
    "dcqcn_rate": (0, 0, 1_600_000), "dcqcn_ai": (0, 0, 1_600_000_000),
    "dcqcn_hai": (0, 0, 1_600_000_000), "dcqcn_counter": (65536, 10_000_000, 1 << 30),
    "dcqcn_timer": (1, 55, 1_000_000), "dcqcn_alpha_timer": (1, 55, 1_000_000),
    "dcqcn_g": (1, 8, 10), "dcqcn_fast": (1, 5, 100), "dcqcn_cnp": (0, 50, 1_000_000),
    "dcqcn_burst": (0, 5, 1000), "dcqcn_recovery": (0, 0, 2),
    "dcqcn_rto_low": (1, 100, 1_000_000), "dcqcn_rto_high": (1, 320, 1_000_000),
    "timely_rate": (0, 0, 1_600_000), "timely_delta": (1, 10000, 1_600_000_000),
    "timely_alpha": (1, 875, 1000), "timely_beta": (0, 800, 1000),
    "timely_t_low": (0, 50, 1_000_000), "timely_t_high": (0, 500, 1_000_000),
    "timely_rtt": (0, 0, 1_000_000), "timely_segment": (1, 16384, 1 << 20),
    "timely_burst": (0, 5, 1000),
    "hpcc_rate": (0, 0, 1_600_000), "hpcc_rtt": (0, 0, 1_000_000), "hpcc_eta": (10, 95, 100),
    "hpcc_stages": (0, 5, 1000), "hpcc_flows": (1, 100, 100_000), "hpcc_average": (0, 1, 1),
}


class Host:
    """A namespace's sysctls, opened once."""

    def __init__(self, name, names=NAMES):
        self.ns = Namespace(name)
        with self.ns:
            self.files = [os.open(f"/proc/sys/net/ipv4/{n}", os.O_RDWR) for n in names]

    def read(self):
        """Read all values."""
        return tuple(int(os.pread(f, 100, 0)) for f in self.files)

    def write(self, which, data, offset):
        """write(2), or pwrite(2) at an offset: the bytes taken, or None."""
        try:
            return os.pwrite(self.files[which], data, offset)
        except OSError:
            return None

    def reset(self):
        """Set the defaults, after unused values, because codepoints must be distinct."""
        for values in (FREE, DEFAULT[:KINDS]):
            for which, value in enumerate(values[:KINDS]):
                # The write fails while another codepoint has the value; the next loop sets it.
                self.write(which, str(value).encode(), 0)
        for which, value in enumerate(DEFAULT):
            self.write(which, str(value).encode(), 0)

    def close(self):
        """Close the files, and remove the namespace."""
        for f in self.files:
            os.close(f)
        self.ns.remove()


def text(rng):
    """Random bytes for a write, valid or not."""
    choice = rng.randrange(10)
    if choice < 4:
        return str(rng.randrange(-2, 67)).encode()
    if choice == 4:
        return str(rng.choice(EDGES)).encode()
    if choice == 5:
        return rng.choice((b"0x%x", b"0%o", b" %d", b"\t%d\n", b"+%d", b"%d,", b"%d.5", b"%dx",
                           b"%d\0", b"\0%d", b"--%d")) % rng.randrange(1, 64)
    if choice == 6:
        return b" ".join(b"%d" % rng.randrange(70) for _ in range(rng.randrange(2, 9)))
    if choice == 7:
        return b"%d" % rng.randrange(1, 64) + rng.choice((b" ", b"9", b"\n", b"\0")) * \
            rng.choice((1, 2, 10, 30, 4000, 5000))
    if choice == 8:
        return rng.randbytes(rng.choice((0, 1, 2, 4, 8, 100, 4095, 4096, 5000)))
    return b""


def check(host, before, taken, what):
    """Check the invariants after a write."""
    after = host.read()
    true(len(set(after[:KINDS])) == KINDS, f"{what}: distinct codepoints: {after}")
    true(all(1 <= value <= 63 and value not in LOCAL for value in after[:KINDS]),
         f"{what}: codepoints in 1 ... 63, without those of short messages: {after}")
    true(after[KINDS] in (0, 1), f"{what}: greenlane_protect is 0 or 1: {after}")
    if taken is None:
        equal(after, before, f"{what}: values after an error")
    return after


@case("random writes: codepoints stay distinct, a write that fails has no effect")
def writes():
    modules.load("tcp_tlt")
    hosts = [Host(f"sysctl{n}") for n in range(3)]
    taken = changed = refused = 0
    for number, rng in fuzz.rounds("write", WRITES, EACH):
        with fuzz.replayable("write", number):
            for host in hosts:
                host.reset()
                equal(host.read(), DEFAULT, "values after the reset")
            state = {host: DEFAULT for host in hosts}
            for _ in range(EACH):
                host, which, data = rng.choice(hosts), rng.randrange(len(NAMES)), text(rng)
                offset = rng.choice((0,) * 6 + (1, 2, 3, 100, 1 << 40))
                done = host.write(which, data, offset)
                after = check(host, state[host], done, f"{NAMES[which]} = {data!r} at {offset}")
                taken += done is not None
                refused += done is None
                changed += after != state[host]
                state[host] = after
            for host in hosts:
                equal(host.read(), state[host], "values of each namespace")
    if not os.environ.get("GL_ROUND"):
        true(changed > taken // 10 and refused > taken // 10,
             f"writes: {taken} accepted, {refused} refused, {changed} changes; each above 10 %")
    for host in hosts:
        host.close()


@case("random writes to tlt_*, xpass_*, dart_* and dcqcn_*: values stay in their ranges, a write"
      " that fails has no effect")
def rates():
    modules.load("tcp_tlt", "tcp_aeolus", "tcp_dart", "tcp_timely", "tcp_hpcc", "tcp_ndp", "tcp_homa")
    hosts = [Host(f"rate{n}", RATES) for n in range(2)]
    least, default, most = zip(*RATES.values())
    taken = refused = 0
    for host in hosts:
        equal(host.read(), default, "values by default")
    for number, rng in fuzz.rounds("rate", WRITES, EACH):
        with fuzz.replayable("rate", number):
            for host in hosts:
                for which, value in enumerate(default):
                    host.write(which, str(value).encode(), 0)
            state = {host: default for host in hosts}
            for _ in range(EACH):
                host, which = rng.choice(hosts), rng.randrange(len(RATES))
                edge = rng.choice((least, most))[which] + rng.randrange(-1, 2)
                written = str(edge).encode() if rng.random() < 0.5 else text(rng)
                offset = rng.choice((0,) * 6 + (1, 100))
                done = host.write(which, written, offset)
                what = f"{list(RATES)[which]} = {written!r} at {offset}"
                after = host.read()
                true(all(low <= value <= high for low, value, high in zip(least, after, most)),
                     f"{what}: values in their ranges: {after}")
                if done is None:
                    equal(after, state[host], f"{what}: values after an error")
                others = [new == old for new, old in zip(after, state[host])]
                true(all(others[:which] + others[which + 1:]),
                     f"{what}: other values are unchanged: {after}")
                if written == str(edge).encode() and not offset:
                    equal(done is not None, least[which] <= edge <= most[which],
                          f"{what}: the write is accepted")
                taken += done is not None
                refused += done is None
                state[host] = after
            for host in hosts:
                equal(host.read(), state[host], "values of each namespace")
    if not os.environ.get("GL_ROUND"):
        true(taken > refused // 10 and refused > taken // 10,
             f"writes: {taken} accepted, {refused} refused; each above 10 % of the other")
    for host in hosts:
        host.close()


@case("each codepoint accepts 1 ... 63 without values in use, and no other value")
def each_value():
    modules.load("tcp_tlt")
    host = Host("values")
    for which, name in enumerate(DSCPS):
        for value in range(-70, 200):
            host.reset()
            done = host.write(which, str(value).encode(), 0)
            good = value in FREE or value == DEFAULT[which]
            equal(done is not None, good, f"{name} = {value} is accepted")
            expected = list(DEFAULT)
            if good:
                expected[which] = value
            equal(host.read(), tuple(expected), f"values after {name} = {value}")
    host.close()


@case("a write in two parts: each is a value of its own, and codepoints stay valid")
def pieces():
    modules.load("tcp_tlt")
    host = Host("pieces")
    for data in (b"4", b"46", b"4 6", b"46\n", b"046"):
        for cut in range(len(data) + 1):
            host.reset()
            before = host.read()
            first = host.write(1, data[:cut], 0)
            before = check(host, before, first, f"{data[:cut]!r}")
            second = host.write(1, data[cut:], cut)
            check(host, before, second, f"{data[cut:]!r} at {cut}")
    host.close()


if __name__ == "__main__":
    tap.main()
