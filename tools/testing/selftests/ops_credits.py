#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane status of the credit transports: its counters, and exactly one sentence for each
deliberate mistake.

	ns a ---- wire ---- ns b        lab.wire, or
	ns a -- color, veth -- ns b     lab.status.Cable
"""
import contextlib
import os
import time

from lab.net import modules
from lab.status import Cable, connections, exchange, forget, ids, look, sentence, tool, watched
from lab.tap import case, equal, main, timed, true, within
from lab.wire.peer import bleached, without_option
from lab.wire.sockopt import COUNTERS, GAUGES, cc_of, info
from lab.wire.wire import connected

CCS = ("xpass", "aeolus_xpass")
SYSCTL = "/etc/sysctl.d/90-greenlane.conf"


def credit_port(options="preset aeolus", cc="aeolus_xpass", delay=None, mbit=1000):
    """A port of 1 Gbit/s, and xpass_rate for a link of mbit Mbit/s."""
    cable = Cable(f"color rate 1gbit limit 200k {options}", cc, delay)
    for ns in (cable.a, cable.b):
        ns.sysctl("net.ipv4.xpass_rate", mbit)
    return cable


@case("a healthy network: every connection's counters and gauges, no sentence",
      watched, version=(4, 6),
      cc=CCS)
def healthy(wire):
    pairs = [wire.connect(port) for port in (1000, 1001, 1002)]
    for client, server in pairs:
        exchange(wire, client, server)
    said = look()
    equal(ids(said), [], f"{wire.cc}: mistakes")
    for side, ns in enumerate((wire.a, wire.b)):
        here = connections(said, ns)
        equal({(c["cc"], c["peer"]) for c in here}, {(wire.cc, "yes")},
              "congestion control and peer of each")
        for name in COUNTERS:
            kind = "gauges" if name in GAUGES else "counters"
            equal(sorted(c[kind][name] for c in here),
                  sorted(info(pair[side])[name] for pair in pairs), name)
        true(all(c["counters"]["credits_received"] for c in here),
             "credits_received of each connection")
        equal(all(c["counters"]["unscheduled"] and c["gauges"]["bdp"] for c in here),
              wire.cc != "xpass", "unscheduled and bdp of each are above 0")
    again = look()
    equal({n for c in again["connections"].values() for n in c["change"].values()},
          {0}, "changes without traffic")
    equal({tuple(c["change"]) for c in again["connections"].values()},
          {tuple(n for n in COUNTERS if n not in GAUGES)}, "names of the changes")


@case("gauges: packets that wait, and credits a second, at present", connected,
      of=watched, cc="xpass")
def gauges(wire, client, server):
    # 51 credits a second, or 102 after a report: the gauges change little while status reads them.
    wire.b.sysctl("net.ipv4.xpass_rate", 10)
    client.send(bytes(100_000))
    wire.run(60e-6)
    mine = look()["connections"].values()
    equal({c["local"]: c["gauges"]["credits_wanted"] for c in mine},
          {"10.0.0.1": info(client)["credits_wanted"], "10.0.0.2": 0}, "packets that wait")
    within(info(client)["credits_wanted"], 1, 70, "packets that wait, of 100 kB")
    rates = {c["local"]: c["gauges"]["credit_rate"] for c in mine}
    equal(rates, {"10.0.0.1": 0, "10.0.0.2": info(server)["credit_rate"]}, "credits a second")
    within(rates["10.0.0.2"], 45, 104, "credits a second, at 10/16 Mbit/s and twice that")


@case("the text: a table of credit transports, 80 columns, with connections that fell back",
      watched,
      cc="aeolus_xpass", cc_b="cubic")
def text(wire):
    wire.connect(1000)
    wire.b.sysctl("net.ipv4.tcp_congestion_control", "aeolus_xpass")
    pair = wire.connect(1001)
    exchange(wire, *pair)
    status, out, err = tool("status")
    equal((status, err), (1, ""), f"status, stderr; the output is {' '.join(out.split())}")
    equal([line for line in out.splitlines() if len(line) > 80], [], "text lines that are too long")
    lines = [line.split() for line in out.splitlines()]
    head = next(line for line in lines if line[:4] == ["NAMESPACE", "CC", "CONN", "CREDIT"])
    row = dict(zip(head, next(line for line in lines
                              if line[:2] == [wire.a.name, "aeolus_xpass"])))
    mine = info(pair[0])
    equal((row["CONN"], row["BACK"]), ("2", "1"), "columns CONN, BACK")
    equal([row[name] for name in ("CREDIT", "GIVEN", "WAIT", "UNSCHED")],
          [str(mine[name]) for name in ("credits_received", "credits_sent",
                                        "credits_wanted", "unscheduled")], "columns CREDIT, GIVEN, "
                                        "WAIT, UNSCHED of a")


@case("a peer without the transport: a sentence while the connection runs reno, and after its end",
      connected, cc=(*CCS, "ndp", "aeolus_ndp", "homa", "aeolus_homa"), of=watched, cc_b="cubic")
def peer_without(wire, client, server):
    exchange(wire, client, server)
    for _ in range(2):
        said = look()
        equal(ids(said), ["fell-back"], "mistakes")
        true(f"1 connection of {wire.cc} run {cc_of(client)}, without credits: 10.0.0.2." in
             sentence(said, "fell-back"), f"the sentence names it: {sentence(said, 'fell-back')}")
        advice = said["problems"][0]["advice"]
        true("PeerWithout" in advice and "Fallback" not in advice, f"the reason: {advice}")
    wire.connect(1001)[0].close()
    for s in (client, server):
        s.close()
    wire.run(0.1)
    equal(ids(look()), ["peer-without"], "mistakes after the connections have ended")
    equal(ids(look()), [], "mistakes at the second look")


@case("the path bleaches codepoints: credits are still sent, and a sentence", connected,
      cc=CCS, of=watched, by=bleached)
def no_codepoints(wire, *ends):
    said = look()
    equal([(p["id"], p["where"]) for p in said["problems"]],
          [("bleached", ns.name) for ns in (wire.a, wire.b)], "mistakes, and where")
    true("1 handshake arrived with another DSCP" in sentence(said, "bleached"),
         "the sentence counts the handshakes")
    true(wire.transfer(*ends, 1_000_000), "arrives")
    equal([cc_of(s) for s in ends], [wire.cc] * 2, "congestion controls")
    equal(ids(look()), [], "mistakes at the second look")


@case("the path removes options: no credits, and then reno", connected, cc=CCS,
      of=watched, rto_min=200)
def removed(wire, client, server):
    exchange(wire, client, server)
    equal(ids(look()), [], "mistakes before")
    wire.rule = without_option
    wire.run(1.0)
    client.send(bytes(2_000_000))
    # The fifth request is sent after 3 ms; the sender falls back some time after the sixth.
    wire.run(5e-3)
    said = look()
    equal(ids(said), ["no-credits"], "mistakes while the sender repeats its request")
    true("10.0.0.2" in sentence(said, "no-credits"), "the sentence names the peer")
    wire.run(3.0, lambda: cc_of(client) != wire.cc)
    said = look()
    equal(ids(said), ["fell-back"], "mistakes after the sender has fallen back")
    advice = said["problems"][0]["advice"]
    true("Fallback" in advice and "PeerWithout" not in advice, f"the reason: {advice}")


@case("lost credits are reported only while no credit arrives", connected,
      of=watched, cc="xpass")
def lost_for_a_while(wire, client, server):
    exchange(wire, client, server)
    equal(ids(look()), [], "mistakes before")
    # An outage, in which the sender does not fall back.
    wire.rule = lambda p: True
    client.send(bytes(100_000))
    wire.run(50e-6)
    equal(ids(look()), [], "mistakes before the second request")
    wire.run(2.0)
    equal(ids(look()), ["no-credits"], "mistakes")
    wire.rule = None
    wire.run(2.0)
    equal(len(server.recv(1 << 20)), 100_000, "bytes that arrive")
    equal(ids(look()), [], "mistakes afterwards")


@case("a healthy port: no sentence about a threshold of 6 kB, below a BDP; bands")
def healthy_port():
    for options in ("preset aeolus", "preset xpass red 6k count color"):
        with credit_port(options, delay="1ms") as cable:
            pair = cable.connect()
            cable.send([pair])
            cable.send([pair[::-1]])
            said = look()
            equal(ids(said), [], "mistakes")
            port, = said["ports"].values()
            asked = sum(c["counters"]["credits_sent"] for c in said["connections"].values()
                        if c["local"] == "10.1.0.1")
            within(port["counters"]["band0_packets"] + port["counters"]["band0_drops"],
                   asked, asked, "credits through band 0")
            true(asked > 500, f"{asked} credits of a")
            true(port["counters"]["band1_packets"] > 500, "packets of band 1: more than 500")
            lines = [line.split() for line in tool("status", "--all")[1].splitlines()]
            equal([line for line in lines if line[1:3] == ["band", "0"]][0][:4],
                  ["75849pps", "band", "0", amount(port["counters"]["band0_packets"])],
                  "band 0 in the text")


def amount(number):
    """A number in greenlane's format."""
    return str(number) if number < 1000 else f"{number / 1000:.3g}k"


