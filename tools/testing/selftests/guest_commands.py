#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The programs accept their commands on the pages.

Each program parses the command, and an experiment computes its runs, without a guest.
ops_pages executes the commands of tc, ip and sysctl.
"""
import contextlib
import importlib
import io
import os
import pathlib
import re
import shlex
import sys
import tempfile

from experiments.figures import catalogue
from lab import TOP
from lab.tap import case, equal, main, true

PAGES = {path.name: path.read_text(encoding="utf-8")
         for path in sorted((TOP / "Documentation").glob("*.rst"))}
MODULES = {"experiment": "experiments.__main__", "figures": "experiments.figures.__main__",
           "bench": "experiments.bench.__main__", "check": "lab.check.__main__",
           "guest": "lab.guest.__main__"}
COMMAND = re.compile(rf"scripts/({'|'.join(MODULES)}) (?!.*(?:--->|\[options\]))")
# The lab of experiments.rst, to which the commands with --lab refer.
LAB = re.compile(r"^\trate = .*\n(?:\t.*\n|\n(?=\t))*", re.M)


def commands(text):
    """The commands in the literal blocks of a page, with the variables that a block sets."""
    text = re.sub(r"\\\n\s*", "", text)
    for block in re.findall(r"(?:^\t.*\n)+", text, re.M):
        rows = [row.strip() for row in block.splitlines()]
        values = dict(re.findall(r'\b(\w+)="([^"]*)"$', "\n".join(rows), re.M))
        for row in rows:
            if COMMAND.match(row):
                for name, value in values.items():
                    row = row.replace(f"${name}", value)
                # [--option]: with it
                yield row.replace("[", "").replace("]", "")


def accepts(row):
    """"", or the message with which a program refuses a command."""
    name = COMMAND.match(row)[1]
    module = importlib.import_module(MODULES[name])
    said, before = io.StringIO(), sys.argv
    sys.argv = [name, *shlex.split(row, comments=True)[1:]]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            parsed = module.parse_args()
            if name == "experiment" and parsed[1].kind != "advise":
                module.configure(*parsed)
            if name == "figures":
                catalogue.load(parsed[0].scale, parsed[0].figures)
    except SystemExit as why:
        return "" if not why.code else said.getvalue().strip() or str(why.code)
    except catalogue.Wrong as why:
        return str(why)
    finally:
        sys.argv = before
    return ""


@contextlib.contextmanager
def here():
    """A directory with the file of the lab."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        text = LAB.search(PAGES["experiments.rst"])[0]
        pathlib.Path(directory, "lab.toml").write_text(
            re.sub(r"^\t", "", text, flags=re.M), encoding="utf-8")
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)


@case("each command is accepted", page=tuple(name for name in PAGES if any(commands(PAGES[name]))))
def accepted(page):
    with here():
        for row in commands(PAGES[page]):
            equal(accepts(row), "", f"{page}: {row}")
            for path in re.findall(r" (tools/\S+)", row):
                true((TOP / path).exists(), f"{page}: {path} exists")


@case("the pages have commands, and a wrong one is found")
def found():
    count = sum(1 for text in PAGES.values() for _ in commands(text))
    true(count >= 60, f"{count} commands")
    with here():
        for row, message in (("scripts/experiment incast --fan-out 3", "--fan-out"),
                             ("scripts/experiment load --apart 1,2", "--apart: needs a mix"),
                             ("scripts/figures tlt-fig99", "no figure of that name"),
                             ("scripts/check --kernels 7.3", "--kernels"),
                             ("scripts/guest --kernal 7.3 -- true", "--kernal"),
                             ("scripts/bench hokks", "hokks")):
            true(message in accepts(row), f"{row}: {accepts(row)!r}")


if __name__ == "__main__":
    main()
