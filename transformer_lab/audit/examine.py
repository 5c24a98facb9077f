"""Runs the properties on a model, one after the other, and leaves model and session as they were."""

import contextlib
import io
import time
import warnings

import torch

from ..arguments import did_you_mean
from ..checks.observe import settings_kept
from . import trial as trials_of
from .card import AuditReport
from .properties import NEEDS, PROPERTIES
from .trial import DTYPES, OTHER_LENGTHS, Fails, NotTried, TooLong, Trial, Wrong, first_line, limited


def examine(options):
    """Return the report of an audit."""
    start, notes = time.perf_counter(), []
    reasons = expected(options.expect, notes)
    with left_alone(options.model):
        trials, error = start_trials(options, notes)
        rows = []
        for name, function in PROPERTIES.items():
            if name in reasons:
                row = "not tried", f"switched off{reasons[name]}"
            elif error and name == "twice the same":
                row = "raises", error
            elif error and NEEDS[name] != "nothing":
                row = "not tried", "the model has no output"
            elif rows and rows[0][1] == "fails" and NEEDS[name] == "equal":
                row = "not tried", "equal inputs do not give equal outputs"
            else:
                row = confirmed(function, trials)
            rows.append((name, *row))
    return AuditReport(type(options.model).__name__, rows, notes, time.perf_counter() - start)


def expected(expect, notes):
    """Return what is said of each property that is switched off."""
    reasons = (
        {name: f": {reason}" for name, reason in expect.items()}
        if isinstance(expect, dict)
        else dict.fromkeys(expect, "")
    )
    for name in reasons.keys() - PROPERTIES.keys():
        notes.append(f"`expect` names no property of the audit with {name!r}{did_you_mean(str(name), PROPERTIES)}")
    return reasons


@contextlib.contextmanager
def left_alone(model):
    """Keep the model's weights and modes, and the session's settings; what the model prints and warns is dropped."""
    modes = {module: module.training for module in model.modules()}
    with settings_kept(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for module, training in modes.items():
                module.training = training


def start_trials(options, notes):
    """Return the trials in each dtype in which the model runs, and an error where it runs in none."""
    uncopyable = trials_of.why_uncopyable(options.model)
    trials, error = first_runs(options, uncopyable, notes)
    if not error and not uncopyable and (uncopyable := trials_of.runs_the_original(trials[-1])):
        trials, error = first_runs(options, uncopyable, [])
    if uncopyable:
        notes.append(
            f"{uncopyable[0].upper()}{uncopyable[1:]}: the original is audited, and what needs a copy is not tried."
        )
    return trials, error


def first_runs(options, uncopyable, notes):
    if uncopyable:
        options.model.eval()
    first_error = ""
    for length in dict.fromkeys((options.length, *OTHER_LENGTHS)):
        trials = []
        for settings in DTYPES[-1:] if uncopyable else DTYPES:
            begin = time.perf_counter()
            try:
                with limited(trials_of.SECONDS):
                    trial = Trial(options, *settings, uncopyable)
                    trial.start(length)
                trial.seconds = max(trials_of.SECONDS, 200 * (time.perf_counter() - begin))
                trials.append(trial)
            except TooLong:
                return [
                    plain(options, uncopyable)
                ], f"the model did not come to an end within {trials_of.SECONDS} seconds"
            except Exception as error:
                error_text = str(error) if isinstance(error, Wrong) else first_line(error)
        if trials:
            if length != options.length:
                notes.append(
                    f"The model takes no {options.length} tokens ({first_error}): it is audited with {length}."
                )
            return trials, ""
        first_error = first_error or error_text
    return [plain(options, uncopyable)], first_error + advice(first_error, options)


def plain(options, uncopyable):
    """A trial for the properties that need no outputs."""
    trial = Trial(options, *DTYPES[-1], uncopyable)
    trial.seconds = trials_of.SECONDS
    return trial


def advice(error, options):
    """What to do where the model runs on no input."""
    if options.vocab_size is None:
        wants_tokens = "indices" in error or "Long" in error
        return ". Does it take token numbers? Pass vocab_size= and not d_model=" if wants_tokens else ""
    if "index out of range" in error:
        return ". Is vocab_size more than its embedding has?"
    if any(word in error for word in ("Long", "int64", "dtype")):
        return ". Does it take vectors? Pass d_model= and not vocab_size="
    return ". Pass forward=forward(model, x), which calls it" if "argument" in error else ""


def confirmed(function, trials):
    """Ask in float64; where the answer is not that it holds, ask in float32 as well, which decides."""
    status, text = ask(function, trials[0])
    if status in ("fails", "raises") and len(trials) > 1:
        single, said = ask(function, trials[1])
        if status == "raises" and single != "raises":
            return single, said
        if single in ("holds", "not tried"):
            return single, f"{said + '; ' if said else ''}in float64 alone: {text}"
    return status, text


def ask(function, trial):
    """Return the status of a property and what is said of it."""
    torch.manual_seed(1)
    try:
        with limited(trial.seconds):
            return "holds", function(trial) or ""
    except NotTried as reason:
        return "not tried", str(reason)
    except Fails as example:
        return "fails", str(example)
    except TooLong:
        return "raises", f"it did not come to an end within {trial.seconds:.0f} seconds"
    except Wrong as rule:
        return "raises", str(rule)
    except Exception as error:
        return "raises", first_line(error)
