"""Runs every notebook as Colab would: alone in an empty folder, with old widgets, installing the package by itself.

The environment .venv-colab has Colab's versions of ipywidgets and IPython, and not the package. Each notebook's own
first cell installs that with git, from a copy of this checkout that stands in for the repository's address.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient.exceptions import CellExecutionError
from notebooks import ROOT, WIDGET, canonical, chapters, execute, ignored, story
from repository import address

VENV = ROOT / ".venv-colab"
PYTHON = [str(VENV / "bin" / "python"), "-I"]  # isolated: nothing of the folder it is called in
# Colab's two, with a kernel and a client of their time.
PINS = ["ipywidgets==7.7.1", "ipython==7.34.0", "ipykernel==6.17.1", "jupyter-client==7.4.9"]
SHARED = re.compile(r"(torch|numpy|matplotlib)==")  # as in the book's environment
INSTALLED = ["transformer-lab", "anywidget", "psygnal"]  # by the first cell
PATIENCE = 60  # seconds in which an installation that cannot work must say so


def environment():
    """Make .venv-colab, once for each set of versions."""
    pins = PINS + [line for line in (ROOT / "requirements.txt").read_text().splitlines() if SHARED.match(line)]
    stamp, made_from = VENV / "made-from", "\n".join([sys.version, str(VENV), *pins])
    if stamp.exists() and stamp.read_text() == made_from:
        return
    print("Making the environment .venv-colab. The first time takes some minutes.", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([*PYTHON, "-m", "pip", "install", "--quiet", *pins], check=True)
    stamp.write_text(made_from)


def checkout(folder):
    """Make a git repository of the working tree as it is, and return its address."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in sorted(set(listed.split("\0")) - {""}):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git = ["git", "-c", "user.name=Colab", "-c", "user.email=colab@example.com", "-c", "commit.gpgsign=false"]
    for command in (
        ["init", "--quiet", "-b", address().branch],
        ["add", "-A"],
        ["commit", "--quiet", "-m", "As it is"],
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder.as_uri()


def with_git_at(source):
    """The environment variables of a kernel for which the repository's address leads to ``source``."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {
        **env,
        "PATH": f"{VENV / 'bin'}{os.pathsep}{env['PATH']}",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # or the kernel warns about how Python was started
        "NO_PROXY": "127.0.0.1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{source}.insteadOf",
        "GIT_CONFIG_VALUE_0": address().url,
    }


def uninstall():
    pip = [*PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes", *INSTALLED]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)  # it warns about what is not there


def version(package):
    """Return the version of a package in .venv-colab, or None."""
    code = f"from importlib.metadata import version\ntry: print(version({package!r}))\nexcept Exception: pass"
    return subprocess.check_output([*PYTHON, "-c", code], text=True).strip() or None


def read(cell):
    """What of a cell's outputs must be the same, as nbval sees it: everything but pictures."""
    return [
        (output.get("name"), output.get("text"), {m: v for m, v in output.get("data", {}).items() if m != "image/png"})
        for output in cell.outputs
    ]


def differences(stored, found):
    """Yield in which cells the outputs found are not those stored, and where a lab shows no widget."""
    shown = canonical(found)
    for number, (old, new) in enumerate(zip(stored.cells, shown.cells), 1):
        if old.cell_type != "code" or number == first_cell(stored) or ignored(old):
            continue
        if read(old) != read(new):
            yield f"cell {number}: stored {read(old)}, found {read(new)}"
        labs = sum(bool(re.match(r"\w+Lab\(", o.get("data", {}).get("text/plain", ""))) for o in old.outputs)
        views = sum(WIDGET in o.get("data", {}) for o in found.cells[number - 1].outputs)
        if views < labs:
            yield f"cell {number}: shows {labs} labs, and only {views} as widgets"


def first_cell(notebook):
    """The number of the first code cell, the one that installs."""
    return next(number for number, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code")


def try_notebook(path, source, folder):
    """Run one notebook from a clean start, and return what was wrong with it."""
    uninstall()
    if version("transformer-lab"):
        return ["the package was there before the first cell"]
    shutil.copy(path, folder)
    notebook = nbformat.read(folder / path.name, 4)
    stored = nbformat.read(path, 4)
    try:
        execute(notebook, folder, kernel="colab", env=with_git_at(source))
    except CellExecutionError as error:
        return [story(notebook, error)]
    if not version("transformer-lab"):
        return ["the first cell did not install the package"]
    if version("ipywidgets") != "7.7.1":
        return [f"installing the package changed ipywidgets to {version('ipywidgets')}"]
    return list(differences(stored, notebook))


def try_unreachable(path, folder):
    """Run a notebook's first cell where nothing answers at the address, and return what was wrong."""
    uninstall()
    print("Nothing answers at the address: what pip says next is meant to happen.", flush=True)
    notebook = nbformat.read(path, 4)
    notebook.cells = [notebook.cells[first_cell(notebook) - 1]]
    start = time.perf_counter()
    try:
        execute(notebook, folder, kernel="colab", env=with_git_at("http://127.0.0.1:9"))
        return ["the first cell passed without the package"]
    except CellExecutionError as error:
        if error.ename != "SystemExit" or "\n" in error.evalue or not error.evalue.endswith("Is this machine online?"):
            return [f"the first cell must say in one line what is wrong, said {error.ename}: {error.evalue}"]
    if time.perf_counter() - start > PATIENCE:
        return [f"the first cell took over {PATIENCE} s to say so"]
    return []


def main():
    environment()
    failed = False
    with TemporaryDirectory() as temporary:
        kernels, repository = Path(temporary, "jupyter"), Path(temporary, "repository")
        kernel = kernels / "kernels" / "colab" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        launch = [PYTHON[0], "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel.write_text(json.dumps({"argv": launch, "display_name": "Colab", "language": "python"}))
        os.environ["JUPYTER_PATH"] = str(kernels)
        repository.mkdir()
        source = checkout(repository)
        lessons = chapters()
        trials = [(path.name, lambda folder, path=path: try_notebook(path, source, folder)) for path in lessons]
        trials.append(("first cell, nothing at the address", lambda folder: try_unreachable(lessons[0], folder)))
        for name, trial in trials:
            start = time.perf_counter()
            with TemporaryDirectory() as folder:
                wrong = trial(Path(folder))
            print(f"{name:40} {time.perf_counter() - start:6.1f} s  {'FAILED' if wrong else 'passed'}", flush=True)
            for line in wrong:
                print(line)
            failed = failed or bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
