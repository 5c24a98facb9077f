"""Describes how a result differs from the expected result in type, shape, dtype, device or side effects."""

import torch

from .agree import agree, as_int, tensors_in
from .words import axis_words, dtype_name, in_words, result_names


def describe_mismatch(exercise, probe, got, expected):
    """Describe the first difference that is not a wrong number.

    This is a different type, shape, dtype or device, a changed argument, or a different fact.
    """
    if got.error is not None or expected.error is not None:
        return ""
    value, expected_value = got.value, expected.value
    words = axis_words(exercise, probe)
    if value is None:
        return "Here your function returns `None`. Is a `return` missing?"
    if isinstance(expected_value, torch.Tensor) and not isinstance(value, torch.Tensor):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tensor."
    if isinstance(expected_value, tuple) and not isinstance(value, (tuple, list)):
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a tuple."
    if tensors_in(expected_value) and isinstance(expected_value, tuple) and len(value) != len(expected_value):
        return f"Your function returns {len(value)} values; it must return {len(expected_value)}."
    if type(expected_value) is int and not isinstance(value, float) and as_int(value) is None:
        return f"Your function returns a value of type `{type(value).__name__}`; it must be a whole number."
    if isinstance(expected_value, tuple) and (message := _describe_item_mismatch(value, expected_value, "your result")):
        return message
    names = result_names(expected_value)
    for name, tensor, expected_tensor in zip(names, tensors_in(value), tensors_in(expected_value)):
        subject = "Your result" if len(names) == 1 else f"The {name}"
        if tensor.is_nested:
            return f"{subject} is a nested tensor, but should be an ordinary one."
        if tensor.shape != expected_tensor.shape:
            actual, required = in_words(tensor.shape, words), in_words(expected_tensor.shape, words)
            return f"{subject} has the shape {actual}, but should have {required}."
        if tensor.dtype != expected_tensor.dtype:
            return f"{subject} is of {dtype_name(tensor.dtype)}, but should be of {dtype_name(expected_tensor.dtype)}."
        if tensor.device.type != expected_tensor.device.type or tensor.layout != expected_tensor.layout:
            actual, required = (
                f"a tensor on `{t.device.type}`, {dtype_name(t.layout)}" for t in (tensor, expected_tensor)
            )
            return f"{subject} is {actual}, but should be {required}."
    if got.changed_argument:
        return (
            f"Your function changes its argument `{got.changed_argument}`, so the caller's tensor contains different "
            "numbers afterwards. The cause is an in-place operation: `+=`, `x[…] = …`, or a method whose name ends "
            "in an underscore."
        )
    for fact in (expected.facts or ()) if agree(value, expected_value) else ():
        expected_fact, actual_fact = expected.facts[fact], (got.facts or {}).get(fact)
        if actual_fact != expected_fact:
            return (
                f"The numbers are right, but one thing is wrong: {fact} (should be {expected_fact}, is {actual_fact})."
            )
    return ""


def _describe_item_mismatch(value, expected_value, whole_result):
    """Say which item of a result, or of a tuple in it, has the wrong type or length."""
    for number, (item, expected_item) in enumerate(zip(value, expected_value), 1):
        subject = f"item {number} of {whole_result}"
        if isinstance(expected_item, torch.Tensor) and not isinstance(item, torch.Tensor):
            return f"{subject.capitalize()} is of type `{type(item).__name__}`; it must be a tensor."
        if isinstance(expected_item, tuple) and tensors_in(expected_item):
            if not isinstance(item, (tuple, list)):
                return f"{subject.capitalize()} is of type `{type(item).__name__}`; it must be a tuple."
            if len(item) != len(expected_item):
                return (
                    f"{subject.capitalize()} has the length {len(item)}; it must have the length {len(expected_item)}."
                )
            if message := _describe_item_mismatch(item, expected_item, subject):
                return message
    return ""
