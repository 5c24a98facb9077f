"""Differences between CUDA's kernels and the CPU's that are larger than rounding, as observed with PyTorch 2.11."""

import torch


def layer_norm(arguments):
    """Reject a half-precision input with a float32 weight, for which CUDA has no kernel."""
    for name in ("weight", "bias"):
        if arguments[name] is not None and arguments[name].dtype != arguments["input"].dtype:
            raise RuntimeError(f"expected scalar type {arguments['input'].dtype} but found {arguments[name].dtype}")


def division(arguments):
    """Divide as CUDA does, by the reciprocal. Near 0 the reciprocal is infinite, and 0 · ∞ is NaN, as 0/0 is."""
    divisor = arguments["other"]
    if isinstance(divisor, float) and abs(divisor) < 1 / torch.finfo(torch.float32).max:
        arguments["other"] = 0.0 if divisor >= 0 else -0.0


QUIRKS = {"native_layer_norm": layer_norm, "div": division}
