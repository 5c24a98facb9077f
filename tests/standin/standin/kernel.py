"""An operation of the device: run the CPU's kernel on the same memory, for tensors that are all on the device."""

import re

import torch

from . import NAME, rounding
from .memory import move, on_device, on_host
from .quirks import QUIRKS
from .random_numbers import drawing, generator_of

# CPU tensors may be mixed with the device's tensors as indices and, if they are single numbers, in pointwise
# operations.
INDICES = {"index": {"indices"}, "index_put_": {"indices"}, "_index_put_impl_": {"indices"}}
# Errors of the CPU about an index out of range. CUDA's kernels find such an index while they run, and fail with an
# assertion.
ASSERTED = re.compile(r"^index -?\d+ is out of bounds|^index out of range in self|^Target -?\d+ is out of bounds")
ASSERTION = f"{NAME} error: device-side assert triggered"
failed = []  # the first assertion: as on CUDA, no operation works after it


class Kernel:
    """The function that PyTorch calls for one operation on tensors of the device."""

    def __init__(self, op, call=None):
        schema = op._schema
        self.op, self.call, self.name = op, call or op, schema.name.removeprefix("aten::")
        self.names = [a.name for a in schema.arguments]
        self.tensors = {a.name for a in schema.arguments if "Tensor" in str(a.type)}
        written = {a.name: a.alias_info.before_set for a in schema.arguments if a.alias_info and a.alias_info.is_write}
        aliases = [r.alias_info.before_set for r in schema.returns if r.alias_info]
        self.returned = [name for alias in aliases for name, its in written.items() if its == alias]
        # The schema of batch normalization does not declare which arguments it writes.
        self.written = {"running_mean", "running_var"} if self.name == "native_batch_norm" else set(written)
        self.mixes = torch.Tag.pointwise in op.tags or self.name in INDICES
        self.random = torch.Tag.nondeterministic_seeded in op.tags or "generator" in self.names
        self.rounds = rounding.rounds(self.name) and not self.random

    def __call__(self, *args, **kwargs):
        if failed:
            raise RuntimeError(ASSERTION)
        given = dict(zip(self.names, args), **kwargs)
        tensors = [x for name in self.tensors & given.keys() for x in _tensors(given[name])]
        wide = self.rounds and rounding.is_wide(given, tensors, self.name)
        new, changed = self.hosted(given, wide)
        result = self.run(new)
        for tensor, host, narrow in changed:
            self.write_back(tensor, host, narrow)
        if self.returned:
            outputs = tuple(given[name] for name in self.returned)
            return outputs[0] if len(outputs) == 1 else outputs
        return self.handed_over(result, wide)

    def hosted(self, given, wide):
        """Return the CPU kernel's arguments, and for each one that it writes: (tensor, host tensor, narrow tensor)."""
        new, changed = given.copy(), []
        for name in self.tensors & given.keys():
            value = given[name]
            if isinstance(value, torch.Tensor):
                new[name] = self.host(name, value, wide, changed)
            elif isinstance(value, (list, tuple)):
                new[name] = [x if x is None else self.host(name, x, wide, changed) for x in value]
        if "device" in self.names:
            new["device"] = "cpu"
        if wide and new.get("dtype") is not None:
            new["dtype"] = torch.float64
        return new, changed

    def host(self, name, x, wide, changed):
        """Return the CPU tensor that shares a tensor's memory, or its copy in float64 for a wide operation."""
        if x.device.type != NAME:
            is_number = self.mixes and x.dim() == 0 and name not in self.written
            if x.is_cpu and (is_number or name in INDICES.get(self.name, ())):
                return x
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and "
                f"{x.device}! (when checking argument {name} of aten::{self.name})"
            )
        host = on_host(x)
        narrow = host if wide and host.dtype == torch.float32 else None
        if narrow is not None:
            host = narrow.double()
        if name in self.written:
            changed.append((x, host, narrow))
        return host

    def run(self, new):
        """Call the CPU's kernel."""
        call = self.call
        if self.name in QUIRKS:
            QUIRKS[self.name](new)
        if any(isinstance(new[name], (int, float, complex)) for name in self.tensors & new.keys()):
            # PyTorch may pass numbers in place of tensors, which needs a different overload
            call = self.op.overloadpacket
        try:
            if "generator" in self.names:
                return call(**{**new, "generator": generator_of(new)})
            return drawing(lambda: call(**new)) if self.random else call(**new)
        except (IndexError, RuntimeError) as error:
            if ASSERTED.search(str(error)):
                failed.append(error)
                raise RuntimeError(ASSERTION) from error
            raise

    def write_back(self, tensor, host, narrow):
        """Copy the CPU kernel's result to a tensor of the device; if the kernel has moved it, share its new memory."""
        if narrow is not None:
            if narrow.shape != host.shape:
                narrow.resize_(host.shape)
            host = narrow.copy_(rounding.narrow(host, self.name))
        if host.shape != tensor.shape or host.data_ptr() != tensor.data_ptr():
            move(tensor, host)

    def handed_over(self, result, wide):
        """Return the result of the CPU's kernel as tensors of the device."""
        if isinstance(result, torch.Tensor):
            return on_device(rounding.narrow(result, self.name) if wide and result.dtype == torch.float64 else result)
        if isinstance(result, (list, tuple)):
            return type(result)(self.handed_over(x, wide) for x in result)
        return result


def _tensors(value):
    return [x for x in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(x, torch.Tensor)]
