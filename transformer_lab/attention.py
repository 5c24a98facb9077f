"""Attention: every query gets a mean of the values, weighted by how well their keys match the query."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from .arguments import (
    format_value,
    is_number,
    require_attention,
    require_axis,
    require_flags,
    require_floating,
    require_probability,
    require_tensor,
    suggest_float,
    values_are_known,
)
from .precision import accumulation_dtype

# Since version 2.5, PyTorch's kernels have accepted fewer key heads than query heads.
TORCH_VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])
HAS_GQA = TORCH_VERSION >= (2, 5)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Convert scores to weights: numbers from 0 to 1 that sum to one along ``dim``.

    This is the plain form, written for readers. ``torch.softmax``, which :func:`attention_weights` uses, computes the
    same weights in one pass over memory.

    Parameters
    ----------
    x : Tensor, any shape, floating point
    dim : int, optional
        The axis along which the weights sum to one.

    Returns
    -------
    Tensor, shape of ``x``
        Empty if ``x`` is empty; NaN in every slice that contains only ``-inf``, because such scores define no weights.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor.
    IndexError
        If ``x`` has no axis ``dim``.

    References
    ----------
    Goodfellow, Bengio and Courville, *Deep Learning*, 2016, section 4.1, for overflow and the subtracted maximum.

    Examples
    --------
    >>> softmax(torch.tensor([0.0, math.log(3.0)]))
    tensor([0.2500, 0.7500])
    """
    require_floating(x=x)
    require_axis(x, dim)
    if x.numel() == 0:
        return x.clone()
    upcast = x.to(accumulation_dtype(x))
    # Subtracting the maximum does not change the result, and prevents an overflow of exp.
    exp = (upcast - upcast.detach().amax(dim, keepdim=True)).exp()
    return (exp / exp.sum(dim, keepdim=True)).to(x.dtype)


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    bias: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return the weight of each key for each query.

    The weights are ``softmax(query · keyᵀ · scale + bias)``, with the softmax over the keys.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
        The leading axes are those of ``query`` or broadcast with them.
    mask : Tensor of bool, broadcastable to (..., q_len, k_len), optional
        ``True`` where the query may attend to the key.
    is_causal : bool, optional
        As in :func:`scaled_dot_product_attention`.
    scale : float, optional
        Factor by which the scores are multiplied; ``1 / √d_head`` by default.
    bias : Tensor, broadcastable to (..., q_len, k_len), optional
        As in :func:`scaled_dot_product_attention`.
    enable_gqa : bool, optional
        As in :func:`scaled_dot_product_attention`.

    Returns
    -------
    Tensor, shape (..., q_len, k_len)
        Every row sums to one, except that a row in which the mask allows no key is all zeros, with a gradient of zero.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors are on different devices, or both ``mask`` and ``is_causal`` are given.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, equation 1.

    Examples
    --------
    >>> query = torch.tensor([[2.0, 0.0]])
    >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> attention_weights(query, key)
    tensor([[0.8044, 0.1956]])
    """
    leading, _ = require_attention(query, key, mask, bias=bias, enable_gqa=enable_gqa)
    scale = _resolve_scale(scale, query)
    require_at_most_one_mask(mask, is_causal)
    if enable_gqa:
        key = _repeat_heads(key, query)
    if is_causal:
        mask = _causal_mask_from_first_key(query, key)
    compute_dtype = accumulation_dtype(query)
    # Scaling the query takes d_head multiplications per row; scaling the scores would take k_len.
    scores = (query.to(compute_dtype) * scale) @ key.to(compute_dtype).transpose(-2, -1)  # (..., q_len, k_len)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return torch.softmax(scores, dim=-1).to(query.dtype)
    mask, fully_masked = _unmask_fully_masked_rows(mask)
    scores = scores.expand(*leading, *scores.shape[-2:]).masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1).masked_fill(fully_masked, 0.0)
    return weights.to(query.dtype)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
    scale: float | None = None,
    bias: Tensor | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return, for each query, the mean of the values, weighted by how well their keys match the query.

    The result is ``attention_weights(query, key, mask) @ value``, computed by PyTorch's fused kernel, which never
    stores the ``(q_len, k_len)`` weights.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
    value : Tensor, shape (..., k_len, d_value)
        The leading axes of query, key and value are equal or broadcast.
    mask : Tensor of bool, broadcastable to (..., q_len, k_len), optional
        ``True`` where the query may attend to the key.
    is_causal : bool, optional
        Query ``i`` may attend to keys ``0 … i`` only, even if ``q_len ≠ k_len``: positions are counted from the first
        key, as in ``torch.nn.functional.scaled_dot_product_attention``. This is faster than passing the same mask as a
        tensor.
    dropout_p : float, optional
        Probability with which each weight is dropped, in every call: a function has no training mode.
    scale : float, optional
        Factor by which the scores are multiplied; ``1 / √d_head`` by default.
    bias : Tensor, broadcastable to (..., q_len, k_len), optional
        Added to the scores: finite numbers in the dtype of ``query``, such as :func:`alibi_bias`, or T5's learned
        biases, which are looked up by distance. A mask hides keys regardless of the bias.
    enable_gqa : bool, optional
        PyTorch's name for grouped-query attention: key and value, of shape (..., n_kv_heads, k_len, ·), may have fewer
        heads than ``query``, of shape (..., heads, q_len, d_head), if ``n_kv_heads`` divides ``heads``. Query head
        ``h`` reads key–value head ``h // (heads / n_kv_heads)``. Attention with a single key–value head is called
        multi-query attention.

    Returns
    -------
    Tensor, shape (..., q_len, d_value)
        A query that may not attend to any key gets zeros, with finite gradients. Most of PyTorch's fused kernels have
        no second derivative; the kernel that ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`` selects has one.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors are on different devices, ``dropout_p`` is not a probability, or both ``mask``
        and ``is_causal`` are given.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1. Dao et al., "FlashAttention", 2022. Raffel et al.,
    "Exploring the Limits of Transfer Learning", 2020, section 2.1, for a learned bias. Shazeer, "Fast Transformer
    Decoding", 2019, for one key head; Ainslie et al., "GQA", 2023, section 2.2, for groups.

    Examples
    --------
    >>> query = torch.tensor([[2.0, 0.0]])
    >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> value = torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(query, key, value)
    tensor([[11.9557]])
    """
    if value is None:  # require_attention accepts None, since attention_weights has no value
        require_tensor(value=value)
    leading, fits = require_attention(query, key, mask, value, bias, enable_gqa)
    scale = _resolve_scale(scale, query)
    require_probability(dropout_p=dropout_p)
    require_at_most_one_mask(mask, is_causal)
    if enable_gqa and not _has_gqa_kernel(query):
        key, value, enable_gqa = _repeat_heads(key, query), _repeat_heads(value, query), False
    if bias is not None and is_causal:  # no kernel accepts both a bias and is_causal
        mask, is_causal = _causal_mask_from_first_key(query, key), False
    query, scale = _with_positive_scale(query, scale)
    fully_masked = None
    if mask is not None and not _kernel_zeroes_fully_masked_rows(mask):
        mask, fully_masked = _unmask_fully_masked_rows(mask)
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    if mask is not None:
        mask = _with_contiguous_rows(_with_two_leading_axes(mask, leading), key.shape[-2])
    if not fits or len(leading) != 2:
        kv_leading = (*leading[:-1], key.shape[-3]) if enable_gqa else leading
        query = _with_two_leading_axes(query.expand(*leading, *query.shape[-2:]), leading)
        key, value = (_with_two_leading_axes(x.expand(*kv_leading, *x.shape[-2:]), kv_leading) for x in (key, value))
    options = {"enable_gqa": True} if enable_gqa else {}
    fused = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=float(dropout_p) if dropout_p < 1 else 0.0,
        is_causal=bool(is_causal),
        scale=scale,
        **options,
    )
    if dropout_p == 1:  # CUDA's kernels would compute 0 · ∞, which is NaN
        fused = F.dropout(fused, 1.0)
    output = fused if len(leading) == 2 else fused.reshape(*leading, *fused.shape[-2:])  # (..., q_len, d_value)
    return output if fully_masked is None else _zero_rows(output, fully_masked)


