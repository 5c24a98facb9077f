"""Held out: answers to assignment 5."""

import math

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    causal_mask,
    decoder_masks,
    masked_attention,
    mend_sentence_vectors,
    padding_mask,
    to_additive,
)

from .. import right, wrong


@wrong(causal_mask, "The diagonal is hidden: a token does not see itself.")
def _(seq):
    return torch.ones(seq, seq, dtype=torch.bool).tril(diagonal=-1)


@wrong(causal_mask, "The result is float32, not bool.")
def _(seq):
    return torch.tril(torch.ones(seq, seq))


@wrong(causal_mask, "It is the additive mask: 0 and -inf.")
def _(seq):
    return torch.triu(torch.full((seq, seq), float("-inf")), diagonal=1)


@wrong(causal_mask, "Rows and columns are swapped in the comparison: key >= query.")
def _(seq):
    i = torch.arange(seq)
    return i[None, :] >= i[:, None]


@right(causal_mask)
def _(seq):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for query in range(seq):
        mask[query, : query + 1] = True
    return mask


@wrong(padding_mask, "It marks the padding, not the tokens.")
def _(lengths, k_len):
    return (torch.arange(k_len) >= lengths[:, None])[:, None, None, :]


@wrong(padding_mask, "lengths is not turned into a column, so batch meets k_len.")
def _(lengths, k_len):
    return (torch.arange(k_len) < lengths)[:, None, None, :]


@wrong(padding_mask, "The ones stand in the wrong place: (batch, 1, k_len, 1).")
def _(lengths, k_len):
    return (torch.arange(k_len) < lengths[:, None])[:, None, :, None]


@wrong(padding_mask, "Sentences filled up in front: the last lengths[b] keys are allowed.")
def _(lengths, k_len):
    return (torch.arange(k_len) >= k_len - lengths[:, None])[:, None, None]


@right(padding_mask)
def _(lengths, k_len):
    keys = torch.arange(k_len, device=lengths.device).expand(lengths.numel(), 1, 1, k_len)
    return torch.lt(keys, lengths.reshape(-1, 1, 1, 1))


@wrong(masked_attention, "masked_fill fills where the mask is True, so what is allowed is hidden.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(mask, float("-inf"))
    return torch.nan_to_num(F.softmax(scores, dim=-1)) @ value


@wrong(masked_attention, "The hidden scores are multiplied by 0, and a score of 0 still has weight.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = F.softmax(scores * mask, dim=-1) * mask.any(-1, keepdim=True)
    return weights @ value


@wrong(masked_attention, "The result of masked_fill is thrown away: nothing is masked but the empty rows.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1).masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights @ value


@wrong(masked_attention, "The bool mask is added to the scores: allowed keys get 1 more.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1)) + mask
    return scores.softmax(dim=-1) @ value


@wrong(masked_attention, "The scale is forgotten.")
def _(query, key, value, mask):
    scores = (query @ key.transpose(-2, -1)).masked_fill(~mask, float("-inf"))
    return scores.softmax(-1).nan_to_num(0.0) @ value


@right(masked_attention)
def _(query, key, value, mask):
    mask = mask.expand(*query.shape[:-1], key.shape[-2])
    empty = ~mask.any(dim=-1, keepdim=True)
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask | empty)
    return out.masked_fill(empty, 0)


@wrong(to_additive, "0 · -inf is NaN: the mask is multiplied by -inf.")
def _(mask):
    return (~mask).float() * float("-inf")


@wrong(to_additive, "Allowed keys get 1, not 0.")
def _(mask):
    return mask.float().masked_fill(~mask, float("-inf"))


@wrong(to_additive, "log of the mask in float64 gives the wrong dtype.")
def _(mask):
    return mask.double().log()


@wrong(to_additive, "zeros_like of a bool mask is bool, and -inf becomes True in it.")
def _(mask):
    out = torch.zeros_like(mask)
    out[~mask] = float("-inf")
    return out


@right(to_additive)
def _(mask):
    out = torch.full(mask.shape, -torch.inf, dtype=torch.float32, device=mask.device)
    out[mask] = 0
    return out


@wrong(decoder_masks, "The two masks are returned in the wrong order.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len) & tl.padding_mask(target_lengths, t_len)
    cross = tl.padding_mask(source_lengths, s_len)
    return cross, own


@wrong(decoder_masks, "The source's mask is made of the target's lengths.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len) & tl.padding_mask(target_lengths, t_len)
    return own, tl.padding_mask(target_lengths, s_len)


@wrong(decoder_masks, "The own mask hides padding but not the future.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.padding_mask(target_lengths, t_len).expand(-1, 1, t_len, t_len)
    return own, tl.padding_mask(source_lengths, s_len)


@wrong(decoder_masks, "The masks are added as numbers, so they are not bool: 0, 1 and 2.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len).int() + tl.padding_mask(target_lengths, t_len).int()
    return own, tl.padding_mask(source_lengths, s_len)


@right(decoder_masks)
def _(target_lengths, source_lengths, t_len, s_len):
    own = torch.zeros(len(target_lengths), 1, t_len, t_len, dtype=torch.bool)
    cross = torch.zeros(len(source_lengths), 1, 1, s_len, dtype=torch.bool)
    for b in range(len(own)):
        own[b, 0, :, : target_lengths[b]] = True
        cross[b, :, :, : source_lengths[b]] = True
    return own.tril(), cross


@wrong(mend_sentence_vectors, "The sum is not divided at all.")
def _(x, lengths):
    is_real = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * is_real[..., None]).sum(dim=1)


@wrong(mend_sentence_vectors, "All sentences are divided by the longest one's length.")
def _(x, lengths):
    is_real = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * is_real[..., None]).sum(dim=1) / lengths.max()


@wrong(mend_sentence_vectors, "The sentences are all cut at the length of the first.")
def _(x, lengths):
    return x[:, : lengths[0]].mean(dim=1)


@wrong(mend_sentence_vectors, "The padding is set to zero in x itself, which is changed.")
def _(x, lengths):
    for b, n in enumerate(lengths):
        x[b, n:] = 0
    return x.sum(dim=1) / lengths.unsqueeze(-1)


@right(mend_sentence_vectors)
def _(x, lengths):
    sums = x.cumsum(dim=1)
    last = sums.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, x.size(2))).squeeze(1)
    return last / lengths.unsqueeze(1)
