"""The caches: what generation keeps of the tokens so far, so that none is projected twice."""

from torch import Tensor

from .arguments import require_floating


class KeyValueCache:
    """Every head's keys and values of the tokens so far, for one attention layer.

    For generation, not for training: what is kept carries no gradient.

    Attributes
    ----------
    length : int
        How many tokens are kept.

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
        """Keep the keys and values of new tokens, and return those of all tokens so far.

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
        self._key = self._with_room(self._key, key.detach(), "key")
        self._value = self._with_room(self._value, value.detach(), "value")
        self.length += key.shape[-2]
        return self._key[..., : self.length, :], self._value[..., : self.length, :]

    def _with_room(self, kept, new, name):
        """``kept`` with ``new`` written behind its tokens; moved into twice the room where there is none left."""
        end = self.length + new.shape[-2]
        if kept is not None and (kept.shape[:-2], kept.shape[-1]) != (new.shape[:-2], new.shape[-1]):
            found = tuple(new.shape)
            raise ValueError(f"{name} must differ from the cache {tuple(kept.shape)} in its tokens only, got {found}")
        if kept is not None and (kept.dtype, kept.device) != (new.dtype, new.device):
            kind = f"{kept.dtype} on {kept.device}, got {new.dtype} on {new.device}"
            raise TypeError(f"{name} must have the dtype and the device of the cache, {kind}")
        if kept is None or end > kept.shape[-2]:
            room = new.new_empty(*new.shape[:-2], 2 * end, new.shape[-1])
            if kept is not None:
                room[..., : self.length, :] = kept[..., : self.length, :]
            kept = room
        kept[..., self.length : end, :] = new
        return kept


class StateCache:
    """What linear attention keeps of the tokens so far, for one layer: a state of one size, however many they are.

    For generation, not for training: what is kept carries no gradient.

    Attributes
    ----------
    length : int
        How many tokens went in.
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
        """Keep the state after ``new`` more tokens."""
        self.state = tuple(x.detach() for x in state)
        self.length += new
