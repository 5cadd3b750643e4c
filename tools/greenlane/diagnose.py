# SPDX-License-Identifier: GPL-2.0
"""A plain sentence for each usual mistake.

Each function takes a look that has been compared (look.py) and yields problems.  The counters prove
each sentence: they grew since the look before, or are not 0 now.  Documentation/operations.rst has
the same list.
"""
import collections
from shlex import quote

from . import host, ports
from .transports import BY_MARKS, CREDITS, MBIT, TLT, TRANSPORTS, kind_of, of
from .units import amount, duration, plural, rate

_checks = []

# The id of problems that keep a look from seeing mistakes.
BLIND = "blind"


class Problem(collections.namedtuple("Problem", "id where text advice")):
    """A mistake, its place, and its cure."""


def _check(function):
    _checks.append(function)
    return function


def problems(look):
    """All problems of a look."""
    return [problem for check in _checks for problem in check(look)]


def name_of(look, thing):
    """The name of a thing's namespace."""
    return look["namespaces"].get(thing["ns"], {}).get("name", "?")


def _port_name(look, port):
    return f"{port['dev']} in {name_of(look, port)}"


def _at(port):
    """A port's device and its place there, as tc takes them."""
    return f"{quote(port['dev'])} {ports.place(port)}"


def _change(port):
    """tc's words to change a port; a default qdisc gets another one in its place."""
    verb = "replace" if ports.is_default(port["handle"]) else "change"
    return f"tc qdisc {verb} dev {_at(port)}"


def _addresses(connections, most=4):
    """Remote addresses of connections, the most frequent first."""
    count = collections.Counter(c["remote"] for c in connections)
    named = [address for address, _ in count.most_common(most)]
    more = len(count) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _groups(connections, key):
    """(key, its connections) of all connections that have a key, sorted."""
    found = collections.defaultdict(list)
    for connection in connections.values():
        if (of_it := key(connection)):
            found[of_it].append(connection)
    return sorted(found.items())


def _by_namespace(look, test):
    """(namespace's name, its connections that pass the test), for each that has one."""
    return _groups(look["connections"], lambda c: test(c) and name_of(look, c))


def _grown(look, counter):
    """(namespace, growth) where a counter of /proc/net/greenlane grew."""
    for ns in look["namespaces"].values():
        if ns["change"].get(counter, 0):
            yield ns, ns["change"][counter]


def _unsupported(connection):
    return "unsupported" in connection["flags"]


def _living_or_ended(look, problem, test, counter, advice):
    """A problem of connections: open ones pass the test, and are listed by their addresses; a
    counter has the number of ended ones.  problem: id, and a sentence for each."""
    name, lives, ended = problem
    living = dict(_by_namespace(look, test))
    fallen = {name_of(look, connection) for connection in look["fallen"].values()}
    for where, those in living.items():
        yield Problem(name, where, f"{plural(len(those), 'connection')} {lives}"
                      f" {_addresses(those)}.", advice)
    for ns, count in _grown(look, counter):
        # fell_back() may list open ones.
        if ns["name"] not in living and ns["name"] not in fallen:
            yield Problem(name, ns["name"], f"{plural(count, 'connection')} that ended"
                          f" {ended}.", advice)


# --- the other end, and the path to it ------------------------------------------


@_check
def peer_without(look):
    """The peers' answers to the handshake did not announce the transport."""
    return _living_or_ended(
        look, ("peer-without", "to peers without TLT:", "had peers without it"),
        lambda c: c["peer"] == "no" and not _unsupported(c), "PeerWithout",
        "Load greenlane there and select the same; until then these connections behave as"
        " their base. If it does run there, they may have connected before it was selected, or as"
        " the first ones of a network namespace (sysctl net.ipv4.greenlane_active=1 includes"
        " those). Or a device on the path removes unknown TCP options (kind 254).")


@_check
def bleached(look):
    """A transport's handshakes arrived with another DSCP than the peer sent."""
    for ns, count in _grown(look, "HandshakeRemarked"):
        yield Problem(
            "bleached", ns["name"],
            f"{plural(count, 'handshake')} arrived with another DSCP than greenlane sends.",
            "Find the device that clears or rewrites the DSCP on the path to this host (QoS policy"
            " of a router or switch, a tunnel), or set the same codepoints at both ends (sysctl"
            " net.ipv4.greenlane_dscp_*). Data still arrives, but switches cannot protect packets"
            " that they cannot classify.")


