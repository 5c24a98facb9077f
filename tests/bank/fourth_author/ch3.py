"""Answers to assignment 3, by a fourth author."""

import math

import torch

import transformer_lab as tl
from transformer_lab.checks import (
    attention,
    attention_weights,
    mend_word_order,
    single_head,
    sinusoidal_positions,
    softmax,
)

from .. import right, wrong


@wrong(softmax, "It subtracts the largest of all scores, so a row far below it becomes 0 / 0.")
def _(x, dim):
    e = torch.exp(x - x.max())
    return e / e.sum(dim=dim, keepdim=True)


@wrong(softmax, "It computes in float32 and returns float32, whatever the dtype of x.")
def _(x, dim):
    x = x.float()
    x = x - x.max(dim=dim, keepdim=True).values
    weights = x.exp()
    return weights / weights.sum(dim=dim, keepdim=True)


@right(softmax)
def _(x, dim):
    shifted = x - x.amax(dim=dim, keepdim=True)
    log_sum = shifted.exp().sum(dim=dim, keepdim=True).log()
    return (shifted - log_sum).exp()


@wrong(attention_weights, "It divides by the root of the number of queries instead of d_head.")
def _(query, key):
    d_head = query.shape[2]
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_head)
    return softmax.reference(scores, dim=-1)


@wrong(attention_weights, "It exponentiates the scores as they are, so large ones overflow and give nan.")
def _(query, key):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / query.size(-1) ** 0.5
    weights = torch.exp(scores)
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong(attention, "It hides the keys that come after a query, although no mask was asked for.")
def _(query, key, value):
    scores = query @ key.mT / query.size(-1) ** 0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(dim=-1) @ value


@wrong(attention, "Queries and keys are exchanged, so the weights sum to one over the queries, not over the keys.")
def _(query, key, value):
    weights = attention_weights.reference(key, query)
    return weights.transpose(-2, -1) @ value


@right(attention)
def _(query, key, value):
    table = torch.einsum("bhkd,bhqd->bhkq", key, query) * query.shape[-1] ** -0.5
    table = table.softmax(dim=2)
    return torch.einsum("bhkq,bhkv->bhqv", table, value)


@wrong(single_head, "It makes the keys with the queries' weight.")
def _(x, w_q, w_k, w_v):
    query = x @ w_q
    key = x @ w_q
    value = x @ w_v
    return tl.scaled_dot_product_attention(query, key, value)


@wrong(single_head, "It divides by the root of d_model instead of d_head.")
def _(x, w_q, w_k, w_v):
    batch, seq, d_model = x.shape
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(d_model)
    return torch.bmm(torch.softmax(scores, dim=-1), v)


@wrong(sinusoidal_positions, "It raises when d_model is odd, since there is one cosine too many.")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    position = torch.arange(seq, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@wrong(sinusoidal_positions, "Every feature has an angle of its own, so a cosine does not share that of its sine.")
def _(seq, d_model):
    angles = torch.arange(seq)[:, None] / 10000 ** (torch.arange(d_model) / d_model)
    table = torch.empty(seq, d_model)
    table[:, 0::2] = angles[:, 0::2].sin()
    table[:, 1::2] = angles[:, 1::2].cos()
    return table


@right(sinusoidal_positions)
def _(seq, d_model):
    feature = torch.arange(d_model)
    odd = feature % 2
    positions = torch.arange(seq, dtype=torch.float64).unsqueeze(1)
    angles = positions / 10000 ** ((feature - odd).double() / d_model)
    return torch.sin(angles + odd * (math.pi / 2)).float()


@wrong(mend_word_order, "The rows still lie along the batch, so each sentence gets one position for all its words.")
def _(x, positions, w_q, w_k, w_v):
    rows = positions[: x.size(1)].unsqueeze(1)
    x = x + rows
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    return tl.scaled_dot_product_attention(query, key, value)


@wrong(mend_word_order, "The values are made from the words without their positions.")
def _(x, positions, w_q, w_k, w_v):
    seq = x.shape[1]
    placed = x + positions[:seq]
    return tl.scaled_dot_product_attention(placed @ w_q, placed @ w_k, x @ w_v)
