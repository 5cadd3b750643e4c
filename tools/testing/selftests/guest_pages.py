#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The pages: their citations exist, and index.rst lists them.

Each rule takes a page's name and text, and yields its findings.  Each has a text with a wrong name,
which it must find.
"""
import functools
import re

from lab import TOP
from lab.tap import case, equal, main, true

DOCUMENTATION = TOP / "Documentation"
# The handwritten pages.
PAGES = {path.name: path.read_text(encoding="utf-8")
         for path in (TOP / "README.md", *sorted(TOP.glob("*.rst")),
                      *sorted(DOCUMENTATION.glob("*.rst")))}
SOURCES = (".c", ".h", ".py")
# The name of a page, also in a link ("tlt.rst_"), and no call of a method rst().
PAGE = r"(?<![\w./-])(?:Documentation/)?([a-z][\w-]*\.rst)(?!\()(?=_?(?:\W|$))"

# Functions of the kernel and of a vendor's library that pages cite.
FOREIGN = {"bcm_cosq_control_dynamic_get", "bcm_port_dscp_map_set", "ets_qdisc_dequeue", "ip_rcv",
           "timer_read"}
# Linux's own sysctls of net.ipv4.
LINUX = {"conf", "tcp_allowed_congestion_control", "tcp_congestion_control", "tcp_ecn",
         "tcp_min_rtt_wlen", "tcp_recovery", "tcp_sack"}
# Paths of a kernel's tree.
KERNELS = ("scripts/coccinelle", "tools/testing/selftests/kselftest_install",
           "tools/testing/selftests/net")


@functools.cache
def sources(*folders):
    """{name: text} of the C and Python files below these folders."""
    return {str(path.relative_to(TOP)): path.read_text(encoding="utf-8")
            for folder in folders for path in sorted((TOP / folder).rglob("*"))
            if path.suffix in SOURCES and path.is_file()}


def one_line(text):
    """Text without the marks of literals, and with single spaces."""
    return re.sub(r"\s+", " ", text.replace("``", "")).strip()


@functools.cache
def sections(page):
    """The section titles of a page, in lower case."""
    form = r"^(\S.*)\n(?:=+|-+)$" if page.endswith(".rst") else r"^#+ (.*)$"
    return {one_line(title).lower() for title in re.findall(form, PAGES[page], re.M)}


def blocks(text):
    """The paragraphs of a page, and the columns of its tables: a cell may have several rows."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        borders = [line for line in lines if re.fullmatch(r"=+(?: +=+)+", line)]
        if not borders:
            yield one_line(paragraph)
            continue
        edges = [match.start() for match in re.finditer("=+", borders[0])]
        for at, to in zip(edges, [*edges[1:], None]):
            yield one_line(" ".join(line[at:to] for line in lines if line not in borders))


@functools.cache
def tests():
    """{name: text} of the tests, KUnit's too: lower case, titles of several lines on one."""
    texts = {path.stem: path.read_text(encoding="utf-8")
             for folder, form in (("selftests", "*.py"), ("kunit", "*.c"))
             for path in (TOP / "tools/testing" / folder).glob(form)}
    return {name: one_line(re.sub(r'"\s*\n\s*f?"', "", text)).lower().replace("_", " ")
            for name, text in texts.items()}


def named(name):
    """The texts of the tests that a page means by a name: shares is dart_shares, for example."""
    name = name.lower()
    return ([tests()[name]] if name in tests() else
            [text for test, text in tests().items() if test.endswith(f"_{name}")])


def cited_titles(page, text):
    """Titles of tests: "shares: *one*, *two*", "tlt_echo.py, *one*", "tlt_echo (*one*)"."""
    files = re.compile("(?:" + "|".join({test.partition("_")[0] for test in tests()}) + ")_")
    for name, titles in ((name, titles) for block in blocks(text) for name, titles in re.findall(
            r"\b([A-Za-z]\w*(?=\W*:)|[a-z]+_\w+)(?:\.py|\.c)?(?:[:,]| \() ?"
            r"(\*[^*]+\*(?:,? (?:and )?\*[^*]+\*)*)", block)):
        texts = named(name)
        if not texts and files.match(name):
            yield f"{page}: no test {name}"
        for title in re.findall(r"\*([^*]+)\*", titles):
            parts = [part.strip() for part in title.lower().replace("_", " ").split("…")]
            if texts and not any(all(part in one for part in parts) for one in texts):
                yield f"{page}: {name} has no case {title}"


@functools.cache
def words_of_sources():
    """All words of the C and Python files."""
    return {word for source in sources("net", "include", "tools").values()
            for word in re.findall(r"\w+", source)}


def cited_functions(page, text):
    """Functions of C and Python."""
    for name in re.findall(r"``([a-z_][a-z0-9_]+)\(\)``", text):
        if name not in words_of_sources() and name not in FOREIGN:
            yield f"{page}: no function {name}()"


def cited_sysctls(page, text):
    """Sysctls of net.ipv4: the modules', some composed of a prefix and a name, and Linux's."""
    names = {name for source in sources("net", "include").values()
             for name in re.findall(r'"(\w+)"', source)}
    for name in re.findall(r"\bnet\.ipv4\.([a-z]\w*)(?!\*)\b", text):
        starts = [match.end() for match in re.finditer("_", name)]
        if not (name in names | LINUX or
                any(name[:at] in names and name[at:] in names for at in starts)):
            yield f"{page}: no sysctl net.ipv4.{name}"


