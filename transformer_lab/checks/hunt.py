"""Hunts: the learner writes the test, and the course's known mistakes are what it must catch.

    tl.checks.hunt(tl.checks.softmax, test)

``test(f)`` refuses a function by an error, mostly an `AssertionError`, or by returning False. It runs on every right
answer of the exercise, which it must let pass, and on every known mistake that can be seen from outside.
"""

import contextlib
import inspect
import sys
import types
from functools import cache

import torch

from . import errors, record
from .agree import agree, tensors_in
from .exercise import Exercise
from .hunt_kinds import contrast, counted, inputs, kinds, smallest
from .hunt_report import HuntReport
from .hunts import ANY, HUNTS
from .observe import (
    CALL_SETTINGS,
    SETTINGS,
    Interrupted,
    Probe,
    Timed,
    TimeUp,
    is_stop,
    observe,
    run_guarded,
    settings_kept,
)
from .report import is_graded


def hunt(exercise, test):
    """Try a learner's test on right answers and known mistakes, show the card, and return the report.

    Parameters
    ----------
    exercise : Exercise
        One of the course's: ``tl.checks.softmax``; or ``tl.checks.whole_model``, for a test of a whole model.
    test : callable
        ``test(f)`` asserts what holds for every right function. An error, or False returned, refuses ``f``.

    Returns
    -------
    HuntReport
        Under nbgrader, the stars: that number at the end of a cell is what it takes for points.

    Raises
    ------
    TypeError
        ``exercise`` is none.

    Examples
    --------
    >>> import transformer_lab as tl
    >>> def test_causal_mask(f):
    ...     assert f(4).shape == (4, 4)
    >>> report = tl.checks.hunt(tl.checks.causal_mask, test_causal_mask)  # doctest: +ELLIPSIS
    ☆☆☆ test_causal_mask: ... mistakes caught
    ...
    """
    if isinstance(exercise, Hunt):
        return exercise(test)
    if not isinstance(exercise, Exercise):
        raise TypeError(f"exercise must be one of the course's, such as tl.checks.softmax, got {exercise!r}")
    return of(exercise)(test)


@cache
def of(exercise):
    """Return the hunt for an exercise's mistakes."""
    return Hunt(exercise)


class Hunt:
    """The task of writing a test. Calling it with the learner's test runs that, shows a card and returns a report."""

    patience = 1

    def __init__(self, exercise):
        self.exercise, self.name = exercise, f"test_{exercise.name}"
        self.hints = HUNTS.get(exercise.name, ANY)

    def __repr__(self):
        return f"<the hunt for mistakes in {self.exercise.name}>"

    def __call__(self, test):
        report = self.report(test)
        record.note(report)
        report.show()
        return report.stars if is_graded() else report

    def report(self, test):
        if not callable(test):
            said = f"Pass the test itself, without calling it. This is of type `{type(test).__name__}`."
            return HuntReport(self, "error", said)
        begun = []
        try:
            report, printed = run_guarded(lambda: self.run(test, begun), self.patience)
        except TimeUp as end:
            return HuntReport(self, "error", too_long(len(begun), end))
        except Interrupted as end:
            return HuntReport(self, "error", errors.interrupted(end, "test"), interrupted=end)
        except Exception as error:
            return HuntReport(self, "error", errors.fault(error, "run your test"))
        report.printed = printed
        return report

    def run(self, test, begun):
        return run(self, test, begun)


# The run


class Answer:
    """A function as the test meets it: its parameters are those of the exercise, and nothing else tells what it is."""

    def __init__(self, exercise, function):
        self._exercise, self._function = exercise, function
        self._calls, self._looked_at = [], set()

    def __call__(self, *given, **named):
        bound = signature(self._exercise).bind(*given, **named)
        bound.apply_defaults()
        self._calls.append(bound.args)
        return self._function(*bound.args)

    def __repr__(self):
        return f"<a function {self._exercise.name}>"

    @property
    def __signature__(self):
        return signature(self._exercise)

    def __getattr__(self, name):
        """What a function has and this has not: its name, its code. Notes what the learner's own line asks for."""
        frame, through = sys._getframe(1), []
        while frame is not None and errors.is_library(frame):
            through.append(frame.f_code.co_name)
            frame = frame.f_back
        if not through:
            self._looked_at.add(f"`f.{name}`")
        elif "getsourcelines" in through or "getsourcefile" in through:
            self._looked_at.add("the source of `f`")
        if name in ("__name__", "__qualname__"):
            return self._exercise.name
        raise AttributeError(f"{self!r} has no attribute {name!r}")


