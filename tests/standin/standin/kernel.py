"""An operation of the device requires that all tensors are on the device, and runs the CPU's kernel on their memory."""

import re

import torch

from . import NAME, rounding
from .memory import as_device_tensor, as_host_tensor, move
from .quirks import QUIRKS
from .random_numbers import call_with_device_state, generator_of

# CPU tensors may be mixed with the device's tensors as indices and, if they are single numbers, in pointwise
# operations.
INDICES = {"index": {"indices"}, "index_put_": {"indices"}, "_index_put_impl_": {"indices"}}
# Errors of the CPU about an index out of range. CUDA's kernels find such an index while they run, and fail with an
# assertion.
CPU_INDEX_ERROR = re.compile(
    r"^index -?\d+ is out of bounds|^index out of range in self|^Target -?\d+ is out of bounds"
)
DEVICE_ASSERTION = f"{NAME} error: device-side assert triggered"
failures = []  # the first assertion: as on CUDA, no operation works after it


class Kernel:
    """The function that PyTorch calls for one operation on tensors of the device."""

    def __init__(self, op, call=None):
        schema = op._schema
        self.op, self.call, self.name = op, call or op, schema.name.removeprefix("aten::")
        self.argument_names = [a.name for a in schema.arguments]
        self.tensor_arguments = {a.name for a in schema.arguments if "Tensor" in str(a.type)}
        written = {a.name: a.alias_info.before_set for a in schema.arguments if a.alias_info and a.alias_info.is_write}
        aliases = [r.alias_info.before_set for r in schema.returns if r.alias_info]
        self.returned_arguments = [
            name for alias in aliases for name, alias_set in written.items() if alias_set == alias
        ]
        # The schema does not declare which arguments batch normalization writes.
        self.written_arguments = {"running_mean", "running_var"} if self.name == "native_batch_norm" else set(written)
        self.mixes_devices = torch.Tag.pointwise in op.tags or self.name in INDICES
        self.is_random = torch.Tag.nondeterministic_seeded in op.tags or "generator" in self.argument_names
        self.rounds_differently = rounding.rounds_differently(self.name) and not self.is_random

    def __call__(self, *args, **kwargs):
        if failures:
            raise RuntimeError(DEVICE_ASSERTION)
        arguments = dict(zip(self.argument_names, args), **kwargs)
        tensors = [x for name in self.tensor_arguments & arguments.keys() for x in _tensors(arguments[name])]
        in_float64 = self.rounds_differently and rounding.computes_in_float64(arguments, tensors, self.name)
        cpu_arguments, written = self.to_cpu(arguments, in_float64)
        result = self.run(cpu_arguments)
        for tensor, host, float32_host in written:
            self.write_back(tensor, host, float32_host)
        if self.returned_arguments:
            outputs = tuple(arguments[name] for name in self.returned_arguments)
            return outputs[0] if len(outputs) == 1 else outputs
        return self.to_device(result, in_float64)

    def to_cpu(self, arguments, in_float64):
        """Return the CPU kernel's arguments, and (tensor, host tensor, float32 tensor) for each written argument."""
        cpu_arguments, written = arguments.copy(), []
        for name in self.tensor_arguments & arguments.keys():
            value = arguments[name]
            if isinstance(value, torch.Tensor):
                cpu_arguments[name] = self.share_on_cpu(name, value, in_float64, written)
            elif isinstance(value, (list, tuple)):
                cpu_arguments[name] = [
                    x if x is None else self.share_on_cpu(name, x, in_float64, written) for x in value
                ]
        if "device" in self.argument_names:
            cpu_arguments["device"] = "cpu"
        if in_float64 and cpu_arguments.get("dtype") is not None:
            cpu_arguments["dtype"] = torch.float64
        return cpu_arguments, written

    def share_on_cpu(self, name, x, in_float64, written):
        """Return a CPU tensor that shares the memory of ``x``, or, for an operation in float64, a float64 copy."""
        if x.device.type != NAME:
            is_number = self.mixes_devices and x.dim() == 0 and name not in self.written_arguments
            if x.is_cpu and (is_number or name in INDICES.get(self.name, ())):
                return x
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {NAME}:0 and "
                f"{x.device}! (when checking argument {name} of aten::{self.name})"
            )
        host = as_host_tensor(x)
        float32_host = host if in_float64 and host.dtype == torch.float32 else None
        if float32_host is not None:
            host = float32_host.double()
        if name in self.written_arguments:
            written.append((x, host, float32_host))
        return host

    def run(self, cpu_arguments):
        """Call the CPU's kernel."""
        call = self.call
        if self.name in QUIRKS:
            QUIRKS[self.name](cpu_arguments)
        if any(
            isinstance(cpu_arguments[name], (int, float, complex))
            for name in self.tensor_arguments & cpu_arguments.keys()
        ):
            # PyTorch may pass numbers in place of tensors; numbers need an overload of their own
            call = self.op.overloadpacket
        try:
            if "generator" in self.argument_names:
                return call(**{**cpu_arguments, "generator": generator_of(cpu_arguments)})
            return call_with_device_state(lambda: call(**cpu_arguments)) if self.is_random else call(**cpu_arguments)
        except (IndexError, RuntimeError) as error:
            if CPU_INDEX_ERROR.search(str(error)):
                failures.append(error)
                raise RuntimeError(DEVICE_ASSERTION) from error
            raise

    def write_back(self, tensor, host, float32_host):
        """Copy a result of the CPU's kernel to ``tensor``; if the result is in new memory, share this memory."""
        if float32_host is not None:
            if float32_host.shape != host.shape:
                float32_host.resize_(host.shape)
            host = float32_host.copy_(rounding.round_to_float32(host, self.name))
        if host.shape != tensor.shape or host.data_ptr() != tensor.data_ptr():
            move(tensor, host)

    def to_device(self, result, in_float64):
        """Return the result of the CPU's kernel as tensors of the device."""
        if isinstance(result, torch.Tensor):
            return as_device_tensor(
                rounding.round_to_float32(result, self.name) if in_float64 and result.dtype == torch.float64 else result
            )
        if isinstance(result, (list, tuple)):
            return type(result)(self.to_device(x, in_float64) for x in result)
        return result


def _tensors(value):
    return [x for x in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(x, torch.Tensor)]
