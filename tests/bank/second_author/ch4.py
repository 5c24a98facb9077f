"""A second author: answers to chapter 4's exercises."""

import torch

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def split_heads(x, n_heads):
    """Exercise 4.1, as its author calls it later."""
    batch, seq, d_model = x.shape
    return x.reshape(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)


def merge_heads(x):
    """Exercise 4.2, as its author calls it later."""
    return x.transpose(1, 2).flatten(2)


# split_heads


@wrong(
    E.split_heads,
    "One reshape straight to (batch, heads, seq, d_head), without a transpose: the shape is right, but a head gets "
    "features of few tokens instead of a block of every token's features.",
)
def _(x, n_heads):
    batch, seq, d_model = x.shape
    return x.reshape(batch, n_heads, seq, d_model // n_heads)


@wrong(
    E.split_heads,
    "The features are cut as (d_head, heads), so a head gets every n_heads-th feature instead of neighbouring ones.",
)
def _(x, n_heads):
    b, s, d = x.shape
    return x.view(b, s, d // n_heads, n_heads).permute(0, 3, 1, 2)


@wrong(
    E.split_heads,
    "split takes the size of a piece and not the number of pieces: the numbers of heads and of features in a head are "
    "exchanged. Right only where d_head equals n_heads.",
)
def _(x, n_heads):
    return torch.stack(x.split(n_heads, dim=-1), dim=1)


@right(E.split_heads)
def _(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


# merge_heads


@wrong(
    E.merge_heads,
    "view after transpose, without contiguous(): raises a RuntimeError, since the strides do not allow that view "
    "(unless there is one head or one token only).",
)
def _(x):
    batch, heads, seq, d_value = x.shape
    return x.transpose(1, 2).view(batch, seq, heads * d_value)


@wrong(
    E.merge_heads,
    "The heads stand last when they are merged, so the features of the heads take turns instead of standing "
    "side by side in blocks: [1, 2] and [3, 4] become [1, 3, 2, 4].",
)
def _(x):
    b, h, s, d = x.shape
    return x.permute(0, 2, 3, 1).reshape(b, s, d * h)


@wrong(
    E.merge_heads,
    "squeeze() without an axis removes every axis of size 1: right in general, but with a batch of one or a "
    "single token those axes are lost as well.",
)
def _(x):
    return torch.cat(x.chunk(x.size(1), dim=1), dim=-1).squeeze()


# multi_head_attention


@wrong(
    E.multi_head_attention,
    "The scores are divided by the root of d_model instead of d_head, the width of one head; right for one head only.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    d_model = x.shape[-1]
    q, k, v = (split_heads(x @ w.T, n_heads) for w in (w_q, w_k, w_v))
    weights = (q @ k.mT / d_model**0.5).softmax(dim=-1)
    return merge_heads(weights @ v) @ w_o.T


@wrong(
    E.multi_head_attention,
    "The heads are merged by a reshape without bringing them behind the tokens first, so the numbers of "
    "different tokens and heads are mixed up.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    batch, seq, d_model = x.shape
    q = split_heads(x @ w_q.T, n_heads)
    k = split_heads(x @ w_k.T, n_heads)
    v = split_heads(x @ w_v.T, n_heads)
    out = tl.scaled_dot_product_attention(q, k, v)
    return out.reshape(batch, seq, d_model) @ w_o.T


@wrong(
    E.multi_head_attention,
    "The output projection is not transposed: x @ w_o where the weight is stored as (out, in). The other three are "
    "right.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = [split_heads(x @ w.T, n_heads) for w in (w_q, w_k, w_v)]
    return merge_heads(tl.scaled_dot_product_attention(q, k, v)) @ w_o


@right(E.multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    output = 0
    pieces = (w_q.chunk(n_heads), w_k.chunk(n_heads), w_v.chunk(n_heads), w_o.chunk(n_heads, dim=1))
    for q, k, v, o in zip(*pieces):
        output = output + tl.scaled_dot_product_attention(x @ q.T, x @ k.T, x @ v.T) @ o.T
    return output


# unpack_projection


@wrong(
    E.unpack_projection,
    "split(3) cuts pieces of three rows instead of three pieces: there are d_model pieces of the shape (3, d_model). "
    "Right only for d_model = 3.",
)
def _(in_proj_weight):
    return in_proj_weight.split(3)


@wrong(
    E.unpack_projection,
    "Every third row is taken, as if the rows of the three weights took turns, instead of three blocks of neighbouring "
    "rows.",
)
def _(in_proj_weight):
    return in_proj_weight[0::3], in_proj_weight[1::3], in_proj_weight[2::3]


@wrong(
    E.unpack_projection,
    "The three blocks are right, but each is returned transposed, as (in, out).",
)
def _(in_proj_weight):
    w_q, w_k, w_v = in_proj_weight.chunk(3, dim=0)
    return w_q.T, w_k.T, w_v.T


# mend_folded_heads


@wrong(
    E.mend_folded_heads,
    "The folded axis is taken apart in the right order, but seq and heads are not swapped before the merge: "
    "the reshape mixes tokens and heads, also in a batch of one.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    q, k, v = (t.reshape(batch * heads, seq, d_head) for t in (query, key, value))
    scores = torch.bmm(q, k.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), v)
    return output.reshape(batch, heads, seq, d_head).reshape(batch, seq, heads * d_head)


@wrong(
    E.mend_folded_heads,
    "The folded axis is taken apart as (batch, heads) now, but the permute still expects (heads, batch): it moves the "
    "heads to the front and the batch next to the features, so numbers are mixed up, also in a batch of one.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query = query.reshape(batch * heads, seq, d_head)
    key = key.reshape(batch * heads, seq, d_head)
    value = value.reshape(batch * heads, seq, d_head)
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(batch, heads, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@wrong(
    E.mend_folded_heads,
    "Queries and keys are folded with heads outside and batch inside, to fit the unfolding, but the values are still "
    "folded with batch outside: weights meet the values of another sentence or head. Right for a batch of one.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query = query.transpose(0, 1).reshape(batch * heads, seq, d_head)
    key = key.transpose(0, 1).reshape(batch * heads, seq, d_head)
    value = value.reshape(batch * heads, seq, d_head)
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(heads, batch, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@right(E.mend_folded_heads)
def _(query, key, value):
    sentences = []
    for q, k, v in zip(query, key, value):
        scores = torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5
        sentences.append(torch.cat(list(torch.bmm(scores.softmax(-1), v)), dim=-1))
    return torch.stack(sentences)
