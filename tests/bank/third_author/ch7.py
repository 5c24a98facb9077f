"""Answers to assignment 7, by a third author."""

import math

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transformer_lab.checks import (
    attention_flops,
    attention_parameters,
    block_parameters,
    gpt2_parameters,
    kv_cache_bytes,
    mend_model_size,
)

from .. import right, wrong


@wrong(attention_parameters, "The output projection is not counted: three maps with their biases instead of four.")
def _(d_model, bias):
    per_map = d_model * d_model
    if bias:
        per_map += d_model
    return 3 * per_map  # query, key, value


@wrong(attention_parameters, "Only three bias vectors are counted: the output projection's bias is left out.")
def _(d_model, bias):
    in_proj_weight = 3 * d_model * d_model
    in_proj_bias = 3 * d_model if bias else 0
    out_proj = d_model * d_model
    return in_proj_weight + in_proj_bias + out_proj


@wrong(attention_parameters, "Without biases it returns 0, for the conditional takes the weights away as well.")
def _(d_model, bias):
    return 4 * d_model**2 + 4 * d_model if bias else 0


@wrong(attention_parameters, "The argument bias is ignored: the biases of all four maps are always counted.")
def _(d_model, bias):
    attention = nn.MultiheadAttention(d_model, num_heads=1, device="meta")
    return sum(p.numel() for p in attention.parameters())


@right(attention_parameters)
def _(d_model, bias):
    shapes = {}
    for name in ("query", "key", "value", "output"):
        shapes[name + ".weight"] = (d_model, d_model)
        if bias:
            shapes[name + ".bias"] = (d_model,)
    return sum(map(math.prod, shapes.values()))


@wrong(block_parameters, "The norms keep their biases where bias is False: each counts 2 * d_model always.")
def _(d_model, d_ff, bias):
    attention = attention_parameters.reference(d_model, bias)
    feed_forward = 2 * d_model * d_ff
    if bias:
        feed_forward += d_ff + d_model
    norms = 2 * (d_model + d_model)
    return attention + feed_forward + norms


@wrong(
    block_parameters,
    "Both biases of the feed-forward layer are counted with d_ff numbers; the second map's has d_model.",
)
def _(d_model, d_ff, bias):
    def linear(n_in, n_out):
        return n_in * n_out + (max(n_in, n_out) if bias else 0)

    def norm():
        return 2 * d_model if bias else d_model

    attention = 4 * linear(d_model, d_model)
    return attention + linear(d_model, d_ff) + linear(d_ff, d_model) + 2 * norm()


@wrong(block_parameters, "d_ff is ignored: the feed-forward layer is always taken as 4 * d_model wide.")
def _(d_model, d_ff, bias):
    count = 12 * d_model**2 + 2 * d_model
    if bias:
        count += 11 * d_model
    return count


@wrong(block_parameters, "Without biases the norms are not counted at all: their weights are missing too.")
def _(d_model, d_ff, bias):
    total = attention_parameters.reference(d_model, bias) + d_model * d_ff + d_ff * d_model
    if bias:
        total += d_ff + d_model
        total += 2 * (2 * d_model)  # two norms
    return total


@right(block_parameters)
def _(d_model, d_ff, bias):
    layer = nn.TransformerEncoderLayer(d_model, nhead=1, dim_feedforward=d_ff, bias=bias, device="meta")
    return sum(p.numel() for p in layer.parameters())


@wrong(gpt2_parameters, "The tied head is counted again: vocab_size * d_model too many.")
def _(n_layers, d_model, vocab_size, n_positions):
    tables = (vocab_size + n_positions) * d_model
    layers = n_layers * block_parameters.reference(d_model, 4 * d_model, True)
    last_norm = 2 * d_model
    head = d_model * vocab_size
    return tables + layers + last_norm + head


@wrong(gpt2_parameters, "The norm after the last layer is not counted: 2 * d_model are missing.")
def _(n_layers, d_model, vocab_size, n_positions):
    token_table = vocab_size * d_model
    position_table = n_positions * d_model
    total = token_table + position_table
    for _ in range(n_layers):
        total += block_parameters.reference(d_model, d_model * 4, bias=True)
    return total


@wrong(gpt2_parameters, "d_ff is fixed at 3072, the width of GPT-2 small, instead of 4 * d_model.")
def _(n_layers, d_model, vocab_size, n_positions):
    embeddings = (vocab_size + n_positions) * d_model
    blocks = n_layers * block_parameters.reference(d_model, 3072, True)
    return embeddings + blocks + 2 * d_model


