# SPDX-License-Identifier: GPL-2.0
"""Kinds of experiments: a folder each, which no other file names.

NAME/__init__.py is the host's half:

    COLUMNS             the table: (title, a row's key, format) each
    DEFAULTS            of the options that all experiments have (__main__.py)
    add_arguments(add)  adds its own options; add is add_argument()
    wrong(args)         the reason why the command line is refused, or None
    configure(args)     (configuration, jobs); a job has at least cc and flows
    summaries(config, results)      the rows of the table
    plot(config, results, rows, args)           optional: args.plot is a prefix
    notes(config, results, rows)                optional: text below the table
    parse_cc(text)                              optional: raises ValueError
    on_machines()       optional, with an option --lab: the subclass of machines.lab_hosts.LabHosts

NAME/guest.py is the guest's half (experiments.jobs).  In the modules' names, - is _.
"""

import importlib
import pkgutil


def known():
    """{name on the command line: module} of all kinds."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if found.ispkg]
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}")
            for name in names}


def example(kind):
    """The first command line in a kind's description."""
    return next(line for line in kind.__doc__.splitlines() if line.startswith("\tscripts/"))
