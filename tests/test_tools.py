"""The scripts behind the make verbs, and the workflows that call them: the repository's address, Colab, CI."""

import re
import subprocess
from copy import deepcopy

import colab
import notebooks
import pytest
import repository
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

# The repository's address

OLD = repository.Address("ada/course", "main")
NEW = repository.Address("Grace/the.fork", "dev")
FILES = {
    "_config.yml": """\
title: A course
repository: # the address
  url: {url}
  branch: {branch} # what readers get
other:
  branch: main
html:
  baseurl: {site} # where it is read
""",
    "README.md": "[Colab]({colab}) [tests]({url}/tree/{branch}/tests) <{site}> `{install}`\n"
    "{url}.git, git@github.com:{slug}.git\n",
    "CITATION.cff": "repository-code: {url}\nurl: {site}\n",
    "chapters/01_first.ipynb": '"[Open in Colab]({colab})\\n", "source = \\"{install}\\""\n',
    "other.md": "https://github.com/ada/course-of-another and https://github.com/somebody/else, main and ada/course\n",
}


def contents(address, like=FILES):
    fields = {name: getattr(address, name) for name in ("url", "branch", "site", "install", "slug")}
    return {name: text.format(colab=address.colab("chapters/01_first.ipynb"), **fields) for name, text in like.items()}


@pytest.fixture
def tree(tmp_path):
    """A repository whose files name the address OLD; it holds a picture as well."""
    for name, text in contents(OLD).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def apply(tree, address):
    changed = repository.changes(address, tree)
    for path, text in changed.items():
        path.write_text(text, "utf-8")
    assert repository.changes(address, tree) == {}
    return {str(path.relative_to(tree)) for path in changed}


def test_everything_here_names_the_one_address():
    assert repository.changes(repository.address()) == {}


def test_an_address_says_where_the_book_is_shown():
    assert NEW.site == "https://grace.github.io/the.fork/"
    assert repository.Address("Ada/ada.github.io", "main").site == "https://ada.github.io/"


@pytest.mark.parametrize("new", [NEW, OLD._replace(branch="dev"), OLD._replace(slug="ada/course-2")], ids=str)
def test_a_fork_is_named_everywhere_and_nothing_else_changes(tree, new):
    assert apply(tree, new) == {name for name in FILES if contents(new)[name] != contents(OLD)[name]}
    assert {name: (tree / name).read_text("utf-8") for name in FILES} == contents(new)
    apply(tree, OLD)
    assert {name: (tree / name).read_text("utf-8") for name in FILES} == contents(OLD)


def test_an_address_written_into_the_configuration_by_hand_is_followed(tree):
    (tree / "_config.yml").write_text(contents(NEW)["_config.yml"], "utf-8")
    assert repository.address(tree) == NEW
    apply(tree, NEW)
    assert {name: (tree / name).read_text("utf-8") for name in FILES} == contents(NEW)


@pytest.mark.parametrize(
    "url", ["https://example.org/a/b", "github.com/a/b", "https://github.com/a", "https://github.com/a/b/c"]
)
def test_what_is_no_address_is_refused_in_one_line(url):
    with pytest.raises(SystemExit, match=r"^The address must have the form https://github.com/owner/name, got '.*'\.$"):
        repository.parse(url, "main")


def test_a_branch_with_a_space_is_refused():
    with pytest.raises(SystemExit, match=r"^The branch must be the name of a git branch, got 'my branch'\.$"):
        repository.parse(OLD.url, "my branch")
    assert repository.parse(f"{OLD.url}.git", "feature/x") == OLD._replace(branch="feature/x")


# Colab


def lesson():
    """A lesson as it is stored, and as it is found after a run: with a widget, and other pictures and times."""
    stored = new_notebook(
        cells=[
            new_markdown_cell("# Lesson"),
            new_code_cell("install()"),
            new_code_cell("lab", outputs=[new_output("execute_result", {"text/plain": "AxesLab(a=1)"})]),
            new_code_cell("print(1)", outputs=[new_output("stream", text="1\n")]),
            new_code_cell("# NBVAL_IGNORE_OUTPUT\ntime()", outputs=[new_output("stream", text="0.5 s\n")]),
            new_code_cell(
                "plot()", outputs=[new_output("display_data", {"text/plain": "<Figure>", "image/png": "aaaa"})]
            ),
        ]
    )
    stored = notebooks.canonical(stored)
    found = deepcopy(stored)
    found.cells[1].outputs = [new_output("stream", name="stderr", text="pip's notices\n")]
    found.cells[2].outputs[0].data[notebooks.WIDGET] = {"model_id": "1"}
    found.cells[3].outputs = [new_output("stream", text="1"), new_output("stream", text="\n")]
    found.cells[4].outputs[0].text = "0.7 s\n"
    found.cells[5].outputs[0].data["image/png"] = "bbbb"
    return stored, found


def test_what_nbval_ignores_is_no_difference():
    assert list(colab.differences(*lesson())) == []


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda cells: cells[2].outputs[0].data.pop(notebooks.WIDGET), "cell 3: shows 1 labs, and only 0 as widgets"),
        (lambda cells: cells[2].outputs[0].data.update({"text/plain": "AxesLab(a=2)"}), "cell 3: stored"),
        (lambda cells: cells[3].update(outputs=[]), "cell 4: stored"),
        (lambda cells: cells[3].outputs.append(new_output("stream", name="stderr", text="old\n")), "cell 4: stored"),
    ],
)
def test_a_difference_is_named(spoil, words):
    stored, found = lesson()
    spoil(found.cells)
    (told,) = colab.differences(stored, found)
    assert told.startswith(words)


def test_git_finds_the_checkout_at_the_repositorys_address(tmp_path):
    source = colab.checkout(tmp_path)
    asked = ["git", "ls-remote", repository.address().url]
    answer = subprocess.run(asked, env=colab.with_git_at(source), capture_output=True, text=True, check=True).stdout
    assert f"refs/heads/{repository.address().branch}" in answer
    assert (tmp_path / "transformer_lab" / "labs" / "ui.js").exists() and not (tmp_path / ".venv").exists()


# CI

WORKFLOWS = sorted((notebooks.ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_make_and_may_only_read(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    verbs = re.findall(r"(?m)^(\w+):", (notebooks.ROOT / "Makefile").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"} and "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        each_verb = job.get("strategy", {}).get("matrix", {}).get("verb", [])
        ran = [step["run"] for step in job["steps"] if "run" in step and "name" not in step]
        ran = [f"make {verb}" for verb in each_verb] if ran == ["make ${{ matrix.verb }}"] else ran
        assert all(command == ".ci/run" or command.removeprefix("make ") in verbs for command in ran), ran
        assert all(re.search(r"@v\d+$", step["uses"]) for step in job["steps"] if "uses" in step)
        assert len(ran) == max(1, len(each_verb)) or job.get("permissions") == {"pages": "write", "id-token": "write"}


def test_a_test_job_that_fails_keeps_its_reports():
    for name in ("cpu", "gpu", "weekly"):
        workflow = yaml.safe_load((notebooks.ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
        for job in workflow["jobs"].values():
            last = job["steps"][-1]
            assert last["if"] == "failure()" and last["with"]["path"] == "_build/reports"


def test_there_is_a_workflow_for_each_promise():
    assert [path.stem for path in WORKFLOWS] == ["colab", "cpu", "gpu", "publish", "weekly"]
    (gpu,) = yaml.safe_load(WORKFLOWS[2].read_text("utf-8"))["jobs"].values()
    assert gpu["env"]["TRANSFORMER_LAB_DEVICE"] == "cuda" and "gpu" in gpu["runs-on"]
