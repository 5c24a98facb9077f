"""Tests the newest and the oldest releases that pyproject.toml allows, each in its own environment.

    python tools/compat.py            both sets of releases: newest and oldest
    python tools/compat.py oldest     only one set

``.venv-compat-newest`` has the newest release of every dependency; ``.venv-compat-oldest`` has the oldest release that
the ranges allow. The test tools have the versions in requirements.txt. Each environment runs the tests of the
mathematics, the tests of the checks, and every notebook; the output is stored in _build/reports/compat/.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

from colab_environment import CPU_INDEX, interpreter, is_reachable, package_versions, python_of
from device import describe_failure, summary_line
from environment import fail, make_venv
from notebooks import ROOT

REPORTS = ROOT / "_build" / "reports" / "compat"
REQUIRED_SPACE = 8 * 10**9  # bytes, mostly for PyTorch, whose build for Linux on PyPI includes CUDA
TEST_TOOLS = ["fonttools", "hypothesis", "ipykernel", "minify-html", "nbclient", "nbformat", "nbval", "playwright"]
TEST_TOOLS += ["pytest", "pytest-xdist"]
STEPS = {
    "mathematics": ["tests/maths"],
    # test_checks_survive.py tests the stop button.
    "checks": ["tests/checks/test_checks.py", "tests/checks/test_checks_survive.py"],
    "notebooks": [
        *("-p", "nbval_live", "--nbval", "--nbval-current-env", "--dist", "loadfile"),  # all cells share one kernel
        *("--nbval-kernel-startup-timeout=300", "--nbval-cell-timeout=900", "chapters"),
    ],
}


@dataclass(frozen=True)
class ReleaseSet:
    """The newest or the oldest allowed releases. ``pythons`` are in order of preference; ``options`` are for pytest."""

    name: str
    pythons: tuple
    resolution: str
    options: tuple = ()

    @property
    def venv(self):
        return ROOT / f".venv-compat-{self.name}"


RELEASE_SETS = [
    ReleaseSet("newest", ("3.14", "3.13", "3.12", "3.11", "3.10"), "highest"),
    # PyTorch 2.4 has no build for a Python newer than 3.12. Warnings of old releases are ignored.
    ReleaseSet("oldest", ("3.10", "3.11", "3.12"), "lowest-direct", ("-o", "filterwarnings=default")),
]


@dataclass(frozen=True)
class Step:
    """One pytest call in one environment."""

    release_set: ReleaseSet
    name: str

    @property
    def report(self):
        return REPORTS / f"{self.release_set.name}_{self.name}.txt"

    @property
    def command(self):
        # The server that an old ipywidgets installs has a pytest plugin that some versions of pytest cannot load.
        options = ["-q", "--color=no", "--tb=short", "-n", "2", "-p", "no:anyio", "-p", "no:cacheprovider"]
        python = str(self.release_set.venv / "bin" / "python")
        return [python, "-m", "pytest", *options, *self.release_set.options, *STEPS[self.name]]


def python_for(release_set):
    """Return the first of a set's Pythons that this machine has."""
    python = next(filter(None, map(interpreter, release_set.pythons)), None)
    if not python:
        pythons = " or ".join(release_set.pythons)
        fail(f"compat needs Python {pythons} for the {release_set.name} PyTorch, but this machine has none.")
    return python


def pins():
    """Return the lines of requirements.txt for the test tools."""
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line.split("==")[0] in TEST_TOOLS]


def install_arguments(release_set):
    """Return the arguments of ``uv pip install``; uv ignores the project's configuration, which pins PyTorch."""
    backend = ["--torch-backend", "cpu"] if is_reachable(CPU_INDEX) else []
    return ["--no-config", "--resolution", release_set.resolution, *backend, "-r", "pyproject.toml", *pins()]