@case("aeolus through a port without a threshold: a sentence")
def no_threshold():
    with credit_port("preset xpass") as cable:
        pair = cable.connect()
        cable.send([pair])
        said = look()
        equal(ids(said), ["no-threshold"], "mistakes")
        true("va in left" in sentence(said, "no-threshold"), "the sentence names the port")
        cable.tc(cable.a, "qdisc change dev va root color red 6k count queue")
        time.sleep(10)          # a new first round trip
        cable.send([pair])
        equal(ids(look()), [], "mistakes after the remedy")


@case("xpass_rate differs from the port's rate: a sentence")
def xpass_rate():
    for mbit, what in ((10_000, "Queues grow and packets are lost"), (100, "Flows cannot fill the link")):
        with credit_port(mbit=mbit) as cable:
            pair = cable.connect()
            cable.send([pair], 10_000)
            equal([i for i in ids(look()) if i == "xpass-rate"], [],
                  "mistakes of a host that only sends")
            cable.send([pair[::-1]], 100_000)
            said = look()
            equal(ids(said), ["xpass-rate"], "mistakes")
            true("va in left The link carries 1Gbit/s" in sentence(said, "xpass-rate"),
                 "the sentence names port and rate")
            advice = said["problems"][0]["advice"]
            equal(advice, f"{what}: sysctl -w net.ipv4.xpass_rate=1000.", "advice")
            cable.a.sysctl("net.ipv4.xpass_rate", 1000)
            cable.send([pair[::-1]], 100_000)
            equal(ids(look()), [], "mistakes after the remedy")


