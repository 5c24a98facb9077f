"""Tests of ``tools/device.py``: what runs on the stand-in, which assertions are skipped, how a failure is reported."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import device
import notebook_rules
import notebooks
from notebooks import ROOT
from without_times import fails_only_assertions

UNTAGGED_MESSAGE = "cell 1: measures a time with {}, but is not tagged nbval-ignore-output"


def test_every_notebook_and_every_file_of_the_mathematics_runs_with_float64_and_without():
    paths = {part.path for part in device.parts()}
    runnable_notebooks = [path for path in notebooks.all_notebooks() if not notebooks.lacks_models(path)]
    assert paths >= {path.relative_to(ROOT).as_posix() for path in runnable_notebooks}
    assert all((ROOT / path).is_file() for path in paths)
    for path in ROOT.glob("tests/maths/test_*.py"):
        text = path.read_text("utf-8")
        if "from agreement import" in text and "DEVICE" in text:
            assert f"tests/maths/{path.name}" in paths
    assert sorted(map(str, device.parts())) == sorted(p + end for p in paths for end in ("", ", without float64"))
    expected_paths = {*paths, *(path.relative_to(ROOT).as_posix() for path in notebooks.all_notebooks())}
    assert all(any(name in path for path in expected_paths) for name in (*device.QUICK_PARTS, *device.SLOW_NOTEBOOKS))


def test_a_notebook_of_published_models_is_left_out_if_they_are_not_installed(monkeypatch):
    monkeypatch.setattr(notebooks, "models_are_installed", lambda: False)
    paths = {part.path for part in device.parts()}
    assert "chapters/10_real_models.ipynb" not in paths and "chapters/08_linear_attention.ipynb" in paths


def test_a_failure_is_reported_in_a_screenful(monkeypatch):
    monkeypatch.setattr(device, "REPORTS", ROOT / "_build" / "reports" / "test")
    part = device.Part("tests/test_none.py")
    part.report.parent.mkdir(parents=True, exist_ok=True)
    part.report.write_text("".join(["..F\n", "=== FAILURES ===\n", "Cell 3: differs\n", *["line\n"] * 500]), "utf-8")
    assert device.summary_line(part) == "nothing was run"
    lines = device.describe_failure(part).splitlines()
    assert lines[0] == "Cell 3: differs" and len(lines) == device.MAX_REPORT_LINES + 1
    assert lines[-1].endswith("tests_test_none_py.txt")


@pytest.mark.parametrize(
    ("errors", "is_skipped"),
    [(["AssertionError"], True), (["RuntimeError"], False), ([], False), (["TypeError"], False)],
)
def test_only_failed_assertions_are_skipped(errors, is_skipped):
    outputs = [new_output("stream", name="stdout", text="5.0 times\n")]
    outputs += [new_output("error", ename=name, evalue="", traceback=[]) for name in errors]
    assert fails_only_assertions(outputs) == is_skipped


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ("took = seconds(work)", [UNTAGGED_MESSAGE.format("seconds")]),
        (
            "print(tl.measure.compare(calls).seconds)",
            [UNTAGGED_MESSAGE.format("compare")],
        ),
        ("def took():\n    return seconds(work)", []),
        ("x = y.repeat(2)", []),
    ],
)
def test_a_cell_that_measures_a_time_must_be_tagged(source, messages):
    notebook = new_notebook(cells=[new_code_cell(source)])
    assert list(notebook_rules.hides_only_times(notebook, None)) == messages
