"""Imitate differences between CUDA's and the CPU's kernels that are larger than rounding (seen with PyTorch 2.11)."""

import torch


def reject_mixed_layer_norm(arguments):
    """Reject a half-precision input with a float32 weight, for which CUDA has no kernel."""
    for name in ("weight", "bias"):
        if arguments[name] is not None and arguments[name].dtype != arguments["input"].dtype:
            raise RuntimeError(f"expected scalar type {arguments['input'].dtype} but found {arguments[name].dtype}")


def divide_by_reciprocal(arguments):
    """Divide by 0 if the divisor's reciprocal, by which CUDA multiplies, is infinite: 0 · ∞ is NaN, as 0/0 is."""
    divisor = arguments["other"]
    if isinstance(divisor, float) and abs(divisor) < 1 / torch.finfo(torch.float32).max:
        arguments["other"] = 0.0 if divisor >= 0 else -0.0


QUIRKS = {"native_layer_norm": reject_mixed_layer_norm, "div": divide_by_reciprocal}
