"""Held out: answers to assignment 3."""

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

from .. import right, wrong


@wrong(softmax, "x.max(dim, keepdim=True) is taken for a tensor: it is a pair of values and indices.")
def _(x, dim):
    x = x - x.max(dim, keepdim=True)
    return x.exp() / x.exp().sum(dim, keepdim=True)


@wrong(softmax, "The largest number of the whole tensor is subtracted, so a row far below it underflows to 0 / 0.")
def _(x, dim):
    e = torch.exp(x - x.max())
    return e / e.sum(dim=dim, keepdim=True)


@wrong(softmax, "It is divided by the sum of the scores, not of their exponentials.")
def _(x, dim):
    x = x - x.amax(dim, keepdim=True)
    return torch.exp(x) / x.sum(dim, keepdim=True)


@wrong(softmax, "The scores are clamped so that exp does not overflow, so large scores become equal.")
def _(x, dim):
    e = torch.exp(x.clamp(max=80))
    return e / e.sum(dim=dim, keepdim=True)


@right(softmax)
def _(x, dim):
    rows = x.movedim(dim, -1)
    rows = rows - rows.max(-1).values[..., None]
    rows = rows.exp()
    return torch.movedim(rows / rows.sum(-1)[..., None], -1, dim)


@wrong(attention_weights, "They are divided by d_head, not by its root.")
def _(query, key):
    d = query.shape[-1]
    return torch.softmax(query @ key.transpose(-2, -1) / d, dim=-1)


@wrong(attention_weights, "query.size(1) is the number of heads, not d_head.")
def _(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(1))
    return F.softmax(scores, dim=-1)


@wrong(attention_weights, "The softmax is missing: the scaled scores are returned.")
def _(query, key):
    return torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(key.size(-1))


@wrong(
    attention_weights,
    "** binds stronger than /: the exponent 1/2 without brackets makes it d ** 1 / 2, half of d_head.",
)
def _(query, key):
    d_head = query.shape[-1]
    scores = query @ key.mT / (d_head**1 / 2)
    return scores.softmax(dim=-1)


@right(attention_weights)
def _(query, key):
    scores = torch.einsum("bhid,bhjd->bhij", query * query.size(-1) ** -0.5, key)
    scores = scores - scores.max(dim=-1, keepdim=True)[0]
    weights = torch.exp(scores)
    return F.normalize(weights, p=1.0, dim=-1)


@wrong(attention, "The weights are returned, not the blend.")
def _(query, key, value):
    weights = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, dim=-1)
    return weights


@wrong(attention, "No softmax: the scores themselves weight the values.")
def _(query, key, value):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores @ value


@wrong(attention, "The blend is made of the keys; value is not used.")
def _(query, key, value):
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    return scores.softmax(dim=-1) @ key


@wrong(attention, "A pair is returned, as in the tutorial that it comes from: output and weights.")
def _(query, key, value):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    p_attn = F.softmax(scores, dim=-1)
    return torch.matmul(p_attn, value), p_attn


@right(attention)
def _(query, key, value):
    out = torch.empty(*query.shape[:-1], value.shape[-1], dtype=value.dtype, device=value.device)
    for i in range(query.shape[-2]):
        score = (key * query[..., i : i + 1, :]).sum(-1) / query.shape[-1] ** 0.5
        weight = torch.softmax(score, -1)
        out[..., i, :] = (weight[..., None] * value).sum(-2)
    return out


@wrong(single_head, "The key is made with w_q as well: w_k is not used.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_q, x @ w_v
    return F.scaled_dot_product_attention(query, key, value)


@wrong(single_head, "It scales by the root of d_model instead of d_head.")
def _(x, w_q, w_k, w_v):
    d = x.shape[-1]
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    return torch.softmax(query @ key.transpose(1, 2) / d**0.5, dim=-1) @ value


@wrong(single_head, "query and key change places.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_k, x @ w_q, x @ w_v
    return F.scaled_dot_product_attention(query, key, value)


@wrong(single_head, "transpose(2, 3) asks for a fourth axis, which x does not have.")
def _(x, w_q, w_k, w_v):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
    return F.softmax(scores, dim=-1) @ value


@right(single_head)
def _(x, w_q, w_k, w_v):
    outs = []
    for sentence in x:
        q, k, v = (sentence.mm(w) for w in (w_q, w_k, w_v))
        outs.append(F.softmax(q.mm(k.t()) / math.sqrt(k.size(1)), dim=1).mm(v))
    return torch.stack(outs)


@wrong(sinusoidal_positions, "An odd d_model fails: there is one cosine fewer than sines.")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    position = torch.arange(0, seq, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@wrong(sinusoidal_positions, "The 2 in the exponent is doubled: i already counts in steps of two.")
def _(seq, d_model):
    pe = torch.zeros(seq, d_model)
    for p in range(seq):
        for i in range(0, d_model, 2):
            angle = p / 10000 ** (2 * i / d_model)
            pe[p, i] = math.sin(angle)
            if i + 1 < d_model:
                pe[p, i + 1] = math.cos(angle)
    return pe


@wrong(sinusoidal_positions, "Sine and cosine are swapped: the even features are cosines.")
def _(seq, d_model):
    p = torch.arange(seq).float()[:, None]
    i = torch.arange(d_model) // 2
    angle = p / 10000 ** (2 * i / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.cos(), angle.sin())


@wrong(sinusoidal_positions, "1000 stands where the formula has 10000.")
def _(seq, d_model):
    angle = torch.arange(seq).float()[:, None] / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    pe = torch.zeros(seq, d_model)
    pe[:, ::2] = angle.sin()
    pe[:, 1::2] = angle.cos()[:, : d_model // 2]
    return pe


@right(sinusoidal_positions)
def _(seq, d_model):
    i = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    angle = torch.outer(torch.arange(seq, dtype=torch.float64), 10000.0 ** (-2 * i / d_model))
    both = torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)
    return both[:, :d_model].float()


@wrong(mend_word_order, "The whole table is added, which has more rows than the sentence has words.")
def _(x, positions, w_q, w_k, w_v):
    x = x + positions
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "The sum is thrown away, so the words attend without positions.")
def _(x, positions, w_q, w_k, w_v):
    x.add(positions[: x.size(1)])
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "x is changed in place by +=.")
def _(x, positions, w_q, w_k, w_v):
    x += positions[: x.shape[1]]
    return F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)


@wrong(mend_word_order, "The positions are added after the attention, where the widths do not fit.")
def _(x, positions, w_q, w_k, w_v):
    out = F.scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v)
    return out + positions[: x.shape[1]]


@right(mend_word_order)
def _(x, positions, w_q, w_k, w_v):
    placed = x.clone()
    for t in range(x.size(1)):
        placed[:, t] += positions[t]
    q, k, v = (torch.einsum("bsm,md->bsd", placed, w) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v)
