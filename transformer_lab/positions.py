"""Positions: numbers that tell a token where it stands."""

from functools import partial

import torch
from torch import Tensor

from .arguments import as_sizes


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
