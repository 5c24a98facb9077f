"""Tests of the tools for the repository's address, Colab and the wheel, and of the workflows that call make verbs."""

import re
import subprocess
import zipfile
from copy import deepcopy
from types import SimpleNamespace

import nbformat
import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import build_wheel
import colab
import colab_environment
import colab_network
import notebook_rules
import notebooks
import repository
import transformer_lab as tl

# The address of the repository

ADA = repository.Address("ada/course", "main", "https://ada.github.io/course/")
GRACE = repository.Address("Grace/the.fork", "dev", "https://grace.github.io/the.fork/")
COLAB = "https://colab.research.google.com/"


@pytest.fixture
def tree(tmp_path):
    """Return a folder without a stored address, with some notebooks and all other files that depend on the address."""
    return copy_files(tmp_path, "chapters/**/0[18]*")


def copy_files(folder, notebook_pattern):
    for pattern in ("_config.yml", "CITATION.cff", "*.md", "chapters/*.md", f"{notebook_pattern}.ipynb"):
        for path in notebooks.ROOT.glob(pattern):
            copied_path = folder / path.relative_to(notebooks.ROOT)
            copied_path.parent.mkdir(parents=True, exist_ok=True)
            copied_path.write_bytes(path.read_bytes())
    apply_address(folder, None)
    return folder


def apply_address(tree, address):
    changed_files = repository.changes(address, tree)
    for path, text in changed_files.items():
        path.write_text(text, "utf-8")
    assert repository.changes(address, tree) == {}
    assert repository.stored_address(tree) == address
    return changed_files


def texts_in(tree):
    return {path.relative_to(tree).as_posix(): path.read_text("utf-8") for path in tree.rglob("*.*")}


def test_without_an_address_there_are_no_links_to_it(tree):
    config = texts_in(tree).pop("_config.yml")
    assert config.count(repository.NOWHERE) == 1
    for name, text in texts_in(tree).items():
        assert COLAB not in text or name == "_config.yml", name
        assert ".invalid" not in text.replace(repository.NOWHERE, "") and "transformer-lab.github" not in text, name
        assert repository.NOWHERE not in text or name == "_config.yml", name


@pytest.mark.parametrize(
    "address, notebook_pattern", [(ADA, "chapters/**/0[18]*"), (GRACE, "chapters/**/*")], ids=["ada", "grace"]
)
def test_an_address_is_written_everywhere_and_can_be_removed(address, notebook_pattern, tmp_path, monkeypatch):
    tree = copy_files(tmp_path, notebook_pattern)
    texts_before = texts_in(tree)
    apply_address(tree, address)
    monkeypatch.setattr(notebook_rules, "stored_address", lambda: address)
    monkeypatch.setattr(notebook_rules, "ROOT", tree)
    for path in notebooks.all_notebooks(tree):
        notebook = nbformat.read(path, 4)
        for rule in (notebook_rules.opens_in_colab, notebook_rules.installs_the_package):
            assert list(rule(notebook, path)) == []
        assert re.search(r"\n\n\[Open in Colab\]\(\S+\) · about \d+ [mh]", notebook.cells[0].source)
        assert notebooks.check(path) == []
    texts_with_address = texts_in(tree)
    chapters = [path.name for path in notebooks.chapters(tree)]
    assert all(f"]({address.colab(f'chapters/{name}')})" in texts_with_address["README.md"] for name in chapters)
    assert (
        address.site in texts_with_address["README.md"]
        and f'pip install "{address.install}"' in texts_with_address["README.md"]
    )
    assert texts_with_address["CITATION.cff"].endswith(f"\nrepository-code: {address.url}\nurl: {address.site}\n")
    assert (
        "*Colab* button" in texts_with_address["chapters/how.md"]
        and "*Colab* button" not in texts_before["chapters/how.md"]
    )
    config = yaml.safe_load(texts_with_address["_config.yml"])
    assert config["repository"] == {"url": address.url, "branch": address.branch, "path_to_book": "chapters"}
    assert config["html"]["baseurl"] == address.site and not any(
        ".invalid" in text for text in texts_with_address.values()
    )
    apply_address(tree, repository.Address("eve/other", "main", "https://eve.org/"))
    assert not any(address.slug in text or address.site in text for text in texts_in(tree).values())
    apply_address(tree, None)
    assert texts_in(tree) == texts_before


