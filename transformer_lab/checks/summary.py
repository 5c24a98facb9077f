"""Shows the learner's progress in one assignment and in the course."""

from datetime import datetime, timezone
from pathlib import Path

from . import record
from .course import COURSE, title
from .hunt_report import format_stars
from .hunts import TASKS, tasks
from .report import SIGNS

NOT_ATTEMPTED = ("not attempted", "not attempted")


def summary():
    """Show the progress in the assignment that was checked last, with the results of this session.

    Examples
    --------
    >>> import transformer_lab as tl
    >>> def causal_mask(seq):
    ...     raise NotImplementedError
    >>> report = tl.checks.causal_mask(causal_mask)
    ○ causal_mask: not attempted
    >>> tl.checks.summary()  # doctest: +ELLIPSIS
    Assignment 5: 0 of 8
      ○ causal_mask              not attempted
    ...
    """
    reports = {exercise.name: report for exercise, report in record.session_reports.items() if exercise.name in TASKS}
    if not reports:
        print("No check has run yet. Run the cells above first.")
        return
    folder = TASKS[list(reports)[-1]]
    names = tasks(folder)
    states = {name: (reports[name].status, reports[name].state) if name in reports else NOT_ATTEMPTED for name in names}
    print(f"{title(folder)}: {sum(status == 'correct' for status, _ in states.values())} of {len(names)}")
    width = max(24, *map(len, names))
    for name, (status, state) in states.items():
        print(f"  {SIGNS[status]} {name:{width}} {state}")


def progress(path=None):
    """Show the progress in the course, from the record on this computer; with ``path``, also write it to a file.

    Parameters
    ----------
    path : str or path, optional
        The file to write, which can be handed in.

    Examples
    --------
    >>> import transformer_lab as tl
    >>> tl.checks.progress()  # doctest: +ELLIPSIS
    Assignment 1: ...
    """
    entries = record.read()
    lines = []
    for folder in COURSE:
        names = tasks(folder)
        done = ["correct" in entries.get(name, {}) for name in names]
        lines.append(f"{title(folder)}: {sum(done)} of {len(done)}")
        for name, is_done in zip(names, done):
            entry = {"checks": 0, **entries.get(name, {})}
            state = "not yet" if entry["checks"] else "not attempted"
            state = format_stars(entry["stars"]) if "stars" in entry else state
            state = f"correct since {entry['correct']}" if is_done else state
            lines.append(f"  {'✓' if is_done else '○'} {name:28} {state}, checks: {entry['checks']}")
    lines.append(f"The record is stored in {record.path()}")
    print("\n".join(lines))
    if path is not None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        Path(path).write_text("\n".join([f"Transformer Lab, {now}", *lines]) + "\n", "utf-8")
