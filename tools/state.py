"""Computes a digest of everything that the results of the tests depend on."""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The first browser is made for tests: it has no windows, and loads a page in three quarters of the time that the other
# browsers take.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SETTINGS = ("TRANSFORMER_LAB_", "OMP_NUM_THREADS")


def browser():
    """Return the path of an installed Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def packages():
    """Return names and versions of the installed packages, including the published models, which are not pinned."""
    return " ".join(sorted(f"{each.metadata['Name']}=={each.version}" for each in distributions()))


def state():
    """Return a digest of all files that git does not ignore, and of Python, the packages, the browser and the settings.

    Return None outside a git repository.
    """
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True)
    if listed.returncode:
        return None
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(SETTINGS))
    settings += [sys.version, packages()]
    if path := browser():
        settings.append(f"{path} of {Path(path).resolve().stat().st_mtime}")
    digest = hashlib.sha256("\n".join(settings).encode())
    for name in [b".venv/made-from", *sorted({*listed.stdout.split(b"\0")} - {b""})]:
        file = ROOT / os.fsdecode(name)
        digest.update(name + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()
