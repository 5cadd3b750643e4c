#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""scripts/figures: its runs, its report, and its errors.

	this script (host) --> scripts/figures --> Snakemake --> scripts/experiment --> guests

Most cases use their own catalogue, with a network of three hosts.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from experiments import __main__ as experiment
from experiments.figures import catalogue, draw
from experiments.plot import style
from lab import TOP, tap, units
from lab.tap import case, equal, true, within

OUT = tempfile.TemporaryDirectory()
OWN = f"""
[own]
title = "a star & a <test>"
paper = "nobody, Figure 1"
command = "load --topology star --hosts 3 --background 5 --incasts 2 --kernel \
{os.environ.get('GL_KERNEL', '7.3')}"
small = "--seed 1"
large = "--seed 2"
vary = {{ cc = ["reno", "dctcp"], load = [20, 40] }}
plot = [{{ x = "load", y = "fg_p99", unit = "ms" }}, {{ y = "bg_mean", unit = "us", log = true }}]
compare = [
  {{ what = "p99 > 1", key = "fg_p99", unit = "ms", paper = 1, read = "text, <1>", of = {{ cc = "reno", load = 20 }}, because = [{{ for = [0, 1e5], why = "small" }}] }},
  {{ what = "none", key = "fg_p99", paper = 1, read = "table", of = {{ seed = 5 }} }},
]
"""


def figures(*options, text=OWN, out="out"):
    """Run scripts/figures with this catalogue."""
    where = pathlib.Path(OUT.name, "catalogue")
    where.mkdir(exist_ok=True)
    (where / "own.toml").write_text(text, encoding="utf-8")
    return subprocess.run(
        [TOP / "scripts/figures", "--catalogue", where, "--out", pathlib.Path(OUT.name, out), *options],
        capture_output=True, text=True, check=False, timeout=4000)


def made(out="out"):
    """{file name: modification time} of the output directory."""
    return {path.name: path.stat().st_mtime_ns for path in pathlib.Path(OUT.name, out).rglob("*.*")
            if ".snakemake" not in path.parts}


def parsed(where, words):
    """The options that scripts/experiment parses of a command line found at @where."""
    before, sys.argv = sys.argv, ["experiment", *words]
    try:
        return experiment.parse_args()[1]
    except SystemExit as end:
        if not end.code:    # --help
            return None
        raise tap.Failed(f"{where}: {' '.join(words)}") from None
    finally:
        sys.argv = before


def are_commands(**where):
    """Check that scripts/experiment accepts the runs of a catalogue."""
    for scale in catalogue.SCALES:
        for figure in catalogue.load(scale, **where):
            for run in figure.runs:
                args = parsed(figure.name, run.command)
                true(scale == "small" or args.rate < 100e9 or args.fine,
                     f"{figure.name}: 100 Gbit/s and more need --fine")


@case("scripts/experiment accepts each run of the catalogue, at both scales")
def commands():
    are_commands()


@contextlib.contextmanager
def page_lab():
    """Meanwhile the present directory has the lab.toml of experiments.rst."""
    lines = (TOP / "Documentation/experiments.rst").read_text(encoding="utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("\trate = "))
    end = next(i for i, line in enumerate(lines) if i > begin and line and line[0] != "\t")
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "lab.toml").write_text("\n".join(lines[begin:end]), encoding="utf-8")
        os.chdir(directory)
        try:
            yield ()
        finally:
            os.chdir(before)


@case("scripts/experiment accepts each of its commands in README and the pages", setup=page_lab)
def page_commands():
    count = 0
    for page in (TOP / "README.md", *sorted((TOP / "Documentation").glob("*.rst"))):
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        # A command of a literal block, or quoted in a sentence; options in brackets are optional.
        for line, quoted in re.findall(r"^\t?scripts/experiment (.*)|``scripts/experiment ([^`]*)``",
                                       text, re.M):
            words = shlex.split(re.sub(r"\$A\b|[][]", " ", line or quoted), comments=True)
            # A sentence may name an experiment alone.
            if words[0] in ("KIND", "...") or "--help" in words or words == ["advise"]:
                continue
            parsed(page.name, words)
            count += 1
    true(count > 30, f"{count} commands")


