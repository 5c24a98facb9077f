"""Answers to assignment 5, with one slip and with two, by a fifth author."""

import math

import torch

from transformer_lab.checks import causal_mask, masked_attention, padding_mask, to_additive

from .. import right, wrong


@right(causal_mask)
def _(seq):
    return torch.tensor([[q >= k for k in range(seq)] for q in range(seq)], dtype=torch.bool).reshape(seq, seq)


@right(causal_mask)
def _(seq):
    return torch.eye(seq).cumsum(0).bool()


@wrong(causal_mask, "The upper triangle: each token sees itself and those after it.")
def _(seq):
    return torch.ones(seq, seq).triu().bool()


@wrong(causal_mask, "A token does not see itself.")
def _(seq):
    return torch.ones(seq, seq, dtype=torch.bool).tril(-1)


@wrong(causal_mask, "The mask is of float32.")
def _(seq):
    return torch.tril(torch.ones(seq, seq))


@wrong(causal_mask, "The upper triangle.", "The diagonal is missing.")
def _(seq):
    return torch.ones(seq, seq, dtype=torch.bool).triu(1)


@wrong(causal_mask, "The diagonal is missing.", "The mask is of float32.")
def _(seq):
    return torch.tril(torch.ones(seq, seq), diagonal=-1)


@wrong(causal_mask, "The upper triangle.", "The mask is of int64.")
def _(seq):
    return torch.triu(torch.ones(seq, seq, dtype=torch.long))


@right(padding_mask)
def _(lengths, k_len):
    one_more = torch.zeros(len(lengths), k_len + 1, dtype=torch.long, device=lengths.device)
    one_more[torch.arange(len(lengths), device=lengths.device), lengths] = 1
    return (one_more.cumsum(1)[:, :k_len] == 0).view(-1, 1, 1, k_len)


@right(padding_mask)
def _(lengths, k_len):
    rows = [torch.arange(k_len, device=lengths.device).lt(n) for n in lengths]
    return torch.stack(rows)[:, None, None]


@wrong(padding_mask, "One place of padding is let through.")
def _(lengths, k_len):
    return (torch.arange(k_len, device=lengths.device) <= lengths[:, None])[:, None, None]


@wrong(padding_mask, "The axes of heads and queries are missing.")
def _(lengths, k_len):
    return torch.arange(k_len, device=lengths.device) < lengths[:, None]


@wrong(padding_mask, "The real tokens are taken to stand at the end.")
def _(lengths, k_len):
    return (torch.arange(k_len, device=lengths.device) >= k_len - lengths[:, None])[:, None, None]


@wrong(padding_mask, "One place of padding is let through.", "The axes of heads and queries are missing.")
def _(lengths, k_len):
    return torch.arange(k_len, device=lengths.device) <= lengths.unsqueeze(1)


@wrong(padding_mask, "True where padding stands.", "The mask is of float32.")
def _(lengths, k_len):
    return (torch.arange(k_len, device=lengths.device) >= lengths[:, None]).float()[:, None, None]


@wrong(padding_mask, "True where padding stands.", "An axis is missing.")
def _(lengths, k_len):
    return (torch.arange(k_len, device=lengths.device) >= lengths[:, None])[:, None]


@right(masked_attention)
def _(query, key, value, mask):
    s = (query @ key.mT) * query.shape[-1] ** -0.5
    s = s.where(mask, torch.full_like(s, -math.inf))
    m = s.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    e = (s - m).exp()
    return (e @ value) / e.sum(-1, keepdim=True).clamp(min=1e-30)


@right(masked_attention)
def _(query, key, value, mask):
    s = query @ key.mT / math.sqrt(query.shape[-1])
    seen = mask.any(-1, keepdim=True)
    s = s.masked_fill(~mask & seen, -math.inf)
    return (s.softmax(-1) @ value).masked_fill(~seen, 0.0)


@wrong(masked_attention, "What may be seen is hidden, and the opposite.")
def _(query, key, value, mask):
    s = query @ key.mT / math.sqrt(query.shape[-1])
    w = s.masked_fill(mask, -math.inf).softmax(-1).nan_to_num(0.0)
    return w @ value


@wrong(masked_attention, "Queries that see nothing get NaN.")
def _(query, key, value, mask):
    s = query @ key.mT / math.sqrt(query.shape[-1])
    return s.masked_fill(~mask, -math.inf).softmax(-1) @ value


@wrong(masked_attention, "Hidden scores are multiplied by 0, which leaves them a weight.")
def _(query, key, value, mask):
    s = query @ key.mT / math.sqrt(query.shape[-1])
    return (s * mask).softmax(-1) @ value


@wrong(masked_attention, "The scores are not scaled.", "Queries that see nothing get NaN.")
def _(query, key, value, mask):
    s = query @ key.mT
    return s.masked_fill(mask == 0, float("-inf")).softmax(-1) @ value


@wrong(masked_attention, "The mask comes after the softmax.", "The scores are not scaled.")
def _(query, key, value, mask):
    w = (query @ key.mT).softmax(-1)
    return (w * mask) @ value


@wrong(
    masked_attention,
    "Hidden scores are -1e9, so queries that see nothing get a mean.",
    "The scores are divided by d_head.",
)
def _(query, key, value, mask):
    s = query @ key.mT / query.shape[-1]
    return s.masked_fill(~mask, -1e9).softmax(-1) @ value


@right(to_additive)
def _(mask):
    return mask.float().log()


@right(to_additive)
def _(mask):
    return torch.where(mask, torch.tensor(0.0, device=mask.device), torch.tensor(float("-inf"), device=mask.device))


@wrong(to_additive, "0 times -inf is NaN.")
def _(mask):
    return (~mask).float() * float("-inf")


@wrong(to_additive, "-inf where the mask is True.")
def _(mask):
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, float("-inf"))


@wrong(to_additive, "1 where the mask is True, not 0.")
def _(mask):
    return mask.float().masked_fill(~mask, float("-inf"))


@wrong(to_additive, "-1e9 where the mask is True.", "A large number takes the place of infinity.")
def _(mask):
    return mask.float() * -1e9


@wrong(to_additive, "Plus infinity.", "float64.")
def _(mask):
    return torch.zeros(mask.shape, device=mask.device, dtype=torch.float64).masked_fill(~mask, float("inf"))
