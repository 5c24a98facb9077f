"""Checks that say what went wrong: ``tl.checks.split_heads(my_function)``.

Each chapter has a folder of exercises, and each exercise is one file: the reference and the known mistakes, whose names
say what goes wrong. `course` lists the exercises, and each exercise is loaded when it is first used.

The engine consists of `exercise` (what is known about an exercise), `probes` (its inputs), `observe` (runs a function
safely), `agree` (whether two results are the same), `diagnose` (which mistake a function makes), `gradients`,
`shared_slips` (mistakes that are possible in every exercise) and `common_mistakes` (mistakes that several exercises
share). The texts of the card come from `errors`, `mismatch` (type, shape, dtype), `describe` (wrong numbers, with
`relation`, `steps` and `source`) and `smallest_input` (the evidence). `report` renders the card; `record` and `summary`
show a learner's progress. In a hunt (`hunt`, `hunt_kinds`, `hunt_report`), the learner writes a test, which must catch
the known mistakes; in `model_hunt`, the test must catch bugs of whole models.
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
