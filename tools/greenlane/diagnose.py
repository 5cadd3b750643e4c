# SPDX-License-Identifier: GPL-2.0
"""A plain sentence for each usual mistake.

Each function takes a look that has been compared (look.py) and yields problems.
What a sentence claims is in the counters: what grew since the look before, or
what is so right now.  Documentation/operations.rst has the same list.
"""
import collections
import dataclasses

from . import host
from .units import amount, duration, plural, rate

_checks = []


@dataclasses.dataclass
class Problem:
    """What is wrong, where, and what to do about it."""
    id: str
    where: str
    text: str
    advice: str


def _check(function):
    _checks.append(function)
    return function


def problems(look):
    """All of them."""
    return [problem for check in _checks for problem in check(look)]


def name_of(look, thing):
    """Its namespace's name."""
    return look["namespaces"].get(thing["ns"], {}).get("name", "?")


def _port_name(look, port):
    return f"{port['dev']} in {name_of(look, port)}"


def _addresses(connections, most=4):
    """Their remote addresses, the most frequent first."""
    count = collections.Counter(c["remote"] for c in connections)
    named = [address for address, _ in count.most_common(most)]
    more = len(count) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _by_namespace(look, test):
    """(namespace's name, its connections that pass the test), none empty."""
    found = collections.defaultdict(list)
    for connection in look["connections"].values():
        if test(connection):
            found[name_of(look, connection)].append(connection)
    return sorted(found.items())


def _grown(look, counter):
    """(namespace, by how much) where a counter of /proc/net/greenlane grew."""
    for ns in look["namespaces"].values():
        if ns["change"].get(counter, 0):
            yield ns, ns["change"][counter]


def _unsupported(connection):
    return "unsupported" in connection["flags"]


def _living_or_ended(look, problem, test, counter, advice):
    """A problem of connections: those that live and pass the test, by their addresses;
    of the others a counter has the number.  problem: id, and a sentence for each."""
    name, lives, ended = problem
    living = dict(_by_namespace(look, test))
    for where, those in living.items():
        yield Problem(name, where, f"{plural(len(those), 'connection')} {lives}"
                      f" {_addresses(those)}.", advice)
    for ns, count in _grown(look, counter):
        if ns["name"] not in living:
            yield Problem(name, ns["name"], f"{plural(count, 'connection')} that ended"
                          f" {ended}.", advice)


# --- the other end, and the way there ------------------------------------------


@_check
def peer_without(look):
    """The peers' answers to the handshake carried no codepoint."""
    return _living_or_ended(
        look, ("peer-without", "to peers that show no TLT:", "had peers that showed no TLT"),
        lambda c: c["peer"] == "no" and not _unsupported(c), "PeerWithout",
        "Load greenlane there and select tlt_*; until then these connections behave as"
        " their base. If it does run there, something on the way clears the DSCP.")


@_check
def bleached(look):
    """Important packets were acknowledged, but never as such."""
    return _living_or_ended(
        look, ("bleached", "gave TLT up: codepoints got lost on the way to or from",
               "had given TLT up: codepoints got lost on the way"),
        lambda c: "fallback" in c["flags"], "Fallback",
        "Find what clears or rewrites the DSCP on the way there or back (a router's or"
        " switch's QoS policy, a tunnel); these connections now behave as their base.")


@_check
def important_lost(look):
    """A timeout although the peer echoes: TLT exists so that there is none."""
    for ns, count in _grown(look, "RearmedByRto"):
        those = [c for c in look["connections"].values()
                 if name_of(look, c) == ns["name"] and c["change"]["rearmed"]]
        to = f" (to {_addresses(those)})" if those else ""
        yield Problem(
            "important-lost", ns["name"],
            f"{plural(count, 'timeout')} on connections whose peers run TLT{to}: important"
            " packets were lost as well.",
            "A queue on the way drops without looking at the colour: give the bottleneck's"
            " port a colour threshold, and room above it. An outage looks the same.")


