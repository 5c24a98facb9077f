"""Comparisons for the properties of this chapter."""

import torch


def is_all_ones(result):
    return is_close(result, torch.ones_like(result))


def is_within(result, value):
    tolerance = 1e-4 * float(value.abs().max())
    return bool(result.min() >= value.min() - tolerance and result.max() <= value.max() + tolerance)


def is_close(result, other):
    return torch.allclose(result, other, rtol=1e-3, atol=1e-4)