def ensure_environment(release_set):
    """Create the environment if it is missing, or if Python or pyproject.toml has changed.

    The environment of the newest releases is created again once a day.
    """
    python = python_for(release_set)
    today = time.strftime("%Y-%m-%d") if release_set.resolution == "highest" else ""
    arguments = install_arguments(release_set)
    fingerprint = "\n".join(
        [python, str(release_set.venv), *arguments, (ROOT / "pyproject.toml").read_text("utf-8"), today]
    )
    if not release_set.venv.exists() and shutil.disk_usage(ROOT).free < REQUIRED_SPACE:
        fail(f"The disk is full: {release_set.venv.name} needs up to {REQUIRED_SPACE / 1e9:.0f} GB free in {ROOT}.")

    def install(venv_python):
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", venv_python]
        for call_arguments in (arguments, ["--no-deps", "-e", "."]):
            if subprocess.call([*uv, *call_arguments], cwd=ROOT):
                fail(f"uv could not install the packages of {release_set.venv.name}: see above.")
        weights_install = subprocess.run(
            [venv_python, "-m", "transformer_lab.pretrained"], cwd=ROOT, capture_output=True
        )
        if weights_install.returncode:
            print("The published models could not be installed: notebooks that read them are left out.")

    make_venv(str(release_set.venv), fingerprint, install, python)


def describe(release_set):
    """Return the versions of the dependencies in an environment, and its size."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    names = re.findall(r'(?m)^    "([\w-]+)', re.search(r"(?ms)^dependencies = \[$(.*?)^\]$", project)[1])
    installed_versions = package_versions(release_set.venv)
    size = sum(path.lstat().st_size for path in release_set.venv.rglob("*") if path.is_file())
    versions = ", ".join(f"{name} {installed_versions[name]}" for name in names)
    return (
        f"{release_set.venv.name}: Python {python_of(release_set.venv)}, {versions}; "
        f"{len(installed_versions)} packages, {size / 1e6:,.0f} MB"
    )


def environment_variables(release_set):
    """Return the environment variables of the tests."""
    # PyTorch 2.4 itself emits warnings in the notebooks that use torch.utils.checkpoint.
    warning_settings = {"PYTHONWARNINGS": "ignore::FutureWarning"} if release_set.resolution == "lowest-direct" else {}
    return {
        "OMP_NUM_THREADS": "1",  # small models gain nothing from a second thread
        "TRANSFORMER_LAB_DATA": str(ROOT / "_build" / "data"),  # so that the user's own record does not change
        **os.environ,
        **warning_settings,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tools"))),
    }


def run(step):
    """Run a step and store its output; return whether the step passed, and the seconds."""
    start = time.perf_counter()
    step.report.parent.mkdir(parents=True, exist_ok=True)
    with step.report.open("w", encoding="utf-8") as report:
        status = subprocess.call(
            step.command, cwd=ROOT, env=environment_variables(step.release_set), stdout=report, stderr=subprocess.STDOUT
        )
    return status == 0, time.perf_counter() - start


def chosen_release_sets(names):
    """Return the sets of releases named in ``names``, or both sets if ``names`` is empty."""
    known_names = [release_set.name for release_set in RELEASE_SETS]
    if unknown_names := [name for name in names if name not in known_names]:
        fail(f"ONLY must be {' or '.join(known_names)}, got {unknown_names[0]}.")
    return [release_set for release_set in RELEASE_SETS if not names or release_set.name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release_sets", nargs="*", metavar="SET", help="newest, oldest; default: both")
    summary, failed = [], []
    for release_set in chosen_release_sets(parser.parse_args().release_sets):
        ensure_environment(release_set)
        summary.append(describe(release_set))
        print(summary[-1], flush=True)
        for step in (Step(release_set, name) for name in STEPS):
            passed, seconds = run(step)
            summary.append(f"  {step.name:12} {seconds:6.0f} s  {summary_line(step)}")
            print(summary[-1], flush=True)
            failed += [] if passed else [step]
    print("\n".join(["", *map(describe_failure, failed), "", *summary]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
