"""`make help` lists the verbs, CONTRIBUTING explains them, `make core` selects tests, and `make hook` adds a hook."""

import os
import re
import subprocess

import pytest
import yaml

from notebooks import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
VERBS = re.findall(r"(?m)^([a-z]+):", MAKEFILE)


def run_make(*arguments, cwd=ROOT):
    # If `make` runs these tests, its variables would cause the inner `make` to print the folders that it enters.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run(["make", *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


def test_make_alone_lists_every_verb_on_its_own_line():
    output = run_make().stdout
    assert output == run_make("help").stdout
    lines = output.splitlines()
    assert [line.split()[1] for line in lines] == VERBS
    assert all(re.fullmatch(r"make \w+ +\S.{10,}", line) and len(line) <= 110 for line in lines)


def test_every_verb_is_phony():
    assert re.search(r"(?m)^\.PHONY: (.+)", MAKEFILE)[1].split() == VERBS


def test_contributing_explains_every_verb():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [verb for verb in VERBS if f"`make {verb}`" not in text] == []


def test_core_has_tests_of_each_kind():
    """The files of `make core` contain tests of four kinds, and each word in CORE_TESTS selects a file or a test."""
    files, test_words = (re.search(rf"(?m)^{name} = ((?:.*\\\n)*.*)", MAKEFILE)[1] for name in ("CORE", "CORE_TESTS"))
    files = re.findall(r"tests/[\w/]+\.py", files)
    kinds = {file.split("/")[1] for file in files}
    assert kinds == {"maths", "checks", "labs", "book"}
    sources = "".join(path.read_text("utf-8") for path in map(ROOT.joinpath, files) if path.exists())
    tests = "\n".join(re.findall(r"(?m)^def (test_\w+)", sources))
    other_words = {file.split("/")[-1] for file in files} | {"causal_mask", "05_masks"}  # an exercise and a chapter
    assert [word for word in test_words.split(" or ") if word not in tests and word not in other_words] == []


def test_the_hook_runs_lint_and_replaces_no_other_hook(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert run_make("-f", str(ROOT / "Makefile"), "hook", cwd=tmp_path).returncode == 0
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    assert hook.read_text() == "#!/bin/sh\nexec make lint\n" and hook.stat().st_mode & 0o111
    second_run = run_make("-f", str(ROOT / "Makefile"), "hook", cwd=tmp_path)
    assert second_run.returncode and "There is a hook already" in second_run.stderr


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda p: p.stem)
def test_a_form_for_issues_has_required_fields_and_distinct_ids(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert form["name"] and form["description"]
    assert {field["type"] for field in form["body"]} <= {"input", "textarea"}
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