def test_only_the_address_changes(tree):
    """Only a notebook's first code cell, a line of its first cell, and text between markers in other files change."""
    notebooks_before = {path: nbformat.read(path, 4) for path in notebooks.all_notebooks(tree)}
    changed_files = apply_address(tree, GRACE)
    assert set(notebooks_before) | {
        tree / name for name in ("_config.yml", "CITATION.cff", "README.md", "chapters/how.md")
    } == set(changed_files)
    for path, old_notebook in notebooks_before.items():
        new_notebook = nbformat.read(path, 4)
        first_code_cell = next(number for number, cell in enumerate(old_notebook.cells) if cell.cell_type == "code")
        assert [n for n, cells in enumerate(zip(old_notebook.cells, new_notebook.cells)) if cells[0] != cells[1]] == [
            0,
            first_code_cell,
        ]
        assert old_notebook.cells[first_code_cell] | {"source": ""} == new_notebook.cells[first_code_cell] | {
            "source": ""
        }


def test_an_address_has_the_site_of_github_pages():
    assert repository.parse_address("https://github.com/Grace/the.fork", "dev") == GRACE
    on_branch = repository.parse_address("https://github.com/ada/course.git", "feature/x")
    assert on_branch == ADA._replace(branch="feature/x")
    assert repository.pages_site("Ada/ada.github.io") == "https://ada.github.io/"
    assert repository.parse_address(repository.NOWHERE, "main") is None


def test_a_custom_domain_is_kept(tree):
    custom_domain = ADA._replace(site="https://course.example.org/")
    apply_address(tree, custom_domain)
    assert custom_domain.site in texts_in(tree)["README.md"] and "ada.github.io" not in "".join(texts_in(tree).values())


@pytest.mark.parametrize(
    "url", ["https://example.org/a/b", "github.com/a/b", "https://github.com/a", "https://github.com/a/b/c", "main"]
)
def test_an_invalid_address_is_refused_in_one_line(url):
    with pytest.raises(SystemExit, match=r"^URL must have the form https://github.com/owner/name, got '.*'\.$"):
        repository.parse_address(url, "main")


def test_a_branch_with_a_space_is_refused():
    with pytest.raises(SystemExit, match=r"^BRANCH must be the name of a git branch, got 'my branch'\.$"):
        repository.parse_address(ADA.url, "my branch")


def test_a_checkout_of_a_different_branch_is_reported(tmp_path):
    assert repository.branch_mismatch("main", tmp_path) is None  # no repository
    subprocess.run(["git", "init", "-q", "-b", "master", tmp_path], check=True)
    assert repository.branch_mismatch("master", tmp_path) is None
    assert repository.branch_mismatch("main", tmp_path).endswith("If your readers use master, add BRANCH=master.")


@pytest.fixture
def git_clone(tmp_path, monkeypatch):
    """Unset CI's variable for the repository's address; return a function that makes ``tmp_path`` a clone of a URL."""
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    def clone(url):
        subprocess.run(["git", "remote", "add", "origin", url], cwd=tmp_path, check=True)
        return tmp_path

    return clone


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ada/course",
        "https://github.com/ada/course.git",
        "https://x-access-token:secret@github.com/ada/course",
        "git@github.com:ada/course.git",
        "ssh://git@github.com/ada/course",
    ],
)
def test_the_address_is_read_from_git(git_clone, url):
    folder = git_clone(url)
    assert repository.origin_url(folder) == ADA.url
    assert repository.address_mismatch(ADA, folder) is None
    assert repository.address_mismatch(GRACE, folder) == (
        "The stored address is https://github.com/Grace/the.fork, but this repository is ada/course: "
        "make repository URL=https://github.com/ada/course"
    )
    assert repository.address_mismatch(None, folder).startswith(
        "No address is stored, but this repository is ada/course: make"
    )


def test_without_an_origin_on_github_the_url_is_required(git_clone, tmp_path):
    with pytest.raises(SystemExit, match=r"^URL must be given, since git knows no remote named origin here: make .*$"):
        repository.origin_url(tmp_path)
    assert repository.address_mismatch(ADA, tmp_path) is None
    folder = git_clone("https://ada:secret@gitlab.com/ada/course.git")
    with pytest.raises(
        SystemExit, match=r"^URL must .* 'https://gitlab.com/ada/course.git', is not on GitHub: make .*$"
    ):
        repository.origin_url(folder)


def test_the_address_is_read_from_ci(git_clone, monkeypatch):
    folder = git_clone(GRACE.url)
    monkeypatch.setenv("GITHUB_REPOSITORY", "Ada/Course")
    assert repository.address_mismatch(ADA, folder) is None
    assert "this repository is Ada/Course" in repository.address_mismatch(GRACE, folder)


