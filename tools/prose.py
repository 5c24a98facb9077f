"""Extracts the prose from the files of the course: Markdown, docstrings, comments, and texts in code."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parents[1]
AREAS = {  # patterns of paths; a file belongs to the first area with a pattern that matches
    "chapters-1-5": ("chapters/0[1-5]_*.ipynb",),
    "chapters-6-8": ("chapters/0[6-8]_*.ipynb",),
    "chapters-9-11": ("chapters/09_*.ipynb", "chapters/1*_*.ipynb"),
    "assignments": ("chapters/solutions/*.ipynb",),  # the assignments are generated from the solutions
    "pages": ("chapters/*.md", "chapters/*.ipynb", "*.md", "benchmarks/*.md"),
    "cards": (
        "transformer_lab/checks/ch*/*.py",
        "transformer_lab/checks/project/*.py",
        "transformer_lab/checks/*_*s.py",
    ),
    "labs": ("transformer_lab/labs/*.js", "transformer_lab/labs/*.py", "transformer_lab/practice/*.py"),
    "code": (
        *("transformer_lab/**/*.py", "tools/*.py", "book/*.py", "book/*.js", "benchmarks/*.py"),
        *("tests/*.py", "tests/*/test_*.py", "tests/helpers/*.py", "tests/standin/**/*.py"),  # the bank is data
    ),
}


class Passage(NamedTuple):
    """A paragraph, docstring, comment or text in code, and where it begins: its line, or its cell in a notebook."""

    location: int
    text: str


def files(area):
    """Return the paths of the files in an area."""
    earlier_paths = set()
    for name, globs in AREAS.items():
        paths = {path for glob in globs for path in ROOT.glob(glob)} - earlier_paths
        if name == area:
            return sorted(paths)
        earlier_paths |= paths
    raise ValueError(f"an area must be one of {', '.join(AREAS)}, got {area!r}")


def passages(path):
    """Return the prose of a file as a list of passages, without code blocks, displayed formulas and HTML."""
    source = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        cells = enumerate(nbformat.reads(source, 4).cells, 1)
        return [Passage(number, text) for number, cell in cells for text in _cell_texts(cell)]
    if path.suffix == ".md":
        return [Passage(line, text) for line, paragraph in _paragraphs(source) for text in _blocks(paragraph)]
    return _code_passages(_python_texts(source) if path.suffix == ".py" else _script_texts(source))


def _cell_texts(cell):
    if cell.cell_type == "markdown":
        return _blocks(cell.source)
    python = re.sub(r"(?m)^( *)[%!].*", r"\1pass", cell.source)  # without IPython's commands
    return [text for _, text in _code_passages(_python_texts(python))]


def _code_passages(texts):
    return [Passage(line, block) for line, text in sorted(texts) for block in _blocks(text) if block.count(" ") > 1]


def _paragraphs(source):
    source = re.sub(r"(?ms)^ *(`{3,}).*?^ *\1`* *$", lambda match: "\n" * match[0].count("\n"), source)
    return [(source.count("\n", 0, m.start()) + 1, m[0]) for m in re.finditer(r"(?:.+\n?)+", source)]


NO_PROSE = (
    r"(?ms)^ *(`{3,}).*?^ *\1`* *$|\$\$.+?\$\$|<!--.*?-->",
    r"(?m)^ *(?:>>>|\.\.\.) .*$|^ *\w+\n *-{3,}$|^ *[\w, *]+ : .*$",  # examples, headings and types of a docstring
    r"(?m)^ *\|?[ :|-]+\|?$|<[^>\n]*>|^> ?",
)


def _blocks(source):
    """Return the paragraphs, list items and table cells of a Markdown text or a docstring, each as one line."""
    for pattern in NO_PROSE:
        source = re.sub(pattern, "\n\n", source)
    source = re.sub(r"!\[[^]]*\]\([^)]*\)|(?<!\w)\*\*|\*\*(?!\w)|(?m:^#+ )", "", source)
    source = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", source)
    blocks = re.split(r"\n\s*\n|\n(?= *(?:[-*+]|\d+[.)]) )|(?<=\s)\|(?=\s)", source)
    return [" ".join(block.split()) for block in blocks if block.strip(" |\n")]


def _python_texts(source):
    """Return comments, docstrings and other texts, with dots in place of the expressions of f-strings."""
    texts, fstring_parts = _comments(source, "#"), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            fstring_parts |= {id(part) for part in ast.walk(node)}
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            texts.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in fstring_parts:
            texts.append((node.lineno, node.value))
    return texts


def _script_texts(source):
    """Return comments and texts of JavaScript, with dots in place of the expressions of template literals."""
    texts = _comments(source, "//")
    for text in re.finditer(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|(?s:/\*.*?\*/)', source):
        content = re.sub(r'^["`/*]+|["`/*]+$|(?m:^ *\*+/?)', "", re.sub(r"\$\{[^}]*\}", "…", text[0]))
        texts.append((source.count("\n", 0, text.start()) + 1, content))
    return texts


def _comments(source, marker):
    """Return comments after code on the same line, and comments on their own lines; adjacent lines are joined."""
    comments, last_line = [], 0
    for number, line in enumerate(source.splitlines(), 1):
        if comment := re.match(rf" *{marker} (.*)", line):
            if last_line == number - 1 and comments:
                comments[-1] = (comments[-1][0], f"{comments[-1][1]} {comment[1]}")
            else:
                comments.append((number, comment[1]))
            last_line = number
        elif trailing := re.search(rf"[^\"'`:]  ?{marker} (.*)", line):
            comments.append((number, trailing[1]))
    return comments
