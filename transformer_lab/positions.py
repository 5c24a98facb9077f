"""Positions: numbers that tell a token where it stands, and what they do to queries, keys and scores."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from .arguments import (
    as_sizes,
    is_number,
    number_of,
    require_flags,
    require_floating,
    require_integers,
    shown,
    use,
    values_are_known,
)
from .precision import wide_dtype

# How many tables of rotary angles are kept, and the most cosines in one: in float32 all hold at most 64 MB.
TABLES, COSINES = 8, 2**20


def sinusoidal_positions(seq: int, d_model: int, *, device: torch.device | str | None = None) -> Tensor:
    """Return the fixed position vectors of the original Transformer.

    Feature ``2i`` of position ``p`` is ``sin(p / 10000^(2i / d_model))`` and feature ``2i + 1`` is the cosine
    of the same angle: sine and cosine alternate, and each pair turns more slowly than the one before it.

    Parameters
    ----------
    seq : int
        Number of positions, 0 or more.
    d_model : int
        Number of features, 1 or more. When it is odd, the last sine has no cosine beside it.
    device : torch.device, optional

    Returns
    -------
    Tensor, shape (seq, d_model)
        float32, computed in float64 so that late positions stay exact. It has no rows when ``seq`` is 0.

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
    (seq,) = as_sizes(least=0, seq=seq)
    (d_model,) = as_sizes(d_model=d_model)
    device = torch.empty(0).device if device is None else device  # get_default_device may raise in PyTorch 2.4
    exact = partial(torch.arange, dtype=torch.float64, device="cpu")  # not every device has float64
    even = exact(0, d_model, 2)  # (pairs,)
    angle = exact(seq)[:, None] / 10000 ** (even / d_model)  # (seq, pairs)
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (seq, pairs, 2)
    return pairs.flatten(1)[:, :d_model].float().to(device)


def rotary(x: Tensor, positions: Tensor | None = None, *, base: float = 10000.0, interleaved: bool = False) -> Tensor:
    """Turn every pair of features by an angle that grows with the position.

    Pair ``i`` of the token at position ``p`` turns by ``p / base^(2i / d_head)``. Where queries and keys are both
    turned, ``query · key`` depends on how far apart the two stand, and on nothing else of their positions. Values stay
    as they are. This is a ``rotate`` for :class:`MultiHeadAttention`; with another base, ``partial(rotary, base=5e5)``.

    Parameters
    ----------
    x : Tensor, shape (..., heads, seq, d_head), floating point
        Queries or keys; ``d_head`` is even.
    positions : Tensor of integers, shape (seq,), or broadcastable to (..., heads, seq), optional
        0 or more; ``0 … seq - 1`` when left out. With padding on the left every sequence has its own, (batch, 1, seq).
        (That none is negative is checked on the CPU alone: to ask would make Python wait for another device.)
    base : float, optional
        The larger, the more slowly the last pairs turn: 10,000 in RoFormer, 500,000 in Llama 3.
    interleaved : bool, optional
        Which features are a pair. ``True``: neighbours, ``2i`` and ``2i + 1``, as in RoFormer, GPT-J and the weights of
        Llama as Meta publishes them. ``False``: ``i`` and ``i + d_head / 2``, as in GPT-NeoX, Mistral, Qwen, Gemma, and
        Llama as Hugging Face's ``transformers`` has it. It is one model under another order of the rows of the
        projections; weights of one layout are nonsense in the other.

    Returns
    -------
    Tensor, shape of ``x``
        In its dtype. Angles are computed in float64, so that late positions stay exact.

    Raises
    ------
    TypeError
        If ``x`` is not a floating-point tensor, or ``positions`` not one of integers.
    ValueError
        If ``d_head`` is odd, ``positions`` do not broadcast, lie on another device or are negative, or ``base`` is not
        a number above 0.

    References
    ----------
    Su et al., "RoFormer", 2021, equations 14, 15 and 34. Black et al., "GPT-NeoX-20B", 2022, section 2.1.1, for halves.

    Examples
    --------
    >>> query, key = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    >>> for first in (0, 1000):
    ...     turned = rotary(query, torch.tensor([first + 7])), rotary(key, torch.tensor([first]))
    ...     print(f"{(turned[0] * turned[1]).sum():.4f}")
    9.1437
    9.1437
    """
    require_floating(x=x)
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"x must have shape (..., heads, seq, d_head), d_head even, got {tuple(x.shape)}")
    if not is_number(base) or not base > 0:
        raise ValueError(f"base must be a number above 0, got {shown(base)}{number_of('base', base)}")
    require_flags(interleaved=interleaved)
    last = x.shape[-2] - 1 if positions is None else _check_positions(positions, x)
    return turn(x, positions, last=last, base=base, interleaved=interleaved)


