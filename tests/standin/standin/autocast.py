"""Implement mixed precision on the device, for those operations of CUDA's autocast that tests need."""

import torch

from . import NAME

HALF_OPERATIONS = (
    "addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d einsum linalg_vecdot linear matmul mm mv"
    " scaled_dot_product_attention"
)
FULL_OPERATIONS = (
    "exp expm1 log log1p logsumexp reciprocal rsqrt pow.Tensor_Scalar pow.Tensor_Tensor softplus layer_norm rms_norm"
    " native_layer_norm nll_loss kl_div mse_loss prod prod.dim_int softmax.int log_softmax.int cumprod cumsum sum"
    " sum.dim_IntList linalg_vector_norm"
)


def autocast_kernels():
    """Yield each operation that autocast changes, and the kernel that autocast calls instead."""
    for names, half in ((HALF_OPERATIONS, True), (FULL_OPERATIONS, False)):
        for name, _, overload in (operation.partition(".") for operation in names.split()):
            op = getattr(getattr(torch.ops.aten, name), overload or "default")
            yield op, _casting(op, half)


def _casting(op, half):
    """Return a kernel that casts floating-point tensors and then calls the operation without autocast."""
    keys_below = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def cast(x):
        if isinstance(x, (list, tuple)):
            return [cast(y) for y in x]
        if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float64:
            return x.to(torch.get_autocast_dtype(NAME) if half else torch.float32)
        return x

    def kernel(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(keys_below):
            return op(*map(cast, args), **{name: cast(x) for name, x in kwargs.items()})

    return kernel
