"""The tables in CONTRIBUTING that say where to look name only files that exist, and name every file in book/."""

import json
import re
import subprocess
from fnmatch import fnmatch
from functools import cache
from itertools import product

import pytest

import notebooks
from notebooks import ROOT
from transformer_lab import labs

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TABLES = CONTRIBUTING.partition("## I want to change …\n")[2].partition("\n## ")[0]
FILE_NAME = re.compile(r"[\w*./{},-]*\.(?:cff|css|js|json|md|ipynb|py|sh|svg|toml|txt|yml)")
# A colour in hexadecimal digits or as a CSS function. In Python and JavaScript, digits count only if they are a whole
# string, since #123 in a sentence is the number of an issue.
HEX_COLOUR = r"#(?:[\da-f]{8}|[\da-f]{6}|[\da-f]{3,4})\b"
COLOUR_FUNCTION = r"\b(?:rgb|hsl|hwb|oklab|oklch)a?\("
STYLE_COLOUR = re.compile(rf"(?<!\w){HEX_COLOUR}|{COLOUR_FUNCTION}", re.IGNORECASE)
CODE_COLOUR = re.compile(rf"[\"'`]{HEX_COLOUR}[\"'`]|{COLOUR_FUNCTION}\d", re.IGNORECASE)


@cache
def repository_files():
    """Return the names of all files in the repository, except those that git ignores."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split("\n")
    return [name for name in names if name and (ROOT / name).exists()] or pytest.skip(
        "this folder is not a git repository"
    )


def files_named(text):
    """Yield every file name between backticks; a name with braces stands for several files."""
    for code_span in re.findall(r"`([^`]+)`", text):
        if FILE_NAME.fullmatch(code_span):
            parts = [part.split(",") for part in re.split(r"[{}]", code_span)]
            yield from ("".join(choice) for choice in product(*parts))


def row_of(subject):
    return re.search(rf"(?m)^\| {subject} \| (.+) \|$", TABLES)[1]


def test_every_file_that_the_tables_name_exists():
    placeholder = re.compile(r"(^|/)name(_\w+)?\.|config\.json$|_…")
    missing = [
        name
        for name in files_named(TABLES)
        if not placeholder.search(name) and not any(fnmatch(f"/{path}", f"*/{name}") for path in repository_files())
    ]
    assert missing == []


def test_every_file_that_pages_are_made_with_is_in_a_table():
    names_in_tables = {name.rpartition("/")[2] for name in files_named(TABLES)}
    files = [path for path in repository_files() if re.fullmatch(r"book/\w+\.(py|js|css)", path)]
    assert [path for path in files if path.rpartition("/")[2] not in names_in_tables | {"globals.d.ts"}] == []


def code_of(notebook):
    cells = json.loads(notebook)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def has_colour(path):
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".ipynb"):
        return bool(CODE_COLOUR.search(code_of(text)))
    return bool((STYLE_COLOUR if path.endswith((".css", ".svg")) else CODE_COLOUR).search(text))


def test_the_row_of_colours_names_exactly_the_files_that_have_a_colour():
    patterns = [name if "/" in name else f"*/{name}" for name in files_named(row_of("a colour")) if "test_" not in name]
    path_of_shipped_file = re.compile(r"(book|chapters|transformer_lab)/.+\.(css|html|ipynb|js|py|svg)")
    files_with_colours = {
        path for path in repository_files() if path_of_shipped_file.fullmatch(path) and has_colour(path)
    }
    assert [
        path for path in sorted(files_with_colours) if not any(fnmatch(f"/{path}", f"*/{name}") for name in patterns)
    ] == []
    assert [name for name in patterns if not any(fnmatch(f"/{path}", f"*/{name}") for path in files_with_colours)] == []


def test_the_table_of_labs_names_every_lab_and_the_chapters_that_show_it():
    table = {
        stem: (chapters, shows)
        for stem, chapters, shows in re.findall(r"(?m)^\| `(\w+)` \| ((?:\d|front|page).*?) \| (.+) \|$", TABLES)
    }
    classes = {getattr(labs, name).__module__.rpartition(".")[2]: name for name in labs.__all__}
    assert sorted(table) == sorted(classes)
    for stem, name in classes.items():
        shown_in = [
            str(int(path.name[:2]))
            for path in notebooks.chapters()
            if f"labs.{name}(" in code_of(path.read_text("utf-8"))
        ]
        assert re.findall(r"\d+", table[stem][0]) == shown_in, stem
