"""Answers to assignment 4, by a third author."""

import torch
import torch.nn.functional as F

from transformer_lab.checks import (
    mend_folded_heads,
    merge_heads,
    multi_head_attention,
    split_heads,
    unpack_projection,
)

from .. import right, wrong


@wrong(
    split_heads,
    "A view makes (batch, heads, seq, d_head) at once, without moving an axis, so a head gets all the features of some "
    "of the tokens, and not its block of every token's features.",
)
def _(x, n_heads):
    batch, seq, d_model = x.shape
    d_head = d_model // n_heads
    return x.view(batch, n_heads, seq, d_head)


@wrong(
    split_heads,
    "split takes the size of a piece and gets the number of heads: d_model // n_heads heads come out, with n_heads "
    "features each.",
)
def _(x, n_heads):
    return torch.stack(x.split(n_heads, dim=-1), dim=1)


@wrong(
    split_heads,
    "The last two axes are in the wrong order: the result is (batch, heads, d_head, seq), a row for each feature.",
)
def _(x, n_heads):
    b, s, d = x.shape
    return x.reshape(b, s, n_heads, d // n_heads).permute(0, 2, 3, 1)


@wrong(
    split_heads,
    "A head gets every n_heads-th feature of a token, and not a block of neighbouring ones.",
)
def _(x, n_heads):
    heads = [x[:, :, h::n_heads] for h in range(n_heads)]
    return torch.stack(heads, dim=1)


@right(split_heads)
def _(x, n_heads):
    d_head = x.shape[-1] // n_heads
    return x.unfold(-1, d_head, d_head).movedim(2, 1)


@wrong(
    merge_heads,
    "The sizes of heads and seq are taken for one another, so the result is (batch, heads, seq * d_value), right only "
    "where there are as many heads as tokens.",
)
def _(x):
    batch, seq, heads, d_value = x.shape
    return x.transpose(1, 2).reshape(batch, seq, heads * d_value)


@wrong(
    merge_heads,
    "The heads' features are interleaved: first feature 0 of every head, then feature 1 of every head, and so on.",
)
def _(x):
    return torch.stack(x.unbind(dim=1), dim=-1).flatten(start_dim=2)


@wrong(
    merge_heads,
    "The heads are put one after another along the tokens' axis, and not along the features': the result is "
    "(batch, heads * seq, d_value).",
)
def _(x):
    n_heads = x.shape[1]
    return torch.cat([x[:, h] for h in range(n_heads)], dim=1)


@wrong(
    merge_heads,
    "view is called on a tensor whose axes have been swapped and that is not contiguous, so it raises an error.",
)
def _(x):
    batch, heads, seq, d_value = x.shape
    x = x.transpose(1, 2)
    return x.view(batch, seq, heads * d_value)


@right(merge_heads)
def _(x):
    batch, heads, seq, d_value = x.shape
    merged = x.new_empty(batch, seq, heads * d_value)
    for h in range(heads):
        merged[:, :, h * d_value : (h + 1) * d_value] = x[:, h]
    return merged


@wrong(
    multi_head_attention,
    "The output weight w_o is not transposed: the merged heads are multiplied by w_o instead of w_o.T.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    batch, seq, d_model = x.shape
    d_head = d_model // n_heads

    def project(w):
        return (x @ w.T).view(batch, seq, n_heads, d_head).transpose(1, 2)

    q, k, v = project(w_q), project(w_k), project(w_v)
    weights = torch.softmax(q @ k.transpose(-2, -1) / d_head**0.5, dim=-1)
    merged = (weights @ v).transpose(1, 2).contiguous().view(batch, seq, d_model)
    return merged @ w_o


@wrong(
    multi_head_attention,
    "heads is never moved before seq, so in each token the heads attend to one another, and no token attends to "
    "another token.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    b, s, d = x.shape
    q = F.linear(x, w_q).view(b, s, n_heads, -1)
    k = F.linear(x, w_k).view(b, s, n_heads, -1)
    v = F.linear(x, w_v).view(b, s, n_heads, -1)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    out = scores.softmax(dim=-1) @ v
    return F.linear(out.reshape(b, s, d), w_o)


@wrong(
    multi_head_attention,
    "PyTorch's function takes (seq, batch, d_model) and gets (batch, seq, d_model), so tokens attend to the tokens at "
    "the same place in the other sentences, and not to those of their own.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    in_proj = torch.cat([w_q, w_k, w_v])
    output, _weights = F.multi_head_attention_forward(
        x, x, x, x.shape[-1], n_heads, in_proj, None, None, None, False, 0.0, w_o, None, need_weights=False
    )
    return output


@wrong(
    multi_head_attention,
    "The scores are divided by the root of d_head twice: by hand in the queries, and once more in PyTorch's attention.",
)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    d_head = x.shape[-1] // n_heads
    q, k, v = ((x @ w.T).unflatten(-1, (n_heads, d_head)).transpose(1, 2) for w in (w_q, w_k, w_v))
    q = q / d_head**0.5
    out = F.scaled_dot_product_attention(q, k, v)
    return out.transpose(1, 2).flatten(2) @ w_o.T


@right(multi_head_attention)
def _(x, w_q, w_k, w_v, w_o, n_heads):
    d_head = x.shape[-1] // n_heads
    q = torch.einsum("bsd,hed->bhse", x, w_q.unflatten(0, (n_heads, d_head)))
    k = torch.einsum("bsd,hed->bhse", x, w_k.unflatten(0, (n_heads, d_head)))
    v = torch.einsum("bsd,hed->bhse", x, w_v.unflatten(0, (n_heads, d_head)))
    weights = torch.einsum("bhqe,bhke->bhqk", q, k).div(d_head**0.5).softmax(dim=-1)
    # No merge: each head has its own columns of w_o, and the results add up.
    return torch.einsum("bhqk,bhke,ohe->bqo", weights, v, w_o.unflatten(1, (n_heads, d_head)))


@wrong(
    unpack_projection,
    "split takes the size of a piece, so it cuts pieces of 3 rows, d_model of them, and not 3 pieces of d_model rows.",
)
def _(in_proj_weight):
    return in_proj_weight.split(3, dim=0)


@wrong(
    unpack_projection,
    "Each weight gets every third row, as if the rows of queries, keys and values took turns.",
)
def _(in_proj_weight):
    w_q = in_proj_weight[0::3]
    w_k = in_proj_weight[1::3]
    w_v = in_proj_weight[2::3]
    return w_q, w_k, w_v


@wrong(
    unpack_projection,
    "The values' weight lacks its last row, because the slice ends at -1.",
)
def _(in_proj_weight):
    d = in_proj_weight.shape[1]
    return in_proj_weight[:d], in_proj_weight[d : 2 * d], in_proj_weight[2 * d : -1]


@wrong(
    unpack_projection,
    "Each of the three weights is transposed, (in, out) and not (out, in).",
)
def _(in_proj_weight):
    w_q, w_k, w_v = in_proj_weight.chunk(3, dim=0)
    return w_q.T, w_k.T, w_v.T


@right(unpack_projection)
def _(in_proj_weight):
    d_model = in_proj_weight.size(1)
    return tuple(in_proj_weight.narrow(0, start, d_model) for start in range(0, 3 * d_model, d_model))


@wrong(
    mend_folded_heads,
    "The folded axis is taken apart rightly, but the old permute(1, 2, 0, 3) stays, so batch stands where heads should "
    "and the last reshape mixes sentences and heads.",
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
    mend_folded_heads,
    "Nothing changes: heads * batch is the same number as batch * heads, so the folded axis still has batch outside "
    "and is still taken apart with heads outside.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query = query.reshape(heads * batch, seq, d_head)
    key = key.reshape(heads * batch, seq, d_head)
    value = value.reshape(heads * batch, seq, d_head)
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(heads, batch, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@wrong(
    mend_folded_heads,
    "Queries and keys are folded with heads outside, but the values with batch outside, so the weights of one sentence "
    "and head meet the values of another.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query = query.transpose(0, 1).reshape(heads * batch, seq, d_head)
    key = key.transpose(0, 1).reshape(heads * batch, seq, d_head)
    value = value.reshape(heads * batch, seq, d_head)
    scores = torch.bmm(query, key.transpose(1, 2)) / d_head**0.5
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(heads, batch, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)


@wrong(
    mend_folded_heads,
    "The scores are not divided by the root of d_head.",
)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    # matmul takes any number of axes in front, so there is nothing to fold
    weights = torch.matmul(query, key.transpose(-2, -1)).softmax(dim=-1)
    output = torch.matmul(weights, value)
    return output.transpose(1, 2).reshape(batch, seq, heads * d_head)


@right(mend_folded_heads)
def _(query, key, value):
    batch, heads, seq, d_head = query.shape
    query, key, value = (t.transpose(0, 1).flatten(0, 1) for t in (query, key, value))  # heads outside
    scores = torch.baddbmm(query.new_zeros(()), query, key.mT, beta=0, alpha=d_head**-0.5)
    output = torch.bmm(scores.softmax(dim=-1), value)
    output = output.reshape(heads, batch, seq, d_head)
    return output.permute(1, 2, 0, 3).reshape(batch, seq, heads * d_head)
