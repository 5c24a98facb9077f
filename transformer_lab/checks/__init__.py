"""Checks that say what went wrong: ``tl.checks.split_heads(my_function)``.

A folder for each chapter holds its exercises, a file for each: the right answer, and the mistakes that are known by
what they do. `course` lists them, and each is loaded when it is first asked for.

The engine is `exercise` (what is known about an exercise), `probes` (its inputs), `observe` (running a function
safely), `agree` (whether results are the same), `diagnose` (which mistake it is), `gradients`, `shared_slips` (what can
go wrong in every exercise) and `common_mistakes` (what several exercises add). The texts of the card come from
`errors`, `mismatch` (type, shape, dtype), `describe` (wrong numbers, with `relation`, `steps` and `source`) and
`smallest_input` (the evidence); `report` is the card, `record` and `summary` show a learner's progress. In a `hunt`,
with `hunt_kinds` and `hunt_report`, the learner writes the test, and the known mistakes are what it must catch; in
`model_hunt` they are whole models.
"""

from ..arguments import did_you_mean
from . import course
from .hunt import hunt, hunt_of
from .hunts import TASKS
from .summary import progress, summary

__all__ = ["EXERCISES", "hunt", "progress", "summary", "whole_model", *TASKS]


def __getattr__(name):
    if name == "EXERCISES":
        value = [course.load(exercise) for exercise in course.FOLDERS]
    elif name in course.FOLDERS:
        value = course.load(name)
    elif name.removeprefix("test_") == "whole_model":
        from .model_hunt import whole_model as value
    elif name.removeprefix("test_") in course.FOLDERS:
        value = hunt_of(course.load(name.removeprefix("test_")))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, __all__)}")
    globals()[name] = value
    return value


def __dir__():
    return __all__
