"""Answers to the exercises, right and wrong, against which the checks are measured.

They were written from the tasks alone: docstring, signature, and the text of the assignment. Who wrote them had not
seen the mistakes and the equivalents that the checks know. They stay as they are: what an answer teaches belongs in the
checks, and an answer that was changed to fit them measures nothing.

    @wrong(softmax, "No maximum is subtracted.")    # what is wrong, in truth: a name that a check gives must agree
    def _(x, dim): ...

    @right(softmax)                                 # unusual, perhaps, and right
    def _(x, dim): ...

Every second answer to each exercise is in ``held_out``. If you improve a check, do not open that folder: only answers
that you have not seen tell how well the checks do for a learner.
"""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

_answers = []


class Answer(NamedTuple):
    """A function as a learner may write it. ``truth`` says what is wrong with it, and is None where nothing is."""

    name: str  # "shown.softmax.3" is the third answer to that exercise in the half that is shown
    exercise: object
    function: object
    truth: str | None
    held_out: bool


def wrong(exercise, truth):
    """Add a wrong answer."""

    def add(function):
        function.__code__ = function.__code__.replace(co_name=exercise.name)  # as the learner's function is called
        function.__name__ = function.__qualname__ = exercise.name
        held_out = ".held_out." in function.__module__
        before = sum((answer.exercise, answer.held_out) == (exercise, held_out) for answer in _answers)
        name = f"{'held_out' if held_out else 'shown'}.{exercise.name}.{before + 1}"
        _answers.append(Answer(name, exercise, function, truth, held_out))

    return add


def right(exercise):
    """Add a right answer."""
    return wrong(exercise, None)


def answers(held_out=None):
    """Return all answers; with ``held_out``, only those of that half."""
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        import_module(f".{path.stem}", __name__)
        import_module(f".held_out.{path.stem}", __name__)
    return [answer for answer in _answers if held_out in (None, answer.held_out)]