def turn(x: Tensor, positions: Tensor | None, *, last: int | None, base: float, interleaved: bool) -> Tensor:
    """Do what :func:`rotary` does, unchecked; no position is above ``last``, or ``None`` where that is not known."""
    cos, sin = _cos_and_sin(x, positions, last, base, bool(interleaved))  # (..., seq, d_head) each
    # Of a pair (a, b), a becomes a · cos − b · sin, and b becomes b · cos + a · sin: each reads itself and its partner.
    turned = torch.addcmul(x * cos, _partners(x, interleaved), sin)
    return turned if turned.dtype == x.dtype else turned.to(x.dtype)


def _partners(x, interleaved):
    """Every feature's partner, in its place."""
    half = x.shape[-1] // 2
    # PyTorch 2.4 traces a shift only inside a tuple.
    return x.unflatten(-1, (half, 2)).flip(-1).flatten(-2) if interleaved else x.roll((half,), (-1,))


def alibi_bias(
    n_heads: int, q_len: int, k_len: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Return a bias for scores that makes every head prefer keys nearby, each to its own degree.

    ``-slope * distance``; with ``n_heads`` a power of two, the slopes are ``2^(-8/n_heads)``, its square, and so on.

    Parameters
    ----------
    n_heads : int
        For another number than a power of two: the slopes of the power below it, then every other one of twice that.
    q_len : int
    k_len : int, optional
        ``q_len`` when left out. The last query stands at the last key, as in :func:`causal_mask`.
    device : torch.device, optional

    Returns
    -------
    Tensor, shape (heads, q_len, k_len)
        float32, 0 where query and key stand at one place, negative elsewhere; a causal mask hides what comes later.

    Raises
    ------
    TypeError
        If a size is not an integer.
    ValueError
        If a size is too small.

    References
    ----------
    Press, Smith and Lewis, "Train Short, Test Long", 2022, section 3; the authors' code for other numbers of heads.

    Examples
    --------
    >>> alibi_bias(n_heads=2, q_len=3)[0]
    tensor([[ 0.0000, -0.0625, -0.1250],
            [-0.0625,  0.0000, -0.0625],
            [-0.1250, -0.0625,  0.0000]])
    """
    k_len = q_len if k_len is None else k_len
    (n_heads,) = as_sizes(n_heads=n_heads)
    q_len, k_len = as_sizes(least=0, q_len=q_len, k_len=k_len)
    power = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above n_heads
    exponents = [8 * (i + 1) / power for i in range(power)] + [4 * (2 * i + 1) / power for i in range(n_heads - power)]
    slopes = torch.tensor([2**-exponent for exponent in exponents], device=device)
    place = torch.arange(k_len - q_len, k_len, device=device).unsqueeze(-1)  # (q_len, 1), in the order of the keys
    return slopes[:, None, None] * -(place - torch.arange(k_len, device=device)).abs()


def _cos_and_sin(x, positions, last, base, interleaved):
    """Looked up in a table that is kept, or computed: where it would be large, or where ``last`` is not known."""
    seq, d_head = x.shape[-2:]
    if last is not None and (last + 1) * d_head <= COSINES and _takes_a_kept_tensor(x):
        kind = d_head, base, interleaved, x.device, wide_dtype(x)
        if positions is None:
            return _first_rows(seq, *kind)
        rows = positions.reshape(-1).long()
        return [x.index_select(0, rows).view(*positions.shape, d_head) for x in _table(_rows(last), *kind)]
    if positions is None:
        positions = torch.arange(seq, device=x.device)
    return _computed(positions, d_head, base, interleaved, x.device, wide_dtype(x))


def _takes_a_kept_tensor(x):
    """Whether ``x`` is an ordinary tensor, and nothing records the operations on it, with the tensors that it meets."""
    if type(x) not in (Tensor, nn.Parameter) or not values_are_known(x) or torch.jit.is_tracing():
        return False
    return not (x.is_cuda and torch.cuda.is_current_stream_capturing())  # a graph keeps the address alone


def _rows(last):
    """How long a table is that has this position: a power of two, so that few serve all lengths."""
    return 1 << max(last, 0).bit_length()


@lru_cache(TABLES)
def _first_rows(seq, *kind):
    """cos and ±sin for positions 0 … seq - 1: views of a table, made once, as cutting takes longer than looking up."""
    return [x[:seq] for x in _table(_rows(seq - 1), *kind)]


@lru_cache(TABLES)
def _table(rows, d_head, base, interleaved, device, dtype):
    """What :func:`_computed` returns for positions 0 … rows - 1. It is shared: nothing may write into it."""

    def make():
        return _computed(torch.arange(rows, device="cpu"), d_head, base, interleaved, device, dtype)

    # Inference mode, vmap, fake tensors and the like change which tensors PyTorch makes, each in its own thread alone.
    # In a new thread the table becomes an ordinary tensor, even if the first caller was inside one of them.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


def _computed(positions, d_head, base, interleaved, device, dtype):
    """cos and ±sin of every feature's angle, (..., seq, d_head) each, from float64."""
    has_float64 = positions.device.type in ("cpu", "cuda", "meta")  # MPS has none
    exact = (positions if has_float64 else positions.cpu()).double()
    even = torch.arange(0, d_head, 2, dtype=torch.float64, device=exact.device)  # (pairs,)
    angle = exact.unsqueeze(-1) / base ** (even / d_head)  # (..., seq, pairs)
    cos, sin = angle.cos(), angle.sin()
    pairs = (cos, cos), (-sin, sin)
    both = (torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1) for pair in pairs)
    return [x.to(device, dtype) for x in both]


