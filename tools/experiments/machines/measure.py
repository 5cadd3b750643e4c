# SPDX-License-Identifier: GPL-2.0
"""Check the hosts of a lab, and run the jobs of an experiment on them."""

import subprocess
import sys

from experiments import pool
from experiments.machines import Refused, check
from experiments.machines.session import Dead, Sessions


def say(text):
    """A row on stderr."""
    print(f"experiment: {text}", file=sys.stderr, flush=True)


def _checked(sessions, lab, config, ccs):
    """Print the table of the hosts; returns the rate of the links, or raises Refused."""
    found = sessions.each(lambda session: (session, check.look(session)))
    opened, facts = zip(*found) if found else ((), ())
    problems = sessions.errors + [one for session, of in found
                                  for one in check.problems(session, lab, config, ccs, of)]
    ends = [of for session, of in found if session.host.role != "switch"]
    problems += check.differences(ends, lab.mesh and not lab.rate)
    receiver = next((of for session, of in found if session.host.role == "receiver"), None)
    speed = ((receiver or {}).get("device") or {}).get("speed", -1)
    rate = lab.rate or (speed * 10**6 if speed > 0 else None)
    if receiver and not rate:
        problems.append(f"{lab.receiver.name}: {lab.receiver.device} reports no speed: set rate in"
                        " the file of the lab")
    if opened:
        print(check.table(opened, facts), end="\n\n", flush=True)
    for problem in problems:
        say(problem)
    if problems:
        raise Refused
    return rate


def measure(lab, hosts_class, configure):
    """(the configuration with the lab's rate and delay, its jobs, their results, errors).  Raises
    Refused before it changes a host.

    hosts_class: a subclass of LabHosts.  configure(rate): (configuration, jobs), without a rate for
    the check.
    """
    config, jobs = configure(None)
    results, progress, wrong = [], pool.Progress(jobs), []
    try:
        with Sessions(lab.hosts, wrong.append) as sessions:
            try:
                rate = _checked(sessions, lab, config, [job["cc"] for job in jobs])
                config, jobs = configure(rate)
                _run_all(hosts_class(sessions, lab, config), jobs, results, progress)
            except Dead as why:
                wrong.append(str(why))
            except subprocess.CalledProcessError:       # make has printed the reason
                wrong.append("the load generator was not built")
            finally:
                progress.clear()
    except KeyboardInterrupt:
        print(*(f"experiment: {one}\n" for one in dict.fromkeys(wrong)), sep="", end="",
              file=sys.stderr)
        raise
    # A host that died is reported by its request, and by the end of its session.
    return config, jobs, results, list(dict.fromkeys(wrong))


def _run_all(hosts, jobs, results, progress):
    """All jobs, whose results are appended as they are complete."""
    hosts.prepare()
    hosts.config["delay"] = (hosts.lab.rtt or hosts.rtt(jobs[0])) // 4
    for job in jobs:
        results.append(hosts.run(job))
        progress.show(results)
