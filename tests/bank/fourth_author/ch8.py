"""Answers to assignment 8, by a fourth author."""

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

from .. import right, wrong


@wrong(elu_feature_map, "The gradient of large numbers is NaN, because exp overflows on the side that is not taken.")
def _(x):
    return torch.where(x > 0, x + 1, torch.exp(x))


@wrong(elu_feature_map, "The 1 is added before ELU and not after it, so that features can be negative.")
def _(x):
    return F.elu(x + 1)


@right(elu_feature_map)
def _(x):
    zero = torch.zeros_like(x)
    return torch.maximum(x, zero) + torch.minimum(x, zero).exp()


@wrong(linear_attention, "Queries are divided by the root of d_head before the feature map, which changes the weights.")
def _(query, key, value):
    scale = query.shape[-1] ** -0.5
    q = tl.elu_feature_map(query * scale)
    k = tl.elu_feature_map(key)
    S = k.transpose(-2, -1) @ value
    z = k.sum(dim=-2, keepdim=True)
    return (q @ S) / (q @ z.transpose(-2, -1) + 1e-6)


@wrong(linear_attention, "Each query is compared with each key: a table of q_len times k_len weights is made.")
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    weights = torch.einsum("bhqd,bhkd->bhqk", q, k)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ value


@wrong(
    causal_linear_attention,
    "The normalizer sums over all keys, and not up to the query's own place.",
)
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    weights = (q @ k.mT).tril()
    z = k.sum(dim=-2)
    return (weights @ value) / (q @ z.unsqueeze(-1) + 1e-6)


@wrong(causal_linear_attention, "Each query reads the sums before its own token goes in, so that no token sees itself.")
def _(query, key, value):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    batch, heads, seq, d_head = k.shape
    S = k.new_zeros(batch, heads, d_head, value.shape[-1])
    z = k.new_zeros(batch, heads, d_head)
    outputs = []
    for i in range(seq):
        q_i, k_i, v_i = q[:, :, i], k[:, :, i], value[:, :, i]
        numerator = torch.einsum("bhd,bhde->bhe", q_i, S)
        outputs.append(numerator / ((q_i * z).sum(-1, keepdim=True) + 1e-6))
        S = S + k_i[..., :, None] * v_i[..., None, :]
        z = z + k_i
    return torch.stack(outputs, dim=2)


@right(causal_linear_attention)
def _(query, key, value):
    # Three tokens at a time: a small table within the piece, the sums for all before it.
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)  # the last column makes z
    S = torch.zeros_like(k[:, :, :1].mT @ value[:, :, :1])
    pieces = []
    for q_piece, k_piece, v_piece in zip(q.split(3, dim=2), k.split(3, dim=2), value.split(3, dim=2)):
        pieces.append(q_piece @ S + (q_piece @ k_piece.mT).tril() @ v_piece)
        S = S + k_piece.mT @ v_piece
    result = torch.cat(pieces, dim=2)
    return result[..., :-1] / result[..., -1:]


@wrong(recurrent_step, "The token is added to S and z in place, which changes the caller's state.")
def _(state, query, key, value):
    S, z = state
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S += torch.einsum("bhd,bhe->bhde", k, value)
    z += k
    out = torch.einsum("bhd,bhde->bhe", q, S)
    norm = torch.einsum("bhd,bhd->bh", q, z)
    return (S, z), out / (norm.unsqueeze(-1) + 1e-6)


@wrong(recurrent_step, "z grows by the key itself, and not by its features.")
def _(state, query, key, value):
    S, z = state
    q = tl.elu_feature_map(query)
    S = S + tl.elu_feature_map(key).unsqueeze(-1) * value.unsqueeze(-2)
    z = z + key
    numerator = (q.unsqueeze(-2) @ S).squeeze(-2)
    denominator = (q * z).sum(dim=-1, keepdim=True)
    return (S, z), numerator / (denominator + 1e-6)


@wrong(mend_padding, "The padding is left out of S only: the normalizer still counts its features.")
def _(query, key, value, key_mask):
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    value = value.masked_fill(~key_mask.mT, 0.0)
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@wrong(mend_padding, "All padding is taken to stand at the end, so that real keys after a gap are lost.")
def _(query, key, value, key_mask):
    lengths = key_mask.sum(dim=-1).flatten()
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    real = torch.arange(key.shape[2], device=key.device) < lengths[:, None]
    k = k * real[:, None, :, None]
    S = k.mT @ value
    z = k.sum(dim=-2)
    return (q @ S) / (q @ z.unsqueeze(-1))


@right(mend_padding)
def _(query, key, value, key_mask):
    # The features of -inf are exp(-inf), exactly zero.
    key = key.masked_fill(key_mask.logical_not().mT, float("-inf"))
    q, k = tl.elu_feature_map(query), tl.elu_feature_map(key)
    S = torch.einsum("bhkd,bhke->bhde", k, value)
    normalizer = (q * k.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)
    return torch.einsum("bhqd,bhde->bhqe", q, S) / normalizer
