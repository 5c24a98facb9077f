"""Held out: answers to assignment 4."""

import math

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import mend_folded_heads, merge_heads, multi_head_attention, split_heads, unpack_projection

from .. import right, wrong


@wrong(split_heads, "The transpose is missing: heads stands after seq.")
def _(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads)


@wrong(split_heads, "n_heads is taken for d_head: there are d_model // n_heads heads of n_heads features.")
def _(x, n_heads):
    b, s, _ = x.shape
    return x.reshape(b, s, -1, n_heads).transpose(1, 2)


@wrong(split_heads, "The result of transpose is thrown away.")
def _(x, n_heads):
    b, s, d = x.shape
    x = x.reshape(b, s, n_heads, d // n_heads)
    x.transpose(1, 2)
    return x


@wrong(split_heads, "view folds batch and seq of an x that need not be contiguous, and PyTorch refuses it then.")
def _(x, n_heads):
    b, s, d = x.shape
    return x.view(b * s, n_heads, d // n_heads).view(b, s, n_heads, d // n_heads).transpose(1, 2)


@right(split_heads)
def _(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).permute(0, 2, 1, 3).contiguous()


@wrong(merge_heads, "view after transpose: the tensor is not contiguous, and PyTorch refuses.")
def _(x):
    batch, heads, seq, d = x.shape
    return x.transpose(1, 2).view(batch, seq, heads * d)


@wrong(merge_heads, "The heads are added up, not put side by side.")
def _(x):
    return x.sum(dim=1)


@wrong(merge_heads, "Heads and d_value are not merged: it stops after the transpose.")
def _(x):
    return x.transpose(1, 2)


@wrong(merge_heads, "The wrong two axes change places: seq and d_value.")
def _(x):
    b, h, s, d = x.shape
    return x.transpose(2, 3).reshape(b, s, h * d)


@right(merge_heads)
def _(x):
    return torch.einsum("bhsd->bshd", x).flatten(-2)


@wrong(multi_head_attention, "The weights are not transposed.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (tl.split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return tl.merge_heads(tl.scaled_dot_product_attention(q, k, v)) @ w_o


@wrong(multi_head_attention, "It scales by the root of d_model, not of d_head.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    b, s, d = x.shape
    q, k, v = ((x @ w.T).view(b, s, n_heads, d // n_heads).transpose(1, 2) for w in (w_q, w_k, w_v))
    weights = torch.softmax(q @ k.mT / math.sqrt(d), dim=-1)
    return (weights @ v).transpose(1, 2).reshape(b, s, d) @ w_o.T


@wrong(multi_head_attention, "At the end it is reshaped without swapping heads and seq back.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (tl.split_heads(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    out = tl.scaled_dot_product_attention(q, k, v)
    return out.reshape(x.shape) @ w_o.T


@wrong(multi_head_attention, "x is added at the end: a residual connection that belongs to the block around it.")
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (tl.split_heads(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    return x + tl.merge_heads(tl.scaled_dot_product_attention(q, k, v)) @ w_o.T


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    y = x.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        y,
        y,
        y,
        x.shape[-1],
        n_heads,
        torch.cat([w_q, w_k, w_v]),
        None,
        None,
        None,
        False,
        0.0,
        w_o,
        None,
        need_weights=False,
    )
    return out.transpose(0, 1)


@wrong(unpack_projection, "It cuts the columns, not the rows.")
def _(in_proj_weight):
    return in_proj_weight.chunk(3, dim=1)


@wrong(unpack_projection, "The order is keys, queries, values.")
def _(in_proj_weight):
    q, k, v = in_proj_weight.chunk(3)
    return k, q, v


@wrong(unpack_projection, "One tensor (3, d_model, d_model) is returned instead of a tuple of three.")
def _(in_proj_weight):
    d = in_proj_weight.size(1)
    return in_proj_weight.reshape(3, d, d)


@wrong(unpack_projection, "d is taken from the first axis, which is 3 · d_model long.")
def _(in_proj_weight):
    d = in_proj_weight.shape[0]
    return in_proj_weight[:d], in_proj_weight[d : 2 * d], in_proj_weight[2 * d :]


@right(unpack_projection)
def _(in_proj_weight):
    return tuple(in_proj_weight.unflatten(0, (3, -1)).unbind(0))


@wrong(mend_folded_heads, "The reshape is fixed, but the permute still expects heads in front.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query, key, value = (x.reshape(batch * heads, seq, d_head) for x in (query, key, value))
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(batch, heads, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@wrong(mend_folded_heads, "The scale is lost in the rewrite.")
def _(query, key, value):
    out = torch.softmax(query @ key.transpose(-2, -1), dim=-1) @ value
    return out.transpose(1, 2).flatten(2)


@wrong(mend_folded_heads, "The heads are not put side by side: (batch, heads, seq, d_head).")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (x.flatten(0, 1) for x in (query, key, value))
    scores = torch.bmm(q, k.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), v)
    return output.unflatten(0, (batch, heads))


@wrong(mend_folded_heads, "It folds with heads in front of batch, and unfolds with batch in front of heads.")
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (x.transpose(0, 1).reshape(heads * batch, seq, d_head) for x in (query, key, value))
    weights = (torch.bmm(q, k.transpose(1, 2)) / d_head**0.5).softmax(-1)
    output = torch.bmm(weights, v).reshape(batch, heads, seq, d_head)
    return output.transpose(1, 2).reshape(batch, seq, heads * d_head)


@right(mend_folded_heads)
def _(query, key, value):
    outputs = []
    for q, k, v in zip(query.unbind(1), key.unbind(1), value.unbind(1)):
        scores = torch.baddbmm(q.new_zeros(()), q, k.mT, alpha=q.shape[-1] ** -0.5)
        outputs.append(torch.bmm(scores.softmax(-1), v))
    return torch.cat(outputs, -1)