# The counters of the reasons why a connection of a credit transport, or of hpcc, runs reno.
_WHY_FALLEN = {
    "PeerWithout": "Some peers' handshakes did not announce the same transport (PeerWithout):"
                   " select {cc} there too, unless a device on the path removes the TCP"
                   " option (kind 254).",
    "Fallback": "Some peers sent no more credits (Fallback): they have selected another congestion"
                " control, or a device on the path drops the packets or removes their TCP option"
                " (kind 254).",
    "Unsupported": "Some have no SACK (sysctl net.ipv4.tcp_sack, at both ends), or are MPTCP's,"
                   " or are signed (Unsupported).",
}


@_check
def fell_back(look):
    """Connections of a credit transport, or of hpcc, that run reno: the counters of their namespace
    have the reason, the connections have not."""
    for (ns, cc, selected), those in _groups(
            look["fallen"], lambda c: not of(c["cc"]).ecn and (c["ns"], c["cc"], c["selected"])):
        counters = look["namespaces"].get(ns, {}).get("counters", {})
        why = [text.format(cc=selected) for counter, text in _WHY_FALLEN.items()
               if counters.get(counter)]
        without = "credits" if kind_of(cc) == CREDITS else "telemetry"
        yield Problem(
            "fell-back", name_of(look, those[0]),
            f"{plural(len(those), 'connection')} of {selected} run {cc}, without {without}:"
            f" {_addresses(those)}.",
            " ".join(why) or f"Select {selected} before they connect, not after.")


@_check
def rate_without_ecn(look):
    """dcqcn and dart that became reno: their rates depend on marks."""
    for (where, cc, selected), those in _groups(
            look["fallen"],
            lambda c: of(c["cc"]).ecn and (name_of(look, c), c["cc"], c["selected"])):
        yield Problem(
            "no-ecn", where,
            f"{plural(len(those), 'connection')} of {selected} run {cc}: they did not"
            f" negotiate ECN with {_addresses(those)}.",
            f"Select {selected} at the listening end, too: other congestion controls there"
            " refuse ECN. A client with another one must request ECN: sysctl -w"
            " net.ipv4.tcp_ecn=1.")


# Acknowledged bytes after which an ACK must have advertised a share: a few packets.
_SILENT = 10000


@_check
def no_share(look):
    """Messages were acknowledged, and no ACK advertised a share."""
    for where, those in _by_namespace(
            look, lambda c: (host.module_of(c["cc"]) == "tcp_dart" and c["peer"] != "no"
                             and not c["flags"] and not c["gauges"]["divisor"]
                             and c["acked"] > _SILENT)):
        yield Problem(
            "no-share", where,
            f"{plural(len(those), 'connection')} of dart send, and receive no share:"
            f" {_addresses(those)}.",
            "A device on the return path removes the TCP option of ACKs (kind 254), or the peer has"
            " left dart; these connections follow ECN marks alone, as dcqcn does.")


@_check
def inside_network(look):
    """The receiver advertises its whole link, and ECN marks keep the rate below half of it."""
    for where, those in _by_namespace(look, lambda c: _is_slow(look, c)):
        yield Problem(
            "inside-network", where,
            f"{plural(len(those), 'connection')} may use the receiver's whole link and send at less"
            f" than half of its rate: {_addresses(those)}.",
            "A port in front of the receiver's own marks packets (ECN), or tenants share its link:"
            " the network inside is congested, or a port there marks too early.")


def _is_slow(look, connection):
    mbit = look["namespaces"].get(connection["ns"], {}).get("dcqcn_rate")
    if mbit == 0:       # the rate of the device
        mbit = next((link["mbit"] for key, link in look["links"].items()
                     if link["ns"] == connection["ns"] and connection["local"]
                     in look["devices"].get(key, {}).get("addresses", ())), None)
    return (mbit and connection["gauges"]["divisor"] == 256
            and connection["pacing_rate"] < min(mbit * 125000 / 2,
                                                connection["max_pacing_rate"]))


