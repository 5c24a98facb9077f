"""One command grades a submitted assignment, and always writes the file that an autograder reads."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_lab.checks import autograde

CHAPTERS = Path(autograde.__file__).parents[2] / "chapters"
NAME = "01_tensor_operations.ipynb"
ASSIGNMENT, SOLUTION = CHAPTERS / "assignments" / NAME, CHAPTERS / "solutions" / NAME
POINTS = {
    "flat_offset": 1,
    "strides_of": 1,
    "transposed": 2,
    "merge_last_two": 2,
    "mend_columns": 2,
    "test_transposed": 3,
}


def grade(folder, notebook, *options):
    """Grade a notebook in a separate process; return the results and the printed text."""
    process = subprocess.run(
        [sys.executable, "-m", "transformer_lab.checks.autograde", notebook, *options],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return json.loads((folder / "results.json").read_text("utf-8")), process


def write_submission(folder, **answers):
    """Write the assignment with these answers in their cells; None empties a cell and the cell with its check."""
    notebook = json.loads(ASSIGNMENT.read_text("utf-8"))
    for name, answer in answers.items():
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") in (name, f"check_{name}"):
                if answer is None:
                    cell["source"] = ""
                    cell["metadata"] = {}
                elif cell["metadata"]["nbgrader"]["solution"]:
                    cell["source"] = answer
    path = folder / "handed_in.ipynb"
    path.write_text(json.dumps(notebook), "utf-8")
    return str(path)


def test_a_solution_gets_all_points_in_githubs_form(tmp_path):
    results, process = grade(tmp_path, str(SOLUTION), "--form", "github")
    assert (results["version"], results["status"], results["max_score"]) == (1, "pass", 11)
    assert {test["name"]: test["score"] for test in results["tests"]} == POINTS
    assert {test["status"] for test in results["tests"]} == {"pass"}
    assert process.stdout.endswith("11 of 11 points: results.json\n")


def test_an_empty_assignment_gets_no_points(tmp_path):
    results, process = grade(tmp_path, str(ASSIGNMENT))
    assert process.returncode == 0
    assert (results["score"], results["output"]) == (0, "")
    assert {test["name"]: test["max_score"] for test in results["tests"]} == POINTS
    for test in results["tests"]:
        assert (test["score"], test["status"], test["visibility"], test["output_format"]) == (
            0,
            "failed",
            "visible",
            "text",
        )
        assert "not attempted" in test["output"]


def test_wrong_answers_get_the_name_of_their_mistake_and_cost_only_their_own_points(tmp_path):
    notebook = write_submission(
        tmp_path,
        flat_offset="def flat_offset(index, strides):\n    for i, s in zip(index, strides):\n        return i * s",
        strides_of="def strides_of(shape):\n    return (",
        transposed="def transposed(x, dim0, dim1):\n    return x.transpose(dim0, dim1)",
        merge_last_two=None,
        mend_columns="raise SystemExit('enough')",
        test_transposed="def test_transposed(f):\n x = torch.rand(2,3,4)\n return f(x, 0, 2).equal(x.transpose(0, 2))",
    )
    results, _ = grade(tmp_path, notebook, "--assignment", str(ASSIGNMENT))
    assert {test["name"]: (test["score"], test["max_score"]) for test in results["tests"]} == {
        name: ({"transposed": 2, "test_transposed": 1}.get(name, 0), points) for name, points in POINTS.items()
    }
    outputs = {test["name"]: test["output"] for test in results["tests"]}
    assert "Most often a `return` is inside the loop" in " ".join(outputs["flat_offset"].split())
    for name in ("strides_of", "merge_last_two", "mend_columns"):
        assert outputs[name] == f"{name} could not be checked: name '{name}' is not defined. Did its cell run?"
    assert [line.split(":")[0] for line in results["output"].splitlines()] == [
        "Code cell 5 raised SyntaxError",
        "Code cell 12 raised SystemExit",
    ]


def test_the_results_are_written_even_if_the_notebook_ends_python(tmp_path):
    results, process = grade(tmp_path, write_submission(tmp_path, flat_offset="import os\nos._exit(7)"))
    assert process.returncode == 7
    assert (results["score"], results["output"]) == (0, "The notebook did not finish.")
    assert [test["max_score"] for test in results["tests"]] == list(POINTS.values())


@pytest.mark.parametrize("form", autograde.FORMS)
@pytest.mark.parametrize(
    "content, message",
    [
        (None, "There is no notebook it.ipynb."),
        ("no JSON", "it.ipynb is not a Jupyter notebook, or is broken."),
        ("{}", "it.ipynb is not a Jupyter notebook, or is broken."),
        ('{"cells": []}', "it.ipynb has no checks that award points: is it an assignment of the course?"),
    ],
)
def test_nothing_to_grade_is_reported_in_the_file(content, message, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("it.ipynb").write_text(content, "utf-8")
    with pytest.raises(SystemExit, match=message.replace("?", r"\?")):
        autograde.main(["it.ipynb", "--form", form])
    results = json.loads(Path("results.json").read_text("utf-8"))
    if form == "gradescope":
        assert results["score"] == 0 and results["output"].startswith(message)
    else:
        assert results["status"] == "error" and results["tests"][0]["message"].startswith(message)
