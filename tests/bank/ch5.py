"""Answers to assignment 5."""

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

from . import right, wrong


@wrong(causal_mask, "triu instead of tril: a token sees itself and what comes after it.")
def _(seq):
    return torch.triu(torch.ones(seq, seq, dtype=torch.bool))


@wrong(causal_mask, "The mask says what is forbidden: True above the diagonal.")
def _(seq):
    return torch.ones(seq, seq, dtype=torch.bool).triu(1)


@wrong(causal_mask, "The diagonal=1 lets each token see the next one.")
def _(seq):
    return torch.ones(seq, seq).tril(diagonal=1).bool()


@wrong(causal_mask, "Two axes of size 1 are put in front, (1, 1, seq, seq).")
def _(seq):
    return torch.tril(torch.ones(1, 1, seq, seq)).bool()


@right(causal_mask)
def _(seq):
    i = torch.arange(seq)
    return i.unsqueeze(1) >= i


@right(causal_mask)
def _(seq):
    return torch.eye(seq).cumsum(dim=1).T > 0


@wrong(padding_mask, "<= counts one token too many.")
def _(lengths, k_len):
    return (torch.arange(k_len) <= lengths[:, None])[:, None, None, :]


@wrong(padding_mask, "The two axes of size 1 are missing: (batch, k_len).")
def _(lengths, k_len):
    return torch.arange(k_len)[None, :] < lengths[:, None]


@wrong(padding_mask, "The result is float32, not bool.")
def _(lengths, k_len):
    mask = torch.zeros(len(lengths), 1, 1, k_len)
    for b, length in enumerate(lengths):
        mask[b, :, :, :length] = 1
    return mask


@wrong(padding_mask, "The places are counted from 1, so the last real token is hidden.")
def _(lengths, k_len):
    place = torch.arange(1, k_len + 1)
    return (place < lengths.view(-1, 1, 1, 1)).view(len(lengths), 1, 1, k_len)


@wrong(padding_mask, "k_len is ignored: the mask is as long as the longest sentence.")
def _(lengths, k_len):
    n = int(lengths.max())
    return (torch.arange(n) < lengths[:, None])[:, None, None, :]


@right(padding_mask)
def _(lengths, k_len):
    rows = [[k < n for k in range(k_len)] for n in lengths.tolist()]
    return torch.tensor(rows, dtype=torch.bool, device=lengths.device).reshape(-1, 1, 1, k_len)


@wrong(masked_attention, "Empty rows give NaN: the softmax of nothing but -inf.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~mask, float("-inf"))
    return F.softmax(scores, dim=-1) @ value


@wrong(masked_attention, "-1e9 for -inf: a query that sees nothing gets the mean of all values, not zeros.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(mask == 0, -1e9)
    return F.softmax(scores, dim=-1) @ value


@wrong(masked_attention, "The weights are set to zero after the softmax and not made to sum to one again.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = scores.softmax(dim=-1) * mask
    return weights @ value


@wrong(masked_attention, "-10 stands for minus infinity, so hidden keys keep some weight.")
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = torch.where(mask, scores, torch.tensor(-10.0, dtype=scores.dtype))
    weights = scores.softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0) @ value


@wrong(masked_attention, "The given mask is not used, a causal mask is made instead.")
def _(query, key, value, mask):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@right(masked_attention)
def _(query, key, value, mask):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    scores = scores - scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True).clamp(min=-1e30)
    weights = torch.where(mask, scores, -torch.inf).exp()
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, 1, total)) @ value


@wrong(to_additive, "0 and -inf are swapped.")
def _(mask):
    return torch.zeros(mask.shape).masked_fill(mask, float("-inf"))


@wrong(to_additive, "-1e9 stands for -inf.")
def _(mask):
    return (1.0 - mask.float()) * -1e9


@wrong(to_additive, "The result of masked_fill is thrown away, so only zeros are left.")
def _(mask):
    out = torch.zeros_like(mask, dtype=torch.float32)
    out.masked_fill(~mask, float("-inf"))
    return out


@wrong(to_additive, "+inf stands where -inf should.")
def _(mask):
    return torch.where(mask, 0.0, torch.inf)


@right(to_additive)
def _(mask):
    return torch.log(mask.to(torch.float32))


@wrong(decoder_masks, "The target's own mask hides the future alone; its padding is not hidden.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len).expand(len(target_lengths), 1, t_len, t_len)
    return own, tl.padding_mask(source_lengths, s_len)


@wrong(decoder_masks, "or instead of and: the future or the padding must be hidden, so too much is allowed.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len) | tl.padding_mask(target_lengths, t_len)
    return own, tl.padding_mask(source_lengths, s_len)


@wrong(decoder_masks, "The mask for the source is causal too.")
def _(target_lengths, source_lengths, t_len, s_len):
    own = tl.causal_mask(t_len) & tl.padding_mask(target_lengths, t_len)
    cross = tl.padding_mask(source_lengths, s_len) & torch.ones(t_len, s_len).tril().bool()
    return own, cross


@wrong(decoder_masks, "Padded queries are emptied as well: their rows are all False.")
def _(target_lengths, source_lengths, t_len, s_len):
    real = tl.padding_mask(target_lengths, t_len)
    own = tl.causal_mask(t_len) & real & real.transpose(-2, -1)
    return own, tl.padding_mask(source_lengths, s_len)


@right(decoder_masks)
def _(target_lengths, source_lengths, t_len, s_len):
    t, s = torch.arange(t_len), torch.arange(s_len)
    visible = torch.minimum(t[None, :] + 1, target_lengths[:, None])
    return (t < visible[..., None]).unsqueeze(1), (s < source_lengths[:, None]).reshape(-1, 1, 1, s_len)


@wrong(mend_sentence_vectors, "The program as given: the mean counts the padding.")
def _(x, lengths):
    is_real = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * is_real[..., None]).mean(dim=1)


@wrong(mend_sentence_vectors, "lengths is not a column, so it meets the features.")
def _(x, lengths):
    is_real = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * is_real[..., None]).sum(dim=1) / lengths


@wrong(mend_sentence_vectors, "The padding is not left out of the sum.")
def _(x, lengths):
    return x.sum(dim=1) / lengths[:, None]


@wrong(mend_sentence_vectors, "<= takes one token of padding in.")
def _(x, lengths):
    is_real = torch.arange(x.shape[1]) <= lengths[:, None]
    return (x * is_real[..., None]).sum(dim=1) / lengths[:, None]


@right(mend_sentence_vectors)
def _(x, lengths):
    return torch.stack([sentence[:n].mean(dim=0) for sentence, n in zip(x, lengths.tolist())])


@right(mend_sentence_vectors)
def _(x, lengths):
    weights = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]).to(x.dtype)
    return torch.einsum("bs,bsd->bd", weights / weights.sum(1, keepdim=True), x)
