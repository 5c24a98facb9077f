"""What functions ask of their arguments, and the errors that say so: the argument, the rule, the value found."""

from numbers import Integral, Real

import torch

from .precision import is_autocast

AXES = {
    "x": "seq, d_model",
    "memory": "k_len, d_model",
    "query": "q_len, d_model",
    "key": "k_len, d_key_in",
    "value": "k_len, d_value_in",
}


def require_floating(**tensors):
    """Raise unless each is a floating-point tensor."""
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
        if not x.is_floating_point():
            raise TypeError(f"{name} must be floating point, got {x.dtype}")


def require_features(weight, **tensors):
    """Raise unless each can go into the linear map with this weight, (out, in): its dtype, its device, its features."""
    for name, x in tensors.items():
        # This runs in every forward pass of every module: what fits is let through at once.
        same = isinstance(x, torch.Tensor) and x.dtype == weight.dtype and x.device == weight.device
        if same and x.ndim >= 2 and x.shape[-1] == weight.shape[-1]:
            continue
        require_floating(**{name: x})
        if x.device != weight.device:
            raise ValueError(f"{name} must lie on the device of the module's weights, {weight.device}, got {x.device}")
        if x.dtype != weight.dtype and not is_autocast(x):
            raise TypeError(f"{name} must have the dtype of the module's weights, {weight.dtype}, got {x.dtype}")
        if x.ndim < 2 or x.shape[-1] != weight.shape[-1]:
            axes = AXES[name]
            rule = f"(..., {axes}) with {axes.split()[-1]} {weight.shape[-1]}"
            raise ValueError(f"{name} must have shape {rule}, got {tuple(x.shape)}")


def is_integer(x):
    """Whether this is an integer of Python or NumPy; ``True`` is none."""
    return isinstance(x, Integral) and not isinstance(x, bool)


def is_number(x):
    """Whether this is a real number of Python or NumPy; ``True`` is none."""
    return isinstance(x, Real) and not isinstance(x, bool)


def values_are_known(x):
    """Whether a function may look at the values: they exist, and no compiler is tracing for values to come."""
    return not x.is_meta and not torch.compiler.is_compiling()


def require_sizes(least=1, **sizes):
    """Raise unless each is an integer, ``least`` or more."""
    for name, size in sizes.items():
        if type(size) is int and size >= least:
            continue
        if not is_integer(size):
            raise TypeError(f"{name} must be an integer, got {size!r}")
        if size < least:
            raise ValueError(f"{name} must be at least {least}, got {size}")


def as_sizes(least=1, **sizes):
    """Return the sizes as Python's integers, which never overflow; raise as :func:`require_sizes` does."""
    require_sizes(least, **sizes)
    return [int(size) for size in sizes.values()]


def require_heads(n_heads, d_model):
    """Raise unless this number of heads is a size that divides the features of a token."""
    require_sizes(n_heads=n_heads)
    if d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model, got n_heads {n_heads} and d_model {d_model}")


def require_probability(**numbers):
    """Raise unless each is a number from 0 to 1."""
    for name, number in numbers.items():
        if not is_number(number) or not 0 <= number <= 1:
            raise ValueError(f"{name} must be a probability from 0 to 1, got {number!r}")


def require_axis(x, dim):
    """Raise unless ``dim`` is an axis of ``x``."""
    if not is_integer(dim):
        raise TypeError(f"dim must be an integer, got {dim!r}")
    axes = max(x.ndim, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"dim must be an axis of x, from {-axes} to {axes - 1}, got {dim}")


def require_mask(mask, scores_shape, device, name="mask"):
    """Raise unless the mask is bool, on the device, and broadcasts to the shape of the scores."""
    if not isinstance(mask, torch.Tensor):
        raise TypeError(f"{name} must be a tensor of bool, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        additive, zeros_and_ones = f"{name} == 0 if it is 0 and -inf", f"{name}.bool() if 1 is to mean that"
        convert = additive if mask.is_floating_point() else zeros_and_ones
        raise TypeError(f"{name} must be bool, True where a query may attend, got {mask.dtype}: use {convert}")
    if mask.device != device:
        raise ValueError(f"query and {name} must lie on one device, got {device} and {mask.device}")
    axes = ["batch", "heads", "q_len", "k_len"]
    if len(scores_shape) != 4:
        axes = ["leading axis"] * (len(scores_shape) - 2) + ["q_len", "k_len"]
    if mask.ndim > len(scores_shape):
        raise ValueError(
            f"{name} must have at most the {len(scores_shape)} axes of the scores {tuple(scores_shape)}, "
            f"got shape {tuple(mask.shape)}"
        )
    for axis in range(-1, -mask.ndim - 1, -1):
        if mask.shape[axis] not in (1, scores_shape[axis]):
            raise ValueError(
                f"{name} must broadcast to the scores {tuple(scores_shape)}, got shape {tuple(mask.shape)}: "
                f"its axis {axis} ({axes[axis]}) must be 1 or {scores_shape[axis]}, not {mask.shape[axis]}"
            )


def require_attention(query, key, mask, value=None):
    """Raise unless the arguments of an attention fit together; return their common leading axes."""
    tensors = {"query": query, "key": key}
    if value is not None:
        tensors["value"] = value
    require_floating(**tensors)
    dtype, device, lead = query.dtype, query.device, query.shape[:-2]
    for name, x in tensors.items():
        if x.ndim < 2:
            raise ValueError(f"{name} must have at least 2 axes (..., length, features), got shape {tuple(x.shape)}")
        if x.dtype != dtype and not is_autocast(query):
            raise TypeError(f"query and {name} must share a dtype, got {dtype} and {x.dtype}")
        if x.device != device:
            raise ValueError(f"query and {name} must lie on one device, got {device} and {x.device}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_head, got {query.shape[-1]} and {key.shape[-1]}")
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(f"key and value must share k_len, got {key.shape[-2]} and {value.shape[-2]}")
    if any(x.shape[:-2] != lead for x in tensors.values()):  # broadcast_shapes is slow, and slower still the first time
        try:
            lead = torch.broadcast_shapes(*(x.shape[:-2] for x in tensors.values()))
        except RuntimeError:
            found = " and ".join(str(tuple(x.shape[:-2])) for x in tensors.values())
            raise ValueError(f"{' and '.join(tensors)} must have leading axes that broadcast, got {found}") from None
    if mask is not None:
        require_mask(mask, (*lead, query.shape[-2], key.shape[-2]), query.device)
    return lead
