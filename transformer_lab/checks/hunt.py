"""In a hunt, the learner writes a test, which must catch the course's known mistakes.

    tl.checks.hunt(tl.checks.softmax, test)

``test(f)`` rejects a function by raising an error, usually an `AssertionError`, or by returning False. The test runs on
every correct answer of the exercise, all of which it must accept, and on every known mistake that a call can reveal.
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
from .hunt_kinds import arguments_text, contrast_text, count_kinds, describe_smallest, kinds_by_id
from .hunt_report import HuntReport
from .hunts import GENERAL_HINTS, HUNTS
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
    """Try a learner's test on correct answers and known mistakes, show the card, and return the report.

    Parameters
    ----------
    exercise : Exercise
        An exercise such as ``tl.checks.softmax``, or ``tl.checks.whole_model`` for a test of a whole model.
    test : callable
        ``test(f)`` asserts what holds for every correct function. To reject ``f``, ``test`` raises an error or returns
        False.

    Returns
    -------
    HuntReport
        Under nbgrader, the number of stars instead, because nbgrader reads a number at the end of a cell as points.

    Raises
    ------
    TypeError
        If ``exercise`` is not an exercise.

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
        raise TypeError(f"exercise must be one of the course's exercises, such as tl.checks.softmax, got {exercise!r}")
    return hunt_of(exercise)(test)


@cache
def hunt_of(exercise):
    """Return the hunt for an exercise's mistakes."""
    return Hunt(exercise)


class Hunt:
    """The task of writing a test. A call with the learner's test runs the test, shows a card and returns a report."""

    time_factor = 1

    def __init__(self, exercise):
        self.exercise, self.name = exercise, f"test_{exercise.name}"
        self.hints = HUNTS.get(exercise.name, GENERAL_HINTS)

    def __repr__(self):
        return f"<the hunt for mistakes in {self.exercise.name}>"

    def __call__(self, test):
        report = self.report(test)
        record.store(report)
        report.show()
        return report.stars if is_graded() else report

    def report(self, test):
        if not callable(test):
            message = f"Pass the test itself, without calling it. You passed a value of type `{type(test).__name__}`."
            return HuntReport(self, "error", message)
        started_functions = []
        try:
            report, printed = run_guarded(lambda: self.run(test, started_functions), self.time_factor)
        except TimeUp as timeout:
            return HuntReport(self, "error", too_long_text(len(started_functions), timeout))
        except Interrupted as interruption:
            return HuntReport(self, "error", errors.interrupted_text(interruption, "test"), interrupted=interruption)
        except Exception as error:
            return HuntReport(self, "error", errors.fault_text(error, "run your test"))
        report.printed = printed
        return report

    def run(self, test, started_functions):
        return run_hunt(self, test, started_functions)


# Running the test


class FunctionUnderTest:
    """Wraps a function for the test: the wrapper has the exercise's parameters, and hides which function it calls."""

    def __init__(self, exercise, function):
        self._exercise, self._function = exercise, function
        self._calls, self._inspected = [], set()

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
        """Record that the learner's code reads an attribute that the wrapper lacks, such as a function's code."""
        frame, library_functions = sys._getframe(1), []
        while frame is not None and errors.is_library(frame):
            library_functions.append(frame.f_code.co_name)
            frame = frame.f_back
        if not library_functions:
            self._inspected.add(f"`f.{name}`")
        elif "getsourcelines" in library_functions or "getsourcefile" in library_functions:
            self._inspected.add("the source of `f`")
        if name in ("__name__", "__qualname__"):
            return self._exercise.name
        raise AttributeError(f"{self!r} has no attribute {name!r}")


