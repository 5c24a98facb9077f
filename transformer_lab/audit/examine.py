"""Evaluate the properties of a model, one after the other, and leave the model and the session unchanged."""

import contextlib
import io
import time
import warnings

import torch

from ..arguments import did_you_mean
from ..checks.observe import settings_kept
from . import limit
from .card import AuditReport
from .properties import NEEDS, PROPERTIES
from .trial import (
    OTHER_LENGTHS,
    PRECISIONS,
    Fails,
    NotTried,
    Trial,
    WrongForm,
    describe_shared_parameter,
    find_copy_error,
    first_line,
)


def examine(options):
    """Return the report of an audit."""
    start, notes = time.perf_counter(), []
    reasons = reasons_to_skip(options.expect, notes)
    with session_unchanged(options.model):
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
                row = evaluate_in_both_precisions(function, trials)
            rows.append((name, *row))
    return AuditReport(type(options.model).__name__, rows, notes, time.perf_counter() - start)


def reasons_to_skip(expect, notes):
    """Return a dict that maps each property in ``expect`` to the end of its text on the card."""
    reasons = {name: f": {expect[name]}" if isinstance(expect, dict) else "" for name in expect}
    for name in reasons:
        if name not in PROPERTIES:
            notes.append(
                f"`expect` contains {name!r}, which is not a property of the audit{did_you_mean(str(name), PROPERTIES)}"
            )
    return reasons


@contextlib.contextmanager
def session_unchanged(model):
    """Restore the model's numbers and modes and the session's settings; discard printed output and warnings."""
    modes = [(module, module.training) for module in model.modules()]
    tensors = [(x, x.detach().clone(), x.grad) for x in (*model.parameters(), *model.buffers())]
    with settings_kept(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        # needed even though copies are audited: if a model cannot be copied, the original is run, and an adapter may
        # run the original in any case
        finally:
            for module, training in modes:
                module.training = training
            for tensor, values, gradient in tensors:
                tensor.data.copy_(values)
                tensor.grad = gradient


def start_trials(options, notes):
    """Return the trials, one for each dtype in which the model runs, and an error text if the model runs in none."""
    copy_error = find_copy_error(options.model)
    trials, error = run_first_trials(options, copy_error, notes)
    if not error and not copy_error and (copy_error := describe_shared_parameter(trials[-1])):
        trials, error = run_first_trials(options, copy_error, [])
    if copy_error:
        reason = copy_error[0].upper() + copy_error[1:]
        notes.append(f"{reason}: the original is audited, and properties that need a copy are not tried.")
    return trials, error


def run_first_trials(options, copy_error, notes):
    """Start trials at the requested length, or at the first of `OTHER_LENGTHS` that the model accepts."""
    if copy_error:
        options.model.eval()
    errors = []  # one error for each length, from the last dtype tried, since some devices have no float64
    for length in dict.fromkeys((options.length, *OTHER_LENGTHS)):
        trials, error_text = [], ""
        for precision in PRECISIONS[-1:] if copy_error else PRECISIONS:
            try:
                trial = Trial(options, *precision, copy_error)
                with limit.time_limit(limit.SECONDS):
                    trial.start(length)
                trials.append(trial)
            except limit.TimeLimitExceeded:
                return [trial], f"the model did not come to an end within {limit.SECONDS} seconds"
            except Exception as error:
                error_text = str(error) if isinstance(error, WrongForm) else first_line(error)
        errors.append(error_text)
        if trials:
            if length != options.length:
                reason = f"The model does not accept {options.length} tokens ({errors[0]})"
                notes.append(f"{reason}: it is audited with {length} tokens.")
            return trials, ""
    return [Trial(options, *PRECISIONS[-1], copy_error)], errors[0] + advice(errors[0], options)


def advice(error, options):
    """Return a suggestion for a model that raised an error on every input, or an empty string."""
    if options.vocab_size is None:
        wants_tokens = "indices" in error or "Long" in error
        return ". Does the model take token ids? Pass vocab_size= and not d_model=" if wants_tokens else ""
    if "index out of range" in error:
        return ". Is vocab_size larger than the model's embedding?"
    if any(word in error for word in ("Long", "int64", "dtype")):
        return ". Does the model take vectors? Pass d_model= and not vocab_size="
    return ". Pass forward=, a function of (model, x) that calls the model" if "positional argument" in error else ""


def evaluate_in_both_precisions(function, trials):
    """Evaluate a property in float64; if the property does not hold there, the result in float32 decides."""
    status, text = evaluate(function, trials[0])
    if status in ("fails", "raises") and len(trials) > 1:
        float32_status, float32_text = evaluate(function, trials[1])
        if status == "raises" and float32_status != "raises":
            return float32_status, float32_text
        if float32_status in ("holds", "not tried"):
            return float32_status, f"{float32_text + '; ' if float32_text else ''}fails only in float64: {text}"
    return status, text


def evaluate(function, trial):
    """Return the status of a property, and the text for the card."""
    torch.manual_seed(1)
    try:
        with limit.time_limit(trial.seconds):
            return "holds", function(trial) or ""
    except NotTried as reason:
        return "not tried", str(reason)
    except Fails as example:
        return "fails", str(example)
    except limit.TimeLimitExceeded:
        return "raises", f"the test did not come to an end within {trial.seconds:.0f} seconds"
    except WrongForm as rule:
        return "raises", str(rule)
    except Exception as error:
        return "raises", first_line(error)
