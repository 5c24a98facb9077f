"""The device uses the host's memory: every tensor of the device shares the memory of a CPU tensor."""

import os
from functools import partial

import torch

from . import NAME

DEVICE = torch.device(NAME, 0)
FLOAT64 = os.environ.get("STANDIN_FLOAT64") != "no"
aten = torch.ops.aten
CPU_KERNELS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
# These two kernels of the CPU neither read nor write numbers, so they work on every device.
set_storage = partial(aten.set_.source_Storage_storage_offset.redispatch, CPU_KERNELS)
as_strided = partial(aten.as_strided.default.redispatch, CPU_KERNELS)


def device_storage(host):
    """Return a storage of the device that shares the memory of a CPU tensor, and keeps this tensor alive."""
    memory = host.untyped_storage()
    storage = torch._C._construct_storage_from_data_pointer(memory.data_ptr(), DEVICE, memory.nbytes())
    storage.host = host
    return storage


def as_device_tensor(host):
    """Return a tensor of the device that shares the memory of a CPU tensor."""
    _require_dtype(host.dtype)
    tensor = torch._C._acc.create_empty_tensor((0,), host.dtype)
    return set_storage(tensor, device_storage(host), host.storage_offset(), host.shape, host.stride())


def as_host_tensor(tensor):
    """Return a CPU tensor that shares the memory of a tensor of the device."""
    base = tensor.untyped_storage().host
    if base.dtype == tensor.dtype:
        return as_strided(base, tensor.shape, tensor.stride(), tensor.storage_offset())
    empty = torch.empty(0, dtype=tensor.dtype, device="cpu")
    return set_storage(empty, base.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


def move(tensor, host):
    """Make a tensor of the device share the memory of the CPU tensor ``host``, in place of its previous memory."""
    return set_storage(tensor, device_storage(host), host.storage_offset(), host.shape, host.stride())


def copy(source, target, non_blocking=False):
    """Copy numbers between the CPU and the device, or within the device. As on MPS, the device converts the dtype."""
    if not source.is_cpu:
        _require_dtype(target.dtype)
    _host(target).copy_(_host(source))
    return target


def set_to_storage(tensor, storage):
    return set_storage(tensor, storage, 0, (storage.nbytes() // tensor.itemsize,), (1,))


def set_to_tensor(tensor, source):
    return set_storage(tensor, source.untyped_storage(), source.storage_offset(), source.shape, source.stride())


def new_storage(cls, *args, device=None, **kwargs):
    """Replace ``UntypedStorage(size, device=…)``, which ``copy.deepcopy`` and ``torch.load`` call."""
    if device is None or torch.device(device).type != NAME:
        return torch._C.StorageBase.__new__(cls, *args, **kwargs, **({} if device is None else {"device": device}))
    return device_storage(torch.empty(*args, dtype=torch.uint8, device="cpu"))


def _host(tensor):
    return tensor if tensor.is_cpu else as_host_tensor(tensor)


def _require_dtype(dtype):
    if dtype == torch.float64 and not FLOAT64:
        raise TypeError(f"Cannot convert a {NAME} Tensor to float64 dtype: the device has no float64.")
