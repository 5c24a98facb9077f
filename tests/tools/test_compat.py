"""Tests of what ``make compat`` installs for the newest and for the oldest releases, and of what it reports."""

import re
import subprocess
import sys

import nbformat
import pytest
import yaml

import compat

NEWEST, OLDEST = compat.RELEASE_SETS


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(compat, "is_reachable", lambda _: False)


def test_release_sets_are_chosen_by_name():
    assert compat.chosen_release_sets([]) == [NEWEST, OLDEST] and compat.chosen_release_sets(["oldest"]) == [OLDEST]
    with pytest.raises(SystemExit, match=r"^make: ONLY must be newest or oldest, got old\.$"):
        compat.chosen_release_sets(["old"])


@pytest.mark.parametrize(
    ("release_set", "installed_versions", "expected"),
    [(NEWEST, {"3.10", "3.13"}, "3.13"), (OLDEST, {"3.11", "3.12", "3.14"}, "3.11")],
    ids=["newest", "oldest"],
)
def test_each_release_set_uses_its_preferred_python(release_set, installed_versions, expected, monkeypatch):
    monkeypatch.setattr(compat, "interpreter", lambda version: version if version in installed_versions else None)
    assert compat.python_for(release_set) == expected


def test_a_missing_python_is_reported(monkeypatch):
    monkeypatch.setattr(compat, "interpreter", lambda _: None)
    with pytest.raises(
        SystemExit, match=r"^make: compat needs Python 3\.10 or 3\.11 or 3\.12 for the oldest PyTorch, "
    ):
        compat.python_for(OLDEST)


def test_uv_chooses_from_the_ranges_and_ignores_the_pinned_pytorch(offline):
    for release_set, resolution in (NEWEST, "highest"), (OLDEST, "lowest-direct"):
        arguments = compat.install_arguments(release_set)
        assert arguments[:5] == ["--no-config", "--resolution", resolution, "-r", "pyproject.toml"]
        assert {re.split("==| ", pin)[0] for pin in arguments[5:]} == set(compat.TEST_TOOLS)


def test_the_cpu_build_of_pytorch_is_used_if_it_is_reachable(monkeypatch):
    monkeypatch.setattr(compat, "is_reachable", lambda _: True)
    assert "--torch-backend cpu" in " ".join(compat.install_arguments(NEWEST))


def test_every_range_has_a_lower_bound():
    """Without a lower bound, uv would choose a release from many years ago."""
    dependencies = re.search(r"(?ms)^dependencies = \[$(.*?)^\]$", (compat.ROOT / "pyproject.toml").read_text("utf-8"))[
        1
    ]
    assert all(">=" in line for line in dependencies.split("\n") if line)


@pytest.mark.parametrize("status", [0, 1])
def test_a_step_keeps_its_output_and_reports_its_result(status, tmp_path, monkeypatch, capsys):
    message = (
        "================ FAILURES ================\nassert 1 == 2\n1 failed, 2 passed in 3 s" if status else "3 passed"
    )
    code = f"print({message!r}); raise SystemExit({status})"
    monkeypatch.setattr(compat, "REPORTS", tmp_path)
    monkeypatch.setattr(compat.Step, "command", property(lambda _: [sys.executable, "-c", code]))
    monkeypatch.setattr(compat, "ROOT", tmp_path)
    for name in ("ensure_environment", "describe"):
        monkeypatch.setattr(compat, name, lambda release_set: f"packages of {release_set.name}")
    monkeypatch.setattr(compat, "describe_failure", lambda step: step.report.read_text("utf-8"))
    monkeypatch.setattr(sys, "argv", ["compat.py", "oldest"])
    with pytest.raises(SystemExit) as exit_error:
        compat.main()
    printed = capsys.readouterr().out
    assert exit_error.value.code == bool(status) and ("assert 1 == 2" in printed) == bool(status)
    lines = printed.rstrip().splitlines()[-4:]
    assert lines[0] == "packages of oldest"
    assert [line.split()[0] for line in lines[1:]] == list(compat.STEPS)
    assert all(line.endswith(message.splitlines()[-1]) for line in lines[1:])


def test_one_process_runs_all_cells_of_a_notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in ["n = 0", *["n += 1"] * 20]]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "counts.ipynb")
    command = [sys.executable, *compat.Step(OLDEST, "notebooks").command[1:-1], tmp_path]
    process = subprocess.run(
        command, cwd=compat.ROOT, env=compat.environment_variables(OLDEST), capture_output=True, text=True
    )
    assert "21 passed" in process.stdout, process.stdout


def test_git_ignores_the_environments():
    for release_set in compat.RELEASE_SETS:
        assert not subprocess.call(["git", "check-ignore", "--quiet", release_set.venv], cwd=compat.ROOT)


def test_both_release_sets_run_weekly_on_a_python_that_they_allow():
    workflow = yaml.safe_load((compat.ROOT / ".github" / "workflows" / "weekly.yml").read_text("utf-8"))
    python_of_set = {job["end"]: job["python"] for job in workflow["jobs"]["compat"]["strategy"]["matrix"]["include"]}
    assert python_of_set == {release_set.name: release_set.pythons[0] for release_set in compat.RELEASE_SETS}
