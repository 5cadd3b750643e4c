#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment incast and load --lab on three virtual machines, from nothing to the plot.

	h0: sender ---- sw: Linux switch, 100 Mbit/s ---- h1: receiver

Each is a QEMU with the distribution's kernel, an address for ssh and one for each link.  Without
KVM they take minutes, so a check then skips this file; GL_EMULATE=1 runs it.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from experiments.apps.login import Login
from lab import TOP
from lab.guest import CACHE, kernel_options, overlay, qemu
from lab.tap import Skip, case, equal, main, true

RATE = "100mbit"
SSH = """\
    HostName 127.0.0.1
    ConnectTimeout 60
Host h0
    Port 2200
Host sw
    Port 2201
Host h1
    Port 2202
"""
# (name, network cards beside that of ssh, addresses, router)
MACHINES = (
    ("sw", ("socket,listen=127.0.0.1:3001", "socket,listen=127.0.0.1:3000"),
     ("eth1=10.9.1.1/24", "eth2=10.9.0.1/24"), None),
    ("h0", ("socket,connect=127.0.0.1:3000",), ("eth1=10.9.0.2/24",), "10.9.0.1"),
    ("h1", ("socket,connect=127.0.0.1:3001",), ("eth1=10.9.1.2/24",), "10.9.1.1"),
)
# The port of a link of 100 Mbit/s: the threshold of red is a BDP of 2 ms.
PORT = ("--limit", "200k", "--red", "50k", "--ecn", "30k")
FLOWS = ("--flows", "20", "--rounds", "2")


def start(name, nics, addresses, via, here, apps):
    """Start a machine; returns its scripts/guest."""
    port = re.search(rf"Host {name}\n +Port (\d+)", SSH)[1]
    words = ["--cpus", "1", "--mem", "1G", "--timeout", "3000", "--env", f"GL_APPS={apps}",
             "--log", here / f"{name}.log", "--nic", f"user,hostfwd=tcp:127.0.0.1:{port}-:22"]
    for nic in nics:
        words += ["--nic", nic]
    return subprocess.Popen(
        [TOP / "scripts/guest", "--machine", "qemu", "--kernel", "stock", *words, "--",
         sys.executable, "-m", "experiments.apps.machine", here, "eth0=10.0.2.15/24", *addresses,
         *(["via", via] if via else [])], stdout=subprocess.PIPE, text=True)


def await_login(here, name):
    """Wait until a machine's sshd answers."""
    deadline = time.monotonic() + 120
    while subprocess.run(["ssh", "-F", here / "ssh_config", name, "true"], check=False,
                         stderr=subprocess.DEVNULL).returncode:
        true(time.monotonic() < deadline, f"ssh {name}")
        time.sleep(1)


@contextlib.contextmanager
def machines():
    """The machines, ready for ssh: (directory, {name: process})."""
    apps = subprocess.check_output([TOP / "scripts/apps", "openssh-server"], text=True).strip()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as here, contextlib.ExitStack() as stack:
        here = pathlib.Path(here)
        login = Login(here, SSH)
        (here / "lab.toml").write_text(
            f'rate = "{RATE}"\n' + login.host("h0", "sender", address="10.9.0.2", device="eth1")
            + login.host("h1", "receiver", address="10.9.1.2", device="eth1")
            + login.host("sw", "switch", ports=["eth1"]))
        running = {}
        for name, nics, addresses, via in MACHINES:
            running[name] = stack.enter_context(start(name, nics, addresses, via, here, apps))
            stack.callback(running[name].terminate)
            time.sleep(5)           # a machine connects to the switch, which has to listen
        for name, process in running.items():
            equal(process.stdout.readline(), "ready\n", f"{name}: {here / name}.log")
            await_login(here, name)
        yield here, running


def experiment(here, kind, *options):
    """Start an experiment."""
    return subprocess.Popen(
        [TOP / "scripts/experiment", kind, "--lab", here / "lab.toml", "--cc", "dctcp,tlt_dctcp",
         *PORT, "--json", here / "out.json", "--plot", here / "out", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def complete(here, kind, *options):
    """Run an experiment on the machines and in virtual time; returns its report."""
    began = time.monotonic()
    child = experiment(here, kind, *options)
    out, err = child.communicate(timeout=1200)
    print(*(f"# {row}" for row in out.splitlines()), sep="\n")
    print(f"# the {kind} took {time.monotonic() - began:.0f} s")
    equal(child.returncode, 0, f"exit status: {err}")
    report = json.loads((here / "out.json").read_text(encoding="utf-8"))
    equal([run["cc"] for run in report["runs"]],
          ["dctcp@measured", "dctcp@virtual", "tlt_dctcp@measured", "tlt_dctcp@virtual"], "runs")
    true((here / "out.svg").stat().st_size > 1000, "the plot")
    return report


@case("three machines, from nothing to the plot; then one of them dies in the middle", machines)
def incast(here, running):
    report = complete(here, "incast", *FLOWS)
    equal({len(times) for run in report["runs"] for times in run["fct_ns"]}, {20}, "flows")
    marked = [run["senders"]["greenlane"].get("ImportantSent", 0) for run in report["runs"][::2]]
    true(marked[0] == 0 < marked[1], f"important packets: {marked}")

    report = complete(here, "load", "--background", "30", "--workload", "web-server", "--load", "20",
                      "--drain", "5s")
    equal([row["unfinished"] for row in report["summary"]], [0] * 4, "unfinished flows")
    marked = [run["counters"]["greenlane"].get("ImportantSent", 0) for run in report["runs"][::2]]
    true(marked[0] == 0 < marked[1], f"important packets: {marked}")

    child = experiment(here, "incast", *FLOWS, "--no-virtual", "--rounds", "100", "--gap", "1s")
    time.sleep(40)
    equal(child.poll(), None, "it runs")
    running["h0"].terminate()
    _, err = child.communicate(timeout=120)
    equal((child.returncode, err.count("\n")), (1, 1), f"exit status, rows: {err}")
    true(err.startswith("experiment: h0: ") and "tcp_ecn" in err, err)
    ssh = ["ssh", "-F", here / "ssh_config"]
    equal(subprocess.check_output([*ssh, "h1", "cat", "/proc/sys/net/ipv4/tcp_ecn"], text=True),
          "2\n", "tcp_ecn of the receiver")
    port = subprocess.check_output([*ssh, "sw", "tc", "qdisc", "show", "dev", "eth1"], text=True)
    true("color" not in port, f"the switch's port: {port}")


def prepare():
    """A network namespace for ssh and the machines' links."""
    # Builds need the network; after isolate() they are complete.
    for script in ("apps", "openssh-server"), ("modules", *kernel_options("qemu", "stock")):
        subprocess.run([TOP / "scripts" / script[0], *script[1:]], stdout=sys.stderr, check=True)
    overlay.isolate()
    kdir = pathlib.Path(subprocess.check_output(
        [TOP / "scripts/kernel", *kernel_options("qemu", "stock")], text=True).strip())
    if not (qemu.kvm_works(kdir, CACHE) or os.environ.get("GL_EMULATE")):
        raise Skip("no KVM: emulated machines take minutes (GL_EMULATE=1)")


if __name__ == "__main__":
    main(prepare)
