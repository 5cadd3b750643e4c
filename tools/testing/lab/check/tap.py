# SPDX-License-Identifier: GPL-2.0
"""Reading TAP: what a test file said, line by line, against what it planned."""

import re

# Exit status of a file whose cases were all skipped, as the kernel's selftests have it.
_SKIPPED = 4
_RESULT = re.compile(r"(\s*)(ok|not ok)\b\s*(\d*)\s*-?\s*([^#]*)(#.*)?$")
_PLAN = re.compile(r"\s*1\.\.(\d+)(\s*# SKIP)?")
_KTAP_SUITE = re.compile(r"\s*# Subtest:")


class Outcome:
    """Counts, and the lines that explain the failures."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.reasons = []

    def fail(self, reason):
        """One more failure, not told by a TAP line."""
        self.failed += 1
        self.reasons.append(reason)

    def add(self, other, prefix=""):
        """Take in another outcome."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += [prefix + reason for reason in other.reasons]


def read(text, status, complaint=""):
    """The outcome of a test file: its stdout, exit status and last stderr."""
    outcome = Outcome()
    planned, explaining = None, False
    for line in text.splitlines():
        plan, result = _PLAN.match(line), _RESULT.match(line)
        if plan and planned is None:
            planned = int(plan[1])
            outcome.skipped += bool(plan[2])        # all of the file, as one
            planned += bool(plan[2])
        elif result:
            skipped = "skip" in (result[5] or "").lower()
            explaining = result[2] == "not ok"
            if explaining:
                outcome.fail(line)
            elif skipped:
                outcome.skipped += 1
            else:
                outcome.passed += 1
        elif explaining and line.startswith("#"):
            outcome.reasons.append(line)
    seen = outcome.passed + outcome.failed + outcome.skipped
    if planned is None:
        outcome.fail("no plan: died before its first test?")
    elif seen < planned:
        for _ in range(planned - seen):
            outcome.failed += 1
        outcome.reasons.append(f"{planned - seen} of {planned} tests did not report")
    all_skipped = status == _SKIPPED and 0 < seen == outcome.skipped
    if status and not all_skipped and (not outcome.failed or status == 70):
        outcome.fail(f"exit status {status}")
    if outcome.failed and complaint:
        outcome.reasons += complaint.splitlines()[-80:]
    return outcome


def read_kunit(text):
    """The outcome of KUnit modules, from the log: the innermost lines count."""
    outcome = Outcome()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        result = _RESULT.match(line)
        if not result or not result[1]:
            # A line that is not indented sums up a suite.
            continue
        name = result[4].strip()
        # The sum of a parameterised test's lines, which came before it.
        before = lines[:number]
        if any(_KTAP_SUITE.match(b) and b.split(":", 1)[1].strip() == name
               for b in before[-400:]):
            continue
        if result[2] == "not ok":
            outcome.fail(line.strip())
            # What failed stands before the line that says so.
            said = [b.strip() for b in before[-12:] if b.strip().startswith("# ")]
            outcome.reasons += said
        elif "SKIP" in (result[5] or ""):
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome
