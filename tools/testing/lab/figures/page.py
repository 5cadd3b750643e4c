# SPDX-License-Identifier: GPL-2.0
"""Write the report of all figures, as a page and as a PDF of it.

	python3 -m lab.figures.page SCALE CATALOGUE DIRECTORY FIGURE...
"""

import html
import pathlib
import shlex
import sys

import weasyprint

from lab.figures import catalogue

STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; }
img { max-width: 100%; }
table { border-collapse: collapse; margin: .6em 0; }
td, th { padding: .15em .8em; border-bottom: 1px solid #ddd; text-align: right; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; }
pre { background: #f6f6f6; padding: .6em; white-space: pre-wrap; font-size: 12px; }
section { break-inside: avoid; margin-top: 2.5em; }
@page { size: A4; margin: 15mm; }
"""


def _number(value, unit=""):
    if value is None:
        return "-"
    if isinstance(value, (int, float)):
        sign = "+" if unit == "+%" else ""
        return f"{value:{sign}.3g} {unit.lstrip('+')}".strip()
    return str(value)


def _ratio(ours, paper):
    if isinstance(ours, (int, float)) and isinstance(paper, (int, float)) and paper:
        return f"{ours / paper:.2f}"
    return "-"


def _table(head, lines):
    cells = [[f"<th>{html.escape(text)}</th>" for text in head]]
    cells += [[f"<td>{html.escape(text)}</td>" for text in line] for line in lines]
    return "<table>" + "".join(f"<tr>{''.join(line)}</tr>" for line in cells) + "</table>"


def _numbers(figure, rows):
    lines = [(what, _number(ours, unit), _number(paper, unit), _ratio(ours, paper), differs)
             for what, ours, paper, unit, differs in catalogue.compared(figure, rows)]
    return _table(("", "ours", "paper", "ours / paper", "where it differs"), lines) if lines else ""


def _drawn(figure, rows):
    """What is drawn, as a table."""
    about = figure.about
    keys = [*about.get("vary", {}), *dict.fromkeys(key for panel in about["plot"]
                                                   for key in panel.get("by", []))]
    head = keys + [catalogue.label(panel) for panel in about["plot"]]
    lines = [[str(row.get(key, "-")) for key in keys]
             + [_number(catalogue.value(row, panel)) for panel in about["plot"]] for row in rows]
    return f"<details><summary>the numbers</summary>{_table(head, lines)}</details>"


def _made_with(figure, results):
    """The commands, and of what versions."""
    commands = "\n".join(shlex.join(["scripts/experiment", *run.command])
                         for run in figure.runs)
    versions = sorted({f"greenlane {result['version']}, Linux {result['config']['kernel']}"
                       for result in results})
    return (f"<p>{html.escape('; '.join(versions))}</p>"
            f"<details><summary>{len(results)} runs</summary>"
            f"<pre>{html.escape(commands)}</pre></details>")


def _section(figure, directory):
    results = figure.results(directory / "runs")
    rows = figure.rows(results)
    about = figure.about
    return (f'<section id="{figure.name}"><h2>{html.escape(about["title"])}</h2>'
            f'<p>{html.escape(about["paper"])}. {html.escape(about.get("text", ""))}</p>'
            f'<img src="{figure.name}.svg" alt="{html.escape(about["title"])}">'
            + _numbers(figure, rows) + _drawn(figure, rows) + _made_with(figure, results) + "</section>")


def page(scale, figures, directory):
    """The report, as HTML."""
    contents = "".join(f'<li><a href="#{f.name}">{f.name}</a>: {html.escape(f.about["title"])}</li>'
                       for f in figures)
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f"<title>greenlane: the papers' figures</title><style>{STYLE}</style></head><body>"
            f"<h1>greenlane: the papers' figures</h1><p>Real Linux TCP in User-Mode Linux, in"
            f" virtual time; scale: {scale}.</p><ul>{contents}</ul>"
            + "".join(_section(figure, directory) for figure in figures) + "</body></html>\n")


def main(scale, where, directory, *names):
    """index.html and figures.pdf."""
    directory = pathlib.Path(directory)
    figures = [f for f in catalogue.load(scale, directory=where) if f.name in names]
    text = page(scale, figures, directory)
    (directory / "index.html").write_text(text, encoding="utf-8")
    # On paper, nothing can be unfolded.
    weasyprint.HTML(string=text.replace("<details>", "<details open>"),
                    base_url=str(directory)).write_pdf(directory / "figures.pdf")


if __name__ == "__main__":
    main(*sys.argv[1:])
