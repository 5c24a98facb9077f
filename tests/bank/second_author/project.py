"""A second author: answers to the final project's exercises."""

import math

import torch
from torch.nn import functional as F

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def layer_norm(x, weight, bias, eps):
    """Exercise 6.1, pasted into the project."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def feed_forward(x, w1, b1, w2, b2):
    """Exercise 6.3, pasted into the project."""
    return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


def embed(tokens, table):
    """Exercise 10.1, as its author calls it later."""
    x = table[tokens]
    return x + tl.sinusoidal_positions(*x.shape[1:]).to(x)


def self_attention(x, weights, n_heads, attend):
    """Exercise 10.2, as its author calls it later."""
    heads = (tl.split_heads(x @ weights[name].T, n_heads) for name in ("w_q", "w_k", "w_v"))
    return tl.merge_heads(attend(*heads)) @ weights["w_o"].T


def block(x, weights, n_heads, attend):
    """Exercise 10.3, as its author calls it later."""
    x = x + self_attention(layer_norm(x, *weights["norm1"], 1e-5), weights, n_heads, attend)
    maps = (weights[name] for name in ("w1", "b1", "w2", "b2"))
    return x + feed_forward(layer_norm(x, *weights["norm2"], 1e-5), *maps)


# embed


@wrong(
    E.embed,
    "The rows of the table are multiplied by the root of d_model, as in the paper of 2017; the task adds the "
    "positions to the rows as they are.",
)
def _(tokens, table):
    d_model = table.shape[1]
    pos = tl.sinusoidal_positions(tokens.shape[1], d_model).to(table)
    return table[tokens] * math.sqrt(d_model) + pos


@wrong(
    E.embed,
    "The positions are counted along the batch axis, tokens.size(0) instead of size(1): raises where batch and seq "
    "differ, and a batch of one gives every token position 0.",
)
def _(tokens, table):
    x = F.embedding(tokens, table)
    return x + tl.sinusoidal_positions(tokens.size(0), table.size(1)).to(table)


@wrong(
    E.embed,
    "The positions stay in float32: for a table in half precision the sum is float32 instead of the table's dtype (and "
    "they are not moved to the table's device).",
)
def _(tokens, table):
    seq, d_model = tokens.shape[1], table.shape[1]
    return table[tokens] + tl.sinusoidal_positions(seq, d_model)


@right(E.embed)
def _(tokens, table):
    one_hot = F.one_hot(tokens, len(table)).to(table)
    positions = tl.sinusoidal_positions(tokens.shape[-1], table.shape[-1]).to(table.device, table.dtype)
    return one_hot @ table + positions


# self_attention


@wrong(
    E.self_attention,
    "The query is divided by the root of d_head before attend, though the scale is attend's part: it is scaled twice.",
)
def _(x, weights, n_heads, attend):
    q = tl.split_heads(x @ weights["w_q"].T, n_heads)
    k = tl.split_heads(x @ weights["w_k"].T, n_heads)
    v = tl.split_heads(x @ weights["w_v"].T, n_heads)
    q = q / q.shape[-1] ** 0.5
    return tl.merge_heads(attend(q, k, v)) @ weights["w_o"].T


@wrong(
    E.self_attention,
    "The output projection w_o is left out: the merged heads are returned as they are.",
)
def _(x, weights, n_heads, attend):
    q, k, v = (tl.split_heads(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    return tl.merge_heads(attend(q, k, v))


@wrong(
    E.self_attention,
    "attend is called once for each head with tensors of three axes, (batch, seq, d_head), instead of once with "
    "(batch, heads, seq, d_head): an attend that counts on four axes raises or computes something else.",
)
def _(x, weights, n_heads, attend):
    q, k, v = (F.linear(x, weights[w]).chunk(n_heads, dim=-1) for w in ("w_q", "w_k", "w_v"))
    heads = [attend(*head) for head in zip(q, k, v)]
    return torch.cat(heads, dim=-1) @ weights["w_o"].T


# block


@wrong(
    E.block,
    "norm1 is used for both parts; norm2's weight and bias are never read. It does not show where both norms have the "
    "same numbers.",
)
def _(x, weights, n_heads, attend):
    scale, shift = weights["norm1"]
    x = x + self_attention(layer_norm(x, scale, shift, 1e-5), weights, n_heads, attend)
    h = layer_norm(x, scale, shift, 1e-5)
    return x + feed_forward(h, weights["w1"], weights["b1"], weights["w2"], weights["b2"])


@wrong(
    E.block,
    "Post-norm: each norm is applied to the sum, after the part, instead of to the part's input. With zero "
    "weights x does not come out as it went in.",
)
def _(x, weights, n_heads, attend):
    x = layer_norm(x + self_attention(x, weights, n_heads, attend), *weights["norm1"], 1e-5)
    ff = feed_forward(x, weights["w1"], weights["b1"], weights["w2"], weights["b2"])
    return layer_norm(x + ff, *weights["norm2"], 1e-5)


@wrong(
    E.block,
    "x += writes into the x that came in, so the caller's tensor is changed. The returned numbers are right.",
)
def _(x, weights, n_heads, attend):
    x += self_attention(layer_norm(x, *weights["norm1"], 1e-5), weights, n_heads, attend)
    x += feed_forward(layer_norm(x, *weights["norm2"], 1e-5), *(weights[n] for n in ("w1", "b1", "w2", "b2")))
    return x


@right(E.block)
def _(x, weights, n_heads, attend):
    change = self_attention(layer_norm(x, *weights["norm1"], 1e-5), weights, n_heads, attend)
    normed = layer_norm(x + change, *weights["norm2"], 1e-5)
    hidden = torch.relu(normed @ weights["w1"].mT + weights["b1"])
    return torch.baddbmm(x + change + weights["b2"], hidden, weights["w2"].mT.expand(len(x), -1, -1))


# language_model


@wrong(
    E.language_model,
    "A softmax over the vocabulary is applied at the end: probabilities are returned instead of logits.",
)
def _(tokens, weights, n_heads, attend):
    x = embed(tokens, weights["table"])
    for w in weights["blocks"]:
        x = block(x, w, n_heads, attend)
    x = layer_norm(x, *weights["norm"], 1e-5)
    return torch.softmax(x @ weights["table"].T, dim=-1)


@wrong(
    E.language_model,
    "Every block reads the embedding instead of the result of the block before it, so only the last block "
    "counts. Right for one block only (without any, it raises).",
)
def _(tokens, weights, n_heads, attend):
    x = embed(tokens, weights["table"])
    for layer in weights["blocks"]:
        out = block(x, layer, n_heads, attend)
    return layer_norm(out, *weights["norm"], 1e-5) @ weights["table"].T


@wrong(
    E.language_model,
    "Only the last position's logits are returned, as for generating: (batch, vocab) instead of (batch, seq, vocab).",
)
def _(tokens, weights, n_heads, attend):
    x = embed(tokens, weights["table"])
    for layer in weights["blocks"]:
        x = block(x, layer, n_heads, attend)
    x = layer_norm(x, *weights["norm"], 1e-5)
    return x[:, -1] @ weights["table"].T


# next_token_loss


@wrong(
    E.next_token_loss,
    "roll moves the first token to the end: the last position's logits are compared with the first token instead of "
    "being left out, so there are seq guesses instead of seq - 1.",
)
def _(logits, tokens):
    targets = tokens.roll(-1, dims=1)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@wrong(
    E.next_token_loss,
    "Softmax and logarithm one after the other: for large logits a probability underflows to 0 and the loss is inf. "
    "Ordinary logits are right.",
)
def _(logits, tokens):
    probabilities = logits[:, :-1].softmax(dim=-1)
    right_ones = probabilities.gather(-1, tokens[:, 1:].unsqueeze(-1))
    return -right_ones.log().mean()


@wrong(
    E.next_token_loss,
    "Token 0 is taken for padding (ignore_index=0): guesses whose answer is token 0 are left out of the mean; "
    "NaN where all answers are 0.",
)
def _(logits, tokens):
    vocab = logits.size(-1)
    return F.cross_entropy(logits[:, :-1].reshape(-1, vocab), tokens[:, 1:].reshape(-1), ignore_index=0)


@right(E.next_token_loss)
def _(logits, tokens):
    log_p = logits.transpose(1, 2)[..., :-1].log_softmax(dim=1)
    return F.nll_loss(log_p, tokens[:, 1:])
