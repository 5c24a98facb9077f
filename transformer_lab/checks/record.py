"""What the learner has done so far: of an assignment in this session, and of the course in a file of their own."""

import json
import os
import sys
from datetime import datetime, timezone
from pathlib import Path

from platformdirs import user_data_dir

session = {}  # exercise -> report of its last check since the kernel started; the last one checked comes last


def file():
    """Return the path of the record: in the user's data folder, or in the one that TRANSFORMER_LAB_DATA names."""
    return Path(os.environ.get("TRANSFORMER_LAB_DATA") or user_data_dir("transformer-lab"), "progress.json")


def note(report):
    """Keep a check's result: what was once correct stays so."""
    session.pop(report.exercise, None)
    session[report.exercise] = report
    if report.status == "not attempted":
        return
    try:
        entries = read()
        entry = entries.setdefault(report.exercise.name, {})
        entry["checks"] = entry.get("checks", 0) + 1
        if report.stars:
            entry["stars"] = max(report.stars, entry.get("stars", 0))
        if report.status == "correct":
            entry.setdefault("correct", datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
        _write(entries)
    except OSError as error:  # a full or read-only disk must not cost the learner the card
        print(f"The course's record could not be written: {error}", file=sys.stderr)


def read():
    """Return the record: a dict of exercise to its entry. A file that cannot be read is kept under another name."""
    try:
        entries = json.loads(file().read_text("utf-8"))
        if all(isinstance(entry.get("checks", 0), int) for entry in entries.values()):
            return entries
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):  # no JSON, or JSON of something else
        pass
    file().replace(file().with_suffix(".unreadable.json"))
    return {}


def _write(entries):
    file().parent.mkdir(parents=True, exist_ok=True)
    new = file().with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps(entries, indent=1, sort_keys=True), "utf-8")
    new.replace(file())  # whole or not at all
