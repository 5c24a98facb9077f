"""Checks the rules for notebooks. Every function decorated with ``@rule`` is a rule; a new rule needs nothing else.

    python tools/notebook_rules.py [06 …]       (default: all; otherwise those whose path has one of the words)

``notebooks.py --check`` checks the canonical form.
"""

import argparse
import ast
import math
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import nbformat

import repository
from notebook_labs import LAB
from notebooks import ROOT, all_notebooks, is_chapter, is_ignored, select_paths, text
from repository import first_cell, handed_out

stored_address = cache(repository.stored_address)  # two rules need this text for every notebook
MAX_NOTEBOOK_BYTES = 1_500_000  # bytes that GitHub still renders
MAX_PARAGRAPH = 5 * 110  # characters in five lines of the page
MAX_CODE_LINE = 88  # characters of code that a page 1200 pixels wide shows without scrolling
MAX_BOOL_SHARE = 0.2  # maximum share of cells that print True or False but no number, among a chapter's printing cells
MAX_LETTER_SHARE = 0.4  # maximum share of one letter in the correct answers, so that guessing this letter does not pay

RULES = []


def rule(function):
    """Register a function as a rule: the function takes a notebook and its path, and yields complaints."""
    RULES.append(function)
    return function


# Parts of a notebook


def _cells(notebook, kind):
    return [(number, cell) for number, cell in enumerate(notebook.cells, 1) if cell.cell_type == kind]


BLOCK = re.compile(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1`* *$")
INLINE = re.compile(r"(\{[\w:.+-]+\})?(`+)(?!`)(.+?)(?<!`)\2(?!`)")  # code, perhaps behind the name of a role


def _prose(source):
    """Return the Markdown text without code blocks, inline code or formulas."""
    source = INLINE.sub("`code`", BLOCK.sub("", source))
    source = re.sub(r"(?s)\$\$.+?\$\$", "", source)
    return re.sub(r"\$[^$\n]+\$", "x", source)


def _printed(cell):
    """Return the text outputs of a code cell."""
    for output in cell.outputs:
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")


def _pictures(cell):
    return sum(bool({"image/png", "image/svg+xml"} & {*output.get("data", {})}) for output in cell.outputs)


def count_labs(cell):
    """Return how many labs a cell shows."""
    outputs = cell.outputs if cell.cell_type == "code" else []
    return sum(bool(LAB.match(output.get("data", {}).get("text/plain", ""))) for output in outputs)


# The file


@rule
def stores_what_it_prints(notebook, path):
    for number, cell in _cells(notebook, "code"):
        if re.search(r"^(print|tl\.show|display)\(", cell.source, re.MULTILINE) and not cell.outputs:
            yield f"cell {number}: prints, but stores no output"


@rule
def shows_no_part_of_a_drawing(notebook, path):
    for number, cell in _cells(notebook, "code"):
        parts = [line for line in _printed(cell) if re.match(r"\[*(Text\(\d|<matplotlib\.|<Axes|Line2D\()", line)]
        if parts:
            yield f"cell {number}: shows {parts[0][:40]!r}: assign the last value to _"


@rule
def is_small(notebook, path):
    size = len(text(notebook).encode())
    if size > MAX_NOTEBOOK_BYTES:
        yield f"must be at most {MAX_NOTEBOOK_BYTES} bytes, has {size}"


# Links and places


@rule
def opens_in_colab(notebook, path):
    """A notebook has one link to Colab if the repository has an address; otherwise it has none."""
    stored = stored_address()
    expected = [f"[Open in Colab]({stored.colab(handed_out(path.relative_to(ROOT).as_posix()))})"] if stored else []
    sources = "\n".join(cell.source for _, cell in _cells(notebook, "markdown"))
    links = re.findall(r"(?:\[Open in Colab\]\()?https://colab\.research\.google\.com/[^)\s]*\)?", sources)
    if links != expected:
        yield f"cell 1: must have these links to Colab: {expected}, has {links}"


@rule
def installs_the_package(notebook, path):
    expected = first_cell(stored_address())
    number, cell = next(iter(_cells(notebook, "code")), (0, None))
    if cell is None or cell.source != expected:
        yield f"cell {number}: the first code cell must be\n{expected}"


@rule
def has_no_absolute_paths(notebook, path):
    machine_path = re.compile(
        r"(?<![\w.:/])/(?:home|root|Users|tmp|work|usr|opt|mnt|var|content)/|\b[A-Z]:\\|ipykernel_\d"
    )
    for number, cell in enumerate(notebook.cells, 1):
        texts = [cell.source, *(_printed(cell) if cell.cell_type == "code" else [])]
        if match := next(filter(None, map(machine_path.search, texts)), None):
            yield f"cell {number}: names a path of one machine: {match[0]}"


@rule
def links_lead_somewhere(notebook, path):
    for number, cell in _cells(notebook, "markdown"):
        for target in re.findall(r"\]\(([^)\s]+)", _prose(cell.source)):
            file, _, section = target.partition("#")
            if file and not re.match(r"\w+:", file):
                if not (path.parent / file).exists():
                    yield f"cell {number}: the link {target} leads nowhere"
                elif section and file.endswith(".ipynb") and section not in sections(path.parent / file):
                    yield f"cell {number}: the link {target} must name a section as Jupyter does: #heading=The-heading"


@cache
def sections(path):
    """Return the names by which links refer to the notebook's sections, as Jupyter forms these names."""
    sources = "\n".join(cell.source for _, cell in _cells(nbformat.read(path, 4), "markdown"))
    titles = re.findall(r"(?m)^#{1,6} +(.+)$", BLOCK.sub("", sources))
    return {f"heading={re.sub(r'[*`]', '', title).replace(' ', '-')}" for title in titles}


