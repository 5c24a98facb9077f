"""Checks of arguments. An error names the argument, the rule and the value, and often suggests a fix.

A fix is code that uses the argument's name: ``use torch.as_tensor(x)``. If several fixes may help, each is tried on the
value that was passed, and the error suggests the first fix that works.
"""

import difflib
import inspect
import reprlib
import warnings
from numbers import Integral, Real

import torch

from .precision import is_autocast_on

# The last two axes of each argument of a layer, for errors about the argument's shape.
AXES = {
    "x": "seq, d_model",
    "memory": "k_len, d_model",
    "query": "q_len, d_model",
    "key": "k_len, d_key_in",
    "value": "k_len, d_value_in",
}

# Code that converts a value of another type to a tensor; "{}" stands for the argument's name.
TENSOR_FIXES = {
    "torch.stack({})": lambda x: torch.stack(tuple(x)),  # tensors in a list
    "torch.as_tensor({})": torch.as_tensor,
    "torch.as_tensor({}.copy())": lambda x: torch.as_tensor(x.copy()),  # an array with negative strides
    "torch.as_tensor({}.to_numpy())": lambda x: torch.as_tensor(x.to_numpy()),  # a pandas or polars table
}

# Code that adds a missing axis, or swaps the last two axes.
AXES_FIXES = {"{}[None]": lambda x: x[None], "{}.mT": lambda x: x.mT}
# Code that adds a mask's missing axes, removes a surplus axis, or swaps the last two axes.
MASK_FIXES = {
    "{}[:, None]": lambda x: x[:, None],
    "{}[:, None, None, :]": lambda x: x[:, None, None, :],
    "{}.squeeze(1)": lambda x: x.squeeze(1),
    "{}.squeeze(0)": lambda x: x.squeeze(0),
    "{}.mT": lambda x: x.mT,
}

_short_repr = reprlib.Repr()
_short_repr.maxstring = _short_repr.maxother = 60


def format_value(value):
    """Format a value for an error, in at most one line; describe a tensor by its dtype and shape."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {value.dtype}, shape {tuple(value.shape)}"
    if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (torch.Tensor, list, tuple)) for item in value):
        return f"a {type(value).__name__} of {len(value)}"
    text = " ".join(_short_repr.repr(value).splitlines())
    return text if len(text) <= 80 else f"{text[:60]} …"


def type_name(value):
    """Return the name of a value's type, for an error about a wrong type."""
    return "None" if value is None else type(value).__name__


def did_you_mean(name, names):
    """Return the end of an error about an unknown name: a question with the closest known name, or an empty string."""
    suggestion = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {suggestion[0]!r}?" if suggestion else ""


def require_known_options(cls, known, options):
    """Raise an error for an unknown option. The error names ``cls``, the class that the user has called."""
    own_names = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is not p.VAR_KEYWORD]
    all_names = [*own_names, *known]
    for name in options:
        if name not in known:
            suggestion = did_you_mean(name, all_names) or f"; it has {', '.join(all_names)}"
            raise TypeError(f"{cls.__name__} has no argument {name!r}{suggestion}")


def suggest_fix(name, x, fixes, fits=lambda fixed: True):
    """Return the first fix that works on ``x``, such as ``": use torch.as_tensor(x)"``, or "" if none works.

    ``fixes`` maps code, with "{}" for the argument's name, to a function that does what the code does.
    """
    for code, fix in fixes.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fixed = fix(x)
            if fits(fixed):
                return f": use {code.format(name)}"
        except Exception:  # a value of an unknown type may raise any error
            continue
    return ""


def _suggest_tensor(name, x):
    items = x if isinstance(x, (list, tuple)) else [x]
    if items and all(isinstance(item, str) for item in items):
        return ": convert text to numbers first, with a tokenizer"
    if x is None:
        return ": did a function without a return statement compute it?"
    return suggest_fix(name, x, TENSOR_FIXES)


