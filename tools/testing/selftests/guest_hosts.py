#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/experiment incast and load --lab: hosts over ssh, which are as before afterwards.

	h0, h1: senders ---- sw ---- h2: receiver       a namespace each; ssh runs `sshd -i` in it

ssh's ProxyCommand starts the host's sshd: the path of a login is the real one, without a network
for it.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from experiments.apps import unpacked
from experiments.apps.login import Login, sshd
from experiments.kinds.load.schedule import Schedule
from experiments.machines.incast import Incast
from experiments.machines.load import Load
from experiments.machines.session import Session
from lab import TOP
from lab.net import modules
from lab.net.namespace import ACTIVE
from lab.net.star import Star
from lab.tap import Skip, case, equal, main, true, within

SYSCTLS = r"^net\.(ipv4\.(tcp|greenlane|[a-z]+_rate)|core\.somax)"
# Lists of congestion controls, in the order in which modules were loaded.
LISTS = ("tcp_available_congestion_control", "tcp_allowed_congestion_control")
SSH = "    ProxyCommand ip netns exec %n {here}/sshd -i -f {here}/sshd_config\n"


class Lab(Login):
    """The hosts, and a directory with keys and configurations."""

    def __init__(self, here):
        super().__init__(here, SSH)
        modules.load_all()
        apps = unpacked.in_guest("openssh-server")
        program, _ = sshd(apps)
        script = self.here / "sshd"
        script.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={unpacked.libraries(apps)}"
                          f" exec {program} \"$@\"\n")
        script.chmod(0o755)

    def write(self, *, rate='rate = "10gbit"\n', switch=True, **replaced):
        """Write lab.toml; `replaced` are other texts in it."""
        text = rate
        for number, role in enumerate(("sender", "sender", "receiver")):
            text += self.host(f"h{number}", role, address=f"10.0.{number}.2", device="eth0")
        text += self.host("sw", "switch", ports=["p2"]) * switch
        for old, new in replaced.items():
            true(old in text, f"{old} in the file")
            text = text.replace(old, new)
        path = self.here / "lab.toml"
        path.write_text(text)
        return path

    def start(self, *options, kind="incast", **lab):
        """Start an experiment."""
        return subprocess.Popen(
            [TOP / "scripts/experiment", kind, "--lab", self.write(**lab), "--no-virtual",
             "--cc", "dctcp,tlt_dctcp", *["--flows", "10", "--rounds", "2"] * (kind == "incast"),
             "--json", self.here / "out.json", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, *options, **lab):
        """Run the experiment: (exit status, stdout, stderr)."""
        child = self.start(*options, **lab)
        out, err = child.communicate()
        return child.returncode, out, err


def shown(ns, command):
    """The output of a command on a host."""
    with ns:
        return subprocess.check_output(command.split(), text=True)


def state(net):
    """All that an experiment changes on hosts and switches, a row each."""
    found = [f"process {words}" for words in running().values()]
    for ns in (*net.hosts, net.switch):
        for command in ("ip route show", "tc qdisc show", f"sysctl -a --pattern {SYSCTLS}"):
            rows = shown(ns, command).splitlines()
            true(rows, f"output of {command}")
            found += [f"{ns.name}: {row}" for row in rows if not any(x in row for x in LISTS)]
    return set(found)


def running(program=None):
    """{pid: [words]} of sessions and load generators, on all hosts; or of one of both."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if words[0] in ([program] if program else ["incast", "play", "python3"]):
                found[int(path.parts[2])] = words[:4]
    return found


@contextlib.contextmanager
def restored():
    """A lab, which must be as before at the end; its time is the far end's patience."""
    with tempfile.TemporaryDirectory() as here, Star([10_000] * 3, cc="cubic") as net:
        for number in range(3):
            net.switch.tc(f"qdisc del dev p{number} root")
        for host in net.hosts:
            host.sysctl(ACTIVE, 1)
        lab = Lab(here)
        before = state(net)
        yield lab, net
        deadline = time.monotonic() + 40
        while (now := state(net)) != before and time.monotonic() < deadline:
            time.sleep(1)
        equal(sorted(now ^ before), [], "routes, qdiscs, sysctls and processes that differ")
        equal(os.listdir(lab.here / "tmp"), [], "files of the hosts")


@case("an incast of three hosts: completion times, counters, the switch's port", restored)
def incast(lab, _net):
    status, out, err = lab.run()
    equal((status, err), (0, ""), "exit status, stderr")
    report = json.loads((lab.here / "out.json").read_text())
    config = report["config"]
    equal((config["senders"], config["rate"], config["request"]), (2, 10**10, True), "the lab's")
    # Star: a NIC's delay is 10 us.
    within(config["delay"], 5_000, 6_000, "a quarter of the RTT, ns")
    equal([run["cc"] for run in report["runs"]], ["dctcp@measured", "tlt_dctcp@measured"], "runs")
    for run, row in zip(report["runs"], report["summary"]):
        equal([len(times) for times in run["fct_ns"]], [20, 20], "flows of each round")
        within(row["ratio"], 1, 1.3, f"{run['cc']}: p99.9 / ideal")
        true(run["devices"]["h2"]["rx_bytes"] > 2 * 20 * 32768, f"bytes: {run['devices']}")
        true(run["port"][0]["kind"] == "color" and run["port"][0]["bytes"] > 2 * 20 * 32768,
             f"port: {run['port']}")
        marked = run["senders"]["greenlane"].get("ImportantSent", 0)
        equal(marked > 0, run["cc"].startswith("tlt"), f"{run['cc']}: {marked} important packets")
    host = re.search(r"^h2 +receiver +\S+ +(\S+) +(\S+) +[+-]\d+ ms +eth0 +10 Gbit/s +1500$", out, re.M)
    true(host and "-" not in host.groups(), f"version, status: {out}")


LOAD = ("--background", "60", "--workload", "cache-follower", "--flows", "4", "--foreground", "10")


@case("a load of three hosts: each flow's time, the counters of all hosts and ports", restored)
def load(lab, _net):
    status, out, err = lab.run(*LOAD, "--seed", "1,2", kind="load")
    equal((status, err), (0, ""), "exit status, stderr")
    report = json.loads((lab.here / "out.json").read_text())
    config = report["config"]
    equal((config["topology"], config["hosts"], config["rate"], config["request"]),
          ("star", 3, 10**10, 1), "the lab's")
    # TCP rounds each sample of 20 us to microseconds.
    within(config["delay"], 4_750, 6_000, "a quarter of the RTT, ns")
    equal([(run["cc"], run["seed"]) for run in report["runs"]],
          [(f"{cc}@measured", seed) for seed in (1, 2) for cc in ("dctcp", "tlt_dctcp")], "runs")
    for run in report["runs"]:
        plan = Schedule(dict(config, load=run["load"], seed=run["seed"]))
        times, answers = run["fct_ns"], len(plan.answers)
        equal(len(times), 2 * answers, "requests and answers")
        equal((set(times[:answers]), 0 in times[answers:]), ({0}, False), "times: only answers'")
        # Each answer is at the line rate at most, after a round trip.
        equal([message.bytes for message, time in zip(plan.answers, times[answers:])
               if time < 8 * message.bytes / 10 + 4 * config["delay"]], [], "answers that are too fast")
        total = sum(message.bytes for message in plan.answers) + answers
        within(sum(run["bytes"].values()), 0.8 * total, total, "bytes until the schedule's end")
        equal(sum(run["ends"].values()), 2 * run["connections"], "ends with their congestion control")
        equal(run["retrans"].keys(), {"background", "foreground"}, "classes, without losses too")
        true(all(of["rx_bytes"] > 10_000 for of in run["devices"].values()), f"{run['devices']}")
        true(run["switches"]["p"]["color"]["bytes"] > 100_000, f"ports: {run['switches']}")
        marked = run["counters"]["greenlane"].get("ImportantSent", 0)
        equal(marked > 0, run["cc"].startswith("tlt"), f"{run['cc']}: {marked} important packets")
    equal([row["unfinished"] for row in report["summary"]], [0, 0], "unfinished flows")
    true(re.search(r"^dctcp@measured +40 ", out, re.M), f"a row: {out}")


@case("a host with another processor compiles the load generator", kind=(Incast, Load))
def compiled(kind):
    with tempfile.TemporaryDirectory() as here:
        for name, path in kind.SOURCES.items():
            pathlib.Path(here, name).parent.mkdir(exist_ok=True)
            shutil.copy(TOP / "tools/experiments/traffic/loadgen" / path, pathlib.Path(here, name))
        done = subprocess.run([*kind.compile_words(), "program"], cwd=here, capture_output=True,
                              text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""), "exit status, stderr")