@case("experiments.rst's example of a user's figure is a valid catalogue")
def own_figure():
    lines = (TOP / "Documentation/experiments.rst").read_text(encoding="utf-8").splitlines()
    begin = lines.index("\t[fan]")
    end = next(i for i, line in enumerate(lines) if i > begin and line and line[0] != "\t")
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "fan.toml").write_text(
            "\n".join(line.removeprefix("\t") for line in lines[begin:end]), encoding="utf-8")
        are_commands(directory=directory)
        figure, = catalogue.load("small", directory=directory)
        # Three loads: at the small scale a run has all congestion controls.
        equal((figure.name, len(figure.runs)), ("fan", 3), "name, runs")


@case("a report: every run once, the plots, our numbers next to the paper's")
def report():
    done = figures()
    equal(done.returncode, 0, f"status: {done.stderr}")
    true("2 of 2 runs to do" in done.stderr, done.stderr)
    true(re.search(r"100 % \(5 of 5 steps; .* passed, about 0 s left\)", done.stderr), done.stderr)
    files = made()
    equal(sorted(name for name in files if "load-" not in name),
          ["figures.pdf", "index.html", "own.png", "own.svg"], "files")
    equal(len([name for name in files if name.endswith(".json")]), 2, "runs")
    out = pathlib.Path(OUT.name, "out")
    page = (out / "index.html").read_text(encoding="utf-8")
    rows = [row for path in (out / "runs").glob("*.json")
            for result in [json.loads(path.read_text(encoding="utf-8"))]
            for row in result["summary"]]
    ours = next(r["fg_p99"] for r in rows if (r["cc"], r["load"]) == ("reno", 20)) / 1e6
    for text in ("a star &amp; a &lt;test&gt;", "nobody, Figure 1", f"<td>{ours:.3g} ms</td>",
                 "<td>1 ms</td>", "<td>text, &lt;1&gt;</td>", "<td>small</td>", "p99 &gt; 1",
                 "<td>none</td><td></td><td>-</td><td></td>", f"<td>reno</td><td>20</td><td>{ours:.3g}</td>",
                 "3 hosts, 1 tier, 40 Gbit/s; 5 flows of web search, incasts of 2 x",
                 "--cc reno,dctcp --load 20 --seed 1",
                 f"Linux {os.environ.get('GL_KERNEL', '7.3')}"):
        true(text in page, f"the page has no {text}")
    counts = re.search(r"<h1>[^<]*</h1><ul><li><b>nobody,</b>: (.*?)</li>", page)
    kind = "1 met, 0 missed" if 0.9 <= ours <= 1.1 else "0 met, 1 missed"
    equal(counts and counts[1], f"{kind}, 1 not run", "the headline")
    true(f"figures: nobody,: {counts[1]}\n" in done.stderr, done.stderr)
    true(OUT.name not in page, "no name of a local directory")
    equal((out / "figures.pdf").read_bytes()[:5], b"%PDF-", "the PDF")


@case("a second time no run starts; without one run's results only that one does")
def resumed():
    before = made()
    done = figures()
    equal((done.returncode, "0 of 2 runs to do" in done.stderr), (0, True), done.stderr)
    equal(made(), before, "files and times")
    path = next(pathlib.Path(OUT.name, "out/runs").glob("*.json"))
    path.unlink()
    done = figures()
    equal((done.returncode, "1 of 2 runs to do" in done.stderr), (0, True), done.stderr)
    equal([name for name, time in made().items() if time != before[name] and "load-" in name
           and name.endswith(".json")], [path.name], "new runs")


@case("a misspelt or invented key of a panel or a number: an error with the nearest keys, status 1")
def misspelt():
    before = sorted(made())
    for text, where, near in (
            (OWN.replace(', y = "fg_p99"', ', y = "fg_p999"'), "plot: y is fg_p999", "fg_p99.9"),
            (OWN.replace(', y = "fg_p99"', ', y = "qqq"'), "plot: y is qqq", " or "),
            (OWN.replace('key = "fg_p99"', 'key = "fg_p999"', 1),
             "compare: p99 > 1: key is fg_p999", "fg_p99.9")):
        done = figures(text=text, out="out")
        named = [line for line in done.stderr.splitlines() if where.split()[-1] in line]
        equal((done.returncode, len(named)), (1, 1), f"status, errors: {done.stderr}")
        true(where in named[0] and "which no run has" in named[0] and near in named[0], named)
    equal((figures().returncode, sorted(made())), (0, before), "status, files after the correction")


