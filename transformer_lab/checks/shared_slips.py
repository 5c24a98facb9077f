"""Slips, small mistakes possible in every exercise: a wrong dtype, an argument changed in place, axes in a wrong order.

No exercise lists them among its mistakes. A slip can be undone: this module computes the outcome that the function
would have without the slip. `diagnose` then compares the new outcomes with the known mistakes, so that a mistake is
recognized even if the function also makes a slip. The text of a slip must be true whatever else is wrong.

`common_mistakes` is different: each of its functions adds a mistake only to the exercises that call the function.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from .agree import is_readable, tensors_in
from .gradients import gradients_flow
from .mismatch import describe_mismatch


class Slip(NamedTuple):
    """A slip, how it is undone, and the explanation that a card shows after the description by `describe_mismatch`."""

    id: str
    undo: Callable  # undo(exercise, got, expected): the outcome without the slip, or `got` itself if it shows no slip
    explanation: str


class UndoneSlip(NamedTuple):
    """A slip that a function makes, with the outcomes of all probes before and after it is undone."""

    slip: Slip
    before: list
    after: list

    def message(self, exercise):
        """Describe the slip on the first probe that shows it, and explain it."""
        rows = zip(exercise.probes, self.before, self.after)
        probe, before, after = next((row for row in rows if row[1] is not row[2]), (None, None, None))
        if probe is None or not (symptom := describe_mismatch(exercise, probe, before, after)):
            return self.slip.explanation
        return f"{'' if probe.plain else f'With {probe.name}: '}{symptom} {self.slip.explanation}"


def undo_slip(exercise, outcomes, slip):
    """Undo a slip on every probe; return None if no outcome shows it."""
    after = [slip.undo(exercise, got, expected) for got, expected in zip(outcomes, exercise.expected)]
    is_unchanged = all(before is outcome for before, outcome in zip(outcomes, after))
    return None if is_unchanged else UndoneSlip(slip, list(outcomes), after)


def undo_visible_slips(exercise, outcomes):
    """Undo, one by one, the slips that change more than the order of numbers, such as a wrong dtype; return them."""
    undone_slips = []
    for slip in VISIBLE_SLIPS:
        if undone_slip := undo_slip(exercise, undone_slips[-1].after if undone_slips else outcomes, slip):
            undone_slips.append(undone_slip)
    return undone_slips


def undo_reordering_slips(exercise, outcomes):
    """Yield an `UndoneSlip`, or None, for each slip that changes only the order of numbers (axes or items)."""
    expected, got = exercise.expected[0].value, outcomes[0].value
    slips = []
    if isinstance(expected, tuple) and isinstance(got, (tuple, list)) and 1 < len(expected) == len(got):
        orders = _other_orders(len(expected)) if tensors_in(expected) else [tuple(range(len(expected)))[::-1]]
        slips += [Slip("items_in_another_order", _undo_item_order(order), ITEMS_EXPLANATION) for order in orders]
    elif isinstance(expected, torch.Tensor) and isinstance(got, torch.Tensor) and is_readable(got):
        orders = [order for order in _other_orders(expected.ndim) if got.shape == expected.permute(order).shape]
        slips += [
            Slip("axes_in_another_order", _undo_axis_order(order), AXES_EXPLANATION.format(order)) for order in orders
        ]
    yield from (undo_slip(exercise, outcomes, slip) for slip in slips)


def gradient_slip(exercise, function, equivalent):
    """Return an `UndoneSlip` if a function cuts gradients off but ``equivalent`` does not; otherwise None."""
    have_gradients = [gradients_flow(f, exercise.probes[0]) for f in (equivalent, function)]
    return (
        UndoneSlip(Slip("cut_off_from_gradients", lambda exercise, got, expected: got, CUT_OFF_EXPLANATION), [], [])
        if have_gradients == [True, False]
        else None
    )


# Slips that change more than the order of numbers


def _undo_by_values(change):
    """Return a `Slip.undo` that applies ``change(got, expected)`` to each tensor or number of a result."""

    def undo(exercise, got, expected):
        if got.error is not None or expected.error is not None or got.value is None:
            return got
        value = _change_in_pairs(change, got.value, expected.value)
        if value is got.value:
            return got
        dtypes = [tensor.dtype for tensor in tensors_in(got.value) if tensor.is_floating_point()]
        return replace(got, value=value, rounded_to=dtypes[0] if dtypes else got.rounded_to)

    return undo


def _change_in_pairs(change, got, expected):
    if not (isinstance(expected, (tuple, list)) and isinstance(got, (tuple, list)) and len(got) == len(expected)):
        return change(got, expected)
    items = tuple(_change_in_pairs(change, *pair) for pair in zip(got, expected))
    return got if all(one is other for one, other in zip(items, got)) else items


def _to_tensor(got, expected):
    if not isinstance(expected, torch.Tensor) or isinstance(got, torch.Tensor) or (tensor := _as_tensor(got)) is None:
        return got
    converted = _cast(tensor.to(expected.device), expected.dtype)
    return got if converted is None else converted


def _to_tuple(got, expected):
    if isinstance(expected, tuple) and isinstance(got, (torch.Tensor, np.ndarray)) and got.ndim:
        return tuple(map(torch.as_tensor, got)) if tensors_in(expected) else tuple(got.tolist())
    return got


def _as_tensor(value):
    try:
        if isinstance(value, (tuple, list)) and tensors_in(value):
            return torch.stack([_as_tensor(item) for item in value])
        return value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError, RuntimeError):
        return None


def _cast(tensor, dtype):
    """Convert a tensor to a dtype; return None if numbers would change by more than rounding. Finite numbers stay
    finite."""
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        if tensor.is_floating_point() and torch.finfo(tensor.dtype).max > limits.max:
            tensor = torch.where(tensor.isfinite(), tensor.clamp(limits.min, limits.max), tensor)
        return tensor.to(dtype)
    converted = tensor.to(dtype)
    return converted if torch.equal(converted.to(tensor.dtype), tensor) else None


def _undo_dtype(is_slip):
    def change(got, expected):
        tensors = [each for each in (got, expected) if isinstance(each, torch.Tensor) and is_readable(each)]
        if len(tensors) < 2 or got.dtype == expected.dtype or not is_slip(got.dtype, expected.dtype):
            return got
        converted = _cast(got, expected.dtype)
        return got if converted is None else converted

    return _undo_by_values(change)


def _restore_axes_of_size_one(got, expected):
    if not isinstance(got, torch.Tensor) or not isinstance(expected, torch.Tensor) or got.ndim == expected.ndim:
        return got
    sizes = [[size for size in tensor.shape if size != 1] for tensor in (got, expected)]
    return got.reshape(expected.shape) if sizes[0] == sizes[1] else got


def _to_int(got, expected):
    if isinstance(expected, tuple) and isinstance(got, (tuple, list)) and not tensors_in(expected):
        # `got` and `expected` may differ in length
        return _change_in_pairs(_to_int, got, tuple(0 for _ in got))
    return int(got) if type(expected) is int and isinstance(got, float) and got.is_integer() else got


def _undo_change_in_place(exercise, got, expected):
    return replace(got, changed_argument=None) if got.changed_argument and not expected.changed_argument else got


def _undo_error_class(exercise, got, expected):
    is_other_class = isinstance(got.error, Exception) and not isinstance(
        got.error, (exercise.raises or Exception, *UNINTENDED_ERRORS)
    )
    if not is_other_class or (expected.error is None and not isinstance(got.error, AssertionError)):
        return got
    return replace(got, error=exercise.raises(), error_text=exercise.raises.__name__, rejected_operation=None)


UNINTENDED_ERRORS = (AttributeError, ImportError, NameError, RecursionError)  # never raised on purpose

VISIBLE_SLIPS = (
    Slip(
        "not_a_tensor",
        _undo_by_values(_to_tensor),
        "Numbers that have left PyTorch, by `.tolist()`, `.item()` or NumPy, have no gradient, and the next line that "
        "needs a tensor rejects them. `torch.stack(…)` joins several tensors into one.",
    ),
    Slip(
        "not_a_tuple",
        _undo_by_values(_to_tuple),
        "Separate several results by commas, as in `return a, b`; `.tolist()` turns a tensor into Python's numbers.",
    ),
    Slip(
        "as_float",
        _undo_by_values(_to_int),
        "Your result is a float, such as `6.0`, but the exercise asks for an int. Python treats `6.0` and `6` "
        "as equal, but `range`, an index and a shape accept only the int; a float also loses digits, from 2**53 on. A "
        "division with `/` returns a float even if there is no remainder, as does every product with a number such as "
        "`2.0`. `//` keeps ints.",
    ),
    Slip(
        "in_float32",
        _undo_dtype(lambda got, expected: got == torch.float32 and expected.is_floating_point),
        "The result is in float32 whatever the dtype of the arguments: float64 numbers lose half of their digits. The "
        "cause is a `.float()`, or a tensor made by `torch.zeros` or `torch.empty` without a dtype, into which the "
        "result is written. Which line makes the numbers float32?",
    ),
    Slip(
        "in_float64",
        _undo_dtype(lambda got, expected: got == torch.float64 and expected.is_floating_point),
        "Python's numbers and NumPy's arrays have the precision of float64, and a tensor made from an array keeps "
        "this precision; `.double()` converts to it. Which line makes the numbers float64?",
    ),
    Slip(
        "in_another_dtype",
        _undo_dtype(lambda got, expected: True),
        "`torch.ones` and `torch.zeros` make float32 unless you pass a `dtype`, a comparison makes bools, and "
        "`.float()`, `.bool()` and `.to(…)` convert one dtype to another. Which dtype does the docstring ask for?",
    ),
    Slip(
        "axes_of_size_one",
        _undo_by_values(_restore_axes_of_size_one),
        "`[:, None]` and `unsqueeze` add an axis of size 1, and `keepdim=True` keeps one; `squeeze`, an index or a sum "
        "removes one. How many axes does the docstring ask for?",
    ),
    Slip("changed_in_place", _undo_change_in_place, "`x = x + …` makes a new tensor instead."),
    Slip(
        "error_of_another_class",
        _undo_error_class,
        "Your function raises an error of a different class from the one in the docstring. The caller catches only "
        "errors of the docstring's class. `raise` names a class; an `assert` always raises `AssertionError`, and "
        "PyTorch mostly raises `RuntimeError`.",
    ),
)


# Slips that change only the order of numbers


def _other_orders(count):
    """Return all permutations of ``count`` items except the identity; for 5 or more items, return an empty list."""
    return list(itertools.permutations(range(count)))[1:] if count < 5 else []


def _undo_item_order(order):
    def undo(exercise, got, expected):
        if got.error is not None or not isinstance(got.value, (tuple, list)):
            return got
        # A shape may have a different number of axes in each probe; its reversal is possible in all of them.
        inverse = sorted(range(len(order)), key=order.__getitem__)
        inverse = inverse if len(order) == len(got.value) else range(len(got.value))[::-1]
        return replace(got, value=tuple(got.value[item] for item in inverse))

    return undo


def _undo_axis_order(order):
    first_moved = next(axis for axis, source_axis in enumerate(order) if axis != source_axis)
    inverse = [axis - len(order) for axis in sorted(range(len(order)), key=order.__getitem__)][first_moved:]

    def undo(exercise, got, expected):
        if not isinstance(got.value, torch.Tensor) or got.value.ndim < len(inverse):
            return got
        return replace(got, value=got.value.permute(*range(got.value.ndim - len(inverse)), *inverse))

    return undo


AXES_EXPLANATION = (
    "The axes of your result come in the order {}, numbered as in the right result. Is a `transpose` or "
    "`permute` missing, or is there one too many?"
)
ITEMS_EXPLANATION = "Your results come in the wrong order. What comes first in the docstring?"
CUT_OFF_EXPLANATION = (
    "No gradient flows back through the result: a model with such a function runs, but no layer before the function "
    "learns. `.detach()`, `.data`, `.item()`, `torch.no_grad()` and a new tensor made from numbers cut off the "
    "gradient."
)
