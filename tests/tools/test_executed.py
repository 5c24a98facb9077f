"""Each notebook is executed once, and again after its inputs have changed; nbval compares old and new outputs."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import executed
import notebook_labs
import notebooks
import transformer_lab as tl

CODE_THAT_COUNTS_A_RUN = "with open('runs', 'a') as runs:\n    _ = runs.write('x')"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one package file, one notebook, and its own cache."""
    for name, value in {
        "ROOT": tmp_path,
        "CACHES": tmp_path / "kept",
        "SECONDS_FILE": tmp_path / "kept" / "s.json",
    }.items():
        monkeypatch.setattr(executed, name, value)
    (tmp_path / "transformer_lab").mkdir()
    (tmp_path / "transformer_lab" / "masks.py").write_text("mask = True\n")
    cells = [
        new_markdown_cell("# Sample"),
        new_code_cell(CODE_THAT_COUNTS_A_RUN),
        new_code_cell("print(6 * 7)\nprint('and more')"),
    ]
    path = tmp_path / "chapters" / "sample.ipynb"
    path.parent.mkdir()
    write(path, new_notebook(cells=cells))
    monkeypatch.setattr(executed, "STARTUP", "")  # the search for values near a rounding boundary is not needed here
    monkeypatch.setattr(executed, "all_notebooks", lambda: [path])
    return tmp_path


def write(path, notebook):
    path.write_text(notebooks.text(notebooks.canonical(notebook)), "utf-8")


def change_cell(project, number, source):
    """Replace the source of a cell of the notebook."""
    path = project / "chapters" / "sample.ipynb"
    notebook = nbformat.read(path, 4)
    notebook.cells[number].source = source
    write(path, notebook)


def count_runs(project):
    """Return how many times the notebook has run."""
    return len((project / "chapters" / "runs").read_text())


def test_without_published_models_a_notebook_is_used_as_stored(project, monkeypatch, capsys):
    for module in (notebooks, executed):
        monkeypatch.setattr(module, "models_are_installed", lambda: False)
    change_cell(project, 2, "model = tl.pretrained.minilm()")
    assert executed.execute_missing() == [] and not (project / "chapters" / "runs").exists()
    assert "sample.ipynb: as stored, since it reads published models" in capsys.readouterr().out
    assert executed.executed_notebook(project / "chapters" / "sample.ipynb")[1]["near"] == []
    assert "-m transformer_lab.pretrained installs them" in notebooks.run(project / "chapters" / "sample.ipynb")[1][0]
    folder_without_models = executed.cache_folder()
    monkeypatch.setattr(executed, "models_are_installed", lambda: True)
    assert executed.cache_folder() != folder_without_models  # if models are installed, the notebook runs again


def test_without_published_models_stored_labs_are_live(project, monkeypatch):
    for module in (notebooks, executed):
        monkeypatch.setattr(module, "models_are_installed", lambda: False)
    lab = tl.labs.MaskLab("the cat sat", preset="causal")
    path = project / "chapters" / "sample.ipynb"
    output = nbformat.v4.new_output("execute_result", {"text/plain": repr(lab)}, execution_count=1)
    notebook = new_notebook(cells=[new_code_cell("tl.pretrained.minilm()", outputs=[output])])
    write(path, notebook)
    notebook.cells[0].outputs[0].data[notebook_labs.WIDGET] = {"model_id": "7"}
    notebook.metadata.widgets = {notebook_labs.STATE: {"state": {"7": {"state": lab.get_state()}}}}
    notebook_labs.store_labs(notebook, path)
    assert "_esm" not in notebook_labs.labs_file(path).read_text("utf-8")
    assert executed.execute_missing() == []
    executed_copy = executed.executed_notebook(path)[0]
    (view,) = [output.data[notebook_labs.WIDGET]["model_id"] for output in executed_copy.cells[0].outputs]
    state = executed_copy.metadata.widgets[notebook_labs.STATE]["state"][view]["state"]
    assert {name: state[name] for name in ("preset", "tokens", "_esm")} == {
        "preset": "causal",
        "tokens": ["the", "cat", "sat"],
        "_esm": str(tl.labs.MaskLab._esm),
    }
    notebook_labs.labs_file(path).write_text('{"labs": []}')
    with pytest.raises(ValueError, match=r"^sample.labs.json must hold 1 labs, has 0: run make notebooks$"):
        notebook_labs.restore_labs(notebook, path)


