"""Runs the tests in tests/clients, which open notebooks in JupyterLab and Notebook 7 in a browser, as a reader would.

The environment .venv-clients contains JupyterLab and Notebook 7; the kernel and the widgets come from .venv.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from environment import is_made, make_venv

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv-clients"
PINS = [
    "jupyterlab==4.6.6",
    "notebook==7.6.5",
    "--exclude-newer",
    "2026-11-20",
]  # dependencies: releases up to this day
MADE_FROM = "\n".join([sys.version, str(VENV), *PINS])
START_TIMEOUT = 60  # seconds


def ensure_environment():
    """Create .venv-clients if it is missing or the pinned versions have changed."""

    def install(python):
        subprocess.run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *PINS], check=True)

    make_venv(str(VENV), MADE_FROM, install)


def is_installed():
    """Whether .venv-clients exists and has the pinned versions."""
    return is_made(str(VENV), MADE_FROM)


@contextmanager
def serve_clients(notebooks, work, settings=None):
    """Serve the folder ``notebooks`` for both clients, without a user's settings, and yield the address.

    ``work`` is an empty folder for the clients' files; ``settings`` maps JupyterLab's plugins to their settings.
    """
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free_socket.getsockname()[1]}"
    kernel = work / "jupyter" / "kernels" / "python3" / "kernel.json"
    overrides = work / "config" / "labconfig" / "default_setting_overrides.json"
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    for file, content in {
        kernel: {"argv": argv, "display_name": "Python 3", "language": "python"},
        overrides: settings or {},
    }.items():
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(content), "utf-8")
    env = {
        **os.environ,
        "JUPYTER_PATH": os.pathsep.join([str(work / "jupyter"), str(Path(sys.prefix, "share", "jupyter"))]),
        "JUPYTER_CONFIG_PATH": str(Path(sys.prefix, "etc", "jupyter")),
        "JUPYTER_CONFIG_DIR": str(work / "config"),
        "JUPYTER_DATA_DIR": str(work / "data"),
        "JUPYTER_RUNTIME_DIR": str(work / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(work / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(work / "workspaces"),
        "TRANSFORMER_LAB_DATA": str(work / "progress"),
    }
    options = ["--no-browser", "--allow-root", f"--port={address.rpartition(':')[2]}", "--IdentityProvider.token="]
    options += [f"--ServerApp.root_dir={notebooks}", "--ServerApp.disable_check_xsrf=True"]
    with open(work / "log", "w") as log:
        server = subprocess.Popen(
            [VENV / "bin" / "python", "-m", "jupyterlab", *options], cwd=work, env=env, stdout=log, stderr=log
        )
    try:
        _wait_until_ready(address, server, work / "log")
        yield address
    finally:
        server.terminate()
        server.wait()


def _wait_until_ready(address, server, log):
    deadline = time.monotonic() + START_TIMEOUT
    while server.poll() is None and time.monotonic() < deadline:
        try:
            return urllib.request.urlopen(f"{address}/api/status", timeout=5).close()
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf-8')[-3000:]}")


def main():
    ensure_environment()
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", *sys.argv[1:], "tests/clients"], cwd=ROOT))


if __name__ == "__main__":
    main()