# Requests in a row that bring no credit before a sender of xpass may fall back (RD_DOUBLINGS_MIN,
# each after two requests).
_RETRIES = 10


@_check
def no_credits(look):
    """Requests were retransmitted, and no credit arrived."""
    for where, those in _by_namespace(
            look, lambda c: c["gauges"]["credits_wanted"] and not c["change"]["credits_received"]):
        retried = look["namespaces"][those[0]["ns"]]["change"].get("RequestRetried", 0)
        if retried >= _RETRIES * len(those):
            yield Problem(
                "no-credits", where,
                f"{plural(len(those), 'connection')} request credits and receive none:"
                f" {_addresses(those)}; requests were retransmitted {plural(retried, 'time')}.",
                "The path loses requests or credits, or a device on it removes their TCP option"
                " (kind 254); or the peer no longer exists.")


@_check
def important_lost(look):
    """A timeout although the peer echoes: TLT exists to prevent it."""
    for ns, count in _grown(look, "RearmedByRto"):
        those = [c for c in look["connections"].values()
                 if name_of(look, c) == ns["name"] and c["change"]["rearmed"]]
        to = f" (to {_addresses(those)})" if those else ""
        yield Problem(
            "important-lost", ns["name"],
            f"{plural(count, 'timeout')} on connections whose peers run TLT{to}: important"
            " packets were lost, too.",
            "A queue on the path drops packets of any colour: give the port of the bottleneck a"
            " colour threshold, and room above it. An outage has the same effect.")


@_check
def reordered(look):
    """Packets overtake each other: an echo proves no loss there."""
    for where, those in _by_namespace(look, lambda c: "reordered" in c["flags"]):
        yield Problem(
            "reordered", where,
            f"On the path of {plural(len(those), 'connection')} packets overtake each other:"
            f" {_addresses(those)}.",
            "TLT assumes one path and one queue for a flow; these connections detect a loss one"
            " round trip later. Look for a bond in round-robin mode, for ECMP by packet, and for"
            " queues that separate the DSCPs of important and other data.")


@_check
def blind_queue(look):
    """A queue of this machine other than color drops packets, and greenlane's pass it."""
    colored = {(p["ns"], p["dev"]) for p in look["ports"].values()}
    switches = {p["ns"] for p in look["ports"].values()
                if p["change"]["green_packets"] or p["change"]["red_packets"]}
    for queue in look["queues"].values():
        drops = queue["change"]["drops"]
        # Drops before the first look may have been of other packets.
        if not drops or not queue["known"] or (queue["ns"], queue["dev"]) in colored:
            continue
        if _leaves_through(look, queue):
            why = "greenlane's connections leave through it"
        elif queue["ns"] in switches:
            why = "other ports there drop by colour"
        else:
            continue
        yield Problem(
            "blind-queue", _port_name(look, queue),
            f"Its {queue['kind']} dropped {plural(drops, 'packet')}, and {why}.",
            "It drops protected packets like any other: use color there, or a queue that does not"
            " drop.")


def _leaves_through(look, queue):
    """greenlane's connections whose local address is that of the queue's device."""
    device = look["devices"].get(f"{queue['ns']} {queue['dev']}")
    return [c for c in look["connections"].values()
            if device and c["ns"] == queue["ns"] and c["peer"] == "yes"
            and c["local"] in device["addresses"]]


# --- switch ports of this machine ------------------------------------------------

# Tunnels that write a DS field of their own unless configured to copy the packet's (tos).
_TUNNELS = ("vxlan", "geneve", "gre", "gretap", "ipip", "sit")
# Packets among which some would be red or green if TLT's were among them.
_SOME = 20


def _sends_tlt(connection):
    return (host.module_of(connection["cc"]) == "tcp_tlt" and connection["peer"] == "yes"
            and connection["change"]["important_sent"])


def _device_of(look, connection):
    """The device that has the connection's local address, or None."""
    return next((device for device in look["devices"].values() if device["ns"] == connection["ns"]
                 and connection["local"] in device["addresses"]), None)


