"""Held out: answers to the final project."""

import math

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import block, embed, language_model, next_token_loss, self_attention

from .. import right, wrong


@wrong(embed, "seq is taken from the batch axis: the positions are those of the sentences.")
def _(tokens, table):
    return table[tokens] + tl.sinusoidal_positions(tokens.shape[0], table.shape[1]).to(table)[:, None]


@wrong(embed, "The dtype is not the table's: float32 positions turn a half precision table into float32.")
def _(tokens, table):
    return table[tokens] + tl.sinusoidal_positions(tokens.shape[1], table.shape[1])


@wrong(embed, "The positions are added to the table's rows, in place: each token gets the place of its own number.")
def _(tokens, table):
    table += tl.sinusoidal_positions(len(table), table.shape[1]).to(table)
    return table[tokens]


@wrong(embed, "The positions begin with 1.")
def _(tokens, table):
    seq, d = tokens.shape[1], table.shape[1]
    return table[tokens] + tl.sinusoidal_positions(seq + 1, d)[1:].to(table)


@right(embed)
def _(tokens, table):
    x = table.index_select(0, tokens.flatten()).view(*tokens.shape, -1)
    positions = tl.sinusoidal_positions(x.shape[1], x.shape[2], device=x.device)
    return torch.stack([row + p.to(x.dtype) for row, p in zip(x.unbind(1), positions)], dim=1)


def cut(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


@wrong(self_attention, "The weights are not transposed.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w], n_heads) for w in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).transpose(1, 2).flatten(2) @ weights["w_o"]


@wrong(self_attention, "The query is scaled before it goes into attend, which scales itself.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    q = q / math.sqrt(q.shape[-1])
    return attend(q, k, v).transpose(1, 2).flatten(2) @ weights["w_o"].T


@wrong(self_attention, "The heads are merged by reshape alone, without swapping heads and seq.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).reshape(x.shape) @ weights["w_o"].T


@wrong(self_attention, "key and value change places when attend is called.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    return attend(q, v, k).transpose(1, 2).flatten(2) @ weights["w_o"].T


@right(self_attention)
def _(x, weights, n_heads, attend):
    rows = [weights[name].chunk(n_heads) for name in ("w_q", "w_k", "w_v")]
    q, k, v = (torch.stack([x @ w.T for w in head], dim=1) for head in rows)
    out = attend(q, k, v)
    columns = weights["w_o"].chunk(n_heads, dim=1)
    return sum(out[:, h] @ columns[h].T for h in range(n_heads))


def heads(x, w, n_heads, attend):
    return tl.checks.self_attention.reference(x, w, n_heads, attend)


def norm(x, pair):
    return F.layer_norm(x, x.shape[-1:], *pair, eps=1e-5)


def forward(x, w):
    return F.linear(F.relu(F.linear(x, w["w1"], w["b1"])), w["w2"], w["b2"])


@wrong(block, "The second residual adds to the block's input: what attention changed is lost.")
def _(x, weights, n_heads, attend):
    h = x + heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    return x + forward(norm(h, weights["norm2"]), weights)


@wrong(block, "The feed-forward layer gets the x that was not normalized.")
def _(x, weights, n_heads, attend):
    x = x + heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    return x + forward(x, weights)


@wrong(block, "The feed-forward layer reads the block's input: both parts run side by side, as in GPT-J.")
def _(x, weights, n_heads, attend):
    a = heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    return x + a + forward(norm(x, weights["norm2"]), weights)


@wrong(block, "GELU stands where ReLU is asked.")
def _(x, weights, n_heads, attend):
    x = x + heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    h = F.gelu(F.linear(norm(x, weights["norm2"]), weights["w1"], weights["b1"]))
    return x + F.linear(h, weights["w2"], weights["b2"])


@right(block)
def _(x, weights, n_heads, attend):
    stream = [x]
    stream.append(heads(norm(sum(stream), weights["norm1"]), weights, n_heads, attend))
    stream.append(forward(norm(sum(stream), weights["norm2"]), weights))
    return torch.stack(stream).sum(0)


def start(tokens, table):
    return table[tokens] + tl.sinusoidal_positions(tokens.shape[1], table.shape[1]).to(table)


def one_block(x, w, n_heads, attend):
    return tl.checks.block.reference(x, w, n_heads, attend)


@wrong(language_model, "A softmax makes probabilities of the logits.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return (norm(x, weights["norm"]) @ weights["table"].T).softmax(dim=-1)


@wrong(language_model, "The positions are not added.")
def _(tokens, weights, n_heads, attend):
    x = weights["table"][tokens]
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return norm(x, weights["norm"]) @ weights["table"].T


@wrong(language_model, "Each block gets the embedding, not the result of the block before.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        y = one_block(x, w, n_heads, attend)
    return norm(y, weights["norm"]) @ weights["table"].T


@wrong(language_model, "The last norm is applied after every block.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = norm(one_block(x, w, n_heads, attend), weights["norm"])
    return x @ weights["table"].T


@right(language_model)
def _(tokens, weights, n_heads, attend):
    table, (scale, shift) = weights["table"], weights["norm"]
    x = F.embedding(tokens, table) + tl.sinusoidal_positions(tokens.shape[-1], table.shape[-1]).to(table)
    blocks = list(weights["blocks"])
    while blocks:
        x = tl.checks.block.reference(x, blocks.pop(0), n_heads, attend)
    x = F.layer_norm(x, (x.shape[-1],)) * scale + shift
    return torch.einsum("bsd,vd->bsv", x, table)


@wrong(next_token_loss, "It is shifted the wrong way: the guess is compared with the token before.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())


@wrong(next_token_loss, "A softmax first: cross_entropy makes its own, so there are two.")
def _(logits, tokens):
    p = logits[:, :-1].softmax(dim=-1)
    return F.cross_entropy(p.flatten(0, 1), tokens[:, 1:].flatten())


@wrong(next_token_loss, "The classes stand on the last axis, and cross_entropy wants them on the second.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1], tokens[:, 1:])


@wrong(next_token_loss, "One loss for each position is returned, no mean.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")


@wrong(next_token_loss, "view merges batch and seq of a slice, which is not contiguous.")
def _(logits, tokens):
    vocab = logits.shape[-1]
    return F.cross_entropy(logits[:, :-1].view(-1, vocab), tokens[:, 1:].view(-1))


@right(next_token_loss)
def _(logits, tokens):
    target = tokens.roll(-1, dims=1).clone()
    target[:, -1] = -100
    return F.cross_entropy(logits.movedim(-1, 1), target, ignore_index=-100)
