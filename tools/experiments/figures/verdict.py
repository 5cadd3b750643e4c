# SPDX-License-Identifier: GPL-2.0
"""Does a number agree with its paper?  Arithmetic only: this file reads, runs and draws no figure.

One rule for all numbers (Documentation/results.rst states it in words):

- A number is *met* if it is at least as good as the paper's, or misses it by no more than a
  tenth.  `want` is the better direction: less, more, or the same.
- A tenth of a change is a tenth of the smaller of two: the change, and the remainder.
  A change of -80 % leaves 20 %, so -78 % is met; of -20 % it is -18 %.
- A tenth is never less than the paper's own rounding: 3 stands for all from 2.5 to 3.5.  But
  a tenth of 0 is 0.
- "similar" allows a tenth either way, "more" and "less" allow nothing, and each seed has to
  agree with any of the three: seeds of -35 and +71 % are not similar, although their mean is.
- Any other number is judged by the mean of its seeds; the verdict counts the seeds that alone
  would have another one.
- Of [LOW, HIGH] each value is the paper's.
- A number that wants less or more, and is better than the paper's by more than a factor of two,
  is *beyond*: the experiment is in another regime, and reproduces only the direction.  The factor
  of a reduction in percent is taken of the remainder: -80 % leaves 20 %, so beyond begins at
  -90 %.  A growth's factor is taken of the growth.  A share that wants more has two factors,
  its own and its complement's: from 70 %, which leaves 30 %, beyond begins at 85 %.

Why a tenth: kernels of different versions, and hosts that are set up in another order, move a
number by a few percent (lab.rst), so a smaller difference has no meaning.
"""

import dataclasses
import decimal
import math

ALLOWED = 0.1
FACTOR = 2
WANTS = ("less", "more", "same")
WORDS = ("similar", "more", "less")
TAKES = ("mean", "best", "worst")
# The kinds of verdict.  `not run`: the run is not there, or lacks the value.
MET, BEYOND, MISSED, NOT_COMPARABLE, NOT_RUN = KINDS = (
    "met", "beyond", "missed", "not comparable", "not run")
# In n trials without one event, a rate of more than 3/n is excluded with 95 % confidence.
RULE_OF_THREE = 3


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A kind, and by how much or why."""
    kind: str
    why: str = ""

    def __str__(self):
        if not self.why:
            return self.kind
        return f"{self.kind}{': ' if self.kind == NOT_COMPARABLE else ' '}{self.why}"


def rounding(paper):
    """Half a unit of the last digit that the paper prints."""
    if not paper:
        return 0.0
    exponent = decimal.Decimal(repr(paper)).as_tuple().exponent
    # 4.0 and 4 are the same float in words; a whole float was written with its digit.
    return 0.5 * 10.0 ** exponent


def slack(paper, change=False):
    """By how much a number may miss this one and still be met."""
    size = min(abs(paper), abs(100 + paper)) if change else abs(paper)
    return max(ALLOWED * size, rounding(paper))


def span(number):
    """(lowest, highest) that is met."""
    paper, change = number["paper"], is_change(number)
    want = number.get("want", "same")
    none = 0.0 if change or "as" not in number else 1.0     # the value of no difference
    if paper == "similar":
        tenth = 100 * ALLOWED if change else ALLOWED
        low, high = none - tenth, none + tenth
    elif paper == "more":
        return math.nextafter(none, math.inf), math.inf
    elif paper == "less":
        return -math.inf, math.nextafter(none, -math.inf)
    else:
        ends = paper if isinstance(paper, list) else [paper, paper]
        read = number.get("uncertainty", 0)
        low = ends[0] - max(slack(ends[0], change), read)
        high = ends[1] + max(slack(ends[1], change), read)
    return (-math.inf if want == "less" else low, math.inf if want == "more" else high)


def is_change(number):
    """In percent of another, rather than a value or a ratio."""
    return "to" in number and number.get("as") != "ratio"


def _by(ours, number):
    """How far it is from the paper's."""
    paper = number["paper"]
    if isinstance(paper, str):
        low, high = span(number)
        paper = low if ours < low else high
        paper = round(paper, 6)
    elif isinstance(paper, list):
        paper = min(paper, key=lambda end: abs(end - ours))
    off = abs(ours - paper)
    if not off:     # "more" is not met by the same
        return "by 0: no difference"
    if is_change(number):
        return f"by {off:.3g} points"
    if not paper:
        return f"by {off:.3g}"
    return f"by {100 * off / abs(paper):.3g} %"


def _factor(low, high):
    """How many times the higher of two sizes the lower one is; 0 of 0 is no factor."""
    if low > 0:
        return high / low
    return math.inf if high > 0 else 1.0


