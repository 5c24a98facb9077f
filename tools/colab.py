"""Runs every notebook as in Colab: alone in an empty folder, with Colab's package versions, from the first cell.

The environment .venv-colab has the versions of tools/colab.txt, but not the course's package. On top of .venv-colab,
each notebook runs in a fresh environment, which contains only the packages that the notebook's first cell installs. A
server on this machine replaces the course's site, which has the wheel, and a copy of the working tree replaces the
repository.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import nbformat
from nbclient.exceptions import CellExecutionError

import build_wheel
import repository
from colab_environment import (
    VENV,
    differences_from_colab,
    ensure_environment,
    isolated_python,
    make_layered_venv,
    package_versions,
    python_of,
    site_packages,
    versions,
)
from colab_network import checkout, fake_address, kernel_variables, serve
from notebook_labs import LAB, WIDGET
from notebooks import ROOT, all_notebooks, canonical, describe_failure, execute, is_ignored

UNREACHABLE_URL = "http://127.0.0.1:9"  # no server listens there
MAX_OFFLINE_SECONDS = 60  # seconds within which an impossible installation must fail


def needs_fetched_weights(notebook):
    """Whether a notebook reads published models that its reader must fetch."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return "pretrained.installed()" in code and "pretrained.fetch()" not in code


def run(notebook, folder, git_url):
    """Run a notebook in a fresh environment, and return ``{name: version}`` of the packages that it installed."""
    venv, work_folder = folder / "venv", folder / "work"
    make_layered_venv(venv)
    if needs_fetched_weights(notebook):
        fetch = [venv / "bin" / "python", "-m", "transformer_lab.pretrained"]
        subprocess.run(fetch, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    work_folder.mkdir()
    kernel = Path(os.environ["JUPYTER_PATH"], "kernels", folder.name, "kernel.json")
    kernel.parent.mkdir(parents=True)
    launch = [str(venv / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": launch, "display_name": "Colab", "language": "python"}))
    execute(notebook, work_folder, kernel=folder.name, env=kernel_variables(venv, git_url))
    return package_versions(venv, "--path", site_packages(venv))


def replaced_packages(new_versions, installed_versions):
    """Return a sentence for each installed package that ``new_versions`` would replace."""
    return [
        f"{name} {installed_versions[name]} is replaced by {version}"
        for name, version in new_versions.items()
        if name in installed_versions
    ]


def try_plan(wheel, folder):
    """Let pip plan an installation of the wheel in Colab; return the errors and the plan."""
    make_layered_venv(folder / "venv")
    command = [
        *isolated_python(folder / "venv"),
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--quiet",
        "--report",
        "-",
        wheel,
    ]
    plan = json.loads(subprocess.check_output(command, text=True))["install"]
    new_versions = {item["metadata"]["name"].lower(): item["metadata"]["version"] for item in plan}
    plan_text = ", ".join(f"{name} {version}" for name, version in new_versions.items())
    return replaced_packages(new_versions, package_versions(VENV)), plan_text


def try_first_cell(address, git_url, folder):
    """Run the first cell and import the package; return the errors and the cell's time."""
    sources = [
        "from time import perf_counter\nstart = perf_counter()",
        repository.first_cell(address),
        "print(perf_counter() - start)",
        "import transformer_lab",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    new_versions = run(notebook, folder, git_url)
    cell_time = f"{float(notebook.cells[2].outputs[0].text):.1f} s in the cell"
    return replaced_packages(new_versions, package_versions(VENV)), cell_time


def try_offline(folder):
    """Run the first cell without a network; return the errors and the cell's message."""
    start = perf_counter()
    try:
        try_first_cell(fake_address(f"{UNREACHABLE_URL}/"), UNREACHABLE_URL, folder)
        return ["the first cell passed without the package"], ""
    except CellExecutionError as error:
        if error.ename != "SystemExit" or "\n" in error.evalue or not error.evalue.endswith("Is this machine online?"):
            return [f"the first cell must say in one line what is wrong, said {error.ename}: {error.evalue}"], ""
        if perf_counter() - start > MAX_OFFLINE_SECONDS:
            return [f"the first cell took over {MAX_OFFLINE_SECONDS} s to report the error"], ""
        return [], f"says: {error.evalue}"


def try_notebook(path, folder):
    """Run one notebook, which can install the package only from the site; return the errors."""
    stored, notebook = nbformat.read(path, 4), nbformat.read(path, 4)
    try:
        new_versions = run(notebook, folder, UNREACHABLE_URL)
    except CellExecutionError as error:
        return [describe_failure(notebook, error)], ""
    errors = [] if "transformer-lab" in new_versions else ["the first cell did not install the package"]
    errors += [*replaced_packages(new_versions, package_versions(VENV)), *differences(stored, notebook)]
    return errors, ""


def comparable_outputs(cell):
    """Return those outputs of a cell that nbval compares: all except pictures.

    A lab's HTML sentence is left out too, since ipywidgets 7 does not output it.
    """
    return [(output.get("name"), output.get("text"), _comparable(output.get("data", {}))) for output in cell.outputs]


def _comparable(data):
    omitted = {"image/png", "text/html"} if LAB.match(data.get("text/plain", "")) else {"image/png"}
    return {mime: value for mime, value in data.items() if mime not in omitted}


def differences(stored, executed):
    """Yield a sentence for each cell whose outputs differ from the stored outputs, or whose lab shows no widget."""
    canonical_notebook = canonical(executed)
    first_code_cell = next(number for number, cell in enumerate(stored.cells, 1) if cell.cell_type == "code")
    for number, (stored_cell, new_cell) in enumerate(zip(stored.cells, canonical_notebook.cells), 1):
        if stored_cell.cell_type != "code" or number == first_code_cell or is_ignored(stored_cell):
            continue
        expected, found = comparable_outputs(stored_cell), comparable_outputs(new_cell)
        if expected != found:
            yield f"cell {number}: stored {expected}, found {found}"
        labs = sum(bool(LAB.match(o.get("data", {}).get("text/plain", ""))) for o in stored_cell.outputs)
        views = sum(WIDGET in o.get("data", {}) for o in executed.cells[number - 1].outputs)
        if views < labs:
            yield f"cell {number}: shows {labs} labs, but only {views} as widgets"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="only notebooks that have one of these words in their path")
    words = parser.parse_args().words
    ensure_environment()
    with TemporaryDirectory() as temporary:
        work_folder = Path(temporary)
        os.environ["JUPYTER_PATH"] = str(work_folder / "jupyter")
        wheels, checkout_folder = work_folder / "site", work_folder / "repository"
        wheels.mkdir(), checkout_folder.mkdir()
        site = serve(wheels)
        address = fake_address(site)
        git_url = checkout(checkout_folder, address)
        build_wheel.build(wheels)
        print(differences_from_colab(versions(), {**package_versions(VENV), "python": python_of(VENV)}), flush=True)

        def run_trial(trial):
            name, attempt = trial
            start = perf_counter()
            with TemporaryDirectory(dir=work_folder) as folder:
                errors, remark = attempt(Path(folder))
            outcome = "FAILED" if errors else "passed"
            print(
                f"{name:40} {perf_counter() - start:6.1f} s  {outcome}  {remark}".rstrip(),
                *errors,
                sep="\n",
                flush=True,
            )
            return errors

        trials = [
            ("pip's plan", partial(try_plan, address.wheel)),
            ("first cell, from the site", partial(try_first_cell, address, UNREACHABLE_URL)),
            ("first cell, from git", partial(try_first_cell, fake_address(f"{site}nothing/"), git_url)),
            ("first cell, offline", try_offline),
        ]
        failed = [run_trial(trial) for trial in trials]  # one at a time, because each measures a time
        paths_by_name = {
            path.relative_to(checkout_folder / "chapters").as_posix(): path for path in all_notebooks(checkout_folder)
        }
        chosen_names = [name for name in paths_by_name if not words or any(word in name for word in words)]
        notebook_trials = [(name, partial(try_notebook, paths_by_name[name])) for name in chosen_names]
        with ThreadPoolExecutor(2) as pool:
            failed += pool.map(run_trial, notebook_trials)
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
