"""Answers to the final project, by a third author."""

from functools import reduce

import torch
import torch.nn.functional as F

import transformer_lab as tl
from transformer_lab.checks import (
    block,
    embed,
    language_model,
    next_token_loss,
    self_attention,
)

from .. import right, wrong

sinusoidal_positions = tl.checks.sinusoidal_positions.reference
split_heads = tl.checks.split_heads.reference
merge_heads = tl.checks.merge_heads.reference
layer_norm = tl.checks.layer_norm.reference
feed_forward = tl.checks.feed_forward.reference


@wrong(
    embed,
    "The positions are made for the batch axis: for a batch of one every token stands at 0; otherwise it mostly fails.",
)
def _(tokens, table):
    positions = sinusoidal_positions(len(tokens), table.shape[1])
    return table[tokens] + positions.to(table)


@wrong(embed, "The positions are added in their own dtype: a half-precision table gives a float32 result.")
def _(tokens, table):
    seq, d_model = tokens.shape[1], table.shape[1]
    return F.embedding(tokens, table) + sinusoidal_positions(seq, d_model).to(table.device)


@wrong(embed, "The rows of the table are multiplied by the root of d_model, as in the original Transformer.")
def _(tokens, table):
    d_model = table.shape[-1]
    x = table[tokens] * d_model**0.5
    return x + sinusoidal_positions(tokens.shape[-1], d_model).to(x)


@wrong(embed, "The pattern is looked up by the token's number instead of by its place: order makes no difference.")
def _(tokens, table):
    vocab, d_model = table.shape
    positions = sinusoidal_positions(vocab, d_model).to(dtype=table.dtype, device=table.device)
    return table[tokens] + positions[tokens]


@right(embed)
def _(tokens, table):
    pattern = sinusoidal_positions(tokens.shape[1], table.shape[1]).to(table)
    columns = [table[column] + place for column, place in zip(tokens.long().T, pattern)]
    return torch.stack(columns, dim=1)


@wrong(self_attention, "The projections are not transposed: each is x @ w instead of x @ w.T.")
def _(x, weights, n_heads, attend):
    query = split_heads(x @ weights["w_q"], n_heads)
    key = split_heads(x @ weights["w_k"], n_heads)
    value = split_heads(x @ weights["w_v"], n_heads)
    return merge_heads(attend(query, key, value)) @ weights["w_o"]


@wrong(self_attention, "The output projection w_o is left out.")
def _(x, weights, n_heads, attend):
    q, k, v = (split_heads(F.linear(x, weights[name]), n_heads) for name in ("w_q", "w_k", "w_v"))
    return merge_heads(attend(q, k, v))


