"""Draws and varies the inputs of an exercise, and collects a function's outcomes for these inputs."""

from collections.abc import Sequence

import torch

from ..device import device
from .observe import observe


class Draw:
    """Random inputs that are the same in every run.

    ``draw(2, 3)`` is a tensor of that shape, normally distributed. ``draw.generator`` is for other random values.
    """

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        return torch.randn(shape, generator=self.generator)


class Outcomes(Sequence):
    """The outcomes of a function for the probes of an exercise, each computed when a check first needs it."""

    def __init__(self, exercise, function):
        self.exercise, self.function, self._observed = exercise, function, {}

    def __len__(self):
        return len(self.exercise.probes)

    def __getitem__(self, number):
        if number not in self._observed:
            range(len(self))[number]  # raises IndexError after the last probe, which ends a loop over all outcomes
            probe = self.exercise.probes[number]
            # A probe for the device runs only if the ordinary input raised no error: an index out of range is an
            # ordinary error on the CPU, but makes a GPU unusable for the rest of the session.
            is_skipped = probe.this_device_only and self[0].error is not None
            self._observed[number] = self[0] if is_skipped else observe(self.exercise, self.function, probe)
        return self._observed[number]


def in_float64(tensor):
    """Return the same numbers in float64; leave integers and bools unchanged."""
    return tensor.double() if tensor.is_floating_point() else tensor


def strided(tensor):
    """Return the same numbers, stored with the axes in reverse order."""
    reverse = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(reverse).contiguous().permute(reverse)


def strided_with_whole_rows(tensor):
    """Return the same numbers, stored with all axes but the last in reverse order, as after a transpose of heads."""
    order = (*reversed(range(tensor.ndim - 1)), -1)[: tensor.ndim]
    return tensor.permute(order).contiguous().permute(order)


def on_device(tensor):
    """Return the same numbers on the device in use."""
    return tensor.to(device())


def each_tensor(change, argument):
    """Apply ``change`` to every tensor in an argument."""
    if isinstance(argument, torch.Tensor):
        return change(argument)
    if isinstance(argument, dict):
        return {key: each_tensor(change, value) for key, value in argument.items()}
    if type(argument) in (tuple, list):
        return type(argument)(each_tensor(change, item) for item in argument)
    return argument
