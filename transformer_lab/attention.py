"""Attention: every query looks at every key and takes home a weighted mean of the values."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def softmax(x, dim=-1):
    """Turn scores into weights: positive, summing to one along ``dim``.

    This is the plain form, for reading. It computes what ``torch.softmax`` computes, which does all the steps in one
    pass over memory; :func:`attention_weights` uses that one.

    Parameters
    ----------
    x : Tensor, any shape, floating point
    dim : int, optional
        The axis along which the weights sum to one.

    Returns
    -------
    Tensor, shape of ``x``
        Empty where ``x`` is empty; NaN along any slice that holds only ``-inf``, where no weights exist.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor.
    IndexError
        If ``x`` has no axis ``dim``.

    References
    ----------
    Goodfellow, Bengio and Courville, *Deep Learning*, 2016, section 4.1 (overflow and the subtracted maximum).

    Examples
    --------
    >>> softmax(torch.tensor([0.0, math.log(3.0)]))
    tensor([0.2500, 0.7500])
    """
    _require_floating(x=x)
    _require_axis(x, dim)
    if x.numel() == 0:
        return x.clone()
    wide = x.to(_compute_dtype(x))
    # Subtracting the maximum changes nothing on paper, and keeps exp from overflowing in a computer.
    exp = (wide - wide.detach().amax(dim, keepdim=True)).exp()
    return (exp / exp.sum(dim, keepdim=True)).to(x.dtype)


def attention_weights(query, key, mask=None, *, scale=None):
    """Return how much each query takes from each key.

    ``softmax(query · keyᵀ · scale)``, over the keys.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
        Leading axes are those of ``query`` or broadcast with them.
    mask : Tensor of bool, broadcastable to (..., q_len, k_len), optional
        ``True`` where the query may attend to the key.
    scale : float, optional
        Factor of the scores; ``1 / √d_head`` when left out.

    Returns
    -------
    Tensor, shape (..., q_len, k_len)
        Every row sums to one. A row whose mask allows nothing is all zeros, with a gradient of zero.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, or the tensors lie on different devices.

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
    lead = _check_query_key_mask(query, key, mask)
    scale = _check_scale(scale, query)
    wide = _compute_dtype(query)
    # Scaling the query touches d_head numbers a row; scaling the scores would touch k_len.
    scores = (query.to(wide) * scale) @ key.to(wide).transpose(-2, -1)
    if mask is None:
        return torch.softmax(scores, dim=-1).to(query.dtype)
    scores = scores.expand(*lead, *scores.shape[-2:])
    weights = torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1)
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    return weights.masked_fill(sees_nothing, 0.0).to(query.dtype)


def scaled_dot_product_attention(query, key, value, mask=None, *, is_causal=False, dropout_p=0.0, scale=None):
    """Return, for each query, the mean of the values, weighted by how well their keys match.

    ``attention_weights(query, key, mask) @ value``, by PyTorch's fused kernel, which never stores the
    ``(q_len, k_len)`` weights.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
    value : Tensor, shape (..., k_len, d_value)
        The leading axes of all three are equal or broadcast.
    mask : Tensor of bool, broadcastable to (..., q_len, k_len), optional
        ``True`` where the query may attend to the key.
    is_causal : bool, optional
        Query ``i`` may attend to keys ``0 … i`` only, also where ``q_len ≠ k_len``: counted from the first key, as
        ``torch.nn.functional.scaled_dot_product_attention`` counts. Together with ``mask``, both must allow.
    dropout_p : float, optional
        Probability with which each weight is dropped. It applies whenever it is not 0: a function does not know
        about training and evaluation.
    scale : float, optional
        Factor of the scores; ``1 / √d_head`` when left out.

    Returns
    -------
    Tensor, shape (..., q_len, d_value)
        A query that may attend to nothing gets zeros, with finite gradients.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors lie on different devices, or ``dropout_p`` is not a probability.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1. Dao et al., "FlashAttention", 2022.

    Examples
    --------
    >>> query = torch.tensor([[2.0, 0.0]])
    >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> value = torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(query, key, value)
    tensor([[11.9557]])
    """
    lead = _check_query_key_mask(query, key, mask, value)
    scale = _check_scale(scale, query)
    if not isinstance(dropout_p, (int, float)) or not 0 <= dropout_p <= 1:
        raise ValueError(f"dropout_p must be a probability from 0 to 1, got {dropout_p!r}")
    if scale <= 0:
        # PyTorch's kernels multiply the hidden scores, -inf, by the scale as well, which must therefore be positive.
        query, scale = query * scale, 1.0
    q_len, k_len = query.shape[-2], key.shape[-2]
    if is_causal and mask is not None:
        mask = mask & torch.ones(q_len, k_len, dtype=torch.bool, device=query.device).tril()
        is_causal = False
    sees_nothing = None
    if mask is not None:
        # A row that sees nothing would be 0/0 in some of PyTorch's kernels. It may see everything, and is zeroed after.
        sees_nothing = ~mask.any(dim=-1, keepdim=True)
        mask = (mask | sees_nothing).expand(*lead, q_len, k_len)
    # The fused kernels want exactly two leading axes.
    fused = F.scaled_dot_product_attention(
        *(_with_two_leading_axes(x.expand(*lead, *x.shape[-2:])) for x in (query, key, value)),
        attn_mask=None if mask is None else _with_two_leading_axes(mask),
        dropout_p=float(dropout_p),
        is_causal=bool(is_causal),
        scale=scale,
    )
    output = fused.reshape(*lead, q_len, value.shape[-1])
    return output if sees_nothing is None else output.masked_fill(sees_nothing, 0.0)


