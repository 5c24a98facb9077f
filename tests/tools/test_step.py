"""A failing step of `make test` ends with one screen: the test, its expected value and its actual value."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import state
import step


@pytest.fixture(autouse=True)
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(step, "REPORTS", tmp_path / "reports")
    return tmp_path / "reports"


def pytest_command(folder, *options):
    report = f"--junitxml={folder / 'reports' / 'sample.xml'}"
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), report, *options]


def test_a_failed_test_shows_expected_and_found(tmp_path, capfdbinary):
    noise = "print('noise\\n' * 500)"
    tests = "\n\n".join(f"def test_{n}():\n    {noise}\n    x = 6 * {n}\n    assert x == 42" for n in range(3, 9))
    (tmp_path / "test_sample.py").write_text(tests)
    status, seconds = step.run("sample", pytest_command(tmp_path, str(tmp_path)))
    summary_lines = step.summary("sample")
    assert status == 1 and seconds > 0 and len(summary_lines) < 40
    assert summary_lines[0] == "5 of 6 tests failed, such as:" and "test_sample :: test_3" in summary_lines
    assert any("assert 18 == 42" in line for line in summary_lines) and not any(
        "noise" in line for line in summary_lines
    )
    log = (step.REPORTS / "sample.log").read_bytes()
    assert log.count(b"noise") >= 2500 and capfdbinary.readouterr().out == log


def test_a_failed_cell_shows_both_outputs(tmp_path):
    cell = new_code_cell("print(6 * 7)", execution_count=1, outputs=[new_output("stream", text="41\n")])
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "sample.ipynb")
    command = pytest_command(tmp_path, "--nbval", "--nbval-current-env", str(tmp_path / "sample.ipynb"))
    assert step.run("sample", command)[0] == 1
    summary = "\n".join(step.summary("sample"))
    assert all(text in summary for text in ("1 of 1 tests failed:", "sample.ipynb", "Cell 0", "41", "42"))


def test_a_step_without_tests_shows_its_last_lines():
    command = [sys.executable, "-c", "print('\\n'.join(map(str, range(99)))); exit(3)"]
    assert step.run("other", command)[0] == 3
    assert step.summary("other")[-1] == "98" and len(step.summary("other")) <= 30


@pytest.fixture
def run_step(reports):
    """Return a function that runs a step as make does, with a given digest of the files.

    The function returns the step's status and the lines of its output.
    """

    def run(code, state, *options):
        script = (
            f"import step, sys, pathlib; step.REPORTS = pathlib.Path({str(reports)!r}); "
            f"step.state = lambda: {state!r}; step.main()"
        )
        command = [sys.executable, "-c", script, *options, "name", sys.executable, "-c", code]
        process = subprocess.run(command, capture_output=True, text=True, cwd=step.__file__.removesuffix("step.py"))
        return process.returncode, process.stdout.splitlines()

    return run


def test_a_step_prints_its_name_and_time(run_step):
    status, lines = run_step("print(1)", "a")
    assert status == 0 and lines[:2] == ["── name", "1"] and lines[2].startswith("── name: passed in ")
    status, lines = run_step("exit('broken')", "a")
    assert status == 1 and "broken" in lines and lines[-1].startswith("── name: FAILED after ")


def test_a_step_that_passed_runs_again_when_something_has_changed(run_step):
    def has_run(state, code="print('ran')", options=("--once",)):
        return "ran" in run_step(code, state, *options)[1]

    assert has_run("a") and not has_run("a") and has_run("a", options=()), "`make name` always runs the step"
    assert has_run("a") and has_run("b") and has_run("a")
    assert has_run("b", "print('ran'); exit(1)") and has_run("b"), "a failed step runs again"
    assert has_run(None) and has_run(None), "without git, no file counts as unchanged"


def test_a_step_runs_again_when_a_file_has_changed_while_it_ran(reports, monkeypatch):
    digests = iter(["before", "after"])
    monkeypatch.setattr(step, "REPORTS", reports)
    monkeypatch.setattr(step, "state", lambda: next(digests))
    monkeypatch.setattr("sys.argv", ["step.py", "--once", "name", sys.executable, "-c", ""])
    with pytest.raises(SystemExit) as exit_error:
        step.main()
    assert exit_error.value.code == 0 and not (reports / "name.passed").exists()


@pytest.fixture
def project_folder(tmp_path, monkeypatch):
    """Return a git repository with an environment and a browser."""
    monkeypatch.setattr(state, "ROOT", tmp_path)
    monkeypatch.setattr(state, "browser", lambda: str(tmp_path / "chromium"))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


FILE_NAMES = ("name.py", "name.js", "name.css", "name.svg", "weights.json", "letters.ttf", "01.ipynb", "Makefile")
FILES = {".gitignore": "_build/\n.venv/\nchromium\n"}
FILES |= dict.fromkeys((".venv/made-from", "chromium", "requirements.txt", "pyproject.toml", *FILE_NAMES), "1")


@pytest.mark.parametrize("name", FILES)
def test_the_state_follows_every_file(project_folder, name):
    before = state.state()
    file = project_folder / name
    if name == "chromium":  # the state contains only the modification time of this large file
        os.utime(file, (1, 1))
    else:
        file.write_text(file.read_text() + "\n# 2")
    assert state.state() != before
    after = state.state()
    file.unlink() if name != "chromium" else os.utime(file, (2, 2))
    assert state.state() not in (before, after)


SETTINGS = {"TRANSFORMER_LAB_DEVICE": "cuda", "TRANSFORMER_LAB_EVERYTHING": "1", "TRANSFORMER_LAB_REQUIRE_BROWSER": "1"}


@pytest.mark.parametrize("name", [*SETTINGS, "OMP_NUM_THREADS"])
def test_the_state_follows_every_setting(project_folder, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = state.state()
    monkeypatch.setenv(name, SETTINGS.get(name, "7"))
    assert state.state() != before


@pytest.mark.parametrize("name", ["version", "packages"])
def test_the_state_follows_python_and_its_packages(project_folder, monkeypatch, name):
    before = state.state()
    if name == "version":
        monkeypatch.setattr(state.sys, "version", "3.99")
    else:
        monkeypatch.setattr(state, "packages", lambda: "another")
    assert state.state() != before


def test_the_state_follows_files_settings_and_the_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(state, "ROOT", tmp_path)
    assert state.state() is None, "outside a git repository, there is no state"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("_build/")
    (tmp_path / "_build").mkdir()
    file, states = tmp_path / "new.py", {state.state()}
    for make_change in (
        lambda: file.write_text("1"),
        lambda: file.write_text("2"),
        lambda: monkeypatch.setenv("TRANSFORMER_LAB_DEVICE", "another"),
        lambda: monkeypatch.setattr(state, "browser", lambda: str(file)),
    ):
        make_change()
        current_state = state.state()
        assert current_state not in states
        states.add(current_state)
    (tmp_path / "_build" / "page.html").write_text("1")
    assert state.state() == current_state, "a file that git ignores must not change the state"
