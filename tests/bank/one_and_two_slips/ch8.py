"""Answers to assignment 8, with one slip and with two, by a fifth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import linear_attention, recurrent_step

from .. import right, wrong


def _phi(x):
    return F.elu(x) + 1


@right(linear_attention)
def _(query, key, value):
    q, k = _phi(query), _phi(key)
    kv = torch.einsum("bhkd,bhkv->bhdv", k, value)
    return torch.einsum("bhqd,bhdv,bhq->bhqv", q, kv, 1 / torch.einsum("bhqd,bhd->bhq", q, k.sum(2)))


@right(linear_attention)
def _(query, key, value):
    with_one = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    r = _phi(query) @ (_phi(key).mT @ with_one)
    return r[..., :-1] / r[..., -1:]


@wrong(linear_attention, "The sums are not divided by the normalizer.")
def _(query, key, value):
    return _phi(query) @ (_phi(key).mT @ value)


@wrong(linear_attention, "The feature map is elu without the one.")
def _(query, key, value):
    q, k = F.elu(query), F.elu(key)
    return (q @ (k.mT @ value)) / (q @ k.sum(-2).unsqueeze(-1))


@wrong(linear_attention, "The sums are divided by k_len.")
def _(query, key, value):
    return _phi(query) @ (_phi(key).mT @ value) / key.shape[-2]


@wrong(linear_attention, "The query has no feature map.", "The sums are not divided by the normalizer.")
def _(query, key, value):
    return query @ (_phi(key).mT @ value)


@wrong(linear_attention, "The feature map is relu + 1.", "z is a mean.")
def _(query, key, value):
    q, k = F.relu(query) + 1, F.relu(key) + 1
    return (q @ (k.mT @ value)) / (q @ k.mean(-2).unsqueeze(-1))


@wrong(linear_attention, "The query is divided by the root of d_head.", "Each query is compared with each key.")
def _(query, key, value):
    q, k = _phi(query / query.shape[-1] ** 0.5), _phi(key)
    w = q @ k.mT
    return (w / w.sum(-1, keepdim=True)) @ value


@right(recurrent_step)
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query), _phi(key)
    S = torch.einsum("bhd,bhv->bhdv", k, value) + S
    z = k + z
    return (S, z), torch.einsum("bhd,bhdv->bhv", q, S) / (q * z).sum(-1)[..., None]


@right(recurrent_step)
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query)[..., None, :], _phi(key)[..., None, :]
    S = S + k.mT @ value[..., None, :]
    z = z + k.squeeze(-2)
    return [S, z], (q @ S / (q @ z[..., None])).squeeze(-2)


@wrong(recurrent_step, "The query reads the state from before the token.")
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query), _phi(key)
    S2 = S + k[..., None] * value[..., None, :]
    z2 = z + k
    out = (q[..., None] * S).sum(-2) / ((q * z).sum(-1, keepdim=True) + 1e-6)
    return (S2, z2), out


@wrong(recurrent_step, "The state is changed in place.")
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query), _phi(key)
    S += k[..., None] * value[..., None, :]
    z += k
    return (S, z), (q[..., None] * S).sum(-2) / (q * z).sum(-1, keepdim=True)


@wrong(recurrent_step, "z gets the key without its feature map.")
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query), _phi(key)
    S = S + k[..., None] * value[..., None, :]
    z = z + key
    return (S, z), (q[..., None] * S).sum(-2) / (q * z).sum(-1, keepdim=True)


@wrong(recurrent_step, "The output is not divided by the normalizer.", "The state is changed in place.")
def _(state, query, key, value):
    S, z = state
    q, k = _phi(query), _phi(key)
    S += k[..., None] * value[..., None, :]
    z += k
    return (S, z), (q[..., None] * S).sum(-2)


@wrong(recurrent_step, "The query has no feature map.", "The normalizer is that from before the token.")
def _(state, query, key, value):
    S, z = state
    k = _phi(key)
    S2, z2 = S + k[..., None] * value[..., None, :], z + k
    return (S2, z2), (query[..., None] * S2).sum(-2) / (query * z).sum(-1, keepdim=True)
