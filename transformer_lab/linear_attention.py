"""Linear attention. The similarity is a product of features, so a query reads sums over keys, not single keys."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .arguments import (
    format_value,
    require_attention,
    require_floating,
    require_mask,
    require_sizes,
    require_tensor,
    type_name,
    values_are_known,
)
from .cache import StateCache
from .multi_head import MultiHeadAttention
from .precision import accumulation_dtype, without_autocast


def elu_feature_map(x: Tensor) -> Tensor:
    """Return ``elu(x) + 1``: positive features, ``exp(x)`` below zero and ``x + 1`` above zero.

    Parameters
    ----------
    x : Tensor, any shape, floating point

    Returns
    -------
    Tensor, shape of ``x``

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020, equation 7.

    Examples
    --------
    >>> elu_feature_map(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3679, 1.0000, 3.0000])
    """
    require_floating(x=x)
    # The argument of exp is x - relu(x) = min(x, 0), so the gradients of both terms at zero sum to 1, for any gradient
    # of relu. The gradient of clamp(max=0) at zero is 1 in older versions of PyTorch, and 0 from 2.14 on. F.elu(x) + 1
    # would be 0 below -17, where exp(x) - 1 rounds to -1.
    positive = x.relu()
    return positive + (x - positive).exp()


def bidirectional_linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_mask: Tensor | None = None,
    feature_map: Callable[[Tensor], Tensor] = elu_feature_map,
) -> Tensor:
    """Return, for each query, the mean of the values, weighted by ``φ(query) · φ(key)``.

    The result is ``φ(Q) (φ(K)ᵀ V)``, normalized. Keys and values are summed once, into ``d_head * d_value`` numbers for
    any length, and every query reads these sums.

    Parameters
    ----------
    query : Tensor, shape (..., q_len, d_head), floating point
    key : Tensor, shape (..., k_len, d_head)
    value : Tensor, shape (..., k_len, d_value)
        The leading axes of query, key and value are equal or broadcast.
    key_mask : Tensor of bool, broadcastable to (..., 1, k_len), optional
        ``True`` where queries may attend to the key, as in :func:`padding_mask`. A single pair of query and key cannot
        be hidden, since the weights are never computed.
    feature_map : function, optional
        ``φ``: (..., d_head) → (..., any number of features), applied to every token separately; its results must not be
        negative.

    Returns
    -------
    Tensor, shape (..., q_len, d_value)
        Zeros for a query that matches no key at all. In half precision, sums are accumulated in float32.

    Raises
    ------
    TypeError
        If an argument has the wrong type, or the tensors differ in dtype.
    ValueError
        If shapes do not fit, the tensors are on different devices, or ``feature_map`` returns a wrong shape, negative
        values, or only zeros.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020, section 3.2, equations 4 to 6.

    Examples
    --------
    >>> query = torch.tensor([[0.0, 1.0]])                # φ: 1, 2
    >>> key = torch.tensor([[1.0, 0.0], [0.0, 2.0]])      # φ: 2, 1 and 1, 3; similarities 4 and 7
    >>> value = torch.tensor([[4.0], [15.0]])             # (4 · 4 + 7 · 15) / 11
    >>> bidirectional_linear_attention(query, key, value)
    tensor([[11.]])
    """
    _require_linear_arguments(query, key, value, key_mask, feature_map)
    compute_dtype = accumulation_dtype(query)
    with without_autocast(query):
        features = _key_features(feature_map, key.to(compute_dtype), _to_mask_column(key_mask, key))
        state = features.mT @ value.to(compute_dtype), features.sum(-2)
        return _read_state(state, feature_map(query.to(compute_dtype))).to(query.dtype)


def causal_linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    key_mask: Tensor | None = None,
    feature_map: Callable[[Tensor], Tensor] = elu_feature_map,
    chunk_size: int = 128,
) -> Tensor:
    """Return, for each query, the mean of the values up to its own position, weighted by ``φ(query) · φ(key)``.

    The sequence is read in chunks. One state, as in :func:`linear_attention_step`, sums up all earlier chunks; weights
    are computed only inside a chunk, ``chunk_size * chunk_size`` of them. Time and memory are proportional to the
    length, not to its square.

    Parameters
    ----------
    query : Tensor, shape (..., seq, d_head), floating point
    key : Tensor, shape (..., seq, d_head)
    value : Tensor, shape (..., seq, d_value)
    key_mask : Tensor of bool, broadcastable to (..., 1, seq), optional
        ``True`` where queries may attend to the key.
    feature_map : function, optional
        As in :func:`bidirectional_linear_attention`.
    chunk_size : int, optional
        Number of tokens in a chunk. It affects the speed, and affects the result only through rounding.

    Returns
    -------
    Tensor, shape (..., seq, d_value)
        Zeros for a query that matches no key at all. In half precision, sums are accumulated in float32.

    Raises
    ------
    TypeError, ValueError
        As in :func:`bidirectional_linear_attention`; and if the numbers of queries and keys differ, or ``chunk_size``
        is less than 1.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020, section 3.3, equations 8 and 9. Hua et al., "Transformer
    Quality in Linear Time", 2022, section 3.2, for the chunks.

    Examples
    --------
    >>> x = torch.zeros(3, 2)                             # equal keys: a running mean of the values
    >>> causal_linear_attention(x, x, torch.tensor([[3.0], [5.0], [10.0]]))
    tensor([[3.],
            [4.],
            [6.]])
    """
    require_sizes(chunk_size=chunk_size)
    _require_linear_arguments(query, key, value, key_mask, feature_map, causal=True)
    return _scan_chunks(None, query, key, value, key_mask, feature_map, chunk_size)[1]


def initial_state(
    batch: int,
    heads: int,
    d_head: int,
    d_value: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the state of :func:`linear_attention_step` before the first token: two tensors of zeros.

    Parameters
    ----------
    batch, heads, d_head, d_value : int
        ``d_head`` counts the features that the feature map returns.
    dtype : torch.dtype, optional
        The dtype of query, key and value; for half precision the state is float32.
    device : torch.device, optional

    Returns
    -------
    (Tensor, Tensor), shapes (batch, heads, d_head, d_value) and (batch, heads, d_head)
        ``S``, the sum of ``φ(key) valueᵀ``, and ``z``, the sum of ``φ(key)``.

    Raises
    ------
    TypeError
        If a size is not an integer, or ``dtype`` is not a ``torch.dtype``.
    ValueError
        If a size is too small.

    Examples
    --------
    >>> S, z = initial_state(batch=1, heads=2, d_head=3, d_value=4)
    >>> S.shape, z.shape
    (torch.Size([1, 2, 3, 4]), torch.Size([1, 2, 3]))
    """
    require_sizes(minimum=0, batch=batch)
    require_sizes(heads=heads, d_head=d_head, d_value=d_value)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be a type of tensors such as torch.float32, got {format_value(dtype)}")
    dtype = torch.promote_types(dtype, torch.float32)
    shape = (batch, heads, d_head)
    return torch.zeros(*shape, d_value, dtype=dtype, device=device), torch.zeros(shape, dtype=dtype, device=device)


