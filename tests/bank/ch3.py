"""Answers to assignment 3."""

import math

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    attention,
    attention_weights,
    mend_word_order,
    single_head,
    sinusoidal_positions,
    softmax,
)

from . import right, wrong


@wrong(softmax, "No maximum is subtracted, so large scores give inf / inf.")
def _(x, dim):
    e = torch.exp(x)
    return e / e.sum(dim=dim, keepdim=True)


@wrong(softmax, "dim is not used: the sum is always over the last axis.")
def _(x, dim):
    e = torch.exp(x - x.max())
    return e / e.sum(dim=-1, keepdim=True)


@wrong(softmax, "keepdim is missing in the sum.")
def _(x, dim):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim)


@wrong(softmax, "It returns the logarithms of the weights: the last exponential is missing.")
def _(x, dim):
    return x - torch.logsumexp(x, dim=dim, keepdim=True)


@wrong(softmax, "The subtraction is in place and changes the scores that came in.")
def _(x, dim):
    x -= x.amax(dim=dim, keepdim=True)
    e = x.exp()
    return e / e.sum(dim=dim, keepdim=True)


@right(softmax)
def _(x, dim):
    return (x - x.logsumexp(dim, keepdim=True)).exp()


@right(softmax)
def _(x, dim):
    return F.log_softmax(x, dim=dim).exp()


@wrong(attention_weights, "The scores are not scaled by the root of d_head.")
def _(query, key):
    return (query @ key.transpose(-2, -1)).softmax(dim=-1)


@wrong(attention_weights, "The softmax runs over the queries, not over the keys.")
def _(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    return F.softmax(scores, dim=-2)


@wrong(attention_weights, "The scores are multiplied by the root of d_head instead of divided.")
def _(query, key):
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key)
    return torch.softmax(scores * query.shape[-1] ** 0.5, -1)


@wrong(attention_weights, "It scales after the softmax, so the rows do not sum to one.")
def _(query, key):
    weights = (query @ key.transpose(-2, -1)).softmax(-1)
    return weights / query.shape[-1] ** 0.5


@right(attention_weights)
def _(query, key):
    d = key.shape[-1]
    scores = (query / d**0.25) @ (key / d**0.25).mT
    return scores.softmax(3)


@right(attention_weights)
def _(query, key):
    eye = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device).expand(*key.shape[:-1], -1)
    return F.scaled_dot_product_attention(query, key, eye)


@wrong(attention, "The scale is forgotten.")
def _(query, key, value):
    weights = torch.softmax(query @ key.transpose(-1, -2), dim=-1)
    return weights @ value


@wrong(attention, "d is taken from the value, whose width may be another.")
def _(query, key, value):
    d = value.shape[-1]
    weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(d), dim=-1)
    return weights @ value


@wrong(attention, "The softmax has dim=1, which is the axis of heads.")
def _(query, key, value):
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=1) @ value


@wrong(attention, "The weights are transposed before they meet the values.")
def _(query, key, value):
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1).transpose(-2, -1) @ value


@right(attention)
def _(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


@right(attention)
def _(query, key, value):
    scores = torch.einsum("bhqd,bhkd->bhkq", query, key).div(query.shape[-1] ** 0.5)
    return torch.einsum("bhkq,bhkv->bhqv", scores.softmax(2), value)


@wrong(single_head, "The weights are transposed as for PyTorch's layers, though they should be used as they are.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q.T, x @ w_k.T, x @ w_v.T
    return F.scaled_dot_product_attention(query, key, value)


@wrong(single_head, "x itself is blended: the projection to values is missing.")
def _(x, w_q, w_k, w_v):
    query, key = x @ w_q, x @ w_k
    weights = torch.softmax(query @ key.transpose(-2, -1) / w_q.shape[1] ** 0.5, dim=-1)
    return weights @ x


@wrong(single_head, "It is a decoder's head: a causal mask hides later tokens, which nobody asked for.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong(single_head, "The softmax is over dim=1, which is the queries here.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return F.softmax(scores, dim=1) @ value


@right(single_head)
def _(x, w_q, w_k, w_v):
    scores = x @ (w_q @ w_k.T) @ x.mT
    return (scores / w_q.shape[-1] ** 0.5).softmax(-1) @ x @ w_v


@wrong(sinusoidal_positions, "The sines fill the first half and the cosines the second, not in turns.")
def _(seq, d_model):
    p = torch.arange(seq, dtype=torch.float32)[:, None]
    div = 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([torch.sin(p / div), torch.cos(p / div)], dim=1)[:, :d_model]


@wrong(sinusoidal_positions, "Each feature has its own exponent, so the cosine has another angle than its sine.")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    for p in range(seq):
        for j in range(d_model):
            angle = p / 10000 ** (j / d_model)
            pe[p, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return pe


@wrong(sinusoidal_positions, "The positions begin with 1, not with 0.")
def _(seq, d_model):
    p = torch.arange(1, seq + 1).float()[:, None]
    i = torch.arange(d_model) // 2
    angle = p / 10000 ** (2 * i / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos())


@wrong(sinusoidal_positions, "The batch axis of the well-known module is left on: (1, seq, d_model).")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    position = torch.arange(seq).float().unsqueeze(1)
    angle = position / 10000 ** (torch.arange(0, d_model, 2).float() / d_model)
    pe[:, 0::2] = angle.sin()
    pe[:, 1::2] = angle.cos()[:, : d_model // 2]
    return pe.unsqueeze(0)


@right(sinusoidal_positions)
def _(seq, d_model):
    rows = []
    for p in range(seq):
        row = []
        for i in range((d_model + 1) // 2):
            angle = p / 10000 ** (2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row[:d_model])
    return torch.tensor(rows)


@wrong(mend_word_order, "The program as given: every sentence gets the position of its place in the batch.")
def _(x, positions, w_q, w_k, w_v):
    rows = positions[: x.size(0)].unsqueeze(1)
    x = x + rows
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "The positions are added to queries and keys' input only, not to that of the values.")
def _(x, positions, w_q, w_k, w_v):
    placed = x + positions[: x.size(1)]
    return F.scaled_dot_product_attention(placed @ w_q, placed @ w_k, x @ w_v)


@wrong(mend_word_order, "The last rows of the table are taken, not the first.")
def _(x, positions, w_q, w_k, w_v):
    x = x + positions[-x.shape[1] :]
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "The row of the sentence's length is added to all words: an index instead of a slice.")
def _(x, positions, w_q, w_k, w_v):
    x = x + positions[x.shape[1] - 1]
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "The words are multiplied by the positions, where they should be added.")
def _(x, positions, w_q, w_k, w_v):
    x = x * positions[: x.shape[1]]
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@right(mend_word_order)
def _(x, positions, w_q, w_k, w_v):
    place = torch.arange(x.shape[1], device=x.device)
    x = x + F.embedding(place, positions)
    q, k, v = torch.cat([x @ w_q, x @ w_k, x @ w_v], -1).split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], -1)
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
