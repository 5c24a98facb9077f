"""Multi-head attention: several attention heads side by side, each on its own part of the features."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Self

from .arguments import (
    as_sizes,
    require_bool,
    require_features,
    require_flags,
    require_heads,
    require_kv_heads,
    require_probability,
    require_sizes,
    require_tensor,
    suggest_fix,
)
from .attention import attention_weights, require_at_most_one_mask, scaled_dot_product_attention
from .cache import KeyValueCache, StateCache
from .conversion import load_copies
from .masks import causal_mask, sliding_window_mask
from .normalization import new_norm


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Split the features of every token into ``n_heads`` equal parts, along a new axis of heads.

    Parameters
    ----------
    x : Tensor, shape (..., seq, d_model)
    n_heads : int
        A divisor of ``d_model``.

    Returns
    -------
    Tensor, shape (..., heads, seq, d_head)
        A view: it shares the storage of ``x``. Head ``h`` contains features ``h * d_head`` to ``(h + 1) * d_head - 1``.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor or ``n_heads`` is not an integer.
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
    *leading, d_model = x.shape
    require_heads(n_heads, d_model)
    # The method view can split an axis but cannot reorder axes, so the features are split first and the heads are moved
    # afterwards.
    return x.view(*leading, n_heads, d_model // n_heads).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Concatenate the heads' features: the inverse of :func:`split_heads`.

    Parameters
    ----------
    x : Tensor, shape (..., heads, seq, d_value)

    Returns
    -------
    Tensor, shape (..., seq, heads * d_value)
        A view if the storage allows it, otherwise a copy.

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
    return x.transpose(-3, -2).flatten(-2)  # like reshape, flatten makes a copy only if no view exists


class SingleHeadAttention(nn.Module):
    """Self-attention with one head: each token gets a weighted mean of all tokens' values.

    Parameters
    ----------
    d_model : int
        Number of features of an input token.
    d_head : int
        Number of features of a token's query, and of its key.
    d_value : int, optional
        Number of features of a token's value, and therefore of the output; ``d_head`` by default.

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
        """Return the attention weight of each token (column) for each token (row): Tensor, shape (..., seq, seq)."""
        require_features(self.q_proj.weight, x=x)
        return attention_weights(self.q_proj(x), self.k_proj(x), mask, is_causal=is_causal)


