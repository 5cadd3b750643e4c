# SPDX-License-Identifier: GPL-2.0
"""Parsers of command line values: sizes, rates and times like 32k, 40gbit, 5us."""

import re

from lab.transports import CCS, CREDITS, TAGS, kind_of, of

_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20,
          "g": 1 << 30, "gb": 1 << 30}
_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}

# Maximum number of congestion controls in a mix: half of the classes of loadgen/play.c.
MIX_MAX = 8


def _parse(text, units, what):
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.lower())
    if not match or match[2] not in units:
        raise ValueError(f"not a {what}: {text}")
    value = float(match[1]) * units[match[2]]
    if value >= 2**63:
        raise ValueError(f"too large a {what}: {text}")
    return round(value)


def size(text):
    """Bytes; k is 1024."""
    return _parse(text, _SIZES, "size")


def size_or_auto(text):
    """Bytes, or the word auto."""
    return text if text == "auto" else size(text)


def rate(text):
    """Bits a second; k is 1000."""
    return _parse(text, _RATES, "rate")


def time(text):
    """Nanoseconds."""
    return _parse(text, _TIMES, "time")


def ccs(text):
    """The names of the congestion controls of CC[+CC]...[:NAME=VALUE]..., of which several are a
    mix; net.ipv4.NAME is set to VALUE for its runs."""
    mix, *settings = text.split(":")
    names = mix.split("+")
    if not all(re.fullmatch(r"[^\s=]+", name) for name in names) or not all(
            re.fullmatch(r"[a-z0-9_]+=[^= +]+", setting) for setting in settings):
        raise ValueError(f"not CC[:NAME=VALUE]...: {text}")
    for name in names:
        if name not in CCS:
            raise ValueError(f"no congestion control {name}; there are {', '.join(CCS)}")
    if len(set(names)) < len(names) or len(names) > MIX_MAX:
        raise ValueError(f"a mix is of up to {MIX_MAX}, each of them once: {text}")
    return names


def cc_name(text):
    """The name of the congestion control; a mix is an error."""
    names = ccs(text)
    if len(names) > 1:
        raise ValueError(f"no mixes here: {text}")
    return names[0]


def has_credits(text):
    """Is it a credit transport, which needs a switch port configured for it?"""
    return kind_of(cc_name(text)) == CREDITS


def preset(text):
    """The preset of tc that all of its packets need at a switch port, or "".  Aeolus's is a threshold,
    which experiments vary around xpass."""
    if cc_name(text) == "aeolus_homa":
        return "homa red 6k count queue"
    row = of(cc_name(text))
    return row.preset if row and row.preset != "aeolus" else ""


def scheduled_first(text):
    """Should a host send the scheduled packets of one of these before other data?  See port.nic()."""
    return any(name.endswith("xpass") for name in ccs(text))


def is_coloured(text):
    """Is all of its data red or green?  (The last packet of tlt_dart's messages may be yellow.)"""
    row = of(cc_name(text))
    return bool(row) and row.kind == TAGS and cc_name(text) != "tlt_dart"


def several(parse):
    """A parser of a comma-separated list of such values."""
    def parse_list(text):
        return [parse(part) for part in text.split(",")]
    parse_list.__name__ = parse.__name__
    return parse_list


def percent(text):
    """An integer from 0 to 100."""
    if not re.fullmatch("[0-9]|[1-9][0-9]|100", text):
        raise ValueError(f"not 0 to 100 percent: {text}")
    return int(text)


def count(text):
    """An integer above 0, of up to nine digits."""
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise ValueError(f"not a number above 0: {text}")
    return int(text)
