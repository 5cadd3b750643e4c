#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""greenlane export: its numbers equal the numbers of tc and of greenlane status, and promtool, of the
package prometheus (unpacked, not installed), accepts its text.

	ns left -- color, veth -- ns right
"""
import collections
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time

from experiments.apps import unpacked
from lab import TOP
from lab.net import modules
from lab.net.namespace import Namespace
from lab.status import Cable, forget, look, tool
from lab.tap import case, equal, main, need_tree, true, within
from lab.wire.sockopt import abort

PROMTOOL = unpacked.in_guest("prometheus") / "usr/bin/promtool"
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\d+)\n')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')
COLORS = ("red", "yellow", "green")
PORT = {"netns": "left", "device": "va", "qdisc": "1:"}


def samples(text):
    """{metric: {labels, sorted: value}}"""
    found = collections.defaultdict(dict)
    for row in text.splitlines(keepends=True):
        if row.startswith("#"):
            continue
        match = SAMPLE.fullmatch(row)
        true(match, f"a sample has a name, labels and a number: {row!r}")
        labels = tuple(sorted(LABEL.findall(match[2] or "")))
        true(labels not in found[match[1]], f"labels are unique: {row}")
        found[match[1]][labels] = int(match[3])
    return found


def export():
    """The samples of greenlane export; promtool must accept its text."""
    status, out, err = tool("export")
    equal((status, err), (0, ""), "status, stderr of greenlane export")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=out, capture_output=True, text=True,
                          check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, ""), f"promtool; the text is {out}")
    return samples(out)


def one(found, name, **labels):
    """The sample with these labels."""
    return found[name].get(tuple(sorted(labels.items())))


def incast():
    """A port that drops red packets of an incast."""
    forget()
    return Cable("color rate 1gbit limit 400k red 60k ecn 30k", "tlt_dctcp")


@case("without a module: greenlane_up is 0, the exit status too")
def nothing():
    found = export()
    equal(found["greenlane_up"], {(): 0}, "greenlane_up")
    equal("greenlane_module_info" in found, False, "a module is loaded")
    equal(found["greenlane_problem"], {(("id", "not-installed"), ("where", "this kernel")): 1},
          "problems")


@case("an incast: tc has the same counters of each colour", incast)
def by_color(cable):
    cable.burst(40, 30_000)
    found = export()
    shown = next(q for q in json.loads(subprocess.run(
        ["tc", "-n", "left", "-s", "-j", "qdisc", "show", "dev", "va"], check=True,
        capture_output=True).stdout) if q["kind"] == "color")
    for color in COLORS:
        for key in ("packets", "bytes", "marks"):
            equal(one(found, f"greenlane_port_{key}_total", **PORT, color=color),
                  shown["colors"][color][key], f"{key} of {color}")
        for why, count in shown["colors"][color]["drops"].items():
            equal(one(found, "greenlane_port_drops_total", **PORT, color=color, reason=why), count,
                  f"drops of {color} by {why}")
        equal(one(found, "greenlane_port_backlog_bytes", **PORT, color=color), 0,
              f"backlog of {color}")
    true(sum(shown["colors"]["red"]["drops"].values()) > 10, "red packets were dropped")
    true(shown["colors"]["red"]["marks"] > 10, "red packets were marked")


@case("the backlog of a port that sends slowly, as in tc", incast)
def backlog(cable):
    cable.tc(cable.a, "qdisc change dev va root color rate 1kbit")
    with cable.a, socket.socket(type=socket.SOCK_DGRAM) as sender:
        for _ in range(4):
            sender.sendto(bytes(1000), ("10.1.0.2", 9))
    found = export()
    shown = json.loads(subprocess.run(
        ["tc", "-n", "left", "-s", "-j", "qdisc", "show", "dev", "va"], check=True,
        capture_output=True).stdout)[0]["colors"]
    for color in COLORS:
        equal(one(found, "greenlane_port_backlog_bytes", **PORT, color=color),
              shown[color]["backlog"], color)
    true(shown["yellow"]["backlog"] > 2000, "yellow packets wait")


@case("an incast: status --json --all has the same counters, timeouts and connections", incast)
def by_namespace(cable):
    with cable.b:
        listener = socket.create_server(("10.1.0.2", 0))
    pairs = []
    for _ in range(3):
        with cable.a:
            client = socket.create_connection(listener.getsockname())
        pairs.append((client, listener.accept()[0]))
    cable.send(pairs, 200_000)
    found, said = export(), look("--all")
    for ns in said["namespaces"].values():
        for name, value in ns["counters"].items():
            metric = "greenlane_" + re.sub("([A-Z])", r"_\1", name).lower().lstrip("_") + "_total"
            equal(one(found, metric, netns=ns["name"]), value, f"{name} of {ns['name']}")
    true(one(found, "greenlane_important_sent_total", netns="left") > 0, "important_sent of left")
    equal(one(found, "greenlane_tcp_timeouts_total", netns="left"),
          cable.a.netstat("TCPTimeouts"), "timeouts of left")
    for netns, role in (("left", "client"), ("right", "server")):
        equal(one(found, "greenlane_connections", netns=netns, transport="tlt_dctcp", role=role,
                  peer="yes"), 3, f"connections of {netns}")
    equal({name: value for name, value in found["greenlane_module_info"].items()},
          {(("module", name), ("version", version)): 1
           for name, version in said["modules"].items()}, "modules")
    equal(found["greenlane_up"], {(): 1}, "greenlane_up")
    abort(listener, *(end for pair in pairs for end in pair))


@case("timeouts count in their own namespace", incast)
def timeouts(cable):
    client, _ = cable.connect()
    cable.b.ip("link set vb down")
    client.sendall(bytes(1000))
    time.sleep(1)
    found = export()
    counted = cable.a.netstat("TCPTimeouts")
    true(counted > 0, "a timer has expired")
    equal([one(found, "greenlane_tcp_timeouts_total", netns=name) for name in ("left", "right")],
          [counted, 0], "timeouts of left and right")


@case("connections that fell back, and connections of other congestion controls")
def fallen():
    with Cable("color rate 1gbit limit 1m", "xpass") as cable:
        cable.b.sysctl("net.ipv4.tcp_congestion_control", "cubic")
        cable.connect()
        found = export()
        equal(found["greenlane_fallen_back_connections"], {
            (("netns", "left"), ("role", "client"), ("transport", "xpass")): 1}, "fell back")
        equal(one(found, "greenlane_other_connections", netns="right", congestion_control="cubic"),
              1, "connections of cubic")
        equal(one(found, "greenlane_problem", id="fell-back", where="left"), 1, "the problem")


def dashboard():
    """The dashboard of Grafana."""
    with open(need_tree("tools/grafana/greenlane.json"), encoding="utf-8") as file:
        return json.load(file)


def expressions():
    """The expressions of all panels, with a value for each of Grafana's variables."""
    return [target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
            .replace("$netns", ".*") for panel in dashboard()["panels"]
            for target in panel["targets"]]


