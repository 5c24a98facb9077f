"""A second author: answers to chapter 7's exercises."""

import torch
from torch import nn

import transformer_lab as tl

from .. import right, wrong

E = tl.checks


def block_parameters(d_model, d_ff, bias):
    """Exercise 7.2, as its author calls it later."""
    weights = 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model
    return weights + (7 * d_model + d_ff if bias else 0)


# attention_parameters


@wrong(
    E.attention_parameters,
    "Only queries, keys and values are counted: the output projection, with its bias, is left out, 3 maps "
    "instead of 4.",
)
def _(d_model, bias):
    n = 3 * d_model * d_model
    if bias:
        n += 3 * d_model
    return n


@wrong(
    E.attention_parameters,
    "Operator precedence: the 'if' covers the whole sum, so without biases the count is 0 instead of 4 * d_model ** 2.",
)
def _(d_model, bias):
    return 4 * d_model**2 + 4 * d_model if bias else 0


@wrong(
    E.attention_parameters,
    "Each map's bias is counted as one number instead of a vector of d_model numbers.",
)
def _(d_model, bias):
    return 4 * (d_model**2 + int(bias))


@right(E.attention_parameters)
def _(d_model, bias):
    module = nn.MultiheadAttention(d_model, 1, bias=bias, device="meta")
    return sum(p.numel() for p in module.parameters())


# block_parameters


@wrong(
    E.block_parameters,
    "The norms always count with their biases, 4 * d_model, also where bias is False: 2 * d_model too many "
    "there. Right with biases.",
)
def _(d_model, d_ff, bias):
    attention = 4 * d_model**2 + (4 * d_model if bias else 0)
    ffn = 2 * d_model * d_ff + (d_ff + d_model if bias else 0)
    norms = 2 * 2 * d_model
    return attention + ffn + norms


@wrong(
    E.block_parameters,
    "Both maps of the feed-forward layer get a bias of length d_ff; that of the second has d_model numbers.",
)
def _(d_model, d_ff, bias):
    total = 4 * d_model * d_model + 2 * d_model * d_ff + 2 * d_model
    if bias:
        total += 4 * d_model + 2 * d_ff + 2 * d_model
    return total


@wrong(
    E.block_parameters,
    "d_ff is not used: the formula 12 d² + 13 d holds only where d_ff is 4 * d_model.",
)
def _(d_model, d_ff, bias):
    return 12 * d_model**2 + (13 if bias else 2) * d_model


# gpt2_parameters


@wrong(
    E.gpt2_parameters,
    "The output head is counted as a matrix of its own, though it is tied to the table of tokens: vocab_size * d_model "
    "too many.",
)
def _(n_layers, d_model, vocab_size, n_positions):
    embeddings = vocab_size * d_model + n_positions * d_model
    blocks = n_layers * block_parameters(d_model, 4 * d_model, True)
    head = d_model * vocab_size
    return embeddings + blocks + 2 * d_model + head


@wrong(
    E.gpt2_parameters,
    "The last norm is counted once for each layer instead of once for the model. Right for one layer only.",
)
def _(n_layers, d_model, vocab_size, n_positions):
    layer = block_parameters(d_model, 4 * d_model, True)
    norm = 2 * d_model
    return (vocab_size + n_positions) * d_model + n_layers * (layer + norm)


@wrong(
    E.gpt2_parameters,
    "The width of the feed-forward layer is GPT-2's own number, 3072, and not 4 * d_model: right only for "
    "d_model = 768.",
)
def _(n_layers, d_model, vocab_size, n_positions):
    total = vocab_size * d_model
    total += n_positions * d_model
    total += n_layers * block_parameters(d_model, 3072, True)
    total += 2 * d_model
    return total


@right(E.gpt2_parameters)
def _(n_layers, d_model, vocab_size, n_positions):
    return d_model * (vocab_size + n_positions + 2 + n_layers * (12 * d_model + 13))


# attention_flops


@wrong(
    E.attention_flops,
    "Only the scores are counted; the product of weights and values is missing, so it is half of what it should be.",
)
def _(seq, d_model):
    return 2 * seq * seq * d_model


@wrong(
    E.attention_flops,
    "A sum of k products is counted with k - 1 additions; the docstring counts k additions. 2 tokens of 1 feature give "
    "10 instead of 16.",
)
def _(seq, d_model):
    scores = seq * seq * (2 * d_model - 1)
    blend = seq * d_model * (2 * seq - 1)
    return scores + blend


@wrong(
    E.attention_flops,
    "Counted as under a causal mask: only the seq (seq + 1) / 2 pairs where the key is not later than the "
    "query, instead of all seq² pairs.",
)
def _(seq, d_model):
    pairs = seq * (seq + 1) // 2
    return 4 * pairs * d_model


# kv_cache_bytes


@wrong(
    E.kv_cache_bytes,
    "Three vectors for each token: queries are counted as well, though the cache keeps keys and values only.",
)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 3 * n_layers * d_model * seq * batch * bytes_per_value


@wrong(
    E.kv_cache_bytes,
    "bytes_per_value is ignored: 4 bytes are taken always, so half precision counts double.",
)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * batch * 4


@wrong(
    E.kv_cache_bytes,
    "The result is in kilobytes, divided by 1024, and a float, instead of whole bytes.",
)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    total = 2 * n_layers * batch * seq * d_model * bytes_per_value
    return total / 1024


@right(E.kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    key = torch.empty(n_layers, batch, seq, d_model, device="meta")
    return bytes_per_value * (key.numel() << 1)


# mend_model_size


@wrong(
    E.mend_model_size,
    "Only parameters that require a gradient are counted; frozen ones are left out.",
)
def _(model):
    params = [p for p in model.parameters() if p.requires_grad]
    return sum(p.numel() for p in params), sum(p.numel() * p.element_size() for p in params)


@wrong(
    E.mend_model_size,
    "All parameters are given the size of the first one's dtype: the bytes are wrong where dtypes differ, and a module "
    "without parameters raises StopIteration.",
)
def _(model):
    count = sum(p.numel() for p in model.parameters())
    size = next(model.parameters()).element_size()
    return count, count * size


@wrong(
    E.mend_model_size,
    "Parameters with several names are told by their address, data_ptr(), which is 0 for every tensor on the "
    "meta device (and for every empty one): there all parameters count as one.",
)
def _(model):
    seen = set()
    count = size = 0
    for p in model.parameters():
        if p.data_ptr() in seen:
            continue
        seen.add(p.data_ptr())
        count += p.numel()
        size += p.numel() * p.element_size()
    return count, size
