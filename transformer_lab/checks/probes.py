"""Inputs: how they are drawn, what is made of them, and what a function does with each."""

from collections.abc import Sequence

import torch

from ..device import device
from .observe import observe


class Draw:
    """Random inputs, the same in every run.

    ``draw(2, 3)`` is a tensor of that shape, normally distributed. ``draw.generator`` is for what else is random.
    """

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        return torch.randn(shape, generator=self.generator)


class Outcomes(Sequence):
    """What a function does with each probe of an exercise, computed when a check first needs it."""

    def __init__(self, exercise, function):
        self.exercise, self.function, self._observed = exercise, function, {}

    def __len__(self):
        return len(self.exercise.probes)

    def __getitem__(self, number):
        if number not in self._observed:
            range(len(self))[number]  # ends a loop over all
            probe = self.exercise.probes[number]
            # The device gets the ordinary input. An index out of range is an error on the CPU; on a GPU it would end
            # the session's use of it.
            is_skipped = probe.this_device_only and self[0].error is not None
            self._observed[number] = self[0] if is_skipped else observe(self.exercise, self.function, probe)
        return self._observed[number]


def in_float64(tensor):
    """The same numbers in float64; whole numbers and bools as they are."""
    return tensor.double() if tensor.is_floating_point() else tensor


def strided(tensor):
    """The same numbers in memory that runs through the axes in reverse order."""
    reverse = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(reverse).contiguous().permute(reverse)


def strided_with_whole_rows(tensor):
    """The same numbers with all axes but the last reversed in memory, as after a transpose of heads."""
    order = (*reversed(range(tensor.ndim - 1)), -1)[: tensor.ndim]
    return tensor.permute(order).contiguous().permute(order)


def on_device(tensor):
    """The same numbers on the device in use."""
    return tensor.to(device())


def each_tensor(change, argument):
    """Change every tensor in an argument."""
    if isinstance(argument, torch.Tensor):
        return change(argument)
    if isinstance(argument, dict):
        return {key: each_tensor(change, value) for key, value in argument.items()}
    if type(argument) in (tuple, list):
        return type(argument)(each_tensor(change, item) for item in argument)
    return argument