@case("load: a host dies in the middle, and options that a lab does not have", restored)
def load_fails(lab, _net):
    child = lab.start(*LOAD, "--load", "1", "--background", "200", kind="load")
    try:
        until(lambda: len(running("play")) == 3, "three load generators")
        time.sleep(2)
        os.kill(generator(1, "play"), signal.SIGKILL)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    equal((child.returncode, err.count("\n")), (1, 1), f"status, rows: {err}")
    # A peer may notice first that its connections are reset.
    true(re.match(r"experiment: h\d: (the load generator ended with -9|play: connection)", err), err)
    # A flow that is complete after --drain is unfinished, although the hosts await each other.
    status, _, err = lab.run("--background", "0", "--load", "1000", "--drain", "0us", kind="load")
    equal(status, 1, "exit status")
    equal(len(re.findall(r"^experiment: \w+@measured, \d+ flows: [1-9]\d* unfinished$", err, re.M)), 2,
          f"unfinished flows: {err}")
    session = Session.__new__(Session)      # an incast, which reports a flow and ends with 1
    vars(session).update(
        host=lab, _result=lambda done, _: done,
        _rows=[{"status": 1, "out": '{"unfinished": 3}', "err": ""}])
    equal(session.row(1), {"unfinished": 3}, "the row of an incast with unfinished flows")
    status, _, err = lab.run("--hosts", "4", "--cc", "reno+cubic", "--segments", kind="load")
    equal((status, err), (2, "experiment: --lab: without --hosts, --segments, a mix; see --help\n"),
          "status, stderr")