# Comparing with nbval


@rule
def hides_only_times(notebook, path):
    """An output that is not compared must be a time, and its cell must assert something about this time.

    A cell that measures time must be marked, because its assertions are skipped on an emulated device
    (tools/device.py).
    """
    timers = {"time", "perf_counter", "perf_counter_ns", "timeit", "repeat", "Timer", "blocked_autorange", "autorange"}
    timers |= {"seconds", "compare"}  # the timers of transformer_lab.measure
    for _, cell in _cells(notebook, "code"):  # a function that measures a time is also a timer
        for node in _nodes(cell.source):
            if isinstance(node, ast.FunctionDef) and _calls(ast.walk(node)) & timers:
                timers.add(node.name)
    for number, cell in _cells(notebook, "code"):
        tags = {tag.replace("-", "_").upper() for tag in cell.metadata.get("tags", [])}
        marks = tags | set(re.findall(r"#\s*(NBVAL_\w+|PYTEST_VALIDATE\w+)", cell.source))
        for mark in sorted(marks & {"NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION", "RAISES_EXCEPTION"}):
            yield f"cell {number}: {mark} hides the cell from the tests"
        if any("VALIDATE" in mark for mark in marks):
            yield f"cell {number}: must say NBVAL_IGNORE_OUTPUT"
        if is_ignored(cell):
            nodes = _nodes(cell.source)
            if not _calls(nodes) & timers:
                yield f"cell {number}: its output is not compared, although it measures no time"
            if not any(isinstance(node, ast.Assert) for node in nodes):
                yield f"cell {number}: its output is not compared, and it asserts nothing"
        elif used_timers := sorted(_calls(_outside_functions(cell)) & timers - {"repeat"}):  # tensors have a `repeat`
            yield f"cell {number}: measures a time with {used_timers[0]}, but is not tagged nbval-ignore-output"


@cache
def _nodes(source):
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:  # IPython's own syntax
        return []


def _outside_functions(cell):
    """Return a cell's nodes outside functions: a function's body belongs to the cell that calls the function."""
    stack = _nodes(cell.source)[:1]
    while stack:
        node = stack.pop()
        yield node
        stack += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.FunctionDef | ast.Lambda)]


def _calls(nodes):
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", None) for call in calls}