def _suggest_device(name, x, device):
    return "" if x.is_meta else f": use {name}.to({str(device)!r})"


def require_tensor(expected="a tensor", **tensors):
    """Raise an error unless each argument is a tensor."""
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} must be {expected}, got {type_name(x)}{_suggest_tensor(name, x)}")


def require_floating(**tensors):
    """Raise an error unless each argument is a floating-point tensor."""
    require_tensor(**tensors)
    for name, x in tensors.items():
        if not x.is_floating_point():
            fix = f"use {name}.abs() or {name}.real" if x.is_complex() else f"use {name}.float()"
            if x.dtype == torch.bool and name in ("key", "value", "memory"):
                fix = f"if it is a mask, pass it as mask={name}"
            raise TypeError(f"{name} must be floating point, got {x.dtype}: {fix}")


def require_integers(expected, **tensors):
    """Raise an error unless each argument is a tensor of integers."""
    require_tensor(expected, **tensors)
    for name, x in tensors.items():
        if x.dtype == torch.bool or x.is_floating_point() or x.is_complex():
            fix = "" if x.dtype == torch.bool or x.is_complex() else f": use {name}.long()"
            raise TypeError(f"{name} must be {expected}, got {x.dtype}{fix}")


def require_features(weight, **tensors):
    """Raise an error unless each tensor has the dtype, device and feature count that a layer with this weight needs."""
    for name, x in tensors.items():
        # Fast path: these lines run in every forward pass of every module.
        same_dtype_and_device = isinstance(x, torch.Tensor) and x.dtype == weight.dtype and x.device == weight.device
        if same_dtype_and_device and x.ndim >= 2 and x.shape[-1] == weight.shape[-1]:
            continue
        require_tensor(**{name: x})
        if x.dtype in (torch.int64, torch.int32):
            fix = f"use {name}.float(), or a tl.TokenEmbedding if these are tokens"
            raise TypeError(f"{name} must be floating point, got {x.dtype}: {fix}")
        require_floating(**{name: x})
        if x.device != weight.device:
            rule = f"be on the device of the module's weights, {weight.device}"
            raise ValueError(f"{name} must {rule}, got {x.device}{_suggest_device(name, x, weight.device)}")
        if x.dtype != weight.dtype and not is_autocast_on(x):
            rule = f"have the dtype of the module's weights, {weight.dtype}"
            raise TypeError(f"{name} must {rule}, got {x.dtype}: use {name}.to({weight.dtype})")
        if x.ndim < 2 or x.shape[-1] != weight.shape[-1]:
            axes = AXES[name]
            rule = f"(..., {axes}) with {axes.split()[-1]} {weight.shape[-1]}"
            fix = suggest_fix(name, x, AXES_FIXES, lambda fixed: fixed.ndim > 1 and fixed.shape[-1] == weight.shape[-1])
            raise ValueError(f"{name} must have shape {rule}, got {tuple(x.shape)}{fix}")


def is_integer(x):
    """Whether ``x`` is a Python or NumPy integer; bool is excluded."""
    return isinstance(x, Integral) and not isinstance(x, bool)


def is_number(x):
    """Whether ``x`` is a real Python or NumPy number; bool is excluded."""
    return isinstance(x, Real) and not isinstance(x, bool)


def values_are_known(x):
    """Whether Python can read a tensor's values; it cannot on meta, in compilation or in a ``torch.func`` transform."""
    return not (x.is_meta or torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x))


def require_sizes(minimum=1, **sizes):
    """Raise an error unless each argument is an integer of at least ``minimum``."""
    for name, size in sizes.items():
        if type(size) is int and size >= minimum:
            continue
        if not is_integer(size):
            raise TypeError(f"{name} must be an integer, got {format_value(size)}{_suggest_integer(name, size)}")
        if size < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {size}")


