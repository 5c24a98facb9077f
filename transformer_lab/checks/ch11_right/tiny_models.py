"""Models of a few lines that mix tokens by a table: inputs for the exercises on models."""

import torch


class MixingModel:
    """A model that maps tokens, (1, seq), to outputs, (1, seq, features): each output is a sum of the tokens' vectors,
    weighted by a row of a table."""

    def __init__(self, vectors, mixing, offset=0):
        self.vectors, self.mixing, self.offset = vectors, mixing, offset

    def __call__(self, tokens):
        n = tokens.shape[-1]
        return self.mixing[:n, :n].to(tokens.device) @ self.vectors.to(tokens.device)[tokens] + self.offset


class CachedStep:
    """A `step` function for a model: the cache holds the tokens so far, and ``distort`` can change the outputs of a
    step."""

    def __init__(self, model, distort=None):
        self.model, self.distort = model, distort

    def __call__(self, tokens, cache):
        before = tokens[:, :0] if cache is None else cache
        seen = torch.cat([before, tokens], dim=1)
        out = self.model(seen)[:, before.shape[1] :]
        return (out if self.distort is None else self.distort(out, before.shape[1])), seen
