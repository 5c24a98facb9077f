"""Answers to assignment 5, by a third author."""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lab.checks import (
    causal_mask,
    decoder_masks,
    masked_attention,
    mend_sentence_vectors,
    padding_mask,
    to_additive,
)

from .. import right, wrong


@wrong(
    causal_mask,
    "PyTorch's additive mask is turned into bool, and -inf becomes True: each token may attend to those after it only, "
    "and not to itself or those before it.",
)
def _(seq):
    return nn.Transformer.generate_square_subsequent_mask(seq).bool()


@wrong(
    causal_mask,
    "A token may attend to those before it, but not to itself.",
)
def _(seq):
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    for i in range(seq):
        mask[i, :i] = True
    return mask


@wrong(
    causal_mask,
    "The mask is of float32, ones and zeros, and not of bool.",
)
def _(seq):
    return torch.tril(torch.ones((seq, seq)))


@wrong(
    causal_mask,
    "Rows and columns are swapped: each token may attend to itself and to those after it.",
)
def _(seq):
    query = torch.arange(seq)[:, None]
    key = torch.arange(seq)[None, :]
    return query <= key


@right(causal_mask)
def _(seq):
    return torch.eye(seq).cumsum(dim=0) > 0


@wrong(
    padding_mask,
    "The positions count from 1 and must be smaller than the length, so the last real token of each sentence is hidden "
    "as well.",
)
def _(lengths, k_len):
    positions = torch.arange(1, k_len + 1, device=lengths.device)
    mask = positions.unsqueeze(0) < lengths.unsqueeze(1)
    return mask.unsqueeze(1).unsqueeze(1)


@wrong(
    padding_mask,
    "The axis of the keys stands where that of the queries belongs: the shape is (batch, 1, k_len, 1).",
)
def _(lengths, k_len):
    mask = torch.arange(k_len) < lengths[:, None]
    return mask[:, None, :, None]


@wrong(
    padding_mask,
    "True and False are swapped: True marks the padding, and not the real tokens.",
)
def _(lengths, k_len):
    key_padding_mask = torch.arange(k_len)[None, :] >= lengths[:, None]
    return key_padding_mask[:, None, None, :]


@wrong(
    padding_mask,
    "The mask has as many keys as the longest sentence has tokens, and not k_len of them.",
)
def _(lengths, k_len):
    batch = len(lengths)
    longest = int(lengths.max())
    mask = torch.zeros(batch, 1, 1, longest, dtype=torch.bool)
    for i, length in enumerate(lengths.tolist()):
        mask[i, :, :, :length] = True
    return mask


@right(padding_mask)
def _(lengths, k_len):
    # Row n of the table begins with n times True: the mask of a sentence with n tokens.
    table = torch.ones(k_len + 1, k_len, dtype=torch.bool, device=lengths.device).tril(diagonal=-1)
    return table[lengths.long()].view(-1, 1, 1, k_len)


@wrong(
    masked_attention,
    "The mask comes after the softmax, and the weights left over are divided by their sum plus 1e-9: where a hidden "
    "key has by far the largest score, the visible weights vanish and the result is too small or zero.",
)
def _(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1) * mask
    weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)
    return weights @ value


@wrong(
    masked_attention,
    "The mask is turned into numbers, which PyTorch's attention adds to the scores: a visible key gets 1 more, and "
    "hidden keys still take part.",
)
def _(query, key, value, mask):
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(query.dtype))
    return out.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


@wrong(
    masked_attention,
    "A mask with three axes is taken for (batch, q_len, k_len), where broadcasting makes it (heads, q_len, k_len).",
)
def _(query, key, value, mask):
    if mask.dim() == 3:
        mask = mask.unsqueeze(1)
    scores = query @ key.mT / key.size(-1) ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    weights = weights.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
    return weights @ value


@wrong(
    masked_attention,
    "Hidden scores get the smallest finite number and not -inf, so a query that sees nothing gets the mean of all "
    "values: there is no NaN that nan_to_num could turn into zeros.",
)
def _(query, key, value, mask):
    d_head = query.shape[-1]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / d_head**0.5
    scores = scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return torch.einsum("bhqk,bhkv->bhqv", weights, value)


@right(masked_attention)
def _(query, key, value, mask):
    scores = (query @ key.mT * query.shape[-1] ** -0.5).masked_fill(~mask, -torch.inf)
    largest = scores.detach().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    shares = (scores - largest).exp()
    # The largest visible key has the share 1, so a sum below 1 is that of a query that sees nothing.
    weights = shares / shares.sum(dim=-1, keepdim=True).clamp(min=1.0)
    return weights @ value


@wrong(
    to_additive,
    "Where the mask is True, the result is NaN, because 0 is multiplied by -inf.",
)
def _(mask):
    return (1.0 - mask.float()) * float("-inf")


