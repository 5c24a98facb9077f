"""Known mistakes that several exercises share: a result in float32, a result without gradients, a float for an int, a
table of fixed length. An exercise calls the functions of those mistakes that are possible in it; the docstring of such
a function is the card's text.

The slips in `shared_slips` need no call: the checks of all exercises look for them.
"""

import functools

import torch

from .agree import agree, tensors_in
from .probes import each_tensor
from .relation import wrong_positions

MIN_LENGTH = 8  # of a table: a shorter result is wrong for a different reason


def left_in_float32(exercise):
    """The numbers {are right, but they} are in float32 whatever the dtype of the arguments: float64 numbers lose half
    of their digits. The cause is a `.float()`, or a tensor made by `torch.zeros` or `torch.empty` without a dtype, into
    which the result is written. Which line makes the numbers float32?"""

    def in_float32(*arguments):
        return each_tensor(_to_float32, exercise.reference(*arguments))

    in_float32.__doc__ = left_in_float32.__doc__
    exercise.mistake(in_float32)


def _to_float32(tensor):
    return tensor.to(torch.float32) if tensor.is_floating_point() else tensor


def cut_off(exercise):
    """The result {is right, but it} has lost its connection to the tensors from which it was computed. A model with
    such a function runs, but no layer before the function learns. Which step detaches a tensor, or computes without
    PyTorch's tensors?"""

    def cut_off_from_gradients(*arguments):
        return each_tensor(torch.Tensor.detach, exercise.reference(*arguments))

    cut_off_from_gradients.__doc__ = cut_off.__doc__
    exercise.mistake(cut_off_from_gradients)


def float_for_int(exercise):
    """Your result is a float, such as `6.0`, but the exercise asks for an int. Python treats `6.0` and `6` as equal,
    but `range`, an index and a shape accept only the int; a float also loses digits, from 2**53 on. A division with `/`
    returns a float even if there is no remainder, as does every product with a number such as `2.0`. `//` keeps
    ints."""

    def as_float(function):
        @functools.wraps(function)
        def returns_floats(*arguments):
            result = function(*arguments)
            if isinstance(result, (tuple, list)):
                return type(result)(map(_as_float, result))
            return _as_float(result)

        return returns_floats

    as_float.__doc__ = float_for_int.__doc__
    exercise.mistake_around(as_float)


def _as_float(number):
    return float(number) if type(number) is int else number


def fixed_length(exercise, function, long_probe_name):
    """Your function is right for short input, but wrong for long input: something in it has a fixed length, such as a
    table or a loop. Programs that know their longest text often make such a table once. Here nothing limits the length:
    a table must have as many rows as this call needs. Which number in your function fixes the length?"""
    function.__doc__ = fixed_length.__doc__
    exercise.mistake(
        function, recognizes=lambda probe, *outcomes: probe.name == long_probe_name and _ends_early(*outcomes)
    )


def _ends_early(got, expected):
    """Whether a result is cut short or an error was raised: a table of fixed length may cause either."""
    if got.error is not None:
        may_come_from_length = isinstance(got.error, (IndexError, KeyError, AssertionError, ValueError, RuntimeError))
        is_different_error = isinstance(got.error, (RecursionError, NotImplementedError))  # both RuntimeErrors
        return may_come_from_length and not is_different_error
    pairs = list(zip(tensors_in(got.value), tensors_in(expected.value)))
    return bool(pairs) and all(agree(*pair) or _is_cut_short(*pair) for pair in pairs)


def _is_cut_short(tensor, expected_tensor):
    """Whether a tensor is smaller than it must be, or wrong only because it ends in zeros along some axis."""
    if tensor.dtype != expected_tensor.dtype or tensor.ndim != expected_tensor.ndim or not tensor.ndim:
        return False
    if tensor.shape != expected_tensor.shape:
        return all(map(int.__le__, tensor.shape, expected_tensor.shape))
    wrong = wrong_positions(tensor, expected_tensor)
    if tensor[wrong].any():
        return False
    for axis in range(tensor.ndim):
        rows = wrong.movedim(axis, 0).flatten(1).any(1)
        first_wrong = int(rows.int().argmax())
        if first_wrong > MIN_LENGTH and not tensor.narrow(axis, first_wrong, len(rows) - first_wrong).any():
            return True
    return False
