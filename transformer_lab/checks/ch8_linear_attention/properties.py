"""Comparisons for the properties of this chapter."""

import torch


def is_one(result):
    return is_like(result, torch.ones_like(result))


def is_within(result, value):
    room = 1e-4 * float(value.abs().max())
    return bool(result.min() >= value.min() - room and result.max() <= value.max() + room)


def is_like(result, other):
    return torch.allclose(result, other, rtol=1e-3, atol=1e-4)
