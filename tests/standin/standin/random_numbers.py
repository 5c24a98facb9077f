"""The device's random numbers: those of the CPU, from another seed."""

from typing import ClassVar

import torch

from . import NAME
from .memory import DEVICE


class Generator(torch._C.Generator):
    """``torch.Generator``, which may also be the device's."""

    ours: ClassVar[set] = set()  # by identity in C++: PyTorch passes another object of the same generator

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


def generator_of(given):
    """The generator that a call names, or the device's own; one of the CPU is refused."""
    source = given.get("generator") or default
    if source._cdata not in Generator.ours:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{source.device.type}'")
    return source


def drawing(call):
    """Call what takes no generator, with the CPU's own replaced by the device's for as long."""
    state = torch.get_rng_state()
    torch.set_rng_state(default.get_state())
    try:
        return call()
    finally:
        default.set_state(torch.get_rng_state())
        torch.set_rng_state(state)
