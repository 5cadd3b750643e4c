#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The test programs themselves: what they make of results, of names, and of where they are
called from.
"""
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile

from lab import TOP
from lab.check import __main__ as check
from lab.check import coverage, tap
from lab.tap import Failed, case, equal, main, true
from lab.wire.transcript import lose

# A file's output and exit status; what is counted: passed, failed, skipped.
READ = {
    "all pass": ("1..2\nok 1 a\nok 2 b", 0, (2, 0, 0)),
    "one fails": ("1..2\nok 1 a\nnot ok 2 b\n# why", 1, (1, 1, 0)),
    "a name with ok and skip in it": ("1..1\nok 1 not ok to skip", 0, (1, 0, 0)),
    "one is skipped": ("1..2\nok 1 a\nok 2 b # SKIP no such", 0, (1, 0, 1)),
    "all are skipped": ("1..2\nok 1 a # SKIP x\nok 2 b # SKIP x", 4, (0, 0, 2)),
    "the file is skipped": ("1..0 # SKIP no tree", 4, (0, 0, 1)),
    "a failure is not skipped": ("1..1\nnot ok 1 a # SKIP x", 1, (0, 1, 0)),
    "one does not report": ("1..2\nok 1 a", 0, (1, 1, 0)),
    "no plan": ("Traceback", 1, (0, 1, 0)),
    "an empty plan is no skip": ("1..0\nTraceback", 4, (0, 1, 0)),
    "status 4, and not all are skipped": ("1..1\nok 1 a", 4, (1, 1, 0)),
    "the kernel complained": ("1..1\nok 1 a", 70, (1, 1, 0)),
}

# A mininet script that says what it saw, and ends with its argument as exit status.
MINE = """\
import sys
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from lab.mininet import GreenlaneBridge, GreenlaneHost, GreenlaneLink
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


@case("a name that no packet can have is refused",
      line=("> datta", "> dscp 3", "> data 5-3", "data 1", "> data 1 gone"))
def names(line):
    try:
        lose(line)
    except ValueError:
        return
    raise Failed("accepted")


# A program that not every test needs, and the package that has it.
PROGRAMS = {"nft": "nftables", "wg": "wireguard-tools", "tshark": "tshark", "bpftool": "bpftool",
            "dkms": "dkms", "openssl": "openssl", "chromium": "chromium", "snakemake": "snakemake"}
LIBRARIES = {"lab.plot": "python3-matplotlib", "lab.figures.page": "weasyprint"}


def packages(*words):
    """Those that scripts/setup would install."""
    done = subprocess.run([TOP / "scripts/setup", "--print", *words], text=True,
                          capture_output=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), f"{words}: status, stderr")
    return set(done.stdout.split())


@case("scripts/setup: a test gets the programs that its file names, a test on a wire no browser")
def packages_of_a_test():
    few = packages("--for", "tlt_loss.py, 6.1")
    true("gcc" in few, "a compiler")
    for name in ("coccinelle", "chromium", "snakemake", "qemu-system-x86", "tshark",
                 "linux-headers-amd64", "shellcheck", "virtme-ng==1.42"):
        true(name not in few, f"{name} for tlt_loss.py")
    every = packages("--check")
    for config in check.DEFAULT:
        for name, path in check.names_for(config, True).items():
            mine = packages("--for", name)
            equal(mine - every, set(), f"packages of {name} that --check lacks")
            text = path.read_text(encoding="utf-8") if path else ""
            for program, package in PROGRAMS.items():
                true(package in mine or not re.search(rf"[\[(]\"{program}[\" ]", text),
                     f"{name} runs {program}")
            for module, package in LIBRARIES.items():
                true(package in mine or f"{module} import" not in text, f"{name} imports {module}")
            equal("qemu-system-x86" in mine, config is check.STOCK or "kselftest" in name,
                  f"a virtual machine for {name}")


@case("scripts/check NAME: installs and builds for the tests of that name only; no such name, status 2")
def only_what_is_chosen():
    before, sys.argv = sys.argv, ["check", "tlt_loss", "smp_iofd"]
    try:
        args = check.parse_args()
    finally:
        sys.argv = before
    plain, kernels = check.chosen_tests(args)
    equal((plain, [(config.label, list(names)) for config, names in kernels]),
          ([], [("6.1", ["tlt_loss.py, 6.1"]), ("stock", ["smp_iofd.py, stock"])]), "tests")
    asked, was = [], check.script
    check.script = lambda *words: asked.append(words)
    try:
        check.prepare(args, ["tlt_loss.py, 6.1"])
    finally:
        check.script = was
    equal(asked, [("setup", "--for", "tlt_loss.py, 6.1")], "what is installed")
    done = subprocess.run([TOP / "scripts/check", "no_such"], text=True, capture_output=True,
                          check=False)
    equal((done.returncode, done.stdout, done.stderr),
          (2, "", "check: no test has no_such in its name\n"), "a name of no test")