def _why_yellow(look, port, devices):
    """The cause and the cure, if visible; devices: of the connections' local addresses."""
    colours, ns = port["options"].get("map", {}), look["namespaces"][port["ns"]]
    moved = [f"{name} {dscp}" for name, dscp in ns["dscp"].items() if dscp and dscp not in colours]
    if moved:
        words = " ".join(f"map {ns['dscp'][name]} {colour}" for name, colour in
                         _MEANT)
        return (f"{ns['name']} sends with other codepoints ({', '.join(moved)}) than the port's map"
                f" has.", f"{_change(port)} color {words}, at each"
                " switch; or the defaults again: sysctl net.ipv4.greenlane_dscp_*.")
    for device in devices:
        if device["kind"] == "wireguard":
            return (f"{device['dev']} is WireGuard, which copies the ECN bits and not the DSCP.",
                    "Switches cannot classify its packets: keep bottlenecks outside the tunnel.")
        if device["kind"] in _TUNNELS and device["tos"] != "inherit":
            return (f"{device['dev']} is a tunnel ({device['kind']}) that does not copy the DSCP to"
                    " its outer header.", "Set that at both ends: ip link set"
                    f" {quote(device['dev'])} type {device['kind']}{_identity(device)} tos inherit.")
    return ("A device or rule between the connections and the port clears the DSCP.",
            "Look for a tunnel that does not copy it (tos inherit), a firewall rule or an address"
            " translator that sets it, or another codepoint at the hosts than in the port's map.")


def _identity(device):
    """ip needs the identifier of a Geneve tunnel in each change."""
    if device["kind"] != "geneve":
        return ""
    return f" id {device['id']}" + (f" remote {device['remote']}" if device["remote"] else "")


# The colours of TLT's packets at a port, by the names of their codepoints.
_MEANT = (("droppable", "red"), ("protected", "green"))


def _swapped(look, port):
    """The codepoints that a port's map has as the opposite: [(DSCP, name, colour there, right)]."""
    colours, ns = port["options"].get("map", {}), look["namespaces"].get(port["ns"], {})
    wrong = {"red": "green", "green": "red"}
    return [(dscp, name, colours[dscp], right) for name, right in _MEANT
            if (dscp := ns.get("dscp", {}).get(name)) and colours.get(dscp) == wrong[right]]


@_check
def swapped_map(look):
    """A port protects unimportant packets, and drops important ones."""
    for port in look["ports"].values():
        swapped = _swapped(look, port) if port["options"]["classify"] == "dscp" else []
        if swapped:
            seen = ", ".join(f"{name} {dscp} is {colour}" for dscp, name, colour, _ in swapped)
            words = " ".join(f"map {dscp} {right}" for dscp, _, _, right in swapped)
            yield Problem(
                "swapped-map", _port_name(look, port),
                f"The port's map swaps the colours of this host's codepoints: {seen}.",
                f"{_change(port)} color {words}.")


@_check
def others_are_red(look):
    """A host's port drops red packets, and the host has no connection of greenlane's."""
    sent = sum(ns["change"].get("DataSent", 0) for ns in look["namespaces"].values())
    if look["connections"] or sent:
        return
    plain = {key.split()[0] for key in look["plain"]}
    for port in look["ports"].values():
        drops = port["change"]["red_drops_color"]
        if drops and port["ns"] in plain:
            yield Problem(
                "others-red", _port_name(look, port),
                f"{plural(drops, 'red packet')} dropped, but no connection here runs TLT: other"
                " applications mark their packets with the same DSCP.",
                "OpenSSH before 10 marks bulk transfers with CS1 (ssh_config: IPQoS). Configure"
                " another DSCP in the application, or move TLT's at all hosts and ports: sysctl"
                " net.ipv4.greenlane_dscp_droppable, tc ... color map.")


@_check
def no_marks(look):
    """The port drops red packets and marks none of them, and senders slow down by marks."""
    senders = [c for c in look["connections"].values()
               if c["cc"].endswith(BY_MARKS) and c["peer"] == "yes"
               and c["change"]["important_sent"]]
    for port in look["ports"].values():
        change = port["change"]
        here = [c for c in senders if c["ns"] == port["ns"]] or senders
        if not here or not change["red_drops_color"] or change["red_marks"]:
            continue
        yield Problem(
            "no-marks", _port_name(look, port),
            f"{plural(len(here), 'connection')} of {here[0]['cc']} slow down by ECN marks; this port"
            f" dropped {plural(change['red_drops_color'], 'red packet')} and marked none: "
            + ("its ecn is not below red." if port["options"].get("ecn") else "it has no ecn."),
            f"{_change(port)} color ecn BYTES, below red.")