class MultiHeadAttention(nn.Module):
    """Several small attention heads side by side, and a projection that mixes their outputs.

    Tensors are batch first, and may have any number of leading axes. Weights are initialized as in
    ``torch.nn.MultiheadAttention``.

    Parameters
    ----------
    d_model : int
        Number of features of a query token, and of the output.
    n_heads : int
        A divisor of ``d_model``, unless ``d_head`` is given.
    n_kv_heads : int, optional
        Number of key–value heads, a divisor of ``n_heads``; ``n_heads`` by default. Each key–value head is read by
        ``n_heads / n_kv_heads`` query heads. If there are fewer key–value heads than query heads, this is grouped-query
        attention: fewer keys and values are projected and cached.
    d_key_in, d_value_in : int, optional
        Number of features of a key token, and of a value token; ``d_model`` by default.
    bias : bool, optional
        Whether the four projections add a bias.
    dropout : float, optional
        Probability with which each attention weight is dropped in training.
    attend : function, optional
        The attention in each head: ``attend(query, key, value, mask, is_causal=…, dropout_p=…)``, with the arguments of
        :func:`scaled_dot_product_attention`. The tensors and the result have shape (..., heads, length, d_head). If
        ``n_kv_heads`` is less than ``n_heads``, the call also passes ``enable_gqa=True``.
    rotate : function, optional
        Rotates queries and keys by their positions: ``rotate(x, positions)``, for ``x`` of shape (..., heads, length,
        d_head) and integer ``positions`` of shape (length,). :func:`rotary` is such a function.
    d_head : int, optional
        Number of features of a head; ``d_model / n_heads`` by default. If it is given, the heads together may have
        more features than ``d_model``, as in Gemma and Qwen3, or fewer.
    qk_norm : bool, optional
        Whether RMS norm is applied to each head's query and key, before ``rotate``, so that scores stay bounded even if
        the norms of queries and keys grow in training. All heads share one weight for each of the ``d_head`` features,
        as in Qwen3 and in Gemma 3 (Gemma's files store the weight minus one). OLMo 2 and OLMoE normalize the features
        of all heads together.
    eps : float, optional
        The eps of ``qk_norm``; 1e-6 by default.
    window : int, optional
        Sliding-window attention, for self-attention only: a token sees itself and the tokens that are less than
        ``window`` positions away. With ``is_causal``, and in :meth:`step`, a token sees no later tokens. The window is
        a mask, so a forward pass takes as long as with full attention, but the cache needs to store only ``window``
        tokens.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2. Ainslie et al., "GQA", 2023, section 2.2. Henry et
    al., "Query-Key Normalization for Transformers", 2020, and Yang et al., "Qwen3 Technical Report", 2025, section 2,
    for ``qk_norm``. Jiang et al., "Mistral 7B", 2023, section 2, for ``window``.

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
        d_head: int | None = None,
        qk_norm: bool = False,
        eps: float | None = None,
        window: int | None = None,
    ):
        super().__init__()
        d_key_in = d_model if d_key_in is None else d_key_in
        d_value_in = d_model if d_value_in is None else d_value_in
        require_sizes(d_model=d_model, d_key_in=d_key_in, d_value_in=d_value_in)
        require_probability(dropout=dropout)
        require_flags(qk_norm=qk_norm)
        if d_head is None:
            require_heads(n_heads, d_model)
            d_head = d_model // n_heads
        self.n_heads, self.d_head = as_sizes(n_heads=n_heads, d_head=d_head)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        require_kv_heads(n_kv_heads, n_heads)
        self.n_kv_heads = int(n_kv_heads)
        d_heads, d_kv = self.d_head * self.n_heads, self.d_head * self.n_kv_heads
        self.dropout = dropout
        self.attend = attend
        self.rotate = rotate
        self.window = None if window is None else as_sizes(window=window)[0]
        self.q_proj = nn.Linear(d_model, d_heads, bias=bias)
        self.k_proj = nn.Linear(d_key_in, d_kv, bias=bias)
        self.v_proj = nn.Linear(d_value_in, d_kv, bias=bias)
        self.out_proj = nn.Linear(d_heads, d_model, bias=bias)
        # If possible, PyTorch initializes the three projections as one (3 * d_model, d_model) matrix, which divides
        # Xavier's bound by √2.
        gain = 2**-0.5 if d_key_in == d_value_in == d_model else 1.0
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain)
        if bias:
            for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
                nn.init.zeros_(projection.bias)
        self.q_norm = new_norm("rms", self.d_head, eps) if qk_norm else None
        self.k_norm = new_norm("rms", self.d_head, eps) if qk_norm else None

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> Self:
        """Return the attention of ``module``, a ``torch.nn.MultiheadAttention``, with copies of the module's weights.

        The result is batch first, even if ``module`` is not. If ``module`` appends additional keys (``add_bias_kv``,
        ``add_zero_attn``), the method raises a ValueError.
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
        out_parameters = {"weight": module.out_proj.weight, "bias": module.out_proj.bias}
        state |= {f"out_proj.{name}": x for name, x in out_parameters.items() if x is not None}
        with torch.device("meta"):  # no initialization: weights are copied below
            attention = cls(
                module.embed_dim,
                module.num_heads,
                d_key_in=module.kdim,
                d_value_in=module.vdim,
                bias=module.in_proj_bias is not None,
                dropout=module.dropout,
            )
        return load_copies(attention, state).train(module.training)

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
            ``query`` by default, which is self-attention.
        value : Tensor, shape (..., k_len, d_value_in), optional
            ``key`` by default.
        mask : Tensor of bool, broadcastable to (..., heads, q_len, k_len), optional
            ``True`` where the query may attend to the key.
        is_causal : bool, optional
            Whether query ``i`` may attend only to keys ``0 … i``; used instead of a mask.

        Returns
        -------
        Tensor, shape (..., q_len, d_model)
            A query that may not attend to any key gets zeros from every head, so its output is the bias of
            ``out_proj``.
        """
        if self.window is not None:
            mask, is_causal = self._windowed_mask(self.window, query, key, mask, is_causal), False
        key = query if key is None else key
        # project the query first: in self-attention, an error about the tokens must name `query`, not `key`
        query = self._project_query(query)
        return self._project_out(self._attend(query, *self.project(key, value), mask, is_causal))

    def project(self, key: Tensor, value: Tensor | None = None, *, start: int = 0) -> tuple[Tensor, Tensor]:
        """Return the keys and values of every head, of shape (..., n_kv_heads, k_len, d_head), as a cache stores them.

        ``start`` is the position of the first key, for ``rotate``.
        """
        value = key if value is None else value
        return self._project_key(key, start), self._project_heads(self.v_proj, value, "value")

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
        """Return the attention output of each query token, from the keys and values of :meth:`project`."""
        query = self._project_query(query, start)
        return self._project_out(self._attend(query, key, value, mask, is_causal))

    def extra_repr(self) -> str:
        kv_heads = f"n_kv_heads={self.n_kv_heads}, " if self.n_kv_heads < self.n_heads else ""
        d_head = f"d_head={self.d_head}, " if self.d_head * self.n_heads != self.q_proj.in_features else ""
        window = "" if self.window is None else f"window={self.window}, "
        return f"n_heads={self.n_heads}, {kv_heads}{d_head}{window}dropout={self.dropout}"

    def _windowed_mask(self, window, query, key, mask, is_causal):
        """Return the mask of a forward pass with a window: the given mask, restricted to the band around each token."""
        require_features(self.q_proj.weight, query=query)
        if key is not None and key is not query and key.shape[-2:-1] != query.shape[-2:-1]:
            actual = f"{query.shape[-2]} and {tuple(key.shape)}"
            raise ValueError(f"query and key must be the same tokens, since this attention has a window, got {actual}")
        require_at_most_one_mask(mask, is_causal)
        band = sliding_window_mask(query.shape[-2], window, device=query.device)
        band = band if is_causal else band | band.mT
        if mask is None:
            return band
        require_bool(mask)
        return mask & band

    def _project_query(self, query, start=0):
        """Return every head's queries, normalized and rotated; ``start`` is the position of the first query."""
        return self._norm_and_rotate(self._project_heads(self.q_proj, query, "query"), self.q_norm, start)

    def _project_key(self, key, start=0):
        """Return every head's keys, normalized and rotated; ``start`` is the position of the first key."""
        return self._norm_and_rotate(self._project_heads(self.k_proj, key, "key"), self.k_norm, start)

    def _project_heads(self, projection, x, name):
        """Project ``x`` and split the result into heads."""
        try:
            # like split_heads, but without its checks: (..., heads, length, d_head)
            return projection(x).unflatten(-1, (-1, self.d_head)).transpose(-3, -2)
        except (RuntimeError, TypeError, IndexError):
            # Checking first would take 3% of a short forward pass; an input that does not fit raises an error anyway.
            require_features(projection.weight, **{name: x})
            raise

    def _norm_and_rotate(self, heads, norm, start):
        if norm is not None:
            heads = norm(heads)
        if self.rotate is None:
            return heads
        return self.rotate(heads, torch.arange(start, start + heads.shape[-2], device=heads.device))

    def _attend(self, query, key, value, mask, is_causal):
        """Return every head's output, of shape (..., heads, q_len, d_head). Subclasses override this method."""
        dropout_p = self.dropout if self.training else 0.0
        options = {"enable_gqa": True} if self.n_kv_heads < self.n_heads else {}
        return self.attend(query, key, value, mask, is_causal=is_causal, dropout_p=dropout_p, **options)

    def _project_out(self, heads):
        return self.out_proj(merge_heads(heads))  # (..., q_len, d_model)

    def new_cache(self) -> KeyValueCache | StateCache:
        """Return an empty :class:`KeyValueCache` for :meth:`step`."""
        return KeyValueCache(self.window)

    @torch.no_grad()
    def step(self, x: Tensor, cache: Any) -> Tensor:
        """Return the attention output of new tokens, and add their keys and values to the cache.

        A new token attends to all cached tokens, to earlier new tokens, and to itself: the result for each token
        equals that of causal self-attention over the whole sequence. The method is for generation, and computes no
        gradient.
        """
        start = cache.length
        key, value = cache.append(*self.project(x, start=start))
        q_len, k_len = x.shape[-2], key.shape[-2]
        mask = None if q_len == 1 else causal_mask(q_len, k_len, device=x.device)
        if mask is not None and self.window is not None:
            mask = mask.triu(k_len - q_len - self.window + 1)
        return self.attend_projected(x, key, value, mask, start=start)

    def weights(
        self, query: Tensor, key: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Return the attention weight of each key token for each query token, in every head.

        This method computes, without dropout, the weights that the forward pass never stores. It raises a ValueError if
        ``attend`` is not the default function, since the weights of other functions are unknown.

        Returns
        -------
        Tensor, shape (..., heads, q_len, k_len)
        """
        if self.attend is not scaled_dot_product_attention:
            name = getattr(self.attend, "__name__", type(self.attend).__name__)
            raise ValueError(f"attend must be scaled_dot_product_attention for its weights to be known, got {name}")
        if self.window is not None:
            mask, is_causal = self._windowed_mask(self.window, query, key, mask, is_causal), False
        key = query if key is None else key
        query, key = self._project_query(query), self._project_key(key)
        return attention_weights(query, key, mask, is_causal=is_causal, enable_gqa=self.n_kv_heads < self.n_heads)


def _require_axes(x, minimum, shape):
    require_tensor(x=x)
    if x.ndim < minimum:
        fix = suggest_fix("x", x, {"{}[None]": lambda x: x[None]}, lambda fixed: fixed.ndim == minimum)
        raise ValueError(f"x must have shape {shape}, got {tuple(x.shape)}{fix}")