@_check
def blind_queue(look):
    """A queue of this machine that drops, where TLT's packets pass, and is not color."""
    colored = {(p["ns"], p["dev"]) for p in look["ports"].values()}
    switches = {p["ns"] for p in look["ports"].values()
                if p["change"]["green_packets"] or p["change"]["red_packets"]}
    for queue in look["queues"].values():
        drops = queue["change"]["drops"]
        # Before the first look nobody knows whose packets they were.
        if not drops or not queue["known"] or (queue["ns"], queue["dev"]) in colored:
            continue
        if _leaves_through(look, queue):
            why = "TLT's connections leave through it"
        elif queue["ns"] in switches:
            why = "other ports there look at the colour"
        else:
            continue
        yield Problem(
            "blind-queue", _port_name(look, queue),
            f"Its {queue['kind']} dropped {plural(drops, 'packet')}, and {why}.",
            "It cannot tell which packets are important: use color there, or a queue that"
            " does not drop.")


def _leaves_through(look, queue):
    """Do connections with TLT have an address of that queue's device?"""
    device = look["devices"].get(f"{queue['ns']} {queue['dev']}")
    return device and any(c["ns"] == queue["ns"] and c["peer"] == "yes" and
                          c["local"] in device["addresses"]
                          for c in look["connections"].values())


# --- switch ports of this machine ------------------------------------------------


@_check
def offload_hides(look):
    """More segments through the port than packets through its device."""
    for port in look["ports"].values():
        device = look["devices"].get(f"{port['ns']} {port['dev']}")
        if port["options"].get("split_gso", True) or not device or not port["root"]:
            continue
        hidden = port["change"]["packets"] - device["change"]["packets"]
        # Without a look before, the device has counted for longer than the port.
        if hidden > 0 and port["known"] == device["known"]:
            yield Problem(
                "offload", _port_name(look, port),
                f"{amount(hidden)} of {plural(port['change']['packets'], 'packet')} passed in"
                " one piece with others (TSO, GSO): thresholds and drops act on up to 64 kB at"
                " a time.",
                f"Queue them one by one: tc qdisc change dev {port['dev']} root color"
                " split-gso.")


@_check
def never_queues(look):
    """A port without a line on a device without one: the queue is somewhere else."""
    for port in look["ports"].values():
        device = look["devices"].get(f"{port['ns']} {port['dev']}")
        if not device or device["kind"] not in ("veth", "bridge", "dummy", "vlan"):
            continue
        counted = port["counters"]
        if (port["root"] and "rate" not in port["options"] and counted["packets"]
                and not counted["red_drops_color"]):
            yield Problem(
                "no-line", _port_name(look, port),
                f"A {device['kind']} has no line rate and the port none either: nothing waits"
                " here, so nothing is decided here.",
                f"Name the line's rate: tc qdisc change dev {port['dev']} root color rate"
                " RATE.")


@_check
def threshold_below_bdp(look):
    """Red packets are dropped before one flow can fill the line."""
    rtts = [(c["min_rtt_us"], c["remote"], c["ns"]) for c in look["connections"].values()
            if c["peer"] == "yes" and c["min_rtt_us"]]
    if not rtts:
        return
    for port in look["ports"].values():
        options = port["options"]
        red, line = options.get("red"), options.get("rate")
        if not (red and line and options["count"] == "color" and options["classify"] == "dscp"
                and port["counters"]["red_packets"]):
            continue
        # Rather one that begins beside the port.
        rtt, remote, _ = min([r for r in rtts if r[2] == port["ns"]] or rtts)
        bdp = line * rtt // 1000000
        # Even the least round trip may have met a queue, but hardly a longer one.
        if red < bdp - min(red, port["peak_backlog"]):
            yield Problem(
                "threshold", _port_name(look, port),
                f"The threshold of red packets is {amount(red)}B, but {rate(line)} times the"
                f" round trip to {remote}, {duration(rtt)}, is {amount(bdp)}B.",
                "One flow alone cannot fill the line: set red to a few times that, below the"
                " limit.")


