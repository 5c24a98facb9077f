"""Answers to the final project."""

import math

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import block, embed, language_model, next_token_loss, self_attention

from . import right, wrong


@wrong(embed, "The position is not added.")
def _(tokens, table):
    return table[tokens]


@wrong(embed, "The rows are multiplied by the root of d_model, as in the paper of 2017.")
def _(tokens, table):
    x = F.embedding(tokens, table) * math.sqrt(table.shape[1])
    return x + tl.sinusoidal_positions(tokens.shape[1], table.shape[1]).to(table)


@wrong(embed, "The table is indexed with the positions, and the tokens' numbers are not used.")
def _(tokens, table):
    batch, seq = tokens.shape
    place = torch.arange(seq) % len(table)
    return (table[place] + tl.sinusoidal_positions(seq, table.shape[1]).to(table)).expand(batch, -1, -1)


@wrong(embed, "Embeddings and positions are put side by side, not added.")
def _(tokens, table):
    p = tl.sinusoidal_positions(tokens.shape[1], table.shape[1]).to(table)
    return torch.cat([table[tokens], p.expand(len(tokens), -1, -1)], dim=-1)


@right(embed)
def _(tokens, table):
    one_hot = F.one_hot(tokens, table.shape[0]).to(table.dtype)
    return one_hot @ table + tl.sinusoidal_positions(tokens.size(1), table.size(1)).type_as(table)