# Quirks of PyTorch's kernels.


def _has_gqa_kernel(query):
    """Whether a fused kernel accepts fewer key heads than query heads.

    On CUDA, this is true only in half precision. For float32, PyTorch falls back to its plain kernel, which stores all
    weights (pytorch/pytorch#191085). PyTorch 2.4 has no ``enable_gqa`` at all.
    """
    return HAS_GQA and not (query.is_cuda and query.dtype not in (torch.float16, torch.bfloat16))


def _repeat_heads(x, query):
    """Repeat each key or value head for the query heads that read it; return as many heads as the query has."""
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], -3)


def _with_positive_scale(query, scale):
    """Move the sign of the scale into the query.

    With ``is_causal``, the fused kernels also scale the hidden scores, which are -inf, and return NaN unless the scale
    is positive. Moving the sign is exact; moving the absolute value would cause rounding in half precision.
    """
    if scale > 0:
        return query, scale
    return (-query, -scale) if scale else (query * 0.0, 1.0)


def _kernel_zeroes_fully_masked_rows(mask):
    """Whether PyTorch's kernels return zeros, with gradients of zero, for a row that is masked completely.

    On a CPU, they return zeros in version 2.13 and later, and perhaps in earlier versions. A compiler, or a transform
    such as vmap, may choose a different kernel.
    """
    is_eager = type(mask) is Tensor and values_are_known(mask) and not torch.jit.is_tracing()
    return TORCH_VERSION >= (2, 13) and is_eager and mask.device.type == "cpu"


