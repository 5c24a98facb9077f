"""What `make` says where something is missing: one line that names it."""

import ast
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import environment
import pytest


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No test touches the environment that it runs in."""
    for name in ("VENV", "PYTHON", "STAMP", "LOG"):
        monkeypatch.setattr(environment, name, str(tmp_path / name))


def test_old_python_can_read_it():
    ast.parse(Path(environment.__file__).read_text("utf-8"), feature_version=(3, 6))


def test_old_python_is_told(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    with pytest.raises(SystemExit, match=r"^make: Python 3\.10 or newer is needed; .* is 3\.8\.18\..*$"):
        environment.check_python()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_missing_module_is_told(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit, match=r"^make: Python's venv module is missing\..*$"):
        environment.check_python()


def test_full_disk_is_told_before_anything_is_made(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**10, 10**10, 10**6))
    with pytest.raises(SystemExit, match=r"^make: The disk is full: the environment needs 3 GB free in .*$"):
        environment.make()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("ERROR: [Errno 28] No space left on device", "The disk is full"),
        ("after connection broken by 'NewConnectionError('…')': /simple/torch/", "Is this machine online?"),
        ("ERROR: No matching distribution found for torch==2.13.0", "pip could not install the packages"),
    ],
)
def test_cause_of_pips_failure_is_told(monkeypatch, words, sentence):
    def pip(command, cwd, stderr):
        stderr.write(words)
        return 1

    monkeypatch.setattr(subprocess, "call", pip)
    with pytest.raises(SystemExit) as failure:
        environment.install()
    assert sentence in str(failure.value) and "\n" not in str(failure.value)
