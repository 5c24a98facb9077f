"""A stand-in accelerator: a second device of PyTorch on a machine that has none, in pure Python, for tests.

    PYTHONPATH=tests/standin TRANSFORMER_LAB_DEVICE=standin python -m pytest tests/maths/test_attention.py

With this folder on PYTHONPATH the device is there upon ``import torch``, in every process and every kernel; nothing
is installed or built. Its memory is the host's and its kernels are the CPU's, but PyTorch takes its tensors for those
of an accelerator. They do not mix with the CPU's, have no ``.numpy()``, draw other random numbers and print
``device='standin:0'``; their backward pass runs in a thread of its own; a look-up out of range breaks the device for
the rest of the process, as an assertion on CUDA does.

``STANDIN_ROUNDING`` says how float32 is computed wherever devices may differ (sums, products of matrices, exp, …):

``cpu``     as the CPU does;
``double``  in float64, rounded once;
``nudge``   the default: likewise, but moved before by less than a quarter of the last place, so that what is exact
            stays exact, and some of the rest ends in another digit;
``shove``   by less than half of the last place: more than devices differ in some single operations.

``STANDIN_FLOAT64=no`` takes float64 away, as Apple's MPS does.

Not modelled: asynchronous execution, figures of memory, TF32, the algorithms that CUDA chooses.
"""

import sys
import types

import torch

NAME = "standin"
# What PyTorch does not promise to keep: all of it is in 2.13.0.
PRIVATE = (
    "_C._acc.create_empty_tensor",
    "_C._construct_storage_from_data_pointer",
    "_C._dispatch_get_registrations_for_dispatch_key",
    "_C._ExcludeDispatchKeyGuard",
    "_C.DispatchKeySet",
    "_ops.OpOverload.redispatch",
    "utils.backend_registration._DummyBackendModule",
    "utils.backend_registration._setup_privateuseone_for_python_backend",
)
registered = []  # Libraries: what they register ends with them


def autoload():
    """Register the device; PyTorch calls this when it is imported, by the entry point in ``standin-0.0.dist-info``."""
    torch.utils.rename_privateuse1_backend(NAME)
    if reason := missing():
        _register_only_the_name(reason)
    else:
        from .register import register

        registered.extend(register())


def missing():
    """Return why this PyTorch cannot have the device, or None where it can."""
    for path in PRIVATE:
        value = torch
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is None:
            return f"the device {NAME} needs torch.{path}, which PyTorch {torch.__version__} does not have"
    return None


def _register_only_the_name(reason):
    """Let PyTorch be imported, and say what is missing when the device is first asked for."""

    def refuse():
        raise RuntimeError(reason)

    module = types.ModuleType(f"torch.{NAME}")
    module._lazy_init = refuse  # which PyTorch calls before it makes a tensor there
    sys.modules[module.__name__] = module
