#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The tdc tests of color and iofd (tc-testing/tc-tests/qdiscs), run by the kernel's own tdc.

	 tdc ---> tc ---> [ color or iofd ] dummy1
"""
import json
import os
import pathlib
import re
import subprocess
import sys

from lab.net import modules
from lab.tap import case, equal, main

TOP = pathlib.Path(os.environ["GL_TOP"])
TDC = pathlib.Path(os.environ["GL_KERNEL_SOURCE"]) / "tools/testing/selftests/tc-testing"


@case("each test of tdc passes", kind=("color", "iofd"))
def tdc(kind):
    modules.load("sch_color", "sch_iofd")
    # tdc gives tc this environment only.
    (TDC / "tdc_config_local.py").write_text(
        f"ENVIR = {{'TC_LIB_DIR': {os.environ['TC_LIB_DIR']!r}}}\n", encoding="utf-8")
    tests = TOP / f"tools/testing/selftests/tc-testing/tc-tests/qdiscs/{kind}.json"
    done = subprocess.run([sys.executable, "tdc.py", "-f", tests], cwd=TDC, text=True,
                          capture_output=True, check=False)
    passed = re.findall(r"^ok \d+ (\w+) - [^#\n]*$", done.stdout, re.MULTILINE)
    equal(passed, [test["id"] for test in json.loads(tests.read_text(encoding="utf-8"))],
          f"tests that passed; tdc's output:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


main()