def run_tool(monkeypatch, tree, *arguments):
    """Run the tool as from a shell, on the folder ``tree`` instead of the repository."""
    monkeypatch.setattr(repository, "ROOT", tree)
    for name in ("stored_address", "settings", "changes", "origin_url", "address_mismatch"):
        monkeypatch.setattr(getattr(repository, name), "__defaults__", (tree,))
    monkeypatch.setattr("sys.argv", ["repository.py", *arguments])
    repository.main()


def test_the_tool_stores_checks_and_demands_the_address_and_warns_about_it(tree, git_clone, monkeypatch, capsys):
    git_clone("git@github.com:ada/course.git")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    with pytest.raises(SystemExit, match=f"^{re.escape(repository.NO_ADDRESS)}$"):
        run_tool(monkeypatch, tree, "--demand")
    run_tool(monkeypatch, tree)
    assert repository.stored_address(tree) == ADA and "changed README.md" in capsys.readouterr().out
    run_tool(monkeypatch, tree, "--demand")
    run_tool(monkeypatch, tree, "--warn")
    assert capsys.readouterr().out == ""
    run_tool(monkeypatch, tree)
    assert capsys.readouterr().out.startswith("Nothing to change.\n")
    run_tool(monkeypatch, tree, "--check")
    assert capsys.readouterr().out == "Links and install lines agree with the course's address.\n"
    (tree / "CITATION.cff").write_text("url: https://example.org\n", "utf-8")
    with pytest.raises(SystemExit, match=rf"install lines: CITATION.cff. Run `make repository URL={ADA.url}`\.$"):
        run_tool(monkeypatch, tree, "--check")
    run_tool(monkeypatch, tree, GRACE.url, "--branch", "dev")
    assert repository.stored_address(tree) == GRACE
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    capsys.readouterr()
    run_tool(monkeypatch, tree, "--warn")
    assert capsys.readouterr().out.startswith("::warning::The stored address is https://github.com/Grace/the.fork, but")


# The book with and without an address


@pytest.mark.parametrize("site, prefix", [("", "/"), (ADA.site, "/course/"), ("https://course.example.org/", "/")])
def test_buttons_need_an_address(site, prefix, monkeypatch):
    monkeypatch.syspath_prepend(notebooks.ROOT)
    from book.site_address import use_address

    options = {
        "repository_url": "https://…",
        "launch_buttons": {"colab_url": "https://…"},
        "use_repository_button": True,
    }
    config = SimpleNamespace(html_baseurl=site, html_theme_options={**options, "toc_title": "On this page"})
    use_address(None, config)
    assert config.notfound_urls_prefix == prefix
    for attribute in (f'href="{prefix}index.html"', f'action="{prefix}search.html"'):
        assert attribute in config.notfound_context["body"]
    assert config.html_theme_options == {**(options if site else {}), "toc_title": "On this page"}


