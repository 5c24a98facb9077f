"""What tells a view from a copy."""

import math

import torch

from ..agree import agree


def origin(right, arguments, result):
    """Whether the result is a view of ``x``. Of wrong numbers nobody asks: they count as the right ones do."""
    x = arguments[0]
    try:
        expected = right(*arguments)
    except IndexError:  # x itself has lost an axis, which is told as a change
        expected = x
    shown = result if agree(result, expected) else expected
    is_view = shown.data_ptr() == x.data_ptr()  # the first element is the same: only a copy has it elsewhere
    return {"what the result is": "a view of `x`" if is_view else "a copy of its numbers"}


def numbered(*shape):
    """A fresh tensor in which every number is its own place in storage: what is wrong can be read off."""
    return torch.arange(math.prod(shape), dtype=torch.float32).view(shape)