@wrong(
    self_attention,
    "Heads are merged by a reshape without swapping heads and tokens back: with several heads, tokens are mixed.",
)
def _(x, weights, n_heads, attend):
    batch, seq, d_model = x.shape

    def heads(w):
        return F.linear(x, w).view(batch, seq, n_heads, d_model // n_heads).transpose(1, 2)

    out = attend(heads(weights["w_q"]), heads(weights["w_k"]), heads(weights["w_v"]))
    return out.reshape(batch, seq, d_model) @ weights["w_o"].T


@wrong(self_attention, "The query is divided by the root of d_head before attend, whose part the scale is.")
def _(x, weights, n_heads, attend):
    d_head = x.shape[-1] // n_heads
    q = split_heads(x @ weights["w_q"].T, n_heads) / d_head**0.5
    k = split_heads(x @ weights["w_k"].T, n_heads)
    v = split_heads(x @ weights["w_v"].T, n_heads)
    return merge_heads(attend(q, k, v)) @ weights["w_o"].T


@right(self_attention)
def _(x, weights, n_heads, attend):
    w = torch.cat([weights["w_q"], weights["w_k"], weights["w_v"]])
    qkv = F.linear(x, w).unflatten(-1, (3, n_heads, -1))  # (batch, seq, 3, heads, d_head)
    out = attend(*qkv.permute(2, 0, 3, 1, 4))
    return torch.einsum("bhsd,ohd->bso", out, weights["w_o"].unflatten(1, (n_heads, -1)))


@wrong(block, "Each change is added to the normalized x instead of to x.")
def _(x, weights, n_heads, attend):
    x = layer_norm(x, *weights["norm1"], 1e-5)
    x = x + self_attention.reference(x, weights, n_heads, attend)
    x = layer_norm(x, *weights["norm2"], 1e-5)
    return x + feed_forward(x, weights["w1"], weights["b1"], weights["w2"], weights["b2"])


@wrong(block, "The feed-forward layer has GELU instead of ReLU.")
def _(x, weights, n_heads, attend):
    d_model = x.shape[-1]
    h = F.layer_norm(x, (d_model,), *weights["norm1"])
    x = x + self_attention.reference(h, weights, n_heads, attend)
    h = F.layer_norm(x, (d_model,), *weights["norm2"])
    h = F.gelu(F.linear(h, weights["w1"], weights["b1"]))
    return x + F.linear(h, weights["w2"], weights["b2"])


@wrong(block, "norm1 is used twice: the feed-forward layer reads what norm1 has made, and norm2 is never used.")
def _(x, weights, n_heads, attend):
    weight, bias = weights["norm1"]
    x = x + self_attention.reference(layer_norm(x, weight, bias, 1e-5), weights, n_heads, attend)
    hidden = layer_norm(x, weight, bias, 1e-5) @ weights["w1"].T + weights["b1"]
    return x + hidden.relu() @ weights["w2"].T + weights["b2"]


@wrong(block, "The x that came in is changed in place by +=.")
def _(x, weights, n_heads, attend):
    x += self_attention.reference(layer_norm(x, *weights["norm1"], 1e-5), weights, n_heads, attend)
    normed = layer_norm(x, *weights["norm2"], 1e-5)
    x += feed_forward(normed, weights["w1"], weights["b1"], weights["w2"], weights["b2"])
    return x


@right(block)
def _(x, weights, n_heads, attend):
    def normalized(y, name):
        scale, shift = weights[name]
        variance, mean = torch.var_mean(y, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(shift, (y - mean) / (variance + 1e-5).sqrt(), scale)

    y = x + self_attention.reference(normalized(x, "norm1"), weights, n_heads, attend)
    hidden = F.linear(normalized(y, "norm2"), weights["w1"], weights["b1"]).clamp(min=0)
    return y + F.linear(hidden, weights["w2"], weights["b2"])


@wrong(language_model, "The last norm is left out: the output of the last block meets the table as it is.")
def _(tokens, weights, n_heads, attend):
    x = embed.reference(tokens, weights["table"])
    for layer in weights["blocks"]:
        x = block.reference(x, layer, n_heads, attend)
    return x @ weights["table"].T


@wrong(language_model, "Every block reads the embedding: only the last block's result is used.")
def _(tokens, weights, n_heads, attend):
    table = weights["table"]
    x = embed.reference(tokens, table)
    y = x
    for block_weights in weights["blocks"]:
        y = block.reference(x, block_weights, n_heads, attend)
    return F.linear(layer_norm(y, *weights["norm"], 1e-5), table)


@wrong(language_model, "It returns probabilities: a softmax is taken over the vocabulary.")
def _(tokens, weights, n_heads, attend):
    x = embed.reference(tokens, weights["table"])
    for i in range(len(weights["blocks"])):
        x = block.reference(x, weights["blocks"][i], n_heads, attend)
    x = layer_norm(x, *weights["norm"], 1e-5)
    logits = x @ weights["table"].T
    return logits.softmax(dim=-1)


@wrong(language_model, "The last norm takes the weight and bias of the last block's norm2 instead of the model's own.")
def _(tokens, weights, n_heads, attend):
    x = embed.reference(tokens, weights["table"])
    for layer in weights["blocks"]:
        x = block.reference(x, layer, n_heads, attend)
    x = layer_norm(x, *layer["norm2"], 1e-5)
    return x @ weights["table"].T


@right(language_model)
def _(tokens, weights, n_heads, attend):
    table, (scale, shift) = weights["table"], weights["norm"]
    start = embed.reference(tokens, table)
    x = reduce(lambda x, layer: block.reference(x, layer, n_heads, attend), weights["blocks"], start)
    x = F.layer_norm(x, scale.shape, eps=1e-5)
    # the norm's weight goes into the table, its bias into one number for each token
    return F.linear(x, table * scale, table @ shift)


@wrong(
    next_token_loss,
    "The last position is compared too, with the text's first token: seq guesses are averaged instead of seq - 1.",
)
def _(logits, tokens):
    targets = tokens.roll(-1, dims=1)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@wrong(
    next_token_loss,
    "The axes of vocab and seq are exchanged by a reshape instead of a transpose: the logits are scrambled.",
)
def _(logits, tokens):
    batch, seq, vocab = logits.shape
    guesses = logits[:, :-1].reshape(batch, vocab, seq - 1)  # classes on the second axis
    return F.cross_entropy(guesses, tokens[:, 1:])


@wrong(
    next_token_loss,
    "1e-9 is added to the probabilities before the logarithm: for large logits the loss stops at about 20.7.",
)
def _(logits, tokens):
    probabilities = logits[:, :-1].softmax(dim=-1)
    picked = probabilities.gather(-1, tokens[:, 1:, None]).squeeze(-1)
    return -(picked + 1e-9).log().mean()


@wrong(next_token_loss, "There is no softmax: nll_loss gets the raw logits instead of log-probabilities.")
def _(logits, tokens):
    vocab = logits.size(-1)
    return F.nll_loss(logits[:, :-1].reshape(-1, vocab), tokens[:, 1:].reshape(-1))


@right(next_token_loss)
def _(logits, tokens):
    guesses = torch.distributions.Categorical(logits=logits[:, :-1])
    return guesses.log_prob(tokens[:, 1:]).mean().neg()
