"""Runs one step of `make test`: prints the step's name and time and, after a failure, a screenful of errors.

    python tools/step.py [--once] NAME COMMAND…

The command's output goes to the terminal and to _build/reports/NAME.log. If pytest writes _build/reports/NAME.xml, the
tool lists the failed tests, each with its expected and its actual value. With --once, a step that has passed runs again
only after a change that may affect its result: see state.py.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from state import state

REPORTS = Path(__file__).resolve().parents[1] / "_build" / "reports"
MAX_TESTS, MAX_LINES = 3, 10  # number of tests, and of lines of each test, that are shown after a failure
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def run(name, command):
    """Run the command, show and store its output, and return its exit status and seconds."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{name}.xml").unlink(missing_ok=True)
    start = time.perf_counter()
    with (
        (REPORTS / f"{name}.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        while chunk := process.stdout.read1():  # not line by line: pytest shows its progress as dots
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            log.write(chunk)
    return process.returncode, time.perf_counter() - start


def summary(name):
    """Return a summary of the failures that fits on one screen."""
    log = COLOURS.sub("", (REPORTS / f"{name}.log").read_text("utf-8", "replace")).rstrip().splitlines()
    try:
        cases = list(ElementTree.parse(REPORTS / f"{name}.xml").iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return log[-MAX_TESTS * MAX_LINES :]
    failed = [(case, failure) for case in cases for failure in (*case.findall("failure"), *case.findall("error"))]
    if not failed:
        return log[-MAX_TESTS * MAX_LINES :]
    lines = [f"{len(failed)} of {len(cases)} tests failed{':' if len(failed) <= MAX_TESTS else ', such as:'}"]
    for case, failure in failed[:MAX_TESTS]:
        lines += ["", f"{case.get('classname')} :: {case.get('name')}", *_key_lines(failure.text or "")]
    return lines


def _key_lines(text):
    """Return the lines of a failure that pytest marks with an E: they show the expected and the found value."""
    lines = [line.rstrip() for line in COLOURS.sub("", text).splitlines() if line.strip()]
    assertion_lines = [line for line in lines if line.startswith("E ")] or lines  # nbval marks none
    if len(assertion_lines) > MAX_LINES:
        assertion_lines = [*assertion_lines[: MAX_LINES // 2], "…", *assertion_lines[-MAX_LINES // 2 :]]
    return [f"    {line[:160]}" for line in assertion_lines] + [f"    {lines[-1][:160]}"] * (
        assertion_lines[-1:] != lines[-1:]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--once", action="store_true", help="skip a step that has passed while nothing has changed")
    parser.add_argument("name", help="the name of the step, and of its files in _build/reports")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    arguments = parser.parse_args()
    name, command = arguments.name, arguments.command
    passed_file, current_state = REPORTS / f"{name}.passed", state() if arguments.once else None
    if current_state and passed_file.exists() and passed_file.read_text() == current_state:
        print(
            f"── {name}: passed before, and nothing has changed since; to run it again, delete {passed_file}",
            flush=True,
        )
        return
    print(f"── {name}", flush=True)
    passed_file.unlink(missing_ok=True)
    status, seconds = run(name, command)
    if status:
        print("\n".join([*summary(name), "", f"The whole output: {REPORTS / name}.log"]))
    elif current_state and current_state == state():  # a file may have changed after the step read it
        passed_file.write_text(current_state)
    print(f"── {name}: {'FAILED after' if status else 'passed in'} {seconds:.0f} s", flush=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
