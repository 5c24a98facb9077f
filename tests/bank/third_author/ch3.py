"""Answers to assignment 3, by a third author."""

import math

import numpy as np
import torch
import torch.nn.functional as F

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


@wrong(
    softmax, "The place of the largest score is subtracted instead of the score itself: large scores still overflow."
)
def _(x, dim):
    biggest = x.argmax(dim=dim, keepdim=True)
    e = torch.exp(x - biggest)
    return e / e.sum(dim=dim, keepdim=True)


@wrong(softmax, "Scores are cut off at -50 and 50 before exp, so that differences between larger ones are lost.")
def _(x, dim):
    exp = x.clamp(-50, 50).exp()  # keeps exp from overflowing
    return exp / exp.sum(dim, keepdim=True)


@wrong(softmax, "The result is always float32, whatever dtype x has.")
def _(x, dim):
    x = x.float()  # exp needs the precision
    x = x - x.max(dim=dim, keepdim=True).values
    numerator = x.exp()
    return numerator / numerator.sum(dim=dim, keepdim=True)


@wrong(
    softmax, "The sum runs along the last axis instead of dim, so the weights along any other dim do not sum to one."
)
def _(x, dim):
    exps = torch.exp(x - x.amax(dim, keepdim=True))
    return exps / exps.sum(-1, keepdim=True)


@right(softmax)
def _(x, dim):
    powers = x.sub(x.amax(dim, keepdim=True)).exp()
    return F.normalize(powers, p=1.0, dim=dim)  # all positive: their absolute values are themselves


@wrong(
    attention_weights,
    "The softmax has no dim and PyTorch takes axis 1: the weights sum to one over the heads, not the keys.",
)
def _(query, key):
    d_head = query.shape[-1]
    scores = query @ key.transpose(-2, -1) / d_head**0.5
    return F.softmax(scores)


@wrong(attention_weights, "A causal mask is applied: query i gets no weight for the keys after i.")
def _(query, key):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    q_len, k_len = scores.shape[-2:]
    mask = torch.tril(torch.ones(q_len, k_len, dtype=torch.bool, device=scores.device))
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


@wrong(
    attention_weights, "Both query and key are divided by the root of d_head, so that the scores are divided by d_head."
)
def _(query, key):
    root = math.sqrt(key.shape[-1])
    scores = torch.einsum("bhqd,bhkd->bhqk", query / root, key / root)
    return scores.softmax(dim=-1)


@wrong(attention_weights, "The dot products are divided by the root of k_len, the number of keys, instead of d_head.")
def _(query, key):
    n = key.size(2)
    scores = (query @ key.mT) / n**0.5
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = scores.exp()
    return weights / weights.sum(dim=-1, keepdim=True)


@right(attention_weights)
def _(query, key):
    # key number k hands over the unit vector k: what comes out are the weights
    k_len = key.size(-2)
    units = torch.eye(k_len, dtype=key.dtype, device=key.device).expand(*key.shape[:-2], k_len, k_len)
    return F.scaled_dot_product_attention(query, key, units)


@wrong(attention, "The scores are divided by the root of d_value instead of d_head.")
def _(query, key, value):
    scores = query @ key.transpose(-1, -2)
    weights = torch.softmax(scores / value.shape[-1] ** 0.5, dim=-1)
    return weights @ value