@pytest.mark.parametrize("site", ["", ADA.site])
def test_links_in_the_metadata_of_a_page_need_an_address(site, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(notebooks.ROOT)
    from book import social_card

    paragraph = "A first sentence that says what the page is about, in some words."
    page = new_document("01_first")
    page += nodes.section()
    page[0] += [nodes.paragraph(text="About 45 minutes · needs: Python"), nodes.paragraph(text=paragraph)]
    app = SimpleNamespace(
        config=SimpleNamespace(root_doc="index", html_title="A course", html_baseurl=site),
        env=SimpleNamespace(titles={"01_first": nodes.title(text="First")}),
        builder=SimpleNamespace(get_target_uri=lambda name: f"{name}.html"),
        outdir=tmp_path,
    )
    context = {}
    social_card.add_card(app, "01_first", "page.html", context, page)
    assert f'<meta name="description" content="{paragraph}" />' in context["metatags"]
    assert (f'"og:url" content="{site}01_first.html"' in context["metatags"]) == bool(site)
    assert ("og:image" in context["metatags"]) == (tmp_path / "_images" / "card_01_first.png").exists() == bool(site)


# The first cell


def run_first_cell(address, *, missing=True, installable=()):
    """Run the first cell, with the package installed or missing; return pip's arguments and the message."""
    commands = []

    def run(command, **_):
        commands.append(command[-1])
        return subprocess.CompletedProcess(command, int(command[-1] not in installable))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", {"transformer_lab": None if missing else True}.get)
        patch.setattr(subprocess, "run", run)
        try:
            exec(repository.first_cell(address), {})
        except SystemExit as error:
            return commands, str(error)
    return commands, ""


def test_the_first_cell_installs_the_wheel_or_from_git():
    wheel, git = f"{ADA.site}{build_wheel.filename()}", "git+https://github.com/ada/course@main"
    assert run_first_cell(ADA, missing=False) == ([], "")
    assert run_first_cell(ADA, installable=[wheel]) == ([wheel], "")
    assert run_first_cell(ADA, installable=[git]) == ([wheel, git], "")
    commands, output = run_first_cell(ADA)
    assert commands == [wheel, git]
    assert output == f"The course's package could not be installed from {wheel} or {git}. Is this machine online?"


def test_without_an_address_the_first_cell_says_what_to_do():
    assert run_first_cell(None, missing=False) == ([], "")
    commands, output = run_first_cell(None)
    assert commands == [] and "%pip install FOLDER" in output and "\n" not in output


# Colab


def stored_and_executed_notebook():
    """Return a notebook in two forms: as stored, and after a run that adds a widget and changes pictures and times."""
    stored = new_notebook(
        cells=[
            new_markdown_cell("# Sample"),
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
    executed = deepcopy(stored)
    executed.cells[1].outputs = [new_output("stream", name="stderr", text="pip's notices\n")]
    executed.cells[2].outputs[0].data[notebooks.WIDGET] = {"model_id": "1"}
    executed.cells[3].outputs = [new_output("stream", text="1"), new_output("stream", text="\n")]
    executed.cells[4].outputs[0].text = "0.7 s\n"
    executed.cells[5].outputs[0].data["image/png"] = "bbbb"
    return stored, executed


def test_outputs_that_nbval_ignores_may_differ():
    assert list(colab.differences(*stored_and_executed_notebook())) == []


@pytest.mark.parametrize(
    "edit, message_start",
    [
        (lambda cells: cells[2].outputs[0].data.pop(notebooks.WIDGET), "cell 3: shows 1 labs, but only 0 as widgets"),
        (lambda cells: cells[2].outputs[0].data.update({"text/plain": "AxesLab(a=2)"}), "cell 3: stored"),
        (lambda cells: cells[3].update(outputs=[]), "cell 4: stored"),
        (lambda cells: cells[3].outputs.append(new_output("stream", name="stderr", text="old\n")), "cell 4: stored"),
    ],
)
def test_a_difference_is_reported(edit, message_start):
    stored, executed = stored_and_executed_notebook()
    edit(executed.cells)
    (sentence,) = colab.differences(stored, executed)
    assert sentence.startswith(message_start)


def test_git_finds_the_checkout_at_the_address(tmp_path):
    address = colab_network.fake_address("http://127.0.0.1:1/")
    command = ["git", "ls-remote", address.url]
    env = colab_network.kernel_variables(tmp_path, colab_network.checkout(tmp_path, address))
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert f"refs/heads/{address.branch}" in answer
    assert (tmp_path / "transformer_lab" / "labs" / "ui.js").exists() and not (tmp_path / ".venv").exists()
    assert repository.first_cell(address) in nbformat.read(tmp_path / "chapters" / "05_masks.ipynb", 4).cells[1].source


def test_the_package_allows_colabs_versions():
    expected = colab_environment.versions()
    assert {"python", "torch", "ipywidgets", "pip"} <= set(expected)
    project = (notebooks.ROOT / "pyproject.toml").read_text("utf-8")
    requirements = re.findall(r'(?m)^    "(.+)",$', re.search(r"(?ms)^dependencies = \[$(.*?)^\]$", project)[1])
    for requirement in map(Requirement, requirements):
        assert requirement.name not in expected or expected[requirement.name] in requirement.specifier
    assert expected["python"] in SpecifierSet(re.search(r'(?m)^requires-python = "(.+)"$', project)[1])


def test_differences_from_colab_are_reported():
    expected = {"python": "3.13.15", "torch": "2.11.0", "anywidget": "0.9.21"}
    installed_versions = {"python": "3.13.0", "torch": "2.11.0+cpu", "anywidget": "0.9.21"}
    assert colab_environment.differences_from_colab(expected, installed_versions) == "As in Colab."
    installed_versions = {"python": "3.11.7", "torch": "2.13.0+cpu"}
    differences = "Python 3.11.7 instead of 3.13, torch 2.13.0 instead of 2.11.0, anywidget none instead of 0.9.21"
    assert colab_environment.differences_from_colab(expected, installed_versions) == f"As in Colab, but {differences}."


def test_only_a_working_python_is_used(tmp_path, monkeypatch):
    """Some of pyenv's commands run no Python: they only print which versions of Python provide the command."""
    (tmp_path / "python3.13").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.13").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(colab_environment.Path, "home", lambda: tmp_path)
    assert colab_environment.interpreter("3.13.15") is None
    python = tmp_path / ".pyenv" / "versions" / "3.13.1" / "bin" / "python3.13"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    assert colab_environment.interpreter("3.13.15") == str(python)


def test_replaced_packages_are_reported():
    versions = {"torch": "2.11.0", "tqdm": "4.0"}
    assert colab.replaced_packages({"transformer-lab": "0.1.0", "platformdirs": "4.1"}, versions) == []
    assert colab.replaced_packages({"torch": "2.13.0"}, versions) == ["torch 2.11.0 is replaced by 2.13.0"]


def test_the_wheel_is_complete_and_reproducible(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        assert build_wheel.build(folder) == folder / build_wheel.filename()
    wheel = first / build_wheel.filename()
    assert wheel.read_bytes() == (second / wheel.name).read_bytes()
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("transformer_lab/")}
    folder = notebooks.ROOT / "transformer_lab"
    assert names == {
        path.relative_to(notebooks.ROOT).as_posix()
        for path in folder.rglob("*")
        if path.suffix in (".py", ".js", ".css", ".svg", ".json") or path.name in ("py.typed", "pretrained.txt")
    }


# make lint


def test_lint_runs_every_quick_check_of_the_notebooks():
    recipe = re.search(r"(?m)^lint:.*\n((?:\t.*\n)+)", (notebooks.ROOT / "Makefile").read_text("utf-8"))[1]
    tools = ("notebooks.py --check", "notebook_rules.py", "assignments.py --check", "repository.py --check")
    assert all(f"tools/{tool}\n" in recipe for tool in tools)


# The pinned PyTorch


def test_requirements_pin_the_pytorch_of_pyproject():
    (pinned_torch,) = re.findall(r'(?m)^constraint-dependencies = \["(torch==.+)"\]$', read("pyproject.toml"))
    assert re.findall(r"(?m)^torch==.*$", read("requirements.txt")) == [pinned_torch]
    assert "torch==" not in read("tools/lock.sh")


# The version


def test_the_version_is_written_in_one_place():
    version = tl.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert build_wheel.filename() == f"transformer_lab-{version}-py3-none-any.whl"
    assert re.findall(r"(?m)^## (\S+),", read("CHANGELOG.md"))[0] == version
    assert [file for file in ("pyproject.toml", "CITATION.cff", "README.md") if version in read(file)] == []


# The oldest Python


def test_the_oldest_python_is_the_same_everywhere():
    minor = int(re.search(r'(?m)^requires-python = ">=3\.(\d+)"$', read("pyproject.toml"))[1])
    expected_texts = {
        "pyproject.toml": f'target-version = "py3{minor}"',
        "tools/environment.py": f"version_info < (3, {minor})",
        "Makefile": f"Python 3.{minor} or newer is needed",
        "README.md": f"Python 3.{minor} or newer",
        ".github/workflows/cpu.yml": f'python: ["3.{minor}", ',
    }
    assert [f"{file} must say {words}" for file, words in expected_texts.items() if words not in read(file)] == []


def read(file):
    return (notebooks.ROOT / file).read_text("utf-8")


# CI

WORKFLOWS = sorted((notebooks.ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_make_and_may_only_read(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    verbs = re.findall(r"(?m)^(\w+):", (notebooks.ROOT / "Makefile").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"} and "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        matrix_verbs = job.get("strategy", {}).get("matrix", {}).get("verb", [])
        commands = [step["run"] for step in job["steps"] if "run" in step and "name" not in step]
        commands = [f"make {verb}" for verb in matrix_verbs] if commands == ["make ${{ matrix.verb }}"] else commands
        commands = [command.split(" ONLY=")[0] for command in commands]
        assert all(command == ".ci/run" or command.removeprefix("make ") in verbs for command in commands), commands
        assert all(re.search(r"@v\d+$", step["uses"]) for step in job["steps"] if "uses" in step)
        assert len(commands) == max(1, len(matrix_verbs)) or job.get("permissions") == {
            "pages": "write",
            "id-token": "write",
        }


def test_a_failed_test_job_keeps_its_reports():
    for name in ("cpu", "gpu", "weekly"):
        workflow = yaml.safe_load((notebooks.ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))
        for job in workflow["jobs"].values():
            last_step = job["steps"][-1]
            assert last_step["if"] == "failure()" and last_step["with"]["path"] == "_build/reports"


def test_there_is_a_workflow_for_each_promise():
    assert [path.stem for path in WORKFLOWS] == ["colab", "cpu", "gpu", "publish", "weekly"]
    (gpu,) = yaml.safe_load(WORKFLOWS[2].read_text("utf-8"))["jobs"].values()
    assert gpu["env"]["TRANSFORMER_LAB_DEVICE"] == "cuda" and "gpu" in gpu["runs-on"]
