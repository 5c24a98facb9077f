"""Answers to assignment 5, by a fourth author."""

import torch
import torch.nn.functional as F
from torch import nn

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


@wrong(causal_mask, "The mask is turned round: True stands at the tokens that must be hidden.")
def _(seq):
    # 0 where a token may look and -inf where it may not
    return nn.Transformer.generate_square_subsequent_mask(seq).bool()


@wrong(causal_mask, "The diagonal is False, so that no token may attend to itself.")
def _(seq):
    future = torch.triu(torch.ones(seq, seq, dtype=torch.bool))
    return ~future


@right(causal_mask)
def _(seq):
    return torch.eye(seq, dtype=torch.long).cumsum(dim=0).bool()


@wrong(padding_mask, "One key too many is visible: the first place of padding after the real tokens.")
def _(lengths, k_len):
    positions = torch.arange(k_len, device=lengths.device)
    return (positions <= lengths.unsqueeze(1))[:, None, None, :]


@wrong(padding_mask, "A sentence that fills all places gets no visible key at all.")
def _(lengths, k_len):
    mask = torch.ones(len(lengths), 1, 1, k_len, dtype=torch.bool)
    for i, n in enumerate(lengths.tolist()):
        mask[i, :, :, n - k_len :] = False  # the last k_len - n are padding
    return mask


@wrong(
    masked_attention,
    "The softmax runs over all keys and the mask comes after it, so that the weights of the visible keys vanish where "
    "a hidden key has a much higher score.",
)
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    weights = scores.softmax(dim=-1) * mask
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    return weights @ value


@wrong(masked_attention, "A query that sees nothing gets the average of all values in place of zeros.")
def _(query, key, value, mask):
    d_head = query.shape[-1]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / d_head**0.5
    scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value)


@right(masked_attention)
def _(query, key, value, mask):
    # A key of zeros at the end, with a value of zeros: only those who see nothing else may look at it.
    batch, heads, q_len, _ = query.shape
    mask = mask.expand(batch, heads, q_len, key.shape[-2])
    mask = torch.cat([mask, ~mask.any(dim=-1, keepdim=True)], dim=-1)
    key = F.pad(key, (0, 0, 0, 1))
    value = F.pad(value, (0, 0, 0, 1))
    scores = (query @ key.mT) * query.shape[-1] ** -0.5
    return torch.where(mask, scores, float("-inf")).softmax(dim=-1) @ value


@wrong(to_additive, "What is hidden gets -1e9, a large finite number, and not -inf.")
def _(mask):
    additive = torch.zeros(mask.shape, dtype=torch.float32)
    return additive.masked_fill(mask == 0, -1e9)


@wrong(to_additive, "What may be attended to gets 1 in place of 0.")
def _(mask):
    return mask.float().masked_fill(~mask, float("-inf"))


@wrong(decoder_masks, "The rows of padded queries are hidden as well, so that these queries see nothing.")
def _(target_lengths, source_lengths, t_len, s_len):
    real = tl.padding_mask(target_lengths, t_len)  # (batch, 1, 1, t_len)
    own = tl.causal_mask(t_len) & real & real.transpose(-2, -1)
    return own, tl.padding_mask(source_lengths, s_len)


@wrong(decoder_masks, "The decoder's own mask hides the future only: the padding of the target stays visible.")
def _(target_lengths, source_lengths, t_len, s_len):
    batch = target_lengths.shape[0]
    own = causal_mask.reference(t_len).expand(batch, 1, t_len, t_len)
    source = padding_mask.reference(source_lengths, s_len)
    return own, source


@right(decoder_masks)
def _(target_lengths, source_lengths, t_len, s_len):
    # How many keys each query sees: one more than its place, and no more than there are tokens.
    visible = torch.minimum(torch.arange(1, t_len + 1), target_lengths[:, None])
    own = torch.arange(t_len) < visible[:, None, :, None]
    source = source_lengths.reshape(-1, 1, 1, 1).gt(torch.arange(s_len))
    return own, source


@wrong(mend_sentence_vectors, "The padding is not set to zero any more, so that it is in the sum.")
def _(x, lengths):
    return x.sum(dim=1) / lengths.unsqueeze(-1)


@wrong(
    mend_sentence_vectors,
    "Numbers other than zero are counted in place of tokens: a zero in a real token is left out of the average.",
)
def _(x, lengths):
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    x = x * is_real[..., None]
    count = (x != 0).sum(dim=1)
    return x.sum(dim=1) / count.clamp(min=1)
