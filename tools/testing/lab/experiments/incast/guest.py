#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The guest's half of the incast: build the network, do the runs.

	run.py CONFIG.json

The configuration holds the network and a list of jobs (congestion control,
number of flows).  Each run is one line of JSON on stdout, printed as soon as
it is done.
"""

import json
import os
import pathlib
import subprocess
import sys

import capture
import units
from counters import Counters
from topology import RECEIVER, Network, enter, read_in, write_sysctl

LOADGEN = pathlib.Path(__file__).resolve().parent.parent / "loadgen/incast"
# Loaded in this order, those that have been built.
MODULES = ("net/sched/sch_color.ko", "net/sched/sch_iofd.ko", "net/ipv4/greenlane.ko",
           "net/ipv4/tcp_dcqcn.ko", "net/ipv4/tcp_dart.ko", "net/ipv4/tcp_tlt.ko",
           "net/ipv4/tcp_xpass.ko", "net/ipv4/tcp_aeolus.ko")


def load_modules():
    """Load what there is of our modules."""
    top = os.environ.get("GL_MODDIR")
    for module in MODULES:
        path = pathlib.Path(top or "/", module)
        if top and path.exists():
            subprocess.run(["insmod", path], check=True)


def incast(network, config, job):
    """Run the load generator once; returns its report."""
    command = [LOADGEN, "--receiver", RECEIVER, "--address",
               network.receiver_address(), "--cc", units.cc_name(job["cc"]),
               "--flows", job["flows"], "--bytes", config["bytes"],
               "--rounds", config["rounds"], "--gap", config["gap"] // 1000,
               "--bulk", config["bulk"], "--lead", config["lead"] // 1000,
               "--duration", config["duration"] // 1000]
    command += ["--fresh"] * config["fresh"]
    for sender in network.senders:
        command += ["--sender", sender]
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        return {"error": f"the load generator failed ({done.returncode})"}
    return json.loads(done.stdout)


_found = {}     # net.ipv4's settings that a run has changed: what they were before


def set_hosts(network, config, cc, *settings):
    """What each host has to know of its line and of a congestion control, CC[:NAME=VALUE]...;
    what the run before it has set is put back."""
    # In a mix each socket that wants ECN asks for it by itself, and no other has it.
    values = {"tcp_ecn": int("dctcp" in cc and len(units.ccs(cc)) == 1),
              "greenlane_ecn": int(config.get("greenlane_ecn", False))}
    values.update((name, config["rate"] // 10**6) for name in ("xpass_rate", "dcqcn_rate"))
    for setting in (*cc.split(":")[1:], *settings):
        name, value = setting.split("=")
        values[name] = value
        if not pathlib.Path("/proc/sys/net/ipv4", name).exists():
            sys.exit(f"no setting net.ipv4.{name}")
    for name in values.keys() - _found.keys():
        try:
            _found[name] = read_in(network.hosts[0], f"/proc/sys/net/ipv4/{name}")
        except FileNotFoundError:       # of a module that is not there
            pass
    for host in network.hosts:
        for name, value in {**_found, **values}.items():
            write_sysctl(host, f"net/ipv4/{name}", str(value))
    enter(None)


def run(network, config, job, load=incast):
    """One congestion control, one number of flows.

    A job may have its own idea of some of the configuration.
    """
    config = dict(config, **job)
    set_hosts(network, config, job["cc"])
    network.renew_port(job.get("qdisc"))
    senders, receiver = Counters(network.senders), Counters([RECEIVER])
    enter(None)
    watch = capture.Capture(network) if config.get("capture") else None
    result = load(network, config, job)
    result.update(job)
    if watch and "error" not in result:
        result.update(capture.look(watch.stop(), config))
    result["senders"] = Counters(network.senders).since(senders)
    result["receiver"] = Counters([RECEIVER]).since(receiver)
    enter(None)
    result["port"] = json.loads(network.port_stats() or "[]")
    return result


def main(what, network_of, run_one):
    """All jobs of the configuration."""
    try:
        config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
        load_modules()
        network = network_of(config)
        network.build()
        print(json.dumps({"ready": True}), flush=True)
        for job in config["jobs"]:
            print(json.dumps(run_one(network, config, job)), flush=True)
    except subprocess.CalledProcessError as why:
        sys.exit(f"{what}: {why.cmd[0]} failed")    # and has said why


if __name__ == "__main__":
    main("incast", Network, run)