@wrong(gpt2_parameters, "The last norm is counted once in every layer instead of once in the model.")
def _(n_layers, d_model, vocab_size, n_positions):
    d_ff = 4 * d_model
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 3 * 2 * d_model
    return (vocab_size + n_positions) * d_model + n_layers * (attention + feed_forward + norms)


@right(gpt2_parameters)
def _(n_layers, d_model, vocab_size, n_positions):
    # everything has d_model as a factor
    per_layer = 12 * d_model + 13
    return d_model * (vocab_size + n_positions + 2 + n_layers * per_layer)


@wrong(attention_flops, "Additions are not counted: each product of matrices counts its multiplications alone.")
def _(seq, d_model):
    scores = seq * d_model * seq
    blend = seq * seq * d_model
    return scores + blend


@wrong(attention_flops, "d_model is squared: each product counts the features of both matrices.")
def _(seq, d_model):
    queries = seq * d_model
    keys = values = seq * d_model
    scores = 2 * queries * keys
    blend = 2 * queries * values
    return scores + blend


@wrong(attention_flops, "A sum of k products is counted with k - 1 additions instead of k.")
def _(seq, d_model):
    def dot(k):
        return k + (k - 1)

    scores = seq * seq * dot(d_model)
    blend = seq * d_model * dot(seq)
    return scores + blend


@wrong(attention_flops, "Only pairs that a causal mask leaves are counted: seq * (seq + 1) / 2 instead of seq * seq.")
def _(seq, d_model):
    pairs = sum(i + 1 for i in range(seq))
    per_pair = 2 * d_model + 2 * d_model  # a score, and a share of the blend
    return pairs * per_pair


@right(attention_flops)
def _(seq, d_model):
    x = torch.empty(seq, d_model, device="meta")
    with FlopCounterMode(display=False) as counter:
        (x @ x.T) @ x
    return int(counter.get_total_flops())


@wrong(kv_cache_bytes, "Only one vector per token and layer is counted, not both key and value: half of the bytes.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    return n_layers * batch * seq * d_model * bytes_per_value


@wrong(kv_cache_bytes, "Queries are counted as well: three vectors per token and layer instead of two.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    q = k = v = d_model
    per_token = n_layers * (q + k + v)
    return per_token * seq * batch * bytes_per_value


@wrong(kv_cache_bytes, "bytes_per_value is ignored: every value takes the 4 bytes of float32.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    keys = torch.empty(n_layers, batch, seq, d_model, device="meta")
    values = torch.empty_like(keys)
    return keys.nbytes + values.nbytes


@wrong(kv_cache_bytes, "batch is ignored: the bytes of one sentence are returned.")
def _(n_layers, d_model, seq, batch, bytes_per_value):
    per_token = 2 * n_layers * d_model
    return per_token * seq * bytes_per_value


@right(kv_cache_bytes)
def _(n_layers, d_model, seq, batch, bytes_per_value):
    cache = torch.empty(batch, n_layers, 2, seq, d_model, bytes_per_value, dtype=torch.uint8, device="meta")
    return cache.nbytes


@wrong(mend_model_size, "Frozen parameters are left out: only those with requires_grad are counted.")
def _(model):
    parameters = [p for p in model.parameters() if p.requires_grad]
    count = sum(p.numel() for p in parameters)
    size = sum(p.numel() * p.element_size() for p in parameters)
    return count, size


@wrong(mend_model_size, "A parameter that two modules share is counted twice.")
def _(model):
    numbers, size = 0, 0
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            numbers += parameter.numel()
            size += parameter.nbytes
    return numbers, size


@wrong(mend_model_size, "All parameters are taken to have the first one's dtype: wrong bytes where dtypes differ.")
def _(model):
    parameters = list(model.parameters())
    if not parameters:
        return 0, 0
    numbers = sum(p.numel() for p in parameters)
    return numbers, numbers * parameters[0].element_size()


@wrong(
    mend_model_size,
    "Buffers are still counted; and tensors are told apart by address, so on the meta device all but one are lost.",
)
def _(model):
    unique = {tensor.data_ptr(): tensor for tensor in model.state_dict().values()}
    numbers = total = 0
    for tensor in unique.values():
        numbers += tensor.numel()
        total += tensor.numel() * tensor.element_size()
    return numbers, total


@right(mend_model_size)
def _(model):
    by_id = {id(p): p for _, p in model.named_parameters(remove_duplicate=False)}
    sizes = [(math.prod(p.shape), p.dtype.itemsize) for p in by_id.values()]
    return sum(n for n, _ in sizes), sum(n * width for n, width in sizes)