@case("--list needs no library; a report without its libraries: an error with the remedy")
def without_libraries():
    with tempfile.TemporaryDirectory() as hide:
        for name in ("matplotlib", "snakemake", "weasyprint"):
            pathlib.Path(hide, f"{name}.py").write_text("raise ModuleNotFoundError\n",
                                                        encoding="ascii")
        pathlib.Path(hide, "run").write_text(
            "import importlib.util, shutil, sys\n"
            "shutil.which = importlib.util.find_spec = lambda name: None\n"
            "from experiments.figures.__main__ import main\nmain()\n", encoding="ascii")
        for words, expected in ((["--list"], (0, "")), (["--out", f"{hide}/out"], (
                1, "figures: no snakemake, matplotlib, weasyprint: scripts/setup --figures\n"))):
            done = subprocess.run(
                ["/usr/bin/python3", "-P", f"{hide}/run", *words], text=True, capture_output=True,
                check=False, env=dict(os.environ, PYTHONPATH=f"{hide}:{TOP}/tools:{TOP}/tools/testing"))
            equal((done.returncode, done.stderr), expected, f"{words}: status, stderr")


@case("a cluster's submit command gets the runs and their resources; runs need no privilege")
def cluster():
    asked = pathlib.Path(OUT.name, "asked")
    done = figures("--", "--jobs", "1", "--cluster-sync",
                   f"echo {{rule}} {{resources.mem_mb}} {{resources.runtime}} >>{asked};"
                   " setpriv --bounding-set=-all --inh-caps=-all --no-new-privs sh", out="cluster")
    equal(done.returncode, 0, f"status: {done.stderr}")
    equal(asked.read_text(encoding="utf-8"), "run 2560 30\n" * 2, "requested resources")
    equal(sorted(made("cluster")), sorted(made()), "files")


@case("the page in a browser: every image is present and has a size")
def browser():
    out = pathlib.Path(OUT.name, "out")
    page = (out / "index.html").read_text(encoding="utf-8")
    count = ("<script>addEventListener('load', () => { document.title = 'images '"
             " + [...document.images].map(i => i.naturalWidth).join(' ') + '.'; });</script>")

    def widths(text):
        (out / "seen.html").write_text(text.replace("</body>", f"{count}</body>"), encoding="utf-8")
        shown = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={OUT.name}/browser",
             "--virtual-time-budget=5000", "--dump-dom", f"file://{out}/seen.html"],
            capture_output=True, text=True, check=False, timeout=1200)
        found = re.search(r"<title>images ([0-9 ]*)\.</title>", shown.stdout)
        true(found, f"no page: {shown.stdout[-300:]} {shown.stderr[-300:]}")
        return list(map(int, found[1].split()))

    equal(len(widths(page)), 1, "images")
    within(widths(page)[0], 300, 2000, "pixels")
    # The check detects a missing image:
    equal(widths(page.replace("own.svg", "gone.svg")), [0], "pixels of a missing image")
    (out / "seen.html").unlink()


@case("the scales have different runs; at the large one each run has one congestion control")
def scales():
    names = {scale: {run.name for figure in catalogue.load(scale, directory=f"{OUT.name}/catalogue")
                     for run in figure.runs} for scale in catalogue.SCALES}
    equal([len(names["small"]), len(names["large"]), names["small"] & names["large"]],
          [2, 4, set()], "runs")


@case("FIGURE is a name; only without such a name it is a part of names")
def chosen():
    for words, names in ((["tlt-fig5"], {"tlt-fig5"}), (["fig5-pfc"], {"tlt-fig5-pfc"}),
                         (["tlt-fig6", "aeolus-table"], {"tlt-fig6", "aeolus-table5", "aeolus-table6",
                                                         "aeolus-table7"})):
        equal({figure.name for figure in catalogue.load(only=words)}, names, " ".join(words))


@case("comparisons with the paper's numbers, computed by hand")
def by_hand():
    about = {"compare": [
        {"what": "a", "key": "n", "paper": -50, "of": {"cc": "x"}, "to": {"cc": "y"}},
        {"what": "b", "key": "n", "paper": 3, "of": {"cc": "x"}, "to": {"cc": "y"}, "as": "ratio"},
        {"what": "c", "key": "n", "paper": 5, "of": {"cc": "x"}, "unit": "ms"},
        {"what": "d", "key": "n", "paper": 5, "of": {"cc": "z"}},
        {"what": "e", "key": "n", "paper": 0, "of": {"cc": "x"}, "to": {"cc": "z"}},
        {"what": "f", "key": "m", "paper": 0, "of": {"cc": "x"}, "to": {"cc": "y"}}]}
    rows = [{"cc": "x", "n": 1e6, "m": 0}, {"cc": "y", "n": 4e6, "m": 7}]
    equal([(one.what, one.ours, one.unit)
           for one in catalogue.compared(catalogue.Figure("f", about, ()), rows)],
          [("a", -75, "+%"), ("b", 4, "×"), ("c", 1, "ms"), ("d", None, ""), ("e", None, "+%"),
           ("f", -100, "+%")], "numbers")