@case("the dashboard: each metric and label of its expressions is exported")
def dashboard_metrics():
    found = collections.defaultdict(set)
    for cc, cc_b in (("tlt_dctcp", "tlt_dctcp"), ("xpass", "xpass"), ("xpass", "cubic")):
        forget()
        with Cable("color rate 1gbit limit 1m red 270k", cc) as cable:
            cable.b.sysctl("net.ipv4.tcp_congestion_control", cc_b)
            cable.send([cable.connect()])
            for name, rows in export().items():
                for labels in rows:
                    # Prometheus itself adds the label instance.
                    found[name].update(key for key, _ in labels)
                    found[name].add("instance")
    used = set()
    for expr in expressions():
        name, matched = re.search(r"(greenlane_\w+)\{(.*?)\}", expr).groups()
        true(name in found, f"{name} is exported")
        labels = set(re.findall(r"(\w+)=", matched))
        labels.update(re.findall(r"\w+", "".join(re.findall(r"by \((.*?)\)", expr))))
        equal(labels - found[name], set(), f"labels that {name} lacks")
        used.add(name)
    within(len(used), 10, 40, "metrics of the dashboard")


@case("the dashboard: Prometheus can parse its expressions")
def dashboard_expressions():
    rules = [{"record": f"panel:{number}", "expr": expr}
             for number, expr in enumerate(expressions())]
    with open("/run/rules.yml", "w", encoding="utf-8") as file:
        json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)     # is YAML, too
    done = subprocess.run([PROMTOOL, "check", "rules", "/run/rules.yml"], capture_output=True,
                          text=True, check=False)
    equal(done.returncode, 0, f"promtool: {done.stdout}{done.stderr}")