def until(true_of, what):
    """Wait up to a minute."""
    deadline = time.monotonic() + 60
    while not true_of():
        true(time.monotonic() < deadline, what)
        time.sleep(0.5)


@contextlib.contextmanager
def halfway():
    """An experiment that has changed the hosts, and whose load generators run."""
    with restored() as (lab, net):
        child = lab.start("--rounds", "100", "--gap", "1s")
        try:
            until(lambda: len(running("incast")) == 3, "three load generators")
            time.sleep(5)
            equal(net.hosts[0].sysctl("net.ipv4.tcp_ecn"), "1", "tcp_ecn of dctcp")
            yield lab, net, child
        finally:
            child.kill()
            child.wait()


def generator(number, program="incast"):
    """The pid of a sender's load generator."""
    return next(pid for pid, words in running(program).items() if words[2] == str(number))


def parent(pid):
    """The parent of a process."""
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@case("^C in the middle: all is restored", halfway)
def interrupted(_lab, _net, child):
    os.killpg(child.pid, signal.SIGINT)     # as a terminal does
    out, err = child.communicate(timeout=60)
    equal((child.returncode, err), (130, ""), "exit status, stderr")
    equal(running(), {}, "processes, at once")
    true("h0" in out, "the table of the hosts")


@case("a sender's sshd is killed: one error names the host and its changes, and all is restored",
      halfway)
