"""Keeps the reports of this session, and stores the learner's results in a file, the record of the whole course."""

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
except ImportError:  # on Windows, or in Python in a browser
    fcntl = None
try:
    import msvcrt
except ImportError:
    msvcrt = None

LOCK_TIMEOUT = 5.0  # seconds; the lock is normally held for about a millisecond

session_reports = {}  # exercise -> report of its last check since the kernel started, in the order of these checks


def path():
    """Return the record's path: in the user's data folder, or in the folder that ``$TRANSFORMER_LAB_DATA`` names."""
    return Path(os.environ.get("TRANSFORMER_LAB_DATA") or user_data_dir("transformer-lab"), "progress.json")


def store(report):
    """Store a check's result; an exercise that was once correct stays correct."""
    session_reports.pop(report.exercise, None)
    session_reports[report.exercise] = report
    if report.status == "not attempted":
        return
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with _file_lock():
            entries = _read_unlocked()
            entry = entries.setdefault(report.exercise.name, {})
            entry["checks"] = entry.get("checks", 0) + 1
            if report.stars:
                entry["stars"] = max(report.stars, entry.get("stars", 0))
            if report.status == "correct":
                entry.setdefault("correct", datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
            _write(entries)
    except OSError as error:  # even if the disk is full or read-only, the learner must see the card
        print(f"The course's record could not be written: {error}", file=sys.stderr)


def read():
    """Return the record: a dict from exercise names to entries. A file that cannot be parsed is renamed and kept."""
    if not path().exists():  # since reading must not create files
        return {}
    with _file_lock():
        return _read_unlocked()


def _read_unlocked():
    try:
        entries = json.loads(path().read_text("utf-8"))
        if all(isinstance(entry.get("checks", 0), int) for entry in entries.values()):
            return entries
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):  # not JSON, or JSON of a different form
        pass
    path().replace(path().with_suffix(".unreadable.json"))
    return {}


@contextmanager
def _file_lock():
    """Keep other processes away from the record for the duration of the block.

    The operating system releases the lock when the process that holds it ends, however the process ends. The lock is
    not available if the folder is read-only, if the disk does not support locks, or if a different process was
    suspended while it held the lock. The block then runs without the lock: two processes might then overwrite each
    other's entries, but skipping the block would certainly lose an entry.
    """
    try:
        lock = os.open(path().with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT
        while not _try_lock(lock) and time.monotonic() < deadline:
            time.sleep(0.002)
        yield
    finally:
        os.close(lock)  # closing the file releases the lock


def _try_lock(lock):
    """Try to acquire the lock, and return False if a different process holds it."""
    try:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt:
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)  # ty: ignore[missing-attribute]
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # the disk does not support locks
        return True
    return True


def _write(entries):
    temporary_file = path().with_suffix(f".{os.getpid()}.new")
    temporary_file.write_text(json.dumps(entries, indent=1, sort_keys=True), "utf-8")
    temporary_file.replace(path())  # atomic: the file is replaced completely or not at all
