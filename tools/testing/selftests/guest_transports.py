#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The table of transports: the builds list its modules, and a row is enough for a new transport.

A copy of the tools gets a row for the toy transport (modules/tcp_toy.c).  The copy's programs run
with this tree's modules.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from lab import TOP
from lab.guest import health
from lab.tap import case, equal, main, true
from lab.transports import MODULES, TRANSPORTS

KERNEL = os.environ.get("GL_KERNEL", "7.3")
ROW = """
    Transport("toy", "tcp_toy", ("toy",), TAGS, needs=("greenlane",),
              fallback="toy-reno", colour="#123456", marker="X"),
)
"""
# Runs in a guest, and prints what status and bench report of a toy connection.
PROGRAM = """
import json
from experiments.bench import memory
from lab.net.namespace import ACTIVE
from lab.status import look, tool
from lab.wire.wire import Wire
with Wire(cc="toy") as wire:
    for ns in wire.a, wire.b:
        ns.sysctl(ACTIVE, 1)
    ends = wire.connect()
    wire.transfer(*ends, 100)
    seen, table = look(), tool("status")[1]
memory.CONNECTIONS = 20
print(json.dumps([seen["modules"], seen["used"], table]))
memory.main()
"""
COPY = tempfile.TemporaryDirectory(prefix="greenlane-transports-")


def text(name):
    """The text of a file of the tree."""
    return (TOP / name).read_text(encoding="utf-8")


@case("net/Kbuild, dkms.conf and the package's description have the modules of the table")
def builds():
    found = {
        "net/Kbuild": re.findall(r"(\w+)\.o\b", " ".join(
            re.findall(r"^obj-.* \+= (.*)$", text("net/Kbuild"), re.M))),
        "net/Kbuild, versions": re.findall(r"^CFLAGS_\w+/(?:(gl)_main|(\w+))\.o",
                                           text("net/Kbuild"), re.M),
        "dkms.conf": re.findall(r'^BUILT_MODULE_NAME\[\d+\]="(\w+)"$', text("dkms.conf"), re.M),
        "packaging/greenlane-dkms.control": re.findall(
            r"(\w+)\.ko", text("packaging/greenlane-dkms.control"))}
    found["net/Kbuild, versions"] = ["greenlane" if main else name
                                     for main, name in found["net/Kbuild, versions"]]
    for name, modules in found.items():
        equal(sorted(modules), sorted(MODULES), name)
    numbers = re.findall(r"^BUILT_MODULE_NAME\[(\d+)\]", text("dkms.conf"), re.M)
    equal(numbers, [str(number) for number in range(len(MODULES))], "numbers in dkms.conf")


@case("a module's source registers the congestion controls of its row, and their fallback")
def registered():
    for row in TRANSPORTS:
        source = text(f"net/ipv4/{row.module}.c")
        # tcp_tlt has an alias for each of its names, which are its bases' with tlt_ before them.
        names = re.findall(r'(?:\.name\s*= "|MODULE_ALIAS\("tcp_)(\w*[a-z])"', source)
        equal(sorted(set(names)), sorted(row.ccs), f"congestion controls of {row.module}")
        equal(re.findall(r'GL_RENO\("([^"]*)"\)', source), [row.fallback] * bool(row.fallback),
              f"fallback of {row.module}")


def script(name, *words, top=TOP):
    """The output of a script that succeeds."""
    done = subprocess.run([pathlib.Path(top, "scripts", name), *words], capture_output=True,
                          text=True, check=False)
    equal(done.returncode, 0, f"{name}: {done.stderr[-500:]}")
    return done.stdout


def built():
    """The options of scripts/guest for this tree's kernel and modules."""
    return ["--built", *(script(name, "--kernel", KERNEL).split()[-1]
                         for name in ("kernel", "modules"))]


def with_toy():
    """A copy of the tools, with a row for the toy."""
    copy = pathlib.Path(COPY.name, "tree")
    if not copy.exists():
        subprocess.run(["flock", TOP / "tools/tc", "make", "-s", "-C", TOP / "tools/tc"],
                       check=True, stdout=subprocess.DEVNULL)
        for name in ("tools", "scripts", "include"):
            shutil.copytree(TOP / name, copy / name, symlinks=True,
                            ignore=shutil.ignore_patterns("__pycache__", "*.o"))
        for name in ("Kbuild", "VERSION"):
            shutil.copy(TOP / name, copy)
    table = TOP / "tools/greenlane/transports.py"
    before, rows, after = table.read_text(encoding="utf-8").partition("\nTRANSPORTS = (\n")
    (copy / "tools/greenlane/transports.py").write_text(
        before + rows + after.replace("\n)\n", ROW, 1), encoding="utf-8")
    return copy


@case("a row for the toy: it appears in status and in bench's memory part")
def status():
    out = script("guest", "--kernel", KERNEL, *built(), "--", "/usr/bin/python3", "-P", "-c",
                 PROGRAM, top=with_toy())
    (modules, used, table), memory = map(json.loads, out.splitlines()[-2:])
    true("tcp_toy" in modules and used, f"modules in status: {modules}, used: {used}")
    rows = [line.split() for line in table.splitlines()]
    equal([row[1:4] for row in rows if "toy" in row],
          [["toy", "1", "1/0"], ["toy", "1", "1/0"]], f"connections and peers in {table}")
    true("toy" in memory, f"congestion controls in bench: {memory}")


@case("a row for the toy: an experiment runs it, and draws it in its colour")
def experiment():
    out = pathlib.Path(COPY.name, "out")
    script("experiment", "incast", "--kernel", KERNEL, "--cc", "reno,toy", "--fan-in", "8,16",
           "--rounds", "2", "--guests", "1", f"--guest-options={' '.join(built())}",
           "--json", f"{out}.json", "--plot", out, top=with_toy())
    runs = json.loads(pathlib.Path(f"{out}.json").read_text(encoding="utf-8"))["runs"]
    sent = [run["senders"]["greenlane"].get("ToyDataSent", 0) > 0 for run in runs]
    equal([(run["cc"], run["flows"]) for run in runs],
          [("reno", 8), ("reno", 16), ("toy", 8), ("toy", 16)], "runs")
    equal(sent, [False, False, True, True], "runs that sent toy data")
    true("#123456" in pathlib.Path(f"{out}.svg").read_text(encoding="utf-8"), "the toy's colour")


@case("a row for the toy: a data race in its module is a finding")
def race():
    log = b"BUG: KCSAN: data-race in f [tcp_toy] / g"
    true(health.HARMLESS.search(log), "without a row the race is the kernel's")
    done = subprocess.run(
        ["/usr/bin/python3", "-P", "-c", "import sys; from lab.guest import health;"
         f"sys.exit(bool(health.HARMLESS.search({log})))"], check=False,
        env=dict(os.environ, PYTHONPATH=str(with_toy() / "tools/testing")))
    equal(done.returncode, 0, "status")


if __name__ == "__main__":
    main()
