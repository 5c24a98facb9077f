"""Replaces the network: a local site serves the wheel, and a local copy replaces the course's repository on GitHub."""

import os
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import repository
from notebooks import ROOT


def fake_address(site):
    """Return an address that cannot exist: GitHub allows no dot in an owner's name."""
    return repository.Address("example.invalid/transformer-lab", "main", site)


def checkout(folder, address):
    """Copy the working tree into a git repository whose files contain ``address``, and return the repository's URL."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in sorted(set(listed.split("\0")) - {""}):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for path, text in repository.changes(address, folder).items():
        path.write_text(text, "utf-8")
    git = ["git", "-c", "user.name=Colab", "-c", "user.email=colab@example.com", "-c", "commit.gpgsign=false"]
    for command in (
        ["init", "--quiet", "-b", address.branch],
        ["add", "-A"],
        ["commit", "--quiet", "-m", "As it is"],
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder.as_uri()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(folder):
    """Serve a folder, and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def kernel_variables(venv, git_url):
    """Return the environment variables of a kernel in which the course's address on GitHub refers to ``git_url``."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {
        **env,
        "PATH": f"{venv / 'bin'}{os.pathsep}{env['PATH']}",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # otherwise the kernel warns about how Python was started
        "NO_PROXY": "127.0.0.1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{git_url}.insteadOf",
        "GIT_CONFIG_VALUE_0": fake_address("").url,
    }
