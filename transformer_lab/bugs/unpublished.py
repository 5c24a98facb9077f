"""Bugs without a published thread. A test of a whole model is run on these bugs as well as on the published ones."""

import torch

from .small_model import SmallModel


class NoMask(SmallModel):
    """No mask is applied: every token sees all others."""

    def mask(self, q_len, k_len, keep, documents):
        return torch.ones(q_len, k_len, dtype=torch.bool, device=self.embed.weight.device)


class Blocks(SmallModel):
    """Every token sees all tokens up to the end of its own block of four tokens."""

    def mask(self, q_len, k_len, keep, documents):
        block = torch.arange(k_len, device=self.embed.weight.device) // 4
        return (block[k_len - q_len :, None] >= block) & self.padding_and_document_mask(q_len, k_len, keep, documents)


class NextToken(SmallModel):
    """The triangle begins one place too far to the right: each token sees the token that it has to predict."""

    def mask(self, q_len, k_len, keep, documents):
        return (self.distance_back(q_len, k_len) >= -1) & self.padding_and_document_mask(q_len, k_len, keep, documents)


class PaddingRead(SmallModel):
    """The padding mask is ignored."""

    def mask(self, q_len, k_len, keep, documents):
        return super().mask(q_len, k_len, None, documents)


class SoftmaxOverQueries(SmallModel):
    """The softmax runs over the queries: a later query takes weight away from an earlier one."""

    def attend(self, query, key, value, mask):
        scores = (query @ key.mT * self.scale(query, key)).masked_fill(~mask, -1e9)
        return torch.softmax(scores, -2) @ value


class NormOverTheSequence(SmallModel):
    """Before the last norm, the mean over all tokens of the text is subtracted from each token."""

    def output(self, x, keep):
        return self.head(self.norms[-1](x - x.mean(1, keepdim=True)))


class NormOverTheBatch(SmallModel):
    """Before the last norm, the mean over the texts of the batch is subtracted from each text."""

    def output(self, x, keep):
        return self.head(self.norms[-1](x - x.mean(0, keepdim=True)))


class StalePositions(SmallModel):
    """With a cache, positions begin at 0 in every step."""

    def positions(self, seq, start, keep, documents):
        return super().positions(seq, 0, keep, documents)


class CacheReplaced(SmallModel):
    """The cache keeps only the newest tokens."""

    def extend(self, cache, layer_index, key, value):
        if len(cache) > layer_index:
            cache[layer_index] = key, value
        else:
            cache.append((key, value))
        return key, value
