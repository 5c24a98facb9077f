"""Creates the environment .venv from requirements.txt if .venv is missing or its inputs have changed.

``make_venv`` also creates the environments of other tools. This file imports only the standard library and runs even on
Python 3.6, so that an old Python can report what is missing.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
LOG = os.path.join(VENV, "install.log")
REQUIRED_SPACE = 3 * 10**9  # bytes for the packages with PyTorch's build for CPUs, and space to unpack them

# Texts in pip's output that show a cause outside pip, and our sentence for each cause.
CAUSES = [
    (("No space left on device", "Disk quota exceeded"), "The disk is full"),
    (
        ("ConnectionError", "NameResolutionError", "ConnectTimeout", "ReadTimeout", "ProxyError"),
        "The packages could not be downloaded. Is this machine online?",
    ),
]


def fail(sentence):
    sys.exit("make: " + sentence)


def python_version():
    return "{}.{}.{}".format(*sys.version_info)


def is_working(python):
    try:
        return subprocess.call([python, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def check_python():
    if sys.version_info < (3, 10):  # noqa: UP036
        newer_pythons = [name for name in (f"python3.{minor}" for minor in range(14, 9, -1)) if is_working(name)]
        advice = f" This machine has {newer_pythons[0]}: make PYTHON={newer_pythons[0]} book" if newer_pythons else ""
        fail(f"Python 3.10 or newer is needed; {sys.executable} is {python_version()}.{advice}")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        fail("Python's venv module is missing. On Debian or Ubuntu: sudo apt install python3-venv")


def fingerprint():
    """Return a digest of .venv's path, the Python that creates .venv, requirements.txt and pyproject.toml."""
    digest = hashlib.sha256((ROOT + python_version()).encode())
    for name in ("requirements.txt", "pyproject.toml"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def is_made(folder, made_from):
    """Whether an environment exists and was created from the inputs ``made_from``."""
    try:
        with open(os.path.join(folder, "made-from")) as file:
            return file.read() == made_from and os.path.exists(os.path.join(folder, "bin", "python"))
    except OSError:
        return False


def make_venv(folder, made_from, install, python=None, keep=False):
    """Create an environment in ``folder`` if it is missing or the text ``made_from`` has changed.

    Parameters
    ----------
    folder : str
        Path of the environment, inside the repository.
    made_from : str
        What the environment is made from: a text, which is stored in the environment's file ``made-from``.
    install : function
        ``install(python)`` installs the packages; ``python`` is the environment's Python.
    python : str, optional
        The Python that creates the environment; by default the Python that runs this file.
    keep : bool
        Whether to install into the existing environment, instead of into an empty folder.
    """
    if is_made(folder, made_from):
        return
    start, name = time.time(), os.path.relpath(folder, ROOT)
    if not keep:
        print(f"Making the environment {name} with {python or 'Python ' + python_version()}.", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        if subprocess.call([python or getattr(sys, "_base_executable", sys.executable), "-m", "venv", folder]):
            fail("The environment could not be made: see above.")
    print(f"Installing the packages of {name}. The first time can take some minutes.", flush=True)
    install(os.path.join(folder, "bin", "python"))
    with open(os.path.join(folder, "made-from"), "w") as file:
        file.write(made_from)
    print(f"The environment {name} is ready after {time.time() - start:.0f} s.", flush=True)


def can_be_kept():
    """Whether an existing .venv can be kept, because it works and has the requested Python."""
    try:
        command = [PYTHON, "-c", "import platform, pip; print(platform.python_version())"]
        version = subprocess.check_output(command, stderr=subprocess.DEVNULL)
        return version.decode().strip() == python_version()
    except (OSError, subprocess.CalledProcessError):
        return False


def ensure_environment():
    if is_made(VENV, fingerprint()):
        return
    keep = can_be_kept()
    if not keep and shutil.disk_usage(ROOT).free < REQUIRED_SPACE:
        fail(f"The disk is full: the environment needs {REQUIRED_SPACE / 1e9:.0f} GB free in {ROOT}.")
    make_venv(VENV, fingerprint(), install, keep=keep)


def install(python):
    """Install the packages. Errors are written to a file, and their cause is reported in one line."""
    # Packages are not compiled here: Python compiles a file at its first import, and most files are never imported.
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "--retries", "2"]
    with open(LOG, "w") as log:
        left_for_pip = install_with_uv(python, pip, log) or ["-r", "requirements.txt"]
        status = subprocess.call(pip + left_for_pip, cwd=ROOT, stderr=log)
    if status:
        with open(LOG) as log:
            pip_output = log.read()
        for messages, sentence in CAUSES:
            if any(message in pip_output for message in messages):
                fail(f"{sentence} (pip's output: {LOG})")
        sys.stderr.write(pip_output[-3000:])
        fail("pip could not install the packages: see above.")
    configure_jupyterlab()


def configure_jupyterlab():
    """Configure .venv's JupyterLab to save labs in notebooks: an editable install omits the settings file."""
    folder = os.path.join(VENV, "etc", "jupyter", "labconfig", "default_setting_overrides.d")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(ROOT, "transformer_lab", "labs", "transformer_lab.json"), folder)


def install_with_uv(python, pip, log):
    """Let uv install what is the same on every machine; return what is left for pip, or None if pip must install all.

    PyTorch has a build for each kind of machine, and pip's settings, which uv does not read, may name the build for
    this machine. If pip's settings replace PyPI with another index, uv installs nothing.
    """
    settings = subprocess.check_output([python, "-m", "pip", "config", "list"], stderr=log).decode()
    if re.search(r"\.(index-url|no-index)=", settings):
        return None
    with open(os.path.join(ROOT, "requirements.txt")) as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    (uv,) = (line for line in lines if line.startswith("uv=="))
    left_for_pip = [line for line in lines if line.startswith("torch==")]
    common = [line for line in lines if line not in left_for_pip and line != "-e ."]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(common))
        file.flush()
        uv_command = [python, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", python]
        uv_command += ["-e", ".", "-r", file.name]
        for command in ([*pip, "--quiet", uv], uv_command):
            if subprocess.call(command, cwd=ROOT, stderr=log):
                return None
    return left_for_pip


if __name__ == "__main__":
    check_python()
    try:
        ensure_environment()
    except KeyboardInterrupt:
        fail("Stopped. The next call continues from here.")
    except OSError as error:
        fail(f"The environment could not be made: {error}")
