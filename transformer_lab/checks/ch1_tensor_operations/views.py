"""What tells a view from a copy."""

import math

import torch

from ..agree import agree


def view_or_copy(reference, arguments, result):
    """Tell whether the result is a view of ``x``; wrong numbers are treated as if they were right."""
    x = arguments[0]
    try:
        expected = reference(*arguments)
    except IndexError:  # x itself has lost an axis, which is reported as a changed argument
        expected = x
    compared = result if agree(result, expected) else expected
    is_view = compared.data_ptr() == x.data_ptr()  # a view begins at the same first element
    return {"what the result is": "a view of `x`" if is_view else "a copy of its numbers"}


def numbered(*shape):
    """Return a fresh tensor in which every number is its own place in storage, so that errors are easy to see."""
    return torch.arange(math.prod(shape), dtype=torch.float32).view(shape)
