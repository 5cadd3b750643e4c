#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The YNL spec of color and iofd: the headers' attributes, and the kernel's own YNL speaks it.

	 pyynl, tc ---> [ color ] p0 ============ p1
	                [ iofd ]  d1 ============ e1
"""
import os
import pathlib
import re
import socket
import sys

import jsonschema
import yaml
from lab.codepoints import GREEN, RED
from lab.net import frames as p
from lab.net import iofd as i
from lab.tap import case, equal, main, true

TOP = pathlib.Path(os.environ["GL_TOP"])
SOURCE = pathlib.Path(os.environ["GL_KERNEL_SOURCE"])
SPEC = TOP / "Documentation/netlink/specs/tc-greenlane.yaml"
ROOT = 0xffffffff
NLM_F_ECHO = 8

sys.path.insert(0, str(SOURCE / "tools/net/ynl/pyynl"))
from lib import Netlink, NlError, YnlFamily      # noqa: E402	the kernel's


def attribute_set(name):
    """The attributes of a set of the spec: {name: attribute}, in order."""
    spec = yaml.safe_load(SPEC.read_text(encoding="utf-8"))
    found = next(part for part in spec["attribute-sets"] if part["name"] == name)
    return {attr["name"]: attr for attr in found["attributes"]}


def header_enum(header, name):
    """The names of an enum of include/uapi/linux, as a spec spells them, without the first."""
    text = (TOP / "include/uapi/linux" / header).read_text(encoding="ascii")
    body = re.search(rf"^enum {name} {{\n(.*?)\n}};", text, re.DOTALL | re.MULTILINE)[1]
    names = re.findall(rf"^\t{name.upper()}_(\w+),$", body, re.MULTILINE)
    return [name.lower().replace("_", "-") for name in names[1:]]


class Link:
    """Speaks the spec to the qdisc of a device."""

    def __init__(self, dev, kind):
        self.family = YnlFamily(str(SPEC), schema="")
        self.kind = kind
        self.where = {"ifindex": socket.if_nametoindex(dev), "parent": ROOT}

    def set(self, flags=(), **options):
        """Add or change the qdisc."""
        options = {name.replace("_", "-"): value for name, value in options.items()}
        self.family.do("newqdisc", {**self.where, "kind": self.kind, "options": options},
                       flags=list(flags))

    def get(self):
        """The kernel's answer: options, and the statistics of its own."""
        # Without NLM_F_ECHO the kernel multicasts the answer only.
        answer = self.family.do("getqdisc", self.where, flags=[NLM_F_ECHO])
        return answer["options"], answer["stats2"]["app"]


@case("the spec is valid by the kernel's schema")
def valid():
    schema = yaml.safe_load(
        (SOURCE / "Documentation/netlink/netlink-raw.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load(SPEC.read_text(encoding="utf-8")), schema)


@case("it has the attributes of the headers, in their order")
def same_attributes():
    for header, name, of in [
            ("pkt_color.h", "tca_color", "color-attrs"),
            ("pkt_color.h", "tca_color_stats", "color-stats"),
            ("pkt_iofd.h", "tca_iofd", "iofd-attrs"),
            ("pkt_iofd.h", "tca_iofd_stats", "iofd-stats"),
            ("pkt_iofd.h", "tca_iofd_port", "iofd-port-attrs"),
            ("pkt_iofd.h", "tca_iofd_port_stats", "iofd-port-stats")]:
        equal(list(attribute_set(of)), header_enum(header, name), of)


@case("color: a port that YNL adds and changes is the port that tc shows")
def color_options():
    p.insmod()
    p.fresh_namespace()
    p.veth()
    link = Link("p0", "color")
    link.set([Netlink.NLM_F_CREATE, Netlink.NLM_F_EXCL], rate64=5000000000, limit=1843200,
             red=276480, count="queue", bands=2, band_rate64=[0, 1 << 63 | 77], pool="sw",
             pool_size=9437184, pool_alpha=0x8000)
    link.set(ecn_min=204800, ecn_max=204800, ecn_prob=0xffffffff)
    shown = p.options()
    equal({name: shown[name] for name in ("rate", "limit", "red", "count", "bands")},
          {"rate": 5000000000, "limit": 1843200, "red": 276480, "count": "queue", "bands": 2},
          "tc's options")
    equal(shown["ecn"], {"min": 204800, "max": 204800, "probability": 1}, "tc's ecn")
    equal(shown["pool"], {"name": "sw", "size": 9437184, "alpha": 0.5}, "tc's pool")
    options, _ = link.get()
    equal({name: options[name] for name in ("rate64", "count", "band-rate64", "pool")},
          {"rate64": 5000000000, "count": "queue", "band-rate64": [0, 1 << 63 | 77],
           "pool": "sw"}, "YNL's options")


@case("color: an invalid value is refused with the attribute's name")
def refused():
    p.port("rate 1gbit red 40k")
    before = p.options()
    try:
        Link("p0", "color").set(slack=2000000)
    except NlError as why:
        true("slack" in str(why), f"the error names the attribute: {why}")
    else:
        true(False, "a slack of 2 ms is refused")
    equal(p.options(), before, "options")


@case("color: YNL and tc report the same statistics")
def color_stats():
    p.port("rate 8bit limit 20k red 5k")
    sender = p.Sender("p0")
    for number in range(30):
        sender.send(p.ipv4(1000, tos=min((RED, GREEN)[number % 2]) << 2))
    sender.close()
    _, stats = Link("p0", "color").get()
    shown = p.colors()
    true(shown["red"]["drops"]["color"] and shown["green"]["packets"], "a drop and a packet")
    of_color = dict(zip(("red", "yellow", "green"), stats["colors"]["color"]))
    for color, counters in of_color.items():
        packets, size, drops = (counters + [0] * 3)[:3]
        equal((packets, size, drops), (shown[color]["packets"], shown[color]["bytes"],
                                       shown[color]["drops"]["color"]), color)
    equal(stats["backlog"], sum(shown[color]["backlog"] for color in of_color), "backlog")


@case("iofd: a port that YNL adds is the port that tc shows")
def iofd_options():
    i.insmod()
    p.fresh_namespace()
    p.veth()
    p.veth("d1", "e1")
    link = Link("p0", "iofd")
    link.set([Netlink.NLM_F_CREATE, Netlink.NLM_F_EXCL], threshold=20000, entries=9,
             ports={"port": [{"dev": "d1", "via": "10.9.1.2"}]})
    shown = p.shown("p0", "iofd")["options"]
    equal((shown["threshold"], shown["entries"], shown["deflect"]),
          (20000, 9, [{"dev": "d1", "via": "10.9.1.2"}]), "tc's options")
    options, stats = link.get()
    equal(options["ports"]["port"][0]["via"], "10.9.1.2", "YNL's port")
    equal((stats["messages"], stats["ports"]["port"][0]["packets"]), (0, 0), "YNL's statistics")


main()
