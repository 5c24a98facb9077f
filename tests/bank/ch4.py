"""Answers to assignment 4."""

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import mend_folded_heads, merge_heads, multi_head_attention, split_heads, unpack_projection

from . import right, wrong


@wrong(
    split_heads,
    "view cuts straight into (batch, heads, seq, d_head): each head gets a stretch of tokens, not of features.",
)
def _(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@wrong(
    split_heads, "The features are dealt out in turn: head h gets every n_heads-th feature, not a block of neighbours."
)
def _(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, d_model // n_heads, n_heads).permute(0, 3, 1, 2)


@wrong(split_heads, "d_model / n_heads is a float, which view refuses.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.view(b, s, n_heads, d / n_heads).transpose(1, 2)


@wrong(split_heads, "transpose(0, 1) swaps batch and seq, not seq and heads.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, n_heads, d // n_heads).transpose(0, 1)


@right(split_heads)
def _(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@wrong(merge_heads, "The transpose is missing: reshape reads head by head, not token by token.")
def _(x):
    batch, heads, seq, d = x.shape
    return x.reshape(batch, seq, heads * d)


@wrong(merge_heads, "The features of the heads alternate: d_value stands before heads when they are merged.")
def _(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@wrong(merge_heads, "The mean over the heads is taken.")
def _(x):
    return x.transpose(1, 2).mean(dim=2)


@wrong(merge_heads, "The heads are put below one another, along seq.")
def _(x):
    return torch.cat(list(x.unbind(1)), dim=1)


@right(merge_heads)
def _(x):
    return torch.cat([x[:, h] for h in range(x.size(1))], dim=-1)


@wrong(multi_head_attention, "The output projection is left out: w_o is not used.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (tl.split_heads(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    return tl.merge_heads(tl.scaled_dot_product_attention(q, k, v))


@wrong(multi_head_attention, "It is not cut into heads: one head of the whole width.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    return F.scaled_dot_product_attention(q, k, v) @ w_o.T


@wrong(multi_head_attention, "w_o is not transposed, the other three are.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (tl.split_heads(F.linear(x, w), n_heads) for w in (w_q, w_k, w_v))
    return tl.merge_heads(tl.scaled_dot_product_attention(q, k, v)) @ w_o


@wrong(multi_head_attention, "The heads are cut by view alone, so each gets a stretch of tokens.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    b, s, d = x.shape
    q, k, v = ((x @ w.T).view(b, n_heads, s, d // n_heads) for w in (w_q, w_k, w_v))
    out = F.scaled_dot_product_attention(q, k, v)
    return out.transpose(1, 2).reshape(b, s, d) @ w_o.T


@wrong(
    multi_head_attention,
    "Heads attend to heads: seq and heads are not swapped, so every token's heads look at one another.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = ((x @ w.T).unflatten(-1, (n_heads, -1)) for w in (w_q, w_k, w_v))
    out = F.scaled_dot_product_attention(q, k, v)
    return out.flatten(-2) @ w_o.T


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    out = 0
    for q, k, v, o in zip(*(w.chunk(n_heads) for w in (w_q, w_k, w_v)), w_o.chunk(n_heads, dim=1)):
        weights = ((x @ q.T) @ (x @ k.T).mT / len(q) ** 0.5).softmax(-1)
        out = out + weights @ (x @ v.T) @ o.T
    return out


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (torch.einsum("bsm,hdm->bhsd", x, w.unflatten(0, (n_heads, -1))) for w in (w_q, w_k, w_v))
    a = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhqk,bhkd,mhd->bqm", a.softmax(-1), v, w_o.unflatten(1, (n_heads, -1)))


@wrong(unpack_projection, "split(3) makes pieces of three rows, not three pieces.")
def _(in_proj_weight):
    return in_proj_weight.split(3)


@wrong(unpack_projection, "The weights are dealt out row by row in turn: reshape to (d_model, 3, d_model).")
def _(in_proj_weight):
    d = in_proj_weight.shape[1]
    w = in_proj_weight.reshape(d, 3, d)
    return w[:, 0], w[:, 1], w[:, 2]


@wrong(unpack_projection, "Each weight is transposed.")
def _(in_proj_weight):
    q, k, v = in_proj_weight.chunk(3)
    return q.T, k.T, v.T


@wrong(unpack_projection, "The slices are one row too long: d + 1, 2 d + 1.")
def _(in_proj_weight):
    d = in_proj_weight.shape[1]
    return in_proj_weight[: d + 1], in_proj_weight[d + 1 : 2 * d + 1], in_proj_weight[2 * d + 1 :]


@right(unpack_projection)
def _(in_proj_weight):
    return torch.tensor_split(in_proj_weight, 3)


@right(unpack_projection)
def _(in_proj_weight):
    d = in_proj_weight.shape[1]
    return tuple(in_proj_weight.narrow(0, i * d, d).clone() for i in range(3))


@wrong(mend_folded_heads, "The program as given: heads and batch are unfolded in the wrong order.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query, key, value = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(heads, batch, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@wrong(mend_folded_heads, "The heads are merged without swapping heads and seq first.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query, key, value = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    return output.reshape(batch, seq, heads * d_head)


@wrong(mend_folded_heads, "The scores are not put through a softmax over the keys but over the folded axis, dim=0.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query, key, value = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=0), value)
    output = output.reshape(batch, heads, seq, d_head)
    return output.permute(0, 2, 1, 3).reshape(batch, seq, heads * d_head)


@wrong(mend_folded_heads, "seq is folded with batch: each head's tokens of all sentences attend to one another.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (x.transpose(0, 1).reshape(heads, batch * seq, d_head) for x in (query, key, value))
    scores = torch.bmm(q, k.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), v)
    return output.reshape(heads, batch, seq, d_head).permute(1, 2, 0, 3).flatten(2)


@right(mend_folded_heads)
def _(query, key, value):
    return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
