"""Attention: every query looks at every key and receives a weighted mean of the values."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import Self

from .arguments import (
    is_number,
    number_of,
    require_attention,
    require_axis,
    require_features,
    require_flags,
    require_floating,
    require_heads,
    require_kv_heads,
    require_probability,
    require_sizes,
    require_tensor,
    shown,
    use,
    values_are_known,
)
from .cache import KeyValueCache, StateCache
from .conversion import take_over
from .masks import causal_mask
from .precision import wide_dtype

# Since 2.5 PyTorch's kernels take fewer heads of keys than of queries as they are.
HAS_GQA = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 5)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
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
    require_floating(x=x)
    require_axis(x, dim)
    if x.numel() == 0:
        return x.clone()
    wide = x.to(wide_dtype(x))
    # Subtracting the maximum changes nothing on paper, and keeps exp from overflowing in a computer.
    exp = (wide - wide.detach().amax(dim, keepdim=True)).exp()
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
    """Return how much each query takes from each key.

    ``softmax(query · keyᵀ · scale + bias)``, over the keys.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
        Leading axes are those of ``query`` or broadcast with them.
    mask : Tensor of bool, broadcastable to (..., q_len, k_len), optional
        ``True`` where the query may attend to the key.
    is_causal : bool, optional
        As in :func:`scaled_dot_product_attention`.
    scale : float, optional
        Factor of the scores; ``1 / √d_head`` when left out.
    bias : Tensor, broadcastable to (..., q_len, k_len), optional
    enable_gqa : bool, optional
        Both as in :func:`scaled_dot_product_attention`.

    Returns
    -------
    Tensor, shape (..., q_len, k_len)
        Every row sums to one. A row whose mask allows nothing is all zeros, with a gradient of zero.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors lie on different devices, or both ``mask`` and ``is_causal`` are given.

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
    lead = require_attention(query, key, mask, bias=bias, enable_gqa=enable_gqa)
    scale = _check_scale(scale, query)
    _require_one_mask(mask, is_causal)
    if enable_gqa:
        key = _for_every_query_head(key, query)
    if is_causal:
        mask = _causal(query, key)
    wide = wide_dtype(query)
    # Scaling the query touches d_head numbers a row; scaling the scores would touch k_len.
    scores = (query.to(wide) * scale) @ key.to(wide).transpose(-2, -1)  # (..., q_len, k_len)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return torch.softmax(scores, dim=-1).to(query.dtype)
    scores = scores.expand(*lead, *scores.shape[-2:])
    # A row that sees nothing would be 0/0, in its gradient too. It may see everything, and is zeroed after.
    sees_nothing = ~mask.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~(mask | sees_nothing), -math.inf), dim=-1)
    return weights.masked_fill(sees_nothing, 0.0).to(query.dtype)


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
        ``torch.nn.functional.scaled_dot_product_attention`` counts. Instead of a mask, and faster than one.
    dropout_p : float, optional
        Probability with which each weight is dropped. It applies whenever it is not 0: a function does not know
        about training and evaluation.
    scale : float, optional
        Factor of the scores; ``1 / √d_head`` when left out.
    bias : Tensor, broadcastable to (..., q_len, k_len), optional
        What is added to the scores: finite numbers in the dtype of ``query``, such as :func:`alibi_bias`, or T5's
        learned table, looked up by distance. A mask hides what it hides, whatever the bias says.
    enable_gqa : bool, optional
        Grouped-query attention, by PyTorch's name for it: key and value may have fewer heads, (..., n_kv_heads, k_len,
        ·), a divisor of those of ``query``, (..., heads, q_len, d_head). Head ``h`` of the queries reads head
        ``h // (heads / n_kv_heads)`` of keys and values. With one head for all it is called multi-query attention.

    Returns
    -------
    Tensor, shape (..., q_len, d_value)
        A query that may attend to nothing gets zeros, with finite gradients. Most of PyTorch's fused kernels have no
        second derivative; inside ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`` there is one.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors lie on different devices, ``dropout_p`` is not a probability, or both ``mask``
        and ``is_causal`` are given.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.1. Dao et al., "FlashAttention", 2022. Raffel et al.,
    "Exploring the Limits of Transfer Learning", 2020, section 2.1, for a learned bias. Shazeer, "Fast Transformer
    Decoding", 2019, for one head of keys; Ainslie et al., "GQA", 2023, section 2.2, for groups.

    Examples
    --------
    >>> query = torch.tensor([[2.0, 0.0]])
    >>> key = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> value = torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(query, key, value)
    tensor([[11.9557]])
    """
    if value is None:  # which attention_weights does without
        require_tensor(value=value)
    lead = require_attention(query, key, mask, value, bias, enable_gqa)
    scale = _check_scale(scale, query)
    require_probability(dropout_p=dropout_p)
    _require_one_mask(mask, is_causal)
    if enable_gqa and not _kernel_takes_shared_keys(query):
        key, value, enable_gqa = _for_every_query_head(key, query), _for_every_query_head(value, query), False
    if bias is not None and is_causal:  # the kernels take the one or the other
        mask, is_causal = _causal(query, key), False
    if scale <= 0:
        # PyTorch's kernels multiply the hidden scores, -inf, by the scale as well, which must therefore be positive.
        # The sign is moved exactly; the size would be rounded in half precision.
        query, scale = (-query, -scale) if scale else (query * 0.0, 1.0)
    sees_nothing = None
    if mask is not None:
        mask = mask[(None,) * (2 - mask.ndim)]  # two axes or more
        # A row that sees nothing would be 0/0 in some of PyTorch's kernels. It may see everything, and is zeroed after.
        sees_nothing = ~mask.any(dim=-1, keepdim=True)
        if _is_cheap_to_ask(mask) and not sees_nothing.any():
            sees_nothing = None
        else:
            mask = mask | sees_nothing
    if bias is not None:
        bias = bias[(None,) * (2 - bias.ndim)]
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    if mask is not None:
        mask = _with_two_leading_axes(mask, lead)
    kv_lead = (*lead[:-1], key.shape[-3]) if enable_gqa else lead
    if len(lead) != 2 or query.shape[:-2] != lead or not key.shape[:-2] == value.shape[:-2] == kv_lead:
        query = _with_two_leading_axes(query.expand(*lead, *query.shape[-2:]), lead)
        key, value = (_with_two_leading_axes(x.expand(*kv_lead, *x.shape[-2:]), kv_lead) for x in (key, value))
    options = {"enable_gqa": True} if enable_gqa else {}
    fused = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=float(dropout_p),
        is_causal=bool(is_causal),
        scale=scale,
        **options,
    )
    output = fused if len(lead) == 2 else fused.reshape(*lead, *fused.shape[-2:])  # (..., q_len, d_value)
    if sees_nothing is None:
        return output
    # In place, unless the kernel's own output is needed for its gradient.
    return output.masked_fill(sees_nothing, 0.0) if output.requires_grad else output.masked_fill_(sees_nothing, 0.0)


def _is_cheap_to_ask(mask):
    """Whether Python may look at a mask, and does not have to wait for another device to do so."""
    is_plain = type(mask) is Tensor and values_are_known(mask) and not torch.jit.is_tracing()
    return is_plain and mask.device.type == "cpu"


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut the features of every token into ``n_heads`` equal pieces, and make the heads an axis of their own.

    Parameters
    ----------
    x : Tensor, shape (..., seq, d_model)
    n_heads : int
        A divisor of ``d_model``.

    Returns
    -------
    Tensor, shape (..., heads, seq, d_head)
        A view: it shares the storage of ``x``. Head ``h`` holds features ``h * d_head`` to ``(h + 1) * d_head - 1``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor or ``n_heads`` not an integer.
    ValueError
        If ``x`` has fewer than 2 axes, or ``n_heads`` does not divide ``d_model``.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.

    Examples
    --------
    >>> split_heads(torch.tensor([[0, 1, 2, 3], [10, 11, 12, 13]]), 2)
    tensor([[[ 0,  1],
             [10, 11]],
    <BLANKLINE>
            [[ 2,  3],
             [12, 13]]])
    """
    _require_axes(x, 2, "(..., seq, d_model)")
    *lead, d_model = x.shape
    require_heads(n_heads, d_model)
    # A view can cut an axis, and never reorders; so the new axis is cut where it lies, and then moved.
    return x.view(*lead, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads' features side by side again: the inverse of :func:`split_heads`.

    Parameters
    ----------
    x : Tensor, shape (..., heads, seq, d_value)

    Returns
    -------
    Tensor, shape (..., seq, heads * d_value)
        A view where the storage allows one, otherwise a copy.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor.
    ValueError
        If ``x`` has fewer than 3 axes.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.

    Examples
    --------
    >>> merge_heads(torch.tensor([[[0, 1], [10, 11]], [[2, 3], [12, 13]]]))
    tensor([[ 0,  1,  2,  3],
            [10, 11, 12, 13]])
    """
    _require_axes(x, 3, "(..., heads, seq, d_value)")
    return x.transpose(-3, -2).flatten(-2)  # reshape's rule: .contiguous().view(…) wherever a view does not exist


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

    def __init__(self, d_model: int, d_head: int, d_value: int | None = None):
        super().__init__()
        d_value = d_head if d_value is None else d_value
        require_sizes(d_model=d_model, d_head=d_head, d_value=d_value)
        self.q_proj = nn.Linear(d_model, d_head)
        self.k_proj = nn.Linear(d_model, d_head)
        self.v_proj = nn.Linear(d_model, d_value)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Return the attention output of each token.

        Parameters
        ----------
        x : Tensor, shape (..., seq, d_model)
        mask : Tensor of bool, broadcastable to (..., seq, seq), optional
        is_causal : bool, optional

        Returns
        -------
        Tensor, shape (..., seq, d_value)
        """
        require_features(self.q_proj.weight, x=x)
        return scaled_dot_product_attention(self.q_proj(x), self.k_proj(x), self.v_proj(x), mask, is_causal=is_causal)

    def weights(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Return how much each token takes from each: Tensor, shape (..., seq, seq)."""
        require_features(self.q_proj.weight, x=x)
        return attention_weights(self.q_proj(x), self.k_proj(x), mask, is_causal=is_causal)


class MultiHeadAttention(nn.Module):
    """Several small attentions side by side, and a projection that mixes what they return.

    Batch first, with any number of leading axes. The weights begin as those of ``torch.nn.MultiheadAttention`` do.

    Parameters
    ----------
    d_model : int
        Features of a query token that comes in, and of what comes out.
    n_heads : int
        A divisor of ``d_model``; every head works on ``d_model / n_heads`` features.
    n_kv_heads : int, optional
        Heads of keys and values, a divisor of ``n_heads``, each read by ``n_heads / n_kv_heads`` heads of queries:
        grouped-query attention, whose keys and values are fewer to project and to keep. ``n_heads`` when left out.
    d_key_in, d_value_in : int, optional
        Features of a key token and of a value token; ``d_model`` when left out.
    bias : bool, optional
        Whether the four projections add a bias.
    dropout : float, optional
        Probability with which each attention weight is dropped in training.
    attend : function, optional
        What the heads do: ``attend(query, key, value, mask, is_causal=…, dropout_p=…)``, as
        :func:`scaled_dot_product_attention` takes them, from ``(..., heads, length, d_head)`` to the same. With fewer
        ``n_kv_heads`` also ``enable_gqa=True``.
    rotate : function, optional
        What turns queries and keys by their positions: ``rotate(x, positions)``, for ``x`` of shape
        (..., heads, length, d_head) and ``positions`` (length,), integers. :func:`rotary` is one.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2. Ainslie et al., "GQA", 2023, section 2.2.

    Examples
    --------
    >>> attention = MultiHeadAttention(d_model=6, n_heads=3)
    >>> attention(torch.zeros(2, 5, 6)).shape
    torch.Size([2, 5, 6])
    >>> attention.weights(torch.zeros(2, 5, 6), torch.zeros(2, 7, 6)).shape
    torch.Size([2, 3, 5, 7])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_key_in: int | None = None,
        d_value_in: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        attend: Callable[..., Tensor] = scaled_dot_product_attention,
        rotate: Callable[[Tensor, Tensor], Tensor] | None = None,
    ):
        super().__init__()
        d_key_in = d_model if d_key_in is None else d_key_in
        d_value_in = d_model if d_value_in is None else d_value_in
        require_sizes(d_model=d_model, d_key_in=d_key_in, d_value_in=d_value_in)
        require_probability(dropout=dropout)
        require_heads(n_heads, d_model)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_kv_heads(n_kv_heads, n_heads)
        self.n_heads, self.n_kv_heads = int(n_heads), int(n_kv_heads)
        d_kv = d_model // self.n_heads * self.n_kv_heads
        self.dropout = dropout
        self.attend = attend
        self.rotate = rotate
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_key_in, d_kv, bias=bias)
        self.v_proj = nn.Linear(d_value_in, d_kv, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)
        # Where it can, PyTorch draws the three as one matrix, (3 * d_model, d_model), and Xavier's bound is √2 smaller.
        gain = 2**-0.5 if d_key_in == d_value_in == d_model else 1.0
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain)
        if bias:
            for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
                nn.init.zeros_(projection.bias)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> Self:
        """Return the same attention as ``module``, a ``torch.nn.MultiheadAttention``, with copies of its weights.

        The result is batch first, also where ``module`` is not. A ``module`` that makes up keys of its own
        (``add_bias_kv``, ``add_zero_attn``) is refused with a ValueError.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise TypeError(f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}")
        if module.bias_k is not None:
            raise ValueError("module must have add_bias_kv=False, got True: extra keys are not supported")
        if module.add_zero_attn:
            raise ValueError("module must have add_zero_attn=False, got True: extra keys are not supported")
        if module.in_proj_weight is not None:
            matrices = module.in_proj_weight.chunk(3)
        else:
            matrices = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        names = ("q_proj", "k_proj", "v_proj")
        state = {f"{name}.weight": matrix for name, matrix in zip(names, matrices)}
        if module.in_proj_bias is not None:
            state |= {f"{name}.bias": bias for name, bias in zip(names, module.in_proj_bias.chunk(3))}
        out = {"weight": module.out_proj.weight, "bias": module.out_proj.bias}
        state |= {f"out_proj.{name}": x for name, x in out.items() if x is not None}
        with torch.device("meta"):  # skips an initialization that is overwritten below
            attention = cls(
                module.embed_dim,
                module.num_heads,
                d_key_in=module.kdim,
                d_value_in=module.vdim,
                bias=module.in_proj_bias is not None,
                dropout=module.dropout,
            )
        return take_over(attention, state).train(module.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the attention output of each query token.

        Parameters
        ----------
        query : Tensor, shape (..., q_len, d_model)
        key : Tensor, shape (..., k_len, d_key_in), optional
            ``query`` when left out: self-attention.
        value : Tensor, shape (..., k_len, d_value_in), optional
            ``key`` when left out.
        mask : Tensor of bool, broadcastable to (..., heads, q_len, k_len), optional
            ``True`` where the query may attend to the key.
        is_causal : bool, optional
            Query ``i`` may attend to keys ``0 … i``; instead of a mask.

        Returns
        -------
        Tensor, shape (..., q_len, d_model)
            A query that may attend to nothing gets zeros from every head, and so the bias of ``out_proj``.
        """
        key = query if key is None else key
        # Not by attend_projected: a wrong input of self-attention would then be called a key.
        return self._in_heads(self._heads(self.q_proj, query, "query"), *self.project(key, value), mask, is_causal)

    def project(self, key: Tensor, value: Tensor | None = None, *, start: int = 0) -> tuple[Tensor, Tensor]:
        """Return every head's keys, shape (..., n_kv_heads, k_len, d_head), and values: what a cache keeps.

        ``start`` is the position of the first key, for ``rotate``.
        """
        value = key if value is None else value
        return self._heads(self.k_proj, key, "key", start), self._heads(self.v_proj, value, "value", None)

    def attend_projected(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        start: int = 0,
    ) -> Tensor:
        """Return the attention output of each query token, from keys and values that :meth:`project` has made."""
        return self._in_heads(self._heads(self.q_proj, query, "query", start), key, value, mask, is_causal)

    def extra_repr(self) -> str:
        shared = f"n_kv_heads={self.n_kv_heads}, " if self.n_kv_heads < self.n_heads else ""
        return f"n_heads={self.n_heads}, {shared}dropout={self.dropout}"

    def _heads(self, projection, x, name, start=0):
        """The heads of what a projection makes of ``x``; turned by position, unless ``start`` is None."""
        require_features(projection.weight, **{name: x})
        n_heads = self.n_heads if projection is self.q_proj else self.n_kv_heads
        heads = split_heads(projection(x), n_heads)  # (..., heads, length, d_head)
        if self.rotate is None or start is None:
            return heads
        return self.rotate(heads, torch.arange(start, start + x.shape[-2], device=x.device))

    def _in_heads(self, query, key, value, mask, is_causal):
        dropout_p = self.dropout if self.training else 0.0
        options = {"enable_gqa": True} if self.n_kv_heads < self.n_heads else {}
        heads = self.attend(query, key, value, mask, is_causal=is_causal, dropout_p=dropout_p, **options)
        return self.out_proj(merge_heads(heads))  # (..., q_len, d_model)

    def new_cache(self) -> KeyValueCache | StateCache:
        """Return an empty :class:`KeyValueCache`: what :meth:`step` asks for."""
        return KeyValueCache()

    @torch.no_grad()
    def step(self, x: Tensor, cache: Any) -> Tensor:
        """Return the attention output of new tokens, from themselves and all tokens in the cache, which keeps them.

        Token for token this is causal self-attention over the whole sequence. It is for generation: no gradient flows
        through it.
        """
        start = cache.length
        key, value = cache.append(*self.project(x, start=start))
        q_len, k_len = x.shape[-2], key.shape[-2]
        mask = None if q_len == 1 else causal_mask(q_len, k_len, device=x.device)
        return self.attend_projected(x, key, value, mask, start=start)

    def weights(
        self, query: Tensor, key: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Return how much each query token takes from each key token, in every head.

        This forms the weights that the forward pass never stores. Dropout has no part in it. With another ``attend``
        it is refused with a ValueError: only softmax attention is known to have these weights.

        Returns
        -------
        Tensor, shape (..., heads, q_len, k_len)
        """
        if self.attend is not scaled_dot_product_attention:
            name = getattr(self.attend, "__name__", type(self.attend).__name__)
            raise ValueError(f"attend must be scaled_dot_product_attention for its weights to be known, got {name}")
        key = query if key is None else key
        query, key = self._heads(self.q_proj, query, "query"), self._heads(self.k_proj, key, "key")
        return attention_weights(query, key, mask, is_causal=is_causal, enable_gqa=self.n_kv_heads < self.n_heads)


def _kernel_takes_shared_keys(query):
    """Whether PyTorch has a fused kernel for it: on CUDA that of half precision alone, else it forms all weights."""
    return HAS_GQA and not (query.is_cuda and query.dtype not in (torch.float16, torch.bfloat16))


def _for_every_query_head(x, query):
    """Keys or values, (..., n_kv_heads, k_len, ·), once for each head of the queries that reads them."""
    return x.repeat_interleave(query.shape[-3] // x.shape[-3], -3)


def _with_two_leading_axes(x, lead):
    """(..., a, b) as (n, m, a, b), which is what the fused kernels want: a view, wherever one exists."""
    if len(lead) > 2:
        return x.expand(*lead, *x.shape[-2:]).flatten(0, -4)
    return x if x.ndim == 4 else x[(None,) * (4 - x.ndim)]


def _require_one_mask(mask, is_causal):
    require_flags(is_causal=is_causal)
    if is_causal and mask is not None:
        raise ValueError(
            "mask and is_causal must not be given together, got both: combine them, mask & causal, with "
            "causal = torch.ones(q_len, k_len, dtype=torch.bool).tril()"
        )


def _causal(query, key):
    """What ``is_causal`` allows, as a mask: it counts from the first key."""
    return torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()


def _check_scale(scale, query):
    if scale is None:
        # Without features every score is an empty sum, zero; any finite factor will do.
        return 1 / math.sqrt(max(query.shape[-1], 1))
    if not is_number(scale) or not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, got {shown(scale)}{number_of('scale', scale)}")
    return float(scale)


def _require_axes(x, least, shape):
    require_tensor(x=x)
    if x.ndim < least:
        remedy = use("x", x, {"{}[None]": lambda x: x[None]}, lambda made: made.ndim == least)
        raise ValueError(f"x must have shape {shape}, got {tuple(x.shape)}{remedy}")
