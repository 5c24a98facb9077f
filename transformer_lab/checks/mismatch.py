"""Differences between a result and the expected one in type, shape, dtype, device and side effects."""

import torch

from .agree import agree, as_int, tensors_in
from .words import axis_words, dtype_name, in_words, result_names


def describe_mismatch(exercise, probe, got, expected):
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
    if isinstance(right, tuple) and (message := _describe_item_mismatch(value, right, "your result")):
        return message
    names = result_names(right)
    for name, tensor, right_tensor in zip(names, tensors_in(value), tensors_in(right)):
        subject = "Your result" if len(names) == 1 else f"The {name}"
        if tensor.is_nested:
            return f"{subject} is a nested tensor, and should be an ordinary one."
        if tensor.shape != right_tensor.shape:
            actual, required = in_words(tensor.shape, words), in_words(right_tensor.shape, words)
            return f"{subject} has the shape {actual}, and should have {required}."
        if tensor.dtype != right_tensor.dtype:
            return f"{subject} is of {dtype_name(tensor.dtype)}, and should be of {dtype_name(right_tensor.dtype)}."
        if tensor.device.type != right_tensor.device.type or tensor.layout != right_tensor.layout:
            actual, required = (
                f"a tensor on `{t.device.type}`, {dtype_name(t.layout)}" for t in (tensor, right_tensor)
            )
            return f"{subject} is {actual}, and should be {required}."
    if got.changed_argument:
        return (
            f"Your function changes its argument `{got.changed_argument}`, so the caller's tensor has other numbers "
            "afterwards. An in-place operation does that: `+=`, `x[…] = …`, or a method whose name ends in an "
            "underscore."
        )
    for fact in (expected.facts or ()) if agree(value, right) else ():
        right_value, value_found = expected.facts[fact], (got.facts or {}).get(fact)
        if value_found != right_value:
            return f"The numbers are right, but one thing is wrong: {fact} (should be {right_value}, is {value_found})."
    return ""


def _describe_item_mismatch(value, right, whole_result):
    """Say which item of a result, or of a tuple in it, has the wrong type or length."""
    for number, (item, right_item) in enumerate(zip(value, right), 1):
        subject = f"item {number} of {whole_result}"
        if isinstance(right_item, torch.Tensor) and not isinstance(item, torch.Tensor):
            return f"{subject.capitalize()} is of type `{type(item).__name__}`; it must be a tensor."
        if isinstance(right_item, tuple) and tensors_in(right_item):
            if not isinstance(item, (tuple, list)):
                return f"{subject.capitalize()} is of type `{type(item).__name__}`; it must be a tuple."
            if len(item) != len(right_item):
                return f"{subject.capitalize()} has the length {len(item)}; it must have the length {len(right_item)}."
            if message := _describe_item_mismatch(item, right_item, subject):
                return message
    return ""
