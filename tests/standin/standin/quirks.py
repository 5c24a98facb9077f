"""Differences between CUDA's kernels and the CPU's that are larger than rounding, as observed with PyTorch 2.11."""

import torch


def layer_norm(given):
    """Reject a half-precision input with a float32 weight, for which CUDA has no kernel."""
    for name in ("weight", "bias"):
        if given[name] is not None and given[name].dtype != given["input"].dtype:
            raise RuntimeError(f"expected scalar type {given['input'].dtype} but found {given[name].dtype}")


def division(given):
    """Divide as CUDA does, by the reciprocal. Near 0 the reciprocal is infinite, and 0 · ∞ is NaN, as 0/0 is."""
    divisor = given["other"]
    if isinstance(divisor, float) and abs(divisor) < 1 / torch.finfo(torch.float32).max:
        given["other"] = 0.0 if divisor >= 0 else -0.0


QUIRKS = {"native_layer_norm": layer_norm, "div": division}