def linear_attention_step(
    state: tuple[Tensor, Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    feature_map: Callable[[Tensor], Tensor] = elu_feature_map,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Add one token to the state; return the new state and the token's attention output.

    This is causal linear attention as a recurrent network.

    ``S ← S + φ(key) valueᵀ``, ``z ← z + φ(key)``; the output is ``φ(query)ᵀ S / φ(query)ᵀ z``. A token costs the same
    at any position of the sequence, and the state never grows.

    Parameters
    ----------
    state : (Tensor, Tensor), shapes (..., features, d_value) and (..., features)
        ``S`` and ``z``, from :func:`initial_state` or from the previous step. The state is not changed in place.
    query, key : Tensor, shape (..., d_head), floating point
    value : Tensor, shape (..., d_value)
    feature_map : function, optional
        As in :func:`bidirectional_linear_attention`.

    Returns
    -------
    ((Tensor, Tensor), Tensor)
        The new state, and the output, shape (..., d_value).

    Raises
    ------
    TypeError
        As in :func:`bidirectional_linear_attention`; and if the state is not a pair of tensors of the correct dtype.
    ValueError
        As in :func:`bidirectional_linear_attention`; and if the state has the wrong shape, or is not on the device of
        ``query``.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020, section 3.4, equations 16 to 20.

    Examples
    --------
    >>> state = initial_state(batch=1, heads=1, d_head=2, d_value=1)
    >>> for number in (3.0, 5.0, 10.0):
    ...     x, value = torch.zeros(1, 1, 2), torch.full((1, 1, 1), number)
    ...     state, output = linear_attention_step(state, x, x, value)
    ...     print(output.item())
    3.0
    4.0
    6.0
    """
    require_floating(query=query, key=key, value=value)
    for name, x in {"query": query, "key": key, "value": value}.items():
        if x.ndim < 1:
            raise ValueError(f"{name} must have shape (..., features), one token of each sequence, got shape ()")
    _require_linear_arguments(query.unsqueeze(-2), key.unsqueeze(-2), value.unsqueeze(-2), None, feature_map)
    compute_dtype = accumulation_dtype(query)
    with without_autocast(query):
        features = feature_map(key.to(compute_dtype))  # (..., features)
        S, z = _require_state(state, features.unsqueeze(-2), value.unsqueeze(-2))
        S = S + features.unsqueeze(-1) * value.to(compute_dtype).unsqueeze(-2)  # (..., features, d_value)
        z = z + features
        output = _read_state((S, z), feature_map(query.to(compute_dtype)).unsqueeze(-2)).squeeze(-2)
        return (S, z), output.to(query.dtype)


class LinearAttention(MultiHeadAttention):
    """Multi-head attention that uses linear attention in every head, and the usual projections.

    The module can replace a :class:`MultiHeadAttention`: ``layer.self_attention = LinearAttention(d_model, n_heads)``.
    Its masks have shape (..., heads, 1, k_len), and hide whole keys. Such a mask cannot express causality: use
    ``is_causal``, alone or together with a mask.

    Parameters
    ----------
    d_model : int
        Number of features of a query token, and of the output.
    n_heads : int
        A divisor of ``d_model``, unless ``d_head`` is given.
    n_kv_heads : int, optional
        Number of heads that keys, values and the state have, as in :class:`MultiHeadAttention`.
    d_key_in, d_value_in : int, optional
        Number of features of a key token, and of a value token; ``d_model`` by default.
    bias : bool, optional
        Whether the four projections add a bias.
    dropout : float, optional
        Must be 0, since there are no weights to drop.
    rotate : function, optional
        As in :class:`MultiHeadAttention`. The feature map is applied after the rotation, so the similarity does not
        depend on the distance alone.
    feature_map : function, optional
        As in :func:`bidirectional_linear_attention`.
    chunk_size : int, optional
        Number of tokens in a chunk, if attention is causal.
    d_head, qk_norm, eps : optional
        As in :class:`MultiHeadAttention`. The feature map is applied after the norm.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs", 2020.

    Examples
    --------
    >>> attention = LinearAttention(d_model=6, n_heads=3)
    >>> attention(torch.zeros(2, 5, 6), is_causal=True).shape
    torch.Size([2, 5, 6])
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
        rotate: Callable[[Tensor, Tensor], Tensor] | None = None,
        feature_map: Callable[[Tensor], Tensor] = elu_feature_map,
        chunk_size: int = 128,
        d_head: int | None = None,
        qk_norm: bool = False,
        eps: float | None = None,
    ):
        require_sizes(chunk_size=chunk_size)
        super().__init__(
            d_model,
            n_heads,
            n_kv_heads=n_kv_heads,
            d_key_in=d_key_in,
            d_value_in=d_value_in,
            bias=bias,
            dropout=dropout,
            attend=bidirectional_linear_attention,  # if attention is causal, _attend calls causal_linear_attention
            rotate=rotate,
            d_head=d_head,
            qk_norm=qk_norm,
            eps=eps,
        )
        if dropout:
            raise ValueError(f"dropout must be 0: linear attention has no weights to drop, got {format_value(dropout)}")
        self.feature_map, self.chunk_size = feature_map, chunk_size

    def _attend(self, query, key, value, mask, is_causal):
        grouped = self.n_kv_heads < self.n_heads
        if mask is not None:
            leading, _ = require_attention(query, key, None, value, enable_gqa=grouped)
            _require_key_mask(mask, leading, key, "mask")
        if grouped:
            if mask is not None and mask.ndim > 2:  # the mask has an axis of heads
                mask = mask.unflatten(-3, (1, 1) if mask.shape[-3] == 1 else (self.n_kv_heads, -1))
            query, key, value = _group_heads(query, key, value)
        if is_causal:
            options = {"feature_map": self.feature_map, "chunk_size": self.chunk_size}
            heads = causal_linear_attention(query, key, value, key_mask=mask, **options)
        else:
            heads = bidirectional_linear_attention(query, key, value, key_mask=mask, feature_map=self.feature_map)
        return heads.flatten(-4, -3) if grouped else heads

    def new_cache(self) -> StateCache:
        """Return an empty :class:`StateCache` for :meth:`step`."""
        return StateCache()

    @torch.no_grad()
    def step(self, x: Tensor, cache: Any) -> Tensor:
        """Return the attention output of new tokens, which read the cached state and are added to the state.

        The outputs equal those of causal self-attention over the whole sequence. The method is for generation: it
        computes no gradients.
        """
        start = cache.length
        query = self._project_query(x, start)  # (..., heads, new, d_head)
        key, value = self.project(x, start=start)
        grouped = self.n_kv_heads < self.n_heads
        if grouped:
            query, key, value = _group_heads(query, key, value)
        if cache.state is not None and x.shape[-2] == 1:
            query, key, value = query.squeeze(-2), key.squeeze(-2), value.squeeze(-2)
            state, heads = linear_attention_step(cache.state, query, key, value, feature_map=self.feature_map)
            heads = heads.unsqueeze(-2)
        else:
            _require_linear_arguments(query, key, value, None, self.feature_map, causal=True)
            state, heads = _scan_chunks(cache.state, query, key, value, None, self.feature_map, self.chunk_size)
        cache.update(state, x.shape[-2])
        return self._project_out(heads.flatten(-4, -3) if grouped else heads)

    def weights(
        self, query: Tensor, key: Tensor | None = None, mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        """Return the attention weight of each key token for each query token, in every head.

        The forward pass never computes these weights. Here ``mask`` may hide single pairs, and may be combined with
        ``is_causal``.

        Returns
        -------
        Tensor, shape (..., heads, q_len, k_len)
        """
        key = query if key is None else key
        query, key = self._project_query(query), self._project_key(key)
        if self.n_kv_heads < self.n_heads:
            key = key.repeat_interleave(self.n_heads // self.n_kv_heads, -3)
        leading, _ = require_attention(query, key, mask)
        _require_feature_map(self.feature_map, query, key)
        compute_dtype = accumulation_dtype(query)
        with without_autocast(query):
            similarity = self.feature_map(query.to(compute_dtype)) @ self.feature_map(key.to(compute_dtype)).mT
            if is_causal:
                similarity = similarity.tril()
            if mask is not None:
                similarity = similarity.expand(*leading, *similarity.shape[-2:]).masked_fill(~mask, 0.0)
            return _safe_divide(similarity, similarity.sum(-1, keepdim=True)).to(query.dtype)


def _group_heads(query, key, value):
    """Put query heads that share a key head on a new axis, which has size 1 in keys: (..., n_kv_heads, group, ·, ·)."""
    return query.unflatten(-3, (key.shape[-3], -1)), key.unsqueeze(-3), value.unsqueeze(-3)


def _scan_chunks(state, query, key, value, key_mask, feature_map, chunk_size):
    """Read a sequence chunk by chunk; return the state after the last chunk, and the outputs."""
    # split is used instead of slices, because the gradient of each slice would be as long as the sequence
    chunks = [x.split(chunk_size, -2) for x in (query, key, value)]
    mask_columns = [None] * len(chunks[0]) if key_mask is None else _to_mask_column(key_mask, key).split(chunk_size, -2)
    outputs = []
    with without_autocast(query):
        for chunk in zip(*chunks, mask_columns):
            state, output = _read_chunk(state, *chunk, feature_map)
            outputs.append(output)
    return state, torch.cat(outputs, -2)


def _read_chunk(state, query, key, value, mask_column, feature_map):
    """Return a chunk's outputs and the state after the chunk. All other tensors are freed before the next chunk."""
    compute_dtype = accumulation_dtype(query)
    q, k, v = (
        feature_map(query.to(compute_dtype)),
        _key_features(feature_map, key.to(compute_dtype), mask_column),
        value.to(compute_dtype),
    )
    weights = (q @ k.mT).tril_()
    numerator, normalizer = weights @ v, weights.sum(-1, keepdim=True)
    new_state = k.mT @ v, k.sum(-2)
    if state is not None:
        # The state sums up only earlier chunks. Subtracting this chunk from a sum that includes it would give the same
        # result in exact arithmetic, but in float32 one large key would cancel all digits of the earlier keys.
        S, z = _require_state(state, k, v)
        numerator += q @ S
        normalizer += q @ z.unsqueeze(-1)
        new_state = S + new_state[0], z + new_state[1]
    return new_state, _safe_divide(numerator, normalizer).to(query.dtype)


def _read_state(state, query_features):
    """Return the outputs of queries with these features: weighted means of the values, computed from the state."""
    S, z = state
    return _safe_divide(query_features @ S, query_features @ z.unsqueeze(-1))


def _safe_divide(numerator, normalizer):
    """Divide; for a query that matches no key, return 0 instead of 0/0."""
    return numerator / normalizer.masked_fill(normalizer == 0, 1.0)


def _key_features(feature_map, key, mask_column):
    features = feature_map(key)
    return features if mask_column is None else torch.where(mask_column, features, 0.0)


def _to_mask_column(key_mask, key):
    """Reshape a key mask, (..., 1, k_len), to a column beside the keys: (..., k_len, 1)."""
    if key_mask is None:
        return None
    return key_mask.expand(torch.broadcast_shapes(key_mask.shape, (1, key.shape[-2]))).mT


def _require_linear_arguments(query, key, value, key_mask, feature_map, causal=False):
    require_tensor(value=value)
    leading, _ = require_attention(query, key, None, value)
    if causal and query.shape[-2] != key.shape[-2]:
        raise ValueError(f"query and key must share seq, got {query.shape[-2]} and {key.shape[-2]}")
    if key_mask is not None:
        _require_key_mask(key_mask, leading, key, "key_mask")
    _require_feature_map(feature_map, query, key)


def _require_key_mask(mask, leading, key, name):
    if isinstance(mask, torch.Tensor) and mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(
            f"{name} must hide whole keys, in shape (..., 1, k_len), got {tuple(mask.shape)}: linear attention "
            f"computes no weights of single pairs that a mask could hide; its causal form hides later tokens"
        )
    require_mask(mask, (*leading, 1, key.shape[-2]), key.device, name)


def _require_feature_map(feature_map, query, key):
    """Call ``feature_map``, and raise an error unless it is a valid feature map; the default map is not checked."""
    if feature_map is elu_feature_map:
        return
    if not callable(feature_map):
        raise TypeError(f"feature_map must be a function of a tensor, got {type_name(feature_map)}")
    name, feature_counts = getattr(feature_map, "__name__", type(feature_map).__name__), []
    for argument, x in (("query", query), ("key", key)):
        with torch.no_grad():
            features = feature_map(x)
        if not isinstance(features, torch.Tensor) or features.shape[:-1] != x.shape[:-1]:
            actual = tuple(features.shape) if isinstance(features, torch.Tensor) else type(features).__name__
            raise ValueError(
                f"feature_map {name} must keep all axes of {argument} {tuple(x.shape)} but the last, got {actual}"
            )
        feature_counts.append(features.shape[-1])
        if not features.numel() or not values_are_known(features):
            continue
        if features.min() < 0:
            raise ValueError(
                f"feature_map {name} must not return negative values, got {features.min():.4g} for {argument}"
            )
        # A map may be zero for a single token, but not for all tokens.
        if features[..., :1].numel() > 1 and not features.any():
            raise ValueError(f"feature_map {name} must not return only zeros, got only zeros for {argument}")
    if feature_counts[0] != feature_counts[1]:
        raise ValueError(
            f"feature_map {name} must return as many features for query as for key, "
            f"got {feature_counts[0]} and {feature_counts[1]}"
        )


def _require_state(state, features, value):
    if not isinstance(state, tuple) or len(state) != 2 or not all(isinstance(x, torch.Tensor) for x in state):
        raise TypeError(
            f"state must be a pair of tensors (S, z), as tl.initial_state returns it, got {type_name(state)}"
        )
    leading = torch.broadcast_shapes(features.shape[:-2], value.shape[:-2])
    shapes = (*leading, features.shape[-1], value.shape[-1]), (*features.shape[:-2], features.shape[-1])
    for name, x, shape in zip(("S", "z"), state, shapes):
        if x.shape != shape:
            raise ValueError(f"state's {name} must have shape {tuple(shape)}, got {tuple(x.shape)}")
        if x.dtype != features.dtype:
            raise TypeError(f"state's {name} must be {features.dtype}, got {x.dtype}")
        if x.device != features.device:
            raise ValueError(f"state's {name} must be on the device of key, {features.device}, got {x.device}")
    return state