def _suggest_integer(name, x):
    if getattr(x, "shape", None):  # a tensor, an array
        return f": pass one of its sizes, such as {name}.shape[-1]"
    if isinstance(x, (list, tuple)):
        return ": pass one of its numbers" if len(x) else ""
    if isinstance(x, bool) or type(x).__name__ in ("bool_", "bool"):
        return ""
    code = "int({}), or // where you divide" if isinstance(x, float) else "int({})"
    return suggest_fix(name, x, {code: int}, lambda fixed: isinstance(x, str) or fixed == x)


def suggest_float(name, x):
    """Return the end of an error about a value that is not a number: ``": use float(x)"``, or "" if that fails."""
    return "" if is_number(x) or type(x).__name__ in ("bool_", "bool") else suggest_fix(name, x, {"float({})": float})


def require_flags(**flags):
    """Raise an error unless each argument is True or False."""
    for name, flag in flags.items():
        if type(flag) is bool:
            continue
        if isinstance(flag, torch.Tensor) and flag.ndim:
            raise TypeError(f"{name} must be True or False, got {format_value(flag)}: pass a mask as mask=")
        if type(flag).__name__ not in ("bool_", "bool"):  # NumPy's bool is accepted
            raise TypeError(f"{name} must be True or False, got {format_value(flag)}")


def as_sizes(minimum=1, **sizes):
    """Return the sizes as Python integers, which never overflow; raise the same errors as :func:`require_sizes`."""
    require_sizes(minimum, **sizes)
    return [int(size) for size in sizes.values()]


def require_heads(n_heads, d_model):
    """Raise an error unless ``n_heads`` is a positive integer that divides ``d_model``."""
    require_sizes(n_heads=n_heads)
    if d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model, got n_heads {n_heads} and d_model {d_model}")


def require_kv_heads(n_kv_heads, n_heads):
    """Raise an error unless ``n_kv_heads`` is a positive integer that divides ``n_heads``."""
    require_sizes(n_kv_heads=n_kv_heads)
    if n_heads % n_kv_heads:
        raise ValueError(f"n_kv_heads must divide n_heads, got n_kv_heads {n_kv_heads} and n_heads {n_heads}")


def require_one_of(options, **choices):
    """Raise an error unless each argument is one of the options."""
    for name, choice in choices.items():
        if not isinstance(choice, str) or choice not in options:
            raise ValueError(f"{name} must be one of {', '.join(options)}, got {format_value(choice)}")


def require_probability(**numbers):
    """Raise an error unless each argument is a number from 0 to 1."""
    for name, number in numbers.items():
        if type(number) is float and 0 <= number <= 1:
            continue
        if not is_number(number) or not 0 <= number <= 1:
            fix = suggest_float(name, number)
            raise ValueError(f"{name} must be a probability from 0 to 1, got {format_value(number)}{fix}")


def require_axis(x, dim):
    """Raise an error unless ``dim`` is an axis of ``x``."""
    if not is_integer(dim):
        raise TypeError(f"dim must be an integer, got {format_value(dim)}")
    n_axes = max(x.ndim, 1)
    if not -n_axes <= dim < n_axes:
        raise IndexError(f"dim must be an axis of x, from {-n_axes} to {n_axes - 1}, got {dim}")


def require_bool(mask, name="mask"):
    """Raise an error unless the mask is a tensor of bool; the error suggests how to convert the mask."""
    require_tensor("a tensor of bool", **{name: mask})
    if mask.dtype != torch.bool:
        message = f"{name} must be bool, True where a query may attend, got {mask.dtype}"
        raise TypeError(f"{message}{_suggest_bool(mask, name)}")


def _suggest_bool(mask, name):
    if mask.numel() and values_are_known(mask) and not mask.is_complex():
        # In an additive mask, 0 lets a query attend; in a multiplicative mask, 0 hides a key.
        is_zero = mask == 0
        nonzero = mask[~is_zero]
        if nonzero.numel() and bool((nonzero == 1).all()):
            return f" with 0 and 1: use {name}.bool(), or {name} == 0 if 1 hides a key"
        if nonzero.numel() and bool((nonzero <= -100).all()):
            return f" with 0 and {nonzero.min().item():g}: use {name} == 0"
    return f": use {name} == 0 if 0 lets a query attend, or {name} != 0 if 0 hides a key"


