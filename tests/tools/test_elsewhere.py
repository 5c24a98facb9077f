"""The files of Binder and of the dev container agree with the repository; Binder's script runs with a fake Python."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

import environment
from notebooks import ROOT

RUNTIME = (ROOT / "binder" / "runtime.txt").read_text("utf-8").strip()
POST_BUILD = ROOT / "binder" / "postBuild"
DEVCONTAINER = json.loads(
    re.sub(r"(?m)^ *//.*$", "", (ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


# Binder

# A program that replaces Python and records its working folder, its arguments and pip's constraints.
FAKE_PIP = """\
#!{python}
import json, os, sys
from pathlib import Path
pins = Path(sys.argv[sys.argv.index("--constraint") + 1]).read_text()
Path({record!r}).write_text(json.dumps([os.getcwd(), sys.argv[1:], pins]))
"""


@pytest.fixture
def pip_call(tmp_path):
    """Run binder/postBuild from outside the repository; return the folder, arguments and pins of its call to pip."""
    record = tmp_path / "call.json"
    (tmp_path / "python").write_text(FAKE_PIP.format(python=sys.executable, record=str(record)))
    (tmp_path / "python").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    subprocess.run([POST_BUILD], cwd=tmp_path, env=env, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["call.json", "python"]  # no other file is left
    return json.loads(record.read_text())


def test_binder_installs_the_package_and_jupyterlab_in_the_tested_versions(pip_call):
    folder, arguments, pins = pip_call
    assert folder == str(ROOT)
    assert arguments[:3] == ["-m", "pip", "install"] and arguments[-2:] == [".", "jupyterlab"]
    assert arguments[arguments.index("--extra-index-url") + 1] == CPU_INDEX
    requirements = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert pins.splitlines() == [line for line in requirements if line != "-e ."]
    assert any(line.startswith("torch==") for line in pins.splitlines())


# repo2docker imports pythonjsonlogger.jsonlogger, which is an old name of that module.
@pytest.mark.filterwarnings("ignore:pythonjsonlogger.jsonlogger has been moved:DeprecationWarning")
def test_repo2docker_writes_a_recipe_from_these_files(monkeypatch):
    from repo2docker.app import Repo2Docker

    monkeypatch.chdir(ROOT)
    app = Repo2Docker()
    buildpack = next(pack for pack_class in app.buildpacks if (pack := pack_class(app.base_image)).detect())
    buildpack.platform = "linux/amd64"
    assert type(buildpack).__name__ == "PythonBuildPack"
    assert f"python-{buildpack.python_version}" == RUNTIME == "python-3.12"
    recipe = buildpack.render()
    assert "RUN ./binder/postBuild" in recipe
    assert "requirements.txt" not in recipe  # learners do not need the packages of the book and of the tests


def test_every_page_that_runs_has_a_button_for_binder():
    from book.header import BUTTONS

    buttons = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["launch_buttons"]
    assert buttons["binderhub_url"] == "https://mybinder.org" and buttons["notebook_interface"] == "jupyterlab"
    assert {"Colab", "Binder"} <= BUTTONS.keys()


# The dev container


def test_the_dev_container_is_made_by_make():
    verbs = re.findall(r"(?m)^(\w+):", (ROOT / "Makefile").read_text("utf-8"))
    commands = DEVCONTAINER["postCreateCommand"]
    assert commands["environment"].split()[0] == "make" and commands["environment"].split()[1] in verbs
    assert "chromium" in commands["browser"]
    assert re.fullmatch(r"mcr\.microsoft\.com/devcontainers/python:3\.\d+-\w+", DEVCONTAINER["image"])


def test_the_dev_container_demands_no_gpu():
    assert DEVCONTAINER["hostRequirements"].keys() == {"cpus", "memory", "storage"}
    assert DEVCONTAINER["containerEnv"] == {"PIP_EXTRA_INDEX_URL": CPU_INDEX}


def test_the_editor_uses_the_environments_python_as_the_kernel():
    vscode = DEVCONTAINER["customizations"]["vscode"]
    python_path = vscode["settings"]["python.defaultInterpreterPath"]
    assert python_path == environment.PYTHON.replace(str(ROOT), "${containerWorkspaceFolder}")
    assert vscode["extensions"] == ["ms-python.python", "ms-toolsai.jupyter"]