def _check_positions(positions, x):
    """Raise unless these are places of the tokens of ``x``; return the last, or None where that is not known."""
    require_integers("a tensor of integers", positions=positions)
    if positions.device != x.device:
        raise ValueError(f"x and positions must lie on one device, got {x.device} and {positions.device}")
    tokens = tuple(x.shape[:-1])

    def fit(positions):
        shape = positions.shape
        within = 1 <= len(shape) <= len(tokens) and shape[-1] == tokens[-1]
        return within and all(size in (1, axis) for size, axis in zip(shape[::-1], tokens[::-1]))

    if not fit(positions):
        # With a head axis in its place, the first axis is the batch.
        ways = {"{}[:, None]": lambda x: x[:, None], "{}.T": lambda x: x.T}
        remedy = use("positions", positions, ways, lambda made: made.ndim in (1, len(tokens)) and fit(made))
        rule = f"broadcast to {tokens}, the axes of x but the last, seq in full"
        raise ValueError(f"positions must {rule}, got {tuple(positions.shape)}{remedy}")
    if positions.device.type != "cpu" or not values_are_known(positions) or not positions.numel():
        return None
    first, last = (int(position) for position in torch.aminmax(positions))
    if first < 0:
        raise ValueError(f"positions must be 0 or more, got {first}")
    return last