@wrong(
    to_additive,
    "Where the mask is True, the result is 1 and not 0.",
)
def _(mask):
    return mask.float().masked_fill(mask == 0, float("-inf"))


@wrong(
    to_additive,
    "The zeros take the mask's dtype, so the result is of bool and not float32: False where mask is True, and True "
    "where -inf should be.",
)
def _(mask):
    additive = torch.zeros_like(mask)
    return additive.masked_fill(~mask, -torch.inf)


@wrong(
    to_additive,
    "Where the mask is False, the result is -1e9, a finite number, and not -inf.",
)
def _(mask):
    return torch.where(mask, 0.0, -1e9)


@right(to_additive)
def _(mask):
    return mask.to(torch.float32).log()


@wrong(
    decoder_masks,
    "The target's mask joins the causal mask and the padding mask by or, so a token may see all real tokens, those "
    "after it too, and padding that is not in the future.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    causal = torch.ones(t_len, t_len, dtype=torch.bool).tril()
    target_padding = (torch.arange(t_len) < target_lengths[:, None])[:, None, None, :]
    source_padding = (torch.arange(s_len) < source_lengths[:, None])[:, None, None, :]
    return causal | target_padding, source_padding


@wrong(
    decoder_masks,
    "The source's mask is made from the lengths of the target.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    def padding(lengths, n):
        return torch.arange(n)[None, None, None, :] < lengths[:, None, None, None]

    position = torch.arange(t_len)
    self_mask = (position[:, None] >= position[None, :]) & padding(target_lengths, t_len)
    cross_mask = padding(target_lengths, s_len)
    return self_mask, cross_mask


@wrong(
    decoder_masks,
    "The rows of padded queries are all False in the target's mask, where they should show the real tokens.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    target_real = torch.arange(t_len).unsqueeze(0) < target_lengths.unsqueeze(1)
    source_real = torch.arange(s_len).unsqueeze(0) < source_lengths.unsqueeze(1)
    pairs = target_real[:, :, None] & target_real[:, None, :]
    return pairs.tril().unsqueeze(1), source_real[:, None, None]


@wrong(
    decoder_masks,
    "The target's mask is the causal one alone: the padding of the target is not hidden in it.",
)
def _(target_lengths, source_lengths, t_len, s_len):
    batch = target_lengths.shape[0]
    target_mask = torch.tril(torch.ones(t_len, t_len, dtype=torch.bool))
    target_mask = target_mask.expand(batch, 1, t_len, t_len)
    source_mask = torch.arange(s_len).expand(batch, s_len) < source_lengths.view(-1, 1)
    return target_mask, source_mask.view(batch, 1, 1, s_len)


@right(decoder_masks)
def _(target_lengths, source_lengths, t_len, s_len):
    device = target_lengths.device
    # How many keys each query sees, from the first on: as far as itself, or as far as the sentence goes.
    visible = torch.minimum(torch.arange(1, t_len + 1, device=device), target_lengths[:, None])
    own = torch.arange(t_len, device=device) < visible[:, None, :, None]
    source = torch.arange(s_len, device=device) < source_lengths.reshape(-1, 1, 1, 1)
    return own, source


@wrong(
    mend_sentence_vectors,
    "The lengths are not given an axis for the features, so the division lines them up with the features and not with "
    "the sentences: an error, or wrong numbers, for more than one sentence.",
)
def _(x, lengths):
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    x = x * is_real[..., None]
    return x.sum(dim=1) / lengths


@wrong(
    mend_sentence_vectors,
    "The batch is cut to its longest sentence, and the sum is divided by that length, so a shorter sentence still gets "
    "a vector that is too small.",
)
def _(x, lengths):
    longest = lengths.max()
    x = x[:, :longest]
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    x = x * is_real[..., None]
    return x.mean(dim=1)


@wrong(
    mend_sentence_vectors,
    "The padding is not set to zero any more, so it is in the sum, which is divided by the right length.",
)
def _(x, lengths):
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    return x.sum(dim=1) / is_real.sum(dim=1, keepdim=True)


@wrong(
    mend_sentence_vectors,
    "Each feature's sum is divided by the number of its values that are not zero, so a zero in a real token is not "
    "counted.",
)
def _(x, lengths):
    position = torch.arange(x.shape[1], device=x.device)
    is_real = position < lengths[:, None]
    x = x * is_real[..., None]
    count = (x != 0).sum(dim=1).clamp(min=1)
    return x.sum(dim=1) / count


@right(mend_sentence_vectors)
def _(x, lengths):
    lengths = lengths.long()
    sentence = torch.arange(len(x), device=x.device)
    running_sums = x.cumsum(dim=1)
    return running_sums[sentence, lengths - 1] / lengths.unsqueeze(-1)
