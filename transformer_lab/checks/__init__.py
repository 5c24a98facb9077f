"""A check says what is wrong with a learner's function: ``tl.checks.split_heads(my_function)``.

Each chapter has a folder of exercises. Each exercise is one file with the reference and the known mistakes; the name of
a mistake says what goes wrong. `course` lists the exercises, and each exercise is loaded when it is first used.

The engine consists of `exercise` (describes an exercise), `probes` (makes its inputs), `observe` (runs a function
safely), `agree` (compares two results), `diagnose` (names the mistake that a function makes), `gradients` (checks the
gradients), `shared_slips` (recognizes mistakes that are possible in every exercise) and `common_mistakes` (adds
mistakes that several exercises share). The text of a card comes from `errors` (for a function without a result),
`mismatch` (for a wrong type, shape or dtype), `describe` (for wrong numbers, with the help of `relation`, `steps` and
`source`) and `smallest_input` (the evidence). `report` renders the card, `record` stores the learner's results, and
`summary` shows the progress. In a hunt (`hunt`, `hunt_kinds`, `hunt_report`), the learner writes a test, which must
catch the known mistakes; in `model_hunt`, the test must catch bugs in whole models.
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