@cache
def signature(exercise):
    """Return the signature of an exercise's function, without the stages of its reference."""
    full_signature = inspect.signature(exercise.reference)
    parameters = [p for p in full_signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    return full_signature.replace(parameters=parameters)


class Trial:
    """One run of a test on a function ``f``.

    ``error`` is what the test raised; ``passed`` says whether the test accepted ``f``.
    """

    def __init__(self, exercise, test, function):
        self.answer = answer = FunctionUnderTest(exercise, function)
        self.error, returned_value, self.changed_variables = None, None, []
        with settings_kept(CALL_SETTINGS):  # the random numbers are then the same for each function
            settings_before = _read_settings()
            try:
                returned_value = Timed(test)(answer)
            except BaseException as error:  # also SystemExit: the test may call exit()
                if is_stop(error):
                    raise
                self.error = error
            self.changed_settings = [name for name, value in _read_settings().items() if value != settings_before[name]]
        self.passed = self.error is None and not _is_false(returned_value)


def _is_false(returned_value):
    is_bool = str(getattr(returned_value, "dtype", "")) in ("torch.bool", "bool")  # a PyTorch or NumPy bool
    return not returned_value.all() if is_bool else returned_value is False


def _read_settings():
    """Return a dict from setters' names to the session's settings, without random seeds, which a test may set."""
    readers = {set_value.__name__: get for get, set_value in SETTINGS}
    return {name: get() for name, get in readers.items() if name.startswith(("set_default", "set_num"))}


def run_hunt(hunt, test, started_functions):
    """Return the report on a test. Each function is appended to ``started_functions`` before the test runs on it."""
    exercise = hunt.exercise
    external_state = ExternalState(test)

    def run_on(function):
        started_functions.append(function)
        trial = Trial(exercise, test, function)
        trial.changed_variables = external_state.restore()
        return trial

    first_trial = run_on(exercise.reference)
    if reason := unwritten_text(test, first_trial.error):
        return HuntReport(hunt, "not attempted", reason.strip())
    if reason := inspection_text(exercise, first_trial):
        return HuntReport(hunt, "error", reason)
    right_answers = (exercise.reference, *exercise.equivalents.values())
    known_kinds = kinds_by_id(exercise)
    refused = [function for function in right_answers if not run_on(function).passed]
    escaped = {id: kind for id, kind in known_kinds.items() if run_on(exercise.mistakes[id].function).passed}
    report = HuntReport(
        hunt, "incorrect", caught=len(known_kinds) - len(escaped), known=len(known_kinds), refused=len(refused)
    )
    if refused:
        paragraphs = [refusal_text(exercise, test, refused, len(right_answers))]
    elif not escaped:
        report.status, paragraphs = "correct", [all_accepted_text(right_answers)]
    else:
        report.kinds = count_kinds(escaped, known_kinds)
        largest_kind = {id: kind for id, kind in escaped.items() if kind.description == report.kinds[0][0]}
        summary = f"{all_accepted_text(right_answers)} {report.next_star_text()}"
        paragraphs = [summary, describe_smallest(exercise, largest_kind)]
        if run_on(return_nothing).passed:
            paragraphs.insert(0, NONE_PASSES_TEXT)
        elif run_on(nonsense_function(exercise)).passed:
            paragraphs.insert(0, NONSENSE_PASSES_TEXT)
    report.message = "\n\n".join(filter(None, [*paragraphs, side_effects_text(first_trial)]))
    return report


def return_nothing(*arguments):
    """Return nothing."""


def nonsense_function(exercise):
    """Return a function whose results have the correct types, but are otherwise wrong."""

    def nonsense(value):
        if isinstance(value, torch.Tensor):
            return value.new_zeros(1, *value.shape)
        if isinstance(value, (tuple, list)) and tensors_in(value):
            return type(value)(map(nonsense, value))
        return (*value, 0) if isinstance(value, (tuple, list)) else -1

    return lambda *arguments: nonsense(exercise.reference(*arguments))


NONE_PASSES_TEXT = "Even a function that returns `None` passes your test. Does the test look at the result?"
NONSENSE_PASSES_TEXT = (
    "Even a function that returns nonsense passes your test. Does the test look at the result? A comparison alone "
    "rejects nothing: write `assert` or `return` in front of it."
)


class ExternalState:
    """The session's variables to which a test's code refers, and the tensors in them.

    A known mistake may change its arguments, and so may a test; the next function must not see the changes.
    """

    def __init__(self, test):
        self.variables = []  # (namespace, name, value, tensors in the value, copies of these tensors)
        for namespace, name in _outside_variables(test):
            value = namespace[name]
            tensors = tensors_in(value)
            self.variables.append((namespace, name, value, tensors, [tensor.detach().clone() for tensor in tensors]))

    def restore(self):
        """Restore the variables that have changed, and return their names."""
        changed_names = []
        for namespace, name, value, tensors, copies in self.variables:
            changed_tensors = [pair for pair in zip(tensors, copies) if not agree(pair[0].detach(), pair[1])]
            if changed_tensors or namespace.get(name) is not value:
                changed_names.append(name)
            for tensor, copy in changed_tensors:
                tensor.data = copy.clone()
            namespace[name] = value
        return changed_names


def _outside_variables(test, visited=()):
    """Yield (namespace, name) for each outside variable used by a function or by the functions that it calls."""
    if not isinstance(test, types.FunctionType) or test in visited:
        return
    codes = [test.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    cells = {}
    for name, cell in zip(test.__code__.co_freevars, test.__closure__ or ()):
        with contextlib.suppress(ValueError):  # the closure's cell is still empty
            cells[name] = cell.cell_contents
    defaults = dict(enumerate(test.__defaults__ or ()))
    for name in dict.fromkeys(name for code in codes for name in code.co_names):
        value = test.__globals__.get(name)
        if isinstance(value, types.FunctionType) and value.__globals__ is test.__globals__:
            yield from _outside_variables(value, (*visited, test))
        elif name in test.__globals__:
            yield test.__globals__, name
    for namespace in (cells, defaults):
        yield from ((namespace, name) for name in namespace)


# The messages


def all_accepted_text(right_answers):
    """Say that the test accepts all correct answers."""
    return f"Your test accepts all {len(right_answers)} right answers."


def too_long_text(n_started, timeout):
    """Say that a test did not end, or was too slow to run on all functions."""
    if n_started > 1:
        return (
            f"Your test is too slow: the time limit of {timeout.seconds:g} seconds was reached after {n_started - 1} "
            "functions, and the test must run on many more. With smaller sizes, the test shows the same mistakes, and "
            "is usually faster. Which line of the test takes longest?"
        )
    return errors.timed_out_text(timeout, "test")


def unwritten_text(test, error):
    """Say that the test, or a function that it calls, is not written yet; an empty string if both are written."""
    if not errors.is_stub(error):
        return ""
    return errors.not_written_text(test, error).replace("Your function", "Your test") or " "


def inspection_text(exercise, first_trial):
    """Say that the test inspects the function instead of calling it; an empty string if the test calls the function."""
    inspected = ", ".join(sorted(first_trial.answer._inspected))
    if inspected:
        return (
            f"Your test looks at {inspected}. All functions have the same name and the same wrapper, "
            "which tell your test nothing. Call `f`, and look at what it returns."
        )
    if first_trial.error is None and not first_trial.answer._calls:
        return "Your test never calls `f`, so it cannot tell one function from another."
    return ""


def side_effects_text(trial):
    """Say what a test changed outside itself."""
    if trial.changed_variables:
        names = ", ".join(f"`{name}`" for name in trial.changed_variables)
        return (
            f"Your test changes {names}, which is outside the test. The check restored the old value after each "
            "function; otherwise the second function would have received different inputs. Make the inputs inside the "
            "test."
        )
    if trial.changed_settings:
        setting = trial.changed_settings[0]
        return f"Your test changes a setting of the whole session, `{setting}`. The setting was restored."
    return ""


def refusal_text(exercise, test, refused, count):
    """Say which correct answers a test rejects, and why the rejection is wrong."""
    trial = Trial(exercise, test, refused[0])
    rejection_text = "Your test returns False."
    if trial.error is not None:
        rejection_text = errors.describe_error(exercise, None, Probe("", ()), trial.error)
    if refused[0] is exercise.reference:
        others_text = " and every other right answer" if len(refused) == count else ""
        return (
            f"Your test refuses the course's own function{others_text}, so it gets no star.\n\n{rejection_text}\n\n"
            "What `f` returned is right. Work out by hand what your test expects, and allow for rounding."
        )
    return (
        f"Your test refuses {len(refused)} of {count} right answers, so it gets no star. With one of them, this "
        f"happens:\n\n{rejection_text}\n\n{why_right_text(exercise, trial)}"
    )


def why_right_text(exercise, trial):
    """Say how a rejected correct answer behaves, and why its behaviour is right."""
    function, is_exact = trial.answer._function, True
    for arguments in trial.answer._calls:
        probe = Probe("", arguments)
        got, expected = (observe(exercise, f, probe) for f in (function, exercise.reference))
        if got.error_text != expected.error_text:
            behaviour = f"raises `{type(got.error).__name__}`" if got.error else "raises nothing"
            return (
                f"For {arguments_text(exercise, probe)}, that answer {behaviour}, unlike the course's own function. "
                "The docstring promises nothing for such an input: try the inputs that it names."
            )
        if got.error is None and not agree(got.value, expected.value):
            return (
                f"For {arguments_text(exercise, probe)}, that answer differs from the course's own function: "
                f"{contrast_text(exercise, probe, got, expected, 'the course returns')} The docstring "
                "allows both results: try the inputs that it names."
            )
        pairs = zip(tensors_in(got.value), tensors_in(expected.value))
        is_exact = is_exact and all(torch.allclose(*pair, 0, 0, equal_nan=True) for pair in pairs)
    if is_exact:
        return (
            "That answer returns exactly the same numbers as the course's own function. The docstring does not "
            "promise what else your test requires."
        )
    return (
        "That answer computes the same sums as the course's own function, but in a different order, so its numbers are "
        "the same up to rounding. Allow for rounding: `torch.allclose(…)`, not `==` or `torch.equal`."
    )
