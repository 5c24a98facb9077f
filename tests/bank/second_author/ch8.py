"""A second author: answers to chapter 8's exercises."""

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def elu_feature_map(x):
    """Exercise 8.1, as its author calls it later."""
    return F.elu(x) + 1


# elu_feature_map


@wrong(
    E.elu_feature_map,
    "exp is computed for large numbers too, where it is infinite: the values are right, but the gradient is NaN "
    "(0 * inf) for large x.",
)
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(x))


@wrong(
    E.elu_feature_map,
    "The + 1 is missing: elu alone gives x above zero and exp(x) - 1 below, so features are negative below zero.",
)
def _(x):
    return F.elu(x)


@wrong(
    E.elu_feature_map,
    "x itself is changed in place, and in two steps of which the second sees the result of the first: exp(x) "
    "is positive, so the negative numbers become exp(x) + 1. (A leaf that requires a gradient raises.)",
)
def _(x):
    x[x < 0] = torch.exp(x[x < 0])
    x[x >= 0] += 1
    return x


@right(E.elu_feature_map)
def _(x):
    return F.relu(x) + x.clamp(max=0).exp()


# linear_attention


@wrong(
    E.linear_attention,
    "The queries do not go through the feature map, only the keys do: weights can be negative, and the normalizer near "
    "zero.",
)
def _(query, key, value):
    k = elu_feature_map(key)
    S = k.transpose(-2, -1) @ value
    z = k.sum(dim=-2)
    return (query @ S) / (query @ z.unsqueeze(-1) + 1e-6)


@wrong(
    E.linear_attention,
    "Numbers are right, but the table of all queries with all keys is made first, so time and memory grow with "
    "q_len * k_len: quadratic, which the task forbids.",
)
def _(query, key, value):
    weights = elu_feature_map(query) @ elu_feature_map(key).mT
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ value


@wrong(
    E.linear_attention,
    "The query is divided by the root of d_head before the feature map, as in softmax attention; the task has "
    "no scale.",
)
def _(query, key, value):
    q = elu_feature_map(query / query.shape[-1] ** 0.5)
    k = elu_feature_map(key)
    S = torch.einsum("bhkd,bhkv->bhdv", k, value)
    z = torch.einsum("bhqd,bhd->bhq", q, k.sum(2))
    return torch.einsum("bhqd,bhdv->bhqv", q, S) / z.unsqueeze(-1)


# causal_linear_attention


@wrong(
    E.causal_linear_attention,
    "The numerator stops at the query's own place, but the normalizer sums over all keys, later ones too: all outputs "
    "but the last are too small.",
)
def _(query, key, value):
    q, k = elu_feature_map(query), elu_feature_map(key)
    S = torch.cumsum(k.unsqueeze(-1) * value.unsqueeze(-2), dim=2)
    z = k.sum(dim=2, keepdim=True)
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(dim=-1, keepdim=True)


@wrong(
    E.causal_linear_attention,
    "The sums are read before the token is added: query i sees the keys 0 to i - 1 and not itself, and the first gets "
    "0 (with the 1e-6 in the normalizer).",
)
def _(query, key, value):
    q, k = elu_feature_map(query), elu_feature_map(key)
    batch, heads, seq, d = k.shape
    S = torch.zeros(batch, heads, d, value.shape[-1])
    z = torch.zeros(batch, heads, d)
    out = []
    for i in range(seq):
        top = torch.einsum("bhd,bhdv->bhv", q[:, :, i], S)
        bottom = (q[:, :, i] * z).sum(-1, keepdim=True) + 1e-6
        out.append(top / bottom)
        S = S + k[:, :, i, :, None] * value[:, :, i, None, :]
        z = z + k[:, :, i]
    return torch.stack(out, dim=2)