@cache
def signature(exercise):
    """Return the parameters of an exercise's function, without the stages of its reference."""
    whole = inspect.signature(exercise.reference)
    kept = [p for p in whole.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    return whole.replace(parameters=kept)


class Trial:
    """What a test does with one function: ``error`` is what it raised, and ``passed`` says whether it let it pass."""

    def __init__(self, exercise, test, function):
        self.answer = answer = Answer(exercise, function)
        self.error, returned, self.changed = None, None, []
        with settings_kept(CALL_SETTINGS):  # random numbers too: each function meets the same
            before = _settings()
            try:
                returned = Timed(test)(answer)
            except BaseException as error:  # also SystemExit: the test may call exit()
                if is_stop(error):
                    raise
                self.error = error
            self.settings = [name for name, value in _settings().items() if value != before[name]]
        self.passed = self.error is None and not _is_false(returned)


def _is_false(returned):
    truths = str(getattr(returned, "dtype", "")) in ("torch.bool", "bool")  # a tensor's, or one of NumPy's
    return not returned.all() if truths else returned is False


def _settings():
    """The session's settings by the names of what sets them. The random numbers' are none: a test may set a seed."""
    return {put.__name__: get() for get, put in SETTINGS if put.__name__.startswith(("set_default", "set_num"))}


def run(hunt, test, begun):
    """Return the report on a test. ``begun`` gets an item for each function that it has begun with."""
    exercise = hunt.exercise
    outside = Outside(test)

    def tried(function):
        begun.append(function)
        trial = Trial(exercise, test, function)
        trial.changed = outside.put_back()
        return trial

    first = tried(exercise.reference)
    if said := unwritten(test, first.error):
        return HuntReport(hunt, "not attempted", said.strip())
    if said := improper(exercise, first):
        return HuntReport(hunt, "error", said)
    right = (exercise.reference, *exercise.equivalents.values())
    known = kinds(exercise)
    refused = [function for function in right if not tried(function).passed]
    escaped = {id: kind for id, kind in known.items() if tried(exercise.mistakes[id].function).passed}
    report = HuntReport(hunt, "incorrect", caught=len(known) - len(escaped), known=len(known), refused=len(refused))
    if refused:
        said = [refusal(exercise, test, refused, len(right))]
    elif not escaped:
        report.status, said = "correct", [spared(right)]
    else:
        report.kinds = counted(escaped, known)
        largest = {id: kind for id, kind in escaped.items() if kind.words == report.kinds[0][0]}
        said = [f"{spared(right)} {report.next_star()}", smallest(exercise, largest)]
        if tried(nothing).passed:
            said.insert(0, "Your test lets even a function pass that returns `None`. Does it look at what comes back?")
        elif tried(nonsense(exercise)).passed:
            said.insert(0, LETS_NONSENSE_PASS)
    report.message = "\n\n".join(filter(None, [*said, meddling(first)]))
    return report


def nothing(*arguments):
    """Return nothing."""


def nonsense(exercise):
    """Return a function whose results are of the right types, and nothing else about them is right."""

    def of(value):
        if isinstance(value, torch.Tensor):
            return value.new_zeros(1, *value.shape)
        if isinstance(value, (tuple, list)) and tensors_in(value):
            return type(value)(map(of, value))
        return (*value, 0) if isinstance(value, (tuple, list)) else -1

    return lambda *arguments: of(exercise.reference(*arguments))


LETS_NONSENSE_PASS = (
    "Your test lets even a function pass that returns nonsense. Does it look at what comes back? A comparison alone "
    "refuses nothing: it needs an `assert` in front of it, or a `return`."
)


class Outside:
    """What a test finds outside itself: the session's variables that its code names, and the tensors in them.

    A known mistake may change what it is given, and so may a test; the next function must not meet the traces.
    """

    def __init__(self, test):
        self.places = []  # (namespace, name, value, its tensors, copies of those)
        for space, name in _names(test):
            value = space[name]
            tensors = tensors_in(value)
            self.places.append((space, name, value, tensors, [tensor.detach().clone() for tensor in tensors]))

    def put_back(self):
        """Restore what has changed since, and return its names."""
        changed = []
        for space, name, value, tensors, kept in self.places:
            differs = [(tensor, old) for tensor, old in zip(tensors, kept) if not agree(tensor.detach(), old)]
            if differs or space.get(name) is not value:
                changed.append(name)
            for tensor, old in differs:
                tensor.data = old.clone()
            space[name] = value
        return changed


def _names(test, seen=()):
    """Yield the variables outside a function that its code names, and those of the functions that it calls."""
    if not isinstance(test, types.FunctionType) or test in seen:
        return
    codes = [test.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    cells = {}
    for name, cell in zip(test.__code__.co_freevars, test.__closure__ or ()):
        with contextlib.suppress(ValueError):  # nothing is in it yet
            cells[name] = cell.cell_contents
    defaults = dict(enumerate(test.__defaults__ or ()))
    for name in dict.fromkeys(name for code in codes for name in code.co_names):
        value = test.__globals__.get(name)
        if isinstance(value, types.FunctionType) and value.__globals__ is test.__globals__:
            yield from _names(value, (*seen, test))
        elif name in test.__globals__:
            yield test.__globals__, name
    for space in (cells, defaults):
        yield from ((space, name) for name in space)


# What is told


def spared(right):
    """Say that all right answers pass."""
    return f"It lets all {len(right)} right answers pass, however they are written."


def too_long(begun, end):
    """Say that a test did not end, or took too long for the functions that it had begun with."""
    if begun > 1:
        return (
            f"Your test takes so long that {end.seconds:g} seconds were over after {begun - 1} functions, and it must "
            "meet many more. Smaller sizes show a mistake as well, and mostly sooner. Which of its lines takes longest?"
        )
    return errors.timed_out(end, "test")


def unwritten(test, error):
    """Say what is not written yet, the test or a function that it calls; empty where both are."""
    if not errors.is_stub(error):
        return ""
    return errors.not_written(test, error).replace("Your function", "Your test") or " "


def improper(exercise, first):
    """Say why the run would tell nothing: the test looks at the function instead of calling it."""
    looked_at = ", ".join(sorted(first.answer._looked_at))
    if looked_at:
        return (
            f"Your test looks at {looked_at}. All functions come under one name and in one wrapping, so that this "
            "tells it nothing. Call `f`, and look at what it returns."
        )
    if first.error is None and not first.answer._calls:
        return "Your test never calls `f`, so it cannot tell one function from another."
    return ""


def meddling(trial):
    """Say what a test changed outside itself."""
    if trial.changed:
        names = ", ".join(f"`{name}`" for name in trial.changed)
        return (
            f"Your test changes {names}, which lies outside it. It was put back after each function; otherwise the "
            "second would have met other inputs than the first. Make the inputs inside the test."
        )
    if trial.settings:
        return f"Your test changes a setting of the whole session, `{trial.settings[0]}`. It was put back."
    return ""


def refusal(exercise, test, refused, count):
    """Say which right answers a test refuses, and why that is wrong."""
    trial = Trial(exercise, test, refused[0])
    raised = "It returns False."
    if trial.error is not None:
        raised = errors.raised(exercise, None, Probe("", ()), trial.error)
    if refused[0] is exercise.reference:
        everything = " and every other right answer" if len(refused) == count else ""
        return (
            f"Your test refuses the course's own function{everything}, so it gets no star.\n\n{raised}\n\n"
            "What `f` returned there is right. Work out by hand what your test expects, and leave room for rounding."
        )
    return (
        f"Your test refuses {len(refused)} of {count} right answers, so it gets no star. One of them:\n\n{raised}\n\n"
        f"{why_right(exercise, trial)}"
    )


def why_right(exercise, trial):
    """Say what the right answer does that a test refuses, and why that is right."""
    function, exact = trial.answer._function, True
    for arguments in trial.answer._calls:
        probe = Probe("", arguments)
        got, right = (observe(exercise, f, probe) for f in (function, exercise.reference))
        if got.error_text != right.error_text:
            does = f"raises `{type(got.error).__name__}`" if got.error else "raises nothing"
            return (
                f"For {inputs(exercise, probe)} that answer {does}, unlike the course's own function. The docstring "
                "promises nothing for such an input: try those that it names."
            )
        if got.error is None and not agree(got.value, right.value):
            return (
                f"For {inputs(exercise, probe)}, {contrast(exercise, probe, got, right)} The docstring leaves this "
                "open: try those inputs that it names."
            )
        pairs = zip(tensors_in(got.value), tensors_in(right.value))
        exact = exact and all(torch.allclose(mine, theirs, 0, 0, equal_nan=True) for mine, theirs in pairs)
    if exact:
        return (
            "What that answer returns is what the course's own function returns, number for number. What your test "
            "asks for besides, the docstring does not promise."
        )
    return (
        "The numbers of that answer are those of the course's own function, up to rounding: the same sums in another "
        "order. Leave room for that: `torch.allclose(…)`, not `==` or `torch.equal`."
    )
