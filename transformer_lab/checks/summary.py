"""How far the learner is: in one assignment, and in the course."""

from datetime import datetime, timezone
from pathlib import Path

from . import record
from .course import COURSE, FOLDERS, title
from .report import SIGNS


def summary():
    """Show how far the assignment is: the one whose check ran last, with what its checks said in this session.

    Examples
    --------
    >>> import transformer_lab as tl
    >>> def causal_mask(seq):
    ...     raise NotImplementedError
    >>> report = tl.checks.causal_mask(causal_mask)
    ○ causal_mask: not attempted
    >>> tl.checks.summary()  # doctest: +ELLIPSIS
    Assignment 5: 0 of 6
      ○ causal_mask              not attempted
    ...
    """
    states = {exercise.name: state for exercise, state in record.session.items() if exercise.name in FOLDERS}
    if not states:
        print("No check has run yet. Run the cells above first.")
        return
    folder = FOLDERS[list(states)[-1]]
    names = COURSE[folder]
    print(f"{title(folder)}: {sum(states.get(name) == 'correct' for name in names)} of {len(names)}")
    for name in names:
        state = states.get(name, "not attempted")
        print(f"  {SIGNS[state]} {name:24} {state}")


def progress(path=None):
    """Show how far the course is, from the record on this computer; with ``path``, write it there as text as well.

    Parameters
    ----------
    path : str or path, optional
        A file to hand in.

    Examples
    --------
    >>> import transformer_lab as tl
    >>> tl.checks.progress()  # doctest: +ELLIPSIS
    Assignment 1: ...
    """
    entries = record.read()
    lines = []
    for folder, names in COURSE.items():
        done = ["correct" in entries.get(name, {}) for name in names]
        lines.append(f"{title(folder)}: {sum(done)} of {len(done)}")
        for name, is_done in zip(names, done):
            entry = {"checks": 0, **entries.get(name, {})}
            state = "not yet" if entry["checks"] else "not attempted"
            state = f"correct since {entry['correct']}" if is_done else state
            lines.append(f"  {'✓' if is_done else '○'} {name:28} {state}, checks: {entry['checks']}")
    lines.append(f"The record lies in {record.file()}")
    print("\n".join(lines))
    if path is not None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        Path(path).write_text("\n".join([f"Transformer Lab, {now}", *lines]) + "\n", "utf-8")
