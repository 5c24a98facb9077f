"""Creates .venv-colab, an environment with the versions of tools/colab.txt, and fresh environments on top of it."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from environment import make_venv
from notebooks import ROOT

VENV = ROOT / ".venv-colab"
VERSIONS_FILE = ROOT / "tools" / "colab.txt"
JUPYTER_CLIENT_PIN = "jupyter-client==7.4.9"  # a package that Colab's old kernel needs
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyPI's builds for Linux include gigabytes for a GPU


def versions():
    """Return ``{name: version}`` for Colab's packages and for Python."""
    return dict(line.split("==") for line in VERSIONS_FILE.read_text("utf-8").splitlines() if line and line[0] != "#")


def interpreter(version):
    """Return the path of a Python that has the minor version of ``version`` and can make environments, or None."""
    name = "python" + ".".join(version.split(".")[:2])
    for path in [shutil.which(name), *Path.home().glob(f".pyenv/versions/*/bin/{name}")]:
        if path and not subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True).returncode:
            return str(path)
    return None


def is_reachable(index):
    try:
        return urllib.request.urlopen(f"{index}/torch/", timeout=10).status == 200
    except OSError:
        return False


def ensure_environment():
    """Create .venv-colab if it is missing or the versions have changed."""
    colab_versions = versions()
    python = interpreter(colab_versions["python"])
    torch = [f"torch=={colab_versions['torch']}", "--index-url", CPU_INDEX]
    excluded = {"python", "torch"}
    # Without access to PyTorch's index, PyTorch and Python are those of .venv, and setuptools has the version that
    # .venv's PyTorch needs.
    if not is_reachable(CPU_INDEX):
        python, torch = None, re.findall(r"(?m)^torch==\S+", (ROOT / "requirements.txt").read_text("utf-8"))
        excluded |= {"setuptools"}
    pins = [f"{name}=={version}" for name, version in colab_versions.items() if name not in excluded]

    def install(venv_python):
        for packages in (torch, [*pins, JUPYTER_CLIENT_PIN]):
            subprocess.run([venv_python, "-I", "-m", "pip", "install", "--quiet", *packages], check=True)

    made_from = "\n".join([python or sys.executable, sys.version, str(VENV), *torch, *pins, JUPYTER_CLIENT_PIN])
    make_venv(str(VENV), made_from, install, python)


def isolated_python(venv):
    """Return the command that starts an environment's Python so that it ignores the current folder."""
    return [str(venv / "bin" / "python"), "-I"]


def package_versions(venv, *options):
    """Return ``{name: version}`` for the packages in an environment or, with ``--path folder``, only in that folder."""
    listed = subprocess.check_output(
        [*isolated_python(venv), "-m", "pip", "list", "--format=json", *options], text=True
    )
    return {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(listed)}


def python_of(venv):
    return subprocess.check_output([*isolated_python(venv), "-V"], text=True).split()[1]


def differences_from_colab(colab_versions, environment_versions):
    """Return one line that says how an environment differs from Colab; Python's patch version is ignored."""
    expected = {
        name: ".".join(colab_versions[name].split(".")[:2]) if name == "python" else colab_versions[name]
        for name in colab_versions
    }
    here_versions = {
        name: re.match(rf"{re.escape(version)}\b|[^+]*", environment_versions.get(name, "none"))[0]
        for name, version in expected.items()
    }
    names = [name for name in expected if here_versions[name] != expected[name]]
    differences = [
        f"{name.replace('python', 'Python')} {here_versions[name]} instead of {expected[name]}" for name in names
    ]
    return f"As in Colab, but {', '.join(differences)}." if differences else "As in Colab."


def site_packages(venv):
    return next((venv / "lib").glob("python3*/site-packages"))


def make_layered_venv(venv):
    """Create an environment into which a notebook can install packages on top of those in .venv-colab."""
    subprocess.run([*isolated_python(VENV), "-m", "venv", "--without-pip", venv], check=True)
    (site_packages(venv) / "colab.pth").write_text(str(site_packages(VENV)))