@_check
def only_yellow(look):
    """TLT's packets leave through a port, by its device or a tunnel, and all are yellow."""
    sending = [c for c in look["connections"].values() if _sends_tlt(c)]
    here = [port for port in look["ports"].values() if port["options"]["classify"] == "dscp"]
    for port in here:
        devices = [device for device in (_device_of(look, c) for c in sending
                                         if c["ns"] == port["ns"])
                   if device and (device["dev"] == port["dev"] or device["kind"] in _TUNNELS
                                  or device["kind"] == "wireguard")]
        others = [other for other in here if other["ns"] == port["ns"]]
        # A tunnel's packets may leave through any of them.
        if not devices or any(other["change"][f"{colour}_packets"] for other in others
                              for colour in ("red", "green")):
            continue
        count = port["change"]["yellow_packets"]
        if count >= _SOME and not _is_bridge(look, port):
            cause, cure = _why_yellow(look, port, devices)
            yield Problem(
                "only-yellow", _port_name(look, port),
                f"TLT runs here, but all {plural(count, 'packet')} of this port are yellow. {cause}",
                cure)


def _is_bridge(look, port):
    device = look["devices"].get(f"{port['ns']} {port['dev']}")
    return device and device["kind"] == "bridge"


@_check
def on_the_bridge(look):
    """Forwarded packets leave through the ports of a bridge, and never pass its own qdisc."""
    for port in look["ports"].values():
        if not _is_bridge(look, port):
            continue
        members = [device["dev"] for device in look["devices"].values()
                   if (device["ns"], device["master"]) == (port["ns"], port["dev"])]
        if not members:
            continue
        yield Problem(
            "on-bridge", _port_name(look, port),
            "The qdisc is on the bridge itself, which only this host's own packets pass. Forwarded"
            " packets leave through the bridge's ports.",
            f"tc qdisc del dev {_at(port)}, and the same color at each port of the"
            f" bridge: {', '.join(members)}.")



def _has_no_rate(look, port):
    """Does neither the device nor the port have a rate?  A port with a rate splits, too."""
    device = look["devices"].get(f"{port['ns']} {port['dev']}")
    return (device and device["kind"] in ("veth", "dummy", "vlan") and port["root"]
            and "rate" not in port["options"])


@_check
def offload_hides(look):
    """More segments through the port than packets through its device."""
    for port in look["ports"].values():
        device = look["devices"].get(f"{port['ns']} {port['dev']}")
        if (port["options"].get("split_gso", True) or not device or not port["root"]
                or _has_no_rate(look, port)):
            continue
        hidden = port["change"]["packets"] - device["change"]["packets"]
        # Without a look before, the device has counted for longer than the port.
        if hidden > 0 and port["known"] == device["known"]:
            yield Problem(
                "offload", _port_name(look, port),
                f"{amount(hidden)} of {plural(port['change']['packets'], 'packet')} passed inside"
                " larger ones (TSO, GSO): thresholds and drops act on up to 64 kB at a time.",
                f"Queue each segment by itself: {_change(port)} color"
                " split-gso.")


@_check
def never_queues(look):
    """A port without a rate on a device without one: the queue is elsewhere."""
    for port in look["ports"].values():
        device = look["devices"].get(f"{port['ns']} {port['dev']}")
        counted = port["counters"]
        if (_has_no_rate(look, port) and counted["packets"]
                and not counted["red_drops_color"]):
            yield Problem(
                "no-line", _port_name(look, port),
                f"Neither the device ({device['kind']}) nor the port has a rate: no packet waits"
                " here, so no threshold has an effect.",
                f"Set the rate of the link: {_change(port)} color rate RATE.")


