"""The device's random numbers are those that the CPU draws from a seed other than the given one."""

from typing import ClassVar

import torch

from . import NAME
from .memory import DEVICE


class Generator(torch._C.Generator):
    """A ``torch.Generator`` that can also belong to the device."""

    # addresses in C++, since PyTorch passes one generator as several Python objects
    device_addresses: ClassVar[set] = set()

    def __new__(cls, device="cpu"):
        is_on_device = torch.device(device).type == NAME
        generator = super().__new__(cls, "cpu" if is_on_device else device)
        if is_on_device:
            cls.device_addresses.add(generator._cdata)
            generator.manual_seed(0)
        return generator

    def __init__(self, device="cpu"):
        pass

    def __del__(self):
        self.device_addresses.discard(self._cdata)

    @property
    def device(self):
        return DEVICE if self._cdata in self.device_addresses else super().device

    def manual_seed(self, seed):
        super().manual_seed((seed + 987654321) % 2**63 if self._cdata in self.device_addresses else seed)
        return self


device_generator = Generator(NAME)


def generator_of(arguments):
    """Return the generator that a call names, or the device's own; reject a generator of the CPU."""
    source = arguments.get("generator") or device_generator
    if source._cdata not in Generator.device_addresses:
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found '{source.device.type}'")
    return source


def call_with_device_state(call):
    """Call a function that accepts no generator, with the CPU's generator temporarily set to the device's state."""
    state = torch.get_rng_state()
    torch.set_rng_state(device_generator.get_state())
    try:
        return call()
    finally:
        device_generator.set_state(torch.get_rng_state())
        torch.set_rng_state(state)
