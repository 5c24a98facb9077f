"""Answers to assignment 8, by a third author."""

from itertools import accumulate

import torch
from torch.nn import functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    causal_linear_attention,
    elu_feature_map,
    linear_attention,
    mend_padding,
    recurrent_step,
)

from .. import right, wrong


@wrong(elu_feature_map, "exp is computed for large numbers too and overflows: values are right, the gradient is NaN.")
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(x))


@wrong(elu_feature_map, "The 1 is added before elu instead of after: below -1 the features are negative.")
def _(x):
    return F.elu(x + 1)


@wrong(
    elu_feature_map,
    "The cases are chosen by multiplying with 0 and 1: for large numbers 0 times infinity makes the result NaN.",
)
def _(x):
    positive = (x > 0).to(x.dtype)
    return positive * (x + 1) + (1 - positive) * torch.exp(x)


@wrong(elu_feature_map, "x is cut off at 80 for both cases: larger numbers all give 81, with a gradient of 0.")
def _(x):
    x = x.clamp(max=80.0)  # exp must not overflow
    return torch.where(x > 0, x + 1, x.exp())


@right(elu_feature_map)
def _(x):
    return F.relu(x) + x.clamp(max=0).exp()


@wrong(
    linear_attention,
    "The table of all queries and keys is made: the result is right, but time and memory grow with q_len * k_len.",
)
def _(query, key, value):
    q = tl.elu_feature_map(query)
    k = tl.elu_feature_map(key)
    weights = q @ k.transpose(-2, -1)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ value


@wrong(linear_attention, "z sums over the features instead of over the keys: it fails unless k_len equals d_head.")
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = k.mT @ value
    z = k.sum(dim=-1)
    return (q @ S) / (q @ z.unsqueeze(-1) + 1e-6)


@wrong(linear_attention, "The query is divided by the root of d_head before the feature map, as for softmax attention.")
def _(query, key, value):
    d_head = query.shape[-1]
    q = tl.elu_feature_map(query / d_head**0.5)
    k = tl.elu_feature_map(key)
    S = torch.einsum("bhkd,bhkv->bhdv", k, value)
    z = k.sum(dim=2)
    numerator = torch.einsum("bhqd,bhdv->bhqv", q, S)
    normalizer = torch.einsum("bhqd,bhd->bhq", q, z)
    return numerator / (normalizer.unsqueeze(-1) + 1e-6)


@wrong(
    linear_attention,
    "It divides by the number of keys instead of by the sum of the weights: the weights do not sum to one.",
)
def _(query, key, value):
    phi_q, phi_k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = phi_k.mT @ value / key.shape[-2]
    return phi_q @ S


@right(linear_attention)
def _(query, key, value):
    q, k = map(tl.elu_feature_map, (query, key))
    with_one = F.pad(value, (0, 1), value=1.0)  # its column of ones counts the weights
    out = q @ torch.einsum("bhkd,bhkv->bhdv", k, with_one)
    return out[..., :-1] / out[..., -1:]


@wrong(
    causal_linear_attention,
    "The normalizer sums over all keys, later ones too, while the numerator stops at the query's own place.",
)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    weights = (q @ k.mT).tril()
    z = k.sum(dim=-2)
    return (weights @ value) / (q @ z.unsqueeze(-1))


@wrong(
    causal_linear_attention,
    "The list holds one and the same S and z, which += goes on changing: every query reads the sums of all tokens.",
)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    batch, heads, seq, d_head = key.shape
    S = key.new_zeros(batch, heads, d_head, value.shape[-1])
    z = key.new_zeros(batch, heads, d_head)
    states, normalizers = [], []
    for i in range(seq):
        S += k[:, :, i, :, None] * value[:, :, i, None, :]
        z += k[:, :, i]
        states.append(S)
        normalizers.append(z)
    S, z = torch.stack(states, dim=2), torch.stack(normalizers, dim=2)
    return torch.einsum("bhsd,bhsdv->bhsv", q, S) / ((q * z).sum(dim=-1, keepdim=True) + 1e-6)


@wrong(
    causal_linear_attention,
    "The sums run along the heads, not along the tokens: a token sees only itself, in this head and in earlier ones.",
)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(dim=1)
    z = k.cumsum(dim=1)
    numerator = (q.unsqueeze(-2) @ S).squeeze(-2)
    normalizer = (q * z).sum(dim=-1, keepdim=True)
    return numerator / (normalizer + 1e-6)


