# SPDX-License-Identifier: GPL-2.0
"""The transports, a row each: for the tools, and by a link (lab/transports.py) for the tests, the
experiments and the figures.

net/Kbuild and dkms.conf list the modules again; guest_transports.py compares them.
"""
from typing import NamedTuple

# The table of `greenlane status` that has a transport's connections.
TAGS, CREDITS, RATE = "tags", "credits", "rate"


class Base(NamedTuple):
    """A congestion control of Linux's own, which TLT wraps and figures compare."""
    name: str
    colour: str
    marker: str
    ecn: bool = False           # ECN marks reduce its rate


class Transport(NamedTuple):
    """A transport of greenlane's."""
    name: str                   # its congestion controls begin with this, and so does its fallback
    module: str
    ccs: tuple                  # its congestion controls
    kind: str
    needs: tuple = ()           # modules, except those in wraps
    wraps: tuple = ()           # modules of the transports that it wraps
    fallback: str = ""          # the name that ss shows for a connection that fell back
    tagged: bool = True         # it tags packets: its namespace must be active
    ecn: bool = False           # ECN marks reduce its rate
    preset: str = ""            # of tc: its ports need this
    mbit: str = ""              # the sysctl of net.ipv4 with the rate of the link
    colour: str = ""            # in figures; without one, that of the congestion control it wraps
    marker: str = ""
    baseline: bool = False      # figures compare other transports with it


# The colours are Okabe and Ito's, which the colour-blind can distinguish.
BASES = (
    Base("reno", "#E69F00", "s"),
    Base("cubic", "#0072B2", "^"),
    Base("dctcp", "#009E73", "o", ecn=True),
    Base("bbr", "#000000", "*"),
)

# In the order in which the modules can be loaded.
TRANSPORTS = (
    Transport("dcqcn", "tcp_dcqcn", ("dcqcn",), RATE, needs=("link_speed",), fallback="dcqcn-reno",
              tagged=False, ecn=True, mbit="dcqcn_rate", colour="#56B4E9", marker="D",
              baseline=True),
    Transport("dart", "tcp_dart", ("dart",), RATE, needs=("greenlane",), wraps=("tcp_dcqcn",),
              fallback="dart-reno", ecn=True, colour="#CC79A7", marker="P"),
    Transport("timely", "tcp_timely", ("timely",), RATE, needs=("link_speed",),
              fallback="timely-reno", tagged=False, mbit="timely_rate", colour="#F0E442",
              marker=">"),
    Transport("hpcc", "tcp_hpcc", ("hpcc",), RATE, needs=("greenlane", "link_speed"),
              fallback="hpcc-reno", mbit="hpcc_rate", colour="#999999", marker="X"),
    Transport("tlt_", "tcp_tlt", ("tlt_reno", "tlt_cubic", "tlt_dctcp", "tlt_bbr", "tlt_dcqcn",
                                  "tlt_dart", "tlt_hpcc", "aeolus_reno", "aeolus_cubic",
                                  "aeolus_dctcp"),
              TAGS, needs=("greenlane", "link_speed"), wraps=("tcp_dcqcn", "tcp_dart", "tcp_hpcc")),
    Transport("xpass", "tcp_xpass", ("xpass",), CREDITS, needs=("rd_core",), fallback="xpass-reno",
              mbit="xpass_rate", colour="#D55E00", marker="v", baseline=True),
    Transport("ndp", "tcp_ndp", ("ndp",), CREDITS, needs=("rd_core",), fallback="ndp-reno",
              preset="ndp", mbit="ndp_rate", colour="#117733", marker="<"),
    Transport("homa", "tcp_homa", ("homa",), CREDITS, needs=("rd_core",), fallback="homa-reno",
              preset="homa", mbit="homa_rate", colour="#882255", marker="h"),
    Transport("aeolus", "tcp_aeolus", ("aeolus_xpass", "aeolus_homa", "aeolus_ndp"), CREDITS,
              wraps=("tcp_xpass", "tcp_homa", "tcp_ndp"), preset="aeolus", fallback="aeolus-reno"),
)

# The other modules, in that order: {module: the modules that it needs}.
LAYER = {"link_speed": (), "greenlane": ("link_speed",), "rd_core": ("greenlane", "link_speed")}
PORTS = {"sch_color": ("link_speed",), "sch_iofd": ("sch_color",)}

MODULES = (*LAYER, *(row.module for row in TRANSPORTS), *PORTS)
CCS = (*(base.name for base in BASES), *(cc for row in TRANSPORTS for cc in row.ccs))
# Congestion controls of tcp_tlt.
TLT = next(row.ccs for row in TRANSPORTS if row.module == "tcp_tlt")
# {fallback, as ss shows it: the congestion controls that have it}
FALLEN = {row.fallback: row.ccs for row in TRANSPORTS if row.fallback}
# The sysctls of net.ipv4 with the rate of the link, that of credits first.
MBIT = tuple(row.mbit for row in reversed(TRANSPORTS) if row.mbit)
# Congestion controls whose rate ECN marks reduce; TLT's forms end with these names.
BY_MARKS = tuple(row.name for row in (*BASES, *TRANSPORTS) if row.ecn)


def of(cc):
    """The row of a congestion control, or of a fallback; None for others."""
    return next((row for row in TRANSPORTS if cc in row.ccs),
                next((row for row in TRANSPORTS if (cc or "").startswith(row.name)), None))


def selected(fallback, default):
    """The congestion control that was selected for a connection with this fallback, in a namespace
    with this default; aeolus_* if it may be several."""
    ccs = FALLEN[fallback]
    return default if default in ccs else ccs[0] if len(ccs) == 1 else f"{of(fallback).name}_*"


def kind_of(cc):
    """TAGS, CREDITS or RATE; None for a congestion control that is not greenlane's."""
    row = of(cc)
    return row and row.kind
