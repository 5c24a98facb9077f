"""Executes every notebook once and caches the outputs, for nbval, the test of the digits and the book.

    python tools/executed.py        executes the notebooks that the cache lacks, two at a time

The cache is a jupyter-cache in a folder of _build/executed/. The folder is named after a digest of all inputs except
the notebook's code: the package, the pinned versions, the device and Python. The cache finds a notebook by its code, so
a change to the text does not cause an execution.

A notebook that reads published models runs if these models are installed. Otherwise the stored outputs and labs are
used (``notebook_labs.py``), and a printed line says so.
"""

import hashlib
import json
import os
import platform
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn

from digits import STARTUP, pop_near_boundary
from notebook_labs import restore_labs
from notebooks import INSTALL_MODELS, ROOT, all_notebooks, describe_failure, execute, lacks_models, models_are_installed

CACHES = ROOT / "_build" / "executed"
SECONDS_FILE = CACHES / "seconds.json"  # how long each notebook took in its last run: the longest is executed first
MAX_CACHES = 3  # caches that are kept, so that switching back to a branch executes nothing
SOURCES = ("transformer_lab/**/*", "requirements.txt", "chapters/*.labs.json")
SOURCES += tuple(f"tools/{name}.py" for name in ("digits", "executed", "notebooks", "notebook_labs"))
SUFFIXES = {".py", ".js", ".css", ".svg", ".json", ".txt"}


def cache_folder():
    """Return the folder of the cache for the current code."""
    device = os.environ.get("TRANSFORMER_LAB_DEVICE") or "cpu"
    models = models_are_installed()
    digest = hashlib.sha256(f"{platform.python_version()} {platform.machine()} {device} {models}".encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        if path.suffix in SUFFIXES:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return CACHES / digest.hexdigest()[:16]


def executed_notebook(path):
    """Return the notebook ``path`` with its outputs, and the record of its run.

    A notebook that the cache lacks is executed. A notebook that fails is not cached, and a RuntimeError names the cell.

    Returns
    -------
    (NotebookNode, dict)
        The dict contains ``execution_seconds`` and, under ``near``, the digits whose rounding may depend on the device.
    """
    notebook, cache = nbformat.read(path, 4), get_cache(cache_folder())
    bundle = _cached(notebook, cache) or cache.get_cache_bundle(_execute(notebook, path, cache).pk)
    return bundle.nb, bundle.record.data


def _cached(notebook, cache):
    """Return the cached notebook; None if the cache lacks it or an interrupted run has left a record but no file."""
    with suppress(KeyError):
        return cache.get_cache_bundle(cache.match_cache_notebook(notebook).pk)


def _execute(notebook, path, cache):
    start = time.perf_counter()
    if lacks_models(path):
        print(f"{_name(path)}: as stored, since it reads published models: {INSTALL_MODELS}.", flush=True)
        return _store(restore_labs(notebook, path), path, cache, {"execution_seconds": 0.0, "near": []})
    try:
        execute(notebook, path.parent, startup=STARTUP)
    except Exception as error:
        raise RuntimeError(f"{path.relative_to(ROOT)}: {describe_failure(notebook, error)}") from error
    data = {"execution_seconds": round(time.perf_counter() - start, 1), "near": pop_near_boundary(notebook)}
    return _store(notebook, path, cache, data)


def _store(notebook, path, cache, data):
    bundle = CacheBundleIn(notebook, path.relative_to(ROOT).as_posix(), data=data)
    return cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def execute_missing():
    """Execute the notebooks that the cache lacks, two at a time, longest first; return the errors."""
    cache = get_cache(cache_folder())
    missing = [path for path in all_notebooks() if not _cached(nbformat.read(path, 4), cache)]
    _drop_old_caches()
    seconds = json.loads(SECONDS_FILE.read_text()) if SECONDS_FILE.exists() else {}
    missing.sort(key=lambda path: seconds.get(_name(path), path.stat().st_size), reverse=True)
    finished, failed = [], []

    def execute_one(path):
        try:
            seconds[_name(path)] = executed_notebook(path)[1]["execution_seconds"]
            outcome = f"{seconds[_name(path)]:5.1f} s"
        except RuntimeError as error:
            failed.append(str(error))
            outcome = "FAILED"
        finished.append(path)
        print(f"  {len(finished):2} of {len(missing)}  {_name(path):42} {outcome}", flush=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(execute_one, missing))
    SECONDS_FILE.write_text(json.dumps(seconds, indent=1, sort_keys=True))
    return failed


def _name(path):
    return path.relative_to(ROOT / "chapters").as_posix()


def _drop_old_caches():
    os.utime(cache_folder())
    caches = sorted((path for path in CACHES.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in caches[:-MAX_CACHES]:
        shutil.rmtree(path)


def main():
    if failed := execute_missing():
        sys.exit("\n\n".join(failed))


if __name__ == "__main__":
    main()
