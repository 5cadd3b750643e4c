# SPDX-License-Identifier: GPL-2.0
"""The verdicts in the tree, which `scripts/figures --record` writes, and --strict reads.

verdicts.toml has every measured number and its version.  It alone determines the tables of
Documentation/results.rst and README's shares (guest_verdicts.py checks that they do), and
build/verdicts.rst, which has every number.
"""

import json
import re
import textwrap
import tomllib

from experiments.figures import catalogue, page, setting, verdict
from lab import TOP

RECORD = TOP / "Documentation/gallery/verdicts.toml"
PAGE = TOP / "build/verdicts.rst"
RESULTS = TOP / "Documentation/results.rst"
README = TOP / "README.md"
# Of page.BASES.
COLUMNS = ("ours", "today", "ideal")
_README = "<!-- scripts/figures --record writes this -->\n", "<!-- to here -->\n"
_RESULTS = ".. scripts/figures --record writes this\n", ".. to here\n"
_HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# Each number, its verdict and its version; scripts/figures --record writes them.
"""


def outcome(figures, directory):
    """{figure: its record}, of the figures that compare a number and have run."""
    found = {}
    for figure in figures:
        results = figure.results(directory / "runs", partly=True)
        numbers = catalogue.compared(figure, figure.rows(results))
        if not numbers:
            continue
        found[figure.name] = {
            "made": catalogue.made(results), "setting": setting.words(results),
            "numbers": {one.what: {
                "verdict": one.verdict.kind, "by": one.verdict.why,
                **dict(zip(COLUMNS, page.columns(one))), "why": one.explanation}
                for one in numbers}}
    return found


def kinds(recorded):
    """{figure and number: verdict}."""
    return {f"{figure}: {what}": number["verdict"]
            for figure, of in recorded.items() for what, number in of["numbers"].items()}


def read(scale, path=RECORD):
    """The record of a scale."""
    if not path.exists():
        return {}
    return tomllib.loads(path.read_text(encoding="utf-8")).get(scale, {})


def strict(recorded, figures, now):
    """A message for each verdict of these figures that is worse than the recorded one."""
    names = {figure.name for figure in figures}
    mine = {name: of for name, of in recorded.items() if name in names}
    return [f"{name}: {was} before, {kind} now"
            for name, was, kind in verdict.worse(kinds(mine), kinds(now))]


def _text(value):
    """A string of TOML."""
    return json.dumps(value, ensure_ascii=False)


def toml(scales):
    """The record of all scales, as a file."""
    lines = [_HEAD]
    for scale, figures in sorted(scales.items()):
        for name, of in sorted(figures.items()):
            lines.append(f"[{scale}.{name}]\nmade = {_text(of['made'])}\n"
                         f"setting = {_text(of['setting'])}\n\n[{scale}.{name}.numbers]")
            lines += [f"{_text(what)} = {{ "
                      + ", ".join(f"{key} = {_text(value)}" for key, value in number.items())
                      + " }" for what, number in of["numbers"].items()]
            lines.append("")
    return "\n".join(lines)


def _numbers(recorded, figure):
    """{name of a number: its record} of a figure; empty if it was not run."""
    return recorded.get(figure.name, {}).get("numbers", {})


def counts(recorded, figures):
    """{paper: {verdict: how many}}; a figure without a record was not run."""
    verdicts = []
    for figure in figures:
        for number in figure.about.get("compare", []):
            one = _numbers(recorded, figure).get(number["what"])
            verdicts.append((figure.of, verdict.Verdict(one["verdict"] if one
                                                        else verdict.NOT_RUN)))
    return verdict.counts(verdicts)


def _list_table(head, lines, widths):
    out = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for line in [head, *lines]:
        out += [f"   {'* ' if not at else '  '}- {cell or '..'}".rstrip()
                for at, cell in enumerate(line)]
    return "\n".join(out) + "\n"


def _cell(text):
    """The text with RST's special characters escaped."""
    return re.sub(r"([*`|_\\])", r"\\\1", text)


def rst(scale, recorded, figures, absent):
    """The page of all verdicts."""
    title = "Verdicts: one for each number"
    out = [".. SPDX-License-Identifier: GPL-2.0\n",
           f"{'=' * len(title)}\n{title}\n{'=' * len(title)}\n",
           f"At the {scale} scale.\n"]
    out += [_counts(recorded, figures), _headlines(recorded, figures)]
    for figure in figures:
        if not figure.about.get("compare"):
            continue
        about, mine = figure.about, recorded.get(figure.name)
        title = f"{about['paper']}: {about['title']}"
        out.append(f"{title}\n{'=' * len(title)}\n")
        out.append(f"| the paper: {_cell(about.get('setting', ''))}")
        out.append(f"| here: {_cell(mine['setting'])}\n| {_cell(mine['made'])}\n" if mine
                   else "| here: not run\n")
        lines = []
        for number in catalogue.compared(figure, []):
            paper = f"{page.number(number.number['paper'], number.unit)} ({number.number['read']})"
            one = _numbers(recorded, figure).get(number.what)
            said = str(verdict.Verdict(one["verdict"], one["by"])) if one else verdict.NOT_RUN
            said += f"; {one['why']}" if one and one["why"] else ""
            lines.append([_cell(text) for text in (
                number.what, paper, *((one or {}).get(key, "") for key in COLUMNS), said)])
        out.append(_list_table(("what", "the paper", *page.BASES, "verdict"), lines,
                               "28 18 14 14 6 20"))
    drawn = [figure.name for figure in figures if not figure.about.get("compare")]
    out.append("Absent\n======\n")
    out.append("\n".join(f"* {_cell(paper)}, {_cell(what)}: {_cell(why)}"
                         for paper, of in absent.items() for what, why in of.items()) + "\n")
    out.append("\n".join(textwrap.wrap(f"Drawn only, without a comparison: {', '.join(drawn)}.",
                                       94, break_on_hyphens=False)) + "\n" if drawn else "")
    return "\n".join(out)


