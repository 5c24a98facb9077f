"""A sublayer and a norm for the exercises on residual connections, and the stages that connect the sublayer
and the norm."""

import torch
from torch.nn import functional as F


def some_sublayer(x):
    """Return the result of some sublayer, which changes the features and reads the previous token."""
    return (x.flip(-1) + x.roll(1, dims=-2)).tanh() + 0.3


def some_norm(x):
    """Return a layer norm of `x`. Its weights are unequal, so a second norm changes the result again, and its eps is
    large, so the result depends on the size of `x`."""
    weight = torch.linspace(0.5, 2, x.shape[-1], dtype=x.dtype, device=x.device)
    return F.layer_norm(x, x.shape[-1:], weight, 0.2 * weight, 0.1)


def zero_sublayer(x):
    return torch.zeros_like(x)


def identity(x):
    return x


def residual_inputs(draw, batch=2, seq=7, d_model=5):
    return 1 + 2 * draw(batch, seq, d_model), some_sublayer, some_norm


def apply_sublayer(x, sublayer):
    """Call the sublayer."""
    return sublayer(x)


def add_residual(x, change):
    """Add the sublayer's result to the `x` that came in."""
    return x + change


def apply_norm(x, norm):
    """Normalize."""
    return norm(x)


AXES = {"x": "batch seq d_model", "return": "batch seq d_model"}
