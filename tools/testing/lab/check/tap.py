# SPDX-License-Identifier: GPL-2.0
"""Reads TAP: the results that a test file reported, compared with its plan."""

import re

# Exit status of a file whose cases were all skipped, as the kernel's selftests have it.
_SKIPPED = 4
_RESULT = re.compile(r"(\s*)(ok|not ok)\b\s*(\d*)\s*-?\s*([^#]*)(#.*)?$")
_PLAN = re.compile(r"\s*1\.\.(\d+)(\s*# SKIP)?")
_KTAP_SUITE = re.compile(r"\s*# Subtest:")


class Outcome:
    """Counts of results, and the text that explains the failures."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.reasons = []

    def fail(self, reason):
        """Count a failure with this reason: a result in TAP, or the reader's own text."""
        self.failed += 1
        self.reasons.append(reason)

    def add(self, other, prefix=""):
        """Add another outcome; `prefix` begins each of its reasons."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += [prefix + reason for reason in other.reasons]


def read(text, status, complaint=""):
    """The outcome of a test file from its stdout, exit status and the end of its stderr."""
    outcome = Outcome()
    planned, explaining = None, False
    for line in text.splitlines():
        plan, result = _PLAN.match(line), _RESULT.match(line)
        if plan and planned is None:
            planned = int(plan[1])
            outcome.skipped += bool(plan[2])        # a skipped file counts as one test
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
    """The outcome of KUnit modules, from the log: results of suites and sums are not counted."""
    outcome = Outcome()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        result = _RESULT.match(line)
        if not result or not result[1]:
            # The result of a suite is not indented.
            continue
        name = result[4].strip()
        # A parameterised test's own result follows the results of its parameters, which count.
        before = lines[:number]
        if any(_KTAP_SUITE.match(b) and b.split(":", 1)[1].strip() == name
               for b in before[-400:]):
            continue
        if result[2] == "not ok":
            outcome.fail(line.strip())
            # The failed expectation is logged before the result.
            said = [b.strip() for b in before[-12:] if b.strip().startswith("# ")]
            outcome.reasons += said
        elif "SKIP" in (result[5] or ""):
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome
