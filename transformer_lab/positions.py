"""Positions: numbers that tell a token where it stands, and what they do to queries, keys and scores."""

from functools import partial

import torch
from torch import Tensor

from .arguments import as_sizes, is_number, require_floating, values_are_known
from .precision import wide_dtype


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
    device = torch.get_default_device() if device is None else device
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
        raise ValueError(f"base must be a number above 0, got {base!r}")
    seq, d_head = x.shape[-2:]
    if positions is None:
        positions = torch.arange(seq, device=x.device)
    else:
        _require_positions(positions, x)
    has_float64 = positions.device.type in ("cpu", "cuda", "meta")  # MPS has none
    exact = (positions if has_float64 else positions.cpu()).double()
    even = torch.arange(0, d_head, 2, dtype=torch.float64, device=exact.device)  # (pairs,)
    angle = exact.unsqueeze(-1) / base ** (even / d_head)  # (..., seq, pairs)
    cos, sin = angle.cos(), angle.sin()
    # Of a pair (a, b), a becomes a · cos − b · sin, and b becomes b · cos + a · sin: each reads itself and its partner.
    if interleaved:
        cos, sin = (torch.stack(pair, dim=-1).flatten(-2) for pair in ((cos, cos), (-sin, sin)))
        partner = x.unflatten(-1, (d_head // 2, 2)).flip(-1).flatten(-2)
    else:
        cos, sin = (torch.cat(pair, dim=-1) for pair in ((cos, cos), (-sin, sin)))
        partner = x.roll(d_head // 2, dims=-1)
    wide = wide_dtype(x)
    cos, sin = cos.to(x.device, wide), sin.to(x.device, wide)  # (..., seq, d_head)
    return torch.addcmul(x * cos, partner, sin).to(x.dtype)


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


def _require_positions(positions, x):
    """Raise unless these are places of the tokens of ``x``."""
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions must be a tensor of integers, got {type(positions).__name__}")
    if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
        raise TypeError(f"positions must be a tensor of integers, got {positions.dtype}")
    if positions.device != x.device:
        raise ValueError(f"x and positions must lie on one device, got {x.device} and {positions.device}")
    shape, tokens = tuple(positions.shape), tuple(x.shape[:-1])
    fits = 1 <= len(shape) <= len(tokens) and shape[-1] == tokens[-1]
    if not fits or any(size not in (1, axis) for size, axis in zip(shape[::-1], tokens[::-1])):
        raise ValueError(f"positions must broadcast to {tokens}, the axes of x but the last, seq in full, got {shape}")
    if positions.device.type == "cpu" and values_are_known(positions) and (positions < 0).any():
        raise ValueError(f"positions must be 0 or more, got {int(positions.min())}")
