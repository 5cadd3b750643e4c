#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The test programs: how they count results, select tests, check prose and read packets.
"""
import contextlib
import io
import os
import pathlib
import re
import runpy
import shutil
import struct
import subprocess
import sys
import tempfile
from unittest import mock

from lab import TOP
from lab.check import __main__ as check
from lab.check import coverage, tap
from lab.tap import Failed, case, equal, main, true
from lab.wire import hpcc, packet, peer
from lab.wire.transcript import lose

# {title: (a file's output, its exit status, the counts: passed, failed, skipped)}
READ = {
    "all pass": ("1..2\nok 1 a\nok 2 b", 0, (2, 0, 0)),
    "one fails": ("1..2\nok 1 a\nnot ok 2 b\n# why", 1, (1, 1, 0)),
    "a title contains ok and skip": ("1..1\nok 1 not ok to skip", 0, (1, 0, 0)),
    "one is skipped": ("1..2\nok 1 a\nok 2 b # SKIP no such", 0, (1, 0, 1)),
    "all are skipped": ("1..2\nok 1 a # SKIP x\nok 2 b # SKIP x", 4, (0, 0, 2)),
    "the file is skipped": ("1..0 # SKIP no tree", 4, (0, 0, 1)),
    "a failure is not skipped": ("1..1\nnot ok 1 a # SKIP x", 1, (0, 1, 0)),
    "one result is missing": ("1..2\nok 1 a", 0, (1, 1, 0)),
    "no plan": ("Traceback", 1, (0, 1, 0)),
    "an empty plan is a failure": ("1..0\nTraceback", 4, (0, 1, 0)),
    "status 4 without all skipped": ("1..1\nok 1 a", 4, (1, 1, 0)),
    "the kernel reported an error": ("1..1\nok 1 a", 70, (1, 1, 0)),
}

# A mininet script that prints its results, and exits with its argument as status.
MINE = """\
import sys
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from experiments.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink
net = Mininet(SingleSwitchTopo(2), controller=None, switch=GreenlaneBridge,
              host=GreenlaneHost.using(cc='tlt_cubic'), link=GreenlaneLink.using(bw=100))