def sshd_dies(_lab, _net, child):
    # sshd starts the session, and that the load generator.
    os.kill(parent(parent(generator(1))), signal.SIGKILL)
    _, err = child.communicate(timeout=60)
    equal((child.returncode, err.count("\n"), err.startswith("experiment: h1: ")), (1, 1, True),
          f"status, rows, host: {err}")
    true("tcp_ecn (was 2)" in err, f"its changes: {err}")


@case("the host's half gets two signals at once: all is restored", halfway)
def two_signals(_lab, _net, child):
    session = parent(generator(1))
    for number in signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT:
        os.kill(session, number)
    _, err = child.communicate(timeout=60)
    equal((child.returncode, err.count("\n")), (1, 1), f"status, rows: {err}")


@case("a host hangs: an error within half a minute, and the others are restored", halfway)
def hangs(_lab, _net, child):
    session = parent(generator(1))
    began = time.monotonic()
    os.kill(session, signal.SIGSTOP)
    out, err = child.communicate(timeout=60)
    within(time.monotonic() - began, 10, 40, "seconds")
    equal((child.returncode, err.count("\n")), (1, 1), f"status, rows: {err}")
    true(err.startswith("experiment: h1: no sign of life for 20 s; it restores by itself"), err)
    true("h1" in out, "the table of the hosts")
    true({words[2] for words in running("incast").values()} <= {"1"}, "load generators of others")
    os.kill(session, signal.SIGCONT)


@case("^C while a host hangs does not wait for the measurement; the others are restored", halfway)
def interrupted_hang(_lab, _net, child):
    session = parent(generator(1))
    os.kill(session, signal.SIGSTOP)
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=50)
    equal((child.returncode, err.count("\n")), (130, 1), f"status, rows: {err}")
    true(err.startswith("experiment: h1: no "), err)
    os.kill(session, signal.SIGCONT)


@case("routes keep their source address and MTU; a qdisc that somebody sets meanwhile remains",
      restored)
def others(lab, net):
    net.hosts[0].ip("route add 10.0.2.0/24 via 10.0.0.1 src 10.0.0.2 mtu 1400 advmss 1300"
                    " features ecn congctl reno initcwnd 12")
    child = lab.start("--rounds", "100", "--gap", "1s", "--rto-min", "5ms")
    try:
        until(lambda: len(running("incast")) == 3, "three load generators")
        route, = json.loads(shown(net.hosts[0], "ip -j route get 10.0.2.2"))
        metrics, = route["metrics"]
        equal([(metrics | route)[key] for key in ("prefsrc", "mtu", "advmss", "congestion", "initcwnd")],
              ["10.0.0.2", 1400, 1300, "reno", 12], "the route's")
        true({"ecn", "rto_min"} <= metrics.keys(), f"features, rto_min: {metrics}")
        net.switch.tc("qdisc replace dev p2 root pfifo")
    finally:
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate(timeout=60)
    equal((child.returncode, err.count("\n")), (130, 1), f"status, rows: {err}")
    true("sw: not restored: tc qdisc del dev p2 root" in err, err)
    true("pfifo" in shown(net.switch, "tc qdisc show dev p2"), "the other's qdisc")
    net.switch.tc("qdisc del dev p2 root")
    net.hosts[0].ip("route del 10.0.2.0/24")


@case("a shell that prints a banner without a newline, and JSON", restored)
def banner(lab, _net):
    bashrc = lab.here / "bashrc"
    bashrc.write_text("""echo '{"number": "one"}'; echo '{'; printf 'Welcome {'\n""")
    with open(lab.here / "sshd_config", "a", encoding="ascii") as file:
        file.write(f"ForceCommand . {bashrc}; eval \"$SSH_ORIGINAL_COMMAND\"\n")
    status, _, err = lab.run()
    equal((status, err), (0, ""), "exit status, stderr")