@rule
def ends_no_cell_in_a_semicolon(notebook, path):
    """nbval runs cells without history, so IPython does not see the semicolon, and nbval finds an additional output."""
    for number, cell in _cells(notebook, "code"):
        if re.search(r";\s*(#.*)?$", cell.source):
            yield f"cell {number}: ends in a semicolon; assign the last value to _ instead"


# Text


@rule
def has_plain_markdown(notebook, path):
    """A notebook uses no syntax that only the book understands, because Colab and GitHub show the same text."""
    for number, cell in _cells(notebook, "markdown"):
        if match := re.search(r"(?m)^\s*(`{3,}|~{3,})\s*\{.*", cell.source):
            yield f"cell {number}: a directive, which only the book understands: {match[0].strip()}"
        for role, _, content in INLINE.findall(BLOCK.sub("", cell.source)):
            if role:
                yield f"cell {number}: a role, which only the book understands: {role}`{content}`"
        prose = _prose(cell.source)
        for syntax, pattern in {
            "a directive": r"(?m)^\s*:{3,}.*",
            "a comment of MyST": r"(?m)^%.*",
            "a target of MyST": r"(?m)^\([\w:.-]+\)=\s*$",
            "a block break of MyST": r"(?m)^\+\+\+.*",
        }.items():
            if match := re.search(pattern, prose):
                yield f"cell {number}: {syntax}, which only the book understands: {match[0]}"


@rule
def has_little_html(notebook, path):
    allowed = r"</?(?:details|summary|kbd|code|sub|sup)>|<br ?/?>"
    for number, cell in _cells(notebook, "markdown"):
        for tag in re.findall(r"<!--|</?[a-zA-Z][\w-]*(?:\s[^<>]*)?/?>", _prose(cell.source)):
            is_picture = re.match(r"<img ", tag) and re.search(r'\balt="[^"]+"', tag) and "style" not in tag
            if not is_picture and not re.fullmatch(allowed, tag):
                yield f"cell {number}: raw HTML: {tag}"


@rule
def calls_out_in_bold(notebook, path):
    """A callout is a quote that begins with bold words from ``book/alerts.py``: every client shows such a quote."""
    for number, cell in _cells(notebook, "markdown"):
        prose = _prose(cell.source)
        callout_names = "Note|Tip|Hint|Important|Warning|Caution|Attention|Danger"
        for line in re.findall(rf"(?mi)^(?:> ?\[!.*|> ?[*_]{{2}}.*|[*_]{{1,3}}(?:{callout_names})\b[:.*_].*)$", prose):
            if not re.match(r"> \*\*(Remember:|End of the \w+ sitting\.)\*\* \S", line):
                yield f"cell {number}: a callout must begin with > **Remember:**, got {line[:40]}"


@rule
def describes_its_pictures(notebook, path):
    for number, cell in _cells(notebook, "code"):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        if _pictures(cell) and len(alt) < 30:
            yield f"cell {number}: its picture needs an alt text in mystnb.image.alt, has {alt!r}"
        if _pictures(cell) > 1:
            yield f"cell {number}: has {_pictures(cell)} pictures, but only one alt text"
    for number, cell in _cells(notebook, "markdown"):
        if re.search(r"!\[\s*\]\(", _prose(cell.source)):
            yield f"cell {number}: a picture without an alt text"


@rule
def has_short_paragraphs(notebook, path):
    for number, cell in _cells(notebook, "markdown"):
        source = re.sub(r"(?s)\$\$.+?\$\$", "\n\n", BLOCK.sub("\n\n", cell.source))
        for block in re.split(r"\n(?=\s*(?:[-*+]|\d+[.)]) |>\s*\n)|\n\s*\n", source):
            if re.match(r"\s*(\||#)", block):
                continue
            visible = re.sub(r"\]\([^)]*\)|[*`$\[\]\\]|<[^>]*>|(?m:^> ?)", "", " ".join(block.split()))
            if len(visible) > MAX_PARAGRAPH:
                yield f"cell {number}: a paragraph of {len(visible)} characters, over five lines: {visible[:60]}…"


