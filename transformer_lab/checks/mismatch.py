"""Differences between a result and the expected one in type, shape, dtype, device and side effects."""

import torch

from .agree import agree, as_int, tensors_in
from .words import axis_words, dtype_name, in_words, result_names


def mismatch(exercise, probe, got, expected):
    """Describe the first difference apart from the numbers: type, shape, dtype, device, changed arguments or facts."""
    if got.error is not None or expected.error is not None:
        return ""
    value, right = got.value, expected.value
    words = axis_words(exercise, probe)
    if value is None:
        return "Here your function returns `None`. Is a `return` missing?"
    if isinstance(right, torch.Tensor) and not isinstance(value, torch.Tensor):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tensor."
    if isinstance(right, tuple) and not isinstance(value, (tuple, list)):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tuple."
    if tensors_in(right) and isinstance(right, tuple) and len(value) != len(right):
        return f"Your function returns {len(value)} values; it must return {len(right)}."
    if type(right) is int and not isinstance(value, float) and as_int(value) is None:
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a whole number."
    if isinstance(right, tuple) and (message := _item_mismatch(value, right, "your result")):
        return message
    names = result_names(right)
    for name, mine, theirs in zip(names, tensors_in(value), tensors_in(right)):
        subject = "Your result" if len(names) == 1 else f"The {name}"
        if mine.is_nested:
            return f"{subject} is a nested tensor, and should be an ordinary one."
        if mine.shape != theirs.shape:
            actual, required = in_words(mine.shape, words), in_words(theirs.shape, words)
            return f"{subject} has the shape {actual}, and should have {required}."
        if mine.dtype != theirs.dtype:
            return f"{subject} is of {dtype_name(mine.dtype)}, and should be of {dtype_name(theirs.dtype)}."
        if mine.device.type != theirs.device.type or mine.layout != theirs.layout:
            actual, required = (f"a tensor on `{t.device.type}`, {dtype_name(t.layout)}" for t in (mine, theirs))
            return f"{subject} is {actual}, and should be {required}."
    if got.changed:
        return (
            f"Your function changes its argument `{got.changed}`, so the caller's tensor has other numbers afterwards. "
            "An in-place operation does that: `+=`, `x[…] = …`, or a method whose name ends in an underscore."
        )
    for fact in (expected.facts or ()) if agree(value, right) else ():
        right_value, value_found = expected.facts[fact], (got.facts or {}).get(fact)
        if value_found != right_value:
            return f"The numbers are right, but one thing is wrong: {fact} (should be {right_value}, is {value_found})."
    return ""


def _item_mismatch(value, right, whole_result):
    """Say which item of a result, or of a tuple in it, has the wrong type or length."""
    for number, (mine, theirs) in enumerate(zip(value, right), 1):
        item = f"item {number} of {whole_result}"
        if isinstance(theirs, torch.Tensor) and not isinstance(mine, torch.Tensor):
            return f"{item.capitalize()} is of type `{type(mine).__name__}`; it must be a tensor."
        if isinstance(theirs, tuple) and tensors_in(theirs):
            if not isinstance(mine, (tuple, list)):
                return f"{item.capitalize()} is of type `{type(mine).__name__}`; it must be a tuple."
            if len(mine) != len(theirs):
                return f"{item.capitalize()} has the length {len(mine)}; it must have the length {len(theirs)}."
            if message := _item_mismatch(mine, theirs, item):
                return message
    return ""
