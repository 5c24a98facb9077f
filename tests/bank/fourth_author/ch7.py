"""Answers to assignment 7, by a fourth author."""

import torch
from torch import nn

from transformer_lab.checks import (
    attention_flops,
    attention_parameters,
    block_parameters,
    gpt2_parameters,
    kv_cache_bytes,
    mend_model_size,
)

from .. import right, wrong


@wrong(attention_parameters, "Each map's bias counts as one number, and not as a vector of d_model numbers.")
def _(d_model, bias):
    per_map = d_model * d_model + (1 if bias else 0)
    return 4 * per_map


@wrong(attention_parameters, "The bias of the output projection is left out.")
def _(d_model, bias):
    qkv = 3 * d_model * d_model
    if bias:
        qkv += 3 * d_model
    out = d_model * d_model
    return qkv + out


@right(attention_parameters)
def _(d_model, bias):
    layer = nn.MultiheadAttention(d_model, num_heads=1, bias=bias, device="meta")
    return sum(p.numel() for p in layer.parameters())


@wrong(block_parameters, "The two norms keep their biases where bias is False.")
def _(d_model, d_ff, bias):
    attention = attention_parameters.reference(d_model, bias)
    feed_forward = 2 * d_model * d_ff
    if bias:
        feed_forward += d_ff + d_model
    norms = 2 * (d_model + d_model)
    return attention + feed_forward + norms


@wrong(block_parameters, "Both biases of the feed-forward layer count d_ff numbers: the second has d_model.")
def _(d_model, d_ff, bias):
    attention = attention_parameters.reference(d_model, bias)
    ffn = 2 * (d_model * d_ff + bias * d_ff)
    norms = 2 * d_model * (1 + bias)
    return attention + ffn + norms


@wrong(gpt2_parameters, "The output head counts once more, though it is tied to the table of tokens.")
def _(n_layers, d_model, vocab_size, n_positions):
    embeddings = (vocab_size + n_positions) * d_model
    layers = n_layers * block_parameters.reference(d_model, 4 * d_model, True)
    final_norm = 2 * d_model
    head = d_model * vocab_size
    return embeddings + layers + final_norm + head


@wrong(gpt2_parameters, "The last norm counts once for each layer: it stands only after the last one.")
def _(n_layers, d_model, vocab_size, n_positions):
    total = vocab_size * d_model + n_positions * d_model
    for _ in range(n_layers):
        total += block_parameters.reference(d_model, 4 * d_model, bias=True)
        total += 2 * d_model
    return total


@right(gpt2_parameters)
def _(n_layers, d_model, vocab_size, n_positions):
    # 4 + 8 matrices of d², and 4 + (4 + 1) + 4 vectors of d in each layer
    rows = vocab_size + n_positions + 2 + n_layers * (12 * d_model + 13)
    return rows * d_model


@wrong(attention_flops, "A multiplication and its addition count as one FLOP together, which gives half.")
def _(seq, d_model):
    scores = seq * seq * d_model
    blend = seq * seq * d_model
    return scores + blend


@wrong(attention_flops, "A sum of k products counts k - 1 additions, not k.")
def _(seq, d_model):
    scores = seq * seq * (d_model + d_model - 1)
    blend = seq * d_model * (seq + seq - 1)
    return scores + blend


@wrong(kv_cache_bytes, "Only one vector of each token counts: the keys or the values, not both.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    per_token = n_layers * d_model * bytes_per_value
    return per_token * seq * batch


@wrong(kv_cache_bytes, "Each number takes 4 bytes, whatever bytes_per_value says.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    per_layer = 2 * batch * seq * d_model
    return n_layers * per_layer * 4


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    cache = torch.empty(n_layers, 2, batch, seq, d_model, dtype=torch.uint8, device="meta")
    return cache.numel() * bytes_per_value


@wrong(mend_model_size, "Frozen parameters are left out.")
def _(model):
    trainable = [p for p in model.parameters() if p.requires_grad]
    numbers = sum(p.numel() for p in trainable)
    size = sum(p.numel() * p.element_size() for p in trainable)
    return numbers, size


@wrong(mend_model_size, "Every parameter takes the bytes of the first one's dtype, also where its own differs.")
def _(model):
    parameters = list(model.parameters())
    if not parameters:
        return 0, 0
    numbers = sum(p.numel() for p in parameters)
    return numbers, numbers * parameters[0].element_size()