@rule
def does_not_belittle(notebook, path):
    for number, cell in _cells(notebook, "markdown"):
        for word in re.findall(r"(?i)\b(?:simply|just)\b", _prose(cell.source)):
            yield f"cell {number}: says {word!r}, which tells a reader who is stuck that the subject is easy"


@rule
def explains_every_option(notebook, path):
    """Each group of options A, B, … has one correct option, and the cell says why each option is right or wrong."""
    fold_out = re.compile(r"<details>(.*?)</details>", re.DOTALL)
    for number, cell in _cells(notebook, "markdown"):
        groups = []
        for content in fold_out.findall(cell.source):
            parts = re.fullmatch(r"\s*<summary>(.+?)</summary>(.*)", content, re.DOTALL)
            if not parts:
                yield f"cell {number}: a <details> needs a <summary> first: {content.strip()[:40]!r}"
                continue
            summary, body = parts.groups()
            if re.search(r"`|\*\*|\$", summary):
                yield f"cell {number}: a summary is HTML, in which Markdown is not rendered: {summary}"
            if not body.startswith("\n\n") or not body.strip():
                yield f"cell {number}: after </summary>, an empty line and a text must follow: {summary}"
            if option := re.match(r"([A-Z])\. ", summary):
                if option[1] == "A" or not groups:
                    groups.append([])
                groups[-1].append((option[1], summary, body.strip()))
        for group in groups:
            letters = "".join(letter for letter, _, _ in group)
            if len(group) < 2 or not "ABCDEFGH".startswith(letters):
                yield f"cell {number}: options must be A, B, …, got {letters}"
            n_right = sum(body.startswith("**Right.**") for _, _, body in group)
            if n_right != 1:
                yield f"cell {number}: one option of {group[0][1]!r} must be right, got {n_right}"
            for _, summary, body in group:
                verdict = re.match(r"\*\*(Right|No)\.\*\*", body)
                if not verdict:
                    yield f"cell {number}: must begin with **Right.** or **No.**: {summary}"
                elif len(body) - verdict.end() < 40:
                    yield f"cell {number}: an option without a reason: {summary}"


@rule
def begins_with_something_to_do(notebook, path):
    """A chapter begins with a part that shows a lab, and a part with questions; a chapter shows at least two labs."""
    if not is_chapter(path):
        return
    part, n_labs_by_part = None, {}
    for cell in notebook.cells:
        headings = re.findall(r"(?m)^## +(.+)$", _prose(cell.source)) if cell.cell_type == "markdown" else []
        n_labs_by_part |= dict.fromkeys(headings, 0)
        part = headings[-1] if headings else part
        if part:
            n_labs_by_part[part] += count_labs(cell)
    first_parts = list(n_labs_by_part)[:2]
    if first_parts != ["Try it first", "Predict first"]:
        yield f"its first two parts must be Try it first and Predict first, are {' and '.join(first_parts)}"
    elif not n_labs_by_part["Try it first"]:
        yield "Try it first must show a lab"
    if sum(n_labs_by_part.values()) < 2:
        yield f"must show two labs or more, has {sum(n_labs_by_part.values())}"


@rule
def hides_what_makes_a_lab(notebook, path):
    """The page of a chapter shows a lab, but not the code that creates the lab."""
    if is_chapter(path):
        for number, cell in _cells(notebook, "code"):
            if count_labs(cell) and "remove-input" not in cell.metadata.get("tags", []):
                yield f"cell {number}: a cell that shows a lab must have the tag remove-input"


def right_letters(notebook):
    """Return the letters of the correct options, question by question."""
    option = re.compile(r"<summary>([A-Z])\. [^\n]*</summary>\s*\*\*Right\.\*\*")
    return [letter for _, cell in _cells(notebook, "markdown") for letter in option.findall(cell.source)]


@rule
def spreads_the_right_answers(notebook, path):
    """No letter marks the correct option too often in a chapter; a test checks this for the whole course."""
    if not is_chapter(path):
        return
    letters = right_letters(notebook)
    for letter, count in Counter(letters).items():
        if count > math.ceil(MAX_LETTER_SHARE * len(letters)):
            yield f"{letter} is right in {count} of {len(letters)} questions: {' '.join(letters)}"