def axes_of(about, rows, name):
    """Draw a figure; the axes of its panels."""
    drawn = []
    subplots = draw.pyplot.subplots
    try:
        draw.pyplot.subplots = lambda *a, **k: drawn.append(subplots(*a, **k)) or drawn[-1]
        draw.draw(catalogue.Figure("f", about, ()), rows, f"{OUT.name}/{name}")
    finally:
        draw.pyplot.subplots = subplots
    (_, axes), = drawn
    return axes


@case("a plot: labelled axes, bars for an unordered x, a style for each transport")
def looks():
    ccs = ["dctcp", "tlt_dctcp"]
    about = {"title": "t", "paper": "p", "vary": {
        "cc": ccs, "workload": ["web-search", "web-server"], "load": [20, 40], "seed": [1, 2]},
        "plot": [{"x": "workload", "y": "small_p99", "unit": "us"},
                 {"x": "load", "y": "small_mean", "unit": "us"}],
        "compare": [{"key": "small_mean", "paper": 3e3, "unit": "us",
                     "of": {"cc": "dctcp", "load": 20, "workload": "web-search"}}]}
    rows = [{"cc": cc, "workload": workload, "load": load, "seed": seed,
             "small_p99": 1e6 * seed, "small_mean": 2e6 * seed}
            for cc in ccs for workload in about["vary"]["workload"]
            for load in (20, 40) for seed in (1, 2)]
    axes = axes_of(about, rows, "looks")
    # A panel for each load above, and for each workload below.
    equal(axes.shape, (2, 2), "panels")
    bars, lines = axes[0][0], axes[1][0]
    equal([axes.get_ylabel() for axes in (bars, lines)],
          ["FCT, 99th percentile (us)", "mean FCT (us)"], "y")
    equal([axes.get_xlabel() for axes in (bars, lines)], ["workload", "load (%)"], "x")
    equal([text.get_text() for text in bars.get_xticklabels()], ["web search", "web server"],
          "places of bars")
    equal([patch.get_height() for patch in bars.patches], [1500.0] * 4, "bars: means of seeds")
    said = {line.get_label(): line for line in lines.lines if line.get_label() in ccs}
    for cc, line in said.items():
        equal((line.get_color(), line.get_marker(), list(line.get_ydata())),
              (style.colour(cc), style.marker(cc), [3000.0, 3000.0]), cc)
    true(said["dctcp"].get_markerfacecolor() != said["tlt_dctcp"].get_markerfacecolor(), "fills")
    paper, = (line for line in lines.lines if line.get_marker() == "h" and len(line.get_xdata()))
    equal((list(paper.get_xdata()), list(paper.get_ydata()), paper.get_markerfacecolor(),
           paper.get_markeredgecolor()), ([0], [3e3], "none", style.colour("dctcp")),
          "the paper's, hollow")


@case("each base has its own colour and marker")
def bases():
    for of in (style.colour, style.marker):
        seen = {base: of(base) for base in map(style.base, units.CCS)}
        equal(len(set(seen.values())), len(seen), f"{seen}")


@case("options without a value; CC@PORTS is in one run, with its own rows")
def varied():
    about = {"command": "deflect", "small": "--seed 2",
             "vary": {"cc": ["dcqcn", "dart@escape"], "ipv6": [False, True]}}
    runs = tuple(catalogue.runs(about, "small"))
    equal([run.command for run in runs],
          [("deflect", "--cc", "dcqcn,dart@escape", "--seed", "2"),
           ("deflect", "--cc", "dcqcn,dart@escape", "--ipv6", "--seed", "2")], "commands")
    rows = [{"cc": "dcqcn", "ports": "plain"}, {"cc": "dart", "ports": "escape"},
            {"cc": "dart", "ports": "plain"}]
    equal([(row["cc"], row["ipv6"])
           for row in catalogue.Figure("f", about, runs[1:]).rows([{"summary": rows}])],
          [("dcqcn", True), ("dart@escape", True), ("dart", True)], "rows")
    # At the large scale the mix is a run, with a row for each of its congestion controls too.
    about = {"command": "load", "vary": {"cc": ["dctcp+dart"]}}
    rows = [{"cc": "dctcp+dart"}, {"cc": "dctcp@mix"}, {"cc": "dart@mix"}]
    mix = catalogue.Figure("f", about, tuple(catalogue.runs(about, "paper")))
    equal([row["cc"] for row in mix.rows([{"summary": rows}])],
          ["dctcp+dart", "dctcp@mix", "dart@mix"], "a mix")


