"""How long do the steps of ``make book`` and ``make test`` take in a first run, and when nothing has changed?

    python benchmarks/build.py [--only book|test]

The first run starts without the results and caches of earlier runs and, if the system allows it, with the environment's
files dropped from the page cache. Before the second run, nothing changes; before a third run of the book, a sentence
is added to one notebook (and removed afterwards). The aims on two cores are 4 minutes, 45 s and 60 s for the three runs
of the book; 15 minutes for the first run of the tests, including the installation (whose time ``make environment``
prints), and 6 minutes for the second.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "chapters" / "05_masks.ipynb"
STEP_LINE = re.compile(r"^── (.+): passed in (\d+) s")
AIMS = {
    "book": {"from nothing": 4 * 60, "again": 45, "a sentence": 60},
    "test": {"from nothing": 15 * 60, "again": 6 * 60},
}


def delete_results():
    for name in ("html", "doctrees", "executed", "reports", "data"):
        shutil.rmtree(ROOT / "_build" / name, ignore_errors=True)
    for name in (".pytest_cache", ".ruff_cache", ".hypothesis", ".venv-nbgrader"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for folder in ("transformer_lab", "book", "tools", "tests", "benchmarks"):
        for cache in (ROOT / folder).rglob("__pycache__"):
            shutil.rmtree(cache, ignore_errors=True)
    if not hasattr(os, "posix_fadvise"):
        return
    os.sync()
    for folder, _, names in os.walk(ROOT / ".venv"):
        for name in names:
            try:
                file = os.open(os.path.join(folder, name), os.O_RDONLY)
            except OSError:  # a broken link
                continue
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def run_make(verb):
    """Run a make verb; return the seconds that each step took, in order, and the total at the end."""
    start, steps, lines = time.perf_counter(), {}, []
    with subprocess.Popen(
        ["make", verb], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in process.stdout:
            lines.append(line)
            if match := STEP_LINE.match(line):
                steps[match[1]] = float(match[2])
    if process.returncode:
        sys.exit(f"make {verb} failed:\n{''.join(lines[-40:])}")
    return {**steps, f"make {verb}": time.perf_counter() - start}


def make_with_another_sentence(verb):
    original = NOTEBOOK.read_text("utf-8")
    title = re.search(r'"# .*?\\n"', original)[0]  # in the first cell; a sentence is inserted below this title
    try:
        NOTEBOOK.write_text(original.replace(title, f'{title[:-1]}\\nOne sentence more.\\n"', 1), "utf-8")
        return run_make(verb)
    finally:
        NOTEBOOK.write_text(original, "utf-8")


RUNS = {
    "from nothing": lambda verb: delete_results() or run_make(verb),
    "again": run_make,
    "a sentence": make_with_another_sentence,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(AIMS))
    options = parser.parse_args()
    for verb in [options.only] if options.only else AIMS:
        columns = {run_name: RUNS[run_name](verb) for run_name in AIMS[verb]}
        print(f"{f'seconds, on {os.cpu_count()} cores':<24}" + "".join(f"{run_name:>14}" for run_name in columns))
        for step in columns["from nothing"]:
            print(f"{step:<24}" + "".join(f"{steps.get(step, 0):>14.0f}" for steps in columns.values()))
        verdicts = [
            f"{seconds} {'met' if columns[run_name][f'make {verb}'] <= seconds else 'missed'}"
            for run_name, seconds in AIMS[verb].items()
        ]
        print(f"{'aim':<24}" + "".join(f"{verdict:>14}" for verdict in verdicts), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
