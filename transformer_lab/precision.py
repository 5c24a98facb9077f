"""Precision: what is computed in more digits than a tensor has, and what PyTorch's autocast does to dtypes."""

from contextlib import nullcontext

import torch


def wide_dtype(x):
    """float32 for half precision, whose own sums lose digits; otherwise the tensor's own."""
    return torch.promote_types(x.dtype, torch.float32)


def widened(x):
    """The tensor in its wide dtype."""
    return x.to(wide_dtype(x))


def is_autocast(x):
    """Whether PyTorch brings tensors on the device of ``x`` to one dtype itself."""
    kind = x.device.type
    # PyTorch 2.4 cannot compile the question which devices have autocast: all it compiles for have it, but not meta.
    available = kind != "meta" if torch.compiler.is_compiling() else torch.amp.is_autocast_available(kind)
    return available and torch.is_autocast_enabled(kind)


def without_autocast(x):
    """A region in which products keep the dtype of their factors: sums over a long sequence need its digits."""
    return torch.autocast(x.device.type, enabled=False) if is_autocast(x) else nullcontext()
