"""Answers to the exercises, right and wrong, against which the checks are measured.

They were written from the tasks alone: docstring, signature, and the text of the assignment. Who wrote them had not
seen the mistakes and the equivalents that the checks know. They stay as they are: what an answer teaches belongs in the
checks, and an answer that was changed to fit them measures nothing.

    @wrong(softmax, "No maximum is subtracted.")    # what is wrong, in truth: a name that a check gives must agree
    def _(x, dim): ...

    @wrong(linear, "The bias is missing.", "No gradient flows back.")    # two slips: a card must name both

    @right(softmax)                                 # unusual, perhaps, and right
    def _(x, dim): ...

An answer is called ``_``, since the decorator gives it the name of its exercise, which its learner would give it.

Every second answer to each exercise is in ``held_out``; ``second_author`` has three more to each. If you improve a
check, do not open these folders: only answers that you have not seen tell how well the checks do for a learner.
``third_author`` has five more to each. It lies open since it was measured once: of 228 wrong answers 212 had a name, 93
per cent. ``fourth_author`` has two or three to each, and is closed. ``one_and_two_slips`` has, for 27 exercises, three
answers with one slip and two or three with two, by a fifth author.

The answers to `route`, `mixture_of_experts` and `latent_cache_bytes` are by the author of their checks. The first 51
wrong ones were written before any mistake of these checks, and 50 of them had a name at the first run. The second round
in ``ch9.py`` was written afterwards, to find gaps, and 11 of its 24 had one.

The answers to `masked_multi_head` in ``ch5_class.py`` are by an author who had not seen its check. At the first run 17
of 20 with one slip had a name, and none of four with two slips had both. One answer was meant to be right, and its
gradient is NaN; the task has said since then that gradients stay finite.

The first 33 wrong answers to assignment 11 are by the author of its checks, too: that all have a name measures nothing.
Of 30 more, by an author who had seen the first, 17 had one at the first run, one of them false.
"""

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

PARTS = ("shown", "held_out", "second_author", "third_author", "fourth_author", "one_and_two_slips")
_answers = []


class Answer(NamedTuple):
    """A function as a learner may write it. ``truth`` says what is wrong with it, and is None where nothing is."""

    name: str  # "shown.softmax.3" is the third answer to that exercise in the half that is shown
    exercise: object
    function: object
    truth: str | None
    part: str  # of PARTS
    slips: int  # how many things are wrong with it


def wrong(exercise, *truths):
    """Add a wrong answer: a sentence for each thing that is wrong with it."""

    def add(answer):
        function = exercise.as_function(answer)  # of a class, what the check calls
        function.__code__ = function.__code__.replace(co_name=exercise.name)  # as the learner's function is called
        function.__name__ = function.__qualname__ = exercise.name
        part = next((part for part in PARTS if f".{part}." in function.__module__), "shown")
        before = sum((answer.exercise, answer.part) == (exercise, part) for answer in _answers)
        name, truth = f"{part}.{exercise.name}.{before + 1}", " ".join(truths) or None
        _answers.append(Answer(name, exercise, function, truth, part, len(truths)))

    return add


def right(exercise):
    """Add a right answer."""
    return wrong(exercise)


def answers(part=None):
    """Return all answers, or those of one part."""
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("[!_]*.py")):
        import_module("." + ".".join(path.relative_to(folder).with_suffix("").parts), __name__)
    return [answer for answer in _answers if part in (None, answer.part)]
