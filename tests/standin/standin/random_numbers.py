"""The device's random numbers, which are those of the CPU from a different seed."""

from typing import ClassVar

import torch

from . import NAME
from .memory import DEVICE


class Generator(torch._C.Generator):
    """A ``torch.Generator`` that can also belong to the device."""

    # addresses in C++, since PyTorch passes a different Python object for the same generator
    ours: ClassVar[set] = set()

    def __new__(cls, device="cpu"):
        ours = torch.device(device).type == NAME
        generator = super().__new__(cls, "cpu" if ours else device)
        if ours:
            cls.ours.add(generator._cdata)
            generator.manual_seed(0)
        return generator

    def __init__(self, device="cpu"):
        pass

    def __del__(self):
        self.ours.discard(self._cdata)

    @property
    def device(self):
        return DEVICE if self._cdata in self.ours else super().device

    def manual_seed(self, seed):
        super().manual_seed((seed + 987654321) % 2**63 if self._cdata in self.ours else seed)
        return self


default = Generator(NAME)


def generator_of(arguments):
    """Return the generator that a call names, or the device's own; reject a generator of the CPU."""
    source = arguments.get("generator") or default
    if source._cdata not in Generator.ours:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{source.device.type}'")
    return source


def drawing(call):
    """Make a call that takes no generator, with the CPU's generator temporarily set to the device's state."""
    state = torch.get_rng_state()
    torch.set_rng_state(default.get_state())
    try:
        return call()
    finally:
        default.set_state(torch.get_rng_state())
        torch.set_rng_state(state)
