# SPDX-License-Identifier: GPL-2.0
"""greenlane export: one look as Prometheus' text format, for node_exporter's textfile collector.

Counters are totals since their objects were made, and there is no state file: Prometheus computes
rates.  No label names a connection or an address, and each kind of object has a limit, so a host has
a bounded number of series; greenlane_omitted counts the objects above a limit.
"""
import collections
import contextlib
import os
import re
import sys
import tempfile

from . import Refused, diagnose, look
from .ports import COLORS

# Maximum of objects of a kind.  A namespace has about 100 series and a port 30, so all together are
# below 20,000: a tenth of what one scrape of a busy Prometheus may bring.
_MOST = {"namespaces": 100, "ports": 200, "problems": 100}


class Family:
    """The samples of one metric."""

    def __init__(self, name, kind, text):
        self.name, self.kind, self.text = name, kind, text
        self._samples = {}      # by labels: a second sample with the same labels would be refused

    def add(self, value, **labels):
        """Add to the sample with these labels."""
        key = tuple(labels.items())
        self._samples[key] = self._samples.get(key, 0) + value

    def lines(self):
        """The text of the metric; none without samples."""
        if self._samples:
            yield f"# HELP {self.name} {self.text}"
            yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self._samples.items():
            words = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
            yield f"{self.name}{{{words}}} {value}" if words else f"{self.name} {value}"


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Export:
    """The families of one look, in the order of their first samples."""

    def __init__(self, seen):
        self.seen = seen
        self.families = {}
        self.omitted = dict.fromkeys(_MOST, 0)
        self.names = self._names()

    def add(self, name, form, text, value, /, **labels):
        """Add a sample."""
        if name not in self.families:
            self.families[name] = Family(name, form, text)
        self.families[name].add(value, **labels)

    def _kept(self, kind, things):
        """The first of these objects, and count the others as omitted."""
        self.omitted[kind] += max(0, len(things) - _MOST[kind])
        return things[:_MOST[kind]]

    def _names(self):
        """{inode: label} of namespaces, the host first.  A name that two have gets the inode: equal
        labels would add up different objects."""
        spaces = self.seen["namespaces"]
        count = collections.Counter(ns["name"] for ns in spaces.values())
        names = {inode: ns["name"] if count[ns["name"]] == 1 else f"{ns['name']}:{inode}"
                 for inode, ns in spaces.items()}
        # A user can make any number of namespaces without a name, whose label is COMM[PID].
        order = sorted(names, key=lambda inode: (spaces[inode]["name"] != "host",
                                                 names[inode].endswith("]"), names[inode]))
        return {inode: names[inode] for inode in self._kept("namespaces", order)}

    def _modules(self):
        loaded = self.seen["modules"]
        self.add("greenlane_up", "gauge", "Whether a module of greenlane is loaded.",
                 int(bool(loaded)))
        for module, version in loaded.items():
            self.add("greenlane_module_info", "gauge", "A loaded module, and its version.", 1,
                     module=module, version=version)

    def _namespaces(self):
        for inode, netns in self.names.items():
            ns = self.seen["namespaces"][inode]
            for name, value in ns["counters"].items():
                self.add(f"greenlane_{snake(name)}_total", "counter",
                         f"{name} of /proc/net/greenlane.", value, netns=netns)
            if ns["timeouts"] is not None:
                self.add("greenlane_tcp_timeouts_total", "counter",
                         "Retransmission timeouts of TCP, of any congestion control.",
                         ns["timeouts"], netns=netns)

    def _connections(self):
        for one in self.seen["connections"].values():
            if one["ns"] in self.names:
                self.add("greenlane_connections", "gauge",
                         "Open connections of greenlane's transports; role: server if the local"
                         " port has a listener.", 1, netns=self.names[one["ns"]],
                         transport=one["cc"], role=one["role"], peer=one["peer"])
        for one in self.seen["fallen"].values():
            if one["ns"] in self.names:
                self.add("greenlane_fallen_back_connections", "gauge",
                         "Open connections that run the fallback of their transport.", 1,
                         netns=self.names[one["ns"]], transport=one["selected"],
                         role=one["role"])
        for key, count in self.seen["plain"].items():
            inode, cc = key.split()
            if inode in self.names:
                self.add("greenlane_other_connections", "gauge",
                         "Open connections of other congestion controls.", count,
                         netns=self.names[inode], congestion_control=cc)
        self.add("greenlane_unreadable_processes", "gauge",
                 "Processes whose connections could not be read.", self.seen["unseen"])

    def _ports(self):
        ports = sorted((self.names[port["ns"]], port["dev"], port["handle"], key)
                       for key, port in self.seen["ports"].items() if port["ns"] in self.names)
        for netns, device, handle, key in self._kept("ports", ports):
            port = self.seen["ports"][key]
            labels = {"netns": netns, "device": device, "qdisc": handle}
            for color in COLORS:
                self._color(port, color, {**labels, "color": color})

    def _color(self, port, color, labels):
        for key, text in (("packets", "Packets that the port has queued."),
                          ("bytes", "Bytes that the port has queued."),
                          ("marks", "Packets that the port has queued and marked with CE.")):
            self.add(f"greenlane_port_{key}_total", "counter", text,
                     port["counters"][f"{color}_{key}"], **labels)
        prefix = f"{color}_drops_"
        for key, value in port["counters"].items():
            if key.startswith(prefix):
                self.add("greenlane_port_drops_total", "counter",
                         "Packets that the port has dropped, by the limit that they met.", value,
                         **labels, reason=key.removeprefix(prefix))
        self.add("greenlane_port_backlog_bytes", "gauge", "Bytes in the queue of the port.",
                 port["backlog"][color], **labels)

    def _problems(self):
        found = sorted({(problem.id, problem.where)
                        for problem in diagnose.problems(self.seen)})
        self.add("greenlane_problems", "gauge", "Number of problems of greenlane status --all.",
                 len(found))
        for name, where in self._kept("problems", found):
            self.add("greenlane_problem", "gauge", "A problem of greenlane status --all.", 1,
                     id=name, where=where)

    def text(self):
        """The whole exposition."""
        for part in (self._modules, self._namespaces, self._connections, self._ports,
                     self._problems):
            part()
        for kind, count in self.omitted.items():
            self.add("greenlane_omitted", "gauge",
                     "Objects above the limit of the export, which have no series.", count,
                     kind=kind)
        return "".join(f"{line}\n" for family in self.families.values()
                       for line in family.lines())


def snake(name):
    """ImportantSent -> important_sent."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _write(path, text):
    """Replace a file as a whole: the collector must not read half of it."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise Refused(f"{path}: not a regular file")
    try:
        # The collector reads names that end with .prom only.
        fd, fresh = tempfile.mkstemp(prefix=".greenlane.",
                                     dir=os.path.dirname(os.path.abspath(path)))
        try:
            with open(fd, "w", encoding="utf-8") as f:
                f.write(text)
                os.fchmod(fd, 0o644)
            os.replace(fresh, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
    except OSError as why:
        raise Refused(f"{path}: {why.strerror}") from None


def export(output=None):
    """Print a look, or replace the file `output`."""
    text = Export(look.compare(look.take(), None)).text()
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        _write(output, text)
