"""Answers to assignment 4, with one slip and with two, by a fifth author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import multi_head_attention, split_heads

from .. import right, wrong


def _split(x, n):
    return x.unflatten(-1, (n, -1)).transpose(1, 2)


@right(split_heads)
def _(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@right(split_heads)
def _(x, n_heads):
    d = x.size(-1) // n_heads
    return x.unfold(-1, d, d).movedim(-2, 1)


@wrong(split_heads, "The heads are cut by a reshape, without moving an axis, so tokens are mixed.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, n_heads, s, d // n_heads)


@wrong(split_heads, "Each head takes every n_heads-th feature.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, d // n_heads, n_heads).permute(0, 3, 1, 2)


@wrong(split_heads, "Heads stay behind seq.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, n_heads, d // n_heads)


@wrong(split_heads, "Each head takes every n_heads-th feature.", "Heads stay behind seq.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, d // n_heads, n_heads).transpose(2, 3)


@wrong(split_heads, "Each head takes every n_heads-th feature.", "d_head stands before seq.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, d // n_heads, n_heads).permute(0, 3, 2, 1)


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    out = 0
    for q, k, v, o in zip(w_q.chunk(n_heads), w_k.chunk(n_heads), w_v.chunk(n_heads), w_o.chunk(n_heads, dim=1)):
        a = (x @ q.T) @ (x @ k.T).mT / q.shape[0] ** 0.5
        out = out + a.softmax(-1) @ (x @ v.T) @ o.T
    return out


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (F.linear(x, w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    return F.linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), w_o)


@wrong(multi_head_attention, "The scores are divided by the root of d_model.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (_split(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    a = (q @ k.mT / x.shape[-1] ** 0.5).softmax(-1)
    return (a @ v).transpose(1, 2).flatten(2) @ w_o.T


@wrong(multi_head_attention, "The output projection is missing.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (_split(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


@wrong(multi_head_attention, "w_o is not transposed.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (_split(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o


@wrong(multi_head_attention, "The output projection is missing.", "The scores are not scaled.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (_split(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    a = (q @ k.mT).softmax(-1)
    return (a @ v).transpose(1, 2).flatten(2)


@wrong(multi_head_attention, "Later tokens are hidden.", "The heads are merged without moving an axis.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (_split(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.reshape(x.shape) @ w_o.T