@pytest.mark.parametrize(
    "path", [*filter(notebooks.reads_models, notebooks.all_notebooks())], ids=lambda path: path.stem
)
def test_stored_labs_match_the_notebook(path):
    notebook = nbformat.read(path, 4)
    outputs = notebook_labs.lab_outputs(notebook)
    notebook_labs.restore_labs(notebook, path)
    for output in outputs:
        view = output.data[notebook_labs.WIDGET]["model_id"]
        state = notebook.metadata.widgets[notebook_labs.STATE]["state"][view]["state"]
        lab_class = getattr(tl.labs, state["_anywidget_id"].rpartition(".")[2])
        lab = lab_class.__new__(lab_class)
        traits = {name for name in lab.trait_names(sync=True) if name[0] != "_"} - {*notebook_labs.WIDGET_TRAITS}
        assert traits <= state.keys()
        settings = ", ".join(f"{name}={state[name]!r}" for name in lab_class.repr_traits)
        assert output.data["text/plain"] == f"{lab_class.__name__}({settings})"


def test_a_notebook_runs_once_until_an_input_changes(project, monkeypatch, capsys):
    assert executed.execute_missing() == [] and count_runs(project) == 1
    assert "1 of 1  sample.ipynb" in capsys.readouterr().out
    change_cell(project, 0, "# A sample, in other words")
    assert executed.execute_missing() == [] and count_runs(project) == 1 and capsys.readouterr().out == ""
    change_cell(project, 2, "print(42)")
    assert executed.execute_missing() == [] and count_runs(project) == 2
    (project / "transformer_lab" / "masks.py").write_text("mask = False\n")
    assert executed.execute_missing() == [] and count_runs(project) == 3
    monkeypatch.setenv("TRANSFORMER_LAB_DEVICE", "cpu")  # the default
    assert executed.execute_missing() == [] and count_runs(project) == 3
    (project / "transformer_lab" / "masks.py").write_text("mask = True\n")
    assert executed.execute_missing() == [] and count_runs(project) == 3, "returning to earlier inputs executes nothing"


PACKAGE_FILES = (
    "masks.py",
    "labs/masks.js",
    "labs/lab.css",
    "labs/whole.svg",
    "labs/whole_weights.json",
    "pretrained.txt",
)
INPUT_FILES = [f"transformer_lab/{name}" for name in PACKAGE_FILES] + ["requirements.txt"]
INPUT_FILES += [f"tools/{name}.py" for name in ("digits", "executed", "notebooks")]


@pytest.mark.parametrize("name", INPUT_FILES)
def test_every_input_file_changes_the_cache(project, name):
    file, folders = project / name, {executed.cache_folder()}
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in ("1", "2"):
        file.write_text(text)
        assert executed.cache_folder() not in folders
        folders.add(executed.cache_folder())


def test_every_kind_of_package_file_is_an_input():
    shipped = {
        path.suffix for path in (notebooks.ROOT / "transformer_lab").rglob("*.*") if "__pycache__" not in path.parts
    }
    assert shipped - {".pyc", ".typed"} <= executed.SUFFIXES  # `py.typed` is empty, so it cannot change an output


@pytest.mark.parametrize("name", ["python_version", "machine", "device", "models"])
def test_a_different_machine_has_a_different_cache(project, monkeypatch, name):
    before = executed.cache_folder()
    if name == "device":
        monkeypatch.setenv("TRANSFORMER_LAB_DEVICE", "another")
    elif name == "models":
        installed = executed.models_are_installed()
        monkeypatch.setattr(executed, "models_are_installed", lambda: not installed)
    else:
        monkeypatch.setattr(executed.platform, name, lambda: "another")
    assert executed.cache_folder() != before


def test_a_notebook_runs_again_if_its_record_has_no_file(project):
    assert executed.execute_missing() == []
    shutil.rmtree(executed.cache_folder() / "executed")  # deletes the executed notebook, but not its record
    assert executed.execute_missing() == [] and count_runs(project) == 2
    assert (
        executed.executed_notebook(project / "chapters" / "sample.ipynb")[0].cells[1].outputs
        and count_runs(project) == 2
    )