@_check
def threshold_below_bdp(look):
    """Red packets are dropped before one flow can fill the link: most of TLT's packets are red,
    of Aeolus's only those of the first round trip."""
    rtts = [(c["min_rtt_us"], c["remote"], c["ns"]) for c in look["connections"].values()
            if c["peer"] == "yes" and c["min_rtt_us"] and host.module_of(c["cc"]) == "tcp_tlt"]
    if not rtts:
        return
    for port in look["ports"].values():
        options = port["options"]
        red, line = options.get("red"), options.get("rate")
        if not (red and line and options["count"] == "color" and options["classify"] == "dscp"
                and port["counters"]["red_packets"]):
            continue
        # A connection of the port's own namespace, if there is one.
        rtt, remote, _ = min([r for r in rtts if r[2] == port["ns"]] or rtts)
        bdp = line * rtt // 1000000
        # Even the minimum round trip may include a queue, but hardly one above the peak.
        if red < bdp - min(red, port["peak_backlog"]):
            yield Problem(
                "threshold", _port_name(look, port),
                f"The threshold of red packets is {amount(red)}B, but {rate(line)} times the"
                f" round trip to {remote}, {duration(rtt)}, is {amount(bdp)}B.",
                "One flow alone cannot fill the link: set red to a few times that, below the"
                " limit.")


@_check
def green_drops(look):
    """Protected packets were dropped."""
    credits = any(kind_of(c["cc"]) == CREDITS for c in look["connections"].values())
    does = {"limit": ("its limit", "Raise limit, lower red"),
            "pool": ("the shared buffer", "Raise alpha or the pool's size, lower red"),
            "color": ("the threshold for green", "Remove it: green none")}
    for port in look["ports"].values():
        for why, (what, advice) in does.items():
            count = port["change"][f"green_drops_{why}"]
            if count and not _swapped(look, port):
                yield Problem(
                    "green-drops", _port_name(look, port),
                    f"{plural(count, 'protected (green) packet')} dropped: {what} is too small"
                    " for so many flows.", f"{advice}, or send from fewer flows at once."
                    + _shape(port) * (credits or bool(port["bands"])))


def _shape(port):
    """The cure of a queue that credits fill.  The credits of its data pass ports of the other
    direction, so each port needs it."""
    shaped = port["options"].get("band_rate") or port["options"].get("band_pps")
    if shaped or not port["options"].get("rate"):
        return ""
    return (" Credits permit more than the link carries: limit them at each port, first at the other"
            " end of this link, tc qdisc add dev DEV root color rate RATE preset xpass; change in"
            " place of add where color is.")


@_check
def no_threshold(look):
    """Unscheduled packets are dropped, or trimmed, no earlier than scheduled ones."""
    preset = next((of(c["cc"]).preset for c in look["connections"].values()
                   if c["change"]["unscheduled"]), None)
    needs = {"aeolus": ("Aeolus needs a port that drops them first, before a queue builds up",
                        "red 6k count queue"),
             "ndp": ("NDP needs a port that trims them before a queue builds up",
                     "rate RATE preset ndp")}
    if preset not in needs:
        return
    does, options = needs[preset]
    for port in look["ports"].values():
        threshold = port["options"].get("red") or port["options"].get("red_auto")
        if port["change"]["red_packets"] and not threshold:
            yield Problem(
                "no-threshold", _port_name(look, port),
                f"{plural(port['change']['red_packets'], 'unscheduled (red) packet')} passed"
                " a port without a threshold for them.",
                f"{does}: {_change(port)} color {options}.")


@_check
def no_speed(look):
    """A transport that divides a link of unknown speed."""
    for link in look["links"].values():
        settings = [f"net.ipv4.{name}" for name in MBIT
                    if look["namespaces"].get(link["ns"], {}).get(name) == 0]
        if link["source"] == "unknown" and link["change"]["guesses"] and settings:
            yield Problem(
                "no-speed", _port_name(look, link),
                f"The device reports no speed: {rate(link['mbit'] * 125000)} is assumed.",
                f"In Mbit/s: sysctl -w {' or '.join(settings)}; or give the device a port of that"
                f" rate: tc qdisc add dev {quote(link['dev'])} root color rate RATE.")