@case("the experiment is killed: every host restores itself", halfway)
def experiment_dies(_lab, _net, child):
    child.kill()
    child.communicate(timeout=60)


@case("the experiment hangs, with open connections: every host restores itself", halfway)
def experiment_hangs(_lab, _net, child):
    child.send_signal(signal.SIGSTOP)
    until(lambda: not running(), "no session is left")


@case("a load generator is killed: the error names its host, and all is restored", halfway)
def generator_dies(_lab, _net, child):
    os.kill(generator(1), signal.SIGKILL)
    _, err = child.communicate(timeout=60)
    equal((child.returncode, err), (1, "experiment: h1: the load generator ended with -9\n"),
          "status, stderr")
    equal(running(), {}, "processes, at once")


@case("a host without the module, a busy switch port, a wrong address: a message each, no change",
      restored)
def lacks(lab, net):
    net.switch.tc("qdisc add dev p2 root pfifo")
    net.hosts[2].ip("link set eth0 mtu 1400")
    modules.unload("tcp_tlt")
    status, _, err = lab.run(**{"10.0.1.2": "10.0.1.3"})
    net.switch.tc("qdisc del dev p2 root")
    net.hosts[2].ip("link set eth0 mtu 1500")
    modules.load_all()
    equal(status, 1, "exit status")
    for part in ("h0: no tlt_dctcp: modprobe tcp_tlt",
                 "h1: eth0 does not have the address 10.0.1.3",
                 "h2: eth0 has an MTU of 1400", "sw: p2 has the qdisc pfifo", "different MTUs"):
        equal(err.count(f"experiment: {part}"), 1, f"{part} in {err}")


@case("a wrong key, an unreachable host: a message for each, no change", restored)
def refused(lab, _net):
    (lab.here / "other").write_text((lab.here / "host").read_text())
    (lab.here / "other").chmod(0o600)
    (lab.here / "ssh_other").write_text(
        (lab.here / "ssh_config").read_text().replace(f"{lab.here}/user", f"{lab.here}/other"))
    text = f'ssh = "h0"\noptions = ["-F", "{lab.here}/ssh_config"]'
    status, _, err = lab.run(**{text: text.replace("ssh_config", "ssh_other"),
                                'ssh = "h1"': 'ssh = "h9"'})
    equal((status, err.count("\n")), (1, 2), f"exit status, messages: {err}")
    true("experiment: h0: " in err and "Permission denied (publickey" in err, f"h0: {err}")
    true("experiment: h9: " in err, f"h9: {err}")


@case("errors of lab.toml: a message each, with its key", restored)
def wrong(lab, _net):
    status, out, err = lab.run(rate='rate = "fast"\nspeed = 1\n',
                               **{'role = "receiver"': 'role = "recipient"', '"10.0.1.2"': '"h1"',
                                  'ssh = "h0"': 'ssh = "h0"\nport = "22"', '"h1"\n': '"-h1"\n'})
    equal((status, out), (2, ""), "exit status, stdout")
    path = lab.here / "lab.toml"
    equal(sorted(row.removeprefix(f"experiment: {path}: ") for row in err.splitlines()), [
        "host 1: port: not a number",
        "host 2: address: '-h1' is no IPv4 or IPv6 address",
        "host 2: ssh: '-h1' would be an option of ssh: use options",
        "host 3: role: 'recipient'; there are receiver, sender, switch",
        "host: 0 receivers; one is needed",
        "rate: not a rate: fast",
        "speed: unknown; there are rate, rtt, host"], "errors")


def prepare():
    """The same program, in a guest."""
    if os.environ.get("GL_DEBUG"):
        raise Skip("no rule of the kernel's, and slow there")
    unpacked.in_guest("openssh-server", slow=True)


if __name__ == "__main__":
    main(prepare)