@rule
def has_short_lines_of_code(notebook, path):
    for number, cell in _cells(notebook, "code")[1:]:  # the first cell, which installs the package, is on no page
        for line in cell.source.splitlines():
            if len(line) > MAX_CODE_LINE:
                yield f"cell {number}: a line of {len(line)} characters, over {MAX_CODE_LINE}: {line.strip()[:40]}…"


def _printed_values(cell):
    """Return the printed lines of a code cell, each without its label: only the part after the last colon."""
    texts = [text for text in _printed(cell) if not LAB.match(text) and not re.match(r"<Figure|Drawing\(", text)]
    return [line.rpartition(":")[2] for text in texts for line in text.splitlines() if line.strip()]


def _prints_only_bools(values):
    """Whether the output contains True or False, perhaps with words, but no number."""
    return re.search(r"(?<![=\w])(True|False)\b", "\n".join(values)) and not re.search(r"\d", "\n".join(values))


@rule
def prints_numbers(notebook, path):
    """A number shows how close two results are, but True does not: few cells may print only True or False."""
    if not is_chapter(path):
        return
    values_by_cell = list(filter(None, (_printed_values(cell) for _, cell in _cells(notebook, "code"))))
    count = sum(bool(_prints_only_bools(values)) for values in values_by_cell)
    if count > max(1, MAX_BOOL_SHARE * len(values_by_cell)):
        yield f"{count} of {len(values_by_cell)} cells that print say only True or False, more than a fifth"


FURTHER_SECTION = re.compile(r"## .+\n\n\*Further: skip it, and you miss .+\.\*")


@rule
def is_core_or_further(notebook, path):
    """Each section is marked *core* or *further*; a *further* section says what a reader who skips it misses."""
    if not is_chapter(path):
        return
    for number, cell in _cells(notebook, "markdown"):
        kind = cell.metadata.get("section")
        if "\n## " in _prose(cell.source):
            yield f"cell {number}: a heading of level 2 must begin its cell"
        if not re.match(r"## \d", cell.source):
            if kind:
                yield f"cell {number}: only the cell of a numbered heading has the field 'section', got {kind!r}"
            continue
        if kind not in ("core", "further"):
            yield f"cell {number}: its metadata must have 'section': 'core' or 'further', got {kind!r}"
        if (kind == "further") != bool(FURTHER_SECTION.match(cell.source)):
            yield f"cell {number}: '*Further: skip it, and you miss ….*' may only follow a further heading"


@rule
def names_every_column(notebook, path):
    for number, cell in _cells(notebook, "markdown"):
        for header in re.findall(r"(?m)^(\|.*\|)\n\|[ :|-]+\|$", cell.source):
            if not all(name.strip() for name in header.strip("|").split("|")):
                yield f"cell {number}: a column of the table has no name for a screen reader to read: {header}"


@rule
def has_ordered_headings(notebook, path):
    levels = []
    for number, cell in _cells(notebook, "markdown"):
        for hashes, title in re.findall(r"(?m)^(#{1,6}) +(.+)$", _prose(cell.source)):
            level = len(hashes)
            if levels and level > levels[-1] + 1:
                yield f"cell {number}: a heading of level {level} after one of level {levels[-1]}: {title}"
            levels.append(level)
    if levels[:1] != [1] or levels.count(1) != 1 or not re.match("# ", notebook.cells[0].source):
        yield f"must begin with its one heading of level 1, has {levels.count(1)}"


def complaints(path):
    """Return all complaints about the notebook in the file ``path``."""
    notebook = nbformat.read(path, 4)
    return [f"{rule.__name__}: {complaint}" for rule in RULES for complaint in rule(notebook, Path(path).resolve())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only notebooks that have one of these words in their path; or files")
    paths = select_paths(parser.parse_args().words, all_notebooks())
    all_complaints = [f"{path}: {complaint}" for path in paths for complaint in complaints(path)]
    if all_complaints:
        sys.exit("\n".join(all_complaints))
    print(f"{len(paths)} notebooks keep {len(RULES)} rules.")


if __name__ == "__main__":
    main()
