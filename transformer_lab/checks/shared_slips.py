"""Slips that are possible in every exercise: a wrong dtype, an argument changed in place, axes in a wrong order.

No exercise lists them among its mistakes. A slip can be undone: the outcome of a function becomes the outcome that it
would have without the slip. `diagnose` then compares the new outcomes with the known mistakes, so that a mistake is
recognized beside a slip. The text of a slip must be true whatever else is wrong.

`common_mistakes` is different: it adds a mistake to those exercises that call it.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from .agree import readable, tensors_in
from .gradients import gradients_flow
from .mismatch import mismatch


class Slip(NamedTuple):
    """A slip, how it is undone, and the explanation that a card shows after the description by `mismatch`."""

    id: str
    undo: Callable  # undo(exercise, mine, right): the outcome without the slip, or `mine` itself where it shows none
    why: str


class UndoneSlip(NamedTuple):
    """A slip that a function makes, with the outcomes of all probes before and after it is undone."""

    slip: Slip
    before: list
    after: list

    def message(self, exercise):
        """Describe the slip on the first probe that shows it, and explain it."""
        cases = zip(exercise.probes, self.before, self.after)
        case = next((case for case in cases if case[1] is not case[2]), None)
        if case is None or not (symptom := mismatch(exercise, *case)):
            return self.slip.why
        return f"{'' if case[0].plain else f'With {case[0].name}: '}{symptom} {self.slip.why}"


def undo(exercise, outcomes, slip):
    """Undo a slip on every probe; return None if no outcome shows it."""
    after = [slip.undo(exercise, mine, right) for mine, right in zip(outcomes, exercise.expected)]
    same = all(one is other for one, other in zip(outcomes, after))
    return None if same else UndoneSlip(slip, list(outcomes), after)


def undo_visible_slips(exercise, outcomes):
    """Return the slips that show in more than the order of numbers, such as a dtype, undone one after another."""
    undone = []
    for slip in VISIBLE_SLIPS:
        if one := undo(exercise, undone[-1].after if undone else outcomes, slip):
            undone.append(one)
    return undone


def undo_reordering_slips(exercise, outcomes):
    """Yield the slips that only the order of numbers shows, undone: axes or items in a different order."""
    right, mine = exercise.expected[0].value, outcomes[0].value
    slips = []
    if isinstance(right, tuple) and isinstance(mine, (tuple, list)) and 1 < len(right) == len(mine):
        orders = _other_orders(len(right)) if tensors_in(right) else [tuple(range(len(right)))[::-1]]
        slips += [Slip("items_in_another_order", _restoring_items(order), ITEMS_TEXT) for order in orders]
    elif isinstance(right, torch.Tensor) and isinstance(mine, torch.Tensor) and readable(mine):
        orders = [order for order in _other_orders(right.ndim) if mine.shape == right.permute(order).shape]
        slips += [Slip("axes_in_another_order", _restoring_axes(order), AXES_TEXT.format(order)) for order in orders]
    yield from (undo(exercise, outcomes, slip) for slip in slips)


def cut_off(exercise, function, same):
    """Return the slip of a function that cuts gradients off where ``same``, its known equal, does not; or None."""
    flow = [gradients_flow(each, exercise.probes[0]) for each in (same, function)]
    return (
        UndoneSlip(Slip("cut_off_from_gradients", lambda *case: case[1], CUT_OFF_TEXT), [], [])
        if flow == [True, False]
        else None
    )


# Slips that show in more than the order of numbers


def _changing_values(change):
    """Return a `Slip.undo` that applies ``change(mine, right)`` to each tensor or number of a result."""

    def undo(exercise, mine, right):
        if mine.error is not None or right.error is not None or mine.value is None:
            return mine
        value = _change_in_pairs(change, mine.value, right.value)
        if value is mine.value:
            return mine
        dtypes = [tensor.dtype for tensor in tensors_in(mine.value) if tensor.is_floating_point()]
        return replace(mine, value=value, rounded_to=dtypes[0] if dtypes else mine.rounded_to)

    return undo


def _change_in_pairs(change, mine, right):
    if not (isinstance(right, (tuple, list)) and isinstance(mine, (tuple, list)) and len(mine) == len(right)):
        return change(mine, right)
    items = tuple(_change_in_pairs(change, *pair) for pair in zip(mine, right))
    return mine if all(one is other for one, other in zip(items, mine)) else items


def _to_tensor(mine, right):
    if not isinstance(right, torch.Tensor) or isinstance(mine, torch.Tensor) or (tensor := _as_tensor(mine)) is None:
        return mine
    converted = _cast(tensor.to(right.device), right.dtype)
    return mine if converted is None else converted


def _to_tuple(mine, right):
    if isinstance(right, tuple) and isinstance(mine, (torch.Tensor, np.ndarray)) and mine.ndim:
        return tuple(map(torch.as_tensor, mine)) if tensors_in(right) else tuple(mine.tolist())
    return mine


def _as_tensor(value):
    try:
        if isinstance(value, (tuple, list)) and tensors_in(value):
            return torch.stack([_as_tensor(item) for item in value])
        return value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError, RuntimeError):
        return None


def _cast(tensor, dtype):
    """Return a tensor in a different dtype; None if its numbers would change. Finite numbers stay finite."""
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        if tensor.is_floating_point() and torch.finfo(tensor.dtype).max > limits.max:
            tensor = torch.where(tensor.isfinite(), tensor.clamp(limits.min, limits.max), tensor)
        return tensor.to(dtype)
    converted = tensor.to(dtype)
    return converted if torch.equal(converted.to(tensor.dtype), tensor) else None


def _changing_dtype(is_slip):
    def change(mine, right):
        tensors = [each for each in (mine, right) if isinstance(each, torch.Tensor) and readable(each)]
        if len(tensors) < 2 or mine.dtype == right.dtype or not is_slip(mine.dtype, right.dtype):
            return mine
        converted = _cast(mine, right.dtype)
        return mine if converted is None else converted

    return _changing_values(change)


def _restore_axes_of_size_one(mine, right):
    if not isinstance(mine, torch.Tensor) or not isinstance(right, torch.Tensor) or mine.ndim == right.ndim:
        return mine
    sizes = [[size for size in tensor.shape if size != 1] for tensor in (mine, right)]
    return mine.reshape(right.shape) if sizes[0] == sizes[1] else mine


def _to_int(mine, right):
    if isinstance(right, tuple) and isinstance(mine, (tuple, list)) and not tensors_in(right):  # of another length
        return _change_in_pairs(_to_int, mine, tuple(0 for _ in mine))
    return int(mine) if type(right) is int and isinstance(mine, float) and mine.is_integer() else mine


def _without_change_in_place(exercise, mine, right):
    return replace(mine, changed=None) if mine.changed and not right.changed else mine


def _to_error_class(exercise, mine, right):
    is_other_class = isinstance(mine.error, Exception) and not isinstance(
        mine.error, (exercise.raises or Exception, *BUG_ERRORS)
    )
    if not is_other_class or (right.error is None and not isinstance(mine.error, AssertionError)):
        return mine
    return replace(mine, error=exercise.raises(), error_text=exercise.raises.__name__, rejected=None)


BUG_ERRORS = (AttributeError, ImportError, NameError, RecursionError)  # never raised on purpose

VISIBLE_SLIPS = (
    Slip(
        "not_a_tensor",
        _changing_values(_to_tensor),
        "Numbers that have left PyTorch, by `.tolist()`, `.item()` or NumPy, have no gradient, and the next line that "
        "needs a tensor rejects them. `torch.stack(…)` joins several tensors into one.",
    ),
    Slip(
        "not_a_tuple",
        _changing_values(_to_tuple),
        "Separate several results by commas, as in `return a, b`; `.tolist()` turns a tensor into Python's numbers.",
    ),
    Slip(
        "as_float",
        _changing_values(_to_int),
        "Your result is a float, such as `6.0`, but the exercise asks for an int. Python prints and compares the two "
        "alike, but `range`, an index and a shape accept only the int; a float also loses digits, from 2**53 on. A "
        "division with `/` returns a float even if there is no remainder, as does every product with a number such as "
        "`2.0`. `//` keeps ints.",
    ),
    Slip(
        "in_float32",
        _changing_dtype(lambda mine, right: mine == torch.float32 and right.is_floating_point),
        "It comes in float32 whatever the dtype of the arguments: float64 numbers lose half of their digits. The cause "
        "is a `.float()`, or a tensor made by `torch.zeros` or `torch.empty` without a dtype, into which the result is "
        "written. Which line makes the numbers float32?",
    ),
    Slip(
        "in_float64",
        _changing_dtype(lambda mine, right: mine == torch.float64 and right.is_floating_point),
        "Python's numbers and NumPy's arrays have the precision of float64, and a tensor made from an array keeps it; "
        "`.double()` converts to it. Which line makes the numbers float64?",
    ),
    Slip(
        "in_another_dtype",
        _changing_dtype(lambda mine, right: True),
        "`torch.ones` and `torch.zeros` make float32 unless you pass a `dtype`, a comparison makes bools, and "
        "`.float()`, `.bool()` and `.to(…)` convert one dtype to another. Which dtype does the docstring ask for?",
    ),
    Slip(
        "axes_of_size_one",
        _changing_values(_restore_axes_of_size_one),
        "`[:, None]` and `unsqueeze` add an axis of size 1, and `keepdim=True` keeps one; `squeeze`, an index or a sum "
        "removes it. How many axes does the docstring ask for?",
    ),
    Slip("changed_in_place", _without_change_in_place, "`x = x + …` makes a new tensor instead."),
    Slip(
        "error_of_another_class",
        _to_error_class,
        "Your function raises an error of a different class from the one in the docstring. The caller catches that "
        "class, but no other. `raise` names a class; an `assert` always raises `AssertionError`, and PyTorch mostly "
        "`RuntimeError`.",
    ),
)


# Slips that only the order of numbers shows


def _other_orders(count):
    """Return all permutations of ``count`` items except the identity; none from 5 items on."""
    return list(itertools.permutations(range(count)))[1:] if count < 5 else []


def _restoring_items(order):
    def undo(exercise, mine, right):
        if mine.error is not None or not isinstance(mine.value, (tuple, list)):
            return mine
        # A shape may have a different number of axes in each probe; its reversal is possible in all of them.
        inverse = sorted(range(len(order)), key=order.__getitem__)
        inverse = inverse if len(order) == len(mine.value) else range(len(mine.value))[::-1]
        return replace(mine, value=tuple(mine.value[item] for item in inverse))

    return undo


def _restoring_axes(order):
    first_moved = next(axis for axis, source_axis in enumerate(order) if axis != source_axis)
    inverse = [axis - len(order) for axis in sorted(range(len(order)), key=order.__getitem__)][first_moved:]

    def undo(exercise, mine, right):
        if not isinstance(mine.value, torch.Tensor) or mine.value.ndim < len(inverse):
            return mine
        return replace(mine, value=mine.value.permute(*range(mine.value.ndim - len(inverse)), *inverse))

    return undo


AXES_TEXT = (
    "The axes of your result come in the order {}, counted as in the right result. Which `transpose` or "
    "`permute` is missing, or one too many?"
)
ITEMS_TEXT = "Your results come in the wrong order. What comes first in the docstring?"
CUT_OFF_TEXT = (
    "No gradient flows back through the result: a model with such a function runs, but no layer before the function "
    "learns. `.detach()`, `.data`, `.item()`, `torch.no_grad()` and a new tensor made from numbers cut off the "
    "gradient."
)