def test_cached_outputs_are_those_that_a_reader_sees(project):
    notebook, values = executed.executed_notebook(project / "chapters" / "sample.ipynb")
    assert [output.text for output in notebook.cells[1].outputs] == ["42\nand more\n"]
    assert values["near"] == [] and values["execution_seconds"] > 0


def test_old_caches_are_deleted(project):
    for number in range(5):
        (project / "transformer_lab" / "masks.py").write_text(f"mask = {number}\n")
        assert executed.execute_missing() == []
    assert len([path for path in executed.CACHES.iterdir() if path.is_dir()]) == executed.MAX_CACHES
    assert count_runs(project) == 5 and executed.execute_missing() == [] and count_runs(project) == 5


def test_a_failed_notebook_is_reported_and_not_cached(project):
    change_cell(project, 2, "x = {}\nx['width']")
    (message,) = executed.execute_missing()
    assert message.startswith("chapters/sample.ipynb: cell 3 failed:") and message.endswith("KeyError: 'width'")
    assert executed.execute_missing() and count_runs(project) == 2
    with pytest.raises(SystemExit, match="KeyError: 'width'"):
        executed.main()
    change_cell(project, 2, "print(42)")
    executed.main()


# nbval


NBVAL_SCRIPT = """
import sys
from pathlib import Path

import executed
import pytest

path, folder = sys.argv[1:]
executed.ROOT = executed.CACHES = Path(folder)
executed.STARTUP = ""
options = "-p nbval_replay --nbval --nbval-current-env -q --color=no -p no:cacheprovider"
sys.exit(pytest.main([*options.split(), path]))
"""


def run_nbval(path, cache):
    """Compare the outputs stored in ``path`` with those of the execution in the folder ``cache``."""
    env = {**os.environ, "PYTHONPATH": str(notebooks.ROOT / "tools")}
    command = [sys.executable, "-c", NBVAL_SCRIPT, str(path), str(cache)]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=path.parent)


def test_nbval_compares_the_cached_execution(project):
    path = project / "chapters" / "sample.ipynb"
    notebook = notebooks.canonical(nbformat.read(path, 4))
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="42\nand more\n")]
    write(path, notebook)
    report = run_nbval(path, project)
    assert report.returncode == 0 and "2 passed" in report.stdout, report.stdout
    assert run_nbval(path, project).returncode == 0 and count_runs(project) == 1

    notebook.cells[2].outputs[0].text = "43\nand more\n"
    write(path, notebook)
    report = run_nbval(path, project)
    assert report.returncode == 1 and count_runs(project) == 1
    assert all(text in report.stdout for text in ("1 failed, 1 passed", "43", "42", "print(6 * 7)")), report.stdout


def test_nbval_reports_a_cell_that_raises(project):
    change_cell(project, 2, "print(6 * seven)")
    report = run_nbval(project / "chapters" / "sample.ipynb", project)
    assert report.returncode == 1 and "NameError: name 'seven' is not defined" in report.stdout, report.stdout


def test_nbval_leaves_out_notebooks_whose_models_are_missing(tmp_path):
    for name, source in {"reads": "tl.pretrained.minilm()\nfail", "plain": "print(42)"}.items():
        output = nbformat.v4.new_output("stream", text="42\n")
        write(tmp_path / f"{name}.ipynb", new_notebook(cells=[new_code_cell(source, outputs=[output])]))
    script = f"""
import pathlib, sys, pytest, notebooks, nbval_live
notebooks.models_are_installed = lambda: False
nbval_live.ROOT = pathlib.Path({str(tmp_path)!r})
nbval_live.all_notebooks = lambda: sorted(nbval_live.ROOT.glob("*.ipynb"))
options = "-p nbval_live --nbval --nbval-current-env -q --color=no -p no:cacheprovider"
sys.exit(pytest.main([*options.split(), str(nbval_live.ROOT)]))
"""
    env = {**os.environ, "PYTHONPATH": str(notebooks.ROOT / "tools")}
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert process.returncode == 0 and "1 passed" in process.stdout, process.stdout
    assert "reads.ipynb: left out, since it reads published models" in process.stdout
