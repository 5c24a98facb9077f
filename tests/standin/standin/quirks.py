"""Where CUDA's kernels differ from the CPU's by more than rounding, as seen there with PyTorch 2.11."""

import torch


def layer_norm(given):
    """CUDA has no kernel for an input of half precision beside a weight in float32."""
    for name in ("weight", "bias"):
        if given[name] is not None and given[name].dtype != given["input"].dtype:
            raise RuntimeError(f"expected scalar type {given['input'].dtype} but found {given[name].dtype}")


def division(given):
    """CUDA multiplies by the reciprocal of a number. That of a number near 0 is infinite, and 0 · ∞ is NaN, as 0/0."""
    divisor = given["other"]
    if isinstance(divisor, float) and abs(divisor) < 1 / torch.finfo(torch.float32).max:
        given["other"] = 0.0 if divisor >= 0 else -0.0


QUIRKS = {"native_layer_norm": layer_norm, "div": division}