@wrong(
    causal_linear_attention,
    "The products of the features go through a softmax instead of being divided by their sum.",
)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    seq = q.shape[-2]
    scores = q @ k.mT
    later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
    return weights @ value


@right(causal_linear_attention)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    tokens = zip(q.unbind(2), accumulate(a[..., None] * b[..., None, :] for a, b in zip(k.unbind(2), value.unbind(2))))
    read = torch.stack([(a[..., None] * state).sum(-2) for a, state in tokens], dim=2)
    return read[..., :-1] / read[..., -1:]


@wrong(recurrent_step, "The caller's state is changed: += writes into the tensors that came in.")
def _(state, query, key, value):
    S, z = state
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S += k.unsqueeze(-1) * value.unsqueeze(-2)
    z += k
    output = (q.unsqueeze(-2) @ S).squeeze(-2) / (q * z).sum(dim=-1, keepdim=True)
    return (S, z), output


@wrong(recurrent_step, "The query reads the old state, before its own token is taken in: the first output is 0.")
def _(state, query, key, value):
    S, z = state
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    output = torch.einsum("bhd,bhdv->bhv", q, S) / (torch.einsum("bhd,bhd->bh", q, z)[..., None] + 1e-6)
    new_S = S + torch.einsum("bhd,bhv->bhdv", k, value)
    new_z = z + k
    return (new_S, new_z), output


@wrong(
    recurrent_step,
    "The outer product is transposed, (d_value, d_head): it fails unless both are equal, and is wrong where they are.",
)
def _(state, query, key, value):
    S, z = state
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = S + value.unsqueeze(-1) * k.unsqueeze(-2)
    z = z + k
    numerator = (q.unsqueeze(-2) @ S).squeeze(-2)
    return (S, z), numerator / (q * z).sum(-1, keepdim=True)


@wrong(recurrent_step, "The normalizer is read with the raw query, without the feature map.")
def _(state, query, key, value):
    S, z = state
    phi_k = tl.elu_feature_map(key)
    S = S + phi_k[..., :, None] * value[..., None, :]
    z = z + phi_k
    numerator = (tl.elu_feature_map(query)[..., None, :] @ S)[..., 0, :]
    denominator = (query * z).sum(dim=-1, keepdim=True) + 1e-6
    return (S, z), numerator / denominator


@right(recurrent_step)
def _(state, query, key, value):
    q, k = tl.elu_feature_map(torch.stack([query, key]))
    S = torch.addcmul(state[0], k[..., None], value[..., None, :])
    z = torch.add(state[1], k)
    output = (q[..., None] * S).sum(dim=2) / torch.linalg.vecdot(q, z)[..., None]
    return (S, z), output


@wrong(
    mend_padding,
    "The result is scaled by k_len over the number of real keys: right only where real keys weigh as much as zeros.",
)
def _(query, key, value, key_mask):
    is_padding = ~key_mask.mT
    key = key.masked_fill(is_padding, 0.0)
    value = value.masked_fill(is_padding, 0.0)
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = k.mT @ value
    z = k.sum(dim=-2)
    result = (q @ S) / (q @ z.unsqueeze(-1))
    n_real = key_mask.sum(dim=-1, keepdim=True)
    return result * key.shape[-2] / n_real


@wrong(
    mend_padding,
    "All sentences are cut after the longest one's number of real keys: wrong for shorter ones, or padding in front.",
)
def _(query, key, value, key_mask):
    n_real = int(key_mask.sum(dim=-1).max())
    key, value = key[:, :, :n_real], value[:, :, :n_real]
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@wrong(mend_padding, "Only the normalizer leaves the padding out; in S the padding's keys and values still count.")
def _(query, key, value, key_mask):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = k.mT @ value
    z = (k * key_mask.mT).sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@wrong(
    mend_padding,
    "The mask is not transposed and lies along the features: it fails unless k_len equals d_head, and is wrong then.",
)
def _(query, key, value, key_mask):
    q = tl.elu_feature_map(query)
    k = tl.elu_feature_map(key).masked_fill(~key_mask, 0.0)
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@right(mend_padding)
def _(query, key, value, key_mask):
    # exp(-inf) is 0: such a key has no features at all
    key = torch.where(key_mask.mT, key, float("-inf"))
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    z = k.sum(dim=-2, keepdim=True)
    return q @ (k.mT @ value) / (q @ z.mT)