class SingleHeadAttention(nn.Module):
    """Self-attention with one head: each token asks the others, and takes a blend of what they offer.

    Parameters
    ----------
    d_model : int
        Features of a token that comes in.
    d_head : int
        Features of its query and its key.
    d_value : int, optional
        Features of its value, and so of what comes out; ``d_head`` when left out.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2, for one head and without ``W_O``.

    Examples
    --------
    >>> SingleHeadAttention(d_model=8, d_head=4, d_value=6)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 6])
    """

    def __init__(self, d_model, d_head, d_value=None):
        super().__init__()
        d_value = d_head if d_value is None else d_value
        for name, size in (("d_model", d_model), ("d_head", d_head), ("d_value", d_value)):
            if isinstance(size, bool) or not isinstance(size, int):
                raise TypeError(f"{name} must be an integer, got {size!r}")
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        self.q_proj = nn.Linear(d_model, d_head)
        self.k_proj = nn.Linear(d_model, d_head)
        self.v_proj = nn.Linear(d_model, d_value)

    def forward(self, x, mask=None, *, is_causal=False):
        """Return what each token takes home.

        Parameters
        ----------
        x : Tensor, shape (..., seq, d_model)
        mask : Tensor of bool, broadcastable to (..., seq, seq), optional
        is_causal : bool, optional

        Returns
        -------
        Tensor, shape (..., seq, d_value)
        """
        self._check(x)
        return scaled_dot_product_attention(self.q_proj(x), self.k_proj(x), self.v_proj(x), mask, is_causal=is_causal)

    def weights(self, x, mask=None):
        """Return how much each token takes from each: Tensor, shape (..., seq, seq)."""
        self._check(x)
        return attention_weights(self.q_proj(x), self.k_proj(x), mask)

    def _check(self, x):
        d_model, dtype = self.q_proj.in_features, self.q_proj.weight.dtype
        _require_floating(x=x)
        # Under autocast PyTorch brings both to one dtype itself.
        if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(f"x must have the dtype of the module's weights, {dtype}, got {x.dtype}")
        if x.ndim < 2 or x.shape[-1] != d_model:
            raise ValueError(f"x must have shape (..., seq, d_model) with d_model {d_model}, got {tuple(x.shape)}")


def _compute_dtype(x):
    """float32 for half precision, whose own sums lose digits; otherwise the tensor's own."""
    return torch.promote_types(x.dtype, torch.float32)


def _with_two_leading_axes(x):
    """(..., a, b) as (n, m, a, b): a view, wherever one exists."""
    if x.ndim > 4:
        return x.flatten(0, -4)
    return x[(None,) * (4 - x.ndim)]


def _check_query_key_mask(query, key, mask, value=None):
    """Raise if the arguments of an attention do not fit together; return their common leading axes."""
    tensors = {"query": query, "key": key} | ({} if value is None else {"value": value})
    _require_floating(**tensors)
    for name, x in tensors.items():
        if x.ndim < 2:
            raise ValueError(f"{name} must have at least 2 axes (..., length, features), got shape {tuple(x.shape)}")
        if x.dtype != query.dtype:
            raise TypeError(f"query and {name} must share a dtype, got {query.dtype} and {x.dtype}")
        if x.device != query.device:
            raise ValueError(f"query and {name} must lie on one device, got {query.device} and {x.device}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share d_head, got {query.shape[-1]} and {key.shape[-1]}")
    if value is not None and value.shape[-2] != key.shape[-2]:
        raise ValueError(f"key and value must share k_len, got {key.shape[-2]} and {value.shape[-2]}")
    try:
        lead = torch.broadcast_shapes(*(x.shape[:-2] for x in tensors.values()))
    except RuntimeError:
        found = " and ".join(str(tuple(x.shape[:-2])) for x in tensors.values())
        raise ValueError(f"{' and '.join(tensors)} must have leading axes that broadcast, got {found}") from None
    if mask is not None:
        _check_mask(mask, (*lead, query.shape[-2], key.shape[-2]), query.device)
    return lead


def _check_mask(mask, scores_shape, device):
    if not isinstance(mask, torch.Tensor):
        raise TypeError(f"mask must be a tensor of bool, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be bool, True where a query may attend, got {mask.dtype}")
    if mask.device != device:
        raise ValueError(f"query and mask must lie on one device, got {device} and {mask.device}")
    names = ["leading axis"] * (len(scores_shape) - 2) + ["q_len", "k_len"]
    if mask.ndim > len(scores_shape):
        raise ValueError(
            f"mask must have at most the {len(scores_shape)} axes of the scores {tuple(scores_shape)}, "
            f"got shape {tuple(mask.shape)}"
        )
    for axis in range(-1, -mask.ndim - 1, -1):
        if mask.shape[axis] not in (1, scores_shape[axis]):
            raise ValueError(
                f"mask must broadcast to the scores {tuple(scores_shape)}, got shape {tuple(mask.shape)}: "
                f"its axis {axis} ({names[axis]}) must be 1 or {scores_shape[axis]}, not {mask.shape[axis]}"
            )


def _check_scale(scale, query):
    if scale is None:
        # Without features every score is an empty sum, zero; any finite factor will do.
        return 1 / math.sqrt(max(query.shape[-1], 1))
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, got {scale!r}")
    return float(scale)


def _require_floating(**tensors):
    for name, x in tensors.items():
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
        if not x.is_floating_point():
            raise TypeError(f"{name} must be floating point, got {x.dtype}")


def _require_axis(x, dim):
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"dim must be an integer, got {dim!r}")
    axes = max(x.ndim, 1)
    if not -axes <= dim < axes:
        raise IndexError(f"dim must be an axis of x, from {-axes} to {axes - 1}, got {dim}")