@case("the dashboard has the fields of Grafana's schema, and panels that do not overlap")
def dashboard_schema():
    board = dashboard()
    for key, form in (("title", str), ("uid", str), ("schemaVersion", int), ("panels", list),
                      ("templating", dict), ("time", dict), ("annotations", dict), ("tags", list)):
        true(isinstance(board.get(key), form), f"{key} is a {form.__name__}")
    # An id of a database would replace the dashboard that has it.
    equal(board["id"], None, "id")
    variables = {one["name"]: one["type"] for one in board["templating"]["list"]}
    equal(variables, {"datasource": "datasource", "instance": "query", "netns": "query"},
          "variables")
    within(len(board["panels"]), 8, 12, "panels")
    equal(len({panel["id"] for panel in board["panels"]}), len(board["panels"]), "different ids")
    cells = [(place["x"] + x, place["y"] + y) for place in
             (panel["gridPos"] for panel in board["panels"])
             for x in range(place["w"]) for y in range(place["h"])]
    equal((len(set(cells)), max(x for x, _ in cells)), (len(cells), 23), "cells, last column")
    for panel in board["panels"]:
        for key in ("title", "type", "datasource", "fieldConfig", "options", "targets"):
            true(panel.get(key), f"{key} of panel {panel['id']}")
        for target in panel["targets"]:
            equal(target["datasource"], {"type": "prometheus", "uid": "${datasource}"},
                  f"data source of panel {panel['id']}")
        refs = [target["refId"] for target in panel["targets"]]
        equal(len(set(refs)), len(refs), f"different refIds of panel {panel['id']}")


@case("a device name of quotes and backslashes is escaped")
def escaped():
    forget()
    modules.load("sch_color")
    with Named() as ns:
        for words in (["ip", "link", "add", 'a"b\\c', "type", "dummy"],
                      ["tc", "qdisc", "add", "dev", 'a"b\\c', "root", "color", "rate", "1gbit"]):
            subprocess.run([words[0], "-n", ns.name, *words[1:]], check=True)
        # Status makes a backslash visible as \x5c, which Prometheus' format escapes again.
        equal({dict(labels)["device"] for labels in export()["greenlane_port_packets_total"]},
              {r'a\"b\\x5cc'}, "devices")


class Named(Namespace):
    """A namespace for a block."""

    def __init__(self, name="left"):
        super().__init__(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


@case("two namespaces of one name are distinguished by their inodes")
def same_name():
    modules.load("tcp_tlt")
    with Named("one"):
        os.makedirs("/run/docker/netns", exist_ok=True)
        subprocess.run(["touch", "/run/docker/netns/one"], check=True)
        subprocess.run(["unshare", "--net=/run/docker/netns/one", "true"], check=True)
        names = {dict(labels)["netns"] for labels in export()["greenlane_kicks_total"]}
        equal(names, {"host", *(f"one:{os.stat(path).st_ino}" for path in (
            "/run/netns/one", "/run/docker/netns/one"))}, "namespaces")
        subprocess.run(["umount", "/run/docker/netns/one"], check=True)
        os.unlink("/run/docker/netns/one")


@case("of more than 100 namespaces the host and the first by name have series")
def limited():
    modules.load("tcp_tlt")
    spaces = [Namespace(f"n{number:03}") for number in range(105)]
    found = export()
    equal({dict(labels)["netns"] for labels in found["greenlane_kicks_total"]},
          {"host", *(f"n{number:03}" for number in range(99))}, "namespaces")
    equal(one(found, "greenlane_omitted", kind="namespaces"), 6, "omitted namespaces")
    for ns in spaces:
        ns.remove()


@case("--output replaces a file as a whole, readable by all")
def output():
    path = "/run/textfile/greenlane.prom"
    os.makedirs("/run/textfile")
    os.umask(0o077)
    equal(tool("export", "--output", path), (0, "", ""), "status, stdout, stderr")
    first = os.stat(path)
    equal(stat.S_IMODE(first.st_mode), 0o644, "mode")
    true("greenlane_up" in samples(open(path, encoding="utf-8").read()), "it has the samples")
    equal(tool("export", "--output", path), (0, "", ""), "status, stdout, stderr of the second")
    true(os.stat(path).st_ino != first.st_ino, "another file has its name")
    equal(os.listdir("/run/textfile"), ["greenlane.prom"], "files")


@case("if the look or the write fails, the file stays, and no other is left")
def failing():
    os.makedirs("/run/small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "t", "/run/small"], check=True)
    path = "/run/small/greenlane.prom"
    with open(path, "w", encoding="ascii") as file:
        file.write("greenlane_up 1\n")
    for command in ([sys.executable, f"{TOP}/scripts/greenlane"],
                    ["unshare", "-m", "sh", "-c",
                     f'mount -t tmpfs t /proc; exec {sys.executable} {TOP}/scripts/greenlane "$@"',
                     "sh"]):
        status, out, err = tool("export", "--output", path, command=command)
        equal((status, out, err.count("\n")), (2, "", 1), f"status, stdout, newlines of {err!r}")
        equal(open(path, encoding="ascii").read(), "greenlane_up 1\n", "the file")
        equal(os.listdir("/run/small"), ["greenlane.prom"], "files")
    status, out, err = tool("export", "--output", "/run/nowhere/greenlane.prom")
    equal((status, out, err), (2, "", "greenlane: /run/nowhere/greenlane.prom: No such file or"
                                      " directory\n"), "status, stdout, stderr")


if __name__ == "__main__":
    main()