def cited_files(page, text):
    """Scripts, targets of make, paths of the tree, and C and Python files by their names."""
    targets = {target for line in (TOP / "Makefile").read_text(encoding="utf-8").split("\n")
               for target in re.findall(r"[a-z-]+", (re.match(r"([a-z -]+):", line) or [""])[0])}
    for target in re.findall(r"(?:``|^\t|`)make ([a-z][a-z-]+)\b", text, re.M):
        if target not in targets | {"headers"}:
            yield f"{page}: no target {target} of make"
    for path in re.findall(
            r"(?<![\w./=-])((?:scripts|tools|net|include|packaging)/[\w./*-]*[\w*])", text):
        if not (path.startswith(KERNELS) or "NAME" in path or any(TOP.glob(path))):
            yield f"{page}: no {path}"
    have = {path.rpartition("/")[2] for path in sources("net", "include", "tools")}
    for name in re.findall(r"(?<![\w./])([a-z]+_\w+\.(?:py|c|h))\b", text):
        if name not in have:
            yield f"{page}: no file {name}"
    # A file of the layer may stand without its suffix.
    stems = {name.rpartition(".")[0] for name in have}
    for name in re.findall(r"(?<![\w./])((?:gl|rd)_\w+)\b(?![\w.(*])", text):
        if name not in stems | words_of_sources():
            yield f"{page}: no file or symbol {name}"


def cited_pages(page, text):
    """Targets of links, pages by their names, and sections: "page.rst_ (*Section*)"."""
    for path in re.findall(r"^\.\. _[^:]+: (?!http)([^#\s]+)", text, re.M):
        if not (DOCUMENTATION / path).exists():
            yield f"{page}: no target {path}"
    for path, anchor in re.findall(r"\]\((?!http)([^)#]+)#?([^)]*)\)", text):
        if not (TOP / path).exists():
            yield f"{page}: no target {path}"
        elif anchor and anchor not in {re.sub(r"[^\w -]", "", title).replace(" ", "-")
                                       for title in sections(path.rpartition("/")[2])}:
            yield f"{page}: {path} has no anchor {anchor}"
    flat = one_line(text)
    for other in re.findall(PAGE, flat):
        if other not in PAGES:
            yield f"{page}: no page {other}"
    for other, title in re.findall(r"\b([A-Za-z-]+\.rst)_?(?:,| \() ?\*([^*]+)\*", flat):
        if other in PAGES and title.lower() not in sections(other):
            yield f"{page}: {other} has no section {title}"


RULES = {rule.__name__: (rule, *of) for rule, *of in (
    # A rule, a text with wrong names and their number; the least number of citations on all pages,
    # and their form.
    (cited_titles, "tlt_loss: *an echo forgets*, ``tlt_lost``: *an echo detects*", 2,
     90, r"\*[^*]+\*"),
    (cited_functions, "``tlt_no" "_such()``", 1, 90, r"\w\(\)``"),
    (cited_sysctls, "``net.ipv4.dart_lookahead_ms``", 1, 50, r"net\.ipv4\."),
    (cited_files, "``scripts/experiments``, ``tlt_lost.py``, ``make figure``, ``gl_" "lost``",
     4, 150, r"scripts/|\.py"),
    (cited_pages, "testbed.rst_, operations.rst_ (*Costs*), lab.rst_ (*The incast*)\n\n"
     ".. _x: x.rst\n", 4, 150, r"\.rst"),
)}


@case("all that the pages cite exists", rule=tuple(RULES))
def exists(rule):
    rule, _, _, least, form = RULES[rule]
    equal([finding for page, text in PAGES.items() for finding in rule(page, text)], [], "findings")
    count = sum(len(re.findall(form, text)) for text in PAGES.values())
    true(count > least, f"{count} citations")


@case("a wrong name is found", rule=tuple(RULES))
def found(rule):
    rule, text, wrong, *_ = RULES[rule]
    findings = list(rule("page", text))
    equal(len(findings), wrong, f"findings: {findings}")


@case("a title in the next row of a table is found")
def continued():
    table = ("=====  =========================\nrule   test\n=====  =========================\n"
             "one    tlt_loss: *an echo\nrow    detects*,\n       *no such title*\n=====  ====\n")
    equal([finding.rpartition(" case ")[2] for finding in cited_titles("page", table)],
          ["no such title"], "findings")


@case("the source, the tools and the scripts name only pages that exist")
def pages_of_the_source():
    texts = dict(sources("net", "include", "tools"))
    for path in (*(TOP / "scripts").iterdir(), *(TOP / "packaging").rglob("*"), TOP / "Makefile"):
        if path.is_file() and path.suffix not in (".pyc", ".gz"):
            texts[path.name] = path.read_text(encoding="utf-8", errors="replace")
    for fixture in ("guest_lab.py", "guest_pages.py"):
        del texts[f"tools/testing/selftests/{fixture}"]
    wrong = [f"{name}: {page}" for name, text in texts.items()
             for page in re.findall(PAGE, text)
             if page not in PAGES]
    equal(wrong, [], "names of pages")


@case("index.rst lists every page")
def index():
    listed = set(re.findall(r"^\* ([\w-]+\.rst)_:", PAGES["index.rst"], re.M))
    own = {path.name for path in DOCUMENTATION.glob("*.rst")} - {"index.rst"}
    equal(listed, own | {"CONTRIBUTING.rst"}, "pages")


if __name__ == "__main__":
    main()
