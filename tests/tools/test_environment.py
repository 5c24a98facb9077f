"""If something is missing, `make` prints one line that names it."""

import ast
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import environment


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Set the tool's paths to an empty folder, so that no test changes the environment in which it runs."""
    for name in ("VENV", "PYTHON", "LOG"):
        monkeypatch.setattr(environment, name, str(tmp_path / name))


def test_an_old_python_can_parse_the_tool():
    ast.parse(Path(environment.__file__).read_text("utf-8"), feature_version=(3, 6))


def test_an_old_python_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    with pytest.raises(SystemExit, match=r"^make: Python 3\.10 or newer is needed; .* is 3\.8\.18\..*$"):
        environment.check_python()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_missing_module_is_reported(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit, match=r"^make: Python's venv module is missing\..*$"):
        environment.check_python()


def test_a_full_disk_is_reported_first(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**10, 10**10, 10**6))
    with pytest.raises(SystemExit, match=r"^make: The disk is full: the environment needs 3 GB free in .*$"):
        environment.ensure_environment()


@pytest.mark.parametrize(
    ("pip_error", "reported_cause"),
    [
        ("ERROR: [Errno 28] No space left on device", "The disk is full"),
        ("after connection broken by 'NewConnectionError('…')': /simple/torch/", "Is this machine online?"),
        ("ERROR: No matching distribution found for torch==2.13.0", "pip could not install the packages"),
    ],
)
def test_the_cause_of_pips_failure_is_reported(monkeypatch, pip_error, reported_cause):
    def fake_pip(command, cwd, stderr):
        stderr.write(pip_error)
        return 1

    monkeypatch.setattr(environment, "install_with_uv", lambda *_: None)
    monkeypatch.setattr(subprocess, "call", fake_pip)
    with pytest.raises(SystemExit) as failure:
        environment.install("python")
    assert reported_cause in str(failure.value) and "\n" not in str(failure.value)


@pytest.fixture
def uv_and_pip_calls(monkeypatch):
    """Return a list that collects the commands of an installation, which all succeed; pip's settings name no index."""
    commands = []
    monkeypatch.setattr(subprocess, "call", lambda command, cwd, stderr: commands.append(command))
    monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: b"global.find-links='wheels'\n")
    return commands


def test_pip_installs_only_uv_and_pytorch(uv_and_pip_calls):
    environment.install("python")
    first, second, third = uv_and_pip_calls
    assert first[-1].startswith("uv==") and second[1:5] == ["-m", "uv", "pip", "install"]
    assert third[-2] == "2" and third[-1].startswith("torch==")  # --retries 2


def test_pip_installs_everything_if_its_settings_name_an_index(uv_and_pip_calls, monkeypatch):
    config = b"global.index-url='https://packages.example.com/simple'\n"
    monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: config)
    environment.install("python")
    assert [command[-2:] for command in uv_and_pip_calls] == [["-r", "requirements.txt"]]


def test_pip_installs_everything_if_uv_fails(uv_and_pip_calls, monkeypatch):
    monkeypatch.setattr(
        subprocess, "call", lambda command, cwd, stderr: uv_and_pip_calls.append(command) or "uv" in command
    )
    environment.install("python")
    assert uv_and_pip_calls[-1][-2:] == ["-r", "requirements.txt"]


# Any of the three environments


@pytest.fixture
def environment_folder(tmp_path, monkeypatch):
    """Return the folder of an environment, in which a fake venv module writes nothing but a file called python."""

    def write_python(command):
        (tmp_path / "venv" / "bin").mkdir(parents=True)
        (tmp_path / "venv" / "bin" / "python").write_text(command[0])
        return 0

    monkeypatch.setattr(subprocess, "call", write_python)
    return tmp_path / "venv"


def test_an_environment_is_made_once_for_its_inputs(environment_folder):
    installed = []

    def make_and_count(made_from, **options):
        environment.make_venv(str(environment_folder), made_from, installed.append, **options)
        return len(installed)

    assert make_and_count("a") == make_and_count("a") == 1
    (environment_folder / "packages").touch()
    assert make_and_count("b", keep=True) == 2 and (environment_folder / "packages").exists()
    assert make_and_count("c", python="other") == 3 and not (environment_folder / "packages").exists()
    assert (environment_folder / "bin" / "python").read_text() == "other" and installed == [
        str(environment_folder / "bin" / "python")
    ] * 3


def test_an_unfinished_environment_is_made_again(environment_folder):
    def install(_):
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        environment.make_venv(str(environment_folder), "a", install)
    environment.make_venv(str(environment_folder), "a", lambda _: None)
    assert environment.is_made(str(environment_folder), "a")


def test_an_error_of_the_venv_module_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "call", lambda _: 1)
    with pytest.raises(SystemExit, match=r"^make: The environment could not be made: see above\.$"):
        environment.make_venv(str(tmp_path / "venv"), "a", lambda _: None)
