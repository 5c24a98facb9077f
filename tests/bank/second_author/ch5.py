"""A second author: answers to chapter 5's exercises."""

import torch
from torch import nn

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def causal_mask(seq):
    """Exercise 5.1, as its author calls it later."""
    return torch.ones(seq, seq, dtype=torch.bool).tril()


def padding_mask(lengths, k_len):
    """Exercise 5.2, as its author calls it later."""
    return (torch.arange(k_len) < lengths[:, None])[:, None, None, :]


# causal_mask


@wrong(
    E.causal_mask,
    "PyTorch's helper returns the additive mask: float, 0 where allowed and -inf above the diagonal, no bool.",
)
def _(seq):
    return nn.Transformer.generate_square_subsequent_mask(seq)


@wrong(
    E.causal_mask,
    "The mask is inverted: True stands above the diagonal, where a token must not look (True as 'hidden').",
)
def _(seq):
    return torch.triu(torch.ones(seq, seq), diagonal=1).bool()


@wrong(
    E.causal_mask,
    "Strictly greater: a token sees those before it, but not itself, and the first sees nothing.",
)
def _(seq):
    i = torch.arange(seq)
    return i[:, None] > i[None, :]


@right(E.causal_mask)
def _(seq):
    ones = torch.ones(seq, seq, dtype=torch.int64)
    return ones.cumsum(dim=0) >= ones.cumsum(dim=1)


# padding_mask


@wrong(
    E.padding_mask,
    "<= instead of <: each sentence gets one place of padding too many (length 1 allows two keys).",
)
def _(lengths, k_len):
    mask = torch.arange(k_len)[None, :] <= lengths[:, None]
    return mask[:, None, None, :]


@wrong(
    E.padding_mask,
    "The mask is inverted: True marks the padding, as in PyTorch's key_padding_mask, instead of the real tokens.",
)
def _(lengths, k_len):
    mask = torch.arange(k_len).expand(len(lengths), k_len) >= lengths.unsqueeze(1)
    return mask.unsqueeze(1).unsqueeze(2)


@wrong(
    E.padding_mask,
    "The mask is as long as the longest sentence of the batch instead of k_len: the last axis is too short when no "
    "sentence is k_len long.",
)
def _(lengths, k_len):
    positions = torch.arange(lengths.max())
    return (positions < lengths[:, None])[:, None, None, :]


# masked_attention


@wrong(
    E.masked_attention,
    "The hidden scores become -1e9 and not -inf: a query that sees nothing has equal scores everywhere and "
    "gets the mean of all values instead of zeros.",
)
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    scores = scores.masked_fill(mask == 0, -1e9)
    return scores.softmax(dim=-1) @ value


@wrong(
    E.masked_attention,
    "The mask is applied after the softmax, without dividing again: hidden keys have taken part in the sum, so the "
    "weights of the visible ones sum to less than one.",
)
def _(query, key, value, mask):
    weights = (query @ key.mT / key.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights * mask) @ value


@wrong(
    E.masked_attention,
    "The softmax still runs over hidden keys too, and the weights are divided by the visible sum only "
    "afterwards. Right for ordinary scores, but where a hidden score is far larger than the visible ones, "
    "these underflow to zero and the query gets zeros (or too small a result) instead of the values it sees.",
)
def _(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1) * mask
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    return weights @ value


@right(E.masked_attention)
def _(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores = torch.where(mask, scores, -torch.inf)
    top = scores.amax(dim=-1, keepdim=True)
    weights = (scores - top.where(top > -torch.inf, 0)).exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights @ value / total.where(total > 0, 1)


# to_additive


@wrong(
    E.to_additive,
    "0 * -inf is NaN: where the mask is True there is NaN instead of 0.",
)
def _(mask):
    return (1 - mask.float()) * float("-inf")


@wrong(
    E.to_additive,
    "Hidden places get the most negative float32 (about -3.4e38), not -inf.",
)
def _(mask):
    return (1.0 - mask.float()) * torch.finfo(torch.float32).min


@wrong(
    E.to_additive,
    "-inf is filled into a bool tensor, where it counts as True: the result is bool, and True everywhere, instead of "
    "float32 with 0 and -inf.",
)
def _(mask):
    return mask.masked_fill(~mask, float("-inf"))


@right(E.to_additive)
def _(mask):
    return mask.float().log()


# decoder_masks


@wrong(
    E.decoder_masks,
    "The padded queries are hidden as well: rows of padding in the decoder's own mask are all False instead of showing "
    "the real tokens before them.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    padding = padding_mask(target_lengths, t_len)
    own = causal_mask(t_len) & padding & padding.transpose(-2, -1)
    return own, padding_mask(source_lengths, s_len)


@wrong(
    E.decoder_masks,
    "The two conditions are joined by 'or': a target token may see whatever is no padding, the future too, and padding "
    "before its own place.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    own = causal_mask(t_len)[None, None] | padding_mask(target_lengths, t_len)
    source = padding_mask(source_lengths, s_len)
    return own, source


@wrong(
    E.decoder_masks,
    "The source's mask is made with the target's number of places, t_len instead of s_len, so its last axis has the "
    "wrong size unless the two are equal.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    target_mask = padding_mask(target_lengths, t_len) & causal_mask(t_len)
    source_mask = padding_mask(source_lengths, t_len)
    return target_mask, source_mask


# mend_sentence_vectors


@wrong(
    E.mend_sentence_vectors,
    "The sum is divided by the number of real tokens of the whole batch instead of the sentence's own; right "
    "for a batch of one.",
)
def _(x, lengths):
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    x = x * is_real[..., None]
    return x.sum(dim=1) / is_real.sum()


@wrong(
    E.mend_sentence_vectors,
    "x is cut to the longest sentence, and then averaged without a mask: shorter sentences of the batch still "
    "have their padding in the sum and in the count. Right where all lengths are equal.",
)
def _(x, lengths):
    longest = int(lengths.max())
    return x[:, :longest].mean(dim=1)


@wrong(
    E.mend_sentence_vectors,
    "mean() without an axis averages over the features as well: one number for each sentence, shape (batch,), "
    "instead of a vector.",
)
def _(x, lengths):
    return torch.stack([sentence[:n].mean() for sentence, n in zip(x, lengths)])


@right(E.mend_sentence_vectors)
def _(x, lengths):
    weights = (torch.arange(x.shape[1], device=x.device) < lengths[:, None]) / lengths[:, None]
    return torch.einsum("bs,bsd->bd", weights.to(x.dtype), x)