def factor(ours, number):
    """By which factor a number is better than the paper's, if it wants less or more."""
    want, paper, change = number.get("want"), number["paper"], is_change(number)
    if want not in ("less", "more") or paper in ("less", "more") or not (paper or change):
        return 1.0
    if paper == "similar":
        paper = 0.0 if change else 1.0      # no difference
    elif isinstance(paper, list):
        paper = paper[0] if want == "less" else paper[1]
    if change and paper <= 0:
        paper, ours = 100 + paper, 100 + ours
    if want == "less":
        return _factor(max(ours, 0.0), paper)
    better = _factor(paper, ours)
    if number.get("unit") == "%" and "to" not in number:
        better = max(better, _factor(100 - ours, 100 - paper))
    return better


def _beyond(by):
    return Verdict(BEYOND, "" if math.isinf(by) else f"by a factor of {by:.3g}")


def _seeds(kind, seeds, judged):
    """In words, how many seeds alone have that verdict; an empty text if all have."""
    count = sum(seed is not None and judged(seed) == kind for seed in seeds)
    return "" if count == len(seeds) else f"in {count} of {len(seeds)} seeds"


def judge(ours, number, samples=None, seeds=()):
    """The verdict of a number that was measured, or None if it was not; samples is of how many
    trials it is a share; seeds has the number by seed, None where a seed has no value."""
    if not seeds or ours is None or math.isnan(ours):
        return _judge(ours, number, samples)
    found = _judge(ours, number, samples)
    if found.kind not in (MET, BEYOND, MISSED):
        return found
    if number["paper"] in WORDS:
        low, high = span(number)
        if found.kind != MISSED and not all(
                seed is not None and low <= seed <= high for seed in seeds):
            return Verdict(MISSED, "by some of the seeds")
        return found
    alone = _seeds(found.kind, seeds, lambda seed: _judge(seed, number).kind)
    return Verdict(found.kind, " ".join(filter(None, (found.why, alone))))


def _judge(ours, number, samples=None):
    """The verdict of one number."""
    if ours is None or math.isnan(ours):
        return Verdict(NOT_RUN)
    if "not_comparable" in number:
        return Verdict(NOT_COMPARABLE, number["not_comparable"])
    paper = number["paper"]
    if samples is not None and not ours and not isinstance(paper, str) \
            and 0 < paper * samples < RULE_OF_THREE:
        return Verdict(NOT_COMPARABLE, f"none of {samples} is no evidence for {paper:.3g}")
    low, high = span(number)
    if not low <= ours <= high:
        return Verdict(MISSED, _by(ours, number))
    # None of n trials is known as less than 3/n only.
    least = RULE_OF_THREE / samples if samples and not ours else ours
    by = factor(least, number)
    return _beyond(by) if by > FACTOR else Verdict(MET)


def explanation(ours, number):
    """The text for numbers in this range; an empty text if there is no such text."""
    if ours is None:
        return ""
    return next((one["why"] for one in number.get("because", ())
                 if one["for"][0] <= ours <= one["for"][1]), "")


def difference(ours, other, number):
    """Of two measured values, as the number wants them; None if one is missing, or if the divisor is
    0.  Where the paper has a word alone, a growth from 0 is an infinite one."""
    if ours is None or other is None:
        return None
    if number.get("as") == "ratio":
        return other / ours if ours else None
    if other:
        return 100 * (ours / other - 1)
    if not ours:
        return 0.0
    return math.inf if number.get("paper") in WORDS else None


def taken(values, number):
    """One of several: their mean, or the best or worst in the wanted direction."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    take = number.get("take", "mean")
    if take == "mean":
        return sum(values) / len(values)
    most = number.get("want") == "more" or number.get("paper") == "more"
    return max(values) if most == (take == "best") else min(values)


def counts(verdicts):
    """{paper: {kind: how many}} of [(paper, verdict)]."""
    found = {}
    for paper, verdict in verdicts:
        of = found.setdefault(paper, dict.fromkeys(KINDS, 0))
        of[verdict.kind] += 1
    return found


def sentence(of):
    """Counts in words; met and missed always appear."""
    return ", ".join(f"{of[kind]} {kind}" for kind in KINDS
                     if of[kind] or kind in (MET, MISSED))


def worse(recorded, now):
    """[(name, was, is)] of the numbers that are worse now; both are {name: kind}.

    Met and beyond are better than missed, and each of them is better than no verdict: a number
    that is no longer compared is a claim that was dropped.
    """
    rank = {MET: 2, BEYOND: 2, MISSED: 1}
    return [(name, was, now.get(name, "gone")) for name, was in recorded.items()
            if rank.get(now.get(name), 0) < rank.get(was, 0)]
