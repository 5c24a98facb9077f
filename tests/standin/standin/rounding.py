"""Where devices may round differently, compute in float64, move the result a little, and round once."""

import os

import torch

ROUNDING = os.environ.get("STANDIN_ROUNDING", "nudge")
if ROUNDING not in ("cpu", "double", "nudge", "shove"):
    raise ValueError(f"STANDIN_ROUNDING must be cpu, double, nudge or shove, got {ROUNDING!r}")
# A float32 has 24 binary digits, so a quarter of its last digit is at least 2⁻²⁶ of the number.
RELATIVE_SHIFT = {"nudge": 0.9 * 2.0**-26, "shove": 0.9 * 2.0**-25}.get(ROUNDING, 0.0)
# These operations are rounded correctly, as IEEE 754 requires, or only move numbers, so all devices agree.
EXACT_OPERATIONS = (
    "abs add amax amin arange argmax argmin cat ceil clamp clamp_max clamp_min copy cummax cummin div embedding equal"
    " fill flip floor frexp gather index index_put index_put_impl index_select linspace local_scalar_dense masked_fill"
    " masked_scatter masked_select max maximum min minimum mul nan_to_num neg nextafter reciprocal relu"
    " repeat_interleave resize roll round rsub scatter sort sqrt sub threshold topk tril triu trunc where zero"
)


def rounds_differently(name):
    """Return whether the device rounds this operation in its own way."""
    return ROUNDING != "cpu" and name.strip("_") not in EXACT_OPERATIONS.split()


def round_to_float32(float64_result, name):
    """Move float64 numbers a little up or down, depending on the operation's name, and convert them to float32."""
    sign = 1 if sum(map(ord, name.strip("_"))) % 2 else -1
    return (float64_result * (1 + sign * RELATIVE_SHIFT) if RELATIVE_SHIFT else float64_result).float()


def computes_in_float64(arguments, tensors, name):
    """Return whether to compute in float64: all floats on the device are float32, and no other dtype is requested."""
    if arguments.get("dtype") not in (None, torch.float32):
        return False
    floats = [x for x in tensors if x.is_floating_point() and not x.is_cpu]
    if not floats or any(x.dtype != torch.float32 for x in floats):
        return False
    if name.strip("_") != "pow" or isinstance(arguments["exponent"], torch.Tensor):
        return True
    return arguments["exponent"] not in (0.5, 1, 2)  # roots, squares and the first power are exact
