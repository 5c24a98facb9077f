"""Checks whether gradients flow back through a function, and whether they are right."""

import torch

from .agree import close, is_float, tensors_in
from .observe import settings_kept
from .probes import each_tensor

OVERWRITTEN_TEXT = (
    "PyTorch reports that an in-place operation such as `+=` has overwritten numbers that an earlier step had read. "
    "The gradient of that step needs the old numbers."
)

CUT_OFF_TEXT = (
    "The numbers are right, but no gradient flows back through them, so nothing can be trained. Possible causes: "
    "`.detach()`, `.data`, `.item()`, `.numpy()`, `torch.no_grad()`, or a new tensor made from numbers."
)


def describe_wrong_gradients(exercise, function):
    """Say what is wrong with the gradients of a function whose results are right, or return an empty text."""
    for probe in exercise.probes:
        names = [name for name, a in zip(exercise.arguments, probe.arguments) for _ in filter(is_float, tensors_in(a))]
        if not names or not any(map(is_float, tensors_in(exercise.expected[0].value))):
            continue
        expected_gradients = _gradients(exercise.reference, probe)
        if expected_gradients is None:
            continue
        try:
            actual = _gradients(function, probe)
        except Exception as error:
            reason = OVERWRITTEN_TEXT if "modified by an inplace operation" in str(error) else error
            return f"The numbers are right, but their gradients cannot be computed, so nothing can be trained. {reason}"
        actual = actual or [None] * len(expected_gradients)
        if any(gradient is None and _is_nonzero(expected) for gradient, expected in zip(actual, expected_gradients)):
            return CUT_OFF_TEXT
        for name, gradient, expected in zip(names, actual, expected_gradients):
            if gradient is None or expected is None or not expected.isfinite().all():
                continue
            # The digits of a gradient count only on plain inputs: on special inputs, such as very large scores,
            # rounding alone can change them. The second comparison is for gradients that should be zero.
            is_equal = close(gradient, expected) or torch.allclose(gradient, expected, atol=1e-6)
            if not gradient.isfinite().all() or (probe.plain and not is_equal):
                fault = "is wrong" if gradient.isfinite().all() else "contains NaN or infinity"
                return f"The numbers are right, but the gradient with respect to `{name}` {fault}, with {probe.name}."
    return ""


def gradients_flow(function, probe):
    """Return whether gradients flow back through a function; None if they cannot be computed."""
    try:
        return any(map(_is_nonzero, _gradients(function, probe) or ()))
    except Exception:
        return None


def _is_nonzero(gradient):
    """Return whether a gradient is not zero: a gradient of zeros, as for a softmax over one key, counts as missing."""
    return gradient is not None and not torch.allclose(gradient, torch.zeros_like(gradient), atol=1e-6)


def _gradients(function, probe):
    """Return a gradient or None for each floating-point argument; a single None if no result requires a gradient."""
    leaves = []

    def as_leaf(tensor):
        if is_float(tensor):
            leaves.append(tensor.detach().clone().requires_grad_())
            return leaves[-1]
        return tensor.clone()  # a copy, since a function may change its argument

    arguments = each_tensor(as_leaf, probe.arguments)
    with settings_kept():
        results = [tensor for tensor in tensors_in(function(*arguments)) if tensor.requires_grad]
    if not results or not leaves:  # a result may require gradients only because of a model among the arguments
        return None
    # The results are summed with weights that differ a lot from number to number. In a plain sum, errors can cancel;
    # with weights that are nearly equal, the gradient of a normalization would be a small difference between large
    # numbers.
    total = sum((r * torch.arange(r.numel()).cos().to(r).reshape(r.shape)).sum() for r in results)
    return torch.autograd.grad(total, leaves, allow_unused=True)
