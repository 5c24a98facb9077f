"""Caches for generation, which store keys and values, or a state, so that no token is projected twice."""

from torch import Tensor

from .arguments import as_sizes, require_floating


class KeyValueCache:
    """The keys and values of all tokens so far, in every head of one attention layer.

    The cache is for generation, not for training: cached tensors carry no gradient.

    Parameters
    ----------
    window : int, optional
        The maximum number of tokens that a token sees, itself included. Tokens that no later token can see are dropped.

    Attributes
    ----------
    length : int
        How many tokens have been appended, which is also the position of the next token.

    Raises
    ------
    TypeError, ValueError
        If ``window`` is not an integer of at least 1.

    Examples
    --------
    >>> import torch
    >>> cache, windowed = KeyValueCache(), KeyValueCache(window=2)
    >>> for token in range(3):
    ...     key, value = cache.append(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    ...     last_two, _ = windowed.append(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    >>> key.shape, last_two.shape, windowed.length
    (torch.Size([1, 2, 3, 4]), torch.Size([1, 2, 2, 4]), 3)
    """

    def __init__(self, window: int | None = None):
        if window is not None:
            (window,) = as_sizes(window=window)
        self.window = window
        self.length = 0
        self._filled = 0  # how many tokens the buffers hold
        self._buffers: tuple[Tensor, Tensor] | None = None  # buffers of keys and of values, with spare capacity

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append new tokens' keys and values; return the keys and values of all tokens that the new tokens may see.

        Parameters
        ----------
        key : Tensor, shape (..., heads, new, d_head)
        value : Tensor, shape (..., heads, new, d_value)

        Returns
        -------
        (Tensor, Tensor), shapes (..., heads, length, d_head) and (..., heads, length, d_value)
            Views of the cache, in the order of the tokens. With a window, they contain the new tokens and at most
            ``window - 1`` tokens before these.

        Raises
        ------
        TypeError
            If the dtype or the device of a tensor differs from the cache's.
        ValueError
            If a shape differs from the cache's in an axis other than the axis of tokens.
        """
        require_floating(key=key, value=value)
        if key.ndim < 2 or value.ndim < 2 or key.shape[-2] != value.shape[-2]:
            actual = f"{tuple(key.shape)} and {tuple(value.shape)}"
            raise ValueError(
                f"key and value must have shapes (..., heads, new, features) with equally many new tokens, got {actual}"
            )
        n_new = key.shape[-2]
        n_earlier = self.length if self.window is None else min(self.length, self.window - 1)
        keys, values = self._ensure_capacity(key, value, n_earlier, n_new)
        visible_from, write_from, self._filled = self._filled - n_earlier, self._filled, self._filled + n_new
        keys[..., write_from : self._filled, :] = key.detach()
        values[..., write_from : self._filled, :] = value.detach()
        self.length += n_new
        return keys[..., visible_from : self._filled, :], values[..., visible_from : self._filled, :]

    def _ensure_capacity(self, key, value, n_earlier, n_new):
        """Return the buffers, with capacity for ``n_new`` tokens after the last ``n_earlier`` tokens of the cache."""
        if self._buffers is None:
            self._buffers = _empty(key, 2 * n_new), _empty(value, 2 * n_new)
        keys, values = self._buffers
        _require_like(keys, key, "key")
        _require_like(values, value, "value")
        capacity, needed_capacity = keys.shape[-2], n_earlier + n_new
        # Because the capacity doubles, each token is copied only a few times. After a long prompt, a cache with a
        # window needs less capacity, and shrinks.
        if self._filled + n_new > capacity or capacity > 2 * needed_capacity:
            kept = slice(self._filled - n_earlier, self._filled)
            resized = _empty(key, 2 * needed_capacity), _empty(value, 2 * needed_capacity)
            for buffer, old_buffer in zip(resized, self._buffers):
                buffer[..., :n_earlier, :] = old_buffer[..., kept, :]
            self._buffers, self._filled = resized, n_earlier
        return self._buffers


def _require_like(buffer, tensor, name):
    if (buffer.shape[:-2], buffer.shape[-1]) != (tensor.shape[:-2], tensor.shape[-1]):
        actual = tuple(tensor.shape)
        raise ValueError(f"{name} must have the cache's shape, {tuple(buffer.shape)}, except for axis -2, got {actual}")
    if (buffer.dtype, buffer.device) != (tensor.dtype, tensor.device):
        mismatch = f"{buffer.dtype} on {buffer.device}, got {tensor.dtype} on {tensor.device}"
        raise TypeError(f"{name} must have the dtype and the device of the cache, {mismatch}")


def _empty(template, capacity):
    """Return an empty buffer for ``capacity`` tokens, with the dtype, the device and the other axes of ``template``."""
    return template.new_empty(*template.shape[:-2], capacity, template.shape[-1])


class StateCache:
    """The state of linear attention in one layer, after all tokens so far.

    The size of the state does not depend on the number of tokens.

    The cache is for generation, not for training: the state carries no gradient.

    Attributes
    ----------
    length : int
        How many tokens have been added to the state.
    state : (Tensor, Tensor) or None
        The state as :func:`linear_attention_step` expects it; ``None`` before the first token.

    Examples
    --------
    >>> import torch
    >>> from transformer_lab import LinearAttention
    >>> attention = LinearAttention(d_model=6, n_heads=3)
    >>> cache = attention.new_cache()
    >>> for token in range(3):
    ...     output = attention.step(torch.zeros(1, 1, 6), cache)
    >>> [x.shape for x in cache.state], cache.length
    ([torch.Size([1, 3, 2, 2]), torch.Size([1, 3, 2])], 3)
    """

    def __init__(self):
        self.length = 0
        self.state = None

    def update(self, state: tuple[Tensor, Tensor], new: int) -> None:
        """Replace the state with the state after ``new`` more tokens."""
        self.state = tuple(x.detach() for x in state)
        self.length += new

    keep = update  # deprecated: the method's name in version 0.2