@wrong(attention, "Each query gets the value of its best key alone instead of a blend of all values.")
def _(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    best = scores.argmax(dim=-1, keepdim=True)  # (batch, heads, q_len, 1)
    return value.gather(2, best.expand(-1, -1, -1, value.size(-1)))


@wrong(attention, "The heads are merged at the end: the result is (batch, q_len, heads * d_value).")
def _(query, key, value):
    batch, heads, q_len, d_head = query.shape
    weights = F.softmax(query @ key.mT / math.sqrt(d_head), dim=-1)
    out = weights @ value
    return out.transpose(1, 2).reshape(batch, q_len, heads * value.shape[-1])


@wrong(attention, "It returns a pair, the blended values and the weights, instead of the blended values alone.")
def _(query, key, value):
    scale = query.size(-1) ** -0.5
    weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", query, key) * scale, dim=-1)
    output = torch.einsum("bhqk,bhkv->bhqv", weights, value)
    return output, weights


@right(attention)
def _(query, key, value):
    scores = (query / query.size(-1) ** 0.5) @ key.mT
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    # a column of ones beside the values: there the product gives the sum of the powers
    both = powers @ torch.cat((value, value.new_ones(*value.shape[:-1], 1)), dim=-1)
    return both[..., :-1] / both[..., -1:]


@wrong(
    single_head,
    "All sentences are laid one after another, so tokens attend to those of other sentences in the batch as well.",
)
def _(x, w_q, w_k, w_v):
    batch, seq, d_model = x.shape
    tokens = x.reshape(batch * seq, d_model)
    query, key, value = tokens @ w_q, tokens @ w_k, tokens @ w_v
    weights = torch.softmax(query @ key.T / query.shape[-1] ** 0.5, dim=-1)
    return (weights @ value).reshape(batch, seq, -1)


@wrong(single_head, "The head axis is removed with a bare squeeze, which removes every other axis of size 1 as well.")
def _(x, w_q, w_k, w_v):
    q = (x @ w_q).unsqueeze(1)
    k = (x @ w_k).unsqueeze(1)
    v = (x @ w_v).unsqueeze(1)
    weights = ((q @ k.transpose(2, 3)) / math.sqrt(q.size(3))).softmax(3)
    return (weights @ v).squeeze()


@wrong(single_head, "The scores are divided by the root of d_model instead of d_head.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.transpose(-2, -1) / math.sqrt(x.shape[-1])
    return scores.softmax(dim=-1) @ value


@wrong(
    single_head, "The softmax runs along axis 1, the queries: the columns of the table sum to one instead of the rows."
)
def _(x, w_q, w_k, w_v):
    query = torch.matmul(x, w_q)
    key = torch.matmul(x, w_k)
    value = torch.matmul(x, w_v)
    scores = torch.bmm(query, key.transpose(1, 2)) / w_k.shape[1] ** 0.5
    return torch.bmm(torch.softmax(scores, dim=1), value)


@right(single_head)
def _(x, w_q, w_k, w_v):
    form = w_q @ w_k.T / w_q.shape[1] ** 0.5  # (d_model, d_model): query and key in one
    weights = torch.einsum("bid,de,bje->bij", x, form, x).softmax(2)
    return (weights @ x) @ w_v  # blending first, then projecting, is the same


@wrong(sinusoidal_positions, "The index, which is 2i already, is doubled once more: the exponent is 4i / d_model.")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    for pos in range(seq):
        for i in range(0, d_model, 2):
            angle = pos / (10000 ** ((2 * i) / d_model))
            pe[pos, i] = math.sin(angle)
            if i + 1 < d_model:
                pe[pos, i + 1] = math.cos(angle)
    return pe


@wrong(sinusoidal_positions, "An odd d_model gives one column too many: the last cosine is not cut off.")
def _(seq, d_model):
    position = torch.arange(seq, dtype=torch.float32).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    angles = position * div_term
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


@wrong(
    sinusoidal_positions,
    "The power is taken before the division: the divisors are 10000 ** (2i) / d_model, not 10000 ** (2i / d_model).",
)
def _(seq, d_model):
    positions = torch.arange(seq)[:, None]
    two_i = torch.arange(0, d_model, 2).float()
    angles = positions / (10000.0**two_i / d_model)
    table = torch.empty(seq, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table


@wrong(sinusoidal_positions, "The numbers are right but the dtype is float64 instead of float32.")
def _(seq, d_model):
    pos = np.arange(seq)[:, np.newaxis]
    i = np.arange(d_model)[np.newaxis, :]
    angles = pos / np.power(10000, (2 * (i // 2)) / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.from_numpy(angles)


@right(sinusoidal_positions)
def _(seq, d_model):
    divisors = 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(seq, dtype=torch.float64)[:, None] / divisors
    circle = torch.polar(torch.ones_like(angles), angles)  # cos + i sin
    return torch.view_as_real(circle).flip(-1).flatten(1)[:, :d_model].float()


@wrong(
    mend_word_order,
    "Each row is repeated batch times on the spot, not the whole table: in a larger batch words get wrong rows.",
)
def _(x, positions, w_q, w_k, w_v):
    batch, seq, d_model = x.shape
    rows = positions[:seq].repeat_interleave(batch, dim=0).view(batch, seq, d_model)
    x = x + rows
    return tl.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(
    mend_word_order, "The positions are added for query and key only: the values are made from the words without them."
)
def _(x, positions, w_q, w_k, w_v):
    placed = x + positions[: x.size(1)]
    query, key, value = placed @ w_q, placed @ w_k, x @ w_v
    return tl.scaled_dot_product_attention(query, key, value)


@wrong(
    mend_word_order,
    "The colon is missing: all words get one and the same row, number seq (an IndexError if max_len is seq).",
)
def _(x, positions, w_q, w_k, w_v):
    x = x + positions[x.size(1)]
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    return F.scaled_dot_product_attention(query, key, value)


@wrong(
    mend_word_order,
    "The rows still meet the batch axis, not seq: an error, wrong rows, or seq sentences made of a single one.",
)
def _(x, positions, w_q, w_k, w_v):
    rows = positions[: x.size(1)].unsqueeze(1)
    x = x + rows
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    return tl.scaled_dot_product_attention(query, key, value)


@right(mend_word_order)
def _(x, positions, w_q, w_k, w_v):
    places = positions.narrow(0, 0, x.size(1))
    query, key, value = (x @ w + places @ w for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(query, key, value)
