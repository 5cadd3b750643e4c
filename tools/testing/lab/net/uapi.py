# SPDX-License-Identifier: GPL-2.0
"""The qdiscs' netlink attributes, by the names that include/uapi/linux has for them."""
import enum
import pathlib
import re


def _attributes(header, name):
    """`enum tca_color` of a header: the numbers of LIMIT (TCA_COLOR_LIMIT) and so on."""
    text = (pathlib.Path(__file__).parent / header).read_text(encoding="ascii")
    body = re.search(rf"^enum {name} {{\n(.*?)\n}};", text, re.DOTALL | re.MULTILINE)[1]
    prefix = name.upper() + "_"
    names = re.findall(rf"^\t{prefix}(\w+),$", body, re.MULTILINE)
    return enum.IntEnum(name, names, start=0)


COLOR = _attributes("pkt_color.h", "tca_color")
IOFD = _attributes("pkt_iofd.h", "tca_iofd")
IOFD_PORT = _attributes("pkt_iofd.h", "tca_iofd_port")
