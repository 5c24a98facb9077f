"""Makes the assignments from the solutions; with --check, only lists what is out of date.

    python tools/assignments.py [--check] [06 …]       (default: all; otherwise those whose path has one of the words)

The solution is the only source. The tool also updates the derived parts of the solution: the numbers of the
headings; the number of functions and the minutes, in the first cell; the checks' three hints for each exercise, in
place of ``{hints name}``; and nbgrader's metadata. The assignment is the same notebook with ``raise
NotImplementedError`` in place of each region between ``### BEGIN SOLUTION`` and ``### END SOLUTION``, which are
nbgrader's own markers.
"""

import argparse
import re
import sys
from copy import deepcopy

import nbformat

import transformer_lab as tl
from notebooks import GENERATED_FROM, ROOT, all_notebooks, canonical, select_paths, text
from transformer_lab.checks.course import COURSE
from transformer_lab.checks.hunts import TASKS, tasks
from transformer_lab.checks.report import HINT_KINDS

REGION = re.compile(r"(?ms)^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION$")
# A heading is numbered if it contains the name of an exercise, or already has a number.
HEADING = re.compile(r"(?m)^## (?P<number>(?:\d+\.)?\d+ )?(?P<words>(?:.*`(?P<name>\w+)`)?.*)$")
ABOUT_MINUTES = r"\b([Aa]bout )(\d+)(?= minutes)"
MINUTES = re.compile(r"(?m)^★+☆* · (\d+) minutes")
COUNT_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
FUNCTION_COUNT = re.compile(
    rf"(?i)\b(?P<count>{'|'.join(COUNT_WORDS)})(?P<between>(?: short)? functions\b[^`]*)`\w+` to `\w+`"
)
REFERENCE_LINE = re.compile(r"`\w+ = tl\.checks\.\w+\.reference`")
# The argument of a check is a class, or the function that has the check's name.
CHECK = re.compile(
    r"tl\.checks\.(?:hunt\(tl\.checks\.(\w+), (?P<test>test_\1)\)|(?P<name>\w+)\((?:(?P=name)|[A-Z]\w+)\))"
)
HINTS = re.compile(
    r"\{hints (\w+)\}|<details>\n<summary>Hint 1: .*?</details>(?:\n\n<details>\n<summary>Hint .*?</details>)*",
    re.DOTALL,
)


def solutions():
    """Return the paths of all solutions."""
    return sorted((ROOT / "chapters" / "solutions").glob("*.ipynb"))


def solution_of(folder):
    """Return the path of the solution whose exercises are in the given folder of ``transformer_lab/checks``."""
    name = re.sub(r"^ch(\d+)_", lambda chapter: f"{int(chapter[1]):02}_", folder)
    return ROOT / "chapters" / "solutions" / f"{name}.ipynb"


def assignment_of(path):
    """Return the path of a solution's assignment."""
    return path.parents[1] / "assignments" / path.name


def with_derived_parts(notebook):
    """Return a solution with its derived parts: numbers, counts, the checks' hints and nbgrader's metadata."""
    notebook = deepcopy(notebook)
    notebook.metadata.pop(GENERATED_FROM, None)
    folder = require_exercises(notebook)
    if folder:
        number_headings(notebook, number_prefix(folder))
        count_exercises(notebook, folder)
    points = 1
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
        if cell.cell_type == "markdown":
            if stars := re.search(r"(?m)^(★+)☆*", cell.source):
                points = len(stars[1])
            if name := name_in_heading(cell):
                exercise = name
            if HINTS.search(cell.source):
                cell.source = HINTS.sub(hints(exercise).replace("\\", r"\\"), cell.source)
        elif REGION.search(cell.source):
            function_name = re.search(r"(?m)^(?:def|class) (\w+)", cell.source)[1]
            cell.metadata["nbgrader"] = nbgrader_metadata(function_name, solution=True)
        elif check := CHECK.fullmatch(cell.source):
            metadata = nbgrader_metadata(f"check_{check['name'] or check['test']}", grade=True, locked=True)
            cell.metadata["nbgrader"] = {**metadata, "points": points}
    return canonical(notebook)


def name_in_heading(cell):
    """Return the name of the exercise in a cell's heading, or None."""
    heading = HEADING.search(cell.source)
    return heading and heading["name"]


def require_exercises(notebook):
    """Raise an error if a solution lacks an exercise of its assignment, or an exercise's heading, hints or check.

    Returns
    -------
    str or None
        The assignment's folder in ``transformer_lab/checks``; None for a notebook without checks.

    Raises
    ------
    ValueError
        If a part is missing, or is below the heading of a different exercise.
    """
    name, names_with_hints, checked_tasks = None, set(), []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            name = name_in_heading(cell) or name
            for hints_match in HINTS.finditer(cell.source):
                if name is None or hints_match[1] not in (name, None):
                    raise ValueError(
                        f"{hints_match[0].splitlines()[0]} must be below the heading of its exercise, "
                        f"but is below {name}"
                    )
                names_with_hints.add(name)
        elif check := CHECK.fullmatch(cell.source):
            checked_tasks.append(task := check["name"] or check["test"])
            if task not in TASKS:
                file = "hunts" if check["test"] else "course"
                raise ValueError(f"the check of {task} must be in transformer_lab/checks/{file}.py, but is not")
            if task != name:
                raise ValueError(f"the check of {task} must be below its heading, but is below {name}")
            if name not in names_with_hints:
                raise ValueError(f"{name} must have hints: write {{hints {name}}} below its heading")
    if not checked_tasks:
        return None
    folder = TASKS[checked_tasks[0]]
    expected = tasks(folder)
    if not any(task.startswith("test_") for task in expected):
        raise ValueError(f"{folder} must end with a hunt: add one of its exercises to transformer_lab/checks/hunts.py")
    if checked_tasks != expected:
        source = f"{folder} in course.py and hunts.py"
        raise ValueError(f"the checks must be those of {source}, {expected}, got {checked_tasks}")
    return folder


