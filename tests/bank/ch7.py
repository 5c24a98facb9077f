"""Answers to assignment 7."""

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

from . import right, wrong


@wrong(attention_parameters, "The output projection is left out: three maps.")
def _(d_model, bias):
    return 3 * (d_model * d_model + (d_model if bias else 0))


@wrong(attention_parameters, "One bias for all four maps is counted, not one each.")
def _(d_model, bias):
    return 4 * d_model**2 + d_model * bias


@wrong(attention_parameters, "It prints and returns None.")
def _(d_model, bias):
    n = 4 * d_model * d_model
    if bias:
        n += 4 * d_model
    print(n)


@wrong(attention_parameters, "The condition is the wrong way round: biases are counted where there are none.")
def _(d_model, bias):
    if not bias:
        return 4 * d_model * (d_model + 1)
    return 4 * d_model * d_model


@right(attention_parameters)
def _(d_model, bias):
    maps = [nn.Linear(d_model, d_model, bias=bias, device="meta") for _ in range(4)]
    return sum(p.numel() for m in maps for p in m.parameters())


@wrong(block_parameters, "Only one norm is counted.")
def _(d_model, d_ff, bias):
    b = int(bias)
    return 4 * d_model * (d_model + b) + d_ff * (d_model + b) + d_model * (d_ff + b) + d_model * (1 + b)


@wrong(block_parameters, "The norms vanish with the biases, though their weights stay.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff
    if bias:
        n += 4 * d_model + d_ff + d_model + 4 * d_model
    return n


@wrong(block_parameters, "Both biases of the feed-forward layer are taken to be d_model wide.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 2 * d_model * d_ff + 2 * d_model
    if bias:
        n += 4 * d_model + 2 * d_model + 2 * d_model
    return n


@wrong(block_parameters, "The feed-forward layer is counted as gated, with three matrices.")
def _(d_model, d_ff, bias):
    n = 4 * d_model**2 + 3 * d_model * d_ff + 2 * d_model
    if bias:
        n += 4 * d_model + d_ff + d_model + 2 * d_model
    return n


@right(block_parameters)
def _(d_model, d_ff, bias):
    layer = nn.TransformerEncoderLayer(d_model, 1, d_ff, bias=bias, device="meta")
    return sum(p.numel() for p in layer.parameters())


@right(block_parameters)
def _(d_model, d_ff, bias):
    shapes = [(d_model, d_model)] * 4 + [(d_ff, d_model), (d_model, d_ff), (d_model,), (d_model,)]
    if bias:
        shapes += [(d_model,)] * 7 + [(d_ff,)]
    return sum(torch.Size(shape).numel() for shape in shapes)


@wrong(gpt2_parameters, "The head is counted once more, though it is tied to the table.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * d_model**2 + 13 * d_model
    return 2 * vocab_size * d_model + n_positions * d_model + n_layers * layer + 2 * d_model


@wrong(gpt2_parameters, "The table of positions is left out.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * d_model**2 + 13 * d_model
    return vocab_size * d_model + n_layers * layer + 2 * d_model


@wrong(gpt2_parameters, "The sizes of the small GPT-2 are hard-coded.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * 768**2 + 13 * 768
    return (50257 + 1024) * 768 + 12 * layer + 2 * 768


@wrong(gpt2_parameters, "The last norm is counted without its bias.")
def _(n_layers, d_model, vocab_size, n_positions):
    layer = 12 * d_model * d_model + 13 * d_model
    return n_layers * layer + vocab_size * d_model + n_positions * d_model + d_model


@right(gpt2_parameters)
def _(n_layers, d_model, vocab_size, n_positions):
    with torch.device("meta"):
        tables = nn.ModuleList([nn.Embedding(vocab_size, d_model), nn.Embedding(n_positions, d_model)])
        layer = nn.TransformerEncoderLayer(d_model, 1, 4 * d_model, norm_first=True)
        norm = nn.LayerNorm(d_model)
    count = lambda module: sum(p.numel() for p in module.parameters())  # noqa: E731
    return count(tables) + n_layers * count(layer) + count(norm)


@wrong(attention_flops, "The additions are not counted: half of all.")
def _(seq, d_model):
    return 2 * seq * seq * d_model


@wrong(attention_flops, "The projections are counted too.")
def _(seq, d_model):
    return 8 * seq * d_model**2 + 4 * seq**2 * d_model


@wrong(attention_flops, "Only k - 1 additions for a sum of k products.")
def _(seq, d_model):
    scores = seq * seq * (2 * d_model - 1)
    blend = seq * d_model * (2 * seq - 1)
    return scores + blend


@wrong(attention_flops, "One scale and an exponential for each score are added.")
def _(seq, d_model):
    return 4 * seq * seq * d_model + 2 * seq * seq


@right(attention_flops)
def _(seq, d_model):
    flops = 0
    for m, k, n in [(seq, d_model, seq), (seq, seq, d_model)]:
        flops += m * n * (k + k)
    return flops


@wrong(kv_cache_bytes, "Only the keys are counted: the factor 2 is missing.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return n_layers * d_model * seq * batch * bytes_per_value


@wrong(kv_cache_bytes, "bytes_per_value is not used: 4 stands in its place.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * seq * batch * 4


@wrong(kv_cache_bytes, "Queries are kept as well: three kinds.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 3 * n_layers * d_model * seq * batch * bytes_per_value


@wrong(kv_cache_bytes, "d_model is squared, as if the projections' weights were kept.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * d_model * d_model * seq * batch * bytes_per_value


@wrong(kv_cache_bytes, "The seq tokens are squared, as for a table of scores.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return 2 * n_layers * batch * seq**2 * d_model * bytes_per_value


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return sum(2 * batch * seq * d_model * bytes_per_value for _ in range(n_layers))


@wrong(mend_model_size, "The program as given: buffers count, tied weights twice, and all are four bytes.")
def _(model):
    numbers = 0
    for tensor in model.state_dict().values():
        numbers += tensor.numel()
    return numbers, 4 * numbers


@wrong(mend_model_size, "Frozen parameters are left out.")
def _(model):
    params = [p for p in model.parameters() if p.requires_grad]
    return sum(p.numel() for p in params), sum(p.nbytes for p in params)


@wrong(mend_model_size, "Buffers are counted as well.")
def _(model):
    tensors = [*model.parameters(), *model.buffers()]
    return sum(t.numel() for t in tensors), sum(t.numel() * t.element_size() for t in tensors)


@wrong(mend_model_size, "Only the count is returned.")
def _(model):
    return sum(p.numel() for p in model.parameters())


@wrong(mend_model_size, "It counts tensors, not numbers: len of the list of parameters.")
def _(model):
    params = list(model.parameters())
    return len(params), sum(p.nbytes for p in params)


@right(mend_model_size)
def _(model):
    params = {id(p): p for m in model.modules() for p in m._parameters.values() if p is not None}
    return sum(p.numel() for p in params.values()), sum(p.numel() * p.dtype.itemsize for p in params.values())
