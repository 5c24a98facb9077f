"""How far the learner is: in one assignment, and in the course."""

import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from . import record
from .exercise import Exercise
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
    if not record.session:
        print("No check has run yet. Run the cells above first.")
        return
    module = list(record.session)[-1].__module__
    exercises = exercises_of(module)
    states = [record.session.get(exercise, "not attempted") for exercise in exercises]
    print(f"{_title(module)}: {states.count('correct')} of {len(states)}")
    for exercise, state in zip(exercises, states):
        print(f"  {SIGNS[state]} {exercise.name:24} {state}")


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
    for module, exercises in assignments().items():
        done = [exercise.name in entries and "correct" in entries[exercise.name] for exercise in exercises]
        lines.append(f"{_title(module)}: {sum(done)} of {len(done)}")
        for exercise, is_done in zip(exercises, done):
            entry = {"checks": 0, **entries.get(exercise.name, {})}
            state = "not yet" if entry["checks"] else "not attempted"
            state = f"correct since {entry['correct']}" if is_done else state
            lines.append(f"  {'✓' if is_done else '○'} {exercise.name:28} {state}, checks: {entry['checks']}")
    lines.append(f"The record lies in {record.file()}")
    print("\n".join(lines))
    if path is not None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        Path(path).write_text("\n".join([f"Transformer Lab, {now}", *lines]) + "\n", "utf-8")


def assignments():
    """Return the exercises of each assignment, in the course's order: a dict of module name to list."""
    package = __name__.rpartition(".")[0]
    modules = sorted(name for name in sys.modules if re.match(rf"{package}\.ch\d_", name))
    return {module: exercises_of(module) for module in modules}


def exercises_of(module):
    """Return the exercises that one chapter's module defines, in its order."""
    things = vars(sys.modules[module]).values()
    return [thing for thing in things if isinstance(thing, Exercise) and thing.__module__ == module]


def _title(module):
    return "Final project" if module.endswith("_project") else f"Assignment {re.search(r'ch(.)_', module)[1]}"
