"""What the learner has done so far: of an assignment in this session, and of the course in a file of their own."""

import json
import os
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from platformdirs import user_data_dir

try:
    import fcntl
except ImportError:  # Windows, or Python in a browser
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

LOCK_TIMEOUT = 5.0  # seconds; the lock is held for about a millisecond

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
        file().parent.mkdir(parents=True, exist_ok=True)
        with _exclusive():
            entries = _read()
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
    if not file().exists():  # reading creates no files
        return {}
    with _exclusive():
        return _read()


def _read():
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


@contextmanager
def _exclusive():
    """Keep other processes from the record for a while.

    The operating system holds the lock, and drops it when the process ends, however it ends. Where there is none to be
    had (a folder that is read-only, a disk without locks, a process that was stopped while it held it), the work goes
    on without one: an entry might be lost to another process, which is better than to lose it for certain.
    """
    try:
        lock = os.open(file().with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    except OSError:
        yield
        return
    try:
        until = time.monotonic() + LOCK_TIMEOUT
        while not _locked(lock) and time.monotonic() < until:
            time.sleep(0.002)
        yield
    finally:
        os.close(lock)  # which gives the lock back


def _locked(lock):
    """Take the lock, and return whether no other process had it."""
    try:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt:
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)  # ty: ignore[missing-attribute]
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # this disk has no locks
        return True
    return True


def _write(entries):
    new = file().with_suffix(f".{os.getpid()}.new")
    new.write_text(json.dumps(entries, indent=1, sort_keys=True), "utf-8")
    new.replace(file())  # whole or not at all
