# SPDX-License-Identifier: GPL-2.0
"""Write the report of all figures, as a page and as a PDF of it.

	python3 -m experiments.figures.page SCALE CATALOGUE DIRECTORY FIGURE...
"""

import html
import pathlib
import shlex
import sys

from experiments.figures import catalogue, setting, verdict

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
img { max-width: 100%; background: white; }
table { border-collapse: collapse; margin: .6em 0; }
td, th { padding: .15em .8em; border-bottom: 1px solid #8884; text-align: right; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; }
pre { background: #8881; padding: .6em; white-space: pre-wrap; font-size: 12px; }
.met { color: #00603d; color: light-dark(#00603d, #4fd0a0); }
.beyond { color: #00457a; color: light-dark(#00457a, #7fb8ff); }
.missed { color: #a03a00; color: light-dark(#a03a00, #ff9d5c); font-weight: bold; }
section { break-inside: avoid; margin-top: 2.5em; }
@page { size: A4; margin: 15mm; }
"""


def number(value, unit=""):
    """As it is written, also the paper's words and its [LOW, HIGH]."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"{number(value[0])} … {number(value[1], unit)}"
    if isinstance(value, (int, float)):
        sign = "+" if unit == "+%" and value else ""
        return f"{catalogue.digits(value, sign)} {unit.lstrip('+')}".strip()
    return str(value)


def _spread(value, spread, unit):
    text = number(value, unit)
    if spread and value is not None and spread[0] != spread[1]:
        text += f" ({number(spread[0])} … {number(spread[1])})"
    return text


BASES = ("over the paper's base", "today's Linux", "× ideal")


def columns(one):
    """Our number by BASES, from its lowest seed to its highest; an empty text without a number."""
    ours = _spread(one.ours, one.spread, one.unit)
    ideal = "" if one.ideal is None else number(one.ideal, "×")
    if one.base == catalogue.LINUX:
        return "", ours, ideal
    today = "" if one.today is None else _spread(one.today, one.today_spread, one.unit)
    return ours, today, ideal


def _table(head, lines):
    cells = [[f"<th>{html.escape(text)}</th>" for text in head]]
    cells += [[f"<td>{html.escape(text)}</td>" for text in line] for line in lines]
    return "<table>" + "".join(f"<tr>{''.join(line)}</tr>" for line in cells) + "</table>"


def _verdict(one):
    return f"<td class=\"{one.verdict.kind}\">{html.escape(str(one.verdict))}</td>"


def _numbers(numbers):
    if not numbers:
        return "<p>Drawn only: nothing is compared.</p>"
    head = "".join(f"<th>{text}</th>" for text in
                   ("", *BASES, "the paper's", "read from", "verdict", "why"))
    lines = [f"<tr><td>{html.escape(one.what)}</td>"
             + "".join(f"<td>{html.escape(text)}</td>" for text in columns(one))
             + f"<td>{html.escape(number(one.number['paper'], one.unit))}</td>"
             f"<td>{html.escape(one.number['read'])}</td>{_verdict(one)}"
             f"<td>{html.escape(one.explanation)}</td></tr>" for one in numbers]
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def _drawn(figure, rows):
    """The drawn values, as a table."""
    about = figure.about
    keys = [*about.get("vary", {}), *dict.fromkeys(key for panel in about["plot"]
                                                   for key in panel.get("by", []))]
    head = [catalogue.WORDS.get(key, key) for key in keys]
    head += [", ".join(filter(None, (panel.get("title"), catalogue.label(panel))))
             for panel in about["plot"]]
    lines = [[str(row.get(key, "-")) for key in keys]
             + [number(catalogue.value(row, panel)) for panel in about["plot"]] for row in rows]
    return f"<details><summary>the numbers</summary>{_table(head, lines)}</details>"


def _made_with(figure, results):
    """The commands, and the versions of their runs."""
    commands = "\n".join(shlex.join(["scripts/experiment", *run.command])
                         for run in figure.runs)
    return (f"<p>greenlane {html.escape(catalogue.made(results))}</p>"
            f"<details><summary>{len(results)} runs</summary>"
            f"<pre>{html.escape(commands)}</pre></details>")


def _settings(figure, results):
    lines = [("ours", setting.words(results)), ("the paper's", figure.about.get("setting", ""))]
    return "".join(f"<br>{who}: {html.escape(text)}" for who, text in lines if text)


def _section(figure, directory):
    results = figure.results(directory / "runs")
    rows = figure.rows(results)
    about = figure.about
    return (f'<section id="{figure.name}"><h2>{html.escape(about["title"])}</h2>'
            f'<p>{html.escape(about["paper"])}. {html.escape(about.get("text", ""))}'
            f'{_settings(figure, results)}</p>'
            f'<img src="{figure.name}.svg" alt="{html.escape(about["title"])}">'
            + _numbers(catalogue.compared(figure, rows)) + _drawn(figure, rows)
            + _made_with(figure, results) + "</section>")


def _counts(figures, directory):
    """The first sentence of the report: counts of verdicts, by paper."""
    verdicts = [(figure.of, one.verdict) for figure in figures
                for one in catalogue.compared(figure,
                                              figure.rows(figure.results(directory / "runs")))]
    of = verdict.counts(verdicts)
    drawn = [figure.name for figure in figures if not figure.about.get("compare")]
    lines = [f"<li><b>{paper}</b>: {verdict.sentence(of[paper])}</li>" for paper in of]
    if drawn:
        lines.append(f"<li>nothing is compared in {', '.join(drawn)}</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _absent(directory):
    lines = [f"<li>{html.escape(paper)}, {html.escape(what)}: {html.escape(why)}</li>"
             for paper, of in catalogue.absent(directory).items() for what, why in of.items()]
    return f'<section><h2>What is absent</h2><ul>{"".join(lines)}</ul></section>' if lines else ""


def page(scale, figures, directory, where):
    """The report, as HTML."""
    contents = "".join(f'<li><a href="#{f.name}">{f.name}</a>: {html.escape(f.about["title"])}</li>'
                       for f in figures)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f"<title>greenlane: the papers' figures</title><style>{STYLE}</style></head><body>"
            f"<h1>greenlane: the papers' figures</h1>{_counts(figures, directory)}"
            "<p>A number is met if it is at least as good as the paper's, or misses it by no more"
            " than a tenth, and beyond if it is better by more than a factor of two."
            f" Real Linux TCP in User-Mode Linux, in virtual time; scale: {scale}.</p><ul>{contents}</ul>"
            + "".join(_section(figure, directory) for figure in figures)
            + _absent(where) + "</body></html>\n")


def main(scale, where, directory, *names):
    """index.html and figures.pdf."""
    directory = pathlib.Path(directory)
    figures = [f for f in catalogue.load(scale, directory=where) if f.name in names]
    text = page(scale, figures, directory, where)
    (directory / "index.html").write_text(text, encoding="utf-8")
    import weasyprint   # its library, which only this needs, may not be there
    # A reader of paper cannot unfold a part.
    weasyprint.HTML(string=text.replace("<details>", "<details open>"),
                    base_url=str(directory)).write_pdf(directory / "figures.pdf")


if __name__ == "__main__":
    main(*sys.argv[1:])
