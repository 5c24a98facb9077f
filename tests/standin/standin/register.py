"""Register the device with PyTorch: its module, its kernels, its memory, its random numbers."""

import contextlib
from functools import partial

import torch
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

from . import NAME, autocast, memory, random_numbers
from .kernel import Kernel
from .memory import CPU_KERNELS, aten


class Module(_DummyBackendModule):
    """The functions that PyTorch expects in ``torch.standin``."""

    def manual_seed_all(self, seed):
        random_numbers.device_generator.manual_seed(seed)

    def get_rng_state(self, device=None):
        return random_numbers.device_generator.get_state()

    def set_rng_state(self, state, device=None):
        random_numbers.device_generator.set_state(state)

    def device(self, index):
        return contextlib.nullcontext()

    def synchronize(self, device=None):
        pass

    def get_amp_supported_dtype(self):
        return [torch.float16, torch.bfloat16]


def register():
    """Register the device, and return the libraries that must be kept alive as long as the device is used."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=Module())
    kernels, fallback = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    for op in _operations_of_the_cpu():
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in op._schema.returns)
        kernels.impl(op, partial(op.redispatch, CPU_KERNELS) if is_view else Kernel(op), "PrivateUse1")
    convolution, backward = aten.convolution_overrideable.default, aten.convolution_backward_overrideable.default
    for op, kernel in {
        convolution: Kernel(convolution, aten.convolution.default),
        backward: Kernel(backward, _convolution_backward),
        aten._copy_from.default: memory.copy,
        aten._copy_from_and_resize.default: memory.copy,
        aten.set_.source_Storage_storage_offset: memory.set_storage,
        aten.set_.source_Storage: memory.set_to_storage,
        aten.set_.source_Tensor: memory.set_to_tensor,
    }.items():
        kernels.impl(op, kernel, "PrivateUse1")
    fallback.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for op, kernel in autocast.autocast_kernels():
        kernels.impl(op, kernel, "AutocastPrivateUse1")
    torch.Generator = random_numbers.Generator
    torch.UntypedStorage.__new__ = memory.new_storage
    # As with CUDA, a module keeps its parameter objects when it moves to the device, including tied parameters.
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.accelerator.synchronize = lambda device=None: None  # torch.utils.benchmark calls it
    return kernels, fallback


def _operations_of_the_cpu():
    """Yield all operations with a kernel on the CPU, except those that set or copy memory."""
    for full_name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU"):
        namespace, _, operation = full_name.partition("::")
        name, _, overload = operation.partition(".")
        if namespace == "aten" and name not in ("set_", "copy_"):
            yield getattr(getattr(aten, name), overload or "default")


def _convolution_backward(*, grad_output, input, weight, **options):
    return aten.convolution_backward.default(grad_output, input, weight, [weight.shape[0]], **options)
