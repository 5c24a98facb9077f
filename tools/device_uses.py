"""Removes single uses of `device` from the chapters, one at a time, and lists the removals that make a cell fail.

    python tools/device_uses.py [COUNT]          (default: 20, spread over all chapters)

A removal that makes no cell fail is harmless, or shows a gap in the stand-in.
"""

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import nbformat

import notebooks
from device import REPORTS, Part, environment_variables, unavailable_reason
from notebooks import ROOT

USE = re.compile(r", device=device\b|\.to\(device\)")
FAILED_CELL = re.compile(r"^Cell (\d+): (.*)", re.MULTILINE)


def uses(notebook):
    """Return every use of `device` in a notebook, as (cell, match)."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [(cell, match) for cell in cells for match in USE.finditer(cell.source)]


def spread_evenly(count, size):
    """Return ``count`` evenly spread indices of a list with ``size`` elements."""
    count = min(count, size)
    return [(2 * i + 1) * size // (2 * count) for i in range(count)]


def remove_use(notebook, number):
    """Return a copy of the notebook without one use of `device`, and the changed line."""
    copy = deepcopy(notebook)
    cell, match = uses(copy)[number]
    line = cell.source[: match.start()].count("\n")
    cell.source = cell.source[: match.start()] + cell.source[match.end() :]
    return copy, cell.source.splitlines()[line].strip()


def run_without_use(chapter, number):
    """Run a chapter without one use of `device`; return the line, the first cell that fails, and the seconds."""
    copy, line = remove_use(nbformat.read(chapter, 4), number)
    path = REPORTS / "uses" / f"{chapter.stem}_{number}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebooks.text(copy), "utf-8")
    start = time.perf_counter()
    part = Part(path.relative_to(ROOT).as_posix())
    result = subprocess.run(
        [*part.command, "-x", part.path], cwd=ROOT, env=environment_variables(), capture_output=True, text=True
    )
    failure = FAILED_CELL.search(result.stdout)
    return line, failure and f"code cell {int(failure[1]) + 1}: {failure[2]}", time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=20, help="how many uses, spread over all chapters")
    count = parser.parse_args().count
    if reason := unavailable_reason():
        sys.exit(f"Not possible: {reason}.")
    chapters = notebooks.chapters()
    jobs = []
    for index, chapter in enumerate(chapters):
        share = count // len(chapters) + (index < count % len(chapters))
        jobs += [(chapter, number) for number in spread_evenly(share, len(uses(nbformat.read(chapter, 4))))]
    n_noticed = 0
    with ThreadPoolExecutor(2) as pool:
        for (chapter, _), (line, cell, seconds) in zip(jobs, pool.map(lambda job: run_without_use(*job), jobs)):
            n_noticed += cell is not None
            number = chapter.stem.split("_")[0]
            print(f"{number}  {seconds:5.0f} s  {cell or 'NOT NOTICED'}\n              {line}", flush=True)
    print(f"{n_noticed} of {len(jobs)} removals were noticed.")


if __name__ == "__main__":
    main()