def number_prefix(folder):
    """Return the prefix of an assignment's heading numbers: ``5.`` in chapter 5, empty in the project."""
    chapter = re.match(r"ch(\d+)_", folder)
    return f"{chapter[1]}." if chapter else ""


def number_headings(notebook, prefix):
    """Write the number of each exercise into its heading, in the order of the notebook."""
    n_numbered = 0

    def numbered(heading):
        nonlocal n_numbered
        if not heading["number"] and heading["name"] not in TASKS:
            return heading[0]
        n_numbered += 1
        return f"## {prefix}{n_numbered} {heading['words']}"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = HEADING.sub(numbered, cell.source)


def count_exercises(notebook, folder):
    """Update the number of functions, the first and the last function, and the minutes in the first cell.

    Raises
    ------
    ValueError
        If the first cell lacks one of these facts, or if the exercises of an assignment with untimed parts already take
        all the stated minutes.
    """
    first_cell = notebook.cells[0]
    functions = [name for name in COURSE[folder] if not name.startswith("mend_")]
    count = COUNT_WORDS[len(functions)]

    def replace_count(match):
        word = count.capitalize() if match["count"][0].isupper() else count
        return f"{word}{match['between']}`{functions[0]}` to `{functions[-1]}`"

    first_cell.source, n_replaced = FUNCTION_COUNT.subn(replace_count, first_cell.source, count=1)
    if not n_replaced:
        raise ValueError(f"the first cell must say how many functions there are: {count} functions, from `…` to `…`")
    first_cell.source = REFERENCE_LINE.sub(f"`{functions[0]} = tl.checks.{functions[0]}.reference`", first_cell.source)
    minutes = sum(int(number) for cell in notebook.cells for number in MINUTES.findall(cell.source))
    stated = re.search(ABOUT_MINUTES, first_cell.source)
    if not stated:
        raise ValueError(f"the first cell must say how long the assignment takes: About {minutes} minutes")
    if not has_untimed_parts(notebook):
        first_cell.source = re.sub(ABOUT_MINUTES, rf"\g<1>{minutes}", first_cell.source, count=1)
    elif int(stated[2]) <= minutes:
        raise ValueError(f"the first cell must state more than the {minutes} minutes of the tasks, got {stated[2]}")


def has_untimed_parts(notebook):
    """Whether an assignment, like the final project, has parts without minutes in addition to its exercises."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    untimed = [text for text in texts if re.search(r"(?m)^## ", text) and not MINUTES.search(text)]
    return any("## How far you are" not in text for text in untimed)


def hints(name):
    """Return an exercise's three hints, each in a fold-out."""
    return "\n\n".join(
        f"<details>\n<summary>Hint {number}: {kind}</summary>\n\n{hint}\n\n</details>"
        for number, (kind, hint) in enumerate(zip(HINT_KINDS, getattr(tl.checks, name).hints), 1)
    )


def nbgrader_metadata(name, *, solution=False, grade=False, locked=False):
    """Return nbgrader's metadata for a cell."""
    return {
        "grade": grade,
        "grade_id": name,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }


def assignment(solution, name, stored=None):
    """Return the assignment of the solution ``name``; outputs come from ``stored``, the previous assignment."""
    notebook = deepcopy(solution)
    notebook.metadata[GENERATED_FROM] = f"solutions/{name}, by make notebooks"
    outputs = {cell.source: cell.get("outputs") for cell in stored.cells} if stored else {}
    for cell in notebook.cells:
        cell.source = REGION.sub(r"\1raise NotImplementedError", cell.source)
        if cell.cell_type == "code":
            cell.outputs = outputs.get(cell.source) or []
    return canonical(notebook)


def files_from(path):
    """Return ``{path: text}`` for a solution and its assignment in their up-to-date form."""
    solution = with_derived_parts(nbformat.read(path, 4))
    target = assignment_of(path)
    stored = nbformat.read(target, 4) if target.exists() else None
    return {path: text(solution), target: text(assignment(solution, path.name, stored))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="list what is out of date, write nothing")
    parser.add_argument("words", nargs="*", help="only assignments with one of these words in their path")
    arguments = parser.parse_args()
    chosen = select_paths(arguments.words, all_notebooks())
    paths = [path for path in solutions() if path in chosen or assignment_of(path) in chosen]
    files = {}
    for path in paths:
        try:
            files |= files_from(path)
        except ValueError as error:
            sys.exit(f"{path.name}: {error}.")
    expected_paths = {assignment_of(path) for path in solutions()}
    unexpected_paths = [
        path for path in (ROOT / "chapters" / "assignments").glob("*.ipynb") if path not in expected_paths
    ]
    outdated = [file for file, new in files.items() if not file.exists() or file.read_text("utf-8") != new]
    if unexpected_paths:
        sys.exit(f"There is no solution for {unexpected_paths[0].relative_to(ROOT)}.")
    if arguments.check:
        if outdated:
            file = outdated[0].relative_to(ROOT)
            sys.exit(f"{file} does not agree with its solution and the checks: run `make notebooks`.")
        print(f"{len(paths)} assignments are up to date with their solutions.")
        return
    for file in outdated:
        file.parent.mkdir(exist_ok=True)
        file.write_text(files[file], "utf-8")
        print(f"written {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