@timed("scheduled packets are dropped, as no port limits credits: a sentence")
def green_drops():
    with credit_port("red 6k count queue", cc="xpass", mbit=10_000) as cable:
        pairs = [cable.connect() for _ in range(4)]
        cable.send(pairs)
        said = look()
        true("green-drops" in ids(said), f"mistakes: {ids(said)}")
        advice = next(p["advice"] for p in said["problems"] if p["id"] == "green-drops")
        true("first at the other end of this link" in advice, advice)
        # The credits of the data leave by b's port.
        command = advice.partition(" tc ")[2].partition(";")[0]
        cable.tc(cable.b, command.replace("DEV", "vb").replace("RATE", "1gbit"))
        look()
        cable.send(pairs)
        equal([i for i in ids(look()) if i == "green-drops"], [],
              "green drops with a port for credits")


@case("modules that are loaded but not used, or configured but not loaded: a sentence")
def loaded():
    modules.unload("tcp_dcqcn")
    modules.load("tcp_aeolus")
    forget()
    said = look()
    equal(ids(said), ["not-used"], "mistakes with loaded modules that are not selected")
    true("tcp_aeolus" in sentence(said, "not-used"), "the sentence names it")
    modules.unload("tcp_aeolus")
    os.makedirs(os.path.dirname(SYSCTL), exist_ok=True)
    for cc, module in (("aeolus_xpass", "tcp_aeolus"), ("xpass", "tcp_xpass")):
        with open(SYSCTL, "w", encoding="ascii") as f:
            f.write(f"net.ipv4.tcp_congestion_control = {cc}\n")
        said = look()
        equal("not-loaded" in ids(said), cc != "xpass", f"{module}: mistakes {ids(said)}")
        if cc != "xpass":
            true(f"{SYSCTL} selects {cc}, but {module}" in sentence(said, "not-loaded"),
                 "the sentence names file and module")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(SYSCTL)


if __name__ == "__main__":
    main()