@_check
def green_drops(look):
    """Protected packets were dropped."""
    does = {"limit": ("its limit", "Raise limit, lower red"),
            "pool": ("the shared buffer", "Raise alpha or the pool's size, lower red"),
            "color": ("the threshold for green", "Remove it: green none")}
    for port in look["ports"].values():
        for why, (what, advice) in does.items():
            count = port["change"][f"green_drops_{why}"]
            if count:
                yield Problem(
                    "green-drops", _port_name(look, port),
                    f"{plural(count, 'protected (green) packet')} dropped: {what} is too small"
                    " for so many flows.", f"{advice}, or send from fewer flows at once.")


# --- this host's settings --------------------------------------------------------


@_check
def stripped(look):
    """Somebody who is not TLT sends a protected codepoint."""
    for ns, count in _grown(look, "Stripped"):
        yield Problem(
            "stripped", ns["name"],
            f"{plural(count, 'packet')} of sockets that are not TLT's had a protected DSCP,"
            " which was cleared.",
            "An application sets it (IP_TOS, IPV6_TCLASS). If the DSCP is the site's for"
            " something else, move TLT's: sysctl net.ipv4.greenlane_dscp_*.")


@_check
def unsupported(look):
    """Connections that can only behave as their base."""
    for where, those in _by_namespace(look, _unsupported):
        yield Problem(
            "unsupported", where,
            f"{plural(len(those), 'connection')} cannot use TLT: {_addresses(those)}.",
            "They have no SACK (sysctl net.ipv4.tcp_sack, at both ends), or are MPTCP's, or"
            " their segments are signed (MD5, AO).")


@_check
def without_ecn(look):
    """tlt_dctcp that became tlt_reno."""
    def chose_dctcp(connection):
        ns = look["namespaces"].get(connection["ns"], {})
        return ns.get("cc") == "tlt_dctcp" or "tlt_dctcp" in look["pinned"]

    for where, those in _by_namespace(
            look, lambda c: (c["cc"] == "tlt_reno" and not c["ecn"] and c["peer"] != "no"
                             and not _unsupported(c) and chose_dctcp(c))):
        yield Problem(
            "no-ecn", where,
            f"{plural(len(those), 'connection')} run tlt_reno where tlt_dctcp is selected:"
            f" ECN was not agreed on with {_addresses(those)}.",
            "Select tlt_dctcp at both ends, or have the end that connects ask for ECN: sysctl"
            " -w net.ipv4.tcp_ecn=1.")


@_check
def not_used(look):
    """Loaded, and nobody selects it."""
    used = (look["connections"] or look["pinned"] or look["routes"]
            or any(cc.startswith("tlt_") for cc in look["listeners"])
            or any((ns["cc"] or "").startswith("tlt_") for ns in look["namespaces"].values()))
    if "tcp_tlt" in look["modules"] and not used and look["root"]:
        yield Problem(
            "not-used", "this kernel",
            "tcp_tlt is loaded, but no namespace, route, socket or cgroup selects tlt_*.",
            "sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp, or greenlane-cgroup attach.")


@_check
def not_loaded(look):
    """The configuration names it, and it is not there."""
    if not look["modules"]:
        yield Problem("not-loaded", "this kernel", "No module of greenlane is loaded.",
                      "sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp loads them, or"
                      " modprobe tcp_tlt.")
        return
    wanted = host.configured_cc()
    if wanted and wanted[1].startswith("tlt_") and "tcp_tlt" not in look["modules"]:
        yield Problem(
            "not-loaded", "this kernel",
            f"{wanted[0]} selects {wanted[1]}, but tcp_tlt is not loaded.",
            "modprobe tcp_tlt; if that works, sysctl --system. If it does not, it says why:"
            " is the module built for this kernel, and signed if it must be?")