def require_mask(mask, scores_shape, device, name="mask"):
    """Raise an error unless the mask is bool, is on the query's device, and broadcasts to the shape of the scores."""
    require_bool(mask, name)
    if mask.device != device:
        actual = f"{device} and {mask.device}{_suggest_device(name, mask, device)}"
        raise ValueError(f"query and {name} must be on one device, got {actual}")
    _require_broadcastable_to_scores(mask, scores_shape, name)


def require_bias(bias, scores_shape, query):
    """Raise an error unless the bias has the query's dtype and device, and broadcasts to the shape of the scores."""
    if isinstance(bias, torch.Tensor) and bias.dtype == torch.bool:
        raise TypeError("bias must be floating point, got torch.bool: if it is a mask, pass it as mask=bias")
    require_floating(bias=bias)
    if bias.dtype != query.dtype and not is_autocast_on(query):
        actual = f"{query.dtype} and {bias.dtype}: use bias.to({query.dtype})"
        raise TypeError(f"query and bias must share a dtype, got {actual}")
    if bias.device != query.device:
        actual = f"{query.device} and {bias.device}{_suggest_device('bias', bias, query.device)}"
        raise ValueError(f"query and bias must be on one device, got {actual}")
    _require_broadcastable_to_scores(bias, scores_shape, "bias")


def _require_broadcastable_to_scores(x, scores_shape, name):
    """Raise an error unless the tensor broadcasts to the shape of the scores."""
    if _broadcasts_to(x.shape, scores_shape):
        return
    axes = ["batch", "heads", "q_len", "k_len"]
    if len(scores_shape) != 4:
        axes = ["leading axis"] * (len(scores_shape) - 2) + ["q_len", "k_len"]
    # A fix either keeps the number of axes or produces all axes of the scores, of which the first is the batch.
    ranks = (x.ndim, len(scores_shape))
    fix = suggest_fix(
        name, x, MASK_FIXES, lambda fixed: fixed.ndim in ranks and _broadcasts_to(fixed.shape, scores_shape)
    )
    if x.dtype == torch.bool and x.ndim == 2 and "None" in fix:
        fix += f", applied to ~{name} if True hides a key, as in PyTorch's key_padding_mask"
    if x.ndim > len(scores_shape):
        raise ValueError(
            f"{name} must have at most the {len(scores_shape)} axes of the scores {tuple(scores_shape)}, "
            f"got shape {tuple(x.shape)}{fix}"
        )
    for axis in range(-1, -x.ndim - 1, -1):
        if x.shape[axis] not in (1, scores_shape[axis]):
            raise ValueError(
                f"{name} must broadcast to the scores {tuple(scores_shape)}, got shape {tuple(x.shape)}: "
                f"its axis {axis} ({axes[axis]}) must be 1 or {scores_shape[axis]}, not {x.shape[axis]}"
                + fix.replace(": use", ". Use")
            )


def _broadcasts_to(shape, target):
    """Whether a tensor of shape ``shape`` can be expanded to shape ``target``."""
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape[::-1], target[::-1]))


def require_attention(query, key, mask, value=None, bias=None, enable_gqa=False):
    """Raise an error unless the arguments of an attention function fit together.

    Return the leading axes of the scores, and whether the tensors already have these axes (in grouped attention, key
    and value may have fewer heads).
    """
    # Fast path: this function is called once per token and layer during generation.
    fits = _fits_without_broadcasting(query, key, value, enable_gqa)
    leading = query.shape[:-2] if fits else _leading_axes(query, key, value, enable_gqa)
    if mask is not None:
        require_mask(mask, (*leading, query.shape[-2], key.shape[-2]), query.device)
    if bias is not None:
        require_bias(bias, (*leading, query.shape[-2], key.shape[-2]), query)
    return leading, fits