@_check
def dcqcn_rate(look):
    """Shares of another rate than that of the port."""
    for port in look["ports"].values():
        line = port["options"].get("rate")
        mbit = look["namespaces"].get(port["ns"], {}).get("dcqcn_rate")
        if not (line and mbit and port["root"] and any(
                host.module_of(c["cc"]) == "tcp_dart" for c in _leaves_through(look, port))):
            continue
        if 0.95 <= mbit * 125000 / line <= 1.05:
            continue
        yield Problem(
            "dcqcn-rate", _port_name(look, port),
            f"The link carries {rate(line)}, but shares are parts of {rate(mbit * 125000)}"
            " (dcqcn_rate).",
            ("Flows begin with a queue" if mbit * 125000 > line else "Flows cannot fill the link")
            + f": sysctl -w net.ipv4.dcqcn_rate={line // 125000}.")


@_check
def credit_rate(look):
    """Credits for another rate than that of the port."""
    for port in look["ports"].values():
        line = port["options"].get("rate")
        mbit = look["namespaces"].get(port["ns"], {}).get("xpass_rate")
        if not (line and mbit and port["root"] and any(
                c["change"]["credits_sent"] for c in _leaves_through(look, port))):
            continue
        ratio = mbit * 125000 / line
        if 0.5 <= ratio <= 1.05:
            continue
        yield Problem(
            "xpass-rate", _port_name(look, port),
            f"The link carries {rate(line)}, but credits are sent for {rate(mbit * 125000)}"
            " (xpass_rate).",
            ("Queues grow and packets are lost" if ratio > 1 else "Flows cannot fill the link")
            + f": sysctl -w net.ipv4.xpass_rate={line // 125000}.")


# --- this host's settings --------------------------------------------------------


@_check
def misspelt(look):
    """A configuration file has a name that does not exist, and nearly one that does."""
    for path, wrong, right in look["misspelt"]:
        yield Problem(
            "misspelt", path, f"There is no {wrong}; {right} there is.",
            "Correct it, and sysctl --system. The present setting has no effect.")


@_check
def other_version(look):
    """After an upgrade the old modules are still loaded, and new ones cannot be loaded beside."""
    old = {name: version for name, version in look["modules"].items()
           if look["installed"].get(name, version) != version}
    if old:
        name, version = next(iter(old.items()))
        yield Problem(
            "other-version", ", ".join(old),
            f"Version {version or '(without a number)'} is loaded, {look['installed'][name]} is"
            " installed. The old version continues to work, but no other module of greenlane can"
            ' be loaded: modprobe reports "Invalid argument".',
            "To change over, boot; or stop its users, greenlane leave, modprobe again.")


@_check
def stripped(look):
    """Another application sends a protected codepoint."""
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
            "They have no SACK (sysctl net.ipv4.tcp_sack, at both ends) or no RACK (before Linux"
            " 6.16: sysctl net.ipv4.tcp_recovery), or are MPTCP's, or their segments are signed"
            " (MD5, AO).")


@_check
def without_ecn(look):
    """tlt_dctcp or tlt_dcqcn that became tlt_reno; aeolus_dctcp that became aeolus_reno."""
    def chosen(connection):
        ns = look["namespaces"].get(connection["ns"], {})
        return next((cc for cc in (ns.get("cc"), *look["pinned"])
                     if cc in TLT and cc.endswith(BY_MARKS)
                     and connection["cc"] == f"{cc.partition('_')[0]}_reno"), None)

    for (where, runs, cc), those in _groups(
            look["connections"],
            lambda c: not c["ecn"] and c["peer"] != "no" and not _unsupported(c) and chosen(c)
            and (name_of(look, c), c["cc"], chosen(c))):
        yield Problem(
            "no-ecn", where,
            f"{plural(len(those), 'connection')} run {runs} where {cc} is selected:"
            f" they did not negotiate ECN with {_addresses(those)}.",
            f"Select {cc} at both ends, or let the client request ECN: sysctl -w"
            " net.ipv4.tcp_ecn=1.")


@_check
def not_used(look):
    """Loaded, and not selected anywhere."""
    loaded = host.transports(look["modules"])
    # A transport loads the modules whose congestion controls it wraps.
    brought = set().union(*(row.wraps for row in TRANSPORTS if row.module in loaded))
    loaded = [name for name in loaded if name not in brought]
    if loaded and not look["used"] and not look["incapable"]:
        yield Problem(
            "not-used", "this kernel",
            f"{', '.join(loaded)} {'is' if len(loaded) == 1 else 'are'} loaded, but no namespace,"
            " route, socket or cgroup selects a congestion control of theirs.",
            "sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp (or xpass, dart ...), or"
            " greenlane-cgroup attach.")


