#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The verdicts of scripts/figures: the rule, by hand; what is in the tree, against itself.

No guest: everything here is arithmetic, and text that was generated.
"""
import itertools
import math
import pathlib
import re
import subprocess
import tempfile

from lab import TOP, tap
from lab.figures import catalogue, page, record, setting, verdict
from lab.tap import Failed, case, equal, true

CHANGE = {"to": {}, "of": {}}
RATIO = {"to": {}, "of": {}, "as": "ratio"}
# What it is, its number and ours: the verdict, and how far it is.
RULE = {
    "a tail at least as good": ({"paper": -80.9, "want": "less"} | CHANGE, -85, "met", ""),
    "a tenth of what is left": ({"paper": -80.9, "want": "less"} | CHANGE, -79.0, "met", ""),
    "just beyond it": ({"paper": -80.9, "want": "less"} | CHANGE, -78.9, "missed", "by 2 points"),
    "a tenth of the change": ({"paper": -19, "want": "less"} | CHANGE, -17.2, "met", ""),
    "beyond that": ({"paper": -19, "want": "less"} | CHANGE, -17.0, "missed", "by 2 points"),
    "more, as a change": ({"paper": 48, "want": "more"} | CHANGE, 43.3, "met", ""),
    "not so much more": ({"paper": 48, "want": "more"} | CHANGE, 43, "missed", "by 5 points"),
    "not worse, of a value": ({"paper": 1.84, "want": "less"}, 1.0, "met", ""),
    "a tenth worse": ({"paper": 100.0, "want": "less"}, 110, "met", ""),
    "more than that": ({"paper": 100.0, "want": "less"}, 111, "missed", "by 11 %"),
    "the same, too small": ({"paper": 100.0}, 89, "missed", "by 11 %"),
    "the same, near enough": ({"paper": 100.0}, 91, "met", ""),
    "rounding, of a small number": ({"paper": 3, "want": "less"} | CHANGE, 3.5, "met", ""),
    "its end": ({"paper": 3, "want": "less"} | CHANGE, 3.6, "missed", "by 0.6 points"),
    "none is none": ({"paper": 0, "want": "less"}, 0, "met", ""),
    "one is not none": ({"paper": 0, "want": "less"}, 1, "missed", "by 1"),
    "a change to nothing": ({"paper": -90, "want": "less"} | CHANGE, -100.0, "met", ""),
    "no change at all": ({"paper": -30, "want": "less"} | CHANGE, 0.0, "missed", "by 30 points"),
    "in a range": ({"paper": [2.5, 3.3]} | RATIO, 3, "met", ""),
    "below it": ({"paper": [2.5, 3.3]} | RATIO, 2.2, "missed", "by 12 %"),
    "above it, where more is better": ({"paper": [2.5, 3.3], "want": "more"} | RATIO, 9, "met", ""),
    "similar": ({"paper": "similar"} | CHANGE, -9.9, "met", ""),
    "not similar": ({"paper": "similar"} | CHANGE, 12, "missed", "by 2 points"),
    "similar, as a ratio": ({"paper": "similar"} | RATIO, 1.05, "met", ""),
    "better than similar": ({"paper": "similar", "want": "more"} | RATIO, 3, "met", ""),
    "more at its word": ({"paper": "more"} | CHANGE, 0.1, "met", ""),
    "none is not more": ({"paper": "more"} | CHANGE, 0.0, "missed",
                         "by 0: no difference"),
    "none at all is not more": ({"paper": "more"}, 0, "missed", "by 0: no difference"),
    "one is more than none": ({"paper": "more"}, 1e-9, "met", ""),
    "less at its word": ({"paper": "less"} | CHANGE, -0.1, "met", ""),
    "more is not less": ({"paper": "less"} | CHANGE, 5, "missed", "by 5 points"),
    "read off a curve": ({"paper": 10.0, "uncertainty": 3, "want": "less"}, 12.9, "met", ""),
    "beyond the curve": ({"paper": 10.0, "uncertainty": 3, "want": "less"}, 13.1, "missed",
                         "by 31 %"),
    "not comparable, though better": ({"paper": 5, "want": "less", "not_comparable": "other"}, 1,
                                      "not comparable", "other"),
    "no number": ({"paper": 5}, None, "not run", ""),
    "not a number": ({"paper": 5}, math.nan, "not run", ""),
}


@case("the rule, by hand", number=tuple(RULE))
def rule(number):
    described, ours, kind, by = RULE[number]
    seen = verdict.judge(ours, described)
    equal((seen.kind, seen.why), (kind, by), "verdict")


@case("none of a few is no evidence for a small share; none of many is, and so is one of a few")
def samples():
    number = {"paper": 1e-5, "want": "less"}
    equal([verdict.judge(share, number, count).kind for share, count in
           ((0, 299_999), (0, 300_000), (1e-4, 10_000))],
          ["not comparable", "met", "missed"], "verdicts")
    equal(verdict.judge(0, {"paper": 0, "want": "less"}, 5).kind, "met", "of a paper's own none")


@case("a change: to nothing, from nothing, of nothing, without one of the two")
def changes():
    equal([verdict.difference(*of, CHANGE) for of in
           ((0, 5), (0, 0), (3, 0), (None, 5), (5, None), (1, 4))],
          [-100, 0, None, None, None, -75], "percent")
    equal([verdict.difference(*of, RATIO) for of in ((2, 5), (0, 5), (2, 0))],
          [2.5, None, 0], "times")


@case("of several: mean, best and worst, as more or less is better; none of none")
def several():
    for want, best, worst in (("less", -3, 5), ("more", 5, -3), ("same", -3, 5)):
        for take, one in (("best", best), ("worst", worst), ("mean", 1)):
            equal(verdict.taken([1, -3, 5], {"want": want, "take": take}), one, f"{want}, {take}")
    equal(verdict.taken([None], {}), None, "of none")
    rows = [{"cc": cc, "n": n, "load": load} for load, cc, n in
            ((1, "a", 2), (1, "b", 8), (2, "a", 6), (2, "b", 8))]
    number = {"what": "w", "key": "n", "paper": -75, "want": "less", "over": {"load": [1, 2]},
              "of": {"cc": "a"}, "to": {"cc": "b"}}
    for take, seen, kind in (("mean", -50, "missed"), ("best", -75, "met"), ("worst", -25, "missed")):
        one, = catalogue.compared(catalogue.Figure(
            "f", {"compare": [number | {"take": take}]}, ()), rows)
        equal((one.ours, one.spread, one.verdict.kind), (seen, (-75, -25), kind), take)
    # The best of those that are there says nothing of the one that is not.
    one, = catalogue.compared(catalogue.Figure("f", {"compare": [number | {"take": "best"}]}, ()),
                              rows[:3])
    equal((one.ours, one.verdict.kind), (None, "not run"), "with one that is missing")


@case("seeds are pooled before anything is taken; the spread is theirs; one that is missing")
def seeds():
    rows = [{"cc": cc, "n": n, "seed": seed, "load": load, "k": 10} for seed, load, cc, n in
            ((1, 1, "a", 2), (1, 1, "b", 8), (2, 1, "a", 6), (2, 1, "b", 8),
             (1, 2, "a", 7), (1, 2, "b", 8), (2, 2, "a", 1), (2, 2, "b", 8))]
    number = {"what": "w", "key": "n", "paper": 0, "of": {"cc": "a"}, "to": {"cc": "b"},
              "want": "less", "take": "best", "over": {"load": [1, 2]}}
    figure = catalogue.Figure("f", {"compare": [number], "vary": {"seed": [1, 2]}}, ())
    one, = catalogue.compared(figure, rows)
    # Both loads have a mean of 4 of 8; the best of single ones is 1 of 8.
    equal((one.ours, one.spread), (-50, (-87.5, -75)), "ours, of each seed")
    one, = catalogue.compared(figure, [row for row in rows if row["seed"] == 1])
    equal((one.ours, one.verdict.kind), (None, "not run"), "one seed of two")
    one, = catalogue.compared(figure, rows[:-1])
    equal(one.verdict.kind, "not run", "one row of eight")
    share = {"what": "w", "key": "z", "paper": 0.1, "of": {"cc": "a", "load": 1}, "samples": "k",
             "want": "less"}
    figure = catalogue.Figure("f", {"compare": [share], "vary": {"seed": [1, 2]}}, ())
    one, = catalogue.compared(figure, [row | {"z": 0} for row in rows])
    equal(one.verdict.why, "none of 20 is no evidence for 0.1", "samples of all seeds")


@case("more and less: each seed has to agree, whatever their mean; a number may have a spread")
def every_seed():
    for values, paper, want in (((9, 6), "less", "met"), ((9, 6), "more", "missed"),
                                ((9, 12), "more", "missed"), ((12, 13), "more", "met"),
                                ((9, 11), 0, "met")):
        rows = [{"cc": cc, "n": n, "seed": seed} for seed, ours in enumerate(values)
                for cc, n in (("a", ours), ("b", 10))]
        number = {"what": "w", "key": "n", "paper": paper, "of": {"cc": "a"}, "to": {"cc": "b"}}
        one, = catalogue.compared(catalogue.Figure(
            "f", {"compare": [number], "vary": {"seed": [0, 1]}}, ()), rows)
        equal(one.verdict.kind, want, f"{values} against 10, {paper}")
    # A seed in which there is nothing to divide by does not agree.
    rows = [{"cc": cc, "n": n, "seed": seed} for seed, cc, n in
            ((0, "a", 5), (0, "b", 20), (1, "a", 5), (1, "b", 0))]
    number |= {"paper": "less"}
    one, = catalogue.compared(catalogue.Figure(
        "f", {"compare": [number], "vary": {"seed": [0, 1]}}, ()), rows)
    equal((one.ours, one.verdict.kind), (-50, "missed"), "a seed of nothing")
    # Without seeds a spread is of the loads, say, and their mean is what is compared.
    rows = [{"cc": cc, "n": n, "load": load} for load, cc, n in
            ((1, "a", 1), (1, "b", 2), (2, "a", 4), (2, "b", 2))]
    number |= {"paper": "more", "over": {"load": [1, 2]}}
    one, = catalogue.compared(catalogue.Figure("f", {"compare": [number]}, ()), rows)
    equal((one.spread, one.verdict.kind), ((-50, 100), "met"), "over loads")


@case("an explanation is shown in its range only; of a miss without one the cause is unknown")
def explanations():
    number = {"what": "w", "key": "n", "paper": 1, "of": {},
              "because": [{"for": [2, 3], "why": "a"}, {"for": [5, 6], "why": "b"}]}
    figure = catalogue.Figure("f", {"compare": [number]}, ())
    for ours, why in ((1, ""), (1.9, "cause unknown"), (2, "a"), (3, "a"), (4, "cause unknown"),
                      (5.5, "b")):
        one, = catalogue.compared(figure, [{"n": ours}])
        equal(one.explanation, why, f"of {ours}")


@case("counts by paper, in words")
def counted():
    of = verdict.counts([("A", verdict.Verdict(kind)) for kind in
                         ("met", "met", "missed", "not run")] + [("B", verdict.Verdict("met"))])
    equal([verdict.sentence(of[paper]) for paper in of],
          ["2 met, 1 missed, 1 not run", "1 met, 0 missed"], "words")


@case("--strict: what is worse than the record, and only that")
def worse():
    for was, now, is_worse in (
            ("met", "missed", True), ("met", "not comparable", True), ("met", "not run", True),
            ("missed", "not comparable", True), ("missed", "not run", True), ("met", None, True),
            ("missed", None, True), ("met", "met", False), ("missed", "missed", False),
            ("missed", "met", False), ("not run", "missed", False), ("not run", None, False),
            ("not comparable", "missed", False)):
        equal(bool(verdict.worse({"a": was}, {"a": now} if now else {})), is_worse,
              f"{was} to {now}")
    # Figures that were not asked for are not missed.
    recorded = {name: {"numbers": {"n": {"verdict": "met"}}} for name in ("f", "g")}
    figures = [catalogue.Figure("f", {}, ())]
    equal(record.strict(recorded, figures, {"f": recorded["f"]}), [], "f alone")
    equal(record.strict(recorded, figures, {"f": {"numbers": {"n": {"verdict": "missed"}}}}),
          ["f: n: met before, missed now"], "f, worse")


@case("a record is read as it was written")
def written():
    figures = {"f": {"made": "v", "setting": 'a "b" – \\', "numbers": {
        'w "x"': {"verdict": "met", "by": "", "ours": "−1", "why": "é"}}}}
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where, "verdicts.toml")
        path.write_text(record.toml({"small": figures}), encoding="utf-8")
        equal((record.read("small", path), record.read("large", path)), (figures, {}), "again")


def same(seen, expected, what):
    """Two texts; the first line that differs is said."""
    for number, (one, other) in enumerate(itertools.zip_longest(
            seen.splitlines(), expected.splitlines()), 1):
        equal(one, other, f"{what}:{number}")
    equal(seen, expected, what)


@case("the page of verdicts and README's counts are those of the record")
def in_the_tree():
    recorded, figures = record.read("small"), catalogue.load("small")
    true(recorded, "nothing is recorded")
    same(record.PAGE.read_text(encoding="utf-8"),
         record.rst("small", recorded, figures, catalogue.absent()), "Documentation/verdicts.rst")
    text = record.README.read_text(encoding="utf-8")
    same(text, record.readme(text, recorded, figures), "README.md")
    known = {f"{figure.name}: {number['what']}" for figure in figures
             for number in figure.about.get("compare", [])}
    equal(set(record.kinds(recorded)) - known, set(), "recorded numbers that no figure has")


@case("README's pictures were drawn of the runs whose verdicts are recorded")
def gallery():
    recorded = record.read("small")
    pictures = sorted((TOP / "Documentation/gallery").glob("*.svg"))
    true(pictures, "no pictures")
    for picture in pictures:
        text = picture.read_text(encoding="utf-8")
        made = re.search(r"<dc:description>(.*?)</dc:description>", text, re.S)
        equal(made and made[1].strip(), recorded[picture.stem]["made"], picture.name)
        true(f"gallery/{picture.name}" in record.README.read_text(encoding="utf-8"), "in README")


@case("each axis of the tree's figures has words and not a key, and each number has its setting")
def words():
    figures = catalogue.load()
    for figure in figures:
        for panel in figure.about["plot"]:
            for key in (panel["y"], panel.get("x", "load")):
                true("label" in panel or key in catalogue.WORDS, f"{figure.name}: {key}")
        true("setting" in figure.about or not figure.about.get("compare"), figure.name)
        for number in figure.about.get("compare", []):
            for one in number.get("because", []):
                # A text for any number would never go away.
                true(one["for"][1] - one["for"][0] < 1e6, f"{figure.name}: {number['what']}")


@case("what is compared is in the paper: five values that none has are not among them")
def no_others():
    values = {(figure.name, number["paper"]) for figure in catalogue.load()
              for number in figure.about.get("compare", [])
              if not isinstance(number["paper"], list)}
    equal(values & {("aeolus-fig11", -50), ("dart-fig13", 40), ("tlt-fig12", -90),
                    ("dart-table2", 10), ("dart-table2", 20), ("aeolus-table7", 10)}, set(),
          "values")
    pages = {path.name: path.read_text(encoding="utf-8")
             for path in (TOP / "Documentation").glob("*.rst")}
    for name, text in (("applications.rst", "target was 90 %"), ("deflect.rst", "at most 10 %"),
                       ("deflect.rst", "Throughput 40 %"), ("first-rtt.rst", "≥ 10 ×"),
                       ("experiments.rst", "≥ 50 %")):
        true(text not in pages[name], f"{name}: {text}")


@case("a setting says what was run: hosts, tiers, oversubscription, sizes, seeds")
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
    equal(of(experiment="deflect", topology="leaf-spine", hosts=32, leaves=4, spines=2,
             rate=10**10, degree=16, bytes=[2048, 8192], short=40, long_bytes=1 << 30),
          "32 hosts, 2 tiers, 4:1, 10 Gbit/s; incasts of 16 messages of 2 kB, 8 kB, 40 % of the"
          " load of 40 %; long flows of 1 GB; 2 seeds", "deflect")
    equal(of({"bytes": 30000}, {"bytes": 40960}, experiment="first_rtt", senders=7, rate=10**10,
             bytes=0), "7 hosts to 1 at one switch, 10 Gbit/s; messages of 30 kB or 40 kB",
          "first-rtt, of two sizes")
    equal(of({"cc": "reno"}, experiment="victim", topology="trunk", senders=6, flows=600,
             bytes=32768, rate=10**10, trunk=40 * 10**9),
          "6 hosts to 1 and 1 to 1 over a trunk of 40 Gbit/s, 10 Gbit/s; 600 flows of 32 kB beside"
          " one without an end", "victim")
    # Each kind that the tree's figures have is one that the report has words for.
    kinds = {run.command[0].replace("-", "_") for figure in catalogue.load() for run in figure.runs}
    for kind in kinds - {"load", "deflect", "victim"}:
        true(of({"cc": "reno"}, experiment=kind, senders=6, flows=6, bytes=32768, rate=10**10,
                background=0), kind)


@case("a description with a number that cannot be judged is refused")
def refused():
    figure = {"title": "t", "paper": "A, 1", "command": "load", "plot": [{"y": "a"}],
              "vary": {"cc": ["x"]}}
    number = {"what": "w", "key": "k", "of": {}, "paper": 1, "read": "text, 7"}
    for change in ({"read": "plot"}, {"paper": "big"}, {"paper": "similar"},
                   {"paper": [2, 1]}, {"read": "curve"}, {"uncertainty": 1}, {"want": "most"},
                   {"take": "median"}, {"because": [{"for": [2, 1], "why": "w"}]},
                   {"because": [{"why": "w"}]}, {"over": {"cc": ["z"]}}, {"differs": "x"}):
        try:
            catalogue._check("f", figure | {"compare": [number | change]})
        except catalogue.Wrong:
            continue
        raise Failed(f"accepted: {change}")
    catalogue._check("f", figure | {"compare": [number]})
    try:
        catalogue._check("f", figure | {"compare": [number, number]})
    except catalogue.Wrong:
        return
    raise Failed("accepted: two of one name")


@case("numbers as they are written: none, zero, a range, a word, a change")
def as_text():
    equal([page.number(*of) for of in ((None,), (0, "+%"), (0.0,), ([-83, -77], "+%"),
                                       ("similar",), (-30.0, "+%"), (2.5, "×"), (10866.0, "us"),
                                       (1234, "+%"), (1.33e-7,))],
          ["-", "0 %", "0", "-83 … -77 %", "similar", "-30 %", "2.5 ×", "10900 us", "+1230 %",
           "1.33e-07"], "texts")


@case("--strict and --record are for the tree's own figures")
def own_only():
    for option in ("--strict", "--record"):
        with tempfile.TemporaryDirectory() as where:
            done = subprocess.run([TOP / "scripts/figures", "--catalogue", where, option],
                                  capture_output=True, text=True, check=False)
        equal((done.returncode, len(re.findall("\n", done.stderr))), (1, 1), done.stderr)


if __name__ == "__main__":
    tap.main()
