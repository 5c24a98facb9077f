"""Compares two results, which agree if they are the same up to rounding."""

import operator

import torch

# The tolerance is the sum of two parts: a relative part, and a fraction of the largest expected number. The tolerance
# allows for the same operations in a different order and, in float64, for a constant that was rounded to float32.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}


def agree(got, expected, rounded_to=None):
    """Return whether a result is the expected one. A result is a tensor, a number, or a tuple, list or dict of results.

    A tensor must have the expected shape and dtype. Where an int is expected, the result may have any type that Python
    accepts as an integer, such as a NumPy int or a tensor with one integer. A float is not accepted, even if it has no
    fractional part, since `range` rejects floats. ``rounded_to`` is a dtype of lower precision, to which intermediate
    results may have been rounded.
    """
    if isinstance(expected, torch.Tensor):
        return (
            isinstance(got, torch.Tensor) and metadata(got) == metadata(expected) and close(got, expected, rounded_to)
        )
    if isinstance(expected, (tuple, list)):
        same_length = isinstance(got, (tuple, list)) and len(got) == len(expected)
        return same_length and all(agree(item, expected_item, rounded_to) for item, expected_item in zip(got, expected))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(agree(got[k], expected[k], rounded_to) for k in expected)
        )
    if isinstance(expected, int) and not isinstance(expected, bool):
        return not isinstance(got, float) and as_int(got) == expected
    if isinstance(expected, float):  # NumPy's float64 is a subclass of float
        return isinstance(got, float) and got == expected
    return type(got) is type(expected) and (callable(expected) or bool(got == expected))


def metadata(tensor):
    """Return the properties that two tensors must share before their numbers can be compared."""
    if tensor.is_nested:
        return "nested"
    return tensor.shape, tensor.dtype, tensor.device.type, tensor.layout


def is_readable(tensor):
    """Return whether a tensor's numbers can be read; a tensor on the `meta` device, for example, has no numbers."""
    is_special = tensor.is_meta or tensor.is_nested or tensor.is_quantized or tensor.is_complex()
    return tensor.layout == torch.strided and not is_special


def close(got, expected, rounded_to=None):
    """Return whether two tensors of the same shape contain the same numbers; NaN equals NaN."""
    got, expected = got.detach().cpu(), expected.detach().cpu()
    if torch.equal(got, expected):
        return True
    if not (expected.is_floating_point() or expected.is_complex()):
        return False
    rtol = max(TOLERANCE.get(dtype, 1e-2) for dtype in (expected.dtype, rounded_to or expected.dtype))
    magnitudes = expected[expected.isfinite()].abs()
    atol = rtol / 10 * float(magnitudes.max()) if magnitudes.numel() else 0.0
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
    """Return all tensors in an argument or a result, as a flat list."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def is_float(value):
    """Return whether a value is a tensor of floating-point numbers."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def is_finite(value):
    """Return whether the tensors of a result contain only finite numbers."""
    return all(tensor.isfinite().all() for tensor in tensors_in(value))
