"""Executes every notebook once and keeps the outputs: for nbval, for the test of digits, and for the book.

    python tools/executed.py        executes what is missing, two at a time

Executed notebooks lie in a jupyter-cache below _build/executed/, in a folder named by a digest of what outputs depend
on beside a notebook's own code: the package, the pinned versions, the device, Python. The cache finds a notebook by its
code, so a change of text executes nothing.

A notebook that reads published models runs where they are installed. Elsewhere its stored outputs stand for a run, with
its labs (``notebook_labs.py``), and a line says so.
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

from digits import STARTUP, take_near
from notebook_labs import revive
from notebooks import INSTALL_MODELS, ROOT, all_notebooks, describe_failure, execute, lacks_models, models_are_installed

CACHES = ROOT / "_build" / "executed"
SECONDS = CACHES / "seconds.json"  # how long each took when it last ran: the longest goes first
KEPT = 3  # caches: going back to a branch that was built a moment ago executes nothing
SOURCES = ("transformer_lab/**/*", "requirements.txt", "chapters/*.labs.json")
SOURCES += tuple(f"tools/{name}.py" for name in ("digits", "executed", "notebooks", "notebook_labs"))
KINDS = {".py", ".js", ".css", ".svg", ".json", ".txt"}


def cache_folder():
    """Where the executions of today's code are kept."""
    device = os.environ.get("TRANSFORMER_LAB_DEVICE") or "cpu"
    models = models_are_installed()
    digest = hashlib.sha256(f"{platform.python_version()} {platform.machine()} {device} {models}".encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        if path.suffix in KINDS:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return CACHES / digest.hexdigest()[:16]


def executed(path):
    """Return the code cells of the notebook ``path`` with what they put out, and what else was seen as they ran.

    A notebook that is not in the cache is executed. One that fails is not kept: RuntimeError names its cell.

    Returns
    -------
    (NotebookNode, dict)
        The second has ``execution_seconds``, and under ``near`` the digits that another device may round differently.
    """
    notebook, cache = nbformat.read(path, 4), get_cache(cache_folder())
    bundle = _kept(notebook, cache) or cache.get_cache_bundle(_execute(notebook, path, cache).pk)
    return bundle.nb, bundle.record.data


def _kept(notebook, cache):
    """What the cache has of the notebook: a record without its file, as an interrupted run leaves, is nothing."""
    with suppress(KeyError):
        return cache.get_cache_bundle(cache.match_cache_notebook(notebook).pk)


def _execute(notebook, path, cache):
    start = time.perf_counter()
    if lacks_models(path):
        print(f"{_name(path)}: as stored, since it reads published models: {INSTALL_MODELS}.", flush=True)
        return _keep(revive(notebook, path), path, cache, {"execution_seconds": 0.0, "near": []})
    try:
        execute(notebook, path.parent, startup=STARTUP)
    except Exception as error:
        raise RuntimeError(f"{path.relative_to(ROOT)}: {describe_failure(notebook, error)}") from error
    data = {"execution_seconds": round(time.perf_counter() - start, 1), "near": take_near(notebook)}
    return _keep(notebook, path, cache, data)


def _keep(notebook, path, cache, data):
    bundle = CacheBundleIn(notebook, path.relative_to(ROOT).as_posix(), data=data)
    return cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def execute_missing():
    """Execute what is not in the cache, two notebooks at a time, the longest first; return what failed, in words."""
    cache = get_cache(cache_folder())
    missing = [path for path in all_notebooks() if not _kept(nbformat.read(path, 4), cache)]
    _drop_old_caches()
    seconds = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
    missing.sort(key=lambda path: seconds.get(_name(path), path.stat().st_size), reverse=True)
    done, failed = [], []

    def work(path):
        try:
            seconds[_name(path)] = executed(path)[1]["execution_seconds"]
            outcome = f"{seconds[_name(path)]:5.1f} s"
        except RuntimeError as error:
            failed.append(str(error))
            outcome = "FAILED"
        done.append(path)
        print(f"  {len(done):2} of {len(missing)}  {_name(path):42} {outcome}", flush=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, missing))
    SECONDS.write_text(json.dumps(seconds, indent=1, sort_keys=True))
    return failed


def _name(path):
    return path.relative_to(ROOT / "chapters").as_posix()


def _drop_old_caches():
    os.utime(cache_folder())
    old = sorted((path for path in CACHES.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in old[:-KEPT]:
        shutil.rmtree(path)


def main():
    if failed := execute_missing():
        sys.exit("\n\n".join(failed))


if __name__ == "__main__":
    main()
