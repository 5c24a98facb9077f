"""Caches for generation: keys and values, or the state, of earlier tokens, so that no token is projected twice."""

from torch import Tensor

from .arguments import require_floating


class KeyValueCache:
    """Every head's keys and values of the tokens so far, for one attention layer.

    For generation, not for training: cached tensors carry no gradient.

    Attributes
    ----------
    length : int
        How many tokens are cached.

    Examples
    --------
    >>> import torch
    >>> cache = KeyValueCache()
    >>> for token in range(3):
    ...     key, value = cache.append(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    >>> key.shape, cache.length
    (torch.Size([1, 2, 3, 4]), 3)
    """

    def __init__(self):
        self.length = 0
        self._key = self._value = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, and return those of all tokens so far.

        Parameters
        ----------
        key : Tensor, shape (..., heads, new, d_head)
        value : Tensor, shape (..., heads, new, d_value)

        Returns
        -------
        (Tensor, Tensor), shapes (..., heads, length, d_head) and (..., heads, length, d_value)
            Views of the cache, in the order of the tokens.

        Raises
        ------
        TypeError
            If dtype or device differs from the cache's.
        ValueError
            If a shape differs from the cache's in another axis than that of the tokens.
        """
        require_floating(key=key, value=value)
        if key.ndim < 2 or value.ndim < 2 or key.shape[-2] != value.shape[-2]:
            found = f"{tuple(key.shape)} and {tuple(value.shape)}"
            raise ValueError(f"key and value must have shapes (..., heads, new, features) with one new, got {found}")
        self._key = self._append(self._key, key.detach(), "key")
        self._value = self._append(self._value, value.detach(), "value")
        self.length += key.shape[-2]
        return self._key[..., : self.length, :], self._value[..., : self.length, :]

    def _append(self, buffer, new, name):
        """Write ``new`` after the cached tokens; the buffer grows by doubling."""
        end = self.length + new.shape[-2]
        if buffer is not None and (buffer.shape[:-2], buffer.shape[-1]) != (new.shape[:-2], new.shape[-1]):
            found = tuple(new.shape)
            raise ValueError(f"{name} must differ from the cache {tuple(buffer.shape)} in its tokens only, got {found}")
        if buffer is not None and (buffer.dtype, buffer.device) != (new.dtype, new.device):
            kind = f"{buffer.dtype} on {buffer.device}, got {new.dtype} on {new.device}"
            raise TypeError(f"{name} must have the dtype and the device of the cache, {kind}")
        if buffer is None or end > buffer.shape[-2]:
            larger = new.new_empty(*new.shape[:-2], 2 * end, new.shape[-1])
            if buffer is not None:
                larger[..., : self.length, :] = buffer[..., : self.length, :]
            buffer = larger
        buffer[..., self.length : end, :] = new
        return buffer


class StateCache:
    """The state of linear attention after the tokens so far, for one layer: of one size, however many tokens.

    For generation, not for training: the state carries no gradient.

    Attributes
    ----------
    length : int
        How many tokens the state has seen.
    state : (Tensor, Tensor) or None
        As :func:`linear_attention_step` takes it; ``None`` before the first token.

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

    def keep(self, state: tuple[Tensor, Tensor], new: int) -> None:
        """Replace the state by the one after ``new`` more tokens."""
        self.state = tuple(x.detach() for x in state)
        self.length += new
