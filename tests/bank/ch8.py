"""Answers to assignment 8."""

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    causal_linear_attention,
    elu_feature_map,
    linear_attention,
    mend_padding,
    recurrent_step,
)

from . import right, wrong

phi = tl.elu_feature_map


@wrong(elu_feature_map, "The one is not added: elu(x) alone.")
def _(x):
    return F.elu(x)


@wrong(elu_feature_map, "ReLU + 1: below zero it is 1, not exp(x).")
def _(x):
    return F.relu(x) + 1


@wrong(elu_feature_map, "Below zero it is exp(x) + 1.")
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0)) + 1)


@wrong(elu_feature_map, "The sign is turned: exp(-x) below zero.")
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(-x.clamp(max=0)))


@wrong(elu_feature_map, "softplus: log(1 + exp(x)) is positive too, but another function.")
def _(x):
    return F.softplus(x) + 1


@right(elu_feature_map)
def _(x):
    return F.relu(x) + torch.exp(-F.relu(-x))


@right(elu_feature_map)
def _(x):
    return torch.clamp(x, min=0) + torch.clamp(x, max=0).exp()


@wrong(linear_attention, "The division by the sum of weights is missing.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    return q @ (k.mT @ value)


@wrong(linear_attention, "The key has no feature map, the query has.")
def _(query, key, value):
    q, k = phi(query), key
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(linear_attention, "The sums run over the features, dim=-1, not over the keys.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    z = k.sum(dim=-1)
    return (q @ (k.mT @ value)) / z.unsqueeze(-1)


@wrong(linear_attention, "It divides by the number of keys, not by the sum of weights.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    return q @ (k.mT @ value) / key.shape[-2]


@wrong(linear_attention, "The normalizer is the query's own sum of features; the keys' sum is forgotten.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    return (q @ (k.mT @ value)) / q.sum(dim=-1, keepdim=True)


@right(linear_attention)
def _(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = torch.einsum("bhkd,bhkv->bhdv", k, value)
    z = torch.einsum("bhkd->bhd", k)
    return torch.einsum("bhqd,bhdv->bhqv", q, S) / torch.einsum("bhqd,bhd->bhq", q, z)[..., None]


@wrong(causal_linear_attention, "It is not causal: every query reads the sums over all keys.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2, keepdim=True).mT)


@wrong(causal_linear_attention, "The token's own key is left out: the output is read before the token is added.")
def _(query, key, value):
    q, k = phi(query), phi(key)
    S, z, out = 0, 0, []
    for i in range(q.shape[2]):
        if i == 0:
            out.append(value[:, :, 0])
        else:
            out.append((q[:, :, i, None] @ S)[:, :, 0] / (q[:, :, i] * z).sum(-1, keepdim=True))
        S = S + k[:, :, i, :, None] * value[:, :, i, None, :]
        z = z + k[:, :, i]
    return torch.stack(out, dim=2)


@wrong(
    causal_linear_attention,
    "The future's values are subtracted from the whole: cancellation, and what is large later shows earlier.",
)
def _(query, key, value):
    q, k = phi(query), phi(key)
    kv = k.unsqueeze(-1) * value.unsqueeze(-2)
    later = kv.flip(2).cumsum(2).flip(2) - kv
    S = kv.sum(2, keepdim=True) - later
    z = k.cumsum(2)
    return torch.einsum("bhsd,bhsdv->bhsv", q, S) / (q * z).sum(-1, keepdim=True)


@wrong(causal_linear_attention, "The table is softmaxed with a causal mask: ordinary attention, without features.")
def _(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong(causal_linear_attention, "It is divided before the mask is put on, so early rows do not sum to one.")
def _(query, key, value):
    weights = phi(query) @ phi(key).mT
    weights = weights / weights.sum(-1, keepdim=True)
    return weights.tril() @ value


@right(causal_linear_attention)
def _(query, key, value):
    q, k = phi(query), phi(key)
    weights = torch.einsum("bhid,bhjd->bhij", q, k)
    seq = query.shape[2]
    weights = torch.where(torch.ones(seq, seq, dtype=torch.bool, device=key.device).tril(), weights, 0)
    return F.normalize(weights, p=1, dim=-1, eps=0) @ value


@wrong(recurrent_step, "The query reads before the token is added.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    output = torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)
    S = S + k.unsqueeze(-1) * value.unsqueeze(-2)
    z = z + k
    return (S, z), output


@wrong(recurrent_step, "The division by what the query reads from z is missing.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    S, z = S + k.unsqueeze(-1) * value.unsqueeze(-2), z + k
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S)


@wrong(recurrent_step, "z is not updated.")
def _(state, query, key, value):
    S, z = state
    q, k = phi(query), phi(key)
    S = S + k.unsqueeze(-1) * value.unsqueeze(-2)
    output = torch.einsum("bhd,bhdv->bhv", q, S) / ((q * z).sum(-1, keepdim=True) + 1e-6)
    return (S, z), output


@wrong(recurrent_step, "The feature map is missing at the key.")
def _(state, query, key, value):
    S, z = state
    q = phi(query)
    S, z = S + key.unsqueeze(-1) * value.unsqueeze(-2), z + key
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)


@wrong(recurrent_step, "The state is overwritten with this token's product, not added to.")
def _(state, query, key, value):
    q, k = phi(query), phi(key)
    S, z = k.unsqueeze(-1) * value.unsqueeze(-2), k
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1, keepdim=True)


@right(recurrent_step)
def _(state, query, key, value):
    q, k = phi(query)[..., None, :], phi(key)
    S = torch.einsum("bhd,bhv->bhdv", k, value) + state[0]
    z = torch.add(state[1], k)
    return (S, z), (q @ S / (q @ z[..., None])).squeeze(-2)


@wrong(mend_padding, "The program as given: keys of zero have the features one.")
def _(query, key, value, key_mask):
    is_padding = ~key_mask.mT
    key = key.masked_fill(is_padding, 0.0)
    value = value.masked_fill(is_padding, 0.0)
    q, k = phi(query), phi(key)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "The mask is turned round: the real keys are left out.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    k = k.masked_fill(key_mask.mT, 0.0)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "The mask is not used.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "The features are multiplied by 0, so a NaN or infinity in the padding stays.")
def _(query, key, value, key_mask):
    q, k = phi(query), phi(key)
    k = k * key_mask.mT
    return (q @ (k.mT @ value)) / (q @ k.sum(dim=-2).unsqueeze(-1))


@wrong(mend_padding, "It divides by the number of real keys instead of the sum of the weights.")
def _(query, key, value, key_mask):
    q = phi(query)
    k = phi(key).masked_fill(~key_mask.mT, 0.0)
    value = value.masked_fill(~key_mask.mT, 0.0)
    return (q @ (k.mT @ value)) / key_mask.sum(dim=-1, keepdim=True)


@right(mend_padding)
def _(query, key, value, key_mask):
    outs = []
    for q, k, v, real in zip(query, key, value, key_mask[:, 0, 0]):
        q, k, v = phi(q), phi(k[:, real]), v[:, real]
        outs.append((q @ (k.mT @ v)) / (q @ k.sum(-2, keepdim=True).mT))
    return torch.stack(outs)
