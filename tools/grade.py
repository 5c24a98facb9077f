"""Grades the notebooks of made-up students with nbgrader; the source notebooks are the unchanged solutions.

Two students write only correct functions; one hands in the first notebook, the third, and so on, and the other hands in
the rest. A third student writes the first half of each notebook's functions correctly; the other functions are
alternately missing and wrong. (Functions call the functions above them, so a correct function below a wrong one gets no
points.) Each student must get the points that the answers deserve. The environment .venv-nbgrader contains nbgrader;
the notebooks run in .venv.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from assignments import REGION, solutions
from environment import make_venv
from notebooks import ROOT

VENV = ROOT / ".venv-nbgrader"
PINS = ["nbgrader==0.9.6", "--exclude-newer", "2026-11-20"]  # dependencies: releases up to this day
COURSE = "course"
EVEN_ITEMS, ODD_ITEMS = slice(0, None, 2), slice(1, None, 2)
# For each student, the share of correct functions in a notebook, and the notebooks that the student hands in.
STUDENTS = {"all right 1": (1, EVEN_ITEMS), "all right 2": (1, ODD_ITEMS), "half right": (1 / 2, ODD_ITEMS)}


def ensure_environment():
    """Create .venv-nbgrader if it is missing or the pinned versions have changed."""

    def install(python):
        subprocess.run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *PINS], check=True)

    make_venv(str(VENV), "\n".join([sys.version, str(VENV), *PINS]), install)


def nbgrader(folder, *command):
    """Run nbgrader in the class's folder, with .venv's Python as the kernel."""
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    settings = {
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",  # nbgrader calls alembic
        "JUPYTER_PATH": str(folder / "jupyter"),
        "TRANSFORMER_LAB_DATA": str(folder / "data"),
    }
    completed = subprocess.run(
        [VENV / "bin" / "nbgrader", *command],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise SystemExit(f"nbgrader {' '.join(command)} failed:\n{(completed.stdout + completed.stderr)[-3000:]}")


def answer_share(notebook, solution, share):
    """Solve the given share of a released notebook's functions; return the points that the answers deserve."""
    functions, answers = graded_cells(notebook, "solution"), graded_cells(solution, "solution")
    n_right = int(share * len(functions))
    for i, (function, answer) in enumerate(zip(functions, answers, strict=True)):
        if i < n_right:
            function.source = answer.source
        elif (i - n_right) % 2:
            function.source = REGION.sub(r"\1return None", answer.source)
    return sum(check.metadata["nbgrader"]["points"] for check in graded_cells(notebook, "grade")[:n_right])


def graded_cells(notebook, kind):
    """Return the cells to fill in (``"solution"``), or the cells that are graded (``"grade"``)."""
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(kind)]


def hand_out(folder, sources):
    """Create the class's folder, and return the notebooks that students get."""
    source = folder / "source" / COURSE
    source.mkdir(parents=True)
    for path in sources.values():
        shutil.copy(path, source)
    nbgrader(folder, "generate_assignment", COURSE, "--create")
    released = {path.name: nbformat.read(path, 4) for path in (folder / "release" / COURSE).glob("*.ipynb")}
    for name, notebook in released.items():
        if any("SOLUTION" in cell.source for cell in notebook.cells):
            sys.exit(f"The released {name} contains a solution.")
    return released


def grade(folder, student, released, sources):
    """Hand in and grade a student's answers in a class's folder; return the points given and the points deserved."""
    target = folder / "submitted" / student / COURSE
    target.mkdir(parents=True)
    expected = 0
    share, submitted = STUDENTS[student]
    for name in sorted(released)[submitted]:
        handed_in = deepcopy(released[name])
        expected += answer_share(handed_in, nbformat.read(sources[name], 4), share)
        nbformat.write(handed_in, target / name)
    nbgrader(folder, "autograde", COURSE, "--create")
    nbgrader(folder, "export", "--to", "grades.csv")
    with (folder / "grades.csv").open() as file:
        (row,) = csv.DictReader(file)
    return float(row["score"]), expected


def main():
    ensure_environment()
    # The final project is left out, because it would train its models each time.
    sources = {path.name: path for path in solutions() if path.stem != "project"}
    with TemporaryDirectory() as temporary:
        released = hand_out(Path(temporary, "class"), sources)

        def grade_student(student):  # each student in a separate class: nbgrader's database allows only one writer
            folder = shutil.copytree(Path(temporary, "class"), Path(temporary, student))
            got, expected = grade(folder, student, released, sources)
            print(f"  {student:11} {got:3.0f} points, should get {expected}", flush=True)
            return got == expected

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(grade_student, STUDENTS))
    if not all(results):
        sys.exit("A student's points differ from those that the answers deserve.")


if __name__ == "__main__":
    main()
