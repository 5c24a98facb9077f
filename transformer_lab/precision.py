"""Precision: the dtype in which sums are accumulated, and PyTorch's autocast."""

from contextlib import nullcontext

import torch


def accumulation_dtype(x):
    """Return float32 for half precision, in which sums would lose digits; otherwise the tensor's own dtype."""
    return torch.promote_types(x.dtype, torch.float32)


def upcast(x):
    """Convert the tensor to its accumulation dtype."""
    return x.to(accumulation_dtype(x))


def is_autocast_on(x):
    """Whether autocast is on for the device of ``x``."""
    device_type = x.device.type
    # PyTorch 2.4 cannot compile is_autocast_available; every device that PyTorch compiles for has autocast.
    is_available = (
        device_type != "meta" if torch.compiler.is_compiling() else torch.amp.is_autocast_available(device_type)
    )
    return is_available and torch.is_autocast_enabled(device_type)


def without_autocast(x):
    """Return a context without autocast, because sums over a long sequence need the full precision of their dtype."""
    return torch.autocast(x.device.type, enabled=False) if is_autocast_on(x) else nullcontext()
