"""Runs tests and notebooks on the stand-in of tests/standin, a second device for machines without a GPU.

    python tools/device.py              the mathematics' tests and every notebook, with float64 and without it
    python tools/device.py --quick      some of the tests, and chapter 1, with float64 only
    python tools/device.py 06 masks     only parts with one of these words in their names

The device rounds float32 differently from the CPU: it first shifts a number by less than a quarter of the last digit.
Like Apple's MPS, the device can also lack float64. In cells that measure a time, failed assertions are skipped. Two
parts run at a time, longest first; the output of each part is stored in _build/reports/device/.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import zip_longest

import notebooks
from notebooks import ROOT

STANDIN = ROOT / "tests" / "standin"
REPORTS = ROOT / "_build" / "reports" / "device"
KERNEL_START_FAILURE = "Kernel died before replying"  # another kernel that started at the same moment took the ports
MAX_REPORT_LINES = 60  # lines of a failing part's report
MATHEMATICS_TESTS = (  # below tests/, the longest first
    "maths/linear_attention maths/audit maths/transformer checks/checks maths/multi_head maths/attention"
    " maths/normalization maths/layers maths/mixture maths/cache maths/masks maths/pretrained maths/compute"
    " maths/measure maths/positions maths/tensors maths/arguments maths/formula"
)
QUICK_PARTS = ("test_formula", "test_attention", "test_masks", "test_cache", "test_tensors", "chapters/01")
SLOW_NOTEBOOKS = ("06_norm", "10_real", "08_linear", "project", "07_param", "04_multi", "05_masks")  # the longest first


@dataclass(frozen=True)
class Part:
    """A test file or a notebook to run on a device, and whether this device has float64."""

    path: str
    float64: bool = True

    def __str__(self):
        return self.path + ("" if self.float64 else ", without float64")

    @property
    def report(self):
        return REPORTS / (re.sub(r"\W+", "_", str(self)) + ".txt")

    @property
    def command(self):
        options = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=900", "-p", "without_times"]
        options = options if self.path.endswith(".ipynb") else []
        return [sys.executable, "-m", "pytest", "-q", "--color=no", "--tb=short", "-p", "no:cacheprovider", *options]


def parts():
    """Return all parts, longest first."""
    runnable = (path for path in notebooks.all_notebooks() if not notebooks.lacks_models(path))
    paths = sorted((path.relative_to(ROOT).as_posix() for path in runnable), key=_sort_key)
    files = ["tests/{}/test_{}.py".format(*name.split("/")) for name in MATHEMATICS_TESTS.split()] + [
        "tests/standin/test_works_or_refuses.py"
    ]
    interleaved = [path for pair in zip_longest(paths, files) for path in pair if path]
    return [Part(path, float64) for path in interleaved for float64 in (True, False)]


def _sort_key(path):
    rank = next((rank for rank, name in enumerate(SLOW_NOTEBOOKS) if name in path), len(SLOW_NOTEBOOKS))
    return rank, "assignments" in path


def environment_variables(float64=True):
    """Return the environment variables of a process that computes on the stand-in."""
    return {
        "OMP_NUM_THREADS": "1",  # small models gain nothing from a second thread
        "TRANSFORMER_LAB_DATA": str(ROOT / "_build" / "data"),  # so that the user's own record does not change
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, STANDIN, ROOT / "tools"))),
        "TRANSFORMER_LAB_DEVICE": "standin",
        "STANDIN_ROUNDING": "nudge",
        "STANDIN_FLOAT64": "yes" if float64 else "no",
    }


def run(part):
    """Run a part and store its output; return whether the part passed, and the seconds."""
    start = time.perf_counter()
    part.report.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        with part.report.open("w", encoding="utf-8") as report:
            command, options = [*part.command, part.path], {"stdout": report, "stderr": subprocess.STDOUT}
            status = subprocess.call(command, cwd=ROOT, env=environment_variables(part.float64), **options)
        if KERNEL_START_FAILURE not in part.report.read_text("utf-8"):
            break
    return status == 0, time.perf_counter() - start


def summary_line(part):
    """Return pytest's last line: how many tests passed and failed."""
    lines = re.findall(r"(?m)^.*\d+ (?:passed|failed|skipped|errors?)\b.*$", part.report.read_text("utf-8"))
    return lines[-1].strip("= ") if lines else "nothing was run"


def describe_failure(part):
    """Return the first lines of a failed part's report: where the part failed, and what was expected and found."""
    lines = part.report.read_text("utf-8").splitlines()
    first_line = next((number for number, line in enumerate(lines) if re.match(r"=+ (FAILURES|ERRORS) =+", line)), 0)
    shown = lines[first_line + 1 : first_line + 1 + MAX_REPORT_LINES]
    return "\n".join([*shown, f"… the whole report: {part.report.relative_to(ROOT)}"])


def unavailable_reason():
    """Return why this PyTorch cannot run the stand-in, or an empty string if it can."""
    code = "import torch, standin; print(standin.reason_unavailable() or '')"
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment_variables(), capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="some of the tests, and chapter 1, with float64 only")
    parser.add_argument("words", nargs="*", help="only what has one of these words in its name")
    arguments = parser.parse_args()
    chosen_parts = [
        part for part in parts() if not arguments.words or any(word in str(part) for word in arguments.words)
    ]
    if arguments.quick:
        chosen_parts = [
            part for part in chosen_parts if part.float64 and any(name in part.path for name in QUICK_PARTS)
        ]
    if not chosen_parts:
        sys.exit(f"There is no test and no notebook that has {' or '.join(arguments.words)} in its name.")
    if reason := unavailable_reason():
        print(f"Skipped: {reason}.")
        return
    for path in filter(notebooks.lacks_models, notebooks.all_notebooks()):
        print(f"{path.relative_to(ROOT)} is left out, since it reads published models: {notebooks.INSTALL_MODELS}.")
    print(f"{len(chosen_parts)} parts on the stand-in for a GPU, two at a time.", flush=True)
    failed = []
    with ThreadPoolExecutor(2) as pool:
        running = {pool.submit(run, part): part for part in chosen_parts}
        for number, future in enumerate(as_completed(running), 1):
            part, (passed, seconds) = running[future], future.result()
            print(f"{number:3}/{len(chosen_parts)} {seconds:6.1f} s  {part}: {summary_line(part)}", flush=True)
            if not passed:
                failed.append(part)
    if failed:
        sys.exit("\n".join(["", describe_failure(failed[0]), "", "Failed on the stand-in:", *map(str, failed)]))
    print("All parts passed on the stand-in.")


if __name__ == "__main__":
    main()
