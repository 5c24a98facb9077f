"""Uses the assignments in a class, with nbgrader: the sources are the solutions, as they are.

One hands in nothing, one has all right, and one has the last function of each notebook wrong. Each must get the points
that this deserves. The environment .venv-nbgrader has nbgrader; the notebooks run in the book's environment.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from assignments import REGION, solutions
from notebooks import ROOT

VENV = ROOT / ".venv-nbgrader"
PIN = "nbgrader==0.9.6"
COURSE = "course"
STUDENTS = {  # what each hands in for a function that has the right answer, and is the notebook's last or not
    "nothing": lambda stub, answer, is_last: stub,
    "everything": lambda stub, answer, is_last: answer,
    "all but the last": lambda stub, answer, is_last: REGION.sub(r"\1return None", answer) if is_last else answer,
}


def environment():
    """Make .venv-nbgrader, once for each version."""
    stamp, made_from = VENV / "made-from", "\n".join([sys.version, str(VENV), PIN])
    if stamp.exists() and stamp.read_text() == made_from:
        return
    print("Making the environment .venv-nbgrader. The first time takes some minutes.", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([VENV / "bin" / "pip", "install", "--quiet", "--quiet", PIN], check=True)
    stamp.write_text(made_from)


def nbgrader(folder, *command):
    """Run nbgrader in the class's folder, with the book's Python as the kernel."""
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    settings = {
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",  # it calls alembic
        "JUPYTER_PATH": str(folder / "jupyter"),
        "TRANSFORMER_LAB_DATA": str(folder / "data"),
    }
    done = subprocess.run(
        [VENV / "bin" / "nbgrader", *command],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"nbgrader {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def answered(notebook, solution, answer):
    """Fill the functions of a notebook that was handed out."""
    answers = {cell.metadata["nbgrader"]["grade_id"]: cell.source for cell in graded(solution, "solution")}
    cells = graded(notebook, "solution")
    for cell in cells:
        cell.source = answer(cell.source, answers[cell.metadata["nbgrader"]["grade_id"]], cell is cells[-1])
    return notebook


def graded(notebook, kind):
    """Return the cells to fill in (``"solution"``), or those that give points (``"grade"``)."""
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(kind)]


def hand_out(folder, sources):
    """Make the class's folder, and return what its students are given."""
    source = folder / "source" / COURSE
    source.mkdir(parents=True)
    for path in sources.values():
        shutil.copy(path, source)
    nbgrader(folder, "generate_assignment", COURSE, "--create")
    released = {path.name: nbformat.read(path, 4) for path in (folder / "release" / COURSE).glob("*.ipynb")}
    for name, notebook in released.items():
        if any("SOLUTION" in cell.source for cell in notebook.cells):
            sys.exit(f"{name} is handed out with a solution in it.")
    return released


def grade(folder, student, released, sources):
    """Hand in what the student answers, in the folder of a class, and return the points."""
    target = folder / "submitted" / student / COURSE
    target.mkdir(parents=True)
    for name, notebook in released.items():
        solution = nbformat.read(sources[name], 4)
        nbformat.write(answered(nbformat.from_dict(notebook), solution, STUDENTS[student]), target / name)
    nbgrader(folder, "autograde", COURSE, "--create")
    nbgrader(folder, "export", "--to", "grades.csv")
    with (folder / "grades.csv").open() as file:
        (row,) = csv.DictReader(file)
    return float(row["score"])


def main():
    environment()
    # Not the final project, which trains its models each time: it is made as the others are.
    sources = {path.name: path for path in solutions() if path.stem < "09"}
    with TemporaryDirectory() as place:
        released = hand_out(Path(place, "class"), sources)
        points = {
            name: [cell.metadata["nbgrader"]["points"] for cell in graded(released[name], "grade")] for name in sources
        }

        def points_of(student):  # each in a class of one: nbgrader's database takes one writer
            folder = shutil.copytree(Path(place, "class"), Path(place, student))
            grades[student] = grade(folder, student, released, sources)
            print(f"  {len(grades)} of {len(STUDENTS)}  {student}", flush=True)

        grades = {}
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(points_of, STUDENTS))
    total = sum(map(sum, points.values()))
    deserved = {
        "nothing": 0,
        "everything": total,
        "all but the last": total - sum(last for *_, last in points.values()),
    }
    for student, wanted in deserved.items():
        print(f"{student:18} {grades[student]:3.0f} of {total} points, deserves {wanted}")
    if grades != deserved:
        sys.exit("The points are not those that the notebooks deserve.")


if __name__ == "__main__":
    main()
