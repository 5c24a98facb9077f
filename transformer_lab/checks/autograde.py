"""Grade a submitted assignment, and write the results for the autograder of Gradescope or of GitHub Classroom.

python -m transformer_lab.checks.autograde handed_in.ipynb                         writes results.json for Gradescope
python -m transformer_lab.checks.autograde handed_in.ipynb --form github --out FILE
python -m transformer_lab.checks.autograde handed_in.ipynb --assignment handed_out.ipynb

The notebook runs from the top, in this process. Each check awards the points for its function, and the card of the
check is the feedback. The checks and their points are read from nbgrader's metadata, either in the submitted notebook
or, with --assignment, in the notebook that was handed out, which no student can change. The results are written even if
the notebook fails, since Gradescope waits for the results file.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import transformer_lab as tl

CELL_TIMEOUT = 120  # seconds; a check has its own time limit


class Task(NamedTuple):
    """A call of a check in the notebook, and the points that the check awards."""

    name: str
    call: str
    points: int


class Result(NamedTuple):
    """The points awarded for a task, and the feedback for the student."""

    task: Task
    score: int
    text: str


def read_code_cells(path):
    """Return the code cells of a notebook, with the source of each cell as one string.

    Raises
    ------
    ValueError
        If the file does not exist, or is not a notebook.
    """
    try:
        cells = json.loads(Path(path).read_text("utf-8"))["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"]
    except FileNotFoundError:
        raise ValueError(f"There is no notebook {path}.") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not a Jupyter notebook, or is broken.") from None


def tasks_of(cells, path):
    """Return the tasks in the cells of an assignment.

    Raises
    ------
    ValueError
        If no cell has a check that awards points.
    """
    tasks = []
    for cell in cells:
        grading = cell.get("metadata", {}).get("nbgrader", {})
        if grading.get("grade") and cell["source"].startswith("tl.checks."):
            tasks.append(Task(grading["grade_id"].removeprefix("check_"), cell["source"].strip(), grading["points"]))
    if not tasks:
        raise ValueError(
            f"{path} has no checks that award points: is it an assignment of the course? "
            "If the notebook has lost its metadata, add --assignment with the notebook that you handed out."
        )
    return tasks


def run(cells, tasks):
    """Run the cells up to the last check. Return each task's result, and a message for each cell with an error."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    task_of_call = {task.call: task for task in tasks}
    last_check = max(
        (number for number, cell in enumerate(cells) if cell["source"].strip() in task_of_call), default=len(cells)
    )
    results, errors = {}, []
    for number, cell in enumerate(cells[: last_check + 1], 1):
        if task := task_of_call.get(cell["source"].strip()):
            results[task] = run_check(task, shell.user_ns)
        elif error := run_cell(shell, cell["source"]):
            errors.append(f"Code cell {number} raised {type(error).__name__}: {error}")
    return [results.get(task) or run_check(task, shell.user_ns) for task in tasks], errors


def run_cell(shell, source):
    """Run a cell, and return the error that it raised, or None."""

    def stop(*_):
        raise TimeoutError(f"the cell did not end within {CELL_TIMEOUT} seconds")

    if hasattr(signal, "SIGALRM"):  # Windows has no SIGALRM
        signal.signal(signal.SIGALRM, stop)
        signal.alarm(CELL_TIMEOUT)
    try:
        execution = shell.run_cell(source)
    finally:
        if hasattr(signal, "SIGALRM"):
            signal.alarm(0)
    return execution.error_before_exec or execution.error_in_exec


def run_check(task, namespace):
    """Run a check in the notebook's namespace, and return the `Result` of the task."""
    try:
        report = eval(task.call, {**namespace, "tl": tl})
    except (NameError, AttributeError) as error:
        return Result(task, 0, f"{task.name} could not be checked: {error}. Did its cell run?")
    partial_points = getattr(report, "stars", None) or 0  # for a check that can award a part of its points
    return Result(task, task.points if report.status == "correct" else min(partial_points, task.points), str(report))


def format_for_gradescope(results, message):
    """Return the results in the format of Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/"""
    return {
        "score": sum(result.score for result in results),
        "output": message,
        "output_format": "text",
        "visibility": "visible",
        "tests": [
            {
                "name": result.task.name,
                "score": result.score,
                "max_score": result.task.points,
                "status": "passed" if result.score == result.task.points else "failed",
                "output": result.text,
                "output_format": "text",
                "visibility": "visible",
            }
            for result in results
        ],
    }


def format_for_github(results, message):
    """Return the results in the format that GitHub Classroom's reporter reads from the output of a workflow step."""
    tests = [
        {
            "name": result.task.name,
            "status": "pass" if result.score == result.task.points else "fail",
            "score": result.score,
            "message": result.text,
        }
        for result in results
    ]
    passed = bool(tests) and all(test["status"] == "pass" for test in tests)
    if message and not passed:
        tests.append({"name": "the notebook", "status": "fail", "score": 0, "message": message})
    return {
        "version": 1,
        "status": "pass" if passed else "fail" if results else "error",
        "max_score": sum(result.task.points for result in results),
        "tests": tests,
    }


FORMS = {"gradescope": format_for_gradescope, "github": format_for_github}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", help="the notebook that was handed in")
    parser.add_argument("--assignment", help="the notebook that was handed out; its checks and points count")
    parser.add_argument("--out", default="results.json", help="the file to write (default: %(default)s)")
    parser.add_argument(
        "--form", choices=FORMS, default="gradescope", help="the autograder that reads the file (default: %(default)s)"
    )
    options = parser.parse_args(arguments)

    def write(results, message):
        text = json.dumps(FORMS[options.form](results, message), indent=1, ensure_ascii=False)
        Path(options.out).write_text(text + "\n", "utf-8")

    assignment_path = options.assignment or options.notebook
    try:
        tasks = tasks_of(read_code_cells(assignment_path), assignment_path)
        cells = read_code_cells(options.notebook)
    except ValueError as error:
        write([], str(error))
        sys.exit(str(error))
    # This first version of the file remains if the notebook ends Python, or if the system kills the process because it
    # uses too much memory.
    write(
        [Result(task, 0, "The notebook ended before this task was checked.") for task in tasks],
        "The notebook did not finish.",
    )
    os.environ.setdefault("MPLBACKEND", "agg")
    with TemporaryDirectory() as folder:
        os.environ["TRANSFORMER_LAB_DATA"] = folder  # so that the checks do not write into the teacher's own record
        results, errors = run(cells, tasks)
    write(results, "\n".join(errors))
    print(f"{sum(result.score for result in results)} of {sum(task.points for task in tasks)} points: {options.out}")


if __name__ == "__main__":
    main()
