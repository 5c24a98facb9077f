"""Answers to the final project, by a fourth author."""

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import block, embed, language_model, next_token_loss, self_attention

from .. import right, wrong

sinusoidal_positions = tl.checks.sinusoidal_positions.reference
split_heads = tl.checks.split_heads.reference
merge_heads = tl.checks.merge_heads.reference
layer_norm = tl.checks.layer_norm.reference
feed_forward = tl.checks.feed_forward.reference


@wrong(embed, "The sum takes the dtype of the positions where that is wider: a table in half precision gives float32.")
def _(tokens, table):
    seq, d_model = tokens.shape[1], table.shape[1]
    return table[tokens] + sinusoidal_positions(seq, d_model).to(table.device)


@wrong(embed, "The rows of the table are multiplied by the root of d_model before the positions are added.")
def _(tokens, table):
    d_model = table.shape[-1]
    x = F.embedding(tokens, table) * d_model**0.5
    return x + sinusoidal_positions(tokens.shape[-1], d_model).to(x)


@right(embed)
def _(tokens, table):
    vocab, d_model = table.shape
    rows = F.one_hot(tokens, vocab).to(table.dtype) @ table
    positions = sinusoidal_positions(tokens.shape[1], d_model)
    return rows + positions.to(device=table.device, dtype=table.dtype)


@wrong(self_attention, "The output projection is not transposed: it is x @ w_o and not x @ w_o.T.")
def _(x, weights, n_heads, attend):
    query = split_heads(x @ weights["w_q"].T, n_heads)
    key = split_heads(x @ weights["w_k"].T, n_heads)
    value = split_heads(x @ weights["w_v"].T, n_heads)
    out = merge_heads(attend(query, key, value))
    return out @ weights["w_o"]


@wrong(self_attention, "The query is divided by the root of d_head before attend gets it, which scales twice.")
def _(x, weights, n_heads, attend):
    d_head = x.shape[-1] // n_heads
    q, k, v = (split_heads(F.linear(x, weights[name]), n_heads) for name in ("w_q", "w_k", "w_v"))
    heads = attend(q / d_head**0.5, k, v)
    return F.linear(merge_heads(heads), weights["w_o"])


@wrong(block, "The second norm is the first one again: norm2 is never used.")
def _(x, weights, n_heads, attend):
    h = layer_norm(x, *weights["norm1"], 1e-5)
    x = x + self_attention.reference(h, weights, n_heads, attend)
    h = layer_norm(x, *weights["norm1"], 1e-5)
    return x + feed_forward(h, weights["w1"], weights["b1"], weights["w2"], weights["b2"])


@wrong(block, "Both changes are added in place, so that the x that came in is changed.")
def _(x, weights, n_heads, attend):
    x += self_attention.reference(layer_norm(x, *weights["norm1"], 1e-5), weights, n_heads, attend)
    ff = [weights[name] for name in ("w1", "b1", "w2", "b2")]
    x += feed_forward(layer_norm(x, *weights["norm2"], 1e-5), *ff)
    return x


@right(block)
def _(x, weights, n_heads, attend):
    def attention(h):
        return self_attention.reference(h, weights, n_heads, attend)

    def mlp(h):
        hidden = torch.addmm(weights["b1"], h.flatten(0, 1), weights["w1"].T).clamp_min(0)
        return torch.addmm(weights["b2"], hidden, weights["w2"].T).view_as(h)

    for part, norm in ((attention, "norm1"), (mlp, "norm2")):
        weight, bias = weights[norm]
        x = x + part(F.layer_norm(x, (x.shape[-1],), weight, bias, eps=1e-5))
    return x


@wrong(language_model, "The result has gone through log_softmax: log probabilities, and not logits.")
def _(tokens, weights, n_heads, attend):
    x = embed.reference(tokens, weights["table"])
    for layer in weights["blocks"]:
        x = block.reference(x, layer, n_heads, attend)
    x = layer_norm(x, *weights["norm"], 1e-5)
    return F.log_softmax(x @ weights["table"].T, dim=-1)


@wrong(language_model, "Every block reads the embedding, and not what the block before it made: only the last counts.")
def _(tokens, weights, n_heads, attend):
    x = embed.reference(tokens, weights["table"])
    h = x
    for layer in weights["blocks"]:
        h = block.reference(x, layer, n_heads, attend)
    weight, bias = weights["norm"]
    return layer_norm(h, weight, bias, 1e-5) @ weights["table"].T


@wrong(next_token_loss, "The last position is not left out: its guess is compared with the first token.")
def _(logits, tokens):
    targets = torch.roll(tokens, shifts=-1, dims=1)
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


@wrong(next_token_loss, "The logits go through a softmax before cross_entropy, which makes its own.")
def _(logits, tokens):
    probabilities = logits[:, :-1].softmax(dim=-1)
    return F.cross_entropy(probabilities.transpose(1, 2), tokens[:, 1:])


@right(next_token_loss)
def _(logits, tokens):
    guesses, answers = logits[:, :-1], tokens[:, 1:]
    chosen = torch.take_along_dim(guesses, answers[..., None], dim=-1).squeeze(-1)
    return (guesses.logsumexp(dim=-1) - chosen).mean()
