"""A stand-in for an accelerator: a PyTorch device in pure Python, for tests on a machine without an accelerator.

    PYTHONPATH=tests/standin TRANSFORMER_LAB_DEVICE=standin python -m pytest tests/maths/test_attention.py

If this folder is on PYTHONPATH, ``import torch`` registers the device, in every process and every kernel; nothing is
installed or built. The device uses the host's memory and the CPU's kernels, but PyTorch treats its tensors as those of
an accelerator. The device's tensors cannot be mixed with CPU tensors, have no ``.numpy()``, and print
``device='standin:0'``. Random numbers differ from the CPU's; a backward pass runs in a separate thread; an index out of
range makes the device fail for the rest of the process, as an assertion on CUDA does.

``STANDIN_ROUNDING`` sets how float32 numbers are computed wherever devices may differ (sums, matrix products, exp, …):

``cpu``     as on the CPU;
``double``  in float64, then rounded once;
``nudge``   the default: in float64, then moved by less than a quarter of float32's last digit, then rounded, so that
            exact results stay exact, and the last digit of some inexact results changes;
``shove``   likewise, but moved by less than half of the last digit; in some operations, no real device differs so much.

``STANDIN_FLOAT64=no`` simulates a device without float64, such as Apple's MPS.

Not simulated: asynchronous execution, memory statistics, TF32, and the algorithms that CUDA chooses.
"""

import sys
import types

import torch

NAME = "standin"
# Private names of PyTorch, which may disappear; version 2.13.0 has all of them.
PRIVATE_NAMES = (
    "_C._acc.create_empty_tensor",
    "_C._construct_storage_from_data_pointer",
    "_C._dispatch_get_registrations_for_dispatch_key",
    "_C._ExcludeDispatchKeyGuard",
    "_C.DispatchKeySet",
    "_ops.OpOverload.redispatch",
    "utils.backend_registration._DummyBackendModule",
    "utils.backend_registration._setup_privateuseone_for_python_backend",
)
libraries = []  # kept alive here, because PyTorch removes a library's kernels when the library is deleted


def autoload():
    """Register the device; PyTorch calls this on import, through the entry point in ``standin-0.0.dist-info``."""
    torch.utils.rename_privateuse1_backend(NAME)
    if reason := reason_unavailable():
        _register_only_the_name(reason)
    else:
        from .register import register

        libraries.extend(register())


def reason_unavailable():
    """Return why this PyTorch cannot have the device, or None if it can."""
    for path in PRIVATE_NAMES:
        value = torch
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is None:
            return f"the device {NAME} needs torch.{path}, which PyTorch {torch.__version__} does not have"
    return None


def _register_only_the_name(reason):
    """Let PyTorch be imported, and raise an error with the reason when the device is first used."""

    def refuse():
        raise RuntimeError(reason)

    module = types.ModuleType(f"torch.{NAME}")
    module._lazy_init = refuse  # PyTorch calls this function before it creates a tensor on the device
    sys.modules[module.__name__] = module
