"""Answers to assignment 4, by a fourth author."""

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    mend_folded_heads,
    merge_heads,
    multi_head_attention,
    split_heads,
    unpack_projection,
)

from .. import right, wrong


@wrong(split_heads, "It cuts the features into blocks of n_heads, so there are d_head heads.")
def _(x, n_heads):
    return torch.stack(x.split(n_heads, dim=-1), dim=1)


@wrong(split_heads, "Each head gets every n_heads-th feature instead of neighbours.")
def _(x, n_heads):
    batch, seq, d_model = x.shape
    d_head = d_model // n_heads
    return x.reshape(batch, seq, d_head, n_heads).permute(0, 3, 1, 2)


@right(split_heads)
def _(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=2), dim=1)


@wrong(merge_heads, "It asks for a view of a tensor whose axes were swapped, which raises.")
def _(x):
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 2).view(batch, seq, heads * d_value)


@wrong(merge_heads, "The heads alternate in a token's row, feature by feature, instead of standing side by side.")
def _(x):
    return x.permute(0, 2, 3, 1).flatten(start_dim=2)


@wrong(multi_head_attention, "It multiplies by w_o without transposing it.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split_heads.reference(F.linear(x, w), n_heads) for w in (w_q, w_k, w_v))
    blended = tl.scaled_dot_product_attention(q, k, v)
    return merge_heads.reference(blended) @ w_o


@wrong(multi_head_attention, "seq stays before heads, so the heads of one token attend to one another.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    batch, seq, d_model = x.shape
    d_head = d_model // n_heads
    q = (x @ w_q.T).view(batch, seq, n_heads, d_head)
    k = (x @ w_k.T).view(batch, seq, n_heads, d_head)
    v = (x @ w_v.T).view(batch, seq, n_heads, d_head)
    weights = torch.softmax(q @ k.transpose(-2, -1) / d_head**0.5, dim=-1)
    out = (weights @ v).reshape(batch, seq, d_model)
    return out @ w_o.T


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    d_head = x.size(-1) // n_heads
    output = torch.zeros_like(x)
    for start in range(0, x.size(-1), d_head):
        rows = slice(start, start + d_head)
        q, k, v = x @ w_q[rows].T, x @ w_k[rows].T, x @ w_v[rows].T
        weights = (q @ k.mT * d_head**-0.5).softmax(dim=-1)
        output = output + weights @ v @ w_o[:, rows].T
    return output


@wrong(unpack_projection, "It deals the rows out in turn: every third row goes to the same weight.")
def _(in_proj_weight):
    d_model = in_proj_weight.shape[1]
    return in_proj_weight.reshape(d_model, 3, d_model).unbind(dim=1)


@wrong(unpack_projection, "It returns the three weights transposed, as (in, out).")
def _(in_proj_weight):
    d = in_proj_weight.size(-1)
    w_q = in_proj_weight[:d]
    w_k = in_proj_weight[d : 2 * d]
    w_v = in_proj_weight[2 * d :]
    return w_q.T, w_k.T, w_v.T


@wrong(mend_folded_heads, "It unfolds in the right order, but reads (heads, seq) as (seq, heads) without moving axes.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q = query.reshape(batch * heads, seq, d_head)
    k = key.reshape(batch * heads, seq, d_head)
    v = value.reshape(batch * heads, seq, d_head)
    scores = torch.bmm(q, k.mT) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), v)
    return output.view(batch, heads, seq, d_head).reshape(batch, seq, heads * d_head)


@wrong(mend_folded_heads, "It unfolds in the right order, but still moves the axes as if heads stood before batch.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query = query.reshape(batch * heads, seq, d_head)
    key = key.reshape(batch * heads, seq, d_head)
    value = value.reshape(batch * heads, seq, d_head)
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(batch, heads, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@right(mend_folded_heads)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (x.flatten(0, 1) for x in (query, key, value))
    weights = torch.softmax(torch.bmm(q, k.mT) * d_head**-0.5, dim=-1)
    output = torch.bmm(weights, v)
    return torch.cat([output[head::heads] for head in range(heads)], dim=-1)
