"""Masks say which query may attend to which key. ``True`` means *may attend*; masks combine with ``&`` and ``|``."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .arguments import (
    as_sizes,
    format_value,
    require_bool,
    require_integers,
    require_sizes,
    suggest_fix,
    type_name,
    values_are_known,
)


def causal_mask(q_len: int, k_len: int | None = None, *, device: torch.device | str | None = None) -> Tensor:
    """Let each query attend to its own position and to earlier positions.

    The last query is aligned with the last key. With more keys than queries, as with a cache of earlier tokens, the
    first query therefore sees ``k_len - q_len + 1`` keys. (PyTorch's ``is_causal`` counts from the first key instead.)

    Parameters
    ----------
    q_len : int
    k_len : int, optional
        ``q_len`` by default.
    device : torch.device, optional

    Returns
    -------
    Tensor of bool, shape (q_len, k_len)
        With fewer keys than queries, the first ``q_len - k_len`` queries cannot attend to any key.

    Raises
    ------
    TypeError
        If a length is not an integer.
    ValueError
        If a length is negative.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", 2017, section 3.2.3.

    Examples
    --------
    >>> causal_mask(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    k_len = q_len if k_len is None else k_len
    q_len, k_len = as_sizes(minimum=0, q_len=q_len, k_len=k_len)
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(k_len - q_len)


def padding_mask(
    lengths: Tensor | np.ndarray | Sequence[int], k_len: int, *, device: torch.device | str | None = None
) -> Tensor:
    """Let every query attend to the real tokens of its own sequence, and not to the padding after them.

    Parameters
    ----------
    lengths : Tensor, array or sequence of int, shape (batch,)
        How many real tokens each sequence has, from 0 to ``k_len``.
    k_len : int
        Length of every sequence, padding included.
    device : torch.device, optional
        The device of ``lengths`` by default.

    Returns
    -------
    Tensor of bool, shape (batch, 1, 1, k_len)
        The two axes of size 1 are heads and q_len: padding is hidden as a *key*, from every head and every query.

    Raises
    ------
    TypeError
        If ``lengths`` contains values other than integers, or ``k_len`` is not an integer.
    ValueError
        If ``lengths`` does not have exactly one axis, or a length is negative or greater than ``k_len``.

    Examples
    --------
    >>> padding_mask([1, 3], 3)[:, 0, 0]
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    require_sizes(minimum=0, k_len=k_len)
    if isinstance(lengths, np.ndarray):
        lengths = torch.from_numpy(lengths)
    if not isinstance(lengths, torch.Tensor):
        if not isinstance(lengths, (list, tuple)):
            fix = suggest_fix("lengths", lengths, {"[{}]": int, "list({})": list})
            raise TypeError(f"lengths must be a tensor or a sequence of integers, got {type_name(lengths)}{fix}")
        require_sizes(minimum=0, **{f"lengths[{i}]": length for i, length in enumerate(lengths)})
        lengths = torch.tensor(lengths, dtype=torch.long)
    if lengths.dtype == torch.bool:
        raise TypeError("lengths must be integers, got torch.bool: use lengths.sum(-1) if True marks real tokens")
    require_integers("integers", lengths=lengths)
    lengths = lengths.long()  # an int8 tensor cannot be compared with k_len = 300
    if lengths.ndim != 1:
        fixes = {"{}[None]": lambda x: x[None], "{}.squeeze(-1)": lambda x: x.squeeze(-1)}
        fix = suggest_fix("lengths", lengths, fixes, lambda fixed: fixed.ndim == 1)
        raise ValueError(f"lengths must have shape (batch,), got {tuple(lengths.shape)}{fix}")
    if values_are_known(lengths):
        out_of_range = (lengths < 0) | (lengths > k_len)
        if out_of_range.any():
            raise ValueError(f"lengths must be from 0 to k_len, which is {k_len}, got {int(lengths[out_of_range][0])}")
    device = lengths.device if device is None else device
    return (torch.arange(k_len, device=device) < lengths.to(device)[:, None])[:, None, None, :]


def sliding_window_mask(seq: int, window: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let each token attend to itself and to the ``window - 1`` tokens before it.

    A window that extends in both directions is ``mask | mask.mT``.

    Parameters
    ----------
    seq : int
    window : int
        The maximum number of tokens that a token sees, itself included: 1 or more.
    device : torch.device, optional

    Returns
    -------
    Tensor of bool, shape (seq, seq)

    Raises
    ------
    TypeError, ValueError
        As in :func:`causal_mask`.

    References
    ----------
    Jiang et al., "Mistral 7B", 2023, section 2. Beltagy et al., "Longformer", 2020, section 3.1, for both directions.

    Examples
    --------
    >>> sliding_window_mask(3, 2)
    tensor([[ True, False, False],
            [ True,  True, False],
            [False,  True,  True]])
    """
    require_sizes(minimum=0, seq=seq)
    (window,) = as_sizes(window=window)
    return causal_mask(seq, device=device).triu(1 - window)


def prefix_mask(seq: int, prefix: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let every token attend to the first ``prefix`` tokens, to itself, and to the tokens before it.

    Parameters
    ----------
    seq : int
    prefix : int
        How many of the first tokens are visible to all tokens: from 0 to ``seq``.
    device : torch.device, optional

    Returns
    -------
    Tensor of bool, shape (seq, seq)

    Raises
    ------
    TypeError, ValueError
        As in :func:`causal_mask`.

    References
    ----------
    Raffel et al., "Exploring the Limits of Transfer Learning" (T5), 2020, section 3.2.1.

    Examples
    --------
    >>> prefix_mask(3, 2)
    tensor([[ True,  True, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    require_sizes(minimum=0, seq=seq, prefix=prefix)
    if prefix > seq:
        raise ValueError(f"prefix must be at most seq, which is {seq}, got {prefix}")
    return causal_mask(seq, device=device) | (torch.arange(seq, device=device) < prefix)


def additive_mask(
    mask: Tensor, *, dtype: torch.dtype = torch.float32, device: torch.device | str | None = None
) -> Tensor:
    """Convert a mask to numbers to add to the scores: 0 where a query may attend, ``-inf`` where it may not.

    Parameters
    ----------
    mask : Tensor of bool, any shape
    dtype : torch.dtype, optional
        A floating-point type.
    device : torch.device, optional
        The device of ``mask`` by default.

    Returns
    -------
    Tensor, shape of ``mask``

    Raises
    ------
    TypeError
        If ``mask`` is not a bool tensor, or ``dtype`` is not a floating-point type.

    Examples
    --------
    >>> additive_mask(causal_mask(2))
    tensor([[0., -inf],
            [0., 0.]])
    """
    require_bool(mask)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating-point type such as torch.float32, got {format_value(dtype)}")
    device = mask.device if device is None else device
    return torch.zeros(mask.shape, dtype=dtype, device=device).masked_fill(~mask.to(device), -torch.inf)
