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


def require_kv_heads(n_kv_heads, n_heads):
    """Raise unless the heads of queries can share this number of heads of keys and values, each the same number."""
    require_sizes(n_kv_heads=n_kv_heads)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads, got n_kv_heads {n_kv_heads} and n_heads {n_heads}")


def require_one_of(options, **words):
    """Raise unless each is one of the options."""
    for name, word in words.items():
        if word not in tuple(options):
            raise ValueError(f"{name} must be one of {', '.join(options)}, got {word!r}")


def require_probability(**numbers):
    """Raise unless each is a number from 0 to 1."""
    for name, number in numbers.items():
        if type(number) is float and 0 <= number <= 1:
            continue
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
    _require_scores(mask, scores_shape, name)


def require_bias(bias, scores_shape, query):
    """Raise unless the bias has the dtype and the device of the query, and broadcasts to the shape of the scores."""
    require_floating(bias=bias)
    if bias.dtype != query.dtype and not is_autocast(query):
        raise TypeError(f"query and bias must share a dtype, got {query.dtype} and {bias.dtype}")
    if bias.device != query.device:
        raise ValueError(f"query and bias must lie on one device, got {query.device} and {bias.device}")
    _require_scores(bias, scores_shape, "bias")


def _require_scores(x, scores_shape, name):
    """Raise unless this broadcasts to the shape of the scores."""
    axes = ["batch", "heads", "q_len", "k_len"]
    if len(scores_shape) != 4:
        axes = ["leading axis"] * (len(scores_shape) - 2) + ["q_len", "k_len"]
    if x.ndim > len(scores_shape):
        raise ValueError(
            f"{name} must have at most the {len(scores_shape)} axes of the scores {tuple(scores_shape)}, "
            f"got shape {tuple(x.shape)}"
        )
    for axis in range(-1, -x.ndim - 1, -1):
        if x.shape[axis] not in (1, scores_shape[axis]):
            raise ValueError(
                f"{name} must broadcast to the scores {tuple(scores_shape)}, got shape {tuple(x.shape)}: "
                f"its axis {axis} ({axes[axis]}) must be 1 or {scores_shape[axis]}, not {x.shape[axis]}"
            )


def require_attention(query, key, mask, value=None, bias=None, enable_gqa=False):
    """Raise unless the arguments of an attention fit together; return the leading axes of its scores."""
    # A model that writes calls this for every token and layer: the usual case is let through at once.
    lead = query.shape[:-2] if _fit(query, key, value, enable_gqa) else _leading_axes(query, key, value, enable_gqa)
    if mask is not None:
        require_mask(mask, (*lead, query.shape[-2], key.shape[-2]), query.device)
    if bias is not None:
        require_bias(bias, (*lead, query.shape[-2], key.shape[-2]), query)
    return lead


def _fit(query, key, value, enable_gqa):
    """Whether these fit as they are: tensors of one dtype on one device with equal leading axes, shared heads aside."""
    if not isinstance(query, torch.Tensor) or not query.is_floating_point():
        return False
    dtype, device, shape = query.dtype, query.device, query.shape
    for x in (key,) if value is None else (key, value):
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or x.device != device:
            return False
    keys, least = key.shape, 3 if enable_gqa else 2
    if len(shape) < least or len(keys) != len(shape) or keys[-1] != shape[-1]:
        return False
    if value is not None and value.shape[:-1] != keys[:-1]:
        return False
    if not enable_gqa:
        return keys[:-2] == shape[:-2]
    return keys[:-3] == shape[:-3] and keys[-3] > 0 and shape[-3] > 0 and shape[-3] % keys[-3] == 0


def _leading_axes(query, key, value, enable_gqa):
    """The leading axes of the scores, where they must be broadcast; raise where the tensors do not fit."""
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
    leads = [x.shape[:-2] for x in tensors.values()]
    if enable_gqa:
        leads = _as_those_of_the_query(leads)
    if any(other != lead for other in leads):  # broadcast_shapes is slow, and slower still the first time
        try:
            lead = torch.broadcast_shapes(*leads)
        except RuntimeError:
            found = " and ".join(str(tuple(x.shape[:-2])) for x in tensors.values())
            raise ValueError(f"{' and '.join(tensors)} must have leading axes that broadcast, got {found}") from None
    return lead


def _as_those_of_the_query(leads):
    """The leading axes with the query's heads in the place of key's and value's, which must divide them."""
    heads = [lead[-1] if len(lead) else 0 for lead in leads]  # 0: there is no such axis
    if not all(heads) or heads[0] % heads[1] or len(set(heads[1:])) > 1:
        raise ValueError(
            "enable_gqa must have one number of heads in key and value, which divides that in query, got leading axes "
            + " and ".join(str(tuple(lead)) for lead in leads)
        )
    return [(*lead[:-1], heads[0]) for lead in leads]