@wrong(
    E.causal_linear_attention,
    "The prefix sums are made as the total minus the sum of what comes later: right in exact arithmetic, but a "
    "very large later key or value enters both and cancels badly, so rounding destroys the earlier outputs.",
)
def _(query, key, value):
    q, k = elu_feature_map(query), elu_feature_map(key)
    kv = k.unsqueeze(-1) * value.unsqueeze(-2)
    later_kv = kv.flip(2).cumsum(2).flip(2) - kv
    later_k = k.flip(2).cumsum(2).flip(2) - k
    S = kv.sum(2, keepdim=True) - later_kv
    z = k.sum(2, keepdim=True) - later_k
    return (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)


@right(E.causal_linear_attention)
def _(query, key, value):
    q, k = elu_feature_map(query), elu_feature_map(key)
    outputs = []
    for i in range(q.shape[2]):
        seen = k[:, :, : i + 1]
        weights = q[:, :, i : i + 1] @ seen.mT
        outputs.append(weights @ value[:, :, : i + 1] / weights.sum(-1, keepdim=True))
    return torch.cat(outputs, dim=2)


# recurrent_step


@wrong(
    E.recurrent_step,
    "+= writes into the tensors of the state that came in: the caller's S and z are changed. The returned numbers are "
    "right.",
)
def _(state, query, key, value):
    S, z = state
    q, k = elu_feature_map(query), elu_feature_map(key)
    S += k.unsqueeze(-1) * value.unsqueeze(-2)
    z += k
    output = (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(-1, keepdim=True)
    return (S, z), output


@wrong(
    E.recurrent_step,
    "The outer product is value times key, (d_value, d_head), the transpose of what S holds: raises where d_head and "
    "d_value differ (or broadcasts to a wrong shape), and mixes up the state where they are equal.",
)
def _(state, query, key, value):
    S, z = state
    q, k = elu_feature_map(query), elu_feature_map(key)
    S = S + value.unsqueeze(-1) * k.unsqueeze(-2)
    z = z + k
    output = torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)
    return (S, z), output


@wrong(
    E.recurrent_step,
    "The output is divided with the old z, without the token's own features: the numerator has the token, the "
    "normalizer has not, and the first token divides by zero (inf).",
)
def _(state, query, key, value):
    S, z = state
    q, k = elu_feature_map(query), elu_feature_map(key)
    S = S + torch.einsum("bhd,bhv->bhdv", k, value)
    output = torch.einsum("bhd,bhdv->bhv", q, S) / torch.einsum("bhd,bhd->bh", q, z)[..., None]
    return (S, z + k), output


# mend_padding


@wrong(
    E.mend_padding,
    "The features of the padding are taken out of z only; S still sums them with the padding's values, so what "
    "stands in the padding changes the result.",
)
def _(query, key, value, key_mask):
    q, k = elu_feature_map(query), elu_feature_map(key)
    S = k.mT @ value
    z = (k * key_mask.mT).sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@wrong(
    E.mend_padding,
    "The mask is not transposed: its k_len meets the features' axis d_head. It raises where the two differ, and hides "
    "features instead of keys where they are equal.",
)
def _(query, key, value, key_mask):
    q = elu_feature_map(query)
    k = elu_feature_map(key).masked_fill(~key_mask, 0.0)
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@wrong(
    E.mend_padding,
    "The keys of the padding become -10, so their features are exp(-10), small but not zero: much padding, or large "
    "values in it, still changes the result.",
)
def _(query, key, value, key_mask):
    key = key.masked_fill(~key_mask.transpose(-2, -1), -10.0)
    q, k = elu_feature_map(query), elu_feature_map(key)
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@right(E.mend_padding)
def _(query, key, value, key_mask):
    rows = []
    for q, k, v, real in zip(query, key, value, key_mask[:, 0, 0]):
        q, k, v = elu_feature_map(q), elu_feature_map(k[:, real]), v[:, real]
        rows.append((q @ (k.mT @ v)) / (q @ k.sum(1).unsqueeze(-1)))
    return torch.stack(rows)