def _unmask_fully_masked_rows(mask):
    """Let each row that is masked completely attend to all keys; return the new mask and a mask of these rows.

    The softmax of such a row is 0/0, so the row and its gradient are NaN in some kernels and some versions of PyTorch
    (pytorch/pytorch#103963, #163997). The caller sets these rows to zero afterwards.
    """
    fully_masked = ~mask.any(dim=-1, keepdim=True)
    return mask | fully_masked, fully_masked


def _with_contiguous_rows(mask, k_len):
    """Return a mask or bias with contiguous rows: CUDA's kernels accept no broadcast or transposed rows."""
    if mask.shape[-1] != k_len:
        mask = mask.expand(*mask.shape[:-1], k_len)
    return mask if k_len < 2 or mask.stride(-1) == 1 else mask.contiguous()


def _zero_rows(output, rows):
    """Set the given rows to zero: in place, unless the kernel's backward pass will read the output."""
    return output.masked_fill(rows, 0.0) if output.requires_grad else output.masked_fill_(rows, 0.0)


def _with_two_leading_axes(x, leading):
    """Reshape (..., a, b) to (n, m, a, b), as a view if possible.

    The fused kernels accept only tensors with four axes; PyTorch runs its plain kernel on all others
    (pytorch/pytorch#187266).
    """
    if len(leading) > 2:
        x = torch.atleast_2d(x)
        return x.expand(*leading, *x.shape[-2:]).flatten(0, -4)
    return x if x.ndim == 4 else x[(None,) * (4 - x.ndim)]


# Arguments.


def require_at_most_one_mask(mask, is_causal):
    """Raise an error if both a mask and ``is_causal`` are given."""
    require_flags(is_causal=is_causal)
    if is_causal and mask is not None:
        raise ValueError(
            "mask and is_causal must not be given together, got both: combine them, mask & causal, with "
            "causal = torch.ones(q_len, k_len, dtype=torch.bool).tril()"
        )


def _causal_mask_from_first_key(query, key):
    """Return the mask that ``is_causal`` stands for; positions are counted from the first key."""
    return torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()


def _resolve_scale(scale, query):
    """Return the scale, or the default scale if none is given; raise an error unless it is a finite number."""
    if scale is None:
        # Without features, every score is an empty sum, which is 0, so any finite scale is right.
        return 1 / math.sqrt(max(query.shape[-1], 1))
    if not is_number(scale) or not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, got {format_value(scale)}{suggest_float('scale', scale)}")
    return float(scale)
