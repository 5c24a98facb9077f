"""Tests the newest and the oldest releases that pyproject.toml allows, each in its own environment.

    python tools/compat.py            both ends of the allowed ranges: newest and oldest
    python tools/compat.py oldest     only one end

``.venv-compat-newest`` has the newest release of every dependency, ``.venv-compat-oldest`` the oldest that the ranges
allow. Test tools have the versions of requirements.txt. Each environment runs the tests of the mathematics, the tests
of the checks, and every notebook; the output is stored in _build/reports/compat/.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

from colab_environment import CPU_INDEX, installed, interpreter, is_reachable, python_of
from device import describe_failure, result
from environment import fail, make_venv
from notebooks import ROOT

REPORTS = ROOT / "_build" / "reports" / "compat"
REQUIRED_SPACE = 8 * 10**9  # bytes, mostly for PyTorch, whose build for Linux on PyPI includes CUDA
TEST_TOOLS = ["fonttools", "hypothesis", "ipykernel", "minify-html", "nbclient", "nbformat", "nbval", "playwright"]
TEST_TOOLS += ["pytest", "pytest-xdist"]
STEPS = {
    "mathematics": ["tests/maths"],
    "checks": ["tests/checks/test_checks.py", "tests/checks/test_checks_survive.py"],  # also the stop button
    "notebooks": [
        *("-p", "nbval_live", "--nbval", "--nbval-current-env", "--dist", "loadfile"),  # a notebook has one kernel
        *("--nbval-kernel-startup-timeout=300", "--nbval-cell-timeout=900", "chapters"),
    ],
}


@dataclass(frozen=True)
class End:
    """One end of the allowed ranges: its Pythons, preferred first, and the options of uv and pytest."""

    name: str
    pythons: tuple
    resolution: str
    options: tuple = ()

    @property
    def venv(self):
        return ROOT / f".venv-compat-{self.name}"


ENDS = [
    End("newest", ("3.14", "3.13", "3.12", "3.11", "3.10"), "highest"),
    # PyTorch 2.4 has no build for a newer Python. Warnings of old releases are ignored.
    End("oldest", ("3.10", "3.11", "3.12"), "lowest-direct", ("-o", "filterwarnings=default")),
]


@dataclass(frozen=True)
class Step:
    """One pytest call in one environment."""

    end: End
    name: str

    @property
    def report(self):
        return REPORTS / f"{self.end.name}_{self.name}.txt"

    @property
    def command(self):
        # The server that an old ipywidgets installs has a pytest plugin that some versions of pytest cannot load.
        options = ["-q", "--color=no", "--tb=short", "-n", "2", "-p", "no:anyio", "-p", "no:cacheprovider"]
        return [str(self.end.venv / "bin" / "python"), "-m", "pytest", *options, *self.end.options, *STEPS[self.name]]


def python_for(end):
    """Return the first of an end's Pythons that this machine has."""
    python = next(filter(None, map(interpreter, end.pythons)), None)
    if not python:
        fail(f"compat needs Python {' or '.join(end.pythons)} for the {end.name} PyTorch, and this machine has none.")
    return python


def pins():
    """Return the lines of requirements.txt for the test tools."""
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line.split("==")[0] in TEST_TOOLS]


def packages(end):
    """Return uv's options and packages; uv ignores the project's configuration, which pins PyTorch."""
    backend = ["--torch-backend", "cpu"] if is_reachable(CPU_INDEX) else []
    return ["--no-config", "--resolution", end.resolution, *backend, "-r", "pyproject.toml", *pins()]


def environment(end):
    """Create the environment again when Python or pyproject.toml changes and, for the newest releases, once a day."""
    python = python_for(end)
    today = time.strftime("%Y-%m-%d") if end.resolution == "highest" else ""
    requirements = packages(end)
    made_from = "\n".join([python, str(end.venv), *requirements, (ROOT / "pyproject.toml").read_text("utf-8"), today])
    if not end.venv.exists() and shutil.disk_usage(ROOT).free < REQUIRED_SPACE:
        fail(f"The disk is full: {end.venv.name} needs up to {REQUIRED_SPACE / 1e9:.0f} GB free in {ROOT}.")

    def install(venv_python):
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", venv_python]
        for arguments in (requirements, ["--no-deps", "-e", "."]):
            if subprocess.call([*uv, *arguments], cwd=ROOT):
                fail(f"uv could not install the packages of {end.venv.name}: see above.")
        weights = subprocess.run([venv_python, "-m", "transformer_lab.pretrained"], cwd=ROOT, capture_output=True)
        if weights.returncode:
            print("The published models could not be installed: notebooks that read them are left out.")

    make_venv(str(end.venv), made_from, install, python)


def describe(end):
    """Return the versions of the dependencies in an environment, and its size."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    names = re.findall(r'(?m)^    "([\w-]+)', re.search(r"(?ms)^dependencies = \[$(.*?)^\]$", project)[1])
    versions_here = installed(end.venv)
    size = sum(path.lstat().st_size for path in end.venv.rglob("*") if path.is_file())
    versions = ", ".join(f"{name} {versions_here[name]}" for name in names)
    return (
        f"{end.venv.name}: Python {python_of(end.venv)}, {versions}; "
        f"{len(versions_here)} packages, {size / 1e6:,.0f} MB"
    )


def variables(end):
    """Return the environment variables of the tests."""
    # PyTorch 2.4 itself emits warnings in the notebooks that use its checkpoints.
    warning_settings = {"PYTHONWARNINGS": "ignore::FutureWarning"} if end.resolution == "lowest-direct" else {}
    return {
        "OMP_NUM_THREADS": "1",  # small models gain nothing from a second thread
        "TRANSFORMER_LAB_DATA": str(ROOT / "_build" / "data"),  # not the record of this computer's user
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
            step.command, cwd=ROOT, env=variables(step.end), stdout=report, stderr=subprocess.STDOUT
        )
    return status == 0, time.perf_counter() - start


def chosen_ends(words):
    """Return the ends with these names, or both ends if there are no names."""
    names = [end.name for end in ENDS]
    if wrong := [word for word in words if word not in names]:
        fail(f"ONLY must be {' or '.join(names)}, got {wrong[0]}.")
    return [end for end in ENDS if not words or end.name in words]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ends", nargs="*", metavar="END", help="newest, oldest; default: both")
    summary, failed = [], []
    for end in chosen_ends(parser.parse_args().ends):
        environment(end)
        summary.append(describe(end))
        print(summary[-1], flush=True)
        for step in (Step(end, name) for name in STEPS):
            passed, seconds = run(step)
            summary.append(f"  {step.name:12} {seconds:6.0f} s  {result(step)}")
            print(summary[-1], flush=True)
            failed += [] if passed else [step]
    print("\n".join(["", *map(describe_failure, failed), "", *summary]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