# The pages that are written by hand.
PAGES = (TOP / "README.md", *TOP.glob("*.rst"), *(TOP / "Documentation").glob("*.rst"))


@case("the cases that the pages name are in the tests' files")
def named_cases():
    tests = {path.stem: re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8")))
             for path in check.SELFTESTS.glob("*.py")}
    count = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        # A name in a table's column may go on in the next row: only those that end in their line.
        for test, name in re.findall(r"\b([a-z]+_\w+?)(?:\.py)?(?:``)?:\s\*([^*…\n]+?)\*", text):
            if test in tests and "  " not in name:
                true(name.lower() in tests[test].lower(), f"{page.name}: {test} has no case {name}")
                count += 1
    true(count > 30, f"{count} names")


@case("the coverage table is as scripts/coverage --record writes it: rows of sources, and their sum")
def coverage_table():
    text = coverage.PAGE.read_text(encoding="utf-8")
    rows = {name: (int(ran), int(of), percent) for name, ran, of, percent in re.findall(
        r"^(net/\S+|all) +(\d+) +(\d+) +([0-9.]+)$", text, re.M)}
    total = {name: dict(enumerate([1] * ran + [0] * (of - ran)))
             for name, (ran, of, _) in rows.items() if name != "all"}
    equal([name for name in total if not (TOP / name).exists()], [], "rows of sources that are gone")
    equal(coverage.page(text, total), text, "the page with its own rows")


@case("--help of each script that a user starts: what it does, and how it is called")
def helps():
    for name in ("apps", "bench", "check", "check-debug", "check-smp-debug", "coverage", "demo",
                 "experiment", "figures", "greenlane", "greenlane-cgroup", "guest", "kernel",
                 "kselftest", "lint", "mininet", "modules", "setup"):
        done = subprocess.run([TOP / "scripts" / name, "--help"], text=True, capture_output=True,
                              check=False)
        equal((done.returncode, done.stderr), (0, ""), f"{name}: status, stderr")
        true(len(done.stdout.splitlines()) > 2, f"{name}: {done.stdout}")


# Functions that pages cite: of the kernel, and of a vendor's library.
FOREIGN = {"bcm_cosq_control_dynamic_get", "bcm_port_dscp_map_set", "ets_qdisc_dequeue", "ip_rcv",
           "timer_read"}


@case("each function that a page cites exists")
def cited_functions():
    names = {name for folder in ("net", "include", "tools") for path in (TOP / folder).rglob("*")
             if path.suffix in (".c", ".h", ".py")
             for name in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    count = 0
    for page in PAGES:
        cited = set(re.findall(r"``([a-z_][a-z0-9_]+)\(\)``", page.read_text(encoding="utf-8")))
        equal(sorted(cited - FOREIGN - names), [], f"{page.name}: not in the tree")
        count += len(cited)
    true(count > 30, f"{count} names")


@case("lint words: the prose of C, Python, shell and pages, and nothing else")
def prose():
    words = runpy.run_path(str(TOP / "tools/testing/lint/words"), run_name="words")
    for kind, text, listed in (
            (".c", '/* what */ int what; // what\npr_err("who has come here"); f("what");', 4),
            (".py", '"""What comes."""\nwhat = "tell"\n# None says so\nf"{what} and what is it"\n', 4),
            (".sh", "what=1 # what\necho 'nobody is here now' \"$what\"\n", 2),
            (".rst", "what ``what`` `what`_::\n\n\twhat\n\nline rate, lines\n", 2)):
        seen = words["LISTED"].findall(" ".join(words["PROSE"][kind](text)))
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
            """Of a page with so many listed words in 100."""
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
        true(entries.read_text(encoding="utf-8").endswith("\npage.rst 2.0\n"), "it has fallen")
        findings(4, 3.0)
        subprocess.run([lint / "words", "--record"], check=True)
        true(entries.read_text(encoding="utf-8").endswith("\npage.rst 3.0\n"), "and does not rise")


def run(*command, cwd, **environment):
    """A program's last line on stdout."""
    done = subprocess.run(command, cwd=cwd, env=dict(os.environ, **environment), text=True,
                          capture_output=True, check=False)
    equal(done.returncode, 0, f"status: {done.stderr[-300:]}")
    return done.stdout.strip().rpartition("\n")[2]


@case("scripts: through a link, with CDPATH, beside other files of the same names")
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


@case("scripts/mininet: a script of one's own, with its arguments and its exit status; mistakes")
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
