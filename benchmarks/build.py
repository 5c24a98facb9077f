"""How long do ``make book`` and ``make test`` take after the first install, and where does the time go?

    python benchmarks/build.py [--only book|test] [--state cold|warm]

Cold means: without the results and caches of earlier runs, and with the environment's files dropped from memory as far
as the system allows it. Warm is the same once more. Aim: under 20 s per chapter for the book, on two cores.
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
AIM = 20
PAGE = re.compile(r"^\s*(\S+) … executed and read in ([\d.]+) s")
STEP = re.compile(r"^── (.+): (passed in|FAILED after) (\d+) s")


def make_cold():
    for name in ("html", "doctrees", "jupyter_execute"):
        shutil.rmtree(ROOT / "_build" / name, ignore_errors=True)
    for name in (".pytest_cache", ".ruff_cache", ".hypothesis"):
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
            except OSError:  # a link to nothing
                continue
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def make(verb):
    """Run a verb. Returns its parts, in order, with their seconds; the last is the whole."""
    start = time.perf_counter()
    parts, written = {}, None
    process = subprocess.Popen(["make", verb], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = []
    for line in process.stdout:
        lines.append(line)
        now = time.perf_counter() - start
        if verb == "book" and (found := PAGE.match(line)):
            if not parts:
                parts["make and Sphinx start"] = now - float(found[2])
            parts[found[1]] = float(found[2])
        elif verb == "book" and "writing the pages" in line:
            written = now
        elif verb == "test" and (found := STEP.match(line)):
            parts[found[1]] = float(found[3])
    total = time.perf_counter() - start
    if process.wait():
        sys.exit(f"make {verb} failed:\n{''.join(lines[-30:])}")
    if written:
        parts["writing the pages"] = total - written
    return {**parts, f"make {verb}": total}


def start_times():
    """What every notebook begins with, measured alone."""
    kernel = """
import time; start = time.perf_counter()
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(); client.execute_interactive("import torch, transformer_lab")
print(time.perf_counter() - start); client.stop_channels(); manager.shutdown_kernel(now=True)"""

    def clock(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    started = subprocess.run([sys.executable, "-c", kernel], check=True, text=True, capture_output=True).stdout
    return {
        "(alone: an interpreter)": clock(""),
        "(alone: one that imports torch)": clock("import torch"),
        "(alone: a kernel with torch)": float(started.split()[-1]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["book", "test"])
    parser.add_argument("--state", choices=["cold", "warm"])
    options = parser.parse_args()
    verbs = [options.only] if options.only else ["book", "test"]
    states = [options.state] if options.state else ["cold", "warm"]
    chapters = len(list((ROOT / "chapters").glob("[0-9]*.ipynb")))
    for verb in verbs:
        columns = {}
        for state in states:
            if state == "cold":
                make_cold()
            columns[state] = {**make(verb), **(start_times() if verb == "book" else {})}
        print(f"{'seconds, on ' + str(os.cpu_count()) + ' cores':<40}" + "".join(f"{state:>10}" for state in states))
        for part in columns[states[0]]:
            print(f"{part:<40}" + "".join(f"{columns[state].get(part, 0):>10.1f}" for state in states))
        if verb == "book":
            each = [columns[state]["make book"] / chapters for state in states]
            aim = f"   aim: under {AIM}: {'met' if max(each) < AIM else 'missed'}"
            print(f"{f'per chapter ({chapters})':<40}" + "".join(f"{seconds:>10.1f}" for seconds in each) + aim)
        print(flush=True)


if __name__ == "__main__":
    main()
