#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The verdicts of scripts/figures: the rule, and the consistency of the tree's record and pages.

Needs no guest: the cases compute numbers, and compare generated text.
"""
import itertools
import math
import pathlib
import re
import subprocess
import tempfile

from experiments.figures import catalogue, page, record, setting, verdict
from lab import TOP, tap
from lab.tap import Failed, case, equal, true

CHANGE = {"to": {}, "of": {}}
RATIO = {"to": {}, "of": {}, "as": "ratio"}
# {title: (description with the paper's number, our number, verdict, distance)}
RULE = {
    "a tail at least as good": ({"paper": -80.9, "want": "less"} | CHANGE, -85, "met", ""),
    "a tenth of the remainder": ({"paper": -80.9, "want": "less"} | CHANGE, -79.0, "met", ""),
    "just beyond it": ({"paper": -80.9, "want": "less"} | CHANGE, -78.9, "missed", "by 2 points"),
    "a tenth of the change": ({"paper": -19, "want": "less"} | CHANGE, -17.2, "met", ""),
    "beyond the tenth": ({"paper": -19, "want": "less"} | CHANGE, -17.0, "missed", "by 2 points"),
    "more, as a change": ({"paper": 48, "want": "more"} | CHANGE, 43.3, "met", ""),
    "less than the change": ({"paper": 48, "want": "more"} | CHANGE, 43, "missed", "by 5 points"),
    "not worse, of a value": ({"paper": 1.84, "want": "less"}, 1.0, "met", ""),
    "a tenth worse": ({"paper": 100.0, "want": "less"}, 110, "met", ""),
    "more than a tenth worse": ({"paper": 100.0, "want": "less"}, 111, "missed", "by 11 %"),
    "the same, too small": ({"paper": 100.0}, 89, "missed", "by 11 %"),
    "the same, within a tenth": ({"paper": 100.0}, 91, "met", ""),
    "rounding, of a small number": ({"paper": 3, "want": "less"} | CHANGE, 3.5, "met", ""),
    "beyond rounding": ({"paper": 3, "want": "less"} | CHANGE, 3.6, "missed", "by 0.6 points"),
    "zero is zero": ({"paper": 0, "want": "less"}, 0, "met", ""),
    "one is not zero": ({"paper": 0, "want": "less"}, 1, "missed", "by 1"),
    "a change to zero": ({"paper": -90, "want": "less"} | CHANGE, -100.0, "beyond", ""),
    "no change at all": ({"paper": -30, "want": "less"} | CHANGE, 0.0, "missed", "by 30 points"),
    "in a range": ({"paper": [2.5, 3.3]} | RATIO, 3, "met", ""),
    "below it": ({"paper": [2.5, 3.3]} | RATIO, 2.2, "missed", "by 12 %"),
    "above it, where more is better": ({"paper": [2.5, 3.3], "want": "more"} | RATIO, 5, "met", ""),
    "similar": ({"paper": "similar"} | CHANGE, -9.9, "met", ""),
    "not similar": ({"paper": "similar"} | CHANGE, 12, "missed", "by 2 points"),
    "similar, as a ratio": ({"paper": "similar"} | RATIO, 1.05, "met", ""),
    "better than similar": ({"paper": "similar", "want": "more"} | RATIO, 1.9, "met", ""),
    "more, without a number": ({"paper": "more"} | CHANGE, 0.1, "met", ""),
    "no difference is not more": ({"paper": "more"} | CHANGE, 0.0, "missed",
                         "by 0: no difference"),
    "zero is not more": ({"paper": "more"}, 0, "missed", "by 0: no difference"),
    "above zero is more": ({"paper": "more"}, 1e-9, "met", ""),
    "less, without a number": ({"paper": "less"} | CHANGE, -0.1, "met", ""),
    "more is not less": ({"paper": "less"} | CHANGE, 5, "missed", "by 5 points"),
    "read off a curve": ({"paper": 10.0, "uncertainty": 3, "want": "less"}, 12.9, "met", ""),
    "beyond the curve": ({"paper": 10.0, "uncertainty": 3, "want": "less"}, 13.1, "missed",
                         "by 31 %"),
    "not comparable, though better": ({"paper": 5, "want": "less", "not_comparable": "other"}, 1,
                                      "not comparable", "other"),
    "less than half": ({"paper": 10.0, "want": "less"}, 4, "beyond", "by a factor of 2.5"),
    "half": ({"paper": 10.0, "want": "less"}, 5, "met", ""),
    "zero in place of a number": ({"paper": 2.5, "want": "less"}, 0, "beyond", ""),
    "zero in place of zero": ({"paper": 0, "want": "less"}, 0.0, "met", ""),
    "more than zero": ({"paper": 0, "want": "more"}, 5, "met", ""),
    "more than double": ({"paper": 6.9, "want": "more"} | RATIO, 52.7, "beyond",
                         "by a factor of 7.64"),
    "double": ({"paper": 6.9, "want": "more"} | RATIO, 13.8, "met", ""),
    "half of a reduction's remainder": ({"paper": -80, "want": "less"} | CHANGE, -90, "met", ""),
    "less than half of the remainder": ({"paper": -80, "want": "less"} | CHANGE, -92, "beyond",
                       "by a factor of 2.5"),
    "half of a growth": ({"paper": 8, "want": "less"} | CHANGE, 4, "met", ""),
    "a quarter of a growth": ({"paper": 8, "want": "less"} | CHANGE, 2, "beyond",
                              "by a factor of 4"),
    "no growth": ({"paper": 8, "want": "less"} | CHANGE, -1, "beyond", ""),
    "twice the growth": ({"paper": 48, "want": "more"} | CHANGE, 96, "met", ""),
    "more than twice the growth": ({"paper": 48, "want": "more"} | CHANGE, 120, "beyond",
                              "by a factor of 2.5"),
    "a loss that is a gain": ({"paper": -5.58, "want": "more"} | CHANGE, 3, "met", ""),
    "a share, by its complement": ({"paper": 70, "want": "more", "unit": "%"}, 92, "beyond",
                                   "by a factor of 3.75"),
    "half of the complement": ({"paper": 70, "want": "more", "unit": "%"}, 85, "met", ""),
    "a small share": ({"paper": 10, "want": "more", "unit": "%"}, 73, "beyond",
                      "by a factor of 7.3"),
    "twice as good as similar": ({"paper": "similar", "want": "less"} | CHANGE, -60, "beyond",
                                 "by a factor of 2.5"),
    "better than a range's better end": ({"paper": [20, 40], "want": "less"}, 9, "beyond",
                                         "by a factor of 2.22"),
    "no preferred direction": ({"paper": 99, "unit": "%"}, 99.9, "met", ""),
    "far off, both directions count": ({"paper": 10.0}, 4, "missed", "by 60 %"),
    "far less, without a number": ({"paper": "less"} | CHANGE, -99, "met", ""),
    "not comparable, though beyond": ({"paper": 50, "want": "less", "not_comparable": "other"}, 1,
                                      "not comparable", "other"),
    "no number": ({"paper": 5}, None, "not run", ""),
    "not a number": ({"paper": 5}, math.nan, "not run", ""),
}


@case("the rule, computed by hand", number=tuple(RULE))
def rule(number):
    described, ours, kind, by = RULE[number]
    seen = verdict.judge(ours, described)
    equal((seen.kind, seen.why), (kind, by), "verdict")


@case("zero of few samples is no evidence for a small share; zero of many, or one of few, is")
def samples():
    number = {"paper": 1e-5, "want": "less"}
    equal([verdict.judge(share, number, count).kind for share, count in
           ((0, 299_999), (0, 300_000), (1e-4, 10_000))],
          ["not comparable", "met", "missed"], "verdicts")
    # 600,000 trials exclude half of the paper's share; fewer trials cannot be beyond.
    equal([verdict.judge(0, number, count).kind for count in (600_000, 600_001)],
          ["met", "beyond"], "of half the share")
    equal(verdict.judge(0, {"paper": 0, "want": "less"}, 5).kind, "met", "a paper's zero")


@case("a change to zero, from zero, of zero, and with a missing number")
def changes():
    equal([verdict.difference(*of, CHANGE) for of in
           ((0, 5), (0, 0), (3, 0), (None, 5), (5, None), (1, 4))],
          [-100, 0, None, None, None, -75], "percent")
    equal([verdict.difference(*of, RATIO) for of in ((2, 5), (0, 5), (2, 0))],
          [2.5, None, 0], "times")
    grows = {"paper": "more"} | CHANGE
    equal(verdict.difference(3, 0, grows), math.inf, "a growth from 0, where any growth is met")
    equal(verdict.judge(math.inf, grows, seeds=[1310.0, math.inf]).kind, "met", "verdict")


@case("several numbers: mean, best and worst, by the preferred direction; without numbers none")
def several():
    for want, best, worst in (("less", -3, 5), ("more", 5, -3), ("same", -3, 5)):
        for take, one in (("best", best), ("worst", worst), ("mean", 1)):
            equal(verdict.taken([1, -3, 5], {"want": want, "take": take}), one, f"{want}, {take}")
    equal(verdict.taken([None], {}), None, "without numbers")
    rows = [{"cc": cc, "n": n, "load": load} for load, cc, n in
            ((1, "a", 2), (1, "b", 8), (2, "a", 6), (2, "b", 8))]
    number = {"what": "w", "key": "n", "paper": -75, "want": "less", "over": {"load": [1, 2]},
              "of": {"cc": "a"}, "to": {"cc": "b"}}
    for take, seen, kind in (("mean", -50, "missed"), ("best", -75, "met"), ("worst", -25, "missed")):
        one, = catalogue.compared(catalogue.Figure(
            "f", {"compare": [number | {"take": take}]}, ()), rows)
        equal((one.ours, one.spread, one.verdict.kind), (seen, (-75, -25), kind), take)
    # The best of several is not known while one is missing.
    one, = catalogue.compared(catalogue.Figure("f", {"compare": [number | {"take": "best"}]}, ()),
                              rows[:3])
    equal((one.ours, one.verdict.kind), (None, "not run"), "with a missing number")


@case("the mean of the seeds precedes `take`; the spread is over the seeds; a missing seed")
def seeds():
    rows = [{"cc": cc, "n": n, "seed": seed, "load": load, "k": 10} for seed, load, cc, n in
            ((1, 1, "a", 2), (1, 1, "b", 8), (2, 1, "a", 6), (2, 1, "b", 8),
             (1, 2, "a", 7), (1, 2, "b", 8), (2, 2, "a", 1), (2, 2, "b", 8))]
    number = {"what": "w", "key": "n", "paper": 0, "of": {"cc": "a"}, "to": {"cc": "b"},
              "want": "less", "take": "best", "over": {"load": [1, 2]}}
    figure = catalogue.Figure("f", {"compare": [number], "vary": {"seed": [1, 2]}}, ())
    one, = catalogue.compared(figure, rows)
    # Both loads have a mean of 4 of 8; the best single result is 1 of 8.
    equal((one.ours, one.spread), (-50, (-87.5, -75)), "ours, and the seeds' spread")
    one, = catalogue.compared(figure, [row for row in rows if row["seed"] == 1])
    equal((one.ours, one.verdict.kind), (None, "not run"), "one seed of two")
    one, = catalogue.compared(figure, rows[:-1])
    equal(one.verdict.kind, "not run", "one row of eight")
    share = {"what": "w", "key": "z", "paper": 0.1, "of": {"cc": "a", "load": 1}, "samples": "k",
             "want": "less"}
    figure = catalogue.Figure("f", {"compare": [share], "vary": {"seed": [1, 2]}}, ())
    one, = catalogue.compared(figure, [row | {"z": 0} for row in rows])
    equal(one.verdict.why, "none of 20 is no evidence for 0.1", "samples of all seeds")


@case("without a number each seed has to agree; with a number the verdict counts those that agree")
def every_seed():
    for values, paper, want in (((9, 6), "less", "met"), ((9, 6), "more", "missed"),
                                ((9, 12), "more", "missed"), ((12, 13), "more", "met"),
                                ((9.5, 10.5), "similar", "met"),
                                ((6, 14), "similar", "missed"), ((14, 6), "similar", "missed"),
                                ((9, 11), 0, "met"), ((6, 15), 5, "met")):
        rows = [{"cc": cc, "n": n, "seed": seed} for seed, ours in enumerate(values)
                for cc, n in (("a", ours), ("b", 10))]
        number = {"what": "w", "key": "n", "paper": paper, "of": {"cc": "a"}, "to": {"cc": "b"}}
        one, = catalogue.compared(catalogue.Figure(
            "f", {"compare": [number], "vary": {"seed": [0, 1]}}, ()), rows)
        equal(one.verdict.kind, want, f"{values} against 10, {paper}")
    equal(str(one.verdict), "met in 0 of 2 seeds", "seeds of -40 and +50 %")
    # The preferred direction has no limit.
    equal([str(verdict.judge(-20, {"paper": "similar", "want": "less"} | CHANGE, None, seeds))
           for seeds in ([-40, 0], [-60, 20])], ["met", "missed by some of the seeds"], "one side")
    equal([str(verdict.judge(ours, {"paper": -80, "want": "less"} | CHANGE, None, seeds))
           for ours, seeds in ((-80, [-82, -78]), (-80, [-90, -70]), (-60, [-79, -41]),
                               (-95, [-97, -85, None]))],
          ["met", "met in 1 of 2 seeds", "missed by 20 points in 1 of 2 seeds",
           "beyond by a factor of 4 in 1 of 3 seeds"], "seeds that agree")
    # A seed with a divisor of zero does not agree.
    rows = [{"cc": cc, "n": n, "seed": seed} for seed, cc, n in
            ((0, "a", 5), (0, "b", 20), (1, "a", 5), (1, "b", 0))]
    number |= {"paper": "less"}
    one, = catalogue.compared(catalogue.Figure(
        "f", {"compare": [number], "vary": {"seed": [0, 1]}}, ()), rows)
    equal((one.ours, one.verdict.kind), (-50, "missed"), "a seed with a zero")
    # Without seeds the spread is over the loads, and their mean is compared.
    rows = [{"cc": cc, "n": n, "load": load} for load, cc, n in
            ((1, "a", 1), (1, "b", 2), (2, "a", 4), (2, "b", 2))]
    number |= {"paper": "more", "over": {"load": [1, 2]}}
    one, = catalogue.compared(catalogue.Figure("f", {"compare": [number]}, ()), rows)
    equal((one.spread, one.verdict.kind), ((-50, 100), "met"), "over loads")


def bases(number, rows, **about):
    """The comparison of a figure with two bases, two transports and two seeds."""
    vary = {"base": ["paper", "linux"], "cc": ["a", "b"], "seed": [1, 2]}
    one, = catalogue.compared(catalogue.Figure(
        "f", {"compare": [number], "vary": vary} | about, ()), rows)
    return one


def rows_of(**values):
    """Rows from BASE_CC=[n of each seed]; x is a tenth of n."""
    return [{"base": key.partition("_")[0], "cc": key.partition("_")[2], "seed": seed, "n": n,
             "x": n / 10} for key, ns in values.items() for seed, n in enumerate(ns, 1)]


@case("two bases: the verdict is the paper base's; today's Linux has a column, and its distance")
def two_bases():
    rows = rows_of(paper_a=[10, 30], paper_b=[100, 100], linux_a=[40, 80], linux_b=[100, 200])
    number = {"what": "w", "key": "n", "paper": -80, "want": "less", "of": {"cc": "a"},
              "to": {"cc": "b"}, "ideal": "x"}
    for mixed in (rows, rows[::-1]):
        one = bases(number, mixed)
        equal((one.base, one.ours, one.spread, str(one.verdict)),
              ("paper", -80, (-90, -70), "met in 1 of 2 seeds"), "the paper's base")
        equal((one.today, one.today_spread, one.ideal), (-60, (-60, -60), 6), "today's Linux")
    equal(page.columns(one), ("-80 % (-90 … -70)", "-60 %", "6 ×"), "columns")
    # The verdict depends on the paper's base only.
    worse_today = rows_of(paper_a=[10, 30], paper_b=[100, 100], linux_a=[1, 1], linux_b=[1, 1])
    equal(str(bases(number, worse_today).verdict), "met in 1 of 2 seeds", "independent of today's")
    # A limit in the row's unit; with several numbers the one farthest from the limit.
    equal(bases(number | {"ideal": 20}, rows).ideal, 3, "a limit of 20, mean of 60")
    over = number | {"of": {}, "to": {"cc": "b"}, "over": {"cc": ["a", "b"]}, "take": "best"}
    del over["to"]
    equal([bases(over | {"take": take}, rows).ideal for take in ("best", "mean")], [15, 10.5],
          "x ideal of several numbers")
    # A value has its unit in both columns; without a limit the third one is empty.
    alone = bases({"what": "w", "key": "n", "unit": "us", "paper": 0.02, "of": {"cc": "a"}}, rows)
    equal((alone.ours, alone.today, page.columns(alone)[2]), (0.02, 0.06, ""), "values")
    # One base without runs.
    one = bases(number, [row for row in rows if row["base"] == "paper"])
    equal((one.verdict.kind, page.columns(one)), ("met", ("-80 % (-90 … -70)", "", "")), "no today")
    one = bases(number, [row for row in rows if row["base"] == "linux"])
    equal((one.verdict.kind, page.columns(one)), ("not run", ("-", "-60 %", "6 ×")), "today")


@case("two bases: transports of one base only, others for today's Linux, and fewer seeds there")
def one_base_only():
    rows = rows_of(paper_a=[10, 30], paper_z=[40, 40], linux_a=[40], linux_b=[80])
    number = {"what": "w", "key": "n", "paper": -50, "want": "less", "of": {"cc": "a"},
              "to": {"cc": "z"}}
    about = {"also": {"paper": ["z"]}, "fewer": {"linux": {"seed": [1]}}}
    one = bases(number, rows, **about)
    equal((one.ours, one.today), (-50, None), "z is of the paper's base")
    one = bases(number | {"today": {"to": {"cc": "b"}}}, rows, **about)
    equal((one.ours, one.today, one.today_spread), (-50, -50, ()), "b in place of z, one seed")
    one = bases(number | {"today": {"to": {"cc": "b"}}}, rows, also=about["also"])
    equal((one.ours, one.today), (-50, None), "two seeds, one of which is missing")
    one = bases(number | {"today": {"of": {"cc": "b"}, "to": {"cc": "a"}}}, rows, **about)
    equal((one.ours, one.today), (-50, 100), "both transports differ")


@case("one base: the number is in that base's column, also if the figure does not vary the base")
def column_of_base():
    number = {"what": "w", "key": "n", "paper": 5, "of": {"cc": "a"}, "ideal": "x"}
    for command, base, columns in (("load", "linux", ("", "5", "0.5 ×")),
                                   ("load --base paper --fine", "paper", ("5", "", ""))):
        one, = catalogue.compared(catalogue.Figure(
            "f", {"command": command, "compare": [number]}, ()), [{"cc": "a", "n": 5, "x": 0.5}])
        equal((one.base, page.columns(one)), (base, columns), command)


@case("an event that never occurs is missed; a missing run is not run")
def never():
    number = {"what": "w", "key": "n", "paper": 20, "want": "less", "of": {"cc": "a"}}
    for rows, is_one, seen in (([{"cc": "a", "n": None}], True, "missed by all: it never occurs"),
                               ([{"cc": "a", "n": math.nan}], True, "missed by all: it never occurs"),
                               ([{"cc": "a", "n": None}], False, "not run"),
                               ([{"cc": "b", "n": None}], True, "not run"),
                               ([{"cc": "a", "n": 19}], True, "met")):
        one, = catalogue.compared(catalogue.Figure(
            "f", {"compare": [number | ({"never": True} if is_one else {})]}, ()), rows)
        equal((str(one.verdict), one.ours), (seen, 19 if seen == "met" else None), f"{rows}")


@case("the record and the table of headlines have the three columns; README the shares that are met")
def three_columns():
    figure = catalogue.Figure("f", {
        "title": "t", "paper": "A (B 2000), Figure 1", "setting": "s",
        "vary": {"base": ["paper", "linux"], "cc": ["a", "b"]}, "compare": [
            {"what": "w", "key": "n", "paper": -80, "want": "less", "read": "text", "ideal": "x",
             "of": {"cc": "a"}, "to": {"cc": "b"}, "headline": True}]}, ())
    rows = rows_of(paper_a=[20], paper_b=[100], linux_a=[40], linux_b=[100])

    class Ran(catalogue.Figure):
        """A figure with results."""
        def results(self, directory, partly=False):
            return [{"summary": rows, "runs": [{}], "version": "v", "config": {
                "kernel": "7.3", "experiment": "x", "senders": 2, "rate": 10**9, "bytes": 1}}]

    ran = Ran("f", figure.about, (catalogue.Run(("load",), ()),))
    recorded = record.outcome([ran], pathlib.Path("/nowhere"))
    equal(recorded["f"]["numbers"]["w"], {"verdict": "met", "by": "", "ours": "-80 %",
                                          "today": "-60 %", "ideal": "4 ×", "why": ""}, "the record")
    equal(record.summary(recorded, [figure]),
          "- **A**: 1 of 1 numbers met, 1 of 1 headlines met; 0 more numbers not run or not "
          "comparable\n",
          "README's part")
    text = record.rst("small", recorded, [figure], {})
    true("   * - A, Figure 1: w\n     - -80 %\n     - -80 %\n     - -60 %\n     - 4 ×\n"
         "     - **met**\n" in text, text)
    bases = "".join(f"     - {base}\n" for base in page.BASES)
    equal(text.count(f"     - the paper\n{bases}     - verdict\n"), 2, "tables with the columns")
    true("   * - A\n     - 1\n     - 0\n" in text, text)
    true("     - -80 %\n     - -60 %\n     - 4 ×\n     - met\n" in text, text)
    # The record drops numbers that are no longer compared.
    recorded["g"] = recorded["f"]
    recorded["f"]["numbers"]["other"] = recorded["f"]["numbers"]["w"]
    equal({name: list(of["numbers"]) for name, of in record.kept(recorded, [figure]).items()},
          {"f": ["w"]}, "kept")
    # A cause that is written after the run stands beside the recorded number.
    figure.about["compare"][0]["because"] = [{"for": [-81, -79], "why": "c"}]
    equal(record.kept(recorded, [figure])["f"]["numbers"]["w"]["why"], "c", "the later cause")


@case("TLT's Table 1 has one verdict; numbers below the transmission time have none")
def fair():
    figures = {figure.name: figure for figure in catalogue.load()}
    numbers = {name: figure.about.get("compare", []) for name, figure in figures.items()}
    equal([number["paper"] for number in numbers["tlt-table1"]], ["more"], "Table 1")

    def without(name, part):
        found = {"not_comparable" in number for number in numbers[name] if part in number["what"]}
        equal(found, {True}, f"{name}: {part}")

    without("tlt-fig15", "web search, load 20,")
    without("aeolus-fig3", "aeolus_xpass")
    equal({tuple(number["of"].items())[-1] for number in numbers["tlt-dumbbell"]
           if number["key"] == "paused"}, {("limit", "6m"), ("limit", "2m")}, "sizes of ports")
    equal({number["key"] for number in numbers["dart-xpass"]}, {"stays"}, "VI-D")
    # The headlines of TLT's paper have two bases.
    for name, figure in figures.items():
        for number in numbers[name]:
            if number.get("headline") and name.startswith("tlt"):
                equal(figure.bases, ("paper", "linux"), name)


@case("an explanation is shown in its range only; a miss without one has an unknown cause")
def explanations():
    number = {"what": "w", "key": "n", "paper": 1, "of": {},
              "because": [{"for": [2, 3], "why": "a"}, {"for": [5, 6], "why": "b"}]}
    figure = catalogue.Figure("f", {"compare": [number]}, ())
    for ours, why in ((1, ""), (1.9, "cause unknown"), (2, "a"), (3, "a"), (4, "cause unknown"),
                      (5.5, "b")):
        one, = catalogue.compared(figure, [{"n": ours}])
        equal(one.explanation, why, f"of {ours}")


@case("the sentence with the counts of a paper")
def counted():
    of = verdict.counts([("A", verdict.Verdict(kind)) for kind in
                         ("met", "met", "missed", "not run")] + [("B", verdict.Verdict("met"))])
    equal([verdict.sentence(of[paper]) for paper in of],
          ["2 met, 1 missed, 1 not run", "1 met, 0 missed"], "words")
    of = verdict.counts([("A", verdict.Verdict("beyond")), ("A", verdict.Verdict("met"))])
    equal(verdict.sentence(of["A"]), "1 met, 1 beyond, 0 missed", "with beyond")


@case("--strict reports numbers that are worse than the record, and no others")
def worse():
    for was, now, is_worse in (
            ("met", "missed", True), ("met", "not comparable", True), ("met", "not run", True),
            ("missed", "not comparable", True), ("missed", "not run", True), ("met", None, True),
            ("missed", None, True), ("met", "met", False), ("missed", "missed", False),
            ("missed", "met", False), ("not run", "missed", False), ("not run", None, False),
            ("not comparable", "missed", False), ("met", "beyond", False),
            ("beyond", "met", False), ("missed", "beyond", False), ("beyond", "missed", True),
            ("beyond", "not run", True)):
        equal(bool(verdict.worse({"a": was}, {"a": now} if now else {})), is_worse,
              f"{was} to {now}")
    # Figures that were not requested are not reported.
    recorded = {name: {"numbers": {"n": {"verdict": "met"}}} for name in ("f", "g")}
    figures = [catalogue.Figure("f", {}, ())]
    equal(record.strict(recorded, figures, {"f": recorded["f"]}), [], "f alone")
    equal(record.strict(recorded, figures, {"f": {"numbers": {"n": {"verdict": "missed"}}}}),
          ["f: n: met before, missed now"], "f, worse")


@case("a written record is read back unchanged")
def written():
    figures = {"f": {"made": "v", "setting": 'a "b" – \\', "numbers": {
        'w "x"': {"verdict": "met", "by": "", "ours": "−1", "today": "2", "ideal": "3 ×",
                  "why": "é"}}}}
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where, "verdicts.toml")
        path.write_text(record.toml({"small": figures}), encoding="utf-8")
        equal((record.read("small", path), record.read("large", path)), (figures, {}), "again")


def same(seen, expected, what):
    """Compare two texts; report the first difference."""
    for number, (one, other) in enumerate(itertools.zip_longest(
            seen.splitlines(), expected.splitlines()), 1):
        equal(one, other, f"{what}:{number}")
    equal(seen, expected, what)


@case("README's shares: numbers beyond are met; the rest is neither")
def shares():
    numbers = [{"what": f"{i}", "key": "n", "paper": 1, "read": "text", "of": {},
                "headline": i in (0, 2, 4)} for i in range(5)]
    figure = catalogue.Figure("f", {"title": "t", "paper": "A (B 2000), Figure 1",
                                    "compare": numbers}, ())
    kinds = ("met", "beyond", "missed", "not comparable")
    recorded = {"f": {"made": "v", "setting": "s", "numbers": {
        f"{i}": {"verdict": kind, "by": "by 2 %" if kind == "missed" else "", "why": ""}
        for i, kind in enumerate(kinds)}}}
    equal(record.summary(recorded, [figure]),
          "- **A**: 2 of 3 numbers met, 1 of 3 headlines met; 2 more numbers not run or not "
          "comparable\n",
          "README's part")
    text = record.rst("small", recorded, [figure], {})
    true("     - **missed** by 2 %\n" in text and "     - **not run**\n" in text, text)
    true("     - Figure 1 (1 of 4)\n" in text, text)


@case("the tables of results.rst and README's shares match the record")
def in_the_tree():
    recorded, figures = record.read("small"), catalogue.load("small")
    true(recorded, "the record is empty")
    for path, new in ((record.RESULTS, record.results), (record.README, record.readme)):
        text = path.read_text(encoding="utf-8")
        same(text, new(text, recorded, figures), path.name)
    known = {f"{figure.name}: {number['what']}" for figure in figures
             for number in figure.about.get("compare", [])}
    equal(set(record.kinds(recorded)) - known, set(), "recorded numbers without a figure")
    equal([f"{name}: {what}" for name, of in record.kept(recorded, figures).items()
           for what, number in of["numbers"].items() if number != recorded[name]["numbers"][what]],
          [], "numbers whose cause has changed since it was recorded")


@case("the page's pictures were drawn from the runs whose verdicts are recorded")
def gallery():
    recorded = record.read("small")
    pictures = sorted((TOP / "Documentation/gallery").glob("*.svg"))
    true(pictures, "no pictures")
    for picture in pictures:
        text = picture.read_text(encoding="utf-8")
        made = re.search(r"<dc:description>(.*?)</dc:description>", text, re.S)
        # A figure whose set-up has changed has no record until both are updated.
        if picture.stem in recorded:
            equal(made and made[1].strip(), recorded[picture.stem]["made"], picture.name)
        true(f"gallery/{picture.name}" in record.RESULTS.read_text(encoding="utf-8"), "on the page")


@case("each axis of the tree's figures has a label, and each number a setting")
def words():
    figures = catalogue.load()
    for figure in figures:
        for panel in figure.about["plot"]:
            for key in (panel["y"], panel.get("x", "load")):
                true("label" in panel or key in catalogue.WORDS, f"{figure.name}: {key}")
        true("setting" in figure.about or not figure.about.get("compare"), figure.name)
        for number in figure.about.get("compare", []):
            for one in number.get("because", []):
                # An explanation for any number would never become invalid.
                true(one["for"][1] - one["for"][0] < 1e6, f"{figure.name}: {number['what']}")


@case("all compared values are in the papers: five others are not compared")
def no_others():
    values = {(figure.name, number["paper"]) for figure in catalogue.load()
              for number in figure.about.get("compare", [])
              if not isinstance(number["paper"], list)}
    equal(values & {("aeolus-fig11", -50), ("dart-fig13", 40), ("tlt-fig12", -90),
                    ("dart-table2", 10), ("dart-table2", 20), ("aeolus-table7", 10)}, set(),
          "values")
    pages = {path.name: path.read_text(encoding="utf-8")
             for path in (TOP / "Documentation").glob("*.rst")}
    for text in ("target was 90 %", "at most 10 %", "Throughput 40 %", "≥ 10 ×", "≥ 50 %"):
        equal([name for name, page in pages.items() if text in page], [], text)


@case("a setting describes the runs: hosts, tiers, oversubscription, sizes, seeds")
def settings():
    def of(*runs, **config):
        both = [{"seed": seed, "load": 40} for seed in (1, 2)]
        return setting.words([{"config": config, "runs": runs or both}])
    load = {"experiment": "load", "topology": "leaf-spine", "hosts": 96, "leaves": 12,
            "spines": 4, "rate": 40 * 10**9, "background": 300, "workload": "web-search",
            "foreground": 5, "incasts": 1, "senders": 95, "each": 8, "bytes": 8192}
    equal(of(**load), "96 hosts, 2 tiers, 2:1, 40 Gbit/s; 300 flows of web search, incasts of"
          " 95 x 8 x 8 kB, load 40 %; 2 seeds", "load")
    equal(of(**load | {"topology": "fat-tree", "foreground": 0, "hosts": 128}),
          "128 hosts, 3 tiers, 1:1, 40 Gbit/s; 300 flows of web search, load 40 %; 2 seeds",
          "a fat-tree")
    deflect = {"experiment": "deflect", "topology": "leaf-spine", "hosts": 32, "leaves": 4,
               "spines": 2, "rate": 10**10, "degree": 16, "bytes": [2048, 8192], "short": 40,
               "long_bytes": 1 << 30}
    equal(of(**deflect), "32 hosts, 2 tiers, 4:1, 10 Gbit/s; incasts of 16 messages of 2 kB, 8 kB,"
          " 40 % of the load of 40 %; long flows of 1 GB; 2 seeds", "deflect")
    equal(of(**deflect | {"topology": "pods", "leaves": 8, "pods": 4, "cores": 2}).split(";")[0],
          "32 hosts, 3 tiers, 4:1, 10 Gbit/s", "deflect, three tiers")
    equal(of({"bytes": 30000}, {"bytes": 40960}, experiment="first_rtt", senders=7, rate=10**10,
             bytes=0), "7 hosts to 1 at one switch, 10 Gbit/s; messages of 30 kB or 40 kB",
          "first-rtt, of two sizes")
    equal(of({"cc": "reno"}, experiment="victim", topology="trunk", senders=6, flows=600,
             bytes=32768, rate=10**10, trunk=40 * 10**9),
          "6 hosts to 1 and 1 to 1 over a trunk of 40 Gbit/s, 10 Gbit/s; 600 flows of 32 kB beside"
          " one without an end", "victim")
    for uplinks, words in ((None, ""), (1, " with 1 of 4 uplinks")):
        equal(setting.words([{"config": load | own, "runs": [{"seed": 1, "load": 40}]}
                             for own in ({"base": "paper", "uplinks": uplinks}, {"base": "linux"})]),
              "96 hosts, 2 tiers, 2:1, 40 Gbit/s; 300 flows of web search, incasts of 95 x 8 x 8 kB,"
              f" load 40 %; over the papers' base{words} and over today's Linux; 1 seed",
              "two bases")
    # The report describes each kind of experiment of the tree's figures.
    kinds = {run.command[0].replace("-", "_") for figure in catalogue.load() for run in figure.runs}
    for kind in kinds - {"load", "deflect", "victim"}:
        true(of({"cc": "reno"}, experiment=kind, senders=6, flows=6, bytes=32768, rate=10**10,
                background=0), kind)


@case("a description with an invalid number is refused")
def refused():
    figure = {"title": "t", "paper": "A, 1", "command": "load", "plot": [{"y": "a"}],
              "vary": {"cc": ["x"]}}
    number = {"what": "w", "key": "k", "of": {}, "paper": 1, "read": "text, 7"}
    for change in ({"read": "plot"}, {"paper": "big"}, {"paper": "similar"},
                   {"paper": [2, 1]}, {"read": "curve"}, {"uncertainty": 1}, {"want": "most"},
                   {"take": "median"}, {"because": [{"for": [2, 1], "why": "w"}]},
                   {"because": [{"why": "w"}]}, {"over": {"cc": ["z"]}}, {"differs": "x"},
                   {"today": {"of": {}}}):
        try:
            catalogue._check("f", figure | {"compare": [number | change]})
        except catalogue.Wrong:
            continue
        raise Failed(f"accepted: {change}")
    catalogue._check("f", figure | {"compare": [number]})
    # Bars need transports: varied, or from the command.
    bars = {"vary": {"seed": [1]}, "command": "load --cc x"}
    catalogue._check("f", figure | bars)
    two = figure | {"vary": {"base": ["paper", "linux"], "cc": ["x"], "seed": [1, 2]}}
    catalogue._check("f", two | {"also": {"paper": ["z"]}, "fewer": {"linux": {"seed": [1]}},
                                 "compare": [number | {"of": {"cc": "z"},
                                                       "today": {"of": {"cc": "x"}}}]})
    for wrong in (figure | bars | {"command": "load"},
                  figure | bars | {"plot": [{"x": "cc", "y": "a"}]},
                  figure | {"compare": [number, number]}, figure | {"also": {"paper": ["z"]}},
                  figure | {"fewer": {"linux": {"cc": ["x"]}}},
                  figure | {"vary": {"cc": ["x"], "base": ["papers"]}},
                  two | {"fewer": {"linux": {"seed": [3]}}}, two | {"fewer": {"linux": {"seed": []}}},
                  two | {"fewer": {"linux": {"load": [1]}}},
                  two | {"compare": [number | {"today": {"off": {}}}]},
                  two | {"compare": [number | {"today": {"of": {"cc": "z"}}}]}):
        try:
            catalogue._check("f", wrong)
        except catalogue.Wrong:
            continue
        raise Failed(f"accepted: {wrong}")


@case("numbers as text: missing, zero, a range, a word, a change")
def as_text():
    equal([page.number(*of) for of in ((None,), (0, "+%"), (0.0,), ([-83, -77], "+%"),
                                       ("similar",), (-30.0, "+%"), (2.5, "×"), (10866.0, "us"),
                                       (1234, "+%"), (1.33e-7,))],
          ["-", "0 %", "0", "-83 … -77 %", "similar", "-30 %", "2.5 ×", "10900 us", "+1230 %",
           "1.33e-07"], "texts")


@case("--strict and --record are refused with another catalogue")
def own_only():
    for option in ("--strict", "--record"):
        with tempfile.TemporaryDirectory() as where:
            done = subprocess.run([TOP / "scripts/figures", "--catalogue", where, option],
                                  capture_output=True, text=True, check=False)
        equal((done.returncode, len(re.findall("\n", done.stderr))), (1, 1), done.stderr)


if __name__ == "__main__":
    tap.main()