@case("two bases: each has its transports, seeds and options; runs of today's Linux omit --base")
def two_bases():
    about = {"command": "load --fine", "small": "--background 3", "large": "",
             "vary": {"base": ["paper", "linux"], "cc": ["dctcp", "tlt_dctcp"], "seed": [1, 2]},
             "also": {"paper": ["dctcp:tcp_rto_min_us=200"]}, "fewer": {"linux": {"seed": [2]}},
             "base_options": {"paper": "--uplinks 1"}}
    runs = tuple(catalogue.runs(about, "small"))
    equal([" ".join(run.command) for run in runs],
          [f"load --fine --cc dctcp,tlt_dctcp,dctcp:tcp_rto_min_us=200 --base paper --seed {seed}"
           " --uplinks 1 --background 3" for seed in (1, 2)]
          + ["load --fine --cc dctcp,tlt_dctcp --seed 2 --background 3"], "commands")
    large = [run.command[run.command.index("--cc") + 1] for run in catalogue.runs(about, "large")]
    equal(large, ["dctcp", "tlt_dctcp", "dctcp:tcp_rto_min_us=200"] * 2 + ["dctcp", "tlt_dctcp"],
          "one transport a run at the large scale")
    apart = {"command": "load", "vary": {"base": ["paper", "linux"], "cc": []},
             "also": {"paper": ["dctcp:paper_delack=2"], "linux": ["dctcp"]}}
    equal([" ".join(run.command) for run in catalogue.runs(apart, "small")],
          ["load --cc dctcp:paper_delack=2 --base paper", "load --cc dctcp"],
          "commands without a transport of both")
    both = {"command": "load", "vary": {"base": ["paper", "linux"], "cc": [], "red": ["1k", "2k"]},
            "also": {"linux": ["dctcp"], "paper 1k": ["reno"], "2k paper": ["tlt_reno", "reno"]}}
    equal([" ".join(run.command) for run in catalogue.runs(both, "small")],
          ["load --cc reno --base paper --red 1k", "load --cc tlt_reno,reno --base paper --red 2k",
           "load --cc dctcp --red 1k", "load --cc dctcp --red 2k"],
          "commands with transports of a base and a threshold")
    rows = catalogue.Figure("f", about, runs).rows([{"summary": [{"cc": "dctcp"}]}, None,
                                                    {"summary": [{"cc": "dctcp"}]}])
    equal(rows, [{"cc": "dctcp", "base": "paper", "seed": 1},
                 {"cc": "dctcp", "base": "linux", "seed": 2}], "rows")


@case("a run's name does not depend on the order of its options; figures share runs")
def shared():
    names = [catalogue.Run(tuple(command.split()), ()).name for command in (
        "load --fine --load 40 --seed 1", "load --seed 1 --load 40 --fine",
        "load --seed 40 --load 1 --fine", "incast --fine --load 40 --seed 1")]
    equal([name == names[0] for name in names], [True, True, False, False], "names")
    runs = {figure.name: {run.name for run in figure.runs} for figure in catalogue.load()}
    for less, more in (("tlt-fig8", "ours-auto"), ("aeolus-fig13", "aeolus-fig11"),
                       ("dart-fig11", "dart-fig14"), ("dart-table1", "dart-fig12"),
                       ("aeolus-table5", "aeolus-fig15")):
        true(runs[less] <= runs[more], f"{less}'s runs are {more}'s")
    # The report at the small scale takes 80 minutes on two processors: their sum is 11,100 s of a
    # processor in the recorded runs, and 14 of them, 8 % of it, take 17 % less since.
    true(len(set().union(*runs.values())) <= 570, "runs at the small scale")