def _short(figure):
    """Which of its paper's figures it is."""
    return figure.about["paper"].partition(", ")[2].partition(" (")[0]


def _missed(recorded, figures, paper):
    """Figures with misses, and the number of misses of each."""
    found = []
    for figure in figures:
        numbers = _numbers(recorded, figure).values()
        count = sum(number["verdict"] == verdict.MISSED for number in numbers)
        if figure.of == paper and count:
            found.append(f"{_short(figure)} ({count} of {len(numbers)})")
    return ", ".join(found)


def _causes(recorded, figures):
    """How many misses have a cause, in words."""
    reasons = [number["why"] for figure in figures
               for number in _numbers(recorded, figure).values()
               if number["verdict"] == verdict.MISSED]
    none = reasons.count(catalogue.NO_CAUSE)
    part = sum(why.endswith(catalogue.PART) for why in reasons)
    return (f"Of the {len(reasons)} misses {none} have no known cause, and {part} the cause of a"
            " part.\n")


def _counts(recorded, figures):
    """The table of verdicts by paper, with the figures of the misses."""
    of = counts(recorded, figures)
    return _list_table(("paper", *verdict.KINDS, "missed in"), [
        [paper, *(str(of[paper][kind]) for kind in verdict.KINDS),
         _cell(_missed(recorded, figures, paper))] for paper in of], "10 7 8 8 12 8 47") + (
             "\n" + _causes(recorded, figures))


def _of_headlines(recorded, figures):
    """(figure, number, its record) of each headline of a paper."""
    for figure in figures:
        for one in catalogue.compared(figure, []):
            if one.number.get("headline"):
                yield figure, one, _numbers(recorded, figure).get(
                    one.what, {"verdict": verdict.NOT_RUN, "by": ""})


def _headlines(recorded, figures):
    """The table of headlines, over each base."""
    return _list_table(("headline of a paper", "the paper", *page.BASES, "verdict"), [
        [_cell(f"{figure.of}, {_short(figure)}: {one.what}"),
         _cell(page.number(one.number["paper"], one.unit)),
         *(_cell(mine.get(key, "")) for key in COLUMNS),
         f"**{mine['verdict']}** {_cell(mine['by'])}".rstrip()]
        for figure, one, mine in _of_headlines(recorded, figures)], "34 12 16 16 8 14")


_GOOD = (verdict.MET, verdict.BEYOND)


def summary(recorded, figures):
    """README's part, by paper: the share of met numbers, among the comparable ones that were run,
    and of all headlines."""
    lines = []
    for paper, of in counts(recorded, figures).items():
        headlines = [mine["verdict"] for figure, _, mine in _of_headlines(recorded, figures)
                     if figure.of == paper]
        good = sum(kind in _GOOD for kind in headlines)
        numbers = sum(of[kind] for kind in _GOOD)
        rest = of[verdict.NOT_COMPARABLE] + of[verdict.NOT_RUN]
        lines.append(f"- **{paper}**: {numbers} of {numbers + of[verdict.MISSED]} numbers met, "
                     f"{good} of {len(headlines)} headlines met; "
                     f"{rest} more numbers not run or not comparable")
    return "\n".join(lines) + "\n"


def _between(marks, text, new):
    """The text with the part between two marks replaced."""
    begin, end = marks
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return before + begin + new + end + after


def readme(text, recorded, figures):
    """README with its part anew."""
    return _between(_README, text, summary(recorded, figures))


def results(text, recorded, figures):
    """results.rst with its part anew: verdicts by paper, and the headlines."""
    return _between(_RESULTS, text, "\n" + _counts(recorded, figures) + "\n"
                    + _headlines(recorded, figures) + "\n")


def _with_cause(one, number):
    """A recorded number with the cause that its figure now has for it."""
    shown = (one["ours"] or one["today"]).split(" ")[0]
    ours = float(shown) if shown not in ("", "-") else None
    judged = verdict.Verdict(one["verdict"], one["by"])
    return one | {"why": catalogue.Compared(number, ours, (), judged).explanation}


def kept(recorded, figures):
    """The part of a record that figures still compare, with the causes that they now have."""
    found = {}
    for figure in figures:
        recent = _numbers(recorded, figure)
        numbers = {number["what"]: _with_cause(recent[number["what"]], number)
                   for number in figure.about.get("compare", []) if number["what"] in recent}
        if numbers:
            found[figure.name] = recorded[figure.name] | {"numbers": numbers}
    return found


def write(scale, now):
    """Record these figures, keep the others, and write the pages that depend on them; these are of
    the small scale, which is all that one machine has run."""
    scales = {one: kept(read(one), catalogue.load(one)) for one in catalogue.SCALES}
    scales[scale].update(now)
    RECORD.write_text(toml({one: of for one, of in scales.items() if of}), encoding="utf-8")
    figures = catalogue.load("small")
    for path, new in ((README, readme), (RESULTS, results)):
        path.write_text(new(path.read_text(encoding="utf-8"), scales["small"], figures),
                        encoding="utf-8")
    write_page()


def write_page():
    """Write the page of every recorded number."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(rst("small", read("small"), catalogue.load("small"), catalogue.absent()),
                    encoding="utf-8")