def cut(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


@wrong(self_attention, "The last projection is left out.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).transpose(1, 2).flatten(2)


@wrong(self_attention, "attend is not used: an attention of its own runs.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, n_heads) for w in ("w_q", "w_k", "w_v"))
    out = F.scaled_dot_product_attention(q, k, v)
    return out.transpose(1, 2).flatten(2) @ weights["w_o"].T


@wrong(self_attention, "The heads' features are interleaved: split as (d_head, heads), merged the same way.")
def _(x, weights, n_heads, attend):
    b, s, d = x.shape
    q, k, v = (
        (x @ weights[w].T).reshape(b, s, d // n_heads, n_heads).permute(0, 3, 1, 2) for w in ("w_q", "w_k", "w_v")
    )
    return attend(q, k, v).permute(0, 2, 3, 1).reshape(b, s, d) @ weights["w_o"].T


@wrong(self_attention, "It is not cut into heads: attend gets one head, of the whole width.")
def _(x, weights, n_heads, attend):
    q, k, v = (cut(x @ weights[w].T, 1) for w in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).transpose(1, 2).flatten(2) @ weights["w_o"].T


@wrong(self_attention, "The heads are not moved in front of seq before attend, so heads attend to heads.")
def _(x, weights, n_heads, attend):
    q, k, v = ((x @ weights[w].T).unflatten(-1, (n_heads, -1)) for w in ("w_q", "w_k", "w_v"))
    return attend(q, k, v).flatten(2) @ weights["w_o"].T


@right(self_attention)
def _(x, weights, n_heads, attend):
    packed = torch.cat([weights["w_q"], weights["w_k"], weights["w_v"]])
    b, s, d = x.shape
    q, k, v = F.linear(x, packed).reshape(b, s, 3, n_heads, d // n_heads).permute(2, 0, 3, 1, 4)
    merged = torch.einsum("bhsd->bshd", attend(q, k, v)).reshape(b, s, d)
    return F.linear(merged, weights["w_o"])


def heads(x, w, n_heads, attend):
    return tl.checks.self_attention.reference(x, w, n_heads, attend)


def norm(x, pair):
    return F.layer_norm(x, x.shape[-1:], *pair, eps=1e-5)


def forward(x, w):
    return F.linear(F.relu(F.linear(x, w["w1"], w["b1"])), w["w2"], w["b2"])


@wrong(block, "It is a post-norm block.")
def _(x, weights, n_heads, attend):
    x = norm(x + heads(x, weights, n_heads, attend), weights["norm1"])
    return norm(x + forward(x, weights), weights["norm2"])


@wrong(block, "norm1 is used in both places.")
def _(x, weights, n_heads, attend):
    x = x + heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    return x + forward(norm(x, weights["norm1"]), weights)


@wrong(block, "x += changes the x that came in.")
def _(x, weights, n_heads, attend):
    x += heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    x += forward(norm(x, weights["norm2"]), weights)
    return x


@wrong(block, "The normalized x overwrites x, so the residual branches off after the norm.")
def _(x, weights, n_heads, attend):
    x = norm(x, weights["norm1"])
    x = x + heads(x, weights, n_heads, attend)
    x = norm(x, weights["norm2"])
    return x + forward(x, weights)


@wrong(block, "The feed-forward layer's residual is missing.")
def _(x, weights, n_heads, attend):
    x = x + heads(norm(x, weights["norm1"]), weights, n_heads, attend)
    return forward(norm(x, weights["norm2"]), weights)


@right(block)
def _(x, weights, n_heads, attend):
    w = weights
    parts = {
        "norm1": lambda y: heads(y, w, n_heads, attend),
        "norm2": lambda y: (y @ w["w1"].mT + w["b1"]).clamp(min=0) @ w["w2"].mT + w["b2"],
    }
    for name, part in parts.items():
        scale, shift = w[name]
        centred = x - x.mean(-1, keepdim=True)
        x = part(centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * scale + shift) + x
    return x


def start(tokens, table):
    return table[tokens] + tl.sinusoidal_positions(tokens.shape[1], table.shape[1]).to(table)


def one_block(x, w, n_heads, attend):
    return tl.checks.block.reference(x, w, n_heads, attend)


@wrong(language_model, "The last norm is left out.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return x @ weights["table"].T


@wrong(language_model, "Only the first block runs.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    x = one_block(x, weights["blocks"][0], n_heads, attend)
    return norm(x, weights["norm"]) @ weights["table"].T


@wrong(language_model, "The head is left out: the vectors themselves are returned.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return norm(x, weights["norm"])


@wrong(language_model, "The table is not transposed for the head.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return norm(x, weights["norm"]) @ weights["table"]


@wrong(language_model, "Only the logits of the last position are returned, as for generating.")
def _(tokens, weights, n_heads, attend):
    x = start(tokens, weights["table"])
    for w in weights["blocks"]:
        x = one_block(x, w, n_heads, attend)
    return norm(x[:, -1], weights["norm"]) @ weights["table"].T


@right(language_model)
def _(tokens, weights, n_heads, attend):
    from functools import reduce

    x = reduce(lambda y, w: one_block(y, w, n_heads, attend), weights["blocks"], start(tokens, weights["table"]))
    return F.linear(norm(x, weights["norm"]), weights["table"])


@wrong(next_token_loss, "Nothing is shifted: each position is compared with its own token.")
def _(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


@wrong(next_token_loss, "The sum, not the mean.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")


@wrong(next_token_loss, "The minus is missing: the mean log probability is returned.")
def _(logits, tokens):
    logp = logits[:, :-1].log_softmax(-1)
    return logp.gather(-1, tokens[:, 1:, None]).mean()


@wrong(next_token_loss, "roll brings the first token behind the last, and that wrong pair counts as well.")
def _(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.roll(-1, dims=1).flatten())


@wrong(next_token_loss, ".item() makes a Python float, through which no gradient flows.")
def _(logits, tokens):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), tokens[:, 1:]).item()


@right(next_token_loss)
def _(logits, tokens):
    logp = logits[:, :-1] - logits[:, :-1].logsumexp(dim=-1, keepdim=True)
    return -logp.gather(2, tokens[:, 1:].unsqueeze(2)).mean()


@right(next_token_loss)
def _(logits, tokens):
    losses = [F.cross_entropy(logits[:, t], tokens[:, t + 1]) for t in range(tokens.shape[1] - 1)]
    return torch.stack(losses).mean()