@case("an unknown key of a physical limit: the error names it")
def limits():
    figure = catalogue.Figure("f", {"plot": [], "compare": [
        {"what": "w", "key": "n", "ideal": "ratoi", "paper": 1, "of": {}},
        {"what": "v", "key": "n", "ideal": 1.5, "paper": 1, "of": {}}]}, ())
    equal(list(catalogue.unknown(figure, [{"n": 1, "ratio": 2}])),
          ["f: compare: w: ideal is ratoi, which no run has (is it ratio?)"], "lines")


@case("a plot of two bases: panels or bars for each, the paper's values at the paper's base")
def two_plots():
    ccs = ["dctcp", "tlt_dctcp"]
    about = {"title": "t", "paper": "p", "vary": {"base": ["linux", "paper"], "cc": ccs,
                                                  "load": [20, 40]},
             "also": {"paper": ["dctcp:tcp_early_retrans=3"]},
             "plot": [{"x": "load", "y": "fg_mean", "unit": "us"}, {"y": "fg_p99", "unit": "us"}],
             "compare": [{"key": key, "paper": 3e3, "unit": "us", "of": {"cc": "dctcp", "load": 20}}
                         for key in ("fg_mean", "fg_p99")]}
    rows = [{"cc": cc, "base": base, "load": load, "fg_mean": 1e6, "fg_p99": 2e6}
            for base in ("linux", "paper") for load in (20, 40)
            for cc in ccs + ["dctcp:tcp_early_retrans=3"] * (base == "paper")]
    axes = axes_of(about, rows, "two")
    (linux, paper), bars = axes
    equal([one.get_title() for one in (linux, paper)],
          ["base: today's Linux", "base: the paper's base"], "panels")
    said = [[line.get_label() for line in one.lines if not line.get_label().startswith("_")]
            for one in (linux, paper)]
    equal(said, [ccs, [*ccs, "dctcp, probes", "the paper"]], "lines")
    equal([len(one.get_xticklabels()) for one in bars], [4, 6], "bars")
    hollow = [[line.get_xdata()[0] for line in one.lines
               if line.get_marker() == "h" and len(line.get_xdata())] for one in bars]
    labels = [text.get_text() for text in bars[1].get_xticklabels()]
    equal((hollow[0], [labels[at] for at in hollow[1]]), ([], ["dctcp\n20"]), "the paper's values")


@case("an invalid description: one error that names it, and no files")
def descriptions():
    for wrong, why in (("title = 1", "title: not a figure"), ("[own", "own.toml"),
                       (OWN.replace("title", "tilte", 1), "own: no title"),
                       (OWN.replace("small =", "smal ="), "own: what is smal?"),
                       (OWN.replace('y = "fg_p99"', 'z = "fg_p99"'), "own: plot: what is z?"),
                       (OWN.replace('x = "load"', 'x = "rate"'), "own: plot: x is rate"),
                       (OWN.replace("paper = 1,", "", 1), "own: compare: "),
                       (OWN.replace("because", "differs", 1), "own: compare: what is differs?"),
                       (OWN + '[own.also]\n"paper 1k" = ["reno"]\n', "own: also: no option is ever"),
                       (OWN.replace('cc = "reno", load = 20', 'cc = "cubic"'),
                        "own: compare: cc is never cubic"),
                       (OWN.replace('command =', 'text ='), "own: no command")):
        done = figures(text=wrong, out="none")
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
        true(done.stderr.startswith("figures: ") and why in done.stderr, f"{why}: {done.stderr}")
    done = figures("nothing", out="none")
    equal(done.stderr, "figures: no figure of that name; there are own\n", "an unknown figure")
    equal(pathlib.Path(OUT.name, "none").exists(), False, "the directory")


@case("a failed run: an error with its log, the others complete, status 1")
def failure():
    done = figures(text=OWN.replace("load = [20, 40]", "load = [20, 4000]"), out="failed")
    equal(done.returncode, 1, f"status: {done.stderr}")
    logs = re.findall(r"^figures: .* failed; see (.*)$", done.stderr, re.MULTILINE)
    equal(len(logs), 1, done.stderr)
    true(all(pathlib.Path(log).stat().st_size for log in logs), "the logs")
    files = made("failed")
    equal(len([name for name in files if name.endswith(".json")]), 1, "completed runs")
    true("index.html" not in files, "no report of an incomplete set")


if __name__ == "__main__":
    tap.main()
    OUT.cleanup()