def _nothing_loaded(look):
    if look["container"]:
        return Problem("not-loaded", "this kernel", "No module of greenlane is loaded.",
                       "Load it on the host (modprobe tcp_tlt): a container may not.")
    if host.installed(["tcp_tlt"]):
        return Problem("not-loaded", "this kernel", "No module of greenlane is loaded.",
                       "sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp loads them, or"
                       " modprobe tcp_tlt.")
    return Problem(
        "not-installed", "this kernel",
        f"No module of greenlane is loaded, and none is installed for Linux {look['kernel']}.",
        "make install or make dkms-install, with the headers of this kernel (install.rst). After an"
        " upgrade of the kernel: dkms status.")


def _is_meant(value):
    """Does a value select a congestion control of greenlane's, or a misspelt one?"""
    return bool(host.module_of(value)) or value.startswith("tlt")


@_check
def not_in_effect(look):
    """sysctl.d selects a congestion control of greenlane's, and new connections get another."""
    meant = [(path, value) for path, value in look["configured"] if _is_meant(value)]
    if not meant or not look["modules"].keys() - {"link_speed"}:
        return
    path, value = meant[-1]
    last = look["configured"][-1]
    # not_loaded() reports modules that are not loaded.
    if value == look["default_cc"] or (host.module_of(value) not in (None, *look["modules"])
                                       and tuple(last) == (path, value)):
        return
    if len(value.split()) > 1:
        why = (f"its value is {value!r}: to sysctl a comment on the same line is part of it",
               f"Leave only {value.split()[0]} there, and sysctl --system.")
    elif tuple(last) != (path, value):
        why = (f"{last[0]} sets {last[1]} after it",
               "Remove the setting in one of them (sysctl.d(5) has their order), and sysctl"
               " --system.")
    elif value not in look["available"]:
        why = (f"there is no {value}", "Correct it: tlt_dctcp, tlt_cubic, dart ...; and sysctl"
               " --system.")
    else:
        why = ("it has been changed since", "sysctl --system sets it again.")
    yield Problem("not-in-effect", path,
                  f"It selects {value.split()[0]}, but new connections get {look['default_cc']}:"
                  f" {why[0]}.", why[1])


# --- blindness ------------------------------------------------------------------------


@_check
def blind(look):
    """A look that cannot see a mistake must not report health."""
    if look["tc_failed"]:
        yield Problem(
            BLIND, "this look", "tc cannot show the ports: there is no plugin for color."
            if not look["plugin"] else "tc cannot show the ports with the plugin in"
            f" {look['plugin']}.",
            "Install greenlane-tools, or make tc and set TC_LIB_DIR.")
    if look["container"]:
        yield Problem(
            BLIND, "this container",
            f"It was taken in another {' and '.join(look['container'])} namespace than the kernel's"
            " first: it lacks connections, network namespaces and ports of the host and of other"
            " containers.",
            "Run it on the host: it sees all containers there.")
    elif look["incapable"]:
        yield Problem(
            BLIND, "this look",
            f"It was taken without {' and '.join(look['incapable'])}: it lacks other network"
            " namespaces, and connections of processes that it may not read.",
            "Run it as root, on the host.")
    elif look["unseen"]:
        yield Problem(
            BLIND, "this look",
            f"It may not read the sockets of {look['unseen']} of the processes.",
            "A security module forbids it (kernel.yama.ptrace_scope, the audit log), or ulimit -n is"
            " too small.")


@_check
def not_loaded(look):
    """The configuration selects a congestion control whose module is not loaded."""
    # link_speed alone remains after the others were unloaded.
    if not look["modules"].keys() - {"link_speed"}:
        yield _nothing_loaded(look)
        return
    wanted = host.configured_cc()
    module = host.module_of(wanted[1]) if wanted else None
    if module and module not in look["modules"]:
        yield Problem(
            "not-loaded", "this kernel",
            f"{wanted[0]} selects {wanted[1]}, but {module} is not loaded.",
            f"modprobe {module}; if that works, sysctl --system. If it fails, its message has the"
            " reason: is the module built for this kernel, and signed if it must be?")
