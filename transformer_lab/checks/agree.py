"""Whether two results are the same, up to rounding."""

import operator

import torch

# Relative, and absolute as a share of the largest number: room for another order of the same operations, and in float64
# for a constant that was rounded to float32.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}


def agree(got, expected, rounded_to=None):
    """Whether a result is the expected one: tensors, numbers, and tuples, lists or dicts of them.

    A tensor must have the expected shape and dtype. A whole number may come in any type that Python takes for one: an
    int of NumPy, say, or a tensor that holds one. A float is none, even where it has no fraction: `range` refuses it.
    ``rounded_to`` is a dtype that numbers of more digits may have been rounded to on the way.
    """
    if isinstance(expected, torch.Tensor):
        return isinstance(got, torch.Tensor) and like(got) == like(expected) and close(got, expected, rounded_to)
    if isinstance(expected, (tuple, list)):
        is_like = isinstance(got, (tuple, list)) and len(got) == len(expected)
        return is_like and all(agree(mine, right, rounded_to) for mine, right in zip(got, expected))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(agree(got[k], expected[k], rounded_to) for k in expected)
        )
    if isinstance(expected, int) and not isinstance(expected, bool):
        return not isinstance(got, float) and as_int(got) == expected
    if isinstance(expected, float):  # one of NumPy is one of Python's as well
        return isinstance(got, float) and got == expected
    return type(got) is type(expected) and (callable(expected) or bool(got == expected))


def like(tensor):
    """Return what two tensors must share before their numbers can be compared."""
    if tensor.is_nested:
        return "nested"
    return tensor.shape, tensor.dtype, tensor.device.type, tensor.layout


def readable(tensor):
    """Whether a tensor is a table of numbers that can be read; on `meta`, for example, it has none."""
    special = tensor.is_meta or tensor.is_nested or tensor.is_quantized or tensor.is_complex()
    return tensor.layout == torch.strided and not special


def close(got, expected, rounded_to=None):
    """Whether two tensors of one shape hold the same numbers; NaN is like NaN."""
    got, expected = got.detach().cpu(), expected.detach().cpu()
    if torch.equal(got, expected):
        return True
    if not (expected.is_floating_point() or expected.is_complex()):
        return False
    rtol = max(TOLERANCE.get(dtype, 1e-2) for dtype in (expected.dtype, rounded_to or expected.dtype))
    finite = expected[expected.isfinite()].abs()
    atol = rtol / 10 * float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(got, expected, rtol, atol, equal_nan=True)


def as_int(number):
    """Return a number of any type as an int, or None if it is not whole."""
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    try:
        return operator.index(number)
    except (TypeError, ValueError, RuntimeError):
        return None


def tensors_in(value):
    """All tensors in an argument or a result, one after the other."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def is_float(value):
    """Whether a value is a tensor of floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def is_finite(value):
    """Whether no tensor of a result holds NaN or infinity."""
    return all(tensor.isfinite().all() for tensor in tensors_in(value))
