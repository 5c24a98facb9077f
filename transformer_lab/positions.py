"""Positions: sinusoidal vectors for embeddings, rotary angles for queries and keys, and ALiBi's bias for scores."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from .arguments import (
    as_sizes,
    format_value,
    is_number,
    require_flags,
    require_floating,
    require_integers,
    suggest_fix,
    suggest_float,
    values_are_known,
)
from .precision import accumulation_dtype

# The maximum number of cached tables of rotary angles, and the maximum number of cosines in one table. All tables
# together take at most 64 MB in float32.
MAX_TABLES, MAX_TABLE_ENTRIES = 8, 2**20


def sinusoidal_positions(seq: int, d_model: int, *, device: torch.device | str | None = None) -> Tensor:
    """Return the fixed position vectors of the original Transformer.

    Feature ``2i`` of position ``p`` is ``sin(p / 10000^(2i / d_model))`` and feature ``2i + 1`` is the cosine
    of the same angle: sine and cosine alternate, and each pair turns more slowly than the pair before it.

    Parameters
    ----------
    seq : int
        Number of positions, 0 or more.
    d_model : int
        Number of features, 1 or more. If the number is odd, the last sine has no cosine.
    device : torch.device, optional

    Returns
    -------
    Tensor, shape (seq, d_model)
        float32, computed in float64 so that late positions stay exact. The tensor has no rows if ``seq`` is 0.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is too small.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.5.

    Examples
    --------
    >>> sinusoidal_positions(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    (seq,) = as_sizes(minimum=0, seq=seq)
    (d_model,) = as_sizes(d_model=d_model)
    device = torch.empty(0).device if device is None else device  # get_default_device may raise in PyTorch 2.4
    arange = partial(torch.arange, dtype=torch.float64, device="cpu")  # not every device has float64
    even_features = arange(0, d_model, 2)  # (pairs,)
    angle = arange(seq)[:, None] / 10000 ** (even_features / d_model)  # (seq, pairs)
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (seq, pairs, 2)
    return pairs.flatten(1)[:, :d_model].float().to(device)


def rotary(
    x: Tensor,
    positions: Tensor | None = None,
    *,
    base: float = 10000.0,
    interleaved: bool = False,
    n_features: int | None = None,
) -> Tensor:
    """Rotate every pair of features by an angle that grows with the position.

    Pair ``i`` of the token at position ``p`` is rotated by ``p / base^(2i / d_head)``. If both queries and keys are
    rotated, ``query · key`` depends on their positions only through the distance. Values are not rotated. Pass this
    function as ``rotate`` to :class:`MultiHeadAttention`, or ``partial(rotary, base=5e5)`` for a different base.

    Parameters
    ----------
    x : Tensor, shape (..., heads, seq, d_head), floating point
        Queries or keys; ``d_head`` is even unless ``n_features`` is given.
    positions : Tensor of integers, shape (seq,), or broadcastable to (..., heads, seq), optional
        0 or more; ``0 … seq - 1`` by default. With padding on the left, every sequence has its own positions, of shape
        (batch, 1, seq). Negative positions raise an error on the CPU only: on any other device, the check would have to
        wait for the device.
    base : float, optional
        The larger the base, the more slowly the last pairs rotate: 10,000 in RoFormer, 500,000 in Llama 3.
    interleaved : bool, optional
        Which features form a pair. ``True``: neighbours, ``2i`` and ``2i + 1``, as in RoFormer, GPT-J and the weights
        of Llama that Meta publishes. ``False``: ``i`` and ``i + d_head / 2``, as in GPT-NeoX, Mistral, Qwen, Gemma, and
        the Llama of Hugging Face's ``transformers``. The two layouts differ only in the order of the rows of the query
        and key projections, but weights that were trained with one layout are useless with the other.
    n_features : int, optional
        How many features of each head are rotated, beginning with the first: an even number, ``d_head`` by default. The
        other features are unchanged, so their products do not depend on position; ``n_features`` replaces ``d_head`` in
        the angle. GPT-NeoX-20B rotates 24 of 96 features, and Phi-2 rotates 32 of 80.

    Returns
    -------
    Tensor, shape of ``x``
        In the dtype of ``x``. Angles are computed in float64, so that late positions stay exact.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor, ``positions`` is not a tensor of integers, or ``n_features`` is not an
        integer.
    ValueError
        If the number of features to rotate is odd or greater than ``d_head``, ``positions`` do not broadcast, are not
        on the device of ``x`` or are negative, or ``base`` is not a number above 0.

    References
    ----------
    Su et al., "RoFormer", 2021, equations 14, 15 and 34. Black et al., "GPT-NeoX-20B", 2022, section 2.1.1, for
    ``n_features``.

    Examples
    --------
    >>> query, key = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    >>> for first in (0, 1000):
    ...     rotated = rotary(query, torch.tensor([first + 7])), rotary(key, torch.tensor([first]))
    ...     print(f"{(rotated[0] * rotated[1]).sum():.4f}")
    9.1437
    9.1437
    """
    require_floating(x=x)
    if x.ndim < 2 or (x.shape[-1] % 2 and n_features is None):
        even_rule = ", d_head even" if n_features is None else ""
        raise ValueError(f"x must have shape (..., heads, seq, d_head){even_rule}, got {tuple(x.shape)}")
    n_features = x.shape[-1] if n_features is None else _require_n_features(n_features, x.shape[-1])
    if not is_number(base) or not base > 0:
        raise ValueError(f"base must be a number above 0, got {format_value(base)}{suggest_float('base', base)}")
    require_flags(interleaved=interleaved)
    max_position = x.shape[-2] - 1 if positions is None else _require_positions(positions, x)
    options = {"max_position": max_position, "base": base, "interleaved": interleaved}
    if n_features == x.shape[-1]:
        return apply_rotary(x, positions, **options)
    rotated = apply_rotary(x[..., :n_features], positions, **options)
    return torch.cat((rotated, x[..., n_features:]), dim=-1)


def apply_rotary(
    x: Tensor, positions: Tensor | None, *, max_position: int | None, base: float, interleaved: bool
) -> Tensor:
    """Rotate like :func:`rotary`, without checks; ``max_position`` is ``None`` if the largest position is unknown."""
    cos, sin = _get_cos_sin(x, positions, max_position, base, bool(interleaved))  # (..., seq, d_head) each
    # A pair (a, b) becomes (a · cos − b · sin, b · cos + a · sin): x · cos + (x with its pairs swapped) · ±sin.
    rotated = torch.addcmul(x * cos, _swap_pairs(x, interleaved), sin)
    return rotated if rotated.dtype == x.dtype else rotated.to(x.dtype)


def _swap_pairs(x, interleaved):
    """Exchange the two features of every pair."""
    half = x.shape[-1] // 2
    # PyTorch 2.4 can trace `roll` only if its arguments are tuples.
    return x.unflatten(-1, (half, 2)).flip(-1).flatten(-2) if interleaved else x.roll((half,), (-1,))


def alibi_bias(
    n_heads: int, q_len: int, k_len: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Return a bias for scores that makes heads prefer nearby keys, each head with its own slope.

    The bias is ``-slope * distance``; if ``n_heads`` is a power of two, the slopes are ``2^(-8/n_heads)``, its square,
    its cube, and so on.

    Parameters
    ----------
    n_heads : int
        If the number is not a power of two, let ``p`` be the next lower power of two. The first ``p`` slopes are those
        for ``p`` heads; the other slopes are the first, third, fifth … for ``2 * p`` heads.
    q_len : int
    k_len : int, optional
        ``q_len`` by default. The last query is aligned with the last key, as in :func:`causal_mask`.
    device : torch.device, optional

    Returns
    -------
    Tensor, shape (heads, q_len, k_len)
        float32, 0 where query and key have the same position, negative elsewhere. The bias does not hide later keys.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is too small.

    References
    ----------
    Press, Smith and Lewis, "Train Short, Test Long", 2022, section 3; the authors' code for numbers
    of heads that are not powers of two.

    Examples
    --------
    >>> alibi_bias(n_heads=2, q_len=3)[0]
    tensor([[ 0.0000, -0.0625, -0.1250],
            [-0.0625,  0.0000, -0.0625],
            [-0.1250, -0.0625,  0.0000]])
    """
    k_len = q_len if k_len is None else k_len
    (n_heads,) = as_sizes(n_heads=n_heads)
    q_len, k_len = as_sizes(minimum=0, q_len=q_len, k_len=k_len)
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above n_heads
    exponents = [8 * (i + 1) / power for i in range(power)] + [4 * (2 * i + 1) / power for i in range(n_heads - power)]
    slopes = torch.tensor([2**-exponent for exponent in exponents], device=device)
    query_positions = torch.arange(k_len - q_len, k_len, device=device).unsqueeze(-1)  # (q_len, 1)
    return slopes[:, None, None] * -(query_positions - torch.arange(k_len, device=device)).abs()


def _get_cos_sin(x, positions, max_position, base, interleaved):
    """Look up cos and ±sin in a cached table, or compute them if the table would be too large or cannot be used."""
    seq, d_head = x.shape[-2:]
    if max_position is not None and (max_position + 1) * d_head <= MAX_TABLE_ENTRIES and _can_use_cache(x):
        table_args = d_head, base, interleaved, x.device, accumulation_dtype(x)
        if positions is None:
            return _first_rows_of_table(seq, *table_args)
        rows = positions.reshape(-1).long()
        tables = _cached_table(_table_length(max_position), *table_args)
        return [table.index_select(0, rows).view(*positions.shape, d_head) for table in tables]
    if positions is None:
        positions = torch.arange(seq, device=x.device)
    return _compute_cos_sin(positions, d_head, base, interleaved, x.device, accumulation_dtype(x))


def _can_use_cache(x):
    """Whether ``x`` is an ordinary tensor and no tracer, compiler or CUDA graph is recording."""
    if type(x) not in (Tensor, nn.Parameter) or not values_are_known(x) or torch.jit.is_tracing():
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())  # a graph stores only the table's address


def _table_length(max_position):
    """Return the length of the table for this position: a power of two, so that few tables suffice for all lengths."""
    return 1 << max(max_position, 0).bit_length()


@lru_cache(MAX_TABLES)
def _first_rows_of_table(seq, *table_args):
    """Return cos and ±sin for positions 0 … seq - 1. The slices are cached, because slicing a table takes longer."""
    return [table[:seq] for table in _cached_table(_table_length(seq - 1), *table_args)]


@lru_cache(MAX_TABLES)
def _cached_table(rows, d_head, base, interleaved, device, dtype):
    """Return :func:`_compute_cos_sin` for positions 0 … rows - 1. The table is shared: no caller may write into it."""

    def compute():
        return _compute_cos_sin(torch.arange(rows, device="cpu"), d_head, base, interleaved, device, dtype)

    # Inference mode, vmap and fake tensors change the tensors that PyTorch creates, but only in the current thread. A
    # new thread creates an ordinary tensor even if the first caller is inside one of these modes.
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(compute).result()


def _compute_cos_sin(positions, d_head, base, interleaved, device, dtype):
    """Compute cos and ±sin of every feature's angle in float64; both have the shape (..., seq, d_head)."""
    has_float64 = positions.device.type in ("cpu", "cuda", "meta")  # MPS has none
    positions = (positions if has_float64 else positions.cpu()).double()
    even_features = torch.arange(0, d_head, 2, dtype=torch.float64, device=positions.device)  # (pairs,)
    angle = positions.unsqueeze(-1) / base ** (even_features / d_head)  # (..., seq, pairs)
    cos, sin = angle.cos(), angle.sin()
    pairs = (cos, cos), (-sin, sin)
    tables = (torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1) for pair in pairs)
    return [table.to(device, dtype) for table in tables]


def _require_n_features(n_features, d_head):
    """Raise an error unless this number of features is even and at most ``d_head``; return it as a Python integer."""
    (n_features,) = as_sizes(n_features=n_features)
    if n_features % 2 or n_features > d_head:
        raise ValueError(f"n_features must be even and at most d_head, {d_head}, got {n_features}")
    return n_features


def _require_positions(positions, x):
    """Raise an error unless ``positions`` fit ``x``; return the largest position, or None if it is unknown."""
    require_integers("a tensor of integers", positions=positions)
    if positions.device != x.device:
        raise ValueError(f"x and positions must be on one device, got {x.device} and {positions.device}")
    token_shape = tuple(x.shape[:-1])

    def fits(positions):
        shape = positions.shape
        is_aligned = 1 <= len(shape) <= len(token_shape) and shape[-1] == token_shape[-1]
        return is_aligned and all(size in (1, axis) for size, axis in zip(shape[::-1], token_shape[::-1]))

    if not fits(positions):
        # A fix must add the axis of heads, so that the first axis of positions is the batch.
        fixes = {"{}[:, None]": lambda x: x[:, None], "{}.T": lambda x: x.T}
        n_axes = (1, len(token_shape))
        fix = suggest_fix("positions", positions, fixes, lambda fixed: fixed.ndim in n_axes and fits(fixed))
        rule = f"broadcast to {token_shape}, the axes of x except the last, with a last axis of size {token_shape[-1]}"
        raise ValueError(f"positions must {rule}, got {tuple(positions.shape)}{fix}")
    if positions.device.type != "cpu" or not values_are_known(positions) or not positions.numel():
        return None
    min_position, max_position = (int(position) for position in torch.aminmax(positions))
    if min_position < 0:
        raise ValueError(f"positions must be 0 or more, got {min_position}")
    return max_position
