"""A second author: answers to chapter 3's exercises."""

import math

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def softmax(x, dim):
    """Exercise 3.1, as its author calls it later."""
    exp = (x - x.amax(dim, keepdim=True)).exp()
    return exp / exp.sum(dim, keepdim=True)


def attention_weights(query, key):
    """Exercise 3.2, as its author calls it later."""
    return softmax(query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5, -1)


def attention(query, key, value):
    """Exercise 3.3, as its author calls it later."""
    return attention_weights(query, key) @ value


# softmax


@wrong(E.softmax, "No maximum is subtracted, so exp overflows for large scores and inf / inf gives NaN.")
def _(x, dim):
    e = torch.exp(x)
    return e / e.sum(dim=dim, keepdim=True)


@wrong(
    E.softmax,
    "The maximum of the whole tensor is subtracted instead of that of each row: a row whose scores all lie far "
    "below the tensor's largest underflows to zeros, and 0 / 0 gives NaN. Ordinary scores come out right.",
)
def _(x, dim):
    x = x - x.max()
    e = torch.exp(x)
    return e / torch.sum(e, dim=dim, keepdim=True)


@wrong(
    E.softmax,
    "x.max with an axis returns a pair (values, indices), not a tensor, so the subtraction raises TypeError. "
    "It needs .values or amax.",
)
def _(x, dim):
    e = torch.exp(x - x.max(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@right(E.softmax)
def _(x, dim):
    return (x - x.logsumexp(dim, keepdim=True)).exp()


# attention_weights


@wrong(
    E.attention_weights,
    "The softmax runs over axis 1, the heads, not over the keys: rows do not sum to one, and the heads share "
    "the weights out among themselves.",
)
def _(query, key):
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.size(-1))
    return softmax(scores, dim=1)


@wrong(
    E.attention_weights,
    "The division by the root of d_head comes after the softmax: the scores are not scaled, and the rows sum to "
    "1 / sqrt(d_head) instead of one.",
)
def _(query, key):
    return softmax(query @ key.mT, dim=-1) / query.shape[-1] ** 0.5


@wrong(
    E.attention_weights,
    "The dot products are divided by d_head itself and not by its root, so the weights are too even.",
)
def _(query, key):
    d_head = key.shape[-1]
    return softmax(torch.einsum("bhqd,bhkd->bhqk", query, key) / d_head, dim=-1)


# attention


@wrong(
    E.attention,
    "The weights are transposed before they meet the values, so the blend runs over the queries: raises where "
    "q_len and k_len differ, and sums with columns instead of rows of the table where they are equal.",
)
def _(query, key, value):
    weights = attention_weights(query, key)
    return weights.transpose(-2, -1) @ value


@wrong(
    E.attention,
    "A causal mask is applied (is_causal=True, copied from a GPT), which nobody asked for: query i sees only the keys "
    "0 to i.",
)
def _(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


@wrong(
    E.attention,
    "It returns a pair, the output and the weights, instead of the output alone.",
)
def _(query, key, value):
    weights = attention_weights(query, key)
    output = torch.matmul(weights, value)
    return output, weights


@right(E.attention)
def _(query, key, value):
    weights = attention_weights(query, key)
    return sum(weights[..., j, None] * value[..., j, None, :] for j in range(key.shape[-2]))


# single_head


@wrong(
    E.single_head,
    "The scores are divided by the root of d_model instead of d_head; the two differ wherever d_head is not d_model.",
)
def _(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.transpose(1, 2) / math.sqrt(x.size(-1))
    return torch.softmax(scores, dim=-1) @ v


@wrong(
    E.single_head,
    "Query and key are swapped: token i weighs with key i against all queries, so the table of scores is transposed.",
)
def _(x, w_q, w_k, w_v):
    return attention(x @ w_k, x @ w_q, x @ w_v)


@wrong(
    E.single_head,
    "A residual connection is added, which the task does not have: x comes on top of the result, and it raises (or "
    "broadcasts) where d_value is not d_model.",
)
def _(x, w_q, w_k, w_v):
    out = attention(x @ w_q, x @ w_k, x @ w_v)
    return x + out


# sinusoidal_positions


@wrong(
    E.sinusoidal_positions,
    "For an odd d_model it raises: there are more angles than cosine columns, and the angles are not cut for "
    "the cosine. Even sizes are right.",
)
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    position = torch.arange(0, seq, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@wrong(
    E.sinusoidal_positions,
    "All sines stand in the first half of the features and all cosines in the second, instead of taking turns.",
)
def _(seq, d_model):
    angles = torch.arange(seq)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :d_model]


@wrong(
    E.sinusoidal_positions,
    "The exponent has the factor 2 twice: arange(0, d_model, 2) is 2i already, so the divisors are 10000^(4i/d_model). "
    "Only the first pair is right.",
)
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    pos = torch.arange(seq).unsqueeze(1)
    i = torch.arange(0, d_model, 2)
    angle = pos / 10000 ** (2 * i / d_model)
    pe[:, 0::2] = torch.sin(angle)
    pe[:, 1::2] = torch.cos(angle)[:, : d_model // 2]
    return pe


@right(E.sinusoidal_positions)
def _(seq, d_model):
    rows = [
        [math.sin(p / 10000 ** ((j - j % 2) / d_model) + (math.pi / 2 if j % 2 else 0)) for j in range(d_model)]
        for p in range(seq)
    ]
    return torch.tensor(rows)


# mend_word_order


@wrong(
    E.mend_word_order,
    "The rows are now cut by seq, but the unsqueeze(1) is left: the positions, (seq, 1, d_model), still meet the batch "
    "axis. A batch of one becomes seq sentences, batch = seq gets a position for each sentence, other sizes raise.",
)
def _(x, positions, w_q, w_k, w_v):
    rows = positions[: x.size(1)].unsqueeze(1)
    x = x + rows
    return tl.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(
    E.mend_word_order,
    "The table is not cut to the sentence's length: it raises as soon as positions has more rows than there are words "
    "(for one word it broadcasts to max_len words).",
)
def _(x, positions, w_q, w_k, w_v):
    x = x + positions
    return tl.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(
    E.mend_word_order,
    "Only queries and keys get the positions; the values are made from the words without them.",
)
def _(x, positions, w_q, w_k, w_v):
    with_pos = x + positions[: x.shape[1]]
    query, key, value = with_pos @ w_q, with_pos @ w_k, x @ w_v
    return tl.scaled_dot_product_attention(query, key, value)