net.start()
lost, host = net.pingAll(), net.hosts[0]
print(*net.hosts, end=f": {lost} % lost, ")
print(host.cmd('sysctl -n net.ipv4.tcp_congestion_control').strip())
net.stop()
sys.exit(int(sys.argv[1]))
"""


@case("a file's output and exit status: passed, failed, skipped", result=tuple(READ))
def read(result):
    text, status, expected = READ[result]
    seen = tap.read(f"KTAP version 1\n{text}\n", status)
    equal((seen.passed, seen.failed, seen.skipped), expected, "counted")


@case("the report of a failure, as lab.rst shows it")
def report():
    text = (TOP / "Documentation/lab.rst").read_text(encoding="utf-8")
    block = re.search(r"^A failure\n=+\n\n::\n\n((?:\t.*\n)+)", text, re.M)[1]
    name = re.match(r"\tFAIL (.*?)  ", block)[1]
    passed, number, title, why = re.search(
        r"(\d+) passed.*\n\s+not ok (\d+) (.*)\n\s+# (.*)\n", block).groups()
    result = tap.read("\n".join([f"1..{int(passed) + 1}", *["ok 1 a"] * int(passed),
                                f"not ok {number} {title}", f"# {why}"]), 1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), mock.patch.object(check, "remember"):
        check.timed(name, lambda: result)
    seconds = re.compile(r"\([\d.]+ s\)")
    equal(seconds.sub("", printed.getvalue()).split(), seconds.sub("", block).split(), "words")


@case("a packet's greenlane option is found behind a time stamp that has the same bytes", version=(4, 6))
def option_found(version):
    stamp = struct.pack("!BBBBHHI", 1, 1, 8, 10, packet.EXID, 0, packet.EXID)
    source, target = ("10.0.0.1", "10.0.0.2") if version == 4 else ("fd00::1", "fd00::2")
    p = packet.make(version, source, target, 1, 2, 3, 4,
                    options=stamp + packet.option(0, length=8)[:6] + struct.pack("!H", hpcc.COLLECT))
    equal(p.options_at, [p.ip_len + 20 + len(stamp)], "where the option begins")
    hpcc.raise_to(p, hpcc.ONE)
    equal(hpcc.option(p)[1], hpcc.COLLECT | hpcc.ONE, "telemetry field")
    peer.without_option(p)
    equal(p.raw[p.ip_len + 20:], stamp + b"\1" * 8, "the options, without greenlane's")


@case("an invalid name of a packet is refused",
      line=("> datta", "> dscp 3", "> data 5-3", "data 1", "> data 1 gone"))
def names(line):
    try:
        lose(line)
    except ValueError:
        return
    raise Failed("accepted")


# {program that only some tests need: its package}
PROGRAMS = {"nft": "nftables", "wg": "wireguard-tools", "tshark": "tshark", "bpftool": "bpftool",
            "dkms": "dkms", "openssl": "openssl", "chromium": "chromium", "snakemake": "snakemake",
            "bpftrace": "bpftrace", "rpm": "rpm"}
# {package that few tests need: those}
FEW = {
    "nftables": ["smp_churn.py", "smp_unload.py", "tlt_devices.py", "trim_reports.py"],
    "wireguard-tools": ["tlt_devices.py"],
    "tshark": ["color_pause.py"],
    "bpftool": ["guest_install.py", "install_autoload.py", "install_export.py",
                "install_geneve.py", "ops_cgroup.py", "ops_timer.py"],
    "dkms": ["guest_install.py"],
    "rpm": ["guest_install.py"],
    "mokutil": ["guest_secure_boot.py"],
    "ovmf": ["guest_secure_boot.py"],
    "bpftrace": ["stock_bpftrace.py"],
    "systemd": ["install_export.py", "ops_containers.py", "ops_timer.py"],
    "openssh-client": ["guest_hosts.py", "guest_machines.py"],
    "python3-yaml": ["upstream_ynl.py"],
    "rsync": ["guest_kselftest.sh"],
    "python3-matplotlib": ["guest_converge.py", "guest_figures.py", "guest_incast.py",
                           "guest_load.py", "guest_machines.py", "guest_slurm.py",
                           "guest_transports.py"],
    "snakemake": ["guest_figures.py", "guest_slurm.py"],
    "weasyprint": ["guest_figures.py", "guest_slurm.py"],
    "chromium": ["guest_figures.py"],
    "shellcheck": ["lint"],
}
LIBRARIES = {"experiments.plot": "python3-matplotlib", "experiments.figures.page": "weasyprint"}


def packages(*words):
    """The packages that scripts/setup would install."""
    done = subprocess.run([TOP / "scripts/setup", "--print", *words], text=True,
                          capture_output=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), f"{words}: status, stderr")
    return set(done.stdout.split())


@case("scripts/setup: a test needs the packages of the programs that its file names, and no others")
def packages_of_a_test():
    few = packages("--for", "tlt_loss.py, 6.1")
    true("gcc" in few, "a compiler")
    for name in ("coccinelle", "chromium", "snakemake", "qemu-system-x86", "tshark",
                 "linux-headers-amd64", "shellcheck", "virtme-ng==1.42"):
        true(name not in few, f"{name} for tlt_loss.py")
    every, users = packages("--check"), {package: set() for package in FEW}
    for config in check.DEFAULT:
        for name, path in [*check.names_for(config, True).items(), (check.LINT, None)]:
            mine = packages("--for", name)
            for package in mine & FEW.keys():
                users[package].add(name.partition(",")[0])
            equal(mine - every, set(), f"packages of {name} that --check lacks")
            text = path.read_text(encoding="utf-8") if path else ""
            for program, package in PROGRAMS.items():
                true(package in mine or not re.search(rf"[\[(]\"{program}[\" ]", text),
                     f"{name} runs {program}")
            for module, package in LIBRARIES.items():
                true(package in mine or f"{module} import" not in text, f"{name} imports {module}")
            equal("qemu-system-x86" in mine,
                  any(word in name for word in ("kselftest", "machines", "secure_boot"))
                  or config is check.STOCK and name != check.LINT, f"a virtual machine for {name}")
    equal({package: sorted(names) for package, names in users.items()}, FEW, "tests by package")


@case("scripts/check NAME: installs and builds for that test only; an unknown name: status 2")
def only_what_is_chosen():
    before, sys.argv = sys.argv, ["check", "tlt_loss", "smp_iofd"]
    try:
        args = check.parse_args()
    finally:
        sys.argv = before
    plain, kernels = check.chosen_tests(args)
    equal((plain, [(config.label, list(names)) for config, names in kernels]),
          ([], [("7.3", ["tlt_loss.py, 7.3"]), ("stock", ["smp_iofd.py, stock"])]), "tests")
    asked, was = [], check.script
    check.script = lambda *words: asked.append(words)
    try:
        check.prepare(args, ["tlt_loss.py, 7.3"])
    finally:
        check.script = was
    equal(asked, [("setup", "--for", "tlt_loss.py, 7.3")], "set-up commands")
    done = subprocess.run([TOP / "scripts/check", "no_such"], text=True, capture_output=True,
                          check=False)
    equal((done.returncode, done.stdout, done.stderr),
          (2, "", "check: no test has no_such in its name\n"), "an unknown name")


@case("the coverage table is as scripts/coverage --record writes it: sources and their sum")
def coverage_table():
    text = coverage.PAGE.read_text(encoding="utf-8")
    rows = {name: (int(ran), int(of), percent) for name, ran, of, percent in re.findall(
        r"^(net/\S+|all) +(\d+) +(\d+) +([0-9.]+)$", text, re.M)}
    total = {name: dict(enumerate([1] * ran + [0] * (of - ran)))
             for name, (ran, of, _) in rows.items() if name != "all"}
    equal([name for name in total if not (TOP / name).exists()], [], "rows without a source")
    equal(coverage.page(text, total), text, "the page with its own rows")


@case("--help of each user's script: its purpose and its usage")
def helps():
    for name in ("apps", "bench", "check", "check-debug", "check-smp-debug", "coverage", "demo",
                 "experiment", "figures", "greenlane", "greenlane-cgroup", "guest", "kernel",
                 "kselftest", "lint", "mininet", "modules", "setup"):
        done = subprocess.run([TOP / "scripts" / name, "--help"], text=True, capture_output=True,
                              check=False)
        equal((done.returncode, done.stderr), (0, ""), f"{name}: status, stderr")
        true(len(done.stdout.splitlines()) > 2, f"{name}: {done.stdout}")


@case("lint words counts the prose of C, Python, shell and pages only")
def prose():
    words = runpy.run_path(str(TOP / "tools/testing/lint/words"), run_name="words")
    for kind, text, listed in (
            (".c", '/* @ */ int @; // @\npr_err("@ has @ here"); f("@");', 4),
            (".py", '"""@ @."""\n@ = "@"\n# None @ so\nf"{@} and @ is it"\n', 4),
            (".sh", "@=1 # @\necho '@ is here now' \"$@\"\n", 2),
            (".rst", "@ ``@`` `@`_::\n\n\t@\n\nline rate, lines\n", 2)):
        seen = words["LISTED"].findall(" ".join(words["PROSE"][kind](text.replace("@", "what"))))
        equal(len(seen), listed, f"{kind}: {seen}")
    equal([round(words["needed"](has), 1) for has in (1.0, 1.01, 1.1)], [1.0, 1.1, 1.1], "limits")


@case("lint words: a file above its limit, and a limit that can fall, are findings")
def limits():
    with tempfile.TemporaryDirectory() as there:
        lint = pathlib.Path(there, "tools/testing/lint")
        lint.mkdir(parents=True)
        shutil.copy(TOP / "tools/testing/lint/words", lint)
        page, entries = pathlib.Path(there, "page.rst"), lint / "words.limits"
        subprocess.run(["git", "init", "-q"], cwd=there, check=True)

        def findings(count, limit):
            """The number of findings for a page with `count` listed words in 100."""
            page.write_text("what " * count + "word " * (100 - count), encoding="utf-8")
            entries.write_text(f"page.rst {limit}\n" if limit else "", encoding="utf-8")
            done = subprocess.run([lint / "words"], text=True, capture_output=True, check=False)
            equal(done.returncode, bool(done.stdout), "exit status")
            return done.stdout.count("\n")

        for count, limit, wanted in ((1, None, 0), (2, None, 1), (3, 3.0, 0), (4, 3.0, 1),
                                     (2, 3.0, 1), (1, 3.0, 1)):
            equal(findings(count, limit), wanted, f"{count} in 100, limit {limit}")
        findings(2, 3.0)
        subprocess.run([lint / "words", "--record"], check=True)
        true(entries.read_text(encoding="utf-8").endswith("\npage.rst 2.0\n"), "the limit is lower")
        findings(4, 3.0)
        subprocess.run([lint / "words", "--record"], check=True)
        true(entries.read_text(encoding="utf-8").endswith("\npage.rst 3.0\n"), "no higher limit")


def run(*command, cwd, **environment):
    """Run a program; returns the end of its stdout, after the last newline."""
    done = subprocess.run(command, cwd=cwd, env=dict(os.environ, **environment), text=True,
                          capture_output=True, check=False)
    equal(done.returncode, 0, f"status: {done.stderr[-300:]}")
    return done.stdout.strip().rpartition("\n")[2]


@case("scripts run through a link, with CDPATH, beside modules of the same names")
def called_from():
    with tempfile.TemporaryDirectory() as there:
        for name in ("lab", "json"):
            pathlib.Path(there, name).mkdir()
            pathlib.Path(there, name, "__init__.py").write_text("raise SystemExit('wrong')\n",
                                                                encoding="ascii")
        link = pathlib.Path(there, "experiment")
        link.symlink_to(TOP / "scripts/experiment")
        for program in (link, TOP / "scripts/experiment"):
            true(run(program, "--help", cwd=there, CDPATH=str(TOP)), "a usage")
        said = run(link, "incast", "--kernel", os.environ.get("GL_KERNEL", "7.3"), "--cc", "reno",
                   "--senders", "2", "--fan-in", "2", "--rounds", "1", cwd=there)
        equal(said.split()[:2], ["reno", "2"], "the table's last row")


@case("scripts/mininet runs a user's script, with its arguments and exit status; refuses mistakes")
def mininet():
    kernel = ("--kernel", os.environ.get("GL_KERNEL", "7.3"))
    with tempfile.TemporaryDirectory() as there:
        pathlib.Path(there, "mine.py").write_text(MINE, encoding="ascii")
        for words, status, expected in (
                ((*kernel, "mine.py", "7"), 7, "h1 h2: 0.0 % lost, tlt_cubic"),
                (("none.py",), 1, "mininet: there is no script none.py, nor an example of that"
                                  " name (incast, first_rtt, deflect)"),
                ((), 1, "usage: scripts/mininet [--kernel V] SCRIPT [ARG...]")):
            done = subprocess.run([TOP / "scripts/mininet", *words], cwd=there, text=True,
                                  capture_output=True, check=False)
            said = (done.stdout if status == 7 else done.stderr).strip()
            equal((done.returncode, said), (status, expected), f"{words}: status, output")


if __name__ == "__main__":
    main()