def _fits_without_broadcasting(query, key, value, enable_gqa):
    """Whether no tensor needs broadcasting: all share dtype, device and leading axes (except the heads axis in GQA)."""
    if not isinstance(query, torch.Tensor) or not query.is_floating_point():
        return False
    dtype, device, q_shape = query.dtype, query.device, query.shape
    for x in (key,) if value is None else (key, value):
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or x.device != device:
            return False
    k_shape, min_axes = key.shape, 3 if enable_gqa else 2
    if len(q_shape) < min_axes or len(k_shape) != len(q_shape) or k_shape[-1] != q_shape[-1]:
        return False
    if value is not None and value.shape[:-1] != k_shape[:-1]:
        return False
    if not enable_gqa:
        return k_shape[:-2] == q_shape[:-2]
    return k_shape[:-3] == q_shape[:-3] and k_shape[-3] > 0 and q_shape[-3] > 0 and q_shape[-3] % k_shape[-3] == 0


def _leading_axes(query, key, value, enable_gqa):
    """Return the broadcast leading axes of the scores; raise an error if the tensors do not fit together."""
    tensors = {"query": query, "key": key}
    if value is not None:
        tensors["value"] = value
    require_floating(**tensors)
    dtype, device, leading = query.dtype, query.device, query.shape[:-2]
    for name, x in tensors.items():
        if x.ndim < 2:
            fix = f": use {name}[None]" if x.ndim else ""
            actual = f"got shape {tuple(x.shape)}{fix}"
            raise ValueError(f"{name} must have at least 2 axes (..., length, features), {actual}")
        if x.dtype != dtype and not is_autocast_on(query):
            actual = f"{dtype} and {x.dtype}: use {name}.to({dtype})"
            raise TypeError(f"query and {name} must share a dtype, got {actual}")
        if x.device != device:
            actual = f"{device} and {x.device}{_suggest_device(name, x, device)}"
            raise ValueError(f"query and {name} must be on one device, got {actual}")
    if query.shape[-1] != key.shape[-1]:
        fix = suggest_fix("key", key, {"{}.mT": lambda x: x.mT}, lambda fixed: fixed.shape[-1] == query.shape[-1])
        raise ValueError(f"query and key must share d_head, got {query.shape[-1]} and {key.shape[-1]}{fix}")
    if value is not None and value.shape[-2] != key.shape[-2]:
        fix = suggest_fix("value", value, {"{}.mT": lambda x: x.mT}, lambda fixed: fixed.shape[-2] == key.shape[-2])
        raise ValueError(f"key and value must share k_len, got {key.shape[-2]} and {value.shape[-2]}{fix}")
    leading_shapes = [x.shape[:-2] for x in tensors.values()]
    if enable_gqa:
        leading_shapes = _with_query_heads(leading_shapes)
    if any(other != leading for other in leading_shapes):  # broadcast_shapes is slow, especially its first call
        try:
            leading = torch.broadcast_shapes(*leading_shapes)
        except RuntimeError:
            actual = " and ".join(str(tuple(x.shape[:-2])) for x in tensors.values())
            raise ValueError(f"{' and '.join(tensors)} must have leading axes that broadcast, got {actual}") from None
    return leading


def _with_query_heads(leading_shapes):
    """Return the leading axes, each with as many heads as the query has; raise an error unless the heads fit."""
    head_counts = [leading[-1] if len(leading) else 0 for leading in leading_shapes]  # 0 if there is no axis of heads
    if not all(head_counts) or head_counts[0] % head_counts[1] or len(set(head_counts[1:])) > 1:
        raise ValueError(
            "enable_gqa must be used with equally many heads in key and value, a divisor of the number in query, "
            "got leading axes " + " and ".join(str(tuple(leading)) for leading in leading_shapes)
        )
    return [(*leading[:-1], head_counts[0]) for leading in leading_shapes]
